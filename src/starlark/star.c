#include "starlark/star.h"

#include "base/utf8.h"
#include "starlark/star_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define STAR_TEXT_MAX STAR_ERROR_MAX /* of a formatted text */

void *star_user(const struct star *s) {
    return s->user;
}

/* -- memory and work -- */

void *star_alloc(struct star *s, size_t n) {
    void *p = n > STAR_MEMORY_MAX ? NULL : arena_alloc(&s->arena, n);
    if (p == NULL && !s->failed) {
        s->failed = true;
        s->message = "the evaluation needs more than 64 MiB of memory";
    }
    return p;
}

void *star_calloc(struct star *s, size_t n, size_t size) {
    size_t total;
    return star_alloc(s, __builtin_mul_overflow(n, size, &total) ? SIZE_MAX : total);
}

bool star_work(struct star *s, size_t n) {
    s->steps += MIN(n, (size_t)STAR_STEPS_MAX);
    if (s->steps <= STAR_STEPS_MAX)
        return true;
    return star_fail(s, "the evaluation takes more than %u steps", STAR_STEPS_MAX);
}

/* -- text -- */

PRINTF_LIKE(2, 0)
static char *star_vtext(struct star *s, const char *fmt, va_list ap) {
    _cleanup_free_ char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0)
        return star_alloc(s, SIZE_MAX);
    size_t n = MIN(strlen(text), (size_t)STAR_TEXT_MAX);
    char *p = star_alloc(s, n + 1);
    if (p != NULL)
        memcpy(p, text, n);
    return p;
}

char *star_text(struct star *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *p = star_vtext(s, fmt, ap);
    va_end(ap);
    return p;
}

struct star_value *star_take(struct star *s, struct buf *b, int r) {
    char *p = r < 0 ? star_alloc(s, SIZE_MAX) : star_alloc(s, b->len + 1);
    if (p == NULL)
        return NULL;
    if (b->len > 0)
        memcpy(p, b->p, b->len);
    return star_work(s, b->len / 64) ? star_value_string(s, (struct str){p, b->len}) : NULL;
}

/* -- errors -- */

PRINTF_LIKE(2, 0)
static void star_note(struct star *s, const char *fmt, va_list ap) {
    if (s->failed)
        return;
    char *text = star_vtext(s, fmt, ap);
    s->failed = true;
    if (text != NULL)
        s->message = text;
}

void *star_fail(struct star *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    star_note(s, fmt, ap);
    va_end(ap);
    return NULL;
}

void *star_fail_at(struct star *s, struct star_span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    star_note(s, fmt, ap);
    va_end(ap);
    star_locate(s, at);
    return NULL;
}

void star_locate(struct star *s, struct star_span at) {
    if (!s->failed || s->at_known)
        return;
    s->at = at;
    s->at_known = true;
}

/* -- running -- */

/* Line ends of two characters become one. A character of the source is one byte or more. */
static bool star_read(struct star *s) {
    struct str in = s->source->text;
    if (in.n > STAR_SOURCE_MAX)
        return star_fail(s, "the file has more than %u bytes", STAR_SOURCE_MAX);
    char *p = star_alloc(s, in.n + 1);
    size_t n = 0;
    for (size_t i = 0; p != NULL && i < in.n; i++) {
        if (in.p[i] != '\r' || i + 1 == in.n || in.p[i + 1] != '\n')
            p[n++] = in.p[i];
    }
    s->text = (struct str){p, n};
    return p != NULL;
}

static bool star_evaluate(struct star *s) {
    if (!star_read(s))
        return false;
    struct star_node *module = star_parse(s);
    int slots = module == NULL ? -1 : star_scope(s, module);
    return slots >= 0 && star_eval_module(s, module, (size_t)slots);
}

int star_run(const struct star_source *source, const struct star_native *natives, size_t n,
             void *user, struct buf *error) {
    struct star *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -ENOMEM;
    s->arena = ARENA_INIT(STAR_MEMORY_MAX);
    s->source = source;
    s->natives = natives;
    s->native_count = n;
    s->user = user;
    s->where = "<module>";
    s->none = (struct star_value){.type = STAR_NONE};
    s->yes = (struct star_value){.type = STAR_BOOL, .boolean = true};
    s->no = (struct star_value){.type = STAR_BOOL, .boolean = false};
    s->ellipsis = (struct star_value){.type = STAR_ELLIPSIS};
    int r = star_evaluate(s) ? 0 : -EINVAL;
    if (r < 0 && star_error_put(s, error) < 0)
        r = -ENOMEM;
    arena_fini(&s->arena);
    free(s);
    return r;
}
