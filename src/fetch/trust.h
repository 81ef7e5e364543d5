#pragma once
/*
 * The certificates that TLS trusts: those of the system, and those of the file that
 * CODEX_CA_CERTIFICATE or SSL_CERT_FILE names. Read once, before the program is confined.
 */

#include "base/buf.h"

#include <curl/curl.h>

#define TRUST_MAX (16u << 20) /* bytes of all certificates */

struct trust {
    struct buf pem; /* the system's and the file's; empty: only the system's, which curl reads */
    char *fault;    /* why no request can be made; NULL: none */
};

/* Reads the files. A fault is kept for the requests. */
void trust_init(struct trust *t);

/* Makes a transfer use them. */
MUST_CHECK CURLcode trust_apply(const struct trust *t, CURL *easy);
