#pragma once
/*
 * Errors as values. A function that can fail returns 0 or a negative errno-style number. If a user
 * will read about the failure, it also takes `struct err *e` last and fills it. `e` is untouched on
 * success. The err owns its message; free it with err_fini() or _cleanup_err_.
 */

#include "base/str.h"
#include "base/util.h"

/* JSON-RPC error codes of the protocol. */
enum err_code {
    ERR_INVALID_REQUEST = -32600,
    ERR_METHOD_NOT_FOUND = -32601,
    ERR_INVALID_PARAMS = -32602,
    ERR_INTERNAL = -32603,
    ERR_UNKNOWN_TOKEN = -32001, /* of the console */
    ERR_NOT_FOUND = -32004,
    ERR_SESSION_BUSY = -32010,
};

/* Longer messages are cut here, at a UTF-8 boundary: they may quote input of any size. Invalid
 * UTF-8, such as bytes of a file name, becomes '?'. */
#define ERR_MSG_MAX 8192

struct err {
    int code;   /* enum err_code; 0 while no error is set */
    char *msg;  /* owned; NULL after an allocation failure: use err_msg() or err_str() */
    size_t len; /* of msg, which may quote NUL bytes */
    size_t subject, subject_len; /* the part of msg that err_about() quotes */
};

#define ERR_INIT ((struct err){.code = 0})

/* Replaces code and message. Returns -EINVAL, for `return err_set(...)`. */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Like err_set(), for a text that quotes input: before, what (any bytes), after. */
int err_about(struct err *e, int code, const char *before, struct str what, const char *after);

/* Sets "<text> (os error <n>)" with the protocol's text for errno `num` > 0. Returns -num. */
int err_os(struct err *e, int code, int num);

/* The message, never NULL; as a slice it keeps quoted NUL bytes. */
const char *err_msg(const struct err *e);
struct str err_str(const struct err *e);

/* The input that err_about() quoted, as far as the message holds it; else empty. */
struct str err_subject(const struct err *e);

/* Replaces *to by *from, which is empty afterwards. Returns -EINVAL. */
int err_move(struct err *to, struct err *from);

void err_fini(struct err *e);
#define _cleanup_err_ __attribute__((cleanup(err_fini)))

/* The protocol's text for an errno: that of the C library the reference is linked with, which
 * differs from glibc's in places. Unknown numbers give "No error information". */
const char *err_os_text(int num);
