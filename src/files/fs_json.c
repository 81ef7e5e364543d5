#include "files/fs_json.h"

#include "base/uri.h"
#include "base/utf8.h"
#include "fs/fs_walk.h"
#include "fs/fs_link.h"
#include "json/base64.h"
#include "json/jsonw.h"

#include <errno.h>
#include <inttypes.h>

#define JSON_ERRORS_MAX (2 * FS_WALK_BUDGET)

static const char *json_bool(bool b) {
    return b ? "true" : "false";
}

int fs_json_meta(struct buf *b, const struct fs_meta *m) {
    return buf_putf(b,
                    "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRIu64
                    ",\"createdAtMs\":%" PRId64 ",\"modifiedAtMs\":%" PRId64 ",\"mode\":%u}",
                    json_bool(S_ISDIR(m->mode)), json_bool(S_ISREG(m->mode)),
                    json_bool(m->link != 0), m->size, m->created_ms, m->modified_ms,
                    m->mode & 07777u);
}

/* Ends a text that began at `len`: takes it back if something failed. */
static int json_end(struct buf *b, size_t len, int r) {
    if (r < 0)
        b->len = len;
    return r;
}

/* A URI has no character that JSON escapes. */
static int json_uri(struct buf *b, const char *before, struct str path, const char *after) {
    int r = buf_putz(b, before);
    if (r == 0)
        r = uri_from_path(b, path);
    return r < 0 ? r : buf_putz(b, after);
}

int fs_json_path(struct buf *b, struct str path) {
    return json_end(b, b->len, json_uri(b, "{\"path\":\"", path, "\"}"));
}

static int json_string(struct buf *b, const char *before, struct str s, const char *after) {
    int r = buf_putz(b, before);
    if (r == 0)
        r = jsonw_str(b, s);
    return r < 0 ? r : buf_putz(b, after);
}

int fs_json_handle(struct buf *b, struct str id) {
    return json_end(b, b->len, json_string(b, "{\"handleId\":", id, "}"));
}

/* The members of a target: a text for readers, and its bytes if these are no text. */
static int json_target(struct buf *b, struct str target) {
    if (utf8_valid(target.p, target.n))
        return json_string(b, "\"target\":", target, "");
    _cleanup_buf_ struct buf lossy = BUF_INIT(3 * target.n);
    int r = fs_put_lossy(&lossy, target);
    if (r == 0)
        r = json_string(b, "\"target\":", buf_str(&lossy), ",\"targetBase64\":\"");
    size_t n = base64_encoded_len(target.n);
    if (r == 0)
        r = buf_reserve(b, n + 1);
    if (r < 0)
        return r;
    b->len += base64_encode(b->p + b->len, target.p, target.n);
    return buf_putc(b, '"');
}

int fs_json_target(struct buf *b, struct str target) {
    size_t len = b->len;
    int r = buf_putc(b, '{');
    if (r == 0)
        r = json_target(b, target);
    return json_end(b, len, r < 0 ? r : buf_putc(b, '}'));
}

int fs_json_changes(struct buf *b, struct str id, const struct fs_watch *w) {
    size_t len = b->len;
    int r = json_string(b, "{\"method\":\"fs/changed\",\"params\":{\"watchId\":", id,
                        ",\"changedPaths\":[");
    list_for_each(n, &w->changes) {
        const struct fs_watch_change *c = list_entry(n, struct fs_watch_change, order);
        if (r == 0)
            r = json_uri(b, n == w->changes.next ? "\"" : ",\"", c->node.key, "\"");
    }
    if (r == 0)
        r = buf_putf(b, "],\"overflow\":%s}}", json_bool(w->overflow));
    return json_end(b, len, r);
}

/* -- lists -- */

int fs_json_list_begin(struct fs_json_list *l, struct buf *b, bool walk) {
    *l = (struct fs_json_list){
        .out = b, .before = b->len, .walk = walk, .errors = BUF_INIT(JSON_ERRORS_MAX)};
    int r = buf_putz(b, "{\"entries\":[");
    l->start = b->len;
    return r;
}

/* Appends {HEAD"NAME"TAIL, with a comma unless it is the first. */
static int json_item(struct buf *b, bool first, struct str head, struct str name, struct str tail) {
    int r = buf_reserve(b, 1 + head.n + jsonw_str_len(name) + tail.n);
    if (r < 0)
        return r;
    char *p = b->p + b->len;
    if (!first)
        *p++ = ',';
    p = mempcpy(p, head.p, head.n);
    p += jsonw_str_to(p, name);
    p = mempcpy(p, tail.p, tail.n);
    b->len = (size_t)(p - b->p);
    return 0;
}

/* Appends a link with its target, if that may be told. */
static int json_link(struct buf *b, bool first, const struct fs_item *item) {
    const struct str head = STR_LIT("{\"path\":"), kind = STR_LIT(",\"kind\":\"symlink\"");
    int r = json_item(b, first, head, item->name, kind);
    if (r == 0 && item->message.n > 0)
        r = buf_putc(b, ',');
    if (r == 0 && item->message.n > 0)
        r = json_target(b, item->message);
    return r < 0 ? r : buf_putc(b, '}');
}

int fs_json_list_put(void *arg, const struct fs_item *item) {
    static const struct str heads[] = {STR_LIT("{\"fileName\":"), STR_LIT("{\"path\":")};
    static const struct str tails[2][FS_ITEM_DIR + 1] = {
        {STR_LIT(",\"isDirectory\":false,\"isFile\":false}"),
         STR_LIT(",\"isDirectory\":false,\"isFile\":true}"),
         STR_LIT(",\"isDirectory\":true,\"isFile\":false}")},
        {STR_LIT(",\"kind\":\"other\"}"), /* a walk finds none */
         STR_LIT(",\"kind\":\"file\"}"), STR_LIT(",\"kind\":\"directory\"}")},
    };
    struct fs_json_list *l = arg;
    if (item->kind == FS_ITEM_TRUNCATED) {
        l->truncated = true;
        return 0;
    }
    if (item->kind == FS_ITEM_LINK)
        return json_link(l->out, l->out->len == l->start, item);
    if (item->kind != FS_ITEM_ERROR)
        return json_item(l->out, l->out->len == l->start, heads[l->walk], item->name,
                         tails[l->walk][item->kind]);
    int r = json_item(&l->errors, l->errors.len == 0, heads[true], item->name, STR_LIT(""));
    return r < 0 ? r : json_string(&l->errors, ",\"message\":", item->message, "}");
}

int fs_json_list_end(struct fs_json_list *l, int r) {
    struct buf *b = l->out;
    if (r == 0 && l->walk) {
        r = buf_putz(b, "],\"errors\":[");
        if (r == 0)
            r = buf_put(b, l->errors.p, l->errors.len);
        if (r == 0)
            r = buf_putf(b, "],\"truncated\":%s}", json_bool(l->truncated));
    } else if (r == 0) {
        r = buf_putz(b, "]}");
    }
    buf_fini(&l->errors);
    return json_end(b, l->before, r);
}

/* -- results of a helper -- */

static int json_call_list(struct buf *b, bool walk, struct str bytes) {
    struct fs_json_list l;
    struct fs_item item;
    int r = fs_json_list_begin(&l, b, walk);
    while (r == 0 && (r = fs_item_decode(&bytes, &item)) > 0) {
        bool fits = walk ? item.kind != FS_ITEM_OTHER : item.kind <= FS_ITEM_DIR;
        r = fits ? fs_json_list_put(&l, &item) : -EINVAL;
    }
    return fs_json_list_end(&l, r);
}

int fs_json_call(struct buf *b, enum fs_call_op op, struct str bytes) {
    if (op == FS_CALL_LIST || op == FS_CALL_WALK)
        return json_call_list(b, op == FS_CALL_WALK, bytes);
    if (op == FS_CALL_CANONICALIZE) {
        bool path = bytes.n > 0 && bytes.p[0] == '/' && !str_has_nul(bytes);
        return path ? fs_json_path(b, bytes) : -EINVAL;
    }
    if (op == FS_CALL_READ_LINK) {
        bool target = bytes.n > 0 && bytes.n <= FS_LINK_TARGET_MAX && !str_has_nul(bytes);
        return target ? fs_json_target(b, bytes) : -EINVAL;
    }
    struct fs_meta m;
    if (op != FS_CALL_METADATA)
        return bytes.n == 0 ? buf_putz(b, "{}") : -EINVAL;
    if (bytes.n != sizeof m)
        return -EINVAL;
    memcpy(&m, bytes.p, sizeof m);
    return fs_json_meta(b, &m);
}
