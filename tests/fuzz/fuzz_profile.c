/*
 * The `sandbox` object of a request, through to the bytes for the launcher. The input is its JSON
 * text. A refusal has a code and a text that can be sent; a plan has sorted, normalised entries
 * and survives encoding.
 */
#include "base/utf8.h"
#include "sandbox/policy/profile.h"

#include <errno.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 20)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(int r, const struct err *e) {
    struct str text = err_str(e);
    REQUIRE(r < 0 && text.n > 0 && text.n <= ERR_MSG_MAX && utf8_valid(text.p, text.n));
    REQUIRE(e->code == ERR_INVALID_PARAMS || e->code == ERR_INVALID_REQUEST ||
            e->code == ERR_INTERNAL);
}

static void check_path(const char *path) {
    size_t n = strlen(path);
    REQUIRE(path[0] == '/' && (n == 1 || path[n - 1] != '/'));
    REQUIRE(strstr(path, "//") == NULL && strstr(path, "/./") == NULL);
    REQUIRE(strstr(path, "/../") == NULL);
    const char *last = strrchr(path, '/');
    REQUIRE(strcmp(last, "/.") != 0 && strcmp(last, "/..") != 0);
}

static void check_plan(const struct plan *p) {
    bool root = false;
    check_path(p->cwd);
    REQUIRE(p->confine_files || (p->entry_count == 0 && p->glob_count == 0));
    for (size_t i = 0; i < p->entry_count; i++) {
        const struct plan_entry *entry = &p->entries[i];
        check_path(entry->path);
        REQUIRE(i == 0 || strcmp(p->entries[i - 1].path, entry->path) < 0);
        REQUIRE(entry->path[1] != '\0' || entry->access != PLAN_DENY);
        root |= entry->path[1] == '\0';
    }
    REQUIRE(p->full_read == root && !(p->full_read && p->minimal));
    for (size_t i = 0; i < p->glob_count; i++) {
        const struct plan_glob *g = &p->globs[i];
        check_path(g->pattern);
        REQUIRE(g->fixed > 1 && g->pattern[g->fixed] == '/');
    }
}

static void check_encoding(const struct plan *p) {
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    _cleanup_buf_ struct buf first = BUF_INIT(PLAN_BYTES_MAX), second = BUF_INIT(PLAN_BYTES_MAX);
    struct plan again;
    REQUIRE(plan_encode(p, &first) == 0);
    REQUIRE(plan_decode(buf_str(&first), &a, &again) == 0);
    REQUIRE(plan_encode(&again, &second) == 0);
    REQUIRE(str_eq(buf_str(&first), buf_str(&second)));
}

static void check_call(const struct json_node *v, enum profile_call call) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    const struct profile_context c = {
        .call = call, .cwd = "/work[1]/\xFF", .tmpdir = "/var/tmp/", .home = "/home/u"};
    struct profile *p;
    struct plan plan;
    int r = profile_decode(v, call, &a, &p, &e);
    if (r < 0) {
        check_refusal(r, &e);
        REQUIRE(p == NULL);
        return;
    }
    REQUIRE(e.code == 0);
    REQUIRE(profile_files_need(p, true) != PROFILE_DIRECT ||
            profile_files_need(p, false) == PROFILE_DIRECT);
    REQUIRE(profile_process_need(p) != PROFILE_DIRECT ||
            profile_files_need(p, true) == PROFILE_DIRECT);
    if (p == NULL)
        return;
    r = profile_plan(p, &c, &a, &plan, &e);
    if (r < 0) {
        check_refusal(r, &e);
        return;
    }
    check_plan(&plan);
    check_encoding(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc d;
    if (size > TEXT_MAX || !utf8_valid((const char *)data, size))
        return 0;
    json_doc_init(&d, TEXT_MAX, 1);
    if (json_parse(&d, (const char *)data, size, &e) == 0) {
        check_call(json_root(&d), PROFILE_PROCESS);
        check_call(json_root(&d), PROFILE_FILES);
    }
    json_doc_fini(&d);
    return 0;
}
