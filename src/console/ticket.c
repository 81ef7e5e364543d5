#include "console/ticket.h"

#include <errno.h>
#include <sodium.h>

_Static_assert(TICKET_LEN + 1 == sodium_base64_ENCODED_LEN(TICKET_BYTES, 7), "base64url, no pads");
_Static_assert(TICKET_SECRET_LEN + 1 == sodium_base64_ENCODED_LEN(TICKET_SECRET_BYTES, 7), "alike");

/* `n` random bytes as text in `out`, and the digest of the text. */
static void ticket_make(size_t n, char *out, size_t room, uint8_t digest[32]) {
    uint8_t raw[TICKET_SECRET_BYTES];
    randombytes_buf(raw, n);
    sodium_bin2base64(out, room, raw, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    crypto_hash_sha256(digest, (const unsigned char *)out, room - 1);
    sodium_memzero(raw, sizeof raw);
}

static void ticket_digest(struct str text, uint8_t digest[32]) {
    static const unsigned char none[1];
    crypto_hash_sha256(digest, text.n > 0 ? (const unsigned char *)text.p : none, text.n);
}

void ticket_issue(struct ticket_table *t, uint64_t until, char out[TICKET_LEN + 1]) {
    struct ticket *place = &t->tokens[0];
    for (size_t i = 1; i < TICKET_TOKENS && place->taken; i++) {
        struct ticket *k = &t->tokens[i];
        if (!k->taken || k->until < place->until)
            place = k;
    }
    *place = (struct ticket){.taken = true, .until = until};
    ticket_make(TICKET_BYTES, out, TICKET_LEN + 1, place->digest);
}

bool ticket_redeem(struct ticket_table *t, struct str text, uint64_t now) {
    uint8_t digest[32];
    struct ticket *found = NULL;
    ticket_digest(text, digest);
    for (size_t i = 0; i < TICKET_TOKENS; i++) {
        struct ticket *k = &t->tokens[i];
        bool same = sodium_memcmp(k->digest, digest, sizeof digest) == 0;
        if (same && k->taken)
            found = k;
    }
    bool good = found != NULL && now < found->until;
    /* planted: token-again */
    if (found != NULL)
        sodium_memzero(found, sizeof *found);
    return good;
}

int ticket_secret_new(struct ticket_table *t, uint64_t now, char out[TICKET_SECRET_LEN + 1]) {
    struct ticket_secret *place = NULL;
    for (size_t i = 0; i < TICKET_SECRETS; i++) {
        struct ticket_secret *s = &t->secrets[i];
        if (s->taken && s->users > 0)
            continue;
        if (place == NULL || !s->taken || (place->taken && s->used < place->used))
            place = s;
        if (!s->taken)
            break;
    }
    if (place == NULL)
        return -EBUSY;
    *place = (struct ticket_secret){.taken = true, .used = now, .users = 1};
    ticket_make(TICKET_SECRET_BYTES, out, TICKET_SECRET_LEN + 1, place->digest);
    return (int)(place - t->secrets);
}

int ticket_secret_use(struct ticket_table *t, struct str text, uint64_t now) {
    uint8_t digest[32];
    int found = -ENOENT;
    ticket_digest(text, digest);
    for (size_t i = 0; i < TICKET_SECRETS; i++) {
        const struct ticket_secret *s = &t->secrets[i];
        bool same = sodium_memcmp(s->digest, digest, sizeof digest) == 0;
        if (same && s->taken)
            found = (int)i;
    }
    if (found >= 0) {
        t->secrets[found].used = now;
        t->secrets[found].users++;
    }
    return found;
}

void ticket_secret_leave(struct ticket_table *t, int place) {
    t->secrets[place].users--;
}
