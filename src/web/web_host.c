#include "web/web_host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

/* The variables that the program is given: no secret of the server's environment is among them
 * unless it stands in the address of a proxy. */
static const char *const web_variables[] = {
    "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "HTTP_PROXY",   "http_proxy",    "HTTPS_PROXY",
    "https_proxy",          "ALL_PROXY",     "all_proxy",    "NO_PROXY",      "no_proxy",
    "RES_OPTIONS",          "LOCALDOMAIN",   "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
};

/* Copies the variables that are set. NULL without memory. */
static char **web_environment(void) {
    char **env = calloc(ARRAY_LEN(web_variables) + 1, sizeof *env);
    size_t n = 0;
    for (size_t i = 0; env != NULL && i < ARRAY_LEN(web_variables); i++) {
        const char *name = web_variables[i], *value = getenv(name);
        if (value == NULL)
            continue;
        size_t room = strlen(name) + strlen(value) + 2;
        env[n] = malloc(room);
        if (env[n] == NULL)
            break;
        stpcpy(stpcpy(stpcpy(env[n], name), "="), value);
        n++;
    }
    return env;
}

/* Opens an executable file. The descriptor or -errno. */
static int web_open(const char *path) {
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0                                ? -errno
            : !S_ISREG(st.st_mode)                            ? -EACCES
            : faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno
                                                              : fd;
    if (r < 0)
        close(fd);
    return r;
}

/* The program beside our own executable; -1: there is none. */
static int web_open_beside(void) {
    char path[PATH_MAX + sizeof WEB_PROGRAM];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return -1;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return -1;
    strcpy(slash + 1, WEB_PROGRAM);
    return MAX(web_open(path), -1);
}

int web_host_init(struct web_host *h, const char *path, struct err *e) {
    list_init(&h->programs);
    h->env = web_environment();
    h->program = -1;
    if (h->env == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    if (path == NULL) {
        h->program = web_open_beside();
    } else if (strcmp(path, "none") != 0) {
        int fd = web_open(path);
        if (fd < 0) {
            err_set(e, ERR_INTERNAL, "cannot use --http-program %s: %s (os error %d)", path,
                    err_os_text(-fd), -fd);
            return fd;
        }
        h->program = fd;
    }
    return 0;
}

void web_host_fini(struct web_host *h) {
    for (size_t i = 0; h->env != NULL && h->env[i] != NULL; i++)
        free(h->env[i]);
    free(steal_ptr(&h->env));
    util_close_fd(&h->program);
}
