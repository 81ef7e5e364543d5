#pragma once
/*
 * DNS messages (RFC 1035, 3596): builds a query, reads its answer. Pure functions: no input or
 * output, no memory of their own. A hostile message costs a bounded number of steps.
 *
 * Queries ask for recursion and carry no EDNS: an answer above 512 bytes comes by TCP. The reader
 * looks at header, question and answers only. It believes an address only if a chain of aliases in
 * the answers leads to it from the name in the question.
 */

#include "base/str.h"
#include "net/sock.h"

#define DNS_WIRE_NAME_MAX 255  /* bytes of a name in a message */
#define DNS_WIRE_TEXT_MAX 253  /* bytes of a name as text, without the final dot */
#define DNS_WIRE_QUERY_MAX 512 /* bytes of a query; ours have at most 271 */
#define DNS_WIRE_ANSWER_MAX 65535
#define DNS_WIRE_CHAIN_MAX 16    /* aliases one after the other */
#define DNS_WIRE_RECORDS_MAX 256 /* answer records that the reader looks at; it ignores the rest */
#define DNS_WIRE_ADDRS 16        /* addresses of an answer; the reader ignores the rest */

enum dns_wire_type { DNS_WIRE_A = 1, DNS_WIRE_AAAA = 28 };

/* A name as labels, each behind its length, with the empty label at the end. */
struct dns_wire_name {
    size_t len; /* at least 1 */
    uint8_t b[DNS_WIRE_NAME_MAX];
};

/*
 * Reads a host name: labels of letters, digits, '-' and '_', with or without a final dot. 0, or
 * -EINVAL: empty, too long, or other bytes (a name in another script must be Punycode already).
 */
MUST_CHECK int dns_wire_name_parse(struct str text, struct dns_wire_name *name);

/* The name as text without the final dot; other bytes than those of host names become '?'. */
void dns_wire_name_text(const struct dns_wire_name *name, char dst[DNS_WIRE_NAME_MAX]);

/* Gives letters a random case, which the answer must repeat: one more guess for a forger. */
void dns_wire_name_mix(struct dns_wire_name *name, const uint8_t random[DNS_WIRE_NAME_MAX / 8 + 1]);

struct dns_wire_query {
    uint16_t id;
    enum dns_wire_type type;
    bool exact; /* the answer must repeat upper and lower case */
    /* Whether an alias may be followed; NULL: all. */
    bool (*alias)(void *user, const struct dns_wire_name *name);
    void *user;
    struct dns_wire_name name;
};

/* Writes a query; its length. */
size_t dns_wire_query(const struct dns_wire_query *q, uint8_t dst[DNS_WIRE_QUERY_MAX]);

enum dns_wire_verdict {
    DNS_WIRE_STRAY,     /* not the answer to this query: wait for another */
    DNS_WIRE_MALFORMED, /* the answer, but nobody can read it */
    DNS_WIRE_TRUNCATED, /* ask by TCP */
    DNS_WIRE_REFUSED,   /* the server cannot answer: `rcode` */
    DNS_WIRE_NO_NAME,   /* NXDOMAIN */
    DNS_WIRE_DENIED,    /* `alias` said no */
    DNS_WIRE_ADDRESSES, /* perhaps none: the name exists, without an address of this type */
};

struct dns_wire_answer {
    unsigned rcode; /* RFC 1035, 4.1.1 */
    size_t n;
    struct sock_addr addr[DNS_WIRE_ADDRS]; /* port 0 */
};

/* Reads a message of `n` bytes, of which there may be any number. Fills *a unless it is a stray. */
enum dns_wire_verdict dns_wire_read(const struct dns_wire_query *q, const uint8_t *msg, size_t n,
                                    struct dns_wire_answer *a);

/* The usual word for a rcode, such as "SERVFAIL". */
const char *dns_wire_rcode_text(unsigned rcode);
