#include "sandbox/policy/plan.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

const char *const plan_platform[PLAN_PLATFORM] = {
    "/bin", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw", "/sbin", "/usr",
};

const char *const plan_protected[PLAN_PROTECTED] = {".agents", ".aws", ".codex", ".git"};

void plan_daemon(char out[PLAN_DAEMON_MAX]) {
    snprintf(out, PLAN_DAEMON_MAX, "/tmp/codex-daemon-%u", (unsigned)geteuid());
}

/*
 * The encoded form, in the byte order of the host, for a reader of the same build: a magic word,
 * one byte per flag and enum, counts and numbers as 32 bits, strings as their length, their bytes
 * and a NUL, so that a decoded plan points into the bytes it came from.
 */
#define PLAN_MAGIC 0x4E4C5031u /* "1PLN" */

static int plan_put_u8(struct buf *b, unsigned v) {
    return buf_putc(b, (char)v);
}

static int plan_put_u32(struct buf *b, size_t v) {
    uint32_t u = (uint32_t)v;
    return buf_put(b, &u, sizeof u);
}

static int plan_put_text(struct buf *b, const char *z) {
    size_t n = strlen(z);
    if (n >= PLAN_BYTES_MAX)
        return -ENOBUFS;
    int r = plan_put_u32(b, n);
    return r < 0 ? r : buf_put(b, z, n + 1);
}

static int plan_put_head(struct buf *b, const struct plan *p) {
    const bool flags[] = {p->confine_files, p->full_read, p->minimal, p->all_unix_sockets,
                          p->inherit_pids};
    int r = plan_put_u32(b, PLAN_MAGIC);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(flags); i++)
        r = plan_put_u8(b, flags[i]);
    if (r == 0)
        r = plan_put_u8(b, p->network);
    return r < 0 ? r : plan_put_text(b, p->cwd);
}

static int plan_put_lists(struct buf *b, const struct plan *p) {
    int r = plan_put_u32(b, p->port_count);
    for (size_t i = 0; r == 0 && i < p->port_count; i++)
        r = plan_put_u32(b, p->ports[i]);
    if (r == 0)
        r = plan_put_u32(b, p->entry_count);
    for (size_t i = 0; r == 0 && i < p->entry_count; i++) {
        r = plan_put_u8(b, p->entries[i].access);
        if (r == 0)
            r = plan_put_text(b, p->entries[i].path);
    }
    if (r == 0)
        r = plan_put_u32(b, p->glob_count);
    for (size_t i = 0; r == 0 && i < p->glob_count; i++) {
        const struct plan_glob *g = &p->globs[i];
        r = plan_put_text(b, g->pattern);
        if (r == 0)
            r = plan_put_u32(b, g->fixed);
        if (r == 0)
            r = plan_put_u32(b, g->max_depth);
    }
    return r;
}

int plan_encode(const struct plan *p, struct buf *b) {
    size_t len = b->len;
    if (p->port_count > PLAN_PORTS_MAX || p->entry_count > PLAN_ENTRIES_MAX ||
        p->glob_count > PLAN_ENTRIES_MAX)
        return -ENOBUFS;
    int r = plan_put_head(b, p);
    if (r == 0)
        r = plan_put_lists(b, p);
    if (r == 0 && b->len - len > PLAN_BYTES_MAX)
        r = -ENOBUFS;
    if (r < 0)
        b->len = len;
    return r;
}

/* What is left to decode. After a misfit `bad` is set and everything reads as zero or "". */
struct plan_reader {
    struct str in;
    bool bad;
};

static const char *plan_take(struct plan_reader *r, size_t n) {
    const char *p = r->bad ? NULL : str_take(&r->in, n);
    r->bad = p == NULL;
    return p;
}

/* A byte that is at most `max`. */
static unsigned plan_get_u8(struct plan_reader *r, unsigned max) {
    const char *p = plan_take(r, 1);
    unsigned v = p ? (unsigned char)*p : 0;
    if (v > max)
        r->bad = true;
    return v > max ? 0 : v;
}

/* A number that is at most `max`. */
static uint32_t plan_get_u32(struct plan_reader *r, uint32_t max) {
    uint32_t v = 0;
    const char *p = plan_take(r, sizeof v);
    if (p != NULL)
        memcpy(&v, p, sizeof v);
    if (v > max)
        r->bad = true;
    return v > max ? 0 : v;
}

/* An absolute path (or pattern), NUL-terminated, borrowed from the bytes. */
static const char *plan_get_path(struct plan_reader *r) {
    uint32_t n = plan_get_u32(r, PLAN_BYTES_MAX);
    const char *p = plan_take(r, (size_t)n + 1);
    if (p == NULL || p[0] != '/' || strnlen(p, (size_t)n + 1) != n) {
        r->bad = true;
        return "";
    }
    return p;
}

static int plan_get_ports(struct plan_reader *r, struct arena *a, struct plan *p) {
    uint32_t n = plan_get_u32(r, PLAN_PORTS_MAX);
    uint16_t *ports = arena_calloc(a, n, sizeof *ports);
    if (ports == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        ports[i] = (uint16_t)plan_get_u32(r, UINT16_MAX);
    p->ports = ports;
    p->port_count = n;
    return 0;
}

static int plan_get_entries(struct plan_reader *r, struct arena *a, struct plan *p) {
    uint32_t n = plan_get_u32(r, PLAN_ENTRIES_MAX);
    struct plan_entry *entries = arena_calloc(a, n, sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        entries[i].access = (enum plan_access)plan_get_u8(r, PLAN_DENY);
        entries[i].path = plan_get_path(r);
    }
    p->entries = entries;
    p->entry_count = n;
    return 0;
}

static int plan_get_globs(struct plan_reader *r, struct arena *a, struct plan *p) {
    uint32_t n = plan_get_u32(r, PLAN_ENTRIES_MAX);
    struct plan_glob *globs = arena_calloc(a, n, sizeof *globs);
    if (globs == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct plan_glob *g = &globs[i];
        g->pattern = plan_get_path(r);
        size_t len = strlen(g->pattern);
        g->fixed = plan_get_u32(r, (uint32_t)len);
        g->max_depth = plan_get_u32(r, UINT32_MAX);
        /* A directory, then what to match below it. */
        if (g->fixed == 0 || g->fixed == len || (g->fixed > 1 && g->pattern[g->fixed] != '/'))
            r->bad = true;
    }
    p->globs = globs;
    p->glob_count = n;
    return 0;
}

int plan_decode(struct str bytes, struct arena *a, struct plan *p) {
    struct plan_reader reader = {.in = bytes, .bad = bytes.n > PLAN_BYTES_MAX};
    *p = (struct plan){0};
    if (plan_get_u32(&reader, UINT32_MAX) != PLAN_MAGIC)
        return -EINVAL;
    bool *flags[] = {&p->confine_files, &p->full_read, &p->minimal, &p->all_unix_sockets,
                     &p->inherit_pids};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        *flags[i] = plan_get_u8(&reader, 1) != 0;
    p->network = (enum plan_network)plan_get_u8(&reader, PLAN_NET_MANAGED);
    p->cwd = plan_get_path(&reader);
    int r = plan_get_ports(&reader, a, p);
    if (r == 0)
        r = plan_get_entries(&reader, a, p);
    if (r == 0)
        r = plan_get_globs(&reader, a, p);
    if (r == 0 && (reader.bad || reader.in.n > 0))
        r = -EINVAL;
    return r;
}
