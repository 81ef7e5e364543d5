#include "server/sandbox_params.h"

#include "json/jsondec.h"

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

struct sandbox_context {
    const struct json_node *permissions;
};

static const struct jsondec_field sandbox_fields[] = {
    {"permissions", JSONDEC_NODE, JSONDEC_REQUIRED, offsetof(struct sandbox_context, permissions),
     JSONDEC_NO_PRESENT, NULL, NULL},
};
static const struct jsondec_struct sandbox_struct = {"WireFileSystemSandboxContext", sandbox_fields,
                                                     ARRAY_LEN(sandbox_fields)};

/* The string at `key` of an object, or {NULL, 0}. */
static struct str sandbox_text(const struct json_node *object, const char *key) {
    const struct json_node *v =
        object != NULL && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
    return v != NULL && v->type == JSON_STRING ? json_str(v) : (struct str){NULL, 0};
}

static int sandbox_check_permissions(const struct json_node *v, struct err *e) {
    static const char *const types[] = {"managed", "disabled", "external"};
    if (v->type != JSON_OBJECT)
        return jsondec_type_error(v, "internally tagged enum PermissionProfile", e);
    const struct json_node *type = json_get(v, "type");
    if (type == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "missing field `type`");
    return MIN(jsondec_variant(type, types, ARRAY_LEN(types), e), 0);
}

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
    struct sandbox_context sandbox = {0};
    struct managed_network managed = {0};
    int r = 0;
    if (p->sandbox != NULL) {
        r = jsondec(&sandbox_struct, p->sandbox, &sandbox, e);
        if (r == 0)
            r = sandbox_check_permissions(sandbox.permissions, e);
    }
    if (r == 0 && p->managed_network != NULL) {
        r = jsondec(&managed_struct, p->managed_network, &managed, e);
        if (r == 0)
            r = sandbox_check_ports(managed.loopback_ports, e);
    }
    if (r == 0 && p->network_proxy != NULL && p->network_proxy->type != JSON_OBJECT)
        r = jsondec_type_error(p->network_proxy, "struct RemoteNetworkProxyLaunchConfig", e);
    return r;
}

/* Profiles that ask this server to confine nothing. */
static bool sandbox_is_open(const struct json_node *permissions) {
    struct str type = sandbox_text(permissions, "type");
    if (str_eqz(type, "disabled") || str_eqz(type, "external"))
        return true;
    struct str fs = sandbox_text(json_get(permissions, "file_system"), "type");
    return str_eqz(fs, "unrestricted") && str_eqz(sandbox_text(permissions, "network"), "enabled");
}

int sandbox_params_refuse(const struct start_params *p, struct err *e) {
    if (p->network_proxy != NULL)
        return err_set(e, ERR_INVALID_REQUEST, "networkProxy is not available on this server");
    if (p->sandbox != NULL && !sandbox_is_open(json_get(p->sandbox, "permissions")))
        return err_set(e, ERR_INVALID_REQUEST, "sandbox is not available on this server");
    return 0;
}
