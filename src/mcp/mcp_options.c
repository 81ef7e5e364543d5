#include "mcp/mcp_options.h"

#include "base/util.h"

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

struct options_reader {
    int argc;
    char **argv;
    int i;
    bool old;
    struct mcp_options *o;
    FILE *err;
};

static bool options_bad(const struct options_reader *r, const char *what, const char *word) {
    fprintf(r->err,
            "error: %s '%s'\n\nUsage: %s [OPTIONS]\n\nFor more information, try '--help'.\n", what,
            word, r->old ? "codex-exec-mcp-server" : "exec-server mcp");
    return false;
}

/* The value of option `name` if the word is that option; *hit tells. NULL with *hit: none given. */
static const char *options_value(struct options_reader *r, const char *name, bool *hit) {
    const char *word = r->argv[r->i];
    size_t n = strlen(name);
    *hit = strncmp(word, name, n) == 0 && (word[n] == '\0' || word[n] == '=');
    if (!*hit)
        return NULL;
    if (word[n] == '=')
        return word + n + 1;
    return r->i + 1 < r->argc ? r->argv[++r->i] : NULL;
}

static bool options_set_text(struct options_reader *r, const char *name, const char **out,
                             bool *hit) {
    const char *value = options_value(r, name, hit);
    if (*hit && value == NULL)
        return options_bad(r, "a value is required for", name);
    if (*hit)
        *out = value;
    return true;
}

static bool options_set_intercept(struct options_reader *r, bool *hit) {
    const char *value = NULL;
    if (!options_set_text(r, "--intercept", &value, hit) || !*hit)
        return !*hit;
    for (size_t i = 0; i < ARRAY_LEN(intercept_names); i++) {
        if (strcmp(value, intercept_names[i]) == 0) {
            r->o->intercept = (enum mcp_options_intercept)i;
            return true;
        }
    }
    return options_bad(r, "--intercept is auto, notify, wrapper or off, not", value);
}

static bool options_set_level(struct options_reader *r, bool *hit) {
    const char *value = NULL;
    if (!options_set_text(r, "--log-level", &value, hit) || !*hit)
        return !*hit;
    return log_level_parse(value, &r->o->log_level) ||
           options_bad(r, "--log-level is error, warn, info, debug or off, not", value);
}

static bool options_flag(struct options_reader *r) {
    const char *word = r->argv[r->i];
    if (strcmp(word, "--preserve-program-paths") == 0)
        return r->o->whole_paths = true;
    if (!r->old && strcmp(word, "--compat") == 0)
        return r->o->compat = true;
    if (!r->old && strcmp(word, "--escalate-descendants") == 0)
        return r->o->escalate_descendants = true;
    if (!r->old && strcmp(word, "--no-load-check") == 0)
        return r->o->trust_loads = true;
    return false;
}

static bool options_one(struct options_reader *r) {
    struct {
        const char *name;
        const char **out;
        bool both;
    } const texts[] = {{"--execve", &r->o->execve, true},
                       {"--bash", &r->o->bash, true},
                       {"--audit-log", &r->o->audit_log, false},
                       {"--system-config", &r->o->system_dir, false}};
    bool hit;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (r->old && !texts[i].both)
            continue;
        if (!options_set_text(r, texts[i].name, texts[i].out, &hit))
            return false;
        if (hit)
            return true;
    }
    if (options_flag(r))
        return true;
    if (r->old)
        return options_bad(r, "unexpected argument", r->argv[r->i]);
    if (!options_set_intercept(r, &hit))
        return false;
    if (hit)
        return true;
    if (!options_set_level(r, &hit))
        return false;
    return hit || options_bad(r, "unexpected argument", r->argv[r->i]);
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
            fprintf(out, "%s %s\n", old ? "codex-exec-server" : "exec-server", EXEC_SERVER_VERSION);
            return MCP_OPTIONS_EXIT;
        }
        if (!options_one(&r))
            return MCP_OPTIONS_USAGE;
    }
    return MCP_OPTIONS_RUN;
}
