// Clients beside which others are measured: each reads the output of three commands that write as
// fast as they can, one of them to a PTY.
#pragma once

#include "measure.h"

#define FLOODS_PER_READER 3

struct floods {
    int control; // closed: they end
    int report;  // their bytes
    size_t readers;
};

// Starts `o->floods` readers, and returns a second after every command has been heard of.
void floods_begin(struct floods *f, const struct measure_options *o);

// Ends them, with their commands; the bytes of output that they have read since they began.
uint64_t floods_end(struct floods *f);
