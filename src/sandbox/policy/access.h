#pragma once
/*
 * The policy of a sandbox as it is on this host: may a path be read, written, made, listed, taken
 * away? Made from a plan once, by the launcher; the mounts, the Landlock rules and the helper that
 * makes file calls all take their answers from it.
 *
 * Paths in questions are absolute, without links and dot segments. Whoever asks has opened what the
 * path leads to, and acts on that.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/policy/glob.h"
#include "sandbox/policy/locate.h"
#include "sandbox/policy/rules.h"

/* An entry of the plan, looked up. */
struct access_item {
    const char *given;
    enum plan_access access;
    struct locate_result at;
};

/* Denied patterns below one directory. Where that ignores case there is another one, which does,
 * too. */
struct access_glob {
    const char *dir; /* without links; NULL: there is none */
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

/*
 * Looks up all that the plan names, and changes nothing on disk. Memory comes from `a`. 0; or
 * -errno with the fault noted, for a policy that cannot be enforced too.
 */
MUST_CHECK int access_build(struct access *x, const struct plan *p, struct arena *a,
                            struct fault *f);

/* Gives back what is not in the arena. A sandbox keeps its policy as long as it lives. */
void access_fini(struct access *x);

/* Refuses an entry that leads over a link the command can replace, or cannot be followed. */
MUST_CHECK int access_check_links(const struct access *x, const struct access_item *item,
                                  struct fault *f);

/* -- questions -- */

enum access_need {
    ACCESS_LOOK, /* what is known about it, not what is in it */
    ACCESS_READ,
    ACCESS_CHANGE, /* makes or replaces a file; changes a mode */
    ACCESS_MAKE,   /* makes a directory */
    ACCESS_TAKE,   /* removes it, or gives it another name */
    ACCESS_GET,    /* it becomes the name of something else */
};

struct access_query {
    enum access_need need;
    const char *path;
    mode_t mode; /* of what is there; 0: nothing */
    bool tree;   /* ACCESS_TAKE: all that is below goes, too */
    /* Whether the mount is read-only, so that the kernel says by itself what is wrong; or NULL. */
    bool (*is_readonly)(void *arg);
    void *arg;
};

/*
 * 0: nothing is in the way but what the kernel itself refuses, such as a change where nothing is
 * granted. -EACCES: denied; -EROFS: not to be changed, nor made; -EBUSY: it has to keep its place;
 * -ENOENT: denied, and not there.
 */
MUST_CHECK int access_may(struct access *x, const struct access_query *q);

/* What the rules say of a path, also where case is ignored. */
enum rules_region access_may_region(const struct access *x, const char *path);

/* Whether a file, or a link, with that path matches a denied pattern. Without memory it does. */
bool access_globs_matches(const struct access *x, const char *path);

/* Whether a path is denied where nothing is to be seen: that is said, whether it exists or not. */
bool access_may_is_unseen(const struct access *x, const char *path);

/* Whether nothing is to be seen at a path. */
bool access_may_is_hidden(const struct access *x, const char *path);

/*
 * What holds the place of something missing, of which `existing` bytes of the path exist, for a
 * call that needs it to be there: -ENOENT, -EACCES or -EROFS.
 */
int access_may_missing(const struct access *x, enum access_need need, const char *path,
                       size_t existing);
