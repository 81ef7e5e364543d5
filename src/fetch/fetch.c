#include "fetch/fetch.h"

#include "fetch/jail.h"
#include "fetch/transfer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#define FETCH_CONNECTIONS_MAX 16L /* idle connections kept for reuse */
#define FETCH_WAIT_MS 3600000     /* at most; curl has timers of its own */
#define FETCH_STACK (512u << 10)  /* bytes: each transfer may have a thread for its name */

struct fetch {
    int sock;
    struct http_wire_reader in;
    struct outbox out;
    struct trust trust;
    struct transfer_host transfers;
};

/* -- frames of the server -- */

static int fetch_request(struct fetch *f, const struct http_wire_frame *frame) {
    _cleanup_arena_ struct arena a = ARENA_INIT(HTTP_WIRE_ARENA_MAX);
    struct http_wire_request q;
    int r = http_wire_get_request(frame->payload, &a, &q);
    if (r < 0 || transfer_find(&f->transfers, frame->id) != NULL)
        return r < 0 ? r : -EPROTO;
    struct transfer *t = transfer_new(&f->transfers, frame->id, &q);
    if (t == NULL)
        return -ENOMEM;
    transfer_begin(t);
    return 0;
}

/* A transfer that has ended may still get pieces of its body, or be cancelled. */
static int fetch_body(struct fetch *f, const struct http_wire_frame *frame) {
    struct transfer *t = transfer_find(&f->transfers, frame->id);
    int r = t == NULL ? 0 : transfer_body(t, frame->payload);
    if (t != NULL && r == 0)
        transfer_begin(t);
    return r;
}

static int fetch_frame(struct fetch *f, const struct http_wire_frame *frame) {
    struct transfer *t;
    switch (frame->type) {
    case HTTP_WIRE_REQUEST: return fetch_request(f, frame);
    case HTTP_WIRE_BODY: return fetch_body(f, frame);
    case HTTP_WIRE_CANCEL:
        t = transfer_find(&f->transfers, frame->id);
        if (t != NULL)
            transfer_free(t);
        return 0;
    case HTTP_WIRE_TAKEN: return outbox_taken(&f->out, frame->payload);
    case HTTP_WIRE_HELLO:
    case HTTP_WIRE_HEADERS:
    case HTTP_WIRE_DATA:
    case HTTP_WIRE_SLOT:
    case HTTP_WIRE_END: break;
    }
    return -EPROTO;
}

/* Reads what there is. 0; -ECONNRESET at the end; or -errno. */
static int fetch_read(struct fetch *f) {
    struct http_wire_frame frame;
    ssize_t n = http_wire_fill(&f->in, f->sock);
    int r;
    if (n <= 0)
        return n == 0 ? -ECONNRESET : n == -EAGAIN ? 0 : (int)n;
    while ((r = http_wire_next(&f->in, &frame)) > 0) {
        r = fetch_frame(f, &frame);
        if (r < 0)
            return r;
    }
    return r;
}

/* -- curl -- */

static int fetch_perform(struct fetch *f) {
    int running, left;
    if (curl_multi_perform(f->transfers.multi, &running) != CURLM_OK)
        return -EIO;
    for (CURLMsg *m; (m = curl_multi_info_read(f->transfers.multi, &left)) != NULL;) {
        struct transfer *t = NULL;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t) == CURLE_OK)
            transfer_done(t, m->data.result);
    }
    return f->out.failed ? -ENOMEM : 0;
}

/* Waits for the server or a peer. Whether the server has sent something. */
static int fetch_wait(struct fetch *f) {
    short events = outbox_pending(&f->out) > 0 ? POLLIN | POLLOUT : POLLIN;
    struct curl_waitfd w = {.fd = f->sock, .events = events};
    int ready;
    CURLMcode c = curl_multi_poll(f->transfers.multi, &w, 1, FETCH_WAIT_MS, &ready);
    return c != CURLM_OK ? -EIO : (w.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

static int fetch_round(struct fetch *f) {
    int r = fetch_perform(f);
    /* Nothing may stay paused when the outbox is empty: no event would follow. */
    for (bool again = true; r == 0 && again;) {
        r = outbox_flush(&f->out);
        again = r == 0 && !outbox_is_full(&f->out) && transfer_resume(&f->transfers);
    }
    if (r == 0)
        r = fetch_wait(f);
    return r > 0 ? fetch_read(f) : r;
}

/* The stacks of all threads must fit the memory that the program may have. */
static int fetch_shrink_stacks(void) {
    pthread_attr_t a;
    if (pthread_attr_init(&a) != 0)
        return -ENOMEM;
    int r = pthread_attr_setstacksize(&a, FETCH_STACK);
    r = r == 0 ? pthread_setattr_default_np(&a) : r;
    pthread_attr_destroy(&a);
    return -r;
}

int fetch_run(int sock, int slots) {
    struct fetch f = {.sock = sock, .out = OUTBOX_INIT(sock)};
    const char *paths[2] = {NULL, NULL};
    http_wire_init(&f.in);
    list_init(&f.transfers.all);
    f.transfers.out = &f.out;
    f.transfers.trust = &f.trust;
    if (http_slots_map(&f.out.slots, slots) < 0 || fetch_shrink_stacks() < 0 ||
        curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    trust_init(&f.trust);
    f.transfers.multi = curl_multi_init();
    if (f.transfers.multi == NULL || curl_multi_setopt(f.transfers.multi, CURLMOPT_MAXCONNECTS,
                                                       FETCH_CONNECTIONS_MAX) != CURLM_OK)
        return 1;
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
    paths[0] = v->cainfo;
    paths[1] = v->capath;
    if (jail_enter(paths, ARRAY_LEN(paths)) < 0)
        return 1;
    outbox_hello(&f.out, STR_LIT(EXEC_SERVER_VERSION));
    int r = 0;
    while (r == 0)
        r = fetch_round(&f);
    return r == -ECONNRESET || r == -EPIPE ? 0 : 1;
}
