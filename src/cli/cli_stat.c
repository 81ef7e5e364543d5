#include "cli/cli_stat.h"

#include "base/utc.h"
#include "cli/cli_say.h"

#include <stdbool.h>

#define MODE_UNKNOWN ~0u

void cli_stat_mode(const struct xs_stat *st, char out[11]) {
    static const char kinds[] = {[XS_KIND_OTHER] = 's',
                                 [XS_KIND_FILE] = '-',
                                 [XS_KIND_DIRECTORY] = 'd',
                                 [XS_KIND_LINK] = 'l'};
    static const char letters[] = "rwxrwxrwx";
    bool known = st->mode != MODE_UNKNOWN;
    out[0] = st->is_link ? 'l' : kinds[st->kind & 3];
    for (unsigned i = 0; i < 9; i++)
        out[i + 1] = !known ? '?' : (st->mode & (0400u >> i)) != 0 ? letters[i] : '-';
    if (known && (st->mode & 04000) != 0)
        out[3] = out[3] == 'x' ? 's' : 'S';
    if (known && (st->mode & 02000) != 0)
        out[6] = out[6] == 'x' ? 's' : 'S';
    if (known && (st->mode & 01000) != 0)
        out[9] = out[9] == 'x' ? 't' : 'T';
    out[10] = '\0';
}

void cli_stat_time(int64_t ms, char out[32]) {
    struct utc t = utc_of(ms / 1000);
    if (ms == 0 || t.year < 0 || t.year > 9999)
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%04d-%02u-%02u %02u:%02uZ", (int)t.year, t.month % 100, t.day % 100,
                 t.hour % 100, t.minute % 100);
}

static const char *kind_text(const struct xs_stat *st) {
    static const char *const texts[] = {[XS_KIND_OTHER] = "special file",
                                        [XS_KIND_FILE] = "file",
                                        [XS_KIND_DIRECTORY] = "directory",
                                        [XS_KIND_LINK] = "link"};
    return st->is_link ? "link" : texts[st->kind & 3];
}

void cli_stat_print(FILE *out, const char *path, const struct xs_stat *st) {
    char mode[11], created[32], modified[32];
    cli_stat_mode(st, mode);
    cli_stat_time(st->created_ms, created);
    cli_stat_time(st->modified_ms, modified);
    cli_say_text(out, str_of(path));
    fprintf(out, ": %s, %llu bytes", kind_text(st), (unsigned long long)st->bytes);
    if (st->mode != MODE_UNKNOWN)
        fprintf(out, ", mode %04o (%s)", st->mode & 07777, mode);
    fprintf(out, "\n  modified %s, created %s\n", modified, created);
}

void cli_stat_json(struct cli_json *j, const struct xs_stat *st) {
    cli_json_bool(j, "isDirectory", st->kind == XS_KIND_DIRECTORY);
    cli_json_bool(j, "isFile", st->kind == XS_KIND_FILE);
    cli_json_bool(j, "isSymlink", st->is_link);
    cli_json_u64(j, "size", st->bytes);
    if (st->mode != MODE_UNKNOWN)
        cli_json_u64(j, "mode", st->mode & 07777);
    else
        cli_json_null(j, "mode");
    cli_json_int(j, "createdAtMs", st->created_ms);
    cli_json_int(j, "modifiedAtMs", st->modified_ms);
}
