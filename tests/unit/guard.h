#pragma once
/* Memory that ends where the next page cannot be touched: reading or writing past it crashes. */

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    char *base;
    size_t size; /* usable bytes, a multiple of the page size */
};

static inline struct guard guard_new(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    char *p = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(p != MAP_FAILED);
    int r = mprotect(p + size, page, PROT_NONE);
    assert(r == 0);
    (void)r;
    return (struct guard){p, size};
}

static inline void guard_free(struct guard *g) {
    munmap(g->base, g->size + (size_t)sysconf(_SC_PAGESIZE));
}

/* The last n bytes before the guard. */
static inline char *guard_tail(const struct guard *g, size_t n) {
    assert(n <= g->size);
    return g->base + g->size - n;
}

/* A copy of the n bytes at p that ends at the guard. */
static inline char *guard_copy(const struct guard *g, const void *p, size_t n) {
    char *copy = guard_tail(g, n);
    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}
