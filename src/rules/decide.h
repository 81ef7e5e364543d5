#pragma once
/*
 * The decision on a program that a shell is about to start: run it inside the sandbox, escalate it
 * (run it outside), deny it, or ask the user first.
 *
 * Rules come from these layers; the strictest match of all wins:
 *   1. *.rules in rules/ of the operator's directory (/etc/codex), sorted by name;
 *   2. *.rules in rules/ of the user's directory ($CODEX_HOME);
 *   3. [rules] prefix_rules of requirements.toml in the operator's directory.
 *
 * decide_refresh() reads them again when one has changed. While they are broken, every program is
 * denied with the error. A program that no rule matches runs inside the sandbox, or is asked about
 * first if it looks dangerous (decide_danger.h).
 */

#include "base/arena.h"
#include "base/err.h"
#include "rules/execpolicy.h"

#include <stdbool.h>

#define DECIDE_FILES_MAX 4096        /* files of rules */
#define DECIDE_FILE_MAX (4u << 20)   /* bytes of one */
#define DECIDE_ERROR_MAX (64u << 10) /* bytes of the error of a file */

enum decide_action { DECIDE_RUN, DECIDE_ESCALATE, DECIDE_DENY, DECIDE_ASK };

/* Strings are borrowed and must outlive the decide. */
struct decide_options {
    const char *system_dir; /* of the operator */
    const char *user_dir;   /* NULL: the user has none */
    const char *home;       /* for "~" in a program's path; may be NULL */
    bool whole_paths;       /* rules must name the whole path; its basename does not count */
    bool compat;            /* decide as the old server did: by the basename, with its heuristics */
};

struct decide;

/*
 * Reads all layers. 0; -EINVAL with the error (several lines, without a newline at the end) in e;
 * -ENOMEM with e set.
 */
MUST_CHECK int decide_new(struct decide **out, const struct decide_options *o, struct err *e);
void decide_free(struct decide *d);

/* Reads the layers again if a file has changed since. Whether it did. */
bool decide_refresh(struct decide *d);

/* The error of the last reading, or NULL. */
const char *decide_broken(const struct decide *d);

/* Whether any rule forbids a program, or asks about one. */
bool decide_restricts(const struct decide *d);

/* One name of a program with the arguments that follow it: the path that was given, the one it
 * resolves to, or the interpreter of a script. */
struct decide_name {
    struct str path;        /* absolute, or as given */
    const struct str *args; /* without argv[0] */
    size_t n;
    bool strict_only; /* an `allow` for this name does not count */
};

struct decide_query {
    const struct decide_name *names; /* the strictest of them wins */
    size_t n;                        /* at least 1 */
    size_t real; /* index of the name that must be allowed itself for an escalation */
    const char *cwd;
};

struct decide_verdict {
    enum decide_action action;
    enum decide_action accepted; /* DECIDE_ASK: what an approval means, DECIDE_RUN or _ESCALATE */
    struct str reason;           /* DECIDE_DENY: what the user reads */
    struct str justification;    /* of the rule; p NULL: none */
    struct str rule;             /* the rule or heuristic that decided, for logs; p NULL: none */
    bool by_path;                /* DECIDE_ESCALATE: the rule names the whole path */
};

/* Decides. Memory of the verdict comes from `a`, or lives until decide_refresh(). 0 or -ENOMEM. */
MUST_CHECK int decide_query(const struct decide *d, const struct decide_query *q, struct arena *a,
                            struct decide_verdict *v);
