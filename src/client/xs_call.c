#include "client/engine.h"

void xs_call_cancel(struct xs_call *call) {
    struct op *op = call != NULL ? call->priv[0] : NULL;
    if (op == NULL || op->finished)
        return;
    client_enter(op->client);
    op_fail(op, XS_ECANCELED, "canceled");
    client_leave(op->client);
}
