/*
 * A message up to the point where it would act: text, envelope, params. The input is one JSON-RPC
 * message; its params go to the decoder of every method. A refusal must come with a code and a text
 * that can be sent.
 */
#include "base/utf8.h"
#include "rpc/envelope.h"
#include "app/methods.h"
#include "console/console_methods.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct err *e) {
    struct str text = err_str(e);
    REQUIRE(e->code != 0 && text.n > 0 && text.n <= ERR_MSG_MAX);
    REQUIRE(utf8_valid(text.p, text.n));
}

static void decode_params(const struct rpc_method *m, const struct json_node *v, struct err *e) {
    _Alignas(max_align_t) char params[RPC_PARAMS_MAX];
    if (m->decode(v, params, e) < 0)
        check_refusal(e);
    if (m->release != NULL)
        m->release(params);
}

/* Decoders may write into the text: each gets its own. */
static void decode(const struct rpc_method *m, const uint8_t *data, size_t size) {
    _cleanup_free_ char *text = malloc(size + 1);
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc d;
    struct envelope env;
    REQUIRE(text != NULL);
    memcpy(text, data, size);
    json_doc_init(&d, TEXT_MAX, 1);
    if (json_parse(&d, text, size, &e) < 0 || envelope_read(json_root(&d), &env, &e) < 0)
        check_refusal(&e);
    else
        decode_params(m, env.params, &e);
    json_doc_fini(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > TEXT_MAX || !utf8_valid((const char *)data, size))
        return 0;
    for (size_t i = 0; i < methods_count; i++)
        decode(&methods_table[i], data, size);
    for (size_t i = 0; i < console_methods_count; i++)
        decode(&console_methods_table[i], data, size);
    return 0;
}
