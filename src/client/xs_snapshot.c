#include "execserver.h"

#include <stdlib.h>

void xs_snapshot_fini(struct xs_snapshot *s) {
    if (s == NULL)
        return;
    free(s->memory);
    s->memory = NULL;
    s->out = s->err = s->pty = NULL;
    s->exit = NULL;
}
