#pragma once
/* The seccomp programs. filters_gen.c makes them at build time for the target architecture. */

#include <linux/filter.h>
#include <stdint.h>

/* The sockets that a command may use. */
enum filter_network {
    FILTER_RESTRICTED, /* only AF_UNIX pairs */
    FILTER_ENABLED,    /* all but AF_VSOCK */
    FILTER_INET,       /* internet sockets and AF_UNIX pairs */
    FILTER_INET_UNIX,  /* internet and AF_UNIX sockets */
};
#define FILTER_NETWORKS 4

/* How files are confined; each value denies all that the one before denies. */
enum filter_files {
    FILTER_FREE,
    FILTER_CONFINED,  /* no system management */
    FILTER_HOST_PIDS, /* the sandbox can name processes of the host */
    FILTER_ALONE,     /* no mounts or namespaces: denies all else that could reach the host */
};
#define FILTER_FILES 4

#define FILTER_KINDS (FILTER_NETWORKS * FILTER_FILES)

/* The program behind those of sandboxes: that of the HTTP program (src/fetch). */
#define FILTER_HTTP FILTER_KINDS
#define FILTER_PROGRAMS (FILTER_KINDS + 1)

/* Program n, for network n / FILTER_FILES and files n % FILTER_FILES: start[n] to start[n + 1]. */
extern const struct sock_filter filter_code[];
extern const uint16_t filter_start[FILTER_PROGRAMS + 1];
