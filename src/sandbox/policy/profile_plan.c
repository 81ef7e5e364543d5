#include "sandbox/policy/profile_internal.h"

#include "base/uri.h"
#include "base/utf8.h"
#include "sandbox/policy/glob.h"

#include <errno.h>

/* A plan being made. */
struct profile_maker {
    const struct profile *p;
    struct arena *a;
    struct err *e;
    int code;                        /* of errors about paths */
    const char *cwd, *tmpdir, *home; /* normalised; tmpdir and home may be NULL */
    const char **roots;              /* workspace roots */
    size_t root_count;
    struct plan_entry *entries;
    size_t entry_count, entry_cap;
    struct plan_glob *globs;
    size_t glob_count, glob_cap;
    bool minimal;
    bool cap_roots; /* the workspace roots become read-only */
    size_t text;    /* bytes of the paths of entries and globs so far */
};

static int make_too_large(struct profile_maker *m) {
    return err_set(m->e, ERR_INVALID_PARAMS, "the sandbox has more than %d entries",
                   PLAN_ENTRIES_MAX);
}

static int make_too_long(struct profile_maker *m) {
    return err_set(m->e, ERR_INVALID_PARAMS, "the sandbox has more than %u bytes of paths",
                   PROFILE_TEXT_MAX);
}

/* Counts n bytes of a path or pattern: bounds memory and work. */
static int make_count_text(struct profile_maker *m, size_t n) {
    if (n > PROFILE_TEXT_MAX - m->text)
        return make_too_long(m);
    m->text += n;
    return 0;
}

/* Adds an entry; `path` is normalised and outlives the plan. */
static int make_add(struct profile_maker *m, const char *path, enum plan_access access) {
    if (m->entry_count == PLAN_ENTRIES_MAX)
        return make_too_large(m);
    int r = make_count_text(m, strlen(path) + 16);
    if (r < 0)
        return r;
    struct plan_entry *entries =
        arena_grow(m->a, m->entries, m->entry_count, &m->entry_cap, 16, sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    m->entries = entries;
    entries[m->entry_count++] = (struct plan_entry){path, access};
    return 0;
}

/* Normalises base/below into the arena. */
static int make_path(struct profile_maker *m, const char *base, struct str below,
                     const char **path) {
    _cleanup_buf_ struct buf text = BUF_INIT(4 * URI_PATH_MAX);
    _cleanup_free_ char *native = NULL;
    int r = buf_putz(&text, base);
    if (r == 0)
        r = buf_putc(&text, '/');
    if (r == 0)
        r = buf_put(&text, below.p, below.n);
    if (r == -ENOBUFS)
        return err_set(m->e, ERR_INVALID_PARAMS, "path has more than %d bytes", URI_PATH_MAX);
    if (r == 0)
        r = uri_to_path(buf_str(&text), &native, m->e);
    if (r < 0)
        return r;
    *path = arena_strdup(m->a, str_of(native));
    return *path == NULL ? -ENOMEM : 0;
}

bool profile_plan_subpath_is_odd(struct str path) {
    if (path.n > 0 && path.p[0] == '/')
        return true;
    for (size_t i = 0; i < path.n; i++) {
        size_t start = i;
        while (i < path.n && path.p[i] != '/')
            i++;
        struct str name = {path.p + start, i - start};
        if (str_eqz(name, ".") || str_eqz(name, ".."))
            return true;
    }
    return false;
}

/* Adds one entry per workspace root. An odd subpath grants nothing, and it restricts the whole
 * root. */
static int make_project_roots(struct profile_maker *m, const struct profile_entry *entry) {
    bool odd = profile_plan_subpath_is_odd(entry->text);
    m->cap_roots |= odd && entry->access == PLAN_READ;
    for (size_t i = 0; i < m->root_count && (!odd || entry->access == PLAN_DENY); i++) {
        const char *path = m->roots[i];
        int r = make_count_text(m, strlen(path) + entry->text.n);
        if (r == 0 && entry->text.n > 0 && !odd)
            r = make_path(m, m->roots[i], entry->text, &path);
        if (r == 0)
            r = make_add(m, path, entry->access);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Whether `path` is `dir` or lies below it. */
static bool make_is_inside(const char *path, const char *dir) {
    size_t n = dir[1] == '\0' ? 0 : strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Makes a root read-only: entries at and below it, and grants from above. */
static int make_cap_root(struct profile_maker *m, const char *root) {
    bool granted = false;
    for (size_t i = 0; i < m->entry_count; i++) {
        struct plan_entry *entry = &m->entries[i];
        if (entry->access != PLAN_WRITE)
            continue;
        if (make_is_inside(entry->path, root))
            entry->access = PLAN_READ;
        else
            granted |= make_is_inside(root, entry->path);
    }
    return granted ? make_add(m, root, PLAN_READ) : 0;
}

static int make_cap_roots(struct profile_maker *m) {
    int r = 0;
    for (size_t i = 0; r == 0 && m->cap_roots && i < m->root_count; i++)
        r = make_cap_root(m, m->roots[i]);
    return r;
}

/* Whether a pattern below a root cannot leave it. */
static bool make_stays_below(struct str path) {
    size_t depth = 0, i = 0;
    if (path.n > 0 && path.p[0] == '/')
        return false;
    while (i < path.n) {
        size_t start = i;
        while (i < path.n && path.p[i] != '/')
            i++;
        struct str name = {path.p + start, i - start};
        i++;
        if (name.n == 0 || str_eqz(name, "."))
            continue;
        if (!str_eqz(name, ".."))
            depth++;
        else if (depth-- == 0)
            return false;
    }
    return true;
}

/* Quotes the whole pattern, or `pattern` if that is not valid text. */
static int make_glob_error(struct profile_maker *m, struct str whole, struct str pattern) {
    if (whole.n > 0 && utf8_valid(whole.p, whole.n))
        pattern = whole;
    return err_about(m->e, ERR_INTERNAL, "unreadable glob `", pattern,
                     "` cannot be safely expanded; use a pattern with a non-root directory prefix");
}

/* Appends the pattern to *out, lexically normalised. The first *literal bytes contain no wildcard.
 * */
static int make_glob_text(struct buf *out, size_t *literal, struct str pattern) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < pattern.n; i++) {
        size_t start = i;
        while (i < pattern.n && pattern.p[i] != '/')
            i++;
        struct str name = {pattern.p + start, i - start};
        if (name.n == 0 || str_eqz(name, "."))
            continue;
        if (str_eqz(name, "..")) {
            const char *slash = out->len > 0 ? memrchr(out->p, '/', out->len) : NULL;
            out->len = slash != NULL ? (size_t)(slash - out->p) : 0;
            *literal = MIN(*literal, out->len);
            continue;
        }
        r = buf_putc(out, '/');
        if (r == 0)
            r = buf_put(out, name.p, name.n);
    }
    return r;
}

/* Length of the directories before the first component with a wildcard; 0 for none. */
static size_t make_glob_fixed(struct str text, size_t literal) {
    size_t fixed = literal;
    while (fixed < text.n) {
        size_t end = fixed + 1;
        while (end < text.n && text.p[end] != '/') {
            if (strchr("*?[{\\", text.p[end]) != NULL)
                return fixed;
            end++;
        }
        fixed = end;
    }
    return 0;
}

/* Rejects a bad pattern here: the launcher could only abort. */
static int make_check_glob(struct profile_maker *m, const char *pattern, size_t fixed) {
    struct glob_set set = {0};
    const char *why = NULL, *below = pattern + fixed + (pattern[fixed] == '/');
    int r = glob_add(&set, below, &why);
    glob_set_fini(&set);
    if (r != -EINVAL)
        return r;
    return err_set(m->e, ERR_INTERNAL,
                   "sandbox: unreadable glob pattern is invalid for %.*s: error parsing glob '%s': "
                   "%s",
                   (int)fixed, pattern, below, why);
}

static int make_add_glob(struct profile_maker *m, struct str text, size_t fixed) {
    if (m->glob_count == PLAN_ENTRIES_MAX)
        return make_too_large(m);
    int r = make_count_text(m, text.n + 16);
    if (r < 0)
        return r;
    struct plan_glob *globs =
        arena_grow(m->a, m->globs, m->glob_count, &m->glob_cap, 16, sizeof *globs);
    const char *pattern = arena_strdup(m->a, text);
    if (globs == NULL || pattern == NULL)
        return -ENOMEM;
    r = make_check_glob(m, pattern, fixed);
    if (r < 0)
        return r;
    m->globs = globs;
    globs[m->glob_count++] = (struct plan_glob){pattern, (uint32_t)fixed, m->p->glob_depth};
    return 0;
}

/* A pattern below the literal directory `base`. */
static int make_glob_below(struct profile_maker *m, const char *base, struct str pattern) {
    _cleanup_buf_ struct buf text = BUF_INIT(PROFILE_TEXT_MAX);
    size_t literal = strcmp(base, "/") == 0 ? 0 : strlen(base);
    int r = make_count_text(m, literal + pattern.n);
    if (r == 0)
        r = buf_put(&text, base, literal);
    if (r == 0)
        r = make_glob_text(&text, &literal, pattern);
    if (r == -ENOBUFS)
        return make_too_long(m);
    if (r < 0)
        return r;
    size_t fixed = make_glob_fixed(buf_str(&text), literal);
    if (fixed == 0)
        return make_glob_error(m, buf_str(&text), pattern);
    return make_add_glob(m, buf_str(&text), fixed);
}

static int make_glob(struct profile_maker *m, const struct profile_entry *entry) {
    struct str pattern = entry->text;
    const size_t prefix = sizeof PROFILE_ROOTS_PREFIX - 1;
    if (entry->access != PLAN_DENY)
        return 0;
    if (pattern.n > 0 && pattern.p[0] == '/')
        return make_glob_below(m, "/", pattern);
    if (m->home != NULL && pattern.n > 0 && pattern.p[0] == '~' &&
        (pattern.n == 1 || pattern.p[1] == '/'))
        return make_glob_below(m, m->home, (struct str){pattern.p + 1, pattern.n - 1});
    if (pattern.n < prefix || memcmp(pattern.p, PROFILE_ROOTS_PREFIX, prefix) != 0)
        return make_glob_below(m, m->cwd, pattern);
    pattern = (struct str){pattern.p + prefix, pattern.n - prefix};
    if (!make_stays_below(pattern))
        return 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->root_count; i++)
        r = make_glob_below(m, m->roots[i], pattern);
    return r;
}

static int make_entry(struct profile_maker *m, const struct profile_entry *entry) {
    switch (entry->target) {
    case PROFILE_PATH: return make_add(m, entry->path.native, entry->access);
    case PROFILE_GLOB: return make_glob(m, entry);
    case PROFILE_ROOT: return make_add(m, "/", entry->access);
    case PROFILE_MINIMAL: m->minimal |= entry->access != PLAN_DENY; return 0;
    case PROFILE_PROJECT_ROOTS: return make_project_roots(m, entry);
    case PROFILE_TMPDIR: return m->tmpdir != NULL ? make_add(m, m->tmpdir, entry->access) : 0;
    case PROFILE_SLASH_TMP: return make_add(m, "/tmp", entry->access);
    case PROFILE_UNKNOWN: break;
    }
    return 0;
}

/* By path; of one path the winning entry (deny, then write) first. */
static int make_compare(const void *x, const void *y) {
    const struct plan_entry *a = x, *b = y;
    int r = strcmp(a->path, b->path);
    return r != 0 ? r : (int)b->access - (int)a->access;
}

/* Sorts the entries and keeps one per path. Drops a denied root: that is the default anyway. */
static void make_merge(struct profile_maker *m) {
    size_t count = 0;
    const char *last = NULL;
    qsort(m->entries, m->entry_count, sizeof *m->entries, make_compare);
    for (size_t i = 0; i < m->entry_count; i++) {
        struct plan_entry entry = m->entries[i];
        if (last != NULL && strcmp(last, entry.path) == 0)
            continue;
        last = entry.path;
        if (entry.access != PLAN_DENY || strcmp(entry.path, "/") != 0)
            m->entries[count++] = entry;
    }
    m->entry_count = count;
}

static int make_files(struct profile_maker *m, enum profile_call call, struct plan *plan) {
    for (size_t i = 0; i < m->p->entry_count; i++) {
        int r = make_entry(m, &m->p->entries[i]);
        if (r < 0)
            return r;
    }
    int r = make_cap_roots(m);
    if (r < 0)
        return r;
    if (m->entry_count > 0)
        make_merge(m);
    plan->full_read = m->entry_count > 0 && strcmp(m->entries[0].path, "/") == 0;
    plan->minimal = !plan->full_read && (m->minimal || call == PROFILE_FILES);
    plan->entries = m->entries;
    plan->entry_count = m->entry_count;
    plan->globs = m->globs;
    plan->glob_count = m->glob_count;
    return 0;
}

/* "BEFORE `URI` is not valid ...: why". Returns -EINVAL. */
static int foreign_error(struct profile_maker *m, const char *before,
                         const struct profile_path *path) {
    return err_set(m->e, m->code, "%s `%.*s` is not valid on this exec-server host: %s", before,
                   (int)MIN(path->uri.n, 2048u), path->uri.p, path->foreign);
}

static int foreign_cwd(struct profile_maker *m, enum profile_call call) {
    const struct profile_path *cwd = &m->p->cwd;
    if (cwd->foreign == NULL)
        return 0;
    if (call == PROFILE_PROCESS)
        return foreign_error(m, "sandbox cwd URI", cwd);
    return err_set(m->e, m->code, "%s", cwd->foreign);
}

static int foreign_root(struct profile_maker *m, enum profile_call call) {
    for (size_t i = 0; i < m->p->root_count; i++) {
        const struct profile_path *root = &m->p->roots[i];
        if (root->foreign == NULL)
            continue;
        if (call == PROFILE_PROCESS)
            return foreign_error(m, "sandbox workspace root URI", root);
        return err_set(
            m->e, m->code,
            "file system sandbox workspace root is not native to this exec-server host: %s",
            root->foreign);
    }
    return 0;
}

static int foreign_entry(struct profile_maker *m) {
    for (size_t i = 0; i < m->p->entry_count; i++) {
        const char *text = m->p->entries[i].path.foreign;
        if (text != NULL)
            return err_set(m->e, m->code, "invalid sandbox permission path URI: %s", text);
    }
    return 0;
}

/* Refuses what this host cannot have, in the reference's order. */
static int make_check(struct profile_maker *m, enum profile_call call) {
    static const char mxc[] = "native MXC is unavailable on this executor";
    if (m->p->mxc && call == PROFILE_PROCESS)
        return err_set(m->e, m->code, "%s", mxc);
    int r = foreign_entry(m);
    if (r == 0)
        r = foreign_cwd(m, call);
    if (r == 0)
        r = foreign_root(m, call);
    if (r == 0 && m->p->mxc)
        r = err_set(m->e, m->code,
                    "failed to prepare fs sandbox: failed to prepare MXC sandbox: %s", mxc);
    return r;
}

/* The directories behind the tokens. */
static int make_places(struct profile_maker *m, const struct profile_context *c) {
    const struct profile *p = m->p;
    bool absolute = c->cwd != NULL && c->cwd[0] == '/';
    int r = make_path(m,
                      p->cwd.native != NULL ? p->cwd.native
                      : absolute            ? c->cwd
                                            : "/",
                      (struct str){NULL, 0}, &m->cwd);
    if (r == 0 && c->tmpdir != NULL && c->tmpdir[0] == '/')
        r = make_path(m, c->tmpdir, (struct str){NULL, 0}, &m->tmpdir);
    if (r == 0 && c->home != NULL && c->home[0] == '/')
        r = make_path(m, c->home, (struct str){NULL, 0}, &m->home);
    if (r < 0)
        return r;
    m->root_count = p->cwd_is_root ? 1 : p->root_count;
    m->roots = arena_calloc(m->a, m->root_count, sizeof *m->roots);
    if (m->roots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < m->root_count; i++)
        m->roots[i] = p->cwd_is_root ? m->cwd : p->roots[i].native;
    return 0;
}

int profile_plan(const struct profile *p, const struct profile_context *c, struct arena *a,
                 struct plan *plan, struct err *e) {
    bool process = c->call == PROFILE_PROCESS;
    struct profile_maker m = {
        .p = p, .a = a, .e = e, .code = process ? ERR_INVALID_PARAMS : ERR_INVALID_REQUEST};
    *plan = (struct plan){
        .confine_files = !p->full_write,
        .network = process && p->network ? PLAN_NET_ENABLED : PLAN_NET_RESTRICTED,
        .inherit_pids = c->inherit_pids,
        .cwd = "/",
    };
    int r = make_check(&m, c->call);
    if (r == 0)
        r = make_places(&m, c);
    if (r == 0 && process && c->cwd != NULL && c->cwd[0] == '/')
        r = make_path(&m, c->cwd, (struct str){NULL, 0}, &plan->cwd);
    if (r == 0 && plan->confine_files)
        r = make_files(&m, c->call, plan);
    return r == -ENOMEM ? err_os(e, ERR_INTERNAL, ENOMEM) : r;
}
