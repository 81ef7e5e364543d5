#include "mcp/mcp_internal.h"

#include "base/log.h"
#include "base/utf8.h"
#include "rules/shlex.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define EXEC_ARENA_MAX (32u << 20)
#define EXEC_SHOWN_MAX 4096 /* bytes of a command line in a question or the log */

/* -- names -- */

static size_t exec_names(const struct mcp_exec_what *w, const struct str *args, struct arena *a,
                         struct decide_name *out) {
    size_t n = 0, argc = w->argc > 0 ? w->argc - 1 : 0;
    if (w->memfd != NULL) {
        size_t size = strlen(w->memfd) + 8;
        char *name = arena_alloc(a, size);
        if (name == NULL)
            return 0;
        snprintf(name, size, "memfd:%s", w->memfd);
        out[n++] = (struct decide_name){str_of(name), args, argc, false};
        return n;
    }
    out[n++] = (struct decide_name){str_of(w->file), args, argc, false};
    if (w->resolved != NULL && strcmp(w->resolved, w->file) != 0)
        out[n++] = (struct decide_name){str_of(w->resolved), args, argc, false};
    for (size_t i = 0; i < MIN(w->interpreter_count, (size_t)MCP_EXEC_INTERPRETERS); i++) {
        const struct mcp_exec_interpreter *p = &w->interpreters[i];
        struct str *list = arena_calloc(a, argc + 2, sizeof *list);
        size_t k = 0;
        if (list == NULL)
            return 0;
        if (p->arg != NULL)
            list[k++] = str_of(p->arg);
        list[k++] = str_of(w->file);
        if (argc > 0)
            memcpy(list + k, args, argc * sizeof *list);
        out[n++] = (struct decide_name){str_of(p->path), list, argc + k, true};
        if (p->file != NULL && strcmp(p->file, p->path) != 0)
            out[n++] = (struct decide_name){str_of(p->file), list, argc + k, true};
    }
    return n;
}

/* -- what is writable inside -- */

/* Whether a command in the sandbox could change what lies at the path. */
static bool exec_is_writable(const struct mcp_run *r, const char *path) {
    const struct plan_entry *best = NULL;
    size_t length = 0;
    if (!r->confined)
        return false; /* nothing is gained outside */
    if (!r->plan.confine_files)
        return true;
    for (size_t i = 0; i < r->plan.entry_count; i++) {
        const struct plan_entry *e = &r->plan.entries[i];
        char real[4096];
        const char *place = realpath(e->path, real) != NULL ? real : e->path;
        size_t n = strcmp(place, "/") == 0 ? 0 : strlen(place);
        if (strncmp(path, place, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
            (best == NULL || n >= length)) {
            best = e;
            length = n;
        }
    }
    return best != NULL && best->access == PLAN_WRITE;
}

/* -- words for the user -- */

/* Whether a character could make a question look like another one: it ends lines, moves the cursor,
 * or turns the direction of text. */
static bool exec_misleads(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Appends a text as UTF-8; characters that mislead by their number. */
static int exec_show(struct buf *b, struct str text) {
    _cleanup_buf_ struct buf mended = BUF_INIT(1u << 20);
    int r = mcp_output_mend(&mended, text);
    for (size_t i = 0; r == 0 && i < mended.len;) {
        uint32_t c;
        size_t n = utf8_decode(mended.p + i, mended.len - i, &c);
        r = exec_misleads(c) ? buf_putf(b, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c)
                             : buf_put(b, mended.p + i, n);
        i += n;
    }
    return r;
}

/* The program and its arguments, quoted; NULL without memory. */
static char *exec_words(const struct mcp_run *run, const struct mcp_exec_what *w,
                        const struct str *args) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20), text = BUF_INIT(4u << 20);
    struct str file = str_of(w->file);
    bool compat = run->m->o->compat;
    int r = compat ? buf_putz(&b, w->file) : shlex_join(&b, &file, 1);
    for (size_t i = 0; r == 0 && w->argc > 1 && i < w->argc - 1 && b.len < EXEC_SHOWN_MAX; i++) {
        r = buf_putc(&b, ' ');
        if (r == 0)
            r = shlex_join(&b, &args[i], 1);
    }
    if (b.len > EXEC_SHOWN_MAX) {
        b.len = EXEC_SHOWN_MAX;
        r = buf_putz(&b, "...");
    }
    if (r == 0)
        r = compat ? mcp_output_mend(&text, buf_str(&b)) : exec_show(&text, buf_str(&b));
    return r < 0 ? NULL : str_dup(buf_str(&text));
}

static char *exec_question(const struct mcp_run *r, const struct mcp_exec_what *w,
                           const struct decide_verdict *v, const char *words) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20), text = BUF_INIT(1u << 20);
    bool outside = !r->m->o->compat && r->confined && v->accepted == DECIDE_ESCALATE;
    int x = buf_putf(&b, "Allow agent to run `%s` in `", words);
    if (x == 0)
        x = r->m->o->compat ? buf_putz(&b, w->cwd) : exec_show(&b, str_of(w->cwd));
    if (x == 0)
        x = buf_putf(&b, "`%s?", outside ? " outside the sandbox" : "");
    if (x == 0 && !r->m->o->compat && v->justification.p != NULL)
        x = buf_putf(&b, "\n\n%.*s", (int)v->justification.n, v->justification.p);
    if (x == 0)
        x = mcp_output_mend(&text, buf_str(&b));
    return x < 0 ? NULL : str_dup(buf_str(&text));
}

/* -- logs -- */

static const char *exec_action_name(enum decide_action a) {
    static const char *const names[] = {[DECIDE_RUN] = "Run",
                                        [DECIDE_ESCALATE] = "Escalate",
                                        [DECIDE_DENY] = "Deny",
                                        [DECIDE_ASK] = "Ask"};
    return names[a];
}

static void exec_log(struct mcp_run *r, const struct mcp_exec_what *w,
                     const struct decide_verdict *v, const char *words) {
    struct audit *a = &r->m->audit;
    log_debug("%s: `%s` in `%s` (%.*s)", exec_action_name(v->action), words, w->cwd,
              v->rule.p != NULL ? (int)v->rule.n : 7, v->rule.p != NULL ? v->rule.p : "no rule");
    if (!audit_enabled(a))
        return;
    struct audit_argv argv;
    audit_begin(a, "exec_decided");
    audit_number(a, "call", r->proc.pid);
    audit_text(a, "file", str_of(w->file), EXEC_SHOWN_MAX);
    audit_argv_begin(a, &argv);
    for (size_t i = 0; i < w->argc; i++)
        audit_argv_add(a, &argv, str_of(w->argv[i]));
    audit_argv_end(a, &argv);
    audit_text(a, "cwd", str_of(w->cwd), EXEC_SHOWN_MAX);
    audit_text(a, "action", str_of(exec_action_name(v->action)), 16);
    if (v->rule.p != NULL)
        audit_text(a, "rule", v->rule, EXEC_SHOWN_MAX);
    audit_end(a);
}

/* -- deciding -- */

/* Takes back what the sandbox, the engine or the client cannot grant. */
static void exec_limit(const struct mcp_run *r, const struct mcp_exec_what *w,
                       const struct mcp_engine *engine, void *token, struct decide_verdict *v) {
    const char *file = w->resolved != NULL ? w->resolved : w->file;
    bool outside =
        v->action == DECIDE_ESCALATE || (v->action == DECIDE_ASK && v->accepted == DECIDE_ESCALATE);
    bool may = w->may_escalate &&
               (!outside || engine->may_escalate == NULL || engine->may_escalate(token));
    bool doubtful = outside && !r->m->o->compat && !v->by_path && exec_is_writable(r, file);
    if (!may || doubtful) {
        if (v->action == DECIDE_ESCALATE)
            v->action = DECIDE_RUN;
        if (v->accepted == DECIDE_ESCALATE)
            v->accepted = DECIDE_RUN;
    }
    if (v->action == DECIDE_ASK && !r->can_ask && !r->m->o->compat) {
        v->action = DECIDE_DENY;
        v->reason = STR_LIT("approval needed, but this client cannot be asked");
    }
    if (v->action == DECIDE_ASK && r->timed_out) {
        v->action = DECIDE_DENY;
        v->reason = STR_LIT("approval needed, but the command has timed out");
    }
}

void mcp_exec_decide(struct mcp_run *r, const struct mcp_exec_what *w,
                     const struct mcp_engine *engine, void *token) {
    _cleanup_arena_ struct arena a = ARENA_INIT(EXEC_ARENA_MAX);
    struct decide_name names[2 + 2 * MCP_EXEC_INTERPRETERS];
    struct decide_verdict v;
    struct str *args = arena_calloc(&a, w->argc + 1, sizeof *args);
    for (size_t i = 1; args != NULL && i < w->argc; i++)
        args[i - 1] = str_of(w->argv[i]);
    if (decide_refresh(r->m->decide)) {
        mcp_notify_rules(r->m);
        log_info("the rules were read again%s",
                 decide_broken(r->m->decide) != NULL ? ": they have an error" : "");
    }
    struct decide_query q = {.names = names, .cwd = w->cwd};
    if (args != NULL)
        q.n = exec_names(w, args, &a, names);
    q.real = q.n > 1 && !names[1].strict_only ? 1 : 0;
    if (args == NULL || q.n == 0 || decide_query(r->m->decide, &q, &a, &v) < 0) {
        engine->answer(token, DECIDE_DENY, STR_LIT("out of memory"));
        return;
    }
    exec_limit(r, w, engine, token, &v);
    _cleanup_free_ char *words = exec_words(r, w, args);
    exec_log(r, w, &v, words != NULL ? words : w->file);
    if (v.action == DECIDE_ASK)
        mcp_ask(r, engine, token, exec_question(r, w, &v, words != NULL ? words : w->file),
                v.accepted);
    else
        engine->answer(token, v.action, v.reason);
}

void mcp_exec_withdraw(struct mcp_run *r, const void *token) {
    list_for_each(n, &r->execs) {
        struct mcp_exec *x = list_entry(n, struct mcp_exec, node);
        if (x->token == token) {
            mcp_ask_withdraw(x);
            return;
        }
    }
}
