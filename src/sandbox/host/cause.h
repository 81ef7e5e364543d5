#pragma once
/* Why this host refuses a sandbox, and which option of a container engine, or which kernel setting,
 * would allow it. Decided from facts, which tests can invent. */

#include "sandbox/policy/fault.h"

#include <stdbool.h>
#include <stddef.h>

enum cause_kind {
    CAUSE_SECCOMP,       /* a filter refuses the system calls */
    CAUSE_APPARMOR,      /* an AppArmor profile refuses them */
    CAUSE_SELINUX,       /* the SELinux policy refuses them */
    CAUSE_ROOT_MAP,      /* uid 0 without CAP_SETFCAP may not appear in a user namespace */
    CAUSE_NET_ADMIN,     /* backend "root": no capability for the loopback device */
    CAUSE_USERNS_CLONE,  /* kernel.unprivileged_userns_clone */
    CAUSE_USERNS_POLICY, /* kernel.apparmor_restrict_unprivileged_userns */
    CAUSE_LIMIT,         /* user.max_*_namespaces */
    CAUSE_KERNEL,        /* older than 5.12 */
    CAUSE_PROC,          /* no refusal: parts of /proc are hidden, so sandboxes share it */
    CAUSE_CGROUPS, /* no refusal: no cgroup is delegated, so limits apply to single processes */
    CAUSES
};

enum cause_engine { CAUSE_DOCKER, CAUSE_PODMAN, CAUSE_KUBERNETES, CAUSE_ENGINES };

struct cause_facts {
    /* System calls that fail in another way than the kernel itself would fail them. */
    bool clone_filtered, mounts_filtered;
    unsigned seccomp;       /* mode of this process: 0, or 2 for a filter */
    bool apparmor;          /* a profile is enforced */
    bool selinux;           /* the process has an SELinux context */
    bool proc_hidden;       /* something is mounted below /proc */
    bool is_root;           /* the user is 0 in this namespace */
    bool has_setfcap;       /* an effective capability */
    bool userns_clone;      /* the setting is 1, or missing */
    bool userns_policy;     /* the setting is 1 */
    bool delegated;         /* we may divide a version 2 cgroup */
    bool in[CAUSE_ENGINES]; /* signs of an engine */
};

/* Facts from the kernel's files. */
void cause_take_status(struct cause_facts *f, const char *text);    /* /proc/self/status */
void cause_take_label(struct cause_facts *f, const char *text);     /* /proc/self/attr/current */
void cause_take_mountinfo(struct cause_facts *f, const char *text); /* whole lines */
void cause_take_sysctls(struct cause_facts *f, const char *clone, const char *policy); /* or "" */

/* Facts about this process, except filtered calls. */
void cause_look(struct cause_facts *f);

#define CAUSE_CLONE_FILTERED 1u
#define CAUSE_MOUNTS_FILTERED 2u

/* Makes system calls that must fail; returns bits for those that a filter refuses. Call it in a
 * process of its own: a filter may kill the caller. */
unsigned cause_try_calls(void);

/* The causes of a fault, as bits (1 << enum cause_kind): the obstacle, and the next one behind it.
 * 0: unknown. */
unsigned cause_find(const struct cause_facts *f, const struct fault *fault);

/* "seccomp"; "a seccomp filter refuses it". */
const char *cause_name(enum cause_kind kind);
const char *cause_text(enum cause_kind kind);

/* The change: an option of the engine's command, or members of a pod. NULL: none helps. */
const char *cause_option(enum cause_kind kind, enum cause_engine engine);

/* The host setting to change, as for sysctl(8); NULL if none helps. */
const char *cause_setting(enum cause_kind kind);

/* "docker", "podman", "kubernetes". */
const char *cause_engine_name(enum cause_engine engine);

/* The engine around this process; CAUSE_ENGINES if there is no sign of one. */
enum cause_engine cause_engine_of(const struct cause_facts *f);

/* Tells the user each cause and how to allow it, with the engine at hand or with Docker and podman.
 * The text begins with "; ", or is empty without causes. Cut to `size`. */
void cause_describe(const struct cause_facts *f, unsigned causes, char *out, size_t size);
