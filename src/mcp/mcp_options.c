#include "mcp/mcp_options.h"

#include "base/commit.h"
#include "base/editdist.h"
#include "base/str.h"
#include "base/util.h"

#include <stdarg.h>
#include <string.h>

#define OPTIONS_SYSTEM_DIR "/etc/codex"

static const char *const intercept_names[] = {"auto", "notify", "wrapper", "off"};

static const char options_help[] =
    "Serves the tool `shell` of the Model Context Protocol on stdin and stdout.\n"
    "\n"
    "Usage: exec-server mcp [OPTIONS]\n"
    "\n"
    "Options:\n"
    "      --intercept <MODE>\n"
    "          How programs are intercepted: notify (any shell, every exec), wrapper (a\n"
    "          patched Bash), off, or auto: wrapper with --bash or CODEX_BASH_PATH, else notify\n"
    "      --bash <PATH>\n"
    "          The shell [env: CODEX_BASH_PATH]\n"
    "      --execve <PATH>\n"
    "          The execve wrapper that a patched Bash runs; else the one beside us\n"
    "      --preserve-program-paths\n"
    "          Rules must name the whole path of a program\n"
    "      --escalate-descendants\n"
    "          Let `allow` rules also take programs out of the sandbox that the shell has not\n"
    "          started itself\n"
    "      --no-load-check\n"
    "          Do not compare what the kernel has loaded with what was decided: faster where a\n"
    "          rule forbids or asks, and open to a program that changes its path meanwhile\n"
    "      --compat\n"
    "          Behave as codex-exec-mcp-server 0.97.0\n"
    "      --audit-log <FILE>\n"
    "          Append a JSON line for each call and each decision\n"
    "      --log-level <LEVEL>\n"
    "          error, warn, info, debug or off [default: error]\n"
    "      --system-config <DIR>\n"
    "          The operator's directory of rules and requirements [default: /etc/codex]\n"
    "  -h, --help\n"
    "          Print help\n"
    "  -V, --version\n"
    "          Print version\n";

static const char options_help_old[] =
    "Usage: codex-exec-mcp-server [OPTIONS]\n"
    "\n"
    "Options:\n"
    "      --execve <EXECVE_WRAPPER>  Executable to delegate execve(2) calls to in Bash\n"
    "      --bash <BASH_PATH>         Path to Bash that has been patched to support execve() "
    "wrapping\n"
    "      --preserve-program-paths   Preserve program paths when applying execpolicy (e.g., allow "
    "/usr/bin/echo instead of echo)\n"
    "  -h, --help                     Print help\n"
    "  -V, --version                  Print version\n";

const char *mcp_options_intercept_name(enum mcp_options_intercept i) {
    return intercept_names[i];
}

enum options_id {
    OPTION_INTERCEPT,
    OPTION_BASH,
    OPTION_EXECVE,
    OPTION_WHOLE_PATHS,
    OPTION_DESCENDANTS,
    OPTION_TRUST_LOADS,
    OPTION_COMPAT,
    OPTION_AUDIT_LOG,
    OPTION_LOG_LEVEL,
    OPTION_SYSTEM_DIR,
    OPTIONS_END,
};

static const struct {
    const char *name, *value; /* value NULL: a flag */
    bool old;                 /* the old server has it, too */
} options_specs[] = {
    [OPTION_INTERCEPT] = {"--intercept", "MODE", false},
    [OPTION_BASH] = {"--bash", "PATH", true},
    [OPTION_EXECVE] = {"--execve", "PATH", true},
    [OPTION_WHOLE_PATHS] = {"--preserve-program-paths", NULL, true},
    [OPTION_DESCENDANTS] = {"--escalate-descendants", NULL, false},
    [OPTION_TRUST_LOADS] = {"--no-load-check", NULL, false},
    [OPTION_COMPAT] = {"--compat", NULL, false},
    [OPTION_AUDIT_LOG] = {"--audit-log", "FILE", false},
    [OPTION_LOG_LEVEL] = {"--log-level", "LEVEL", false},
    [OPTION_SYSTEM_DIR] = {"--system-config", "DIR", false},
};

struct options_reader {
    int argc;
    char **argv;
    int i;
    bool old;
    struct mcp_options *o;
    FILE *err;
};

__attribute__((format(printf, 2, 3))) static bool options_bad(const struct options_reader *r,
                                                              const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("error: ", r->err);
    vfprintf(r->err, fmt, ap);
    va_end(ap);
    fputs(r->old ? "\n\nUsage: codex-exec-mcp-server [OPTIONS]\n\n"
                   "For more information, try '--help'.\n"
                 : "; see 'exec-server mcp --help'\n",
          r->err);
    return false;
}

static bool options_has(const struct options_reader *r, unsigned id) {
    return !r->old || options_specs[id].old;
}

static struct str options_name(const char *word) {
    return (struct str){word, strcspn(word, "=")};
}

static bool options_unexpected(const struct options_reader *r) {
    struct str word = options_name(r->argv[r->i]);
    const char *best = NULL;
    size_t nearest = EDITDIST_FAR;
    for (unsigned id = 0; !r->old && id < OPTIONS_END; id++) {
        size_t d = editdist(word, str_of(options_specs[id].name));
        best = d < nearest ? options_specs[id].name : best;
        nearest = MIN(d, nearest);
    }
    if (r->old)
        return options_bad(r, "unexpected argument '%s'", r->argv[r->i]);
    if (best != NULL && nearest > 0)
        return options_bad(r, "unexpected argument '%.*s' found; did you mean '%s'?", (int)word.n,
                           word.p, best);
    return options_bad(r, "unexpected argument '%s' found", r->argv[r->i]);
}

static bool options_bad_choice(const struct options_reader *r, unsigned id, const char *value,
                               const char *choices) {
    return options_bad(r, "invalid value '%s' for '%s <%s>'; possible values: %s", value,
                       options_specs[id].name, options_specs[id].value, choices);
}

static bool options_set_intercept(const struct options_reader *r, const char *value) {
    for (size_t i = 0; i < ARRAY_LEN(intercept_names); i++) {
        if (strcmp(value, intercept_names[i]) == 0) {
            r->o->intercept = (enum mcp_options_intercept)i;
            return true;
        }
    }
    return options_bad_choice(r, OPTION_INTERCEPT, value, "auto, notify, wrapper, off");
}

/* Keeps an option; the value is NULL for a flag. */
static bool options_set(const struct options_reader *r, unsigned id, const char *value) {
    struct mcp_options *o = r->o;
    switch ((enum options_id)id) {
    case OPTION_INTERCEPT: return options_set_intercept(r, value);
    case OPTION_BASH: o->bash = value; return true;
    case OPTION_EXECVE: o->execve = value; return true;
    case OPTION_WHOLE_PATHS: return o->whole_paths = true;
    case OPTION_DESCENDANTS: return o->escalate_descendants = true;
    case OPTION_TRUST_LOADS: return o->trust_loads = true;
    case OPTION_COMPAT: return o->compat = true;
    case OPTION_AUDIT_LOG: o->audit_log = value; return true;
    case OPTION_SYSTEM_DIR: o->system_dir = value; return true;
    case OPTION_LOG_LEVEL:
        return log_level_parse(value, &o->log_level) ||
               options_bad_choice(r, id, value, "error, warn, info, debug, off");
    case OPTIONS_END: break;
    }
    return false;
}

/* Reads the option at the word, and its value: behind `=`, or the next word. */
static bool options_one(struct options_reader *r) {
    const char *word = r->argv[r->i], *value = NULL;
    struct str name = options_name(word);
    unsigned id = 0;
    while (id < OPTIONS_END && !(options_has(r, id) && str_eqz(name, options_specs[id].name)))
        id++;
    if (id == OPTIONS_END)
        return options_unexpected(r);
    bool flag = options_specs[id].value == NULL;
    if (word[name.n] == '=')
        value = word + name.n + 1;
    else if (!flag)
        value = r->i + 1 < r->argc ? r->argv[++r->i] : "";
    if (flag && value != NULL)
        return options_bad(r, "unexpected value '%s' for '%s'; it takes none", value,
                           options_specs[id].name);
    if (!flag && *value == '\0')
        return options_bad(r, "a value is required for '%s <%s>' but none was supplied",
                           options_specs[id].name, options_specs[id].value);
    return options_set(r, id, value);
}

enum mcp_options_result mcp_options_parse(int argc, char **argv, bool old, struct mcp_options *o,
                                          FILE *out, FILE *err) {
    const char *bash = getenv("CODEX_BASH_PATH");
    *o = (struct mcp_options){.bash = bash != NULL && bash[0] != '\0' ? bash : NULL,
                              .compat = old,
                              .intercept = old ? MCP_INTERCEPT_WRAPPER : MCP_INTERCEPT_AUTO,
                              .system_dir = OPTIONS_SYSTEM_DIR,
                              .log_level = LOG_LEVEL_ERROR};
    struct options_reader r = {argc, argv, 1, old, o, err};
    for (; r.i < argc; r.i++) {
        const char *word = argv[r.i];
        if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
            fputs(old ? options_help_old : options_help, out);
            return MCP_OPTIONS_EXIT;
        }
        if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
            if (old)
                fputs("codex-exec-server " EXEC_SERVER_VERSION "\n", out);
            else
                fprintf(out, "exec-server " EXEC_SERVER_VERSION " (%s)\n", commit_name);
            return MCP_OPTIONS_EXIT;
        }
        if (!options_one(&r))
            return MCP_OPTIONS_USAGE;
    }
    return MCP_OPTIONS_RUN;
}
