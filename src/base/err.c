#include "base/err.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Takes over the message, cut without splitting a UTF-8 sequence. */
static int err_take(struct err *e, int code, char *msg, size_t len) {
    if (msg != NULL && len > ERR_MSG_MAX) {
        len = ERR_MSG_MAX;
        while (len > 0 && ((unsigned char)msg[len] & 0xC0) == 0x80)
            len--;
        msg[len] = '\0';
    }
    if (msg != NULL) /* it may name a file */
        utf8_mend(msg, len);
    free(e->msg);
    *e = (struct err){.code = code, .msg = msg, .len = msg ? len : 0};
    return -EINVAL;
}

int err_set(struct err *e, int code, const char *fmt, ...) {
    char *msg = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&msg, fmt, ap);
    va_end(ap);
    return err_take(e, code, n < 0 ? NULL : msg, n < 0 ? 0 : (size_t)n);
}

int err_about(struct err *e, int code, const char *before, struct str what, const char *after) {
    size_t n1 = strlen(before), n3 = strlen(after);
    size_t n2 = MIN(what.n, (size_t)ERR_MSG_MAX + 1); /* the rest would not fit anyway */
    char *msg = malloc(n1 + n2 + n3 + 1);
    if (msg != NULL) {
        char *p = mempcpy(msg, before, n1);
        p = n2 > 0 ? mempcpy(p, what.p, n2) : p;
        memcpy(p, after, n3 + 1);
    }
    int r = err_take(e, code, msg, n1 + n2 + n3);
    e->subject = MIN(n1, e->len);
    e->subject_len = MIN(n2, e->len - e->subject);
    return r;
}

int err_os(struct err *e, int code, int num) {
    err_set(e, code, "%s (os error %d)", err_os_text(num), num);
    return -num;
}

const char *err_msg(const struct err *e) {
    return e->msg ? e->msg : "out of memory";
}

struct str err_str(const struct err *e) {
    return e->msg ? (struct str){e->msg, e->len} : str_of(err_msg(e));
}

struct str err_subject(const struct err *e) {
    return (struct str){err_msg(e) + e->subject, e->subject_len};
}

int err_move(struct err *to, struct err *from) {
    free(to->msg);
    *to = *from;
    *from = ERR_INIT;
    return -EINVAL;
}

void err_fini(struct err *e) {
    free(e->msg);
    *e = ERR_INIT;
}

const char *err_os_text(int num) {
    static const struct {
        int num;
        const char *text;
    } differing[] = {
        {ECHILD, "No child process"},
        {EIO, "I/O error"},
        {ENOMEM, "Out of memory"},
        {EBUSY, "Resource busy"},
        {EXDEV, "Cross-device link"},
        {ENFILE, "Too many open files in system"},
        {EMFILE, "No file descriptors available"},
        {ENOTTY, "Not a tty"},
        {ESPIPE, "Invalid seek"},
        {EDOM, "Domain error"},
        {ERANGE, "Result not representable"},
        {EDEADLK, "Resource deadlock would occur"},
        {ENAMETOOLONG, "Filename too long"},
        {ELOOP, "Symbolic link loop"},
        {ETIME, "Device timeout"},
        {EOVERFLOW, "Value too large for data type"},
        {EILSEQ, "Illegal byte sequence"},
        {ENOTSOCK, "Not a socket"},
        {EMSGSIZE, "Message too large"},
        {EOPNOTSUPP, "Not supported"},
        {EADDRINUSE, "Address in use"},
        {EADDRNOTAVAIL, "Address not available"},
        {ENETUNREACH, "Network unreachable"},
        {ENETRESET, "Connection reset by network"},
        {ECONNABORTED, "Connection aborted"},
        {EISCONN, "Socket is connected"},
        {ENOTCONN, "Socket not connected"},
        {ESHUTDOWN, "Cannot send after socket shutdown"},
        {ETIMEDOUT, "Operation timed out"},
        {EHOSTUNREACH, "Host is unreachable"},
        {EINPROGRESS, "Operation in progress"},
        {EDQUOT, "Quota exceeded"},
        {EOWNERDEAD, "Previous owner died"},
    };
    for (size_t i = 0; i < ARRAY_LEN(differing); i++) {
        if (differing[i].num == num)
            return differing[i].text;
    }
    const char *text = strerrordesc_np(num);
    return text ? text : "No error information";
}
