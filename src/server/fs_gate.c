#include "server/fs_gate.h"

#include "sandbox/glob.h"
#include "sandbox/locate.h"
#include "sandbox/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>

#define GATE_ARENA_MAX (32u << 20) /* memory of the rules */
#define GATE_WALK_MAX (1u << 20)   /* memory of looking up one path */
#define GATE_LINKS_MAX (16u << 20) /* memory of what links lead to */
#define GATE_LINKS_MS 1000
#define GATE_TRIES 8 /* looks at a path that changes meanwhile */

/*
 * Where links lead whose names match a denied pattern: that is denied by its own name, too. They
 * are looked for when a call needs to know, but not more often than every GATE_LINKS_MS, nor than
 * takes a twentieth of the time. Who makes such a link later could read what it leads to before.
 */
struct gate_links {
    struct arena arena;
    const char **targets; /* paths without links, sorted */
    size_t count, cap;
    uint64_t due; /* monotonic ns of the next look; 0: none was made */
    int error;    /* -errno of the last look: all is denied then; 0 */
};

/* A denied pattern, below a directory. */
struct gate_glob {
    const char *dir; /* without links */
    uint32_t max_depth;
    struct glob_set set;
};

struct fs_gate {
    struct arena arena;
    struct rules rules;
    struct gate_glob *globs;
    size_t glob_count;
    struct gate_links links;
};

/* -- what the plan says -- */

static int gate_rule(struct fs_gate *g, const char *path, enum plan_access access,
                     const struct stat *st) {
    return rules_add(&g->rules, path, access, st) == NULL ? -ENOMEM : 0;
}

static int gate_entry(struct fs_gate *g, const struct plan_entry *entry) {
    struct locate_result at;
    struct stat none = {0};
    if (entry->access != PLAN_WRITE && locate_inside(entry->path, "/proc"))
        return 0; /* there is always a fresh one */
    int r = locate_path(entry->path, &g->arena, &at);
    if (r == -ENOMEM)
        return r;
    if (r < 0 || at.state == LOCATE_BLOCKED)
        return gate_rule(g, entry->path, entry->access, &none);
    return gate_rule(g, at.path, entry->access, at.state == LOCATE_FOUND ? &at.st : &none);
}

/* What is missing must not come into being from above, either. */
static int gate_missing(struct fs_gate *g, const struct plan_entry *entry) {
    struct locate_result at;
    int r = entry->access == PLAN_WRITE ? -ENOENT : locate_path(entry->path, &g->arena, &at);
    if (r < 0 || at.state != LOCATE_MISSING || !S_ISDIR(at.st.st_mode))
        return r == -ENOMEM ? r : 0;
    const char *first = arena_strdup(&g->arena, (struct str){at.path, locate_first_missing(&at)});
    if (first == NULL)
        return -ENOMEM;
    if (rules_exact(&g->rules, first) != NULL || rules_region(&g->rules, first) != RULES_WRITE)
        return 0;
    return gate_rule(g, first, PLAN_READ, &(struct stat){0});
}

static int gate_protect(struct fs_gate *g, const struct rules_rule *root, const char *name) {
    char *path = arena_alloc(&g->arena, strlen(root->path) + strlen(name) + 2);
    if (path == NULL)
        return -ENOMEM;
    sprintf(path, "%s/%s", strcmp(root->path, "/") == 0 ? "" : root->path, name);
    if (rules_exact(&g->rules, path) != NULL)
        return 0;
    return gate_rule(g, path, PLAN_READ, &(struct stat){0});
}

static int gate_protect_all(struct fs_gate *g) {
    int r = 0;
    size_t sorted = g->rules.sorted;
    for (size_t i = 0; r == 0 && i < sorted; i++) {
        struct rules_rule root = g->rules.list[i]; /* a copy: the list may move */
        if (root.access != PLAN_WRITE || root.dropped || !root.is_dir)
            continue;
        for (size_t k = 0; r == 0 && k < PLAN_PROTECTED; k++)
            r = gate_protect(g, &root, plan_protected[k]);
    }
    return r;
}

static int gate_glob(struct fs_gate *g, const struct plan_glob *in) {
    struct gate_glob *out = &g->globs[g->glob_count];
    struct locate_result at;
    const char *why = NULL, *below = in->pattern + in->fixed;
    out->max_depth = in->max_depth;
    out->dir = arena_strdup(&g->arena, (struct str){in->pattern, MAX(in->fixed, 1u)});
    if (out->dir == NULL)
        return -ENOMEM;
    int r = locate_path(out->dir, &g->arena, &at);
    if (r == -ENOMEM)
        return r;
    if (r == 0 && at.state != LOCATE_BLOCKED)
        out->dir = at.path;
    r = glob_add(&out->set, *below == '/' ? below + 1 : below, &why);
    if (r == 0)
        g->glob_count++;
    return r;
}

/* What the plan has, and what every sandbox has besides. */
static int gate_entries(struct fs_gate *g, const struct plan *p) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->entry_count; i++)
        r = gate_entry(g, &p->entries[i]);
    for (size_t i = 0; r == 0 && p->minimal && !p->full_read && i < PLAN_PLATFORM; i++)
        r = gate_entry(g, &(struct plan_entry){plan_platform[i], PLAN_READ});
    return r;
}

static int gate_fill(struct fs_gate *g, const struct plan *p) {
    int r = gate_entries(g, p);
    rules_sort(&g->rules);
    rules_prune_reads(&g->rules); /* what is denied says so, also where nothing is to be seen */
    if (r == 0)
        r = gate_protect_all(g);
    rules_sort(&g->rules);
    for (size_t i = 0; r == 0 && i < p->entry_count; i++)
        r = gate_missing(g, &p->entries[i]);
    rules_sort(&g->rules);
    g->globs = arena_calloc(&g->arena, p->glob_count + 1, sizeof *g->globs);
    if (g->globs == NULL)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < p->glob_count; i++)
        r = gate_glob(g, &p->globs[i]);
    return r;
}

/* -- patterns -- */

static int gate_add_target(struct gate_links *l, const char *path) {
    if (l->count == l->cap) {
        size_t cap = MAX((size_t)64, l->cap * 2);
        const char **list = arena_calloc(&l->arena, cap, sizeof *list);
        if (list == NULL)
            return -ENOMEM;
        if (l->count > 0)
            memcpy(list, l->targets, l->count * sizeof *list);
        l->targets = list;
        l->cap = cap;
    }
    const char *target = arena_strdup(&l->arena, str_of(path));
    if (target == NULL)
        return -ENOMEM;
    l->targets[l->count++] = target;
    return 0;
}

/* As glob_found_fn. */
static int gate_found_link(void *arg, const struct glob_match *m) {
    struct fs_gate *g = arg;
    _cleanup_arena_ struct arena a = ARENA_INIT(GATE_WALK_MAX);
    struct locate_result at;
    if (!m->is_link || m->unlistable)
        return 0;
    int r = locate_path(m->path, &a, &at);
    if (r < 0 || at.state != LOCATE_FOUND)
        return r == -ENOMEM ? r : 0;
    enum rules_region region = rules_region(&g->rules, at.path);
    if (region == RULES_INVISIBLE || region == RULES_DENY || strcmp(at.path, "/") == 0 ||
        locate_inside(at.path, "/proc"))
        return 0;
    return gate_add_target(&g->links, at.path);
}

static uint64_t gate_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int gate_find_links(struct fs_gate *g) {
    size_t budget = GLOB_ENTRIES_MAX;
    for (size_t i = 0; i < g->glob_count; i++) {
        const struct gate_glob *glob = &g->globs[i];
        const struct glob_visit v = {glob->max_depth, &budget, gate_found_link, NULL, g};
        int r = glob_expand(&glob->set, glob->dir, NULL, &v);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ENAMETOOLONG)
            return r;
    }
    return 0;
}

static int gate_compare_targets(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void gate_look_for_links(struct fs_gate *g) {
    struct gate_links *l = &g->links;
    uint64_t began = gate_now();
    if (l->due > began)
        return;
    arena_fini(&l->arena);
    *l = (struct gate_links){.arena = ARENA_INIT(GATE_LINKS_MAX)};
    l->error = gate_find_links(g);
    if (l->count > 1)
        qsort(l->targets, l->count, sizeof *l->targets, gate_compare_targets);
    uint64_t end = gate_now();
    l->due = end + MAX((uint64_t)GATE_LINKS_MS * 1000000, 20 * (end - began));
}

/* Whether a link with a denied name leads to `path`, or to a directory that it is in. */
static bool gate_is_target(struct fs_gate *g, const char *path) {
    char prefix[PATH_MAX];
    const char *key = prefix;
    size_t n = strlen(path);
    if (g->glob_count == 0 || n >= sizeof prefix)
        return false;
    gate_look_for_links(g);
    if (g->links.error < 0)
        return true;
    for (memcpy(prefix, path, n + 1); g->links.count > 0 && n > 0; prefix[n] = '\0') {
        if (bsearch(&key, g->links.targets, g->links.count, sizeof key, gate_compare_targets))
            return true;
        while (n > 0 && prefix[--n] != '/')
            ;
    }
    return false;
}

/* Whether a file with that path, without links, matches. Without memory it does. */
static bool gate_matches(const struct fs_gate *g, const char *path) {
    for (size_t i = 0; i < g->glob_count; i++) {
        const struct gate_glob *glob = &g->globs[i];
        size_t n = strcmp(glob->dir, "/") == 0 ? 0 : strlen(glob->dir);
        if (!locate_inside(path, glob->dir) || path[n] == '\0')
            continue;
        const char *below = path + n + 1;
        bool deep = glob->max_depth > 0 && locate_depth(path + n) > glob->max_depth;
        if (!deep && glob_match(&glob->set, below) != 0)
            return true;
    }
    return false;
}

static int gate_found(void *arg, const struct glob_match *m) {
    return !m->unlistable && locate_inside(m->path, arg);
}

/* Whether there is a match below a directory, which would get another name, or go. */
static bool gate_holds_match(const struct fs_gate *g, const char *dir) {
    size_t budget = GLOB_ENTRIES_MAX;
    for (size_t i = 0; i < g->glob_count; i++) {
        const struct gate_glob *glob = &g->globs[i];
        if (!locate_inside(glob->dir, dir) && !locate_inside(dir, glob->dir))
            continue;
        const struct glob_visit v = {glob->max_depth, &budget, gate_found, NULL,
                                     (void *)(uintptr_t)dir};
        int r = glob_expand(&glob->set, glob->dir, NULL, &v);
        if (r != 0 && r != -ENOENT && r != -ENOTDIR)
            return true;
    }
    return false;
}

/* -- rules -- */

/* Our own /dev and /proc: what is not a device would vanish with the sandbox. */
static bool gate_is_ours(const struct fs_gate *g, const char *path, mode_t mode) {
    const struct rules_rule *rule = rules_exact(&g->rules, path);
    if (rule == NULL)
        rule = rules_above(&g->rules, path);
    bool writable = rule != NULL && rule->access == PLAN_WRITE;
    if (locate_inside(path, "/proc"))
        return true;
    if (!locate_inside(path, "/dev") || S_ISCHR(mode))
        return false;
    return !writable || !(locate_inside(rule->path, "/dev") || locate_inside(path, "/dev/shm"));
}

static bool gate_has_rule_below(const struct fs_gate *g, const char *path) {
    for (size_t i = 0; i < g->rules.sorted; i++) {
        const char *p = g->rules.list[i].path;
        if (locate_inside(p, path) && strcmp(p, path) != 0)
            return true;
    }
    return false;
}

/* What is mounted, or holds a place, keeps its name. */
static int gate_may_take(const struct fs_gate *g, const struct fs_call_path *p, const char *path,
                         mode_t mode) {
    bool above = rules_region_above(&g->rules, path) == RULES_WRITE;
    if (rules_exact(&g->rules, path) != NULL)
        return above && rules_region(&g->rules, path) == RULES_WRITE ? -EBUSY : -EROFS;
    if (p->tree && S_ISDIR(mode) && gate_has_rule_below(g, path))
        return -EBUSY;
    return p->tree && S_ISDIR(mode) && gate_holds_match(g, path) ? -EACCES : 0;
}

/* What the kernel says by itself: there is no directory to make, no file to write. */
static bool gate_is_idle(enum fs_need need, mode_t mode) {
    return (need == FS_MAKES && mode != 0) || (need == FS_TAKES && mode == 0);
}

/* The deepest part of a path that can be opened; -1: none. For a call that will not be made. */
static int gate_open_deepest(const char *path) {
    size_t n = strlen(path);
    int fd = -1;
    while (fd < 0 && n > 0) {
        while (n > 0 && path[--n] != '/')
            ;
        fd = fs_place_open_dir(path, n);
    }
    return fd;
}

/*
 * Whether the place to change is on a read-only mount: then the kernel says so by itself, or what
 * else is wrong before that. What the mount was asked through is what the call will act on.
 */
static bool gate_is_mounted(const struct fs_gate *g, enum fs_need need, struct fs_place *at) {
    struct statvfs v;
    if (S_ISREG(at->mode) && rules_exact(&g->rules, at->path) != NULL)
        return false;
    if (need == FS_CHANGES && at->dir >= 0 && at->mode != 0 && !S_ISLNK(at->mode)) {
        util_close_fd(&at->object);
        int object = fs_place_open(at, O_PATH, 0);
        at->object = MAX(object, -1);
    }
    _cleanup_close_ int deepest = at->dir < 0 ? gate_open_deepest(at->path) : -1;
    int fd = at->object >= 0 ? at->object : at->dir >= 0 ? at->dir : deepest;
    return fd >= 0 && fstatvfs(fd, &v) == 0 && (v.f_flag & ST_RDONLY);
}

static int gate_may_change(const struct fs_gate *g, enum fs_need need, struct fs_place *at) {
    if (gate_is_idle(need, at->mode))
        return 0;
    if (gate_is_ours(g, at->path, at->mode))
        return -EROFS;
    if (locate_inside(at->path, "/dev"))
        return 0;
    switch (rules_region(&g->rules, at->path)) {
    case RULES_READ: return gate_is_mounted(g, need, at) ? 0 : -EROFS;
    case RULES_DENY: return -EACCES;
    case RULES_INVISIBLE: /* the root is read-only */
    case RULES_WRITE: break;
    }
    return 0;
}

/* All checks of a place. */
static int gate_decide(struct fs_gate *g, const struct fs_call_path *p, struct fs_place *at) {
    int r = 0;
    if (p->need == FS_READS && rules_region(&g->rules, at->path) == RULES_DENY)
        r = at->mode != 0 ? -EACCES : -ENOENT;
    else if (p->need != FS_READS && p->need != FS_LOOKS)
        r = gate_may_change(g, p->need, at);
    if (r == 0 && p->need == FS_TAKES && at->mode != 0)
        r = gate_may_take(g, p, at->path, at->mode);
    if (r < 0 || p->need == FS_LOOKS || gate_is_idle(p->need, at->mode))
        return r;
    if (!S_ISDIR(at->mode) && p->need != FS_MAKES && gate_matches(g, at->path))
        return -EACCES;
    return gate_is_target(g, at->path) ? -EACCES : 0;
}

/* -- paths -- */

/* Whether a link that leads nowhere is in the way of making directories. */
static bool gate_dangles(const char *path) {
    char prefix[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    memcpy(prefix, path, n + 1);
    while (lstat(prefix, &st) < 0 && n > 1) {
        while (n > 1 && prefix[n - 1] != '/')
            n--;
        n -= n > 1;
        prefix[n] = '\0';
    }
    return S_ISLNK(st.st_mode) && stat(prefix, &st) < 0;
}

/* What a place that is not all there means for the call. 0 or -errno. */
static int gate_place(const struct fs_call_path *p, const struct locate_result *at) {
    if (at->state == LOCATE_FOUND)
        return 0;
    if (at->state == LOCATE_BLOCKED)
        return -EACCES;
    if (!S_ISDIR(at->st.st_mode))
        return -ENOTDIR;
    if (at->lost)
        return -ENOENT;
    if (p->need == FS_MAKES && at->link_count > 0 && gate_dangles(p->path))
        return -EEXIST;
    return at->path[locate_first_missing(at)] != '\0' && !p->parents ? -ENOENT : 0;
}

/* A link with a denied name leads to what is denied. */
static bool gate_crosses(const struct fs_gate *g, const struct locate_result *at) {
    for (size_t i = 0; i < at->link_count; i++) {
        if (gate_matches(g, at->links[i].place))
            return true;
    }
    return false;
}

/* Whether the kernel would follow the links, too: it refuses some of strangers. */
static bool gate_may_follow(const char *path, const struct locate_result *at) {
    if (at->link_count == 0 || at->state != LOCATE_FOUND)
        return true;
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 || errno != EACCES;
}

/* Whether a path is denied where nothing is to be seen: that is said, whether it exists or not. */
static bool gate_is_unseen(const struct fs_gate *g, const char *path) {
    const struct rules_rule *rule = rules_exact(&g->rules, path);
    if (rule == NULL)
        rule = rules_above(&g->rules, path);
    return rule != NULL && rule->access == PLAN_DENY &&
           rules_region_above(&g->rules, rule->path) == RULES_INVISIBLE &&
           !gate_has_rule_below(g, rule->path);
}

/* What holds the place of something missing, for a call that would need it to be there. */
static int gate_held(const struct fs_gate *g, const struct fs_call_path *p,
                     const struct locate_result *at) {
    const struct rules_rule *rule = rules_above(&g->rules, at->path);
    bool change = p->need != FS_READS && p->need != FS_LOOKS;
    if (gate_is_unseen(g, at->path))
        return -EACCES;
    if (!change || p->need == FS_TAKES || rule == NULL || rule->access == PLAN_WRITE ||
        strlen(rule->path) <= at->existing)
        return -ENOENT;
    return rule->access == PLAN_DENY ? -EACCES : -EROFS;
}

/*
 * Where `path` leads over links: fills at->path. The walk finds a text; fs_place_fill() then opens
 * that text without passing a link, so that what links say from now on is of no account.
 */
static int gate_locate(const struct fs_gate *g, const struct fs_call_path *p, const char *path,
                       struct fs_place *at) {
    _cleanup_arena_ struct arena a = ARENA_INIT(GATE_WALK_MAX);
    struct locate_result found;
    int r = locate_path(path, &a, &found);
    if (r == 0 && (r = gate_place(p, &found)) == -ENOENT)
        r = gate_held(g, p, &found);
    if (r == 0 && (gate_crosses(g, &found) || !gate_may_follow(path, &found)))
        r = -EACCES;
    if (r == 0 && strlen(found.path) >= PATH_MAX)
        r = -ENAMETOOLONG;
    if (r == 0)
        strcpy(at->path, found.path);
    return r;
}

/* The place of a path whose last component is followed. */
static int gate_fill_followed(const struct fs_gate *g, const struct fs_call_path *p,
                              struct fs_place *at) {
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, false); /* most paths lead over no link: two calls tell */
    for (int i = 0; i < GATE_TRIES && (r < 0 || S_ISLNK(at->mode)); i++) {
        r = gate_locate(g, p, p->path, at);
        if (r < 0)
            return r;
        r = fs_place_fill(at, p->parents);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR) /* else it has changed since */
            return r;
    }
    return r == 0 && S_ISLNK(at->mode) ? -ELOOP : r;
}

/* Where the directory of a name leads over links. 0 or -errno. */
static int gate_locate_dir(const struct fs_gate *g, const struct fs_call_path *p, const char *dir,
                           struct fs_place *at) {
    int r = gate_locate(g, p, dir, at);
    if (r == 0)
        r = fs_place_fill(at, false);
    if (r < 0)
        return r;
    if (at->mode == 0)
        r = p->need == FS_GETS && rules_region(&g->rules, at->path) == RULES_READ &&
                    !gate_is_mounted(g, p->need, at)
                ? -EROFS
                : -ENOENT;
    else if (!S_ISDIR(at->mode))
        r = -ENOTDIR;
    fs_place_fini(at);
    return r;
}

/* The place of a path whose last component is not followed. */
static int gate_fill_name(const struct fs_gate *g, const struct fs_call_path *p,
                          struct fs_place *at) {
    char dir[PATH_MAX];
    const char *slash = strrchr(p->path, '/');
    size_t n = slash == p->path ? 1 : (size_t)(slash - p->path);
    memcpy(dir, p->path, n);
    dir[n] = '\0';
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, false);
    for (int i = 0; i < GATE_TRIES && r < 0; i++) {
        r = gate_locate_dir(g, p, dir, at);
        if (r < 0)
            return r;
        n = strcmp(at->path, "/") == 0 ? 0 : strlen(at->path);
        if (n + strlen(slash) >= PATH_MAX)
            return -ENAMETOOLONG;
        strcpy(at->path + n, slash);
        r = fs_place_fill(at, false);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
            return r;
    }
    return r;
}

/* The place of a path on which no link may lie. */
static int gate_fill_plain(const struct fs_gate *g, const struct fs_call_path *p,
                           struct fs_place *at) {
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, p->parents);
    if (r < 0)
        at->mode = 0;
    if (at->mode == 0 && gate_is_unseen(g, p->path))
        return -EACCES;
    return r;
}

static int gate_pass(void *arg, const struct fs_call_path *p, struct fs_place *out) {
    struct fs_gate *g = arg;
    if (strlen(p->path) >= PATH_MAX)
        return -ENAMETOOLONG;
    fs_place_fini(out);
    int r;
    if (!p->follow || strcmp(p->path, "/") == 0) {
        r = gate_fill_plain(g, p, out);
        if (r < 0 && r != -EACCES) { /* what is refused anyway is refused first */
            int refused = gate_decide(g, p, out);
            r = refused < 0 ? refused : r;
        } else if (r == 0) {
            r = gate_decide(g, p, out);
        }
    } else {
        r = p->leaf ? gate_fill_followed(g, p, out) : gate_fill_name(g, p, out);
        if (r == 0)
            r = gate_decide(g, p, out);
    }
    if (r < 0)
        fs_place_fini(out);
    return r;
}

static int gate_check(void *arg, enum fs_need need, const char *path, mode_t mode) {
    struct fs_place at = {.dir = -1, .object = -1, .mode = mode};
    const struct fs_call_path p = {.need = need, .path = path};
    if (strlen(path) >= sizeof at.path)
        return -ENAMETOOLONG;
    strcpy(at.path, path);
    return gate_decide(arg, &p, &at);
}

static bool gate_hidden(void *arg, const char *path) {
    const struct fs_gate *g = arg;
    _cleanup_arena_ struct arena a = ARENA_INIT(GATE_WALK_MAX);
    struct locate_result at;
    if (locate_path(path, &a, &at) < 0)
        return true;
    enum rules_region region = rules_region(&g->rules, at.path);
    return region == RULES_INVISIBLE || region == RULES_DENY;
}

struct fs_gate *fs_gate_new(const struct plan *p) {
    struct fs_gate *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->arena = ARENA_INIT(GATE_ARENA_MAX);
    g->rules = (struct rules){.a = &g->arena, .full_read = p->full_read};
    return gate_fill(g, p) < 0 ? NULL : g;
}

struct fs_call_gate fs_gate_calls(struct fs_gate *g) {
    return (struct fs_call_gate){
        .arg = g, .pass = gate_pass, .check = gate_check, .hidden = gate_hidden};
}
