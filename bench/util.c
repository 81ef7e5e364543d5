#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void fail(const char *fmt, ...) {
    va_list ap;

    fputs("bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t clock_ns(clockid_t id) {
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0)
        fail("clock_gettime: %s", strerror(errno));
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t process_cpu_ns(pid_t pid) {
    clockid_t id;
    int rc = clock_getcpuclockid(pid, &id);

    if (rc != 0)
        fail("no CPU clock of process %d: %s", (int)pid, strerror(rc));
    return clock_ns(id);
}

void read_small_file(const char *path, char *out, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;

    if (fd < 0)
        fail("%s: %s", path, strerror(errno));
    while (used < cap - 1) {
        ssize_t n = read(fd, out + used, cap - 1 - used);
        if (n < 0)
            fail("%s: %s", path, strerror(errno));
        if (n == 0)
            break;
        used += (size_t)n;
    }
    out[used] = '\0';
    close(fd);
}

uint64_t process_children_cpu_ns(pid_t pid) {
    char path[64], text[2048];
    unsigned long long user, system;
    const char *fields;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    read_small_file(path, text, sizeof text);
    fields = strrchr(text, ')');
    // From the state, field 3, to cutime and cstime, fields 16 and 17.
    if (fields == NULL ||
        sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &user,
               &system) != 2)
        fail("%s has another form", path);
    return (user + system) * (1000000000u / (unsigned long long)sysconf(_SC_CLK_TCK));
}

// A number of /proc/PID/status in kB, returned in bytes.
static uint64_t process_status(pid_t pid, const char *name) {
    char path[64], text[8192];
    const char *line;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    read_small_file(path, text, sizeof text);
    line = strstr(text, name);
    if (line == NULL)
        fail("%s has no %s", path, name);
    return strtoull(line + strlen(name), NULL, 10) * 1024u;
}

uint64_t process_rss(pid_t pid) {
    return process_status(pid, "VmRSS:");
}

uint64_t process_peak(pid_t pid) {
    return process_status(pid, "VmHWM:");
}

void process_forget_peak(pid_t pid) {
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        fail("%s: %s", path, strerror(errno));
    close(fd);
}

void pin_to(int cpu) {
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("CPU %d: %s", cpu, strerror(errno));
}

void send_unpaced(int fd) {
    static const char name[] = "cubic";

    // Every kernel has it, unless somebody took care that it does not.
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof name - 1);
}

void samples_init(struct samples *s, size_t cap) {
    s->count = 0;
    s->cap = cap;
    s->ns = calloc(cap == 0 ? 1 : cap, sizeof *s->ns);
    if (s->ns == NULL)
        fail("out of memory");
}

void samples_add(struct samples *s, uint64_t ns) {
    if (s->count < s->cap)
        s->ns[s->count++] = ns;
}

void samples_free(struct samples *s) {
    free(s->ns);
    s->ns = NULL;
}

void result_begin(const char *measure) {
    printf("{\"measure\":\"%s\"", measure);
}

void result_number(const char *name, uint64_t value) {
    printf(",\"%s\":%" PRIu64, name, value);
}

void result_samples(const struct samples *s) {
    printf(",\"samples\":[");
    for (size_t i = 0; i < s->count; i++)
        printf("%s%" PRIu64, i == 0 ? "" : ",", s->ns[i]);
    printf("]");
}

void result_end(void) {
    printf("}\n");
    if (fflush(stdout) != 0)
        fail("stdout: %s", strerror(errno));
}
