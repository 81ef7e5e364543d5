#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts an over-long message without splitting a UTF-8 sequence. */
static void err_truncate(char *msg) {
    if (strlen(msg) <= ERR_MSG_MAX)
        return;
    size_t n = ERR_MSG_MAX;
    while (n > 0 && ((unsigned char)msg[n] & 0xC0) == 0x80)
        n--;
    msg[n] = '\0';
}

int err_set(struct err *e, int code, const char *fmt, ...) {
    char *msg = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&msg, fmt, ap) < 0)
        msg = NULL;
    va_end(ap);
    if (msg != NULL)
        err_truncate(msg);
    free(e->msg);
    e->code = code;
    e->msg = msg;
    return -EINVAL;
}

int err_os(struct err *e, int code, int num) {
    err_set(e, code, "%s (os error %d)", err_os_text(num), num);
    return -num;
}

const char *err_msg(const struct err *e) {
    return e->msg ? e->msg : "out of memory";
}

void err_fini(struct err *e) {
    free(e->msg);
    e->msg = NULL;
    e->code = 0;
}

const char *err_os_text(int num) {
    static const struct {
        int num;
        const char *text;
    } differing[] = {
        {EIO, "I/O error"},
        {ENOMEM, "Out of memory"},
        {EBUSY, "Resource busy"},
        {EXDEV, "Cross-device link"},
        {EMFILE, "No file descriptors available"},
        {ENFILE, "Too many open files in system"},
        {ENAMETOOLONG, "Filename too long"},
        {ELOOP, "Symbolic link loop"},
        {EOVERFLOW, "Value too large for data type"},
        {ENOTSOCK, "Not a socket"},
        {EOPNOTSUPP, "Not supported"},
        {EADDRINUSE, "Address in use"},
        {EADDRNOTAVAIL, "Address not available"},
        {EDQUOT, "Quota exceeded"},
        {ENOSYS, "Function not implemented"},
    };
    for (size_t i = 0; i < ARRAY_LEN(differing); i++) {
        if (differing[i].num == num)
            return differing[i].text;
    }
    const char *text = strerrordesc_np(num);
    return text ? text : "No error information";
}
