#include "fetch/transfer.h"

#include "fetch/route.h"

#include <limits.h>

/* -- life -- */

struct transfer *transfer_new(struct transfer_host *h, uint32_t id,
                              const struct http_wire_request *q) {
    struct transfer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->host = h;
    t->id = id;
    head_init(&t->head);
    list_append(&h->all, &t->node);
    if (message_init(&t->message, q) == 0)
        return t;
    transfer_free(t);
    return NULL;
}

/* Keeps one handle for the next transfer: a new one is costly. Nothing of a request stays in it,
 * unless it failed: after a name that does not exist, curl 7.88 fails with any other. */
static void transfer_spare(struct transfer_host *h, CURL *easy, bool went_well) {
    if (h->spare != NULL || !went_well) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    h->spare = easy;
}

static void transfer_stop(struct transfer *t) {
    if (t->easy == NULL)
        return;
    curl_multi_remove_handle(t->host->multi, t->easy);
    transfer_spare(t->host, steal_ptr(&t->easy), t->went_well);
    curl_slist_free_all(steal_ptr(&t->lines));
}

void transfer_free(struct transfer *t) {
    transfer_stop(t);
    list_remove(&t->node);
    message_fini(&t->message);
    head_fini(&t->head);
    err_fini(&t->fault);
    free(t);
}

struct transfer *transfer_find(struct transfer_host *h, uint32_t id) {
    list_for_each(n, &h->all) {
        struct transfer *t = list_entry(n, struct transfer, node);
        if (t->id == id)
            return t;
    }
    return NULL;
}

static void transfer_end(struct transfer *t, const char *reason) {
    outbox_end(t->host->out, t->id, reason);
    transfer_free(t);
}

/* One text for everything that can happen before an answer. */
static void transfer_fail(struct transfer *t) {
    _cleanup_err_ struct err e = ERR_INIT;
    err_about(&e, ERR_INTERNAL, "error sending request for url (", buf_str(&t->message.url.text),
              ")");
    transfer_end(t, err_msg(&e));
}

/* -- callbacks of curl -- */

static void transfer_tell_head(struct transfer *t) {
    outbox_headers(t->host->out, t->id,
                   &(struct http_wire_headers){t->head.status, t->head.fields, t->head.count});
}

/* The final head is complete. False: ends this request, to send the next one or to fail. A redirect
 * without a body can end by itself, so that its connection serves the next request. */
static bool transfer_on_head(struct transfer *t) {
    switch (message_redirect(&t->message, t->head.status, t->head.location, &t->fault)) {
    case MESSAGE_STAYS: transfer_tell_head(t); return true;
    case MESSAGE_REFUSES: return false;
    case MESSAGE_MOVES: break;
    }
    const struct http_field *length =
        http_fields_find(t->head.fields, t->head.count, "content-length");
    t->moving = true;
    return length != NULL && str_eqz(length->value, "0");
}

static size_t transfer_on_line(char *p, size_t size, size_t n, void *user) {
    struct transfer *t = user;
    (void)size; /* always 1 */
    switch (head_line(&t->head, (struct str){p, n})) {
    case HEAD_MORE: return n;
    case HEAD_WRONG: return 0;
    case HEAD_DONE: break;
    }
    return transfer_on_head(t) ? n : 0;
}

static size_t transfer_on_data(char *p, size_t size, size_t n, void *user) {
    struct transfer *t = user;
    (void)size; /* always 1 */
    if (t->moving || !t->head.done)
        return CURL_WRITEFUNC_ERROR;
    t->paused = outbox_is_full(t->host->out);
    if (t->paused)
        return CURL_WRITEFUNC_PAUSE;
    outbox_data(t->host->out, t->id, (struct str){p, n});
    return n;
}

/* -- sending -- */

#define SET(option, value)                                                                         \
    do {                                                                                           \
        CURLcode set_ = curl_easy_setopt(t->easy, (option), (value));                              \
        if (set_ != CURLE_OK)                                                                      \
            return set_;                                                                           \
    } while (0)

/* The server keeps the time: nothing here has a deadline. */
static CURLcode transfer_set_connection(struct transfer *t) {
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* the end of a transfer does not wait for its name server */
#endif
    SET(CURLOPT_CONNECTTIMEOUT, (long)INT_MAX / 1000);
    SET(CURLOPT_BUFFERSIZE, TRANSFER_READ);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    /* curl copies the certificates for each request, hundreds of KiB */
    CURLcode c = t->message.url.https ? trust_apply(t->host->trust, t->easy) : CURLE_OK;
    return c != CURLE_OK ? c : route_apply(&t->message.url, t->easy);
}

static CURLcode transfer_set_message(struct transfer *t) {
    struct message *m = &t->message;
    if (buf_putc(&m->url.text, '\0') < 0)
        return CURLE_OUT_OF_MEMORY;
    m->url.text.len--;
    t->lines = message_lines(m);
    if (t->lines == NULL)
        return CURLE_OUT_OF_MEMORY;
    SET(CURLOPT_URL, m->url.text.p);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_CUSTOMREQUEST, m->method);
    SET(CURLOPT_HTTPHEADER, t->lines);
    if (strcmp(m->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (m->body.len > 0) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->body.len);
        SET(CURLOPT_POSTFIELDS, m->body.p);
    }
    return CURLE_OK;
}

static CURLcode transfer_set(struct transfer *t) {
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_HEADERFUNCTION, transfer_on_line);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, transfer_on_data);
    SET(CURLOPT_WRITEDATA, t);
    CURLcode c = transfer_set_connection(t);
    return c != CURLE_OK ? c : transfer_set_message(t);
}

/* Sends the message as it is now. */
static void transfer_send(struct transfer *t) {
    head_fini(&t->head);
    head_init(&t->head);
    t->moving = t->paused = t->went_well = false;
    t->easy = t->host->spare != NULL ? steal_ptr(&t->host->spare) : curl_easy_init();
    if (t->easy == NULL || transfer_set(t) != CURLE_OK ||
        curl_multi_add_handle(t->host->multi, t->easy) != CURLM_OK)
        transfer_fail(t);
}

void transfer_begin(struct transfer *t) {
    if (t->easy != NULL || !message_is_complete(&t->message))
        return;
    if (t->host->trust->fault != NULL)
        transfer_end(t, t->host->trust->fault);
    else
        transfer_send(t);
}

int transfer_body(struct transfer *t, struct str bytes) {
    return message_add_body(&t->message, bytes);
}

void transfer_done(struct transfer *t, CURLcode result) {
    t->went_well = result == CURLE_OK;
    if (t->fault.code != 0) {
        transfer_end(t, err_msg(&t->fault));
    } else if (t->moving) {
        transfer_stop(t);
        transfer_send(t);
    } else if (!t->head.done) {
        transfer_fail(t);
    } else {
        transfer_end(t, result == CURLE_OK ? NULL : "error decoding response body");
    }
}

bool transfer_resume(struct transfer_host *h) {
    bool any = false;
    list_for_each(n, &h->all) {
        struct transfer *t = list_entry(n, struct transfer, node);
        if (outbox_is_full(h->out))
            break;
        if (!t->paused)
            continue;
        any = true;
        t->paused = false;
        (void)!curl_easy_pause(t->easy, CURLPAUSE_CONT); /* a failure ends the transfer */
    }
    return any;
}
