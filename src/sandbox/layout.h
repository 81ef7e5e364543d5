#pragma once
/*
 * From a plan to what is to be mounted where: paths are looked up, links followed, mount points for
 * missing protected names made. All of it happens before anything is
 * confined, with the rights the command will have; the mounts compare what they find with what was
 * found here.
 */

#include "base/synthlist.h"
#include "sandbox/fault.h"
#include "sandbox/glob.h"
#include "sandbox/launch_request.h"
#include "sandbox/locate.h"

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
    dev_t dev;
    ino_t ino;
    const struct layout_step **reopened; /* LAYOUT_DENY: writable ones just below it */
    size_t reopened_count;
};

/* Patterns of what is to be denied, below one directory. */
struct layout_glob {
    const char *dir; /* without links */
    uint32_t max_depth;
    struct glob_set set; /* its memory goes with the process */
};

struct rules;

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
    const struct layout_glob *globs; /* to expand in the finished view */
    size_t glob_count;
    const struct rules *rules;
    const char *cwd; /* without links */
};

/* 0, or -errno with the fault noted. Memory comes from `a`. `list` as of synth_make(). */
MUST_CHECK int layout_build(const struct launch_request *q, struct synthlist *list, struct arena *a,
                            struct layout *out, struct fault *f);
