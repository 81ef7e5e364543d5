#include "rules/execpolicy.h"

#include "json/jsonw.h"
#include "rules/execpolicy_internal.h"
#include "rules/shlex.h"

#include <errno.h>
#include <unistd.h>

const char *execpolicy_decision_name(enum execpolicy_decision d) {
    static const char *const names[] = {"allow", "prompt", "forbidden"};
    return names[d];
}

struct execpolicy *execpolicy_new(void) {
    struct execpolicy *p = calloc(1, sizeof *p);
    if (p != NULL)
        p->arena = ARENA_INIT(EXECPOLICY_MEMORY_MAX);
    return p;
}

void execpolicy_free(struct execpolicy *p) {
    if (p == NULL)
        return;
    arena_fini(&p->arena);
    free(p);
}

/* -- paths -- */

const char *execpolicy_normal(struct arena *a, const char *dir, struct str path) {
    bool absolute = path.n > 0 && path.p[0] == '/';
    size_t n = absolute ? 0 : strlen(dir);
    char *out = arena_alloc(a, n + path.n + 3);
    if (out == NULL)
        return NULL;
    memcpy(out, dir, n);
    while (n > 0 && out[n - 1] == '/')
        n--;
    for (size_t i = 0; i < path.n;) {
        const char *slash = memchr(path.p + i, '/', path.n - i);
        size_t len = slash == NULL ? path.n - i : (size_t)(slash - path.p) - i;
        struct str part = {path.p + i, len};
        i += len + 1;
        if (len == 0 || str_eqz(part, "."))
            continue;
        if (str_eqz(part, "..")) {
            while (n > 0 && out[--n] != '/')
                ;
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, part.p, len);
        n += len;
    }
    if (n == 0)
        out[n++] = '/';
    out[n] = '\0';
    return out;
}

struct execpolicy_host *execpolicy_host_find(const struct execpolicy *p, struct str name) {
    for (size_t i = 0; i < p->host_count; i++) {
        if (str_eq(p->hosts[i].name, name))
            return &p->hosts[i];
    }
    return NULL;
}

/* -- matching -- */

/* Whether the words after the first one match the rule. */
static bool match_rest(const struct execpolicy_rule *rule, const struct execpolicy_words *command) {
    if (command->n < rule->n + 1)
        return false;
    for (size_t i = 0; i < rule->n; i++) {
        bool found = false;
        for (size_t k = 0; !found && k < rule->rest[i].n; k++)
            found = str_eq(rule->rest[i].list[k], command->list[i + 1]);
        if (!found)
            return false;
    }
    return true;
}

static struct str match_basename(const char *path) {
    return str_of(strrchr(path, '/') + 1);
}

/* The absolute path of a program; rules may name its basename. */
static int match_resolve(const struct execpolicy_place *place, struct str program, struct arena *a,
                         const char **out) {
    struct str path = program;
    const char *dir = place->cwd;
    bool home = path.n > 0 && path.p[0] == '~' && (path.n == 1 || path.p[1] == '/');
    if (home && place->home != NULL) {
        dir = place->home;
        str_take(&path, MIN(path.n, (size_t)2));
    }
    *out = execpolicy_normal(a, dir, path);
    return *out == NULL ? -ENOMEM : 0;
}

/* Whether host_executable() allows that path for the program. */
static bool match_is_allowed(const struct execpolicy *p, const char *path) {
    const struct execpolicy_host *host = execpolicy_host_find(p, match_basename(path));
    if (host == NULL)
        return true;
    for (size_t i = 0; i < host->paths.n; i++) {
        if (str_eqz(host->paths.list[i], path))
            return true;
    }
    return false;
}

static int match_add(struct execpolicy_matches *m, struct arena *a,
                     const struct execpolicy_rule *rule, const char *resolved) {
    struct execpolicy_match *list = arena_grow(a, m->list, m->n, &m->cap, 8, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    m->list = list;
    m->list[m->n++] = (struct execpolicy_match){rule, resolved};
    m->decision = m->n == 1 ? rule->decision : MAX(m->decision, rule->decision);
    return 0;
}

/* All rules from `first` on whose first word is `name`. */
static int match_all(const struct execpolicy *p, size_t first, size_t n, struct str name,
                     const struct execpolicy_words *command, const char *resolved, struct arena *a,
                     struct execpolicy_matches *out) {
    int r = 0;
    for (size_t i = first; r == 0 && i < first + n; i++) {
        const struct execpolicy_rule *rule = &p->rules[i];
        if (str_eq(rule->first, name) && match_rest(rule, command))
            r = match_add(out, a, rule, resolved);
    }
    return r;
}

static int match_range(const struct execpolicy *p, size_t first, size_t n,
                       const struct execpolicy_words *command, const struct execpolicy_place *place,
                       struct arena *a, struct execpolicy_matches *out) {
    *out = (struct execpolicy_matches){0};
    int r = match_all(p, first, n, command->list[0], command, NULL, a, out);
    if (r < 0 || out->n > 0 || place == NULL)
        return r;
    const char *path;
    r = match_resolve(place, command->list[0], a, &path);
    if (r < 0 || !match_is_allowed(p, path))
        return r;
    return match_all(p, first, n, match_basename(path), command, path, a, out);
}

bool execpolicy_restricts(const struct execpolicy *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->rules[i].decision != EXECPOLICY_ALLOW)
            return true;
    }
    return false;
}

int execpolicy_check(const struct execpolicy *p, const struct execpolicy_words *command,
                     const struct execpolicy_place *place, struct arena *a,
                     struct execpolicy_matches *out) {
    return match_range(p, 0, p->n, command, place, a, out);
}

/* -- showing: as the reference prints its structs -- */

/* A text in quotes, escaped. */
static int show_str(struct buf *b, struct str s) {
    static const char special[] = "\"\\\n\r\t\0", names[] = "\"\\nrt0";
    int r = buf_putc(b, '"');
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        const char *at = memchr(special, c, sizeof special - 1);
        if (at != NULL)
            r = buf_putf(b, "\\%c", names[at - special]);
        else if (c < 0x20 || c == 0x7F)
            r = buf_putf(b, "\\u{%x}", c);
        else
            r = buf_putc(b, (char)c);
    }
    return r < 0 ? r : buf_putc(b, '"');
}

static int show_list(struct buf *b, const struct str *list, size_t n) {
    int r = buf_putc(b, '[');
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (i > 0)
            r = buf_putz(b, ", ");
        if (r == 0)
            r = show_str(b, list[i]);
    }
    return r < 0 ? r : buf_putc(b, ']');
}

static int show_end(struct buf *b, const struct execpolicy_rule *rule) {
    int r = buf_putz(b, "justification: ");
    if (r == 0 && rule->justification.p == NULL)
        r = buf_putz(b, "None");
    else if (r == 0) {
        r = buf_putz(b, "Some(");
        if (r == 0)
            r = show_str(b, rule->justification);
        if (r == 0)
            r = buf_putc(b, ')');
    }
    return r < 0 ? r : buf_putz(b, " }");
}

static const char *show_decision(enum execpolicy_decision d) {
    static const char *const names[] = {"Allow", "Prompt", "Forbidden"};
    return names[d];
}

static int show_rule(struct buf *b, const struct execpolicy_rule *rule) {
    int r = buf_putz(b, "PrefixRule { pattern: PrefixPattern { first: ");
    if (r == 0)
        r = show_str(b, rule->first);
    if (r == 0)
        r = buf_putz(b, ", rest: [");
    for (size_t i = 0; r == 0 && i < rule->n; i++) {
        bool one = rule->rest[i].n == 1;
        r = buf_putf(b, "%s%s(", i > 0 ? ", " : "", one ? "Single" : "Alts");
        if (r == 0)
            r = one ? show_str(b, rule->rest[i].list[0])
                    : show_list(b, rule->rest[i].list, rule->rest[i].n);
        if (r == 0)
            r = buf_putc(b, ')');
    }
    if (r == 0)
        r = buf_putf(b, "] }, decision: %s, ", show_decision(rule->decision));
    return r < 0 ? r : show_end(b, rule);
}

static int show_match(struct buf *b, const struct execpolicy_match *m,
                      const struct execpolicy_words *command) {
    int r = buf_putz(b, "PrefixRuleMatch { matched_prefix: [");
    for (size_t i = 0; r == 0 && i <= m->rule->n; i++) {
        r = i > 0 ? buf_putz(b, ", ") : 0;
        if (r == 0)
            r = show_str(b, i == 0 ? m->rule->first : command->list[i]);
    }
    if (r == 0)
        r = buf_putf(b, "], decision: %s, resolved_program: ", show_decision(m->rule->decision));
    if (r == 0 && m->resolved == NULL)
        r = buf_putz(b, "None");
    else if (r == 0) {
        r = buf_putz(b, "Some(AbsolutePathBuf(");
        if (r == 0)
            r = show_str(b, str_of(m->resolved));
        if (r == 0)
            r = buf_putz(b, "))");
    }
    if (r == 0)
        r = buf_putz(b, ", ");
    return r < 0 ? r : show_end(b, m->rule);
}

/* -- examples -- */

/* An example that must not match, but does. */
static int examples_fail_not(struct buf *error, const struct execpolicy_match *m,
                             const struct execpolicy_words *example) {
    int r = buf_putz(error, "expected example to not match rule `");
    if (r == 0)
        r = show_match(error, m, example);
    if (r == 0)
        r = buf_putz(error, "`: ");
    if (r == 0)
        r = shlex_join(error, example->list, example->n);
    if (r == 0)
        r = buf_putc(error, '\n');
    return r < 0 ? r : -EINVAL;
}

static int examples_fail(const struct execpolicy *p, const struct execpolicy_examples *e,
                         const struct str *unmatched, size_t n, struct buf *error) {
    int r = buf_putz(error, "expected every example to match at least one rule. rules: [");
    for (size_t i = e->first; r == 0 && i < e->first + e->n; i++) {
        _cleanup_buf_ struct buf text = BUF_INIT(error->max);
        r = i > e->first ? buf_putz(error, ", ") : 0;
        if (r == 0)
            r = show_rule(&text, &p->rules[i]);
        if (r == 0)
            r = show_str(error, buf_str(&text));
    }
    if (r == 0)
        r = buf_putz(error, "]; unmatched examples: ");
    if (r == 0)
        r = show_list(error, unmatched, n);
    if (r == 0)
        r = buf_putc(error, '\n');
    return r < 0 ? r : -EINVAL;
}

static int examples_check(const struct execpolicy *p, const struct execpolicy_examples *e,
                          const struct execpolicy_place *place, struct buf *error) {
    _cleanup_arena_ struct arena a = ARENA_INIT(EXECPOLICY_MEMORY_MAX);
    struct execpolicy_matches m;
    int r = 0;
    for (size_t i = 0; r == 0 && i < e->not_match_count; i++) {
        r = match_range(p, e->first, e->n, &e->not_match[i], place, &a, &m);
        if (r == 0 && m.n > 0)
            r = examples_fail_not(error, &m.list[0], &e->not_match[i]);
    }
    struct str *unmatched = arena_calloc(&a, e->match_count + 1, sizeof *unmatched);
    size_t n = 0;
    for (size_t i = 0; r == 0 && unmatched != NULL && i < e->match_count; i++) {
        r = match_range(p, e->first, e->n, &e->match[i], place, &a, &m);
        if (r < 0 || m.n > 0)
            continue;
        _cleanup_buf_ struct buf text = BUF_INIT(error->max);
        r = shlex_join(&text, e->match[i].list, e->match[i].n);
        const char *kept = r < 0 ? NULL : arena_strdup(&a, buf_str(&text));
        if (kept == NULL)
            return -ENOMEM;
        unmatched[n++] = (struct str){kept, text.len};
    }
    if (r == 0 && unmatched == NULL)
        return -ENOMEM;
    return r == 0 && n > 0 ? examples_fail(p, e, unmatched, n, error) : r;
}

/* In the order of the calls. */
static int examples_check_all(struct execpolicy *p, struct buf *error) {
    struct execpolicy_examples *list = NULL, *next;
    for (struct execpolicy_examples *e = p->examples; e != NULL; e = next) {
        next = e->next;
        e->next = list;
        list = e;
    }
    p->examples = NULL;
    char cwd[4096];
    struct execpolicy_place place = {getcwd(cwd, sizeof cwd) != NULL ? cwd : "/", getenv("HOME")};
    int r = 0;
    for (; r == 0 && list != NULL; list = list->next)
        r = examples_check(p, list, &place, error);
    return r;
}

int execpolicy_add(struct execpolicy *p, const char *file, struct str text, struct buf *error) {
    struct star_source source = {file, text};
    size_t begin = error->len;
    int r = buf_putz(error, "starlark error: ");
    if (r < 0)
        return r;
    r = star_run(&source, execpolicy_natives, EXECPOLICY_NATIVES, p, error);
    if (r < 0)
        return r;
    error->len = begin;
    return examples_check_all(p, error);
}

/* -- JSON -- */

/* A line break with indentation, or nothing. */
static int json_break(struct buf *b, bool pretty, size_t depth) {
    int r = pretty ? buf_putc(b, '\n') : 0;
    for (size_t i = 0; r == 0 && pretty && i < depth; i++)
        r = buf_putz(b, "  ");
    return r;
}

static int json_key(struct buf *b, bool pretty, size_t depth, bool first, const char *key) {
    int r = first ? 0 : buf_putc(b, ',');
    if (r == 0)
        r = json_break(b, pretty, depth);
    return r < 0 ? r : buf_putf(b, "\"%s\":%s", key, pretty ? " " : "");
}

static int json_prefix(struct buf *b, bool pretty, const struct execpolicy_match *m,
                       const struct execpolicy_words *command) {
    int r = buf_putc(b, '[');
    for (size_t i = 0; r == 0 && i <= m->rule->n; i++) {
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = json_break(b, pretty, 5);
        if (r == 0)
            r = jsonw_str(b, i == 0 ? m->rule->first : command->list[i]);
    }
    if (r == 0)
        r = json_break(b, pretty, 4);
    return r < 0 ? r : buf_putc(b, ']');
}

static int json_match(struct buf *b, bool pretty, const struct execpolicy_match *m,
                      const struct execpolicy_words *command) {
    int r = json_break(b, pretty, 2);
    if (r == 0)
        r = buf_putc(b, '{');
    if (r == 0)
        r = json_key(b, pretty, 3, true, "prefixRuleMatch");
    if (r == 0)
        r = buf_putc(b, '{');
    if (r == 0)
        r = json_key(b, pretty, 4, true, "matchedPrefix");
    if (r == 0)
        r = json_prefix(b, pretty, m, command);
    if (r == 0)
        r = json_key(b, pretty, 4, false, "decision");
    if (r == 0)
        r = jsonw_str(b, str_of(execpolicy_decision_name(m->rule->decision)));
    if (r == 0 && m->resolved != NULL)
        r = json_key(b, pretty, 4, false, "resolvedProgram");
    if (r == 0 && m->resolved != NULL)
        r = jsonw_str(b, str_of(m->resolved));
    if (r == 0 && m->rule->justification.p != NULL)
        r = json_key(b, pretty, 4, false, "justification");
    if (r == 0 && m->rule->justification.p != NULL)
        r = jsonw_str(b, m->rule->justification);
    if (r == 0)
        r = json_break(b, pretty, 3);
    if (r == 0)
        r = buf_putc(b, '}');
    if (r == 0)
        r = json_break(b, pretty, 2);
    return r < 0 ? r : buf_putc(b, '}');
}

int execpolicy_put_json(struct buf *b, const struct execpolicy_words *command,
                        const struct execpolicy_matches *m, bool pretty) {
    int r = buf_putc(b, '{');
    if (r == 0)
        r = json_key(b, pretty, 1, true, "matchedRules");
    if (r == 0)
        r = buf_putc(b, '[');
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = json_match(b, pretty, &m->list[i], command);
    }
    if (r == 0 && m->n > 0)
        r = json_break(b, pretty, 1);
    if (r == 0)
        r = buf_putc(b, ']');
    if (r == 0 && m->n > 0)
        r = json_key(b, pretty, 1, false, "decision");
    if (r == 0 && m->n > 0)
        r = jsonw_str(b, str_of(execpolicy_decision_name(m->decision)));
    if (r == 0)
        r = json_break(b, pretty, 0);
    return r < 0 ? r : buf_putc(b, '}');
}
