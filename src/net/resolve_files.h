#pragma once
/* The hosts file and resolv.conf, kept in memory and read again when they have changed. */

#include "net/dns_conf.h"

#include <sys/stat.h>

#define RESOLVE_FILES_HOSTS_MAX (1u << 20) /* bytes of the hosts file; the rest is ignored */
#define RESOLVE_FILES_CONF_MAX (64u << 10) /* bytes of resolv.conf; the rest is ignored */

/* Tells versions of a file apart. All zero: there is no such file. */
struct resolve_files_stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
};

struct resolve_files {
    const char *hosts_path, *conf_path; /* borrowed */
    bool known;                         /* the rest is filled */
    struct resolve_files_stamp hosts_stamp, conf_stamp;
    char *hosts; /* owned; NULL when empty */
    size_t hosts_len;
    struct dns_conf conf;
};

void resolve_files_init(struct resolve_files *f, const char *hosts_path, const char *conf_path);
void resolve_files_fini(struct resolve_files *f);

/* Brings hosts and conf up to date. A file that cannot be read counts as empty; one that is no
 * regular file, too. */
void resolve_files_refresh(struct resolve_files *f);
