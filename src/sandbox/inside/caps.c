#include "sandbox/inside/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPS_LAST 63

struct caps_sets {
    struct __user_cap_data_struct word[2]; /* capabilities 0 to 31, 32 to 63 */
};

static int caps_get(struct caps_sets *s) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &head, s->word) < 0 ? -errno : 0;
}

static int caps_set(const struct caps_sets *s) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capset, &head, s->word) < 0 ? -errno : 0;
}

int caps_effective(bool on) {
    struct caps_sets s;
    int r = caps_get(&s);
    for (int i = 0; i < 2; i++)
        s.word[i].effective = on ? s.word[i].permitted : 0;
    return r < 0 ? r : caps_set(&s);
}

bool caps_has(int cap) {
    struct caps_sets s;
    return caps_get(&s) == 0 && (s.word[cap / 32].permitted >> (cap % 32) & 1) != 0;
}

int caps_drop(void) {
    struct caps_sets s = {0};
    /* Changing the bounding set takes CAP_SETPCAP. Without it, exec could give nothing from that
     * set anyway: no_new_privs is set. */
    bool may = caps_has(CAP_SETPCAP);
    for (int i = 0; may && i <= CAPS_LAST; i++) {
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
            break; /* EINVAL: past the last one */
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return -errno;
    int r = caps_set(&s);
    if (r == 0)
        r = caps_get(&s);
    for (int i = 0; r == 0 && i < 2; i++) {
        if ((s.word[i].effective | s.word[i].permitted | s.word[i].inheritable) != 0)
            r = -EPERM;
    }
    return r;
}
