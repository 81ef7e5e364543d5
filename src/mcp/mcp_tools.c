#include "mcp/mcp_tools.h"

#include "json/jsondec.h"
#include "mcp/mcp_output.h"

#include <errno.h>
#include <signal.h>

#define TOOLS_FAILED "failed to deserialize parameters: "

/* -- definitions -- */

static const char tools_compat[] =
    "[{\"name\":\"shell\",\"description\":\"Runs a shell command and returns its output. You "
    "MUST provide the workdir as an absolute path.\","
    "\"inputSchema\":{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
    "\"title\":\"ExecParams\",\"type\":\"object\","
    "\"properties\":{\"command\":{\"description\":\"The bash string to execute.\","
    "\"type\":\"string\"},\"workdir\":{\"description\":\"The working directory to execute "
    "the command in. Must be an absolute path.\",\"type\":\"string\"},"
    "\"timeout_ms\":{\"description\":\"The timeout for the command in milliseconds.\","
    "\"type\":\"integer\",\"format\":\"uint64\",\"minimum\":0,\"nullable\":true},"
    "\"login\":{\"description\":\"Launch Bash with -lc instead of -c: defaults to true.\","
    "\"type\":\"boolean\",\"nullable\":true}},\"required\":[\"command\",\"workdir\"]}}]";

static const char tools_shell[] =
    "[{\"name\":\"shell\",\"description\":\"Runs a shell command and returns its output, "
    "stdout and stderr in the order of arrival. The command runs in a sandbox; rules decide "
    "which programs may run outside of it, need the user's approval, or are denied. With "
    "yield_time_ms a command that is still running then answers with a session_id, and "
    "write_stdin goes on with it.\",\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"command\":{\"type\":\"string\",\"description\":\"The script for the "
    "shell.\"},\"workdir\":{\"type\":[\"string\",\"null\"],\"description\":\"Working "
    "directory, an absolute path; the workspace by default.\"},"
    "\"timeout_ms\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"description\":\"The "
    "command is ended after this time: 10000 by default, never with yield_time_ms.\"},"
    "\"login\":{\"type\":[\"boolean\",\"null\"],\"description\":\"Whether the shell is a "
    "login shell: true by default.\"},\"yield_time_ms\":{\"type\":[\"integer\",\"null\"],"
    "\"minimum\":0,\"description\":\"Answer after this time at the latest; the command runs "
    "on.\"},\"tty\":{\"type\":[\"boolean\",\"null\"],\"description\":\"Whether to run it on "
    "a terminal: false by default.\"},\"max_output_bytes\":{\"type\":[\"integer\",\"null\"],"
    "\"minimum\":1,\"maximum\":1048576,\"description\":\"Longer output loses its middle: "
    "65536 by default.\"}},\"required\":[\"command\"]},";

static const char tools_stdin[] =
    "{\"name\":\"write_stdin\",\"description\":\"Writes to a running command of the tool "
    "shell, or sends it a signal; answers with its new output.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"integer"
    "\",\"description\":\"As answered by shell.\"},\"chars\":{\"type\":[\"string\",\"null\"],"
    "\"description\":\"What to write; nothing by default, which only waits. The character "
    "U+0004 alone ends the input.\"},\"yield_time_ms\":{\"type\":[\"integer\",\"null\"],"
    "\"minimum\":0,\"description\":\"How long to wait for output or the end: 1000 by "
    "default.\"},\"signal\":{\"type\":[\"string\",\"null\"],\"enum\":[\"INT\",\"TERM\","
    "\"KILL\",null]}},\"required\":[\"session_id\"]},";

/* What both tools have. */
static const char tools_schema[] =
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"exit_code\":{\"type\":[\"integer"
    "\",\"null\"]},\"output\":{\"type\":\"string\"},\"duration\":{\"type\":\"object\","
    "\"properties\":{\"secs\":{\"type\":\"integer\"},\"nanos\":{\"type\":\"integer\"}},"
    "\"required\":[\"secs\",\"nanos\"]},\"timed_out\":{\"type\":\"boolean\"},"
    "\"signal\":{\"type\":\"string\"},\"omitted_bytes\":{\"type\":\"integer\"},"
    "\"session_id\":{\"type\":\"integer\"}},\"required\":[\"exit_code\",\"output\","
    "\"duration\",\"timed_out\"]},";

static const char tools_hints[] =
    "\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":false,"
    "\"openWorldHint\":true}}";

static int tools_put_one(struct buf *b, const char *head, const char *title) {
    int r = buf_putf(b, "%s%s\"annotations\":{\"title\":\"%s\",", head, tools_schema, title);
    return r < 0 ? r : buf_putz(b, tools_hints);
}

int mcp_tools_put(struct buf *b, bool compat) {
    if (compat)
        return buf_putz(b, tools_compat);
    int r = tools_put_one(b, tools_shell, "Run a shell command");
    if (r == 0)
        r = buf_putc(b, ',');
    if (r == 0)
        r = tools_put_one(b, tools_stdin, "Write to a running command");
    return r < 0 ? r : buf_putc(b, ']');
}

int mcp_tools_find(struct str name, bool compat) {
    if (str_eqz(name, "shell"))
        return MCP_TOOLS_SHELL;
    return str_eqz(name, "write_stdin") && !compat ? MCP_TOOLS_WRITE_STDIN : -ENOENT;
}

/* -- arguments -- */

/* "invalid type: ...", with the old server's words for numbers. */
static int tools_type_error(const struct json_node *v, const char *expected, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    if (v->type == JSON_NUMBER) {
        bool real = memchr(v->p, '.', v->n) != NULL || memchr(v->p, 'e', v->n) != NULL ||
                    memchr(v->p, 'E', v->n) != NULL;
        return err_set(e, ERR_INVALID_PARAMS, TOOLS_FAILED "invalid type: %s `%.*s`, expected %s",
                       real ? "floating point" : "integer", (int)MIN(v->n, (size_t)64), v->p,
                       expected);
    }
    jsondec_type_error(v, expected, &why);
    return err_set(e, ERR_INVALID_PARAMS, TOOLS_FAILED "%s", err_msg(&why));
}

static int tools_number(const struct json_node *v, uint64_t *out, struct err *e) {
    int64_t negative;
    if (v->type == JSON_NUMBER && json_u64(v, out) == 0)
        return 0;
    if (v->type == JSON_NUMBER && json_i64(v, &negative) == 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       TOOLS_FAILED "invalid value: integer `%.*s`, expected u64", (int)v->n, v->p);
    return tools_type_error(v, "u64", e);
}

static int tools_bool(const struct json_node *v, bool *out, struct err *e) {
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        return tools_type_error(v, "a boolean", e);
    *out = v->type == JSON_TRUE;
    return 0;
}

static int tools_text(const struct json_node *v, struct str *out, struct err *e) {
    if (v->type != JSON_STRING)
        return tools_type_error(v, "a string", e);
    *out = json_str(v);
    return 0;
}

static int tools_signal(const struct json_node *v, int *out, struct err *e) {
    struct str name;
    int r = tools_text(v, &name, e);
    if (r < 0)
        return r;
    *out = str_eqz(name, "INT")    ? SIGINT
           : str_eqz(name, "TERM") ? SIGTERM
           : str_eqz(name, "KILL") ? SIGKILL
                                   : 0;
    return *out != 0 ? 0
                     : err_about(e, ERR_INVALID_PARAMS, TOOLS_FAILED "unknown variant `", name,
                                 "`, expected one of `INT`, `TERM`, `KILL`");
}

static int tools_limit(const struct json_node *v, uint64_t *out, struct err *e) {
    int r = tools_number(v, out, e);
    if (r == 0 && (*out < 1 || *out > MCP_OUTPUT_MAX))
        r = err_set(e, ERR_INVALID_PARAMS, TOOLS_FAILED "max_output_bytes must be between 1 and %u",
                    MCP_OUTPUT_MAX);
    return r;
}

/* A member of `shell`. */
static int tools_shell_member(struct str key, const struct json_node *v, bool compat,
                              struct mcp_tools_args *o, struct err *e) {
    bool null = v->type == JSON_NULL;
    if (str_eqz(key, "command"))
        return tools_text(v, &o->command, e);
    if (str_eqz(key, "workdir"))
        return null && !compat ? 0 : tools_text(v, &o->workdir, e);
    if (null)
        return 0;
    if (str_eqz(key, "timeout_ms")) {
        o->has_timeout = true;
        return tools_number(v, &o->timeout_ms, e);
    }
    if (str_eqz(key, "login"))
        return tools_bool(v, &o->login, e);
    if (compat)
        return 0;
    if (str_eqz(key, "tty"))
        return tools_bool(v, &o->tty, e);
    if (str_eqz(key, "max_output_bytes"))
        return tools_limit(v, &o->max_output, e);
    if (str_eqz(key, "yield_time_ms")) {
        o->has_yield = true;
        return tools_number(v, &o->yield_ms, e);
    }
    return 0;
}

static int tools_stdin_member(struct str key, const struct json_node *v, struct mcp_tools_args *o,
                              struct err *e) {
    if (str_eqz(key, "session_id"))
        return tools_number(v, &o->session, e);
    if (v->type == JSON_NULL)
        return 0;
    if (str_eqz(key, "chars"))
        return tools_text(v, &o->chars, e);
    if (str_eqz(key, "signal"))
        return tools_signal(v, &o->signal, e);
    return str_eqz(key, "yield_time_ms") ? tools_number(v, &o->yield_ms, e) : 0;
}

static int tools_missing(const struct json_node *v, const char *name, struct err *e) {
    if (v != NULL && json_get(v, name) != NULL)
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, TOOLS_FAILED "missing field `%s`", name);
}

int mcp_tools_decode(enum mcp_tools_name tool, const struct json_node *v, bool compat,
                     struct mcp_tools_args *out, struct err *e) {
    bool shell = tool == MCP_TOOLS_SHELL;
    *out = (struct mcp_tools_args){.timeout_ms = MCP_TOOLS_TIMEOUT_MS,
                                   .login = true,
                                   .max_output = compat ? MCP_OUTPUT_MAX : MCP_TOOLS_OUTPUT,
                                   .yield_ms = MCP_TOOLS_YIELD_MS};
    if (v != NULL) {
        json_for_each_member(k, v) {
            int r = shell ? tools_shell_member(json_str(k), k + 1, compat, out, e)
                          : tools_stdin_member(json_str(k), k + 1, out, e);
            if (r < 0)
                return r;
        }
    }
    int r = tools_missing(v, shell ? "command" : "session_id", e);
    return r == 0 && shell && compat ? tools_missing(v, "workdir", e) : r;
}
