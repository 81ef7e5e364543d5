#pragma once
/* Header fields of a request or an answer: which bytes they may have, and their order. */

#include "base/str.h"

#include <stdint.h>

#define HTTP_FIELDS_MAX 1024       /* fields of a message */
#define HTTP_FIELDS_NAME_MAX 65535 /* bytes of a name */

struct http_field {
    struct str name, value;
};

/* Whether s is a token: a method, or the name of a field. */
bool http_fields_is_token(struct str s);

/* Like http_fields_is_token(), without upper case: the name of a field as the protocol shows it. */
bool http_fields_is_name(struct str s);

/* Whether a request may have this value: no control characters but the tab. */
bool http_fields_is_value(struct str s);

/* Whether a client may see this value of an answer: only visible ASCII, spaces and tabs. */
bool http_fields_is_visible(struct str s);

/* Lower-cases ASCII letters in place. */
void http_fields_lower(char *p, size_t n);

/* The first field with that (lower-case) name, or NULL. */
const struct http_field *http_fields_find(const struct http_field *f, size_t n, const char *name);

/* Removes all fields with that name; returns how many are left. */
size_t http_fields_drop(struct http_field *f, size_t n, const char *name);

/* Moves fields with equal names together, to the place of the first of them; else keeps the order.
 */
void http_fields_group(struct http_field *f, size_t n);
