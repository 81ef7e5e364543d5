#include "cli/cli_text.h"

#include "base/utf8.h"

/* Characters without a picture that change how others are shown. */
static bool is_hidden(uint32_t c) {
    return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static int put_one(struct buf *b, const char *p, size_t n, uint32_t c) {
    if (c > 0x10ffff || c < 0x20 || c == 0x7f)
        return buf_putf(b, "\\x%02x", (unsigned)(unsigned char)*p);
    if (is_hidden(c))
        return buf_putf(b, "\\u{%04x}", (unsigned)c);
    return buf_put(b, p, n);
}

int cli_text_put(struct buf *b, struct str s) {
    while (s.n > 0) {
        uint32_t c;
        size_t n = utf8_decode(s.p, s.n, &c);
        int r = put_one(b, s.p, n, c);
        if (r < 0)
            return r;
        s.p += n;
        s.n -= n;
    }
    return 0;
}

char *cli_text_dup(struct str s, size_t max) {
    struct buf b = BUF_INIT(SIZE_MAX / 2);
    bool cut = s.n > max;
    if (cut)
        s.n = max;
    if (cli_text_put(&b, s) < 0 || (cut && buf_putz(&b, "...") < 0) || buf_putc(&b, '\0') < 0)
        buf_fini(&b);
    return b.p;
}
