#pragma once
/* Bearer authentication of the upgrade: a capability token or a signed (HS256) token. */

#include "base/err.h"
#include "base/str.h"
#include "net/tokens.h"

#include <stdbool.h>
#include <stdint.h>

enum auth_mode { AUTH_NONE, AUTH_CAPABILITY, AUTH_SIGNED };

#define AUTH_SUBJECT_MAX 256  /* bytes of a subject, longer ones are cut */
#define AUTH_SECRET_MAX 65536 /* bytes of a token or secret file */

struct auth {
    enum auth_mode mode;
    uint8_t digest[32];    /* AUTH_CAPABILITY: SHA-256 of the token */
    struct tokens *tokens; /* AUTH_CAPABILITY: several, owned; NULL = the one of `digest` */
    char *secret;          /* AUTH_SIGNED: key bytes, owned; wiped by auth_fini() */
    size_t secret_len;
    char *issuer, *audience; /* owned; NULL = not checked */
    int64_t skew;            /* seconds */
};

/*
 * Reads a token or secret file: whole, trimmed, valid UTF-8, not blank. On success *out is an owned
 * buffer of *n bytes. Errors carry the texts of the command line ("failed to read websocket auth
 * secret PATH: ...", "websocket auth secret PATH must not be empty").
 */
MUST_CHECK int auth_read_secret(const char *path, char **out, size_t *n, struct err *e);

/*
 * Capability mode from a token file, or from 64 hex digits (surrounding blanks trimmed). These and
 * auth_signed() overwrite *a on success without freeing it, and leave it untouched on failure.
 */
MUST_CHECK int auth_capability_file(struct auth *a, const char *path, struct err *e);
MUST_CHECK int auth_capability_digest(struct auth *a, const char *hex, struct err *e);

/* Capability mode with the named tokens of a file (net/tokens.h). */
MUST_CHECK int auth_tokens_file(struct auth *a, const char *path, struct err *e);

/* Signed mode: secret of at least 32 bytes; issuer and audience trimmed, blank or NULL = unset. */
MUST_CHECK int auth_signed(struct auth *a, const char *secret_path, const char *issuer,
                           const char *audience, int64_t skew, struct err *e);

void auth_fini(struct auth *a);

/*
 * Checks an Authorization header value ({NULL, 0} = absent) at Unix time `now`. Returns NULL when
 * the request may pass, else the static text of the 401 body.
 */
const char *auth_check(const struct auth *a, struct str header, int64_t now);

/*
 * The subject (`sub`) of a signed token that auth_check() has let pass, cut at AUTH_SUBJECT_MAX
 * bytes, or the name of a capability token: owned text. NULL: it has none, or memory is short.
 */
char *auth_subject(const struct auth *a, struct str header);

/* The HS256 check of auth_check(), for its fuzz target. NULL or the static text. */
const char *auth_check_jwt(const struct auth *a, struct str token, int64_t now);
