#include "sandbox/policy/glob.h"

#include "sandbox/policy/glob_run.h"

#include <errno.h>
#include <string.h>

/* A pattern becomes a graph of nodes. Most nodes read a character and continue at the next node;
 * `split` continues at two, `jump` at another, without reading. */

void glob_set_fini(struct glob_set *s) {
    for (size_t i = 0; i < s->node_count; i++)
        free(s->nodes[i].ranges);
    free(s->nodes);
    free(s->starts);
    *s = (struct glob_set){0};
}

uint32_t glob_char(const char **p, const char *end) {
    const unsigned char *u = (const unsigned char *)*p;
    size_t left = (size_t)(end - *p);
    unsigned n = u[0] < 0x80 ? 1 : u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : u[0] >= 0xC2 ? 2 : 0;
    uint32_t c = n == 1 ? u[0] : n == 2 ? u[0] & 0x1Fu : n == 3 ? u[0] & 0x0Fu : u[0] & 0x07u;
    bool good = n > 0 && n <= left;
    for (unsigned i = 1; good && i < n; i++) {
        good = (u[i] & 0xC0) == 0x80;
        c = c << 6 | (u[i] & 0x3Fu);
    }
    if (!good) { /* an invalid byte gets a number of its own */
        (*p)++;
        return 0x110000u + u[0];
    }
    *p += n;
    return c;
}

/* -- compiling -- */

struct glob_parser {
    struct glob_set *s;
    const char *p, *end;
    const char *why;
    unsigned nest;
};

static int parse_fail(struct glob_parser *g, const char *why) {
    g->why = why;
    return -EINVAL;
}

/* Appends a node; its number or -ENOMEM. */
static int64_t parse_node(struct glob_parser *g, enum glob_op op, uint32_t arg) {
    struct glob_set *s = g->s;
    if (s->node_count == s->node_cap) {
        size_t cap = MAX(64u, s->node_cap * 2);
        struct glob_node *nodes = reallocarray(s->nodes, cap, sizeof *nodes);
        if (nodes == NULL)
            return -ENOMEM;
        s->nodes = nodes;
        s->node_cap = cap;
    }
    s->nodes[s->node_count] = (struct glob_node){.op = op, .arg = arg};
    return (int64_t)s->node_count++;
}

static int star_parse_add(struct glob_parser *g, enum glob_op op, uint32_t arg) {
    int64_t n = parse_node(g, op, arg);
    return n < 0 ? (int)n : 0;
}

/* The end of the class whose '[' is at p; NULL: it is an ordinary character. */
static const char *parse_class_end(const char *p, const char *end) {
    p++;
    if (p < end && (*p == '!' || *p == '^'))
        p++;
    if (p < end && *p == ']')
        p++;
    while (p < end && *p != ']' && *p != '/')
        p++;
    return p < end && *p == ']' ? p : NULL;
}

static int parse_class(struct glob_parser *g, const char *close) {
    const char *p = g->p + 1;
    bool negated = *p == '!' || *p == '^';
    p += negated;
    uint32_t *ranges = calloc((size_t)(close - p) * 2 + 2, sizeof *ranges);
    if (ranges == NULL)
        return -ENOMEM;
    uint32_t count = 0;
    while (p < close) {
        uint32_t low = glob_char(&p, close), high = low;
        if (p + 1 < close && *p == '-') {
            p++;
            high = glob_char(&p, close);
        }
        ranges[2 * count] = low;
        ranges[2 * count + 1] = high;
        count++;
        if (high < low) {
            free(ranges);
            return parse_fail(g, "invalid range; its first character comes after its last");
        }
    }
    int64_t n = parse_node(g, negated ? GLOB_NOT_CLASS : GLOB_CLASS, count);
    if (n < 0) {
        free(ranges);
        return (int)n;
    }
    g->s->nodes[n].ranges = ranges;
    g->p = close + 1;
    return 0;
}

/* Stars. A component `**` matches any number of directories. */
static int parse_stars(struct glob_parser *g, bool at_start) {
    const char *p = g->p;
    while (g->p < g->end && *g->p == '*')
        g->p++;
    bool whole = g->p - p == 2 && at_start;
    if (whole && g->p == g->end)
        return star_parse_add(g, GLOB_DEEP, 0);
    if (!whole || *g->p != '/')
        return star_parse_add(g, GLOB_STAR, 0);
    g->p++;
    int64_t split = parse_node(g, GLOB_SPLIT, 0);
    int r = split < 0 ? (int)split : star_parse_add(g, GLOB_DEEP, 0);
    if (r == 0)
        r = star_parse_add(g, GLOB_CHAR, '/');
    if (r == 0)
        g->s->nodes[split].arg = (uint32_t)g->s->node_count;
    return r;
}

static int parse_sequence(struct glob_parser *g, bool at_start);

/* {a,b,c}: a split before, and a jump behind, each part but the last. */
static int parse_braces(struct glob_parser *g, bool at_start) {
    int64_t jumps = -1; /* the jumps to be completed, linked by `arg` */
    g->p++;
    if (++g->nest > GLOB_NEST_MAX)
        return parse_fail(g, "too many nested alternate groups");
    for (;;) {
        int64_t split = parse_node(g, GLOB_SPLIT, 0);
        int r = split < 0 ? (int)split : parse_sequence(g, at_start);
        if (r < 0)
            return r;
        if (g->p == g->end)
            return parse_fail(g, "unclosed alternate group; missing '}' (maybe escape '{' with "
                                 "'[{]'?)");
        bool last = *g->p++ == '}';
        if (!last) {
            jumps = parse_node(g, GLOB_JUMP, (uint32_t)jumps);
            if (jumps < 0)
                return (int)jumps;
        }
        g->s->nodes[split].arg = (uint32_t)(last ? split + 1 : (int64_t)g->s->node_count);
        if (last)
            break;
    }
    while (jumps >= 0) {
        struct glob_node *n = &g->s->nodes[jumps];
        jumps = (int32_t)n->arg;
        n->arg = (uint32_t)g->s->node_count;
    }
    g->nest--;
    return 0;
}

static int parse_one(struct glob_parser *g, bool at_start) {
    const char *close;
    switch (*g->p) {
    case '*': return parse_stars(g, at_start);
    case '?': g->p++; return star_parse_add(g, GLOB_ANY, 0);
    case '{': return parse_braces(g, at_start);
    case '[':
        close = parse_class_end(g->p, g->end);
        if (close != NULL)
            return parse_class(g, close);
        break;
    case '\\':
        if (g->p + 1 == g->end)
            return parse_fail(g, "dangling '\\'");
        g->p++;
        break;
    default: break;
    }
    return star_parse_add(g, GLOB_CHAR, glob_char(&g->p, g->end));
}

/* Parses up to the end, or to the ',' or '}' of the enclosing braces. */
static int parse_sequence(struct glob_parser *g, bool at_start) {
    while (g->p < g->end) {
        if (g->nest > 0 && (*g->p == ',' || *g->p == '}'))
            return 0;
        if (*g->p == '}')
            return parse_fail(g, "unopened alternate group; missing '{' (maybe escape '}' with "
                                 "'[}]'?)");
        bool slash = *g->p == '/';
        int r = parse_one(g, at_start);
        if (r < 0)
            return r;
        at_start = slash || (at_start && g->p[-1] == '/');
    }
    return 0;
}

static int parse_start(struct glob_set *s) {
    if (s->start_count == s->start_cap) {
        size_t cap = MAX(16u, s->start_cap * 2);
        uint32_t *starts = reallocarray(s->starts, cap, sizeof *starts);
        if (starts == NULL)
            return -ENOMEM;
        s->starts = starts;
        s->start_cap = cap;
    }
    s->starts[s->start_count++] = (uint32_t)s->node_count;
    return 0;
}

/* Removes an unfinished pattern. */
static void parse_undo(struct glob_set *s) {
    uint32_t first = s->starts[--s->start_count];
    while (s->node_count > first)
        free(s->nodes[--s->node_count].ranges);
}

int glob_add(struct glob_set *s, const char *pattern, const char **why) {
    size_t n = strlen(pattern);
    struct glob_parser g = {.s = s, .p = pattern, .end = pattern + n};
    if (n > GLOB_PATTERN_MAX || s->bytes > GLOB_PATTERN_MAX - n) {
        *why = "the patterns are too long";
        return -EINVAL;
    }
    int r = parse_start(s);
    if (r < 0)
        return r;
    if (strchr(pattern, '/') == NULL) { /* at every depth, as if behind a `**` */
        static const char deep[] = "**/";
        struct glob_parser prefix = {.s = s, .p = deep, .end = deep + 3};
        r = parse_stars(&prefix, true);
    }
    if (r == 0)
        r = parse_sequence(&g, true);
    if (r == 0)
        r = star_parse_add(&g, GLOB_END, 0);
    if (r < 0) {
        parse_undo(s);
        *why = g.why;
        return r;
    }
    s->bytes += n;
    return 0;
}
