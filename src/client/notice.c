#include "client/engine.h"

void notice_init(struct notice *n, void (*run)(struct notice *n)) {
    n->run = run;
    n->client = NULL;
    list_init(&n->node);
}

void notice_post(struct xs_client *c, struct notice *n) {
    if (n->client != NULL)
        return;
    n->client = c;
    list_append(&c->notices, &n->node);
    c->notice_count++;
}

void notice_drop(struct notice *n) {
    if (n->client == NULL)
        return;
    n->client->notice_count--;
    n->client = NULL;
    list_remove(&n->node);
}

void notice_run_one(struct xs_client *c) {
    struct notice *n = list_entry(list_first(&c->notices), struct notice, node);
    notice_drop(n);
    n->run(n);
}
