#include "base/utf8.h"
#include "client/client_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XS_ERROR_TEXT_MAX 2048 /* bytes of a text; the rest is cut */

static const char *const xs_error_names[] = {
    "no error",
    "invalid argument",
    "out of memory",
    "busy",
    "timed out",
    "canceled",
    "cannot connect",
    "the server refuses the token",
    "the server broke the protocol",
    "the connection was lost before the answer came",
    "the session is gone",
    "the server reports an error",
    "the server cannot do this",
    "output was lost",
    "a local file failed",
};

const char *xs_error_name(int err) {
    size_t i = err < 0 ? (size_t) - (long)err : 0;
    return i < ARRAY_LEN(xs_error_names) ? xs_error_names[i] : "unknown error";
}

int xs_error_code(const struct xs_error *e) {
    return e->code;
}

int xs_error_rpc(const struct xs_error *e) {
    return e->rpc;
}

int xs_error_os(const struct xs_error *e) {
    return e->os;
}

const char *xs_error_text(const struct xs_error *e) {
    return e->text != NULL ? e->text : xs_error_name(e->code);
}

/* The length of the code point at z, which is followed by a NUL; 0: it is not UTF-8. */
static size_t xs_error_point(const char *z) {
    unsigned char c = (unsigned char)*z;
    size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return strnlen(z, n) == n && utf8_valid(z, n) ? n : 0;
}

void xs_error_tidy(char *z) {
    while (*z != '\0') {
        unsigned char c = (unsigned char)*z;
        size_t n = xs_error_point(z);
        bool is_c1 = n == 2 && c == 0xC2 && (unsigned char)z[1] < 0xA0;
        if (n == 0)
            *z = '?';
        else if (c < 0x20 || c == 0x7F || is_c1)
            memset(z, ' ', n);
        z += MAX(n, (size_t)1);
    }
}

static void xs_error_format(struct xs_error *e, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void xs_error_format(struct xs_error *e, const char *fmt, va_list ap) {
    char *text = malloc(XS_ERROR_TEXT_MAX);
    if (text != NULL) {
        vsnprintf(text, XS_ERROR_TEXT_MAX, fmt, ap);
        char *shorter = realloc(text, strlen(text) + 1);
        if (shorter != NULL)
            text = shorter;
        xs_error_tidy(text);
    }
    free(e->text); /* behind the format: an argument may be the old text */
    e->text = text;
}

int xs_error_set(struct xs_error *e, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    xs_error_format(e, fmt, ap);
    va_end(ap);
    e->code = code;
    e->rpc = e->os = 0;
    return code;
}

int xs_error_sys(struct xs_error *e, int code, int num, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    xs_error_format(e, fmt, ap);
    va_end(ap);
    _cleanup_free_ char *what = e->text;
    e->text = NULL;
    xs_error_set(e, code, "%s: %s", what != NULL ? what : xs_error_name(code), err_os_text(num));
    e->os = num;
    return code;
}

/* N of "(os error N)" at the end of a message, or 0. */
static int xs_error_find_os(struct str message) {
    static const char mark[] = "(os error ";
    const char *at = message.n == 0 ? NULL : memmem(message.p, message.n, mark, sizeof mark - 1);
    if (at == NULL)
        return 0;
    int n = 0;
    for (at += sizeof mark - 1; at < message.p + message.n && *at >= '0' && *at <= '9'; at++) {
        if (n > 100000)
            return 0;
        n = n * 10 + (*at - '0');
    }
    return n;
}

int xs_error_remote(struct xs_error *e, const char *method, const struct json_node *error) {
    int64_t code = 0;
    struct str message = STR_LIT("no message");
    if (error != NULL && error->type == JSON_OBJECT) {
        const struct json_node *v = json_get(error, "code");
        if (v == NULL || json_i64(v, &code) < 0 || code < INT32_MIN || code > INT32_MAX)
            code = 0;
        v = json_get(error, "message");
        if (v != NULL && v->type == JSON_STRING)
            message = json_str(v);
    }
    xs_error_set(e, code == ERR_METHOD_NOT_FOUND ? XS_ENOTSUP : XS_EREMOTE, "%s: %.*s", method,
                 (int)MIN(message.n, (size_t)XS_ERROR_TEXT_MAX), message.p);
    e->rpc = (int)code;
    e->os = xs_error_find_os(message);
    return e->code;
}

int xs_error_copy(struct xs_error *to, const struct xs_error *from) {
    if (to == from)
        return to->code;
    free(to->text);
    *to = *from;
    to->text = from->text != NULL ? strdup(from->text) : NULL;
    return to->code;
}

int xs_error_move(struct xs_error *to, struct xs_error *from) {
    if (to == from)
        return to->code;
    free(to->text);
    *to = *from;
    *from = XS_ERROR_INIT;
    return to->code;
}

void xs_error_fini(struct xs_error *e) {
    free(e->text);
    *e = XS_ERROR_INIT;
}
