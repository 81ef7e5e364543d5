#include "server/sandbox_params.h"

#include "json/jsondec.h"
#include "sandbox/profile.h"

#include <errno.h>

struct managed_network {
    const struct json_node *loopback_ports, *allow_unix_sockets;
    bool allow_local_binding, allow_all_unix_sockets;
};

static const struct jsondec_field managed_fields[] = {
    {"loopbackPorts", JSONDEC_SEQ, 0, offsetof(struct managed_network, loopback_ports),
     JSONDEC_NO_PRESENT, NULL, NULL},
    {"allowLocalBinding", JSONDEC_BOOL, 0, offsetof(struct managed_network, allow_local_binding),
     JSONDEC_NO_PRESENT, NULL, NULL},
    {"allowUnixSockets", JSONDEC_STRS, 0, offsetof(struct managed_network, allow_unix_sockets),
     JSONDEC_NO_PRESENT, NULL, NULL},
    {"dangerouslyAllowAllUnixSockets", JSONDEC_BOOL, 0,
     offsetof(struct managed_network, allow_all_unix_sockets), JSONDEC_NO_PRESENT, NULL, NULL},
};
static const struct jsondec_struct managed_struct = {"ManagedNetworkSandboxContext", managed_fields,
                                                     ARRAY_LEN(managed_fields)};

static int sandbox_check_ports(const struct json_node *ports, struct err *e) {
    if (ports == NULL)
        return 0;
    json_for_each(v, ports) {
        uint64_t port;
        if (v->type != JSON_NUMBER)
            return jsondec_type_error(v, "u16", e);
        if (json_u64(v, &port) < 0 || port > 65535)
            return err_set(e, ERR_INVALID_PARAMS, "invalid number");
    }
    return 0;
}

int sandbox_params_check(const struct start_params *p, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct managed_network managed = {0};
    struct profile *profile;
    int r = profile_decode(p->sandbox, PROFILE_PROCESS, &a, &profile, e);
    if (r == 0 && p->managed_network != NULL) {
        r = jsondec(&managed_struct, p->managed_network, &managed, e);
        if (r == 0)
            r = sandbox_check_ports(managed.loopback_ports, e);
    }
    if (r == 0 && p->network_proxy != NULL && p->network_proxy->type != JSON_OBJECT)
        r = jsondec_type_error(p->network_proxy, "struct RemoteNetworkProxyLaunchConfig", e);
    return r;
}

/* Who asks for an external sandbox has one around the server. */
static bool sandbox_is_external(const struct json_node *sandbox) {
    const struct json_node *v = sandbox != NULL ? json_get(sandbox, "permissions") : NULL;
    v = v != NULL && v->type == JSON_OBJECT ? json_get(v, "type") : NULL;
    return v != NULL && v->type == JSON_STRING && str_eqz(json_str(v), "external");
}

int sandbox_params_refuse(const struct start_params *p, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile;
    if (p->network_proxy != NULL)
        return err_set(e, ERR_INVALID_REQUEST, "networkProxy is not available on this server");
    int r = profile_decode(p->sandbox, PROFILE_PROCESS, &a, &profile, e);
    if (r == 0 && profile_process_need(profile) != PROFILE_DIRECT &&
        !sandbox_is_external(p->sandbox))
        return err_set(e, ERR_INVALID_REQUEST, "sandbox is not available on this server");
    return r;
}
