#include "cli/cli_modes.h"

#include "base/util.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 100000 /* larger parameters name no mode */
#define BIT(i) (UINT32_C(1) << (i))

enum { SCAN_TEXT, SCAN_ESCAPE, SCAN_CSI, SCAN_PRIVATE, SCAN_OTHER };

/* Of "CSI ? number h"; `inverse`: on is the usual state. The alternate screen is left last. */
static const struct {
    uint16_t number;
    bool inverse;
} modes[] = {
    {9, false},    {1000, false}, {1001, false}, {1002, false}, {1003, false}, {1004, false},
    {1005, false}, {1006, false}, {1015, false}, {1016, false}, {2004, false}, {1, false},
    {25, true},    {7, true},     {47, false},   {1047, false}, {1049, false},
};

#define KEYPAD BIT(ARRAY_LEN(modes)) /* ESC = */

static uint32_t mode_bit(uint32_t number) {
    for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
        if (modes[i].number == number)
            return BIT(i);
    }
    return 0;
}

static void end_of_sequence(struct cli_modes *m, char c) {
    m->seen |= mode_bit(m->number);
    for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
        if ((m->seen & BIT(i)) == 0 || (c != 'h' && c != 'l'))
            continue;
        if ((c == 'h') != modes[i].inverse)
            m->on |= BIT(i);
        else
            m->on &= ~BIT(i);
    }
}

static uint8_t after_escape(struct cli_modes *m, char c) {
    if (c == '[')
        return SCAN_CSI;
    if (c == 'c') /* reset of everything */
        m->on = 0;
    if (c == '=')
        m->on |= KEYPAD;
    if (c == '>')
        m->on &= ~KEYPAD;
    return c == '\033' ? SCAN_ESCAPE : SCAN_TEXT;
}

/* Parameters of a private sequence, "?" read. */
static uint8_t in_private(struct cli_modes *m, char c) {
    if (c >= '0' && c <= '9') {
        if (m->number < NUMBER_MAX)
            m->number = m->number * 10 + (uint32_t)(c - '0');
        return SCAN_PRIVATE;
    }
    if (c == ';' || c == ':') {
        m->seen |= mode_bit(m->number);
        m->number = 0;
        return SCAN_PRIVATE;
    }
    if (c == '\033')
        return SCAN_ESCAPE;
    if (c < 0x40)
        return c < 0x20 ? SCAN_PRIVATE : SCAN_OTHER; /* controls act inside a sequence */
    end_of_sequence(m, c);
    return SCAN_TEXT;
}

static uint8_t step(struct cli_modes *m, char c) {
    switch (m->state) {
    case SCAN_ESCAPE: return after_escape(m, c);
    case SCAN_CSI:
        if (c == '?') {
            m->number = m->seen = 0;
            return SCAN_PRIVATE;
        }
        /* fall through */
    case SCAN_OTHER: /* to the end of a sequence that is none of ours */
        if (c == '\033')
            return SCAN_ESCAPE;
        return c >= 0x40 && c < 0x7f ? SCAN_TEXT : SCAN_OTHER;
    case SCAN_PRIVATE: return in_private(m, c);
    default: return c == '\033' ? SCAN_ESCAPE : SCAN_TEXT;
    }
}

void cli_modes_feed(struct cli_modes *m, const char *p, size_t n) {
    for (const char *end = p + n; p < end; p++) {
        if (m->state == SCAN_TEXT) {
            p = memchr(p, '\033', (size_t)(end - p));
            if (p == NULL)
                return;
        }
        m->state = step(m, *p);
    }
}

size_t cli_modes_restore(const struct cli_modes *m, char out[CLI_MODES_RESTORE_MAX]) {
    size_t n = 0;
    if ((m->on & KEYPAD) != 0)
        n += (size_t)snprintf(out, CLI_MODES_RESTORE_MAX, "\033>");
    for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
        if ((m->on & BIT(i)) != 0)
            n += (size_t)snprintf(out + n, CLI_MODES_RESTORE_MAX - n, "\033[?%u%c",
                                  (unsigned)modes[i].number, modes[i].inverse ? 'h' : 'l');
    }
    return n;
}
