#include "base/arena.h"
#include "client/client_internal.h"
#include "client/environments.h"
#include "toml/toml.h"

#include <string.h>

#define XS_OPTIONS_LIST_MAX (1u << 20)   /* elements of a list */
#define XS_OPTIONS_VALUE_MAX (16u << 20) /* bytes of a value */

enum xs_options_kind { XS_OPTIONS_TEXT, XS_OPTIONS_NUMBER, XS_OPTIONS_LIST };

struct xs_options_key {
    const char *name;
    enum xs_options_kind kind;
    int64_t min, max; /* of a number */
};

#define TEXT(key)                                                                                  \
    { .name = (key), .kind = XS_OPTIONS_TEXT }
#define LIST(key)                                                                                  \
    { .name = (key), .kind = XS_OPTIONS_LIST }
#define NUMBER(key, from, to)                                                                      \
    { .name = (key), .kind = XS_OPTIONS_NUMBER, .min = (from), .max = (to) }
#define TIME(key) NUMBER(key, 0, INT64_MAX / 1000000)

static const struct xs_options_key xs_options_keys[] = {
    TEXT(XS_OPT_URL),
    TEXT(XS_OPT_TOKEN),
    TEXT(XS_OPT_TOKEN_FILE),
    NUMBER(XS_OPT_TOKEN_INSECURE, 0, 1),
    TEXT(XS_OPT_CA_FILE),
    TEXT(XS_OPT_NAME),
    TEXT(XS_OPT_PROGRAM),
    LIST(XS_OPT_ARG),
    LIST(XS_OPT_PROGRAM_ENV),
    TEXT(XS_OPT_PROGRAM_CWD),
    TIME(XS_OPT_CONNECT_MS),
    TIME(XS_OPT_INIT_MS),
    TIME(XS_OPT_CALL_MS),
    TIME(XS_OPT_PING_MS),
    TIME(XS_OPT_DEAD_MS),
    TIME(XS_OPT_RESUME_MS),
    TEXT(XS_OPT_SESSION_ID),
    TIME(XS_OPT_SESSION_TTL_MS),
    TIME(XS_OPT_CLOSED_RETENTION_MS),
    NUMBER(XS_OPT_WINDOW, 65536, 1 << 30),
    NUMBER(XS_OPT_QUEUE, 4 << 20, 1 << 30),
    NUMBER(XS_OPT_GAP_FAILS, 0, 1),
    NUMBER(XS_OPT_LOG_WIRE, 0, 1),
    LIST(XS_OPT_ARGV),
    TEXT(XS_OPT_ARG0),
    TEXT(XS_OPT_CWD),
    LIST(XS_OPT_ENV),
    TEXT(XS_OPT_INHERIT),
    LIST(XS_OPT_ENV_EXCLUDE),
    LIST(XS_OPT_ENV_ONLY),
    TEXT(XS_OPT_ENV_PRESET),
    NUMBER(XS_OPT_TTY, 0, 1),
    NUMBER(XS_OPT_ROWS, 1, 65535),
    NUMBER(XS_OPT_COLS, 1, 65535),
    NUMBER(XS_OPT_STDIN, 0, 1),
    TIME(XS_OPT_TIMEOUT_MS),
    NUMBER(XS_OPT_LIMIT_MEMORY, 1, INT64_MAX),
    NUMBER(XS_OPT_LIMIT_PIDS, 1, INT64_MAX),
    NUMBER(XS_OPT_LIMIT_FILES, 1, INT64_MAX),
    NUMBER(XS_OPT_LIMIT_NICE, -20, 19),
    NUMBER(XS_OPT_LIMIT_OOM, -1000, 1000),
    NUMBER(XS_OPT_LIMIT_CPU, 1, INT64_MAX),
    NUMBER(XS_OPT_PREPARED, 0, 1),
    TEXT(XS_OPT_PROCESS_ID),
    TEXT(XS_OPT_SANDBOX),
    LIST(XS_OPT_WRITABLE),
    NUMBER(XS_OPT_NETWORK, 0, 1),
    TEXT(XS_OPT_SANDBOX_JSON),
    TEXT(XS_OPT_THREAD_ID),
    TEXT(XS_OPT_TOOL_CALL_ID),
    TEXT(XS_OPT_START_JSON),
    NUMBER(XS_OPT_RECURSIVE, 0, 1),
    NUMBER(XS_OPT_PRESERVE, 0, 1),
    NUMBER(XS_OPT_RESUME, 0, 1),
    NUMBER(XS_OPT_ATOMIC, 0, 1),
    NUMBER(XS_OPT_FSYNC, 0, 1),
    TEXT(XS_OPT_LINKS),
    NUMBER(XS_OPT_IN_FLIGHT, 1, 64),
    TIME(XS_OPT_YIELD_MS),
    NUMBER(XS_OPT_MAX_TOKENS, 0, INT64_MAX),
    TIME(XS_OPT_POLL_MAX_MS),
};

#define XS_OPTIONS_KEYS ARRAY_LEN(xs_options_keys)

struct xs_options_value {
    bool set;
    int64_t number;
    char *text;  /* owned */
    char **list; /* owned, as its elements; NULL-terminated */
    size_t n;
};

struct xs_options {
    struct xs_options_value value[XS_OPTIONS_KEYS];
    struct xs_error error;
};

struct xs_options *xs_options_new(void) {
    return calloc(1, sizeof(struct xs_options));
}

/* Wipes a text before its memory is reused: it may be a token. */
static void xs_options_drop_text(char *z) {
    if (z != NULL)
        explicit_bzero(z, strlen(z));
    free(z);
}

static void xs_options_clear(struct xs_options_value *v) {
    xs_options_drop_text(v->text);
    for (size_t i = 0; i < v->n; i++)
        xs_options_drop_text(v->list[i]);
    free(v->list);
    *v = (struct xs_options_value){.set = false};
}

void xs_options_free(struct xs_options *o) {
    if (o == NULL)
        return;
    for (size_t i = 0; i < XS_OPTIONS_KEYS; i++)
        xs_options_clear(&o->value[i]);
    xs_error_fini(&o->error);
    free(o);
}

const struct xs_error *xs_options_error(const struct xs_options *o) {
    return &o->error;
}

static const struct xs_options_key *xs_options_key(const char *name) {
    for (size_t i = 0; name != NULL && i < XS_OPTIONS_KEYS; i++) {
        if (strcmp(xs_options_keys[i].name, name) == 0)
            return &xs_options_keys[i];
    }
    return NULL;
}

/* The value of a key of one kind, or NULL with the error set. */
static struct xs_options_value *xs_options_at(struct xs_options *o, const char *name,
                                              enum xs_options_kind kind) {
    static const char *const kinds[] = {"text", "number", "list"};
    const struct xs_options_key *key = xs_options_key(name);
    if (key == NULL) {
        xs_error_set(&o->error, XS_EINVAL, "unknown option %s", name != NULL ? name : "(null)");
        return NULL;
    }
    if (key->kind != kind) {
        xs_error_set(&o->error, XS_EINVAL, "option %s is a %s", name, kinds[key->kind]);
        return NULL;
    }
    return &o->value[key - xs_options_keys];
}

/* A copy of a text, or NULL with the error set. */
static char *xs_options_dup(struct xs_options *o, const char *key, const char *value) {
    if (strlen(value) > XS_OPTIONS_VALUE_MAX) {
        xs_error_set(&o->error, XS_EINVAL, "option %s is too long", key);
        return NULL;
    }
    char *copy = strdup(value);
    if (copy == NULL)
        xs_error_set(&o->error, XS_ENOMEM, "option %s: out of memory", key);
    return copy;
}

int xs_options_str(struct xs_options *o, const char *key, const char *value) {
    struct xs_options_value *v = xs_options_at(o, key, XS_OPTIONS_TEXT);
    if (v == NULL)
        return o->error.code;
    char *copy = NULL;
    if (value != NULL && (copy = xs_options_dup(o, key, value)) == NULL)
        return o->error.code;
    xs_options_clear(v);
    *v = (struct xs_options_value){.set = copy != NULL, .text = copy};
    return 0;
}

int xs_options_num(struct xs_options *o, const char *key, int64_t value) {
    struct xs_options_value *v = xs_options_at(o, key, XS_OPTIONS_NUMBER);
    if (v == NULL)
        return o->error.code;
    const struct xs_options_key *k = &xs_options_keys[v - o->value];
    if (value < k->min || value > k->max)
        return xs_error_set(&o->error, XS_EINVAL, "option %s: %lld is not in %lld..%lld", key,
                            (long long)value, (long long)k->min, (long long)k->max);
    *v = (struct xs_options_value){.set = true, .number = value};
    return 0;
}

int xs_options_add(struct xs_options *o, const char *key, const char *value) {
    struct xs_options_value *v = xs_options_at(o, key, XS_OPTIONS_LIST);
    if (v == NULL)
        return o->error.code;
    if (value == NULL) {
        xs_options_clear(v);
        return 0;
    }
    if (v->n >= XS_OPTIONS_LIST_MAX)
        return xs_error_set(&o->error, XS_EINVAL, "option %s has too many elements", key);
    char *copy = xs_options_dup(o, key, value);
    if (copy == NULL)
        return o->error.code;
    /* Room for a power of two, and the NULL at the end. */
    char **list = v->list;
    if (v->n == 0 || (v->n & (v->n - 1)) == 0)
        list = reallocarray(v->list, v->n == 0 ? 2 : v->n * 2 + 1, sizeof *list);
    if (list == NULL) {
        xs_options_drop_text(copy);
        return xs_error_set(&o->error, XS_ENOMEM, "option %s: out of memory", key);
    }
    list[v->n++] = copy;
    list[v->n] = NULL;
    v->list = list;
    v->set = true;
    return 0;
}

/* -- reading -- */

static const struct xs_options_value *xs_options_find(const struct xs_options *o,
                                                      const char *name) {
    const struct xs_options_key *key = o != NULL ? xs_options_key(name) : NULL;
    return key != NULL && o->value[key - xs_options_keys].set ? &o->value[key - xs_options_keys]
                                                              : NULL;
}

bool xs_options_has(const struct xs_options *o, const char *key) {
    return xs_options_find(o, key) != NULL;
}

const char *xs_options_get(const struct xs_options *o, const char *key, const char *otherwise) {
    const struct xs_options_value *v = xs_options_find(o, key);
    return v != NULL ? v->text : otherwise;
}

int64_t xs_options_get_num(const struct xs_options *o, const char *key, int64_t otherwise) {
    const struct xs_options_value *v = xs_options_find(o, key);
    return v != NULL ? v->number : otherwise;
}

const char *const *xs_options_list(const struct xs_options *o, const char *key, size_t *n) {
    static const char *const none[] = {NULL};
    const struct xs_options_value *v = xs_options_find(o, key);
    *n = v != NULL ? v->n : 0;
    return v != NULL ? (const char *const *)v->list : none;
}

/* Sets what another bag has for a key. 0 or XS_ENOMEM. */
static int xs_options_take(struct xs_options *o, const struct xs_options_key *key,
                           const struct xs_options_value *v) {
    int r = 0;
    if (key->kind == XS_OPTIONS_TEXT)
        return xs_options_str(o, key->name, v->text);
    if (key->kind == XS_OPTIONS_NUMBER)
        return xs_options_num(o, key->name, v->number);
    for (size_t i = 0; i < v->n && r == 0; i++)
        r = xs_options_add(o, key->name, v->list[i]);
    return r;
}

struct xs_options *xs_options_copy(const struct xs_options *o) {
    struct xs_options *copy = xs_options_new();
    for (size_t i = 0; copy != NULL && o != NULL && i < XS_OPTIONS_KEYS; i++) {
        if (o->value[i].set && xs_options_take(copy, &xs_options_keys[i], &o->value[i]) < 0) {
            xs_options_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* -- environments -- */

/* Forgets what an earlier environment may have set. */
static void xs_options_unset_place(struct xs_options *o) {
    static const char *const keys[] = {XS_OPT_URL, XS_OPT_TOKEN,       XS_OPT_PROGRAM,
                                       XS_OPT_ARG, XS_OPT_PROGRAM_ENV, XS_OPT_PROGRAM_CWD};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        xs_options_clear(&o->value[xs_options_key(keys[i]) - xs_options_keys]);
}

static int xs_options_add_variable(struct xs_options *o, const struct environments_variable *v) {
    _cleanup_buf_ struct buf text = BUF_INIT(XS_OPTIONS_VALUE_MAX);
    if (buf_putf(&text, "%s=%s", v->name, v->value) < 0 || buf_putc(&text, '\0') < 0)
        return xs_error_set(&o->error, XS_ENOMEM, "variable %s: out of memory", v->name);
    return xs_options_add(o, XS_OPT_PROGRAM_ENV, text.p);
}

static int xs_options_set_program(struct xs_options *o, const struct environments_entry *e) {
    int r = xs_options_str(o, XS_OPT_URL, "stdio:");
    r = r < 0 ? r : xs_options_str(o, XS_OPT_PROGRAM, e->program);
    r = r < 0 ? r : xs_options_str(o, XS_OPT_PROGRAM_CWD, e->cwd);
    for (size_t i = 0; r == 0 && i < e->arg_count; i++)
        r = xs_options_add(o, XS_OPT_ARG, e->args[i]);
    for (size_t i = 0; r == 0 && i < e->env_count; i++)
        r = xs_options_add_variable(o, &e->env[i]);
    return r;
}

static int xs_options_set_entry(struct xs_options *o, const struct environments_entry *e) {
    xs_options_unset_place(o);
    int r =
        e->program != NULL ? xs_options_set_program(o, e) : xs_options_str(o, XS_OPT_URL, e->url);
    r = r < 0 || e->token == NULL ? r : xs_options_str(o, XS_OPT_TOKEN, e->token);
    r = r < 0 ? r : xs_options_num(o, XS_OPT_CONNECT_MS, e->connect_ms);
    return r < 0 ? r : xs_options_num(o, XS_OPT_INIT_MS, e->initialize_ms);
}

static int xs_options_set_url(struct xs_options *o, const char *url) {
    xs_options_unset_place(o);
    return xs_options_str(o, XS_OPT_URL, url);
}

static bool xs_options_is_url(const char *name) {
    static const char *const opaque[] = {"stdio:", "local:", "fd:"};
    for (size_t i = 0; i < ARRAY_LEN(opaque); i++) {
        if (strncmp(name, opaque[i], strlen(opaque[i])) == 0)
            return true;
    }
    return strstr(name, "://") != NULL;
}

/* The default of the list, as an id; NULL with the error set: there is none. */
static const char *xs_options_default(struct xs_options *o, const struct environments *list) {
    /* `local` for want of one does not count. */
    if (list->default_named && list->default_id != NULL)
        return list->default_id;
    xs_error_set(&o->error, XS_EINVAL,
                 list->from_file ? "environments.toml has no default: name an environment or a URL"
                                 : "no exec-server is named: give a URL, environments.toml or "
                                   "CODEX_EXEC_SERVER_URL");
    return NULL;
}

int xs_options_environment(struct xs_options *o, const char *name) {
    bool by_default = name == NULL || *name == '\0';
    if (!by_default && xs_options_is_url(name))
        return xs_options_set_url(o, name);
    if (!by_default && strcmp(name, "local") == 0)
        return xs_options_set_url(o, "local:");
    _cleanup_arena_ struct arena a = ARENA_INIT(2 * TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    struct environments list;
    const char *variable = getenv("CODEX_EXEC_SERVER_URL");
    const char *home = environments_home(getenv("CODEX_HOME"), getenv("HOME"), &a);
    if (environments_load(home != NULL ? home : "/nonexistent", variable, &a, &list, &e) < 0)
        return xs_error_set(&o->error, XS_EINVAL, "%s", err_msg(&e));
    if (by_default && (name = xs_options_default(o, &list)) == NULL)
        return o->error.code;
    if (strcmp(name, "local") == 0)
        return xs_options_set_url(o, "local:");
    const struct environments_entry *entry = environments_find(&list, name);
    if (entry == NULL)
        return xs_error_set(&o->error, XS_EINVAL, "no environment is called %s", name);
    return xs_options_set_entry(o, entry);
}
