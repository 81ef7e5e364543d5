#include "process/network_params.h"

#include "process/params.h"

#include <errno.h>

/* -- types -- */

static const char *const network_modes[] = {"limited", "full"};

static int network_check_mode(const struct json_node *v, struct err *e) {
    return MIN(jsondec_variant(v, network_modes, ARRAY_LEN(network_modes), e), 0);
}

static const char *const network_permissions[] = {"none", "allow", "deny"};

/* Checks a map whose values are among the last `count` permissions. */
static int network_check_map(const struct json_node *v, size_t first, struct err *e) {
    if (v->type == JSON_NULL)
        return 0;
    if (v->type != JSON_OBJECT)
        return jsondec_type_error(v, "a map", e);
    json_for_each_member(key, v) {
        int r = jsondec_variant(key + 1, network_permissions + first,
                                ARRAY_LEN(network_permissions) - first, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int network_check_domains(const struct json_node *v, struct err *e) {
    return network_check_map(v, 0, e);
}

static int network_check_sockets(const struct json_node *v, struct err *e) {
    return network_check_map(v, 1, e);
}

static const struct jsondec_field proxy_fields[] = {
    PARAM(network_proxy, enabled, "enabled", JSONDEC_BOOL),
    PARAM(network_proxy, socks, "enableSocks5", JSONDEC_BOOL),
    PARAM(network_proxy, socks_udp, "enableSocks5Udp", JSONDEC_BOOL),
    PARAM(network_proxy, upstream, "allowUpstreamProxy", JSONDEC_BOOL),
    PARAM(network_proxy, unix_sockets, "dangerouslyAllowAllUnixSockets", JSONDEC_BOOL),
    PARAM_CHECKED(network_proxy, mode, "mode", JSONDEC_NODE, network_check_mode),
    PARAM_OPT_CHECKED(network_proxy, domains, "domains", JSONDEC_NODE, JSONDEC_NULLABLE,
                      network_check_domains),
    PARAM_OPT_CHECKED(network_proxy, sockets, "unixSockets", JSONDEC_NODE, JSONDEC_NULLABLE,
                      network_check_sockets),
    PARAM(network_proxy, local, "allowLocalBinding", JSONDEC_BOOL),
    PARAM_OPT(network_proxy, review, "reviewDomains", JSONDEC_STRS, 0),
    PARAM_OPT(network_proxy, masking, "credentialMasking", JSONDEC_BOOL, JSONDEC_NULLABLE),
    PARAM_OPT(network_proxy, providers, "credentialProviders", JSONDEC_MAP, JSONDEC_NULLABLE),
};
static const struct jsondec_struct proxy_struct =
    PARAM_STRUCT("RemoteNetworkProxyConfig", proxy_fields);

/* Who asks: checked, and of no other use. */
struct network_audit {
    struct str ids[9];
};

#define NETWORK_AUDIT(i, wire) PARAM_OPT(network_audit, ids[i], wire, JSONDEC_STR, JSONDEC_NULLABLE)
static const struct jsondec_field audit_fields[] = {
    NETWORK_AUDIT(0, "conversationId"), NETWORK_AUDIT(1, "appVersion"),
    NETWORK_AUDIT(2, "authMode"),       NETWORK_AUDIT(3, "originator"),
    NETWORK_AUDIT(4, "userAccountId"),  NETWORK_AUDIT(5, "userEmail"),
    NETWORK_AUDIT(6, "terminalType"),   NETWORK_AUDIT(7, "model"),
    NETWORK_AUDIT(8, "slug"),
};
static const struct jsondec_struct audit_struct =
    PARAM_STRUCT("NetworkProxyAuditMetadata", audit_fields);

struct network_outer {
    struct network_params p;
    struct network_audit audit;
    struct str environment_id, execution_id;
};

static const struct jsondec_field network_fields[] = {
    PARAM_SUB(network_outer, p.proxy, "proxy", &proxy_struct, JSONDEC_REQUIRED),
    PARAM_SUB(network_outer, audit, "auditMetadata", &audit_struct, 0),
    PARAM_OPT(network_outer, environment_id, "environmentId", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_OPT(network_outer, execution_id, "executionId", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_HAS(network_outer, p.timeout_ms, p.has_timeout, "policyDecisionTimeoutMs", JSONDEC_U64,
              JSONDEC_NULLABLE),
};
static const struct jsondec_struct network_struct =
    PARAM_STRUCT("RemoteNetworkProxyLaunchConfig", network_fields);

int network_params_decode(const struct json_node *v, struct network_params *p, struct err *e) {
    struct network_outer in = {.audit.ids = {{NULL, 0}}};
    int r = jsondec(&network_struct, v, &in, e);
    if (r < 0)
        return r;
    int mode = jsondec_variant(in.p.proxy.mode, network_modes, ARRAY_LEN(network_modes), e);
    r = mode < 0 ? mode : 0;
    if (r == 0 && in.p.proxy.domains != NULL)
        r = network_check_domains(in.p.proxy.domains, e);
    if (r == 0 && in.p.proxy.sockets != NULL)
        r = network_check_sockets(in.p.proxy.sockets, e);
    if (r < 0) {
        jsondec_report_first(&proxy_struct, json_get(v, "proxy"), e);
        return r;
    }
    *p = in.p;
    p->limited = mode == 0;
    return 0;
}

int network_params_check(const struct json_node *v, struct err *e) {
    struct network_params p;
    return network_params_decode(v, &p, e);
}

/* -- values -- */

static int network_add_domains(const struct json_node *domains, struct proxy_config *c,
                               struct err *e) {
    int r = 0;
    if (domains == NULL || domains->type != JSON_OBJECT)
        return 0;
    json_for_each_member(key, domains) {
        struct str permission = json_str(key + 1);
        if (str_eqz(permission, "allow"))
            r = proxy_rules_add(&c->rules, PROXY_ALLOW, json_str(key), &c->arena, e);
        else if (str_eqz(permission, "deny"))
            r = proxy_rules_add(&c->rules, PROXY_DENY, json_str(key), &c->arena, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int network_params_config(const struct network_params *p, struct str process_id,
                          struct proxy_config *c, struct err *e) {
    if (p->has_timeout && p->timeout_ms == 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "network policy decision callback timeout must be nonzero");
    if (p->has_timeout && (process_id.n == 0 || process_id.n > NETWORK_ID_MAX))
        return err_set(e, ERR_INVALID_PARAMS,
                       "callback-enabled process ID must be non-empty and at most %d bytes",
                       NETWORK_ID_MAX);
    if (!p->proxy.enabled)
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid network proxy config: executor-local network proxy launch requires "
                       "an enabled proxy");
    if (p->proxy.masking)
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid network proxy config: this exec-server cannot mask credentials");
    c->socks = p->proxy.socks;
    c->limited = p->limited;
    c->local = p->proxy.local;
    c->asks = p->has_timeout;
    c->ask_ms = p->timeout_ms;
    int r = network_add_domains(p->proxy.domains, c, e);
    if (r == 0 && p->proxy.review != NULL) {
        json_for_each(v, p->proxy.review) {
            r = proxy_rules_add(&c->rules, PROXY_REVIEW, json_str(v), &c->arena, e);
            if (r < 0)
                break;
        }
    }
    return r;
}
