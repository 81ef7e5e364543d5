#include "cli/cli_json.h"

#include "base/utf8.h"
#include "json/base64.h"
#include "json/jsonw.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

void cli_json_fini(struct cli_json *j) {
    buf_fini(&j->b);
}

static void note(struct cli_json *j, int r) {
    if (j->error == 0)
        j->error = r;
}

static void put_key(struct cli_json *j, const char *key) {
    if (j->comma)
        note(j, buf_putc(&j->b, ','));
    j->comma = true;
    if (key == NULL)
        return;
    note(j, jsonw_str(&j->b, str_of(key)));
    note(j, buf_putc(&j->b, ':'));
}

void cli_json_open(struct cli_json *j, const char *key, char bracket) {
    put_key(j, key);
    note(j, buf_putc(&j->b, bracket));
    j->comma = false;
}

void cli_json_close(struct cli_json *j, char bracket) {
    note(j, buf_putc(&j->b, bracket));
    j->comma = true;
}

void cli_json_str(struct cli_json *j, const char *key, struct str s) {
    put_key(j, key);
    if (s.p == NULL) {
        note(j, buf_putz(&j->b, "null"));
        return;
    }
    _cleanup_free_ char *copy = utf8_valid(s.p, s.n) ? NULL : str_dup(s);
    if (copy != NULL) {
        utf8_mend(copy, s.n);
        s.p = copy;
    } else if (!utf8_valid(s.p, s.n)) {
        note(j, -ENOMEM);
        return;
    }
    note(j, jsonw_str(&j->b, s));
}

void cli_json_int(struct cli_json *j, const char *key, int64_t v) {
    put_key(j, key);
    note(j, buf_putf(&j->b, "%lld", (long long)v));
}

void cli_json_u64(struct cli_json *j, const char *key, uint64_t v) {
    put_key(j, key);
    note(j, buf_putf(&j->b, "%llu", (unsigned long long)v));
}

void cli_json_bool(struct cli_json *j, const char *key, bool v) {
    put_key(j, key);
    note(j, buf_putz(&j->b, v ? "true" : "false"));
}

void cli_json_null(struct cli_json *j, const char *key) {
    put_key(j, key);
    note(j, buf_putz(&j->b, "null"));
}

void cli_json_raw(struct cli_json *j, const char *key, struct str text) {
    put_key(j, key);
    note(j, buf_put(&j->b, text.p, text.n));
}

void cli_json_bytes(struct cli_json *j, const char *key, const void *p, size_t n) {
    put_key(j, key);
    int r = buf_reserve(&j->b, base64_encoded_len(n) + 2);
    note(j, r);
    if (r < 0)
        return;
    j->b.p[j->b.len++] = '"';
    j->b.len += base64_encode(j->b.p + j->b.len, p, n);
    j->b.p[j->b.len++] = '"';
}

void cli_json_path(struct cli_json *j, const char *key, struct str path) {
    char name[64];
    cli_json_str(j, key, path);
    if (utf8_valid(path.p, path.n))
        return;
    snprintf(name, sizeof name, "%sBase64", key);
    cli_json_bytes(j, name, path.p, path.n);
}

int cli_json_print(struct cli_json *j, int fd) {
    note(j, buf_putc(&j->b, '\n'));
    int r = j->error;
    for (size_t at = 0; r == 0 && at < j->b.len;) {
        ssize_t n = write(fd, j->b.p + at, j->b.len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            r = -errno;
    }
    j->b.len = 0;
    j->comma = false;
    return r;
}
