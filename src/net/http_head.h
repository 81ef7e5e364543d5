#pragma once
/* A strict parser for the head of an HTTP/1.1 answer, as a client reads it. */

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 65536 /* bytes */
#define HTTP_HEAD_FIELDS_MAX 100

struct http_head {
    int status;      /* of a well-formed status line; 0: none so far */
    const char *why; /* static text, after a failure */
    /* Each header, the blanks around its value cut off. 0, or -EPROTO with why set. May be NULL. */
    int (*field)(struct http_head *h, struct str name, struct str value);
};

/* Sets why. Returns -EPROTO. */
int http_head_fail(struct http_head *h, const char *why);

/*
 * Parses the head at the start of n bytes, always from its beginning. Returns its length; 0 when
 * more bytes are needed: then `field` will see the first headers again; -EPROTO with why set.
 */
int http_head_read(const char *data, size_t n, struct http_head *h);

/* Reads the value of a Content-Range: the first byte, the last one, the size of the whole, each of
 * at most 18 digits. False: it says something else. */
bool http_head_range(struct str value, uint64_t range[3]);
