#include "web/web_params.h"

#include "json/base64.h"
#include "net/conn_message.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>
#include <string.h>

static int params_redirect(const struct json_node *v, struct err *e) {
    static const char *const policies[] = {"follow", "stop"};
    return jsondec_variant(v, policies, ARRAY_LEN(policies), e);
}

static int params_check_redirect(const struct json_node *v, struct err *e) {
    return MIN(params_redirect(v, e), 0);
}

static int params_check_body(const struct json_node *v, struct err *e) {
    struct str ignored;
    return v->type == JSON_STRING ? conn_message_base64(json_str(v), &ignored, e) : 0;
}

/* -- header fields -- */

struct header {
    struct str name, value, variable;
    bool has_variable;
};

static const struct jsondec_field header_fields[] = {
    PARAM(header, name, "name", JSONDEC_STR),
    PARAM(header, value, "value", JSONDEC_STR),
    PARAM_HAS(header, variable, has_variable, "valueEnvVar", JSONDEC_STR, JSONDEC_NULLABLE),
};
static const struct jsondec_struct header_struct = PARAM_STRUCT("HttpHeader", header_fields);

static int params_check_headers(const struct json_node *v, struct err *e) {
    struct header h = {0};
    int r = 0;
    json_for_each(item, v) {
        if (r == 0)
            r = jsondec(&header_struct, item, &h, e);
    }
    return r;
}

static const struct jsondec_field request_fields[] = {
    PARAM(web_params, method, "method", JSONDEC_STR),
    PARAM(web_params, url, "url", JSONDEC_STR),
    PARAM_OPT_CHECKED(web_params, headers, "headers", JSONDEC_SEQ, 0, params_check_headers),
    PARAM_OPT_CHECKED(web_params, body64, "bodyBase64", JSONDEC_STR, JSONDEC_NULLABLE,
                      params_check_body),
    PARAM_HAS(web_params, timeout_ms, has_timeout, "timeoutMs", JSONDEC_U64, JSONDEC_NULLABLE),
    PARAM_OPT_CHECKED(web_params, redirect, "redirectPolicy", JSONDEC_NODE, 0,
                      params_check_redirect),
    PARAM_HAS(web_params, request_id, has_request_id, "requestId", JSONDEC_STR, 0),
    PARAM_OPT(web_params, stream, "streamResponse", JSONDEC_BOOL, 0),
};
static const struct jsondec_struct request_struct =
    PARAM_STRUCT("HttpRequestParams", request_fields);

int web_params_decode(const struct json_node *params, void *out, struct err *e) {
    struct web_params *p = out;
    *p = (struct web_params){.follow = true};
    int r = jsondec(&request_struct, params, out, e);
    if (r == 0)
        r = sandbox_members_check(params, &request_struct, NULL, e);
    if (r < 0)
        return r;
    int policy = p->redirect != NULL ? params_redirect(p->redirect, e) : 0;
    r = MIN(policy, 0);
    p->follow = policy == 0;
    if (r == 0 && p->headers != NULL)
        r = params_check_headers(p->headers, e);
    if (r == 0 && p->stream && !p->has_request_id) /* without a stream it has no use */
        r = err_set(e, ERR_INVALID_PARAMS, "missing field `requestId`");
    if (r < 0)
        jsondec_report_first(&request_struct, params, e);
    if (r < 0 || p->body64.n == 0)
        return r;
    return conn_message_base64(p->body64, &p->body, e); /* last: it works in place */
}

/* -- the request -- */

/* Variables that the server may hold for itself: no client gets at them. */
static const char *const params_secrets[] = {
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CONNECTORS_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
};

/* "http/request header NAME" TEXT "VARIABLE" */
static int params_bad_variable(const struct header *h, const char *text, struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "http/request header %.*s %s %.*s",
                   (int)MIN(h->name.n, (size_t)1024), h->name.p, text,
                   (int)MIN(h->variable.n, (size_t)1024), h->variable.p);
}

/* Appends the value of the header's variable to its value. */
static int params_add_variable(struct web_message *m, char *(*env)(const char *),
                               const struct header *h, struct str *value, struct err *e) {
    char *name = arena_strdup(&m->arena, h->variable);
    if (name == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    for (size_t i = 0; i < ARRAY_LEN(params_secrets); i++) {
        if (str_ieqz(h->variable, params_secrets[i]))
            return params_bad_variable(h, "cannot use executor environment variable", e);
    }
    const char *more = str_has_nul(h->variable) ? NULL : env(name);
    if (more == NULL)
        return params_bad_variable(h, "requires executor environment variable", e);
    if (more[0] == '\0')
        return params_bad_variable(h, "requires a non-empty executor environment variable", e);
    size_t n = strlen(more);
    char *both = arena_alloc(&m->arena, h->value.n + n + 1);
    if (both == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    if (h->value.n > 0)
        memcpy(both, h->value.p, h->value.n);
    memcpy(both + h->value.n, more, n);
    *value = (struct str){both, h->value.n + n};
    return 0;
}

static int params_add_header(struct web_message *m, char *(*env)(const char *),
                             const struct header *h, struct http_field *f, struct err *e) {
    if (!http_fields_is_token(h->name))
        return err_set(e, ERR_INVALID_PARAMS,
                       "http/request header name is invalid: invalid HTTP header name");
    f->value = h->value;
    int r = h->has_variable ? params_add_variable(m, env, h, &f->value, e) : 0;
    if (r < 0)
        return r;
    if (!http_fields_is_value(f->value))
        return err_about(e, ERR_INVALID_PARAMS, "http/request header value is invalid for ",
                         h->name, ": failed to parse header value");
    char *name = arena_strdup(&m->arena, h->name);
    if (name == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    http_fields_lower(name, h->name.n);
    f->name = (struct str){name, h->name.n};
    return 0;
}

/* User info of the URL becomes a field, unless the caller has given one. */
static int params_log_in(struct web_message *m, struct http_field *f, size_t *n, struct err *e) {
    if (!m->url.has_user || http_fields_find(f, *n, "authorization") != NULL)
        return 0;
    size_t room = sizeof "Basic " + base64_encoded_len(m->url.user.len);
    char *value = arena_alloc(&m->arena, room);
    if (value == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    size_t len = (size_t)(stpcpy(value, "Basic ") - value);
    len += base64_encode(value + len, m->url.user.p, m->url.user.len);
    memmove(&f[1], &f[0], *n * sizeof *f);
    f[0] = (struct http_field){STR_LIT("authorization"), {value, len}};
    ++*n;
    return 0;
}

static int params_headers(const struct web_params *p, char *(*env)(const char *),
                          struct web_message *m, struct err *e) {
    size_t count = p->headers != NULL ? p->headers->count : 0, n = 0;
    if (count >= HTTP_FIELDS_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "http/request has more than %d headers",
                       HTTP_FIELDS_MAX - 1);
    struct http_field *f = arena_calloc(&m->arena, count + 1, sizeof *f);
    if (f == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    int r = 0;
    if (count > 0) {
        json_for_each(item, p->headers) {
            struct header h = {0};
            if (r == 0)
                r = jsondec(&header_struct, item, &h, e);
            if (r == 0)
                r = params_add_header(m, env, &h, &f[n++], e);
        }
    }
    if (r == 0)
        r = params_log_in(m, f, &n, e);
    http_fields_group(f, n);
    m->wire.fields = f;
    m->wire.field_count = n;
    return r;
}

static int params_url(const struct web_params *p, struct web_message *m, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    int r = http_url_parse(&m->url, p->url, NULL, &why);
    if (r == -EPROTONOSUPPORT)
        return err_about(e, ERR_INVALID_PARAMS,
                         "http/request only supports http and https URLs, "
                         "got ",
                         err_str(&why), "");
    if (r == -EINVAL)
        return err_about(e, ERR_INVALID_PARAMS, "http/request url is invalid: ", err_str(&why), "");
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
}

int web_params_message(const struct web_params *p, char *(*env)(const char *name),
                       struct web_message *m, struct err *e) {
    *m = (struct web_message){.arena = ARENA_INIT(WEB_PARAMS_ARENA_MAX), .url = HTTP_URL_INIT};
    if (!http_fields_is_token(p->method))
        return err_set(e, ERR_INVALID_PARAMS,
                       "http/request method is invalid: invalid HTTP method");
    int r = params_url(p, m, e);
    if (r == 0)
        r = params_headers(p, env, m, e);
    m->wire.method = p->method;
    m->wire.url = buf_str(&m->url.text);
    m->wire.follow = p->follow;
    m->wire.body = p->body.n;
    return r;
}

void web_params_message_fini(struct web_message *m) {
    arena_fini(&m->arena);
    http_url_fini(&m->url);
}
