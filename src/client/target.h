#pragma once
/* The URL of a client, taken apart. */

#include "client/client_internal.h"

#define TARGET_URL_MAX 65534 /* bytes of a URL */

enum target_kind {
    TARGET_WS,
    TARGET_WSS,
    TARGET_UNIX,
    TARGET_STDIO,
    TARGET_SSH,
    TARGET_LOCAL,
    TARGET_FD,
};

struct target {
    enum target_kind kind;
    char *shown;     /* owned: the URL for texts; it has no secret */
    char *host;      /* WS, WSS, SSH; owned, without brackets */
    char *authority; /* WS, WSS: HOST[:PORT] for the header; UNIX: localhost */
    char *resource;  /* WS, WSS, UNIX: path and query */
    char *path;      /* UNIX: of the socket; SSH: the program there, NULL: exec-server */
    char *user;      /* SSH; NULL: none */
    uint16_t port;   /* WS, WSS; SSH: 0: none */
    int in, out;     /* FD */
};

/* Parses a URL into *t, zero at first. 0 or XS_EINVAL, XS_ENOMEM with e. */
MUST_CHECK int target_parse(struct target *t, const char *url, struct xs_error *e);
void target_fini(struct target *t);

/* WebSocket, not lines. */
static inline bool target_is_ws(const struct target *t) {
    return t->kind <= TARGET_UNIX;
}

/* A new connection can resume the session. */
static inline bool target_resumes(const struct target *t) {
    return target_is_ws(t);
}

static inline bool target_is_child(const struct target *t) {
    return t->kind == TARGET_STDIO || t->kind == TARGET_SSH || t->kind == TARGET_LOCAL;
}
