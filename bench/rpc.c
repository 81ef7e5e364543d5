#include "rpc.h"

#include "util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX 2048
#define SCAN 512

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Finds the value after `key` (written as "\"name\":") in the first or last SCAN bytes, and only
// then anywhere. NULL when absent.
static const char *find_value(const struct ws_message *w, const char *key) {
    size_t key_len = strlen(key);
    size_t head = w->len < SCAN ? w->len : SCAN;
    const char *p = memmem(w->data, head, key, key_len);

    if (p == NULL && w->len > head)
        p = memmem(w->data + w->len - head, head, key, key_len);
    if (p == NULL && w->len > 2 * head)
        p = memmem(w->data, w->len, key, key_len);
    return p == NULL ? NULL : p + key_len;
}

static int64_t find_integer(const struct ws_message *w, const char *key) {
    const char *p = find_value(w, key);
    const char *end = w->data + w->len;
    bool negative = false;
    int64_t v = 0;

    if (p == NULL)
        fail("no %s in: %.*s", key, (int)(w->len < 200 ? w->len : 200), w->data);
    if (p < end && *p == '-') {
        negative = true;
        p++;
    }
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

// Whether the `len` characters at `p` are free of a quote near their end, where a further member
// of the object would show.
static bool ends_plain(const char *p, size_t len) {
    size_t look = len < 64 ? len : 64;

    return memchr(p + len - look, '"', look) == NULL;
}

static void scan_output(const struct ws_message *w, struct msg *m) {
    const char *p = find_value(w, "\"chunk\":\"");
    const char *end = w->data + w->len;

    if (p == NULL)
        fail("an output notification without a chunk");
    m->chunk = p;
    // The usual case, chunk as the last member, needs no look at the text itself.
    if (end - p >= 3 && memcmp(end - 3, "\"}}", 3) == 0 && ends_plain(p, (size_t)(end - 3 - p))) {
        m->chunk_len = (size_t)(end - 3 - p);
        return;
    }
    end = memchr(p, '"', (size_t)(end - p));
    if (end == NULL)
        fail("a chunk without an end");
    m->chunk_len = (size_t)(end - p);
}

static void scan(const struct ws_message *w, struct msg *m) {
    struct ws_message head = {.data = w->data, .len = w->len < 128 ? w->len : 128};
    const char *method = find_value(&head, "\"method\":\"");

    memset(m, 0, sizeof *m);
    m->kind = MSG_OTHER;
    if (method == NULL) {
        if (find_value(&head, "\"error\":") != NULL)
            fail("error answer: %.*s", (int)(w->len < 400 ? w->len : 400), w->data);
        m->kind = MSG_RESPONSE;
        m->id = (uint64_t)find_integer(w, "\"id\":");
        return;
    }
    if (strncmp(method, "process/output\"", 15) == 0) {
        m->kind = MSG_OUTPUT;
        scan_output(w, m);
    } else if (strncmp(method, "process/exited\"", 15) == 0) {
        m->kind = MSG_EXITED;
        m->exit_code = find_integer(w, "\"exitCode\":");
    } else if (strncmp(method, "process/closed\"", 15) == 0) {
        m->kind = MSG_CLOSED;
    } else {
        return;
    }
    m->seq = (uint64_t)find_integer(w, "\"seq\":");
    m->proc = (uint64_t)find_integer(w, "\"processId\":\"p");
}

void rpc_next(struct rpc *r, struct msg *m) {
    struct ws_message w;

    ws_next(&r->ws, &w);
    scan(&w, m);
}

uint64_t rpc_request(struct rpc *r, const char *method, const char *params) {
    char text[REQUEST_MAX];
    uint64_t id = r->next_id++;
    int len = snprintf(text, sizeof text, "{\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":%s}",
                       id, method, params);

    if (len < 0 || (size_t)len >= sizeof text)
        fail("request too long");
    ws_queue(&r->ws, text, (size_t)len);
    return id;
}

void rpc_flush(struct rpc *r) {
    ws_flush(&r->ws);
}

void rpc_open(struct rpc *r, uint16_t port) {
    static const char initialized[] = "{\"method\":\"initialized\",\"params\":{}}";
    struct msg m;
    uint64_t id;

    r->next_id = 1;
    ws_open(&r->ws, port);
    id = rpc_request(r, "initialize", "{\"clientName\":\"bench\"}");
    rpc_flush(r);
    rpc_next(r, &m);
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("initialize was not answered first");
    ws_queue(&r->ws, initialized, sizeof initialized - 1);
    rpc_flush(r);
}

void rpc_close(struct rpc *r) {
    ws_close(&r->ws);
}

uint64_t rpc_start(struct rpc *r, const struct launch *l) {
    char params[REQUEST_MAX];
    size_t used = 0;

    used += (size_t)snprintf(params, sizeof params, "{\"processId\":\"p%" PRIu64 "\",\"argv\":[",
                             l->proc);
    for (size_t i = 0; l->argv[i] != NULL; i++) {
        if (used + strlen(l->argv[i]) + 256 > sizeof params)
            fail("argv too long");
        used += (size_t)snprintf(params + used, sizeof params - used, "%s\"%s\"", i == 0 ? "" : ",",
                                 l->argv[i]);
    }
    snprintf(params + used, sizeof params - used,
             "],\"cwd\":\"file:///\",\"env\":{\"PATH\":\"/usr/bin:/bin\"},\"tty\":%s,"
             "\"pipeStdin\":%s,\"arg0\":null}",
             l->tty ? "true" : "false", l->pipe_stdin ? "true" : "false");
    return rpc_request(r, "process/start", params);
}

uint64_t rpc_write_byte(struct rpc *r, uint64_t proc, char byte) {
    char params[256];
    unsigned v = (unsigned char)byte;

    snprintf(params, sizeof params,
             "{\"processId\":\"p%" PRIu64 "\",\"chunk\":\"%c%c==\",\"writeId\":\"w%" PRIu64 "\"}",
             proc, ALPHABET[v >> 2], ALPHABET[(v & 3u) << 4], r->next_id);
    return rpc_request(r, "process/write", params);
}

uint64_t rpc_terminate(struct rpc *r, uint64_t proc) {
    char params[64];

    snprintf(params, sizeof params, "{\"processId\":\"p%" PRIu64 "\"}", proc);
    return rpc_request(r, "process/terminate", params);
}

void tally_add(struct tally *t, const struct msg *m) {
    t->events++;
    if (t->closed)
        fail("an event after closed");
    if (m->kind == MSG_OUTPUT) {
        t->chunks++;
        t->bytes += base64_bytes(m->chunk, m->chunk_len);
    } else if (m->kind == MSG_EXITED) {
        t->exited = true;
        t->exit_code = m->exit_code;
    } else if (m->kind == MSG_CLOSED) {
        t->closed = true;
        if (!t->exited || m->seq != t->events)
            fail("closed has seq %" PRIu64 " after %" PRIu64 " events%s", m->seq, t->events,
                 t->exited ? "" : ", and exited is missing");
    }
}

void rpc_drain(struct rpc *r, uint64_t proc, uint64_t start_id, struct tally *t) {
    struct msg m;

    while (!t->closed || !t->started) {
        rpc_next(r, &m);
        if (m.kind == MSG_RESPONSE)
            t->started |= m.id == start_id;
        else if (m.kind != MSG_OTHER && m.proc == proc)
            tally_add(t, &m);
    }
}

size_t base64_bytes(const char *text, size_t len) {
    size_t pad = 0;

    if (len % 4 != 0)
        fail("a chunk of %zu characters is not base64", len);
    while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
        pad++;
    return len / 4 * 3 - pad;
}

static unsigned sextet(char c) {
    const char *p = c == '\0' ? NULL : strchr(ALPHABET, c);

    if (c == '=')
        return 0;
    if (p == NULL)
        fail("character %d is not base64", c);
    return (unsigned)(p - ALPHABET);
}

void base64_decode(const char *text, size_t len, uint8_t *out) {
    size_t bytes = base64_bytes(text, len);

    for (size_t i = 0, o = 0; i < len; i += 4) {
        unsigned v = sextet(text[i]) << 18 | sextet(text[i + 1]) << 12 | sextet(text[i + 2]) << 6 |
                     sextet(text[i + 3]);
        for (int shift = 16; shift >= 0 && o < bytes; shift -= 8)
            out[o++] = (uint8_t)(v >> shift);
    }
}
