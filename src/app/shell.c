#include "app/shell.h"

#include "base/pathexec.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool shell_can_run(const char *path) {
    struct stat st;
    return path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool shell_is_known(const char *path) {
    static const char *const names[] = {"bash", "zsh", "sh"};
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < ARRAY_LEN(names); i++) {
        if (strcmp(slash + 1, names[i]) == 0)
            return true;
    }
    return false;
}

/* The first bash in `path`, to be freed; NULL: there is none. */
static char *shell_search(const char *path) {
    char candidate[PATHEXEC_MAX];
    while (path != NULL) {
        if (pathexec_next(&path, "bash", candidate) && shell_can_run(candidate))
            return strdup(candidate);
    }
    return NULL;
}

char *shell_for_clients(const char *login, const char *path) {
    if (login != NULL && shell_is_known(login) && shell_can_run(login))
        return strdup(login);
    char *found = shell_search(path);
    return found != NULL ? found : strdup(shell_can_run("/bin/bash") ? "/bin/bash" : "/bin/sh");
}

const char *shell_for_terminals(const char *login) {
    return login != NULL && shell_can_run(login) ? login : "/bin/sh";
}
