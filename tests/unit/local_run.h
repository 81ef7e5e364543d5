#pragma once
/* A directory of its own for tests of the client's local files. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char local_root[] = "/tmp/local-XXXXXX";

static inline int local_setup(void **state) {
    (void)state;
    strcpy(local_root, "/tmp/local-XXXXXX");
    assert_non_null(mkdtemp(local_root));
    assert_int_equal(chdir(local_root), 0);
    return 0;
}

static inline int local_teardown(void **state) {
    (void)state;
    assert_int_equal(chdir("/"), 0);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", local_root);
    return system(command); /* paths may be longer than nftw() can take */
}

static inline int local_open(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline void local_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void local_expect(const char *path, const char *text) {
    char got[256];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static inline struct stat local_stat(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st;
}
