#include "process/snapshot_script.h"

#include "base/util.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

/* Stands before the state and behind the variables. The startup files may print anything else. */
#define MARK "exec-server-snapshot"
#define ENDMARK "exec-server-snapshot-end"

/* Prints the variables. Each shell runs it with what it has printed as the state before it. */
#define PRINT_VARIABLES                                                                            \
    "\\command env -0 || \\command -p env -0 || \\exit 1\n"                                        \
    "\\command printf '" ENDMARK "'\n"

/*
 * A login shell reads no ~/.bashrc; users keep functions and aliases there. `set +o` prints the
 * options as commands; in braces none of them changes how the others are read. Functions may have
 * the names of builtins: then the capture fails.
 */
static const char script_bash[] =
    "if [ -z \"${BASH_ENV-}\" ] && [ -n \"${HOME-}\" ] && [ -r \"$HOME/.bashrc\" ]; then\n"
    "  . \"$HOME/.bashrc\"\n"
    "fi\n"
    "\\builtin printf '\\0" MARK "\\0unalias -a\\n'\n"
    "\\builtin shopt -p\n"
    "\\builtin declare -f\n"
    "\\builtin declare -Fx\n"
    "\\builtin alias -p\n"
    "\\builtin printf '{\\n'\n"
    "\\builtin set +o\n"
    "\\builtin printf '}\\n\\0'\n" PRINT_VARIABLES;

static const char script_zsh[] =
    "if [[ -n \"${ZDOTDIR-}\" && -r \"$ZDOTDIR/.zshrc\" ]]; then\n"
    "  . \"$ZDOTDIR/.zshrc\"\n"
    "elif [[ -z \"${ZDOTDIR-}\" && -n \"${HOME-}\" && -r \"$HOME/.zshrc\" ]]; then\n"
    "  . \"$HOME/.zshrc\"\n"
    "fi\n"
    "\\builtin printf '\\0" MARK "\\0unalias -a\\n'\n"
    "\\builtin functions\n"
    "\\builtin alias -L\n"
    "\\builtin setopt | while \\builtin read -r REPLY; do\n"
    "  \\builtin printf 'setopt %s\\n' \"$REPLY\"\n"
    "done\n"
    "\\builtin printf '\\0'\n" PRINT_VARIABLES;

/* A POSIX shell cannot tell its functions; bash and others by the name of sh can. */
static const char script_sh[] = "\\command printf '\\0" MARK "\\0unalias -a 2>/dev/null || :\\n'\n"
                                "if [ -n \"${BASH_VERSION-}\" ]; then\n"
                                "  shopt -p\n"
                                "fi\n"
                                "if command -v typeset >/dev/null 2>&1; then\n"
                                "  typeset -f\n"
                                "fi\n"
                                "\\set +o\n"
                                "\\alias | while IFS= read -r REPLY; do\n"
                                "  case $REPLY in\n"
                                "  alias\\ *) \\command printf '%s\\n' \"$REPLY\" ;;\n"
                                "  *) \\command printf 'alias %s\\n' \"$REPLY\" ;;\n"
                                "  esac\n"
                                "done\n"
                                "\\command printf '\\0'\n" PRINT_VARIABLES;

static const struct {
    const char *name, *capture;
    const char *flag;  /* takes the place of -lc: no startup files */
    const char *start; /* undoes what the flag does besides */
} script_shells[SNAPSHOT_SHELLS] = {
    [SNAPSHOT_BASH] = {"bash", script_bash, "-pc", "set +o privileged\n"},
    [SNAPSHOT_ZSH] = {"zsh", script_zsh, "-fc", "setopt RCS\n"},
    [SNAPSHOT_SH] = {"sh", script_sh, "-c", ""},
};

enum snapshot_shell snapshot_script_shell(struct str name) {
    int i = 0;
    while (i < SNAPSHOT_SHELLS && !str_eqz(name, script_shells[i].name))
        i++;
    return (enum snapshot_shell)i;
}

const char *snapshot_script_capture(enum snapshot_shell shell) {
    return script_shells[shell].capture;
}

/* -- what a capture printed -- */

int snapshot_script_parse(struct str printed, struct snapshot_text *out) {
    static const char mark[] = "\0" MARK;
    size_t n = sizeof mark, end = sizeof ENDMARK - 1;
    const char *at = printed.n > 0 ? memmem(printed.p, printed.n, mark, n) : NULL;
    if (at == NULL || printed.n < end || memcmp(printed.p + printed.n - end, ENDMARK, end) != 0)
        return -EINVAL;
    struct str rest = {at + n, (size_t)(printed.p + printed.n - at) - n};
    const char *state_end = memchr(rest.p, 0, rest.n);
    if (state_end == NULL)
        return -EINVAL;
    out->state = (struct str){rest.p, (size_t)(state_end - rest.p)};
    size_t used = out->state.n + 1;
    if (rest.n < used + end)
        return -EINVAL;
    out->variables = (struct str){rest.p + used, rest.n - used - end};
    if (out->variables.n > 0 && out->variables.p[out->variables.n - 1] != '\0')
        return -EINVAL;
    bool fits = out->state.n + out->variables.n <= SNAPSHOT_SCRIPT_STATE_MAX;
    return fits && utf8_valid(out->state.p, out->state.n) ? 0 : -EINVAL;
}

/* -- a command with the state -- */

static size_t script_name_len(const char *variable) {
    return strcspn(variable, "=");
}

static bool script_has(char *const *list, const char *name, size_t n) {
    for (; *list != NULL; list++) {
        if (strncmp(*list, name, n) == 0 && ((*list)[n] == '\0' || (*list)[n] == '='))
            return true;
    }
    return false;
}

static size_t script_count(char *const *list) {
    size_t n = 0;
    while (list[n] != NULL)
        n++;
    return n;
}

/* Appends the parts of the state as variables. Their number or -ENOMEM. */
static int script_put_state(struct arena *a, struct str state, char **envp) {
    int parts = 0;
    while (state.n > 0) {
        size_t n = utf8_cut(state.p, state.n, SNAPSHOT_SCRIPT_PART_MAX);
        size_t room = sizeof SNAPSHOT_SCRIPT_PREFIX + 16 + n;
        char *variable = arena_alloc(a, room);
        if (variable == NULL)
            return -ENOMEM;
        snprintf(variable, room, SNAPSHOT_SCRIPT_PREFIX "%d=%.*s", parts, (int)n, state.p);
        envp[parts++] = variable;
        str_take(&state, n);
    }
    return parts;
}

/* The script that reads the state before it goes on. NULL: no memory. */
static char *script_restore(struct arena *a, enum snapshot_shell shell, int parts,
                            const char *script) {
    _cleanup_buf_ struct buf b = BUF_INIT(SNAPSHOT_SCRIPT_CAPTURE_MAX + strlen(script));
    int r = buf_putf(&b, "%sif ! eval \"unset", script_shells[shell].start);
    for (int i = 0; r == 0 && i < parts; i++)
        r = buf_putf(&b, " " SNAPSHOT_SCRIPT_PREFIX "%d", i);
    if (r == 0)
        r = buf_putz(&b, "; "); /* no line more: messages of the script name lines */
    for (int i = 0; r == 0 && i < parts; i++)
        r = buf_putf(&b, "${" SNAPSHOT_SCRIPT_PREFIX "%d}", i);
    if (r == 0)
        r = buf_putz(&b, "\" >/dev/null; then printf 'failed to restore shell snapshot\\n' >&2; "
                         "fi\n");
    if (r == 0)
        r = buf_putz(&b, script);
    return r == 0 ? arena_strdup(a, buf_str(&b)) : NULL;
}

/* Whether the kernel takes them: a quarter of the stack, and half of that is enough for it. */
static bool script_fits(char *const *argv, char *const *envp) {
    struct rlimit stack;
    size_t n = 0, most = 6u << 20;
    for (; *argv != NULL; argv++)
        n += strlen(*argv) + 1 + sizeof *argv;
    for (; *envp != NULL; envp++)
        n += strlen(*envp) + 1 + sizeof *envp;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY)
        most = MIN(most, (size_t)stack.rlim_cur / 4);
    return n <= most / 2;
}

int snapshot_script_apply(struct arena *a, enum snapshot_shell shell, struct str state,
                          char *const *environment, char *const *own,
                          struct snapshot_command *command) {
    size_t argc = script_count(command->argv), count = script_count(command->envp);
    size_t most = count + script_count(environment) + state.n / (SNAPSHOT_SCRIPT_PART_MAX - 4) + 2;
    char **argv = arena_calloc(a, argc + 1, sizeof *argv);
    char **envp = arena_calloc(a, most + 1, sizeof *envp);
    if (argv == NULL || envp == NULL)
        return -ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t name = script_name_len(command->envp[i]);
        if (script_has(own, command->envp[i], name) ||
            !script_has(environment, command->envp[i], name))
            envp[n++] = command->envp[i];
    }
    for (; *environment != NULL; environment++) {
        if (!script_has(own, *environment, script_name_len(*environment)))
            envp[n++] = *environment;
    }
    int parts = script_put_state(a, state, envp + n);
    if (parts < 0)
        return parts;
    memcpy(argv, command->argv, argc * sizeof *argv);
    argv[1] = (char *)script_shells[shell].flag;
    argv[2] = script_restore(a, shell, parts, command->argv[2]);
    if (argv[2] == NULL)
        return -ENOMEM;
    if (!script_fits(argv, envp))
        return -E2BIG;
    *command = (struct snapshot_command){argv, envp};
    return 0;
}
