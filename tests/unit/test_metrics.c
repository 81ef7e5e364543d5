#include "ops/metrics.h"

#include "app/methods.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct rpc_host rpc;

static int setup(void **state) {
    (void)state;
    rpc = (struct rpc_host){.methods = methods_table, .method_count = methods_count};
    return 0;
}

static char *format(const struct metrics *m, const struct metrics_now *now) {
    struct buf b = BUF_INIT(CONN_METRICS_MAX);
    assert_int_equal(metrics_format(m, now, &rpc, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    return b.p;
}

/* The line that begins with `series` and a blank must be there once, with that value. */
static void expect(const char *text, const char *series, const char *value) {
    char want[256];
    snprintf(want, sizeof want, "\n%s ", series);
    const char *at = strstr(text, want);
    if (at == NULL)
        fail_msg("no %s", series);
    at += strlen(want);
    size_t n = strcspn(at, "\n");
    assert_int_equal(n, strlen(value));
    assert_memory_equal(at, value, n);
    assert_null(strstr(at, want));
}

static void counters(void **state) {
    (void)state;
    struct metrics m = {.connections = 3, .starts = 4, .starts_failed = 5, .starts_refused = 6};
    m.refused[METRICS_AUTH] = 7;
    m.exits[METRICS_SIGNAL] = 8;
    m.timeouts = 9;
    m.output_bytes = UINT64_MAX;
    m.input_bytes = 10;
    struct metrics_now now = {.uptime = 1.5, .processes = {1, 2, 3, 4}, .audit_dropped = 11};
    now.log_dropped = 12;
    _cleanup_free_ char *text = format(&m, &now);
    expect(text, "exec_server_connections_accepted_total", "3");
    expect(text, "exec_server_process_starts_total", "4");
    expect(text, "exec_server_process_start_failures_total{reason=\"failed\"}", "5");
    expect(text, "exec_server_process_start_failures_total{reason=\"refused\"}", "6");
    expect(text, "exec_server_refusals_total{reason=\"auth\"}", "7");
    expect(text, "exec_server_refusals_total{reason=\"origin\"}", "0");
    expect(text, "exec_server_process_exits_total{kind=\"signal\"}", "8");
    expect(text, "exec_server_process_timeouts_total", "9");
    expect(text, "exec_server_output_bytes_total", "18446744073709551615");
    expect(text, "exec_server_input_bytes_total", "10");
    expect(text, "exec_server_uptime_seconds", "1.500");
    expect(text, "exec_server_processes{state=\"starting\"}", "1");
    expect(text, "exec_server_processes{state=\"closed\"}", "4");
    expect(text, "exec_server_audit_lines_dropped_total", "11");
    expect(text, "exec_server_log_lines_dropped_total", "12");
    expect(text, "exec_server_build_info{version=\"" EXEC_SERVER_VERSION "\"}", "1");
}

/* A series for each known method, and one for all others. */
static void methods(void **state) {
    (void)state;
    char series[128];
    for (size_t i = 0; i <= methods_count; i++)
        rpc.tallies[i] = (struct rpc_tally){i, i + 100, i + 200};
    struct metrics m = {0};
    struct metrics_now now = {0};
    _cleanup_free_ char *text = format(&m, &now);
    for (size_t i = 0; i <= methods_count; i++) {
        char value[24];
        const char *name = i < methods_count ? methods_table[i].name : "unknown";
        snprintf(series, sizeof series,
                 "exec_server_requests_total{method=\"%s\",outcome=\"error\"}", name);
        snprintf(value, sizeof value, "%zu", i + 100);
        expect(text, series, value);
    }
}

/* Every figure belongs to a family that was announced, once. */
static void families(void **state) {
    (void)state;
    struct metrics m = {0};
    struct metrics_now now = {0};
    _cleanup_free_ char *text = format(&m, &now);
    char family[128] = "", type[32];
    size_t count = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] != '#') {
            size_t n = strcspn(line, "{ "), whole = strlen(family);
            if (strcmp(type, "histogram") == 0) {
                const char *rest = line + whole;
                assert_true(n > whole &&
                            (strncmp(rest, "_bucket{", 8) == 0 || strncmp(rest, "_sum ", 5) == 0 ||
                             strncmp(rest, "_count ", 7) == 0));
                n = whole;
            }
            assert_int_equal(n, whole);
            assert_memory_equal(line, family, n);
            continue;
        }
        if (sscanf(line, "# TYPE %127s %31s", family, type) == 2) {
            bool counter = strcmp(type, "counter") == 0;
            size_t n = strlen(family);
            bool total = n > 6 && strcmp(family + n - 6, "_total") == 0;
            assert_int_equal(counter, total);
            count++;
        }
    }
    assert_true(count > 20);
}

/* Buckets count what is at most their bound. */
static void histograms(void **state) {
    (void)state;
    struct metrics m = {0};
    struct metrics_now now = {0};
    struct rpc_latency *l = &rpc.latency[RPC_TIMED_START];
    *l = (struct rpc_latency){.buckets = {1, 2, [RPC_BUCKETS - 1] = 3, [RPC_BUCKETS] = 4},
                              .sum = 1500000000};
    _cleanup_free_ char *text = format(&m, &now);
    expect(text, "exec_server_start_seconds_bucket{le=\"0.0001\"}", "1");
    expect(text, "exec_server_start_seconds_bucket{le=\"0.0005\"}", "3");
    expect(text, "exec_server_start_seconds_bucket{le=\"1\"}", "3");
    expect(text, "exec_server_start_seconds_bucket{le=\"10\"}", "6");
    expect(text, "exec_server_start_seconds_bucket{le=\"+Inf\"}", "10");
    expect(text, "exec_server_start_seconds_sum", "1.500000");
    expect(text, "exec_server_start_seconds_count", "10");
    expect(text, "exec_server_file_call_seconds_count", "0");
}

/* Names of tokens are told apart as long as there is room. */
static void logins(void **state) {
    (void)state;
    struct metrics m = {0};
    struct metrics_now now = {0};
    char name[16];
    metrics_login(&m, "ci");
    metrics_login(&m, "ci");
    for (int i = 1; i < METRICS_TOKENS + 3; i++) {
        snprintf(name, sizeof name, "t%d", i);
        metrics_login(&m, name);
    }
    _cleanup_free_ char *text = format(&m, &now);
    expect(text, "exec_server_token_logins_total{token=\"ci\"}", "2");
    expect(text, "exec_server_token_logins_total{token=\"t63\"}", "1");
    expect(text, "exec_server_token_logins_total{token=\"\"}", "3");
    metrics_fini(&m);
}

/* The largest figures fit; too little room is said, not overrun. */
static void room(void **state) {
    (void)state;
    struct metrics m;
    struct metrics_now now;
    char name[65] = "";
    memset(&m, 0xFF, sizeof m);
    memset(name, 'x', sizeof name - 1);
    for (size_t i = 0; i < METRICS_TOKENS; i++)
        m.tokens[i].name = name;
    memset(rpc.latency, 0xFF, sizeof rpc.latency);
    memset(&now, 0xFF, sizeof now);
    now.uptime = now.started = now.cpu = 1e15;
    memset(rpc.tallies, 0xFF, sizeof rpc.tallies);
    free(format(&m, &now));
    for (size_t max = 1; max < 8192; max += 97) {
        _cleanup_buf_ struct buf b = BUF_INIT(max);
        assert_int_equal(metrics_format(&m, &now, &rpc, &b), -ENOBUFS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counters, setup), cmocka_unit_test_setup(methods, setup),
        cmocka_unit_test_setup(families, setup), cmocka_unit_test_setup(histograms, setup),
        cmocka_unit_test_setup(logins, setup),   cmocka_unit_test_setup(room, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
