#pragma once
/* A bump allocator for everything that lives as long as one request. Nothing is freed singly.
 * arena_reset() keeps one block for the next request; arena_fini() frees all. */

#include "base/str.h"
#include "base/util.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block; owned */
    size_t total;             /* bytes handed out by malloc */
    size_t max;               /* total never exceeds this */
};

#define ARENA_INIT(maximum) ((struct arena){.max = (maximum)})

/* Zeroed memory aligned for any type, or NULL above the maximum or out of memory. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_calloc(struct arena *a, size_t count, size_t size);

/*
 * Room for one more element of `size` bytes behind the `count` of an array with room for *cap: the
 * array itself, or a copy with room for `first` or twice *cap. NULL as above; then nothing changed.
 * The caller bounds `count`.
 */
void *arena_grow(struct arena *a, void *array, size_t count, size_t *cap, size_t first,
                 size_t size);

/* A NUL-terminated copy, or NULL. */
char *arena_strdup(struct arena *a, struct str s);

/* Forgets everything allocated; keeps one small block. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);
#define _cleanup_arena_ __attribute__((cleanup(arena_fini)))
