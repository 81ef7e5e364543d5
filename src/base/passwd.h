#pragma once
/* The passwd file, read directly: a static program has no name service. */

#include "base/util.h"

#include <sys/types.h>

struct passwd_entry {
    char *home;  /* owned; NULL when unknown */
    char *shell; /* owned; NULL when unknown */
};

/* Fills *e with the entry of `uid` in the file at `path` (normally /etc/passwd), or with NULLs. */
void passwd_read(const char *path, uid_t uid, struct passwd_entry *e);
void passwd_fini(struct passwd_entry *e);
