#pragma once
/* How long unified exec collects output, and which process makes room for a new one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds. */
#define EXEC_WINDOW_MIN 250
#define EXEC_WINDOW_MAX 30000
#define EXEC_WINDOW_COMMAND 10000 /* default of a command */
#define EXEC_WINDOW_WRITE 250     /* default of write_stdin */
#define EXEC_WINDOW_POLL_MIN 5000
#define EXEC_WINDOW_POLL_MAX 300000
#define EXEC_WINDOW_EARLY 150  /* a command that ends within this never becomes a session */
#define EXEC_WINDOW_DENIAL 20  /* more for the output of one that the sandbox denied */
#define EXEC_WINDOW_SETTLE 100 /* between input and the collection */

#define EXEC_WINDOW_PROCESSES 64
#define EXEC_WINDOW_NEWEST 8 /* of them never make room */

/* The window of a command. `asked` is negative if the caller named none. */
int64_t exec_window_command(int64_t asked);

/* The window of write_stdin, with input or as a poll. `poll_max` is the ceiling of a poll;
 * negative = EXEC_WINDOW_POLL_MAX. */
int64_t exec_window_write(int64_t asked, bool input, int64_t poll_max);

struct exec_window_slot {
    uint64_t used; /* when it was last used; larger = later, no two alike */
    bool exited;
    bool busy; /* a call collects its output */
};

/* The index of the process that makes room among n <= EXEC_WINDOW_PROCESSES, or -1. The least
 * recently used goes, an exited one before those that run, never one of the EXEC_WINDOW_NEWEST.
 * None that runs goes while an exited one is only busy. */
int exec_window_victim(const struct exec_window_slot *slots, size_t n);
