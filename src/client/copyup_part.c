#include "client/copyup_internal.h"

#include "base/uri.h"

#include <stdio.h>

#define SWEEP_MIN (4 << 20)               /* bytes of a file: less is not worth the look */
#define SWEEP_ENTRIES 1000                /* names of the directory that it looks at */
#define SWEEP_STALE_MS (60LL * 60 * 1000) /* without a write, then a part has no owner */

static char *beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    char *out = NULL;
    int n = asprintf(&out, "%.*s/%s", (int)(slash - path), path, name);
    return n < 0 ? NULL : out;
}

static char *part_path(const struct copyup *u, const char *token) {
    char name[PARTNOTE_NAME_MAX + 1];
    partnote_part_name(str_of(strrchr(u->remote, '/') + 1), token, name);
    return beside(u->remote, name);
}

static char *note_path(const struct copyup *u) {
    char name[PARTNOTE_NAME_MAX + 1];
    partnote_note_name(str_of(strrchr(u->remote, '/') + 1), name);
    return beside(u->remote, name);
}

/* Whether a part can be gone on with. */
static bool can_go_on(const struct copyup *u) {
    return u->job.c->resume && copyup_can_rename(u) && client_can(copyup_client(u), "fsOpenUpdate");
}

void copyup_part_remove(struct copyup *u, const char *path, copyup_after *then) {
    struct params p = copyup_begin(u, "fs/remove", path, NULL);
    if (p.b != NULL) {
        params_bool(&p, "recursive", false);
        params_bool(&p, "force", true);
    }
    copyup_ask(u, &p, then);
}

void copyup_part_drop_note(struct copyup *u, copyup_after *then) {
    _cleanup_free_ char *path = u->has_note ? note_path(u) : NULL;
    u->has_note = false;
    if (path == NULL)
        then(u, 0, NULL, NULL);
    else
        copyup_part_remove(u, path, then);
}

/* -- in blocks: going on with a part -- */

static void compared(struct fshandle_io *io, int err, struct str data, bool eof,
                     struct xs_error *e) {
    struct copyup *u = container_of(io, struct copyup, tail);
    (void)eof;
    (void)e;
    bool same = err == 0 && data.n == io->n &&
                copyup_read(u->fd, u->data, io->n, io->offset) == (ssize_t)io->n &&
                memcmp(u->data, data.p, io->n) == 0;
    if (!same)
        u->kept = 0;
    fshandle_free(steal_ptr(&u->handle));
    copyup_open_part(u);
}

static void tail_open(struct fshandle *h, int err) {
    struct copyup *u = h->user;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    size_t n = (size_t)MIN(u->kept, (uint64_t)CLIENT_BLOCK_MAX);
    u->tail = (struct fshandle_io){.offset = u->kept - n, .n = n, .done = compared};
    if (err < 0 || fshandle_send(h, &u->tail, &e) < 0) {
        u->kept = 0;
        fshandle_free(steal_ptr(&u->handle));
        copyup_open_part(u);
    }
}

/* How much of it there is. */
static void measured(struct copyup *u, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct fsanswer_stat s;
    if (err < 0 && err != XS_EREMOTE) {
        copyup_failed(u, e);
        return;
    }
    u->kept = err == 0 && fsanswer_stat(result, &s) == 0 ? s.bytes : 0;
    if (u->kept > (uint64_t)u->st.st_size)
        u->kept = 0;
    if (u->kept == 0) {
        copyup_open_part(u);
        return;
    }
    u->handle = fshandle_open(u->job.c->fs, u->part, XS_OPEN_READ, tail_open, u, e);
    if (u->handle == NULL)
        copyup_failed(u, e);
}

static void take_over(struct copyup *u, const char *token);

static void taken(struct copyup *u, int err, const struct json_node *result, struct xs_error *e) {
    (void)result;
    if (err < 0 && err != XS_EREMOTE) {
        copyup_failed(u, e);
    } else if (err < 0 && u->found.has_older) {
        u->found.has_older = false;
        take_over(u, u->found.older);
    } else {
        /* If both are gone, an answer may be lost and the part be ours. */
        copyup_ask_path(u, "fs/getMetadata", u->part, measured);
    }
}

static void take_over(struct copyup *u, const char *token) {
    _cleanup_free_ char *from = part_path(u, token);
    if (from == NULL) {
        copyup_no_memory(u);
        return;
    }
    struct params p = copyup_begin(u, "fs/rename", from, u->part);
    copyup_ask(u, &p, taken);
}

static void noted(struct copyup *u, int err, const struct json_node *result, struct xs_error *e) {
    (void)result;
    if (err < 0) {
        copyup_failed(u, e);
        return;
    }
    u->has_note = true;
    if (u->note.has_older)
        take_over(u, u->found.token);
    else
        copyup_open_part(u);
}

/* The note names the part before the part is there, and where it comes from. */
static void write_note(struct copyup *u) {
    _cleanup_buf_ struct buf b = BUF_INIT(PARTNOTE_TEXT_MAX);
    _cleanup_free_ char *path = note_path(u);
    if (path == NULL || partnote_write(&b, &u->note) < 0) {
        copyup_no_memory(u);
        return;
    }
    struct params p = copyup_begin(u, "fs/writeFile", path, NULL);
    if (p.b != NULL)
        params_base64(&p, "dataBase64", b.p, b.len);
    copyup_ask(u, &p, noted);
}

static void old_removed(struct copyup *u, int err, const struct json_node *result,
                        struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    if (!u->found.has_older) {
        write_note(u);
        return;
    }
    u->found.has_older = false;
    _cleanup_free_ char *path = part_path(u, u->found.older);
    if (path == NULL)
        copyup_no_memory(u);
    else
        copyup_part_remove(u, path, old_removed);
}

static void completed(struct copyup *u, int err, const struct json_node *result,
                      struct xs_error *e) {
    (void)result;
    if (err < 0 && err != XS_EREMOTE)
        copyup_failed(u, e);
    else
        write_note(u);
}

/* A copy that took a part over may have ended between its note and the rename: the part gets the
 * name that the note says first, because ours has room for two. */
static void complete(struct copyup *u) {
    if (!u->found.has_older) {
        write_note(u);
        return;
    }
    _cleanup_free_ char *from = part_path(u, u->found.older);
    _cleanup_free_ char *to = part_path(u, u->found.token);
    if (from == NULL || to == NULL) {
        copyup_no_memory(u);
        return;
    }
    struct params p = copyup_begin(u, "fs/rename", from, to);
    copyup_ask(u, &p, completed);
}

static void have_note(struct copyup *u, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct str text;
    if (err < 0 && err != XS_EREMOTE) {
        copyup_failed(u, e);
        return;
    }
    bool found = err == 0 && fsanswer_data(result, "dataBase64", PARTNOTE_TEXT_MAX, &text) == 0 &&
                 partnote_read(&u->found, text) == 0;
    if (found && can_go_on(u) && partnote_matches(&u->found, &u->note)) {
        u->note.has_older = true;
        memcpy(u->note.older, u->found.token, sizeof(u->note.older));
        complete(u);
        return;
    }
    _cleanup_free_ char *old = found ? part_path(u, u->found.token) : NULL;
    if (old != NULL)
        copyup_part_remove(u, old, old_removed);
    else
        write_note(u);
}

void copyup_part_begin(struct copyup *u) {
    struct copyop *c = u->job.c;
    _cleanup_buf_ struct buf uri = BUF_INIT(4 * URI_PATH_MAX);
    u->kept = 0;
    u->note = (struct partnote){.bytes = (uint64_t)u->st.st_size};
    u->note.modified_ns = localtree_ns(u->st.st_mtim);
    /* What tells two local files apart, whatever path leads to them. */
    if (buf_putf(&uri, "%llu:%llu", (unsigned long long)u->st.st_dev,
                 (unsigned long long)u->st.st_ino) == 0)
        partnote_source(buf_str(&uri), u->note.source);
    partnote_token(u->note.token);
    free(u->part);
    u->part = part_path(u, u->note.token);
    if (u->data == NULL)
        u->data = malloc(CLIENT_BLOCK_MAX);
    _cleanup_free_ char *note = note_path(u);
    if (u->part == NULL || u->data == NULL || note == NULL) {
        copyup_no_memory(u);
        return;
    }
    copyop_name(c, u->shown);
    if (u->alone) {
        copyup_open_part(u);
        return;
    }
    struct params p = copyup_begin(u, "fs/readFile", note, NULL);
    if (p.b != NULL)
        params_u64(&p, "maxBytes", PARTNOTE_TEXT_MAX);
    copyup_ask(u, &p, have_note);
}

/* -- what dead copies have left -- */

/*
 * A note has room for two parts. Copies that run at once overwrite each other's notes, and one that
 * lost its part goes on without a note. When such a copy dies, nothing names its part any more. A
 * part that nobody has written to for SWEEP_STALE_MS, by the clock of the server, has no owner: its
 * session is over. Should there be one after all, it begins anew.
 */

static void sweep_next(struct copyup *u);

static void sweep_end(struct copyup *u) {
    copyup_part_drop_note(u, u->swept);
}

static void sweep_removed(struct copyup *u, int err, const struct json_node *result,
                          struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    sweep_next(u);
}

static void sweep_aged(struct copyup *u, int err, const struct json_node *result,
                       struct xs_error *e) {
    struct fsanswer_stat s;
    (void)e;
    bool stale = err == 0 && fsanswer_stat(result, &s) == 0 && s.kind == FSANSWER_FILE &&
                 s.modified_ms < u->sweep_before_ms;
    _cleanup_free_ char *path = stale ? part_path(u, u->sweep[u->sweep_n]) : NULL;
    if (path != NULL)
        copyup_part_remove(u, path, sweep_removed);
    else
        sweep_next(u);
}

static void sweep_next(struct copyup *u) {
    _cleanup_free_ char *path = u->sweep_n > 0 ? part_path(u, u->sweep[--u->sweep_n]) : NULL;
    if (path == NULL)
        sweep_end(u);
    else
        copyup_ask_path(u, "fs/getMetadata", path, sweep_aged);
}

static void sweep_dated(struct copyup *u, int err, const struct json_node *result,
                        struct xs_error *e) {
    struct fsanswer_stat s;
    (void)e;
    if (err < 0 || fsanswer_stat(result, &s) < 0) {
        sweep_end(u);
        return;
    }
    u->sweep_before_ms = s.modified_ms - SWEEP_STALE_MS;
    sweep_next(u);
}

static int sweep_add(void *user, const struct fsanswer_item *i) {
    struct copyup *u = user;
    if (i->message == NULL && i->kind == FSANSWER_FILE && u->sweep_n < COPYUP_SWEEP_MAX &&
        partnote_part_token(str_of(strrchr(u->remote, '/') + 1), i->name, u->sweep[u->sweep_n]))
        u->sweep_n++;
    return 0;
}

static char *directory_of(const struct copyup *u) {
    size_t n = (size_t)(strrchr(u->remote, '/') - u->remote);
    return str_dup((struct str){u->remote, MAX(n, (size_t)1)});
}

static void sweep_listed(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    bool truncated;
    (void)e;
    _cleanup_free_ char *root = directory_of(u);
    _cleanup_free_ char *note = note_path(u);
    bool read = err == 0 && root != NULL && note != NULL &&
                fsanswer_walk(result, root, sweep_add, u, &truncated) == 0;
    if (read && u->sweep_n > 0)
        copyup_ask_path(u, "fs/getMetadata", note, sweep_dated);
    else
        sweep_end(u);
}

void copyup_part_sweep(struct copyup *u, copyup_after *then) {
    _cleanup_free_ char *root = directory_of(u);
    u->swept = then;
    u->sweep_n = 0;
    if (!u->has_note || u->st.st_size < SWEEP_MIN || root == NULL) {
        sweep_end(u);
        return;
    }
    struct params p = copyup_begin(u, "fs/walk", root, NULL);
    if (p.b != NULL) {
        params_open(&p, "options", '{');
        params_u64(&p, "maxDepth", 0);
        params_u64(&p, "maxDirectories", 1);
        params_u64(&p, "maxEntries", SWEEP_ENTRIES);
        params_bool(&p, "followDirectorySymlinks", false);
        params_close(&p, '}');
    }
    copyup_ask(u, &p, sweep_listed);
}
