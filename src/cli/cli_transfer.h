#pragma once
/* One copy with its progress meter. */

#include "cli/cli_place.h"

struct cli_transfer {
    struct cli *cli;
    const struct xs_options *options;
    const char *from, *to; /* paths */
    /* Of the last report. */
    char *file; /* owned */
    uint64_t bytes, total, files;
    double rate;
    int64_t begun_ms, moved_ms; /* the beginning, and the last byte */
    int64_t shown_ms;           /* the last line */
    uint64_t left_out;          /* files that were not copied, each named in a message */
};

/* Copies here to there, or there to here. 0 or an exit status after a message. */
int cli_transfer_up(struct cli_transfer *t, struct cli_place_host *to);
int cli_transfer_down(struct cli_transfer *t, struct cli_place_host *from);

/* Copies between servers, through here. */
int cli_transfer_across(struct cli_transfer *t, struct cli_place_host *from,
                        struct cli_place_host *to);

void cli_transfer_fini(struct cli_transfer *t);

/* What cli_transfer_across.c reports: bytes moved, a file done; writes the meter when it is due. */
void cli_transfer_moved(struct cli_transfer *t, const char *file, uint64_t bytes);
