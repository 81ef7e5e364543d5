#pragma once
/* The `networkProxy` member of a start. */

#include "base/err.h"
#include "json/json.h"
#include "proxy/proxy_judge.h"

#define NETWORK_ID_MAX 256 /* bytes of the id of a process whose client is asked */

/* Its decoded members; nodes borrow from the message. */
struct network_params {
    struct network_proxy {
        bool enabled, socks, socks_udp, upstream, unix_sockets, local, masking;
        const struct json_node *mode, *domains, *sockets, *review, *providers;
    } proxy;
    bool limited;
    uint64_t timeout_ms;
    bool has_timeout;
};

/* Decodes the member; its lists are checked later. 0, or -EINVAL with e set. */
MUST_CHECK int network_params_decode(const struct json_node *v, struct network_params *p,
                                     struct err *e);

/* Checks a `networkProxy` member alone (struct jsondec_field). */
int network_params_check(const struct json_node *v, struct err *e);

/*
 * Checks what does not depend on types, and makes the config. 0, or -EINVAL with e set; then *c may
 * hold memory all the same.
 */
MUST_CHECK int network_params_config(const struct network_params *p, struct str process_id,
                                     struct proxy_config *c, struct err *e);
