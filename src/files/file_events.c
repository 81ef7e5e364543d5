#include "files/file_events.h"

#include "files/files_host.h"
#include "process/events.h"

struct file_event {
    struct ops *ops;
    const char *method;
    struct ops_who who;       /* its texts are owned */
    char *path, *destination; /* owned; the second may be NULL */
    int64_t bytes;
};

static char *file_events_copy(const char *text) {
    return text != NULL ? strndup(text, OPS_TEXT_MAX + 1) : NULL;
}

static struct file_event *file_events_make(struct ops *o, struct ops_who who, const char *method,
                                           const char *path, int64_t bytes) {
    if (!audit_enabled(&o->audit))
        return NULL;
    struct file_event *f = calloc(1, sizeof *f);
    char *copy = file_events_copy(path);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        audit_lost(&o->audit);
        return NULL;
    }
    f->ops = o;
    f->method = method;
    f->path = copy;
    f->bytes = bytes;
    f->who =
        (struct ops_who){file_events_copy(who.peer), file_events_copy(who.session),
                         file_events_copy(who.client), file_events_copy(who.subject), who.console};
    return f;
}

struct file_event *file_events_new(const struct rpc_call *c, const char *method, const char *path,
                                   const char *destination, int64_t bytes) {
    const struct session *s = c->peer->user;
    struct ops_who who = events_who(c->peer->conn, s);
    struct file_event *f = file_events_make(s->host->ops, who, method, path, bytes);
    if (f != NULL)
        f->destination = file_events_copy(destination);
    return f;
}

struct file_event *file_events_http(struct files_host *h, const struct conn *c, const char *method,
                                    const char *path, int64_t bytes) {
    return file_events_make(h->ops, events_who(c, NULL), method, path, bytes);
}

void file_events_turn(struct file_event *f, const char *method) {
    if (f == NULL)
        return;
    f->method = method;
    f->bytes = 0;
}

void file_events_add(struct file_event *f, uint64_t bytes) {
    if (f != NULL)
        f->bytes += (int64_t)bytes;
}

void file_events_tell(struct file_event *f, const struct err *why) {
    if (f == NULL)
        return;
    struct audit *a = &f->ops->audit;
    audit_begin(a, "file");
    ops_put_who(f->ops, &f->who);
    audit_text(a, "method", str_of(f->method), OPS_TEXT_MAX);
    audit_text(a, "path", str_of(f->path), OPS_TEXT_MAX);
    if (f->destination != NULL)
        audit_text(a, "destination", str_of(f->destination), OPS_TEXT_MAX);
    if (f->bytes != FILE_EVENTS_NO_BYTES)
        audit_number(a, "bytes", f->bytes);
    audit_flag(a, "ok", why == NULL);
    if (why != NULL)
        audit_text(a, "reason", err_str(why), OPS_TEXT_MAX);
    audit_end(a);
}

void file_events_free(struct file_event *f) {
    if (f == NULL)
        return;
    free((char *)f->who.peer);
    free((char *)f->who.session);
    free((char *)f->who.client);
    free((char *)f->who.subject);
    free(f->path);
    free(f->destination);
    free(f);
}
