#include "rules/decide_danger.h"

#include "rules/decide_script.h"

struct danger {
    bool compat;
    struct arena *a;
    unsigned depth;
};

static bool danger_check(struct danger *d, const struct str *words, size_t n);

static struct str danger_base(struct str path) {
    const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);
    if (slash == NULL)
        return path;
    return (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
}

static bool danger_one_of(struct str w, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (str_eqz(w, list[i]))
            return true;
    }
    return false;
}

static bool danger_begins(struct str w, const char *prefix) {
    size_t n = strlen(prefix);
    return w.n >= n && memcmp(w.p, prefix, n) == 0;
}

/* Whether a group of short flags has one of the letters. */
static bool danger_short(struct str w, const char *letters) {
    if (w.n < 2 || w.p[0] != '-' || w.p[1] == '-')
        return false;
    for (size_t i = 1; i < w.n; i++) {
        if (w.p[i] != '\0' && strchr(letters, w.p[i]) != NULL)
            return true;
    }
    return false;
}

/* -- rm -- */

static bool danger_rm(const struct danger *d, const struct str *args, size_t n) {
    if (d->compat)
        return n > 0 && (str_eqz(args[0], "-f") || str_eqz(args[0], "-rf"));
    for (size_t i = 0; i < n && !str_eqz(args[i], "--"); i++) {
        bool shortened =
            args[i].n > 2 && args[i].n <= 7 && memcmp(args[i].p, "--force", args[i].n) == 0;
        if (shortened || danger_short(args[i], "f"))
            return true;
    }
    return false;
}

/* -- git, for the old heuristics -- */

static bool danger_git_push(const struct str *args, size_t n) {
    static const char *const flags[] = {"--force", "--force-with-lease", "--force-if-includes",
                                        "--delete"};
    for (size_t i = 0; i < n; i++) {
        if (danger_one_of(args[i], flags, ARRAY_LEN(flags)) ||
            danger_begins(args[i], "--force-with-lease=") ||
            danger_begins(args[i], "--force-if-includes=") || danger_begins(args[i], "--delete=") ||
            danger_short(args[i], "fd") ||
            (args[i].n > 1 && (args[i].p[0] == '+' || args[i].p[0] == ':')))
            return true;
    }
    return false;
}

static bool danger_git_flag(const struct str *args, size_t n, const char *letters,
                            const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (str_eqz(args[i], name) || danger_short(args[i], letters) ||
            (danger_begins(args[i], name) && args[i].p[strlen(name)] == '='))
            return true;
    }
    return false;
}

/* The index of the subcommand behind global options; n: none. */
static size_t danger_git_verb(const struct str *args, size_t n) {
    static const char *const with_value[] = {
        "-C",        "-c",          "--config-env",   "--exec-path",
        "--git-dir", "--namespace", "--super-prefix", "--work-tree"};
    size_t i = 0;
    while (i < n && args[i].n > 0 && args[i].p[0] == '-')
        i += danger_one_of(args[i], with_value, ARRAY_LEN(with_value)) ? 2 : 1;
    return MIN(i, n);
}

static bool danger_git(const struct str *args, size_t n) {
    size_t i = danger_git_verb(args, n);
    if (i == n)
        return false;
    struct str verb = args[i++];
    if (str_eqz(verb, "reset") || str_eqz(verb, "rm"))
        return true;
    if (str_eqz(verb, "branch"))
        return danger_git_flag(args + i, n - i, "dD", "--delete");
    if (str_eqz(verb, "push"))
        return danger_git_push(args + i, n - i);
    return str_eqz(verb, "clean") && danger_git_flag(args + i, n - i, "f", "--force");
}

/* -- commands that run others -- */

static bool danger_nested(struct danger *d, const struct str *words, size_t n) {
    if (n == 0)
        return false;
    if (d->depth >= DECIDE_DANGER_DEPTH)
        return !d->compat;
    d->depth++;
    bool found = danger_check(d, words, n);
    d->depth--;
    return found;
}

static bool danger_each(void *user, const struct str *words, size_t n) {
    return !danger_nested(user, words, n);
}

static bool danger_script(struct danger *d, struct str text) {
    if (d->depth >= DECIDE_DANGER_DEPTH)
        return !d->compat;
    enum decide_script_result r = decide_script(text, d->compat, d->a, danger_each, d);
    return r == DECIDE_SCRIPT_STOP || (r != DECIDE_SCRIPT_DONE && !d->compat);
}

/* Options of sudo with a value in the next word. */
static bool danger_sudo(struct danger *d, const struct str *args, size_t n) {
    size_t i = 0;
    while (!d->compat && i < n && args[i].n > 1 && args[i].p[0] == '-') {
        if (str_eqz(args[i], "--")) {
            i++;
            break;
        }
        i += args[i].n == 2 && strchr("CDghpRrTtu", args[i].p[1]) != NULL ? 2 : 1;
    }
    return danger_nested(d, args + MIN(i, n), n - MIN(i, n));
}

static bool danger_env(struct danger *d, const struct str *args, size_t n) {
    size_t i = 0;
    for (; i < n; i++) {
        bool variable =
            args[i].n > 0 && args[i].p[0] != '-' && memchr(args[i].p, '=', args[i].n) != NULL;
        bool option = args[i].n > 0 && args[i].p[0] == '-';
        if (!variable && !option)
            break;
        if (args[i].n == 2 && option && strchr("uC", args[i].p[1]) != NULL)
            i++;
    }
    return danger_nested(d, args + MIN(i, n), n - MIN(i, n));
}

/* The script of `sh -c SCRIPT`, however the flags are grouped. */
static bool danger_shell(struct danger *d, const struct str *args, size_t n) {
    if (d->compat)
        return d->depth == 0 && n == 2 && (str_eqz(args[0], "-c") || str_eqz(args[0], "-lc")) &&
               danger_script(d, args[1]);
    for (size_t i = 0; i + 1 < n && args[i].n > 0 && (args[i].p[0] == '-' || args[i].p[0] == '+');
         i++) {
        if (danger_short(args[i], "c"))
            return danger_script(d, args[i + 1]);
        if (danger_short(args[i], "oO"))
            i++;
    }
    return false;
}

static bool danger_check(struct danger *d, const struct str *words, size_t n) {
    static const char *const shells[] = {"bash", "zsh", "sh", "dash", "ksh"};
    struct str name = d->compat ? words[0] : danger_base(words[0]);
    const struct str *args = words + 1;
    n--;
    if (str_eqz(name, "rm"))
        return danger_rm(d, args, n);
    if (d->compat && name.n >= 3 && memcmp(name.p + name.n - 3, "git", 3) == 0)
        return danger_git(args, n);
    if (str_eqz(name, "sudo"))
        return danger_sudo(d, args, n);
    if (!d->compat && str_eqz(name, "env"))
        return danger_env(d, args, n);
    if (!d->compat && str_eqz(name, "trap"))
        return n > 0 && danger_script(d, args[0]);
    if (danger_one_of(danger_base(words[0]), shells, d->compat ? 3 : ARRAY_LEN(shells)))
        return danger_shell(d, args, n);
    return false;
}

bool decide_danger(const struct str *words, size_t n, bool compat, struct arena *a) {
    struct danger d = {.compat = compat, .a = a};
    return danger_check(&d, words, n);
}
