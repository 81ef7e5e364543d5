#include "client/meter.h"

#define SAMPLE_NS 500000000 /* of the rate */

void meter_bytes(struct meter *m, uint64_t now_ns, uint64_t n, bool sent) {
    m->bytes += n;
    m->changed = true;
    if (m->sample_ns == 0)
        m->sample_ns = now_ns;
    if (sent)
        m->sample_bytes += n;
    uint64_t took = now_ns - m->sample_ns;
    if (took < SAMPLE_NS)
        return;
    double rate = (double)m->sample_bytes * 1e9 / (double)took;
    m->rate = m->rate == 0 ? rate : 0.6 * m->rate + 0.4 * rate;
    m->sample_ns = now_ns;
    m->sample_bytes = 0;
}

bool meter_is_due(struct meter *m, uint64_t now_ns) {
    if (!m->changed || (m->told_ns != 0 && now_ns - m->told_ns < METER_PERIOD_NS))
        return false;
    m->told_ns = now_ns;
    m->changed = false;
    return true;
}
