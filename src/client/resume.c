#include "client/engine.h"

#include "base/uri.h"
#include "json/json_put.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RESUME_SOON_MS 100 /* between tries, */
#define RESUME_LATE_MS 500 /* and from RESUME_PATIENCE_MS of the outage on */
#define RESUME_PATIENCE_MS 3000
#define RESUME_CONNECT_MS 5000  /* of one try */
#define RESUME_LEAVING_MS 2000  /* after close code 1001 */
#define RESUME_BUSY_MS 3000     /* for another client to leave a session that we begin with */
#define RESUME_MARGIN_MS 2000   /* before the session's time to live is over */
#define RESUME_PROOF_MS 1000    /* a connection that lived so long was one */
#define RESUME_ASSUMED_MS 30000 /* time to live and retention of a server that does not tell */
#define RESUME_RETAINED (1 << 20)
#define RESUME_MALFORMED_MAX 3
#define RESUME_FIRST_MAX 5         /* connections before the first session */
#define RESUME_INFO_MAX (1u << 20) /* bytes of environmentInfo */

enum resume_text { TEXT_VERSION, TEXT_SHELL, TEXT_CWD, TEXT_HOME, TEXT_TMP, TEXT_SANDBOX };

static void resume_on_retry(struct loop_timer *t);
static void resume_on_init_limit(struct loop_timer *t);
static void resume_on_opened(struct link *l);
static void resume_on_message(struct link *l, char *data, size_t n);
static void resume_on_writable(struct link *l);
static void resume_on_heard(struct link *l);
static void resume_on_lost(struct link *l, enum link_loss how, struct xs_error *e);
static void resume_on_dial(struct notice *n);
static void resume_again(struct xs_client *c, struct xs_error *e);

static struct xs_client *resume_client(struct link *l) {
    return container_of(l, struct xs_client, link);
}

void resume_init(struct xs_client *c) {
    struct link *l = &c->link;
    link_init(l, c, &c->target, c->options);
    l->opened = resume_on_opened;
    l->message = resume_on_message;
    l->writable = resume_on_writable;
    l->heard = resume_on_heard;
    l->lost = resume_on_lost;
    c->retry.fn = resume_on_retry;
    c->init_limit.fn = resume_on_init_limit;
    notice_init(&c->dial_notice, resume_on_dial);
    for (size_t i = 0; i < ENGINE_HELLO; i++)
        c->hello[i] = BUF_INIT(CALLS_TEXT_MAX);
    json_doc_init(&c->server, RESUME_INFO_MAX, c->doc.seed);
    c->info = (struct xs_info){.url = c->target.shown,
                               .shell = "/bin/sh",
                               .resumable = target_resumes(&c->target),
                               .session_ttl_ms = RESUME_ASSUMED_MS,
                               .closed_retention_ms = RESUME_ASSUMED_MS,
                               .retained_output_bytes = RESUME_RETAINED};
    const char *id = xs_options_get(c->options, XS_OPT_SESSION_ID, "");
    strcpy(c->session, strlen(id) < sizeof c->session ? id : "");
}

/* Stops what runs; keeps what is known of the server. */
void resume_fini(struct xs_client *c) {
    loop_timer_del(&c->loop, &c->retry);
    loop_timer_del(&c->loop, &c->init_limit);
    notice_drop(&c->dial_notice);
    for (size_t i = 0; i < ENGINE_HELLO; i++)
        buf_fini(&c->hello[i]);
    c->hello_n = c->hello_at = 0;
    c->hello_id = 0;
}

/* -- connecting -- */

static void resume_fail(struct xs_client *c, int code, const char *why) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_set(&e, code, "%s: %s", c->target.shown, why);
    client_stop(c, XS_STATE_FAILED, &e);
}

static bool resume_is_first(const struct xs_client *c) {
    return !c->ever;
}

/* Milliseconds of the outage that are left. */
static uint64_t resume_left(const struct xs_client *c) {
    uint64_t gone = client_boottime_ms() - c->outage_ms;
    return gone < c->limit_ms ? c->limit_ms - gone : 0;
}

static void resume_open(struct xs_client *c) {
    uint64_t limit = (uint64_t)xs_options_get_num(c->options, XS_OPT_CONNECT_MS, 10000);
    if (!resume_is_first(c))
        limit = MIN((uint64_t)RESUME_CONNECT_MS, MAX(resume_left(c), (uint64_t)1));
    c->proven = false;
    c->dial_limit_ms = MAX(limit, (uint64_t)1);
    bool dialled = c->target.kind <= TARGET_UNIX;
    if (c->on_dial != NULL && dialled)
        notice_post(c, &c->dial_notice);
    else
        link_open(&c->link, c->dial_limit_ms);
}

/* The caller dials. It may free the client. */
static void resume_on_dial(struct notice *n) {
    struct xs_client *c = container_of(n, struct xs_client, dial_notice);
    bool *gone = c->gone;
    int fd = c->on_dial(c, c->on_dial_user);
    if (gone != NULL && *gone) {
        if (fd >= 0)
            close(fd);
        return;
    }
    bool wanted = c->state == XS_STATE_CONNECTING || c->state == XS_STATE_RESUMING;
    if (fd >= 0 && wanted) {
        link_open_fd(&c->link, fd, c->dial_limit_ms);
    } else if (fd >= 0) {
        close(fd);
    } else if (wanted) {
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_sys(&e, XS_ECONNECT, -fd, "%s: the dialler failed", c->target.shown);
        resume_again(c, &e);
    }
}

void resume_begin(struct xs_client *c) {
    c->outage_ms = client_boottime_ms();
    c->limit_ms = (uint64_t)xs_options_get_num(c->options, XS_OPT_RESUME_MS, 25000);
    client_set_state(c, XS_STATE_CONNECTING);
    resume_open(c);
}

static void resume_on_retry(struct loop_timer *t) {
    resume_open(container_of(t, struct xs_client, retry));
}

void resume_now(struct xs_client *c) {
    if (c->state == XS_STATE_RESUMING && c->retry.pos != 0) {
        loop_timer_del(&c->loop, &c->retry);
        resume_open(c);
    }
}

/* -- outages -- */

/* How long an outage may be, by the options and by what the server keeps. */
static uint64_t resume_limit(const struct xs_client *c) {
    uint64_t limit = (uint64_t)xs_options_get_num(c->options, XS_OPT_RESUME_MS, 25000);
    uint64_t kept = (uint64_t)MAX(c->info.session_ttl_ms, (int64_t)0);
    uint64_t safe = kept >= 2 * RESUME_MARGIN_MS ? kept - RESUME_MARGIN_MS : kept / 2;
    return c->target.kind <= TARGET_UNIX ? MIN(limit, safe) : 0;
}

/* Tries again, or gives up: e says why the last try failed, and is moved. */
static void resume_again(struct xs_client *c, struct xs_error *e) {
    bool at_once = c->state == XS_STATE_READY && c->outage_ms == 0;
    if (c->outage_ms == 0) {
        c->outage_ms = client_boottime_ms();
        c->limit_ms = resume_limit(c);
    }
    uint64_t gone = client_boottime_ms() - c->outage_ms;
    uint64_t delay = at_once ? 0 : gone < RESUME_PATIENCE_MS ? RESUME_SOON_MS : RESUME_LATE_MS;
    if (gone + delay >= c->limit_ms) {
        _cleanup_xs_error_ struct xs_error last = XS_ERROR_INIT;
        bool tried = c->limit_ms > 0 && !resume_is_first(c);
        xs_error_set(&last, resume_is_first(c) ? e->code : XS_EGONE, "%s%s%s", xs_error_text(e),
                     tried ? "; could not resume within the time" : "",
                     c->limit_ms == 0 && !resume_is_first(c) ? "; it cannot resume" : "");
        last.rpc = e->rpc;
        client_stop(c, XS_STATE_FAILED, &last);
        return;
    }
    client_log(c, XS_LOG_WARN, "%s", xs_error_text(e));
    if (c->ever)
        client_set_state(c, XS_STATE_RESUMING);
    client_balance(c);
    if (loop_timer_set(&c->loop, &c->retry, loop_ms(delay)) < 0)
        resume_fail(c, XS_ENOMEM, "out of memory");
}

/* The first connection failed. If a server was there, it is tried again: the connection may have
 * been cut, and nothing runs yet. */
static void resume_first_lost(struct xs_client *c, enum link_loss how, struct xs_error *e) {
    if (e->code == XS_ELOST)
        e->code = XS_ECONNECT;
    bool cut = how == LINK_LOST && c->link.met && target_resumes(&c->target);
    if (cut && ++c->first_tries < RESUME_FIRST_MAX)
        resume_again(c, e);
    else
        client_stop(c, XS_STATE_FAILED, e);
}

void resume_close(struct xs_client *c) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_set(&e, XS_EGONE, "%s: the client is closed",
                 c->target.shown != NULL ? c->target.shown : "no URL");
    if (c->state == XS_STATE_FAILED)
        client_set_state(c, XS_STATE_CLOSED);
    client_stop(c, XS_STATE_CLOSED, &e);
}

static void resume_on_lost(struct link *l, enum link_loss how, struct xs_error *e) {
    struct xs_client *c = resume_client(l);
    bool lived = c->state == XS_STATE_READY &&
                 (c->proven || client_boottime_ms() - c->opened_ms >= RESUME_PROOF_MS);
    resume_fini(c);
    calls_cut(c);
    if (how == LINK_ENDED) {
        resume_close(c);
        return;
    }
    if (how == LINK_REFUSED || (how == LINK_BROKEN && ++c->malformed >= RESUME_MALFORMED_MAX)) {
        client_stop(c, XS_STATE_FAILED, e);
        return;
    }
    if (resume_is_first(c)) {
        resume_first_lost(c, how, e);
        return;
    }
    if (lived)
        c->outage_ms = 0;
    resume_again(c, e);
    if (how == LINK_LEAVING)
        c->limit_ms = MIN(c->limit_ms, (uint64_t)RESUME_LEAVING_MS);
}

void resume_malformed(struct xs_client *c, const char *why) {
    link_break(&c->link, LINK_BROKEN, XS_EPROTO, "malformed message: %s", why);
}

/* -- the handshake -- */

static struct params resume_hello(struct xs_client *c) {
    struct buf *b = &c->hello[c->hello_n++];
    b->len = 0;
    return (struct params){.b = b};
}

/* Begins a request of the handshake. */
static struct params resume_ask(struct xs_client *c, const char *method) {
    struct params p = resume_hello(c);
    c->hello_id = c->next_id++;
    params_open(&p, NULL, '{');
    params_u64(&p, "id", c->hello_id);
    params_strz(&p, "method", method);
    params_open(&p, "params", '{');
    return p;
}

static int resume_asked(struct params *p) {
    params_close(p, '}');
    params_close(p, '}');
    return p->r;
}

static int resume_initialize(struct xs_client *c) {
    struct params p = resume_ask(c, "initialize");
    params_strz(&p, "clientName", xs_options_get(c->options, XS_OPT_NAME, "libexecserver"));
    if (c->session[0] != '\0')
        params_strz(&p, "resumeSessionId", c->session);
    else
        params_raw(&p, "resumeSessionId", STR_LIT("null"));
    params_bool(&p, "outputAck", true);
    if (xs_options_has(c->options, XS_OPT_SESSION_TTL_MS))
        params_i64(&p, "sessionTtlMs", xs_options_get_num(c->options, XS_OPT_SESSION_TTL_MS, 0));
    if (xs_options_has(c->options, XS_OPT_CLOSED_RETENTION_MS))
        params_i64(&p, "closedRetentionMs",
                   xs_options_get_num(c->options, XS_OPT_CLOSED_RETENTION_MS, 0));
    return resume_asked(&p);
}

/* The server takes it in one write with the request before it. */
static int resume_initialized(struct xs_client *c) {
    struct params p = resume_hello(c);
    params_raw(&p, NULL, STR_LIT("{\"method\":\"initialized\",\"params\":{}}"));
    return p.r;
}

static void resume_on_opened(struct link *l) {
    struct xs_client *c = resume_client(l);
    uint64_t limit = (uint64_t)xs_options_get_num(c->options, XS_OPT_INIT_MS, 10000);
    if (!resume_is_first(c))
        limit = MIN(limit, MAX(resume_left(c), (uint64_t)1));
    c->hello_n = c->hello_at = 0;
    c->hello_info = false;
    if (resume_initialize(c) < 0 || resume_initialized(c) < 0) {
        resume_fail(c, XS_EINVAL, "the name or the session of this client is not UTF-8");
        return;
    }
    if (loop_timer_set(&c->loop, &c->init_limit, loop_ms(limit)) < 0) {
        resume_fail(c, XS_ENOMEM, "out of memory");
        return;
    }
    calls_pump(c);
}

static void resume_on_init_limit(struct loop_timer *t) {
    struct xs_client *c = container_of(t, struct xs_client, init_limit);
    c->link.met = false;
    link_break(&c->link, LINK_LOST, XS_ECONNECT, "no answer to initialize within the time");
}

static void resume_on_message(struct link *l, char *data, size_t n) {
    calls_message(resume_client(l), data, n);
}

static void resume_on_writable(struct link *l) {
    calls_pump(resume_client(l));
}

static void resume_on_heard(struct link *l) {
    struct xs_client *c = resume_client(l);
    if (c->state == XS_STATE_READY)
        c->proven = true;
}

/* -- what the server told -- */

/* Keeps a text of the server; a path if it is a URI. NULL: none. */
static const char *resume_keep(struct xs_client *c, enum resume_text which,
                               const struct json_node *v, bool path) {
    free(steal_ptr(&c->info_text[which]));
    if (v == NULL || v->type != JSON_STRING || str_has_nul(json_str(v)))
        return NULL;
    _cleanup_err_ struct err why = ERR_INIT;
    if (path && uri_to_path(json_str(v), &c->info_text[which], &why) < 0)
        c->info_text[which] = NULL;
    else if (!path)
        c->info_text[which] = str_dup(json_str(v));
    return c->info_text[which];
}

static void resume_take_limits(struct xs_client *c, const struct json_node *limits) {
    if (limits == NULL || limits->type != JSON_OBJECT)
        return;
    const struct {
        const char *name;
        int64_t *to;
    } fields[] = {{"sessionTtlMs", &c->info.session_ttl_ms},
                  {"closedRetentionMs", &c->info.closed_retention_ms},
                  {"retainedOutputBytes", &c->info.retained_output_bytes}};
    c->info.limits_told = 1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json_node *v = json_get(limits, fields[i].name);
        int64_t n;
        if (v != NULL && json_i64(v, &n) == 0 && n >= 0)
            *fields[i].to = n;
    }
}

/* Keeps environmentInfo, also its capabilities. */
static void resume_take_info(struct xs_client *c, const struct json_node *info) {
    if (info == NULL || info->type != JSON_OBJECT)
        return;
    _cleanup_buf_ struct buf text = BUF_INIT(RESUME_INFO_MAX);
    _cleanup_err_ struct err why = ERR_INIT;
    if (json_put(&text, info) < 0)
        return;
    c->capabilities = NULL;
    free(c->server_text);
    size_t n = text.len;
    c->server_text = steal_ptr(&text.p);
    if (json_parse(&c->server, c->server_text, n, &why) < 0)
        return;
    info = json_root(&c->server);
    const struct json_node *shell = json_get(info, "shell");
    shell = shell != NULL && shell->type == JSON_OBJECT ? json_get(shell, "path") : NULL;
    const char *path = resume_keep(
        c, TEXT_SHELL, shell, shell != NULL && shell->n > 4 && memcmp(shell->p, "file", 4) == 0);
    c->info.shell = path != NULL ? path : "/bin/sh";
    c->info.cwd = resume_keep(c, TEXT_CWD, json_get(info, "cwd"), true);
    c->info.home = resume_keep(c, TEXT_HOME, json_get(info, "userHomeDir"), true);
    c->info.tmp = resume_keep(c, TEXT_TMP, json_get(info, "tempDir"), true);
    c->info.version = resume_keep(c, TEXT_VERSION, json_get(info, "executorVersion"), false);
    c->info.sandbox = resume_keep(c, TEXT_SANDBOX, json_get(info, "sandboxBackend"), false);
    const struct json_node *can = json_get(info, "capabilities");
    c->capabilities = can != NULL && can->type == JSON_OBJECT ? can : NULL;
}

/* -- the answer -- */

static void resume_refused(struct xs_client *c, const struct json_node *error) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_remote(&e, "initialize", error);
    bool busy = e.rpc == ERR_SESSION_BUSY;
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    xs_error_set(&why, c->session[0] != '\0' ? XS_EGONE : e.code, "%s: %s%s", c->target.shown,
                 busy                    ? "the session is in use: "
                 : c->session[0] != '\0' ? "the session is lost: "
                                         : "",
                 xs_error_text(&e));
    why.rpc = e.rpc;
    if (!busy) {
        client_stop(c, XS_STATE_FAILED, &why);
        return;
    }
    link_drop(&c->link);
    resume_fini(c);
    calls_cut(c);
    if (resume_is_first(c)) /* a server takes a session from a dead connection after 2 s */
        c->limit_ms = MIN(c->limit_ms, (uint64_t)RESUME_BUSY_MS);
    resume_again(c, &why);
}

static void resume_ready(struct xs_client *c) {
    bool first = resume_is_first(c);
    loop_timer_del(&c->loop, &c->init_limit);
    c->hello_id = 0;
    c->ever = true;
    c->proven = false;
    c->opened_ms = client_boottime_ms();
    client_set_state(c, XS_STATE_READY);
    client_log(c, XS_LOG_INFO, "%s: %s session %s", c->target.shown, first ? "new" : "resumed",
               c->session);
    if (first)
        c->outage_ms = 0;
    else
        calls_resume(c);
    struct op *connect = steal_ptr(&c->connect);
    if (connect != NULL)
        op_finish(connect, 0);
    client_balance(c);
    resume_end(c);
    calls_pump(c);
}

static void resume_take_session(struct xs_client *c, const struct json_node *result) {
    const struct json_node *id = result->type == JSON_OBJECT ? json_get(result, "sessionId") : NULL;
    if (id == NULL || id->type != JSON_STRING || id->n == 0 || id->n >= sizeof c->session ||
        str_has_nul(json_str(id))) {
        resume_fail(c, XS_EPROTO, "the server names no session");
        return;
    }
    if (c->session[0] != '\0' && !str_eqz(json_str(id), c->session)) {
        resume_fail(c, XS_EPROTO, "the server answers with another session");
        return;
    }
    memcpy(c->session, id->p, id->n);
    c->session[id->n] = '\0';
    c->info.session = c->session;
    resume_take_limits(c, json_get(result, "limits"));
    const struct json_node *info = json_get(result, "environmentInfo");
    if (info != NULL && info->type == JSON_OBJECT)
        resume_take_info(c, info);
    if (c->server_text != NULL) {
        resume_ready(c);
        return;
    }
    /* Older servers tell it on demand. */
    c->hello_n = c->hello_at = 0;
    c->hello_info = true;
    struct params p = resume_ask(c, "environment/info");
    if (resume_asked(&p) < 0)
        resume_fail(c, XS_ENOMEM, "out of memory");
    calls_pump(c);
}

void resume_answer(struct xs_client *c, const struct json_node *result,
                   const struct json_node *error) {
    c->hello_id = 0;
    if (c->hello_info) {
        if (result != NULL)
            resume_take_info(c, result);
        resume_ready(c);
    } else if (error != NULL) {
        resume_refused(c, error);
    } else {
        resume_take_session(c, result);
    }
}

/* -- the end of a client -- */

void resume_end(struct xs_client *c) {
    if (c->ending == NULL || c->state != XS_STATE_READY)
        return;
    if (!c->closing_sent && !c->detaching) {
        c->closing_sent = true;
        c->urgent++; /* until all have sent */
        list_for_each(n, &c->parts) {
            struct client_part *p = list_entry(n, struct client_part, node);
            if (p->closing != NULL)
                p->closing(p);
        }
        c->urgent--;
    }
    if (c->urgent > 0 && !c->detaching)
        return;
    calls_pump(c);
    link_close(&c->link);
}
