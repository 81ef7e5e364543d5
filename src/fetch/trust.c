#include "fetch/trust.h"

#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define TRUST_HINT                                                                                 \
    "If you set CODEX_CA_CERTIFICATE or SSL_CERT_FILE, ensure it points to a PEM file "            \
    "containing one or more CERTIFICATE blocks, or unset it to use system roots."

/* Appends a file; a FIFO is like an empty one. 0 or -errno. */
static int trust_read(struct buf *b, const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    for (;;) {
        int r = buf_reserve(b, 65536);
        if (r < 0)
            return r == -ENOBUFS ? -EFBIG : r;
        ssize_t n = read(fd, b->p + b->len, 65536);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return buf_putc(b, '\n');
        b->len += n > 0 ? (size_t)n : 0;
    }
}

static bool trust_has_certificate(struct str pem) {
    return memmem(pem.p, pem.n, "-----BEGIN CERTIFICATE-----", 27) != NULL ||
           memmem(pem.p, pem.n, "-----BEGIN TRUSTED CERTIFICATE-----", 35) != NULL;
}

/* The variable that names a file; NULL: none does. */
static const char *trust_variable(void) {
    static const char *const names[] = {"CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return names[i];
    }
    return NULL;
}

static void trust_fail(struct trust *t, const char *verb, const char *path, const char *variable,
                       const char *why) {
    if (asprintf(&t->fault, "Failed to %s CA certificate%s %s selected by %s: %s. " TRUST_HINT,
                 verb, strcmp(verb, "read") == 0 ? " file" : "s from", path, variable, why) < 0)
        t->fault = NULL;
    else
        utf8_mend(t->fault, strlen(t->fault)); /* a path has any bytes */
}

void trust_init(struct trust *t) {
    *t = (struct trust){.pem = BUF_INIT(TRUST_MAX)};
    const char *variable = trust_variable();
    if (variable == NULL)
        return;
    const char *path = getenv(variable);
    char why[256];
    int r = trust_read(&t->pem, path);
    if (r < 0) {
        snprintf(why, sizeof why, "%s (os error %d)", err_os_text(-r), -r);
        trust_fail(t, "read", path, variable, why);
        return;
    }
    if (!trust_has_certificate(buf_str(&t->pem))) {
        trust_fail(t, "load", path, variable, "no certificates found in PEM file");
        return;
    }
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
    if (v->cainfo != NULL)
        (void)!trust_read(&t->pem, v->cainfo); /* a system may have none */
}

CURLcode trust_apply(const struct trust *t, CURL *easy) {
    if (t->pem.len == 0)
        return CURLE_OK;
    struct curl_blob blob = {t->pem.p, t->pem.len, CURL_BLOB_NOCOPY};
    return curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
}
