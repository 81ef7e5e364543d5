#pragma once
/*
 * Memory that the HTTP program writes and the server reads, so that large pieces of a body need not
 * pass through the socket. It is cut into slots that are used in turn. All that both say about them
 * goes over the socket (http_wire.h): SLOT, how much of the next one is filled; TAKEN, how many may
 * be filled again. The memory holds content and nothing else.
 *
 * The program may change a slot at any time, so the server encodes its bytes once and never looks
 * at them: an encoder makes Base64 of whatever it reads. The size is sealed, so no access can fail.
 */

#include "base/str.h"
#include "base/util.h"
#include "http/http_wire.h"

#define HTTP_SLOTS 8
#define HTTP_SLOTS_EACH ((size_t)HTTP_WIRE_DATA_MAX) /* bytes of a slot */
#define HTTP_SLOTS_TELL 4u /* slots that the server has read when it says TAKEN; below HTTP_SLOTS */

struct http_slots {
    char *p;       /* owned, mapped; the server may only read it */
    unsigned next; /* the slot that is filled, or read, next */
    unsigned used; /* program: filled and not TAKEN; server: read and not told */
};

/* The server's side: makes the memory and maps it. The descriptor to hand over, or -errno. */
MUST_CHECK int http_slots_make(struct http_slots *s);

/* The program's side: maps what it was handed, and closes it. 0 or -errno. */
MUST_CHECK int http_slots_map(struct http_slots *s, int fd);

void http_slots_fini(struct http_slots *s);

/* The next slot, for at most HTTP_SLOTS_EACH bytes. */
static inline char *http_slots_at(const struct http_slots *s) {
    return s->p + s->next * HTTP_SLOTS_EACH;
}

/* The next slot was filled, or read. */
static inline void http_slots_pass(struct http_slots *s) {
    s->next = (s->next + 1) % HTTP_SLOTS;
    s->used++;
}
