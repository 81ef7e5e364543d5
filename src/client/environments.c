#include "client/environments.h"

#include "base/buf.h"
#include "client/environments_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>

/* A file being read. */
struct environments_reader {
    struct arena *arena;
    struct str directory; /* of the file, with its slash; empty: unknown */
    struct environments *out;
    struct environments_entry *entries; /* out->entries, while they change */
    struct err *e;
};

/* The members of an entry, as they stand in the file; NULL if absent. */
struct environments_members {
    const struct toml_value *id, *skills, *url, *token, *program, *args, *env, *cwd, *connect,
        *initialize;
};

static int environments_memory(struct err *e) {
    err_set(e, ERR_INVALID_PARAMS, "the environments need too much memory");
    return -ENOMEM;
}

/* Reads an optional string that a program or a system call will take. */
static int environments_cstring(const struct toml_value *v, const char *name, const char **out,
                                struct err *e) {
    struct str s;
    if (v == NULL)
        return 0;
    int r = toml_read_string(v, name, &s, e);
    if (r == 0 && str_has_nul(s))
        r = err_set(e, ERR_INVALID_PARAMS, "line %u: `%s` contains a NUL byte", (unsigned)v->line,
                    name);
    if (r == 0)
        *out = s.p;
    return r;
}

/* Reads an optional time limit. Fractions of a millisecond are rounded up. */
static int environments_timeout(const struct toml_value *v, const char *name, uint32_t *out,
                                struct err *e) {
    double seconds;
    *out = ENVIRONMENTS_TIMEOUT_MS;
    if (v == NULL)
        return 0;
    int r = toml_read_number(v, name, &seconds, e);
    if (r < 0)
        return r;
    if (seconds < 0)
        return err_set(e, ERR_INVALID_PARAMS, "line %u: `%s` is negative", (unsigned)v->line, name);
    if (isnan(seconds) || seconds >= 0x1p64)
        return err_set(e, ERR_INVALID_PARAMS, "line %u: `%s` is too large or not a number",
                       (unsigned)v->line, name);
    *out = (uint32_t)fmin(ceil(seconds * 1000), ENVIRONMENTS_TIMEOUT_MAX_MS);
    return 0;
}

static int environments_args(struct environments_reader *f, const struct toml_value *args,
                             struct environments_entry *out) {
    int r = args != NULL ? toml_expect(args, "environments.args", TOML_ARRAY, f->e) : 0;
    if (r < 0)
        return r;
    const char **list = arena_calloc(f->arena, (args != NULL ? args->count : 0) + 1u, sizeof *list);
    if (list == NULL)
        return environments_memory(f->e);
    out->args = list;
    if (args == NULL)
        return 0;
    toml_for_each(v, args) {
        r = environments_cstring(v, "environments.args", &list[out->arg_count++], f->e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int environments_env(struct environments_reader *f, const struct toml_value *env,
                            struct environments_entry *out) {
    int r = env != NULL ? toml_expect(env, "environments.env", TOML_TABLE, f->e) : 0;
    if (r < 0 || env == NULL)
        return r;
    struct environments_variable *list = arena_calloc(f->arena, env->count, sizeof *list);
    if (list == NULL)
        return environments_memory(f->e);
    out->env = list;
    toml_for_each(v, env) {
        struct environments_variable *variable = &list[out->env_count++];
        if (v->key.n == 0 || str_has_nul(v->key) || memchr(v->key.p, '=', v->key.n) != NULL)
            return err_set(f->e, ERR_INVALID_PARAMS,
                           "line %u: `environments.env` has a name that is empty or contains '=' "
                           "or a NUL byte",
                           (unsigned)v->line);
        variable->name = v->key.p;
        r = environments_cstring(v, "environments.env", &variable->value, f->e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Skills concern Codex alone; only their shape is checked. */
static int environments_skills(const struct toml_value *skills, struct err *e) {
    static const char *const known[] = {"required"};
    struct str name;
    int r = skills != NULL ? toml_expect(skills, "environments.skills", TOML_TABLE, e) : 0;
    if (r < 0 || skills == NULL)
        return r;
    r = toml_only(skills, known, ARRAY_LEN(known), e);
    const struct toml_value *required = toml_get(skills, "required");
    if (r < 0 || required == NULL)
        return r;
    r = toml_expect(required, "environments.skills.required", TOML_ARRAY, e);
    if (r < 0)
        return r;
    toml_for_each(v, required) {
        r = toml_read_string(v, "environments.skills.required", &name, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int environments_members(const struct toml_value *entry, struct environments_members *m,
                                struct err *e) {
    static const char *const known[] = {
        "id",   "skills", "url", "auth_bearer_token",   "program",
        "args", "env",    "cwd", "connect_timeout_sec", "initialize_timeout_sec"};
    int r = toml_expect(entry, "environments", TOML_TABLE, e);
    if (r == 0)
        r = toml_only(entry, known, ARRAY_LEN(known), e);
    if (r < 0)
        return r;
    *m = (struct environments_members){
        .id = toml_get(entry, "id"),
        .skills = toml_get(entry, "skills"),
        .url = toml_get(entry, "url"),
        .token = toml_get(entry, "auth_bearer_token"),
        .program = toml_get(entry, "program"),
        .args = toml_get(entry, "args"),
        .env = toml_get(entry, "env"),
        .cwd = toml_get(entry, "cwd"),
        .connect = toml_get(entry, "connect_timeout_sec"),
        .initialize = toml_get(entry, "initialize_timeout_sec"),
    };
    if (m->id == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "line %u: missing field `id`", (unsigned)entry->line);
    return 0;
}

/* Reads the members by their types. */
static int environments_types(struct environments_reader *f, const struct toml_value *entry,
                              struct environments_entry *out) {
    struct environments_members m;
    int r = environments_members(entry, &m, f->e);
    if (r == 0)
        r = environments_cstring(m.id, "environments.id", &out->id, f->e);
    if (r == 0)
        r = environments_cstring(m.url, "environments.url", &out->url, f->e);
    if (r == 0)
        r = environments_cstring(m.token, "environments.auth_bearer_token", &out->token, f->e);
    if (r == 0)
        r = environments_cstring(m.program, "environments.program", &out->program, f->e);
    if (r == 0)
        r = environments_cstring(m.cwd, "environments.cwd", &out->cwd, f->e);
    if (r == 0)
        r = environments_args(f, m.args, out);
    if (r == 0)
        r = environments_env(f, m.env, out);
    if (r == 0)
        r = environments_timeout(m.connect, "environments.connect_timeout_sec", &out->connect_ms,
                                 f->e);
    if (r == 0)
        r = environments_timeout(m.initialize, "environments.initialize_timeout_sec",
                                 &out->initialize_ms, f->e);
    return r == 0 ? environments_skills(m.skills, f->e) : r;
}

/* Replaces a URL by one without blanks around it, and checks it. */
static int environments_url(struct arena *a, const char **url, struct err *e) {
    struct str trimmed = str_trim(str_of(*url));
    int r = environments_check_url(trimmed, e);
    if (r < 0)
        return r;
    *url = arena_strdup(a, trimmed);
    return *url != NULL ? 0 : environments_memory(e);
}

/* Trims the program and completes its directory. */
static int environments_program(struct environments_reader *f, struct environments_entry *out) {
    out->program = arena_strdup(f->arena, str_trim(str_of(out->program)));
    if (out->program == NULL)
        return environments_memory(f->e);
    if (out->cwd == NULL || out->cwd[0] == '/')
        return 0;
    size_t n = strlen(out->cwd);
    char *path = arena_alloc(f->arena, f->directory.n + n + 1);
    if (path == NULL)
        return environments_memory(f->e);
    if (f->directory.n > 0)
        memcpy(path, f->directory.p, f->directory.n);
    memcpy(path + f->directory.n, out->cwd, n);
    out->cwd = path;
    return 0;
}

/* Checks what belongs together, in the order of the Codex client. */
static int environments_transport(struct environments_reader *f, const struct toml_value *entry,
                                  struct environments_entry *out) {
    const char *why = NULL;
    if (out->program == NULL &&
        (toml_get(entry, "args") != NULL || toml_get(entry, "env") != NULL || out->cwd != NULL))
        why = "args, env, and cwd require program";
    else if (out->url == NULL && out->token != NULL)
        why = "auth_bearer_token requires url";
    else if (out->url == NULL && toml_get(entry, "connect_timeout_sec") != NULL)
        why = "connect_timeout_sec requires url";
    else if ((out->url == NULL) == (out->program == NULL))
        why = "must set exactly one of url or program";
    else if (out->program != NULL && str_trim(str_of(out->program)).n == 0)
        why = "program cannot be empty";
    if (why != NULL)
        return err_set(f->e, ERR_INVALID_PARAMS, "environment `%s` %s", out->id, why);
    if (out->program != NULL)
        return environments_program(f, out);
    int r = environments_url(f->arena, &out->url, f->e);
    if (r == 0 && out->token != NULL)
        r = environments_check_token(str_of(out->token), str_of(out->url), f->e);
    return r;
}

static int environments_entries(struct environments_reader *f, const struct toml_value *list) {
    size_t i = 0;
    toml_for_each(v, list) {
        int r = environments_types(f, v, &f->entries[i++]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Checks the entries in order, after all of them have the right types. */
static int environments_rules(struct environments_reader *f, const struct toml_value *list) {
    toml_for_each(v, list) {
        struct environments_entry *entry = &f->entries[f->out->count];
        int r = environments_check_id(toml_get(v, "id"), f->e);
        if (r == 0)
            r = environments_transport(f, v, entry);
        if (r < 0)
            return r;
        if (environments_find(f->out, entry->id) != NULL)
            return err_set(f->e, ERR_INVALID_PARAMS, "environment id `%s` is duplicated",
                           entry->id);
        f->out->count++;
    }
    return 0;
}

static int environments_default(struct environments_reader *f, const char *text) {
    struct str id = str_trim(str_of(text));
    f->out->default_id = f->out->include_local ? "local" : NULL;
    f->out->default_named = text != NULL;
    if (text == NULL)
        return 0;
    if (id.n == 0)
        return err_set(f->e, ERR_INVALID_PARAMS, "default environment id cannot be empty");
    if (str_ieqz(id, "none")) {
        f->out->default_id = NULL;
        return 0;
    }
    if (str_eqz(id, "local") && f->out->include_local)
        return 0;
    for (size_t i = 0; i < f->out->count; i++) {
        if (str_eqz(id, f->out->entries[i].id)) {
            f->out->default_id = f->out->entries[i].id;
            return 0;
        }
    }
    return err_about(f->e, ERR_INVALID_PARAMS, "default environment `", id, "` is not configured");
}

/* The types of everything in the file. */
static int environments_shape(struct environments_reader *f, const struct toml_value *root,
                              const char **chosen) {
    static const char *const known[] = {"default", "include_local", "environments"};
    const struct toml_value *local = toml_get(root, "include_local");
    const struct toml_value *list = toml_get(root, "environments");
    int r = toml_only(root, known, ARRAY_LEN(known), f->e);
    if (r == 0)
        r = environments_cstring(toml_get(root, "default"), "default", chosen, f->e);
    if (r == 0 && local != NULL)
        r = toml_read_boolean(local, "include_local", &f->out->include_local, f->e);
    if (r < 0 || list == NULL)
        return r;
    r = toml_expect(list, "environments", TOML_ARRAY, f->e);
    if (r < 0)
        return r;
    if (list->count > ENVIRONMENTS_MAX)
        return err_set(f->e, ERR_INVALID_PARAMS, "more than %d environments", ENVIRONMENTS_MAX);
    f->entries = arena_calloc(f->arena, MAX(list->count, 1u), sizeof *f->entries);
    if (f->entries == NULL)
        return environments_memory(f->e);
    f->out->entries = f->entries;
    return environments_entries(f, list);
}

/* Puts the name of the file before a message. Returns r. */
static int environments_fail(struct err *e, const char *verb, const char *path, int r) {
    _cleanup_err_ struct err inner = ERR_INIT;
    err_move(&inner, e);
    err_set(e, ERR_INVALID_PARAMS, "failed to %s environment config `%s`: %s", verb, path,
            err_msg(&inner));
    return r;
}

int environments_read(struct str text, const char *path, struct arena *a, struct environments *out,
                      struct err *e) {
    struct environments_reader f = {.arena = a, .out = out, .e = e};
    const struct toml_value *root, *list;
    const char *chosen = NULL;
    const char *slash = strrchr(path, '/');
    if (slash != NULL)
        f.directory = (struct str){path, (size_t)(slash - path) + 1};
    *out = (struct environments){.from_file = true, .include_local = true};
    int r = toml_parse(a, text, &root, e);
    if (r == 0)
        r = environments_shape(&f, root, &chosen);
    if (r < 0)
        return environments_fail(e, "parse", path, r);
    list = toml_get(root, "environments");
    if (list != NULL)
        r = environments_rules(&f, list);
    return r == 0 ? environments_default(&f, chosen) : r;
}

static int environments_variable(const char *value, struct arena *a, struct environments *out,
                                 struct err *e) {
    struct str text = str_trim(str_of(value));
    *out = (struct environments){.include_local = text.n == 0};
    out->default_id = text.n == 0 ? "local" : NULL;
    if (text.n == 0 || str_ieqz(text, "none"))
        return 0;
    struct environments_entry *entry = arena_alloc(a, sizeof *entry);
    if (entry == NULL)
        return environments_memory(e);
    *entry = (struct environments_entry){.id = "remote",
                                         .url = value,
                                         .connect_ms = ENVIRONMENTS_TIMEOUT_MS,
                                         .initialize_ms = ENVIRONMENTS_TIMEOUT_MS};
    out->entries = entry;
    out->count = 1;
    out->default_id = entry->id;
    out->default_named = true;
    return environments_url(a, &entry->url, e);
}

/* Reads a file of at most TOML_TEXT_MAX bytes. -ENOENT without a message if there is none. */
static int environments_file(const char *path, struct buf *b, struct err *e) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_os(e, ERR_INVALID_PARAMS, errno);
    for (;;) {
        if (b->len > TOML_TEXT_MAX)
            return err_set(e, ERR_INVALID_PARAMS, "the file is longer than %u bytes",
                           TOML_TEXT_MAX);
        int r = buf_reserve(b, 16384);
        if (r < 0)
            return environments_memory(e);
        ssize_t n = read(fd, b->p + b->len, 16384);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, ERR_INVALID_PARAMS, errno);
        if (n == 0)
            return 0;
        b->len += (size_t)n;
    }
}

int environments_load(const char *home, const char *variable, struct arena *a,
                      struct environments *out, struct err *e) {
    _cleanup_buf_ struct buf path = BUF_INIT(65536), text = BUF_INIT(2 * TOML_TEXT_MAX);
    if (buf_putf(&path, "%s/%s", home, ENVIRONMENTS_FILE) < 0 || buf_putc(&path, '\0') < 0)
        return environments_memory(e);
    int r = environments_file(path.p, &text, e);
    if (r == -ENOENT)
        return environments_variable(variable, a, out, e);
    if (r < 0)
        return environments_fail(e, "read", path.p, r);
    return environments_read(buf_str(&text), path.p, a, out, e);
}

const char *environments_home(const char *codex_home, const char *home, struct arena *a) {
    if (codex_home != NULL && codex_home[0] != '\0')
        return arena_strdup(a, str_of(codex_home));
    if (home == NULL || home[0] == '\0')
        return NULL;
    size_t n = strlen(home);
    char *path = arena_alloc(a, n + sizeof "/.codex");
    if (path != NULL) {
        memcpy(path, home, n);
        memcpy(path + n, "/.codex", sizeof "/.codex");
    }
    return path;
}

const struct environments_entry *environments_find(const struct environments *list,
                                                   const char *id) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->entries[i].id, id) == 0)
            return &list->entries[i];
    }
    return NULL;
}
