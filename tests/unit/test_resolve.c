#include "net/resolve.h"

#include "dns_server.h"
#include "net/resolve_query.h"

#define ROUNDS 6000 /* only end a hang */

/* -- a clock that only moves when told -- */

static uint64_t fake_now;

static uint64_t fake_clock(void) {
    return fake_now;
}

struct fixture {
    struct loop loop;
    struct resolve resolve;
    struct resolve_request request[RESOLVE_REQUESTS + 1];
    int done;     /* calls of `done` */
    int asked[2]; /* questions that a server has got */
    int tcp;      /* questions by TCP */
    struct asked last;
    char log[2048]; /* names asked for A */
    char dir[64], hosts[96], conf[96];
};

static struct fixture f;
static struct message m;

static void write_file(const char *path, const char *text) {
    char temporary[128];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *out = fopen(temporary, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(rename(temporary, path), 0);
}

static void on_done(struct resolve_request *q) {
    assert_null(q->work);
    assert_int_equal(q->status == RESOLVE_OK, q->n > 0);
    assert_int_equal(q->status == RESOLVE_OK, q->err.code == 0);
    f.done++;
}

/* Counts a question and remembers it. */
static void note(const struct asked *q) {
    f.asked[q->server]++;
    f.tcp += q->conn >= 0;
    f.last = *q;
    if (q->type == 1) {
        size_t n = strlen(f.log);
        snprintf(f.log + n, sizeof f.log - n, "%s ", q->name);
    }
}

/* Options: zero but the paths and the port. */
static void use(const char *conf, struct resolve_options options) {
    write_file(f.conf, conf);
    options.hosts_path = f.hosts;
    options.conf_path = f.conf;
    options.port = servers.port;
    resolve_init(&f.resolve, &f.loop, &options);
}

static int setup(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    fake_now = 1000 * LOOP_SEC;
    const char *scratch = getenv("TEST_SCRATCH");
    snprintf(f.dir, sizeof f.dir, "%.40s/resolve.XXXXXX", scratch ? scratch : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.hosts, sizeof f.hosts, "%s/hosts", f.dir);
    snprintf(f.conf, sizeof f.conf, "%s/resolv.conf", f.dir);
    for (size_t i = 0; i < ARRAY_LEN(f.request); i++)
        f.request[i].done = on_done;
    dns_servers_open();
    assert_int_equal(loop_init(&f.loop, fake_clock), 0);
    use("nameserver 127.0.0.1\nnameserver 127.0.0.2\nsearch .\n", (struct resolve_options){0});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(f.request); i++)
        resolve_request_fini(&f.request[i]);
    assert_int_equal(f.resolve.requests, 0);
    assert_int_equal(f.loop.ios, 0);
    assert_int_equal(f.loop.timers, 0);
    assert_true(list_empty(&f.loop.tasks));
    resolve_fini(&f.resolve);
    loop_fini(&f.loop);
    dns_servers_close();
    unlink(f.hosts);
    unlink(f.conf);
    return rmdir(f.dir);
}

static void pump(void) {
    dns_servers_poll(f.loop.epfd);
    dns_servers_serve();
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

#define PUMP_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (int rounds = 0; !(condition); rounds++) {                                             \
            assert_in_range(rounds, 0, ROUNDS);                                                    \
            pump();                                                                                \
        }                                                                                          \
    } while (0)

static void start(const char *name) {
    assert_int_equal(resolve_start(&f.resolve, &f.request[0], str_of(name), 80), 0);
    assert_int_equal(f.done, 0);
}

static void finish(void) {
    PUMP_UNTIL(f.done > 0);
    assert_int_equal(f.done, 1);
    f.done = 0;
}

/* Resolves a name to the end. */
static void resolve_name(const char *name, void (*script)(const struct asked *q)) {
    servers.script = script;
    start(name);
    finish();
}

static const char *addresses(void) {
    static char text[1024];
    char name[SOCK_PEER_MAX];
    text[0] = '\0';
    for (size_t i = 0; i < f.request[0].n; i++) {
        sock_peer_name(&f.request[0].addr[i].u.sa, name);
        strcat(strcat(text, name), " ");
    }
    return text;
}

static void assert_failed(enum resolve_status status, const char *text) {
    assert_int_equal(f.request[0].status, status);
    if (strstr(err_msg(&f.request[0].err), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, err_msg(&f.request[0].err));
}

/* -- scripts -- */

static void answer_addr(const struct asked *q, const char *v4, const char *v6) {
    const char *addr = q->type == 1 ? v4 : v6;
    message_begin(&m, q->id, 0, q->name, q->type);
    if (addr != NULL)
        message_addr(&m, NULL, addr);
    dns_server_send(q, &m);
}

static void answer_flags(const struct asked *q, unsigned flags) {
    message_begin(&m, q->id, flags, q->name, q->type);
    dns_server_send(q, &m);
}

/* Addresses of this host, which every kernel reaches. */
static void script_good(const struct asked *q) {
    note(q);
    answer_addr(q, "127.0.0.9", NULL);
}

static void script_silent(const struct asked *q) {
    note(q);
}

static void script_never(const struct asked *q) {
    fail_msg("asked for %s", q->name);
}

static void script_both(const struct asked *q) {
    note(q);
    answer_addr(q, "127.0.0.9", "2001:db8::1");
}

static void script_servfail_first(const struct asked *q) {
    note(q);
    if (q->server == 0)
        answer_flags(q, 2);
    else
        answer_addr(q, "127.0.0.9", NULL);
}

static void script_nxdomain(const struct asked *q) {
    note(q);
    answer_flags(q, 3);
}

static void script_nodata(const struct asked *q) {
    note(q);
    answer_flags(q, 0);
}

static void script_servfail(const struct asked *q) {
    note(q);
    answer_flags(q, 2);
}

/* Forged answers first, then the right one. */
static void script_forged(const struct asked *q) {
    note(q);
    struct asked other = *q;
    other.id ^= 1;
    answer_addr(&other, "127.0.0.66", "::66");
    snprintf(other.name, sizeof other.name, "other.example");
    other.id = q->id;
    answer_addr(&other, "127.0.0.66", "::66");
    other = *q;
    other.type ^= 29;
    message_begin(&m, q->id, 0, q->name, other.type);
    message_addr(&m, NULL, "127.0.0.66");
    dns_server_send(q, &m);
    m.n = 5;
    dns_server_send(q, &m);
    m.n = 0;
    dns_server_send(q, &m);
    int fd = dns_server_bind(SOCK_DGRAM, 0, 0); /* right in everything but the port */
    message_begin(&m, q->id, 0, q->name, q->type);
    message_addr(&m, NULL, q->type == 1 ? "127.0.0.66" : "::66");
    assert_int_equal(
        sendto(fd, m.b, m.n, 0, (const struct sockaddr *)&q->from, sizeof q->from) >= 0, 1);
    close(fd);
    answer_addr(q, "127.0.0.9", NULL);
}

/* Guesses and guesses; by TCP it answers. */
static void script_flood(const struct asked *q) {
    note(q);
    if (q->conn >= 0) {
        answer_addr(q, "127.0.0.9", NULL);
        return;
    }
    struct asked guess = *q;
    for (int i = 0; i < RESOLVE_QUERY_STRAYS; i++) {
        guess.id ^= 0x5555;
        guess.id += guess.id == q->id;
        answer_addr(&guess, "127.0.0.66", "::66");
    }
}

static void script_truncated(const struct asked *q) {
    note(q);
    if (q->conn < 0)
        answer_flags(q, 0x200);
    else
        answer_addr(q, "127.0.0.9", NULL);
}

/* 65535 bytes by TCP; the last record but some is the address. */
static void script_huge(const struct asked *q) {
    note(q);
    if (q->conn < 0) {
        answer_flags(q, 0x200);
        return;
    }
    message_begin(&m, q->id, 0, q->name, q->type);
    if (q->type == 1)
        message_addr(&m, NULL, "127.0.0.9");
    size_t rest = sizeof m.b - m.n - 12;
    message_record(&m, NULL, 16, rest);
    memset(m.b + m.n, 'x', rest);
    m.n += rest;
    assert_int_equal(m.n, sizeof m.b);
    dns_server_send(q, &m);
}

/* More than a datagram may have, but not marked as cut. */
static void script_long_datagram(const struct asked *q) {
    note(q);
    message_begin(&m, q->id, 0, q->name, q->type);
    if (q->type == 1)
        message_addr(&m, NULL, "127.0.0.9");
    if (q->conn < 0) {
        message_record(&m, NULL, 16, 5000);
        m.n += 5000;
    }
    dns_server_send(q, &m);
}

static void script_alias_loop(const struct asked *q) {
    note(q);
    message_begin(&m, q->id, 0, q->name, q->type);
    message_alias(&m, NULL, "b");
    message_alias(&m, "b", q->name);
    dns_server_send(q, &m);
}

static void script_pointer_loop(const struct asked *q) {
    note(q);
    message_begin(&m, q->id, 0, q->name, q->type);
    m.b[7] = 1;
    put_u16(&m, 0xC000 | (unsigned)m.n);
    put_bytes(&m, "\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 14);
    dns_server_send(q, &m);
}

static void script_alias(const struct asked *q) {
    note(q);
    message_begin(&m, q->id, 0, q->name, q->type);
    message_alias(&m, NULL, "real.example");
    if (q->type == 1)
        message_addr(&m, "real.example", "127.0.0.9");
    dns_server_send(q, &m);
}

/* Only one full name exists. */
static void script_second_domain(const struct asked *q) {
    note(q);
    if (strcmp(q->name, "box.two.example") == 0)
        answer_addr(q, "127.0.0.9", NULL);
    else
        answer_flags(q, 3);
}

static void script_a_only(const struct asked *q) {
    note(q);
    if (q->type == 1)
        answer_addr(q, "127.0.0.9", NULL);
}

/* -- without a server -- */

static void test_literals(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"127.0.0.1", "127.0.0.1:80 "},
        {"::1", "[::1]:80 "},
        {"fe80::1%3", "[fe80::1]:80 "},
        {"::ffff:192.0.2.1", "192.0.2.1:80 "},
        {"255.255.255.255", "255.255.255.255:80 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        resolve_name(rows[i][0], script_never);
        assert_string_equal(addresses(), rows[i][1]);
    }
}

static void test_bad_names(void **state) {
    (void)state;
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *const rows[] = {"",
                                ".",
                                "a..b",
                                "a b",
                                "1.2.3",
                                "127.1",
                                "0x7f.1",
                                "0x7f000001",
                                "256.1.1.1",
                                "1.2.3.4.",
                                "2130706433",
                                "[::1]",
                                "\xC3\xA4.example",
                                "fe80::1%nosuchif",
                                "a\nb",
                                longest};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        resolve_name(rows[i], script_never);
        assert_failed(RESOLVE_BAD_NAME, "neither an address nor a host name");
    }
}

static void test_localhost(void **state) {
    (void)state;
    write_file(f.hosts, "192.0.2.1 localhost a.localhost\n");
    static const char *const rows[] = {"localhost", "a.LOCALHOST", "localhost."};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        resolve_name(rows[i], script_never);
        assert_int_equal(f.request[0].n, 2);
        assert_non_null(strstr(addresses(), "127.0.0.1:80 "));
        assert_non_null(strstr(addresses(), "[::1]:80 "));
    }
}

static void test_hosts_are_read_anew(void **state) {
    (void)state;
    write_file(f.hosts, "127.0.0.7 box\n");
    resolve_name("Box", script_never);
    assert_string_equal(addresses(), "127.0.0.7:80 ");
    write_file(f.hosts, "127.0.0.8 box\n");
    resolve_name("box", script_never);
    assert_string_equal(addresses(), "127.0.0.8:80 ");
    unlink(f.hosts);
    resolve_name("box", script_good);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(mkfifo(f.hosts, 0600), 0); /* must not block */
    resolve_name("box", script_good);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
}

static void test_conf_is_read_anew(void **state) {
    (void)state;
    resolve_name("box", script_good);
    assert_int_equal(f.asked[1], 0);
    write_file(f.conf, "nameserver 127.0.0.2\nsearch .\n");
    resolve_name("box", script_good);
    assert_int_equal(f.asked[0], 2);
    assert_int_equal(f.asked[1], 2);
    write_file(f.conf, "search .\n"); /* no server: this host */
    resolve_name("box", script_good);
    assert_int_equal(f.asked[0], 4);
}

/* -- answers -- */

static void test_both_types(void **state) {
    (void)state;
    resolve_name("box.example", script_both);
    assert_int_equal(f.request[0].n, 2);
    assert_non_null(strstr(addresses(), "127.0.0.9:80 "));
    assert_non_null(strstr(addresses(), "[2001:db8::1]:80 "));
    assert_int_equal(f.asked[0], 2);
    assert_string_equal(f.log, "box.example ");
}

static void test_alias(void **state) {
    (void)state;
    resolve_name("www.example", script_alias);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
}

static void test_forged_answers(void **state) {
    (void)state;
    resolve_name("box.example", script_forged);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.asked[0], 2);
}

static void test_flood_goes_to_tcp(void **state) {
    (void)state;
    resolve_name("box.example", script_flood);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.tcp, 2);
}

static void test_mixed_case(void **state) {
    (void)state;
    resolve_fini(&f.resolve);
    use("nameserver 127.0.0.1\nsearch .\n", (struct resolve_options){.mix_case = true});
    resolve_name("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", script_good);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_non_null(strpbrk(f.log, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    assert_non_null(strpbrk(f.log, "abcdefghijklmnopqrstuvwxyz"));
}

static void test_truncated(void **state) {
    (void)state;
    resolve_name("box.example", script_truncated);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.tcp, 2);
}

static void test_64_kib(void **state) {
    (void)state;
    resolve_name("box.example", script_huge);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.tcp, 2);
}

static void test_long_datagram(void **state) {
    (void)state;
    resolve_name("box.example", script_long_datagram);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.tcp, 2);
}

static void test_use_vc(void **state) {
    (void)state;
    write_file(f.conf, "nameserver 127.0.0.1\nsearch .\noptions use-vc\n");
    resolve_name("box.example", script_good);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.tcp, 2);
    assert_int_equal(f.asked[0], 2);
}

static void script_one_at_a_time(const struct asked *q) {
    note(q);
    assert_int_equal(q->type, f.asked[0] == 1 ? 1 : 28);
    assert_int_equal(f.loop.ios, 1);
    answer_addr(q, "127.0.0.9", NULL);
}

static void test_single_request(void **state) {
    (void)state;
    write_file(f.conf, "nameserver 127.0.0.1\nsearch .\noptions single-request\n");
    resolve_name("box.example", script_one_at_a_time);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.asked[0], 2);
}

static void test_rotate(void **state) {
    (void)state;
    write_file(f.conf, "nameserver 127.0.0.1\nnameserver 127.0.0.2\noptions rotate\n");
    resolve_name("box.example", script_good);
    resolve_name("box.example", script_good);
    assert_int_equal(f.asked[0], 2);
    assert_int_equal(f.asked[1], 2);
}

/* -- failures -- */

static void test_malformed(void **state) {
    (void)state;
    resolve_name("box.example", script_alias_loop);
    assert_failed(RESOLVE_MALFORMED, "cannot resolve box.example: 127.0.0.2:");
    assert_failed(RESOLVE_MALFORMED, "sent a malformed answer");
    assert_int_equal(f.asked[0] + f.asked[1], 8); /* two types, two servers, two attempts */
    resolve_name("box.example", script_pointer_loop);
    assert_failed(RESOLVE_MALFORMED, "sent a malformed answer");
}

static void test_next_server(void **state) {
    (void)state;
    resolve_name("box.example", script_servfail_first);
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.asked[0], 2);
    assert_int_equal(f.asked[1], 2);
}

static void test_servfail(void **state) {
    (void)state;
    resolve_name("box.example", script_servfail);
    assert_failed(RESOLVE_SERVER_FAILED, "cannot resolve box.example: 127.0.0.2:");
    assert_failed(RESOLVE_SERVER_FAILED, " answered SERVFAIL");
}

static void test_not_found(void **state) {
    (void)state;
    resolve_name("box.example", script_nxdomain);
    assert_failed(RESOLVE_NOT_FOUND, "cannot resolve box.example: 127.0.0.1:");
    assert_failed(RESOLVE_NOT_FOUND, " knows no such name");
    resolve_name("box.example", script_nodata);
    assert_failed(RESOLVE_NO_ADDRESS, " knows the name, but no address");
}

static void test_nobody_listens(void **state) {
    (void)state;
    for (int i = 0; i < DNS_SERVERS; i++)
        close(servers.udp[i]);
    servers.script = script_never;
    start("box.example");
    for (int rounds = 0; f.done == 0; rounds++) {
        assert_in_range(rounds, 0, ROUNDS);
        struct pollfd p = {.fd = f.loop.epfd, .events = POLLIN};
        poll(&p, 1, 10);
        assert_int_equal(loop_once(&f.loop, 0), 0);
    }
    assert_failed(RESOLVE_SERVER_FAILED, "cannot be asked: Connection refused (os error 111)");
    for (int i = 0; i < DNS_SERVERS; i++)
        servers.udp[i] = -1;
}

/* -- the search list -- */

static void test_search_list(void **state) {
    (void)state;
    static const char conf[] = "nameserver 127.0.0.1\nsearch one.example two.example\n";
    write_file(f.conf, conf);
    resolve_name("box", script_second_domain);
    assert_string_equal(f.log, "box.one.example box.two.example ");
    assert_string_equal(addresses(), "127.0.0.9:80 ");

    f.log[0] = '\0';
    resolve_name("box", script_nxdomain);
    assert_string_equal(f.log, "box.one.example box.two.example box ");
    assert_failed(RESOLVE_NOT_FOUND, "cannot resolve box: ");

    f.log[0] = '\0';
    resolve_name("box.x", script_nxdomain);
    assert_string_equal(f.log, "box.x box.x.one.example box.x.two.example ");

    f.log[0] = '\0';
    resolve_name("box.", script_nxdomain);
    assert_string_equal(f.log, "box ");

    f.log[0] = '\0';
    write_file(f.conf, "nameserver 127.0.0.1\nsearch one.example\noptions ndots:2\n");
    resolve_name("box.x", script_nxdomain);
    assert_string_equal(f.log, "box.x.one.example box.x ");
}

static void test_search_skips_names_that_are_too_long(void **state) {
    (void)state;
    char name[251] = "", want[260];
    for (int i = 0; i < 125; i++)
        memcpy(name + 2 * i, "a.", 2);
    name[249] = '\0';
    write_file(f.conf, "nameserver 127.0.0.1\nsearch one.example\noptions ndots:15\n");
    resolve_name(name, script_nxdomain);
    snprintf(want, sizeof want, "%s ", name);
    assert_string_equal(f.log, want);
}

/* -- time -- */

static void advance(uint64_t by) {
    fake_now += by;
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

static void test_silence(void **state) {
    (void)state;
    write_file(f.conf, "nameserver 127.0.0.1\nnameserver 127.0.0.2\n"
                       "search .\noptions timeout:3 attempts:2\n");
    servers.script = script_silent;
    start("box.example");
    for (int tries = 1; tries <= 4; tries++) {
        PUMP_UNTIL(f.asked[0] + f.asked[1] == 2 * tries);
        assert_int_equal(f.asked[0], 2 * ((tries + 1) / 2));
        advance(3 * LOOP_SEC - 1);
        assert_int_equal(f.done, 0);
        advance(1);
    }
    finish();
    assert_failed(RESOLVE_TIMED_OUT, "127.0.0.2:");
    assert_failed(RESOLVE_TIMED_OUT, "did not answer within 3 s");
}

static void test_deadline(void **state) {
    (void)state;
    resolve_fini(&f.resolve);
    use("nameserver 127.0.0.1\n", (struct resolve_options){.deadline_ms = 700});
    servers.script = script_silent;
    start("box.example");
    PUMP_UNTIL(f.asked[0] == 2);
    advance(700 * LOOP_MS);
    finish();
    assert_failed(RESOLVE_TIMED_OUT, "no answer within 700 ms; 127.0.0.1:");
}

static void test_late_answer(void **state) {
    (void)state;
    servers.script = script_silent;
    start("box.example");
    PUMP_UNTIL(f.asked[0] == 2);
    struct asked late = f.last;
    advance(5 * LOOP_SEC);
    answer_addr(&late, "127.0.0.66", "::66"); /* its socket is closed */
    servers.script = script_good;
    finish();
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    assert_int_equal(f.asked[1], 2);
}

static void test_one_type_does_not_wait_for_ever(void **state) {
    (void)state;
    servers.script = script_a_only;
    start("box.example");
    PUMP_UNTIL(f.resolve.loop->ios == 1 && f.asked[0] == 2);
    pump();
    assert_int_equal(f.done, 0);
    advance(loop_ms(RESOLVE_GRACE_MS));
    finish();
    assert_string_equal(addresses(), "127.0.0.9:80 ");
}

static void test_silent_tcp(void **state) {
    (void)state;
    write_file(f.conf, "nameserver 127.0.0.1\noptions use-vc attempts:1\nsearch .\n");
    servers.script = script_silent;
    start("box.example");
    PUMP_UNTIL(f.tcp == 2);
    advance(5 * LOOP_SEC);
    finish();
    assert_failed(RESOLVE_TIMED_OUT, "did not answer within 5 s");
}

/* -- many -- */

static void test_two_at_once(void **state) {
    (void)state;
    servers.script = script_good;
    start("one.example");
    assert_int_equal(resolve_start(&f.resolve, &f.request[1], STR_LIT("two.example"), 81), 0);
    PUMP_UNTIL(f.done == 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f.request[i].n, 1);
        assert_int_equal(ntohs(f.request[i].addr[0].u.in.sin_port), 80 + i);
    }
}

static void test_requests_are_bounded(void **state) {
    (void)state;
    servers.script = script_good;
    for (size_t i = 0; i < RESOLVE_REQUESTS; i++)
        assert_int_equal(resolve_start(&f.resolve, &f.request[i], STR_LIT("a.example"), 80), 0);
    struct resolve_request *more = &f.request[RESOLVE_REQUESTS];
    assert_int_equal(resolve_start(&f.resolve, more, STR_LIT("a.example"), 80), -EAGAIN);
    PUMP_UNTIL(f.done == RESOLVE_REQUESTS);
    assert_int_equal(resolve_start(&f.resolve, more, STR_LIT("a.example"), 80), 0);
    PUMP_UNTIL(f.done == RESOLVE_REQUESTS + 1);
    assert_int_equal(more->n, 1);
}

/* Cancels after each number of rounds until a request gets through: no step is left out. */
static void cancel_at_every_step(void (*script)(const struct asked *q)) {
    servers.script = script;
    for (int steps = 0; f.done == 0; steps++) {
        assert_in_range(steps, 0, ROUNDS);
        start("box.example");
        for (int i = 0; i < steps && f.done == 0; i++)
            pump();
        resolve_cancel(&f.request[0]);
        assert_int_equal(f.resolve.requests, 0);
        assert_int_equal(f.loop.ios, 0);
        assert_int_equal(f.loop.timers, 0);
    }
    assert_string_equal(addresses(), "127.0.0.9:80 ");
    f.done = 0;
}

static void test_cancel_at_every_step(void **state) {
    (void)state;
    cancel_at_every_step(script_good);
    cancel_at_every_step(script_huge);
    cancel_at_every_step(script_servfail_first);
}

static void on_done_cancels_other(struct resolve_request *q) {
    on_done(q);
    resolve_cancel(q == &f.request[0] ? &f.request[1] : &f.request[0]);
}

static void test_cancel_from_done(void **state) {
    (void)state;
    write_file(f.hosts, "127.0.0.9 box\n");
    f.request[0].done = f.request[1].done = on_done_cancels_other;
    start("box");
    assert_int_equal(resolve_start(&f.resolve, &f.request[1], STR_LIT("box"), 80), 0);
    PUMP_UNTIL(f.done > 0);
    pump();
    assert_int_equal(f.done, 1);
    assert_int_equal(f.resolve.requests, 0);
}

static void test_fini_cancels(void **state) {
    (void)state;
    servers.script = script_silent;
    start("one.example");
    assert_int_equal(resolve_start(&f.resolve, &f.request[1], STR_LIT("two.example"), 81), 0);
    PUMP_UNTIL(f.asked[0] == 4);
    resolve_fini(&f.resolve);
    assert_int_equal(f.loop.ios, 0);
    assert_null(f.request[0].work);
    assert_int_equal(f.done, 0);
    resolve_init(&f.resolve, &f.loop, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_literals),
        TEST(test_bad_names),
        TEST(test_localhost),
        TEST(test_hosts_are_read_anew),
        TEST(test_conf_is_read_anew),
        TEST(test_both_types),
        TEST(test_alias),
        TEST(test_forged_answers),
        TEST(test_flood_goes_to_tcp),
        TEST(test_mixed_case),
        TEST(test_truncated),
        TEST(test_64_kib),
        TEST(test_long_datagram),
        TEST(test_use_vc),
        TEST(test_single_request),
        TEST(test_rotate),
        TEST(test_malformed),
        TEST(test_next_server),
        TEST(test_servfail),
        TEST(test_not_found),
        TEST(test_nobody_listens),
        TEST(test_search_list),
        TEST(test_search_skips_names_that_are_too_long),
        TEST(test_silence),
        TEST(test_deadline),
        TEST(test_late_answer),
        TEST(test_one_type_does_not_wait_for_ever),
        TEST(test_silent_tcp),
        TEST(test_two_at_once),
        TEST(test_requests_are_bounded),
        TEST(test_cancel_at_every_step),
        TEST(test_cancel_from_done),
        TEST(test_fini_cancels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
