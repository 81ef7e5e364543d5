#pragma once
/* The progress meter of `xs cp`: one line, written anew. */

#include <stddef.h>
#include <stdint.h>

#define CLI_METER_LINE 512        /* bytes of a line with its NUL */
#define CLI_METER_DELAY_MS 1000   /* until the first line */
#define CLI_METER_STALLED_MS 5000 /* without a byte */

struct cli_meter {
    const char *file; /* foreign; shown with escapes */
    uint64_t bytes, total;
    double rate;      /* bytes per second */
    int64_t still_ms; /* since the last byte */
};

/* Writes `name  42%  1.2 GB  34.5 MB/s  00:12`, or `stalled` in place of the time, cut to `width`
 * columns; without the newline. A total of 0 is unknown. */
void cli_meter_line(const struct cli_meter *m, unsigned width, char out[CLI_METER_LINE]);

/* 999 B, 1.0 kB, 12.3 MB ... */
void cli_meter_size(double bytes, char out[16]);
