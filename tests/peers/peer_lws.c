/*
 * peer_lws URL CA: libwebsockets behind the interface of bridge.py.
 *
 * A thread reads records from standard input; the library's loop does everything else.
 */
#include <libwebsockets.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD 5

struct record {
    struct record *next;
    char kind;
    uint32_t n;
    unsigned char data[]; /* LWS_PRE bytes for the library, then the payload */
};

static struct lws_context *context;
static struct lws *the_wsi;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *first, **last = &first;
static unsigned char *message;
static size_t message_n;
static unsigned char end_reason[128];
static size_t end_n;
static bool inside; /* a fragmented message that was begun */
static bool over;

static void put(char kind, const void *data, size_t n) {
    unsigned char head[HEAD] = {(unsigned char)kind, (unsigned char)(n >> 24),
                                (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                                (unsigned char)n};
    fwrite(head, 1, HEAD, stdout);
    if (n > 0)
        fwrite(data, 1, n, stdout);
    fflush(stdout);
}

/* -- from standard input -- */

static struct record *read_record(void) {
    unsigned char head[HEAD];
    if (fread(head, 1, HEAD, stdin) != HEAD)
        return NULL;
    uint32_t n =
        (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
    struct record *r = malloc(sizeof *r + LWS_PRE + n);
    if (r == NULL)
        return NULL;
    *r = (struct record){.kind = (char)head[0], .n = n};
    if (fread(r->data + LWS_PRE, 1, n, stdin) != n) {
        free(r);
        return NULL;
    }
    return r;
}

static void *read_records(void *arg) {
    (void)arg;
    for (struct record *r; (r = read_record()) != NULL;) {
        pthread_mutex_lock(&lock);
        *last = r;
        last = &r->next;
        pthread_mutex_unlock(&lock);
        lws_cancel_service(context);
    }
    _exit(0);
}

static struct record *take(void) {
    pthread_mutex_lock(&lock);
    struct record *r = first;
    if (r != NULL && (first = r->next) == NULL)
        last = &first;
    pthread_mutex_unlock(&lock);
    return r;
}

/* -- the connection -- */

static enum lws_write_protocol write_mode(char kind) {
    if (kind == 'P')
        return LWS_WRITE_PING;
    enum lws_write_protocol mode = inside ? LWS_WRITE_CONTINUATION : LWS_WRITE_TEXT;
    inside = kind == 'F';
    return inside ? mode | LWS_WRITE_NO_FIN : mode;
}

/* Sends one record. -1 ends the connection. */
static int send_one(struct lws *wsi) {
    struct record *r = take();
    if (r == NULL)
        return 0;
    int result = 0;
    unsigned char *data = r->data + LWS_PRE;
    if (r->kind == 'C') {
        lws_close_reason(wsi, (enum lws_close_status)(data[0] << 8 | data[1]), data + 2, r->n - 2);
        result = -1;
    } else if (lws_write(wsi, data, r->n, write_mode(r->kind)) < (int)r->n) {
        result = -1;
    }
    free(r);
    lws_callback_on_writable(wsi);
    return result;
}

static int receive(struct lws *wsi, const void *in, size_t n) {
    message = realloc(message, message_n + n + 1);
    if (message == NULL)
        return -1;
    memcpy(message + message_n, in, n);
    message_n += n;
    if (lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0) {
        put('M', message, message_n);
        message_n = 0;
    }
    return 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t n) {
    (void)user;
    switch ((int)reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        the_wsi = wsi;
        put('O', NULL, 0);
        break;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        if (the_wsi != NULL)
            lws_callback_on_writable(the_wsi);
        break;
    case LWS_CALLBACK_CLIENT_WRITEABLE: return send_one(wsi);
    case LWS_CALLBACK_CLIENT_RECEIVE: return receive(wsi, in, n);
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG: put('Q', in, n); break;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        end_n = n < sizeof end_reason ? n : sizeof end_reason;
        memcpy(end_reason, in, end_n);
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        put('E', in ? in : "", in ? n : 0);
        over = true;
        break;
    case LWS_CALLBACK_CLIENT_CLOSED:
        put('X', end_reason, end_n);
        the_wsi = NULL;
        over = true;
        break;
    }
    return 0;
}

static const struct lws_protocols protocols[] = {{.name = "peer", .callback = on_event}, {0}};

static bool open_connection(char *url) {
    const char *scheme, *address, *path;
    int port;
    if (lws_parse_uri(url, &scheme, &address, &port, &path) != 0)
        return false;
    struct lws_client_connect_info info = {
        .context = context,
        .address = "127.0.0.1",
        .host = address,
        .port = port,
        .path = "/",
        .local_protocol_name = "peer",
        .ssl_connection = strcmp(scheme, "wss") == 0 ? LCCSCF_USE_SSL : 0,
    };
    return lws_client_connect_via_info(&info) != NULL;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    lws_set_log_level(LLL_ERR, NULL);
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .protocols = protocols,
        .options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT,
        .client_ssl_ca_filepath = argv[2][0] != '\0' ? argv[2] : NULL,
        .gid = -1,
        .uid = -1,
    };
    context = lws_create_context(&info);
    pthread_t reader;
    if (context == NULL || !open_connection(argv[1]) ||
        pthread_create(&reader, NULL, read_records, NULL) != 0)
        return 1;
    while (!over && lws_service(context, 0) >= 0)
        continue;
    pause();
    return 0;
}
