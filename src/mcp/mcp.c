#include "mcp/mcp.h"

#include "base/log.h"
#include "base/utf8.h"
#include "json/json_put.h"
#include "json/jsonw.h"
#include "loop/signals.h"
#include "mcp/mcp_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define MCP_OLD_NAME "codex-exec-mcp-server"
#define MCP_LATEST "2025-11-25"  /* the latest revision with a handshake */
#define MCP_UNSUPPORTED (-32022) /* 2026-07-28: the revision */
#define MCP_PARSE_ERROR (-32700)

#define MCP_INSTRUCTIONS_COMPAT                                                                    \
    "This server provides a tool to execute shell commands and return their output."
#define MCP_INSTRUCTIONS                                                                           \
    "Run shell commands with the tool shell. They run in a sandbox; some programs need the "       \
    "user's approval or are denied by rules, and a denied program prints `Execution denied`."

#define MCP_CAPABILITIES_COMPAT                                                                    \
    "{\"experimental\":{\"codex/sandbox-state\":{\"version\":\"1.0.0\"}},\"tools\":{}}"
#define MCP_CAPABILITIES                                                                           \
    "{\"experimental\":{\"codex/sandbox-state\":{\"version\":\"1.0.0\"},"                          \
    "\"codex/sandbox-state-meta\":{}},\"tools\":{}}"

static struct mcp *mcp_of(struct mcp_lines *l) {
    return container_of(l, struct mcp, lines);
}

/* -- stopping -- */

static void mcp_stop(struct mcp *m, int code) {
    if (m->stopping)
        return;
    m->stopping = true;
    m->exit_code = code;
    mcp_run_kill_all(m);
    if (list_empty(&m->runs) || loop_timer_set(&m->loop, &m->stop_timer, MCP_STOP_MS * LOOP_MS) < 0)
        m->loop.stop = true;
}

static void mcp_on_stop_timer(struct loop_timer *t) {
    struct mcp *m = container_of(t, struct mcp, stop_timer);
    log_error("%zu commands could not be ended in time", m->run_count);
    m->loop.stop = true;
}

static void mcp_on_ended(struct mcp_lines *l) {
    struct mcp *m = mcp_of(l);
    bool early = m->o->compat && !m->ready;
    m->input_ended = true;
    if (early)
        fprintf(stderr, "Error: connection closed: %s\n",
                m->initialized ? "initialize notification" : "initialized request");
    mcp_stop(m, early ? 1 : 0);
}

static void mcp_on_signal(struct loop_io *io, uint32_t events) {
    (void)events;
    struct mcp *m = container_of(io, struct mcp, signals);
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            child_host_reap(&m->procs.children);
        else
            mcp_stop(m, 0);
    }
}

/* -- methods -- */

static void mcp_empty(struct mcp *m, struct str id, bool modern) {
    mcp_send_result(m, id, modern, STR_LIT("{}"));
}

/* The revision for a client of the handshake era. */
static struct str mcp_revision(const struct mcp *m, struct str asked) {
    static const char *const known[] = {"2024-11-05", "2025-03-26", "2025-06-18", MCP_LATEST};
    static const char old[] = "2025-06-18";
    if (m->o->compat) { /* the smaller text */
        int c = memcmp(asked.n > 0 ? asked.p : "", old, MIN(asked.n, sizeof old - 1));
        return c < 0 || (c == 0 && asked.n < sizeof old - 1) ? asked : str_of(old);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eqz(asked, known[i]))
            return asked;
    }
    return STR_LIT(MCP_LATEST);
}

static void mcp_initialize(struct mcp *m, const struct mcp_message *msg, struct str id) {
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    struct str asked = mcp_message_text(msg->params, "protocolVersion");
    if (asked.p == NULL) {
        mcp_send_error(m, id, ERR_INVALID_PARAMS, STR_LIT("initialize needs a protocolVersion"),
                       (struct str){0});
        return;
    }
    bool compat = m->o->compat;
    struct str revision = mcp_revision(m, asked);
    m->initialized = true;
    m->can_ask = mcp_call_can_ask(mcp_message_object(msg->params, "capabilities"));
    m->form_mode = !compat && str_eqz(revision, MCP_LATEST);
    int r = buf_putz(&b, "{\"protocolVersion\":");
    if (r == 0)
        r = jsonw_str(&b, revision);
    if (r == 0)
        r = buf_putf(&b, ",\"capabilities\":%s,\"serverInfo\":%s,\"instructions\":\"%s\"}",
                     compat ? MCP_CAPABILITIES_COMPAT : MCP_CAPABILITIES,
                     compat ? "{\"name\":\"rmcp\",\"version\":\"0.12.0\"}"
                            : "{\"name\":\"exec-server\",\"title\":\"exec-server\",\"version\":"
                              "\"" EXEC_SERVER_VERSION "\"}",
                     compat ? MCP_INSTRUCTIONS_COMPAT : MCP_INSTRUCTIONS);
    if (r == 0)
        mcp_send_result(m, id, false, buf_str(&b));
}

static void mcp_discover(struct mcp *m, struct str id) {
    mcp_send_result(m, id, true,
                    STR_LIT("{\"supportedVersions\":[\"" MCP_MESSAGE_MODERN
                            "\"],\"capabilities\":" MCP_CAPABILITIES ",\"instructions\":"
                            "\"" MCP_INSTRUCTIONS
                            "\",\"ttlMs\":3600000,\"cacheScope\":\"private\"}"));
}

static void mcp_tools_list(struct mcp *m, struct str id, bool modern) {
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    int r = buf_putz(&b, "{\"tools\":");
    if (r == 0)
        r = mcp_tools_put(&b, m->o->compat);
    if (r == 0 && modern)
        r = buf_putz(&b, ",\"ttlMs\":3600000,\"cacheScope\":\"private\"");
    if (r == 0)
        r = buf_putz(&b, "}");
    if (r == 0)
        mcp_send_result(m, id, modern, buf_str(&b));
}

static void mcp_update_state(struct mcp *m, const struct mcp_message *msg, struct str id) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf data = BUF_INIT(MCP_LINES_MAX);
    if (msg->params == NULL)
        mcp_send_error(m, id, ERR_INVALID_PARAMS,
                       STR_LIT("missing params for sandbox state request"), (struct str){0});
    else if (mcp_state_take(&m->state, msg->params, m->o->compat, &m->state_doc, &e) == 0)
        mcp_empty(m, id, false);
    else if (json_put(&data, msg->params) == 0)
        mcp_send_error(m, id, ERR_INVALID_PARAMS, STR_LIT("failed to deserialize sandbox state"),
                       buf_str(&data));
}

/* A subscription: acknowledged at once, answered at its end. */
static void mcp_listen(struct mcp *m, struct str id) {
    _cleanup_buf_ struct buf b = BUF_INIT(MCP_ID_MAX + 256);
    for (size_t i = 0; i < MCP_LISTENERS_MAX; i++) {
        struct buf *slot = &m->listeners[i];
        if (slot->len > 0)
            continue;
        *slot = BUF_INIT(MCP_ID_MAX);
        if (buf_put(slot, id.p, id.n) == 0 &&
            buf_putf(&b,
                     "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%.*s},"
                     "\"notifications\":{}}",
                     (int)id.n, id.p) == 0)
            mcp_send_notification(m, "notifications/subscriptions/acknowledged", buf_str(&b));
        return;
    }
    mcp_send_error(m, id, ERR_INTERNAL, STR_LIT("too many subscriptions"), (struct str){0});
}

static void mcp_end_listener(struct mcp *m, struct str id) {
    for (size_t i = 0; i < MCP_LISTENERS_MAX; i++) {
        if (m->listeners[i].len > 0 && str_eq(buf_str(&m->listeners[i]), id))
            buf_fini(&m->listeners[i]);
    }
}

static void mcp_unknown(struct mcp *m, struct str method, struct str id) {
    static const char *const named[] = {"resources/read", "resources/subscribe", "prompts/get",
                                        "logging/setLevel"};
    bool echo = !m->o->compat;
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        echo |= str_eqz(method, named[i]);
    struct str cut = {method.p, utf8_cut(method.p, method.n, 256)};
    mcp_send_error(m, id, ERR_METHOD_NOT_FOUND, echo ? cut : STR_LIT("codex/sandbox-state/update"),
                   (struct str){0});
}

/* What a client of the handshake era may ask for although it is not offered. */
static bool mcp_empty_list(struct mcp *m, struct str method, struct str id) {
    static const struct {
        const char *method, *result;
    } lists[] = {{"ping", "{}"},
                 {"resources/list", "{\"resources\":[]}"},
                 {"resources/templates/list", "{\"resourceTemplates\":[]}"},
                 {"prompts/list", "{\"prompts\":[]}"},
                 {"completion/complete", "{\"completion\":{\"values\":[]}}"}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (str_eqz(method, lists[i].method)) {
            mcp_send_result(m, id, false, str_of(lists[i].result));
            return true;
        }
    }
    return false;
}

static void mcp_handshake_request(struct mcp *m, const struct mcp_message *msg, struct str id) {
    bool early = !m->initialized && !str_eqz(msg->method, "initialize") &&
                 !str_eqz(msg->method, "ping") && !str_eqz(msg->method, "server/discover");
    if (early)
        mcp_send_error(m, id, ERR_INVALID_REQUEST, STR_LIT("initialize comes first"),
                       (struct str){0});
    else if (str_eqz(msg->method, "initialize"))
        mcp_initialize(m, msg, id);
    else if (str_eqz(msg->method, "tools/list"))
        mcp_tools_list(m, id, false);
    else if (str_eqz(msg->method, "tools/call"))
        mcp_call(m, msg, id);
    else if (str_eqz(msg->method, "codex/sandbox-state/update"))
        mcp_update_state(m, msg, id);
    else if (str_eqz(msg->method, "server/discover") && !m->o->compat)
        mcp_send_error(m, id, ERR_INVALID_PARAMS,
                       STR_LIT("server/discover needs the _meta of revision " MCP_MESSAGE_MODERN),
                       (struct str){0});
    else if (!mcp_empty_list(m, msg->method, id))
        mcp_unknown(m, msg->method, id);
}

/* Whether the metadata of a modern request will do; else it is answered. */
static bool mcp_check_meta(struct mcp *m, const struct mcp_message *msg, struct str id) {
    _cleanup_buf_ struct buf data = BUF_INIT(MCP_ID_MAX);
    const struct json_node *v = msg->revision;
    if (v == NULL || v->type != JSON_STRING ||
        mcp_message_object(msg->meta, "io.modelcontextprotocol/clientCapabilities") == NULL) {
        mcp_send_error(m, id, ERR_INVALID_PARAMS,
                       STR_LIT("_meta needs io.modelcontextprotocol/protocolVersion and "
                               "io.modelcontextprotocol/clientCapabilities"),
                       (struct str){0});
        return false;
    }
    if (str_eqz(json_str(v), MCP_MESSAGE_MODERN))
        return true;
    if (buf_putz(&data, "{\"supported\":[\"" MCP_MESSAGE_MODERN "\"],\"requested\":") < 0 ||
        jsonw_str(&data, (struct str){v->p, utf8_cut(v->p, v->n, 256)}) < 0 ||
        buf_putc(&data, '}') < 0)
        return false;
    mcp_send_error(m, id, MCP_UNSUPPORTED, STR_LIT("Unsupported protocol version"), buf_str(&data));
    return false;
}

static void mcp_modern_request(struct mcp *m, const struct mcp_message *msg, struct str id) {
    if (!mcp_check_meta(m, msg, id))
        return;
    if (str_eqz(msg->method, "server/discover"))
        mcp_discover(m, id);
    else if (str_eqz(msg->method, "tools/list"))
        mcp_tools_list(m, id, true);
    else if (str_eqz(msg->method, "tools/call"))
        mcp_call(m, msg, id);
    else if (str_eqz(msg->method, "subscriptions/listen"))
        mcp_listen(m, id);
    else
        mcp_unknown(m, msg->method, id);
}

/* -- messages -- */

static void mcp_notification(struct mcp *m, const struct mcp_message *msg) {
    _cleanup_buf_ struct buf id = BUF_INIT(MCP_ID_MAX);
    if (str_eqz(msg->method, "notifications/initialized"))
        m->ready = m->initialized;
    if (!str_eqz(msg->method, "notifications/cancelled") || msg->params == NULL ||
        msg->params->type != JSON_OBJECT)
        return;
    const struct json_node *v = json_get(msg->params, "requestId");
    if (v == NULL || json_put(&id, v) < 0)
        return;
    if (!mcp_call_cancel(m, buf_str(&id)))
        mcp_end_listener(m, buf_str(&id));
}

static void mcp_message(struct mcp *m, const struct mcp_message *msg) {
    _cleanup_buf_ struct buf id = BUF_INIT(MCP_ID_MAX);
    if (msg->kind == MCP_MESSAGE_NOTIFICATION) {
        mcp_notification(m, msg);
        return;
    }
    if (msg->kind == MCP_MESSAGE_RESPONSE) {
        mcp_ask_response(m, msg);
        return;
    }
    if (json_put(&id, msg->id) < 0)
        mcp_send_error(m, STR_LIT("null"), ERR_INVALID_REQUEST, STR_LIT("the id is too long"),
                       (struct str){0});
    else if (msg->modern && !m->o->compat)
        mcp_modern_request(m, msg, buf_str(&id));
    else
        mcp_handshake_request(m, msg, buf_str(&id));
}

static void mcp_bad_line(struct mcp *m, int code, const char *why) {
    log_warn("a bad line: %s", why);
    mcp_send_error(m, STR_LIT("null"), code, str_of(why), (struct str){0});
}

static void mcp_on_line(struct mcp_lines *l, struct str text) {
    struct mcp *m = mcp_of(l);
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_message msg;
    if (m->stopping || str_trim(text).n == 0)
        return;
    if (!utf8_valid(text.p, text.n)) {
        mcp_bad_line(m, MCP_PARSE_ERROR, "Parse error: the line is not UTF-8");
        return;
    }
    int r = json_parse(&m->doc, text.p, text.n, &e);
    if (r < 0) {
        char why[512];
        snprintf(why, sizeof why, "Parse error: %.400s", err_msg(&e));
        mcp_bad_line(m, MCP_PARSE_ERROR, why);
    } else if (mcp_message_read(json_root(&m->doc), &msg, &e) < 0) {
        mcp_bad_line(m, ERR_INVALID_REQUEST, err_msg(&e));
    } else {
        mcp_message(m, &msg);
    }
    json_doc_trim(&m->doc);
}

static void mcp_on_too_long(struct mcp_lines *l) {
    mcp_bad_line(mcp_of(l), ERR_INVALID_REQUEST, "Invalid Request: the line is too long");
}

static const struct mcp_lines_ops mcp_lines_calls = {mcp_on_line, mcp_on_too_long, mcp_on_ended};

/* -- start -- */

static int mcp_start_failed(const char *what) {
    fprintf(stderr, "Error: %s\n", what);
    return 1;
}

/* $CODEX_HOME, else .codex in the home directory. 0, or the exit status plus 1. */
static int mcp_find_user_dir(struct mcp *m) {
    const char *set = getenv("CODEX_HOME"), *home = getenv("HOME");
    struct stat st;
    if (set != NULL && set[0] != '\0') {
        if (stat(set, &st) < 0 || !S_ISDIR(st.st_mode)) {
            const char *why =
                stat(set, &st) < 0 ? "which does not exist" : "which is not a directory";
            fprintf(stderr,
                    m->o->compat ? "Error: failed to resolve codex_home for execpolicy\n\n"
                                   "Caused by:\n    CODEX_HOME points to \"%s\", but that path %s\n"
                                 : "Error: CODEX_HOME is \"%s\", %s: create it, or unset it\n",
                    set, m->o->compat ? why + strlen("which ") : why);
            return 2;
        }
        m->user_dir = strdup(set);
        return m->user_dir == NULL ? 2 : 0;
    }
    if (home == NULL || home[0] == '\0')
        home = m->passwd.home;
    if (home != NULL && asprintf(&m->user_dir, "%s/.codex", home) < 0)
        return 2;
    return 0;
}

static bool mcp_is_program(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A program that was named must be one; the old server finds out when it runs it. */
static int mcp_check_program(const struct mcp *m, const char *option, const char *path) {
    if (path == NULL || m->o->compat || mcp_is_program(path))
        return 0;
    fprintf(stderr, "Error: %s: %s is not a file that can be executed\n", option, path);
    return 2;
}

static int mcp_find_shell(struct mcp *m) {
    static const char *const places[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                         "/bin/sh"};
    const char *found = m->o->bash;
    for (size_t i = 0; found == NULL && i < ARRAY_LEN(places); i++)
        found = mcp_is_program(places[i]) ? places[i] : NULL;
    m->shell = found == NULL ? NULL : strdup(found);
    return m->shell == NULL ? 1 + mcp_start_failed("there is no shell") : 0;
}

/* The wrapper: given, or beside this program, or this program by its name. */
static int mcp_find_wrapper(struct mcp *m) {
    char self[PATH_MAX], path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (m->o->execve != NULL) {
        m->wrapper = strdup(m->o->execve);
        return 0;
    }
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    if (slash == NULL)
        return 0;
    *slash = '\0';
    snprintf(path, sizeof path, "%s/codex-execve-wrapper", self);
    if (mcp_is_program(path))
        m->wrapper = strdup(path);
    return 0;
}

/* Where the kernel cannot tell of every exec, that is an error: never silently less. */
static int mcp_choose_notify(struct mcp *m) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (mcp_notify_init(m, &e) == 0)
        return 0;
    fprintf(stderr,
            "Error: programs cannot be intercepted here: %s; use --intercept wrapper with a "
            "patched Bash, or --intercept off\n",
            err_msg(&e));
    return 2;
}

/* Chooses the interception; one that was asked for and cannot be is an error. */
static int mcp_choose(struct mcp *m) {
    m->intercept = m->o->intercept;
    if (m->o->compat && m->intercept == MCP_INTERCEPT_WRAPPER && m->o->bash == NULL) {
        fputs("Error: CODEX_BASH_PATH must be set\n\n"
              "Caused by:\n    environment variable not found\n",
              stderr);
        return 2;
    }
    if (m->intercept == MCP_INTERCEPT_AUTO)
        m->intercept = m->o->bash != NULL ? MCP_INTERCEPT_WRAPPER : MCP_INTERCEPT_NOTIFY;
    if (m->intercept == MCP_INTERCEPT_WRAPPER && m->o->bash == NULL)
        return 1 + mcp_start_failed("--intercept wrapper needs --bash or CODEX_BASH_PATH");
    if (m->intercept == MCP_INTERCEPT_WRAPPER && m->wrapper == NULL)
        return 1 + mcp_start_failed("there is no codex-execve-wrapper beside this program: make a "
                                    "link of that name to it, or use --execve");
    return m->intercept == MCP_INTERCEPT_NOTIFY ? mcp_choose_notify(m) : 0;
}

static int mcp_load_rules(struct mcp *m) {
    _cleanup_err_ struct err e = ERR_INIT;
    const char *home = getenv("HOME");
    const struct decide_options o = {.system_dir = m->o->system_dir,
                                     .user_dir = m->user_dir,
                                     .home = home != NULL ? home : m->passwd.home,
                                     .whole_paths = m->o->whole_paths,
                                     .compat = m->o->compat};
    return decide_new(&m->decide, &o, &e) < 0 ? 1 + mcp_start_failed(err_msg(&e)) : 0;
}

static int mcp_watch_signals(struct mcp *m) {
    m->signals.fd = signals_open();
    return m->signals.fd < 0 ? m->signals.fd : loop_io_add(&m->loop, &m->signals, EPOLLIN);
}

static int mcp_init(struct mcp *m, const struct mcp_options *o, struct rlimit nofile) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    *m = (struct mcp){.o = o,
                      .signals = {.fd = -1, .fn = mcp_on_signal},
                      .stop_timer.fn = mcp_on_stop_timer,
                      .reply = BUF_INIT(MCP_LINES_OUT),
                      .state = MCP_STATE_INIT};
    list_init(&m->runs);
    json_doc_init(&m->doc, MCP_LINES_MAX, seed);
    json_doc_init(&m->state_doc, MCP_STATE_MAX, seed);
    passwd_read("/etc/passwd", getuid(), &m->passwd);
    int r = loop_init(&m->loop, NULL);
    remains_init(&m->remains, &m->loop);
    sandbox_host_init(&m->sandbox, false, m->passwd.home);
    int p = proc_host_init(&m->procs, &m->loop, nofile);
    if (r == 0)
        r = p;
    return r == 0 ? mcp_watch_signals(m) : r;
}

static void mcp_fini(struct mcp *m) {
    mcp_lines_fini(&m->lines);
    remains_fini(&m->remains);
    sandbox_host_fini(&m->sandbox);
    mcp_notify_fini(m);
    decide_free(m->decide);
    audit_close(&m->audit);
}

static int mcp_serve(struct mcp *m) {
    _cleanup_err_ struct err e = ERR_INIT;
    int r = mcp_find_user_dir(m);
    if (r == 0)
        r = mcp_check_program(m, "--bash or CODEX_BASH_PATH", m->o->bash);
    if (r == 0)
        r = mcp_check_program(m, "--execve", m->o->execve);
    if (r == 0)
        r = mcp_find_wrapper(m);
    if (r == 0)
        r = mcp_choose(m);
    if (r == 0)
        r = mcp_find_shell(m);
    if (r == 0)
        r = mcp_load_rules(m);
    if (r != 0)
        return r - 1;
    if (m->o->audit_log != NULL && audit_open(&m->audit, m->o->audit_log, &e) < 0)
        return mcp_start_failed(err_msg(&e));
    r = mcp_lines_init(&m->lines, &m->loop, STDIN_FILENO, STDOUT_FILENO, &mcp_lines_calls);
    if (r == 0 && !m->loop.stop)
        r = loop_run(&m->loop);
    return r < 0 ? mcp_start_failed(err_os_text(-r)) : m->exit_code;
}

bool mcp_is(int argc, char **argv) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc == 0 ? "" : slash == NULL ? argv[0] : slash + 1;
    return strcmp(name, MCP_OLD_NAME) == 0 || (argc > 1 && strcmp(argv[1], "mcp") == 0);
}

int mcp_main(int argc, char **argv, struct rlimit nofile) {
    static struct mcp m;
    struct mcp_options o;
    const char *slash = strrchr(argv[0], '/');
    bool old = strcmp(slash == NULL ? argv[0] : slash + 1, MCP_OLD_NAME) == 0;
    switch (
        mcp_options_parse(old ? argc : argc - 1, old ? argv : argv + 1, old, &o, stdout, stderr)) {
    case MCP_OPTIONS_EXIT: return 0;
    case MCP_OPTIONS_USAGE: return 2;
    case MCP_OPTIONS_RUN: break;
    }
    log_init(o.log_level, STDERR_FILENO);
    int in_flags = fcntl(STDIN_FILENO, F_GETFL), out_flags = fcntl(STDOUT_FILENO, F_GETFL);
    int r = mcp_init(&m, &o, nofile);
    int code = r < 0 ? mcp_start_failed(err_os_text(-r)) : mcp_serve(&m);
    mcp_fini(&m);
    (void)fcntl(STDIN_FILENO, F_SETFL, in_flags); /* others may share them */
    (void)fcntl(STDOUT_FILENO, F_SETFL, out_flags);
    return code;
}
