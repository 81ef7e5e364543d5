#include "net/ws.h"

#include "base/utf8.h"
#include "json/base64.h"
#include "net/sha1.h"
#include "net/ws_mask.h"

#include <string.h>

#define WS_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define WS_CONTROL_MAX 125

/* A larger collection buffer is freed once its message was handled. */
#define WS_KEEP 65536

/* Bytes unmasked and checked at a time: they stay in the L1 cache. */
#define WS_PIECE WS_DECODE_MIN

void ws_parser_init(struct ws_parser *p, size_t max) {
    *p = (struct ws_parser){.msg = BUF_INIT(max), .max = max};
}

void ws_parser_fini(struct ws_parser *p) {
    buf_fini(&p->msg);
}

void ws_parser_set_max(struct ws_parser *p, size_t max) {
    p->max = max;
}

static void ws_fail(struct ws_parser *p, struct ws_msg *m, unsigned code, const char *reason) {
    p->failed = true;
    buf_fini(&p->msg);
    *m = (struct ws_msg){.kind = WS_FAIL, .code = code, .reason = reason};
}

static bool ws_is_control(enum ws_opcode op) {
    return op >= WS_CLOSE;
}

/* Bytes of the mask in a header. */
static size_t ws_mask_len(const struct ws_parser *p) {
    return p->client ? 0 : sizeof p->mask;
}

/* Length of the header, as far as its first bytes tell. */
static size_t ws_head_need(const struct ws_parser *p) {
    if (p->head_len < 2)
        return 2;
    size_t len7 = p->head[1] & 0x7F;
    return 2 + (len7 == 126 ? 2U : len7 == 127 ? 8U : 0U) + ws_mask_len(p);
}

/* NULL, or why the first byte is refused. */
static const char *ws_check_first(struct ws_parser *p) {
    uint8_t b = p->head[0];
    if (b & 0x70)
        return "reserved bit set";
    unsigned op = b & 0x0F;
    if ((op > WS_BINARY && op < WS_CLOSE) || op > WS_PONG)
        return "reserved opcode";
    p->opcode = (enum ws_opcode)op;
    p->fin = b & 0x80;
    if (ws_is_control(p->opcode))
        return p->fin ? NULL : "fragmented control frame";
    if (p->opcode == WS_CONT)
        return p->in_message ? NULL : "continuation without a message";
    return p->in_message ? "new message inside a fragmented one" : NULL;
}

static const char *ws_check_second(const struct ws_parser *p) {
    if (!(p->head[1] & 0x80) != p->client)
        return p->client ? "frame of a server is masked" : "frame not masked";
    if (ws_is_control(p->opcode) && (p->head[1] & 0x7F) > WS_CONTROL_MAX)
        return "control frame too long";
    return NULL;
}

/* Sets `left` from the length bytes. NULL, or why they are refused. */
static const char *ws_read_length(struct ws_parser *p) {
    size_t len7 = p->head[1] & 0x7F;
    size_t ext = len7 == 126 ? 2U : len7 == 127 ? 8U : 0U;
    uint64_t v = ext ? 0 : len7;
    for (size_t i = 0; i < ext; i++)
        v = v << 8 | p->head[2 + i];
    if (v >> 63 || (ext == 2 && v < 126) || (ext == 8 && v < 65536))
        return "length not in its shortest form";
    p->left = v;
    return NULL;
}

/* Makes `msg` ready for a message that begins now. */
static void ws_begin(struct ws_parser *p) {
    if (p->msg.cap > p->max)
        buf_fini(&p->msg);
    p->msg.max = p->max;
    p->msg_opcode = p->opcode;
    p->valid = 0;
    p->not_text = false;
    p->predecoded = (struct ws_part){0, 0};
    p->decoding = p->opcode == WS_TEXT && !p->client ? WS_DECODE_WAITS : WS_DECODE_OVER;
}

/* The length bytes are complete. False after a failure. */
static bool ws_check_length(struct ws_parser *p, struct ws_msg *m) {
    const char *why = ws_read_length(p);
    if (why) {
        ws_fail(p, m, 1002, why);
        return false;
    }
    if (ws_is_control(p->opcode))
        return true;
    if (p->opcode != WS_CONT)
        ws_begin(p);
    if (p->left > p->msg.max - (p->msg.len + p->predecoded.n / 3)) {
        ws_fail(p, m, 1009, "message too big");
        return false;
    }
    return true;
}

/*
 * Takes header bytes one at a time, so that each check happens as soon as its byte is there.
 * Returns the bytes consumed; `failed` or `in_payload` tells how it ended.
 */
static size_t ws_take_head(struct ws_parser *p, const char *data, size_t n, struct ws_msg *m) {
    size_t off = 0;
    while (off < n && !p->in_payload) {
        p->head[p->head_len++] = (uint8_t)data[off++];
        const char *why = NULL;
        if (p->head_len == 1)
            why = ws_check_first(p);
        else if (p->head_len == 2)
            why = ws_check_second(p);
        if (why) {
            ws_fail(p, m, 1002, why);
            return off;
        }
        if (p->head_len < 2)
            continue;
        size_t need = ws_head_need(p);
        if (p->head_len == need - ws_mask_len(p) && !ws_check_length(p, m))
            return off;
        if (p->head_len == need) {
            memcpy(p->mask, p->head + need - ws_mask_len(p), ws_mask_len(p));
            p->in_payload = true;
            p->head_len = 0;
            p->done = 0;
            p->ctl_len = 0;
        }
    }
    return off;
}

static bool ws_close_code_ok(unsigned code) {
    if (code >= 3000)
        return code < 5000;
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

static void ws_end_close(struct ws_parser *p, struct ws_msg *m) {
    if (p->ctl_len == 0) {
        *m =
            (struct ws_msg){.kind = WS_GOT_CLOSE, .opcode = WS_CLOSE, .data = p->ctl, .code = 1005};
        return;
    }
    if (p->ctl_len == 1) {
        ws_fail(p, m, 1002, "close frame of one byte");
        return;
    }
    unsigned code = (unsigned)(uint8_t)p->ctl[0] << 8 | (uint8_t)p->ctl[1];
    size_t n = p->ctl_len - (size_t)2;
    if (!ws_close_code_ok(code))
        ws_fail(p, m, 1002, "invalid close code");
    else if (!utf8_valid(p->ctl + 2, n))
        ws_fail(p, m, 1007, "close reason is not UTF-8");
    else
        *m = (struct ws_msg){
            .kind = WS_GOT_CLOSE, .opcode = WS_CLOSE, .data = p->ctl + 2, .n = n, .code = code};
}

/* Takes payload of a control frame; sets an event when it is complete. Returns the bytes taken. */
static size_t ws_take_control(struct ws_parser *p, const char *data, size_t n, struct ws_msg *m) {
    size_t take = (size_t)MIN(p->left, n);
    ws_mask_undo(p->ctl + p->ctl_len, data, take, p->mask, p->done);
    p->ctl_len = (uint8_t)(p->ctl_len + take);
    p->done += take;
    p->left -= take;
    if (p->left > 0)
        return take;
    p->in_payload = false;
    if (p->opcode == WS_CLOSE)
        ws_end_close(p, m);
    else
        *m = (struct ws_msg){.kind = p->opcode == WS_PING ? WS_GOT_PING : WS_GOT_PONG,
                             .opcode = p->opcode,
                             .data = p->ctl,
                             .n = p->ctl_len};
    return take;
}

/* Bytes at the end that begin a UTF-8 character without its rest: 0 to 3. */
static size_t ws_split_tail(const char *p, size_t n) {
    for (size_t i = 1; i <= MIN(n, (size_t)3); i++) {
        unsigned char c = (unsigned char)p[n - i];
        if (c >= 0xC0)
            return i < (c >= 0xF0 ? 4u : c >= 0xE0 ? 3u : 2u) ? i : 0;
        if (c < 0x80)
            break;
    }
    return 0;
}

/* Checks the bytes collected since the last time. */
static void ws_check_text(struct ws_parser *p) {
    if (p->msg_opcode != WS_TEXT || p->not_text || p->msg.len == 0)
        return;
    const char *from = p->msg.p + p->valid; /* what is before it may be decoded */
    size_t n = p->msg.len - p->valid;
    n -= p->fin && p->left == 0 ? 0 : ws_split_tail(from, n);
    p->not_text = !utf8_valid(from, n);
    p->valid += n;
}

/* A whole piece is of the alphabet: decoding begins where the string does. */
static void ws_decode_begin(struct ws_parser *p) {
    size_t at = p->msg.len;
    while (at > 0 && base64_is_letter(p->msg.p[at - 1]))
        at--;
    p->decoding = at > 0 && p->msg.p[at - 1] == '"' ? WS_DECODE_ON : WS_DECODE_OVER;
    p->predecoded.at = at;
}

/* Characters at the end of the message that are yet to be decoded. */
static size_t ws_loose(const struct ws_parser *p) {
    return p->decoding == WS_DECODE_ON ? p->msg.len - (p->predecoded.at + p->predecoded.n) : 0;
}

/* Decodes whole groups of them: all are of the alphabet. */
static void ws_decode_loose(struct ws_parser *p) {
    size_t loose = ws_loose(p), groups = loose / 4 * 4, rest = loose - groups;
    char *at = p->msg.p + p->msg.len - loose;
    _cleanup_err_ struct err none = ERR_INIT;
    size_t n = (size_t)base64_decode(at, at, groups, &none);
    memmove(at + n, at + groups, rest);
    p->predecoded.n += n;
    p->msg.len -= groups - n;
    p->valid = p->msg.len;
}

static void ws_took(struct ws_parser *p, size_t n) {
    p->done += n;
    p->left -= n;
}

/* Unmasks and decodes at once. Returns the bytes taken; 0: ws_collect_piece() must look at them. */
static size_t ws_collect_decoded(struct ws_parser *p, const char *src, size_t n) {
    if (p->decoding != WS_DECODE_ON || ws_loose(p) > 0)
        return 0;
    size_t took = ws_mask_undo_base64(p->msg.p + p->msg.len, src, n, p->mask, p->done);
    ws_took(p, took);
    p->predecoded.n += took / 4 * 3;
    p->msg.len += took / 4 * 3;
    p->valid = p->msg.len;
    return took;
}

/* Unmasks and checks a piece; it only completes a group of four if one is begun. */
static size_t ws_collect_piece(struct ws_parser *p, const char *src, size_t n) {
    size_t loose = ws_loose(p), piece = MIN(n, loose > 0 ? 4 - loose : (size_t)WS_PIECE);
    bool letters = ws_mask_undo(p->msg.p + p->msg.len, src, piece, p->mask, p->done);
    ws_took(p, piece);
    p->msg.len += piece;
    ws_check_text(p);
    if (!letters && p->decoding == WS_DECODE_ON)
        p->decoding = WS_DECODE_OVER;
    if (letters && piece == WS_PIECE && p->decoding == WS_DECODE_WAITS)
        ws_decode_begin(p);
    if (p->decoding == WS_DECODE_ON)
        ws_decode_loose(p);
    return piece;
}

/* Appends n payload bytes to the message; they may lie behind it already. */
static void ws_collect(struct ws_parser *p, const char *src, size_t n) {
    while (n > 0) {
        size_t took = ws_collect_decoded(p, src, n);
        if (took == 0)
            took = ws_collect_piece(p, src, n);
        src += took;
        n -= took;
    }
}

static void ws_end_message(struct ws_parser *p, char *data, size_t n, struct ws_msg *m) {
    bool collected = data == p->msg.p;
    if (p->msg_opcode == WS_TEXT && (collected ? p->not_text : !utf8_valid(data, n))) {
        ws_fail(p, m, 1007, "text message is not UTF-8");
        return;
    }
    *m = (struct ws_msg){.kind = WS_MESSAGE, .opcode = p->msg_opcode, .data = data, .n = n};
    if (collected)
        m->predecoded = p->predecoded;
}

/* Payload of a data frame was collected: reports the end of the message. */
static void ws_collected(struct ws_parser *p, struct ws_msg *m) {
    if (p->left > 0)
        return;
    p->in_payload = false;
    p->in_message = !p->fin;
    if (p->fin) {
        ws_check_text(p); /* also when the last frame is empty */
        p->delivered = true;
        ws_end_message(p, p->msg.len > 0 ? p->msg.p : p->ctl, p->msg.len, m);
    }
}

/* Takes payload of a data frame, as ws_take_control(). */
static size_t ws_take_data(struct ws_parser *p, char *data, size_t n, struct ws_msg *m) {
    size_t take = (size_t)MIN(p->left, n);
    if (p->fin && p->opcode != WS_CONT && p->done == 0 && take == p->left) {
        /* The whole message is here: it need not be collected. */
        if (!p->client)
            ws_mask_undo(data, data, take, p->mask, 0);
        p->left = 0;
        p->in_payload = p->in_message = false;
        ws_end_message(p, data, take, m);
        return take;
    }
    if (buf_reserve(&p->msg, take) < 0) {
        ws_fail(p, m, 1009, "no memory for the message");
        return take;
    }
    ws_collect(p, data, take);
    ws_collected(p, m);
    return take;
}

char *ws_room(struct ws_parser *p, size_t *n) {
    bool large = p->in_payload && !p->failed && !ws_is_control(p->opcode) &&
                 p->left >= WS_ROOM_MIN && p->done > 0;
    *n = (size_t)MIN(p->left, (uint64_t)WS_ROOM_MAX);
    return large && buf_reserve(&p->msg, *n) == 0 ? p->msg.p + p->msg.len : NULL;
}

void ws_filled(struct ws_parser *p, size_t n, struct ws_msg *m) {
    *m = (struct ws_msg){.kind = WS_NONE};
    ws_collect(p, p->msg.p + p->msg.len, n);
    ws_collected(p, m);
}

void ws_parser_release(struct ws_parser *p) {
    if (!p->delivered)
        return;
    p->delivered = false;
    p->msg.len = 0;
    if (p->msg.cap > WS_KEEP)
        buf_fini(&p->msg);
}

size_t ws_feed(struct ws_parser *p, char *data, size_t n, struct ws_msg *m) {
    *m = (struct ws_msg){.kind = WS_NONE};
    if (p->failed)
        return n;
    ws_parser_release(p);
    size_t off = 0;
    while (off < n && m->kind == WS_NONE) {
        if (!p->in_payload)
            off += ws_take_head(p, data + off, n - off, m);
        /* Even with no byte left: an empty payload is complete at once. */
        if (p->in_payload && m->kind == WS_NONE) {
            if (ws_is_control(p->opcode))
                off += ws_take_control(p, data + off, n - off, m);
            else
                off += ws_take_data(p, data + off, n - off, m);
        }
    }
    return p->failed ? n : off;
}

size_t ws_header(char *dst, enum ws_opcode opcode, bool fin, size_t n) {
    size_t len = ws_header_len(n);
    dst[0] = (char)((fin ? 0x80 : 0) | (int)opcode);
    dst[1] = (char)(len == 2 ? n : len == 4 ? 126 : 127);
    for (size_t i = 2; i < len; i++)
        dst[i] = (char)((uint64_t)n >> 8 * (len - 1 - i));
    return len;
}

size_t ws_masked_header(char *dst, enum ws_opcode opcode, bool fin, size_t n,
                        const uint8_t mask[4]) {
    size_t len = ws_header(dst, opcode, fin, n);
    dst[1] = (char)(dst[1] | 0x80);
    memcpy(dst + len, mask, 4);
    return len + 4;
}

void ws_accept(char dst[28], struct str key) {
    struct sha1_state s;
    uint8_t digest[20];
    sha1_init(&s);
    sha1_update(&s, key.p, key.n);
    sha1_update(&s, WS_GUID, sizeof WS_GUID - 1);
    sha1_final(&s, digest);
    base64_encode(dst, digest, sizeof digest);
}
