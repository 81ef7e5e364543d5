#include "client/sandboxparams.h"

#include "base/utf8.h"

/* Opens an entry with the access that is asked for; the caller adds `path`. */
static void sandboxparams_special(struct params *p, const char *kind, const char *subpath,
                                  const char *access) {
    params_open(p, NULL, '{');
    params_open(p, "path", '{');
    params_strz(p, "type", "special");
    params_open(p, "value", '{');
    params_strz(p, "kind", kind);
    params_strz(p, "subpath", subpath);
    params_close(p, '}');
    params_close(p, '}');
    params_strz(p, "access", access);
    if (subpath != NULL)
        params_strz(p, "missing_path_behavior", "skip");
    params_close(p, '}');
}

static void sandboxparams_writable(struct params *p, const struct xs_client *c,
                                   const struct xs_options *o) {
    static const char *const kept[] = {".git", ".agents", ".codex"};
    size_t n = 0;
    const char *const *paths = xs_options_list(o, XS_OPT_WRITABLE, &n);
    sandboxparams_special(p, "project_roots", NULL, "write");
    sandboxparams_special(p, "slash_tmp", NULL, "write");
    sandboxparams_special(p, "tmpdir", NULL, "write");
    for (size_t i = 0; i < n; i++) {
        params_open(p, NULL, '{');
        params_open(p, "path", '{');
        params_strz(p, "type", "path");
        params_path(p, "path", c, paths[i]);
        params_close(p, '}');
        params_strz(p, "access", "write");
        params_close(p, '}');
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        sandboxparams_special(p, "project_roots", kept[i], "read");
}

static void sandboxparams_build(struct params *p, const struct xs_client *c,
                                const struct xs_options *o, const char *cwd, bool writes) {
    params_open(p, "sandbox", '{');
    params_open(p, "permissions", '{');
    params_strz(p, "type", "managed");
    params_open(p, "file_system", '{');
    params_strz(p, "type", "restricted");
    params_open(p, "entries", '[');
    sandboxparams_special(p, "root", NULL, "read");
    if (writes)
        sandboxparams_writable(p, c, o);
    params_close(p, ']');
    params_close(p, '}');
    params_strz(p, "network", xs_options_get_num(o, XS_OPT_NETWORK, 0) ? "enabled" : "restricted");
    params_close(p, '}');
    params_path(p, "cwd", c, cwd);
    if (writes) {
        params_open(p, "workspaceRoots", '[');
        params_path(p, NULL, c, cwd);
        params_close(p, ']');
    }
    params_strz(p, "windowsSandboxLevel", "disabled");
    params_close(p, '}');
}

/* The caller's object, as it is. */
static int sandboxparams_raw(struct params *p, const char *text, struct xs_error *e) {
    struct str s = str_of(text);
    struct json_doc d;
    _cleanup_err_ struct err why = ERR_INIT;
    json_doc_init(&d, s.n, 0);
    int r = utf8_valid(s.p, s.n) ? json_parse(&d, s.p, s.n, &why) : -1;
    bool object = r == 0 && json_root(&d)->type == JSON_OBJECT;
    json_doc_fini(&d);
    if (!object)
        return xs_error_set(e, XS_EINVAL, "option " XS_OPT_SANDBOX_JSON ": not a JSON object");
    params_raw(p, "sandbox", s);
    return 0;
}

int sandboxparams_put(struct params *p, const struct xs_client *c, const struct xs_options *o,
                      const char *cwd, struct xs_error *e) {
    const char *mode = xs_options_get(o, XS_OPT_SANDBOX, NULL);
    const char *json = xs_options_get(o, XS_OPT_SANDBOX_JSON, NULL);
    if (json != NULL && mode != NULL)
        return xs_error_set(e, XS_EINVAL, "options sandbox and sandbox-json exclude each other");
    if (json != NULL)
        return sandboxparams_raw(p, json, e);
    if (mode == NULL) {
        if (xs_options_has(o, XS_OPT_WRITABLE) || xs_options_has(o, XS_OPT_NETWORK))
            return xs_error_set(e, XS_EINVAL, "options writable and network need a sandbox");
        return 0;
    }
    bool writes = str_eqz(str_of(mode), "workspace-write");
    if (!writes && !str_eqz(str_of(mode), "read-only"))
        return xs_error_set(
            e, XS_EINVAL, "option sandbox: \"%s\" is neither read-only nor workspace-write", mode);
    if (!writes && xs_options_has(o, XS_OPT_WRITABLE))
        return xs_error_set(e, XS_EINVAL, "option writable needs sandbox workspace-write");
    sandboxparams_build(p, c, o, cwd != NULL ? cwd : ".", writes);
    return 0;
}
