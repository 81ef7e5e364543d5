#include "fetch/head.h"

#define HEAD_ARENA_MAX (2u << 20) /* bytes of a head, interim ones included */
#define HEAD_FIELDS_FIRST 16      /* room for fields, at first */

void head_init(struct head *h) {
    *h = (struct head){.arena = ARENA_INIT(HEAD_ARENA_MAX)};
}

void head_fini(struct head *h) {
    arena_fini(&h->arena);
}

/* "HTTP/1.1 200 OK" */
static enum head_step head_status(struct head *h, struct str line) {
    const char *space = memchr(line.p, ' ', line.n);
    size_t at = space != NULL ? (size_t)(space - line.p) + 1 : line.n;
    unsigned status = 0;
    if (line.n < at + 3)
        return HEAD_WRONG;
    for (size_t i = at; i < at + 3; i++) {
        if (line.p[i] < '0' || line.p[i] > '9')
            return HEAD_WRONG;
        status = status * 10 + (unsigned)(line.p[i] - '0');
    }
    arena_reset(&h->arena);
    *h = (struct head){.arena = h->arena, .status = status};
    return status >= 100 ? HEAD_MORE : HEAD_WRONG;
}

static struct str head_copy(struct head *h, struct str s) {
    char *p = arena_strdup(&h->arena, s);
    return (struct str){p, p != NULL ? s.n : 0};
}

/* "NAME: VALUE". A value that no client may see is left out. */
static enum head_step head_field(struct head *h, struct str line) {
    const char *colon = memchr(line.p, ':', line.n);
    if (colon == NULL || h->status == 0)
        return HEAD_WRONG;
    struct str name = {line.p, (size_t)(colon - line.p)};
    struct str value = str_trim((struct str){colon + 1, line.n - name.n - 1});
    h->bytes += line.n;
    if (!http_fields_is_token(name) || !http_fields_is_value(value) || h->bytes > HEAD_BYTES_MAX ||
        h->count == HTTP_FIELDS_MAX)
        return HEAD_WRONG;
    name = head_copy(h, name);
    value = head_copy(h, value);
    if (name.p == NULL || value.p == NULL)
        return HEAD_WRONG;
    http_fields_lower((char *)(uintptr_t)name.p, name.n);
    if (h->location.p == NULL && str_eqz(name, "location"))
        h->location = value;
    if (!http_fields_is_visible(value))
        return HEAD_MORE;
    h->fields =
        arena_grow(&h->arena, h->fields, h->count, &h->room, HEAD_FIELDS_FIRST, sizeof *h->fields);
    if (h->fields == NULL)
        return HEAD_WRONG;
    h->fields[h->count++] = (struct http_field){name, value};
    return HEAD_MORE;
}

enum head_step head_line(struct head *h, struct str line) {
    while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    if (h->done)
        return HEAD_MORE;
    if (line.n >= 5 && memcmp(line.p, "HTTP/", 5) == 0)
        return head_status(h, line);
    if (line.n > 0)
        return head_field(h, line);
    if (h->status < 200)
        return h->status == 0 ? HEAD_WRONG : HEAD_MORE;
    h->done = true;
    http_fields_group(h->fields, h->count);
    return HEAD_DONE;
}
