#include "sandbox/host/cause.h"

#include "base/scan.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define CAUSE_TEXT_MAX 8192 /* bytes read of a kernel file */
#define CAUSE_CAP_SETFCAP 31

static const struct {
    const char *name, *text;
    const char *option[CAUSE_ENGINES];
    const char *setting;
} cause_table[CAUSES] = {
    [CAUSE_SECCOMP] = {"seccomp",
                       "a seccomp filter refuses it",
                       {"--security-opt seccomp=unconfined", "--security-opt seccomp=unconfined",
                        "securityContext.seccompProfile.type: Unconfined"},
                       NULL},
    [CAUSE_APPARMOR] = {"apparmor",
                        "an AppArmor profile refuses mounts",
                        {"--security-opt apparmor=unconfined", "--security-opt apparmor=unconfined",
                         "securityContext.appArmorProfile.type: Unconfined"},
                        NULL},
    [CAUSE_SELINUX] = {"selinux",
                       "the SELinux policy refuses it",
                       {"--security-opt label=disable", "--security-opt label=disable",
                        "securityContext.seLinuxOptions.type: spc_t"},
                       NULL},
    [CAUSE_ROOT_MAP] = {"setfcap",
                        "uid 0 without CAP_SETFCAP cannot make a user namespace for itself",
                        {"--cap-add SETFCAP", "--cap-add SETFCAP",
                         "securityContext.capabilities.add: [SETFCAP]"},
                        NULL},
    [CAUSE_NET_ADMIN] = {"net-admin",
                         "without user namespaces a network needs CAP_NET_ADMIN",
                         {"--cap-add NET_ADMIN", "--cap-add NET_ADMIN",
                          "securityContext.capabilities.add: [NET_ADMIN]"},
                         NULL},
    [CAUSE_USERNS_CLONE] = {"unprivileged-userns-clone",
                            "user namespaces are for root alone",
                            {0},
                            "kernel.unprivileged_userns_clone=1"},
    [CAUSE_USERNS_POLICY] = {"apparmor-userns",
                             "AppArmor takes the rights away that a user namespace gives",
                             {0},
                             "kernel.apparmor_restrict_unprivileged_userns=0"},
    [CAUSE_LIMIT] = {"max-namespaces",
                     "the number of namespaces is used up, or 0",
                     {0},
                     "user.max_user_namespaces=65536"},
    [CAUSE_KERNEL] = {"kernel", "the kernel is older than 5.12", {0}, NULL},
    [CAUSE_PROC] = {"proc",
                    "parts of /proc are hidden, so that sandboxes see the container's processes",
                    {"--security-opt systempaths=unconfined", "--security-opt unmask=ALL",
                     "securityContext.procMount: Unmasked, with hostUsers: false"},
                    NULL},
    [CAUSE_CGROUPS] = {"cgroups",
                       "no cgroup is delegated, so that limits hold for each process alone",
                       {"--security-opt writable-cgroups=true",
                        "--security-opt unmask=/sys/fs/cgroup", NULL},
                       NULL},
};

const char *cause_name(enum cause_kind kind) {
    return cause_table[kind].name;
}

const char *cause_text(enum cause_kind kind) {
    return cause_table[kind].text;
}

const char *cause_option(enum cause_kind kind, enum cause_engine engine) {
    return cause_table[kind].option[engine];
}

const char *cause_setting(enum cause_kind kind) {
    return cause_table[kind].setting;
}

const char *cause_engine_name(enum cause_engine engine) {
    static const char *const names[CAUSE_ENGINES] = {"docker", "podman", "kubernetes"};
    return names[engine];
}

enum cause_engine cause_engine_of(const struct cause_facts *f) {
    static const enum cause_engine order[] = {CAUSE_KUBERNETES, CAUSE_PODMAN, CAUSE_DOCKER};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (f->in[order[i]])
            return order[i];
    }
    return CAUSE_ENGINES;
}

/* -- facts -- */

/* The value after "name:\t" at the beginning of a line, or NULL. */
static const char *cause_line(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *p = text; p != NULL; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, name, n) == 0 && p[n] == ':')
            return p + n + 1;
    }
    return NULL;
}

void cause_take_status(struct cause_facts *f, const char *text) {
    const char *mode = cause_line(text, "Seccomp"), *caps = cause_line(text, "CapEff"),
               *uids = cause_line(text, "Uid");
    unsigned long v;
    f->seccomp = mode != NULL && scan_word(mode, 0, &v) ? (unsigned)v : 0;
    f->has_setfcap = caps != NULL && (strtoull(caps, NULL, 16) >> CAUSE_CAP_SETFCAP & 1) != 0;
    f->is_root = uids != NULL && scan_word(uids, 1, &v) && v == 0; /* the effective one */
}

void cause_take_label(struct cause_facts *f, const char *text) {
    /* AppArmor writes "profile (enforce)", SELinux "user:role:type:level". */
    f->apparmor = strstr(text, "(enforce)") != NULL || strstr(text, "(kill)") != NULL;
    const char *colon = strchr(text, ':');
    f->selinux = !f->apparmor && colon != NULL && strchr(colon + 1, ':') != NULL &&
                 strstr(text, ":unconfined_t:") == NULL && strstr(text, ":spc_t:") == NULL;
}

void cause_take_mountinfo(struct cause_facts *f, const char *text) {
    for (const char *p = text; p != NULL && *p != '\0' && !f->proc_hidden;) {
        const char *field = p;
        for (int i = 0; field != NULL && i < 4; i++) { /* the fifth is the mount point */
            field = strchr(field, ' ');
            field = field != NULL ? field + 1 : NULL;
        }
        f->proc_hidden = field != NULL && strncmp(field, "/proc/", 6) == 0;
        p = strchr(p, '\n');
        p = p != NULL ? p + 1 : NULL;
    }
}

void cause_take_sysctls(struct cause_facts *f, const char *clone, const char *policy) {
    f->userns_clone = clone[0] != '0';
    f->userns_policy = policy[0] != '\0' && policy[0] != '0';
}

static void cause_read_mountinfo(struct cause_facts *f) {
    FILE *file = fopen("/proc/self/mountinfo", "re");
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    while (file != NULL && getline(&line, &size, file) > 0)
        cause_take_mountinfo(f, line);
    if (file != NULL)
        fclose(file);
}

/* Reads a kernel file; "" if that fails. */
static void cause_read(const char *path, char text[CAUSE_TEXT_MAX]) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    for (ssize_t got; fd >= 0 && n < CAUSE_TEXT_MAX - 1; n += (size_t)got) {
        got = read(fd, text + n, CAUSE_TEXT_MAX - 1 - n);
        if (got <= 0)
            break;
    }
    text[n] = '\0';
}

static bool cause_is_new_kernel(void) {
    struct utsname u;
    unsigned long major = 0, minor = 0;
    if (uname(&u) < 0 || !scan_word(u.release, 0, &major))
        return false;
    const char *dot = strchr(u.release, '.');
    if (dot != NULL)
        (void)scan_word(dot + 1, 0, &minor);
    return major > 5 || (major == 5 && minor >= 12);
}

/* The kernel itself answers EINVAL to both calls, before it checks any permission. */
unsigned cause_try_calls(void) {
    long pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    unsigned bits = pid < 0 && errno != EINVAL ? CAUSE_CLONE_FILTERED : 0;
    struct mount_attr attr = {0};
    long r = syscall(SYS_mount_setattr, -1, "", ~0u, &attr, sizeof attr);
    if (r < 0 && errno != EINVAL && (errno != ENOSYS || cause_is_new_kernel()))
        bits |= CAUSE_MOUNTS_FILTERED;
    return bits;
}

/* Whether we may divide the cgroup that the text of /proc/self/cgroup names. */
static bool cause_is_delegated(const char *text) {
    const char *own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    char path[1024];
    if (own == NULL)
        return false;
    own += own[0] == '\n' ? 4 : 3;
    snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/cgroup.subtree_control",
             (int)MIN(strcspn(own, "\n"), sizeof path / 2), own);
    return access(path, W_OK) == 0;
}

void cause_look(struct cause_facts *f) {
    char text[CAUSE_TEXT_MAX], policy[CAUSE_TEXT_MAX];
    *f = (struct cause_facts){0};
    cause_read("/proc/self/status", text);
    cause_take_status(f, text);
    cause_read("/proc/self/attr/current", text);
    cause_take_label(f, text);
    cause_read_mountinfo(f);
    cause_read("/proc/sys/kernel/unprivileged_userns_clone", text);
    cause_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", policy);
    cause_take_sysctls(f, text, policy);
    cause_read("/proc/self/cgroup", text);
    f->delegated = cause_is_delegated(text);
    f->in[CAUSE_DOCKER] = access("/.dockerenv", F_OK) == 0;
    f->in[CAUSE_PODMAN] = access("/run/.containerenv", F_OK) == 0;
    f->in[CAUSE_KUBERNETES] = getenv("KUBERNETES_SERVICE_HOST") != NULL;
}

/* -- causes -- */

#define BIT(kind) (1u << (kind))

/* Security modules that allow a user namespace, but nothing inside it. */
static unsigned cause_modules(const struct cause_facts *f) {
    return (f->apparmor ? BIT(CAUSE_APPARMOR) : 0) | (f->selinux ? BIT(CAUSE_SELINUX) : 0) |
           (f->userns_policy ? BIT(CAUSE_USERNS_POLICY) : 0);
}

static unsigned cause_of_namespaces(const struct cause_facts *f, const struct fault *fault) {
    if (fault->error == ENOSPC || fault->error == EUSERS)
        return BIT(CAUSE_LIMIT);
    if (f->clone_filtered ||
        f->mounts_filtered) /* the profile that comes with the filter refuses mounts too */
        return BIT(CAUSE_SECCOMP) | (f->apparmor ? BIT(CAUSE_APPARMOR) : 0);
    if (!f->userns_clone)
        return BIT(CAUSE_USERNS_CLONE);
    return cause_modules(f);
}

static unsigned cause_of_mounts(const struct cause_facts *f) {
    if (f->mounts_filtered)
        return BIT(CAUSE_SECCOMP) | (f->apparmor ? BIT(CAUSE_APPARMOR) : 0);
    return cause_modules(f);
}

unsigned cause_find(const struct cause_facts *f, const struct fault *fault) {
    bool refused = fault->error == EPERM || fault->error == EACCES;
    if (fault->error == ENOSYS && !f->clone_filtered && !f->mounts_filtered)
        return fault->step == FAULT_MOUNT || fault->step == FAULT_DEV ? BIT(CAUSE_KERNEL) : 0;
    if (fault->step == FAULT_NAMESPACES)
        return cause_of_namespaces(f, fault);
    if (fault->step == FAULT_LOST) /* a filter can kill */
        return f->clone_filtered || f->mounts_filtered ? BIT(CAUSE_SECCOMP) : 0;
    if (fault->step == FAULT_IDS && refused && f->is_root && !f->has_setfcap)
        return BIT(CAUSE_ROOT_MAP);
    if (fault->step == FAULT_NETWORK && refused)
        return BIT(CAUSE_NET_ADMIN);
    bool mounts = fault->step == FAULT_IDS || fault->step == FAULT_MOUNT ||
                  fault->step == FAULT_DEV || fault->step == FAULT_PROC ||
                  fault->step == FAULT_ROOT;
    return mounts && (refused || fault->error == ENOSYS) ? cause_of_mounts(f) : 0;
}

/* Appends to a text of at most `size` bytes. */
static void cause_append(char *out, size_t size, const char *before, const char *text) {
    size_t n = strlen(out);
    snprintf(out + n, size - n, "%s%s", before, text);
}

void cause_describe(const struct cause_facts *f, unsigned causes, char *out, size_t size) {
    enum cause_engine engine = cause_engine_of(f);
    out[0] = '\0';
    for (unsigned k = 0; k < CAUSES; k++) {
        if ((causes & BIT(k)) == 0)
            continue;
        const char *option = cause_option(k, engine == CAUSE_ENGINES ? CAUSE_DOCKER : engine);
        cause_append(out, size, "; ", cause_text(k));
        if (option != NULL && engine == CAUSE_KUBERNETES)
            cause_append(out, size, ": give the container ", option);
        else if (option != NULL)
            cause_append(out, size, ": start the container with ", option);
        else if (cause_setting(k) != NULL)
            cause_append(out, size, ": on the host, sysctl ", cause_setting(k));
    }
}
