#include "ops/audit.h"

#include "base/utf8.h"
#include "json/jsonw.h"

#include <errno.h>
#include <inttypes.h>

#define AUDIT_CUT "..."

int audit_open(struct audit *a, const char *path, struct err *e) {
    *a = (struct audit){.line = BUF_INIT(AUDIT_LINE_MAX)};
    a->ring = audit_ring_new(path, e);
    return a->ring != NULL ? 0 : -EIO;
}

void audit_watch(struct audit *a, struct audit_tail *tail) {
    a->line.max = AUDIT_LINE_MAX;
    a->tail = tail;
}

void audit_close(struct audit *a) {
    audit_ring_close(steal_ptr(&a->ring));
    buf_fini(&a->line);
}

void audit_reopen(struct audit *a) {
    if (a->ring != NULL)
        audit_ring_reopen(a->ring);
}

uint64_t audit_dropped(const struct audit *a) {
    return a->ring != NULL ? audit_ring_dropped(a->ring) : 0;
}

bool audit_has_share(const struct audit *a) {
    return a->ring == NULL || audit_ring_waiting(a->ring) < AUDIT_RING / 8;
}

void audit_lost(struct audit *a) {
    if (a->ring != NULL)
        audit_ring_drop(a->ring);
}

/* -- members -- */

/* Notes the failure of a step; audit_end() then counts the line as dropped. */
static void audit_step(struct audit *a, int r) {
    a->bad |= r < 0;
}

static void audit_raw(struct audit *a, struct str s) {
    audit_step(a, buf_put(&a->line, s.p, s.n));
}

static void audit_name(struct audit *a, const char *name) {
    audit_step(a, buf_putf(&a->line, ",\"%s\":", name));
}

/* The length of the valid UTF-8 that s begins with. */
static size_t audit_valid_run(struct str s) {
    size_t i = 0;
    while (i < s.n) {
        unsigned char c = (unsigned char)s.p[i];
        size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        if (len > s.n - i || !utf8_valid(s.p + i, len))
            break;
        i += len;
    }
    return i;
}

/* A JSON string; each byte that is not UTF-8 becomes U+FFFD. */
static void audit_string(struct audit *a, struct str s) {
    if (s.n == 0)
        s = STR_LIT("");
    if (utf8_valid(s.p, s.n)) {
        audit_step(a, jsonw_str(&a->line, s));
        return;
    }
    _cleanup_buf_ struct buf fixed = BUF_INIT(AUDIT_LINE_MAX);
    while (s.n > 0) {
        size_t run = audit_valid_run(s);
        audit_step(a, buf_put(&fixed, s.p, run));
        if (run < s.n) {
            audit_step(a, buf_putz(&fixed, "\xEF\xBF\xBD"));
            run++;
        }
        s.p += run;
        s.n -= run;
    }
    audit_step(a, jsonw_str(&a->line, buf_str(&fixed)));
}

void audit_begin(struct audit *a, const char *event) {
    char now[AUDIT_TIME_LEN + 1];
    audit_ring_time(now);
    a->line.len = 0;
    a->bad = false;
    audit_step(a, buf_putf(&a->line, "{\"ts\":\"%s\",\"event\":\"%s\"", now, event));
}

void audit_text(struct audit *a, const char *name, struct str value, size_t max) {
    audit_name(a, name);
    audit_string(a, (struct str){value.p, utf8_cut(value.p, value.n, max)});
}

void audit_json(struct audit *a, const char *name, struct str json) {
    audit_name(a, name);
    audit_raw(a, json);
}

void audit_number(struct audit *a, const char *name, int64_t value) {
    audit_step(a, buf_putf(&a->line, ",\"%s\":%" PRId64, name, value));
}

void audit_flag(struct audit *a, const char *name, bool value) {
    audit_json(a, name, value ? STR_LIT("true") : STR_LIT("false"));
}

void audit_end(struct audit *a) {
    audit_raw(a, STR_LIT("}\n"));
    if (a->bad) {
        audit_lost(a);
        return;
    }
    if (a->ring != NULL)
        audit_ring_put(a->ring, a->line.p, a->line.len);
    if (a->tail != NULL)
        audit_tail_put(a->tail, (struct str){a->line.p, a->line.len - 1});
}

/* -- argv -- */

void audit_argv_begin(struct audit *a, struct audit_argv *v) {
    *v = (struct audit_argv){.room = AUDIT_ARGV_MAX};
    audit_json(a, "argv", STR_LIT("["));
}

void audit_argv_add(struct audit *a, struct audit_argv *v, struct str arg) {
    _cleanup_buf_ struct buf text = BUF_INIT(AUDIT_ARGV_MAX + sizeof AUDIT_CUT);
    if (v->cut || v->room == 0) {
        v->cut = true;
        return;
    }
    int r = redact_arg(&v->redact, arg, v->room, &text);
    v->cut = r > 0;
    v->room -= MIN(text.len + 1, v->room); /* empty ones count too */
    audit_step(a, r);
    if (v->cut)
        audit_step(a, buf_putz(&text, AUDIT_CUT));
    if (a->line.len > 0 && a->line.p[a->line.len - 1] != '[')
        audit_raw(a, STR_LIT(","));
    audit_string(a, buf_str(&text));
}

void audit_argv_end(struct audit *a, struct audit_argv *v) {
    audit_raw(a, STR_LIT("]"));
    if (v->cut)
        audit_flag(a, "argvCut", true);
}
