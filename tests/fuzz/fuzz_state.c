/* State files of xs: what is accepted, written out again, is accepted and the same. */

#include "cli/cli_state.h"

#include <stdint.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = ERR_INIT;
    struct cli_state s, again;
    struct buf first = BUF_INIT(8 * CLI_STATE_MAX), second = BUF_INIT(8 * CLI_STATE_MAX);
    if (cli_state_decode((struct str){(const char *)data, size}, &s, &e) < 0) {
        REQUIRE(e.code != 0);
        err_fini(&e);
        return 0;
    }
    REQUIRE(cli_state_encode(&s, &first) == 0);
    if (first.len <= CLI_STATE_MAX) {
        REQUIRE(cli_state_decode(buf_str(&first), &again, &e) == 0);
        REQUIRE(cli_state_encode(&again, &second) == 0);
        REQUIRE(str_eq(buf_str(&first), buf_str(&second)));
        cli_state_fini(&again);
    }
    cli_state_fini(&s);
    buf_fini(&first);
    buf_fini(&second);
    return 0;
}
