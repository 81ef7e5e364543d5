#include "json/json_put.h"

#include "json/jsonw.h"

static int json_put_members(struct buf *b, const struct json_node *v) {
    int r = buf_putc(b, v->type == JSON_ARRAY ? '[' : '{');
    const struct json_node *end = json_next(v), *first = v + 1;
    for (const struct json_node *n = first; r == 0 && n < end;) {
        if (n != first)
            r = buf_putc(b, ',');
        if (r == 0 && v->type == JSON_OBJECT) {
            r = jsonw_str(b, json_str(n));
            if (r == 0)
                r = buf_putc(b, ':');
            n++;
        }
        if (r == 0)
            r = json_put(b, n); /* at most JSON_MAX_DEPTH levels */
        n = json_next(n);
    }
    return r < 0 ? r : buf_putc(b, v->type == JSON_ARRAY ? ']' : '}');
}

int json_put(struct buf *b, const struct json_node *v) {
    if (v == NULL)
        return buf_putz(b, "null");
    switch (v->type) {
    case JSON_NULL: return buf_putz(b, "null");
    case JSON_FALSE: return buf_putz(b, "false");
    case JSON_TRUE: return buf_putz(b, "true");
    case JSON_NUMBER: return buf_put(b, v->p, v->n);
    case JSON_STRING: return jsonw_str(b, json_str(v));
    case JSON_ARRAY:
    case JSON_OBJECT: break;
    }
    return json_put_members(b, v);
}
