/*
 * Answers to the client's fs requests. Names stay below the directory that was asked about, data
 * has no more bytes than were asked for.
 */
#include "base/utf8.h"
#include "client/fsanswer.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)
#define BLOCK 16
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check_item(void *user, const struct fsanswer_item *i) {
    (void)user;
    REQUIRE(i->name[0] != '/' && (i->name[0] != '\0' || i->message != NULL));
    REQUIRE(i->target == NULL || (i->kind == FSANSWER_LINK && i->target[0] != '\0'));
    for (const char *p = i->name; *p != '\0';) {
        size_t n = strcspn(p, "/");
        REQUIRE(n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && memcmp(p, "..", 2) == 0));
        p += n + (p[n] == '/');
        REQUIRE(p[-1] != '/' || *p != '\0');
    }
    return 0;
}

static void check_strings(const struct json_node *v) {
    struct fsanswer_stat s;
    struct fsanswer_change c;
    char *text = NULL;
    bool flag;
    if (fsanswer_stat(v, &s) == 0)
        REQUIRE(s.mode <= 07777);
    if (fsanswer_path(v, &text) == 0)
        REQUIRE(text[0] == '/');
    free(text);
    text = NULL;
    int r = fsanswer_walk(v, "/r", check_item, NULL, &flag);
    r |= fsanswer_walk(v, "/", check_item, NULL, &flag) | fsanswer_list(v, check_item, NULL);
    r |= fsanswer_watching(v, &flag) | fsanswer_change(v, &c);
    if (r >= 0 || fsanswer_target(v, &text) == 0)
        REQUIRE(r >= 0 || (text[0] != '\0' && strlen(text) < 4096));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > TEXT_MAX || !utf8_valid((const char *)data, size))
        return 0;
    (void)fsanswer_errno((struct str){(const char *)data, size});
    /* Base64 is decoded in place: each reader gets its own text. */
    for (int i = 0; i < 2; i++) {
        struct json_doc d;
        struct err e = ERR_INIT;
        struct str got;
        bool eof;
        char *text = malloc(size + 1);
        REQUIRE(text != NULL);
        memcpy(text, data, size);
        json_doc_init(&d, TEXT_MAX, 1);
        if (json_parse(&d, text, size, &e) < 0)
            REQUIRE(e.code != 0);
        else if (i == 0)
            check_strings(json_root(&d));
        else if (fsanswer_block(json_root(&d), BLOCK, &got, &eof) == 0)
            REQUIRE(got.n <= BLOCK && (eof || got.n == BLOCK));
        json_doc_fini(&d);
        err_fini(&e);
        free(text);
    }
    return 0;
}
