/*
 * access-ask: what the policy module says, for tests that compare it with a real sandbox. Standard
 * input is lines: "full", "e ACCESS PATH" (r, w or d), "g DIRECTORY PATTERN", "q PATH". Answers
 * each q by "read list write make take PATH", numbers that are 1 for yes; or just "refused TEXT".
 */
#include "sandbox/policy/access.h"

#include <stdio.h>
#include <sys/stat.h>

#define ASK_MAX 1024

static struct arena arena = ARENA_INIT(16u << 20);
static struct plan_entry entries[ASK_MAX];
static struct plan_glob globs[ASK_MAX];
static const char *paths[ASK_MAX];
static size_t path_count;
static struct plan plan = {.confine_files = true, .entries = entries, .globs = globs, .cwd = "/"};

static void ask_take_line(char *line) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line + 2;
    if (plan.entry_count + 1 == ASK_MAX || plan.glob_count + 1 == ASK_MAX ||
        path_count + 1 == ASK_MAX)
        return;
    if (strcmp(line, "full") == 0) {
        plan.full_read = true;
    } else if (line[0] == 'e') {
        enum plan_access access = *rest == 'w' ? PLAN_WRITE : *rest == 'r' ? PLAN_READ : PLAN_DENY;
        entries[plan.entry_count++] =
            (struct plan_entry){arena_strdup(&arena, str_of(rest + 2)), access};
    } else if (line[0] == 'g') {
        char *blank = strchr(rest, ' ');
        uint32_t fixed = (uint32_t)(blank - rest);
        *blank = '/';
        globs[plan.glob_count++] = (struct plan_glob){arena_strdup(&arena, str_of(rest)), fixed, 0};
    } else if (line[0] == 'q') {
        paths[path_count++] = arena_strdup(&arena, str_of(rest));
    }
}

static bool ask_may(struct access *x, enum access_need need, const char *path, mode_t mode) {
    const struct access_query q = {.need = need, .path = path, .mode = mode, .tree = true};
    return access_may(x, &q) == 0;
}

static void ask_answer(struct access *x, const char *path) {
    struct stat st;
    mode_t mode = lstat(path, &st) == 0 ? st.st_mode : 0;
    bool writable = access_may_region(x, path) == RULES_WRITE;
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    bool above = access_may_region(x, dir) == RULES_WRITE;
    bool read =
        ask_may(x, ACCESS_READ, path, mode) && access_may_region(x, path) != RULES_INVISIBLE;
    bool write = writable && mode != 0 && ask_may(x, ACCESS_CHANGE, path, mode);
    bool make = writable && mode == 0 && ask_may(x, ACCESS_CHANGE, path, 0) &&
                ask_may(x, ACCESS_MAKE, path, 0);
    bool take = writable && above && mode != 0 && ask_may(x, ACCESS_TAKE, path, mode);
    printf("%d %d %d %d %d %s\n", read && S_ISREG(mode), read && S_ISDIR(mode),
           write && S_ISREG(mode), make, take, path);
}

int main(void) {
    static struct access x;
    static struct fault fault;
    char line[8192];
    while (fgets(line, sizeof line, stdin) != NULL)
        ask_take_line(line);
    if (access_build(&x, &plan, &arena, &fault) < 0) {
        printf("refused %s\n", fault.text);
        return 0;
    }
    for (size_t i = 0; i < path_count; i++)
        ask_answer(&x, paths[i]);
    return 0;
}
