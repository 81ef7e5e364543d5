#include "net/dns_wire.h"

#include <errno.h>

#define DNS_WIRE_HEADER 12
#define DNS_WIRE_CLASS_IN 1
#define DNS_WIRE_CNAME 5
#define DNS_WIRE_HOPS 127 /* pointers in one name: a name has no more labels */

enum { DNS_WIRE_RCODE_OK = 0, DNS_WIRE_RCODE_NXDOMAIN = 3 };

/* -- names -- */

static bool dns_wire_letter(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A length is at most 63, below every letter, so this is harmless on whole names. */
static uint8_t dns_wire_lower(uint8_t c) {
    return dns_wire_letter(c) ? c | 0x20 : c;
}

static bool dns_wire_label_ok(struct str label) {
    if (label.n == 0 || label.n > 63)
        return false;
    for (size_t i = 0; i < label.n; i++) {
        uint8_t c = (uint8_t)label.p[i];
        if (!dns_wire_letter(c) && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return true;
}

int dns_wire_name_parse(struct str text, struct dns_wire_name *name) {
    if (text.n > 0 && text.p[text.n - 1] == '.')
        text.n--;
    if (text.n == 0 || text.n > DNS_WIRE_TEXT_MAX)
        return -EINVAL;
    name->len = 0;
    for (size_t at = 0; at <= text.n;) {
        const char *dot = at < text.n ? memchr(text.p + at, '.', text.n - at) : NULL;
        struct str label = {text.p + at, dot ? (size_t)(dot - text.p) - at : text.n - at};
        if (!dns_wire_label_ok(label))
            return -EINVAL;
        name->b[name->len++] = (uint8_t)label.n;
        memcpy(name->b + name->len, label.p, label.n);
        name->len += label.n;
        at += label.n + 1;
    }
    name->b[name->len++] = 0;
    return 0;
}

void dns_wire_name_text(const struct dns_wire_name *name, char dst[DNS_WIRE_NAME_MAX]) {
    size_t n = 0;
    for (size_t at = 0; at < name->len && name->b[at] != 0;) {
        size_t len = name->b[at++];
        if (n > 0)
            dst[n++] = '.';
        for (; len > 0 && at < name->len; len--, at++) {
            struct str one = {(const char *)name->b + at, 1};
            dst[n++] = dns_wire_label_ok(one) ? (char)name->b[at] : '?';
        }
    }
    dst[n] = '\0';
}

void dns_wire_name_mix(struct dns_wire_name *name,
                       const uint8_t random[DNS_WIRE_NAME_MAX / 8 + 1]) {
    for (size_t i = 0; i < name->len; i++) {
        if (dns_wire_letter(name->b[i]) && (random[i / 8] >> i % 8 & 1) != 0)
            name->b[i] ^= 0x20;
    }
}

static bool dns_wire_name_eq(const struct dns_wire_name *a, const struct dns_wire_name *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (dns_wire_lower(a->b[i]) != dns_wire_lower(b->b[i]))
            return false;
    }
    return true;
}

/* -- numbers -- */

static unsigned dns_wire_u16(const uint8_t *p) {
    return (unsigned)p[0] << 8 | p[1];
}

static uint8_t *dns_wire_put_u16(uint8_t *p, unsigned v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

/* -- a query -- */

size_t dns_wire_query(const struct dns_wire_query *q, uint8_t dst[DNS_WIRE_QUERY_MAX]) {
    uint8_t *p = dns_wire_put_u16(dst, q->id);
    p = dns_wire_put_u16(p, 0x0100); /* a standard query that wants recursion */
    p = dns_wire_put_u16(p, 1);      /* one question, no records */
    memset(p, 0, 6);
    p = mempcpy(p + 6, q->name.b, q->name.len);
    p = dns_wire_put_u16(p, q->type);
    p = dns_wire_put_u16(p, DNS_WIRE_CLASS_IN);
    return (size_t)(p - dst);
}

/* -- an answer -- */

struct dns_wire_reader {
    const uint8_t *msg;
    size_t n, at;
};

/*
 * Expands the name at *at, which moves behind it. False if it is malformed. Each pointer must lead
 * to an earlier place than the one before, so it cannot loop.
 */
static bool dns_wire_read_name(struct dns_wire_reader *r, struct dns_wire_name *name) {
    size_t at = r->at, low = r->at, behind = 0;
    name->len = 0;
    for (unsigned hops = 0; at < r->n;) {
        uint8_t c = r->msg[at];
        if (c >= 0xC0) {
            if (r->n - at < 2 || ++hops > DNS_WIRE_HOPS)
                return false;
            behind = behind ? behind : at + 2;
            at = dns_wire_u16(r->msg + at) & 0x3FFF;
            if (at >= low)
                return false;
            low = at;
            continue;
        }
        if (c > 63 || r->n - at < (size_t)c + 1 || name->len + c + 1 > sizeof name->b)
            return false;
        memcpy(name->b + name->len, r->msg + at, (size_t)c + 1);
        name->len += (size_t)c + 1;
        at += (size_t)c + 1;
        if (c == 0) {
            r->at = behind ? behind : at;
            return true;
        }
    }
    return false;
}

/* Whether the question at r->at is ours; moves behind it. */
static bool dns_wire_read_question(struct dns_wire_reader *r, const struct dns_wire_query *q) {
    struct dns_wire_name name;
    if (!dns_wire_read_name(r, &name) || r->n - r->at < 4)
        return false;
    const uint8_t *p = r->msg + r->at;
    r->at += 4;
    if (dns_wire_u16(p) != q->type || dns_wire_u16(p + 2) != DNS_WIRE_CLASS_IN)
        return false;
    return dns_wire_name_eq(&name, &q->name) &&
           (!q->exact || memcmp(name.b, q->name.b, name.len) == 0);
}

struct dns_wire_record {
    struct dns_wire_name owner;
    unsigned type, class, len;
    size_t data; /* place of its data in the message */
};

static bool dns_wire_read_record(struct dns_wire_reader *r, struct dns_wire_record *record) {
    if (!dns_wire_read_name(r, &record->owner) || r->n - r->at < 10)
        return false;
    const uint8_t *p = r->msg + r->at;
    record->type = dns_wire_u16(p);
    record->class = dns_wire_u16(p + 2);
    record->len = dns_wire_u16(p + 8);
    record->data = r->at + 10;
    if (r->n - record->data < record->len)
        return false;
    r->at = record->data + record->len;
    return true;
}

static bool dns_wire_take_addr(const struct dns_wire_reader *r, const struct dns_wire_record *rec,
                               struct dns_wire_answer *a) {
    bool v6 = rec->type == DNS_WIRE_AAAA;
    if (rec->len != (v6 ? 16 : 4))
        return false;
    const uint8_t *bytes = r->msg + rec->data;
    if (a->n < DNS_WIRE_ADDRS)
        a->addr[a->n++] = v6 ? sock_addr_v6(bytes, 0) : sock_addr_v4(bytes, 0);
    return true;
}

/* Replaces *name by the target of its alias. False if the record is malformed. */
static bool dns_wire_follow(const struct dns_wire_reader *r, const struct dns_wire_record *rec,
                            struct dns_wire_name *name) {
    struct dns_wire_reader target = {r->msg, rec->data + rec->len, rec->data};
    return dns_wire_read_name(&target, name) && target.at == target.n;
}

/*
 * Walks the answers once for *name: collects its addresses, or replaces it by its first alias and
 * sets *moved. False if a record is malformed.
 */
static bool dns_wire_walk(struct dns_wire_reader r, unsigned count, const struct dns_wire_query *q,
                          struct dns_wire_name *name, bool *moved, struct dns_wire_answer *a) {
    struct dns_wire_record rec;
    struct dns_wire_name target;
    bool alias = false;
    for (unsigned i = 0; i < MIN(count, DNS_WIRE_RECORDS_MAX); i++) {
        if (!dns_wire_read_record(&r, &rec))
            return false;
        if (rec.class != DNS_WIRE_CLASS_IN || !dns_wire_name_eq(&rec.owner, name))
            continue;
        if (rec.type == (unsigned)q->type && !dns_wire_take_addr(&r, &rec, a))
            return false;
        if (rec.type == DNS_WIRE_CNAME && !alias) {
            if (!dns_wire_follow(&r, &rec, &target))
                return false;
            alias = true;
        }
    }
    *moved = alias && a->n == 0;
    if (*moved)
        *name = target;
    return true;
}

static enum dns_wire_verdict dns_wire_read_answers(const struct dns_wire_reader *r, unsigned count,
                                                   const struct dns_wire_query *q,
                                                   struct dns_wire_answer *a) {
    struct dns_wire_name name = q->name;
    bool moved = true;
    for (unsigned chain = 0; moved; chain++) {
        if (chain > DNS_WIRE_CHAIN_MAX || !dns_wire_walk(*r, count, q, &name, &moved, a))
            return DNS_WIRE_MALFORMED;
        if (moved && q->alias != NULL && !q->alias(q->user, &name))
            return DNS_WIRE_DENIED;
    }
    return DNS_WIRE_ADDRESSES;
}

enum dns_wire_verdict dns_wire_read(const struct dns_wire_query *q, const uint8_t *msg, size_t n,
                                    struct dns_wire_answer *a) {
    if (n < DNS_WIRE_HEADER || dns_wire_u16(msg) != q->id)
        return DNS_WIRE_STRAY;
    unsigned flags = dns_wire_u16(msg + 2), rcode = flags & 15, questions = dns_wire_u16(msg + 4);
    if ((flags & 0xF800) != 0x8000) /* an answer to a standard query */
        return DNS_WIRE_STRAY;
    bool refused = rcode != DNS_WIRE_RCODE_OK && rcode != DNS_WIRE_RCODE_NXDOMAIN;
    struct dns_wire_reader r = {msg, n, DNS_WIRE_HEADER};
    /* A server that could not read the question need not repeat it. */
    if (!(refused && questions == 0) && (questions != 1 || !dns_wire_read_question(&r, q)))
        return DNS_WIRE_STRAY;
    *a = (struct dns_wire_answer){.rcode = rcode};
    if (refused)
        return DNS_WIRE_REFUSED;
    if ((flags & 0x0200) != 0)
        return DNS_WIRE_TRUNCATED;
    if (rcode == DNS_WIRE_RCODE_NXDOMAIN)
        return DNS_WIRE_NO_NAME;
    return dns_wire_read_answers(&r, dns_wire_u16(msg + 6), q, a);
}

const char *dns_wire_rcode_text(unsigned rcode) {
    static const char *const text[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                       "NXDOMAIN", "NOTIMP",  "REFUSED"};
    return rcode < ARRAY_LEN(text) ? text[rcode] : "an unknown failure";
}
