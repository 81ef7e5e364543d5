#include "sandbox/policy/plan.h"

#include "base/codec.h"

#include <stdio.h>
#include <unistd.h>

const char *const plan_platform[PLAN_PLATFORM] = {
    "/bin", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw", "/sbin", "/usr",
};

const char *const plan_protected[PLAN_PROTECTED] = {".agents", ".aws", ".codex", ".git"};

void plan_daemon(char out[PLAN_DAEMON_MAX]) {
    snprintf(out, PLAN_DAEMON_MAX, "/tmp/codex-daemon-%u", (unsigned)geteuid());
}

#define PLAN_MAGIC 0x4E4C5031u /* "1PLN", first of the encoded form */

int plan_encode(const struct plan *p, struct buf *b) {
    struct codec_writer w = CODEC_WRITER(b);
    const bool flags[] = {p->confine_files, p->full_read, p->minimal, p->all_unix_sockets,
                          p->inherit_pids};
    codec_put_u32(&w, PLAN_MAGIC);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        codec_put_u8(&w, flags[i]);
    codec_put_u8(&w, p->network);
    codec_put_text(&w, p->cwd);
    codec_put_count(&w, p->port_count, PLAN_PORTS_MAX);
    for (size_t i = 0; i < p->port_count && w.r == 0; i++)
        codec_put_u32(&w, p->ports[i]);
    codec_put_u8(&w, (uint8_t)p->proxy_ports);
    codec_put_count(&w, p->entry_count, PLAN_ENTRIES_MAX);
    for (size_t i = 0; i < p->entry_count && w.r == 0; i++) {
        codec_put_u8(&w, p->entries[i].access);
        codec_put_text(&w, p->entries[i].path);
    }
    codec_put_count(&w, p->glob_count, PLAN_ENTRIES_MAX);
    for (size_t i = 0; i < p->glob_count && w.r == 0; i++) {
        codec_put_text(&w, p->globs[i].pattern);
        codec_put_u32(&w, p->globs[i].fixed);
        codec_put_u32(&w, p->globs[i].max_depth);
    }
    return codec_put_end(&w, PLAN_BYTES_MAX);
}

/* An absolute path or pattern; "" after a misfit. */
static const char *plan_get_path(struct codec_reader *r) {
    const char *p = codec_get_text(r);
    r->bad |= p == NULL || p[0] != '/';
    return r->bad ? "" : p;
}

static void plan_get_ports(struct codec_reader *r, struct plan *p) {
    p->port_count = codec_get_u32(r, PLAN_PORTS_MAX);
    uint16_t *ports = codec_get_array(r, p->port_count, sizeof *ports);
    for (size_t i = 0; i < p->port_count && ports != NULL; i++)
        ports[i] = (uint16_t)codec_get_u32(r, UINT16_MAX);
    p->ports = ports;
    p->proxy_ports = codec_get_u8(r, PLAN_PROXY_PORTS_MAX);
    r->bad |= p->proxy_ports > p->port_count;
}

static void plan_get_entries(struct codec_reader *r, struct plan *p) {
    p->entry_count = codec_get_u32(r, PLAN_ENTRIES_MAX);
    struct plan_entry *entries = codec_get_array(r, p->entry_count, sizeof *entries);
    for (size_t i = 0; i < p->entry_count && entries != NULL; i++) {
        entries[i].access = (enum plan_access)codec_get_u8(r, PLAN_DENY);
        entries[i].path = plan_get_path(r);
    }
    p->entries = entries;
}

static void plan_get_globs(struct codec_reader *r, struct plan *p) {
    p->glob_count = codec_get_u32(r, PLAN_ENTRIES_MAX);
    struct plan_glob *globs = codec_get_array(r, p->glob_count, sizeof *globs);
    for (size_t i = 0; i < p->glob_count && globs != NULL; i++) {
        struct plan_glob *g = &globs[i];
        g->pattern = plan_get_path(r);
        size_t len = strlen(g->pattern);
        g->fixed = codec_get_u32(r, (uint32_t)len);
        g->max_depth = codec_get_u32(r, UINT32_MAX);
        /* A directory, then what to match below it. */
        if (g->fixed == 0 || g->fixed == len || (g->fixed > 1 && g->pattern[g->fixed] != '/'))
            r->bad = true;
    }
    p->globs = globs;
}

int plan_decode(struct str bytes, struct arena *a, struct plan *p) {
    struct codec_reader r = CODEC_READER(bytes, PLAN_BYTES_MAX, a);
    *p = (struct plan){0};
    r.bad |= codec_get_u32(&r, UINT32_MAX) != PLAN_MAGIC;
    bool *flags[] = {&p->confine_files, &p->full_read, &p->minimal, &p->all_unix_sockets,
                     &p->inherit_pids};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        *flags[i] = codec_get_u8(&r, 1) != 0;
    p->network = (enum plan_network)codec_get_u8(&r, PLAN_NET_MANAGED);
    p->cwd = plan_get_path(&r);
    plan_get_ports(&r, p);
    plan_get_entries(&r, p);
    plan_get_globs(&r, p);
    return codec_get_end(&r);
}
