#include "sandbox/host/remains.h"

#include "sandbox/host/placeholder.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REMAINS_END_TRIES 50 /* when the server ends */
#define REMAINS_END_MS 10

struct remains_list {
    struct list node;
    struct placeholders *list;
    unsigned tries;
};

/* Whether the launcher lives: after its supervisor's death it is our child until we reap it. */
static bool remains_is_used(const struct placeholders *l) {
    pid_t pid = atomic_load(&l->launcher);
    return pid > 0 && waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* True if nothing is left to do. */
static bool remains_sweep(struct placeholders *l) {
    return !remains_is_used(l) && placeholder_sweep(l);
}

static void remains_free(struct remains *r, struct remains_list *e) {
    list_remove(&e->node);
    r->count--;
    munmap(e->list, PLACEHOLDERS_BYTES);
    free(e);
}

/* Sweeps all lists; the fewest tries of those that stay, or REMAINS_TRIES. */
static unsigned remains_sweep_all(struct remains *r) {
    unsigned least = REMAINS_TRIES;
    list_for_each(n, &r->lists) {
        struct remains_list *e = list_entry(n, struct remains_list, node);
        if (remains_sweep(e->list) || ++e->tries >= REMAINS_TRIES)
            remains_free(r, e);
        else
            least = MIN(least, e->tries);
    }
    return least;
}

static void remains_arm(struct remains *r, unsigned tries) {
    uint64_t ms = MIN((uint64_t)REMAINS_FIRST_MS << MIN(tries, 16u), (uint64_t)REMAINS_LAST_MS);
    (void)!loop_timer_set(r->loop, &r->timer, ms * LOOP_MS);
}

static void remains_on_timer(struct loop_timer *t) {
    struct remains *r = container_of(t, struct remains, timer);
    unsigned tries = remains_sweep_all(r);
    if (r->count > 0)
        remains_arm(r, tries);
}

void remains_init(struct remains *r, struct loop *loop) {
    *r = (struct remains){.loop = loop, .timer.fn = remains_on_timer};
    list_init(&r->lists);
}

void remains_take(struct remains *r, struct placeholders *l) {
    if (l == NULL)
        return;
    struct remains_list *e = remains_sweep(l) ? NULL : calloc(1, sizeof *e);
    if (e == NULL) {
        munmap(l, PLACEHOLDERS_BYTES);
        return;
    }
    if (r->count == REMAINS_MAX)
        remains_free(r, list_entry(list_first(&r->lists), struct remains_list, node));
    e->list = l;
    list_append(&r->lists, &e->node);
    r->count++;
    remains_arm(r, 0);
}

void remains_fini(struct remains *r) {
    loop_timer_del(r->loop, &r->timer);
    for (int i = 0; r->count > 0 && i < REMAINS_END_TRIES; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = REMAINS_END_MS * 1000000L}, NULL);
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
            ;
        (void)remains_sweep_all(r);
    }
    while (r->count > 0)
        remains_free(r, list_entry(list_first(&r->lists), struct remains_list, node));
}
