#pragma once
/*
 * What on this host stands behind a sandbox that cannot be set up, and the option of a container
 * engine, or the kernel setting, that would allow it. Decided from facts, which tests can invent.
 */

#include "sandbox/policy/fault.h"

#include <stdbool.h>
#include <stddef.h>

enum cause_kind {
    CAUSE_SECCOMP,       /* a filter refuses the system calls */
    CAUSE_APPARMOR,      /* a profile of AppArmor refuses them */
    CAUSE_SELINUX,       /* the policy of SELinux does */
    CAUSE_ROOT_MAP,      /* uid 0 without CAP_SETFCAP may not appear in a user namespace */
    CAUSE_NET_ADMIN,     /* backend "root": no capability for the loopback device */
    CAUSE_USERNS_CLONE,  /* kernel.unprivileged_userns_clone */
    CAUSE_USERNS_POLICY, /* kernel.apparmor_restrict_unprivileged_userns */
    CAUSE_LIMIT,         /* user.max_*_namespaces */
    CAUSE_KERNEL,        /* older than 5.12 */
    CAUSE_PROC,          /* no refusal: parts of /proc are hidden, so that sandboxes share it */
    CAUSE_CGROUPS, /* no refusal: no cgroup is delegated, so that limits are those of processes */
    CAUSES
};

enum cause_engine { CAUSE_DOCKER, CAUSE_PODMAN, CAUSE_KUBERNETES, CAUSE_ENGINES };

struct cause_facts {
    /* System calls that fail otherwise than the kernel itself lets them fail. */
    bool clone_filtered, mounts_filtered;
    unsigned seccomp;       /* mode of this process: 0, or 2 for a filter */
    bool apparmor;          /* a profile is enforced */
    bool selinux;           /* there is a context of SELinux */
    bool proc_hidden;       /* something is mounted below /proc */
    bool is_root;           /* the user is 0 in its namespace */
    bool has_setfcap;       /* an effective capability */
    bool userns_clone;      /* the setting is 1, or not there */
    bool userns_policy;     /* the setting is 1 */
    bool delegated;         /* a cgroup of version 2 that we may divide */
    bool in[CAUSE_ENGINES]; /* signs of an engine */
};

/* Facts out of texts of the kernel. */
void cause_take_status(struct cause_facts *f, const char *text);    /* /proc/self/status */
void cause_take_label(struct cause_facts *f, const char *text);     /* /proc/self/attr/current */
void cause_take_mountinfo(struct cause_facts *f, const char *text); /* whole lines of it */
void cause_take_sysctls(struct cause_facts *f, const char *clone, const char *policy); /* or "" */

/* Facts about this process, but for filtered calls. */
void cause_look(struct cause_facts *f);

#define CAUSE_CLONE_FILTERED 1u
#define CAUSE_MOUNTS_FILTERED 2u

/* Makes system calls that are bound to fail: bits of those that a filter refuses. A filter may
 * kill who makes them, so that is to be done by a process of its own. */
unsigned cause_try_calls(void);

/*
 * Causes of a fault, as bits (1 << enum cause_kind): what was in the way, and what would be next.
 * 0 when nothing is known.
 */
unsigned cause_find(const struct cause_facts *f, const struct fault *fault);

/* "seccomp"; "a seccomp filter refuses it". */
const char *cause_name(enum cause_kind kind);
const char *cause_text(enum cause_kind kind);

/* What to change: an option of the engine's command, or members of a pod. NULL: nothing there. */
const char *cause_option(enum cause_kind kind, enum cause_engine engine);

/* A setting of the host to change, as for sysctl(8); NULL where that is not the way. */
const char *cause_setting(enum cause_kind kind);

/* "docker", "podman", "kubernetes". */
const char *cause_engine_name(enum cause_engine engine);

/* The engine around this process; CAUSE_ENGINES when there is no sign of one. */
enum cause_engine cause_engine_of(const struct cause_facts *f);

/*
 * Writes what a user needs to know: each cause, and how to allow it with the engine at hand, or
 * with Docker and podman. The text begins with "; ", and is empty without causes. Cut to `size`.
 */
void cause_describe(const struct cause_facts *f, unsigned causes, char *out, size_t size);
