/*
 * Configuration files: the user's, a project's and the operator's, cut apart by lines "%%". The
 * answer is JSON, and every layer in it is TOML; an error has a message.
 */
#include "environment/envconf.h"
#include "json/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char place[] = "/tmp/fuzz-envconf-XXXXXX";

static void fuzz_rm(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", place);
    REQUIRE(system(command) == 0);
}

static void fuzz_begin(void) {
    static const char *const dirs[] = {"p", "p/.git", "p/.codex", "h", "h/.codex", "e"};
    char path[64];
    if (strchr(place, 'X') == NULL)
        return;
    REQUIRE(mkdtemp(place) != NULL && atexit(fuzz_rm) == 0);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", place, dirs[i]);
        REQUIRE(mkdir(path, 0700) == 0);
    }
}

static void fuzz_put(const char *name, struct str text) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", place, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n && close(fd) == 0);
}

static struct str fuzz_next(struct str *s) {
    const char *end = s->n > 0 ? memmem(s->p, s->n, "%%\n", 3) : NULL;
    struct str part = {s->p, end != NULL ? (size_t)(end - s->p) : s->n};
    size_t skip = end != NULL ? part.n + 3 : s->n;
    *s = (struct str){s->p + skip, s->n - skip};
    return part;
}

static void fuzz_check_layer(const struct json_node *layer) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    const struct toml_value *root;
    struct str toml = json_str(json_get(layer, "toml"));
    REQUIRE(toml.n > TOML_TEXT_MAX || toml_parse(&a, toml, &root, &e) == 0);
    REQUIRE(toml.n > TOML_TEXT_MAX || root->count > 0);
}

static void fuzz_check(struct str text) {
    struct json_doc doc;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&doc, ENVCONF_RESULT_MAX, 1);
    REQUIRE(json_parse(&doc, text.p, text.n, &e) == 0);
    const struct json_node *root = json_root(&doc);
    static const char *const parts[] = {"config", "requirements"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_for_each(layer, json_get(json_get(root, parts[i]), "layers")) {
            fuzz_check_layer(layer);
        }
    }
    json_doc_fini(&doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct str keys[] = {{"a", 1},
                                      {"b", 1},
                                      {"c", 1},
                                      {"projects", 8},
                                      {"approval_policy", 15},
                                      {"allowed_sandbox_modes", 21}};
    static const struct envconf_path paths[] = {
        {keys, 2}, {keys + 1, 1}, {keys + 2, 1}, {keys + 3, 1}, {keys + 5, 1}};
    static const char *const files[] = {"h/.codex/config.toml", "p/.codex/config.toml",
                                        "e/config.toml",        "e/managed_config.toml",
                                        "e/requirements.toml",  "p/.git/HEAD"};
    struct str text = {(const char *)data, size};
    atomic_bool stop = false;
    char at[64], home[64], system_dir[64];
    if (size > 16384)
        return 0;
    fuzz_begin();
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        fuzz_put(files[i], fuzz_next(&text));
    snprintf(at, sizeof at, "%s/p", place);
    snprintf(home, sizeof home, "%s/h", place);
    snprintf(system_dir, sizeof system_dir, "%s/e", place);
    struct envconf c = {.cwd = at, .home = home, .system_dir = system_dir, .stop = &stop};
    c.config = c.requirements = (struct envconf_paths){paths, ARRAY_LEN(paths)};
    _cleanup_buf_ struct buf result = BUF_INIT(ENVCONF_RESULT_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    int r = envconf_read(&c, &result, &e);
    REQUIRE((r == 0) == (e.code == 0));
    if (r == 0)
        fuzz_check(buf_str(&result));
    return 0;
}
