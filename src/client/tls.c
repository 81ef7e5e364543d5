#include "client/tls.h"

#include <stdio.h>

const struct tls_ops *tls_load(char *why, size_t n) {
    snprintf(why, n, "built without TLS; use ssh:// or the package");
    return NULL;
}
