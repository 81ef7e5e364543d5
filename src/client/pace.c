#include "client/pace.h"

#define BLOCK (1 << 20)
#define SECOND 1e9

void pace_init(struct pace *p) {
    *p = (struct pace){.window = PACE_MIN};
}

static unsigned window_of(const struct pace *p) {
    double blocks = 2 * p->rate * ((double)p->round_ns / SECOND) / BLOCK;
    if (blocks <= PACE_MIN)
        return PACE_MIN;
    return blocks >= PACE_MAX ? PACE_MAX : (unsigned)(blocks + 0.999);
}

void pace_block(struct pace *p, uint64_t sent_ns, uint64_t now_ns, size_t n) {
    uint64_t round = now_ns > sent_ns ? now_ns - sent_ns : 1;
    if (p->round_ns == 0 || round < p->round_ns)
        p->round_ns = round;
    else
        p->round_ns += (round - p->round_ns) / 64;
    if (p->since_ns == 0)
        p->since_ns = sent_ns;
    p->bytes += n;
    uint64_t took = now_ns > p->since_ns ? now_ns - p->since_ns : 1;
    /* A sample spans a round trip, so that it sees a whole window. */
    if (took < round)
        return;
    double rate = (double)p->bytes * SECOND / (double)took;
    p->rate = rate > p->rate ? rate : 0.75 * p->rate + 0.25 * rate;
    p->since_ns = now_ns;
    p->bytes = 0;
    p->window = window_of(p);
}
