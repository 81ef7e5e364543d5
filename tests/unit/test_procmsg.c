#include "client/procmsg.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct json_doc doc;

static const struct json_node *parse(const char *text) {
    struct err e = ERR_INIT;
    json_doc_fini(&doc);
    json_doc_init(&doc, 1 << 20, 1);
    assert_int_equal(json_parse(&doc, text, strlen(text), &e), 0);
    return json_root(&doc);
}

static struct procmsg_note noted;

static int note(const char *method, const char *params) {
    return procmsg_note(str_of(method), params != NULL ? parse(params) : NULL, &noted);
}

static void test_output(void **state) {
    (void)state;
    assert_int_equal(note("process/output",
                          "{\"processId\":\"p\",\"seq\":3,\"stream\":\"stderr\",\"chunk\":\"aGk=\","
                          "\"more\":[]}"),
                     0);
    assert_int_equal(noted.type, PROCMSG_OUTPUT);
    assert_true(str_eqz(noted.id, "p") && !noted.viewed);
    assert_int_equal(noted.chunk.seq, 3);
    assert_int_equal(noted.chunk.stream, EVQUEUE_STDERR);
    assert_true(str_eqz(noted.chunk.base64, "aGk="));
    static const char *const bad[] = {
        "{\"seq\":3,\"stream\":\"stderr\",\"chunk\":\"\"}",
        "{\"processId\":1,\"seq\":3,\"stream\":\"stderr\",\"chunk\":\"\"}",
        "{\"processId\":\"p\",\"seq\":-3,\"stream\":\"stderr\",\"chunk\":\"\"}",
        "{\"processId\":\"p\",\"seq\":3,\"stream\":\"stdin\",\"chunk\":\"\"}",
        "{\"processId\":\"p\",\"seq\":3,\"stream\":\"pty\",\"chunk\":null}",
        "{\"processId\":\"p\",\"stream\":\"pty\",\"chunk\":\"\"}",
        "[]",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(note("process/output", bad[i]), -EPROTO);
    assert_int_equal(note("process/output", NULL), -EPROTO);
    assert_int_equal(note("fs/changed", NULL), 0);
    assert_int_equal(noted.type, PROCMSG_OTHER);
}

static void test_ends(void **state) {
    (void)state;
    assert_int_equal(note("process/exited",
                          "{\"processId\":\"p\",\"seq\":1,\"exitCode\":137,\"signal\":"
                          "\"SIGKILL\",\"sandboxDenied\":true,\"timedOut\":true,\"resources\":"
                          "{\"userTimeMs\":1,\"systemTimeMs\":2,\"wallTimeMs\":3,"
                          "\"peakMemoryBytes\":null}}"),
                     0);
    assert_int_equal(noted.exit.code, 137);
    assert_int_equal(noted.exit.signal, SIGKILL);
    assert_true(noted.exit.sandbox_denied && noted.exit.timed_out && noted.exit.resources);
    assert_int_equal(noted.exit.wall_ms, 3);
    assert_int_equal(noted.exit.peak_bytes, 0);
    /* Old servers tell less. */
    assert_int_equal(note("process/exited", "{\"processId\":\"p\",\"seq\":1}"), 0);
    assert_int_equal(noted.exit.code, -1);
    assert_false(noted.exit.resources);
    assert_int_equal(note("process/exited", "{\"processId\":\"p\",\"seq\":1,\"exitCode\":\"x\"}"),
                     -EPROTO);
    assert_int_equal(note("process/closed", "{\"processId\":\"p\",\"seq\":2,\"attachId\":9}"), 0);
    assert_true(noted.viewed && noted.attach == 9 && noted.seq == 2);
    assert_int_equal(note("process/closed", "{\"processId\":\"p\"}"), -EPROTO);
}

static void test_views(void **state) {
    (void)state;
    assert_int_equal(
        note("process/attachGap", "{\"attachId\":1,\"processId\":\"p\",\"fromSeq\":4,\"toSeq\":9}"),
        0);
    assert_true(noted.seq == 4 && noted.to == 9);
    assert_int_equal(
        note("process/attachGap", "{\"attachId\":1,\"processId\":\"p\",\"fromSeq\":4,\"toSeq\":3}"),
        -EPROTO);
    assert_int_equal(note("process/attachGap", "{\"processId\":\"p\",\"fromSeq\":4,\"toSeq\":5}"),
                     -EPROTO);
    assert_int_equal(note("process/detached", "{\"attachId\":1,\"processId\":\"p\"}"), 0);
    assert_int_equal(note("process/detached", "{\"processId\":\"p\"}"), -EPROTO);
}

static void test_page(void **state) {
    (void)state;
    struct procmsg_page p;
    assert_int_equal(
        procmsg_page(parse("{\"chunks\":[{\"seq\":1,\"stream\":\"stdout\",\"chunk\":\"YQ==\"},"
                           "{\"seq\":3,\"stream\":\"pty\",\"chunk\":\"\"}],\"nextSeq\":5,"
                           "\"exited\":true,\"closed\":false,\"exitCode\":7,\"failure\":null,"
                           "\"sandboxDenied\":false}"),
                     &p),
        0);
    assert_int_equal(p.count, 2);
    assert_int_equal(p.chunks[1].seq, 3);
    assert_true(p.exited && !p.closed && p.exit.code == 7 && p.next_seq == 5);
    procmsg_page_fini(&p);
    static const char *const bad[] = {
        "1",
        "{\"nextSeq\":5}",
        "{\"chunks\":[]}",
        "{\"chunks\":[1],\"nextSeq\":5}",
        "{\"chunks\":[],\"nextSeq\":5,\"exited\":1}",
        "{\"chunks\":[],\"nextSeq\":5.5}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(procmsg_page(parse(bad[i]), &p), -EPROTO);
}

static void test_others(void **state) {
    (void)state;
    enum procmsg_status status;
    assert_int_equal(procmsg_status(parse("{\"status\":\"stdinClosed\"}"), &status), 0);
    assert_int_equal(status, PROCMSG_STDIN_CLOSED);
    assert_int_equal(procmsg_status(parse("{\"status\":\"what\"}"), &status), -EPROTO);
    assert_int_equal(procmsg_status(parse("null"), &status), -EPROTO);
    struct procmsg_exit exit;
    const struct json_node *list =
        parse("{\"processes\":[{\"processId\":\"a\",\"exitCode\":1},{\"processId\":\"b\","
              "\"exitCode\":2,\"resources\":{\"userTimeMs\":5}}]}");
    assert_true(procmsg_list_find(list, STR_LIT("b"), &exit));
    assert_true(exit.code == 2 && exit.user_ms == 5 && exit.resources);
    assert_false(procmsg_list_find(list, STR_LIT("c"), &exit));
    assert_false(procmsg_list_find(parse("[]"), STR_LIT("c"), &exit));
    struct procmsg_snapshot s;
    const char *text =
        "{\"stdout\":\"YWI=\",\"stderr\":\"\",\"terminal\":\"\",\"streams\":{\"stdout\":"
        "{\"headBytes\":1,\"tailBytes\":1,\"omittedBytes\":3,\"totalBytes\":5},\"stderr\":"
        "{\"headBytes\":0,\"tailBytes\":0,\"omittedBytes\":0,\"totalBytes\":0},\"terminal\":"
        "{\"headBytes\":0,\"tailBytes\":0,\"omittedBytes\":0,\"totalBytes\":0}},\"exited\":true,"
        "\"closed\":true,\"exitCode\":0}";
    assert_int_equal(procmsg_snapshot(parse(text), &s), 0);
    assert_true(s.parts[0].total == 5 && s.parts[0].omitted == 3 && s.closed);
    assert_int_equal(procmsg_snapshot(parse("{\"stdout\":\"\"}"), &s), -EPROTO);
}

static void test_signals(void **state) {
    (void)state;
    assert_string_equal(procmsg_signal_word(SIGTERM), "terminate");
    assert_null(procmsg_signal_word(SIGSEGV));
    assert_null(procmsg_signal_word(0));
    assert_int_equal(procmsg_signal_number(STR_LIT("SIGINT")), SIGINT);
    assert_int_equal(procmsg_signal_number(STR_LIT("SEGV")), SIGSEGV);
    assert_int_equal(procmsg_signal_number(STR_LIT("SIGRTMIN+3")), SIGRTMIN + 3);
    assert_int_equal(procmsg_signal_number(STR_LIT("SIGRTMIN+99")), 0);
    assert_int_equal(procmsg_signal_number(STR_LIT("SIGNONE")), 0);
    assert_int_equal(procmsg_signal_number(STR_LIT("")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_views),  cmocka_unit_test(test_page),
        cmocka_unit_test(test_others), cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
