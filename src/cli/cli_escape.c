#include "cli/cli_escape.h"

static enum cli_escape_action action_of(char c) {
    switch (c) {
    case '.': return CLI_ESCAPE_TERMINATE;
    case 'd': return CLI_ESCAPE_DETACH;
    case 'Z' & 31: return CLI_ESCAPE_SUSPEND;
    case 'r': return CLI_ESCAPE_RECONNECT;
    case '?': return CLI_ESCAPE_HELP;
    default: return CLI_ESCAPE_NONE;
    }
}

size_t cli_escape_feed(struct cli_escape *s, const char *in, size_t n, char *out, size_t *out_n,
                       enum cli_escape_action *action) {
    *out_n = 0;
    *action = CLI_ESCAPE_NONE;
    for (size_t i = 0; i < n; i++) {
        char c = in[i];
        bool is_escape = s->character >= 0 && (unsigned char)c == s->character;
        if (s->pending) {
            s->pending = false;
            *action = action_of(c);
            if (*action != CLI_ESCAPE_NONE)
                return i + 1; /* the next byte still begins a line */
            if (!is_escape)   /* the escape character twice sends it once */
                out[(*out_n)++] = (char)s->character;
        } else if (is_escape && s->after_newline) {
            s->pending = true;
            continue;
        }
        out[(*out_n)++] = c;
        s->after_newline = c == '\r' || c == '\n';
    }
    return n;
}
