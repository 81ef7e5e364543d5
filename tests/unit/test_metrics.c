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
            size_t n = strcspn(line, "{ ");
            assert_int_equal(n, strlen(family));
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

/* The largest figures fit; too little room is said, not overrun. */
static void room(void **state) {
    (void)state;
    struct metrics m;
    struct metrics_now now;
    memset(&m, 0xFF, sizeof m);
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
        cmocka_unit_test_setup(counters, setup),
        cmocka_unit_test_setup(methods, setup),
        cmocka_unit_test_setup(families, setup),
        cmocka_unit_test_setup(room, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
