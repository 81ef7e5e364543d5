/*
 * The note beside a part file. An accepted one survives a round trip; whatever it holds, the names
 * made from it are names in one directory.
 */
#include "client/partnote.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(struct str name, const char *token) {
    char part[PARTNOTE_NAME_MAX + 1];
    partnote_part_name(name, token, part);
    REQUIRE(strlen(part) > 1 && strlen(part) <= PARTNOTE_NAME_MAX);
    REQUIRE(part[0] == '.' && strchr(part, '/') == NULL && strcmp(part, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct partnote note, again;
    if (partnote_read(&note, (struct str){(const char *)data, size}) < 0)
        return 0;
    _cleanup_buf_ struct buf b = BUF_INIT(PARTNOTE_TEXT_MAX);
    REQUIRE(partnote_write(&b, &note) == 0);
    REQUIRE(partnote_read(&again, buf_str(&b)) == 0);
    REQUIRE(partnote_matches(&note, &again) && strcmp(note.token, again.token) == 0);
    REQUIRE(note.has_older == again.has_older && strcmp(note.older, again.older) == 0);
    check_name(STR_LIT("name"), note.token);
    check_name(STR_LIT("name"), note.older);
    return 0;
}
