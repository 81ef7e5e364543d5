#include "client/engine.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#define CLIENT_LOG_MAX 1024 /* bytes of a line for the log */

static void client_on_wake(struct loop_io *io, uint32_t events);
static void client_on_clock(struct loop_io *io, uint32_t events);
static void client_on_state_notice(struct notice *n);
static void client_on_log_notice(struct notice *n);

int client_init(struct xs_client *c) {
    list_init(&c->notices);
    list_init(&c->ops);
    list_init(&c->parts);
    notice_init(&c->state_notice, client_on_state_notice);
    notice_init(&c->log_notice, client_on_log_notice);
    c->clock_at = UINT64_MAX;
    c->wake = (struct loop_io){.fd = -1, .fn = client_on_wake};
    c->clock = (struct loop_io){.fd = -1, .fn = client_on_clock};
    c->loop.epfd = -1;
    int r = loop_init(&c->loop, NULL);
    if (r < 0)
        return r;
    c->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake.fd < 0)
        return -errno;
    c->clock.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->clock.fd < 0)
        return -errno;
    r = loop_io_add(&c->loop, &c->wake, EPOLLIN);
    return r < 0 ? r : loop_io_add(&c->loop, &c->clock, EPOLLIN);
}

void client_fini(struct xs_client *c) {
    for (; c->log_count > 0; c->log_count--)
        free(c->logs[c->log_at++ % ENGINE_LOGS].line);
    loop_io_del(&c->loop, &c->wake);
    loop_io_del(&c->loop, &c->clock);
    util_close_fd(&c->wake.fd);
    util_close_fd(&c->clock.fd);
    loop_fini(&c->loop);
    xs_error_fini(&c->error);
    xs_error_fini(&c->failure);
}

/* -- accessors -- */

struct loop *client_loop(struct xs_client *c) {
    return &c->loop;
}

const struct xs_options *client_options(const struct xs_client *c) {
    return c->options;
}

struct processes **client_processes(struct xs_client *c) {
    return &c->processes;
}

struct files **client_files(struct xs_client *c) {
    return &c->files;
}

void client_add_part(struct xs_client *c, struct client_part *p) {
    list_append(&c->parts, &p->node);
}

uint64_t client_closed_retention_ms(const struct xs_client *c) {
    return (uint64_t)c->info.closed_retention_ms;
}

const struct json_node *client_capability(const struct xs_client *c, const char *name) {
    return c->capabilities != NULL ? json_get(c->capabilities, name) : NULL;
}

bool client_can(const struct xs_client *c, const char *capability) {
    const struct json_node *v = client_capability(c, capability);
    return v != NULL && v->type != JSON_NULL && v->type != JSON_FALSE &&
           (v->type != JSON_ARRAY || v->count > 0);
}

int client_error(struct xs_client *c, int code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return xs_error_set(&c->error, code, "%s", text);
}

uint64_t client_boottime_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void client_random(void *p, size_t n) {
    randombytes_buf(p, n);
}

/* -- what is awaited -- */

bool client_awaits(const struct xs_client *c) {
    return c->calls > c->patient || c->blocked > 0;
}

void client_balance(struct xs_client *c) {
    link_await(&c->link, c->calls > 0 || c->live > 0);
    link_read(&c->link, c->holds <= 0 || client_awaits(c) || c->state != XS_STATE_READY);
}

void client_live(struct xs_client *c, int change) {
    c->live += change;
    client_balance(c);
}

void client_hold(struct xs_client *c, int change) {
    c->holds += change;
    client_balance(c);
}

/* -- turns -- */

void client_enter(struct xs_client *c) {
    if (!c->in_loop)
        c->loop.now = c->loop.clock();
}

/* Tells the caller what has been posted so far. 1: the client is freed. */
static int client_tell(struct xs_client *c) {
    bool gone = false;
    c->gone = &gone; // cppcheck-suppress autoVariables; reset below, unless c is freed
    for (size_t n = c->notice_count; n > 0 && c->notice_count > 0; n--) {
        c->in_callback = true;
        notice_run_one(c);
        if (gone)
            return 1;
        c->in_callback = false;
    }
    c->gone = NULL;
    return 0;
}

static bool client_is_busy(const struct xs_client *c) {
    return c->notice_count > 0 || !list_empty(&c->loop.tasks) || !list_empty(&c->loop.yielded);
}

int client_step(struct xs_client *c, uint64_t wait) {
    c->in_loop = true;
    client_enter(c);
    if (c->pump_task.queued)
        calls_pump(c);
    int r = loop_once(&c->loop, client_is_busy(c) ? 0 : wait);
    c->in_loop = false;
    if (r < 0)
        client_log(c, XS_LOG_ERROR, "epoll: %s", err_os_text(-r));
    return client_tell(c);
}

/* Makes the descriptor readable when there is something to do. */
static void client_set_clock(struct xs_client *c) {
    if (!c->clock_used)
        return;
    uint64_t next = c->loop.timers > 0 ? c->loop.heap[1]->when : UINT64_MAX;
    if (client_is_busy(c))
        next = 1;
    if (next >= c->clock_at)
        return;
    struct itimerspec t = {.it_value = {(time_t)(next / LOOP_SEC), (long)(next % LOOP_SEC)}};
    timerfd_settime(c->clock.fd, TFD_TIMER_ABSTIME, &t, NULL);
    c->clock_at = next;
}

static void client_on_clock(struct loop_io *io, uint32_t events) {
    (void)events;
    struct xs_client *c = container_of(io, struct xs_client, clock);
    uint64_t n;
    if (read(io->fd, &n, sizeof n) > 0)
        c->clock_at = UINT64_MAX;
}

static void client_on_wake(struct loop_io *io, uint32_t events) {
    (void)events;
    struct xs_client *c = container_of(io, struct xs_client, wake);
    uint64_t n;
    if (read(io->fd, &n, sizeof n) > 0)
        c->woken = true;
}

void client_leave(struct xs_client *c) {
    if (c->in_loop || c->in_callback)
        return;
    if (c->pump_task.queued) {
        c->in_loop = true;
        calls_pump(c);
        c->in_loop = false;
    }
    client_set_clock(c);
}

/* -- states and lines for the caller -- */

static void client_on_state_notice(struct notice *n) {
    struct xs_client *c = container_of(n, struct xs_client, state_notice);
    enum xs_state s = c->states[0];
    memmove(c->states, c->states + 1, --c->state_count * sizeof c->states[0]);
    if (c->state_count > 0)
        notice_post(c, n);
    if (c->on_state != NULL)
        c->on_state(c, s, c->on_state_user);
}

void client_set_state(struct xs_client *c, enum xs_state s) {
    if (c->state == s)
        return;
    c->state = s;
    if (c->on_state == NULL)
        return;
    if (c->state_count == ENGINE_STATES)
        c->state_count--;
    c->states[c->state_count++] = s;
    notice_post(c, &c->state_notice);
}

static void client_on_log_notice(struct notice *n) {
    struct xs_client *c = container_of(n, struct xs_client, log_notice);
    struct engine_log log = c->logs[c->log_at++ % ENGINE_LOGS];
    if (--c->log_count > 0)
        notice_post(c, n);
    if (c->on_log != NULL)
        c->on_log(log.level, log.line, c->on_log_user);
    free(log.line);
}

void client_log(struct xs_client *c, int level, const char *fmt, ...) {
    if (c->on_log == NULL || c->log_count == ENGINE_LOGS)
        return;
    char *line = malloc(CLIENT_LOG_MAX);
    if (line == NULL)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, CLIENT_LOG_MAX, fmt, ap);
    va_end(ap);
    xs_error_tidy(line);
    c->logs[(c->log_at + c->log_count++) % ENGINE_LOGS] = (struct engine_log){level, line};
    notice_post(c, &c->log_notice);
}

/* -- the end -- */

void client_stop(struct xs_client *c, enum xs_state s, struct xs_error *e) {
    if (c->state == XS_STATE_FAILED || c->state == XS_STATE_CLOSED)
        return;
    xs_error_move(&c->failure, e);
    link_drop(&c->link);
    resume_fini(c);
    client_set_state(c, s);
    client_log(c, s == XS_STATE_FAILED ? XS_LOG_ERROR : XS_LOG_INFO, "%s",
               xs_error_text(&c->failure));
    list_for_each(n, &c->parts) {
        struct client_part *p = list_entry(n, struct client_part, node);
        if (p->failed != NULL)
            p->failed(p, &c->failure);
    }
    calls_end(c, &c->failure);
    struct op *ending = steal_ptr(&c->ending);
    if (ending != NULL && s == XS_STATE_CLOSED)
        op_finish(ending, 0);
    else if (ending != NULL)
        op_finish(ending, xs_error_copy(&ending->error, &c->failure));
    struct op *connecting = steal_ptr(&c->connect);
    if (connecting != NULL)
        op_finish(connecting, xs_error_copy(&connecting->error, &c->failure));
}
