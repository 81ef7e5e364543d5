#pragma once
/*
 * The newest lines of the audit log, in memory, for those who watch it. Lines have numbers from 1
 * on without gaps. Maxima: AUDIT_TAIL_LINES lines and AUDIT_TAIL_BYTES bytes; older ones are
 * forgotten, and their numbers tell how many.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdint.h>

#define AUDIT_TAIL_LINES 2048
#define AUDIT_TAIL_BYTES (1u << 20)

struct audit_tail {
    char *text[AUDIT_TAIL_LINES]; /* owned; line n is at n % AUDIT_TAIL_LINES */
    uint32_t len[AUDIT_TAIL_LINES];
    uint64_t first, next; /* lines [first, next) are kept */
    size_t bytes;
    void (*news)(void *owner); /* a line came; or NULL */
    void *owner;
};

/* Empty. */
void audit_tail_init(struct audit_tail *t);
void audit_tail_fini(struct audit_tail *t);

/* Adds a copy of a line. Without memory, or with more than the maximum, only its number counts. */
void audit_tail_put(struct audit_tail *t, struct str line);

/* The line with that number, borrowed until the next one comes; {NULL, 0} if it is not kept. */
struct str audit_tail_get(const struct audit_tail *t, uint64_t n);
