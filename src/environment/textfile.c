#include "environment/textfile.h"

#include "base/utf8.h"
#include "fs/fs_file.h"

#include <errno.h>

bool textfile_fault(struct str text, struct err *e) {
    size_t bytes, at = utf8_fault(text.p, text.n, &bytes);
    if (at == text.n)
        return false;
    if (bytes == 0)
        err_set(e, ERR_INTERNAL, "incomplete utf-8 byte sequence from index %zu", at);
    else
        err_set(e, ERR_INTERNAL, "invalid utf-8 sequence of %zu bytes from index %zu", bytes, at);
    return true;
}

enum textfile_result textfile_read(const char *path, size_t most, struct buf *text, struct err *e) {
    struct fs_file f = FS_FILE_NONE;
    size_t start = text->len;
    int r = fs_file_open_read(NULL, path, true, &f, e);
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? TEXTFILE_MISSING : TEXTFILE_FAILED;
    _cleanup_close_ int fd = f.fd;
    if (f.size > most)
        return TEXTFILE_TOO_LARGE;
    r = buf_reserve(text, most + 1);
    ssize_t n = r < 0 ? r : fs_file_pread(fd, text->p + start, most + 1, 0);
    if (n < 0) {
        err_os(e, ERR_INTERNAL, (int)-n);
        return TEXTFILE_FAILED;
    }
    if ((size_t)n > most) /* it grew, or its file system does not tell sizes */
        return TEXTFILE_TOO_LARGE;
    text->len += (size_t)n;
    return textfile_fault((struct str){text->p + start, (size_t)n}, e) ? TEXTFILE_NOT_TEXT
                                                                       : TEXTFILE_READ;
}
