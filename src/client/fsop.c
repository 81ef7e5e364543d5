#include "client/fsop.h"

static void ended(struct op *op) {
    struct fsop *o = container_of(op, struct fsop, op);
    if (o->end != NULL)
        o->end(o);
    calls_drop(&o->request);
    fspart_release(o->fs);
    o->fs = NULL;
    free(steal_ptr(&o->path));
}

int fsop_new(struct xs_fs *f, struct xs_call *k, size_t size, void (*end)(struct fsop *),
             void *out) {
    struct fsop *o;
    int r = op_new(f->files->client, k, size, ended, &o);
    if (r < 0)
        return r;
    o->fs = fspart_hold(f);
    o->end = end;
    *(struct fsop **)out = o;
    return 0;
}

struct params fsop_begin(struct fsop *o, const char *method, const char *path, const char *to) {
    struct xs_client *c = o->op.client;
    struct params p = {.b = calls_begin(c, &o->request, method)};
    o->method = method;
    if (p.b == NULL)
        return p;
    params_open(&p, NULL, '{');
    params_path(&p, to != NULL ? "sourcePath" : "path", c, path);
    if (to != NULL)
        params_path(&p, "destinationPath", c, to);
    fspart_sandbox(o->fs, &p);
    return p;
}

static void answered(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct fsop *o = container_of(r, struct fsop, request);
    if (err < 0 && o->failed != NULL && o->failed(o, err, e) > 0)
        return;
    if (err == 0 && o->take != NULL)
        err = o->take(o, result, e);
    if (err == FSOP_GOES_ON)
        return;
    if (err < 0)
        op_fail_with(&o->op, e);
    else
        op_finish(&o->op, err);
}

int fsop_send(struct fsop *o, struct params *p, enum calls_after after, fsop_take *take,
              struct xs_error *e) {
    if (p->b == NULL)
        return xs_error_set(e, XS_ENOMEM, "%s: out of memory", o->method);
    params_close(p, '}');
    o->request.done = answered;
    o->request.after = after;
    o->take = take;
    return calls_send(o->op.client, &o->request, p->r, e);
}

int fsop_run(struct fsop *o, struct params *p, enum calls_after after, fsop_take *take) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    int r = fsop_send(o, p, after, take, &e);
    if (r < 0)
        return op_refuse(&o->op, r, "%s", xs_error_text(&e));
    return op_wait(&o->op);
}

void fsop_follow(struct params *p, unsigned flags) {
    if (p->b != NULL && (flags & XS_NOFOLLOW) != 0)
        params_bool(p, "followSymlinks", false);
}

int fsop_needs(struct xs_client *c, const char *capability, const char *what) {
    if (xs_client_info(c) == NULL)
        return client_error(c, XS_ECONNECT, "%s: not connected yet", what);
    if (!client_can(c, capability))
        return client_error(c, XS_ENOTSUP, "%s: the server cannot (%s)", what, capability);
    return 0;
}
