#include "execserver.h"

int xs_copy_upload(struct xs_client *c, const char *local, const char *remote,
                   const struct xs_options *o, xs_progress_fn *progress, void *user,
                   struct xs_call *k) {
    (void)c;
    (void)local;
    (void)remote;
    (void)o;
    (void)progress;
    (void)user;
    (void)k;
    return XS_ENOTSUP;
}

int xs_copy_download(struct xs_client *c, const char *remote, const char *local,
                     const struct xs_options *o, xs_progress_fn *progress, void *user,
                     struct xs_call *k) {
    (void)c;
    (void)remote;
    (void)local;
    (void)o;
    (void)progress;
    (void)user;
    (void)k;
    return XS_ENOTSUP;
}
