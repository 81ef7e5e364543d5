#include "rpc.h"

#include "util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX 8192
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

// The method of a notification, or NULL for an answer. An error is fatal.
static const char *find_method(const struct ws_message *w) {
    struct ws_message head = {.data = w->data, .len = w->len < 128 ? w->len : 128};
    const char *method = find_value(&head, "\"method\":\"");

    if (method == NULL && find_value(&head, "\"error\":") != NULL)
        fail("error answer: %.*s", (int)(w->len < 400 ? w->len : 400), w->data);
    return method;
}

static void scan(const struct ws_message *w, struct msg *m) {
    const char *method = find_method(w);

    memset(m, 0, sizeof *m);
    m->kind = MSG_OTHER;
    m->data = w->data;
    m->len = w->len;
    if (method == NULL) {
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

const char *rpc_text(const struct msg *m, const char *key, size_t *len) {
    struct ws_message w = {.data = m->data, .len = m->len};
    const char *p = find_value(&w, key);
    const char *end = p == NULL ? NULL : memchr(p, '"', (size_t)(m->data + m->len - p));

    if (end == NULL)
        fail("no %s in: %.*s", key, (int)(m->len < 200 ? m->len : 200), m->data);
    *len = (size_t)(end - p);
    return p;
}

// Length of the string that begins after `key` in the head and ends in the tail. Base64 has no
// quote, so the first one behind it is its end.
static uint64_t skimmed_text(const struct ws_skimmed *w, const char *key) {
    const char *p = memmem(w->head, w->edge, key, strlen(key));
    uint64_t begin, tail = w->len - w->edge;
    const char *look, *end;

    if (p == NULL)
        fail("no %s in: %.*s", key, (int)(w->edge < 200 ? w->edge : 200), w->head);
    begin = (uint64_t)(p - w->head) + strlen(key);
    look = w->tail + (begin > tail ? begin - tail : 0);
    end = memchr(look, '"', (size_t)(w->tail + w->edge - look));
    if (end == NULL)
        fail("the string after %s has no end", key);
    return tail + (uint64_t)(end - w->tail) - begin;
}

void rpc_skim(struct rpc *r, const char *key, struct skim *s) {
    struct ws_skimmed w;
    struct ws_message head = {.data = w.head}, tail = {.data = w.tail};

    do {
        ws_skim(&r->ws, &w);
        head.len = tail.len = w.edge;
    } while (find_method(&head) != NULL);
    // Beside a long text the id may stand at either end.
    s->id = (uint64_t)find_integer(find_value(&head, "\"id\":") != NULL ? &head : &tail, "\"id\":");
    s->len = w.len;
    s->text = key == NULL ? 0 : skimmed_text(&w, key);
    s->eof = memmem(w.tail, w.edge, "\"eof\":true", 10) != NULL;
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
    used += (size_t)snprintf(
        params + used, sizeof params - used,
        "],\"cwd\":\"%s\",\"env\":{\"PATH\":\"/usr/bin:/bin\"%s%s%s},"
        "\"tty\":%s,\"pipeStdin\":%s,\"arg0\":null,\"sandbox\":%s%s}",
        l->cwd == NULL ? "file:///" : l->cwd, l->home == NULL ? "" : ",\"HOME\":\"",
        l->home == NULL ? "" : l->home, l->home == NULL ? "" : "\"", l->tty ? "true" : "false",
        l->pipe_stdin ? "true" : "false", l->sandbox == NULL ? "null" : l->sandbox,
        l->more == NULL ? "" : l->more);
    if (used >= sizeof params)
        fail("the sandbox object is too long");
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

size_t base64_length(size_t len) {
    return (len + 2) / 3 * 4;
}

size_t base64_encode(const uint8_t *in, size_t len, char *out) {
    char *p = out;

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        unsigned v = (unsigned)in[i] << 16;
        if (n > 1)
            v |= (unsigned)in[i + 1] << 8;
        if (n > 2)
            v |= in[i + 2];
        for (size_t k = 0; k < 4; k++)
            *p++ = k > n ? '=' : ALPHABET[(v >> (18 - 6 * k)) & 63u];
    }
    return (size_t)(p - out);
}

static unsigned sextet(char c) {
    static uint8_t values[256]; // one more than the value; 0 = not in the alphabet
    unsigned v;

    for (uint8_t i = 0; values['A'] == 0 && i < 64; i++)
        values[(uint8_t)ALPHABET[63 - i]] = (uint8_t)(64 - i);
    v = values[(uint8_t)c];
    if (v == 0 && c != '=')
        fail("character %d is not base64", c);
    return v == 0 ? 0 : v - 1;
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
