#include "environment/discover.h"

#include "base/uri.h"
#include "environment/manifest.h"
#include "environment/textfile.h"
#include "json/json.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>

/* Where a plugin has its manifest, the best first. */
static const char *const discover_manifests[] = {
    ".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json"};

/* A manifest that a walk found. */
struct found {
    struct discover_path path;
    size_t priority; /* in discover_manifests */
    size_t root;     /* length of the URI of its plugin */
};

/* A root being read. */
struct scan {
    const struct discover_source *source;
    struct discovery *d;
    struct discover_path root;
    struct discover_path *skills;
    struct found *manifests;
    size_t skill_count, skill_cap, manifest_count, manifest_cap;
};

#define DISCOVER_SCHEME (sizeof "file://" - 1)

/* -- paths -- */

/* A URI without the slashes at its end. */
static struct str discover_bare(struct str uri) {
    while (uri.n > DISCOVER_SCHEME && uri.p[uri.n - 1] == '/')
        uri.n--;
    return uri;
}

struct str discover_name(struct str native) {
    const char *slash = memrchr(native.p, '/', native.n);
    size_t n = slash != NULL ? (size_t)(slash - native.p) + 1 : 0;
    return (struct str){native.p + n, native.n - n};
}

static struct str discover_cut(struct str s) {
    const char *slash = s.n > 0 ? memrchr(s.p, '/', s.n) : NULL;
    return (struct str){s.p, slash != NULL ? (size_t)(slash - s.p) : 0};
}

/* Copies a part of a path, with a NUL. */
static struct str discover_copy(struct arena *a, struct str s) {
    return (struct str){arena_strdup(a, s), s.n};
}

bool discover_parent(struct discover_path *p) {
    if (p->native.n <= 1)
        return false;
    p->uri = discover_cut(discover_bare(p->uri));
    p->native = discover_cut(p->native);
    if (p->native.n == 0)
        *p = (struct discover_path){STR_LIT("file:///"), STR_LIT("/")};
    return true;
}

struct discover_path discover_join(struct arena *a, const struct discover_path *base,
                                   struct str relative) {
    _cleanup_buf_ struct buf native = BUF_INIT(PATH_MAX), uri = BUF_INIT(URI_PATH_MAX * 3),
                             tail = BUF_INIT(PATH_MAX * 3 + 16);
    struct discover_path joined = {{NULL, 0}, {NULL, 0}};
    struct str b = discover_bare(base->uri);
    struct str n = base->native.n == 1 ? (struct str){"", 0} : base->native;
    int r = buf_put(&native, n.p, n.n);
    if (r == 0)
        r = buf_putc(&native, '/');
    size_t start = native.len - 1;
    if (r == 0)
        r = buf_put(&native, relative.p, relative.n);
    /* As the URI of a path of its own, without "file://". */
    if (r == 0)
        r = uri_from_path(&tail, (struct str){native.p + start, native.len - start});
    if (r == 0)
        r = buf_put(&uri, b.p, b.n);
    if (r == 0)
        r = buf_put(&uri, tail.p + DISCOVER_SCHEME, tail.len - DISCOVER_SCHEME);
    if (r < 0)
        return joined;
    joined =
        (struct discover_path){discover_copy(a, buf_str(&uri)), discover_copy(a, buf_str(&native))};
    if (joined.native.p == NULL)
        joined.uri.p = NULL;
    return joined;
}

uint64_t discover_seed(void) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    return seed;
}

/* -- warnings -- */

/* Adds "BEFORE URI AFTER". 0 or -ENOMEM. */
static int scan_warn(struct scan *s, const char *before, struct str uri, const char *after,
                     struct str why) {
    struct discovery *d = s->d;
    size_t n = strlen(before) + uri.n + strlen(after) + why.n;
    char *text = arena_alloc(&d->arena, n + 1);
    struct str *warnings =
        arena_grow(&d->arena, d->warnings, d->warning_count, &d->warning_cap, 8, sizeof *warnings);
    if (text == NULL || warnings == NULL)
        return -ENOMEM;
    char *end = stpcpy(text, before);
    end = mempcpy(end, uri.p, uri.n);
    end = stpcpy(end, after);
    if (why.n > 0)
        memcpy(end, why.p, why.n);
    d->warnings = warnings;
    d->warnings[d->warning_count++] = (struct str){text, n};
    return 0;
}

static int scan_warn_bundle(struct scan *s) {
    char text[96];
    snprintf(text, sizeof text, "capability root bundle exceeds the %u-byte limit",
             DISCOVER_BUNDLE_MAX);
    return scan_warn(s, text, (struct str){"", 0}, "", (struct str){NULL, 0});
}

/* The root cannot be read. 0 or -ENOMEM. */
static int scan_refuse(struct scan *s, const char *before, const char *after, struct str why) {
    int r = scan_warn(s, before, s->root.uri, after, why);
    if (r == 0)
        s->d->error = s->d->warnings[--s->d->warning_count];
    return r;
}

/* -- files -- */

/* Reads what a file holds now, at most max + 1 bytes. 0 or -errno. */
static int discover_drain(int fd, size_t max, struct buf *b) {
    while (b->len <= max) {
        size_t most = MIN(max + 1 - b->len, (size_t)1 << 16);
        int r = buf_reserve(b, most);
        ssize_t n = r == 0 ? fs_file_pread(fd, b->p + b->len, most, b->len) : r;
        if (n <= 0)
            return (int)n;
        b->len += (size_t)n;
    }
    return 0;
}

/* Like discover_read(); -EFBIG without e set: more than max bytes. */
static int discover_fetch(const struct discover_source *s, struct arena *a, const char *path,
                          size_t max, struct str *text, struct err *e) {
    struct fs_file f = FS_FILE_NONE;
    if (atomic_load(s->stop))
        return err_os(e, ERR_INTERNAL, ECANCELED);
    int r = s->open(s->arg, path, &f, e);
    if (r != 0)
        return r;
    _cleanup_close_ int fd = f.fd;
    _cleanup_buf_ struct buf b = BUF_INIT(max + 1);
    r = discover_drain(fd, max, &b);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    if (b.len > max)
        return -EFBIG;
    *text = discover_copy(a, buf_str(&b));
    return text->p != NULL ? 0 : err_os(e, ERR_INTERNAL, ENOMEM);
}

int discover_read(const struct discover_source *s, struct arena *a, const char *path, size_t max,
                  struct str *text, struct err *e) {
    struct fs_meta m;
    int r = s->meta(s->arg, path, &m, e);
    if (r != 0)
        return r;
    if (!S_ISREG(m.mode))
        return -ENOENT;
    r = discover_fetch(s, a, path, max, text, e);
    return r == -EFBIG ? err_set(e, ERR_INTERNAL, "more than %zu bytes", max) : r;
}

/* Ends the whole discovery: out of memory, or nobody is interested. */
static bool scan_is_fatal(const struct scan *s, int r) {
    return r == -ENOMEM || atomic_load(s->source->stop);
}

/* Warns of a file whose size is against the limits. 1: it was; 0; -ENOMEM. */
static int scan_check_size(struct scan *s, struct str uri, uint64_t size) {
    char limit[64];
    snprintf(limit, sizeof limit, " exceeds the %u-byte limit", DISCOVER_FILE_MAX);
    int r = 0;
    if (size > DISCOVER_FILE_MAX)
        r = scan_warn(s, "capability file ", uri, limit, (struct str){NULL, 0});
    else if (size > DISCOVER_BUNDLE_MAX - s->d->bytes)
        r = scan_warn_bundle(s);
    else
        return 0;
    return r < 0 ? r : 1;
}

/* Checks and keeps a text that was read. 0 or -ENOMEM. */
static int scan_keep(struct scan *s, struct str uri, struct str text, struct discover_file *out) {
    _cleanup_err_ struct err why = ERR_INIT;
    int r = scan_check_size(s, uri, text.n);
    if (r != 0)
        return MIN(r, 0);
    if (textfile_fault(text, &why))
        return scan_warn(s, "capability file ", uri, " is not UTF-8: ", err_str(&why));
    s->d->bytes += text.n;
    *out = (struct discover_file){uri, text};
    return 0;
}

/* Reads a file that need not be there; a fault is a warning. 0, 1 or -errno. */
static int scan_read(struct scan *s, const struct discover_path *p, struct discover_file *out) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_meta m;
    struct str text;
    *out = (struct discover_file){{NULL, 0}, {NULL, 0}};
    if (p->uri.p == NULL)
        return 0; /* too long to exist */
    int r = s->source->meta(s->source->arg, p->native.p, &m, &e);
    if (r > 0 || (r < 0 && scan_is_fatal(s, r)))
        return r;
    if (r < 0)
        return r == -ENOENT
                   ? 0
                   : scan_warn(s, "failed to inspect capability file ", p->uri, ": ", err_str(&e));
    if (!S_ISREG(m.mode))
        return 0;
    r = scan_check_size(s, p->uri, m.size);
    if (r != 0)
        return MIN(r, 0);
    r = discover_fetch(s->source, &s->d->arena, p->native.p, DISCOVER_FILE_MAX, &text, &e);
    if (r == 0)
        return scan_keep(s, p->uri, text, out);
    if (r > 0 || scan_is_fatal(s, r))
        return r;
    if (r == -EFBIG)
        return scan_warn(s, "capability file ", p->uri, " exceeded its read limit",
                         (struct str){NULL, 0});
    return scan_warn(s, "failed to read capability file ", p->uri, ": ", err_str(&e));
}

/* -- the walk -- */

/* Copies a path that the walk found. The URI has no native form only if it is too long. */
static int scan_path(struct scan *s, struct str uri, struct discover_path *out) {
    _cleanup_free_ char *native = NULL;
    _cleanup_err_ struct err e = ERR_INIT;
    if (uri_to_path(uri, &native, &e) < 0)
        return -EINVAL;
    *out = (struct discover_path){discover_copy(&s->d->arena, uri),
                                  discover_copy(&s->d->arena, str_of(native))};
    return out->uri.p != NULL && out->native.p != NULL ? 0 : -ENOMEM;
}

/* The place of a manifest in discover_manifests; their number: it is none. */
static size_t scan_priority(struct str native) {
    size_t i = 0;
    for (; i < ARRAY_LEN(discover_manifests); i++) {
        size_t n = strlen(discover_manifests[i]);
        if (native.n > n && native.p[native.n - n - 1] == '/' &&
            memcmp(native.p + native.n - n, discover_manifests[i], n) == 0)
            break;
    }
    return i;
}

static int scan_note_skill(struct scan *s, struct str uri) {
    struct discover_path *skills =
        arena_grow(&s->d->arena, s->skills, s->skill_count, &s->skill_cap, 16, sizeof *skills);
    if (skills == NULL)
        return -ENOMEM;
    s->skills = skills;
    int r = scan_path(s, uri, &s->skills[s->skill_count]);
    s->skill_count += r == 0;
    return r == -EINVAL ? 0 : r;
}

static int scan_note_manifest(struct scan *s, struct str uri) {
    struct found *manifests = arena_grow(&s->d->arena, s->manifests, s->manifest_count,
                                         &s->manifest_cap, 16, sizeof *manifests);
    if (manifests == NULL)
        return -ENOMEM;
    s->manifests = manifests;
    struct found *f = &s->manifests[s->manifest_count];
    int r = scan_path(s, uri, &f->path);
    if (r < 0)
        return r == -EINVAL ? 0 : r;
    f->priority = scan_priority(f->path.native);
    f->root = discover_cut(discover_cut(f->path.uri)).n;
    s->manifest_count += f->priority < ARRAY_LEN(discover_manifests);
    return 0;
}

static int scan_put(void *arg, const struct fs_item *item) {
    struct scan *s = arg;
    struct str name = discover_name(item->name);
    if (item->kind == FS_ITEM_ERROR)
        return scan_warn(s, "failed to scan capability path ", item->name, ": ", item->message);
    if (item->kind == FS_ITEM_TRUNCATED)
        return scan_warn(s, "capability scan reached its traversal limit (root: ", s->root.uri, ")",
                         (struct str){NULL, 0});
    if (item->kind != FS_ITEM_FILE)
        return 0;
    if (str_eqz(name, "SKILL.md"))
        return scan_note_skill(s, item->name);
    return str_eqz(name, "plugin.json") ? scan_note_manifest(s, item->name) : 0;
}

static int scan_compare(struct str a, struct str b) {
    int c = memcmp(a.p, b.p, MIN(a.n, b.n));
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int scan_by_uri(const void *a, const void *b) {
    return scan_compare(((const struct discover_path *)a)->uri,
                        ((const struct discover_path *)b)->uri);
}

static struct str found_root(const struct found *f) {
    return (struct str){f->path.uri.p, f->root};
}

static int scan_by_root(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    int c = scan_compare(found_root(x), found_root(y));
    return c != 0 ? c : (x->priority > y->priority) - (x->priority < y->priority);
}

/* Looks at the root and walks it. 0, also with d->error set; 1; -errno. */
static int scan_walk(struct scan *s) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_meta m;
    const struct discover_source *from = s->source;
    int r = from->meta(from->arg, s->root.native.p, &m, &e);
    if (r > 0 || (r < 0 && scan_is_fatal(s, r)))
        return r;
    if (r < 0)
        return scan_refuse(s, "failed to inspect capability root ", ": ", err_str(&e));
    if (!S_ISDIR(m.mode))
        return scan_refuse(s, "capability root ", " is not a directory", (struct str){NULL, 0});
    const struct fs_walk w = {.path = s->root.native.p,
                              .uri = s->root.uri.p,
                              .max_depth = DISCOVER_DEPTH,
                              .max_directories = DISCOVER_DIRECTORIES,
                              .max_entries = DISCOVER_ENTRIES,
                              .follow_directory_links = true};
    const struct fs_sink sink = {scan_put, s};
    r = from->walk(from->arg, &w, &sink, &e);
    if (r < 0 && !scan_is_fatal(s, r))
        return scan_refuse(s, "failed to scan capability root ", ": ", err_str(&e));
    if (r == 0 && s->skill_count > 0)
        qsort(s->skills, s->skill_count, sizeof *s->skills, scan_by_uri);
    if (r == 0 && s->manifest_count > 0)
        qsort(s->manifests, s->manifest_count, sizeof *s->manifests, scan_by_root);
    return r;
}

/* -- manifests -- */

/* Reads the best manifest of a directory. 0 (out->uri.p is NULL if there is none), 1, -errno. */
static int scan_manifest_of(struct scan *s, const struct discover_path *dir,
                            struct discover_file *out) {
    *out = (struct discover_file){{NULL, 0}, {NULL, 0}};
    int r = 0;
    for (size_t i = 0; r == 0 && out->uri.p == NULL && i < ARRAY_LEN(discover_manifests); i++) {
        struct discover_path p = discover_join(&s->d->arena, dir, str_of(discover_manifests[i]));
        r = scan_read(s, &p, out);
    }
    return r;
}

static int scan_add_namespace(struct scan *s, const struct discover_file *f) {
    struct discovery *d = s->d;
    struct discover_file *all =
        arena_grow(&d->arena, d->namespaces, d->namespace_count, &d->namespace_cap, 8, sizeof *all);
    if (all == NULL)
        return -ENOMEM;
    d->namespaces = all;
    d->namespaces[d->namespace_count++] = *f;
    return 0;
}

/* The manifest of the root, or else of the nearest directory above it. */
static int scan_inherited(struct scan *s) {
    struct discover_file f;
    int r = scan_manifest_of(s, &s->root, &s->d->manifest);
    f = s->d->manifest;
    struct discover_path above = s->root;
    while (r == 0 && f.uri.p == NULL && discover_parent(&above))
        r = scan_manifest_of(s, &above, &f);
    return r == 0 && f.uri.p != NULL ? scan_add_namespace(s, &f) : r;
}

/* The first manifest of each plugin below the root. */
static int scan_nested(struct scan *s) {
    struct str seen = {NULL, 0}, inherited = {NULL, 0};
    int r = 0;
    if (s->d->namespace_count > 0)
        inherited = discover_cut(discover_cut(s->d->namespaces[0].uri));
    for (size_t i = 0; r == 0 && i < s->manifest_count; i++) {
        struct discover_file f;
        struct str root = found_root(&s->manifests[i]);
        bool known = (inherited.p != NULL && str_eq(root, inherited)) ||
                     (seen.p != NULL && str_eq(root, seen));
        seen = root;
        if (known)
            continue;
        r = scan_read(s, &s->manifests[i].path, &f);
        if (r == 0 && f.uri.p != NULL)
            r = scan_add_namespace(s, &f);
    }
    return r;
}

/* -- what a manifest declares -- */

/* Removes "." components and doubled slashes; false if a ".." would lead out. */
static bool scan_clean(struct str relative, struct buf *out) {
    if (relative.n == 0 || relative.p[0] == '/' || str_has_nul(relative))
        return false;
    for (size_t i = 0, start = 0; i <= relative.n; i++) {
        if (i < relative.n && relative.p[i] != '/' && relative.p[i] != '\\')
            continue;
        if (i - start == 2 && memcmp(relative.p + start, "..", 2) == 0)
            return false;
        start = i + 1;
    }
    while (relative.n > 0) {
        const char *slash = memchr(relative.p, '/', relative.n);
        size_t n = slash != NULL ? (size_t)(slash - relative.p) : relative.n;
        struct str part = {relative.p, n};
        str_take(&relative, slash != NULL ? n + 1 : n);
        if (n == 0 || str_eqz(part, "."))
            continue;
        if ((out->len > 0 && buf_putc(out, '/') < 0) || buf_put(out, part.p, part.n) < 0)
            return false;
    }
    return true;
}

/* The file that a manifest's member names, or else the default. p NULL: none. -ENOMEM. */
static int scan_declared(struct scan *s, const struct json_node *value, const char *field,
                         const char *by_default, struct discover_path *out) {
    _cleanup_buf_ struct buf clean = BUF_INIT(PATH_MAX);
    const char *why = NULL;
    *out = discover_join(&s->d->arena, &s->root, str_of(by_default));
    if (value == NULL || value->type != JSON_STRING)
        return 0;
    struct str path = json_str(value);
    if (path.n < 2 || memcmp(path.p, "./", 2) != 0)
        why = ": path must start with `./`";
    else if (!scan_clean((struct str){path.p + 2, path.n - 2}, &clean))
        why = ": path must remain below the capability root";
    if (why == NULL) {
        *out = clean.len > 0 ? discover_join(&s->d->arena, &s->root, buf_str(&clean)) : s->root;
        return 0;
    }
    char before[64];
    snprintf(before, sizeof before, "ignoring %s in ", field);
    return scan_warn(s, before, s->d->manifest.uri, why, (struct str){NULL, 0});
}

/* Reads the two files of configuration that the root's manifest declares. */
static int scan_declarations(struct scan *s) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    struct discovery *d = s->d;
    if (d->manifest.uri.p == NULL)
        return 0;
    json_doc_init(&doc, DISCOVER_FILE_MAX, discover_seed());
    doc.keeps_duplicates = true;
    int r = json_parse(&doc, d->manifest.text.p, d->manifest.text.n, &e);
    const struct json_node *root = r == 0 ? json_root(&doc) : NULL, *mcp = NULL, *apps = NULL;
    bool readable = root != NULL &&
                    (root->type == JSON_OBJECT || (root->type == JSON_ARRAY && root->count <= 2));
    if (readable &&
        (!manifest_member(root, 0, "mcpServers", &mcp) || !manifest_member(root, 1, "apps", &apps)))
        mcp = apps = NULL;
    bool inline_mcp = mcp != NULL && mcp->type == JSON_OBJECT;
    struct discover_path mcp_path = s->root, apps_path = s->root;
    if (r != -ENOMEM)
        r = scan_declared(s, mcp, "mcpServers", ".mcp.json", &mcp_path);
    if (r == 0)
        r = scan_declared(s, apps, "apps", ".app.json", &apps_path);
    json_doc_fini(&doc);
    if (r == 0 && !inline_mcp)
        r = scan_read(s, &mcp_path, &d->mcp);
    return r == 0 ? scan_read(s, &apps_path, &d->apps) : r;
}

/* -- skills -- */

static int scan_skill(struct scan *s, const struct discover_path *p) {
    struct discovery *d = s->d;
    struct discover_skill skill = {{{NULL, 0}, {NULL, 0}}, {{NULL, 0}, {NULL, 0}}};
    int r = scan_read(s, p, &skill.instructions);
    if (r != 0 || skill.instructions.uri.p == NULL)
        return r;
    struct discover_path dir = *p;
    discover_parent(&dir);
    struct discover_path metadata = discover_join(&d->arena, &dir, STR_LIT("agents/openai.yaml"));
    r = scan_read(s, &metadata, &skill.metadata);
    if (r != 0)
        return r;
    struct discover_skill *skills =
        arena_grow(&d->arena, d->skills, d->skill_count, &d->skill_cap, 16, sizeof *skills);
    if (skills == NULL)
        return -ENOMEM;
    d->skills = skills;
    d->skills[d->skill_count++] = skill;
    return 0;
}

int discover_root(const struct discover_source *source, const struct discover_path *root,
                  struct discovery *d) {
    struct scan s = {.source = source, .d = d, .root = *root};
    int r = scan_walk(&s);
    if (r != 0 || d->error.p != NULL)
        return r;
    r = scan_inherited(&s);
    if (r == 0)
        r = scan_nested(&s);
    if (r == 0)
        r = scan_declarations(&s);
    for (size_t i = 0; r == 0 && i < s.skill_count; i++)
        r = scan_skill(&s, &s.skills[i]);
    return r;
}

void discover_reset(struct discovery *d) {
    arena_fini(&d->arena);
    *d = (struct discovery){.arena = ARENA_INIT(DISCOVER_ARENA_MAX)};
}

void discover_fini(struct discovery *d) {
    arena_fini(&d->arena);
}
