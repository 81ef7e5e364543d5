#include "app/shell.h"

#include <stdbool.h>
#include <stdio.h>
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

/* The first bash in `path`. 1 with *out set, 0 there is none, -1 out of memory. */
static int shell_search(const char *path, char **out) {
    for (const char *end; *path != '\0'; path = *end == ':' ? end + 1 : end) {
        end = strchrnul(path, ':');
        _cleanup_free_ char *candidate = NULL;
        if (asprintf(&candidate, "%.*s/bash", (int)(end - path), path) < 0) {
            candidate = NULL;
            return -1;
        }
        if (shell_can_run(candidate)) {
            *out = steal_ptr(&candidate);
            return 1;
        }
    }
    return 0;
}

char *shell_for_clients(const char *login, const char *path) {
    char *found = NULL;
    if (login != NULL && shell_is_known(login) && shell_can_run(login))
        return strdup(login);
    if (path != NULL && shell_search(path, &found) != 0)
        return found;
    return strdup(shell_can_run("/bin/bash") ? "/bin/bash" : "/bin/sh");
}

const char *shell_for_terminals(const char *login) {
    return login != NULL && shell_can_run(login) ? login : "/bin/sh";
}
