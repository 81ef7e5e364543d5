#include "client/engine.h"
#include "client/procask.h"
#include "client/procend.h"
#include "client/procflow.h"
#include "client/prochub.h"
#include "client/procinput.h"
#include "client/procstart.h"
#include "client/proctalk.h"

int xs_process_start(struct xs_client *c, const struct xs_options *o, struct xs_process **out,
                     struct xs_call *k) {
    return procstart_start(c, o, out, k);
}

int xs_process_adopt(struct xs_client *c, const char *id, uint64_t after, struct xs_process **out,
                     struct xs_call *k) {
    return procstart_adopt(c, id, after, out, k);
}

int xs_process_view(struct xs_client *c, const char *session, const char *id, uint64_t after,
                    struct xs_process **out, struct xs_call *k) {
    return procstart_view(c, session, id, after, out, k);
}

int xs_process_list(struct xs_client *c, struct xs_bytes *json, struct xs_call *k) {
    return procask_list(c, json, k);
}

void xs_process_free(struct xs_process *p) {
    if (p == NULL)
        return;
    struct xs_client *c = p->hub->client;
    client_enter(c);
    if (p->view)
        procstart_detach(p);
    else if (p->state == PROCHUB_LIVE && !p->exit.exited)
        prochub_kill(p->hub, p->id);
    prochub_process_free(p, XS_ECANCELED);
    client_leave(c);
}

const char *xs_process_id(const struct xs_process *p) {
    return p->id;
}

void xs_process_on_event(struct xs_process *p,
                         int (*fn)(struct xs_process *p, const struct xs_event *e, void *user),
                         void *user) {
    client_enter(p->hub->client);
    procflow_on_event(p, fn, user);
    client_leave(p->hub->client);
}

void xs_process_unpause(struct xs_process *p) {
    client_enter(p->hub->client);
    procflow_unpause(p);
    client_leave(p->hub->client);
}

int xs_process_next(struct xs_process *p, const struct xs_event **e, struct xs_call *k) {
    return procflow_next(p, e, k);
}

int xs_process_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k) {
    return procinput_call_write(p, data, n, k);
}

int xs_process_close_stdin(struct xs_process *p, struct xs_call *k) {
    return procinput_call_close(p, k);
}

int xs_process_resize(struct xs_process *p, unsigned rows, unsigned cols, struct xs_call *k) {
    return procend_call_resize(p, rows, cols, k);
}

int xs_process_signal(struct xs_process *p, int signo, struct xs_call *k) {
    return procend_call_signal(p, signo, k);
}

int xs_process_terminate(struct xs_process *p, int64_t grace_ms, struct xs_call *k) {
    return procend_call_terminate(p, grace_ms, k);
}

int xs_process_wait(struct xs_process *p, int until_closed, int64_t ms, struct xs_exit *e,
                    struct xs_call *k) {
    return procask_wait(p, until_closed != 0, ms, e, k);
}

int xs_process_read(struct xs_process *p, uint64_t after, uint64_t max, uint64_t wait_ms,
                    struct xs_bytes *json, struct xs_call *k) {
    return procask_read(p, after, max, wait_ms, json, k);
}

int xs_process_snapshot(struct xs_process *p, size_t max, struct xs_snapshot *s,
                        struct xs_call *k) {
    return procask_snapshot(p, max, s, k);
}

int xs_process_communicate(struct xs_process *p, const void *in, size_t n, size_t max,
                           struct xs_snapshot *s, struct xs_call *k) {
    return proctalk_call(p, in, n, max, s, k);
}
