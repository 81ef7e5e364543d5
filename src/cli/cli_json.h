#pragma once
/* JSON on standard output: one document, or one per line. */

#include "base/buf.h"

#include <stdint.h>

#define CLI_JSON_MAX (256u << 20) /* bytes of a document */

/* Objects and arrays grow in a buffer; errors are kept and cli_json_print() reports them. */
struct cli_json {
    struct buf b;
    int error;
    bool comma; /* before the next member or element */
};

#define CLI_JSON_INIT ((struct cli_json){.b = BUF_INIT(CLI_JSON_MAX)})

void cli_json_fini(struct cli_json *j);
#define _cleanup_cli_json_ __attribute__((cleanup(cli_json_fini)))

/* `key` NULL: an element of an array, or the document. */
void cli_json_open(struct cli_json *j, const char *key, char bracket);
void cli_json_close(struct cli_json *j, char bracket);

/* A string; bytes that are no UTF-8 become '?'. `s` without a pointer is null. */
void cli_json_str(struct cli_json *j, const char *key, struct str s);
void cli_json_int(struct cli_json *j, const char *key, int64_t v);
void cli_json_u64(struct cli_json *j, const char *key, uint64_t v);
void cli_json_bool(struct cli_json *j, const char *key, bool v);
void cli_json_null(struct cli_json *j, const char *key);
/* A value that is JSON text already. */
void cli_json_raw(struct cli_json *j, const char *key, struct str text);
/* Bytes as Base64. */
void cli_json_bytes(struct cli_json *j, const char *key, const void *p, size_t n);
/* A path: as a string, and if it is no UTF-8 as KEYBase64 too. */
void cli_json_path(struct cli_json *j, const char *key, struct str path);

/* Writes the document and a newline to `fd` and empties it. 0 or -errno. */
MUST_CHECK int cli_json_print(struct cli_json *j, int fd);
