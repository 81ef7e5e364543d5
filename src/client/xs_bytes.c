#include "execserver.h"

#include <stdlib.h>

void xs_bytes_free(struct xs_bytes *b) {
    if (b == NULL)
        return;
    free(b->data);
    b->data = NULL;
    b->n = 0;
}
