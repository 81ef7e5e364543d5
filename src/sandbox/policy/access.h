#pragma once
/*
 * A sandbox's policy on this host: may a path be read, written, made, listed, taken away? The
 * launcher builds it from the plan, once. The mounts, the Landlock rules and the file helper all
 * take their answers from it.
 *
 * Paths in questions are absolute, without links and dot segments. The caller has opened what the
 * path leads to, and acts on that descriptor.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/policy/glob.h"
#include "sandbox/policy/locate.h"
#include "sandbox/policy/rules.h"

/* A plan entry and where it leads. */
struct access_item {
    const char *given;
    enum plan_access access;
    struct locate_result at;
};

/* Denied patterns below one directory. A directory that ignores case has a second set, which
 * ignores it too. */
struct access_glob {
    const char *dir; /* without links; NULL: it does not exist */
    uint32_t max_depth;
    struct glob_set set;
};

struct access_targets; /* where links with denied names lead */

struct access {
    struct arena *a;
    struct rules rules;
    bool folds; /* some rules are for directories that ignore case */
    struct access_item *items;
    size_t item_count;
    struct access_glob *globs;
    size_t glob_count;
    struct access_targets *targets;
};

/* Looks up every path of the plan; changes nothing on disk. Memory comes from `a`. 0; or -errno
 * with the fault noted, also for a policy that cannot be enforced. */
MUST_CHECK int access_build(struct access *x, const struct plan *p, struct arena *a,
                            struct fault *f);

/* Frees what is not in the arena. A sandbox keeps its policy as long as it lives. */
void access_fini(struct access *x);

/* Refuses an entry that cannot be followed, or whose path crosses a link the command can replace.
 * */
MUST_CHECK int access_check_links(const struct access *x, const struct access_item *item,
                                  struct fault *f);

/* -- questions -- */

enum access_need {
    ACCESS_READ,
    ACCESS_CHANGE, /* makes or replaces a file; changes a mode */
    ACCESS_MAKE,   /* makes a directory */
    ACCESS_TAKE,   /* removes or renames it */
    ACCESS_GET,    /* receives a rename: becomes the name of something else */
};

struct access_query {
    enum access_need need;
    const char *path;
    mode_t mode; /* of the file there; 0: none */
    bool tree;   /* ACCESS_TAKE: with everything below */
    /* Whether the mount is read-only: then the kernel refuses by itself, with its own errno. Or
     * NULL. */
    bool (*is_readonly)(void *arg);
    void *arg;
};

/*
 * 0: the policy allows it; the kernel may still refuse, such as a change where nothing is granted.
 * -EACCES: denied. -EROFS: must not be changed or made. -EBUSY: must keep its name. -ENOENT: denied
 * and not there.
 */
MUST_CHECK int access_may(struct access *x, const struct access_query *q);

/* The region a path lies in, with case ignored where the disk ignores it. */
enum rules_region access_may_region(const struct access *x, const char *path);

/* Whether a file or link with that path matches a denied pattern. Without memory it does. */
bool access_globs_matches(const struct access *x, const char *path);

/* Whether a path is denied inside an invisible region: it is refused, whether it exists or not. */
bool access_may_is_unseen(const struct access *x, const char *path);

/* Whether the sandbox cannot see a path. */
bool access_may_is_hidden(const struct access *x, const char *path);

/* Why a call cannot have a missing file, of whose path `existing` bytes exist: -ENOENT, or -EACCES
 * or -EROFS from the rule that guards the place. */
int access_may_missing(const struct access *x, enum access_need need, const char *path,
                       size_t existing);
