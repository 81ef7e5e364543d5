#include "proxy/proxy_judge.h"

const char *proxy_judge_protocol(enum proxy_protocol p) {
    static const char *const names[] = {"http", "https_connect", "socks5_tcp"};
    return names[p];
}

const char *proxy_judge_answer(enum proxy_answer a) {
    static const char *const names[] = {"allow", "deny", "ask"};
    return names[a];
}

static struct proxy_verdict judge_lists(enum proxy_answer answer, const char *reason) {
    return (struct proxy_verdict){answer, "baseline_policy", reason};
}

struct proxy_verdict proxy_judge_host(const struct proxy_config *c, const struct proxy_name *host) {
    const struct proxy_rules *r = &c->rules;
    bool local =
        host->is_address ? !proxy_name_is_public(&host->address) : proxy_name_is_loopback(host);
    if (proxy_rules_match(r, PROXY_DENY, host))
        return judge_lists(PROXY_DENIED, "denied");
    if (local && !c->local && !proxy_rules_names(r, host))
        return judge_lists(PROXY_DENIED, "not_allowed_local");
    if (!proxy_rules_match(r, PROXY_REVIEW, host) && proxy_rules_match(r, PROXY_ALLOW, host))
        return judge_lists(PROXY_ALLOWED, "allow");
    return judge_lists(c->asks ? PROXY_ASK : PROXY_DENIED, "not_allowed");
}

const char *proxy_judge_mode(const struct proxy_config *c, enum proxy_protocol p,
                             struct str method) {
    if (!c->limited)
        return NULL;
    if (p == PROXY_CONNECT)
        return "mitm_required";
    bool safe = str_eqz(method, "GET") || str_eqz(method, "HEAD") || str_eqz(method, "OPTIONS");
    return p == PROXY_HTTP && safe ? NULL : "method_not_allowed";
}

bool proxy_judge_address(const struct proxy_config *c, const struct proxy_name *host,
                         const struct sock_addr *a) {
    if (c->local || proxy_name_is_public(a))
        return true;
    if (!proxy_rules_names(&c->rules, host))
        return false;
    return host->is_address || (proxy_name_is_loopback(host) && proxy_name_addr_is_loopback(a));
}

/* -- refusals -- */

struct judge_refusal {
    const char *reason, *class, *text;
};

static const struct judge_refusal *judge_refusal(const char *reason) {
    static const struct judge_refusal known[] = {
        {"not_allowed", "blocked-by-allowlist", "Domain not in allowlist."},
        {"not_allowed_local", "blocked-by-allowlist",
         "Sandbox policy blocks local/private network addresses."},
        {"denied", "blocked-by-denylist", "Domain denied by the sandbox policy."},
        {"method_not_allowed", "blocked-by-method-policy", "Method not allowed in limited mode."},
        {"mitm_required", "blocked-by-mitm-required", "MITM required for limited HTTPS."},
        {NULL, "blocked-by-policy", "Request blocked by network policy."},
    };
    size_t i = 0;
    while (known[i].reason != NULL && strcmp(known[i].reason, reason) != 0)
        i++;
    return &known[i];
}

const char *proxy_judge_class(const char *reason) {
    return judge_refusal(reason)->class;
}

const char *proxy_judge_text(const char *reason) {
    return judge_refusal(reason)->text;
}
