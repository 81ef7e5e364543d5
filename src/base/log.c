#include "base/log.h"

#include "base/log_line.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum log_level log_max_level = LOG_LEVEL_ERROR;

static struct {
    pthread_mutex_t lock; /* over poll and write: nobody fills the pipe in between */
    int fd;
    enum log_format format;
    bool journal;
    uint64_t dropped, dropped_total;
    bool torn; /* the last line lost its end: begin the next on a new line */
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = STDERR_FILENO};

static const char *const level_names[] = {
    [LOG_LEVEL_OFF] = "off",   [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
};

void log_init(enum log_level max, int fd) {
    log_max_level = max;
    log_state.fd = fd;
    log_state.dropped = log_state.dropped_total = 0;
    log_state.torn = false;
    log_set_format(LOG_FORMAT_TEXT, false);
}

void log_set_format(enum log_format format, bool journal) {
    log_state.format = format;
    log_state.journal = journal;
}

bool log_is_journal(int fd, const char *stream) {
    struct stat st;
    char own[64];
    if (stream == NULL || fstat(fd, &st) < 0)
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(own, stream) == 0;
}

uint64_t log_dropped(void) {
    pthread_mutex_lock(&log_state.lock);
    uint64_t n = log_state.dropped;
    pthread_mutex_unlock(&log_state.lock);
    return n;
}

uint64_t log_dropped_total(void) {
    pthread_mutex_lock(&log_state.lock);
    uint64_t n = log_state.dropped_total;
    pthread_mutex_unlock(&log_state.lock);
    return n;
}

bool log_level_parse(const char *name, enum log_level *level) {
    for (unsigned i = 0; i < ARRAY_LEN(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static bool writable_now(void) {
    struct pollfd pfd = {.fd = log_state.fd, .events = POLLOUT};
    return poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT;
}

/* Writes without waiting; false if some bytes could not be written. */
static bool put_bytes(const char *p, size_t n) {
    while (n > 0) {
        if (!writable_now())
            return false;
        ssize_t w = write(log_state.fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        p += w;
        n -= (size_t)w;
        log_state.torn = p[-1] != '\n';
    }
    return true;
}

static void drop_report(struct log_line *l) {
    char msg[64];
    snprintf(msg, sizeof(msg), "%" PRIu64 " log lines were dropped", log_state.dropped);
    log_line_start(l, log_state.format, log_state.journal, LOG_LEVEL_WARN);
    log_line_message(l, str_of(msg), true);
    log_line_end(l);
}

/* Writes a pending newline and count together with the line: a nearly full pipe takes only one
 * write. */
static void put_line(const struct log_line *l) {
    char out[1 + 2 * LOG_LINE_MAX];
    char *end = out;
    pthread_mutex_lock(&log_state.lock);
    if (log_state.torn)
        *end++ = '\n';
    if (log_state.dropped > 0) {
        struct log_line report;
        drop_report(&report);
        end = mempcpy(end, report.p, report.n);
    }
    end = mempcpy(end, l->p, l->n);
    if (put_bytes(out, (size_t)(end - out))) {
        log_state.dropped = 0;
    } else {
        log_state.dropped++;
        log_state.dropped_total++;
    }
    pthread_mutex_unlock(&log_state.lock);
}

void log_write(enum log_level level, const char *fmt, ...) {
    int saved = errno;
    char msg[LOG_LINE_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n >= 0) {
        struct log_line l;
        size_t len = MIN((size_t)n, sizeof(msg) - 1);
        log_line_start(&l, log_state.format, log_state.journal, level);
        log_line_message(&l, (struct str){msg, len}, len == (size_t)n);
        log_line_end(&l);
        put_line(&l);
    }
    errno = saved;
}

void log_fields(enum log_level level, const char *message, const struct log_field *fields,
                size_t count) {
    int saved = errno;
    struct log_line l;
    if (!log_enabled(level))
        return;
    log_line_start(&l, log_state.format, log_state.journal, level);
    log_line_message(&l, str_of(message), true);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].name != NULL && fields[i].value.n > 0)
            log_line_field(&l, fields[i].name, fields[i].value);
    }
    log_line_end(&l);
    put_line(&l);
    errno = saved;
}
