#include "sandbox/inside/layout_internal.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>

#define KERNEL_MOUNTINFO_MAX (4u << 20) /* bytes */

static bool kernel_is_type(struct str type) {
    static const char *const types[] = {"proc",      "sysfs",   "cgroup",      "cgroup2",
                                        "debugfs",   "tracefs", "configfs",    "pstore",
                                        "efivarfs",  "binder",  "binfmt_misc", "securityfs",
                                        "selinuxfs", "bpf",     "rpc_pipefs"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (str_eqz(type, types[i]))
            return true;
    }
    return false;
}

/* The n-th word of a line, from 0; blanks inside a word are escaped. */
static struct str kernel_word(struct str line, size_t n) {
    const char *p = line.p, *end = line.p + line.n;
    for (;; n--) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        const char *stop = blank != NULL ? blank : end;
        if (n == 0 || blank == NULL)
            return n == 0 ? (struct str){p, (size_t)(stop - p)} : (struct str){NULL, 0};
        p = blank + 1;
    }
}

/* The path in a word, in which \ooo stands for a byte. */
static const char *kernel_unescape(struct layout_maker *m, struct str word) {
    char *path = arena_strdup(m->a, word);
    char *out = path;
    for (const char *p = path; p != NULL && *p != '\0'; p++) {
        char c = *p;
        if (c == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] != '\0' && p[3] != '\0') {
            c = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 3;
        }
        *out++ = c;
    }
    if (path != NULL)
        *out = '\0';
    return path;
}

static int kernel_mount(struct layout_maker *m, struct str line) {
    const char *dash = memmem(line.p, line.n, " - ", 3);
    if (dash == NULL)
        return 0;
    struct str rest = {dash + 3, (size_t)(line.p + line.n - dash - 3)};
    if (!kernel_is_type(kernel_word(rest, 0)))
        return 0;
    struct stat st;
    const char *path = kernel_unescape(m, kernel_word(line, 4));
    if (path == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "mounts");
    if (rules_region(m->rules, path) != RULES_WRITE || rules_exact(m->rules, path) != NULL ||
        locate_inside(path, "/proc") || lstat(path, &st) < 0)
        return 0;
    return rules_add(m->rules, path, PLAN_READ, &st) == NULL
               ? fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", path)
               : 0;
}

/* Whether the user is root, or the whole root is writable. */
static bool kernel_concerns(const struct layout_maker *m) {
    bool writes = false;
    for (size_t i = 0; i < m->rules->sorted; i++)
        writes |= m->rules->list[i].access == PLAN_WRITE && m->rules->list[i].is_dir;
    return m->q->backend != LAUNCH_LANDLOCK &&
           ((writes && geteuid() == 0) || rules_region(m->rules, "/") == RULES_WRITE);
}

int layout_kernel_mounts(struct layout_maker *m) {
    if (!kernel_concerns(m))
        return 0;
    _cleanup_buf_ struct buf text = BUF_INIT(KERNEL_MOUNTINFO_MAX);
    _cleanup_close_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && buf_reserve(&text, 16384) == 0 && (n = read(fd, text.p + text.len, 16384)) > 0)
        text.len += (size_t)n;
    if (n != 0)
        return fault_os(m->f, FAULT_POLICY, n < 0 ? errno : E2BIG, "mountinfo");
    int r = 0;
    for (size_t at = 0; r == 0 && at < text.len;) {
        const char *end = memchr(text.p + at, '\n', text.len - at);
        size_t len = end != NULL ? (size_t)(end - text.p) - at : text.len - at;
        r = kernel_mount(m, (struct str){text.p + at, len});
        at += len + 1;
    }
    rules_sort(m->rules);
    return r;
}
