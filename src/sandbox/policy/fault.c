#include "sandbox/policy/fault.h"

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

const char *fault_name(enum fault_step step) {
    static const char *const names[] = {
        [FAULT_NONE] = "nothing",
        [FAULT_REQUEST] = "request",
        [FAULT_POLICY] = "policy",
        [FAULT_GLOB] = "glob",
        [FAULT_PROTECT] = "protected name",
        [FAULT_NAMESPACES] = "namespaces",
        [FAULT_IDS] = "user map",
        [FAULT_MOUNT] = "mount",
        [FAULT_DEV] = "/dev",
        [FAULT_PROC] = "/proc",
        [FAULT_ROOT] = "root",
        [FAULT_NETWORK] = "network",
        [FAULT_PRIVILEGES] = "privileges",
        [FAULT_LANDLOCK] = "Landlock",
        [FAULT_SECCOMP] = "seccomp",
        [FAULT_LIMIT] = "limit",
        [FAULT_CWD] = "cwd",
        [FAULT_TTY] = "terminal",
        [FAULT_EXEC] = "exec",
        [FAULT_LOST] = "launch",
    };
    return (unsigned)step < ARRAY_LEN(names) ? names[step] : "?";
}

/* The usual reason for a failure, where nobody need look at the host (cause.h). */
static const char *fault_hint(enum fault_step step, int error) {
    if (error == ENOSYS && step == FAULT_SECCOMP)
        return "CONFIG_SECCOMP_FILTER";
    if (error == ENOSYS)
        return "the kernel's version (5.12 is needed)";
    if (step == FAULT_NAMESPACES && (error == ENOSPC || error == EUSERS))
        return "user.max_*_namespaces";
    if (step == FAULT_NETWORK && error == EPERM)
        return "CAP_NET_ADMIN, which a container gets with --cap-add NET_ADMIN";
    bool mounts = step == FAULT_MOUNT || step == FAULT_DEV || step == FAULT_ROOT;
    return mounts && error == ENOSPC ? "fs.mount-max" : NULL;
}

int fault_os(struct fault *f, enum fault_step step, int error, const char *what, ...) {
    if (f->step != FAULT_NONE)
        return f->error > 0 ? -f->error : -EINVAL;
    f->step = step;
    f->error = error;
    const char *text = err_os_text(error);
    if (step == FAULT_CWD || step == FAULT_EXEC) {
        snprintf(f->text, sizeof f->text, "%s (os error %d)", text, error);
        return -error;
    }
    char object[FAULT_TEXT_MAX / 2];
    va_list ap;
    va_start(ap, what);
    vsnprintf(object, sizeof object, what, ap);
    va_end(ap);
    const char *hint = fault_hint(step, error);
    snprintf(f->text, sizeof f->text, "sandbox: %s: %s: %s (os error %d)%s%s", fault_name(step),
             object, text, error, hint ? "; look at " : "", hint ? hint : "");
    return -error;
}

int fault_text(struct fault *f, enum fault_step step, const char *what, ...) {
    if (f->step != FAULT_NONE)
        return -EINVAL;
    f->step = step;
    f->error = 0;
    int n = snprintf(f->text, sizeof f->text, "sandbox: ");
    va_list ap;
    va_start(ap, what);
    vsnprintf(f->text + n, sizeof f->text - (size_t)n, what, ap);
    va_end(ap);
    return -EINVAL;
}
