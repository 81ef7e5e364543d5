#include "mcp/mcp_state.h"

#include "base/uri.h"
#include "json/json_put.h"
#include "json/jsonw.h"
#include "mcp/mcp_message.h"
#include "proc/env.h"
#include "sandbox/policy/profile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define STATE_READ_ONLY "{\"sandboxPolicy\":{\"type\":\"read-only\"}}"

void mcp_state_fini(struct mcp_state *s) {
    buf_fini(&s->text);
    free(steal_ptr(&s->cwd));
    s->open = s->network = false;
}

/* An absolute path: of a native path, a file URI, or a path below our own directory. */
static int state_path(struct str in, char **out, struct err *e) {
    char here[PATH_MAX];
    bool uri = in.n >= 5 && memcmp(in.p, "file:", 5) == 0;
    if (uri || (in.n > 0 && in.p[0] == '/'))
        return uri_to_path(in, out, e);
    if (getcwd(here, sizeof here) == NULL)
        return err_os(e, ERR_INTERNAL, errno);
    _cleanup_buf_ struct buf b = BUF_INIT(URI_PATH_MAX);
    int r = buf_putf(&b, "%s/", here);
    if (r == 0)
        r = buf_put(&b, in.p, in.n);
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : uri_to_path(buf_str(&b), out, e);
}

/* The older `sandboxPolicy`. */
static int state_put_policy(struct mcp_state *s, const struct json_node *policy) {
    struct str type = mcp_message_text(policy, "type");
    const struct json_node *net = json_get(policy, "network_access");
    s->open = str_eqz(type, "danger-full-access") || str_eqz(type, "external-sandbox");
    s->network = str_eqz(type, "danger-full-access") || (net != NULL && net->type == JSON_TRUE) ||
                 (net != NULL && net->type == JSON_STRING && str_eqz(json_str(net), "enabled"));
    int r = buf_putz(&s->text, "{\"sandboxPolicy\":");
    if (r == 0)
        r = json_put(&s->text, policy);
    if (r == 0 && s->cwd != NULL) {
        r = buf_putz(&s->text, ",\"sandboxPolicyCwd\":");
        if (r == 0)
            r = jsonw_str(&s->text, str_of(s->cwd));
    }
    return r < 0 ? r : buf_putc(&s->text, '}');
}

static int state_put_profile(struct mcp_state *s, const struct json_node *profile) {
    struct str type = mcp_message_text(profile, "type");
    s->open = str_eqz(type, "disabled") || str_eqz(type, "external");
    s->network =
        str_eqz(type, "disabled") || str_eqz(mcp_message_text(profile, "network"), "enabled");
    int r = buf_putz(&s->text, "{\"permissions\":");
    if (r == 0)
        r = json_put(&s->text, profile);
    if (r == 0 && s->cwd != NULL) {
        r = buf_putz(&s->text, ",\"cwd\":");
        if (r == 0)
            r = jsonw_str(&s->text, str_of(s->cwd));
        if (r == 0)
            r = buf_putz(&s->text, ",\"workspaceRoots\":[");
        if (r == 0)
            r = jsonw_str(&s->text, str_of(s->cwd));
        if (r == 0)
            r = buf_putc(&s->text, ']');
    }
    return r < 0 ? r : buf_putc(&s->text, '}');
}

/* Decodes the policy; the profile lives in the arena and points into the text. */
static int state_profile(struct str text, struct json_doc *doc, struct arena *a,
                         struct profile **out, struct err *e) {
    int r = json_parse(doc, text.p, text.n, e);
    return r < 0 ? r : profile_decode(json_root(doc), PROFILE_PROCESS, a, out, e);
}

static int state_build(struct mcp_state *s, const struct json_node *v, bool needs_cwd,
                       struct json_doc *doc, struct err *e) {
    const struct json_node *policy = mcp_message_object(v, "sandboxPolicy");
    const struct json_node *profile = mcp_message_object(v, "permissionProfile");
    struct str cwd = mcp_message_text(v, "sandboxCwd");
    if (policy == NULL && profile == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "missing field `sandboxPolicy`");
    if (needs_cwd && cwd.p == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "missing field `sandboxCwd`");
    int r = cwd.p == NULL ? 0 : state_path(cwd, &s->cwd, e);
    if (r < 0)
        return r;
    r = profile != NULL ? state_put_profile(s, profile) : state_put_policy(s, policy);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *ignored;
    return state_profile(buf_str(&s->text), doc, &a, &ignored, e);
}

int mcp_state_take(struct mcp_state *s, const struct json_node *v, bool needs_cwd,
                   struct json_doc *doc, struct err *e) {
    struct mcp_state next = MCP_STATE_INIT;
    int r = v == NULL || v->type != JSON_OBJECT
                ? err_set(e, ERR_INVALID_PARAMS, "the sandbox state must be an object")
                : state_build(&next, v, needs_cwd, doc, e);
    if (r < 0) {
        mcp_state_fini(&next);
        return r == -ENOMEM ? err_os(e, ERR_INTERNAL, ENOMEM) : r;
    }
    mcp_state_fini(s);
    *s = next;
    return 0;
}

int mcp_state_plan(const struct mcp_state *s, const struct mcp_state_place *where,
                   struct json_doc *doc, struct arena *a, struct plan *plan, bool *confined,
                   struct err *e) {
    struct profile *p;
    *confined = false;
    if (s->open)
        return 0;
    struct str text = s->text.len > 0 ? buf_str(&s->text) : STR_LIT(STATE_READ_ONLY);
    int r = state_profile(text, doc, a, &p, e);
    if (r < 0 || profile_process_need(p) == PROFILE_DIRECT)
        return r;
    const char *home = env_get(where->envp, "HOME");
    const struct profile_context context = {
        .call = PROFILE_PROCESS,
        .cwd = where->cwd,
        .tmpdir = env_get(where->envp, "TMPDIR"),
        .home = home != NULL && home[0] != '\0' ? home : where->home,
    };
    *confined = true;
    return profile_plan(p, &context, a, plan, e);
}
