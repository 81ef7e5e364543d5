#include "environment/envconf_trust.h"

#include "environment/textfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define TRUST_GITFILE_MAX 8192 /* bytes of a .git file */

bool envconf_trust_up(char *path) {
    char *slash = strrchr(path, '/');
    if (path[1] == '\0' || slash == NULL)
        return false;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

/* `name` in `dir`; false: too long. */
static bool trust_join(char path[static PATH_MAX], const char *dir, const char *name) {
    int n = snprintf(path, PATH_MAX, "%s/%s", dir[1] == '\0' ? "" : dir, name);
    return n > 0 && n < PATH_MAX;
}

/* -- the configuration -- */

static const char *trust_kind(const struct toml_value *v, char text[static 128]) {
    switch ((enum toml_type)v->type) {
    case TOML_STRING: snprintf(text, 128, "string \"%.80s\"", v->text.p); break;
    case TOML_INTEGER: snprintf(text, 128, "integer `%lld`", (long long)v->integer); break;
    case TOML_FLOAT: snprintf(text, 128, "floating point `%g`", v->number); break;
    case TOML_BOOLEAN: snprintf(text, 128, "boolean `%s`", v->boolean ? "true" : "false"); break;
    case TOML_ARRAY: return "sequence";
    case TOML_TABLE:
    case TOML_OFFSET_DATETIME:
    case TOML_LOCAL_DATETIME:
    case TOML_LOCAL_DATE:
    case TOML_LOCAL_TIME: return "map";
    }
    return text;
}

static int trust_check_level(const struct toml_value *project, struct err *e) {
    const struct toml_value *level =
        project->type == TOML_TABLE ? toml_get(project, "trust_level") : NULL;
    char kind[128];
    if (project->type != TOML_TABLE)
        return err_set(e, ERR_INTERNAL,
                       "invalid type: %s, expected struct ProjectConfig\n"
                       "in `projects.%s`\n",
                       trust_kind(project, kind), project->key.p);
    if (level == NULL)
        return 0;
    if (level->type != TOML_STRING)
        return err_set(e, ERR_INTERNAL,
                       "invalid type: unit variant, expected string only\n"
                       "in "
                       "`projects.%s.trust_level`\n",
                       project->key.p);
    if (!str_eqz(level->text, "trusted") && !str_eqz(level->text, "untrusted"))
        return err_set(e, ERR_INTERNAL,
                       "unknown variant `%s`, expected `trusted` or `untrusted`\nin "
                       "`projects.%s.trust_level`\n",
                       level->text.p, project->key.p);
    return 0;
}

static int trust_check(const struct toml_value *layer, struct err *e) {
    const struct toml_value *projects = toml_get(layer, "projects");
    char kind[128];
    if (projects == NULL)
        return 0;
    if (projects->type != TOML_TABLE)
        return err_set(e, ERR_INTERNAL,
                       "invalid type: %s, expected a map\n"
                       "in `projects`\n",
                       trust_kind(projects, kind));
    toml_for_each(project, projects) {
        if (trust_check_level(project, e) < 0)
            return -EINVAL;
    }
    return 0;
}

/* The level that the highest layer states for a path; NULL: none does. */
static const struct toml_value *trust_find(const struct envconf_trust *t, const char *path) {
    for (size_t i = 0; i < ARRAY_LEN(t->layers); i++) {
        const struct toml_value *v = t->layers[i];
        if (v != NULL)
            v = toml_get(v, "projects");
        if (v != NULL)
            v = toml_get(v, path);
        if (v != NULL)
            v = toml_get(v, "trust_level");
        if (v != NULL)
            return v;
    }
    return NULL;
}

static const struct toml_value *trust_find_dir(const struct envconf_trust *t, const char *dir) {
    char real[PATH_MAX];
    const struct toml_value *v = realpath(dir, real) != NULL ? trust_find(t, real) : NULL;
    return v != NULL ? v : trust_find(t, dir);
}

bool envconf_trust_is(const struct envconf_trust *t, const char *dir) {
    const char *const places[] = {dir, t->root, t->repository};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct toml_value *v = places[i] != NULL ? trust_find_dir(t, places[i]) : NULL;
        if (v != NULL)
            return str_eqz(v->text, "trusted");
    }
    return false;
}

/* -- the root of the project -- */

/* Whether `dir` holds a repository. A directory .git must have a HEAD. */
static bool trust_has_git(const char *dir, bool *file) {
    char path[PATH_MAX];
    struct stat st;
    if (!trust_join(path, dir, ".git") || stat(path, &st) < 0)
        return false;
    *file = !S_ISDIR(st.st_mode);
    return *file || (trust_join(path, dir, ".git/HEAD") && stat(path, &st) == 0);
}

static bool trust_has_marker(const char *dir, const struct toml_value *marker) {
    char path[PATH_MAX];
    struct stat st;
    bool file;
    if (str_eqz(marker->text, ".git"))
        return trust_has_git(dir, &file);
    return marker->text.n > 0 && marker->text.n <= ENVCONF_MARKER_MAX &&
           !str_has_nul(marker->text) && trust_join(path, dir, marker->text.p) &&
           stat(path, &st) == 0;
}

static bool trust_has_any(const char *dir, const struct toml_value *markers) {
    bool file;
    if (markers == NULL)
        return trust_has_git(dir, &file);
    toml_for_each(marker, markers) {
        if (trust_has_marker(dir, marker))
            return true;
    }
    return false;
}

/* The highest layer's markers; *markers is NULL if no layer has any. */
static int trust_markers(const struct envconf_trust *t, const struct toml_value **markers,
                         struct err *e) {
    const char *fault = "project_root_markers must be an array of strings";
    *markers = NULL;
    for (size_t i = 0; *markers == NULL && i < ARRAY_LEN(t->layers); i++) {
        if (t->layers[i] != NULL)
            *markers = toml_get(t->layers[i], "project_root_markers");
    }
    if (*markers == NULL)
        return 0;
    if ((*markers)->type != TOML_ARRAY)
        return err_set(e, ERR_INTERNAL, "%s", fault);
    toml_for_each(v, *markers) {
        if (v->type != TOML_STRING)
            return err_set(e, ERR_INTERNAL, "%s", fault);
    }
    return 0;
}

/* The nearest directory with a marker, else cwd. NULL: no memory. */
static char *trust_root(const char *cwd, const struct toml_value *markers) {
    _cleanup_free_ char *dir = strdup(cwd);
    if (dir == NULL)
        return NULL;
    do {
        if (trust_has_any(dir, markers))
            return steal_ptr(&dir);
    } while (envconf_trust_up(dir));
    return strdup(cwd);
}

/* The main work tree of the linked one in `dir`, whose .git is a file; NULL: it is none. */
static char *trust_main_tree(const char *dir) {
    _cleanup_buf_ struct buf text = BUF_INIT(TRUST_GITFILE_MAX + 2);
    _cleanup_err_ struct err e = ERR_INIT;
    char path[PATH_MAX];
    if (!trust_join(path, dir, ".git") ||
        textfile_read(path, TRUST_GITFILE_MAX, &text, &e) != TEXTFILE_READ)
        return NULL;
    struct str s = str_trim(buf_str(&text)), prefix = STR_LIT("gitdir:");
    if (s.n < prefix.n || memcmp(s.p, prefix.p, prefix.n) != 0 || str_has_nul(s))
        return NULL;
    s = str_trim((struct str){s.p + prefix.n, s.n - prefix.n});
    _cleanup_free_ char *git = s.n > 0 && s.p[0] == '/' ? str_dup(s) : NULL;
    if (git == NULL && s.n < PATH_MAX) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%.*s", (int)s.n, s.p);
        git = trust_join(path, dir, name) ? strdup(path) : NULL;
    }
    if (git == NULL || !envconf_trust_up(git))
        return NULL;
    const char *slash = strrchr(git, '/');
    bool linked = slash != NULL && strcmp(slash + 1, "worktrees") == 0;
    return linked && envconf_trust_up(git) && envconf_trust_up(git) ? steal_ptr(&git) : NULL;
}

/* The main work tree of the repository around cwd, or NULL. */
static char *trust_repository(const char *cwd) {
    _cleanup_free_ char *dir = strdup(cwd);
    bool file = false;
    while (dir != NULL && !trust_has_git(dir, &file)) {
        if (!envconf_trust_up(dir))
            return NULL;
    }
    return dir != NULL && file ? trust_main_tree(dir) : steal_ptr(&dir);
}

int envconf_trust_init(struct envconf_trust *t, const char *cwd, struct err *e) {
    const struct toml_value *markers;
    for (size_t i = 0; i < ARRAY_LEN(t->layers); i++) {
        if (t->layers[i] != NULL && trust_check(t->layers[i], e) < 0)
            return -EINVAL;
    }
    if (trust_markers(t, &markers, e) < 0)
        return -EINVAL;
    t->root = trust_root(cwd, markers);
    t->repository = trust_repository(cwd);
    return t->root != NULL ? 0 : err_os(e, ERR_INTERNAL, ENOMEM);
}

void envconf_trust_fini(struct envconf_trust *t) {
    free(t->root);
    free(t->repository);
}
