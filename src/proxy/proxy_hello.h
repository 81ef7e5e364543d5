#pragma once
/*
 * The name that a TLS client asks for in its first message (SNI). A tunnel to one host must not
 * carry a request for another one that the same front end serves.
 */

#include "base/str.h"
#include "base/util.h"

#define PROXY_HELLO_MAX 65536 /* bytes of a first message that are kept to look for the name */

enum proxy_hello {
    PROXY_HELLO_NONE,  /* this is not TLS */
    PROXY_HELLO_MORE,  /* more bytes are needed */
    PROXY_HELLO_PLAIN, /* TLS, without a name */
    PROXY_HELLO_NAMED, /* TLS, with a name */
    PROXY_HELLO_BAD,   /* it begins as TLS, but cannot be read, or names several hosts */
};

/* Looks at the first bytes of a connection. `name` has room for 256 bytes, NUL-terminated. */
MUST_CHECK enum proxy_hello proxy_hello_read(struct str bytes, char name[256]);
