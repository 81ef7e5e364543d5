#include "client/downtree.h"
#include "client/uptree.h"

int xs_copy_upload(struct xs_client *c, const char *local, const char *remote,
                   const struct xs_options *o, xs_progress_fn *progress, void *user,
                   struct xs_call *k) {
    return uptree_run(c, local, remote, o, progress, user, k);
}

int xs_copy_download(struct xs_client *c, const char *remote, const char *local,
                     const struct xs_options *o, xs_progress_fn *progress, void *user,
                     struct xs_call *k) {
    return downtree_run(c, remote, local, o, progress, user, k);
}
