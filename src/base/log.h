#pragma once
/*
 * The log: one line per message on one descriptor, "TIMESTAMP LEVEL message\n" with the time in
 * UTC (RFC 3339, milliseconds), or a JSON object. A line is at most LOG_LINE_MAX bytes and leaves
 * in one write(2).
 * Control characters, bytes that are not UTF-8 and the backslash are escaped, so that no string can
 * forge a line or drive a terminal. Logging never waits: while the descriptor takes nothing (a full
 * pipe, a reader that is gone) lines are dropped and counted, and the next line that gets through
 * is preceded by one that gives the count. The descriptor's flags are never changed, it may be
 * shared.
 *
 * Never pass a secret. All calls preserve errno and may come from any thread, but not from a signal
 * handler nor between vfork and exec.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_OFF,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

enum log_format {
    LOG_FORMAT_TEXT,
    LOG_FORMAT_JSON,
};

#define LOG_LINE_MAX 1024 /* bytes, the newline included; longer messages end in "..." */
#define LOG_VALUE_MAX 256 /* bytes of a field's value */

/* A named value. Those without a name or with an empty value are left out. */
struct log_field {
    const char *name;
    struct str value; /* borrowed, any bytes */
};

/* Sets the highest level to write, and the descriptor (borrowed, never closed). Call it while there
 * is one thread. Until then the level is LOG_LEVEL_ERROR and the descriptor 2. */
void log_init(enum log_level max, int fd);

/*
 * How lines look from now on; call it while there is one thread. `journal`: the descriptor leads to
 * systemd's journal, which wants a priority before each line (log_is_journal()).
 */
void log_set_format(enum log_format format, bool journal);

/* Whether fd is the stream that the variable JOURNAL_STREAM ("DEVICE:INODE", or NULL) names. */
bool log_is_journal(int fd, const char *stream);

/* Lines dropped and not yet reported by a later line; lines ever dropped. */
uint64_t log_dropped(void);
uint64_t log_dropped_total(void);

/* "error", "warn", "info", "debug" or "off" to its level; false for anything else. */
bool log_level_parse(const char *name, enum log_level *level);

/* Set by log_init() alone; read it through log_enabled(). */
extern enum log_level log_max_level;

static inline bool log_enabled(enum log_level level) {
    return level <= log_max_level;
}

/* Use the macros: they evaluate no argument while the level is off. */
void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Writes an event: a message (a literal) and its fields, "MESSAGE: NAME=VALUE ..." as text. */
void log_fields(enum log_level level, const char *message, const struct log_field *fields,
                size_t count);

#define log_at(level, ...)                                                                         \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_write((level), __VA_ARGS__);                                                       \
    } while (0)

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
