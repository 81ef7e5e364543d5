#include "intercept/intercept_read.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define READ_PAGE 4096 /* reads never cross it: the next page may be missing */
#define READ_GUESS 256 /* bytes of a text that are read at first */
#define READ_BATCH 32  /* texts read at once */

static size_t read_page_rest(uint64_t at) {
    return READ_PAGE - at % READ_PAGE;
}

/* Reads all `n` bytes, or -errno. */
static int read_bytes(pid_t tid, uint64_t at, void *to, size_t n) {
    struct iovec here = {to, n}, there = {(void *)(uintptr_t)at, n};
    ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);
    if (got < 0)
        return -errno;
    return (size_t)got == n ? 0 : -EFAULT;
}

/* Reads on behind the `n` bytes in `page`, up to a NUL. */
static int read_rest(pid_t tid, uint64_t at, size_t max, struct arena *a, char *buffer,
                     const char **out) {
    size_t len = 0;
    for (;;) {
        size_t n = MIN(read_page_rest(at + len), max - len);
        if (n == 0)
            return -ENAMETOOLONG;
        int r = read_bytes(tid, at + len, buffer + len, n);
        if (r < 0)
            return r;
        const char *end = memchr(buffer + len, '\0', n);
        if (end != NULL) {
            *out = arena_strdup(a, (struct str){buffer, (size_t)(end - buffer)});
            return *out == NULL ? -ENOMEM : 0;
        }
        len += n;
    }
}

int intercept_read_text(pid_t tid, uint64_t at, size_t max, struct arena *a, const char **out) {
    char small[READ_GUESS];
    size_t n = MIN(MIN(sizeof small, max), read_page_rest(at));
    int r = read_bytes(tid, at, small, n);
    if (r < 0)
        return r;
    const char *end = memchr(small, '\0', n);
    if (end != NULL) {
        *out = arena_strdup(a, (struct str){small, (size_t)(end - small)});
        return *out == NULL ? -ENOMEM : 0;
    }
    _cleanup_free_ char *large = malloc(max);
    return large == NULL ? -ENOMEM : read_rest(tid, at, max, a, large, out);
}

/* Reads pointers until NULL. */
static int read_pointers(pid_t tid, uint64_t at, bool narrow, size_t max, struct arena *a,
                         uint64_t **out, size_t *count) {
    size_t size = narrow ? 4 : 8, cap = 0;
    unsigned char page[READ_PAGE];
    *out = NULL;
    *count = 0;
    if (at % size != 0) /* an element would cross a page */
        return -EFAULT;
    for (;;) {
        size_t n = MIN(read_page_rest(at), *count == 0 ? READ_GUESS : READ_PAGE);
        int r = read_bytes(tid, at, page, n);
        if (r < 0)
            return r;
        for (size_t i = 0; i < n; i += size) {
            uint64_t p = 0;
            memcpy(&p, page + i, size);
            if (p == 0)
                return 0;
            if ((*count + 1) * size > max)
                return -E2BIG;
            uint64_t *grown = arena_grow(a, *out, *count, &cap, 64, sizeof *grown);
            if (grown == NULL)
                return -ENOMEM;
            *out = grown;
            grown[(*count)++] = p;
        }
        at += n;
    }
}

/* Reads the texts of a batch, most of them with one call. */
static int read_batch(pid_t tid, const uint64_t *pointers, size_t n, size_t max, size_t *bytes,
                      struct arena *a, char **out) {
    static char small[READ_BATCH][READ_GUESS]; /* on the loop's thread */
    struct iovec here[READ_BATCH] = {0}, there[READ_BATCH] = {0};
    for (size_t i = 0; i < n; i++) {
        size_t len = MIN((size_t)READ_GUESS, read_page_rest(pointers[i]));
        here[i] = (struct iovec){small[i], len};
        there[i] = (struct iovec){(void *)(uintptr_t)pointers[i], len};
    }
    ssize_t got = process_vm_readv(tid, here, n, there, n, 0);
    if (got < 0)
        return -errno;
    for (size_t i = 0; i < n; i++) {
        const char *text = NULL, *end = NULL;
        if ((size_t)got >= here[i].iov_len)
            end = memchr(small[i], '\0', here[i].iov_len);
        got -= MIN(got, (ssize_t)here[i].iov_len);
        int r = 0;
        if (end != NULL)
            text = arena_strdup(a, (struct str){small[i], (size_t)(end - small[i])});
        else
            r = intercept_read_text(tid, pointers[i], max - *bytes + 1, a, &text);
        if (r < 0)
            return r == -ENAMETOOLONG ? -E2BIG : r;
        if (text == NULL)
            return -ENOMEM;
        *bytes += strlen(text) + 1;
        if (*bytes > max)
            return -E2BIG;
        out[i] = (char *)(uintptr_t)text;
    }
    return 0;
}

int intercept_read_vector(pid_t tid, uint64_t at, bool narrow, size_t max, size_t *bytes,
                          struct arena *a, char *const **out, size_t *count) {
    uint64_t *pointers = NULL;
    *count = 0;
    int r = at == 0 ? 0 : read_pointers(tid, at, narrow, max - *bytes, a, &pointers, count);
    if (r < 0)
        return r;
    *bytes += *count * 8;
    char **texts = arena_calloc(a, *count + 1, sizeof *texts);
    if (texts == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < *count && r == 0; i += READ_BATCH)
        r = *bytes > max ? -E2BIG
                         : read_batch(tid, pointers + i, MIN(*count - i, (size_t)READ_BATCH), max,
                                      bytes, a, texts + i);
    *out = texts;
    return r;
}
