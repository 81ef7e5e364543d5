#include "rules/shlex.h"

#include <errno.h>

/* -- splitting -- */

struct shlex {
    struct str text;
    size_t at;
    struct arena *a;
    struct buf word;
};

static bool shlex_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

static int shlex_add(struct shlex *x, struct shlex_words *out) {
    struct str *list = arena_grow(x->a, out->list, out->n, &out->cap, 8, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    out->list = list;
    const char *p = arena_strdup(x->a, buf_str(&x->word));
    if (p == NULL)
        return -ENOMEM;
    out->list[out->n++] = (struct str){p, x->word.len};
    return 0;
}

/* Reads a quoted text; x->at is after the opening quote. */
static int shlex_quoted(struct shlex *x, char quote) {
    while (x->at < x->text.n) {
        char c = x->text.p[x->at++];
        if (c == quote)
            return 0;
        if (c == '\\' && quote == '"') {
            if (x->at == x->text.n)
                return -EINVAL;
            char next = x->text.p[x->at++];
            bool special = next == '$' || next == '`' || next == '"' || next == '\\';
            int r = special || next == '\n' ? 0 : buf_putc(&x->word, '\\');
            if (r < 0)
                return r;
            if (next == '\n')
                continue;
            c = next;
        }
        int r = buf_putc(&x->word, c);
        if (r < 0)
            return r;
    }
    return -EINVAL;
}

static int shlex_word(struct shlex *x) {
    int r = 0;
    while (r == 0 && x->at < x->text.n && !shlex_is_blank(x->text.p[x->at])) {
        char c = x->text.p[x->at++];
        if (c == '\'' || c == '"') {
            r = shlex_quoted(x, c);
        } else if (c == '\\') {
            if (x->at == x->text.n)
                return -EINVAL;
            c = x->text.p[x->at++];
            r = c == '\n' ? 0 : buf_putc(&x->word, c);
        } else {
            r = buf_putc(&x->word, c);
        }
    }
    return r;
}

int shlex_split(struct str text, struct arena *a, struct shlex_words *out) {
    struct shlex x = {.text = text, .a = a, .word = BUF_INIT(text.n + 64)};
    *out = (struct shlex_words){0};
    int r = 0;
    while (r == 0) {
        while (x.at < text.n && shlex_is_blank(text.p[x.at]))
            x.at++;
        if (x.at == text.n)
            break;
        if (text.p[x.at] == '#') {
            while (x.at < text.n && text.p[x.at] != '\n')
                x.at++;
            continue;
        }
        x.word.len = 0;
        r = shlex_word(&x);
        if (r == 0)
            r = shlex_add(&x, out);
    }
    buf_fini(&x.word);
    return r;
}

/* -- quoting -- */

enum { BARE = 1, SINGLE = 2, DOUBLE = 4 };

/* The kinds of quotes in which a character means itself. */
static unsigned shlex_fits(unsigned char c) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    unsigned fits = SINGLE | DOUBLE;
    if (plain || (c != '\0' && strchr("+-./:@]_", c) != NULL))
        fits |= BARE;
    if (c == '\'' || c == '^')
        fits &= ~(unsigned)SINGLE;
    if (c == '`' || c == '$' || c == '!' || c == '^')
        fits &= ~(unsigned)DOUBLE;
    return fits;
}

/* The longest prefix of the word that one kind of quotes can hold, and that kind. */
static size_t shlex_chunk(struct str word, unsigned *kind) {
    unsigned fits = BARE | SINGLE | DOUBLE;
    size_t i = 0;
    if (word.p[0] == '^') { /* means itself only at the beginning of single quotes */
        fits = SINGLE;
        i = 1;
    }
    for (; i < word.n; i++) {
        unsigned now = fits & shlex_fits((unsigned char)word.p[i]);
        if (now == 0)
            break;
        fits = now;
    }
    *kind = fits & BARE ? BARE : fits & SINGLE ? SINGLE : DOUBLE;
    return i;
}

static int shlex_put_chunk(struct buf *b, struct str chunk, unsigned kind) {
    if (kind == BARE)
        return buf_put(b, chunk.p, chunk.n);
    char quote = kind == SINGLE ? '\'' : '"';
    int r = buf_putc(b, quote);
    for (size_t i = 0; r == 0 && i < chunk.n; i++) {
        if (kind == DOUBLE && (chunk.p[i] == '"' || chunk.p[i] == '\\'))
            r = buf_putc(b, '\\');
        if (r == 0)
            r = buf_putc(b, chunk.p[i]);
    }
    return r < 0 ? r : buf_putc(b, quote);
}

int shlex_join(struct buf *b, const struct str *words, size_t n) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct str rest = words[i];
        if (i > 0)
            r = buf_putc(b, ' ');
        if (r == 0 && rest.n == 0)
            r = buf_putz(b, "''");
        while (r == 0 && rest.n > 0) {
            unsigned kind;
            size_t len = shlex_chunk(rest, &kind);
            r = shlex_put_chunk(b, (struct str){rest.p, len}, kind);
            str_take(&rest, len);
        }
    }
    return r;
}
