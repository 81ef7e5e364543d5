/*
 * A client of a server that says anything, over a pair of sockets. One line of the input each:
 *   0 to 9, a to f   begins an operation
 *   A{...}           answers the oldest request with this result; B the second oldest, up to H
 *   E{...}           answers the oldest request with this error
 *   .                takes what the consumer would take
 *   anything else    is a line of the server
 * The client ends its operations once each and gives back all memory.
 */
#include "execserver.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define OPS 64
#define IDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char hello[] =
    "{\"id\":1,\"result\":{\"sessionId\":\"0a1b2c3d-0000-4000-8000-00000000abcd\","
    "\"environmentInfo\":{\"shell\":{\"name\":\"sh\",\"path\":\"/bin/sh\"},\"cwd\":\"file:///w\","
    "\"capabilities\":{\"fsLinks\":true,\"fsReadMaxBytes\":true,\"fsTimes\":true,"
    "\"fileWriteStreaming\":true,\"fsWatch\":true,\"fsWatchMissing\":true,\"processAck\":true,"
    "\"processAttach\":true,\"processCloseStdin\":true,\"processList\":true,\"processResize\":true,"
    "\"processSignals\":[\"terminate\"],\"processSnapshot\":true,\"processTerminateModes\":true,"
    "\"processWait\":true}}}}\n";

/* One operation: its call, and places for what it may give. */
struct op {
    struct xs_call call;
    int times;
    struct xs_bytes bytes;
    struct xs_process *process;
    const struct xs_event *event;
    struct xs_snapshot snapshot;
    struct xs_exit exit;
    struct xs_entries *entries;
    struct xs_stat stat;
    struct xs_file *file;
    struct xs_watch *watch;
    struct xs_exec_result *result;
};

struct world {
    int peer;
    struct xs_client *client;
    struct xs_fs *fs;
    struct xs_exec *exec;
    struct xs_options *start;
    struct op ops[OPS];
    size_t n;
    uint64_t ids[IDS]; /* of requests that are not answered, the oldest first */
    size_t n_ids;
};

static void on_done(struct xs_call *k, int result) {
    struct op *o = (struct op *)(void *)k;
    (void)result;
    REQUIRE(o->times++ == 0);
}

static void on_change(struct xs_watch *w, const struct xs_change *c, void *user) {
    (void)w;
    (void)user;
    for (size_t i = 0; i < c->n; i++)
        REQUIRE(c->paths[i][0] == '/');
}

/* Notes the ids in the lines of the client. */
static void listen_to(struct world *w) {
    static char text[1 << 20];
    ssize_t n = recv(w->peer, text, sizeof text - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text; (at = strstr(at, "{\"id\":")) != NULL;) {
        at += 6;
        if (w->n_ids < IDS)
            w->ids[w->n_ids++] = strtoull(at, NULL, 10);
    }
}

static void turn(struct world *w) {
    for (int i = 0; i < 3; i++)
        (void)xs_client_process(w->client);
    listen_to(w);
}

static void say(struct world *w, const char *p, size_t n) {
    (void)!send(w->peer, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A process that some start has given, or NULL. */
static struct xs_process *process(struct world *w) {
    for (size_t i = 0; i < w->n; i++) {
        if (w->ops[i].process != NULL)
            return w->ops[i].process;
    }
    return NULL;
}

static void begin_process(struct world *w, char what, struct op *o) {
    struct xs_process *p = process(w);
    struct xs_call *k = &o->call;
    if (what == '0')
        (void)xs_process_start(w->client, w->start, &o->process, k);
    else if (what == '1')
        (void)xs_process_adopt(w->client, "a", 0, &o->process, k);
    else if (what == '2')
        (void)xs_process_view(w->client, "s", "v", 0, &o->process, k);
    else if (p == NULL)
        return;
    else if (what == '3')
        (void)xs_process_write(p, "abc", 3, k);
    else if (what == '4')
        (void)xs_process_wait(p, 1, -1, &o->exit, k);
    else if (what == '5')
        (void)xs_process_snapshot(p, 1000, &o->snapshot, k);
    else if (what == '6')
        (void)xs_process_communicate(p, "in", 2, 1000, &o->snapshot, k);
    else if (what == '7')
        (void)xs_process_list(w->client, &o->bytes, k);
    else
        (void)xs_process_next(p, &o->event, k);
}

static void begin_other(struct world *w, char what, struct op *o) {
    static const char *const missing[] = {"/m", NULL};
    const struct xs_walk limits = {.size = sizeof limits, .links = 1};
    struct xs_call *k = &o->call;
    if (what == '9')
        (void)xs_fs_stat(w->fs, "/s", 0, &o->stat, k);
    else if (what == 'a')
        (void)xs_fs_read(w->fs, "/r", 0, 1 << 20, &o->bytes, k);
    else if (what == 'b')
        (void)xs_fs_walk(w->fs, "/w", &limits, &o->entries, k);
    else if (what == 'c')
        (void)xs_fs_open(w->fs, "/o", XS_OPEN_READ, &o->file, k);
    else if (what == 'd')
        (void)xs_fs_watch(w->fs, "/d", 0, on_change, NULL, &o->watch, k);
    else if (what == 'e')
        (void)xs_fs_watch_missing(w->fs, missing, on_change, NULL, &o->watch, k);
    else
        (void)xs_exec_command(w->exec, w->start, &o->result, k);
}

static void begin(struct world *w, char what) {
    if (w->n == OPS)
        return;
    struct op *o = &w->ops[w->n++];
    o->call.done = on_done;
    o->snapshot.size = sizeof o->snapshot;
    o->exit.size = sizeof o->exit;
    o->stat.size = sizeof o->stat;
    if (what <= '8')
        begin_process(w, what, o);
    else
        begin_other(w, what, o);
}

static void answer(struct world *w, size_t which, const char *kind, const char *p, size_t n) {
    char head[64];
    if (which >= w->n_ids)
        return;
    say(w, head,
        (size_t)snprintf(head, sizeof head,
                         "{\"id\":%llu,\"%s\":", (unsigned long long)w->ids[which], kind));
    say(w, p, n);
    say(w, "}\n", 2);
    memmove(w->ids + which, w->ids + which + 1, (--w->n_ids - which) * sizeof w->ids[0]);
}

static void line(struct world *w, const char *p, size_t n) {
    if (n == 1 && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'))) {
        begin(w, *p);
    } else if (n > 1 && *p >= 'A' && *p <= 'H' && *p != 'E') {
        answer(w, (size_t)(*p - 'A'), "result", p + 1, n - 1);
    } else if (n > 1 && *p == 'E') {
        answer(w, 0, "error", p + 1, n - 1);
    } else {
        say(w, p, n);
        say(w, "\n", 1);
    }
    turn(w);
}

static void world_make(struct world *w) {
    int fds[2];
    char url[32];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    snprintf(url, sizeof url, "fd:%d", fds[0]);
    w->peer = fds[1];
    struct xs_options *o = xs_options_new();
    w->start = xs_options_new();
    REQUIRE(o != NULL && w->start != NULL);
    REQUIRE(xs_options_str(o, XS_OPT_URL, url) == 0);
    REQUIRE(xs_options_add(w->start, XS_OPT_ARGV, "x") == 0);
    REQUIRE(xs_options_num(w->start, XS_OPT_STDIN, 1) == 0);
    REQUIRE(xs_client_new(o, &w->client) == 0);
    xs_options_free(o);
    static struct xs_call call;
    memset(&call, 0, sizeof call);
    REQUIRE(xs_client_connect(w->client, &call) == 0);
    close(fds[0]);
    turn(w);
    say(w, hello, sizeof hello - 1);
    turn(w);
    REQUIRE(xs_client_state(w->client) == XS_STATE_READY);
    w->n_ids = 0;
    REQUIRE(xs_fs_new(w->client, NULL, &w->fs) == 0);
    REQUIRE(xs_exec_new(w->client, NULL, NULL, &w->exec) == 0);
}

static void world_end(struct world *w) {
    xs_exec_free(w->exec);
    xs_fs_free(w->fs);
    for (size_t i = 0; i < w->n; i++) {
        struct op *o = &w->ops[i];
        xs_bytes_free(&o->bytes);
        xs_snapshot_fini(&o->snapshot);
        xs_entries_free(o->entries);
        xs_exec_result_free(o->result);
    }
    xs_client_free(w->client);
    xs_options_free(w->start);
    close(w->peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct world w;
    memset(&w, 0, sizeof w);
    if (size > 60000) /* what fits into the socket */
        return 0;
    world_make(&w);
    const char *p = (const char *)data, *end = p + size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = stop != NULL ? (size_t)(stop - p) : (size_t)(end - p);
        line(&w, p, n);
        p += n + 1;
    }
    world_end(&w);
    return 0;
}
