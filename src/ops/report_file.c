#include "ops/report_file.h"

#include "ops/report.h"
#include "process/session.h"

struct report_file {
    struct server *server;
    const char *method;
    struct report_asker asker;
    char *path, *destination; /* owned; the second may be NULL */
    int64_t bytes;
};

static struct report_file *report_file_make(struct server *s, const struct conn *c,
                                            const struct session *session, const char *method,
                                            const char *path) {
    struct report_file *f = calloc(1, sizeof *f);
    char *copy = strndup(path, REPORT_TEXT_MAX + 1);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        audit_lost(&s->audit);
        return NULL;
    }
    f->server = s;
    f->method = method;
    f->path = copy;
    report_asker_init(&f->asker, c, session);
    return f;
}

struct report_file *report_file_new(const struct rpc_call *c, const char *method, const char *path,
                                    const char *destination, int64_t bytes) {
    struct server *s = server_of_peer(c->peer);
    if (!audit_enabled(&s->audit))
        return NULL;
    struct report_file *f = report_file_make(s, c->peer->conn, c->peer->user, method, path);
    if (f == NULL)
        return NULL;
    f->destination = destination != NULL ? strndup(destination, REPORT_TEXT_MAX + 1) : NULL;
    f->bytes = bytes;
    return f;
}

struct report_file *report_file_http(const struct conn *c, const char *method, const char *path,
                                     int64_t bytes) {
    struct server *s = c->host->owner;
    if (!audit_enabled(&s->audit))
        return NULL;
    struct report_file *f = report_file_make(s, c, NULL, method, path);
    if (f != NULL)
        f->bytes = bytes;
    return f;
}

void report_file_turn(struct report_file *f, const char *method) {
    if (f == NULL)
        return;
    f->method = method;
    f->bytes = 0;
}

void report_file_add(struct report_file *f, uint64_t bytes) {
    if (f != NULL)
        f->bytes += (int64_t)bytes;
}

void report_file_tell(struct report_file *f, const struct err *why) {
    if (f == NULL)
        return;
    struct audit *a = &f->server->audit;
    audit_begin(a, "file");
    report_asker_put(a, &f->asker);
    audit_text(a, "method", str_of(f->method), REPORT_TEXT_MAX);
    audit_text(a, "path", str_of(f->path), REPORT_TEXT_MAX);
    if (f->destination != NULL)
        audit_text(a, "destination", str_of(f->destination), REPORT_TEXT_MAX);
    if (f->bytes != REPORT_NO_BYTES)
        audit_number(a, "bytes", f->bytes);
    audit_flag(a, "ok", why == NULL);
    if (why != NULL)
        audit_text(a, "reason", err_str(why), REPORT_TEXT_MAX);
    audit_end(a);
}

void report_file_free(struct report_file *f) {
    if (f == NULL)
        return;
    report_asker_fini(&f->asker);
    free(f->path);
    free(f->destination);
    free(f);
}
