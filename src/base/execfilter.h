#pragma once
/*
 * The seccomp filter that asks before every execve() and execveat() of this process and of all its
 * descendants (seccomp_unotify(2)), for whoever listens: see intercept/intercept.h. Raw system
 * calls only: the supervisor's children install it too.
 */

#include <stdint.h>

/* What a command that is to be intercepted needs before its exec. */
struct execfilter_start {
    int socket;    /* one end of a SOCK_SEQPACKET pair; it gets the listener, and a byte */
    uint64_t mark; /* fourth argument of the command's own exec: tells it from later ones */
};

/*
 * Installs the filter in this thread, with no_new_privs, and sends its listener over `socket`. 0 or
 * -errno: -EINVAL before Linux 5.19, -EBUSY if a filter above us has a listener.
 */
long execfilter_install(int socket);

/* Whether a notification is for `mark`. No mark is 0. */
static inline int execfilter_is_start(uint64_t mark, uint64_t arg3) {
    return mark != 0 && mark == arg3;
}
