/* Command lines of xs, words separated by NUL: what is accepted is what the table allows. Each word
 * is also read as a time, and shown by the meter. */

#include "cli/cli_args.h"
#include "cli/cli_meter.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cli_args *a, size_t argc) {
    REQUIRE(a->operand_count < argc && a->pair_count < argc);
    REQUIRE(a->operands[a->operand_count] == NULL);
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        const struct cli_option_spec *o = &cli_table_options[i];
        REQUIRE(a->count[i] == 0 || cli_table_takes(a->command, (enum cli_option)i));
        REQUIRE(a->value[i] == NULL || o->value != NULL);
        if (a->count[i] > 0 && (o->kind == CLI_NUMBER || o->kind == CLI_DURATION))
            REQUIRE(a->number[i] >= o->min && a->number[i] <= o->max);
    }
}

static void word(const char *text) {
    char line[CLI_METER_LINE];
    int64_t ms = -1;
    if (cli_args_duration(text, &ms) == 0)
        REQUIRE(ms >= 0);
    struct cli_meter m = {.file = text, .bytes = strlen(text), .total = 7, .rate = 1};
    cli_meter_line(&m, (unsigned)strlen(text), line);
    REQUIRE(strlen(line) < sizeof line && utf8_valid(line, strlen(line)));
    for (const char *p = line; *p != '\0'; p++)
        REQUIRE((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *argv[WORDS_MAX + 1] = {"xs"};
    size_t argc = 1;
    char *text = malloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (char *p = text; argc < WORDS_MAX && p < text + size; p += strlen(p) + 1) {
        word(p);
        argv[argc++] = p;
    }
    struct cli_args args;
    struct err e = ERR_INIT;
    int r = cli_args_parse((int)argc, argv, &args, &e);
    if (r == 0 && args.count[CLI_OPT_HELP] == 0 && args.count[CLI_OPT_VERSION] == 0)
        check(&args, argc);
    else if (r < 0)
        REQUIRE(err_msg(&e)[0] != '\0');
    cli_args_fini(&args);
    err_fini(&e);
    free(text);
    return 0;
}
