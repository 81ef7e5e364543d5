#include "environment/plugins.h"

#include "base/uri.h"
#include "environment/skill.h"
#include "environment/textfile.h"
#include "json/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define PLUGINS_NOTE ".codex-remote-plugin-install.json"

/* -- versions -- */

struct version {
    struct str core[3];
    struct str pre, build;
};

static bool version_is_digits(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return s.n > 0;
}

/* Cuts a text up to a separator, or its end, off the front. */
static struct str version_cut(struct str *s, char separator) {
    const char *end = s->n > 0 ? memchr(s->p, separator, s->n) : NULL;
    struct str part = {s->p, end != NULL ? (size_t)(end - s->p) : s->n};
    str_take(s, end != NULL ? part.n + 1 : part.n);
    return part;
}

/* Whether dots separate the identifiers of a text as they should. */
static bool version_is_list(struct str s, bool zeros) {
    bool more = true;
    while (more) {
        more = s.n > 0 && memchr(s.p, '.', s.n) != NULL;
        struct str part = version_cut(&s, '.');
        if (part.n == 0 || (!zeros && part.n > 1 && part.p[0] == '0' && version_is_digits(part)))
            return false;
    }
    return true;
}

static bool version_read(struct str s, struct version *v) {
    const char *plus = memchr(s.p, '+', s.n);
    struct str rest = {s.p, plus != NULL ? (size_t)(plus - s.p) : s.n};
    struct str build =
        plus != NULL ? (struct str){plus + 1, s.n - rest.n - 1} : (struct str){"", 0};
    const char *dash = memchr(rest.p, '-', rest.n);
    struct str core = {rest.p, dash != NULL ? (size_t)(dash - rest.p) : rest.n};
    struct str pre =
        dash != NULL ? (struct str){dash + 1, rest.n - core.n - 1} : (struct str){"", 0};
    for (int i = 0; i < 3; i++) {
        v->core[i] = i < 2 ? version_cut(&core, '.') : core;
        if (!version_is_digits(v->core[i]) || v->core[i].n > 19 ||
            (v->core[i].n > 1 && v->core[i].p[0] == '0'))
            return false;
    }
    v->pre = pre;
    v->build = build;
    return (dash == NULL || version_is_list(pre, false)) &&
           (plus == NULL || version_is_list(build, true));
}

static int version_order(struct str a, struct str b) {
    int c = memcmp(a.p, b.p, MIN(a.n, b.n));
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int version_order_numbers(struct str a, struct str b) {
    return a.n != b.n ? (a.n > b.n) - (a.n < b.n) : version_order(a, b);
}

static int version_order_lists(struct str a, struct str b) {
    while (a.n > 0 && b.n > 0) {
        struct str x = version_cut(&a, '.'), y = version_cut(&b, '.');
        bool xn = version_is_digits(x), yn = version_is_digits(y);
        int c = xn && yn ? version_order_numbers(x, y) : xn != yn ? yn - xn : version_order(x, y);
        if (c != 0)
            return c;
    }
    return (a.n > 0) - (b.n > 0);
}

bool plugins_version_less(struct str a, struct str b) {
    struct version x, y;
    if (!version_read(a, &x) || !version_read(b, &y))
        return version_order(a, b) < 0;
    int c = 0;
    for (int i = 0; c == 0 && i < 3; i++)
        c = version_order_numbers(x.core[i], y.core[i]);
    if (c == 0 && (x.pre.n == 0 || y.pre.n == 0))
        c = (x.pre.n == 0) - (y.pre.n == 0);
    if (c == 0)
        c = version_order_lists(x.pre, y.pre);
    return (c != 0 ? c : version_order_lists(x.build, y.build)) < 0;
}

/* -- names -- */

/* Whether a name consists of letters, digits, `-`, `_` and the others that are given. */
static bool plugins_is_name(struct str s, const char *others) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_';
        if (!plain && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return s.n > 0;
}

static bool plugins_is_version(struct str s) {
    return plugins_is_name(s, ".+") && !str_eqz(s, ".") && !str_eqz(s, "..");
}

static bool plugins_is_plugin(struct str s) {
    return plugins_is_name(s, ".") && s.p[0] != '.';
}

/* -- the search -- */

struct search {
    const struct discover_source *source;
    struct plugins_places *places;
    struct discover_path cache;
    struct package {
        struct str id; /* NAME@MARKETPLACE */
        struct discover_path path;
    } * packages;
    size_t count, cap;
    const struct discover_path *package; /* the one at hand */
    struct str best;                     /* its version */
    bool again;                          /* a call has to be made again */
};

static bool search_is_fatal(const struct search *s, int r) {
    return r == -ENOMEM || atomic_load(s->source->stop);
}

static struct str search_format(struct search *s, struct str a, const char *between, struct str b) {
    size_t n = a.n + strlen(between) + b.n;
    char *text = arena_alloc(&s->places->arena, n + 1);
    if (text != NULL)
        snprintf(text, n + 1, "%.*s%s%.*s", (int)a.n, a.p, between, (int)b.n, b.p);
    return (struct str){text, n};
}

/* Takes a directory that lies as deep as packages do. */
static int search_put_package(void *arg, const struct fs_item *item) {
    struct search *s = arg;
    struct arena *a = &s->places->arena;
    s->places->incomplete |= item->kind == FS_ITEM_ERROR || item->kind == FS_ITEM_TRUNCATED;
    if (item->kind != FS_ITEM_DIR || item->name.n <= s->cache.uri.n)
        return 0;
    struct str rest = {item->name.p + s->cache.uri.n + 1, item->name.n - s->cache.uri.n - 1};
    struct str market = version_cut(&rest, '/');
    if (!plugins_is_name(market, "") || !plugins_is_plugin(rest))
        return 0;
    struct package *packages = arena_grow(a, s->packages, s->count, &s->cap, 16, sizeof *packages);
    struct str id = search_format(s, rest, "@", market);
    struct str below = search_format(s, market, "/", rest);
    if (packages == NULL || id.p == NULL || below.p == NULL)
        return -ENOMEM;
    s->packages = packages;
    s->packages[s->count++] = (struct package){id, discover_join(a, &s->cache, below)};
    return 0;
}

static int search_by_id(const void *a, const void *b) {
    return version_order(((const struct package *)a)->id, ((const struct package *)b)->id);
}

/* Whether a version of the package at hand is a directory, not a link to one. */
static bool search_is_own(struct search *s, struct str name) {
    _cleanup_arena_ struct arena a = ARENA_INIT(4 * URI_PATH_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_meta m;
    struct discover_path p = discover_join(&a, s->package, name);
    int r = p.uri.p != NULL ? s->source->meta(s->source->arg, p.native.p, &m, &e) : -ENOENT;
    s->again |= r > 0;
    return r == 0 && m.link == 0;
}

/* Takes the best version; names that are no versions are passed over. */
static int search_put_version(void *arg, const struct fs_item *item) {
    struct search *s = arg;
    struct str name = discover_name(item->name);
    if (item->kind != FS_ITEM_DIR || !plugins_is_version(name))
        return 0;
    bool better = s->best.p == NULL || str_eqz(name, "local") ||
                  (!str_eqz(s->best, "local") && plugins_version_less(s->best, name));
    if (!better || !search_is_own(s, name))
        return 0;
    s->best = (struct str){arena_strdup(&s->places->arena, name), name.n};
    return s->best.p != NULL ? 0 : -ENOMEM;
}

/* Walks a directory. A fault makes the result incomplete. 0, 1 or -errno. */
static int search_walk(struct search *s, const struct discover_path *p, unsigned depth,
                       int (*put)(void *arg, const struct fs_item *item)) {
    _cleanup_err_ struct err e = ERR_INIT;
    const struct fs_walk w = {.path = p->native.p,
                              .uri = p->uri.p,
                              .max_depth = depth,
                              .max_directories = DISCOVER_DIRECTORIES,
                              .max_entries = DISCOVER_ENTRIES,
                              .follow_directory_links = true};
    const struct fs_sink sink = {put, s};
    int r = s->source->walk(s->source->arg, &w, &sink, &e);
    if (r >= 0 || search_is_fatal(s, r))
        return r;
    s->places->incomplete |= r != -ENOENT && r != -ENOTDIR && r != -EACCES;
    return 0;
}

/* Reads the remote id that the note about an installation gives. -EINVAL: it is faulty. */
static int search_decode_note(struct search *s, struct str text, struct str *remote) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    if (textfile_fault(text, &e))
        return -EINVAL;
    json_doc_init(&doc, PLUGINS_NOTE_MAX, discover_seed());
    int r = json_parse(&doc, text.p, text.n, &e);
    const struct json_node *root = r == 0 ? json_root(&doc) : NULL;
    bool object = root != NULL && root->type == JSON_OBJECT;
    const struct json_node *schema = object ? json_get(root, "schema_version") : NULL;
    const struct json_node *id = object ? json_get(root, "remote_plugin_id") : NULL;
    uint64_t version = 0;
    bool known = schema != NULL && schema->type == JSON_NUMBER && json_u64(schema, &version) == 0 &&
                 version == 1 && id != NULL && id->type == JSON_STRING;
    struct str trimmed = known ? skill_trim(json_str(id)) : (struct str){NULL, 0};
    if (trimmed.n > 0 && trimmed.n <= PLUGINS_REMOTE_ID_MAX)
        *remote = (struct str){arena_strdup(&s->places->arena, trimmed), trimmed.n};
    json_doc_fini(&doc);
    if (r == -ENOMEM)
        return r;
    return remote->p != NULL ? 0 : -EINVAL;
}

static int search_remote(struct search *s, const struct discover_path *package,
                         struct str *remote) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct str text;
    struct discover_path note = discover_join(&s->places->arena, package, STR_LIT(PLUGINS_NOTE));
    *remote = (struct str){NULL, 0};
    if (note.uri.p == NULL)
        return 0;
    int r = discover_read(s->source, &s->places->arena, note.native.p, PLUGINS_NOTE_MAX, &text, &e);
    if (r == 0)
        r = search_decode_note(s, text, remote);
    if (r >= 0 || search_is_fatal(s, r))
        return r;
    s->places->incomplete |= r != -ENOENT;
    return 0;
}

static int search_package(struct search *s, const struct package *k) {
    struct plugins_places *p = s->places;
    s->best = (struct str){NULL, 0};
    if (k->path.uri.p == NULL)
        return 0;
    s->package = &k->path;
    int r = search_walk(s, &k->path, 0, search_put_version);
    if (r == 0 && s->again)
        r = 1;
    if (r != 0 || s->best.p == NULL)
        return r;
    if (p->count == PLUGINS_PLACES_MAX) {
        p->incomplete = true;
        return 0;
    }
    struct plugins_place place = {
        .root = discover_join(&p->arena, &k->path, s->best), .id = k->id, .version = s->best};
    r = search_remote(s, &k->path, &place.remote);
    if (r == 0 && place.root.uri.p != NULL)
        p->place[p->count++] = place;
    return r;
}

/* The path of `below` in a native directory. p NULL: no memory, or too long. */
static struct discover_path search_path(struct arena *a, const char *dir, const char *below) {
    _cleanup_buf_ struct buf uri = BUF_INIT(URI_PATH_MAX * 3);
    struct discover_path base = {{NULL, 0}, str_of(dir)};
    if (uri_from_path(&uri, base.native) < 0)
        return base;
    base.uri = buf_str(&uri);
    return discover_join(a, &base, str_of(below));
}

static void search_skills(struct plugins_places *p, const char *dir, const char *below,
                          const char *id) {
    struct plugins_place place = {.root = search_path(&p->arena, dir, below), .skills = id};
    if (place.root.uri.p != NULL)
        p->place[p->count++] = place;
}

int plugins_find(const struct discover_source *source, const char *codex_home, const char *home,
                 struct plugins_places *p) {
    struct search s = {.source = source, .places = p};
    *p = (struct plugins_places){.arena = ARENA_INIT(PLUGINS_ARENA_MAX)};
    p->place = arena_calloc(&p->arena, PLUGINS_PLACES_MAX + 2, sizeof *p->place);
    if (p->place == NULL)
        return -ENOMEM;
    s.cache = search_path(&p->arena, codex_home, "plugins/cache");
    int r = s.cache.uri.p != NULL ? search_walk(&s, &s.cache, 1, search_put_package) : 0;
    if (r == 0 && s.count > 0)
        qsort(s.packages, s.count, sizeof *s.packages, search_by_id);
    for (size_t i = 0; r == 0 && i < s.count; i++)
        r = search_package(&s, &s.packages[i]);
    search_skills(p, codex_home, "skills", "codex-home-skills");
    if (home != NULL && home[0] == '/')
        search_skills(p, home, ".agents/skills", "user-agent-skills");
    return r;
}

void plugins_fini(struct plugins_places *p) {
    arena_fini(&p->arena);
}
