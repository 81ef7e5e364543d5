#pragma once
/*
 * Which modes a program has switched on in a terminal, told from its output: the alternate screen,
 * mouse reports, bracketed paste, a hidden cursor, the keypad. At an abnormal end they are switched
 * off.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_MODES_RESTORE_MAX 256 /* bytes of the longest text of cli_modes_restore() */

struct cli_modes {
    uint32_t on;     /* a bit for each mode of the table in cli_modes.c */
    uint8_t state;   /* of the scan */
    uint32_t number; /* being read */
    uint32_t seen;   /* modes named by the sequence being read */
};

/* Follows n bytes of output; zeroed memory is the beginning. Sequences may be split anywhere. */
void cli_modes_feed(struct cli_modes *m, const char *p, size_t n);

/* Stores the text that switches off what is on; returns its length, 0 if nothing is. */
size_t cli_modes_restore(const struct cli_modes *m, char out[CLI_MODES_RESTORE_MAX]);
