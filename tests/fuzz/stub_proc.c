#include "stub_proc.h"

#include "base/util.h"
#include "sandbox/host/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define STUB_PID 0x40000000 /* beyond what a kernel gives */

static struct stub stubs[STUBS_MAX];
static unsigned stub_started;

pid_t __wrap_supervisor_start(struct supervisor *s);
bool __wrap_supervisor_signal(struct supervisor *s, int signo);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_kill(pid_t pid, int signo);
void __wrap_backend_probe(int self, bool all, struct backend *out);
int __wrap_backend_network(int self, enum launch_backend backend);

struct stub *stub_get(unsigned i) {
    unsigned live = 0;
    for (size_t k = 0; k < STUBS_MAX; k++)
        live += stubs[k].sup != NULL && !stubs[k].ended;
    for (size_t k = 0; k < STUBS_MAX; k++) {
        bool lives = stubs[k].sup != NULL && !stubs[k].ended;
        if (lives && i % live-- == 0)
            return &stubs[k];
    }
    return NULL;
}

static int stub_copy(int fd) {
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

pid_t __wrap_supervisor_start(struct supervisor *s) {
    struct stub *new = NULL;
    for (size_t k = 0; k < STUBS_MAX; k++)
        new = stubs[k].sup == NULL ? &stubs[k] : new;
    if (new == NULL)
        return -EAGAIN;
    *new = (struct stub){.sup = s, .pid = STUB_PID + (pid_t)(++stub_started % STUB_PID)};
    for (int i = 0; i < 3; i++)
        new->fds[i] = stub_copy(s->fds[i]);
    new->channel = s->launcher >= 0 ? stub_copy(s->handed[1]) : -1;
    atomic_store(&s->unshared, true);
    return new->pid;
}

bool __wrap_supervisor_signal(struct supervisor *s, int signo) {
    (void)signo;
    return atomic_load(&s->phase) == SUPERVISOR_RUNNING;
}

/* Requests to a supervisor; nobody else is ever signalled. */
int __wrap_kill(pid_t pid, int signo) {
    for (size_t k = 0; k < STUBS_MAX; k++) {
        struct stub *s = &stubs[k];
        if (s->sup != NULL && s->pid == pid && signo == SIGUSR1)
            s->asked = (atomic_load(&s->sup->kill) & SUPERVISOR_KILL_ALL) != 0;
    }
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
    (void)pid;
    (void)options;
    for (size_t k = 0; k < STUBS_MAX; k++) {
        if (!stubs[k].ended)
            continue;
        *status = 0;
        stubs[k].ended = false;
        stubs[k].sup = NULL;
        return stubs[k].pid;
    }
    return 0;
}

void __wrap_backend_probe(int self, bool all, struct backend *out) {
    (void)self;
    (void)all;
    *out = (struct backend){.landlock = 1};
    out->tries[LAUNCH_USERNS] = (struct backend_try){.tried = true, .works = true};
}

int __wrap_backend_network(int self, enum launch_backend backend) {
    (void)self;
    (void)backend;
    return -ENOSYS;
}

/* -- what they do -- */

static void stub_tell(struct stub *s, enum supervisor_phase phase) {
    atomic_store(&s->sup->phase, (int)phase);
    (void)!write(s->sup->wake_fd, &s->pid, sizeof s->pid);
}

static void stub_close(struct stub *s) {
    for (int i = 0; i < 3; i++)
        util_close_fd(&s->fds[i]);
    util_close_fd(&s->channel);
}

void stub_runs(struct stub *s) {
    if (atomic_load(&s->sup->phase) != SUPERVISOR_STARTING)
        return;
    s->sup->leader = s->pid;
    stub_tell(s, SUPERVISOR_RUNNING);
}

void stub_fails(struct stub *s, int error) {
    if (atomic_load(&s->sup->phase) != SUPERVISOR_STARTING)
        return;
    s->sup->error = error;
    stub_tell(s, SUPERVISOR_FAILED);
    stub_is_gone(s);
}

void stub_exits(struct stub *s, int status) {
    if (atomic_load(&s->sup->phase) != SUPERVISOR_RUNNING)
        return;
    s->sup->status = status;
    stub_tell(s, SUPERVISOR_EXITED);
}

/* Also when it is killed from outside: then it has not told its end. */
void stub_is_gone(struct stub *s) {
    stub_close(s);
    s->ended = true;
}

bool stub_obey(void) {
    bool any = false;
    for (size_t k = 0; k < STUBS_MAX; k++) {
        struct stub *s = &stubs[k];
        if (s->sup == NULL || s->ended || !s->asked)
            continue;
        any = true;
        stub_runs(s);
        stub_exits(s, SIGKILL);
        stub_is_gone(s);
    }
    return any;
}
