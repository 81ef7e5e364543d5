#pragma once
/* The verdict on one request to the proxy, before anybody is asked, and how the client hears it. */

#include "proxy/proxy_rules.h"

#define PROXY_REASON_MAX 1024 /* bytes of the reason of a decision */
#define PROXY_METHOD_MAX 32   /* bytes of a method */

/* What one process may do; made from its start, never changed. */
struct proxy_config {
    struct arena arena; /* of the rules */
    struct proxy_rules rules;
    bool socks;      /* there is a SOCKS5 listener */
    bool limited;    /* only GET, HEAD and OPTIONS, no tunnels */
    bool local;      /* addresses of local networks are like others */
    bool asks;       /* what is on no list is put to the client */
    uint64_t ask_ms; /* for its answer */
};

#define PROXY_CONFIG_ARENA_MAX (4u << 20) /* bytes */
#define PROXY_CONFIG_INIT ((struct proxy_config){.arena = ARENA_INIT(PROXY_CONFIG_ARENA_MAX)})

enum proxy_protocol { PROXY_HTTP, PROXY_CONNECT, PROXY_SOCKS_TCP };
enum proxy_answer { PROXY_ALLOWED, PROXY_DENIED, PROXY_ASK };

struct proxy_verdict {
    enum proxy_answer answer; /* PROXY_ASK: put it to the client */
    const char *source;       /* who decided */
    const char *reason;
};

/* Names as the protocol has them. */
const char *proxy_judge_protocol(enum proxy_protocol p);
const char *proxy_judge_answer(enum proxy_answer a);

/* The verdict of the lists. PROXY_ASK only if the client can be asked. */
struct proxy_verdict proxy_judge_host(const struct proxy_config *c, const struct proxy_name *host);

/* The reason why limited mode refuses the request, or NULL. */
const char *proxy_judge_mode(const struct proxy_config *c, enum proxy_protocol p,
                             struct str method);

/* Whether a connection to an address is allowed that `host` resolved to. */
bool proxy_judge_address(const struct proxy_config *c, const struct proxy_name *host,
                         const struct sock_addr *a);

/* The class of a refusal (header x-proxy-error), and its text for people. */
const char *proxy_judge_class(const char *reason);
const char *proxy_judge_text(const char *reason);
