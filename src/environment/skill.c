#include "environment/skill.h"

#include "base/utf8.h"
#include "json/jsonw.h"

#include <errno.h>

/* -- text -- */

/* The length of the white space that the text begins with, 0 or that of one character. */
static size_t skill_space(struct str s) {
    uint32_t c;
    if (s.n == 0)
        return 0;
    size_t n = utf8_decode(s.p, s.n, &c);
    bool space = (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
                 (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
                 c == 0x205f || c == 0x3000;
    return space ? n : 0;
}

struct str skill_trim(struct str s) {
    size_t n, end = 0;
    while ((n = skill_space(s)) > 0)
        str_take(&s, n);
    for (size_t i = 0; i < s.n;) {
        n = skill_space((struct str){s.p + i, s.n - i});
        i += MAX(n, (size_t)1);
        if (n == 0)
            end = i;
    }
    s.n = end;
    return s;
}

struct str skill_one_line(struct arena *a, struct str text) {
    char *line = arena_alloc(a, text.n + 1);
    size_t n = 0;
    if (line == NULL)
        return (struct str){NULL, 0};
    text = skill_trim(text);
    while (text.n > 0) {
        size_t space = skill_space(text);
        if (space == 0) {
            line[n++] = *str_take(&text, 1);
            continue;
        }
        line[n++] = ' ';
        for (; space > 0; space = skill_space(text))
            str_take(&text, space);
    }
    return (struct str){line, n};
}

size_t skill_chars(struct str s) {
    size_t count = 0;
    for (size_t i = 0; i < s.n; i++)
        count += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return count;
}

/* Takes a line off the front, without its end. False at the end of the text. */
static bool skill_take_line(struct str *text, struct str *line) {
    if (text->n == 0)
        return false;
    const char *end = memchr(text->p, '\n', text->n);
    size_t n = end != NULL ? (size_t)(end - text->p) : text->n;
    *line = (struct str){text->p, n};
    str_take(text, end != NULL ? n + 1 : n);
    if (end != NULL && n > 0 && line->p[n - 1] == '\r')
        line->n--;
    return true;
}

/* -- the repair of front matter that is almost YAML -- */

/* A mapping's line: the key, and its value without the comment. */
struct entry {
    struct str key;     /* up to the colon */
    struct str blank;   /* behind it */
    struct str value;   /* empty: there is none */
    struct str comment; /* with the blank before it */
};

/* Splits off a comment: a `#` at the beginning, or behind white space. */
static void entry_cut_comment(struct entry *x) {
    struct str rest = x->value;
    bool blank = true;
    for (size_t i = 0; i < rest.n; i++) {
        struct str here = {rest.p + i, rest.n - i};
        if (rest.p[i] == '#' && blank) {
            struct str before = {rest.p, i};
            size_t start = 0;
            for (size_t k = 0; k < before.n;) {
                size_t n = skill_space((struct str){before.p + k, before.n - k});
                k += MAX(n, (size_t)1);
                if (n == 0)
                    start = k;
            }
            x->value.n = start;
            x->comment = (struct str){rest.p + start, rest.n - start};
            return;
        }
        size_t n = skill_space(here);
        blank = n > 0;
        i += n > 1 ? n - 1 : 0;
    }
}

/* False: the line is no entry. */
static bool entry_read(struct str line, struct entry *x) {
    const char *colon = memchr(line.p != NULL ? line.p : "", ':', line.n);
    if (colon == NULL)
        return false;
    *x = (struct entry){.key = {line.p, (size_t)(colon - line.p)}};
    struct str rest = {colon + 1, line.n - x->key.n - 1};
    if (skill_trim(x->key).n == 0 || (rest.n > 0 && skill_space(rest) == 0))
        return false;
    x->blank.p = rest.p;
    for (size_t n; (n = skill_space(rest)) > 0;)
        str_take(&rest, n);
    x->blank.n = (size_t)(rest.p - x->blank.p);
    x->value = rest;
    x->comment = (struct str){rest.p + rest.n, 0};
    entry_cut_comment(x);
    struct str trimmed = skill_trim(x->value);
    x->value.n = trimmed.n; /* nothing to cut at the front */
    return true;
}

static bool entry_has_colon(struct str value) {
    for (size_t i = 0; i + 1 < value.n; i++) {
        if (value.p[i] == ':' && skill_space((struct str){value.p + i + 1, value.n - i - 1}) > 0)
            return true;
    }
    return false;
}

/* Whether the value must be quoted to be what its writer meant. */
static bool entry_is_prose(struct arena *a, struct str value) {
    const struct yaml_node *ignored;
    if (entry_has_colon(value))
        return true;
    return memchr("[{@`", value.p[0], 4) != NULL && yaml_parse(a, value, &ignored) < 0;
}

static int entry_put_quoted(struct buf *b, const struct entry *x) {
    int r = buf_put(b, x->key.p, x->key.n);
    if (r == 0)
        r = buf_putc(b, ':');
    if (r == 0)
        r = buf_put(b, x->blank.p, x->blank.n);
    if (r == 0)
        r = buf_putc(b, '\'');
    for (size_t i = 0; r == 0 && i < x->value.n; i++) {
        if (x->value.p[i] == '\'')
            r = buf_putc(b, '\'');
        if (r == 0)
            r = buf_putc(b, x->value.p[i]);
    }
    if (r == 0)
        r = buf_putc(b, '\'');
    return r < 0 ? r : buf_put(b, x->comment.p, x->comment.n);
}

/* Appends the front matter with prose in quotes. 1 if there was some, 0 if not, or -errno. */
static int skill_repair(struct arena *a, struct str front, struct buf *b) {
    bool changed = false, block = false;
    size_t block_indent = 0;
    for (struct str line; skill_take_line(&front, &line);) {
        size_t indent = 0;
        while (indent < line.n && line.p[indent] == ' ')
            indent++;
        struct entry x;
        block = block && (skill_trim(line).n == 0 || indent > block_indent);
        bool entry = !block && entry_read(line, &x) && x.value.n > 0;
        if (entry && (x.value.p[0] == '|' || x.value.p[0] == '>')) {
            block = true;
            block_indent = indent;
        }
        bool quote =
            entry && memchr("|>'\"", x.value.p[0], 4) == NULL && entry_is_prose(a, x.value);
        int r = quote ? entry_put_quoted(b, &x) : buf_put(b, line.p, line.n);
        if (r == 0)
            r = buf_putc(b, '\n');
        if (r < 0)
            return r == -ENOBUFS ? -EINVAL : r;
        changed |= quote;
    }
    return changed;
}

/* -- front matter -- */

/* Finds the text between the first two lines "---". False: there is none. */
static bool skill_find_front(struct str text, struct str *front) {
    struct str line;
    if (!skill_take_line(&text, &line) || !str_eqz(skill_trim(line), "---"))
        return false;
    *front = (struct str){text.p, 0};
    while (skill_take_line(&text, &line)) {
        if (str_eqz(skill_trim(line), "---"))
            return front->n > 0;
        front->n = (size_t)(text.p - front->p);
    }
    return false;
}

/* The texts as they stand. */
static int skill_decode_front(struct arena *a, struct str front, struct skill_front *out) {
    const struct yaml_node *root, *name, *description, *metadata, *brief = NULL;
    int r = yaml_parse(a, front, &root);
    if (r == 0 && (root == NULL || root->type != YAML_MAPPING))
        r = -EINVAL;
    if (r == 0)
        r = yaml_get(root, "name", &name);
    if (r == 0)
        r = yaml_text(name, &out->name);
    if (r == 0)
        r = yaml_get(root, "description", &description);
    if (r == 0)
        r = yaml_text(description, &out->description);
    if (r == 0)
        r = yaml_get(root, "metadata", &metadata);
    if (r == 0)
        r = yaml_get(metadata, "short-description", &brief);
    return r < 0 ? r : yaml_text(brief, &out->short_description);
}

int skill_read_front(struct arena *a, struct str text, struct str fallback,
                     struct skill_front *out) {
    struct str front;
    if (!skill_find_front(text, &front))
        return -EINVAL;
    int r = skill_decode_front(a, front, out);
    if (r == -EINVAL) {
        _cleanup_buf_ struct buf mended = BUF_INIT(YAML_TEXT_MAX);
        r = skill_repair(a, front, &mended);
        if (r <= 0)
            return r < 0 ? r : -EINVAL;
        r = skill_decode_front(a, buf_str(&mended), out);
    }
    if (r < 0)
        return r;
    out->name = skill_one_line(a, out->name);
    out->description = skill_one_line(a, out->description);
    if (out->short_description.p != NULL)
        out->short_description = skill_one_line(a, out->short_description);
    if (out->short_description.n == 0)
        out->short_description.p = NULL;
    if (out->name.p == NULL || out->description.p == NULL)
        return -ENOMEM;
    if (out->name.n == 0)
        out->name = fallback;
    bool fits = out->name.n > 0 && skill_chars(out->name) <= SKILL_NAME_MAX;
    return fits && out->description.n > 0 ? 0 : -EINVAL;
}

/* -- metadata -- */

struct tool {
    struct str type, value, description, transport, command, url; /* p NULL: none */
    int64_t port;                                                 /* -1: none */
};

struct metadata {
    struct tool *tools;
    size_t tool_count, tool_cap;
    struct str *products;
    size_t product_count, product_cap;
    bool has_policy;
    int implicit; /* -1: not said */
};

/* Reads a text member in one line; an empty or long one counts as none. */
static int metadata_text(struct arena *a, const struct yaml_node *of, const char *key, size_t max,
                         struct str *out) {
    const struct yaml_node *n;
    int r = yaml_get(of, key, &n);
    if (r == 0)
        r = yaml_text(n, out);
    if (r < 0 || out->p == NULL)
        return r;
    *out = skill_one_line(a, *out);
    if (out->p == NULL)
        return -ENOMEM;
    if (out->n == 0 || skill_chars(*out) > max)
        out->p = NULL;
    return 0;
}

static int metadata_port(const struct yaml_node *tool, int64_t *port) {
    const struct yaml_node *oauth, *camel, *snake;
    *port = -1;
    int r = yaml_get(tool, "oauth", &oauth);
    if (r < 0 || oauth == NULL || yaml_is_null(oauth))
        return r;
    r = yaml_get(oauth, "callbackPort", &camel);
    if (r == 0)
        r = yaml_get(oauth, "callback_port", &snake);
    if (r < 0 || (camel != NULL && snake != NULL))
        return -EINVAL;
    return yaml_uint(camel != NULL ? camel : snake, UINT16_MAX, port);
}

static int metadata_tool(struct arena *a, const struct yaml_node *n, struct metadata *m) {
    struct tool t = {.port = -1};
    const struct {
        const char *key;
        size_t max;
        struct str *out;
    } texts[] = {{"type", SKILL_NAME_MAX, &t.type},
                 {"value", SKILL_FIELD_MAX, &t.value},
                 {"description", SKILL_FIELD_MAX, &t.description},
                 {"transport", SKILL_NAME_MAX, &t.transport},
                 {"command", SKILL_FIELD_MAX, &t.command},
                 {"url", SKILL_FIELD_MAX, &t.url}};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(texts); i++)
        r = metadata_text(a, n, texts[i].key, texts[i].max, texts[i].out);
    if (r == 0)
        r = metadata_port(n, &t.port);
    if (r < 0 || t.type.p == NULL || t.value.p == NULL)
        return r;
    struct tool *tools = arena_grow(a, m->tools, m->tool_count, &m->tool_cap, 4, sizeof t);
    if (tools == NULL)
        return -ENOMEM;
    m->tools = tools;
    m->tools[m->tool_count++] = t;
    return 0;
}

/* The member of a struct that is a list; *items is NULL if it is missing or empty. */
static int metadata_list(const struct yaml_node *of, const char *key,
                         const struct yaml_item **items) {
    const struct yaml_node *n;
    *items = NULL;
    int r = yaml_get(of, key, &n);
    if (r < 0 || n == NULL || yaml_is_empty(n))
        return r;
    if (n->type != YAML_SEQUENCE)
        return -EINVAL;
    *items = n->first;
    return 0;
}

static int metadata_dependencies(struct arena *a, const struct yaml_node *root,
                                 struct metadata *m) {
    const struct yaml_node *n;
    const struct yaml_item *items = NULL;
    int r = yaml_get(root, "dependencies", &n);
    if (r == 0 && n != NULL && !yaml_is_null(n))
        r = metadata_list(n, "tools", &items);
    for (; r == 0 && items != NULL; items = items->next)
        r = metadata_tool(a, items->node, m);
    return r;
}

static int metadata_product(struct arena *a, const struct yaml_node *n, struct metadata *m) {
    static const char *const names[][2] = {
        {"chatgpt", "CHATGPT"}, {"codex", "CODEX"}, {"atlas", "ATLAS"}};
    struct str *products =
        arena_grow(a, m->products, m->product_count, &m->product_cap, 4, sizeof *products);
    if (products == NULL)
        return -ENOMEM;
    m->products = products;
    struct str text = n->text;
    if (n->type == YAML_SCALAR && n->tag.n > 1 && n->tag.p[0] == '!' && text.n == 0)
        text = (struct str){n->tag.p + 1, n->tag.n - 1};
    for (size_t i = 0; n->type == YAML_SCALAR && i < ARRAY_LEN(names); i++) {
        if (str_eqz(text, names[i][0]) || str_eqz(text, names[i][1])) {
            m->products[m->product_count++] = str_of(names[i][0]);
            return 0;
        }
    }
    return -EINVAL;
}

static int metadata_policy(struct arena *a, const struct yaml_node *root, struct metadata *m) {
    const struct yaml_node *n, *implicit;
    const struct yaml_item *items;
    int r = yaml_get(root, "policy", &n);
    if (r < 0 || n == NULL || yaml_is_null(n))
        return r;
    m->has_policy = true;
    r = yaml_get(n, "allow_implicit_invocation", &implicit);
    if (r == 0)
        r = yaml_bool(implicit, &m->implicit);
    if (r == 0)
        r = metadata_list(n, "products", &items);
    for (; r == 0 && items != NULL; items = items->next)
        r = metadata_product(a, items->node, m);
    return r;
}

/* The interface is not for this answer, but a faulty one makes the whole file faulty. */
static int metadata_interface(const struct yaml_node *root) {
    static const char *const texts[] = {"display_name", "short_description", "icon_small",
                                        "icon_large",   "brand_color",       "default_prompt"};
    const struct yaml_node *n, *value;
    struct str ignored;
    int r = yaml_get(root, "interface", &n);
    if (r < 0 || n == NULL || yaml_is_null(n))
        return r;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(texts); i++) {
        r = yaml_get(n, texts[i], &value);
        if (r == 0)
            r = yaml_text(value, &ignored);
    }
    return r;
}

static int metadata_read(struct arena *a, struct str yaml, struct metadata *m) {
    const struct yaml_node *root;
    *m = (struct metadata){.implicit = -1};
    int r = yaml_parse(a, yaml, &root);
    if (r == 0 && (root == NULL || root->type != YAML_MAPPING))
        r = -EINVAL;
    if (r == 0)
        r = metadata_interface(root);
    if (r == 0)
        r = metadata_dependencies(a, root, m);
    return r < 0 ? r : metadata_policy(a, root, m);
}

static int metadata_put_text(struct buf *b, const char *name, struct str text) {
    int r = buf_putf(b, "\"%s\":", name);
    if (r == 0)
        r = text.p != NULL ? jsonw_str(b, text) : buf_putz(b, "null");
    return r < 0 ? r : buf_putc(b, ',');
}

static int metadata_put_tool(struct buf *b, const struct tool *t) {
    int r = buf_putc(b, '{');
    if (r == 0)
        r = metadata_put_text(b, "type", t->type);
    if (r == 0)
        r = metadata_put_text(b, "value", t->value);
    if (r == 0)
        r = metadata_put_text(b, "description", t->description);
    if (r == 0)
        r = metadata_put_text(b, "transport", t->transport);
    if (r == 0)
        r = metadata_put_text(b, "command", t->command);
    if (r == 0)
        r = metadata_put_text(b, "url", t->url);
    if (r < 0)
        return r;
    return t->port < 0 ? buf_putz(b, "\"oauthCallbackPort\":null}")
                       : buf_putf(b, "\"oauthCallbackPort\":%d}", (int)t->port);
}

static int metadata_put_tools(struct buf *b, const struct metadata *m) {
    if (m->tool_count == 0)
        return buf_putz(b, "null");
    int r = buf_putz(b, "{\"tools\":[");
    for (size_t i = 0; r == 0 && i < m->tool_count; i++) {
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = metadata_put_tool(b, &m->tools[i]);
    }
    return r < 0 ? r : buf_putz(b, "]}");
}

static int metadata_put_policy(struct buf *b, const struct metadata *m) {
    static const char *const words[] = {"null", "false", "true"};
    if (!m->has_policy)
        return buf_putz(b, "null");
    int r = buf_putf(b, "{\"allowImplicitInvocation\":%s,\"products\":[", words[m->implicit + 1]);
    for (size_t i = 0; r == 0 && i < m->product_count; i++)
        r = buf_putf(b, "%s\"%s\"", i > 0 ? "," : "", m->products[i].p);
    return r < 0 ? r : buf_putz(b, "]}");
}

int skill_put_metadata(struct arena *a, struct str yaml, struct buf *b) {
    struct metadata m = {.implicit = -1};
    int r = yaml.p != NULL ? metadata_read(a, yaml, &m) : 0;
    if (r == -EINVAL)
        m = (struct metadata){.implicit = -1};
    else if (r < 0)
        return r;
    r = buf_putz(b, "\"dependencies\":");
    if (r == 0)
        r = metadata_put_tools(b, &m);
    if (r == 0)
        r = buf_putz(b, ",\"policy\":");
    return r < 0 ? r : metadata_put_policy(b, &m);
}
