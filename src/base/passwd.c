#include "base/passwd.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PASSWD_LINE 4096

/* Splits name:password:uid:gid:gecos:home:shell in place. False when fields are missing. */
static bool passwd_split(char *line, char *field[7]) {
    for (int i = 0; i < 7; i++) {
        field[i] = strsep(&line, ":");
        if (field[i] == NULL)
            return false;
    }
    return true;
}

void passwd_read(const char *path, uid_t uid, struct passwd_entry *e) {
    *e = (struct passwd_entry){0};
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    char line[PASSWD_LINE], *field[7];
    while (e->home == NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *end;
        if (!passwd_split(line, field) || strtoul(field[2], &end, 10) != uid || *end != '\0' ||
            end == field[2])
            continue;
        e->home = strdup(field[5]);
        e->shell = field[6][0] ? strdup(field[6]) : NULL;
    }
    fclose(f);
}

void passwd_fini(struct passwd_entry *e) {
    free(e->home);
    free(e->shell);
    *e = (struct passwd_entry){0};
}
