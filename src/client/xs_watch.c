#include "execserver.h"

void xs_watch_free(struct xs_watch *w) {
    (void)w;
}
