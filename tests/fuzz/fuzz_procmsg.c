/*
 * Notifications and answers about processes, as a client reads them: a sequence of messages goes
 * into the queue of one process. Whatever a server sends, events come out in order, memory stays
 * within its bounds, and nothing follows CLOSED.
 */
#include "base/utf8.h"
#include "client/procmsg.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define WINDOW 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct evqueue q;
    uint64_t next; /* number that must be handed out next */
    bool exited, closed;
};

static void drain(struct world *w, size_t max) {
    struct evqueue_event *e;
    while (max-- > 0 && (e = evqueue_pop(&w->q)) != NULL) {
        REQUIRE(!w->closed);
        REQUIRE(e->to >= e->seq);
        if (e->type == EVQUEUE_EXITED) {
            REQUIRE(!w->exited);
            w->exited = true;
            REQUIRE(e->seq <= w->next);
            if (e->seq == w->next)
                w->next++;
        } else {
            REQUIRE(e->seq == w->next);
            w->next = e->to + 1;
        }
        w->closed = e->type == EVQUEUE_CLOSED;
        free(e);
    }
}

static int apply(struct world *w, const struct procmsg_note *n) {
    switch (n->type) {
    case PROCMSG_OUTPUT: return evqueue_output(&w->q, &n->chunk);
    case PROCMSG_EXITED: return evqueue_exited(&w->q, n->seq);
    case PROCMSG_CLOSED: return evqueue_closed(&w->q, n->seq);
    case PROCMSG_OTHER:
    case PROCMSG_GAP:
    case PROCMSG_DETACHED: break;
    }
    return 0;
}

/* An answer, if it is one. -EPROTO ends the process. */
static int answer(struct world *w, const struct json_node *root, bool limited) {
    struct procmsg_page m;
    struct procmsg_exit exit;
    struct procmsg_snapshot s;
    enum procmsg_status status;
    (void)procmsg_list_find(root, STR_LIT("p"), &exit);
    if (procmsg_snapshot(root, &s) < 0 || procmsg_status(root, &status) < 0)
        status = PROCMSG_UNKNOWN;
    int r = procmsg_page(root, &m);
    if (r < 0)
        return r == -EPROTO ? 0 : r;
    struct evqueue_page page = {.after = w->q.last,
                                .limited = limited,
                                .chunks = m.chunks,
                                .count = m.count,
                                .next_seq = m.next_seq,
                                .exited = m.exited,
                                .closed = m.closed};
    evqueue_asked(&w->q);
    r = evqueue_page(&w->q, &page);
    procmsg_page_fini(&m);
    return r;
}

static int message(struct world *w, const char *text, size_t n) {
    struct json_doc d;
    _cleanup_err_ struct err e = ERR_INIT;
    int r = 0;
    json_doc_init(&d, n, n);
    if (utf8_valid(text, n) && json_parse(&d, text, n, &e) == 0) {
        const struct json_node *root = json_root(&d);
        const struct json_node *method = NULL;
        if (root->type == JSON_OBJECT)
            method = json_get(root, "method");
        struct procmsg_note note;
        if (method == NULL || method->type != JSON_STRING)
            r = answer(w, root, n % 2 == 0);
        else if (procmsg_note(json_str(method), json_get(root, "params"), &note) == 0)
            r = apply(w, &note);
    }
    json_doc_fini(&d);
    return r;
}

/* One message a line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world w = {.next = 1};
    const char *p = (const char *)data, *end = p + size;
    evqueue_init(&w.q, 0, WINDOW);
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = stop != NULL ? (size_t)(stop - p) : (size_t)(end - p);
        int r = message(&w, p, n);
        REQUIRE(r != -EINVAL);
        REQUIRE(w.q.early_count <= EVQUEUE_EARLY_COUNT);
        REQUIRE(w.q.ready_cost < WINDOW + size + 4096);
        if (r < 0)
            break;
        drain(&w, n % 3);
        p += n + 1;
    }
    drain(&w, SIZE_MAX);
    evqueue_fini(&w.q);
    return 0;
}
