#include "sandbox/host/landlock_abi.h"

#include <sys/syscall.h>
#include <unistd.h>

#define LANDLOCK_ABI_QUERY 1u /* LANDLOCK_CREATE_RULESET_VERSION; headers may be older */

unsigned landlock_abi(unsigned max) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ABI_QUERY);
    return abi < 0 ? 0 : MIN((unsigned)abi, MIN(max, (unsigned)LANDLOCK_ABI_MAX));
}

bool landlock_abi_suffices(const struct plan *p, unsigned abi, const char **why) {
    *why = NULL;
    if (p->network == PLAN_NET_MANAGED)
        *why = "a managed network needs namespaces";
    else if (!p->confine_files)
        return true;
    else if (abi < 3)
        *why = "files could be truncated (Landlock ABI 3 is needed)";
    else if (abi < 6 && !p->inherit_pids)
        *why = "processes outside could be signalled (Landlock ABI 6 is needed)";
    else if (!p->full_read)
        *why = "files cannot be hidden";
    else if (p->glob_count > 0)
        *why = "files cannot be denied";
    for (size_t i = 0; *why == NULL && i < p->entry_count; i++) {
        if (p->entries[i].access == PLAN_DENY)
            *why = "files cannot be denied";
    }
    return *why == NULL;
}
