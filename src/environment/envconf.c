#include "environment/envconf.h"

#include "base/uri.h"
#include "base/utf8.h"
#include "environment/envconf_select.h"
#include "environment/envconf_trust.h"
#include "environment/textfile.h"
#include "toml/toml_write.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENVCONF_TREE_MAX (4u << 20) /* bytes of selected values of one layer */

/* A file of configuration that was read. */
struct envconf_file {
    char path[PATH_MAX];
    struct arena arena;
    const struct toml_value *root; /* NULL: there is no such file */
};

/* The three that every project meets. */
struct envconf_base {
    struct envconf_file system, user, managed;
};

static void envconf_base_fini(struct envconf_base *b) {
    arena_fini(&b->system.arena);
    arena_fini(&b->user.arena);
    arena_fini(&b->managed.arena);
}

/* How the errors of a file are worded. */
struct envconf_words {
    const char *unreadable; /* before the path */
    const char *bad;        /* before the path and the excerpt; NULL: "PATH:LINE:COLUMN: REASON" */
};

static const struct envconf_words envconf_plain = {"Failed to read config file", NULL};
static const struct envconf_words envconf_project = {"Failed to read project config file",
                                                     "Error parsing project config file"};
static const struct envconf_words envconf_required = {"Failed to read requirements file",
                                                      "failed to parse requirements layer"};

/* A part of an answer: its layers so far. */
struct envconf_stack {
    const struct envconf *request;
    const struct envconf_paths *paths;
    struct buf *out; /* borrowed */
    size_t count;
    struct err *e; /* borrowed */
};

/* -- files -- */

/* Names the directory dir/name in `path`. False: too long. */
static bool envconf_join(char path[static PATH_MAX], const char *dir, const char *name) {
    int n = snprintf(path, PATH_MAX, "%s/%s", dir[1] == '\0' ? "" : dir, name);
    return n > 0 && n < PATH_MAX;
}

/* Takes `line L, column C: ` from the front of a message; what follows, or NULL. */
static const char *envconf_place(const char *text, unsigned *line, unsigned *column) {
    static const char first[] = "line ", second[] = ", column ", last[] = ": ";
    char *end;
    if (strncmp(text, first, sizeof first - 1) != 0)
        return NULL;
    *line = (unsigned)strtoul(text + sizeof first - 1, &end, 10);
    if (strncmp(end, second, sizeof second - 1) != 0)
        return NULL;
    *column = (unsigned)strtoul(end + sizeof second - 1, &end, 10);
    return strncmp(end, last, sizeof last - 1) == 0 ? end + sizeof last - 1 : NULL;
}

static int envconf_syntax(const struct envconf_words *words, const char *path, struct str text,
                          const struct err *why, struct err *e) {
    unsigned line = 0, column = 0;
    const char *said = envconf_place(err_msg(why), &line, &column);
    if (said == NULL)
        return err_set(e, ERR_INTERNAL, "%s: %s", path, err_msg(why));
    if (words->bad == NULL)
        return err_set(e, ERR_INTERNAL, "%s:%u:%u: %s", path, line, column, said);
    for (unsigned i = 1; i < line && text.n > 0; i++) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end != NULL ? (size_t)(end - text.p) + 1 : text.n;
        text = (struct str){text.p + n, text.n - n};
    }
    const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
    int n = (int)MIN(end != NULL ? (size_t)(end - text.p) : text.n, (size_t)1024);
    int width = snprintf(NULL, 0, "%u", line);
    return err_set(e, ERR_INTERNAL,
                   "%s %s: TOML parse error at line %u, column %u\n%*s |\n%u | %.*s\n%*s | "
                   "%*s\n%s\n",
                   words->bad, path, line, column, width, "", line, n, text.p, width, "",
                   (int)MIN(column, 1024u), "^", said);
}

/* Reads and parses `f->path`. 0, also if there is no such file; 1: not TOML, with e set; -errno
 * with e set. */
static int envconf_load(struct envconf_file *f, const struct envconf_words *words, struct err *e) {
    _cleanup_buf_ struct buf text = BUF_INIT(TOML_TEXT_MAX + 1);
    _cleanup_err_ struct err why = ERR_INIT;
    f->root = NULL;
    f->arena = ARENA_INIT(TOML_ARENA_MAX);
    switch (textfile_read(f->path, TOML_TEXT_MAX, &text, &why)) {
    case TEXTFILE_MISSING: return 0;
    case TEXTFILE_READ: break;
    case TEXTFILE_TOO_LARGE:
        return err_set(e, ERR_INTERNAL, "%s %s: more than %u bytes", words->unreadable, f->path,
                       TOML_TEXT_MAX);
    case TEXTFILE_NOT_TEXT:
    case TEXTFILE_FAILED:
        return err_set(e, ERR_INTERNAL, "%s %s: %s", words->unreadable, f->path, err_msg(&why));
    }
    if (toml_parse(&f->arena, buf_str(&text), &f->root, &why) == 0)
        return 0;
    envconf_syntax(words, f->path, buf_str(&text), &why, e);
    return 1;
}

static int envconf_open(struct envconf_file *f, const char *dir, const char *name,
                        const struct envconf_words *words, struct err *e) {
    f->arena = ARENA_INIT(TOML_ARENA_MAX);
    f->root = NULL;
    if (!envconf_join(f->path, dir, name))
        return 0;
    return envconf_load(f, words, e) == 0 ? 0 : -EINVAL;
}

/* -- the answer -- */

static int envconf_put_uri(struct buf *b, const char *path) {
    _cleanup_buf_ struct buf uri = BUF_INIT(URI_PATH_MAX * 3 + 16);
    int r = uri_from_path(&uri, str_of(path));
    return r < 0 ? r : jsonw_str(b, buf_str(&uri));
}

static int envconf_put_layer(struct buf *b, const char *kind, const char *path, struct str toml) {
    char source[PATH_MAX + 64], dir[PATH_MAX];
    int n = kind != NULL ? snprintf(source, sizeof source, "%s (%s)", kind, path)
                         : snprintf(source, sizeof source, "%s", path);
    snprintf(dir, sizeof dir, "%s", path);
    envconf_trust_up(dir);
    utf8_mend(source, (size_t)n);
    int r = buf_putz(b, "{\"source\":");
    if (r == 0)
        r = jsonw_str(b, (struct str){source, (size_t)n});
    if (r == 0)
        r = buf_putz(b, ",\"baseDir\":");
    if (r == 0)
        r = envconf_put_uri(b, dir);
    if (r == 0)
        r = buf_putz(b, ",\"toml\":");
    if (r == 0)
        r = jsonw_str(b, toml);
    return r < 0 ? r : buf_putc(b, '}');
}

static int envconf_out_of_room(int r, struct err *e) {
    if (r == -ENOBUFS)
        return err_set(e, ERR_INTERNAL, "the configuration exceeds %u bytes", ENVCONF_RESULT_MAX);
    return err_os(e, ERR_INTERNAL, -r);
}

/* Adds what the client selects of a tree. An empty layer is left out. 0 or -errno with e set. */
static int envconf_push(struct envconf_stack *s, const char *kind, const char *path,
                        const struct toml_value *root, bool project) {
    _cleanup_arena_ struct arena a = ARENA_INIT(ENVCONF_TREE_MAX);
    _cleanup_buf_ struct buf text = BUF_INIT(ENVCONF_RESULT_MAX);
    if (s->paths->count == 0 || root == NULL)
        return 0;
    if (atomic_load(s->request->stop))
        return err_os(s->e, ERR_INTERNAL, ECANCELED);
    const struct toml_value *part = envconf_select(&a, root, s->paths, project);
    if (part == NULL)
        return envconf_out_of_room(-ENOMEM, s->e);
    if (part->count == 0)
        return 0;
    int r = toml_write(&text, part);
    if (r == 0 && s->count++ > 0)
        r = buf_putc(s->out, ',');
    if (r == 0)
        r = envconf_put_layer(s->out, kind, path, buf_str(&text));
    return r < 0 ? envconf_out_of_room(r, s->e) : 0;
}

/* -- projects -- */

static bool envconf_is_same_dir(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Adds the layer in `dir`, if it has one that is trusted. 0 or -errno with e set. */
static int envconf_push_dir(struct envconf_stack *s, const struct envconf_trust *t, const char *dir,
                            const char *codex_home) {
    struct envconf_file f = {.root = NULL};
    char dot[PATH_MAX];
    if (!envconf_join(dot, dir, ".codex") || !envconf_join(f.path, dot, "config.toml") ||
        envconf_is_same_dir(dot, codex_home))
        return 0;
    _cleanup_err_ struct err why = ERR_INIT;
    bool trusted = envconf_trust_is(t, dir);
    int r = envconf_load(&f, &envconf_project, &why);
    if (r < 0 || (r > 0 && trusted))
        r = err_move(s->e, &why);
    else
        r = trusted ? envconf_push(s, "project", f.path, f.root, true) : 0;
    arena_fini(&f.arena);
    return r;
}

/* Adds the layers from the root of the project down to cwd. */
static int envconf_push_projects(struct envconf_stack *s, const struct envconf_trust *t,
                                 const char *codex_home) {
    const char *cwd = s->request->cwd;
    size_t n = strlen(cwd), dirs = 1;
    char *dir = strdup(t->root);
    int r =
        dir != NULL ? envconf_push_dir(s, t, dir, codex_home) : err_os(s->e, ERR_INTERNAL, ENOMEM);
    /* The root is cwd or above it, so its text begins that of cwd. */
    for (size_t i = strlen(t->root); r == 0 && i < n;) {
        const char *end = memchr(cwd + i + 1, '/', n - i - 1);
        i = end != NULL ? (size_t)(end - cwd) : n;
        if (++dirs > ENVCONF_PROJECTS_MAX) {
            r = err_set(s->e, ERR_INTERNAL, "more than %u directories below the project's root",
                        ENVCONF_PROJECTS_MAX);
            break;
        }
        free(dir);
        dir = str_dup((struct str){cwd, i});
        r = dir != NULL ? envconf_push_dir(s, t, dir, codex_home)
                        : err_os(s->e, ERR_INTERNAL, ENOMEM);
    }
    free(dir);
    return r;
}

/* -- requirements -- */

/* A member of `root`, an array of up to two strings. False: no memory. */
static bool envconf_add_list(struct arena *a, struct toml_value *root, const char *key,
                             const char *first, const struct str *second) {
    struct toml_value *list = arena_calloc(a, 3, sizeof *list);
    if (list == NULL)
        return false;
    list[0] = (struct toml_value){.key = str_of(key), .type = TOML_ARRAY, .depth = 1};
    const struct str texts[] = {str_of(first), second != NULL ? *second : str_of(NULL)};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].p == NULL)
            continue;
        struct toml_value *v = &list[1 + list[0].count++];
        *v = (struct toml_value){.text = texts[i], .type = TOML_STRING, .depth = 2};
        if (list[0].children.last != NULL)
            list[0].children.last->next = v;
        else
            list[0].children.first = v;
        list[0].children.last = v;
    }
    if (root->children.last != NULL)
        root->children.last->next = list;
    else
        root->children.first = list;
    root->children.last = list;
    root->count++;
    return true;
}

static bool envconf_is_one_of(struct str s, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (str_eqz(s, names[i]))
            return true;
    }
    return false;
}

/* What the legacy file sets is also all that is allowed. Reading stays allowed: clients need it. */
static int envconf_push_legacy(struct envconf_stack *s, const struct envconf_file *managed) {
    static const char *const policies[] = {"untrusted", "on-failure", "on-request", "never"};
    static const char *const modes[] = {"read-only", "workspace-write", "danger-full-access"};
    _cleanup_arena_ struct arena a = ARENA_INIT(64u << 10);
    struct toml_value root = {.type = TOML_TABLE};
    if (managed->root == NULL)
        return 0;
    const struct toml_value *policy = toml_get(managed->root, "approval_policy");
    const struct toml_value *mode = toml_get(managed->root, "sandbox_mode");
    bool ok = true;
    if (policy != NULL && policy->type == TOML_STRING &&
        envconf_is_one_of(policy->text, policies, ARRAY_LEN(policies)))
        ok = envconf_add_list(&a, &root, "allowed_approval_policies", NULL, &policy->text);
    if (ok && mode != NULL && mode->type == TOML_STRING &&
        envconf_is_one_of(mode->text, modes, ARRAY_LEN(modes)))
        ok = envconf_add_list(&a, &root, "allowed_sandbox_modes", "read-only",
                              str_eqz(mode->text, "read-only") ? NULL : &mode->text);
    return ok ? envconf_push(s, NULL, managed->path, &root, false)
              : err_os(s->e, ERR_INTERNAL, ENOMEM);
}

/* -- the two parts -- */

static int envconf_put_config(struct envconf_stack *s, const struct envconf_base *b,
                              const struct envconf_trust *t, const char *codex_home) {
    int r = envconf_push(s, "system", b->system.path, b->system.root, false);
    size_t cloud = s->count;
    if (r == 0)
        r = envconf_push(s, "user", b->user.path, b->user.root, false);
    if (r == 0)
        r = envconf_push_projects(s, t, codex_home);
    if (r == 0)
        r = envconf_push(s, "legacy managed_config.toml", b->managed.path, b->managed.root, false);
    return r < 0 ? r : buf_putf(s->out, "],\"cloudInsertionIndex\":%zu}", cloud);
}

static int envconf_put_requirements(struct envconf_stack *s, const struct envconf_base *b) {
    struct envconf_file f;
    int r = envconf_open(&f, s->request->system_dir, "requirements.toml", &envconf_required, s->e);
    if (r == 0)
        r = envconf_push(s, NULL, f.path, f.root, false);
    arena_fini(&f.arena);
    size_t cloud = s->count;
    if (r == 0)
        r = envconf_push_legacy(s, &b->managed);
    return r < 0 ? r : buf_putf(s->out, "],\"cloudInsertionIndex\":%zu}}", cloud);
}

static int envconf_put_place(struct buf *b, const struct envconf *c, const char *codex_home) {
    char host[256] = "";
    int r = buf_putz(b, "{\"userHomeDir\":");
    if (r == 0)
        r = c->home != NULL ? envconf_put_uri(b, c->home) : buf_putz(b, "null");
    if (r == 0)
        r = buf_putz(b, ",\"codexHomeDir\":");
    if (r == 0)
        r = envconf_put_uri(b, codex_home);
    if (r == 0)
        r = buf_putz(b, ",\"hostname\":");
    bool named = gethostname(host, sizeof host - 1) == 0 && host[0] != '\0' &&
                 utf8_valid(host, strlen(host));
    if (r == 0)
        r = named ? jsonw_str(b, str_of(host)) : buf_putz(b, "null");
    return r < 0 ? r : buf_putz(b, ",\"config\":{\"layers\":[");
}

static int envconf_put(const struct envconf *c, const struct envconf_base *b,
                       const struct envconf_trust *t, const char *codex_home, struct buf *result,
                       struct err *e) {
    struct envconf_stack config = {c, &c->config, result, 0, e};
    struct envconf_stack requirements = {c, &c->requirements, result, 0, e};
    int r = envconf_put_place(result, c, codex_home);
    if (r == 0)
        r = envconf_put_config(&config, b, t, codex_home);
    if (r == 0)
        r = buf_putz(result, ",\"requirements\":{\"layers\":[");
    if (r == 0)
        r = envconf_put_requirements(&requirements, b);
    return r < 0 && e->code == 0 ? envconf_out_of_room(r, e) : r;
}

int envconf_codex_home(const struct envconf *c, char **path, struct err *e) {
    char joined[PATH_MAX];
    struct stat st;
    if (c->codex_home == NULL || c->codex_home[0] == '\0') {
        if (c->home == NULL || c->home[0] == '\0' || !envconf_join(joined, c->home, ".codex"))
            return err_set(e, ERR_INTERNAL,
                           "failed to find Codex home: Could not find home directory");
        *path = strdup(joined);
        return *path != NULL ? 0 : err_os(e, ERR_INTERNAL, ENOMEM);
    }
    *path = realpath(c->codex_home, NULL);
    if (*path != NULL && stat(*path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    const char *why = *path == NULL ? "does not exist" : "is not a directory";
    free(steal_ptr(path));
    return err_set(e, ERR_INTERNAL,
                   "failed to find Codex home: CODEX_HOME points to \"%s\", but that path %s",
                   c->codex_home, why);
}

int envconf_read(const struct envconf *c, struct buf *result, struct err *e) {
    __attribute__((cleanup(envconf_base_fini))) struct envconf_base b = {.system.root = NULL};
    __attribute__((cleanup(envconf_trust_fini))) struct envconf_trust t = {.root = NULL};
    _cleanup_free_ char *codex_home = NULL;
    _cleanup_err_ struct err why = ERR_INIT;
    if (envconf_codex_home(c, &codex_home, e) < 0)
        return -EINVAL;
    int r = envconf_open(&b.system, c->system_dir, "config.toml", &envconf_plain, &why);
    if (r == 0)
        r = envconf_open(&b.user, codex_home, "config.toml", &envconf_plain, &why);
    if (r == 0)
        r = envconf_open(&b.managed, c->system_dir, "managed_config.toml", &envconf_plain, &why);
    if (r == 0) {
        t.layers[0] = b.managed.root;
        t.layers[1] = b.user.root;
        t.layers[2] = b.system.root;
        r = envconf_trust_init(&t, c->cwd, &why);
    }
    if (r == 0)
        r = envconf_put(c, &b, &t, codex_home, result, &why);
    return r == 0 ? 0
                  : err_about(e, ERR_INTERNAL,
                              "failed to load executor-local config: ", err_str(&why), "");
}
