#include "execserver.h"

void xs_exec_result_free(struct xs_exec_result *r) {
    (void)r;
}

int xs_exec_new(struct xs_client *c, const struct xs_exec_events *events, void *user,
                struct xs_exec **out) {
    (void)c;
    (void)events;
    (void)user;
    (void)out;
    return XS_ENOTSUP;
}

void xs_exec_free(struct xs_exec *x) {
    (void)x;
}

int xs_exec_command(struct xs_exec *x, const struct xs_options *o, struct xs_exec_result **out,
                    struct xs_call *k) {
    (void)x;
    (void)o;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_exec_write_stdin(struct xs_exec *x, int session, const void *data, size_t n,
                        const struct xs_options *o, struct xs_exec_result **out,
                        struct xs_call *k) {
    (void)x;
    (void)session;
    (void)data;
    (void)n;
    (void)o;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}
