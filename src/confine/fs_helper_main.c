#include "confine/fs_helper_main.h"

#include "base/fdpass.h"
#include "fs/fs_file.h"
#include "confine/fs_access.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

int fs_helper_main_memfd(struct str text) {
    _cleanup_close_ int fd = memfd_create("fs-call", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fs_file_write_all(fd, text.p, text.n);
    return r < 0 ? r : steal_fd(&fd);
}

/* Sends an answer, with a descriptor unless fd is -1. 0 or -errno. */
static int helper_send(int channel, const struct fs_call_head *head, struct str text, int fd) {
    return fdpass_send(channel, (struct str){(const char *)head, sizeof *head}, text, fd);
}

static int helper_answer_error(int channel, int r, const struct err *e) {
    struct fs_call_head head = {
        .magic = FS_CALL_MAGIC, .kind = FS_CALL_ERROR, .code = e->code, .error = -r};
    return helper_send(channel, &head, err_str(e), -1);
}

static int helper_answer(int channel, const struct fs_call_result *result) {
    struct fs_call_head head = {.magic = FS_CALL_MAGIC, .kind = FS_CALL_INLINE};
    struct str bytes = buf_str(&result->bytes), none = {"", 0};
    if (result->fd >= 0) {
        head.kind = FS_CALL_FILE;
        return helper_send(channel, &head, none, result->fd);
    }
    if (bytes.n <= FS_CALL_INLINE_MAX)
        return helper_send(channel, &head, bytes.n > 0 ? bytes : none, -1);
    _cleanup_close_ int fd = fs_helper_main_memfd(bytes);
    _cleanup_err_ struct err e = ERR_INIT;
    if (fd < 0)
        return helper_answer_error(channel, fs_fail(&e, -fd), &e);
    head.kind = FS_CALL_MEMFD;
    return helper_send(channel, &head, none, fd);
}

/* Maps the data to write. 0 or -errno. */
static int helper_map(int fd, struct str *out) {
    struct stat st;
    *out = (struct str){"", 0};
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size <= 0)
        return 0;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *out = (struct str){p, (size_t)st.st_size};
    return 0;
}

/* Makes one call and answers it. 0; else the helper must end. */
static int helper_serve(int channel, const struct fs_call_access *access, struct str bytes,
                        int fd) {
    struct fs_call_result result = FS_CALL_RESULT_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_call call;
    struct str data;
    if (fs_call_decode(bytes, &call) < 0)
        return -EINVAL;
    int r = helper_map(fd, &data);
    r = r < 0 ? fs_fail(&e, -r) : fs_call_run(&call, data, access, &result, &e);
    if (data.n > 0)
        munmap((void *)(uintptr_t)data.p, data.n);
    r = r < 0 ? helper_answer_error(channel, r, &e) : helper_answer(channel, &result);
    util_close_fd(&result.fd);
    buf_fini(&result.bytes);
    return r;
}

int fs_helper_main(const struct layout *l, int channel) {
    static char packet[FS_CALL_BYTES_MAX];
    const struct fs_call_access access = fs_access_calls(l->access);
    for (int r = 0; r == 0;) {
        _cleanup_close_ int fd = -1;
        ssize_t n = fdpass_receive(channel, packet, sizeof packet, 0, &fd);
        if (n <= 0)
            return n < 0;
        r = helper_serve(channel, &access, (struct str){packet, (size_t)n}, fd);
    }
    return 1;
}
