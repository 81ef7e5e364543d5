// The two ways in which small requests are measured.
#pragma once

#include "measure.h"
#include "rpc.h"

// Takes one sample with the number `n`, which grows by one each time, and returns its nanoseconds.
typedef uint64_t (*sampler)(struct rpc *r, uint64_t n, const void *arg);

// One at a time: up to `count` samples in at most `millis`, after the warm-up. Prints the result.
void sample(const char *name, struct rpc *r, sampler one, const void *arg,
            const struct measure_options *o);

// `window` requests in flight for `millis`; answers must come in order. Prints the result.
void pipeline(const char *name, const char *method, const char *params,
              const struct measure_options *o);
