#pragma once
/*
 * Turns a plan into mounts: asks the policy (sandbox/policy/access.h), and makes mount points for
 * protected names that are missing. All of it happens before anything is confined, with the
 * command's own rights. Later the mounts compare what they find with what was found here.
 */

#include "base/placeholders.h"
#include "sandbox/policy/access.h"
#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"

enum layout_kind {
    LAYOUT_READ,  /* the file or directory there, read-only */
    LAYOUT_WRITE, /* the file or directory there, writable */
    LAYOUT_EMPTY, /* an empty, read-only directory */
    LAYOUT_PIN,   /* the directory there, unchanged, but safe from being renamed */
    LAYOUT_DENY,  /* nothing readable */
};

struct layout_step {
    enum layout_kind kind;
    const char *path; /* absolute, without links */
    size_t depth;
    bool ours;   /* the place lies in a directory of ours: make it if it is missing */
    bool known;  /* dev and ino tell what must be there */
    bool is_dir; /* valid when known */
    bool fold;   /* its directory ignores case: cover other spellings too */
    dev_t dev;
    ino_t ino;
    const struct layout_step **reopened; /* LAYOUT_DENY: the writable steps just below it */
    size_t reopened_count;
};

struct layout {
    bool confine;     /* there are mounts */
    bool artificial;  /* a new root that contains only granted paths */
    bool root_write;  /* the host's root stays writable */
    bool host_dev;    /* the host's /dev is writable (without its devices) */
    bool private_tmp; /* the host's /tmp is invisible: the sandbox has a private one */
    const struct layout_step *steps; /* in the order to mount them */
    size_t step_count;
    const struct locate_link *links; /* to make in an artificial root */
    size_t link_count;
    struct access *access; /* the policy behind all this */
    const char *cwd;       /* without links */
};

/* Builds the layout. 0, or -errno with the fault noted. Memory comes from `a`; `list` as for
 * placeholder_make(). */
MUST_CHECK int layout_build(const struct launch_request *q, struct placeholders *list,
                            struct arena *a, struct layout *out, struct fault *f);
