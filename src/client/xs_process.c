#include "execserver.h"

int xs_process_start(struct xs_client *c, const struct xs_options *o, struct xs_process **out,
                     struct xs_call *k) {
    (void)c;
    (void)o;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_adopt(struct xs_client *c, const char *id, uint64_t after, struct xs_process **out,
                     struct xs_call *k) {
    (void)c;
    (void)id;
    (void)after;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_view(struct xs_client *c, const char *session, const char *id, uint64_t after,
                    struct xs_process **out, struct xs_call *k) {
    (void)c;
    (void)session;
    (void)id;
    (void)after;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_list(struct xs_client *c, struct xs_bytes *json, struct xs_call *k) {
    (void)c;
    (void)json;
    (void)k;
    return XS_ENOTSUP;
}

void xs_process_free(struct xs_process *p) {
    (void)p;
}

const char *xs_process_id(const struct xs_process *p) {
    (void)p;
    return "";
}

void xs_process_on_event(struct xs_process *p,
                         int (*fn)(struct xs_process *p, const struct xs_event *e, void *user),
                         void *user) {
    (void)p;
    (void)fn;
    (void)user;
}

void xs_process_unpause(struct xs_process *p) {
    (void)p;
}

int xs_process_next(struct xs_process *p, const struct xs_event **e, struct xs_call *k) {
    (void)p;
    (void)e;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k) {
    (void)p;
    (void)data;
    (void)n;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_close_stdin(struct xs_process *p, struct xs_call *k) {
    (void)p;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_resize(struct xs_process *p, unsigned rows, unsigned cols, struct xs_call *k) {
    (void)p;
    (void)rows;
    (void)cols;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_signal(struct xs_process *p, int signo, struct xs_call *k) {
    (void)p;
    (void)signo;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_terminate(struct xs_process *p, int64_t grace_ms, struct xs_call *k) {
    (void)p;
    (void)grace_ms;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_wait(struct xs_process *p, int until_closed, int64_t ms, struct xs_exit *e,
                    struct xs_call *k) {
    (void)p;
    (void)until_closed;
    (void)ms;
    (void)e;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_read(struct xs_process *p, uint64_t after, uint64_t max, uint64_t wait_ms,
                    struct xs_bytes *json, struct xs_call *k) {
    (void)p;
    (void)after;
    (void)max;
    (void)wait_ms;
    (void)json;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_snapshot(struct xs_process *p, size_t max, struct xs_snapshot *s,
                        struct xs_call *k) {
    (void)p;
    (void)max;
    (void)s;
    (void)k;
    return XS_ENOTSUP;
}

int xs_process_communicate(struct xs_process *p, const void *in, size_t n, size_t max,
                           struct xs_snapshot *s, struct xs_call *k) {
    (void)p;
    (void)in;
    (void)n;
    (void)max;
    (void)s;
    (void)k;
    return XS_ENOTSUP;
}
