#include "escalate/escalate_wire.h"

#include "base/utf8.h"
#include "json/jsondec.h"
#include "json/jsonw.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

/* -- frames -- */

void escalate_wire_init(struct escalate_frame *f) {
    *f = (struct escalate_frame){.body = BUF_INIT(ESCALATE_FRAME_MAX)};
}

static void wire_close(struct escalate_frame *f) {
    for (size_t i = 0; i < f->fd_count; i++)
        util_close_fd(&f->fds[i]);
    f->fd_count = 0;
}

void escalate_wire_fini(struct escalate_frame *f) {
    wire_close(f);
    buf_fini(&f->body);
}

void escalate_wire_next(struct escalate_frame *f) {
    wire_close(f);
    f->head_len = 0;
    f->body.len = 0;
}

static void wire_take_fds(struct escalate_frame *f, struct msghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (f->fd_count < ESCALATE_FDS)
                f->fds[f->fd_count++] = fd;
            else
                close(fd);
        }
    }
}

static size_t wire_length(const struct escalate_frame *f) {
    return (size_t)f->head[0] | (size_t)f->head[1] << 8 | (size_t)f->head[2] << 16 |
           (size_t)f->head[3] << 24;
}

/* Receives into p; descriptors only with the head. Bytes, 0: nothing now, or -errno. */
static ssize_t wire_receive(int sock, void *p, size_t n, struct escalate_frame *f) {
    char control[CMSG_SPACE(ESCALATE_FDS * sizeof(int))];
    struct iovec v = {p, n};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got;
    do
        got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN ? 0 : -errno;
    wire_take_fds(f, &m);
    return got == 0 ? -ECONNRESET : got;
}

int escalate_wire_read(int sock, struct escalate_frame *f) {
    while (f->head_len < sizeof f->head) {
        ssize_t n = wire_receive(sock, f->head + f->head_len, sizeof f->head - f->head_len, f);
        if (n <= 0)
            return (int)n;
        f->head_len += (size_t)n;
    }
    size_t want = wire_length(f);
    if (want > ESCALATE_FRAME_MAX)
        return -EMSGSIZE;
    while (f->body.len < want) {
        int r = buf_reserve(&f->body, MIN(want - f->body.len, (size_t)65536));
        if (r < 0)
            return r;
        ssize_t n = wire_receive(sock, f->body.p + f->body.len,
                                 MIN(want - f->body.len, f->body.cap - f->body.len), f);
        if (n <= 0)
            return (int)n;
        f->body.len += (size_t)n;
    }
    return 1;
}

static int wire_send_all(int sock, struct str s) {
    while (s.n > 0) {
        ssize_t n = send(sock, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        str_take(&s, (size_t)n);
    }
    return 0;
}

int escalate_wire_send(int sock, struct str body, const int *fds, size_t n) {
    char control[CMSG_SPACE(ESCALATE_FDS * sizeof(int))] = {0};
    unsigned char head[4] = {(unsigned char)body.n, (unsigned char)(body.n >> 8),
                             (unsigned char)(body.n >> 16), (unsigned char)(body.n >> 24)};
    struct iovec v = {head, sizeof head};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (body.n > ESCALATE_FRAME_MAX || n > ESCALATE_FDS)
        return -EMSGSIZE;
    if (n > 0) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    int r = wire_send_all(sock, (struct str){(char *)head + sent, sizeof head - (size_t)sent});
    return r < 0 ? r : wire_send_all(sock, body);
}

/* -- requests -- */

/* A string; bytes that are not UTF-8 are replaced. */
static int wire_put_text(struct buf *b, const char *text) {
    struct str s = str_of(text);
    if (utf8_valid(s.p, s.n))
        return jsonw_str(b, s);
    _cleanup_free_ char *copy = str_dup(s);
    if (copy == NULL)
        return -ENOMEM;
    utf8_mend(copy, s.n);
    return jsonw_str(b, str_of(copy));
}

static bool wire_is_control(const char *variable) {
    static const char *const names[] = {ESCALATE_SOCKET "=", ESCALATE_WRAPPER_OLD "=",
                                        ESCALATE_WRAPPER "="};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Whether an earlier variable has the same name: a JSON object cannot hold both. */
static bool wire_is_repeated(char *const *envp, size_t i, size_t name) {
    for (size_t k = 0; k < i; k++) {
        if (strncmp(envp[k], envp[i], name + 1) == 0)
            return true;
    }
    return false;
}

static int wire_put_env(struct buf *b, char *const *envp) {
    bool first = true;
    int r = 0;
    for (size_t i = 0; r == 0 && envp[i] != NULL; i++) {
        const char *equals = strchr(envp[i], '=');
        size_t name = equals == NULL ? 0 : (size_t)(equals - envp[i]);
        if (name == 0 || name > 255 || wire_is_control(envp[i]) || wire_is_repeated(envp, i, name))
            continue;
        char key[256];
        memcpy(key, envp[i], name);
        key[name] = '\0';
        r = first ? 0 : buf_putc(b, ',');
        first = false;
        if (r == 0)
            r = wire_put_text(b, key);
        if (r == 0)
            r = buf_putc(b, ':');
        if (r == 0)
            r = wire_put_text(b, equals + 1);
    }
    return r;
}

int escalate_wire_put_request(struct buf *b, const struct escalate_request *q) {
    int r = buf_putz(b, "{\"file\":");
    if (r == 0)
        r = wire_put_text(b, q->file);
    if (r == 0)
        r = buf_putz(b, ",\"argv\":[");
    for (size_t i = 0; r == 0 && i < q->argc; i++) {
        r = i == 0 ? 0 : buf_putc(b, ',');
        if (r == 0)
            r = wire_put_text(b, q->argv[i]);
    }
    if (r == 0)
        r = buf_putz(b, "],\"workdir\":");
    if (r == 0)
        r = wire_put_text(b, q->workdir);
    if (r == 0)
        r = buf_putz(b, ",\"env\":{");
    if (r == 0)
        r = wire_put_env(b, q->envp);
    return r < 0 ? r
                 : buf_putf(b, "}%s%s}", q->lossy ? ",\"lossy\":true" : "",
                            q->quiet ? ",\"quiet\":true" : "");
}

struct wire_request {
    struct str file, workdir;
    const struct json_node *argv, *env;
    bool lossy, quiet;
};

#define WIRE_FIELD(member, kind_, flags_)                                                          \
    {                                                                                              \
        .name = #member, .kind = (kind_), .flags = (flags_),                                       \
        .offset = offsetof(struct wire_request, member), .present = JSONDEC_NO_PRESENT             \
    }
static const struct jsondec_field wire_fields[] = {
    WIRE_FIELD(file, JSONDEC_STR, JSONDEC_REQUIRED),
    WIRE_FIELD(argv, JSONDEC_STRS, JSONDEC_REQUIRED),
    WIRE_FIELD(workdir, JSONDEC_STR, JSONDEC_REQUIRED),
    WIRE_FIELD(env, JSONDEC_STRMAP, JSONDEC_REQUIRED),
    WIRE_FIELD(lossy, JSONDEC_BOOL, 0),
    WIRE_FIELD(quiet, JSONDEC_BOOL, 0),
};
static const struct jsondec_struct wire_struct = {"EscalateRequest", wire_fields,
                                                  ARRAY_LEN(wire_fields)};

static int wire_bad(struct err *e, const char *text) {
    return err_set(e, ERR_INVALID_PARAMS, "%s", text);
}

static int wire_copy_argv(const struct json_node *v, struct arena *a, struct escalate_request *q) {
    q->argv = arena_calloc(a, (size_t)v->count + 1, sizeof *q->argv);
    if (q->argv == NULL)
        return -ENOMEM;
    json_for_each(item, v) {
        if (str_has_nul(json_str(item)))
            return -EINVAL;
        q->argv[q->argc] = arena_strdup(a, json_str(item));
        if (q->argv[q->argc++] == NULL)
            return -ENOMEM;
    }
    return 0;
}

static int wire_copy_env(const struct json_node *v, struct arena *a, struct escalate_request *q) {
    size_t n = 0;
    q->envp = arena_calloc(a, (size_t)v->count + 1, sizeof *q->envp);
    if (q->envp == NULL)
        return -ENOMEM;
    json_for_each_member(k, v) {
        struct str key = json_str(k), value = json_str(k + 1);
        if (key.n == 0 || str_has_nul(key) || str_has_nul(value) || memchr(key.p, '=', key.n))
            return -EINVAL;
        char *text = arena_alloc(a, key.n + value.n + 2);
        if (text == NULL)
            return -ENOMEM;
        memcpy(text, key.p, key.n);
        text[key.n] = '=';
        memcpy(text + key.n + 1, value.n > 0 ? value.p : "", value.n);
        q->envp[n++] = text;
    }
    return 0;
}

/* Parses a body, which must be an object. */
static int wire_parse(struct json_doc *doc, struct str body, struct err *e) {
    if (!utf8_valid(body.p, body.n))
        return wire_bad(e, "the frame is not UTF-8");
    int r = json_parse(doc, body.p, body.n, e);
    if (r == 0 && json_root(doc)->type != JSON_OBJECT)
        r = wire_bad(e, "the frame is no object");
    return r;
}

int escalate_wire_get_request(struct json_doc *doc, struct str body, struct arena *a,
                              struct escalate_request *q, struct err *e) {
    struct wire_request w = {0};
    *q = (struct escalate_request){0};
    int r = wire_parse(doc, body, e);
    if (r == 0)
        r = jsondec(&wire_struct, json_root(doc), &w, e);
    if (r < 0)
        return r;
    if (w.file.n == 0 || str_has_nul(w.file) || w.workdir.n == 0 || str_has_nul(w.workdir))
        return wire_bad(e, "file and workdir must be paths");
    q->lossy = w.lossy;
    q->quiet = w.quiet;
    q->file = arena_strdup(a, w.file);
    q->workdir = arena_strdup(a, w.workdir);
    r = q->file == NULL || q->workdir == NULL ? -ENOMEM : wire_copy_argv(w.argv, a, q);
    if (r == 0)
        r = wire_copy_env(w.env, a, q);
    return r == -EINVAL ? wire_bad(e, "argv and env hold what no program can get") : r;
}

/* -- responses -- */

int escalate_wire_put_response(struct buf *b, enum escalate_action action, struct str reason) {
    if (action != ESCALATE_DENY)
        return buf_putf(b, "{\"action\":\"%s\"}", action == ESCALATE_RUN ? "Run" : "Escalate");
    int r = buf_putz(b, "{\"action\":{\"Deny\":{\"reason\":");
    if (r == 0)
        r = reason.p == NULL ? buf_putz(b, "null") : jsonw_str(b, reason);
    return r < 0 ? r : buf_putz(b, "}}}");
}

int escalate_wire_get_response(struct json_doc *doc, struct str body, enum escalate_action *action,
                               struct str *reason, struct err *e) {
    static const char *const names[] = {"Run", "Escalate", "Deny"};
    *reason = (struct str){0};
    int r = wire_parse(doc, body, e);
    if (r < 0)
        return r;
    const struct json_node *v = json_get(json_root(doc), "action");
    if (v == NULL)
        return wire_bad(e, "missing field `action`");
    if (v->type == JSON_OBJECT && v->count == 1 && str_eqz(json_str(v + 1), "Deny") &&
        v[2].type == JSON_OBJECT) {
        const struct json_node *text = json_get(v + 2, "reason");
        *action = ESCALATE_DENY;
        if (text != NULL && text->type == JSON_STRING)
            *reason = json_str(text);
        return 0;
    }
    if (v->type == JSON_STRING && str_eqz(json_str(v), "Deny"))
        return wire_bad(e, "invalid type: unit variant, expected struct variant");
    int i = jsondec_variant(v, names, ARRAY_LEN(names), e);
    if (i < 0)
        return i;
    *action = i == 0 ? ESCALATE_RUN : ESCALATE_OUTSIDE;
    return 0;
}

int escalate_wire_get_fds(struct json_doc *doc, struct str body, int numbers[ESCALATE_FDS],
                          struct err *e) {
    int r = wire_parse(doc, body, e), n = 0;
    if (r < 0)
        return r;
    const struct json_node *v = json_get(json_root(doc), "fds");
    if (v == NULL || v->type != JSON_ARRAY || v->count > ESCALATE_FDS)
        return wire_bad(e, "fds must be an array of at most 16 numbers");
    json_for_each(item, v) {
        uint64_t number;
        if (item->type != JSON_NUMBER || json_u64(item, &number) < 0 || number >= 64)
            return wire_bad(e, "a descriptor must be a number below 64");
        for (int i = 0; i < n; i++) {
            if (numbers[i] == (int)number)
                return wire_bad(e, "fds names a descriptor twice");
        }
        numbers[n++] = (int)number;
    }
    return n;
}

int escalate_wire_get_signal(struct json_doc *doc, struct str body, bool *group) {
    _cleanup_err_ struct err e = ERR_INIT;
    uint64_t n;
    if (wire_parse(doc, body, &e) < 0)
        return 0;
    const struct json_node *v = json_get(json_root(doc), "signal");
    const struct json_node *g = json_get(json_root(doc), "group");
    *group = g != NULL && g->type == JSON_TRUE;
    return v != NULL && v->type == JSON_NUMBER && json_u64(v, &n) == 0 && n <= 64 ? (int)n : 0;
}

int escalate_wire_put_result(struct buf *b, const struct escalate_result *r) {
    int x = buf_putf(b, "{\"exit_code\":%d", r->exit_code);
    if (x == 0 && r->signal != 0)
        x = buf_putf(b, ",\"signal\":%d", r->signal);
    if (x == 0 && r->error.p != NULL) {
        x = buf_putz(b, ",\"error\":");
        if (x == 0)
            x = jsonw_str(b, r->error);
    }
    return x < 0 ? x : buf_putc(b, '}');
}

int escalate_wire_get_result(struct json_doc *doc, struct str body, struct escalate_result *out,
                             struct err *e) {
    int64_t code;
    *out = (struct escalate_result){0};
    int r = wire_parse(doc, body, e);
    if (r < 0)
        return r;
    const struct json_node *v = json_get(json_root(doc), "exit_code");
    const struct json_node *error = json_get(json_root(doc), "error");
    if (v == NULL || v->type != JSON_NUMBER || json_i64(v, &code) < 0)
        return wire_bad(e, "missing field `exit_code`");
    out->exit_code = (int)(code & 0xff);
    v = json_get(json_root(doc), "signal");
    if (v != NULL && v->type == JSON_NUMBER && json_i64(v, &code) == 0 && code > 0 && code <= 64)
        out->signal = (int)code;
    if (error != NULL && error->type == JSON_STRING)
        out->error = json_str(error);
    return 0;
}
