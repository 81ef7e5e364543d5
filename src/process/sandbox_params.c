#include "process/sandbox_params.h"

#include "process/params.h"
#include "process/start.h"

#include <errno.h>

struct managed_network {
    const struct json_node *loopback_ports;
    const struct json_node *allow_unix_sockets; /* no effect on Linux */
    /* No effect either: a managed network has its own loopback to listen on. */
    bool allow_local_binding;
    bool allow_all_unix_sockets;
};

static const struct jsondec_field managed_fields[] = {
    PARAM_OPT(managed_network, loopback_ports, "loopbackPorts", JSONDEC_SEQ, 0),
    PARAM_OPT(managed_network, allow_local_binding, "allowLocalBinding", JSONDEC_BOOL, 0),
    PARAM_OPT(managed_network, allow_unix_sockets, "allowUnixSockets", JSONDEC_STRS, 0),
    PARAM_OPT(managed_network, allow_all_unix_sockets, "dangerouslyAllowAllUnixSockets",
              JSONDEC_BOOL, 0),
};
static const struct jsondec_struct managed_struct =
    PARAM_STRUCT("ManagedNetworkSandboxContext", managed_fields);

/* Accepts any number of ports: only sandbox_params_plan() refuses what a plan cannot hold. */
static int sandbox_decode_ports(const struct json_node *ports, struct arena *a,
                                struct sandbox_policy *out, struct err *e) {
    if (ports == NULL || ports->count == 0)
        return 0;
    uint16_t *list = arena_calloc(a, ports->count, sizeof *list);
    if (list == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    json_for_each(v, ports) {
        uint64_t port;
        if (v->type != JSON_NUMBER)
            return jsondec_type_error(v, "u16", e);
        if (json_u64(v, &port) < 0 || port > UINT16_MAX)
            return err_set(e, ERR_INVALID_PARAMS, "invalid number");
        list[out->port_count++] = (uint16_t)port;
    }
    out->ports = list;
    return 0;
}

static int sandbox_decode_managed(const struct json_node *v, struct arena *a,
                                  struct sandbox_policy *out, struct err *e) {
    struct managed_network in = {0};
    int r = v != NULL ? jsondec(&managed_struct, v, &in, e) : 0;
    out->all_unix_sockets = in.allow_all_unix_sockets;
    return r < 0 ? r : sandbox_decode_ports(in.loopback_ports, a, out, e);
}

int sandbox_params_decode(struct start_params *p, struct err *e) {
    struct sandbox_policy *out = &p->policy;
    int r = profile_decode(p->sandbox, PROFILE_PROCESS, &p->arena, &out->profile, e);
    if (r == 0)
        r = sandbox_decode_managed(p->managed_network, &p->arena, out, e);
    if (r == 0 && p->network_proxy != NULL)
        r = network_params_decode(p->network_proxy, &p->network, e);
    if (r == 0 && p->enforce_managed_network && out->profile == NULL)
        r = err_set(e, ERR_INVALID_PARAMS, "enforceManagedNetwork needs a sandbox");
    out->managed = p->enforce_managed_network;
    out->confined = out->managed || profile_process_need(out->profile) == PROFILE_CONFINED;
    return r;
}

int sandbox_params_check_profile(const struct json_node *v, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(SANDBOX_PARAMS_ARENA_MAX);
    struct profile *profile;
    return profile_decode(v, PROFILE_PROCESS, &a, &profile, e);
}

int sandbox_params_plan(const struct sandbox_policy *policy, const struct profile_context *c,
                        struct arena *a, struct plan *plan, struct err *e) {
    int r = profile_plan(policy->profile, c, a, plan, e);
    if (r < 0 || !policy->managed)
        return r;
    if (policy->port_count > PLAN_PORTS_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "managedNetwork has more than %d loopbackPorts",
                       PLAN_PORTS_MAX);
    plan->network = PLAN_NET_MANAGED;
    plan->ports = policy->ports;
    plan->port_count = policy->port_count;
    plan->all_unix_sockets = policy->all_unix_sockets;
    return 0;
}
