#include "flood.h"

#include "rpc.h"
#include "util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_MS 1000 // what a server does about floods takes it a while

static bool is_over(int control) {
    struct pollfd p = {.fd = control, .events = POLLIN};

    return poll(&p, 1, 0) != 0;
}

static void report(int fd, uint64_t value) {
    if (write(fd, &value, sizeof value) != sizeof value)
        fail("report: %s", strerror(errno));
}

static uint64_t collect(int fd, size_t count) {
    uint64_t sum = 0, value;

    for (size_t i = 0; i < count; i++) {
        if (read(fd, &value, sizeof value) != sizeof value)
            fail("a reader of floods has ended");
        sum += value;
    }
    return sum;
}

// The process of a reader.
static void read_floods(const struct measure_options *o, int control, int out) {
    static const char *const argv[] = {"/bin/sh", "-c", "exec yes", NULL};
    struct tally t[FLOODS_PER_READER] = {{0}};
    size_t heard = 0, closed = 0;
    uint64_t bytes = 0;
    bool over = false;
    struct rpc r;
    struct msg m;

    rpc_open(&r, o->port);
    for (uint64_t i = 0; i < FLOODS_PER_READER; i++) {
        struct launch l = {.proc = i + 1, .argv = argv, .tty = i == 0};
        rpc_start(&r, &l);
    }
    rpc_flush(&r);
    while (closed < FLOODS_PER_READER) {
        rpc_next(&r, &m);
        if (m.kind == MSG_RESPONSE || m.kind == MSG_OTHER)
            continue;
        if (over) { // the reference forgets `exited` of what is terminated
            closed += m.kind == MSG_CLOSED;
            continue;
        }
        struct tally *of = &t[m.proc - 1];
        uint64_t before = of->bytes;
        tally_add(of, &m);
        heard += before == 0 && of->bytes > 0;
        if (before == 0 && of->bytes > 0 && heard == FLOODS_PER_READER)
            report(out, 0);
        bytes += of->bytes - before;
        if (is_over(control)) {
            over = true;
            report(out, bytes);
            for (uint64_t i = 0; i < FLOODS_PER_READER; i++)
                rpc_terminate(&r, i + 1);
            rpc_flush(&r);
        }
    }
    rpc_close(&r);
}

void floods_begin(struct floods *f, const struct measure_options *o) {
    int control[2], out[2];

    if (pipe(control) != 0 || pipe(out) != 0)
        fail("pipe: %s", strerror(errno));
    fflush(stdout);
    for (size_t i = 0; i < o->floods; i++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork: %s", strerror(errno));
        if (pid == 0) {
            close(control[1]);
            close(out[0]);
            read_floods(o, control[0], out[1]);
            _exit(0);
        }
    }
    close(control[0]);
    close(out[1]);
    *f = (struct floods){.control = control[1], .report = out[0], .readers = o->floods};
    collect(f->report, f->readers);
    usleep(SETTLE_MS * 1000);
}

uint64_t floods_end(struct floods *f) {
    uint64_t bytes;
    int status;

    close(f->control);
    bytes = collect(f->report, f->readers);
    close(f->report);
    for (size_t i = 0; i < f->readers; i++)
        if (wait(&status) < 0 || status != 0)
            fail("a reader of floods failed");
    return bytes;
}
