#include "client/partnote.h"

#include "base/utf8.h"
#include "json/json.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

#define VERSION 1

static void random_hex(char *out, size_t digits) {
    unsigned char bytes[32];
    randombytes_buf(bytes, digits / 2);
    sodium_bin2hex(out, digits + 1, bytes, digits / 2);
}

void partnote_token(char out[PARTNOTE_TOKEN_LEN + 1]) {
    random_hex(out, PARTNOTE_TOKEN_LEN);
}

void partnote_source(struct str text, char out[PARTNOTE_SOURCE_LEN + 1]) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, (const unsigned char *)text.p, text.n);
    sodium_bin2hex(out, PARTNOTE_SOURCE_LEN + 1, digest, sizeof(digest));
}

/* `.NAME` + suffix; all names of one NAME are cut alike, because the room is that of the longest
 * suffix. */
static void beside(struct str name, const char *suffix, char *out) {
    const size_t longest = sizeof(".xs-part-") - 1 + PARTNOTE_TOKEN_LEN;
    size_t room = PARTNOTE_NAME_MAX - 1 - longest;
    if (name.n <= room) {
        snprintf(out, PARTNOTE_NAME_MAX + 1, ".%.*s%s", (int)name.n, name.p, suffix);
        return;
    }
    char digest[PARTNOTE_SOURCE_LEN + 1];
    partnote_source(name, digest);
    size_t kept = utf8_cut(name.p, name.n, room - 17);
    snprintf(out, PARTNOTE_NAME_MAX + 1, ".%.*s~%.16s%s", (int)kept, name.p, digest, suffix);
}

void partnote_part_name(struct str name, const char *token, char out[PARTNOTE_NAME_MAX + 1]) {
    char suffix[sizeof(".xs-part-") + PARTNOTE_TOKEN_LEN];
    snprintf(suffix, sizeof(suffix), ".xs-part%s%.*s", token[0] != '\0' ? "-" : "",
             PARTNOTE_TOKEN_LEN, token);
    beside(name, suffix, out);
}

bool partnote_part_token(struct str name, const char *leaf, char token[PARTNOTE_TOKEN_LEN + 1]) {
    char expected[PARTNOTE_NAME_MAX + 1];
    size_t n = strlen(leaf);
    if (n < PARTNOTE_TOKEN_LEN || n > PARTNOTE_NAME_MAX)
        return false;
    memcpy(token, leaf + n - PARTNOTE_TOKEN_LEN, PARTNOTE_TOKEN_LEN + 1);
    if (strspn(token, "0123456789abcdef") != PARTNOTE_TOKEN_LEN)
        return false;
    partnote_part_name(name, token, expected);
    return strcmp(expected, leaf) == 0;
}

void partnote_note_name(struct str name, char out[PARTNOTE_NAME_MAX + 1]) {
    beside(name, ".xs-part.json", out);
}

int partnote_write(struct buf *b, const struct partnote *note) {
    int r = buf_putf(b,
                     "{\"version\":%d,\"source\":\"%s\",\"size\":%" PRIu64
                     ",\"modifiedNs\":%" PRId64 ",\"tokens\":[\"%s\"",
                     VERSION, note->source, note->bytes, note->modified_ns, note->token);
    if (r == 0 && note->has_older)
        r = buf_putf(b, ",\"%s\"", note->older);
    return r < 0 ? r : buf_putz(b, "]}\n");
}

static bool is_hex(struct str s, size_t n) {
    if (s.n != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
    }
    return true;
}

static int take_hex(const struct json_node *v, size_t n, bool may_be_empty, char *out) {
    if (v == NULL || v->type != JSON_STRING)
        return -EINVAL;
    if (!(may_be_empty && v->n == 0) && !is_hex(json_str(v), n))
        return -EINVAL;
    memcpy(out, v->p, v->n);
    out[v->n] = '\0';
    return 0;
}

static int take_tokens(struct partnote *note, const struct json_node *tokens) {
    if (tokens == NULL || tokens->type != JSON_ARRAY || tokens->count < 1 || tokens->count > 2)
        return -EINVAL;
    const struct json_node *first = tokens + 1;
    int r = take_hex(first, PARTNOTE_TOKEN_LEN, true, note->token);
    note->has_older = tokens->count == 2;
    if (r == 0 && note->has_older)
        r = take_hex(json_next(first), PARTNOTE_TOKEN_LEN, true, note->older);
    return r;
}

static int take_numbers(struct partnote *note, const struct json_node *root) {
    uint64_t version = 0;
    const struct json_node *v = json_get(root, "version"), *size = json_get(root, "size"),
                           *time = json_get(root, "modifiedNs");
    if (v == NULL || size == NULL || time == NULL)
        return -EINVAL;
    if (json_u64(v, &version) < 0 || version != VERSION || json_u64(size, &note->bytes) < 0 ||
        json_i64(time, &note->modified_ns) < 0)
        return -EINVAL;
    return 0;
}

static int decode(struct partnote *note, const struct json_node *root) {
    if (root->type != JSON_OBJECT)
        return -EINVAL;
    int r = take_numbers(note, root);
    if (r == 0)
        r = take_hex(json_get(root, "source"), PARTNOTE_SOURCE_LEN, false, note->source);
    return r < 0 ? r : take_tokens(note, json_get(root, "tokens"));
}

int partnote_read(struct partnote *note, struct str text) {
    if (text.n > PARTNOTE_TEXT_MAX || !utf8_valid(text.p, text.n))
        return -EINVAL;
    struct err e = ERR_INIT;
    struct json_doc doc;
    json_doc_init(&doc, PARTNOTE_TEXT_MAX, randombytes_random());
    struct partnote got = {.bytes = 0};
    int r = json_parse(&doc, text.p, text.n, &e);
    if (r == 0)
        r = decode(&got, json_root(&doc));
    if (r == 0)
        *note = got;
    json_doc_fini(&doc);
    err_fini(&e);
    return r;
}

bool partnote_matches(const struct partnote *note, const struct partnote *want) {
    return strcmp(note->source, want->source) == 0 && note->bytes == want->bytes &&
           note->modified_ns == want->modified_ns;
}
