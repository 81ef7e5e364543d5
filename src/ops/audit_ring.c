#include "ops/audit_ring.h"

#include "base/hunt.h"
#include "base/log.h"
#include "base/utc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define RING_WRITE_MAX (64u << 10)  /* bytes per write(2) */
#define RING_AGAIN (AUDIT_RING / 4) /* room at which dropping ends: few long gaps */
#define RING_STACK (256u << 10)     /* bytes of stack of the thread */
#define RING_DROPPED_MAX 128        /* bytes of a line about dropped ones */

struct audit_ring {
    pthread_mutex_t lock; /* guards all above `path`; never held during a system call */
    pthread_cond_t news;  /* for the thread */
    pthread_cond_t ended; /* for audit_ring_close() */
    pthread_t thread;
    uint64_t head, tail;        /* bytes put and written so far; the thread owns those between */
    uint64_t dropped, reported; /* lines dropped so far, and those that the log has reported */
    bool stop, reopen, finished;
    bool abandoned; /* the thread frees the ring if it ever ends */
    pid_t tid;      /* of the thread, once it runs */
    bool calling;   /* the thread is in system calls, without the lock */
    uint64_t calls; /* how often it was */

    /* Members of the thread. */
    const char *path; /* owned */
    int fd;
    bool torn;    /* the last line lacks its end */
    bool failing; /* the last write failed */

    char data[AUDIT_RING];
};

void audit_ring_time(char dst[AUDIT_TIME_LEN + 1]) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    utc_text(dst, &ts);
}

/* -- the ring; the lock is held -- */

static size_t ring_room(const struct audit_ring *r) {
    return AUDIT_RING - (size_t)(r->head - r->tail);
}

static void ring_add(struct audit_ring *r, const char *p, size_t n) {
    size_t at = r->head % AUDIT_RING, first = MIN(n, AUDIT_RING - at);
    memcpy(r->data + at, p, first);
    memcpy(r->data, p + first, n - first);
    r->head += n;
}

/* Once there is room again, puts one line in the place of the dropped ones. */
static void ring_report_drops(struct audit_ring *r) {
    char line[RING_DROPPED_MAX], now[AUDIT_TIME_LEN + 1];
    if (r->dropped == r->reported || ring_room(r) < RING_AGAIN)
        return;
    audit_ring_time(now);
    int n =
        snprintf(line, sizeof line, "{\"ts\":\"%s\",\"event\":\"dropped\",\"count\":%" PRIu64 "}\n",
                 now, r->dropped - r->reported);
    ring_add(r, line, (size_t)n);
    r->reported = r->dropped;
}

/* The number of lines that have not been written to their ends. */
static uint64_t ring_count_rest(const struct audit_ring *r) {
    uint64_t lines = 0;
    for (uint64_t at = r->tail; at < r->head; at++)
        lines += r->data[at % AUDIT_RING] == '\n';
    return lines;
}

void audit_ring_put(struct audit_ring *r, const char *line, size_t n) {
    pthread_mutex_lock(&r->lock);
    ring_report_drops(r);
    bool dropping = r->dropped != r->reported;
    bool first = !dropping && ring_room(r) < n;
    if (dropping || first)
        r->dropped++;
    else
        ring_add(r, line, n);
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
    if (first)
        log_error("the audit log does not keep up: lines are dropped");
}

void audit_ring_drop(struct audit_ring *r) {
    pthread_mutex_lock(&r->lock);
    r->dropped++;
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
}

void audit_ring_reopen(struct audit_ring *r) {
    pthread_mutex_lock(&r->lock);
    r->reopen = true;
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
}

size_t audit_ring_waiting(struct audit_ring *r) {
    pthread_mutex_lock(&r->lock);
    size_t n = (size_t)(r->head - r->tail);
    pthread_mutex_unlock(&r->lock);
    return n;
}

uint64_t audit_ring_dropped(struct audit_ring *r) {
    pthread_mutex_lock(&r->lock);
    uint64_t n = r->dropped;
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* -- the thread -- */

/* Opened for reading as well, a FIFO needs no reader, now or later. */
static int ring_open_file(const char *path) {
    struct stat st;
    bool fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    int flags = fifo ? O_RDWR : O_WRONLY | O_CREAT;
    int fd = open(path, flags | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    return fd < 0 ? -errno : fd;
}

static struct timespec ring_deadline(unsigned ms) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += ms / 1000;
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

static void ring_wait_for_retry(struct audit_ring *r) {
    struct timespec end = ring_deadline(AUDIT_RETRY_MS);
    while (!r->stop && !r->reopen && pthread_cond_timedwait(&r->news, &r->lock, &end) == 0)
        ;
}

static void ring_begin_call(struct audit_ring *r) {
    r->calling = true;
    pthread_mutex_unlock(&r->lock);
}

static void ring_end_call(struct audit_ring *r) {
    pthread_mutex_lock(&r->lock);
    r->calling = false;
    r->calls++;
}

/* Writes a part of the ring, without the lock. */
static void ring_write(struct audit_ring *r) {
    size_t at = r->tail % AUDIT_RING;
    size_t n = MIN((size_t)(r->head - r->tail), AUDIT_RING - at);
    ring_begin_call(r);
    ssize_t w = write(r->fd, r->data + at, MIN(n, RING_WRITE_MAX));
    int error = w < 0 ? errno : w == 0 ? EIO : 0;
    if (error == 0)
        r->torn = r->data[at + (size_t)w - 1] != '\n';
    if (error != 0 && error != EINTR && !r->failing)
        log_error("cannot write the audit log %s: %s", r->path, err_os_text(error));
    else if (error == 0 && r->failing)
        log_info("the audit log %s is written again", r->path);
    ring_end_call(r);
    if (error == 0)
        r->tail += (uint64_t)w;
    if (error == EINTR)
        return;
    r->failing = error != 0;
    if (r->failing)
        ring_wait_for_retry(r);
}

/* Skips the rest of a line that began in the old file. */
static void ring_skip_torn(struct audit_ring *r) {
    while (r->tail < r->head && r->data[r->tail++ % AUDIT_RING] != '\n')
        ;
    r->torn = false;
    r->dropped++;
}

static void ring_switch_file(struct audit_ring *r) {
    r->reopen = false;
    ring_begin_call(r);
    int fd = ring_open_file(r->path);
    if (fd < 0)
        log_error("cannot open the audit log %s again: %s", r->path, err_os_text(-fd));
    else
        close(r->fd);
    ring_end_call(r);
    if (fd < 0)
        return;
    r->fd = fd;
    r->failing = false;
    if (r->torn)
        ring_skip_torn(r);
}

static void ring_free(struct audit_ring *r) {
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->news);
    pthread_cond_destroy(&r->ended);
    util_close_fd(&r->fd);
    free((char *)r->path);
    free(r);
}

static void *ring_main(void *arg) {
    struct audit_ring *r = arg;
    pthread_mutex_lock(&r->lock);
    r->tid = gettid();
    for (;;) {
        if (r->reopen && (!r->torn || r->failing))
            ring_switch_file(r);
        ring_report_drops(r);
        if (r->stop && (r->failing || r->head == r->tail))
            break;
        if (r->head > r->tail)
            ring_write(r);
        else
            pthread_cond_wait(&r->news, &r->lock);
    }
    r->finished = true;
    bool abandoned = r->abandoned;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    if (abandoned)
        ring_free(r);
    return NULL;
}

/* -- life -- */

static int ring_start(struct audit_ring *r) {
    pthread_attr_t attr;
    sigset_t all, old;
    int e = pthread_attr_init(&attr);
    if (e != 0)
        return e;
    pthread_attr_setstacksize(&attr, RING_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = pthread_create(&r->thread, &attr, ring_main, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

static struct audit_ring *ring_alloc(const char *path, int fd) {
    struct audit_ring *r = calloc(1, sizeof *r);
    char *copy = strdup(path);
    if (r == NULL || copy == NULL) {
        free(r);
        free(copy);
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->news, &monotonic);
    pthread_cond_init(&r->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    r->path = copy;
    r->fd = fd;
    return r;
}

struct audit_ring *audit_ring_new(const char *path, struct err *e) {
    _cleanup_close_ int fd = ring_open_file(path);
    if (fd < 0) {
        err_set(e, ERR_INTERNAL, "cannot open the audit log %s: %s (os error %d)", path,
                err_os_text(-fd), -fd);
        return NULL;
    }
    struct audit_ring *r = ring_alloc(path, fd);
    if (r == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    steal_fd(&fd);
    int error = ring_start(r);
    if (error != 0) {
        ring_free(r);
        err_set(e, ERR_INTERNAL, "cannot start the thread of the audit log: %s (os error %d)",
                err_os_text(error), error);
        return NULL;
    }
    return r;
}

/* Waits for AUDIT_CLOSE_MS; false when the thread slept in one system call all the time. */
static bool ring_wait_for_end(struct audit_ring *r) {
    struct timespec end = ring_deadline(AUDIT_CLOSE_MS);
    bool calling = r->calling;
    uint64_t calls = r->calls;
    while (!r->finished && pthread_cond_timedwait(&r->ended, &r->lock, &end) == 0)
        ;
    if (r->finished || !calling || r->calls != calls)
        return true;
    pid_t tid = r->tid;
    pthread_mutex_unlock(&r->lock);
    bool runs = hunt_thread_state(tid) == 'R'; /* or would, on a machine that is less busy */
    pthread_mutex_lock(&r->lock);
    return runs || r->finished || r->calls != calls;
}

void audit_ring_close(struct audit_ring *r) {
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->news);
    for (unsigned i = 0; i < AUDIT_CLOSE_ROUNDS && !r->finished && ring_wait_for_end(r); i++)
        ;
    bool finished = r->finished;
    r->abandoned = !finished;
    uint64_t lost = ring_count_rest(r) + r->dropped - r->reported;
    pthread_t thread = r->thread;
    pthread_mutex_unlock(&r->lock);
    if (lost > 0)
        log_error("%" PRIu64 " lines of the audit log were lost", lost);
    if (!finished) { /* the thread hangs in a system call and ends with the program */
        log_error("the audit log does not answer: not waiting for it");
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    ring_free(r);
}
