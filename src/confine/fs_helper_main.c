#include "confine/fs_helper_main.h"

#include "fs/fs_file.h"
#include "confine/fs_access.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* -- packets -- */

union packet_fd {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int))];
};

ssize_t fs_helper_receive(int channel, void *p, size_t n, int *fd) {
    union packet_fd control = {0};
    struct iovec iov = {p, n};
    /* No more room than for one descriptor: the kernel takes the others back. */
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got;
    *fd = -1;
    do
        got = recvmsg(channel, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return got;
    /* The one descriptor there is room for is missing: the table of this process is full. */
    if (*fd < 0 && !(m.msg_flags & MSG_TRUNC))
        return -EMFILE;
    util_close_fd(fd);
    return -EMSGSIZE;
}

int fs_helper_send(int channel, const void *head, size_t head_n, struct str text, int fd) {
    union packet_fd control = {0};
    struct iovec iov[2] = {{(void *)(uintptr_t)head, head_n}, {(void *)(uintptr_t)text.p, text.n}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    if (fd >= 0) {
        m.msg_control = control.space;
        m.msg_controllen = sizeof control.space;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t r;
    do
        r = sendmsg(channel, &m, MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

int fs_helper_memfd(struct str text) {
    _cleanup_close_ int fd = memfd_create("fs-call", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fs_file_write_all(fd, text.p, text.n);
    return r < 0 ? r : steal_fd(&fd);
}

/* -- calls -- */

static int helper_answer_error(int channel, int r, const struct err *e) {
    struct fs_call_head head = {
        .magic = FS_CALL_MAGIC, .kind = FS_CALL_ERROR, .code = e->code, .error = -r};
    return fs_helper_send(channel, &head, sizeof head, err_str(e), -1);
}

static int helper_answer(int channel, const struct fs_call_result *result) {
    struct fs_call_head head = {.magic = FS_CALL_MAGIC, .kind = FS_CALL_TEXT};
    struct str text = buf_str(&result->text), none = {"", 0};
    if (result->fd >= 0) {
        head.kind = FS_CALL_FILE;
        return fs_helper_send(channel, &head, sizeof head, none, result->fd);
    }
    if (text.n <= FS_CALL_TEXT_MAX)
        return fs_helper_send(channel, &head, sizeof head, text.n > 0 ? text : none, -1);
    _cleanup_close_ int fd = fs_helper_memfd(text);
    _cleanup_err_ struct err e = ERR_INIT;
    if (fd < 0)
        return helper_answer_error(channel, fs_fail(&e, -fd), &e);
    head.kind = FS_CALL_MEMFD;
    return fs_helper_send(channel, &head, sizeof head, none, fd);
}

/* Maps what is to be written. 0 or -errno. */
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

/* Makes one call and answers it. 0; not 0 when the helper is of no more use. */
static int helper_serve(int channel, const struct fs_call_access *gate, struct str bytes, int fd) {
    struct fs_call_result result = FS_CALL_RESULT_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_call call;
    struct str data;
    if (fs_call_decode(bytes, &call) < 0)
        return -EINVAL;
    int r = helper_map(fd, &data);
    r = r < 0 ? fs_fail(&e, -r) : fs_call_run(&call, data, gate, &result, &e);
    if (data.n > 0)
        munmap((void *)(uintptr_t)data.p, data.n);
    r = r < 0 ? helper_answer_error(channel, r, &e) : helper_answer(channel, &result);
    util_close_fd(&result.fd);
    buf_fini(&result.text);
    return r;
}

int fs_helper_main(const struct layout *l, int channel) {
    static char packet[FS_CALL_BYTES_MAX];
    const struct fs_call_access gate = fs_access_calls(l->access);
    for (int r = 0; r == 0;) {
        _cleanup_close_ int fd = -1;
        ssize_t n = fs_helper_receive(channel, packet, sizeof packet, &fd);
        if (n <= 0)
            return n < 0;
        r = helper_serve(channel, &gate, (struct str){packet, (size_t)n}, fd);
    }
    return 1;
}
