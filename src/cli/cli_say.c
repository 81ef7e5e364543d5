#include "cli/cli_say.h"

#include "cli/cli_text.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384 /* of a message, before escapes */

static void write_all(const struct buf *b) {
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(STDERR_FILENO, b->p + at, b->len - at);
        if (n < 0 && errno != EINTR)
            return; /* nobody can be told */
        at += n > 0 ? (size_t)n : 0;
    }
}

/* Writes one line in one call, so that it stays whole beside others. */
static void PRINTF_LIKE(3, 0) print_line(struct cli *c, bool error, const char *fmt, va_list ap) {
    _cleanup_buf_ struct buf line = BUF_INIT(16 * LINE_MAX_BYTES);
    char text[LINE_MAX_BYTES];
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0)
        return;
    if (c->meter_shown && buf_putz(&line, "\r\033[K") < 0)
        return;
    c->meter_shown = false;
    const char *name = error && c->colour ? "\033[1;31mxs:\033[0m " : "xs: ";
    if (buf_putz(&line, name) < 0 || cli_text_put(&line, str_of(text)) < 0 ||
        buf_putz(&line, c->raw ? "\r\n" : "\n") < 0)
        return;
    write_all(&line);
}

int cli_say_error(struct cli *c, int status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    print_line(c, true, fmt, ap);
    va_end(ap);
    return status;
}

void cli_say_warning(struct cli *c, const char *fmt, ...) {
    va_list ap;
    if (c->quiet)
        return;
    va_start(ap, fmt);
    print_line(c, false, fmt, ap);
    va_end(ap);
}

void cli_say_note(struct cli *c, int level, const char *fmt, ...) {
    va_list ap;
    if (c->verbose < level)
        return;
    va_start(ap, fmt);
    print_line(c, false, fmt, ap);
    va_end(ap);
}

int cli_say_status(int err, int otherwise) {
    switch (err) {
    case XS_ECONNECT:
    case XS_EAUTH:
    case XS_EPROTO:
    case XS_ELOST:
    case XS_EGONE:
    case XS_EGAP: return CLI_LOST;
    default: return otherwise;
    }
}

int cli_say_failure(struct cli *c, const struct xs_error *e, const char *what, int otherwise) {
    int status = cli_say_status(xs_error_code(e), otherwise);
    if (what == NULL)
        return cli_say_error(c, status, "%s", xs_error_text(e));
    return cli_say_error(c, status, "%s: %s", what, xs_error_text(e));
}

void cli_say_text(FILE *out, struct str s) {
    _cleanup_buf_ struct buf b = BUF_INIT(SIZE_MAX / 2);
    if (isatty(fileno(out)) && cli_text_put(&b, s) == 0)
        s = buf_str(&b);
    fwrite(s.p, 1, s.n, out);
}
