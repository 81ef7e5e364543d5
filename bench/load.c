// Measurements of rates, amounts and memory.
#include "measure.h"
#include "rpc.h"
#include "sample.h"
#include "util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BLOCK ((size_t)128 * 1024)
#define CHUNK_MAX ((size_t)1024 * 1024)
// Resident memory is looked at once per so much output.
#define RSS_STEP ((uint64_t)4 * 1024 * 1024)

uint8_t pattern_at(uint64_t offset) {
    uint64_t i = offset % BLOCK;

    return (uint8_t)(i * 31u + (i >> 8) * 7u + (i >> 16));
}

void generate(uint64_t bytes) {
    static uint8_t block[BLOCK];
    struct termios t;

    if (tcgetattr(1, &t) == 0) {
        cfmakeraw(&t);
        if (tcsetattr(1, TCSANOW, &t) != 0)
            fail("tcsetattr: %s", strerror(errno));
    }
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = pattern_at(i);
    for (uint64_t done = 0; done < bytes;) {
        size_t at = (size_t)(done % BLOCK);
        size_t len = BLOCK - at;
        ssize_t n = write(1, block + at, bytes - done < len ? (size_t)(bytes - done) : len);
        if (n < 0)
            fail("write: %s", strerror(errno));
        done += (uint64_t)n;
    }
}

// The command line that makes this program generate `bytes`.
struct generator {
    char self[512];
    char amount[32];
    const char *argv[5];
};

static void generator_init(struct generator *g, uint64_t bytes) {
    ssize_t n = readlink("/proc/self/exe", g->self, sizeof g->self - 1);

    if (n < 0)
        fail("/proc/self/exe: %s", strerror(errno));
    g->self[n] = '\0';
    snprintf(g->amount, sizeof g->amount, "%" PRIu64, bytes);
    g->argv[0] = g->self;
    g->argv[1] = "generate";
    g->argv[2] = "--bytes";
    g->argv[3] = g->amount;
    g->argv[4] = NULL;
}

static uint64_t start_generator(struct rpc *r, struct generator *g,
                                const struct measure_options *o) {
    struct launch l = {.proc = 1, .tty = o->tty != 0};
    uint64_t id;

    generator_init(g, o->bytes);
    l.argv = g->argv;
    id = rpc_start(r, &l);
    rpc_flush(r);
    return id;
}

static void check_complete(const struct tally *t, uint64_t bytes) {
    if (t->exit_code != 0)
        fail("the generator ended with %lld", (long long)t->exit_code);
    if (t->bytes != bytes)
        fail("%" PRIu64 " bytes of output instead of %" PRIu64, t->bytes, bytes);
}

// As rpc_drain, comparing every byte. A server may deliver `exited` early, but one stream in
// order.
static void drain_verified(struct rpc *r, uint64_t start_id, struct tally *t) {
    uint8_t *plain = malloc(CHUNK_MAX);
    struct msg m;

    if (plain == NULL)
        fail("out of memory");
    while (!t->closed || !t->started) {
        rpc_next(r, &m);
        if (m.kind == MSG_OUTPUT) {
            size_t len = base64_bytes(m.chunk, m.chunk_len);
            if (len > CHUNK_MAX)
                fail("a chunk of %zu bytes", len);
            base64_decode(m.chunk, m.chunk_len, plain);
            for (size_t i = 0; i < len; i++)
                if (plain[i] != pattern_at(t->bytes + i))
                    fail("wrong byte at offset %" PRIu64, t->bytes + i);
        }
        if (m.kind == MSG_RESPONSE)
            t->started |= m.id == start_id;
        else if (m.kind != MSG_OTHER)
            tally_add(t, &m);
    }
    free(plain);
}

void measure_bulk(const struct measure_options *o) {
    struct generator g;
    struct tally t = {0};
    struct rpc r;
    uint64_t id, begin, took, cpu, own;

    rpc_open(&r, o->port);
    cpu = process_cpu_ns(o->pid);
    own = process_cpu_ns(getpid());
    begin = now_ns();
    id = start_generator(&r, &g, o);
    if (o->verify)
        drain_verified(&r, id, &t);
    else
        rpc_drain(&r, 1, id, &t);
    took = now_ns() - begin;
    cpu = process_cpu_ns(o->pid) - cpu;
    own = process_cpu_ns(getpid()) - own;
    check_complete(&t, o->bytes);
    result_begin(o->tty ? "bulk-pty" : "bulk-pipe");
    result_number("bytes", t.bytes);
    result_number("wall_ns", took);
    result_number("cpu_ns", cpu);
    result_number("client_cpu_ns", own);
    result_number("chunks", t.chunks);
    result_number("wire_bytes", r.ws.bytes_in);
    result_end();
    rpc_close(&r);
}

void measure_pipeline(const struct measure_options *o) {
    pipeline("pipeline", "environment/status", "{}", o);
}

// One of the processes in flight in measure_spawns; `proc` is its current number.
struct slot {
    uint64_t proc;
    uint64_t start_id;
    struct tally tally;
};

static void slot_start(struct slot *s, struct rpc *r, uint64_t proc) {
    static const char *const argv[] = {"/bin/true", NULL};
    struct launch l = {.proc = proc, .argv = argv};

    memset(s, 0, sizeof *s);
    s->proc = proc;
    s->start_id = rpc_start(r, &l);
}

// Returns the slot that the message finished, or NULL.
static struct slot *slot_feed(struct slot *slots, size_t count, const struct msg *m) {
    for (size_t i = 0; i < count; i++) {
        struct slot *s = &slots[i];
        bool answer = m->kind == MSG_RESPONSE;
        if (answer ? s->start_id != m->id : s->proc != m->proc)
            continue;
        if (answer)
            s->tally.started = true;
        else
            tally_add(&s->tally, m);
        if (!s->tally.closed || !s->tally.started)
            return NULL;
        if (s->tally.exit_code != 0)
            fail("/bin/true ended with %lld", (long long)s->tally.exit_code);
        return s;
    }
    fail("a message about nothing that runs");
}

void measure_spawns(const struct measure_options *o) {
    struct slot *slots = calloc(o->window, sizeof *slots);
    uint64_t proc = 1, done = 0, begin, end, cpu, children;
    size_t live = o->window;
    struct rpc r;
    struct msg m;

    if (slots == NULL)
        fail("out of memory");
    rpc_open(&r, o->port);
    cpu = process_cpu_ns(o->pid);
    children = process_children_cpu_ns(o->pid);
    begin = now_ns();
    end = begin + o->millis * 1000000u;
    for (size_t i = 0; i < o->window; i++)
        slot_start(&slots[i], &r, proc++);
    while (live > 0) {
        struct slot *s;
        if (!ws_has_message(&r.ws))
            rpc_flush(&r);
        rpc_next(&r, &m);
        s = slot_feed(slots, o->window, &m);
        if (s == NULL)
            continue;
        done++;
        if (now_ns() < end)
            slot_start(s, &r, proc++);
        else
            live--;
    }
    end = now_ns();
    cpu = process_cpu_ns(o->pid) - cpu;
    children = process_children_cpu_ns(o->pid) - children;
    rpc_close(&r);
    free(slots);
    result_begin("spawns");
    result_number("spawns", done);
    result_number("wall_ns", end - begin);
    result_number("cpu_ns", cpu);
    result_number("total_cpu_ns", cpu + children);
    result_end();
}

static void pause_ms(uint64_t ms) {
    struct timespec ts = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&ts, NULL);
}

void measure_connections(const struct measure_options *o) {
    struct rpc *r = calloc(o->count, sizeof *r);
    uint64_t before, after, begin, took;

    if (r == NULL)
        fail("out of memory");
    before = process_rss(o->pid);
    begin = now_ns();
    for (size_t i = 0; i < o->count; i++)
        rpc_open(&r[i], o->port);
    took = now_ns() - begin;
    pause_ms(200);
    after = process_rss(o->pid);
    // Every one must still be alive, or the memory was counted for nothing.
    for (size_t i = 0; i < o->count; i++) {
        struct msg m;
        rpc_request(&r[i], "environment/status", "{}");
        rpc_flush(&r[i]);
        rpc_next(&r[i], &m);
    }
    for (size_t i = 0; i < o->count; i++)
        rpc_close(&r[i]);
    free(r);
    result_begin("connections");
    result_number("count", o->count);
    result_number("rss_before", before);
    result_number("rss_after", after);
    result_number("wall_ns", took);
    result_end();
}

void measure_slow_reader(const struct measure_options *o) {
    struct generator g;
    struct tally t = {0};
    struct rpc r;
    struct msg m;
    uint64_t id, before, peak, stalled, next = 0;

    rpc_open(&r, o->port);
    before = peak = process_rss(o->pid);
    id = start_generator(&r, &g, o);
    for (uint64_t ms = 0; ms < o->millis; ms += 10) {
        uint64_t rss;
        pause_ms(10);
        rss = process_rss(o->pid);
        peak = rss > peak ? rss : peak;
    }
    stalled = peak;
    while (!t.closed || !t.started) {
        rpc_next(&r, &m);
        if (m.kind == MSG_RESPONSE)
            t.started |= m.id == id;
        else if (m.kind != MSG_OTHER)
            tally_add(&t, &m);
        if (t.bytes >= next) {
            uint64_t rss = process_rss(o->pid);
            peak = rss > peak ? rss : peak;
            next = t.bytes + RSS_STEP;
        }
    }
    check_complete(&t, o->bytes);
    rpc_close(&r);
    result_begin("slow-reader");
    result_number("rss_before", before);
    result_number("rss_stalled", stalled);
    result_number("rss_peak", peak);
    result_end();
}
