// Measurements with many connections or processes at once.
#include "measure.h"
#include "rpc.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// Requests that are timed while the crowd is there, at most.
#define ASKED 100
// Starts in flight.
#define STARTS 32

static void settle(void) {
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
}

// Memory without the crowd and with it, and the time to make it.
struct toll {
    uint64_t before, after, took;
};

static void report(const char *measure, const struct toll *t, struct samples *s) {
    result_begin(measure);
    result_number("rss_before", t->before);
    result_number("rss_after", t->after);
    result_number("wall_ns", t->took);
    result_samples(s);
    result_end();
    samples_free(s);
}

static uint64_t ask_status(struct rpc *r) {
    uint64_t begin = now_ns(), id = rpc_request(r, "environment/status", "{}");
    struct msg m;

    rpc_flush(r);
    rpc_next(r, &m);
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("environment/status got another answer");
    return now_ns() - begin;
}

void measure_crowd_connections(const struct measure_options *o) {
    struct rpc *r = calloc(o->count, sizeof *r);
    struct samples s;
    struct toll t = {.before = process_rss(o->pid)};
    uint64_t begin = now_ns();

    if (r == NULL)
        fail("out of memory");
    for (size_t i = 0; i < o->count; i++)
        rpc_open(&r[i], o->port);
    t.took = now_ns() - begin;
    settle();
    t.after = process_rss(o->pid);
    samples_init(&s, ASKED);
    for (size_t i = 0; i < ASKED; i++)
        samples_add(&s, ask_status(&r[i * 7919 % o->count]));
    for (size_t i = 0; i < o->count; i++)
        rpc_close(&r[i]);
    free(r);
    report("crowd-connections", &t, &s);
}

// Starts processes 1 to `count`, several at once.
static void start_crowd(struct rpc *r, size_t count) {
    static const char *const argv[] = {"/bin/cat", NULL};
    struct msg m;

    for (size_t started = 0, answered = 0; answered < count;) {
        while (started < count && started - answered < STARTS) {
            struct launch l = {.proc = ++started, .argv = argv, .pipe_stdin = true};
            rpc_start(r, &l);
        }
        rpc_flush(r);
        rpc_next(r, &m);
        if (m.kind != MSG_RESPONSE)
            fail("a process that should wait does something");
        answered++;
    }
}

static uint64_t echo_of(struct rpc *r, uint64_t proc) {
    uint64_t begin = now_ns(), took = 0, id = rpc_write_byte(r, proc, 'x');
    bool answered = false;
    struct msg m;

    rpc_flush(r);
    while (!answered || took == 0) {
        rpc_next(r, &m);
        if (m.kind == MSG_RESPONSE && m.id == id)
            answered = true;
        else if (m.kind == MSG_OUTPUT && m.proc == proc)
            took = now_ns() - begin;
        else
            fail("an unexpected message during the echo");
    }
    return took;
}

static void end_crowd(struct rpc *r, size_t count) {
    struct msg m;

    for (size_t i = 1; i <= count; i++)
        rpc_terminate(r, i);
    rpc_flush(r);
    for (size_t closed = 0; closed < count;) {
        rpc_next(r, &m);
        closed += m.kind == MSG_CLOSED;
    }
}

void measure_crowd_processes(const struct measure_options *o) {
    struct samples s;
    struct toll t;
    struct rpc r;
    uint64_t begin;

    rpc_open(&r, o->port);
    t.before = process_rss(o->pid);
    begin = now_ns();
    start_crowd(&r, o->count);
    t.took = now_ns() - begin;
    settle();
    t.after = process_rss(o->pid);
    samples_init(&s, ASKED);
    for (size_t i = 0; i < ASKED; i++)
        samples_add(&s, echo_of(&r, 1 + i * 7919 % o->count));
    end_crowd(&r, o->count);
    rpc_close(&r);
    report("crowd-processes", &t, &s);
}
