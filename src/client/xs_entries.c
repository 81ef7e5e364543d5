#include "execserver.h"

void xs_entries_free(struct xs_entries *e) {
    (void)e;
}
