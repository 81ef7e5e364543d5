#include "ops/redact.h"

#include "base/utf8.h"
#include "ops/redact_value.h"

#include <ctype.h>
#include <errno.h>

#define REDACT_HEREDOCS 4    /* here-documents that begin on one line */
#define REDACT_DELIMITER 64  /* bytes of the word that ends one */
#define REDACT_URL_MAX 8192  /* bytes of a URL searched for an "@" */
#define REDACT_INDEX_MAX 256 /* bytes of an index in brackets after a name */
#define REDACT_PEM "-----BEGIN"
#define REDACT_PEM_END "-----END"

/* A walk over one argument. Text before `copied` is done. */
struct redact_walk {
    struct str s;
    size_t at, copied;
    char quote;  /* the quote we are in, or 0 */
    bool script; /* words end at blanks, also at the top level of the argument */
    bool cut;
    bool hide_next;
    const char *letters; /* see struct redact */
    size_t heredocs;     /* here-documents that follow this line; more than REDACT_HEREDOCS: all */
    char delimiters[REDACT_HEREDOCS][REDACT_DELIMITER];
    size_t room;
    struct buf *out;
};

/* Programs with one-letter options that take a secret; `*` matches the rest of a name. */
static const struct {
    const char *program, *letters;
} redact_programs[] = {
    {"curl", "uUb"},  {"wget", "u"},   {"mysql*", "p"},    {"mariadb*", "p"},  {"mongo*", "p"},
    {"sshpass", "p"}, {"ldap*", "w"},  {"smbclient", "U"}, {"redis-cli", "a"}, {"docker", "p"},
    {"podman", "p"},  {"sqlcmd", "P"}, {"rpcclient", "U"}, {"7z*", "p"},       {"zip", "P"},
    {"unzip", "P"},   {"http", "a"},   {"https", "a"},
};

static bool redact_is_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
}

static bool redact_contains(struct str s, struct str word) {
    for (size_t i = 0; i + word.n <= s.n; i++) {
        if (strncasecmp(s.p + i, word.p, word.n) == 0)
            return true;
    }
    return false;
}

/* "auth" as a word of its own, or the last one; not "author". */
static bool redact_is_auth(struct str name) {
    return name.n >= 4 &&
           (str_ieqz((struct str){name.p + name.n - 4, 4}, "auth") ||
            redact_contains(name, STR_LIT("auth_")) || redact_contains(name, STR_LIT("auth-")));
}

static bool redact_is_secret(struct str name) {
    static const char *const words[] = {"token",         "secret", "key",        "pass",
                                        "pwd",           "bearer", "credential", "jwt",
                                        "authorization", "cookie", "private",    "signature"};
    if (str_ieqz(name, "pwd") || str_ieqz(name, "oldpwd")) /* the working directory */
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (redact_contains(name, str_of(words[i])))
            return true;
    }
    return redact_is_auth(name);
}

/* The letters of a program that the table names, or NULL. */
static const char *redact_letters(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(redact_programs); i++) {
        const char *want = redact_programs[i].program;
        size_t n = strcspn(want, "*");
        if (want[n] == '*' ? name.n >= n && memcmp(name.p, want, n) == 0 : str_eqz(name, want))
            return redact_programs[i].letters;
    }
    return NULL;
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

/* -- what is found on the way -- */

/* Back over brackets or braces before `end`: "[0]"; or to a name inside: "["token"]". */
static size_t redact_before_index(const struct redact_walk *w, size_t end) {
    const char *p = w->s.p;
    size_t lowest = end - w->copied > REDACT_INDEX_MAX ? end - REDACT_INDEX_MAX : w->copied;
    size_t close = end - 1, open = close;
    char opening = p[close] == ']' ? '[' : '{';
    while (open > lowest && p[open] != opening)
        open--;
    if (p[open] != opening)
        return end;
    return redact_is_secret((struct str){p + open, close - open}) ? close : open;
}

/* The name in front of a separator at `i`, quotes, blanks, operators and indices skipped. */
static struct str redact_name_before(const struct redact_walk *w, size_t i) {
    const char *p = w->s.p;
    size_t end = i;
    while (end > w->copied && redact_is_blank(p[end - 1]))
        end--;
    if (end > w->copied && strchr("+?!", p[end - 1]) != NULL && p[end - 1] != '\0')
        end--;
    while (end > w->copied && redact_is_blank(p[end - 1]))
        end--;
    if (end > w->copied && (p[end - 1] == ']' || p[end - 1] == '}'))
        end = redact_before_index(w, end);
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

/* Whether the text at `i` begins the argument, also behind its option ("--env="), or its quotes. */
static bool redact_begins_text(const struct redact_walk *w, size_t i) {
    if (w->quote != 0)
        return i > 0 && w->s.p[i - 1] == w->quote;
    if (w->script)
        return false;
    size_t word = 0;
    while (word < i && w->s.p[0] == '-' && !redact_is_blank(w->s.p[word]) && w->s.p[word] != '\n')
        word++;
    return word == i;
}

/* Where the value at `v` ends, of a name with the separator `sep` at `begin`. */
static size_t redact_value_end(const struct redact_walk *w, size_t begin, char sep, size_t v) {
    const struct str s = w->s;
    bool blank = v > 0 && redact_is_blank(s.p[v - 1]);
    if (v < s.n && redact_is_quote(s.p[v]) && s.p[v] != w->quote)
        return sep == ':' ? redact_value_skip(s, v) /* JSON */
                          : redact_value_word_end(s, v, w->quote);
    if (redact_is_escaped_quote(s, v))
        return redact_value_word_end(s, v, w->quote);
    if (redact_begins_text(w, begin) || (v < s.n && strchr("|>", s.p[v]) != NULL))
        return redact_value_text_end(s, v, w->quote); /* also a block of YAML */
    if (sep == ':' && blank)
        return redact_value_line_end(s, v, w->quote);
    return redact_value_word_end(s, v, w->quote);
}

/* "NAME=VALUE", "NAME: VALUE". */
static int redact_separator(struct redact_walk *w) {
    const struct str s = w->s;
    struct str name = redact_name_before(w, w->at);
    char sep = s.p[w->at];
    if (!redact_is_secret(name)) {
        w->at++;
        return 0;
    }
    size_t begin = (size_t)(name.p - s.p);
    bool spaced = sep == ':' || redact_is_blank(s.p[w->at - 1]);
    size_t v = w->at + 1;
    while (v < s.n && (s.p[v] == '=' || s.p[v] == ':' || (s.p[v] == '>' && v == w->at + 1)))
        v++;
    if (spaced)
        v = redact_value_skip_blanks(s, v);
    return redact_hide(w, v, redact_value_end(w, begin, sep, v));
}

/* `"NAME", VALUE` of a call, at the comma. */
static int redact_comma(struct redact_walk *w) {
    const struct str s = w->s;
    size_t at = w->at++;
    if (at == w->copied || !redact_is_quote(s.p[at - 1]) ||
        !redact_is_secret(redact_name_before(w, at)))
        return 0;
    size_t v = redact_value_skip_blanks(s, at + 1);
    return redact_hide(w, v, redact_value_word_end(s, v, w->quote));
}

/* `<NAME>VALUE<`, at the second character of the three. */
static int redact_element(struct redact_walk *w) {
    const struct str s = w->s;
    struct str name = redact_name_before(w, w->at);
    size_t begin = (size_t)(name.p - s.p), v = ++w->at;
    if (begin == 0 || s.p[begin - 1] != '<' || !redact_is_secret(name))
        return 0;
    const char *close = v < s.n ? memchr(s.p + v, '<', s.n - v) : NULL;
    return redact_hide(w, v, close != NULL ? (size_t)(close - s.p) : s.n);
}

/* "://USER@": at the colon. */
static int redact_url(struct redact_walk *w) {
    size_t from = w->at + 3, user_end = from;
    size_t most = MIN(w->s.n, from + REDACT_URL_MAX);
    for (size_t i = from; i < most && strchr("/?#'\" \t\r\n", w->s.p[i]) == NULL; i++) {
        if (w->s.p[i] == '@')
            user_end = i;
    }
    if (user_end > from)
        return redact_hide(w, from, user_end);
    w->at = from;
    return 0;
}

/* Behind the end of a block whose first line begins at `i`. */
static size_t redact_pem_end(struct str s, size_t i) {
    const char *end = memmem(s.p + i, s.n - i, REDACT_PEM_END, strlen(REDACT_PEM_END));
    if (end == NULL)
        return s.n;
    end += strlen(REDACT_PEM_END);
    end = memmem(end, (size_t)(s.p + s.n - end), "-----", 5);
    return end != NULL ? (size_t)(end - s.p) + 5 : s.n;
}

/* Hides the word behind a name that ends at `end`; it may be the next argument. */
static int redact_next_word(struct redact_walk *w, size_t end) {
    const struct str s = w->s;
    if (end < s.n && redact_is_quote(s.p[end]) && s.p[end] == w->quote) {
        w->quote = 0;
        end++;
    }
    size_t v = redact_value_skip_blanks(s, end);
    if (v == s.n)
        w->hide_next = true;
    if (v == s.n || (v == end && strchr("'\"$`\\", s.p[v]) == NULL))
        return 0;
    return redact_hide(w, v, redact_value_word_end(s, v, w->quote));
}

/* Whether the name is an option whose next word is a secret. */
static bool redact_is_option(const struct redact_walk *w, struct str name) {
    if (name.p[0] != '-')
        return str_ieqz(name, "bearer");
    if (redact_is_secret(name))
        return true;
    return w->letters != NULL && strchr(w->letters, 'u') != NULL &&
           (str_eqz(name, "--user") || str_eqz(name, "--proxy-user"));
}

/* Length of options in one word, up to a letter of the program that takes a secret: "-xp"; or 0. */
static size_t redact_cluster(const struct redact_walk *w, struct str name) {
    if (w->letters == NULL || name.p[0] != '-')
        return 0;
    for (size_t i = 1; i < name.n && isalnum((unsigned char)name.p[i]); i++) {
        if (strchr(w->letters, name.p[i]) != NULL)
            return i + 1;
    }
    return 0;
}

/* A run of name characters: "--token VALUE", "Bearer VALUE", "-pVALUE". */
static int redact_name(struct redact_walk *w) {
    const struct str s = w->s;
    size_t begin = w->at, end = begin;
    while (end < s.n && redact_is_name(s.p[end]))
        end++;
    struct str name = {s.p + begin, end - begin};
    const char *pem = memmem(name.p, name.n, REDACT_PEM, strlen(REDACT_PEM));
    if (pem != NULL) {
        size_t from = (size_t)(pem - s.p);
        return redact_hide(w, from, redact_pem_end(s, from));
    }
    w->at = end;
    const char *letters = redact_letters(name);
    if (letters != NULL)
        w->letters = letters;
    size_t cluster = redact_cluster(w, name);
    bool option = redact_is_option(w, name) || (cluster > 0 && cluster == name.n);
    if (cluster > 0 && cluster < name.n) {
        size_t v = begin + cluster;
        int r = redact_hide(w, v,
                            redact_begins_text(w, begin) ? redact_value_text_end(s, v, w->quote)
                                                         : redact_value_word_end(s, v, w->quote));
        return r < 0 || !option ? r : redact_next_word(w, w->at);
    }
    return option ? redact_next_word(w, end) : 0;
}

/* -- what a command reads: nothing of that is for the log -- */

/* "<<WORD": notes the word that ends the lines to come. At the first "<". */
static void redact_heredoc(struct redact_walk *w) {
    const struct str s = w->s;
    size_t i = w->at + 2, n = 0;
    char word[REDACT_DELIMITER] = "";
    i += i < s.n && s.p[i] == '-';
    i = redact_value_skip_blanks(s, i);
    size_t begin = i, end = redact_value_word_end(s, i, w->quote);
    for (; i < end && n < sizeof word - 1; i++) {
        if (!redact_is_quote(s.p[i]) && s.p[i] != '\\')
            word[n++] = s.p[i];
    }
    bool known = i == end && n > 0 && w->heredocs < REDACT_HEREDOCS;
    if (known)
        memcpy(w->delimiters[w->heredocs++], word, sizeof word);
    else if (end > begin)
        w->heredocs = REDACT_HEREDOCS + 1;
    w->at = MAX(end, w->at + 2);
}

/* The begin of the line at or behind `i` that is the word, or the end of the text. */
static size_t redact_find_line(struct str s, size_t i, const char *word) {
    size_t n = strlen(word);
    while (i < s.n) {
        size_t line = i;
        while (i < s.n && s.p[i] == '\t')
            i++;
        bool same = s.n - i >= n && memcmp(s.p + i, word, n) == 0;
        if (same && (i + n == s.n || strchr("\r\n'\"`)", s.p[i + n]) != NULL))
            return line;
        const char *nl = memchr(s.p + i, '\n', s.n - i);
        i = nl != NULL ? (size_t)(nl - s.p) + 1 : s.n;
    }
    return s.n;
}

/* A line ends: here-documents follow. */
static int redact_newline(struct redact_walk *w) {
    size_t from = ++w->at, end = from;
    if (w->quote == 0)
        w->letters = NULL;
    if (w->heredocs > REDACT_HEREDOCS)
        end = w->s.n;
    for (size_t i = 0; i < w->heredocs && end < w->s.n; i++) {
        end = redact_find_line(w->s, end, w->delimiters[i]);
        if (i + 1 < w->heredocs && end < w->s.n)
            end += strlen(w->delimiters[i]);
    }
    w->heredocs = 0;
    if (end == from)
        return 0;
    return redact_hide(w, from, end < w->s.n ? end - 1 : end);
}

/* "<<" and "<<<". */
static int redact_input(struct redact_walk *w) {
    const struct str s = w->s;
    if (w->at + 2 < s.n && s.p[w->at + 2] == '<') {
        size_t v = redact_value_skip_blanks(s, w->at + 3);
        return redact_hide(w, v, redact_value_word_end(s, v, w->quote));
    }
    redact_heredoc(w);
    return 0;
}

static int redact_step(struct redact_walk *w) {
    const struct str s = w->s;
    char c = s.p[w->at];
    if (redact_is_name(c))
        return redact_name(w);
    if (c == ':' && s.n - w->at > 2 && memcmp(s.p + w->at, "://", 3) == 0)
        return redact_url(w);
    if (c == '<' && w->at + 1 < s.n && s.p[w->at + 1] == '<')
        return redact_input(w);
    switch (c) {
    case '=':
    case ':': return redact_separator(w);
    case ',': return redact_comma(w);
    case '>': return redact_element(w);
    case '\n': return redact_newline(w);
    default: break;
    }
    if (strchr(";|&", c) != NULL && w->quote == 0)
        w->letters = NULL; /* the next command */
    if (redact_is_quote(c) && (w->quote == 0 || w->quote == c))
        w->quote = w->quote == 0 ? c : 0;
    w->at += c == '\\' && w->at + 1 < s.n ? 2 : 1;
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
    struct redact_walk w = {
        .s = arg, .script = r->script, .letters = r->letters, .room = max, .out = out};
    int rc = 0;
    if (r->hide)
        rc = redact_hide(&w, 0, arg.n);
    while (rc == 0 && w.at < arg.n && !w.cut && w.at - w.copied <= w.room)
        rc = redact_step(&w);
    if (rc == 0)
        rc = redact_hide(&w, arg.n, arg.n);
    r->hide = w.hide_next;
    r->letters = w.letters;
    r->script = redact_is_dash_c(arg);
    return rc < 0 ? rc : w.cut;
}
