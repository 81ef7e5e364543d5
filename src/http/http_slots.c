#include "http/http_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOTS_BYTES (HTTP_SLOTS * HTTP_SLOTS_EACH)
#define SLOTS_NOEXEC 0x0008U /* MFD_NOEXEC_SEAL, Linux 6.3 */

static int slots_memfd(void) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("http-slots", flags | SLOTS_NOEXEC);
    return fd < 0 && errno == EINVAL ? memfd_create("http-slots", flags) : fd;
}

static int slots_mmap(struct http_slots *s, int fd, int access) {
    void *p = mmap(NULL, SLOTS_BYTES, access, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *s = (struct http_slots){.p = p};
    return 0;
}

int http_slots_make(struct http_slots *s) {
    *s = (struct http_slots){0};
    _cleanup_close_ int fd = slots_memfd();
    if (fd < 0 || ftruncate(fd, (off_t)SLOTS_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    int r = slots_mmap(s, fd, PROT_READ);
    return r < 0 ? r : steal_fd(&fd);
}

int http_slots_map(struct http_slots *s, int fd) {
    struct stat st;
    *s = (struct http_slots){0};
    if (fstat(fd, &st) < 0)
        return -errno;
    _cleanup_close_ int mine = fd;
    return st.st_size == (off_t)SLOTS_BYTES ? slots_mmap(s, mine, PROT_READ | PROT_WRITE) : -EINVAL;
}

void http_slots_fini(struct http_slots *s) {
    if (s->p != NULL)
        munmap(steal_ptr(&s->p), SLOTS_BYTES);
}
