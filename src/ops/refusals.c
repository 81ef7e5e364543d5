#include "ops/refusals.h"

#include "base/util.h"

#include <stdio.h>
#include <string.h>

#define REFUSALS_UNIT 1000u /* of a token; a rate of one a second is one of these a millisecond */

static void bucket_fill(struct refusals_bucket *b, uint64_t now, uint64_t burst, uint64_t rate) {
    uint64_t full = burst * REFUSALS_UNIT, passed = now - b->filled;
    b->tokens = passed > full ? full : MIN(full, b->tokens + passed * rate);
    b->filled = now;
}

/* The address without the port, or a name without its process. */
static void refusals_key(const char *peer, char key[REFUSALS_KEY_MAX]) {
    const char *end = strchr(peer, ',');
    if (end == NULL)
        end = strrchr(peer, ':');
    int n = end != NULL ? (int)(end - peer) : (int)strlen(peer);
    snprintf(key, REFUSALS_KEY_MAX, "%.*s", MIN(n, REFUSALS_KEY_MAX - 1), peer);
    if (key[0] == '\0')
        snprintf(key, REFUSALS_KEY_MAX, "unknown");
}

/* The entry of an address, made in the place of the one that was silent for the longest time. */
static struct refusals_peer *refusals_find(struct refusals *r, const char *key, uint64_t now) {
    struct refusals_peer *oldest = &r->peers[0];
    for (size_t i = 0; i < REFUSALS_PEERS; i++) {
        struct refusals_peer *p = &r->peers[i];
        if (strcmp(p->key, key) == 0)
            return p;
        if (oldest->key[0] != '\0' && (p->key[0] == '\0' || p->seen < oldest->seen))
            oldest = p;
    }
    r->others += oldest->count;
    *oldest = (struct refusals_peer){.bucket = {REFUSALS_PEER_BURST * REFUSALS_UNIT, now}};
    memcpy(oldest->key, key, REFUSALS_KEY_MAX);
    return oldest;
}

bool refusals_admit(struct refusals *r, const char *peer, uint64_t now, bool room) {
    char key[REFUSALS_KEY_MAX] = "";
    refusals_key(peer, key);
    if (!r->begun)
        r->total = (struct refusals_bucket){REFUSALS_TOTAL_BURST * REFUSALS_UNIT, now};
    r->begun = true;
    struct refusals_peer *p = refusals_find(r, key, now);
    p->seen = now;
    bucket_fill(&p->bucket, now, REFUSALS_PEER_BURST, 1);
    bucket_fill(&r->total, now, REFUSALS_TOTAL_BURST, REFUSALS_TOTAL_RATE);
    if (room && p->bucket.tokens >= REFUSALS_UNIT && r->total.tokens >= REFUSALS_UNIT) {
        p->bucket.tokens -= REFUSALS_UNIT;
        r->total.tokens -= REFUSALS_UNIT;
        return true;
    }
    p->count++;
    if (!r->waiting)
        r->since = now;
    r->waiting = true;
    return false;
}

bool refusals_take(struct refusals *r, const char **key, uint64_t *count) {
    for (size_t i = 0; i < REFUSALS_PEERS; i++) {
        struct refusals_peer *p = &r->peers[i];
        if (p->count == 0)
            continue;
        *key = p->key;
        *count = p->count;
        p->count = 0;
        return true;
    }
    *key = "";
    *count = r->others;
    r->others = 0;
    r->waiting = false;
    return *count > 0;
}
