#include "net/dns_wire.h"

#include "dns_message.h"

#include <errno.h>

static struct message m;
static struct dns_wire_answer answer;

static struct dns_wire_query query_for(const char *name, enum dns_wire_type type) {
    struct dns_wire_query q = {.id = 0x1234, .type = type};
    assert_int_equal(dns_wire_name_parse((struct str){name, strlen(name)}, &q.name), 0);
    return q;
}

static enum dns_wire_verdict read_message(const struct dns_wire_query *q) {
    /* In memory of its own size, so that a sanitizer sees a read behind it. */
    uint8_t *copy = malloc(m.n ? m.n : 1);
    assert_non_null(copy);
    memcpy(copy, m.b, m.n);
    enum dns_wire_verdict v = dns_wire_read(q, copy, m.n, &answer);
    free(copy);
    return v;
}

static void assert_addr(size_t i, const char *text) {
    char got[SOCK_PEER_MAX], want[SOCK_PEER_MAX];
    assert_in_range(i, 0, answer.n - 1);
    sock_peer_name(&answer.addr[i].u.sa, got);
    snprintf(want, sizeof want, strchr(text, ':') ? "[%s]:0" : "%s:0", text);
    assert_string_equal(got, want);
}

/* -- names -- */

static void test_names(void **state) {
    (void)state;
    char label63[64], label64[65], name253[254], name254[255];
    memset(label63, 'a', 63);
    label63[63] = '\0';
    memset(label64, 'a', 64);
    label64[64] = '\0';
    snprintf(name253, sizeof name253, "%s.%s.%s.%.61s", label63, label63, label63, label63);
    snprintf(name254, sizeof name254, "%s.%s.%s.%.62s", label63, label63, label63, label63);
    assert_int_equal(strlen(name253), 253);
    const struct {
        const char *text;
        int result;
    } rows[] = {
        {"a", 0},         {"a.b", 0},         {"a.b.", 0},           {"A-b_c.9", 0},
        {label63, 0},     {name253, 0},       {"", -EINVAL},         {".", -EINVAL},
        {"..", -EINVAL},  {"a..b", -EINVAL},  {".a", -EINVAL},       {"a..", -EINVAL},
        {"a b", -EINVAL}, {"a\\b", -EINVAL},  {"\xC3\xA4", -EINVAL}, {"a/b", -EINVAL},
        {"a:b", -EINVAL}, {label64, -EINVAL}, {name254, -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dns_wire_name name;
        struct str text = {rows[i].text, strlen(rows[i].text)};
        assert_int_equal(dns_wire_name_parse(text, &name), rows[i].result);
        if (rows[i].result == 0)
            assert_int_equal(name.len, text.n + 2 - (text.p[text.n - 1] == '.'));
    }
}

static void test_query_bytes(void **state) {
    (void)state;
    static const uint8_t want[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                                  "\x01"
                                  "a\x02"
                                  "Bc\x00\x00\x1c\x00\x01";
    uint8_t dst[DNS_WIRE_QUERY_MAX];
    struct dns_wire_query q = query_for("a.Bc", DNS_WIRE_AAAA);
    assert_int_equal(dns_wire_query(&q, dst), sizeof want - 1);
    assert_memory_equal(dst, want, sizeof want - 1);
}

static void test_mix_changes_letters_only(void **state) {
    (void)state;
    uint8_t ones[DNS_WIRE_NAME_MAX / 8 + 1];
    memset(ones, 0xFF, sizeof ones);
    struct dns_wire_query q = query_for("aB-9_.cd", DNS_WIRE_A);
    dns_wire_name_mix(&q.name, ones);
    assert_memory_equal(q.name.b, "\5Ab-9_\2CD", 10);
}

/* -- answers -- */

static void test_addresses(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("host.example", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "HOST.example", 1);
    message_addr(&m, NULL, "192.0.2.1");
    message_addr(&m, "other.example", "192.0.2.9");
    message_addr(&m, "Host.Example", "192.0.2.2");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 2);
    assert_addr(0, "192.0.2.1");
    assert_addr(1, "192.0.2.2");

    q.type = DNS_WIRE_AAAA;
    message_begin(&m, q.id, 0, "host.example", 28);
    message_addr(&m, NULL, "192.0.2.1"); /* another type */
    message_addr(&m, NULL, "2001:db8::1");
    message_addr(&m, NULL, "::ffff:192.0.2.3");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 2);
    assert_addr(0, "2001:db8::1");
    assert_addr(1, "192.0.2.3");
}

static void test_no_addresses(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("host.example", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "host.example", 1);
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 0);
    message_begin(&m, q.id, 3, "host.example", 1);
    assert_int_equal(read_message(&q), DNS_WIRE_NO_NAME);
    message_begin(&m, q.id, 2, "host.example", 1);
    assert_int_equal(read_message(&q), DNS_WIRE_REFUSED);
    assert_string_equal(dns_wire_rcode_text(answer.rcode), "SERVFAIL");
    message_begin(&m, q.id, 0x200, "host.example", 1);
    assert_int_equal(read_message(&q), DNS_WIRE_TRUNCATED);
    message_begin(&m, q.id, 1, "x", 1); /* FORMERR without the question */
    m.b[5] = 0;
    m.n = 12;
    assert_int_equal(read_message(&q), DNS_WIRE_REFUSED);
    m.b[3] = 0x83; /* but not NXDOMAIN */
    assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
}

static void test_strays(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("host.example", DNS_WIRE_A);
    const struct {
        unsigned id, flags, type;
        const char *name;
    } rows[] = {
        {0x1235, 0, 1, "host.example"},  {0x1234, 0x0800, 1, "host.example"},
        {0x1234, 0, 28, "host.example"}, {0x1234, 0, 1, "host.example.org"},
        {0x1234, 0, 1, "hostxexample"},  {0x1234, 0, 1, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        message_begin(&m, rows[i].id, rows[i].flags, rows[i].name, rows[i].type);
        message_addr(&m, NULL, "192.0.2.1");
        assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
    }
    message_begin(&m, q.id, 0, "host.example", 1);
    m.b[2] &= 0x7F; /* a query */
    assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
    message_begin(&m, q.id, 0, "host.example", 1);
    m.b[m.n - 1] = 3; /* another class */
    assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
    message_begin(&m, q.id, 0, "host.example", 1);
    m.b[5] = 2; /* two questions */
    assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
}

static void test_exact_case(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("hOsT.example", DNS_WIRE_A);
    q.exact = true;
    message_begin(&m, q.id, 0, "host.example", 1);
    assert_int_equal(read_message(&q), DNS_WIRE_STRAY);
    message_begin(&m, q.id, 0, "hOsT.example", 1);
    message_addr(&m, "host.example", "192.0.2.1");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 1);
}

static void test_aliases(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("a", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "a", 1);
    message_addr(&m, "c", "192.0.2.3"); /* in any order */
    message_alias(&m, "b", "c");
    message_alias(&m, "a", "b");
    message_addr(&m, "d", "192.0.2.4");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 1);
    assert_addr(0, "192.0.2.3");

    message_begin(&m, q.id, 0, "a", 1); /* an alias without addresses */
    message_alias(&m, "a", "b");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 0);

    message_begin(&m, q.id, 0, "a", 1); /* a loop */
    message_alias(&m, "a", "b");
    message_alias(&m, "b", "a");
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
    message_begin(&m, q.id, 0, "a", 1);
    message_alias(&m, "a", "a");
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
}

static enum dns_wire_verdict read_chain(unsigned length) {
    struct dns_wire_query q = query_for("n0", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "n0", 1);
    char from[8], to[8] = "n0";
    for (unsigned i = 1; i <= length; i++) {
        memcpy(from, to, sizeof from);
        snprintf(to, sizeof to, "n%u", i);
        message_alias(&m, from, to);
    }
    message_addr(&m, to, "192.0.2.1");
    return read_message(&q);
}

static void test_chain_is_bounded(void **state) {
    (void)state;
    assert_int_equal(read_chain(DNS_WIRE_CHAIN_MAX), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, 1);
    assert_int_equal(read_chain(DNS_WIRE_CHAIN_MAX + 1), DNS_WIRE_MALFORMED);
}

static void test_addresses_are_bounded(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("a", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "a", 1);
    for (unsigned i = 0; i < 4000; i++)
        message_addr(&m, NULL, "192.0.2.1");
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    assert_int_equal(answer.n, DNS_WIRE_ADDRS);
}

/* -- hostile names -- */

/* A record whose owner is `pointer`; the record begins at *at. */
static enum dns_wire_verdict read_pointer(int distance) {
    struct dns_wire_query q = query_for("a", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "a", 1);
    m.b[7] = 1;
    put_u16(&m, 0xC000 | (unsigned)((int)m.n + distance));
    put_u16(&m, 1);
    put_u16(&m, 1);
    put_bytes(&m, "\0\0\0\0\0\4\1\2\3\4", 10);
    return read_message(&q);
}

static void test_pointer_loops(void **state) {
    (void)state;
    assert_int_equal(read_pointer(0), DNS_WIRE_MALFORMED);  /* to itself */
    assert_int_equal(read_pointer(1), DNS_WIRE_MALFORMED);  /* forwards */
    assert_int_equal(read_pointer(99), DNS_WIRE_MALFORMED); /* behind the end */
    assert_int_equal(read_pointer(-7), DNS_WIRE_ADDRESSES); /* the question's name */
    assert_int_equal(answer.n, 1);

    struct dns_wire_query q = query_for("a", DNS_WIRE_A); /* label, then back to it */
    message_begin(&m, q.id, 0, "a", 1);
    m.b[7] = 1;
    unsigned at = (unsigned)m.n;
    put_bytes(&m, "\1x", 2);
    put_u16(&m, 0xC000 | at);
    put_bytes(&m, "\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 14);
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
}

static void test_long_name(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("a", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "a", 1);
    m.b[7] = 1;
    for (int i = 0; i < 5; i++) { /* 5 * 64 bytes */
        put_bytes(&m, "\77", 1);
        for (int j = 0; j < 63; j++)
            put_bytes(&m, "x", 1);
    }
    put_bytes(&m, "\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 15);
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
    message_begin(&m, q.id, 0, "a", 1); /* an unknown kind of label */
    m.b[7] = 1;
    put_bytes(&m, "\x40\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 16);
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
}

static void test_wrong_lengths(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("a", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "a", 1);
    message_record(&m, NULL, 1, 5);
    put_bytes(&m, "\1\2\3\4\5", 5);
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
    message_begin(&m, q.id, 0, "a", 1);
    message_record(&m, NULL, 5, 4); /* an alias with a byte behind the name */
    put_bytes(&m, "\1b\0x", 4);
    assert_int_equal(read_message(&q), DNS_WIRE_MALFORMED);
}

static void test_every_prefix_is_refused(void **state) {
    (void)state;
    struct dns_wire_query q = query_for("host.example", DNS_WIRE_A);
    message_begin(&m, q.id, 0, "host.example", 1);
    size_t question = m.n;
    message_alias(&m, NULL, "b.example");
    message_addr(&m, "b.example", "192.0.2.1");
    size_t whole = m.n;
    assert_int_equal(read_message(&q), DNS_WIRE_ADDRESSES);
    for (m.n = 0; m.n < whole; m.n++)
        assert_int_equal(read_message(&q), m.n < question ? DNS_WIRE_STRAY : DNS_WIRE_MALFORMED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_query_bytes),
        cmocka_unit_test(test_mix_changes_letters_only),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_no_addresses),
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_exact_case),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_chain_is_bounded),
        cmocka_unit_test(test_addresses_are_bounded),
        cmocka_unit_test(test_pointer_loops),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_wrong_lengths),
        cmocka_unit_test(test_every_prefix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
