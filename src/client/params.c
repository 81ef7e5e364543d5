#include "base/uri.h"
#include "base/utf8.h"
#include "client/engine.h"
#include "json/base64.h"
#include "json/jsonw.h"

#include <errno.h>
#include <string.h>

static void params_keep(struct params *p, int r) {
    if (p->r == 0)
        p->r = r;
}

static void params_key(struct params *p, const char *key) {
    if (p->r == 0 && p->b == NULL)
        p->r = -ENOMEM;
    if (p->r == 0 && p->more)
        p->r = buf_putc(p->b, ',');
    p->more = true;
    if (p->r == 0 && key != NULL) {
        p->r = jsonw_str(p->b, str_of(key));
        params_keep(p, p->r == 0 ? buf_putc(p->b, ':') : 0);
    }
}

void params_open(struct params *p, const char *key, char bracket) {
    params_key(p, key);
    if (p->r == 0)
        p->r = buf_putc(p->b, bracket);
    p->more = false;
}

void params_close(struct params *p, char bracket) {
    if (p->r == 0)
        p->r = buf_putc(p->b, bracket);
    p->more = true;
}

void params_str(struct params *p, const char *key, struct str value) {
    params_key(p, key);
    if (p->r == 0 && !utf8_valid(value.p, value.n))
        p->r = -EILSEQ;
    if (p->r == 0)
        p->r = jsonw_str(p->b, value);
}

void params_strz(struct params *p, const char *key, const char *value) {
    if (value != NULL)
        params_str(p, key, str_of(value));
}

void params_u64(struct params *p, const char *key, uint64_t value) {
    params_key(p, key);
    if (p->r == 0)
        p->r = buf_putf(p->b, "%llu", (unsigned long long)value);
}

void params_i64(struct params *p, const char *key, int64_t value) {
    params_key(p, key);
    if (p->r == 0)
        p->r = buf_putf(p->b, "%lld", (long long)value);
}

void params_bool(struct params *p, const char *key, bool value) {
    params_raw(p, key, value ? STR_LIT("true") : STR_LIT("false"));
}

void params_raw(struct params *p, const char *key, struct str json) {
    params_key(p, key);
    if (p->r == 0)
        p->r = buf_put(p->b, json.p, json.n);
}

void params_base64(struct params *p, const char *key, const void *data, size_t n) {
    params_key(p, key);
    if (p->r == 0 && n > CALLS_TEXT_MAX)
        p->r = -ENOBUFS;
    if (p->r == 0)
        p->r = buf_reserve(p->b, base64_encoded_len(n) + 2);
    if (p->r != 0)
        return;
    p->b->p[p->b->len++] = '"';
    p->b->len += base64_encode(p->b->p + p->b->len, data, n);
    p->b->p[p->b->len++] = '"';
}

void params_path(struct params *p, const char *key, const struct xs_client *c, const char *path) {
    params_key(p, key);
    if (p->r != 0)
        return;
    _cleanup_buf_ struct buf full = BUF_INIT(URI_PATH_MAX), uri = BUF_INIT(4 * URI_PATH_MAX);
    _cleanup_err_ struct err why = ERR_INIT;
    _cleanup_free_ char *clean = NULL;
    int r = 0;
    if (path[0] != '/') {
        r = buf_putz(&full, c->info.cwd != NULL ? c->info.cwd : "/");
        r = r < 0 ? r : buf_putc(&full, '/');
    }
    r = r < 0 ? r : buf_putz(&full, path);
    r = r < 0 ? r : uri_to_path(buf_str(&full), &clean, &why);
    r = r < 0 ? r : uri_from_path(&uri, str_of(clean));
    r = r < 0 ? r : jsonw_str(p->b, buf_str(&uri));
    params_keep(p, r);
}
