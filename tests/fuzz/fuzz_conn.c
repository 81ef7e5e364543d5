/*
 * A whole server, played with over several connections at once, with everything real but the
 * commands (stub_proc.h). The input is a script of lines, see play_line(). Whatever it does: what
 * the server sends is well-formed, no request is answered twice, the events of a process have no
 * gap, and in the end the server stops and gives everything back.
 *
 * File calls are real as well, so the server runs in a thread that has a small file system of its
 * own as its root.
 */
#include "stub_client.h"
#include "stub_proc.h"

#include "base/log.h"
#include "sandbox/host/launcher.h"
#include "app/server.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CLIENTS 4
#define LINES_MAX 200      /* of a script */
#define TURNS_MAX 100      /* of the loop, waiting for calls of the file system */
#define STOP_TURNS_MAX 500 /* of 10 ms each: longer than a server may take to stop */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    pthread_t thread;
    sem_t begin, end;
    const uint8_t *data;
    size_t size;
} worker;

static uint64_t play_time = LOOP_SEC;

static uint64_t play_clock(void) {
    return play_time;
}

struct play {
    struct server server;
    struct client clients[CLIENTS];
    struct client *client; /* that lines are about */
};

/* -- the server's turns -- */

static void play_turn(struct play *p) {
    REQUIRE(loop_once(&p->server.loop, 0) == 0);
    if (stub_obey())
        child_host_reap(&p->server.processes.procs.children);
    for (size_t i = 0; i < CLIENTS; i++)
        client_read(&p->clients[i]);
}

static void play_pump(struct play *p) {
    for (int i = 0; i < 4; i++)
        play_turn(p);
    for (int i = 0; i < TURNS_MAX && pool_busy(&p->server.pool); i++) {
        REQUIRE(loop_once(&p->server.loop, LOOP_MS / 10) == 0);
        play_turn(p);
    }
}

/* -- the script -- */

static void play_open(struct play *p, char digit, bool upgrade) {
    p->client = &p->clients[(unsigned char)digit % CLIENTS];
    if (p->client->fd >= 0)
        return;
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    struct sockaddr addr = {.sa_family = AF_UNIX};
    REQUIRE(conn_accept(&p->server.conns, pair[0], &addr) == 0);
    client_open(p->client, pair[1], upgrade);
}

static void play_process(struct play *p, char what, struct str rest) {
    struct stub *s = rest.n > 0 ? stub_get((unsigned char)rest.p[0]) : NULL;
    if (s == NULL)
        return;
    struct str text = {rest.p + 1, rest.n - 1};
    struct launch_report running = {.kind = LAUNCH_RUNNING};
    int code = text.n > 0 ? (unsigned char)text.p[0] : 0;
    switch (what) {
    case '+': stub_runs(s); break;
    case '-': stub_fails(s, 1 + code % 40); break;
    case 'o': (void)!write(s->fds[1], text.p, text.n); break;
    case 'e': (void)!write(s->fds[2], text.p, text.n); break;
    case 'x': stub_exits(s, code << 8); break;
    case 'k': stub_exits(s, 1 + code % 31); break;
    case 'r': (void)!send(s->channel, &running, offsetof(struct launch_report, text), 0); break;
    case 'c': (void)!send(s->channel, text.p, text.n, MSG_DONTWAIT | MSG_NOSIGNAL); break;
    default: stub_is_gone(s); child_host_reap(&p->server.processes.procs.children);
    }
}

/*
 * A line is a text message, unless it begins with one of these; D is a character that chooses.
 *   @D ~D     speaks over connection D from now on, opened if need be (~: without an upgrade)
 *   =BYTES    bytes as they are, \n \r \xHH meant
 *   #HBYTES   a frame with the first byte 0xH.. of two digits
 *   h z p     ends the output of the connection, cuts it off, stops or goes on reading
 *   tN        lets N milliseconds pass
 *   +D -DE oDBYTES eDBYTES xDE kDE gD   process D runs, fails, writes, exits, is killed, is gone
 *   rD cDBYTES                          its launcher says that it runs, or anything
 */
static void play_line(struct play *p, struct str line) {
    struct str rest = {line.p + 1, line.n - 1};
    switch (line.p[0]) {
    case '@':
    case '~':
        if (rest.n > 0)
            play_open(p, rest.p[0], line.p[0] == '@');
        break;
    case '=': client_raw(p->client, rest); break;
    case '#': client_frame(p->client, rest); break;
    case 'h': client_half_close(p->client); break;
    case 'z': client_close(p->client); break;
    case 'p': p->client->lazy = !p->client->lazy; break;
    case 't': play_time += strtoull(rest.p, NULL, 10) % 100000 * LOOP_MS; break;
    case '+':
    case '-':
    case 'o':
    case 'e':
    case 'x':
    case 'k':
    case 'g':
    case 'r':
    case 'c': play_process(p, line.p[0], rest); break;
    default: client_text(p->client, line);
    }
}

static void play_script(struct play *p, struct str script) {
    play_open(p, '0', true);
    for (int lines = 0; script.n > 0 && lines < LINES_MAX; lines++) {
        const char *end = memchr(script.p, '\n', script.n);
        size_t n = end != NULL ? (size_t)(end - script.p) : script.n;
        _cleanup_free_ char *line = str_dup((struct str){script.p, n});
        REQUIRE(line != NULL);
        if (n > 0)
            play_line(p, (struct str){line, n});
        play_pump(p);
        n += end != NULL;
        script = (struct str){script.p + n, script.n - n};
    }
}

/* -- begin and end -- */

static void play_stop(struct play *p) {
    for (struct stub *s; (s = stub_get(0)) != NULL;)
        stub_is_gone(s);
    child_host_reap(&p->server.processes.procs.children);
    play_pump(p);
    server_stop(&p->server);
    for (int i = 0; i < STOP_TURNS_MAX && !p->server.loop.stop; i++) {
        play_time += 10 * LOOP_MS;
        play_pump(p);
    }
    REQUIRE(p->server.loop.stop && p->server.processes.procs.children.live == 0);
    for (size_t i = 0; i < CLIENTS; i++)
        client_close(&p->clients[i]);
    REQUIRE(server_fini(&p->server));
}

static int play_remove(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    if (at->level > 0)
        (void)!remove(path);
    return 0;
}

static void play_whole(struct options *opt) {
    static struct play p;
    _cleanup_err_ struct err e = ERR_INIT;
    struct rlimit nofile = {1024, 4096};
    memset(&p, 0, sizeof p);
    for (size_t i = 0; i < CLIENTS; i++)
        p.clients[i].fd = -1;
    REQUIRE(server_init(&p.server, opt, nofile, &e) == 0);
    p.server.loop.clock = play_clock;
    play_script(&p, (struct str){(const char *)worker.data, worker.size});
    play_stop(&p);
    (void)nftw("/", play_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* A root of its own for this thread and those it starts. */
static void play_confine(void) {
    char place[] = "/tmp/fuzz-conn-XXXXXX";
    REQUIRE(unshare(CLONE_FS | CLONE_NEWNS) == 0);
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REQUIRE(mkdtemp(place) != NULL);
    REQUIRE(mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,nr_inodes=1000") == 0);
    REQUIRE(chroot(place) == 0 && chdir("/") == 0);
}

static void *play_main(void *unused) {
    (void)unused;
    char *argv[] = {(char *)"exec-server",
                    (char *)"--listen",
                    (char *)"ws://127.0.0.1:0",
                    (char *)"--http-files",
                    (char *)"--metrics",
                    (char *)"--allow-attach",
                    (char *)"--max-processes",
                    (char *)"12",
                    (char *)"--closed-output-max",
                    (char *)"65536",
                    (char *)"--retained-output", /* one byte that is not acknowledged stalls */
                    (char *)"65536",
                    NULL};
    struct options opt;
    REQUIRE(options_parse((int)ARRAY_LEN(argv) - 1, argv, &opt, stdout, stderr) == OPTIONS_RUN);
    play_confine();
    for (;;) {
        while (sem_wait(&worker.begin) < 0)
            ;
        play_whole(&opt);
        sem_post(&worker.end);
    }
    return NULL;
}

/* Rights to make a root: those of the user, or in a namespace of one's own. */
static void play_become_root(void) {
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    if (uid == 0)
        return;
    const char *files[] = {"/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map"};
    REQUIRE(unshare(CLONE_NEWUSER) == 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        _cleanup_close_ int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        int n = i == 0 ? snprintf(map, sizeof map, "deny")
                       : snprintf(map, sizeof map, "0 %u 1", i == 1 ? uid : gid);
        REQUIRE(write(fd, map, (size_t)n) == n);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    play_become_root();
    log_init(LOG_LEVEL_OFF, STDERR_FILENO);
    REQUIRE(sem_init(&worker.begin, 0, 0) == 0 && sem_init(&worker.end, 0, 0) == 0);
    REQUIRE(pthread_create(&worker.thread, NULL, play_main, NULL) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    worker.data = data;
    worker.size = size;
    sem_post(&worker.begin);
    while (sem_wait(&worker.end) < 0)
        ;
    return 0;
}
