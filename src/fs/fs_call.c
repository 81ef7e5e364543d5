#include "fs/fs_call.h"

#include "base/utf8.h"
#include "json/json.h"

#include <errno.h>

/*
 * The encoded form, in the byte order of the host: a magic word, the operation, flags, numbers,
 * then the strings as their length and one, their bytes and a NUL; a length of 0 is no string.
 */

#define CALL_STRINGS 3
#define CALL_NUMBERS 4
#define CALL_FLAGS 6

static int call_put_text(struct buf *b, const char *z) {
    uint32_t n = z != NULL ? (uint32_t)strlen(z) + 1 : 0;
    int r = buf_put(b, &n, sizeof n);
    return r < 0 || n == 0 ? r : buf_put(b, z, n);
}

static uint32_t call_flags(const struct fs_call *c) {
    const bool flags[CALL_FLAGS] = {
        c->follow, c->recursive, c->force, c->replace, c->follow_directory_links, c->prune_hidden};
    uint32_t v = 0;
    for (size_t i = 0; i < CALL_FLAGS; i++)
        v |= flags[i] ? 1u << i : 0;
    return v;
}

int fs_call_encode(const struct fs_call *c, struct buf *b) {
    const char *texts[CALL_STRINGS] = {c->path, c->destination, c->uri};
    const uint64_t numbers[CALL_NUMBERS] = {c->max_depth, c->max_directories, c->max_entries,
                                            c->mode};
    const uint32_t head[3] = {FS_CALL_MAGIC, c->op, call_flags(c)};
    size_t len = b->len, sum = sizeof head + sizeof numbers;
    for (size_t i = 0; i < CALL_STRINGS; i++)
        sum += sizeof(uint32_t) + (texts[i] != NULL ? strlen(texts[i]) + 1 : 0);
    if (sum > FS_CALL_BYTES_MAX)
        return -ENAMETOOLONG;
    int r = buf_put(b, head, sizeof head);
    if (r == 0)
        r = buf_put(b, numbers, sizeof numbers);
    for (size_t i = 0; r == 0 && i < CALL_STRINGS; i++)
        r = call_put_text(b, texts[i]);
    if (r < 0)
        b->len = len;
    return r;
}

/* Takes n bytes off the front. */
static bool call_take(struct str *in, void *out, size_t n) {
    const char *p = str_take(in, n);
    if (p != NULL)
        memcpy(out, p, n);
    return p != NULL;
}

static bool call_take_text(struct str *in, const char **out) {
    uint32_t n;
    *out = NULL;
    if (!call_take(in, &n, sizeof n))
        return false;
    if (n == 0)
        return true;
    const char *p = str_take(in, n);
    if (p == NULL || strnlen(p, n) != n - 1)
        return false;
    *out = p;
    return true;
}

static void call_set_flags(struct fs_call *c, uint32_t v) {
    bool *flags[CALL_FLAGS] = {
        &c->follow,      &c->recursive, &c->force, &c->replace, &c->follow_directory_links,
        &c->prune_hidden};
    for (size_t i = 0; i < CALL_FLAGS; i++)
        *flags[i] = (v & (1u << i)) != 0;
}

static bool call_is_path(const char *path) {
    return path != NULL && path[0] == '/';
}

int fs_call_decode(struct str in, struct fs_call *c) {
    uint32_t head[3];
    uint64_t numbers[CALL_NUMBERS];
    *c = (struct fs_call){0};
    if (in.n > FS_CALL_BYTES_MAX || !call_take(&in, head, sizeof head) ||
        !call_take(&in, numbers, sizeof numbers) || head[0] != FS_CALL_MAGIC ||
        head[1] >= FS_CALL_OPS || head[2] >= 1u << CALL_FLAGS)
        return -EINVAL;
    c->op = (enum fs_call_op)head[1];
    call_set_flags(c, head[2]);
    c->max_depth = numbers[0];
    c->max_directories = numbers[1];
    c->max_entries = numbers[2];
    c->mode = numbers[3];
    if (!call_take_text(&in, &c->path) || !call_take_text(&in, &c->destination) ||
        !call_take_text(&in, &c->uri) || in.n != 0)
        return -EINVAL;
    bool two = c->op == FS_CALL_COPY || c->op == FS_CALL_RENAME;
    if (!call_is_path(c->path) || (two && !call_is_path(c->destination)) || c->mode > 07777)
        return -EINVAL;
    return 0;
}

/* -- answers -- */

#define ANSWER_ERRNO_MAX 4095
#define ANSWER_CODE_MIN (-32768) /* of the codes that JSON-RPC keeps for servers */
#define ANSWER_CODE_MAX (-32000)

int fs_call_check_result(struct str text) {
    if (memchr(text.p, '\n', text.n) != NULL || !utf8_valid(text.p, text.n))
        return -EINVAL;
    struct json_doc d;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&d, text.n, 0);
    int r = json_parse(&d, text.p, text.n, &e);
    if (r == 0 && json_root(&d)->type != JSON_OBJECT)
        r = -EINVAL;
    json_doc_fini(&d);
    return r;
}

static int answer_check_error(const struct fs_call_answer *a) {
    bool fits = a->code >= ANSWER_CODE_MIN && a->code <= ANSWER_CODE_MAX && a->error > 0 &&
                a->error <= ANSWER_ERRNO_MAX;
    return fits && utf8_valid(a->text.p, a->text.n) ? 0 : -EINVAL;
}

int fs_call_answer_decode(struct str packet, bool file, struct fs_call_answer *out) {
    struct fs_call_head head;
    if (!call_take(&packet, &head, sizeof head) || head.magic != FS_CALL_MAGIC)
        return -EINVAL;
    *out = (struct fs_call_answer){.code = head.code, .error = head.error, .text = packet};
    bool has_file = head.kind == FS_CALL_MEMFD || head.kind == FS_CALL_FILE;
    if (has_file != file)
        return -EINVAL;
    switch (head.kind) {
    case FS_CALL_ERROR: out->kind = FS_CALL_ERROR; return answer_check_error(out);
    case FS_CALL_TEXT:
        out->kind = FS_CALL_TEXT;
        return packet.n == 0 ? 0 : fs_call_check_result(packet);
    case FS_CALL_MEMFD: out->kind = FS_CALL_MEMFD; break;
    case FS_CALL_FILE: out->kind = FS_CALL_FILE; break;
    default: return -EINVAL;
    }
    return packet.n == 0 ? 0 : -EINVAL;
}
