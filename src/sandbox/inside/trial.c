#include "sandbox/inside/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define TRIAL_NAME ".exec-server-probe"
#define TRIAL_PATH_MAX 4096

/* Whether a file can be made in a directory; it is removed again. */
static bool trial_can_create(const char *dir, const char *name) {
    char path[TRIAL_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    (void)unlink(path);
    return true;
}

static bool trial_can_open(const char *path, int flags) {
    _cleanup_close_ int fd = open(path, flags | O_CLOEXEC);
    return fd >= 0;
}

/* A granted path must be writable, except the protected names in a directory. */
static int trial_writable(const char *path, struct fault *f) {
    char guarded[TRIAL_PATH_MAX];
    struct stat st;
    if (stat(path, &st) < 0)
        return fault_os(f, FAULT_LOST, errno, "trial: %s", path);
    if (!S_ISDIR(st.st_mode))
        return trial_can_open(path, O_WRONLY) ? 0
                                              : fault_os(f, FAULT_LOST, errno, "trial: %s", path);
    if (!trial_can_create(path, TRIAL_NAME))
        return fault_os(f, FAULT_LOST, errno, "trial: %s", path);
    snprintf(guarded, sizeof guarded, "%s/%s", path, plan_protected[0]);
    if (trial_can_create(guarded, TRIAL_NAME))
        return fault_text(f, FAULT_LOST, "trial: %s could be written to", guarded);
    return 0;
}

static int trial_entry(const struct plan_entry *entry, struct fault *f) {
    if (entry->access == PLAN_WRITE)
        return trial_writable(entry->path, f);
    if (entry->access == PLAN_READ && access(entry->path, F_OK) < 0)
        return fault_os(f, FAULT_LOST, errno, "trial: %s", entry->path);
    if (entry->access == PLAN_DENY && trial_can_open(entry->path, O_RDONLY))
        return fault_text(f, FAULT_LOST, "trial: %s could be opened", entry->path);
    return 0;
}

static int trial_network(enum plan_network network, struct fault *f) {
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (network == PLAN_NET_RESTRICTED && fd >= 0)
        return fault_text(f, FAULT_LOST, "trial: the network could be used");
    return 0;
}

int trial_check(const struct launch_request *q, struct fault *f) {
    const struct plan *p = &q->plan;
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->entry_count; i++)
        r = trial_entry(&p->entries[i], f);
    if (r == 0 && p->confine_files && trial_can_create("/", TRIAL_NAME))
        r = fault_text(f, FAULT_LOST, "trial: / could be written to");
    if (r == 0 && p->confine_files && !trial_can_open("/proc/self/stat", O_RDONLY))
        r = fault_os(f, FAULT_LOST, errno, "trial: /proc/self/stat");
    return r == 0 ? trial_network(p->network, f) : r;
}
