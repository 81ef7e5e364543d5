#include "client/fsanswer.h"

#include "base/uri.h"
#include "json/base64.h"

#include <errno.h>

#define TARGET_MAX 4095 /* bytes of a link's target */

static const struct json_node *member(const struct json_node *object, const char *key,
                                      enum json_type type) {
    if (object == NULL || object->type != JSON_OBJECT)
        return NULL;
    const struct json_node *v = json_get(object, key);
    return v != NULL && v->type == type ? v : NULL;
}

static int flag(const struct json_node *object, const char *key, bool *out) {
    if (object == NULL || object->type != JSON_OBJECT)
        return -EPROTO;
    const struct json_node *v = json_get(object, key);
    if (v == NULL || (v->type != JSON_TRUE && v->type != JSON_FALSE))
        return -EPROTO;
    *out = v->type == JSON_TRUE;
    return 0;
}

static enum fsanswer_kind kind_of(bool is_directory, bool is_file) {
    if (is_directory)
        return FSANSWER_DIRECTORY;
    return is_file ? FSANSWER_FILE : FSANSWER_OTHER;
}

int fsanswer_stat(const struct json_node *result, struct fsanswer_stat *out) {
    bool is_directory, is_file;
    struct fsanswer_stat s = {.mode = 0};
    if (flag(result, "isDirectory", &is_directory) < 0 || flag(result, "isFile", &is_file) < 0)
        return -EPROTO;
    if (json_get(result, "isSymlink") != NULL && flag(result, "isSymlink", &s.is_link) < 0)
        return -EPROTO;
    s.kind = kind_of(is_directory, is_file);
    /* The interface of April has no size. */
    const struct json_node *v = json_get(result, "size");
    if (v != NULL && json_u64(v, &s.bytes) < 0)
        return -EPROTO;
    v = json_get(result, "createdAtMs");
    if (v != NULL && json_i64(v, &s.created_ms) < 0)
        return -EPROTO;
    v = json_get(result, "modifiedAtMs");
    if (v == NULL || json_i64(v, &s.modified_ms) < 0)
        return -EPROTO;
    uint64_t mode = 0;
    v = json_get(result, "mode");
    if (v != NULL && (json_u64(v, &mode) < 0 || mode > 07777))
        return -EPROTO;
    s.has_mode = v != NULL;
    s.mode = (unsigned)mode;
    *out = s;
    return 0;
}

int fsanswer_data(const struct json_node *result, const char *key, size_t max, struct str *data) {
    const struct json_node *v = member(result, key, JSON_STRING);
    if (v == NULL || v->n / 4 * 3 > max + 2)
        return -EPROTO;
    struct err e = ERR_INIT;
    ssize_t n = base64_decode((char *)v->p, v->p, v->n, &e);
    err_fini(&e);
    if (n < 0 || (size_t)n > max)
        return -EPROTO;
    *data = (struct str){v->p, (size_t)n};
    return 0;
}

int fsanswer_block(const struct json_node *result, size_t len, struct str *data, bool *eof) {
    if (flag(result, "eof", eof) < 0 || fsanswer_data(result, "chunk", len, data) < 0)
        return -EPROTO;
    return *eof || data->n == len ? 0 : -EPROTO;
}

/* A path of a URI. 0, -EPROTO, -ENOMEM. */
static int to_path(const struct json_node *v, char **path) {
    struct err e = ERR_INIT;
    int r = uri_to_path(json_str(v), path, &e);
    err_fini(&e);
    return r == 0 || r == -ENOMEM ? r : -EPROTO;
}

int fsanswer_path(const struct json_node *result, char **path) {
    const struct json_node *v = member(result, "path", JSON_STRING);
    return v == NULL ? -EPROTO : to_path(v, path);
}

/* The target in `object`, or NULL in *target if it has none. */
static int take_target(const struct json_node *object, char **target) {
    *target = NULL;
    struct str bytes;
    if (json_get(object, "targetBase64") != NULL) {
        if (fsanswer_data(object, "targetBase64", TARGET_MAX, &bytes) < 0)
            return -EPROTO;
    } else {
        const struct json_node *v = json_get(object, "target");
        if (v == NULL)
            return 0;
        if (v->type != JSON_STRING)
            return -EPROTO;
        bytes = json_str(v);
    }
    if (bytes.n == 0 || bytes.n > TARGET_MAX || str_has_nul(bytes))
        return -EPROTO;
    *target = str_dup(bytes);
    return *target == NULL ? -ENOMEM : 0;
}

int fsanswer_target(const struct json_node *result, char **target) {
    if (result == NULL || result->type != JSON_OBJECT)
        return -EPROTO;
    int r = take_target(result, target);
    return r < 0 ? r : *target == NULL ? -EPROTO : 0;
}

int fsanswer_watching(const struct json_node *result, bool *watching) {
    return flag(result, "watching", watching);
}

/* The part of `path` below root, which uri_to_path() has normalised; NULL if it is not below. */
static const char *below(const char *root, const char *path) {
    size_t n = strlen(root);
    if (n == 1 && root[0] == '/')
        return path[1] != '\0' ? path + 1 : NULL;
    return strncmp(path, root, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static int walk_entry(const struct json_node *v, const char *root, fsanswer_fn *fn, void *user) {
    const struct json_node *p = member(v, "path", JSON_STRING), *k = member(v, "kind", JSON_STRING);
    if (p == NULL || k == NULL)
        return -EPROTO;
    struct fsanswer_item item = {.kind = FSANSWER_OTHER};
    if (str_eqz(json_str(k), "directory"))
        item.kind = FSANSWER_DIRECTORY;
    else if (str_eqz(json_str(k), "file"))
        item.kind = FSANSWER_FILE;
    else if (str_eqz(json_str(k), "symlink"))
        item.kind = FSANSWER_LINK;
    _cleanup_free_ char *path = NULL, *target = NULL;
    int r = to_path(p, &path);
    if (r == 0 && item.kind == FSANSWER_LINK)
        r = take_target(v, &target);
    if (r < 0)
        return r;
    item.name = below(root, path);
    item.target = target;
    return item.name == NULL ? -EPROTO : fn(user, &item);
}

static int walk_error(const struct json_node *v, const char *root, fsanswer_fn *fn, void *user) {
    const struct json_node *p = member(v, "path", JSON_STRING),
                           *m = member(v, "message", JSON_STRING);
    if (p == NULL || m == NULL)
        return -EPROTO;
    _cleanup_free_ char *path = NULL, *message = str_dup(json_str(m));
    int r = to_path(p, &path);
    if (r < 0 || message == NULL)
        return r < 0 ? r : -ENOMEM;
    const char *name = strcmp(path, root) == 0 ? "" : below(root, path);
    if (name == NULL)
        return -EPROTO;
    return fn(user, &(struct fsanswer_item){.name = name, .message = message});
}

int fsanswer_walk(const struct json_node *result, const char *root, fsanswer_fn *fn, void *user,
                  bool *truncated) {
    const struct json_node *entries = member(result, "entries", JSON_ARRAY),
                           *errors = member(result, "errors", JSON_ARRAY);
    if (entries == NULL || errors == NULL || flag(result, "truncated", truncated) < 0)
        return -EPROTO;
    json_for_each(v, entries) {
        int r = walk_entry(v, root, fn, user);
        if (r < 0)
            return r;
    }
    json_for_each(v, errors) {
        int r = walk_error(v, root, fn, user);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_name(struct str s) {
    return s.n > 0 && !str_eqz(s, ".") && !str_eqz(s, "..") && memchr(s.p, '/', s.n) == NULL &&
           !str_has_nul(s);
}

int fsanswer_list(const struct json_node *result, fsanswer_fn *fn, void *user) {
    const struct json_node *entries = member(result, "entries", JSON_ARRAY);
    if (entries == NULL)
        return -EPROTO;
    json_for_each(v, entries) {
        const struct json_node *n = member(v, "fileName", JSON_STRING);
        bool is_directory, is_file;
        if (n == NULL || !is_name(json_str(n)) || flag(v, "isDirectory", &is_directory) < 0 ||
            flag(v, "isFile", &is_file) < 0)
            return -EPROTO;
        _cleanup_free_ char *name = str_dup(json_str(n));
        if (name == NULL)
            return -ENOMEM;
        struct fsanswer_item item = {.name = name, .kind = kind_of(is_directory, is_file)};
        int r = fn(user, &item);
        if (r < 0)
            return r;
    }
    return 0;
}

int fsanswer_change(const struct json_node *params, struct fsanswer_change *out) {
    if (params == NULL || params->type != JSON_OBJECT)
        return -EPROTO;
    struct fsanswer_change c = {.id = json_get(params, "watchId")};
    if (c.id == NULL || (c.id->type != JSON_STRING && c.id->type != JSON_NUMBER))
        return -EPROTO;
    if (json_get(params, "overflow") != NULL && flag(params, "overflow", &c.overflow) < 0)
        return -EPROTO;
    c.paths = json_get(params, "changedPaths");
    if (c.paths != NULL) {
        if (c.paths->type != JSON_ARRAY)
            return -EPROTO;
        json_for_each(v, c.paths) {
            if (v->type != JSON_STRING)
                return -EPROTO;
        }
    }
    *out = c;
    return 0;
}

int fsanswer_errno(struct str message) {
    static const char mark[] = "(os error ";
    const size_t n = sizeof(mark) - 1;
    for (size_t at = message.n; at-- > 0;) {
        if (message.p[at] != '(' || message.n - at < n + 2 || memcmp(message.p + at, mark, n) != 0)
            continue;
        int value = 0;
        size_t i = at + n;
        for (; i < message.n && message.p[i] >= '0' && message.p[i] <= '9' && value < 4096; i++)
            value = value * 10 + (message.p[i] - '0');
        return i < message.n && message.p[i] == ')' && value < 4096 ? value : 0;
    }
    return 0;
}
