#include "base/log.h"

#include "base/utc.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOG_CUT "..."
#define LOG_ESCAPE_MAX 4 /* bytes that one byte of a message may become: \xNN */

enum log_level log_max_level = LOG_LEVEL_ERROR;

static struct {
    pthread_mutex_t lock; /* over poll and write: nobody fills the pipe in between */
    int fd;
    uint64_t dropped, dropped_total;
    bool torn; /* the last line lost its end: begin the next on a new line */
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = STDERR_FILENO};

static const char *const level_names[] = {
    [LOG_LEVEL_OFF] = "off",   [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
};

static const char *const level_tags[] = {
    [LOG_LEVEL_OFF] = "OFF",   [LOG_LEVEL_ERROR] = "ERROR", [LOG_LEVEL_WARN] = "WARN",
    [LOG_LEVEL_INFO] = "INFO", [LOG_LEVEL_DEBUG] = "DEBUG",
};

/* A line being built. Always keeps room for LOG_CUT and the newline. */
struct log_line {
    char p[LOG_LINE_MAX];
    size_t n;
};

#define LOG_ROOM (LOG_LINE_MAX - sizeof(LOG_CUT))

void log_init(enum log_level max, int fd) {
    log_max_level = max;
    log_state.fd = fd;
    log_state.dropped = log_state.dropped_total = 0;
    log_state.torn = false;
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

static void line_start(struct log_line *l, enum log_level level) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    utc_text(l->p, &ts);
    int n = snprintf(l->p + UTC_TEXT_LEN, sizeof(l->p) - UTC_TEXT_LEN, " %s ", level_tags[level]);
    l->n = UTC_TEXT_LEN + (size_t)n;
}

/* Bytes of the printable UTF-8 sequence of two or more bytes at p (n are left); 0 = none there. */
static size_t printable_sequence(const char *p, size_t n) {
    unsigned char c = (unsigned char)p[0];
    size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
    if (len == 0 || len > n || !utf8_valid(p, len))
        return 0;
    bool c1_control = c == 0xC2 && (unsigned char)p[1] < 0xA0;
    return c1_control ? 0 : len;
}

static size_t escape_byte(char *dst, char c) {
    static const char hex[] = "0123456789abcdef";
    const char *named = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
    if (c == '\\')
        named = "\\\\";
    if (named != NULL) {
        memcpy(dst, named, 2);
        return 2;
    }
    unsigned char u = (unsigned char)c;
    memcpy(dst, "\\x", 2);
    dst[2] = hex[u >> 4];
    dst[3] = hex[u & 15];
    return LOG_ESCAPE_MAX;
}

/* Appends the message, escaped; false when it did not fit. */
static bool line_put(struct log_line *l, const char *p, size_t n) {
    while (n > 0) {
        char out[LOG_ESCAPE_MAX];
        size_t take = 1, len = 1;
        if (*p >= 0x20 && *p < 0x7F && *p != '\\') {
            out[0] = *p;
        } else if ((take = printable_sequence(p, n)) > 0) {
            memcpy(out, p, take);
            len = take;
        } else {
            take = 1;
            len = escape_byte(out, *p);
        }
        if (len > LOG_ROOM - l->n)
            return false;
        memcpy(l->p + l->n, out, len);
        l->n += len;
        p += take;
        n -= take;
    }
    return true;
}

static void line_finish(struct log_line *l, bool whole) {
    if (!whole) {
        memcpy(l->p + l->n, LOG_CUT, sizeof(LOG_CUT) - 1);
        l->n += sizeof(LOG_CUT) - 1;
    }
    l->p[l->n++] = '\n';
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
    line_start(l, LOG_LEVEL_WARN);
    int n = snprintf(msg, sizeof(msg), "%" PRIu64 " log lines were dropped", log_state.dropped);
    line_finish(l, line_put(l, msg, (size_t)n));
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
        line_start(&l, level);
        bool whole = line_put(&l, msg, len) && len == (size_t)n;
        line_finish(&l, whole);
        put_line(&l);
    }
    errno = saved;
}
