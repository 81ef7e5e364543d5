#include "cli/cli_probe.h"

#include "cli/cli_json.h"
#include "cli/cli_link.h"
#include "json/json.h"

#define LIMIT_MS 5000
#define SESSION_BUSY (-32010)
#define INVALID_REQUEST (-32600)
#define ANSWER_MAX (8u << 20)

static void finish(struct cli_probe *p, const char *what) {
    if (p->what == NULL)
        p->what = what;
    p->done = true;
}

static void fail(struct cli_probe *p) {
    const struct xs_error *e = xs_client_error(p->client);
    int rpc = xs_error_rpc(e);
    p->gone = rpc == INVALID_REQUEST || xs_error_code(e) == XS_EGONE;
    p->error = strdup(xs_error_text(e));
    finish(p, rpc == SESSION_BUSY ? "attached" : p->gone ? "gone" : "unreachable");
}

static void on_detached(struct xs_call *call, int result) {
    (void)result;
    finish(call->user, "unknown");
}

static void on_released(struct xs_call *call, int result) {
    struct cli_probe *p = call->user;
    (void)result; /* without the capability there was nothing to release */
    p->call = (struct xs_call){.done = on_detached, .user = p};
    if (xs_client_detach(p->client, p->session, &p->call) < 0)
        finish(p, "unknown");
}

/* What the session said about the process. */
static void take(struct cli_probe *p, const struct json_node *v) {
    static const char *const states[] = {"starting", "running", "exited", "closed"};
    const struct json_node *state = json_get(v, "state"), *code = json_get(v, "exitCode");
    int64_t number;
    for (size_t i = 0; state != NULL && state->type == JSON_STRING && i < ARRAY_LEN(states); i++) {
        if (str_eqz(json_str(state), states[i]))
            p->what = states[i];
    }
    if (code != NULL && code->type == JSON_NUMBER && json_i64(code, &number) == 0) {
        p->has_code = true;
        p->code = (int)(number & 255);
    }
}

static void parse(struct cli_probe *p) {
    struct json_doc doc;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&doc, ANSWER_MAX, 0);
    bool found = false;
    if (p->answer.n <= ANSWER_MAX && json_parse(&doc, p->answer.data, p->answer.n, &e) == 0 &&
        json_root(&doc)->type == JSON_OBJECT) {
        const struct json_node *list = json_get(json_root(&doc), "processes");
        if (list != NULL && list->type == JSON_ARRAY) {
            json_for_each(v, list) {
                const struct json_node *id =
                    v->type == JSON_OBJECT ? json_get(v, "processId") : NULL;
                if (id == NULL || id->type != JSON_STRING ||
                    !str_eqz(json_str(id), p->state.process))
                    continue;
                found = true;
                take(p, v);
            }
        }
    }
    json_doc_fini(&doc);
    if (!found) {
        p->gone = true;
        p->what = "gone";
    }
}

static void on_listed(struct xs_call *call, int result) {
    struct cli_probe *p = call->user;
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (result < 0) {
        fail(p);
        return;
    }
    parse(p);
    xs_bytes_free(&p->answer);
    p->answer = (struct xs_bytes){.data = NULL};
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "processId", str_of(p->state.process));
    cli_json_u64(&j, "seq", 0);
    cli_json_bool(&j, "hold", false);
    cli_json_close(&j, '}');
    p->call = (struct xs_call){.done = on_released, .user = p};
    if (j.error < 0 || buf_putc(&j.b, '\0') < 0 ||
        xs_client_rpc(p->client, "process/ack", j.b.p, &p->answer, &p->call) < 0)
        finish(p, "unknown");
}

static void on_connected(struct xs_call *call, int result) {
    struct cli_probe *p = call->user;
    if (result < 0) {
        fail(p);
        return;
    }
    p->call = (struct xs_call){.done = on_listed, .user = p};
    if (xs_process_list(p->client, &p->answer, &p->call) < 0)
        fail(p);
}

static int set(struct cli_probe *p, struct xs_options *o) {
    int r = xs_options_str(o, XS_OPT_SESSION_ID, p->state.session);
    if (r == 0 && p->state.token_file != NULL)
        r = xs_options_str(o, XS_OPT_TOKEN_FILE, p->state.token_file);
    else if (r == 0 && p->cli->token != NULL && cli_link_selected(p->cli) == NULL)
        r = xs_options_str(o, XS_OPT_TOKEN, p->cli->token);
    if (r == 0)
        r = xs_options_num(o, XS_OPT_CONNECT_MS, LIMIT_MS);
    if (r == 0)
        r = xs_options_num(o, XS_OPT_INIT_MS, LIMIT_MS);
    return r == 0 ? xs_options_num(o, XS_OPT_RESUME_MS, 0) : r;
}

void cli_probe_start(struct cli *c, struct cli_probe *p) {
    int status;
    _cleanup_cli_options_ struct xs_options *o = cli_link_options(c, p->state.host, &status);
    if (o == NULL || set(p, o) < 0 || cli_link_new(c, o, &p->client) != 0) {
        finish(p, "unreachable");
        return;
    }
    p->call = (struct xs_call){.done = on_connected, .user = p};
    if (xs_client_connect(p->client, &p->call) < 0)
        fail(p);
}

void cli_probe_fini(struct cli_probe *p) {
    xs_client_free(p->client);
    xs_bytes_free(&p->answer);
    cli_state_fini(&p->state);
    free(p->error);
    *p = (struct cli_probe){.cli = NULL};
}
