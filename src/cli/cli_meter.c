#include "cli/cli_meter.h"

#include "base/utf8.h"
#include "base/util.h"
#include "cli/cli_text.h"

#include <stdio.h>

#define FIGURES 40 /* columns of everything but the name */

void cli_meter_size(double bytes, char out[16]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    while (bytes >= 999.95 && unit + 1 < ARRAY_LEN(units)) {
        bytes /= 1000;
        unit++;
    }
    snprintf(out, 16, unit == 0 ? "%.0f %s" : "%.1f %s", bytes < 9999 ? bytes : 9999, units[unit]);
}

/* The time that is left, or what else stands at the end. */
static void rest(const struct cli_meter *m, char out[16]) {
    double left = m->total > m->bytes ? (double)(m->total - m->bytes) : 0;
    if (m->still_ms >= CLI_METER_STALLED_MS) {
        snprintf(out, 16, "stalled");
        return;
    }
    if (m->total == 0 || m->rate < 1 || left / m->rate >= 360000) {
        snprintf(out, 16, "--:--");
        return;
    }
    unsigned s = (unsigned)(left / m->rate + 0.5);
    if (s >= 3600)
        snprintf(out, 16, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 16, "%02u:%02u", s / 60, s % 60);
}

/* Bytes of the first so many characters; each counts as one column. */
static size_t columns(const char *p, size_t n, unsigned width) {
    size_t at = 0;
    uint32_t c;
    for (; width > 0 && at < n; width--)
        at += utf8_decode(p + at, n - at, &c);
    return at;
}

/* A path that is too wide loses directories at its front. */
static const char *shorten(const char *path, unsigned width) {
    while (strlen(path) > width) {
        const char *slash = strchr(path + 1, '/');
        if (slash == NULL || slash[1] == '\0')
            break;
        path = slash + 1;
    }
    return path;
}

void cli_meter_line(const struct cli_meter *m, unsigned width, char out[CLI_METER_LINE]) {
    char size[16], rate[16], end[16], percent[8] = "";
    unsigned room = width > FIGURES + 8 ? MIN(width - FIGURES, 200u) : 8;
    _cleanup_free_ char *name = cli_text_dup(str_of(m->file), 200);
    const char *shown = name != NULL ? shorten(name, room) : "";
    cli_meter_size((double)m->bytes, size);
    cli_meter_size(m->rate > 0 ? m->rate : 0, rate);
    rest(m, end);
    if (m->total > 0)
        snprintf(percent, sizeof percent, "%3u%%",
                 (unsigned)MIN(100.0, 100.0 * (double)m->bytes / (double)m->total));
    size_t n = columns(shown, strlen(shown), room);
    snprintf(out, CLI_METER_LINE, "%.*s  %s  %8s  %8s/s  %s", (int)n, shown, percent, size, rate,
             end);
}
