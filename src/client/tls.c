#include "client/tls.h"

#include <stdio.h>

#ifdef CLIENT_TLS

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#define TLS_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

/* From the directory of the file that contains this code, if its name is absolute. The name of a
 * program may be what its caller chose. */
static void *tls_open_beside(void) {
    char path[PATH_MAX];
    Dl_info self;
    if (dladdr((const void *)&tls_load, &self) == 0 || self.dli_fname[0] != '/')
        return NULL;
    int directory = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
    int n = snprintf(path, sizeof path, "%.*s/" TLS_LIBRARY, directory, self.dli_fname);
    return n > 0 && (size_t)n < sizeof path ? dlopen(path, TLS_FLAGS) : NULL;
}

const struct tls_ops *tls_load(char *why, size_t n) {
    void *library = tls_open_beside();
    if (library == NULL)
        library = dlopen(TLS_LIBRARY, TLS_FLAGS);
    if (library == NULL) {
        snprintf(why, n, "TLS: %s; install libexecserver-tls0, or use ssh://", dlerror());
        return NULL;
    }
    const struct tls_ops *ops = dlsym(library, TLS_SYMBOL);
    if (ops == NULL || ops->abi != TLS_ABI) {
        snprintf(why, n, TLS_LIBRARY " is of another version");
        return NULL;
    }
    return ops;
}

#else

const struct tls_ops *tls_load(char *why, size_t n) {
    snprintf(why, n, "built without TLS; use ssh:// or the package");
    return NULL;
}

#endif
