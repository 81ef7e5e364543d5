#include "app/config.h"

#include "options_run.h"

#include <netinet/in.h>
#include <sys/stat.h>

#define DIGEST "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* of "hello" */
#define FROM_FILE "--config-file", "config"

/* A directory for the files of the tests; each test starts inside it. */
static char dir[PATH_MAX] = "/tmp/test-config-XXXXXX";

static void write_bytes(const char *name, const char *p, size_t n) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *text) {
    write_bytes(name, text, strlen(text));
}

static int group_setup(void **state) {
    (void)state;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 || mkdir("sub", 0700) != 0)
        return -1;
    if (getcwd(dir, sizeof(dir)) == NULL)
        return -1;
    write_text("token", "hello\n");
    write_text("secret", "0123456789abcdef0123456789abcdef\n");
    return 0;
}

static int group_teardown(void **state) {
    static const char *const names[] = {"token", "secret", "config", "again", "bad\xff"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlink(names[i]);
    rmdir("sub");
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int setup(void **state) {
    (void)state;
    unsetenv("EXEC_SERVER_LOG");
    return chdir(dir);
}

/* What the file `text` makes of the options, together with some words. */
#define RUN_FILE(text, ...)                                                                        \
    (write_text("config", (text)), RUN(FROM_FILE __VA_OPT__(, ) __VA_ARGS__))

static void expect_file_error(const char *reason, const char *text) {
    char message[1024];
    write_text("config", text);
    snprintf(message, sizeof(message), "config file config: %s", reason);
    expect_error(message, ARGS(FROM_FILE));
}

static void test_empty(void **state) {
    (void)state;
    _cleanup_run_ struct run without = RUN();
    _cleanup_run_ struct run with = RUN_FILE(" {}\n");
    assert_int_equal(with.result, OPTIONS_RUN);
    assert_int_equal(with.o.max_processes, 0);
    assert_int_equal(with.o.retained_output, 1048576);
    assert_int_equal(with.o.closed_retention_ms, 30000);
    assert_int_equal(with.o.closed_output_max, 64 << 20);
    assert_int_equal(with.o.shutdown_grace_ms, 0);
    assert_true(with.o.allow_direct_exec);
    assert_true(with.o.allow_prepared_exec);
    assert_false(with.o.allow_attach);
    assert_false(with.o.metrics);
    assert_int_equal(with.o.http_host_count, 0);
    assert_null(with.o.audit_log);
    assert_int_equal(with.o.listen_fd, -1);
    assert_int_equal(with.o.session_ttl_ms, without.o.session_ttl_ms);
    assert_int_equal(with.o.max_connections, without.o.max_connections);
}

static const char everything[] =
    "{\"listen\":\"ws://127.0.0.9:81\",\"concurrentRequests\":3,\"maxConnections\":5,"
    "\"requireAuth\":true,\"httpHosts\":[\"box\",\"Box.example\"],\"metrics\":true,"
    "\"sessionTtlMaxMs\":1600,\"closedRetentionMaxMs\":0,"
    "\"sessionTtlMs\":1500,\"keepDetached\":true,\"allowAttach\":true,"
    "\"maxProcessesPerConnection\":7,\"retainedOutputBytesPerProcess\":65536,"
    "\"closedRetentionMs\":2001,\"closedOutputBytesMax\":1099511627776,"
    "\"shutdownGracePeriodMs\":250,\"allowDirectExec\":false,\"allowPreparedExec\":false,"
    "\"linuxSandboxPidNamespace\":\"inherit\","
    "\"auditLog\":\"sub/audit\",\"logLevel\":\"debug\",\"wsAuth\":\"signed-bearer-token\","
    "\"wsSharedSecretFile\":\"secret\",\"wsIssuer\":\"me\",\"wsAudience\":\"you\","
    "\"wsMaxClockSkewSeconds\":9}";

static void test_every_key(void **state) {
    (void)state;
    _cleanup_run_ struct run r = RUN_FILE(everything);
    assert_string_equal(r.err, "");
    assert_int_equal(r.result, OPTIONS_RUN);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&r.o.addr;
    assert_int_equal(ntohs(in->sin_port), 81);
    assert_int_equal(r.o.concurrent_requests, 3);
    assert_int_equal(r.o.max_connections, 5);
    assert_true(r.o.require_auth);
    assert_int_equal(r.o.http_host_count, 2);
    assert_string_equal(r.o.http_hosts[0], "box");
    assert_string_equal(r.o.http_hosts[1], "Box.example");
    assert_true(r.o.metrics);
    assert_int_equal(r.o.session_ttl_ms, 1500);
    assert_int_equal(r.o.session_ttl_max_ms, 1600);
    assert_int_equal(r.o.closed_retention_max_ms, 0);
    assert_true(r.o.keep_detached);
    assert_true(r.o.allow_attach);
    assert_true(r.o.inherit_pids);
    assert_int_equal(r.o.max_processes, 7);
    assert_int_equal(r.o.retained_output, 65536);
    assert_int_equal(r.o.closed_retention_ms, 2001);
    assert_true(r.o.closed_output_max == (size_t)1 << 40);
    assert_int_equal(r.o.shutdown_grace_ms, 250);
    assert_false(r.o.allow_direct_exec);
    assert_false(r.o.allow_prepared_exec);
    assert_non_null(strstr(r.o.audit_log, "/sub/audit"));
    assert_int_equal(r.o.audit_log[0], '/');
    assert_int_equal(r.o.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(r.o.auth.mode, AUTH_SIGNED);
    assert_string_equal(r.o.auth.issuer, "me");
    assert_string_equal(r.o.auth.audience, "you");
    assert_int_equal(r.o.auth.skew, 9);
}

/* --session-ttl 0 says that sessions end at once; a longer time must be allowed by name. */
static void test_session_ttl_max(void **state) {
    (void)state;
    _cleanup_run_ struct run a = RUN("--session-ttl", "0");
    _cleanup_run_ struct run b = RUN("--session-ttl", "0", "--session-ttl-max", "1.5");
    _cleanup_run_ struct run c = RUN("--session-ttl-max", "0", "--closed-retention-max", "7");
    _cleanup_run_ struct run d = RUN("--closed-retention", "0");
    assert_int_equal(a.o.session_ttl_max_ms, 0);
    assert_int_equal(b.o.session_ttl_max_ms, 1500);
    assert_int_equal(c.o.session_ttl_max_ms, 0);
    assert_int_equal(c.o.closed_retention_max_ms, 7000);
    assert_int_equal(d.o.session_ttl_max_ms, 86400000);
    assert_int_equal(d.o.closed_retention_max_ms, 86400000);
}

static void test_command_line(void **state) {
    (void)state;
    _cleanup_run_ struct run r =
        RUN("--closed-retention", "0.25", "--max-processes", "3", "--retained-output", "70000",
            "--shutdown-grace-ms", "5", "--allow-direct-exec", "false", "--allow-prepared-exec",
            "true", "--allow-attach", "--metrics", "--http-host", "a", "--http-host=b-1.c_d",
            "--audit-log", "/x//y", "--closed-output-max", "0");
    assert_string_equal(r.err, "");
    assert_int_equal(r.o.closed_retention_ms, 250);
    assert_int_equal(r.o.max_processes, 3);
    assert_int_equal(r.o.retained_output, 70000);
    assert_int_equal(r.o.shutdown_grace_ms, 5);
    assert_false(r.o.allow_direct_exec);
    assert_true(r.o.allow_prepared_exec);
    assert_true(r.o.allow_attach);
    assert_true(r.o.metrics);
    assert_int_equal(r.o.http_host_count, 2);
    assert_string_equal(r.o.http_hosts[1], "b-1.c_d");
    assert_string_equal(r.o.audit_log, "/x/y");
    assert_int_equal(r.o.closed_output_max, 0);
}

static void test_command_line_errors(void **state) {
    (void)state;
    expect_usage("invalid value '65535' for '--retained-output <BYTES>': must be between 65536 and "
                 "16777216",
                 ARGS("--retained-output", "65535"));
    expect_usage("invalid value '1000001' for '--max-processes <COUNT>': must be at most 1000000",
                 ARGS("--max-processes", "1000001"));
    expect_usage("invalid value 'x' for '--max-processes <COUNT>': not a whole number",
                 ARGS("--max-processes", "x"));
    expect_usage("invalid value '31536001' for '--closed-retention <SECONDS>': must be at most "
                 "31536000",
                 ARGS("--closed-retention", "31536001"));
    expect_usage(
        "invalid value '3600001' for '--shutdown-grace-ms <MILLISECONDS>': must be at most "
        "3600000",
        ARGS("--shutdown-grace-ms", "3600001"));
    expect_usage("invalid value '99999999999999999999' for '--closed-output-max <BYTES>': must be "
                 "at most 1099511627776",
                 ARGS("--closed-output-max", "99999999999999999999"));
    expect_usage("invalid value 'yes' for '--allow-direct-exec <BOOL>'; "
                 "possible values: true, false",
                 ARGS("--allow-direct-exec", "yes"));
    static const char *const names[] = {"", "a b", "a:80", "[::1]", "http://a", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char text[128];
        snprintf(text, sizeof(text), "invalid value '%s' for '--http-host <NAME>': not a host name",
                 names[i]);
        expect_usage(text, ARGS("--http-host", names[i]));
    }
    expect_usage("a value is required for '--audit-log <FILE>' but none was supplied",
                 ARGS("--audit-log", ""));
}

static void test_too_many_hosts(void **state) {
    (void)state;
    char *argv[2 + OPTIONS_LIST_MAX] = {(char *)"exec-server"};
    for (int i = 1; i <= OPTIONS_LIST_MAX + 1; i++)
        argv[i] = (char *)"--http-host=a";
    _cleanup_run_ struct run most = run_argv(1 + OPTIONS_LIST_MAX, argv);
    assert_int_equal(most.result, OPTIONS_RUN);
    assert_int_equal(most.o.http_host_count, OPTIONS_LIST_MAX);
    _cleanup_run_ struct run more = run_argv(2 + OPTIONS_LIST_MAX, argv);
    assert_int_equal(more.result, OPTIONS_USAGE);
    assert_non_null(strstr(more.err, "more than 16 names"));
    expect_file_error("`httpHosts`: `a`: more than 16 names",
                      "{\"httpHosts\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
                      "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}");
}

static void test_command_line_wins(void **state) {
    (void)state;
    _cleanup_run_ struct run r =
        RUN_FILE(everything, "--listen", "stdio", "--max-processes=1", "--http-host", "other",
                 "--allow-direct-exec", "true", "--closed-retention", "4", "--log-level", "warn",
                 "--audit-log", "/log");
    assert_int_equal(r.result, OPTIONS_ERROR); /* the file's authentication and stdio */

    _cleanup_run_ struct run ok =
        RUN_FILE("{\"listen\":\"stdio\",\"maxProcessesPerConnection\":7,\"httpHosts\":[\"box\"],"
                 "\"allowDirectExec\":false,\"closedRetentionMs\":1,\"logLevel\":\"off\","
                 "\"auditLog\":\"/file\",\"metrics\":false}",
                 "--listen", "unix:///x", "--max-processes=1", "--http-host", "other",
                 "--allow-direct-exec", "true", "--closed-retention", "4", "--log-level", "warn",
                 "--audit-log", "/log", "--metrics");
    assert_int_equal(ok.result, OPTIONS_RUN);
    assert_int_equal(ok.o.listen, OPTIONS_LISTEN_UNIX);
    assert_int_equal(ok.o.max_processes, 1);
    assert_int_equal(ok.o.http_host_count, 1);
    assert_string_equal(ok.o.http_hosts[0], "other");
    assert_true(ok.o.allow_direct_exec);
    assert_int_equal(ok.o.closed_retention_ms, 4000);
    assert_int_equal(ok.o.log_level, LOG_LEVEL_WARN);
    assert_string_equal(ok.o.audit_log, "/log");
    assert_true(ok.o.metrics);
}

static void test_environment_wins(void **state) {
    (void)state;
    setenv("EXEC_SERVER_LOG", "info", 1);
    _cleanup_run_ struct run r = RUN_FILE("{\"logLevel\":\"off\"}");
    assert_int_equal(r.o.log_level, LOG_LEVEL_INFO);
}

/* A member that the command line overrides is checked all the same. */
static void test_overridden_is_checked(void **state) {
    (void)state;
    write_text("config", "{\"maxConnections\":0}");
    expect_error("config file config: `maxConnections` must be between 1 and 1000000",
                 ARGS(FROM_FILE, "--max-connections", "9"));
}

static void test_auth_merge(void **state) {
    (void)state;
    const char *file = "{\"wsAuth\":\"capability-token\",\"wsTokenFile\":\"token\"}";
    _cleanup_run_ struct run plain = RUN_FILE(file);
    assert_int_equal(plain.o.auth.mode, AUTH_CAPABILITY);
    assert_non_null(plain.o.auth_file);

    _cleanup_run_ struct run digest = RUN_FILE(file, "--ws-token-sha256", DIGEST);
    assert_int_equal(digest.result, OPTIONS_RUN);
    assert_null(digest.o.auth_file);

    _cleanup_run_ struct run other = RUN_FILE(file, "--ws-token-file", "secret");
    assert_int_equal(other.result, OPTIONS_RUN);
    assert_non_null(strstr(other.o.auth_file, "/secret"));

    _cleanup_run_ struct run mode =
        RUN_FILE(file, "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "secret");
    assert_int_equal(mode.result, OPTIONS_RUN);
    assert_int_equal(mode.o.auth.mode, AUTH_SIGNED);

    /* --ws-auth sets the file's token aside, too. */
    expect_error("`--ws-token-file` or `--ws-token-sha256` is required when "
                 "`--ws-auth capability-token` is set",
                 ARGS(FROM_FILE, "--ws-auth", "capability-token"));
}

static void test_auth_errors(void **state) {
    (void)state;
    expect_file_error("`--ws-token-file` or `--ws-token-sha256` is required when "
                      "`--ws-auth capability-token` is set",
                      "{\"wsAuth\":\"capability-token\"}");
    expect_file_error("--ws-token-sha256 must be a 64-character hex SHA-256 digest",
                      "{\"wsAuth\":\"capability-token\",\"wsTokenSha256\":\"zz\"}");
    expect_file_error("`wsAuth` must be one of `capability-token`, `signed-bearer-token`",
                      "{\"wsAuth\":\"password\"}");
    expect_file_error("unknown key `wsToken`", "{\"wsToken\":\"hello\"}");
}

static void test_wrong_types(void **state) {
    (void)state;
    static const struct {
        const char *key, *reason;
        const char *values[6];
    } cases[] = {
        {"metrics", "must be true or false", {"1", "\"true\"", "null", "[]"}},
        {"allowDirectExec", "must be true or false", {"0", "\"\"", "{}"}},
        {"maxConnections", "must be a whole number", {"\"9\"", "1.5", "1e3", "true", "null"}},
        {"closedRetentionMs", "must be a whole number", {"0.5", "[1]"}},
        {"auditLog", "must be a string", {"1", "false", "[\"x\"]"}},
        {"listen", "must be a string", {"null", "{}"}},
        {"logLevel", "must be a string", {"2"}},
        {"httpHosts", "must be an array of host names", {"\"a\"", "[1]", "[\"a\",null]", "{}"}},
        {"auditLog", "must not be empty", {"\"\""}},
        {"auditLog", "must not contain a NUL character", {"\"a\\u0000b\""}},
        {"httpHosts", "must not contain a NUL character", {"[\"a\\u0000b\"]"}},
        {"logLevel",
         "must be one of `error`, `warn`, `info`, `debug`, `off`",
         {"\"loud\"", "\"\"", "\"ERROR\""}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t j = 0; j < ARRAY_LEN(cases[i].values) && cases[i].values[j] != NULL; j++) {
            char text[128], reason[256];
            snprintf(text, sizeof(text), "{\"%s\":%s}", cases[i].key, cases[i].values[j]);
            snprintf(reason, sizeof(reason), "`%s` %s", cases[i].key, cases[i].reason);
            expect_file_error(reason, text);
        }
    }
}

static void test_out_of_range(void **state) {
    (void)state;
    expect_file_error("`maxConnections` must be between 1 and 1000000", "{\"maxConnections\":0}");
    expect_file_error("`concurrentRequests` must be at least 1", "{\"concurrentRequests\":0}");
    expect_file_error("`retainedOutputBytesPerProcess` must be between 65536 and 16777216",
                      "{\"retainedOutputBytesPerProcess\":65535}");
    expect_file_error("`sessionTtlMs` must be at most 31536000000",
                      "{\"sessionTtlMs\":31536000001}");
    expect_file_error("`maxConnections` must be between 1 and 1000000", "{\"maxConnections\":-1}");
    expect_file_error("`closedRetentionMs` must be at most 31536000000",
                      "{\"closedRetentionMs\":18446744073709551616}");
    expect_file_error("`wsMaxClockSkewSeconds` is out of range", "{\"wsMaxClockSkewSeconds\":-1}");
    expect_file_error("`httpHosts`: `a b`: not a host name", "{\"httpHosts\":[\"a b\"]}");
    expect_file_error("`listen`: unsupported --listen URL `x`; expected `ws://IP:PORT` or `stdio`",
                      "{\"listen\":\"x\"}");
    _cleanup_run_ struct run most = RUN_FILE("{\"sessionTtlMs\":31536000000}");
    assert_int_equal(most.result, OPTIONS_RUN);
}

static void test_not_json(void **state) {
    (void)state;
    expect_file_error("must be a JSON object", "[]");
    expect_file_error("must be a JSON object", "null");
    expect_file_error("unknown key `bogus`", "{\"metrics\":true,\"bogus\":1}");
    expect_file_error("unknown key `Metrics`", "{\"Metrics\":true}");
    expect_file_error("unknown key ``", "{\"\":true}");
    static const char *const broken[] = {
        "", "{", "{}x", "{\"metrics\":true,}", "{\"metrics\":true,\"metrics\":true}", "// x\n{}"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        _cleanup_run_ struct run r = RUN_FILE(broken[i]);
        assert_int_equal(r.result, OPTIONS_ERROR);
        assert_ptr_equal(strstr(r.err, "Error: config file config: "), r.err);
    }
}

static void test_unreadable(void **state) {
    (void)state;
    expect_error("failed to read config file nope: No such file or directory (os error 2)",
                 ARGS("--config-file", "nope"));
    expect_error("failed to read config file sub: Is a directory (os error 21)",
                 ARGS("--config-file", "sub"));
    write_text("config", "{\"auditLog\":\"\xff\"}");
    expect_error("config file config is not valid UTF-8", ARGS(FROM_FILE));
}

static void test_size(void **state) {
    (void)state;
    char *text = malloc(CONFIG_FILE_MAX + 1);
    assert_non_null(text);
    memset(text, ' ', CONFIG_FILE_MAX + 1);
    memcpy(text, "{}", 2);
    write_bytes("config", text, CONFIG_FILE_MAX);
    expect_run(ARGS(FROM_FILE));
    write_bytes("config", text, CONFIG_FILE_MAX + 1);
    free(text);
    char message[64];
    snprintf(message, sizeof(message), "config file config is larger than %u bytes",
             CONFIG_FILE_MAX);
    expect_error(message, ARGS(FROM_FILE));
}

/* What is printed is a config file that prints the same. */
static void expect_round_trip(const char *const *args) {
    _cleanup_run_ struct run first = run_list(args);
    assert_string_equal(first.err, "");
    assert_int_equal(first.result, OPTIONS_EXIT_0);
    write_text("again", first.out);
    _cleanup_run_ struct run second = RUN("--config-file", "again", "--print-config");
    assert_string_equal(second.err, "");
    assert_string_equal(second.out, first.out);
}

static void test_print(void **state) {
    (void)state;
    expect_round_trip(ARGS("--print-config"));
    write_text("config", everything);
    expect_round_trip(ARGS(FROM_FILE, "--print-config"));
    expect_round_trip(ARGS("--print-config", "--listen", "fd://", "--audit-log", "a\"\\\n\x01"));
    expect_round_trip(ARGS("--print-config", "--ws-auth", "capability-token", "--ws-token-sha256",
                           DIGEST, "--listen", "unix:///run/x"));
    expect_round_trip(
        ARGS("--print-config", "--ws-auth", "capability-token", "--ws-token-file", "token"));
}

static void test_print_contents(void **state) {
    (void)state;
    _cleanup_run_ struct run r =
        RUN("--print-config", "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file",
            "secret", "--max-processes", "12", "--http-host", "a", "--http-host", "b");
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "  \"wsSharedSecretFile\": \"%s/secret\",\n", dir);
    assert_non_null(strstr(r.out, path));
    assert_non_null(strstr(r.out, "  \"maxProcessesPerConnection\": 12,\n"));
    assert_non_null(strstr(r.out, "  \"httpHosts\": [\"a\", \"b\"],\n"));
    assert_null(strstr(r.out, "0123456789abcdef")); /* the secret */
    assert_null(strstr(r.out, "auditLog"));
    assert_null(strstr(r.out, "wsTokenFile"));
}

static void test_print_errors(void **state) {
    (void)state;
    expect_error("failed to read config file nope: No such file or directory (os error 2)",
                 ARGS("--print-config", "--config-file", "nope"));
    expect_error("`auditLog` cannot be printed: it is not valid UTF-8",
                 ARGS("--print-config", "--audit-log", "bad\xff"));
    expect_usage("unexpected argument '--bogus' found", ARGS("--print-config", "--bogus"));
    char *argv[] = {(char *)"exec-server", (char *)"--print-config", NULL};
    struct options o;
    char *text = NULL;
    size_t n;
    FILE *full = fopen("/dev/full", "w");
    FILE *err = open_memstream(&text, &n);
    assert_non_null(full);
    assert_int_equal(options_parse(2, argv, &o, full, err), OPTIONS_ERROR);
    fclose(full);
    fclose(err);
    assert_string_equal(text, "Error: cannot write to standard output\n");
    free(text);
}

/* Every option that is neither ignored nor about printing has a key, each key once. */
static void test_keys(void **state) {
    (void)state;
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        const struct option_spec *spec = &options_table[id];
        assert_int_equal(spec->kind == OPTION_FLAG, spec->value == NULL);
        assert_int_equal(spec->kind == OPTION_CHOICE, spec->choices != NULL);
        if (spec->key == NULL)
            continue;
        assert_non_null(spec->help);
        assert_true(spec->initial >= spec->min || spec->kind == OPTION_BOOL);
        for (unsigned other = 0; other < id; other++)
            assert_true(options_table[other].key == NULL ||
                        strcmp(options_table[other].key, spec->key) != 0);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_empty),
                                       TEST(test_every_key),
                                       TEST(test_command_line),
                                       TEST(test_session_ttl_max),
                                       TEST(test_command_line_errors),
                                       TEST(test_too_many_hosts),
                                       TEST(test_command_line_wins),
                                       TEST(test_environment_wins),
                                       TEST(test_overridden_is_checked),
                                       TEST(test_auth_merge),
                                       TEST(test_auth_errors),
                                       TEST(test_wrong_types),
                                       TEST(test_out_of_range),
                                       TEST(test_not_json),
                                       TEST(test_unreadable),
                                       TEST(test_size),
                                       TEST(test_print),
                                       TEST(test_print_contents),
                                       TEST(test_print_errors),
                                       TEST(test_keys)};
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
