#pragma once
/*
 * The lists of hosts that a process may reach: patterns that allow, deny, or ask for a decision.
 *
 * A pattern is a host, or has wildcards: `*` stands for any run of characters, `?` for one. A
 * pattern that begins with `*.` matches names below what follows, one with `**.` also that name.
 * `*` alone matches every host. A host is compared in its only form (proxy_name.h); a pattern loses
 * case, a final dot and a port. Bytes beyond ASCII become Punycode.
 */

#include "base/arena.h"
#include "base/err.h"
#include "proxy/proxy_name.h"

#define PROXY_RULES_MAX 4096         /* patterns of one process */
#define PROXY_RULES_PATTERN_MAX 1024 /* bytes of a pattern */
#define PROXY_RULES_WILD_MAX 65536   /* bytes of all patterns with wildcards: bounds the time */

enum proxy_list { PROXY_DENY, PROXY_ALLOW, PROXY_REVIEW, PROXY_LISTS };

struct proxy_pattern {
    const char *text;       /* the glob */
    bool exact;             /* no wildcard: compared as a host */
    bool apex;              /* `**.`: matches text + 2 too */
    struct proxy_name host; /* if exact */
    struct proxy_pattern *next;
};

struct proxy_rules {
    struct proxy_pattern *list[PROXY_LISTS];
    size_t count;
    size_t wild; /* bytes of those with wildcards */
};

/* Adds a pattern; memory comes from `a`. 0; -EINVAL with ERR_INVALID_PARAMS; -ENOMEM. */
MUST_CHECK int proxy_rules_add(struct proxy_rules *r, enum proxy_list list, struct str pattern,
                               struct arena *a, struct err *e);

/* Whether a pattern of the list matches. */
bool proxy_rules_match(const struct proxy_rules *r, enum proxy_list list,
                       const struct proxy_name *host);

/* Whether a pattern without wildcards allows the host: only that opens local networks. */
bool proxy_rules_names(const struct proxy_rules *r, const struct proxy_name *host);
