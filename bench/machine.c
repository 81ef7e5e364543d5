#include "machine.h"

#include "rpc.h"
#include "util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MESSAGE 60
#define READ_MAX ((size_t)64 * 1024)
#define PIPE_SIZE (256 * 1024) // more does not stay in the cache

void machine_tcp_pair(int fd[2]) {
    struct sockaddr_in sin = {.sin_family = AF_INET};
    socklen_t len = sizeof sin;
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || fd[0] < 0 || bind(listener, (struct sockaddr *)&sin, sizeof sin) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&sin, &len) != 0 ||
        connect(fd[0], (struct sockaddr *)&sin, sizeof sin) != 0)
        fail("loopback connection: %s", strerror(errno));
    fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd[1] < 0)
        fail("accept: %s", strerror(errno));
    setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    send_unpaced(fd[0]);
    close(listener);
}

static void make_pipe(int fd[2]) {
    if (pipe2(fd, O_CLOEXEC) != 0)
        fail("pipe: %s", strerror(errno));
}

pid_t machine_fork(void) {
    pid_t pid = fork();

    if (pid < 0)
        fail("fork: %s", strerror(errno));
    return pid;
}

static void write_all(int fd, const void *data, size_t len) {
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n <= 0)
            fail("write: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

// Returns 0 at the end of the stream.
static int read_all(int fd, void *data, size_t len) {
    char *p = data;

    while (len > 0) {
        ssize_t n = read(fd, p, len);
        if (n < 0)
            fail("read: %s", strerror(errno));
        if (n == 0)
            return 0;
        p += n;
        len -= (size_t)n;
    }
    return 1;
}

static uint64_t child_true(void) {
    static char path[] = "/bin/true";
    char *argv[] = {path, NULL};
    char *envp[] = {NULL};
    int out[2], err[2], status;
    char byte;
    uint64_t begin = now_ns();
    pid_t pid;

    make_pipe(out);
    make_pipe(err);
    pid = vfork();
    if (pid == 0) {
        dup2(out[1], 1);
        dup2(err[1], 2);
        execve(path, argv, envp);
        _exit(127);
    }
    if (pid < 0)
        fail("vfork: %s", strerror(errno));
    close(out[1]);
    close(err[1]);
    if (read(out[0], &byte, 1) != 0 || read(err[0], &byte, 1) != 0)
        fail("/bin/true wrote something");
    close(out[0]);
    close(err[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail("/bin/true failed");
    return now_ns() - begin;
}

void machine_spawn(const struct measure_options *o) {
    struct samples s;

    samples_init(&s, o->count);
    for (size_t i = 0; i < o->warmup; i++)
        child_true();
    for (size_t i = 0; i < o->count; i++)
        samples_add(&s, child_true());
    result_begin("machine-spawn");
    result_samples(&s);
    result_end();
    samples_free(&s);
}

// Sends `len` bytes, waits for as many, `count` times; prints the result.
static void ping_pong(int fd, size_t len, const char *name, const struct measure_options *o) {
    char text[MESSAGE];
    struct samples s;

    memset(text, 'x', sizeof text);
    samples_init(&s, o->count);
    for (size_t i = 0; i < o->warmup + o->count; i++) {
        uint64_t begin = now_ns();
        write_all(fd, text, len);
        if (!read_all(fd, text, len))
            fail("the relay ended");
        if (i >= o->warmup)
            samples_add(&s, now_ns() - begin);
    }
    result_begin(name);
    result_samples(&s);
    result_end();
    samples_free(&s);
}

// Answers each message after `work` on the path.
static void answer_messages(const char *name, void (*work)(const char *path),
                            const struct measure_options *o) {
    char text[MESSAGE];
    int fd[2];
    pid_t pid;

    machine_tcp_pair(fd);
    pid = machine_fork();
    if (pid == 0) {
        close(fd[0]);
        pin_to(o->server_cpu);
        while (read_all(fd[1], text, sizeof text)) {
            if (work != NULL)
                work(o->path);
            write_all(fd[1], text, sizeof text);
        }
        _exit(0);
    }
    close(fd[1]);
    ping_pong(fd[0], MESSAGE, name, o);
    close(fd[0]);
    waitpid(pid, NULL, 0);
}

void machine_status(const struct measure_options *o) {
    answer_messages("machine-status", NULL, o);
}

static void look_at(const char *path) {
    struct stat st;

    if (stat(path, &st) != 0)
        fail("%s: %s", path, strerror(errno));
}

void machine_metadata(const struct measure_options *o) {
    answer_messages("machine-metadata", look_at, o);
}

static void read_whole(const char *path) {
    char buf[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        fail("%s: %s", path, strerror(errno));
    while (read(fd, buf, sizeof buf) > 0)
        ;
    close(fd);
}

void machine_small_read(const struct measure_options *o) {
    answer_messages("machine-small-read", read_whole, o);
}

// A transparent terminal; returns the master, stores the slave.
static int open_terminal(int *slave) {
    struct termios t;
    char name[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, name, sizeof name) != 0)
        fail("terminal: %s", strerror(errno));
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0 || tcgetattr(*slave, &t) != 0)
        fail("%s: %s", name, strerror(errno));
    cfmakeraw(&t);
    if (tcsetattr(*slave, TCSANOW, &t) != 0)
        fail("tcsetattr: %s", strerror(errno));
    return master;
}

static pid_t child_cat(int in, int out) {
    pid_t pid = machine_fork();

    if (pid == 0) {
        dup2(in, 0);
        dup2(out, 1);
        execl("/bin/cat", "cat", (char *)NULL);
        _exit(127);
    }
    return pid;
}

// Carries bytes between the connection and cat until the connection ends.
static void relay_bytes(int sock, int to_cat, int from_cat) {
    struct pollfd p[2] = {{.fd = sock, .events = POLLIN}, {.fd = from_cat, .events = POLLIN}};
    char text[256];

    for (;;) {
        if (poll(p, 2, -1) < 0)
            fail("poll: %s", strerror(errno));
        for (int i = 0; i < 2; i++) {
            ssize_t n = p[i].revents == 0 ? -1 : read(p[i].fd, text, sizeof text);
            if (n > 0)
                write_all(i == 0 ? to_cat : sock, text, (size_t)n);
            else if (n == 0 && i == 0)
                return;
        }
    }
}

static void echo_relay(int sock, int tty) {
    int in[2], out[2], slave;
    pid_t cat;

    if (tty) {
        in[1] = out[0] = open_terminal(&slave);
        in[0] = out[1] = slave;
    } else {
        make_pipe(in);
        make_pipe(out);
    }
    cat = child_cat(in[0], out[1]);
    relay_bytes(sock, in[1], out[0]);
    kill(cat, SIGKILL);
    waitpid(cat, NULL, 0);
}

void machine_echo(const struct measure_options *o) {
    int fd[2];
    pid_t pid;

    machine_tcp_pair(fd);
    pid = machine_fork();
    if (pid == 0) {
        close(fd[0]);
        pin_to(o->server_cpu);
        echo_relay(fd[1], o->tty);
        _exit(0);
    }
    close(fd[1]);
    ping_pong(fd[0], 1, o->tty ? "machine-echo-pty" : "machine-echo-pipe", o);
    close(fd[0]);
    waitpid(pid, NULL, 0);
}

#if defined(__x86_64__)
// 24 bytes at a time become 32 characters: spread over the lanes, cut into sextets by two
// multiplications, moved into the alphabet by an offset that depends on the range.
__attribute__((target("avx2"))) static size_t encode_avx2(const uint8_t *in, size_t len,
                                                          char *out) {
    const __m256i spread = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, 1, 0,
                                            2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
    const __m256i offsets =
        _mm256_setr_epi8(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0, 71, -4, -4,
                         -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0);
    size_t i = 0, o = 0;

    for (; i + 28 <= len; i += 24, o += 32) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + i + 12));
        __m256i v = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread);
        __m256i a = _mm256_mulhi_epu16(_mm256_and_si256(v, _mm256_set1_epi32(0x0fc0fc00)),
                                       _mm256_set1_epi32(0x04000040));
        __m256i b = _mm256_mullo_epi16(_mm256_and_si256(v, _mm256_set1_epi32(0x003f03f0)),
                                       _mm256_set1_epi32(0x01000010));
        __m256i sextets = _mm256_or_si256(a, b);
        __m256i range = _mm256_subs_epu8(sextets, _mm256_set1_epi8(51));
        __m256i upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), sextets);
        range = _mm256_or_si256(range, _mm256_and_si256(upper, _mm256_set1_epi8(13)));
        v = _mm256_add_epi8(_mm256_shuffle_epi8(offsets, range), sextets);
        _mm256_storeu_si256((__m256i *)(void *)(out + o), v);
    }
    return o + base64_encode(in + i, len - i, out + o);
}
#endif

static size_t encode(const uint8_t *in, size_t len, char *out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return encode_avx2(in, len, out);
#endif
    return base64_encode(in, len, out);
}

// Reads the generator, writes base64; bytes that do not fill a group of three wait for the next
// read and are dropped at the end.
static void bulk_relay(int sock, uint64_t bytes) {
    static uint8_t in[READ_MAX];
    static char text[READ_MAX / 3 * 4 + 64];
    size_t have = 0;
    int fd[2];
    pid_t pid;

    make_pipe(fd);
    if (fcntl(fd[0], F_SETPIPE_SZ, PIPE_SIZE) < 0)
        fail("F_SETPIPE_SZ: %s", strerror(errno));
    pid = machine_fork();
    if (pid == 0) {
        dup2(fd[1], 1);
        generate(bytes);
        _exit(0);
    }
    close(fd[1]);
    for (;;) {
        ssize_t n = read(fd[0], in + have, sizeof in - have);
        size_t whole;
        if (n <= 0)
            break;
        have += (size_t)n;
        whole = have / 3 * 3;
        write_all(sock, text, encode(in, whole, text));
        memmove(in, in + whole, have - whole);
        have -= whole;
    }
    waitpid(pid, NULL, 0);
}

// Copies the file to the connection as base64, `count` times.
static void file_relay(int sock, const struct measure_options *o) {
    static uint8_t in[READ_MAX / 3 * 3];
    static char text[READ_MAX / 3 * 4 + 64];

    for (size_t i = 0; i < o->count; i++) {
        int fd = open(o->path, O_RDONLY | O_CLOEXEC);
        ssize_t n;
        if (fd < 0)
            fail("%s: %s", o->path, strerror(errno));
        while ((n = read(fd, in, sizeof in)) > 0)
            write_all(sock, text, encode(in, (size_t)n, text));
        close(fd);
    }
}

static void bulk_source(int sock, const struct measure_options *o) {
    bulk_relay(sock, o->bytes);
}

// Receives what a child writes that runs `source`, `expect` bytes, and prints the result.
static void receive_from(void (*source)(int sock, const struct measure_options *o),
                         const struct measure_options *o, uint64_t expect, const char *name) {
    static uint8_t buf[512 * 1024];
    uint64_t begin = now_ns(), took, got = 0, cpu = 0;
    int fd[2];
    pid_t pid;
    ssize_t n;

    machine_tcp_pair(fd);
    pid = machine_fork();
    if (pid == 0) {
        close(fd[0]);
        source(fd[1], o);
        cpu = process_cpu_ns(getpid());
        write_all(fd[1], &cpu, sizeof cpu);
        _exit(0);
    }
    close(fd[1]);
    while ((n = read(fd[0], buf, sizeof buf)) > 0) {
        got += (uint64_t)n;
        if (n >= (ssize_t)sizeof cpu)
            memcpy(&cpu, buf + n - sizeof cpu, sizeof cpu);
    }
    took = now_ns() - begin;
    waitpid(pid, NULL, 0);
    if (got != expect + sizeof cpu)
        fail("the relay wrote %llu bytes", (unsigned long long)got);
    result_begin(name);
    result_number("bytes", o->bytes);
    result_number("wall_ns", took);
    result_number("cpu_ns", cpu);
    result_end();
}

void machine_bulk(const struct measure_options *o) {
    receive_from(bulk_source, o, o->bytes / 3 * 4, "machine-bulk");
}

void machine_file_read(const struct measure_options *o) {
    if (o->path == NULL)
        fail("machine-file-read needs --path");
    receive_from(file_relay, o, o->count * base64_length(o->bytes), "machine-file-read");
}

static void batch_name(char *out, size_t size, const struct measure_options *o, size_t i) {
    snprintf(out, size, "%s%zu", o->path, i % WRITE_BATCH);
}

// Reads messages of `len` bytes and writes the first `bytes` of each to a file, which is new each
// time; answers with one byte.
static void write_relay(int sock, size_t len, const struct measure_options *o) {
    static char buf[READ_MAX];
    char name[PATH_MAX];
    uint64_t cpu, before = 0;

    for (size_t i = 0; i < (o->warmup + o->count) * WRITE_BATCH; i++) {
        size_t left = len, wanted = o->bytes;
        int fd;
        batch_name(name, sizeof name, o, i);
        if (i == o->warmup * WRITE_BATCH)
            before = process_cpu_ns(getpid());
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
            fail("%s: %s", name, strerror(errno));
        while (left > 0) {
            size_t n = left < sizeof buf ? left : sizeof buf;
            if (!read_all(sock, buf, n))
                fail("the writer ended");
            write_all(fd, buf, n < wanted ? n : wanted);
            wanted -= n < wanted ? n : wanted;
            left -= n;
        }
        close(fd);
        write_all(sock, buf, 1);
    }
    cpu = process_cpu_ns(getpid()) - before;
    write_all(sock, &cpu, sizeof cpu);
}

// Sends the messages of a batch, `window` ahead of the answers; returns the time that took.
static uint64_t relay_batch(int sock, const char *data, size_t len,
                            const struct measure_options *o) {
    uint64_t begin = now_ns(), took;
    char answer, name[PATH_MAX];

    for (size_t got = 0, sent = 0; got < WRITE_BATCH; got++) {
        for (; sent < WRITE_BATCH && sent - got < o->window; sent++)
            write_all(sock, data, len);
        if (!read_all(sock, &answer, 1))
            fail("the relay ended");
    }
    took = now_ns() - begin;
    for (size_t i = 0; i < WRITE_BATCH; i++) {
        batch_name(name, sizeof name, o, i);
        unlink(name);
    }
    return took;
}

void machine_file_write(const struct measure_options *o) {
    size_t len = base64_length(o->bytes);
    char *data = calloc(1, len);
    uint64_t wall = 0, cpu = 0;
    int fd[2];
    pid_t pid;

    if (o->path == NULL || data == NULL)
        fail("machine-file-write needs --path and memory");
    machine_tcp_pair(fd);
    pid = machine_fork();
    if (pid == 0) {
        close(fd[0]);
        write_relay(fd[1], len, o);
        _exit(0);
    }
    close(fd[1]);
    for (size_t i = 0; i < o->warmup + o->count; i++) {
        uint64_t took = relay_batch(fd[0], data, len, o);
        wall += i >= o->warmup ? took : 0;
    }
    if (!read_all(fd[0], &cpu, sizeof cpu))
        fail("the relay ended");
    waitpid(pid, NULL, 0);
    free(data);
    result_begin("machine-file-write");
    result_number("bytes", o->bytes * WRITE_BATCH * o->count);
    result_number("wall_ns", wall);
    result_number("cpu_ns", cpu);
    result_end();
}
