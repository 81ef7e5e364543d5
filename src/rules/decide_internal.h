#pragma once
/* The layers of a decide: for the files of decide only. */

#include "rules/decide.h"

#include <sys/stat.h>

/* What tells whether a file or directory has changed. */
struct decide_stamp {
    const char *path;
    struct timespec mtime, ctime;
    off_t size;
    ino_t ino;
    dev_t dev;
    bool exists;
};

/* The layers as they were read. */
struct decide_layers {
    struct arena arena; /* of the stamps and the error */
    struct execpolicy *policy;
    struct decide_stamp *stamps;
    size_t n, cap;
    const char *error; /* NULL: all is well */
};

/* Reads all layers. Always succeeds: an error is noted in the layers. */
void decide_layers_read(struct decide_layers *l, const struct decide_options *o);
void decide_layers_fini(struct decide_layers *l);

/* Whether a file or directory of the layers has changed since they were read. */
bool decide_layers_changed(const struct decide_layers *l);
