#include "files/fs_helper.h"

#include "base/fdpass.h"
#include "files/files_host.h"
#include "confine/fs_helper_main.h"
#include "confine/fs_places.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define HELPER_ARENA_MAX (8u << 20) /* of a decoded plan */

struct fs_helper {
    struct list node;     /* in session->helpers; unlinked: it is ending */
    struct list all_node; /* in host->helpers */
    struct files_host *host;
    struct session *session; /* NULL: it is ending */
    struct buf key;          /* the encoded plan */
    struct arena arena;
    struct plan plan;
    unsigned refs; /* calls that use it */
    struct child child;
    struct placeholders *placeholders;
    bool started;
    struct loop_timer idle;

    int (*report)(int channel, struct err *e);
    _Atomic int channel; /* set once, when it is started */
    atomic_bool broken;  /* it is useless */
    atomic_bool retired; /* it ended to make room */
    atomic_bool looked;  /* `places` is set: it may be started */

    pthread_mutex_t lock;     /* held by a thread for an exchange; guards what follows */
    bool running;             /* it has reported */
    struct fs_places *places; /* as seen at its start; NULL: not looked yet */
};

/* -- life -- */

static void helper_free(struct fs_helper *h) {
    loop_timer_del(h->host->loop, &h->idle);
    sandbox_host_list_free(h->placeholders);
    if (h->channel >= 0)
        close(h->channel);
    pthread_mutex_destroy(&h->lock);
    buf_fini(&h->key);
    arena_fini(&h->arena);
    fs_places_free(h->places);
    free(h);
}

static void helper_free_unused(struct fs_helper *h) {
    if (h->refs == 0 && h->session == NULL && (!h->started || h->child.gone))
        helper_free(h);
}

/* Takes it out of its session and kills it. */
static void helper_end(struct fs_helper *h) {
    if (h->session == NULL)
        return;
    list_remove(&h->node);
    list_remove(&h->all_node);
    h->session->helper_count--;
    h->host->helper_count--;
    h->session = NULL;
    loop_timer_del(h->host->loop, &h->idle);
    if (h->channel >= 0)
        shutdown(h->channel, SHUT_RDWR); /* wakes the thread that waits for an answer */
    if (h->started)
        child_kill(&h->child, false);
    helper_free_unused(h);
}

void fs_helper_end_all(struct session *s) {
    for (struct list *n; (n = list_first(&s->helpers)) != NULL;)
        helper_end(list_entry(n, struct fs_helper, node));
}

static void helper_on_idle(struct loop_timer *t) {
    struct fs_helper *h = container_of(t, struct fs_helper, idle);
    if (h->refs == 0)
        helper_end(h);
}

static void helper_on_change(struct child *c) {
    struct fs_helper *h = container_of(c, struct fs_helper, child);
    struct files_host *host = h->host;
    if (c->gone) {
        host->helpers_alive--;
        h->refs++;
        helper_end(h);
        h->refs--;
        helper_free_unused(h);
        host->processes->hooks->died(host->processes);
    } else if (c->seen == SUPERVISOR_EXITED || c->seen == SUPERVISOR_FAILED) {
        helper_end(h);
    }
}

void fs_helper_unref(struct fs_helper *h) {
    h->refs--;
    if (h->session == NULL)
        helper_free_unused(h);
    else if (h->refs == 0 && (h->broken || loop_timer_set(h->host->loop, &h->idle,
                                                          FS_HELPER_IDLE_MS * LOOP_MS) < 0))
        helper_end(h);
}

/* -- the helpers of a session -- */

static struct fs_helper *helper_use(struct fs_helper *h) {
    h->refs++;
    loop_timer_del(h->host->loop, &h->idle);
    list_remove(&h->node);
    list_append(&h->session->helpers, &h->node);
    list_remove(&h->all_node);
    list_append(&h->host->helpers, &h->all_node);
    return h;
}

/* Ends it unless it is making a call; threads about to ask it will renew it. */
static bool helper_retire(struct fs_helper *h) {
    if (pthread_mutex_trylock(&h->lock) != 0)
        return false;
    h->retired = true;
    pthread_mutex_unlock(&h->lock);
    helper_end(h);
    return true;
}

/* Ends the least recently used one without references, or else without a running call. */
static bool helper_retire_one(struct list *helpers, size_t node_offset) {
    for (int used = 0; used < 2; used++) {
        list_for_each(n, helpers) {
            struct fs_helper *h = (struct fs_helper *)((char *)n - node_offset);
            if ((used || h->refs == 0) && helper_retire(h))
                return true;
        }
    }
    return false;
}

/* Makes room for one more. False: all are making calls. */
static bool helper_make_room(struct session *s) {
    struct files_host *host = s->host->files;
    if (s->helper_count >= FS_HELPERS_MAX &&
        !helper_retire_one(&s->helpers, offsetof(struct fs_helper, node)))
        return false;
    return host->helper_count < FS_HELPERS_TOTAL ||
           helper_retire_one(&host->helpers, offsetof(struct fs_helper, all_node));
}

static struct fs_helper *helper_new(struct session *s, struct str key, struct err *e) {
    struct fs_helper *h = calloc(1, sizeof *h);
    if (h == NULL) {
        fs_fail(e, ENOMEM);
        return NULL;
    }
    h->host = s->host->files;
    h->channel = -1;
    h->child.changed = helper_on_change;
    h->idle.fn = helper_on_idle;
    h->arena = ARENA_INIT(HELPER_ARENA_MAX);
    h->key = BUF_INIT(PLAN_BYTES_MAX);
    pthread_mutex_init(&h->lock, NULL);
    bool ready = buf_put(&h->key, key.p, key.n) == 0 &&
                 plan_decode(buf_str(&h->key), &h->arena, &h->plan) == 0;
    if (!ready || !helper_make_room(s)) {
        helper_free(h);
        fs_fail(e, ready ? EAGAIN : ENOMEM);
        return NULL;
    }
    h->session = s;
    s->helper_count++;
    h->host->helper_count++;
    list_append(&s->helpers, &h->node);
    list_append(&h->host->helpers, &h->all_node);
    return helper_use(h);
}

static struct fs_helper *helper_find(struct session *s, struct str key, struct err *e) {
    list_for_each(n, &s->helpers) {
        struct fs_helper *h = list_entry(n, struct fs_helper, node);
        if (!h->broken && str_eq(buf_str(&h->key), key))
            return helper_use(h);
    }
    return helper_new(s, key, e);
}

struct fs_helper *fs_helper_get(struct session *s, const struct plan *p, struct err *e) {
    _cleanup_buf_ struct buf key = BUF_INIT(PLAN_BYTES_MAX);
    int r = plan_encode(p, &key);
    if (r == 0)
        return helper_find(s, buf_str(&key), e);
    err_os(e, ERR_INTERNAL, r == -ENOBUFS ? E2BIG : -r);
    return NULL;
}

struct fs_helper *fs_helper_renew(struct session *s, struct fs_helper *h, struct err *e) {
    helper_end(h);
    return helper_find(s, buf_str(&h->key), e); /* another call may have renewed it already */
}

bool fs_helper_is_useless(const struct fs_helper *h) {
    return h->broken || h->retired || h->session == NULL;
}

int fs_helper_start(struct fs_helper *h, struct err *e) {
    struct sandbox_launch launch = SANDBOX_LAUNCH_INIT;
    struct child_spec spec;
    struct child_fds fds = {-1, -1, -1};
    if (h->started || !h->looked)
        return 0;
    if (h->host->helpers_alive >= FS_HELPERS_ALIVE)
        return fs_fail(e, EAGAIN);
    int r = sandbox_host_prepare_helper(&h->host->processes->sandbox, &h->plan, &spec, &launch, e);
    if (r == 0 &&
        (r = child_start(&h->host->processes->procs.children, &h->child, &spec, &fds)) < 0)
        err_os(e, ERR_INTERNAL, -r);
    if (r == 0) {
        h->started = true;
        h->host->helpers_alive++;
        h->report = launch.child.report;
        h->placeholders = steal_ptr(&launch.child.placeholders);
        h->channel = steal_fd(&launch.child.channel);
    }
    util_close_fd(&fds.out);
    util_close_fd(&fds.err);
    sandbox_host_launch_fini(&launch);
    return r;
}

/* -- calls -- */

static int helper_fail(struct fs_helper *h, const char *detail, struct err *e) {
    h->broken = true;
    err_set(e, ERR_INTERNAL, "fs sandbox helper failed: %s", detail);
    return -EIO;
}

int fs_helper_distrust(struct fs_helper *h, struct err *e) {
    return helper_fail(h, "a bad answer", e);
}

/* Waits until it reports that it runs. 0 or -errno with e set. */
static int helper_await(struct fs_helper *h, struct err *e) {
    struct pollfd p = {.fd = h->channel, .events = POLLIN};
    int r = 0;
    while (r == 0 && !h->running) {
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            return helper_fail(h, strerror(errno), e);
        r = h->report(h->channel, e);
        h->running = r > 0;
    }
    if (r < 0)
        h->broken = true;
    return MIN(r, 0);
}

/* Copies the contents of a memfd to the reply. */
static int helper_read_memfd(struct fs_helper *h, int fd, struct fs_helper_reply *reply,
                             struct err *e) {
    struct stat st;
    if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 || st.st_size < 0 ||
        st.st_size > FS_RESULT_MAX)
        return fs_helper_distrust(h, e);
    if (buf_reserve(&reply->bytes, (size_t)st.st_size) < 0)
        return fs_fail(e, ENOMEM);
    ssize_t n = pread(fd, reply->bytes.p, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return helper_fail(h, "a short answer", e);
    reply->bytes.len = (size_t)n;
    return 0;
}

static int helper_take(struct fs_helper *h, const struct fs_call_answer *a, int *fd,
                       struct fs_helper_reply *reply, struct err *e) {
    switch (a->kind) {
    case FS_CALL_ERROR: err_about(e, a->code, "", a->text, ""); return -a->error;
    case FS_CALL_INLINE:
        return buf_put(&reply->bytes, a->text.p, a->text.n) < 0 ? fs_fail(e, ENOMEM) : 0;
    case FS_CALL_MEMFD: return helper_read_memfd(h, *fd, reply, e);
    case FS_CALL_FILE: break;
    }
    reply->fd = steal_fd(fd);
    return 0;
}

static int helper_exchange(struct fs_helper *h, struct str call, int data,
                           struct fs_helper_reply *reply, struct err *e) {
    const size_t most = sizeof(struct fs_call_head) + FS_CALL_INLINE_MAX;
    _cleanup_free_ char *packet = malloc(most); /* before sending: an answer will come */
    _cleanup_close_ int fd = -1;
    struct fs_call_answer answer;
    if (packet == NULL)
        return fs_fail(e, ENOMEM);
    int sent = fdpass_send(h->channel, call, (struct str){"", 0}, data);
    ssize_t n = sent < 0 ? sent : fdpass_receive(h->channel, packet, most, 0, &fd);
    if (sent < 0) {
        h->broken = true; /* it ended before it saw this call */
        return FS_HELPER_RENEW;
    }
    if (n == -EMFILE)
        return fs_fail(e, EMFILE);
    if (n == 0 || n == -ECONNRESET)
        return helper_fail(h, "it has ended", e);
    if (n < 0 || fs_call_answer_decode((struct str){packet, (size_t)n}, fd >= 0, &answer) < 0)
        return fs_helper_distrust(h, e);
    return helper_take(h, &answer, &fd, reply, e);
}

/* Needs the lock. */
static int helper_call(struct fs_helper *h, struct str call, int data,
                       struct fs_helper_reply *reply, struct err *e) {
    if (h->retired)
        return FS_HELPER_RETIRED;
    bool starting = h->channel >= 0 && !h->broken;
    int r = starting ? helper_await(h, e) : 0; /* what changes while it starts counts too */
    if (r < 0)
        return r;
    struct fs_places *now = fs_places_look(&h->plan, h->places == NULL);
    if (now == NULL)
        return fs_fail(e, ENOMEM);
    if (h->places == NULL)
        h->places = steal_ptr(&now);
    else if (!fs_places_same(h->places, now))
        h->broken = true;
    fs_places_free(now);
    h->looked = true;
    if (h->broken)
        return FS_HELPER_RENEW;
    if (h->channel < 0)
        return FS_HELPER_START;
    return helper_exchange(h, call, data, reply, e);
}

int fs_helper_call(struct fs_helper *h, struct str call, int data, struct fs_helper_reply *reply,
                   struct err *e) {
    pthread_mutex_lock(&h->lock);
    int r = helper_call(h, call, data, reply, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}
