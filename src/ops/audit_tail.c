#include "ops/audit_tail.h"

void audit_tail_init(struct audit_tail *t) {
    *t = (struct audit_tail){.first = 1, .next = 1};
}

static void audit_tail_forget(struct audit_tail *t) {
    size_t at = t->first++ % AUDIT_TAIL_LINES;
    t->bytes -= t->len[at];
    t->len[at] = 0;
    free(steal_ptr(&t->text[at]));
}

void audit_tail_fini(struct audit_tail *t) {
    while (t->first < t->next)
        audit_tail_forget(t);
}

void audit_tail_put(struct audit_tail *t, struct str line) {
    if (line.n > AUDIT_TAIL_BYTES) {
        audit_tail_fini(t);
        t->first = ++t->next;
        return;
    }
    while (t->next - t->first == AUDIT_TAIL_LINES || t->bytes + line.n > AUDIT_TAIL_BYTES)
        audit_tail_forget(t);
    size_t at = t->next++ % AUDIT_TAIL_LINES;
    t->text[at] = str_dup(line);
    t->len[at] = t->text[at] != NULL ? (uint32_t)line.n : 0;
    t->bytes += t->len[at];
    if (t->news != NULL)
        t->news(t->owner);
}

struct str audit_tail_get(const struct audit_tail *t, uint64_t n) {
    size_t at = n % AUDIT_TAIL_LINES;
    if (n < t->first || n >= t->next)
        return (struct str){NULL, 0};
    return (struct str){t->text[at], t->len[at]};
}
