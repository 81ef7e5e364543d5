/*
 * `#!` lines: the first 256 bytes of a script. The name and the argument lie in the line, and are
 * what a reader by characters finds.
 */
#include "intercept/intercept_look.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char line[INTERCEPT_LINE_MAX + 1] = "#!";
    size_t n = size < INTERCEPT_LINE_MAX - 2 ? size : INTERCEPT_LINE_MAX - 2;
    char *name, *arg;
    memcpy(line + 2, data, n);
    n += 2;
    if (!intercept_look_line(line, n, &name, &arg))
        return 0;
    REQUIRE(name > line + 1 && name < line + n && strlen(name) > 0);
    REQUIRE(strpbrk(name, " \t\n") == NULL && name + strlen(name) <= line + n);
    if (arg == NULL)
        return 0;
    size_t len = strlen(arg);
    REQUIRE(arg > name && arg + len <= line + n && len > 0);
    REQUIRE(!is_blank(arg[0]) && strchr(arg, '\n') == NULL);
    REQUIRE(!is_blank(arg[len - 1]) || memchr(data, '\0', size) != NULL);
    return 0;
}
