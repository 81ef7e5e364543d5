#pragma once
/* Builds DNS messages for tests, byte by byte and independent of the code under test. */

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MESSAGE_QUESTION 0xC00C /* a pointer to the name of the question */

struct message {
    size_t n;
    uint8_t b[65535];
};

static inline void put_u16(struct message *m, unsigned v) {
    assert_in_range(m->n + 2, 0, sizeof m->b);
    m->b[m->n++] = (uint8_t)(v >> 8);
    m->b[m->n++] = (uint8_t)v;
}

static inline void put_bytes(struct message *m, const void *p, size_t n) {
    assert_in_range(m->n + n, 0, sizeof m->b);
    memcpy(m->b + m->n, p, n);
    m->n += n;
}

/* "a.b" as labels. */
static inline void put_name(struct message *m, const char *text) {
    while (*text != '\0') {
        size_t n = strcspn(text, ".");
        uint8_t len = (uint8_t)n;
        put_bytes(m, &len, 1);
        put_bytes(m, text, n);
        text += n + (text[n] == '.');
    }
    put_bytes(m, "", 1);
}

/* Header and question of an answer; `flags` are QR, RD, RA and what is added. */
static inline void message_begin(struct message *m, unsigned id, unsigned flags, const char *name,
                                 unsigned type) {
    m->n = 0;
    put_u16(m, id);
    put_u16(m, 0x8180 | flags);
    put_u16(m, 1);
    for (int i = 0; i < 3; i++)
        put_u16(m, 0);
    put_name(m, name);
    put_u16(m, type);
    put_u16(m, 1);
}

/* One more record; its data must follow. The owner is a name, or NULL for that of the question. */
static inline void message_record(struct message *m, const char *owner, unsigned type, size_t len) {
    m->b[7]++;
    m->b[6] = (uint8_t)(m->b[6] + (m->b[7] == 0));
    if (owner != NULL)
        put_name(m, owner);
    else
        put_u16(m, MESSAGE_QUESTION);
    put_u16(m, type);
    put_u16(m, 1);
    put_u16(m, 0);
    put_u16(m, 60);
    put_u16(m, (unsigned)len);
}

/* An address as text. */
static inline void message_addr(struct message *m, const char *owner, const char *text) {
    uint8_t addr[16];
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    size_t n = family == AF_INET6 ? 16 : 4;
    assert_int_equal(inet_pton(family, text, addr), 1);
    message_record(m, owner, n == 16 ? 28 : 1, n);
    put_bytes(m, addr, n);
}

static inline void message_alias(struct message *m, const char *owner, const char *target) {
    message_record(m, owner, 5, strlen(target) + 2);
    put_name(m, target);
}
