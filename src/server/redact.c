#include "server/redact.h"

#include "base/utf8.h"

#include <errno.h>

/* A walk over one argument. Text before `copied` was dealt with. */
struct redact_walk {
    struct str s;
    size_t at, copied;
    char quote;  /* the quote we are in, or 0 */
    bool script; /* words end at blanks even where the argument began */
    bool cut;
    bool hide_next;
    size_t room;
    struct buf *out;
};

static bool redact_is_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
}

static bool redact_is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool redact_is_quote(char c) {
    return c == '\'' || c == '"';
}

/* What ends a word of a shell, or a parameter of a URL. */
static bool redact_ends_word(char c) {
    return c != '\0' && strchr(" \t\r\n;|&<>()`", c) != NULL;
}

static bool redact_contains(struct str s, struct str word) {
    for (size_t i = 0; i + word.n <= s.n; i++) {
        if (strncasecmp(s.p + i, word.p, word.n) == 0)
            return true;
    }
    return false;
}

static bool redact_is_secret(struct str name) {
    static const char *const words[] = {"token",         "secret",     "key",    "password",
                                        "passwd",        "passphrase", "bearer", "credential",
                                        "authorization", "cookie"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (redact_contains(name, str_of(words[i])))
            return true;
    }
    return false;
}

/* -- output -- */

static int redact_put(struct redact_walk *w, const char *p, size_t n) {
    size_t take = w->cut ? 0 : utf8_cut(p, n, w->room);
    w->cut |= take < n;
    w->room -= take;
    return buf_put(w->out, p, take);
}

/* Copies up to `from`, hides up to `to` and goes on there. */
static int redact_hide(struct redact_walk *w, size_t from, size_t to) {
    int r = redact_put(w, w->s.p + w->copied, from - w->copied);
    if (r == 0 && to > from)
        r = redact_put(w, REDACT_MARK, strlen(REDACT_MARK));
    w->at = w->copied = to;
    return r;
}

/* -- where a value ends -- */

/* Behind the quote that closes the one at `i`, or the end. */
static size_t redact_quoted_end(struct str s, size_t i) {
    char q = s.p[i++];
    while (i < s.n && s.p[i] != q)
        i += s.p[i] == '\\' && q == '"' ? 2 : 1;
    return MIN(i + 1, s.n);
}

/* Behind the escaped quote that closes the one at `i` (a backslash and a quote). */
static size_t redact_escaped_end(struct str s, size_t i) {
    const char *close = memmem(s.p + i + 2, s.n - i - 2, s.p + i, 2);
    return close ? (size_t)(close - s.p) + 2 : s.n;
}

static bool redact_is_escaped_quote(struct str s, size_t i) {
    return i + 1 < s.n && s.p[i] == '\\' && redact_is_quote(s.p[i + 1]);
}

static size_t redact_word_end(const struct redact_walk *w, size_t i) {
    const struct str s = w->s;
    size_t first = i;
    if (redact_is_escaped_quote(s, i))
        return redact_escaped_end(s, i);
    while (i < s.n && !redact_ends_word(s.p[i])) {
        bool opens = redact_is_quote(s.p[i]) && s.p[i] != w->quote;
        if (redact_is_quote(s.p[i]) && (!opens || (w->quote != 0 && i > first)))
            break;
        if (opens)
            i = redact_quoted_end(s, i);
        else if (redact_is_escaped_quote(s, i))
            break;
        else
            i += s.p[i] == '\\' && i + 1 < s.n ? 2 : 1;
    }
    return i;
}

/* To the end of the line, or of the quotes we are in. */
static size_t redact_line_end(const struct redact_walk *w, size_t i) {
    while (i < w->s.n && w->s.p[i] != '\n' && (w->quote == 0 || w->s.p[i] != w->quote))
        i += w->s.p[i] == '\\' && i + 1 < w->s.n ? 2 : 1;
    return i;
}

/* Behind blanks and continued lines. */
static size_t redact_skip_blanks(struct str s, size_t i) {
    for (;;) {
        if (i < s.n && redact_is_blank(s.p[i]))
            i++;
        else if (i + 1 < s.n && s.p[i] == '\\' && s.p[i + 1] == '\n')
            i += 2;
        else
            return i;
    }
}

/* The end of a header's value in running text: a scheme takes the word behind it along. */
static size_t redact_credentials_end(const struct redact_walk *w, size_t i) {
    static const char *const schemes[] = {"bearer", "basic", "digest", "token", "negotiate"};
    size_t end = redact_word_end(w, i);
    for (size_t k = 0; k < ARRAY_LEN(schemes); k++) {
        if (str_ieqz((struct str){w->s.p + i, end - i}, schemes[k]))
            return redact_word_end(w, redact_skip_blanks(w->s, end));
    }
    return end;
}

/* -- what is found on the way -- */

/* The name in front of a separator at `i`, quotes and blanks in between skipped. */
static struct str redact_name_before(const struct redact_walk *w, size_t i) {
    const char *p = w->s.p;
    size_t end = i;
    while (end > w->copied && redact_is_blank(p[end - 1]))
        end--;
    if (end > w->copied && redact_is_quote(p[end - 1])) {
        end--;
        if (end > w->copied && p[end - 1] == '\\')
            end--;
    }
    size_t start = end;
    while (start > w->copied && redact_is_name(p[start - 1]))
        start--;
    return (struct str){p + start, end - start};
}

/* Whether what stands at `i` has the rest of the argument, or of its quotes, to itself. */
static bool redact_begins_text(const struct redact_walk *w, size_t i) {
    if (w->quote != 0)
        return i > 0 && w->s.p[i - 1] == w->quote;
    return i == 0 && !w->script;
}

/* "NAME=VALUE", "NAME: VALUE". */
static int redact_separator(struct redact_walk *w) {
    const struct str s = w->s;
    struct str name = redact_name_before(w, w->at);
    if (!redact_is_secret(name)) {
        w->at++;
        return 0;
    }
    size_t begin = (size_t)(name.p - s.p);
    bool spaced = s.p[w->at] == ':' || redact_is_blank(s.p[w->at - 1]);
    size_t v = w->at + 1;
    while (v < s.n && (s.p[v] == '=' || s.p[v] == ':' || s.p[v] == '>'))
        v++;
    if (spaced)
        v = redact_skip_blanks(s, v);
    bool quoted = v < s.n && redact_is_quote(s.p[v]) && s.p[v] != w->quote;
    bool escaped = redact_is_escaped_quote(s, v);
    size_t end;
    if (quoted && s.p[w->at] == ':')
        end = redact_quoted_end(s, v); /* JSON */
    else if (quoted || escaped)
        end = redact_word_end(w, v);
    else if (redact_begins_text(w, begin))
        end = redact_line_end(w, v);
    else if (spaced)
        end = redact_credentials_end(w, v);
    else
        end = redact_word_end(w, v);
    return redact_hide(w, v, end);
}

/* "://USER@": at the colon. */
static int redact_url(struct redact_walk *w) {
    size_t from = w->at + 3, user_end = from;
    for (size_t i = from; i < w->s.n && strchr("/?#'\" \t\r\n", w->s.p[i]) == NULL; i++) {
        if (w->s.p[i] == '@')
            user_end = i;
    }
    if (user_end > from)
        return redact_hide(w, from, user_end);
    w->at = from;
    return 0;
}

/* A run of name characters: "--token VALUE", "Bearer VALUE". */
static int redact_name(struct redact_walk *w) {
    const struct str s = w->s;
    size_t end = w->at;
    while (end < s.n && redact_is_name(s.p[end]))
        end++;
    struct str name = {s.p + w->at, end - w->at};
    bool option = name.p[0] == '-' && redact_is_secret(name);
    w->at = end;
    if (!option && !str_ieqz(name, "bearer"))
        return 0;
    if (end < s.n && redact_is_quote(s.p[end]) && s.p[end] == w->quote) {
        w->quote = 0;
        end++;
    }
    if (end == s.n)
        w->hide_next = true;
    if (end == s.n || !redact_is_blank(s.p[end]))
        return 0;
    size_t v = redact_skip_blanks(s, end);
    return redact_hide(w, v, redact_word_end(w, v));
}

static int redact_step(struct redact_walk *w) {
    char c = w->s.p[w->at];
    if (redact_is_name(c))
        return redact_name(w);
    if (c == ':' && w->s.n - w->at > 2 && memcmp(w->s.p + w->at, "://", 3) == 0)
        return redact_url(w);
    if (c == '=' || c == ':')
        return redact_separator(w);
    if (redact_is_quote(c) && (w->quote == 0 || w->quote == c))
        w->quote = w->quote == 0 ? c : 0;
    w->at += c == '\\' && w->at + 1 < w->s.n ? 2 : 1;
    return 0;
}

/* -c, -lc, -ec, ... */
static bool redact_is_dash_c(struct str arg) {
    if (arg.n < 2 || arg.n > 8 || arg.p[0] != '-' || arg.p[arg.n - 1] != 'c')
        return false;
    for (size_t i = 1; i < arg.n; i++) {
        if (arg.p[i] < 'a' || arg.p[i] > 'z')
            return false;
    }
    return true;
}

int redact_arg(struct redact *r, struct str arg, size_t max, struct buf *out) {
    struct redact_walk w = {.s = arg, .script = r->script, .room = max, .out = out};
    int rc = 0;
    if (r->hide)
        rc = redact_hide(&w, 0, arg.n);
    while (rc == 0 && w.at < arg.n && !w.cut && w.at - w.copied <= w.room)
        rc = redact_step(&w);
    if (rc == 0)
        rc = redact_hide(&w, arg.n, arg.n);
    r->hide = w.hide_next;
    r->script = redact_is_dash_c(arg);
    return rc < 0 ? rc : w.cut;
}
