#include "sandbox/host/sandbox_host.h"

#include "sandbox/host/launcher.h"
#include "sandbox/host/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

void sandbox_host_init(struct sandbox_host *h, bool inherit_pids, const char *home) {
    *h = (struct sandbox_host){.inherit_pids = inherit_pids, .home = home, .network = -1};
    h->self = launcher_open_self();
}

void sandbox_host_fini(struct sandbox_host *h) {
    util_close_fd(&h->self);
    util_close_fd(&h->network);
}

/* -- what the host can enforce -- */

static uint64_t sandbox_now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + 1;
}

/* Whether another probe may find more: shortages come and go. */
static bool sandbox_is_due(const struct sandbox_host *h) {
    int best = backend_best(&h->backend);
    if (h->self < 0 || best == LAUNCH_USERNS || best == LAUNCH_ROOT)
        return false;
    return h->probed == 0 ||
           sandbox_now_ms() - h->probed >= (best < 0 ? SANDBOX_PROBE_MS : SANDBOX_AGAIN_MS);
}

const struct backend *sandbox_host_backend(struct sandbox_host *h) {
    if (sandbox_is_due(h)) {
        backend_probe(h->self, false, &h->backend);
        h->probed = sandbox_now_ms();
    }
    return &h->backend;
}

bool sandbox_host_is_full(struct sandbox_host *h) {
    int best = backend_best(sandbox_host_backend(h));
    return best == LAUNCH_USERNS || best == LAUNCH_ROOT;
}

/* -- placeholder directories -- */

static int sandbox_list_new(struct placeholders **out) {
    _cleanup_close_ int fd = memfd_create("sandbox-directories", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, PLACEHOLDERS_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    void *p = mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *out = p;
#ifdef EXEC_SERVER_STEPS
    const char *step = getenv("EXEC_SERVER_STEP");
    (*out)->step = step_wanted = step != NULL ? atoi(step) : STEP_NONE;
#endif
    return steal_fd(&fd);
}

void sandbox_host_list_free(struct placeholders *l) {
    if (l == NULL)
        return;
    munmap(l, PLACEHOLDERS_BYTES);
}

/* -- reports -- */

/* Implements child_launch.report. */
static int sandbox_report(int channel, struct err *e) {
    const size_t head = offsetof(struct launch_report, text);
    struct launch_report r;
    ssize_t got = recv(channel, &r, sizeof r, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    size_t n = (size_t)MAX(got, (ssize_t)0);
    if (n >= head && r.kind == LAUNCH_RUNNING)
        return 1;
    if (n > head && r.kind == LAUNCH_FAILED) {
        err_about(e, ERR_INTERNAL, "", (struct str){r.text, n - head}, "");
        return r.error > 0 ? -r.error : -EINVAL;
    }
    err_set(e, ERR_INTERNAL, "sandbox: the launcher exited before reporting a result");
    return -EIO;
}

/* Implements child_launch.ended. */
static int sandbox_ended(int channel, struct child_end *end) {
    struct launch_outcome e;
    ssize_t got = recv(channel, &e, sizeof e, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != sizeof e || e.kind != LAUNCH_ENDED)
        return -EIO;
    *end = (struct child_end){e.status, e.usage, e.peak_known};
    return 1;
}

/* -- preparing a launch -- */

#define SANDBOX_LIMITS 3

/* The resource limits that the launcher sets last; the supervisor sets the others. */
static size_t sandbox_limits(const struct limits_steps *s, struct rlimit nofile,
                             struct launch_limit out[SANDBOX_LIMITS]) {
    const struct rlimit *files = s->set_open_files ? &s->open_files : &nofile;
    size_t n = 0;
    out[n++] = (struct launch_limit){RLIMIT_NOFILE, files->rlim_cur, files->rlim_max};
    if (s->set_pids)
        out[n++] = (struct launch_limit){RLIMIT_NPROC, s->pids.rlim_cur, s->pids.rlim_max};
    if (s->set_memory)
        out[n++] = (struct launch_limit){RLIMIT_AS, s->memory.rlim_cur, s->memory.rlim_max};
    return n;
}

/* A descriptor of the network namespace that all sandboxes without a network share, or -1. */
static int sandbox_network(struct sandbox_host *h, const struct launch_request *q) {
    if (!q->plan.confine_files || q->plan.network != PLAN_NET_RESTRICTED)
        return -1;
    if (!h->network_tried)
        h->network = backend_network(h->self, q->backend);
    h->network_tried = true;
    return h->network < 0 ? -1 : fcntl(h->network, F_DUPFD_CLOEXEC, 0);
}

/* Opens the launcher's descriptors and our end of the channel. */
static int sandbox_open(struct sandbox_host *h, const struct launch_request *q,
                        struct sandbox_launch *l) {
    struct child_launch *s = &l->child;
    int pair[2];
    s->handed[LAUNCH_REQUEST_FD - 3] = launch_request_memfd(q);
    if (s->handed[LAUNCH_REQUEST_FD - 3] < 0)
        return s->handed[LAUNCH_REQUEST_FD - 3];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    s->channel = pair[0];
    s->handed[LAUNCH_CONTROL_FD - 3] = pair[1];
    s->handed[LAUNCH_NETWORK_FD - 3] = sandbox_network(h, q);
    if (q->plan.proxy_ports > 0) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
            return -errno;
        l->proxy = pair[0];
        s->handed[LAUNCH_NETWORK_FD - 3] = pair[1];
    }
    s->handed[LAUNCH_PLACEHOLDERS_FD - 3] = sandbox_list_new(&s->placeholders);
    return MIN(s->handed[LAUNCH_PLACEHOLDERS_FD - 3], 0);
}

/* Replaces the command by the launcher. */
static void sandbox_replace(struct child_spec *spec, const struct sandbox_launch *l) {
    static char *const nothing[] = {NULL};
    spec->program = launcher_argv[0];
    spec->search = NULL;
    spec->argv = launcher_argv;
    spec->envp = nothing;
    spec->cwd = "/";
    spec->launch = &l->child;
}

/* Chooses the backend for the plan; `advice` is room for a text of the request. */
static int sandbox_choose(struct sandbox_host *h, struct launch_request *q,
                          char advice[BACKEND_ADVICE_MAX], struct err *e) {
    const struct backend *b = sandbox_host_backend(h);
    if (h->self < 0)
        return err_set(e, ERR_INTERNAL,
                       "sandbox: own program: %s (os error %d); look at /proc/self/exe and "
                       "vm.memfd_noexec",
                       err_os_text(-h->self), -h->self);
    (void)fchmod(h->self, 0500); /* on older kernels a command can change the mode of a copy */
    int r = backend_choose(b, &q->plan, &q->backend, e);
    q->landlock_max = b->landlock;
    if (r == 0 && q->backend == LAUNCH_LANDLOCK) {
        backend_advise(b, advice);
        q->advice = advice;
    }
    return r;
}

static int sandbox_prepare(struct sandbox_host *h, struct launch_request *q,
                           struct child_spec *spec, struct sandbox_launch *l, struct err *e) {
    char advice[BACKEND_ADVICE_MAX];
    int r = sandbox_choose(h, q, advice, e);
    if (r < 0)
        return r;
    l->child.program = h->self;
    l->child.report = sandbox_report;
    r = sandbox_open(h, q, l);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, r == -ENOBUFS ? E2BIG : -r);
    sandbox_replace(spec, l);
    return 0;
}

/* Copies the descriptors that the command gets beyond 0, 1 and 2. */
static int sandbox_give(const struct child_spec *spec, struct launch_request *q,
                        struct sandbox_launch *l, struct err *e) {
    if (spec->given_count > LAUNCH_GIVEN)
        return err_os(e, ERR_INTERNAL, EMFILE);
    for (unsigned i = 0; i < spec->given_count; i++) {
        int fd = fcntl(spec->given[i].fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return err_os(e, ERR_INTERNAL, errno);
        l->child.handed[LAUNCH_GIVEN_FD - 3 + i] = fd;
        q->given[i] = spec->given[i].number;
    }
    return 0;
}

int sandbox_host_prepare(struct sandbox_host *h, const struct plan *plan, struct rlimit nofile,
                         struct child_spec *spec, struct sandbox_launch *l, struct err *e) {
    struct launch_limit limits[SANDBOX_LIMITS];
    struct launch_request q = {
        .mode = LAUNCH_COMMAND,
        .tty = spec->tty,
        .plan = *plan,
        .program = spec->program,
        .search = spec->search,
        .argv = (char **)spec->argv,
        .envp = (char **)spec->envp,
        .limits = limits,
        .limit_count = sandbox_limits(&spec->limits, nofile, limits),
        .mark = spec->intercept != NULL ? spec->intercept->mark : 0,
    };
    l->child.ended = sandbox_ended;
    q.linger = l->linger;
    int r = sandbox_give(spec, &q, l, e);
    return r < 0 ? r : sandbox_prepare(h, &q, spec, l, e);
}

int sandbox_host_prepare_helper(struct sandbox_host *h, const struct plan *plan,
                                struct child_spec *spec, struct sandbox_launch *l, struct err *e) {
    static char *nothing[] = {NULL};
    struct launch_request q = {
        .mode = LAUNCH_HELPER, .plan = *plan, .program = "", .argv = nothing, .envp = nothing};
    *spec = (struct child_spec){0};
    return sandbox_prepare(h, &q, spec, l, e);
}

void sandbox_host_launch_fini(struct sandbox_launch *l) {
    for (size_t i = 0; i < ARRAY_LEN(l->child.handed); i++)
        /* planted: leaked-launch */
        util_close_fd(&l->child.handed[i]);
    util_close_fd(&l->child.channel);
    util_close_fd(&l->proxy);
    sandbox_host_list_free(steal_ptr(&l->child.placeholders));
}
