#include "base/arena.h"
#include "client/client_internal.h"
#include "client/environments.h"
#include "json/jsonw.h"

#include <stdint.h>

#define XS_OPTIONS_LIST_TEXT_MAX (32u << 20) /* of a list as JSON */

/* A member whose value is a text or null. */
static int xs_options_list_member(struct buf *b, const char *name, const char *value) {
    int r = buf_putf(b, "\"%s\":", name);
    if (r < 0)
        return r;
    return value != NULL ? jsonw_str(b, str_of(value)) : buf_putz(b, "null");
}

static int xs_options_list_entry(struct buf *b, const struct environments_entry *e, bool first) {
    int r = buf_putz(b, first ? "{" : ",{");
    r = r < 0 ? r : xs_options_list_member(b, "id", e->id);
    r = r < 0 ? r : buf_putc(b, ',');
    r = r < 0 ? r
              : xs_options_list_member(b, e->url != NULL ? "url" : "program",
                                       e->url != NULL ? e->url : e->program);
    return r < 0 ? r : buf_putc(b, '}');
}

static int xs_options_list_write(struct buf *b, const struct environments *list) {
    int r = buf_putf(b, "{\"fromFile\":%s,", list->from_file ? "true" : "false");
    r = r < 0 ? r : xs_options_list_member(b, "default", list->default_id);
    r = r < 0 ? r : buf_putz(b, ",\"environments\":[");
    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = xs_options_list_entry(b, &list->entries[i], i == 0);
    if (r == 0 && list->include_local)
        r = buf_putf(b, "%s{\"id\":\"local\",\"url\":\"local:\"}", list->count > 0 ? "," : "");
    return r < 0 ? r : buf_put(b, "]}", 3); /* with a NUL */
}

int xs_options_list_environments(struct xs_options *o, struct xs_bytes *json) {
    _cleanup_arena_ struct arena a = ARENA_INIT(2 * TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(XS_OPTIONS_LIST_TEXT_MAX);
    struct environments list;
    struct xs_error *error = (struct xs_error *)(uintptr_t)xs_options_error(o);
    const char *home = environments_home(getenv("CODEX_HOME"), getenv("HOME"), &a);
    if (environments_load(home != NULL ? home : "/nonexistent", getenv("CODEX_EXEC_SERVER_URL"), &a,
                          &list, &e) < 0)
        return xs_error_set(error, XS_EINVAL, "%s", err_msg(&e));
    if (xs_options_list_write(&b, &list) < 0)
        return xs_error_set(error, XS_ENOMEM, "the environments need too much memory");
    *json = (struct xs_bytes){.data = b.p, .n = b.len - 1};
    b.p = NULL;
    return 0;
}
