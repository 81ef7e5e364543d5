#pragma once
/* Small helpers used everywhere: cleanup attributes, ownership transfer, intrusive containers. */

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The object that embeds `member` at `ptr`. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define MUST_CHECK __attribute__((warn_unused_result))

static inline void util_free_ptr(void *p) {
    free(*(void **)p);
}

static inline void util_close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Locals with these attributes free what they own at the end of their scope. */
#define _cleanup_free_ __attribute__((cleanup(util_free_ptr)))
#define _cleanup_close_ __attribute__((cleanup(util_close_fd)))

/* Transfers ownership of a descriptor: returns it and leaves "none" (-1) behind. */
static inline int steal_fd(int *fd) {
    int v = *fd;
    *fd = -1;
    return v;
}

static inline void *steal_ptr_(void *pp) {
    void *v = *(void **)pp;
    *(void **)pp = NULL;
    return v;
}

/* Transfers ownership of a pointer: returns it and leaves NULL behind. */
#define steal_ptr(pp) ((__typeof__(*(pp)))steal_ptr_(pp))
