#include "base/arena.h"

#include <stdint.h>

#define ARENA_BLOCK 4096
#define ARENA_ALIGN _Alignof(max_align_t)

struct arena_block {
    struct arena_block *next;
    size_t cap, used;
    _Alignas(max_align_t) char data[];
};

static struct arena_block *arena_add_block(struct arena *a, size_t n) {
    size_t cap = MAX(n, (size_t)ARENA_BLOCK - sizeof(struct arena_block));
    if (cap > a->max || a->total > a->max - cap)
        return NULL;
    struct arena_block *b = malloc(sizeof *b + cap);
    if (b == NULL)
        return NULL;
    *b = (struct arena_block){.next = a->head, .cap = cap};
    a->head = b;
    a->total += cap;
    return b;
}

void *arena_alloc(struct arena *a, size_t n) {
    if (n > SIZE_MAX - ARENA_ALIGN)
        return NULL;
    n = (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    struct arena_block *b = a->head;
    if (b == NULL || b->cap - b->used < n)
        b = arena_add_block(a, n);
    if (b == NULL)
        return NULL;
    void *p = b->data + b->used;
    b->used += n;
    return memset(p, 0, n);
}

void *arena_calloc(struct arena *a, size_t count, size_t size) {
    size_t n;
    return __builtin_mul_overflow(count, size, &n) ? NULL : arena_alloc(a, n);
}

void *arena_grow(struct arena *a, void *array, size_t count, size_t *cap, size_t first,
                 size_t size) {
    if (count < *cap)
        return array;
    size_t more = MAX(*cap * 2, first);
    void *copy = arena_calloc(a, more, size);
    if (copy == NULL)
        return NULL;
    if (count > 0)
        memcpy(copy, array, count * size);
    *cap = more;
    return copy;
}

char *arena_strdup(struct arena *a, struct str s) {
    char *p = arena_alloc(a, s.n + 1);
    if (p != NULL && s.n > 0)
        memcpy(p, s.p, s.n);
    return p;
}

void arena_reset(struct arena *a) {
    struct arena_block *keep = NULL;
    while (a->head != NULL) {
        struct arena_block *b = a->head;
        a->head = b->next;
        if (keep == NULL && b->cap <= ARENA_BLOCK) {
            keep = b;
            continue;
        }
        free(b);
    }
    a->total = 0;
    if (keep != NULL) {
        keep->next = NULL;
        keep->used = 0;
        a->head = keep;
        a->total = keep->cap;
    }
}

void arena_fini(struct arena *a) {
    while (a->head != NULL) {
        struct arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
    a->total = 0;
}
