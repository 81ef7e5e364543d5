#include "fetch/jail.h"

#include "sandbox/host/landlock_abi.h"
#include "sandbox/inside/caps.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/inside/seccomp.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define JAIL_MORE_MAX 4                 /* paths of the caller */
#define JAIL_DATA_MAX ((rlim_t)1 << 30) /* bytes of memory that the program may have */

/* What the resolver of names, TLS and the dynamic linker read. */
static const char *const jail_readable[] = {
    "/dev/null",
    "/dev/urandom",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/pki",
};

static int jail_limit(__rlimit_resource_t what, rlim_t most) {
    struct rlimit v;
    if (getrlimit(what, &v) < 0)
        return -errno;
    v.rlim_cur = v.rlim_max = MIN(v.rlim_max, most);
    return setrlimit(what, &v) < 0 ? -errno : 0;
}

/* The rules for files. */
static int jail_files(const char *const *more, size_t n) {
    const char *paths[ARRAY_LEN(jail_readable) + JAIL_MORE_MAX];
    size_t count = ARRAY_LEN(jail_readable);
    memcpy(paths, jail_readable, sizeof jail_readable);
    for (size_t i = 0; i < MIN(n, (size_t)JAIL_MORE_MAX); i++) {
        if (more[i] != NULL)
            paths[count++] = more[i];
    }
    return landlock_read_only(paths, count);
}

int jail_enter(const char *const *more, size_t n) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    int r = jail_limit(RLIMIT_CORE, 0);
#ifdef FETCH_SANITIZED
    (void)more;
    (void)n; /* a sanitizer reserves terabytes, writes files, and starts a process for leaks */
    (void)jail_files;
#else
    if (r == 0)
        r = jail_limit(RLIMIT_DATA, JAIL_DATA_MAX);
    if (r == 0)
        r = jail_limit(RLIMIT_FSIZE, 0);
    if (r == 0)
        r = jail_files(more, n);
    if (r == 0)
        r = seccomp_enter_http();
#endif
    return r < 0 ? r : caps_drop();
}
