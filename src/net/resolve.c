#include "net/resolve.h"

#include "net/resolve_order.h"
#include "net/resolve_query.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#define RESOLVE_DNS_PORT 53
#define RESOLVE_NAME_MAX (DNS_WIRE_TEXT_MAX + 1) /* bytes of a name, with a final dot */

enum { RESOLVE_A, RESOLVE_AAAA, RESOLVE_TYPES };

/* A request in flight. */
struct resolve_work {
    struct list node;
    struct resolve *resolve;
    struct resolve_request *request;
    struct loop_timer timer; /* begins the work, then is its deadline */
    struct loop_timer grace;
    struct loop_task step; /* acts on what has happened; the only place that ends the work */
    uint16_t port;
    bool begun, expired, patient; /* `patient`: the grace has not passed */
    char name[RESOLVE_NAME_MAX + 1];

    struct dns_conf conf; /* as it was at the beginning */
    size_t first;         /* server, modulo their number */
    size_t candidate;     /* name of the search list that is asked for */
    struct resolve_query query[RESOLVE_TYPES];
    bool asked[RESOLVE_TYPES];  /* for this candidate */
    enum resolve_status status; /* the worst of the candidates so far */
    char why[RESOLVE_QUERY_WHY];
};

static void resolve_on_timer(struct loop_timer *t);
static void resolve_on_grace(struct loop_timer *t);
static void resolve_on_step(struct loop_task *t);

void resolve_init(struct resolve *r, struct loop *loop, const struct resolve_options *options) {
    *r = (struct resolve){.loop = loop};
    if (options != NULL)
        r->options = *options;
    if (r->options.deadline_ms == 0)
        r->options.deadline_ms = RESOLVE_DEADLINE_MS;
    if (r->options.port == 0)
        r->options.port = RESOLVE_DNS_PORT;
    const char *hosts = r->options.hosts_path, *conf = r->options.conf_path;
    resolve_files_init(&r->files, hosts ? hosts : "/etc/hosts", conf ? conf : "/etc/resolv.conf");
    list_init(&r->works);
}

void resolve_fini(struct resolve *r) {
    list_for_each(node, &r->works)
        resolve_cancel(list_entry(node, struct resolve_work, node)->request);
    resolve_files_fini(&r->files);
}

static void resolve_work_free(struct resolve_work *w) {
    struct loop *loop = w->resolve->loop;
    for (size_t i = 0; i < RESOLVE_TYPES; i++)
        resolve_query_stop(&w->query[i]);
    loop_timer_del(loop, &w->timer);
    loop_timer_del(loop, &w->grace);
    loop_task_del(&w->step);
    list_remove(&w->node);
    w->resolve->requests--;
    free(w);
}

void resolve_cancel(struct resolve_request *q) {
    if (q->work != NULL)
        resolve_work_free(steal_ptr(&q->work));
}

void resolve_request_fini(struct resolve_request *q) {
    resolve_cancel(q);
    err_fini(&q->err);
}

static bool resolve_on_alias(void *user, const struct dns_wire_name *name) {
    struct resolve_work *w = user;
    char text[DNS_WIRE_NAME_MAX];
    dns_wire_name_text(name, text);
    return w->request->alias(w->request, str_of(text));
}

int resolve_start(struct resolve *r, struct resolve_request *q, struct str name, uint16_t port) {
    if (r->requests == RESOLVE_REQUESTS)
        return -EAGAIN;
    struct resolve_work *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    w->timer.fn = resolve_on_timer;
    if (loop_timer_set(r->loop, &w->timer, 0) < 0) {
        free(w);
        return -ENOMEM;
    }
    w->resolve = r;
    w->request = q;
    w->port = port;
    w->grace.fn = resolve_on_grace;
    w->step.fn = resolve_on_step;
    for (size_t i = 0; i < RESOLVE_TYPES; i++)
        resolve_query_init(&w->query[i], r->loop, &w->conf, &w->step);
    for (size_t i = 0; i < RESOLVE_TYPES && q->alias != NULL; i++) {
        w->query[i].alias = resolve_on_alias;
        w->query[i].user = w;
    }
    /* What is longer, or contains a NUL, stays empty: a bad name. */
    if (name.n > 0 && name.n <= RESOLVE_NAME_MAX && !str_has_nul(name))
        memcpy(w->name, name.p, name.n);
    err_fini(&q->err);
    q->n = 0;
    if (w->name[0] == '\0') /* the only text that needs the whole name */
        err_about(&q->err, ERR_INTERNAL, "cannot resolve ", (struct str){name.p, MIN(name.n, 300U)},
                  ": neither an address nor a host name");
    q->work = w;
    list_append(&r->works, &w->node);
    r->requests++;
    return 0;
}

/* -- the end -- */

/* Reports; the work is gone afterwards. */
static void resolve_finish(struct resolve_work *w, enum resolve_status status) {
    struct resolve_request *q = w->request;
    q->status = status;
    resolve_cancel(q);
    q->done(q);
}

/* Reports a failure: "cannot resolve NAME: WHY". */
static void resolve_fail(struct resolve_work *w, enum resolve_status status, const char *why) {
    err_set(&w->request->err, ERR_INTERNAL, "cannot resolve %s: %s", w->name, why);
    resolve_finish(w, status);
}

/* Reports addresses, sorted; `n` is at least 1 and at most RESOLVE_ORDER_MAX. */
static void resolve_succeed(struct resolve_work *w, struct sock_addr *a, size_t n) {
    n = MIN(resolve_order(a, n, resolve_order_probe), RESOLVE_ADDRS);
    memcpy(w->request->addr, a, n * sizeof *a);
    w->request->n = n;
    resolve_finish(w, RESOLVE_OK);
}

static void resolve_expire(struct resolve_work *w) {
    char server[SOCK_PEER_MAX], why[RESOLVE_QUERY_WHY];
    unsigned i = w->query[RESOLVE_A].finished ? RESOLVE_AAAA : RESOLVE_A;
    resolve_query_server(&w->query[i], server);
    snprintf(why, sizeof why, "no answer within %llu ms; %s was asked last",
             (unsigned long long)w->resolve->options.deadline_ms, server);
    resolve_fail(w, RESOLVE_TIMED_OUT, why);
}

/* -- names of the search list -- */

/* The number of a candidate in the search list, or SIZE_MAX for the name as it is. */
static size_t resolve_candidate_index(const struct resolve_work *w) {
    unsigned dots = 0;
    for (const char *p = w->name; *p != '\0'; p++)
        dots += *p == '.';
    if (dots >= w->conf.ndots)
        return w->candidate == 0 ? SIZE_MAX : w->candidate - 1;
    return w->candidate == w->conf.searches ? SIZE_MAX : w->candidate;
}

static size_t resolve_candidates(const struct resolve_work *w) {
    return w->name[strlen(w->name) - 1] == '.' ? 1 : w->conf.searches + 1;
}

/* The name to ask for now. 0, or -EINVAL: with this domain it is too long. */
static int resolve_candidate_name(const struct resolve_work *w, struct dns_wire_name *name) {
    char text[2 * RESOLVE_NAME_MAX + 2];
    size_t i = resolve_candidates(w) == 1 ? SIZE_MAX : resolve_candidate_index(w);
    if (i == SIZE_MAX)
        return dns_wire_name_parse(str_of(w->name), name);
    snprintf(text, sizeof text, "%s.%s", w->name, w->conf.search[i]);
    return dns_wire_name_parse(str_of(text), name);
}

static void resolve_ask_type(struct resolve_work *w, const struct dns_wire_name *name, unsigned i) {
    enum dns_wire_type type = i == RESOLVE_A ? DNS_WIRE_A : DNS_WIRE_AAAA;
    w->asked[i] = true;
    resolve_query_start(&w->query[i], name, type, w->first, w->resolve->options.mix_case);
}

/* Asks for the present candidate, or the next one that makes a name. False: there is none left. */
static bool resolve_ask(struct resolve_work *w) {
    struct dns_wire_name name;
    for (; w->candidate < resolve_candidates(w); w->candidate++) {
        if (resolve_candidate_name(w, &name) < 0)
            continue;
        w->asked[RESOLVE_AAAA] = false;
        resolve_ask_type(w, &name, RESOLVE_A);
        if (!w->conf.single_request)
            resolve_ask_type(w, &name, RESOLVE_AAAA);
        return true;
    }
    return false;
}

/* -- the beginning -- */

/* Whether the last label is a number: such a name could be an address in another notation. */
static bool resolve_is_number(const char *name) {
    size_t n = strlen(name);
    n -= n > 0 && name[n - 1] == '.';
    const char *dot = n > 0 ? memrchr(name, '.', n) : NULL;
    const char *p = dot ? dot + 1 : name;
    size_t len = n - (size_t)(p - name);
    if (len >= 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        return strspn(p + 2, "0123456789abcdefABCDEF") >= len - 2;
    return strspn(p, "0123456789") >= len;
}

/* Answers what needs no server. True: the work is gone. */
static bool resolve_local(struct resolve_work *w) {
    static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
    struct sock_addr a[RESOLVE_ADDRS];
    struct dns_wire_name name;
    struct str text = str_of(w->name);
    if (text.n == 0) {
        resolve_finish(w, RESOLVE_BAD_NAME);
        return true;
    }
    if (sock_addr_parse(text, w->port, &a[0]) == 0) {
        resolve_succeed(w, a, 1);
        return true;
    }
    if (dns_wire_name_parse(text, &name) < 0 || resolve_is_number(w->name)) {
        resolve_fail(w, RESOLVE_BAD_NAME, "neither an address nor a host name");
        return true;
    }
    if (dns_conf_is_localhost(text)) {
        a[0] = sock_addr_v6(v6, w->port);
        a[1] = sock_addr_v4(v4, w->port);
        resolve_succeed(w, a, 2);
        return true;
    }
    struct resolve_files *f = &w->resolve->files;
    resolve_files_refresh(f);
    size_t n = dns_conf_hosts((struct str){f->hosts, f->hosts_len}, text, w->port, a, ARRAY_LEN(a));
    if (n > 0)
        resolve_succeed(w, a, n);
    return n > 0;
}

static void resolve_set_port(struct sock_addr *a, uint16_t port) {
    if (a->u.sa.sa_family == AF_INET6)
        a->u.in6.sin6_port = htons(port);
    else
        a->u.in.sin_port = htons(port);
}

static void resolve_begin(struct resolve_work *w) {
    struct resolve *r = w->resolve;
    w->begun = w->patient = true;
    if (resolve_local(w))
        return;
    w->conf = r->files.conf;
    for (size_t i = 0; i < w->conf.servers; i++)
        resolve_set_port(&w->conf.server[i], r->options.port);
    w->first = w->conf.rotate ? r->rotation++ : 0;
    if (loop_timer_set(r->loop, &w->timer, loop_ms(r->options.deadline_ms)) < 0)
        resolve_fail(w, RESOLVE_NO_RESOURCES, err_os_text(ENOMEM));
    else
        (void)resolve_ask(w); /* the name as it is is one of the candidates */
}

/* -- answers -- */

/* Collects the addresses of both types; their number. */
static size_t resolve_collect(const struct resolve_work *w, struct sock_addr *dst) {
    size_t n = 0;
    for (unsigned i = 0; i < RESOLVE_TYPES; i++) {
        const struct resolve_query *q = &w->query[i];
        if (!w->asked[i] || !q->finished || q->status != RESOLVE_OK)
            continue;
        for (size_t j = 0; j < q->answer.n; j++) {
            dst[n] = q->answer.addr[j];
            resolve_set_port(&dst[n++], w->port);
        }
    }
    return n;
}

/* Neither type has an address: notes why, and goes on with the next candidate if that helps. */
static void resolve_try_next(struct resolve_work *w) {
    for (unsigned i = 0; i < RESOLVE_TYPES; i++) {
        const struct resolve_query *q = &w->query[i];
        if (q->status > w->status) {
            w->status = q->status;
            snprintf(w->why, sizeof w->why, "%s", q->why);
        }
    }
    w->candidate++;
    if (w->status > RESOLVE_SERVER_FAILED || !resolve_ask(w))
        resolve_fail(w, w->status, w->why);
}

/* Acts on what has become of the queries. */
static void resolve_proceed(struct resolve_work *w) {
    _Static_assert(RESOLVE_TYPES * DNS_WIRE_ADDRS <= RESOLVE_ORDER_MAX, "room for all addresses");
    struct sock_addr a[RESOLVE_ORDER_MAX];
    struct resolve_query *v4 = &w->query[RESOLVE_A];
    if (!w->asked[RESOLVE_AAAA] && v4->finished) {
        struct dns_wire_name name = v4->ask.name;
        resolve_ask_type(w, &name, RESOLVE_AAAA);
    }
    size_t n = resolve_collect(w, a);
    for (unsigned i = 0; i < RESOLVE_TYPES; i++) {
        const struct resolve_query *q = &w->query[i];
        if (w->asked[i] && q->finished && q->status == RESOLVE_DENIED) {
            resolve_fail(w, RESOLVE_DENIED, "it is an alias of a name that is denied");
            return;
        }
    }
    bool both = v4->finished && w->asked[RESOLVE_AAAA] && w->query[RESOLVE_AAAA].finished;
    if (n > 0 && (both || w->expired || !w->patient))
        resolve_succeed(w, a, n);
    else if (w->expired)
        resolve_expire(w);
    else if (both)
        resolve_try_next(w);
    else if (n > 0 && w->grace.pos == 0 &&
             loop_timer_set(w->resolve->loop, &w->grace, loop_ms(RESOLVE_GRACE_MS)) < 0)
        resolve_succeed(w, a, n);
}

static void resolve_on_step(struct loop_task *t) {
    struct resolve_work *w = container_of(t, struct resolve_work, step);
    if (w->begun)
        resolve_proceed(w);
    else
        resolve_begin(w);
}

static void resolve_on_timer(struct loop_timer *t) {
    struct resolve_work *w = container_of(t, struct resolve_work, timer);
    w->expired = w->begun;
    loop_defer(w->resolve->loop, &w->step);
}

static void resolve_on_grace(struct loop_timer *t) {
    struct resolve_work *w = container_of(t, struct resolve_work, grace);
    w->patient = false;
    loop_defer(w->resolve->loop, &w->step);
}
