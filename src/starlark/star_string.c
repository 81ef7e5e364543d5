#include "starlark/star_internal.h"

#include "base/utf8.h"

#include <errno.h>

/* -- characters: letters beyond ASCII are neither upper nor lower case here -- */

static bool char_is_upper(unsigned char c) {
    return c >= 'A' && c <= 'Z';
}

static bool char_is_lower(unsigned char c) {
    return c >= 'a' && c <= 'z';
}

static bool char_is_alpha(unsigned char c) {
    return char_is_upper(c) || char_is_lower(c) || c >= 0x80;
}

static bool char_is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}

static bool char_is_alnum(unsigned char c) {
    return char_is_alpha(c) || char_is_digit(c);
}

static bool char_is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char char_upper(char c) {
    return char_is_lower((unsigned char)c) ? (char)(c - 32) : c;
}

static char char_lower(char c) {
    return char_is_upper((unsigned char)c) ? (char)(c + 32) : c;
}

/* -- helpers -- */

static struct str text_of(const struct star_args *a) {
    return a->self->text;
}

static bool want_text(struct star *s, const struct star_args *a, size_t i, const char *name) {
    return a->v[i] == NULL || star_value_want(s, a->v[i], STAR_STRING, "str", name);
}

/* A changed copy; NULL after a failure. */
static char *text_copy(struct star *s, struct str t) {
    char *p = star_work(s, t.n / 16) ? star_alloc(s, t.n + 1) : NULL;
    if (p != NULL && t.n > 0)
        memcpy(p, t.p, t.n);
    return p;
}

static struct star_value *map_text(struct star *s, struct str t, char (*fn)(char)) {
    char *p = text_copy(s, t);
    for (size_t i = 0; p != NULL && i < t.n; i++)
        p[i] = fn(p[i]);
    return p == NULL ? NULL : star_value_string(s, (struct str){p, t.n});
}

static const char *find_text(struct str in, struct str what) {
    if (what.n == 0)
        return in.p != NULL ? in.p : "";
    return in.n < what.n ? NULL : memmem(in.p, in.n, what.p, what.n);
}

static const char *find_last(struct str in, struct str what) {
    for (size_t i = in.n < what.n ? 0 : in.n - what.n + 1; i-- > 0;) {
        if (what.n == 0 || memcmp(in.p + i, what.p, what.n) == 0)
            return in.p + i;
    }
    return NULL;
}

static bool starts_with(struct str t, struct str with) {
    return t.n >= with.n && (with.n == 0 || memcmp(t.p, with.p, with.n) == 0);
}

static bool ends_with(struct str t, struct str with) {
    return t.n >= with.n && (with.n == 0 || memcmp(t.p + t.n - with.n, with.p, with.n) == 0);
}

static struct str part(struct str t, size_t begin, size_t end) {
    return (struct str){t.p + begin, end - begin};
}

/* -- case -- */

static struct star_value *string_upper(struct star *s, const struct star_args *a) {
    return map_text(s, text_of(a), char_upper);
}

static struct star_value *string_lower(struct star *s, const struct star_args *a) {
    return map_text(s, text_of(a), char_lower);
}

static struct star_value *string_capitalize(struct star *s, const struct star_args *a) {
    struct star_value *v = map_text(s, text_of(a), char_lower);
    if (v != NULL && v->text.n > 0)
        *(char *)(uintptr_t)v->text.p = char_upper(v->text.p[0]);
    return v;
}

static struct star_value *string_title(struct star *s, const struct star_args *a) {
    char *p = text_copy(s, text_of(a));
    bool inside = false;
    for (size_t i = 0; p != NULL && i < text_of(a).n; i++) {
        p[i] = inside ? char_lower(p[i]) : char_upper(p[i]);
        inside = char_is_alpha((unsigned char)p[i]);
    }
    return p == NULL ? NULL : star_value_string(s, (struct str){p, text_of(a).n});
}

/* -- questions -- */

static struct star_value *all_are(struct star *s, struct str t, bool (*is)(unsigned char)) {
    bool yes = t.n > 0;
    for (size_t i = 0; yes && i < t.n; i++)
        yes = is((unsigned char)t.p[i]);
    return star_value_bool(s, yes);
}

static struct star_value *string_isalnum(struct star *s, const struct star_args *a) {
    return all_are(s, text_of(a), char_is_alnum);
}

static struct star_value *string_isalpha(struct star *s, const struct star_args *a) {
    return all_are(s, text_of(a), char_is_alpha);
}

static struct star_value *string_isdigit(struct star *s, const struct star_args *a) {
    return all_are(s, text_of(a), char_is_digit);
}

static struct star_value *string_isspace(struct star *s, const struct star_args *a) {
    return all_are(s, text_of(a), char_is_space);
}

static struct star_value *has_case(struct star *s, struct str t, bool upper) {
    bool some = false;
    for (size_t i = 0; i < t.n; i++) {
        unsigned char c = (unsigned char)t.p[i];
        if (upper ? char_is_lower(c) : char_is_upper(c))
            return star_value_bool(s, false);
        some |= upper ? char_is_upper(c) : char_is_lower(c);
    }
    return star_value_bool(s, some);
}

static struct star_value *string_isupper(struct star *s, const struct star_args *a) {
    return has_case(s, text_of(a), true);
}

static struct star_value *string_islower(struct star *s, const struct star_args *a) {
    return has_case(s, text_of(a), false);
}

static struct star_value *string_istitle(struct star *s, const struct star_args *a) {
    bool inside = false, some = false;
    for (size_t i = 0; i < text_of(a).n; i++) {
        unsigned char c = (unsigned char)text_of(a).p[i];
        if ((char_is_upper(c) && inside) || (char_is_lower(c) && !inside))
            return star_value_bool(s, false);
        inside = char_is_alpha(c);
        some |= inside;
    }
    return star_value_bool(s, some);
}

/* startswith and endswith take one text or a tuple of them. */
static struct star_value *matches_end(struct star *s, const struct star_args *a, const char *name,
                                      bool (*matches)(struct str, struct str)) {
    struct star_value *v = a->v[0];
    if (v->type == STAR_STRING)
        return star_value_bool(s, matches(text_of(a), v->text));
    if (!star_value_want(s, v, STAR_TUPLE, "str | tuple[str, ...]", name))
        return NULL;
    for (size_t i = 0; i < v->list.n; i++) {
        if (!star_value_want(s, v->list.items[i], STAR_STRING, "str", name))
            return NULL;
        if (matches(text_of(a), v->list.items[i]->text))
            return star_value_bool(s, true);
    }
    return star_value_bool(s, false);
}

static struct star_value *string_startswith(struct star *s, const struct star_args *a) {
    return matches_end(s, a, "prefix", starts_with);
}

static struct star_value *string_endswith(struct star *s, const struct star_args *a) {
    return matches_end(s, a, "suffix", ends_with);
}

/* -- searching -- */

/* The part of the text between the optional start and end (characters); *skipped: before it. */
static bool search_part(struct star *s, const struct star_args *a, struct str *out,
                        size_t *skipped) {
    struct str t = text_of(a);
    int64_t n = (int64_t)star_value_chars(t), bound[2] = {0, n};
    for (size_t i = 0; i < 2; i++) {
        if (a->v[i + 1] == NULL || a->v[i + 1]->type == STAR_NONE)
            continue;
        if (!star_ops_small(s, a->v[i + 1], &bound[i]))
            return false;
        bound[i] = bound[i] < 0 ? MAX(bound[i] + n, 0) : MIN(bound[i], n);
    }
    size_t begin = star_value_char_at(t, (size_t)bound[0]);
    size_t end = bound[1] <= bound[0] ? begin : star_value_char_at(t, (size_t)bound[1]);
    *out = part(t, begin, end);
    *skipped = (size_t)bound[0];
    return star_work(s, t.n / 64);
}

static struct star_value *search(struct star *s, const struct star_args *a, bool last, bool must) {
    struct str in;
    size_t skipped;
    if (!want_text(s, a, 0, "needle") || !search_part(s, a, &in, &skipped))
        return NULL;
    const char *at = last ? find_last(in, a->v[0]->text) : find_text(in, a->v[0]->text);
    if (at != NULL) {
        struct str before = {in.p, in.n == 0 ? 0 : (size_t)(at - in.p)};
        return star_value_number(s, (int64_t)(skipped + star_value_chars(before)));
    }
    if (!must)
        return star_value_number(s, -1);
    return star_fail(s, "Substring '%.*s' not found in '%.*s'", (int)a->v[0]->text.n,
                     a->v[0]->text.p, (int)text_of(a).n, text_of(a).p);
}

static struct star_value *string_find(struct star *s, const struct star_args *a) {
    return search(s, a, false, false);
}

static struct star_value *string_rfind(struct star *s, const struct star_args *a) {
    return search(s, a, true, false);
}

static struct star_value *string_index(struct star *s, const struct star_args *a) {
    return search(s, a, false, true);
}

static struct star_value *string_rindex(struct star *s, const struct star_args *a) {
    return search(s, a, true, true);
}

static struct star_value *string_count(struct star *s, const struct star_args *a) {
    struct str in;
    size_t skipped, n = 0;
    if (!want_text(s, a, 0, "needle") || !search_part(s, a, &in, &skipped))
        return NULL;
    struct str what = a->v[0]->text;
    if (what.n == 0)
        return star_value_number(s, (int64_t)star_value_chars(in) + 1);
    for (const char *at; (at = find_text(in, what)) != NULL; n++)
        in = part(in, (size_t)(at - in.p) + what.n, in.n);
    return star_value_number(s, (int64_t)n);
}

/* -- cutting -- */

static bool in_set(struct str set, struct str c) {
    return find_text(set, c) != NULL && c.n > 0;
}

static struct star_value *strip(struct star *s, const struct star_args *a, bool left, bool right) {
    struct str t = text_of(a);
    if (!want_text(s, a, 0, "chars") || !star_work(s, t.n / 16))
        return NULL;
    const struct str set = a->v[0] != NULL ? a->v[0]->text : STR_LIT(" \t\n\r\f\v");
    while (left && t.n > 0) {
        size_t n = star_value_char_at(t, 1);
        if (!in_set(set, part(t, 0, n)))
            break;
        t = part(t, n, t.n);
    }
    while (right && t.n > 0) {
        size_t at = t.n - 1;
        while (at > 0 && ((unsigned char)t.p[at] & 0xC0) == 0x80)
            at--;
        if (!in_set(set, part(t, at, t.n)))
            break;
        t.n = at;
    }
    return star_value_string(s, t);
}

static struct star_value *string_strip(struct star *s, const struct star_args *a) {
    return strip(s, a, true, true);
}

static struct star_value *string_lstrip(struct star *s, const struct star_args *a) {
    return strip(s, a, true, false);
}

static struct star_value *string_rstrip(struct star *s, const struct star_args *a) {
    return strip(s, a, false, true);
}

static struct star_value *string_removeprefix(struct star *s, const struct star_args *a) {
    struct str t = text_of(a);
    if (!want_text(s, a, 0, "prefix"))
        return NULL;
    return star_value_string(s, starts_with(t, a->v[0]->text) ? part(t, a->v[0]->text.n, t.n) : t);
}

static struct star_value *string_removesuffix(struct star *s, const struct star_args *a) {
    struct str t = text_of(a);
    if (!want_text(s, a, 0, "suffix"))
        return NULL;
    return star_value_string(s,
                             ends_with(t, a->v[0]->text) ? part(t, 0, t.n - a->v[0]->text.n) : t);
}

static bool add_text(struct star *s, struct star_value *list, struct str t) {
    struct star_value *v = list == NULL ? NULL : star_value_string(s, t);
    return v != NULL && star_value_append(s, &list->list, v);
}

static struct star_value *partition(struct star *s, const struct star_args *a, bool last) {
    struct str t = text_of(a);
    if (!want_text(s, a, 0, "needle"))
        return NULL;
    struct str what = a->v[0]->text;
    if (what.n == 0)
        return star_fail(s, "Empty separator cannot be used for partitioning");
    const char *at = last ? find_last(t, what) : find_text(t, what);
    struct star_value *v = star_value_list(s, STAR_TUPLE, 3);
    size_t i = at == NULL ? 0 : (size_t)(at - t.p);
    struct str none = {"", 0};
    struct str before = at != NULL ? part(t, 0, i) : last ? none : t;
    struct str after = at != NULL ? part(t, i + what.n, t.n) : last ? t : none;
    return add_text(s, v, before) && add_text(s, v, at != NULL ? what : none) &&
                   add_text(s, v, after)
               ? v
               : NULL;
}

static struct star_value *string_partition(struct star *s, const struct star_args *a) {
    return partition(s, a, false);
}

static struct star_value *string_rpartition(struct star *s, const struct star_args *a) {
    return partition(s, a, true);
}

/* -- splitting and joining -- */

/* Pieces between white space; `most` cuts. */
static bool split_blank(struct star *s, struct str t, int64_t most, struct star_value *out) {
    size_t i = 0;
    for (int64_t cuts = 0;; cuts++) {
        while (i < t.n && char_is_space((unsigned char)t.p[i]))
            i++;
        if (i == t.n)
            return true;
        size_t begin = i;
        if (cuts == most) {
            while (t.n > begin && char_is_space((unsigned char)t.p[t.n - 1]))
                t.n--;
            return add_text(s, out, part(t, begin, t.n));
        }
        while (i < t.n && !char_is_space((unsigned char)t.p[i]))
            i++;
        if (!add_text(s, out, part(t, begin, i)))
            return false;
    }
}

static bool split_by(struct star *s, struct str t, struct str by, int64_t most,
                     struct star_value *out) {
    for (int64_t cuts = 0; cuts < most; cuts++) {
        const char *at = find_text(t, by);
        if (at == NULL)
            break;
        size_t i = (size_t)(at - t.p);
        if (!add_text(s, out, part(t, 0, i)))
            return false;
        t = part(t, i + by.n, t.n);
    }
    return add_text(s, out, t);
}

/* From the right; the pieces come in reverse. */
static bool rsplit_pieces(struct star *s, struct str t, const struct str *by, int64_t most,
                          struct star_value *out) {
    for (int64_t cuts = 0; cuts < most; cuts++) {
        while (by == NULL && t.n > 0 && char_is_space((unsigned char)t.p[t.n - 1]))
            t.n--;
        size_t i = t.n;
        if (by == NULL) {
            while (i > 0 && !char_is_space((unsigned char)t.p[i - 1]))
                i--;
            if (t.n == 0)
                return true;
        } else {
            const char *at = find_last(t, *by);
            if (at == NULL)
                break;
            i = (size_t)(at - t.p) + by->n;
        }
        if (!add_text(s, out, part(t, i, t.n)))
            return false;
        t.n = by == NULL ? i : i - by->n;
    }
    while (by == NULL && t.n > 0 && char_is_space((unsigned char)t.p[t.n - 1]))
        t.n--;
    return (by == NULL && t.n == 0) || add_text(s, out, t);
}

static bool split_args(struct star *s, const struct star_args *a, const struct str **by,
                       int64_t *most) {
    *by = NULL;
    *most = INT64_MAX;
    if (a->v[0] != NULL && a->v[0]->type != STAR_NONE) {
        if (!want_text(s, a, 0, "sep"))
            return false;
        *by = &a->v[0]->text;
        if ((*by)->n == 0)
            return star_fail(s, "Empty separator");
    }
    if (a->v[1] != NULL && a->v[1]->type != STAR_NONE && !star_ops_small(s, a->v[1], most))
        return false;
    if (*most < 0)
        *most = INT64_MAX;
    return star_work(s, a->self->text.n / 16);
}

static struct star_value *string_split(struct star *s, const struct star_args *a) {
    const struct str *by;
    int64_t most;
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    if (v == NULL || !split_args(s, a, &by, &most))
        return NULL;
    bool good =
        by == NULL ? split_blank(s, text_of(a), most, v) : split_by(s, text_of(a), *by, most, v);
    return good ? v : NULL;
}

static struct star_value *string_rsplit(struct star *s, const struct star_args *a) {
    const struct str *by;
    int64_t most;
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    if (v == NULL || !split_args(s, a, &by, &most) || !rsplit_pieces(s, text_of(a), by, most, v))
        return NULL;
    star_value_reverse(&v->list);
    return v;
}

static struct star_value *string_splitlines(struct star *s, const struct star_args *a) {
    struct str t = text_of(a);
    bool keep = a->v[0] != NULL && star_value_truth(a->v[0]);
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    for (size_t begin = 0; begin < t.n;) {
        size_t i = begin;
        while (i < t.n && t.p[i] != '\n' && t.p[i] != '\r')
            i++;
        size_t end = i == t.n ? i : i + 1 + (t.p[i] == '\r' && i + 1 < t.n && t.p[i + 1] == '\n');
        if (!add_text(s, v, part(t, begin, keep ? end : i)))
            return NULL;
        begin = end;
    }
    return v;
}

static struct star_value *string_join(struct star *s, const struct star_args *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    struct star_list items;
    if (!star_value_items(s, a->v[0], &items))
        return NULL;
    for (size_t i = 0; i < items.n; i++) {
        struct star_value *v = items.items[i];
        if (!star_value_want(s, v, STAR_STRING, "str", "to_join"))
            return NULL;
        if ((i > 0 && buf_put(&b, text_of(a).p, text_of(a).n) < 0) ||
            buf_put(&b, v->text.p, v->text.n) < 0 || !star_work(s, v->text.n / 64))
            return star_take(s, &b, -ENOMEM);
    }
    return star_take(s, &b, 0);
}

static struct star_value *string_replace(struct star *s, const struct star_args *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    struct str t = text_of(a);
    int64_t most = INT64_MAX;
    if (!want_text(s, a, 0, "old") || !want_text(s, a, 1, "new") ||
        (a->v[2] != NULL && !star_ops_small(s, a->v[2], &most)))
        return NULL;
    struct str old = a->v[0]->text, new = a->v[1]->text;
    most = most < 0 ? INT64_MAX : most;
    int r = 0;
    for (int64_t n = 0; r == 0 && n < most; n++) {
        const char *at = find_text(t, old);
        if (at == NULL || (old.n == 0 && n > 0 && t.n == 0))
            break;
        size_t i = t.n == 0 ? 0 : (size_t)(at - t.p), step = old.n > 0 ? old.n : 0;
        r = buf_put(&b, t.p, i);
        if (r == 0)
            r = buf_put(&b, new.p, new.n);
        t = part(t, i + step, t.n);
        if (old.n == 0) { /* goes between all characters */
            size_t c = star_value_char_at(t, 1);
            r = r == 0 ? buf_put(&b, t.p, c) : r;
            if (t.n == 0)
                break;
            t = part(t, c, t.n);
            if (t.n == 0 && n + 1 < most) {
                r = r == 0 ? buf_put(&b, new.p, new.n) : r;
                break;
            }
        }
        if (!star_work(s, 1 + i / 64))
            return NULL;
    }
    if (r == 0)
        r = buf_put(&b, t.p, t.n);
    return star_take(s, &b, r);
}

/* -- pieces -- */

static struct star_value *string_elems(struct star *s, const struct star_args *a) {
    struct star_value *v = star_value_list(s, STAR_ITERATOR, 0);
    bool bytes = a->self->type == STAR_BYTES;
    for (struct str t = text_of(a); v != NULL && t.n > 0;) {
        size_t n = bytes ? 1 : star_value_char_at(t, 1);
        if (!add_text(s, v, part(t, 0, n)))
            return NULL;
        if (bytes)
            v->list.items[v->list.n - 1]->type = STAR_BYTES;
        t = part(t, n, t.n);
    }
    return v;
}

static struct star_value *string_codepoints(struct star *s, const struct star_args *a) {
    struct star_value *v = string_elems(s, a);
    for (size_t i = 0; v != NULL && i < v->list.n; i++) {
        struct str c = v->list.items[i]->text;
        uint32_t n;
        utf8_decode(c.p, c.n, &n);
        if ((v->list.items[i] = star_value_number(s, n)) == NULL)
            return NULL;
    }
    return v;
}

const struct star_native star_string_methods[] = {
    {"capitalize", "", string_capitalize},
    {"codepoints", "", string_codepoints},
    {"count", "needle start? end? /", string_count},
    {"elems", "", string_elems},
    {"endswith", "suffix /", string_endswith},
    {"find", "needle start? end? /", string_find},
    {"format", "*args **kwargs", star_format},
    {"index", "needle start? end? /", string_index},
    {"isalnum", "", string_isalnum},
    {"isalpha", "", string_isalpha},
    {"isdigit", "", string_isdigit},
    {"islower", "", string_islower},
    {"isspace", "", string_isspace},
    {"istitle", "", string_istitle},
    {"isupper", "", string_isupper},
    {"join", "to_join /", string_join},
    {"lower", "", string_lower},
    {"lstrip", "chars? /", string_lstrip},
    {"partition", "needle /", string_partition},
    {"removeprefix", "prefix /", string_removeprefix},
    {"removesuffix", "suffix /", string_removesuffix},
    {"replace", "old new count? /", string_replace},
    {"rfind", "needle start? end? /", string_rfind},
    {"rindex", "needle start? end? /", string_rindex},
    {"rpartition", "needle /", string_rpartition},
    {"rsplit", "sep? maxsplit? /", string_rsplit},
    {"rstrip", "chars? /", string_rstrip},
    {"split", "sep? maxsplit? /", string_split},
    {"splitlines", "keepends? /", string_splitlines},
    {"startswith", "prefix /", string_startswith},
    {"strip", "chars? /", string_strip},
    {"title", "", string_title},
    {"upper", "", string_upper},
    {NULL, NULL, NULL},
};

const struct star_native star_bytes_methods[] = {
    {"elems", "", string_elems},
    {NULL, NULL, NULL},
};
