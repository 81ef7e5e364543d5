#include "json/json.h"

#include "base/utf8.h"
#include "json/json_dup.h"
#include "json/json_scan.h"

#include <errno.h>
#include <stdio.h>

#define JSON_NODES_FIRST 64
#define JSON_NODES_KEPT 512 /* left by json_doc_trim() */
#define JSON_NODES_MAX (2 * (size_t)JSON_MAX_VALUES)

/*
 * Decoded strings share chunks of at most JSON_CHUNK bytes; strings longer than JSON_LONG get their
 * own. So at most a quarter of a chunk is lost at its end.
 */
#define JSON_CHUNK 16384
#define JSON_LONG 4096
#define JSON_SLACK 16 /* bytes that json_scan_copy() may write behind its result */

struct json_parser {
    struct json_doc *d;
    const char *text, *p, *end;
    struct err *e;
    uint32_t values; /* so far */
    uint32_t depth;  /* open containers */
    char *out;       /* room for decoded strings, in the arena */
    size_t out_left;
    struct json_dup dup;
    uint32_t stack[JSON_MAX_DEPTH]; /* nodes of the open containers */
};

void json_doc_init(struct json_doc *d, size_t max_text, uint64_t seed) {
    *d = (struct json_doc){.seed = seed};
    /* The text, a quarter of a chunk, rounding, and the arena's own blocks. */
    d->arena = ARENA_INIT(max_text + max_text / 2 + 4 * (size_t)JSON_CHUNK);
}

void json_doc_fini(struct json_doc *d) {
    free(d->nodes);
    d->nodes = NULL;
    d->len = d->cap = 0;
    arena_fini(&d->arena);
}

void json_doc_trim(struct json_doc *d) {
    d->len = 0;
    arena_reset(&d->arena);
    if (d->cap <= JSON_NODES_KEPT)
        return;
    free(d->nodes);
    d->nodes = NULL;
    d->cap = 0;
}

/* Sets "<reason> at line L column C" for the byte at `at`, or the last one if it is the end. */
static int json_fail(struct json_parser *s, const char *at, const char *reason) {
    const char *upto = at < s->end ? at + 1 : s->end, *line_start = s->text;
    size_t line = 1;
    for (const char *p = s->text; p < upto; p++) {
        if (*p == '\n') {
            line_start = p + 1;
            line++;
        }
    }
    return err_set(s->e, ERR_INVALID_REQUEST, "%s at line %zu column %zu", reason, line,
                   (size_t)(upto - line_start));
}

/* As json_fail(), with the reason for a text that ends too early. */
static int json_fail_or_eof(struct json_parser *s, const char *reason, const char *eof) {
    return json_fail(s, s->p, s->p < s->end ? reason : eof);
}

static int json_grow(struct json_doc *d) {
    size_t cap = d->cap == 0 ? JSON_NODES_FIRST : MIN(d->cap * 2, JSON_NODES_MAX);
    struct json_node *nodes = realloc(d->nodes, cap * sizeof *nodes);
    if (nodes == NULL)
        return -ENOMEM;
    d->nodes = nodes;
    d->cap = cap;
    return 0;
}

/* The next node, or NULL when out of memory. The limit on values keeps len below the maximum. */
static inline struct json_node *json_push(struct json_parser *s, enum json_type type) {
    struct json_doc *d = s->d;
    if (d->len == d->cap && json_grow(d) < 0)
        return NULL;
    struct json_node *v = &d->nodes[d->len++];
    *v = (struct json_node){.skip = 1, .type = type};
    return v;
}

static inline void json_skip_space(struct json_parser *s) {
    const char *p = s->p;
    while (p < s->end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    s->p = p;
}

/* Four hex digits at s->p, or -1. */
static int json_hex4(struct json_parser *s) {
    if (s->end - s->p < 4)
        return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = *s->p++;
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (digit < 0 || digit > 15 || (c > '9' && digit < 10))
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The escape after "\u", with its second half if it is a surrogate. */
static int json_unicode(struct json_parser *s, char **out) {
    const char *at = s->p;
    int c = json_hex4(s);
    if (c < 0)
        return json_fail(s, at, "invalid \\u escape in string");
    if (c >= 0xD800 && c <= 0xDFFF) {
        if (c >= 0xDC00 || s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
            return json_fail(s, at, "lone surrogate in \\u escape");
        s->p += 2;
        int low = json_hex4(s);
        if (low < 0)
            return json_fail(s, at, "invalid \\u escape in string");
        if (low < 0xDC00 || low > 0xDFFF)
            return json_fail(s, at, "lone surrogate in \\u escape");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *out += utf8_encode(*out, (unsigned)c);
    return 0;
}

/* The byte that a character after a backslash stands for; 0 if it is no single byte. */
static const char json_short[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* Decodes the escape at s->p (its backslash). The result is never longer. */
static inline int json_escape(struct json_parser *s, char **out) {
    char c = s->end - s->p > 1 ? json_short[(unsigned char)s->p[1]] : '\0';
    if (c != '\0') {
        *(*out)++ = c;
        s->p += 2;
        return 0;
    }
    if (s->end - s->p < 2)
        return json_fail(s, s->end, "EOF while parsing a string");
    if (s->p[1] != 'u')
        return json_fail(s, s->p + 1, "invalid escape in string");
    s->p += 2;
    return json_unicode(s, out);
}

/* Length of the string starting at s->p in the text, up to its quote or the end of the text. */
static size_t json_raw_len(const struct json_parser *s) {
    for (const char *p = s->p; (p = memchr(p, '"', (size_t)(s->end - p))) != NULL; p++) {
        const char *slash = p;
        while (slash > s->p && slash[-1] == '\\')
            slash--;
        if ((p - slash) % 2 == 0)
            return (size_t)(p - s->p);
    }
    return (size_t)(s->end - s->p);
}

/*
 * Room for the decoded form of the string at s->p and JSON_SLACK, or NULL. Short texts need one
 * chunk in all.
 */
static char *json_room(struct json_parser *s) {
    size_t rest = (size_t)(s->end - s->p) + JSON_SLACK;
    if (s->out_left >= rest)
        return s->out;
    size_t need = json_raw_len(s) + JSON_SLACK;
    if (s->out_left >= need)
        return s->out;
    if (need > JSON_LONG)
        return arena_alloc(&s->d->arena, need);
    size_t chunk = MIN((size_t)JSON_CHUNK, rest);
    char *p = arena_alloc(&s->d->arena, chunk);
    if (p != NULL) {
        s->out = p;
        s->out_left = chunk;
    }
    return p;
}

/*
 * A string with escapes, from its first character on. The slack keeps s->out inside its chunk, so
 * no block of its own can begin there.
 */
static int json_decode(struct json_parser *s, const char *start, struct str *v) {
    s->p = start;
    char *first = json_room(s), *out = first;
    if (first == NULL)
        return -ENOMEM;
    for (;;) {
        size_t run = json_scan_copy(out, s->p, (size_t)(s->end - s->p));
        out += run;
        s->p += run;
        if (s->p == s->end)
            return json_fail(s, s->p, "EOF while parsing a string");
        if (*s->p == '"')
            break;
        if (*s->p != '\\')
            return json_fail(s, s->p, "control character in string");
        do {
            int r = json_escape(s, &out);
            if (r < 0)
                return r;
        } while (s->p < s->end && *s->p == '\\');
    }
    s->p++;
    *v = (struct str){first, (size_t)(out - first)};
    if (first == s->out) {
        s->out = out;
        s->out_left -= v->n;
    }
    return 0;
}

/* A string whose opening quote was consumed. */
static inline int json_string(struct json_parser *s, struct str *v) {
    const char *start = s->p, *q = start + json_scan(start, (size_t)(s->end - start));
    s->p = q;
    if (q == s->end)
        return json_fail(s, q, "EOF while parsing a string");
    if (*q == '"') {
        *v = (struct str){start, (size_t)(q - start)};
        s->p = q + 1;
        return 0;
    }
    if (*q != '\\')
        return json_fail(s, q, "control character in string");
    return json_decode(s, start, v);
}

static inline int json_push_string(struct json_parser *s) {
    struct str v = {NULL, 0};
    int r = json_string(s, &v);
    if (r < 0)
        return r;
    struct json_node *node = json_push(s, JSON_STRING);
    if (node == NULL)
        return -ENOMEM;
    node->p = v.p;
    node->n = v.n;
    return 0;
}

static const char *json_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the number at p, or NULL with the first bad place in *bad. */
static const char *json_number_end(const char *p, const char *end, const char **bad) {
    if (p < end && *p == '-')
        p++;
    const char *digits = p;
    p = p < end && *p == '0' ? p + 1 : json_digits(p, end);
    *bad = p;
    if (p == digits || (*digits == '0' && p < end && *p >= '0' && *p <= '9'))
        return NULL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = *bad = json_digits(p, end);
        if (p == digits)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = *bad = json_digits(p, end);
        if (p == digits)
            return NULL;
    }
    return p;
}

static int json_number(struct json_parser *s) {
    const char *bad, *q = json_number_end(s->p, s->end, &bad);
    if (q == NULL)
        return json_fail(s, bad, bad < s->end ? "invalid number" : "EOF while parsing a value");
    struct json_node *node = json_push(s, JSON_NUMBER);
    if (node == NULL)
        return -ENOMEM;
    node->p = s->p;
    node->n = (size_t)(q - s->p);
    s->p = q;
    return 0;
}

static int json_fail_word(struct json_parser *s, const char *word) {
    while (s->p < s->end && *s->p == *word) {
        s->p++;
        word++;
    }
    return json_fail_or_eof(s, "invalid literal", "EOF while parsing a value");
}

static inline int json_word(struct json_parser *s, struct str word, enum json_type type) {
    if ((size_t)(s->end - s->p) < word.n || memcmp(s->p, word.p, word.n) != 0)
        return json_fail_word(s, word.p);
    s->p += word.n;
    return json_push(s, type) == NULL ? -ENOMEM : 0;
}

static int json_open(struct json_parser *s, enum json_type type) {
    if (s->depth == JSON_MAX_DEPTH)
        return json_fail(s, s->p, "recursion limit exceeded");
    if (json_push(s, type) == NULL)
        return -ENOMEM;
    s->p++;
    s->stack[s->depth++] = (uint32_t)(s->d->len - 1);
    return 0;
}

static int json_fail_duplicate(struct json_parser *s, const struct json_node *key) {
    char reason[256];
    size_t n = utf8_cut(key->p, key->n, sizeof reason / 2);
    snprintf(reason, sizeof reason, "duplicate JSON object key `%.*s%s`", (int)n, key->p,
             n < key->n ? "..." : "");
    /* A key with escapes does not lie in the text: report the end of its object. */
    bool in_text = key->p >= s->text && key->p < s->end;
    return json_fail(s, in_text ? key->p + key->n : s->p, reason);
}

/* The closing bracket at s->p ends the innermost container. */
static inline int json_close(struct json_parser *s) {
    uint32_t i = s->stack[s->depth - 1];
    struct json_node *v = &s->d->nodes[i];
    v->skip = (uint32_t)s->d->len - i;
    if (v->type == JSON_OBJECT && v->count > 1 && !s->d->keeps_duplicates) {
        const struct json_node *dup;
        int r = json_dup_find(&s->dup, v, &dup);
        if (r < 0)
            return r;
        if (dup != NULL)
            return json_fail_duplicate(s, dup);
    }
    s->depth--;
    s->p++;
    return 0;
}

/* Reads a scalar, or the opening bracket of a container. */
static inline int json_value(struct json_parser *s) {
    json_skip_space(s);
    if (s->p == s->end)
        return json_fail(s, s->p, "EOF while parsing a value");
    if (s->values++ == JSON_MAX_VALUES)
        return json_fail(s, s->p, "JSON-RPC message exceeds the limit of 262144 JSON values");
    switch (*s->p) {
    case '"': s->p++; return json_push_string(s);
    case '{': return json_open(s, JSON_OBJECT);
    case '[': return json_open(s, JSON_ARRAY);
    case 't': return json_word(s, STR_LIT("true"), JSON_TRUE);
    case 'f': return json_word(s, STR_LIT("false"), JSON_FALSE);
    case 'n': return json_word(s, STR_LIT("null"), JSON_NULL);
    case '-':
    case '0' ... '9': return json_number(s);
    default: return json_fail(s, s->p, "expected value");
    }
}

/* A key and its colon. */
static inline int json_key(struct json_parser *s) {
    json_skip_space(s);
    if (s->p == s->end || *s->p != '"')
        return json_fail_or_eof(s, "key must be a string", "EOF while parsing an object");
    s->p++;
    int r = json_push_string(s);
    if (r < 0)
        return r;
    json_skip_space(s);
    if (s->p == s->end || *s->p != ':')
        return json_fail_or_eof(s, "expected `:`", "EOF while parsing an object");
    s->p++;
    return 0;
}

/*
 * Goes on to the next value in the innermost container, or past its closing bracket. 1 when a value
 * follows, 0 when the container ended.
 */
static inline int json_advance(struct json_parser *s) {
    struct json_node *v = &s->d->nodes[s->stack[s->depth - 1]];
    bool object = v->type == JSON_OBJECT;
    const char *eof = object ? "EOF while parsing an object" : "EOF while parsing a list";
    json_skip_space(s);
    char c = s->p < s->end ? *s->p : '\0';
    if (c == (object ? '}' : ']'))
        return json_close(s);
    if (v->count > 0) {
        if (c != ',')
            return json_fail_or_eof(s, object ? "expected `,` or `}`" : "expected `,` or `]`", eof);
        s->p++;
    } else if (s->p == s->end) {
        return json_fail(s, s->p, eof);
    }
    v->count++;
    int r = object ? json_key(s) : 0;
    return r < 0 ? r : 1;
}

static int json_document(struct json_parser *s) {
    int r = json_value(s);
    while (r >= 0 && s->depth > 0) {
        r = json_advance(s);
        if (r > 0)
            r = json_value(s);
    }
    if (r < 0)
        return r;
    json_skip_space(s);
    return s->p == s->end ? 0 : json_fail(s, s->p, "trailing characters");
}

int json_parse(struct json_doc *d, const char *text, size_t n, struct err *e) {
    d->len = 0;
    arena_reset(&d->arena);
    struct json_parser s = {.d = d, .text = text, .p = text, .end = text + n, .e = e};
    s.dup.seed = d->seed;
    int r = json_document(&s);
    json_dup_fini(&s.dup);
    if (r < 0)
        d->len = 0;
    return r;
}

const struct json_node *json_get(const struct json_node *object, const char *key) {
    size_t n = strlen(key);
    json_for_each_member(k, object) {
        if (k->n == n && memcmp(k->p, key, n) == 0)
            return k + 1;
    }
    return NULL;
}

bool json_get_only(const struct json_node *object, const char *key,
                   const struct json_node **value) {
    *value = NULL;
    json_for_each_member(k, object) {
        if (!str_eqz(json_str(k), key))
            continue;
        if (*value != NULL)
            return false;
        *value = k + 1;
    }
    return true;
}

/* The digits of a plain integer after its sign, as an unsigned number. */
static int json_magnitude(const char *p, size_t n, uint64_t *out) {
    uint64_t v = 0;
    bool over = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -EINVAL;
        over = over || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
               __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v);
    }
    *out = v;
    return over ? -ERANGE : 0;
}

int json_u64(const struct json_node *v, uint64_t *out) {
    if (v->type != JSON_NUMBER)
        return -EINVAL;
    bool negative = v->p[0] == '-';
    uint64_t m;
    int r = json_magnitude(v->p + negative, v->n - negative, &m);
    if (r < 0)
        return r;
    if (negative && m > 0)
        return -ERANGE;
    *out = m;
    return 0;
}

int json_i64(const struct json_node *v, int64_t *out) {
    if (v->type != JSON_NUMBER)
        return -EINVAL;
    bool negative = v->p[0] == '-';
    uint64_t m;
    int r = json_magnitude(v->p + negative, v->n - negative, &m);
    if (r < 0)
        return r;
    if (m > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *out = negative ? (int64_t)(0 - m) : (int64_t)m;
    return 0;
}
