/*
 * Frames of the wrapper protocol, both directions, and the scripts of shells that a wrapper asks
 * about. An accepted request survives a round trip; descriptors are distinct and below 64; the
 * search for commands ends, and its words lie in memory of ours.
 */
#include "base/utf8.h"
#include "escalate/escalate_wire.h"
#include "rules/decide_danger.h"
#include "rules/decide_script.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool each(void *user, const struct str *words, size_t n) {
    size_t *sum = user;
    REQUIRE(n > 0);
    for (size_t i = 0; i < n; i++)
        *sum += words[i].n + (words[i].n > 0 ? (unsigned char)words[i].p[words[i].n - 1] : 0);
    return true;
}

static void read_script(struct str text) {
    _cleanup_arena_ struct arena a = ARENA_INIT(64u << 20);
    struct str words[] = {STR_LIT("sh"), STR_LIT("-c"), text};
    size_t sum = 0;
    REQUIRE(decide_script(text, false, &a, each, &sum) != DECIDE_SCRIPT_STOP);
    REQUIRE(decide_script(text, true, &a, each, &sum) != DECIDE_SCRIPT_STOP);
    (void)decide_danger(words, 3, false, &a);
    (void)decide_danger(words, 3, true, &a);
}

static void read_request(struct json_doc *doc, struct str body) {
    _cleanup_arena_ struct arena a = ARENA_INIT(32u << 20);
    _cleanup_buf_ struct buf b = BUF_INIT(8u << 20);
    _cleanup_err_ struct err e = ERR_INIT;
    struct escalate_request q, again;
    if (escalate_wire_get_request(doc, body, &a, &q, &e) < 0)
        return;
    REQUIRE(q.argv[q.argc] == NULL);
    if (escalate_wire_put_request(&b, &q) < 0)
        return;
    REQUIRE(escalate_wire_get_request(doc, buf_str(&b), &a, &again, &e) == 0);
    REQUIRE(again.argc == q.argc && strcmp(again.file, q.file) == 0);
    for (size_t i = 0; i < q.argc; i++)
        REQUIRE(strcmp(q.argv[i], again.argv[i]) == 0);
}

static void read_others(struct json_doc *doc, struct str body) {
    _cleanup_err_ struct err e = ERR_INIT;
    enum escalate_action action;
    struct escalate_result result;
    struct str reason;
    int numbers[ESCALATE_FDS];
    bool group;
    int n = escalate_wire_get_fds(doc, body, numbers, &e);
    for (int i = 0; i < n; i++) {
        REQUIRE(numbers[i] >= 0 && numbers[i] < 64);
        for (int k = 0; k < i; k++)
            REQUIRE(numbers[i] != numbers[k]);
    }
    if (escalate_wire_get_response(doc, body, &action, &reason, &e) == 0)
        REQUIRE(action == ESCALATE_DENY || reason.p == NULL);
    if (escalate_wire_get_result(doc, body, &result, &e) == 0)
        REQUIRE(result.exit_code >= 0 && result.exit_code < 256 && result.signal <= 64);
    int signo = escalate_wire_get_signal(doc, body, &group);
    REQUIRE(signo >= 0 && signo <= 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_doc doc;
    struct str body = {(const char *)data, size};
    json_doc_init(&doc, 8u << 20, 1);
    read_request(&doc, body);
    read_others(&doc, body);
    read_script(body);
    json_doc_fini(&doc);
    return 0;
}
