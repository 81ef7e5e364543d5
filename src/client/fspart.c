#include "client/fspart.h"

#include "base/uri.h"
#include "client/fshandle.h"
#include "client/sandboxparams.h"
#include "client/xs_file.h"
#include "client/xs_watch.h"

#include <errno.h>

static struct files *files_of(struct client_part *p) {
    return container_of(p, struct files, part);
}

static int note(struct client_part *p, struct str method, const struct json_node *params) {
    return xs_watch_note(files_of(p), method, params);
}

static void resumed(struct client_part *p) {
    fshandle_resumed(files_of(p));
    xs_watch_resumed(files_of(p));
}

static void failed(struct client_part *p, const struct xs_error *why) {
    fshandle_failed(files_of(p), why);
    xs_watch_failed(files_of(p), why);
}

static void space_free(struct xs_fs *f) {
    list_remove(&f->node);
    xs_options_free(f->options);
    free(f);
}

/* Operations have ended by now; what is left belongs to the caller. */
static void part_free(struct client_part *p) {
    struct files *files = files_of(p);
    files->ending = true;
    list_for_each(i, &files->watches) xs_watch_free(list_entry(i, struct xs_watch, node));
    list_for_each(i, &files->opened) xs_file_free(list_entry(i, struct xs_file, node));
    fshandle_free_all(files);
    list_for_each(i, &files->spaces) space_free(list_entry(i, struct xs_fs, node));
    free(files);
}

struct files *fspart_get(struct xs_client *c) {
    struct files **slot = client_files(c);
    if (*slot != NULL)
        return *slot;
    struct files *files = calloc(1, sizeof(*files));
    if (files == NULL)
        return NULL;
    files->client = c;
    files->part =
        (struct client_part){.note = note, .resumed = resumed, .failed = failed, .free = part_free};
    list_init(&files->spaces);
    list_init(&files->handles);
    list_init(&files->watches);
    list_init(&files->opened);
    client_add_part(c, &files->part);
    *slot = files;
    return files;
}

struct xs_fs *fspart_hold(struct xs_fs *f) {
    f->users++;
    return f;
}

void fspart_release(struct xs_fs *f) {
    if (f != NULL && --f->users == 0)
        space_free(f);
}

static bool wants_sandbox(const struct xs_options *o) {
    return xs_options_has(o, XS_OPT_SANDBOX) || xs_options_has(o, XS_OPT_SANDBOX_JSON);
}

struct xs_fs *fspart_space(struct xs_client *c, const struct xs_options *sandbox) {
    struct files *files = fspart_get(c);
    struct xs_fs *f = files == NULL ? NULL : calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    if (wants_sandbox(sandbox)) {
        f->options = xs_options_copy(sandbox);
        if (f->options == NULL) {
            free(f);
            return NULL;
        }
    }
    f->files = files;
    f->users = 1;
    list_append(&files->spaces, &f->node);
    return f;
}

bool fspart_is_confined(const struct xs_fs *f) {
    return f->options != NULL;
}

void fspart_sandbox(const struct xs_fs *f, struct params *p) {
    if (f->options == NULL)
        return;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    const char *cwd = xs_options_get(f->options, XS_OPT_CWD, NULL);
    if (sandboxparams_put(p, f->files->client, f->options, cwd, &e) < 0 && p->r == 0)
        p->r = -EINVAL; /* the options were looked at by fspart_space() */
}

int fspart_path(struct xs_client *c, const char *path, char **out, struct xs_error *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(2 * URI_PATH_MAX);
    int r = 0;
    if (path[0] != '/') {
        const struct xs_info *info = xs_client_info(c);
        if (info == NULL || info->cwd == NULL)
            return xs_error_set(e, XS_EINVAL, "%s: the server's directory is not known", path);
        r = buf_putf(&b, "%s/", info->cwd);
    }
    if (r == 0)
        r = buf_putz(&b, path);
    if (r < 0)
        return xs_error_set(e, r == -ENOMEM ? XS_ENOMEM : XS_EINVAL, "the path is too long");
    struct err why = ERR_INIT;
    r = uri_to_path(buf_str(&b), out, &why);
    if (r < 0)
        r = xs_error_set(e, r == -ENOMEM ? XS_ENOMEM : XS_EINVAL, "%s: %s", path, err_msg(&why));
    err_fini(&why);
    return r;
}
