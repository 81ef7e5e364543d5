#include "cli/cli_path.h"

#include <stdio.h>

/* The length of a URL before the colon that ends it, or 0 if none does. */
static size_t url_length(const char *operand) {
    const char *start = strstr(operand, "://");
    if (start == NULL)
        return 0;
    for (const char *p = operand; p < start; p++) {
        if (*p == '/' || *p == ':')
            return 0;
    }
    /* The authority of unix:///PATH is empty; a bracket hides the colons of an address. */
    const char *p = start + 3;
    if (*p == '[')
        p += strcspn(p, "]");
    for (p += strcspn(p, ":/"); *p != '\0'; p++) {
        if (*p != ':')
            continue;
        size_t digits = strspn(p + 1, "0123456789");
        if (digits > 0 && (p[1 + digits] == ':' || p[1 + digits] == '/')) {
            p += digits; /* a port */
            continue;
        }
        return (size_t)(p - operand);
    }
    return 0;
}

struct cli_path cli_path_parse(const char *operand) {
    size_t n = url_length(operand);
    if (n == 0)
        n = strcspn(operand, ":/");
    if (operand[n] != ':')
        return (struct cli_path){.path = operand};
    const char *path = operand + n + 1;
    return (struct cli_path){
        .remote = true, .host = {operand, n}, .path = *path != '\0' ? path : "."};
}

struct str cli_path_base(const char *path) {
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return (struct str){path + at, n - at};
}

char *cli_path_join(const char *directory, struct str name) {
    char *out = NULL;
    size_t n = strlen(directory);
    const char *slash = n > 0 && directory[n - 1] != '/' ? "/" : "";
    return asprintf(&out, "%s%s%.*s", directory, slash, (int)name.n, name.p) < 0 ? NULL : out;
}
