#pragma once
/*
 * The seccomp programs, made when this program is built (filters_gen.c) for the architecture it is
 * built for.
 */

#include <linux/filter.h>
#include <stdint.h>

/* What a command may do with sockets. */
enum filter_network {
    FILTER_RESTRICTED, /* just pairs of AF_UNIX sockets */
    FILTER_ENABLED,    /* all but AF_VSOCK */
    FILTER_INET,       /* internet sockets, and pairs of AF_UNIX sockets */
    FILTER_INET_UNIX,  /* internet and AF_UNIX sockets */
};
#define FILTER_NETWORKS 4

/* How files are confined; each denies what the one before it does. */
enum filter_files {
    FILTER_FREE,
    FILTER_CONFINED,  /* nothing that manages the system */
    FILTER_HOST_PIDS, /* processes of the host can be named */
    FILTER_ALONE,     /* no mounts or namespaces: what else could change or reach the host */
};
#define FILTER_FILES 4

#define FILTER_KINDS (FILTER_NETWORKS * FILTER_FILES)

/* Program n, for network n / FILTER_FILES and files n % FILTER_FILES: start[n] to start[n + 1]. */
extern const struct sock_filter filter_code[];
extern const uint16_t filter_start[FILTER_KINDS + 1];
