#include "mcp/mcp_internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static void wrapper_answer(void *token, enum decide_action action, struct str reason) {
    escalate_server_answer(token,
                           action == DECIDE_RUN        ? ESCALATE_RUN
                           : action == DECIDE_ESCALATE ? ESCALATE_OUTSIDE
                                                       : ESCALATE_DENY,
                           reason);
}

static const struct mcp_engine wrapper_engine = {.answer = wrapper_answer};

/* The interpreter of a script's first line, as far as 256 bytes show it; false: none. */
static bool wrapper_interpreter(const char *file, char out[PATH_MAX]) {
    char line[257];
    struct stat st;
    _cleanup_close_ int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = regular ? read(fd, line, sizeof line - 1) : 0;
    line[MAX(n, (ssize_t)0)] = '\0';
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    const char *p = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(p, " \t\n");
    if (length == 0 || length >= PATH_MAX)
        return false;
    memcpy(out, p, length);
    out[length] = '\0';
    return true;
}

/* Whether the path leads the wrapper to the file that it leads us to. Unknown counts as yes only
 * outside a sandbox. */
static bool wrapper_sees_same(const struct mcp_run *r, const struct escalate_peer *peer,
                              const char *file, const struct stat *outside) {
    char path[PATH_MAX + 64];
    struct stat inside;
    if (!r->confined)
        return true;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)peer->pid, file);
    if (peer->pid <= 0 || stat(path, &inside) < 0)
        return false;
    /* The same file has another device number where another mount shows it. */
    return inside.st_ino == outside->st_ino && inside.st_size == outside->st_size &&
           inside.st_mtim.tv_nsec == outside->st_mtim.tv_nsec;
}

/* Whether the program may leave the sandbox, as the file that `resolved` names now. */
static bool wrapper_may_escalate(const struct mcp_run *r, struct escalate_session *s,
                                 const struct escalate_request *q, const struct escalate_peer *peer,
                                 const char *file, const char *resolved) {
    struct stat st;
    if (q->lossy || r->m->o->compat)
        return !q->lossy;
    return resolved != NULL && stat(resolved, &st) == 0 && wrapper_sees_same(r, peer, file, &st) &&
           wrapper_sees_same(r, peer, resolved, &st) &&
           escalate_server_judged(s, resolved, &st) == 0;
}

/* The path of a request, absolute against its working directory; false: too long. */
static bool wrapper_file(const struct escalate_request *q, char out[PATH_MAX]) {
    int n = q->file[0] == '/' ? snprintf(out, PATH_MAX, "%s", q->file)
                              : snprintf(out, PATH_MAX, "%s/%s", q->workdir, q->file);
    return n > 0 && n < PATH_MAX;
}

static void wrapper_on_decide(void *owner, struct escalate_session *s,
                              const struct escalate_request *q, const struct escalate_peer *peer) {
    struct mcp_run *r = owner;
    char file[PATH_MAX], resolved[PATH_MAX], line[PATH_MAX], line_file[PATH_MAX];
    bool compat = r->m->o->compat;
    if (!wrapper_file(q, file)) {
        escalate_server_answer(s, ESCALATE_DENY, STR_LIT("the path is too long"));
        return;
    }
    bool found = realpath(file, resolved) != NULL;
    bool script = !compat && found && wrapper_interpreter(resolved, line);
    struct mcp_exec_interpreter interpreter = {.path = line};
    if (script && realpath(line, line_file) != NULL)
        interpreter.file = line_file;
    struct mcp_exec_what w = {
        .file = file,
        .resolved = found && !compat ? resolved : NULL,
        .interpreters = &interpreter,
        .interpreter_count = script ? 1 : 0,
        .argv = q->argv,
        .argc = q->argc,
        .cwd = q->workdir,
        .may_escalate = wrapper_may_escalate(r, s, q, peer, file, found ? resolved : NULL)};
    mcp_exec_decide(r, &w, &wrapper_engine, s);
}

static void wrapper_on_withdrawn(void *owner, struct escalate_session *s) {
    mcp_exec_withdraw(owner, s);
}

static void wrapper_on_failed(void *owner, const char *why) {
    (void)owner;
    log_warn("escalate session failed: %s", why);
}

static const struct escalate_owner wrapper_owner = {wrapper_on_decide, wrapper_on_withdrawn,
                                                    wrapper_on_failed};

int mcp_wrapper_new(struct mcp_run *r, int *fd) {
    return escalate_server_new(&r->m->procs, &wrapper_owner, r, &r->wrapper, fd);
}
