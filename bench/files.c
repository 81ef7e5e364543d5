// Measurements of the file methods.
#include "measure.h"
#include "rpc.h"
#include "sample.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((uint64_t)1024 * 1024)
#define URI_MAX 1024
#define PARAMS_MAX 6144
// Numbers in a prepared request are right-aligned in so many places.
#define PLACES 16

#define DATA_KEY "\"dataBase64\":\""
#define CHUNK_KEY "\"chunk\":\""

// What a measurement of an amount has cost.
struct cost {
    uint64_t wall, server, client;
};

static void cost_begin(struct cost *c, const struct measure_options *o) {
    c->server = process_cpu_ns(o->pid);
    c->client = process_cpu_ns(getpid());
    c->wall = now_ns();
}

static void cost_end(struct cost *c, const struct measure_options *o) {
    c->wall = now_ns() - c->wall;
    c->server = process_cpu_ns(o->pid) - c->server;
    c->client = process_cpu_ns(getpid()) - c->client;
}

static void result_cost(const char *name, uint64_t bytes, const struct cost *c) {
    result_begin(name);
    result_number("bytes", bytes);
    result_number("wall_ns", c->wall);
    result_number("cpu_ns", c->server);
    result_number("client_cpu_ns", c->client);
}

static void need_path(const struct measure_options *o) {
    if (o->path == NULL || o->path[0] != '/')
        fail("an absolute --path is needed");
}

// The path as a file URI, every unusual byte escaped.
static void make_uri(char *out, const char *path) {
    static const char plain[] =
        "/._-~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t n = (size_t)snprintf(out, URI_MAX, "file://");

    for (; *path != '\0'; path++) {
        if (n + 4 > URI_MAX)
            fail("the path is too long");
        if (strchr(plain, *path) != NULL)
            out[n++] = *path;
        else
            n += (size_t)snprintf(out + n, URI_MAX - n, "%%%02X", (unsigned char)*path);
    }
    out[n] = '\0';
}

// Params with the path, the sandbox and `more` members, such as ",\"recursive\":false".
static void path_params(char *out, const struct measure_options *o, const char *more) {
    char uri[URI_MAX];

    need_path(o);
    make_uri(uri, o->path);
    if (snprintf(out, PARAMS_MAX, "{\"path\":\"%s\"%s%s%s}", uri,
                 o->sandbox == NULL ? "" : ",\"sandbox\":", o->sandbox == NULL ? "" : o->sandbox,
                 more) >= PARAMS_MAX)
        fail("the sandbox object is too long");
}

// Asks and waits for the answer, whatever its size.
static void call(struct rpc *r, const char *method, const char *params, const char *key,
                 struct skim *s) {
    uint64_t id = rpc_request(r, method, params);

    rpc_flush(r);
    rpc_skim(r, key, s);
    if (s->id != id)
        fail("%s got another answer", method);
}

// Decodes the text after `key` in the next message and compares it with the test pattern from
// `offset` on; returns its number of bytes.
static uint64_t next_verified(struct rpc *r, uint64_t id, const char *key, uint64_t offset) {
    uint8_t *plain;
    const char *text;
    size_t len, bytes;
    struct msg m;

    rpc_next(r, &m);
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("another answer was expected");
    text = rpc_text(&m, key, &len);
    bytes = base64_bytes(text, len);
    plain = malloc(bytes + 1);
    if (plain == NULL)
        fail("out of memory");
    base64_decode(text, len, plain);
    for (size_t i = 0; i < bytes; i++)
        if (plain[i] != pattern_at(offset + i))
            fail("wrong byte at offset %" PRIu64, offset + i);
    free(plain);
    return bytes;
}

static void check_text(uint64_t text, uint64_t bytes) {
    if (text != base64_length(bytes))
        fail("%" PRIu64 " characters for %" PRIu64 " bytes", text, bytes);
}

static void verify_file_read(struct rpc *r, const char *params, const struct measure_options *o) {
    uint64_t id = rpc_request(r, "fs/readFile", params), bytes;

    rpc_flush(r);
    bytes = next_verified(r, id, DATA_KEY, 0);
    if (bytes != o->bytes)
        fail("%" PRIu64 " bytes instead of %" PRIu64, bytes, o->bytes);
}

void measure_file_read(const struct measure_options *o) {
    char params[PARAMS_MAX];
    uint64_t before, peak;
    struct cost c;
    struct skim s;
    struct rpc r;

    path_params(params, o, "");
    rpc_open(&r, o->port);
    before = process_rss(o->pid);
    process_forget_peak(o->pid);
    cost_begin(&c, o);
    if (o->verify)
        verify_file_read(&r, params, o);
    for (size_t i = 0; !o->verify && i < o->count; i++) {
        call(&r, "fs/readFile", params, DATA_KEY, &s);
        check_text(s.text, o->bytes);
    }
    cost_end(&c, o);
    peak = process_peak(o->pid);
    rpc_close(&r);
    result_cost("file-read", o->bytes * (o->verify ? 1 : o->count), &c);
    result_number("rss_before", before);
    result_number("rss_peak", peak);
    result_end();
}

// A request with a chunk of the test pattern, made once. The id and one other number are filled in
// each time.
struct prepared {
    struct ws_frame frame;
    size_t id_at, number_at;
};

// `open` is the request up to the chunk; a run of PLACES blanks stands for each number.
static void prepare(struct prepared *p, const char *open, size_t bytes) {
    static const char blanks[] = "                ";
    size_t head = strlen(open), text_len = base64_length(bytes);
    uint8_t *plain = malloc(bytes);
    char *text = malloc(head + text_len + 3);
    const char *number;

    if (plain == NULL || text == NULL)
        fail("out of memory");
    for (size_t i = 0; i < bytes; i++)
        plain[i] = pattern_at(i);
    memcpy(text, open, head);
    base64_encode(plain, bytes, text + head);
    memcpy(text + head + text_len, "\"}}", 3);
    ws_frame_init(&p->frame, text, head + text_len + 3);
    p->id_at = (size_t)(strstr(open, blanks) - open);
    number = strstr(open + p->id_at + PLACES, blanks);
    p->number_at = number == NULL ? 0 : (size_t)(number - open);
    free(plain);
    free(text);
}

static void patch_number(struct prepared *p, size_t at, uint64_t value) {
    char digits[PLACES + 8];

    snprintf(digits, sizeof digits, "%*" PRIu64, PLACES, value);
    ws_frame_patch(&p->frame, at, digits, PLACES);
}

static uint64_t send_prepared(struct rpc *r, struct prepared *p, uint64_t number) {
    uint64_t id = r->next_id++;

    patch_number(p, p->id_at, id);
    if (p->number_at != 0)
        patch_number(p, p->number_at, number);
    ws_frame_send(&r->ws, &p->frame);
    return id;
}

// The file has `bytes` of the test pattern.
static void verify_file(const char *path, uint64_t bytes) {
    static uint8_t buf[64 * 1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t at = 0;
    ssize_t n;

    if (fd < 0)
        fail("%s: %s", path, strerror(errno));
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        for (ssize_t i = 0; i < n; i++, at++)
            if (buf[i] != pattern_at(at))
                fail("wrong byte at offset %" PRIu64 " of %s", at, path);
    }
    close(fd);
    if (at != bytes)
        fail("%s has %" PRIu64 " bytes instead of %" PRIu64, path, at, bytes);
}

// Replacing a file makes some file systems write it to the disk at once, which would be measured
// too.
static void forget_file(const char *path) {
    if (unlink(path) != 0 && errno != ENOENT)
        fail("%s: %s", path, strerror(errno));
}

// Adds what one more run has cost; a run of the warm-up counts for nothing.
static void cost_add(struct cost *sum, const struct cost *c, bool counts) {
    if (!counts)
        return;
    sum->wall += c->wall;
    sum->server += c->server;
    sum->client += c->client;
}

static void send_write(struct rpc *r, struct prepared *p, size_t number) {
    char digits[PLACES + 8];

    snprintf(digits, sizeof digits, "%0*zu", PLACES, number);
    ws_frame_patch(&p->frame, p->number_at, digits, PLACES);
    patch_number(p, p->id_at, r->next_id++);
    ws_frame_send(&r->ws, &p->frame);
}

// Writes the files of a batch, `window` requests in flight.
static void write_batch(struct rpc *r, struct prepared *p, const struct measure_options *o) {
    uint64_t first = r->next_id;
    struct skim s;

    for (size_t got = 0, sent = 0; got < WRITE_BATCH; got++) {
        for (; sent < WRITE_BATCH && sent - got < o->window; sent++)
            send_write(r, p, sent);
        rpc_skim(r, NULL, &s);
        if (s.id != first + got)
            fail("fs/writeFile got another answer");
    }
}

// Removes the files of a batch, whose content is compared before if `verify`.
static void forget_batch(const struct measure_options *o, bool verify) {
    char name[URI_MAX];

    for (size_t i = 0; i < WRITE_BATCH; i++) {
        snprintf(name, sizeof name, "%s%0*zu", o->path, PLACES, i);
        if (verify)
            verify_file(name, o->bytes);
        forget_file(name);
    }
}

void measure_file_write(const struct measure_options *o) {
    char uri[URI_MAX], open[PARAMS_MAX + 128];
    struct cost sum = {0}, c;
    struct prepared p;
    struct rpc r;

    need_path(o);
    make_uri(uri, o->path);
    snprintf(open, sizeof open,
             "{\"id\":%*s,\"method\":\"fs/writeFile\",\"params\":{\"path\":\"%s%*s\","
             "\"dataBase64\":\"",
             PLACES, "", uri, PLACES, "");
    prepare(&p, open, o->bytes);
    rpc_open(&r, o->port);
    for (size_t i = 0; i < o->warmup + o->count; i++) {
        cost_begin(&c, o);
        write_batch(&r, &p, o);
        cost_end(&c, o);
        cost_add(&sum, &c, i >= o->warmup);
        forget_batch(o, i == 0 || i + 1 == o->warmup + o->count);
    }
    rpc_close(&r);
    ws_frame_free(&p.frame);
    result_cost("file-write", o->bytes * WRITE_BATCH * o->count, &sum);
    result_end();
}

static void open_handle(struct rpc *r, const struct measure_options *o, const char *mode) {
    char params[PARAMS_MAX], more[64];
    struct skim s;

    snprintf(more, sizeof more, ",\"handleId\":\"h\",\"mode\":\"%s\"", mode);
    path_params(params, o, more);
    call(r, "fs/open", params, NULL, &s);
}

static void close_handle(struct rpc *r) {
    struct skim s;

    call(r, "fs/close", "{\"handleId\":\"h\"}", NULL, &s);
}

static uint64_t queue_block(struct rpc *r, uint64_t offset) {
    char params[128];

    snprintf(params, sizeof params,
             "{\"handleId\":\"h\",\"offset\":%" PRIu64 ",\"len\":%" PRIu64 "}", offset, BLOCK);
    return rpc_request(r, "fs/readBlock", params);
}

// Takes the answer for the block at `offset`. What is behind the last byte is an empty block.
static void take_block(struct rpc *r, uint64_t id, uint64_t offset,
                       const struct measure_options *o) {
    uint64_t expect = o->bytes - offset < BLOCK ? o->bytes - offset : BLOCK;
    struct skim s;

    if (o->verify) {
        if (next_verified(r, id, CHUNK_KEY, offset) != expect)
            fail("the block at %" PRIu64 " has another size", offset);
        return;
    }
    rpc_skim(r, CHUNK_KEY, &s);
    if (s.id != id || s.eof != (expect < BLOCK))
        fail("the block at %" PRIu64 " is another one", offset);
    check_text(s.text, expect);
}

void measure_block_read(const struct measure_options *o) {
    uint64_t blocks = o->bytes / BLOCK + 1, asked = 0, first = 0;
    struct cost c;
    struct rpc r;

    rpc_open(&r, o->port);
    cost_begin(&c, o);
    open_handle(&r, o, "read");
    for (uint64_t got = 0; got < blocks; got++) {
        for (; asked < blocks && asked - got < o->window; asked++) {
            uint64_t id = queue_block(&r, asked * BLOCK);
            if (asked == 0)
                first = id;
        }
        rpc_flush(&r);
        take_block(&r, first + got, got * BLOCK, o);
    }
    close_handle(&r);
    cost_end(&c, o);
    rpc_close(&r);
    result_cost("block-read", o->bytes, &c);
    result_end();
}

// Sends all blocks. The data is the same in each, since the pattern repeats sooner.
static void write_blocks(struct rpc *r, struct prepared *p, const struct measure_options *o) {
    uint64_t blocks = o->bytes / BLOCK, sent = 0, first = r->next_id;
    struct skim s;

    for (uint64_t got = 0; got < blocks; got++) {
        for (; sent < blocks && sent - got < o->window; sent++)
            send_prepared(r, p, sent * BLOCK);
        rpc_skim(r, NULL, &s);
        if (s.id != first + got)
            fail("fs/writeBlock got another answer");
    }
}

void measure_block_write(const struct measure_options *o) {
    struct cost sum = {0}, c;
    char open[256];
    struct prepared p;
    struct rpc r;

    need_path(o);
    if (o->bytes % BLOCK != 0)
        fail("--bytes must be whole blocks of 1 MiB");
    snprintf(open, sizeof open,
             "{\"id\":%*s,\"method\":\"fs/writeBlock\",\"params\":{\"handleId\":\"h\","
             "\"offset\":%*s,\"chunk\":\"",
             PLACES, "", PLACES, "");
    prepare(&p, open, BLOCK);
    rpc_open(&r, o->port);
    for (size_t i = 0; i < o->warmup + o->count; i++) {
        forget_file(o->path);
        cost_begin(&c, o);
        open_handle(&r, o, "replace");
        write_blocks(&r, &p, o);
        close_handle(&r);
        cost_end(&c, o);
        cost_add(&sum, &c, i >= o->warmup);
    }
    if (o->verify)
        verify_file(o->path, o->bytes);
    forget_file(o->path);
    rpc_close(&r);
    ws_frame_free(&p.frame);
    result_cost("block-write", o->bytes * o->count, &sum);
    result_end();
}

// A small request and what its answer has to say.
struct small {
    const char *method;
    const char *params;
    const char *expect;
};

static uint64_t one_small(struct rpc *r, uint64_t n, const void *arg) {
    const struct small *small = arg;
    uint64_t begin = now_ns(), took;
    uint64_t id = rpc_request(r, small->method, small->params);
    struct msg m;

    (void)n;
    rpc_flush(r);
    rpc_next(r, &m);
    took = now_ns() - begin;
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("%s got another answer", small->method);
    if (memmem(m.data, m.len, small->expect, strlen(small->expect)) == NULL)
        fail("%s got a wrong answer: %.*s", small->method, (int)(m.len < 300 ? m.len : 300),
             m.data);
    return took;
}

static void measure_small(const char *name, const struct small *small,
                          const struct measure_options *o) {
    struct rpc r;

    rpc_open(&r, o->port);
    sample(name, &r, one_small, small, o);
    rpc_close(&r);
}

void measure_metadata(const struct measure_options *o) {
    char params[PARAMS_MAX], expect[64];
    struct small small = {"fs/getMetadata", params, expect};

    path_params(params, o, "");
    snprintf(expect, sizeof expect, "\"size\":%" PRIu64 ",", o->bytes);
    measure_small("metadata", &small, o);
}

#define SMALL_MAX ((size_t)64 * 1024)
#define WRITE_MAX ((size_t)1024)

void measure_small_read(const struct measure_options *o) {
    static uint8_t plain[SMALL_MAX];
    static char expect[SMALL_MAX / 3 * 4 + 64];
    char params[PARAMS_MAX];
    struct small small = {"fs/readFile", params, expect};
    size_t used = strlen(DATA_KEY);

    if (o->bytes > SMALL_MAX)
        fail("the small file is too large");
    path_params(params, o, "");
    for (size_t i = 0; i < o->bytes; i++)
        plain[i] = pattern_at(i);
    memcpy(expect, DATA_KEY, used);
    used += base64_encode(plain, o->bytes, expect + used);
    memcpy(expect + used, "\"", 2);
    measure_small("small-read", &small, o);
}

// A small file to be written, and what it has to hold afterwards.
struct writing {
    const char *path;
    const char *params;
    uint64_t bytes;
};

static uint64_t one_write(struct rpc *r, uint64_t n, const void *arg) {
    const struct writing *w = arg;
    uint64_t begin, took;
    struct skim s;

    (void)n;
    forget_file(w->path);
    begin = now_ns();
    call(r, "fs/writeFile", w->params, NULL, &s);
    took = now_ns() - begin;
    verify_file(w->path, w->bytes);
    return took;
}

void measure_small_write(const struct measure_options *o) {
    uint8_t plain[WRITE_MAX];
    char more[WRITE_MAX / 3 * 4 + 64], params[PARAMS_MAX];
    struct writing w = {o->path, params, o->bytes};
    size_t used = (size_t)snprintf(more, sizeof more, "," DATA_KEY);
    struct rpc r;

    if (o->bytes > WRITE_MAX)
        fail("the small file is too large");
    for (size_t i = 0; i < o->bytes; i++)
        plain[i] = pattern_at(i);
    used += base64_encode(plain, o->bytes, more + used);
    memcpy(more + used, "\"", 2);
    path_params(params, o, more);
    rpc_open(&r, o->port);
    sample("small-write", &r, one_write, &w, o);
    forget_file(o->path);
    rpc_close(&r);
}

void measure_metadata_pipeline(const struct measure_options *o) {
    char params[PARAMS_MAX];

    path_params(params, o, "");
    pipeline("metadata-pipeline", "fs/getMetadata", params, o);
}

void measure_small_read_pipeline(const struct measure_options *o) {
    char params[PARAMS_MAX];

    path_params(params, o, "");
    pipeline("small-read-pipeline", "fs/readFile", params, o);
}

// A request with a large answer. The first one is looked at, the others must have its length.
struct listing {
    const char *method;
    const char *params;
    const char *mark; // stands in the answer once for each entry
    size_t entries;
    uint64_t len; // without the digits of the id
};

static uint64_t digits(uint64_t n) {
    return n < 10 ? 1 : 1 + digits(n / 10);
}

static void count_entries(struct rpc *r, struct listing *l) {
    uint64_t id = rpc_request(r, l->method, l->params);
    size_t mark = strlen(l->mark), found = 0;
    const char *p, *end;
    struct msg m;

    rpc_flush(r);
    rpc_next(r, &m);
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("%s got another answer", l->method);
    end = m.data + m.len;
    for (p = m.data; (p = memmem(p, (size_t)(end - p), l->mark, mark)) != NULL; p += mark)
        found++;
    if (found != l->entries)
        fail("%s gave %zu entries instead of %zu", l->method, found, l->entries);
    l->len = m.len - digits(id);
}

static uint64_t one_listing(struct rpc *r, uint64_t n, const void *arg) {
    const struct listing *l = arg;
    uint64_t begin = now_ns(), took;
    struct skim s;

    (void)n;
    call(r, l->method, l->params, NULL, &s);
    took = now_ns() - begin;
    if (s.len - digits(s.id) != l->len)
        fail("%s gave another answer than before", l->method);
    return took;
}

static void measure_listing(const char *name, struct listing *l, const struct measure_options *o) {
    struct rpc r;

    rpc_open(&r, o->port);
    count_entries(&r, l);
    sample(name, &r, one_listing, l, o);
    rpc_close(&r);
}

void measure_walk(const struct measure_options *o) {
    char params[PARAMS_MAX];
    struct listing l = {"fs/walk", params, "\"kind\":", o->entries, 0};

    path_params(params, o,
                ",\"options\":{\"maxDepth\":64,\"maxDirectories\":10000,\"maxEntries\":50000,"
                "\"followDirectorySymlinks\":false}");
    measure_listing("walk", &l, o);
}

void measure_list(const struct measure_options *o) {
    char params[PARAMS_MAX];
    struct listing l = {"fs/readDirectory", params, "\"fileName\":", o->entries, 0};

    path_params(params, o, "");
    measure_listing("list", &l, o);
}

struct copying {
    const char *params;
    const char *target;
};

static uint64_t one_copy(struct rpc *r, uint64_t n, const void *arg) {
    const struct copying *c = arg;
    uint64_t begin;
    struct skim s;

    (void)n;
    forget_file(c->target);
    begin = now_ns();
    call(r, "fs/copy", c->params, NULL, &s);
    return now_ns() - begin;
}

void measure_copy(const struct measure_options *o) {
    char params[2 * URI_MAX + 128], target[URI_MAX], from[URI_MAX], to[URI_MAX];
    struct copying c = {params, target};
    struct rpc r;

    need_path(o);
    if ((size_t)snprintf(target, sizeof target, "%s.copy", o->path) >= sizeof target)
        fail("the path is too long");
    make_uri(from, o->path);
    make_uri(to, target);
    snprintf(params, sizeof params,
             "{\"sourcePath\":\"%s\",\"destinationPath\":\"%s\",\"recursive\":false}", from, to);
    rpc_open(&r, o->port);
    sample("copy", &r, one_copy, &c, o);
    verify_file(target, o->bytes);
    forget_file(target);
    rpc_close(&r);
}
