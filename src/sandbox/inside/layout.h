#pragma once
/*
 * From a plan to what is to be mounted where: asks the policy (sandbox/policy/access.h), and makes
 * mount points for protected names that are missing. All of it happens before anything is confined,
 * with the rights the command will have; the mounts compare what they find with what was found
 * here.
 */

#include "base/placeholders.h"
#include "sandbox/policy/access.h"
#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"

enum layout_kind {
    LAYOUT_READ,  /* what is there, read-only */
    LAYOUT_WRITE, /* what is there, writable */
    LAYOUT_EMPTY, /* an empty, read-only directory */
    LAYOUT_PIN,   /* what is there, as it is, so that it cannot be renamed */
    LAYOUT_DENY,  /* nothing that could be read */
};

struct layout_step {
    enum layout_kind kind;
    const char *path; /* absolute, without links */
    size_t depth;
    bool ours;   /* the place is in a directory of ours: make it if it is missing */
    bool known;  /* dev and ino say what must be there */
    bool is_dir; /* valid when known */
    bool fold;   /* its directory ignores case: other spellings must be covered, too */
    dev_t dev;
    ino_t ino;
    const struct layout_step **reopened; /* LAYOUT_DENY: writable ones just below it */
    size_t reopened_count;
};

struct layout {
    bool confine;     /* there are mounts at all */
    bool artificial;  /* a new root that holds only what is granted */
    bool root_write;  /* the host's root stays writable */
    bool host_dev;    /* the host's /dev is granted for writing (without its devices) */
    bool private_tmp; /* the host's /tmp is not visible: a private one */
    const struct layout_step *steps; /* in the order to take them */
    size_t step_count;
    const struct locate_link *links; /* to make in an artificial root */
    size_t link_count;
    struct access *access; /* what all this was made from */
    const char *cwd;       /* without links */
};

/* 0, or -errno with the fault noted. Memory comes from `a`. `list` as of placeholder_make(). */
MUST_CHECK int layout_build(const struct launch_request *q, struct placeholders *list,
                            struct arena *a, struct layout *out, struct fault *f);
