#include "cli/cli_state.h"

#include "base/utf8.h"
#include "cli/cli_args.h"
#include "json/json.h"
#include "json/jsonw.h"

#include <errno.h>
#include <time.h>

#define VERSION 1

void cli_state_fini(struct cli_state *s) {
    free(s->name);
    free(s->host);
    free(s->token_file);
    free(s->session);
    free(s->process);
    free(s->command);
    free(s->owner);
    *s = (struct cli_state){.name = NULL};
}

/* Members in the order of the text; those after `optional` may be absent. */
enum { HOST, SESSION, PROCESS, COMMAND, NAME, TOKEN_FILE, OWNER, STRINGS };

static const char *const string_names[STRINGS] = {"host", "sessionId", "processId", "command",
                                                  "name", "tokenFile", "owner"};

static char **string_of(struct cli_state *s, size_t i) {
    char **const places[STRINGS] = {&s->host, &s->session,    &s->process, &s->command,
                                    &s->name, &s->token_file, &s->owner};
    return places[i];
}

static int wrong(struct err *e, const char *why) {
    return err_set(e, ERR_INVALID_PARAMS, "the state file is damaged: %s", why);
}

static bool is_uuid(const char *s) {
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : s[i] == '\0' || strchr("0123456789abcdefABCDEF", s[i]) == NULL)
            return false;
    }
    return s[36] == '\0';
}

static int decode_member(struct cli_state *s, struct str key, const struct json_node *v,
                         struct err *e) {
    uint64_t version;
    for (size_t i = 0; i < STRINGS; i++) {
        if (!str_eqz(key, string_names[i]))
            continue;
        if (v->type != JSON_STRING || v->n == 0 || str_has_nul(json_str(v)))
            return wrong(e, "a member is no text");
        *string_of(s, i) = str_dup(json_str(v));
        return *string_of(s, i) != NULL ? 0 : -ENOMEM;
    }
    if (str_eqz(key, "version"))
        return json_u64(v, &version) == 0 && version == VERSION ? 0 : wrong(e, "unknown version");
    if (str_eqz(key, "tty")) {
        s->tty = v->type == JSON_TRUE;
        return v->type == JSON_TRUE || v->type == JSON_FALSE ? 0 : wrong(e, "tty is no bool");
    }
    if (str_eqz(key, "startedAtMs"))
        return json_i64(v, &s->started_ms) == 0 && s->started_ms >= 0 ? 0 : wrong(e, "a bad time");
    return wrong(e, "an unknown member");
}

static int decode_object(const struct json_node *root, struct cli_state *s, struct err *e) {
    bool version = false;
    if (root->type != JSON_OBJECT)
        return wrong(e, "no object");
    json_for_each_member(k, root) {
        version = version || str_eqz(json_str(k), "version");
        int r = decode_member(s, json_str(k), k + 1, e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i <= NAME; i++) {
        if (*string_of(s, i) == NULL)
            return wrong(e, "a member is missing");
    }
    if (!version)
        return wrong(e, "a member is missing");
    if (!cli_args_is_name(s->name))
        return wrong(e, "a bad name");
    if (!is_uuid(s->session) || (s->owner != NULL && !is_uuid(s->owner)))
        return wrong(e, "a bad id");
    return 0;
}

int cli_state_decode(struct str text, struct cli_state *out, struct err *e) {
    struct json_doc doc;
    _cleanup_err_ struct err inner = ERR_INIT;
    *out = (struct cli_state){.name = NULL};
    if (text.n > CLI_STATE_MAX)
        return wrong(e, "it is too long");
    if (!utf8_valid(text.p, text.n))
        return wrong(e, "it is not UTF-8");
    json_doc_init(&doc, CLI_STATE_MAX, 0);
    int r = json_parse(&doc, text.p, text.n, &inner);
    if (r == -EINVAL)
        r = wrong(e, "no JSON");
    else if (r == 0)
        r = decode_object(json_root(&doc), out, e);
    json_doc_fini(&doc);
    if (r < 0)
        cli_state_fini(out);
    if (r == -ENOMEM)
        err_set(e, ERR_INTERNAL, "out of memory");
    return r;
}

int cli_state_encode(const struct cli_state *s, struct buf *out) {
    int r = buf_putf(out, "{\"version\":%d", VERSION);
    for (size_t i = 0; r == 0 && i < STRINGS; i++) {
        const char *v = *string_of((struct cli_state *)(uintptr_t)s, i);
        if (v == NULL)
            continue;
        if (!utf8_valid(v, strlen(v)))
            return -EINVAL;
        r = buf_putf(out, ",\"%s\":", string_names[i]);
        if (r == 0)
            r = jsonw_str(out, str_of(v));
    }
    if (r == 0)
        r = buf_putf(out, ",\"tty\":%s,\"startedAtMs\":%lld}\n", s->tty ? "true" : "false",
                     (long long)s->started_ms);
    return r;
}

int64_t cli_state_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
