#include "fs/fs_call.h"

#include "base/codec.h"
#include "base/utf8.h"

#include <errno.h>

/* -- calls: a magic word, the operation, flags, numbers, texts -- */

#define CALL_FLAGS 7

static uint32_t call_flags(const struct fs_call *c) {
    const bool flags[CALL_FLAGS] = {c->follow,      c->recursive, c->force,
                                    c->replace,     c->links,     c->follow_directory_links,
                                    c->prune_hidden};
    uint32_t v = 0;
    for (size_t i = 0; i < CALL_FLAGS; i++)
        v |= flags[i] ? 1u << i : 0;
    return v;
}

int fs_call_encode(const struct fs_call *c, struct buf *b) {
    struct codec_writer w = CODEC_WRITER(b);
    codec_put_u32(&w, FS_CALL_MAGIC);
    codec_put_u32(&w, c->op);
    codec_put_u32(&w, call_flags(c));
    codec_put_u64(&w, c->max_depth);
    codec_put_u64(&w, c->max_directories);
    codec_put_u64(&w, c->max_entries);
    codec_put_u64(&w, c->mode);
    codec_put_u64(&w, (uint64_t)c->modified_ms);
    codec_put_text(&w, c->path);
    codec_put_text(&w, c->destination);
    codec_put_text(&w, c->uri);
    codec_put_text(&w, c->target);
    int r = codec_put_end(&w, FS_CALL_BYTES_MAX);
    return r == -ENOBUFS ? -ENAMETOOLONG : r;
}

static void call_set_flags(struct fs_call *c, uint32_t v) {
    bool *flags[CALL_FLAGS] = {&c->follow,      &c->recursive, &c->force,
                               &c->replace,     &c->links,     &c->follow_directory_links,
                               &c->prune_hidden};
    for (size_t i = 0; i < CALL_FLAGS; i++)
        *flags[i] = (v & (1u << i)) != 0;
}

static bool call_is_path(const char *path) {
    return path != NULL && path[0] == '/';
}

int fs_call_decode(struct str in, struct fs_call *c) {
    struct codec_reader r = CODEC_READER(in, FS_CALL_BYTES_MAX, NULL);
    *c = (struct fs_call){0};
    r.bad |= codec_get_u32(&r, UINT32_MAX) != FS_CALL_MAGIC;
    c->op = (enum fs_call_op)codec_get_u32(&r, FS_CALL_OPS - 1);
    call_set_flags(c, codec_get_u32(&r, (1u << CALL_FLAGS) - 1));
    c->max_depth = codec_get_u64(&r);
    c->max_directories = codec_get_u64(&r);
    c->max_entries = codec_get_u64(&r);
    c->mode = codec_get_u64(&r);
    c->modified_ms = (int64_t)codec_get_u64(&r);
    c->path = codec_get_text(&r);
    c->destination = codec_get_text(&r);
    c->uri = codec_get_text(&r);
    c->target = codec_get_text(&r);
    bool two = c->op == FS_CALL_COPY || c->op == FS_CALL_RENAME;
    r.bad |= !call_is_path(c->path) || (two && !call_is_path(c->destination)) || c->mode > 07777;
    r.bad |= c->op == FS_CALL_SYMLINK && c->target == NULL;
    return codec_get_end(&r);
}

/* -- answers -- */

#define ANSWER_ERRNO_MAX 4095
#define ANSWER_CODE_MIN (-32768) /* of the codes that JSON-RPC keeps for servers */
#define ANSWER_CODE_MAX (-32000)

static int answer_check_error(const struct fs_call_answer *a) {
    bool fits = a->code >= ANSWER_CODE_MIN && a->code <= ANSWER_CODE_MAX && a->error > 0 &&
                a->error <= ANSWER_ERRNO_MAX;
    return fits && utf8_valid(a->text.p, a->text.n) ? 0 : -EINVAL;
}

int fs_call_answer_decode(struct str packet, bool file, struct fs_call_answer *out) {
    struct codec_reader r = {.in = packet};
    struct fs_call_head head;
    codec_get(&r, &head, sizeof head);
    packet = r.in;
    *out = (struct fs_call_answer){.code = head.code, .error = head.error, .text = packet};
    bool has_file = head.kind == FS_CALL_MEMFD || head.kind == FS_CALL_FILE;
    if (r.bad || head.magic != FS_CALL_MAGIC || has_file != file)
        return -EINVAL;
    switch (head.kind) {
    case FS_CALL_ERROR: out->kind = FS_CALL_ERROR; return answer_check_error(out);
    case FS_CALL_INLINE: out->kind = FS_CALL_INLINE; return 0;
    case FS_CALL_MEMFD: out->kind = FS_CALL_MEMFD; break;
    case FS_CALL_FILE: out->kind = FS_CALL_FILE; break;
    default: return -EINVAL;
    }
    return packet.n == 0 ? 0 : -EINVAL;
}
