#include "sandbox/inside/seccomp.h"

#include "sandbox/inside/filters.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

static enum filter_network seccomp_network(const struct plan *p) {
    switch (p->network) {
    case PLAN_NET_MANAGED: return p->all_unix_sockets ? FILTER_INET_UNIX : FILTER_INET;
    case PLAN_NET_ENABLED: return FILTER_ENABLED;
    case PLAN_NET_RESTRICTED: break;
    }
    return FILTER_RESTRICTED;
}

static enum filter_files seccomp_files(const struct plan *p, enum launch_backend backend) {
    if (!p->confine_files)
        return p->network == PLAN_NET_MANAGED ? FILTER_CONFINED : FILTER_FREE;
    if (backend == LAUNCH_LANDLOCK)
        return FILTER_ALONE;
    return p->inherit_pids ? FILTER_HOST_PIDS : FILTER_CONFINED;
}

static int seccomp_install(unsigned n) {
    struct sock_fprog program = {
        .len = (unsigned short)(filter_start[n + 1] - filter_start[n]),
        .filter = (struct sock_filter *)(uintptr_t)&filter_code[filter_start[n]]};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

int seccomp_enter(const struct plan *p, enum launch_backend backend) {
    return seccomp_install(seccomp_network(p) * FILTER_FILES + seccomp_files(p, backend));
}

int seccomp_enter_http(void) {
    return seccomp_install(FILTER_HTTP);
}
