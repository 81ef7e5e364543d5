#include "proc/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int64_t min, max;
} limits_table[LIMITS_KINDS] = {
    [LIMITS_MEMORY] = {"memoryBytes", 1 << 20, INT64_MAX},
    [LIMITS_PIDS] = {"pids", 1, 4194304},
    [LIMITS_OPEN_FILES] = {"openFiles", 3, 1 << 30},
    [LIMITS_NICE] = {"nice", -20, 19},
    [LIMITS_OOM] = {"oomScoreAdj", -1000, 1000},
    [LIMITS_CPU_WEIGHT] = {"cpuWeight", 1, 10000},
    [LIMITS_CPU] = {"cpuPercent", 1, 1000000},
};

const char *limits_name(enum limits_kind k) {
    return limits_table[k].name;
}

int limits_check(const struct limits *l, struct err *e) {
    for (int k = 0; k < LIMITS_KINDS; k++) {
        if (l->given[k] && (l->value[k] < limits_table[k].min || l->value[k] > limits_table[k].max))
            return err_set(e, ERR_INVALID_PARAMS,
                           "limits.%s must be between %" PRId64 " and %" PRId64,
                           limits_table[k].name, limits_table[k].min, limits_table[k].max);
    }
    return 0;
}

static int limits_refuse(enum limits_kind k, const char *why, struct err *e) {
    return err_set(e, ERR_INVALID_REQUEST, "limits.%s cannot be enforced on this host: %s",
                   limits_name(k), why);
}

#define LIMITS_CPU_UNIT 1000 /* of cpu.max: a hundredth of its period, 100 ms by default */

/* Limits that a cgroup enforces if it has the controller. */
static const struct {
    enum limits_kind kind;
    enum cgroup_controller controller;
    const char *file;
} limits_cgroup[] = {
    {LIMITS_MEMORY, CGROUP_MEMORY, "memory.max"},
    {LIMITS_PIDS, CGROUP_PIDS, "pids.max"},
    {LIMITS_CPU_WEIGHT, CGROUP_CPU, "cpu.weight"},
    {LIMITS_CPU, CGROUP_CPU, "cpu.max"},
};

/* Makes a cgroup for the limits that it can enforce; *done gets a bit for each. */
static int limits_plan_cgroup(const struct limits *l, struct cgroup_host *h, struct cgroup *g,
                              struct limits_steps *out, unsigned *done, struct err *e) {
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(limits_cgroup) && r == 0; i++) {
        enum limits_kind k = limits_cgroup[i].kind;
        if (!l->given[k] || !(h->controllers & limits_cgroup[i].controller))
            continue;
        if (g->dir == NULL)
            r = cgroup_make(h, g);
        if (r == 0)
            r = cgroup_set(g, limits_cgroup[i].file,
                           k == LIMITS_CPU ? l->value[k] * LIMITS_CPU_UNIT : l->value[k]);
        if (r == 0 && k == LIMITS_MEMORY)
            (void)!cgroup_set(g, "memory.swap.max", 0); /* absent without swap accounting */
        if (r < 0)
            return limits_refuse(k, err_os_text(-r), e);
        *done |= 1u << k;
    }
    if (g->dir == NULL)
        return 0;
    out->cgroup_fd = cgroup_open_procs(g);
    if (out->cgroup_fd < 0)
        return err_os(e, ERR_INTERNAL, -out->cgroup_fd);
    out->join = true;
    return 0;
}

static struct rlimit limits_both(int64_t v) {
    return (struct rlimit){(rlim_t)v, (rlim_t)v};
}

static int limits_plan_open_files(int64_t v, struct limits_steps *out, struct err *e) {
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && (rlim_t)v > now.rlim_max && geteuid() != 0)
        return limits_refuse(LIMITS_OPEN_FILES, "it is above the server's own hard limit", e);
    out->open_files = limits_both(v);
    out->set_open_files = true;
    return 0;
}

/* Whether the kernel exempts our commands from the limit on processes. */
static bool limits_privileged(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    unsigned exempt = 1u << CAP_SYS_RESOURCE | 1u << CAP_SYS_ADMIN;
    return getuid() == 0 || (syscall(SYS_capget, &head, data) == 0 && data[0].effective & exempt);
}

/* Plans the limits that no cgroup enforces as steps of the command's own process. */
static int limits_plan_process(const struct limits *l, unsigned done, struct limits_steps *out,
                               struct err *e) {
    for (enum limits_kind k = LIMITS_CPU_WEIGHT; k <= LIMITS_CPU; k++) {
        if (l->given[k] && !(done & 1u << k))
            return limits_refuse(k, "no cgroup v2 cpu controller is delegated", e);
    }
    if (l->given[LIMITS_PIDS] && !(done & 1u << LIMITS_PIDS)) {
        if (limits_privileged())
            return limits_refuse(
                LIMITS_PIDS,
                "no cgroup v2 pids controller is delegated, and the resource limit "
                "does not bind root",
                e);
        out->pids = limits_both(l->value[LIMITS_PIDS]);
        out->set_pids = true;
    }
    if (l->given[LIMITS_MEMORY] && !(done & 1u << LIMITS_MEMORY)) {
        out->memory = limits_both(l->value[LIMITS_MEMORY]);
        out->set_memory = true;
    }
    out->set_nice = l->given[LIMITS_NICE];
    out->nice = (int)l->value[LIMITS_NICE];
    out->set_oom = l->given[LIMITS_OOM];
    out->oom_len = (size_t)snprintf(out->oom, sizeof out->oom, "%d", (int)l->value[LIMITS_OOM]);
    return l->given[LIMITS_OPEN_FILES] ? limits_plan_open_files(l->value[LIMITS_OPEN_FILES], out, e)
                                       : 0;
}

void limits_steps_fini(struct limits_steps *s) {
    if (s->join)
        close(s->cgroup_fd);
    s->join = false;
}

int limits_plan(const struct limits *l, struct cgroup_host *h, struct cgroup *g,
                struct limits_steps *out, struct err *e) {
    unsigned done = 0;
    *out = (struct limits_steps){0};
    *g = (struct cgroup){0};
    if (l->given[LIMITS_MEMORY] || l->given[LIMITS_PIDS] || l->given[LIMITS_CPU_WEIGHT] ||
        l->given[LIMITS_CPU])
        cgroup_probe(h, "/sys/fs/cgroup", "/proc/self/cgroup");
    int r = limits_plan_cgroup(l, h, g, out, &done, e);
    if (r == 0)
        r = limits_plan_process(l, done, out, e);
    if (r < 0) {
        limits_steps_fini(out);
        cgroup_remove(g);
    }
    return r;
}
