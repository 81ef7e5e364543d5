#include "web/web_program.h"

#include "base/log.h"
#include "net/conn.h"
#include "web/web_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

/* -- life -- */

static void program_free(struct web_program *p) {
    loop_timer_del(p->host->loop, &p->idle);
    loop_task_del(&p->read_task);
    http_wire_fini(&p->in);
    http_slots_fini(&p->slots);
    sendq_fini(&p->out);
    free(p);
}

static void program_close(struct web_program *p) {
    loop_io_del(p->host->loop, &p->io);
    util_close_fd(&p->io.fd);
    loop_task_del(&p->read_task);
}

void web_program_end(struct web_program *p) {
    if (p == NULL || p->conn == NULL)
        return;
    p->conn = NULL;
    list_remove(&p->node);
    p->host->count--;
    loop_timer_del(p->host->loop, &p->idle);
    program_close(p);
    child_kill(&p->child, false);
}

/* It ended without being asked: its requests fail. */
static void program_lost(struct web_program *p, const char *why) {
    struct web_conn *conn = p->conn;
    if (conn == NULL)
        return;
    web_program_end(p);
    web_conn_lost(conn, why);
}

static void program_on_change(struct child *c) {
    struct web_program *p = container_of(c, struct web_program, child);
    struct web_host *host = p->host;
    char why[128];
    if (c->gone) {
        host->alive--;
        program_lost(p, WEB_ENDED);
        program_free(p);
        host->processes->hooks->died(host->processes);
    } else if (c->seen == SUPERVISOR_FAILED) {
        snprintf(why, sizeof why, "the HTTP program cannot be started: %s (os error %d)",
                 err_os_text(c->sup->error), c->sup->error);
        program_lost(p, why);
    }
}

static void program_on_idle(struct loop_timer *t) {
    struct web_program *p = container_of(t, struct web_program, idle);
    struct web_conn *conn = p->conn;
    web_program_end(p);
    web_conn_forget(conn);
}

/* -- the socket -- */

static void program_want(struct web_program *p) {
    uint32_t in = web_conn_is_held(p->conn) ? 0 : EPOLLIN;
    loop_io_want(p->host->loop, &p->io, in | (p->out.bytes > 0 ? EPOLLOUT : 0u));
}

static int program_greet(struct web_program *p, const struct http_wire_frame *f) {
    struct str version;
    if (p->greeted || http_wire_get_hello(f->payload, &version) < 0)
        return -EPROTO;
    p->greeted = true;
    return str_eqz(version, EXEC_SERVER_VERSION) ? 0 : -ESTALE;
}

/* The next slot is like a DATA frame. */
static int program_slot(struct web_program *p, const struct http_wire_frame *f) {
    char told[HTTP_WIRE_HEAD + sizeof(uint32_t)];
    const uint32_t n = HTTP_SLOTS_TELL;
    struct http_wire_frame data = {HTTP_WIRE_DATA, f->id, {http_slots_at(&p->slots), 0}};
    if (http_wire_get_count(f->payload, HTTP_SLOTS_EACH, &data.payload.n) < 0)
        return -EPROTO;
    int r = web_conn_frame(p->conn, &data);
    http_slots_pass(&p->slots);
    if (p->conn == NULL || r < 0 || p->slots.used < HTTP_SLOTS_TELL)
        return r;
    p->slots.used = 0;
    http_wire_put_head(told, HTTP_WIRE_TAKEN, 0, sizeof n);
    memcpy(told + HTTP_WIRE_HEAD, &n, sizeof n);
    return web_program_send(p, (struct str){told, sizeof told});
}

static int program_frame(struct web_program *p, const struct http_wire_frame *f) {
    if (f->type == HTTP_WIRE_HELLO)
        return program_greet(p, f);
    if (!p->greeted)
        return -EPROTO;
    return f->type == HTTP_WIRE_SLOT ? program_slot(p, f) : web_conn_frame(p->conn, f);
}

/* Handles what was read, until the connection is slow. */
static void program_handle(struct web_program *p) {
    struct http_wire_frame f;
    int r = 0;
    while (!web_conn_is_held(p->conn) && (r = http_wire_next(&p->in, &f)) > 0) {
        r = program_frame(p, &f);
        if (p->conn == NULL) /* an answer ended the connection */
            return;
        if (r < 0)
            break;
    }
    if (r == -ESTALE)
        program_lost(p, "the HTTP program is not of the server's version");
    else if (r < 0)
        program_lost(p, "the HTTP program sent something wrong");
    else
        program_want(p);
}

static void program_on_task(struct loop_task *t) {
    program_handle(container_of(t, struct web_program, read_task));
}

static void program_read(struct web_program *p) {
    ssize_t n = http_wire_fill(&p->in, p->io.fd);
    if (n == -EAGAIN)
        return;
    if (n <= 0)
        program_lost(p, WEB_ENDED);
    else
        program_handle(p);
}

static int program_flush(struct web_program *p) {
    int r = sendq_flush(&p->out, p->io.fd);
    if (r == 0)
        program_want(p);
    return r;
}

static void program_on_io(struct loop_io *io, uint32_t events) {
    struct web_program *p = container_of(io, struct web_program, io);
    if ((events & EPOLLOUT) && program_flush(p) < 0) {
        program_lost(p, WEB_ENDED);
        return;
    }
    if (!web_conn_is_held(p->conn))
        program_read(p);
    else if (events & (EPOLLHUP | EPOLLERR)) /* it says so again and again */
        loop_io_del(p->host->loop, &p->io);
}

void web_program_resume(struct web_program *p) {
    if (!p->io.added && loop_io_add(p->host->loop, &p->io, EPOLLIN) < 0) {
        program_lost(p, WEB_ENDED);
        return;
    }
    loop_defer(p->host->loop, &p->read_task);
}

/* What the socket takes now needs no wait for it; a fault shows when it is reported. */
static void program_push(struct web_program *p) {
    (void)!sendq_flush(&p->out, p->io.fd);
    program_want(p);
}

int web_program_send(struct web_program *p, struct str frames) {
    char *dst = sendq_reserve(&p->out, frames.n);
    if (dst == NULL)
        return -ENOMEM;
    memcpy(dst, frames.p, frames.n);
    sendq_commit(&p->out, frames.n);
    program_push(p);
    return 0;
}

int web_program_send_body(struct web_program *p, uint32_t id, struct str body) {
    while (body.n > 0) {
        size_t n = MIN(body.n, (size_t)HTTP_WIRE_DATA_MAX);
        char *dst = sendq_reserve(&p->out, HTTP_WIRE_HEAD + n);
        if (dst == NULL)
            return -ENOMEM;
        http_wire_put_head(dst, HTTP_WIRE_BODY, id, n);
        memcpy(dst + HTTP_WIRE_HEAD, body.p, n);
        sendq_commit(&p->out, HTTP_WIRE_HEAD + n);
        body.p += n;
        body.n -= n;
    }
    program_push(p);
    return 0;
}

void web_program_idle(struct web_program *p, bool idle) {
    list_remove(&p->node);
    list_append(&p->host->programs, &p->node);
    if (!idle)
        loop_timer_del(p->host->loop, &p->idle);
    else if (loop_timer_set(p->host->loop, &p->idle, WEB_IDLE_MS * LOOP_MS) < 0)
        log_warn("no memory for a timer: an HTTP program stays");
}

/* -- starting -- */

/* Ends an idle program of another connection. False: all have requests. */
static bool program_make_room(struct web_host *h) {
    if (h->count < WEB_PROGRAMS_MAX)
        return true;
    list_for_each(n, &h->programs) {
        struct web_program *p = list_entry(n, struct web_program, node);
        if (p->idle.pos == 0)
            continue;
        program_on_idle(&p->idle);
        return true;
    }
    return false;
}

/* Starts the process with its end of the socket as descriptor 3, the slots as 4. 0 or -errno. */
static int program_start(struct web_program *p, int theirs, int slots) {
    static char name[] = WEB_PROGRAM, *argv[] = {name, NULL};
    struct child_launch launch = {
        .program = p->host->program, .handed = {theirs, slots, -1, -1, -1, -1}, .channel = -1};
    struct child_spec spec = {.program = name,
                              .argv = argv,
                              .envp = p->host->env,
                              .cwd = "/",
                              .limits = {.cgroup_fd = -1},
                              .launch = &launch};
    struct child_fds fds = {-1, -1, -1};
    int r = child_start(&p->host->processes->procs.children, &p->child, &spec, &fds);
    util_close_fd(&fds.out); /* it says nothing there */
    util_close_fd(&fds.err);
    return r;
}

static int program_begin(struct web_program *p) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    _cleanup_close_ int theirs = pair[1];
    _cleanup_close_ int slots = http_slots_make(&p->slots);
    if (slots < 0)
        return slots;
    p->io.fd = pair[0];
    int r = fcntl(p->io.fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    if (r == 0)
        r = loop_io_add(p->host->loop, &p->io, EPOLLIN);
    if (r == 0)
        r = program_start(p, theirs, slots);
    return r;
}

struct web_program *web_program_new(struct web_conn *conn, struct err *e) {
    struct web_host *h = conn->host;
    if (!program_make_room(h)) {
        err_set(e, ERR_INTERNAL, "http/request failed: all %d HTTP programs are in use",
                WEB_PROGRAMS_MAX);
        return NULL;
    }
    struct web_program *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    p->host = h;
    p->child.changed = program_on_change;
    p->io = (struct loop_io){.fd = -1, .fn = program_on_io};
    p->idle.fn = program_on_idle;
    p->read_task.fn = program_on_task;
    http_wire_init(&p->in);
    sendq_init(&p->out, &h->processes->conns->pool);
    int r = program_begin(p);
    if (r < 0) {
        program_close(p);
        program_free(p);
        err_set(e, ERR_INTERNAL,
                "http/request failed: the HTTP program cannot be started: %s (os error %d)",
                err_os_text(-r), -r);
        return NULL;
    }
    p->conn = conn;
    h->count++;
    h->alive++;
    list_append(&h->programs, &p->node);
    return p;
}
