#include "sample.h"

#include "flood.h"
#include "util.h"

void sample(const char *name, struct rpc *r, sampler one, const void *arg,
            const struct measure_options *o) {
    struct floods floods;
    struct samples s;
    uint64_t n = 0, cpu, begin, end;

    samples_init(&s, o->count);
    if (o->floods > 0)
        floods_begin(&floods, o);
    while (n < o->warmup)
        one(r, n++, arg);
    cpu = process_cpu_ns(o->pid);
    begin = now_ns();
    end = begin + o->millis * 1000000u;
    while (s.count < s.cap && now_ns() < end)
        samples_add(&s, one(r, n++, arg));
    cpu = process_cpu_ns(o->pid) - cpu;
    end = now_ns();
    result_begin(name);
    result_number("cpu_ns", cpu);
    result_number("wall_ns", end - begin);
    if (o->floods > 0)
        result_number("flood_bytes", floods_end(&floods));
    result_samples(&s);
    result_end();
    samples_free(&s);
}

void pipeline(const char *name, const char *method, const char *params,
              const struct measure_options *o) {
    struct rpc r;
    struct msg m;
    uint64_t first, expect, begin, end, cpu, in_flight = 0;

    rpc_open(&r, o->port);
    first = expect = r.next_id;
    cpu = process_cpu_ns(o->pid);
    begin = now_ns();
    end = begin + o->millis * 1000000u;
    for (bool more = true; more || in_flight > 0;) {
        for (; more && in_flight < o->window; in_flight++)
            rpc_request(&r, method, params);
        rpc_flush(&r);
        do {
            rpc_next(&r, &m);
            if (m.kind != MSG_RESPONSE || m.id != expect++)
                fail("an answer out of order");
            in_flight--;
        } while (in_flight > 0 && ws_has_message(&r.ws));
        more = now_ns() < end;
    }
    end = now_ns();
    cpu = process_cpu_ns(o->pid) - cpu;
    rpc_close(&r);
    result_begin(name);
    result_number("requests", expect - first);
    result_number("wall_ns", end - begin);
    result_number("cpu_ns", cpu);
    result_end();
}
