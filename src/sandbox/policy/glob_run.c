#include "sandbox/policy/glob_run.h"

#include <errno.h>
#include <string.h>

int glob_run_init(struct glob_run *r, const struct glob_set *s) {
    size_t n = MAX(s->node_count, (size_t)1);
    *r = (struct glob_run){.set = s};
    r->now = calloc(n, sizeof *r->now);
    r->next = calloc(n, sizeof *r->next);
    r->seen = calloc(n, sizeof *r->seen);
    r->todo = calloc(n, sizeof *r->todo);
    if (r->now != NULL && r->next != NULL && r->seen != NULL && r->todo != NULL)
        return 0;
    glob_run_fini(r);
    return -ENOMEM;
}

void glob_run_fini(struct glob_run *r) {
    free(r->now);
    free(r->next);
    free(r->seen);
    free(r->todo);
}

static void run_begin(struct glob_run *r) {
    r->next_count = 0;
    if (++r->round == 0) {
        memset(r->seen, 0, r->set->node_count * sizeof *r->seen);
        r->round = 1;
    }
}

static void run_note(struct glob_run *r, uint32_t node, size_t *todo) {
    if (r->seen[node] != r->round) {
        r->seen[node] = r->round;
        r->todo[(*todo)++] = node;
    }
}

/* Enters a node and those reached from it without reading. */
static void run_put(struct glob_run *r, uint32_t first) {
    size_t todo = 0;
    run_note(r, first, &todo);
    while (todo > 0) {
        uint32_t i = r->todo[--todo];
        const struct glob_node *n = &r->set->nodes[i];
        bool may_skip = n->op == GLOB_STAR || n->op == GLOB_DEEP;
        if (n->op == GLOB_SPLIT || n->op == GLOB_JUMP)
            run_note(r, n->arg, &todo);
        else
            r->next[r->next_count++] = i;
        if (n->op == GLOB_SPLIT || may_skip)
            run_note(r, i + 1, &todo);
    }
}

static bool run_in_ranges(const struct glob_node *n, uint32_t c) {
    for (uint32_t i = 0; i < n->arg; i++) {
        if (c >= n->ranges[2 * i] && c <= n->ranges[2 * i + 1])
            return true;
    }
    return false;
}

/* Whether the node reads c. */
static bool run_reads(const struct glob_node *n, uint32_t c) {
    switch (n->op) {
    case GLOB_CHAR: return c == n->arg;
    case GLOB_ANY:
    case GLOB_STAR: return c != '/';
    case GLOB_CLASS: return c != '/' && run_in_ranges(n, c);
    case GLOB_NOT_CLASS: return c != '/' && !run_in_ranges(n, c);
    case GLOB_DEEP: return true;
    case GLOB_SPLIT:
    case GLOB_JUMP:
    case GLOB_END: break;
    }
    return false;
}

static void run_advance(struct glob_run *r) {
    uint32_t *list = r->now;
    r->now = r->next;
    r->now_count = r->next_count;
    r->next = list;
}

void glob_run_start(struct glob_run *r) {
    run_begin(r);
    for (size_t i = 0; i < r->set->start_count; i++)
        run_put(r, r->set->starts[i]);
    run_advance(r);
}

/* Folds a capital letter, or a character that file systems treat as one. */
static uint32_t run_fold(uint32_t c) {
    if (c == 0x17F) /* long s */
        return 's';
    if (c == 0x212A) /* Kelvin sign */
        return 'k';
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

void glob_run_read(struct glob_run *r, const char *text) {
    const char *end = text + strlen(text);
    while (text < end && r->now_count > 0) {
        uint32_t c = glob_char(&text, end);
        if (r->set->fold)
            c = run_fold(c);
        run_begin(r);
        for (size_t i = 0; i < r->now_count; i++) {
            const struct glob_node *n = &r->set->nodes[r->now[i]];
            bool stays = n->op == GLOB_STAR || n->op == GLOB_DEEP;
            if (run_reads(n, c))
                run_put(r, r->now[i] + !stays);
        }
        run_advance(r);
    }
}

bool glob_run_matched(const struct glob_run *r) {
    for (size_t i = 0; i < r->now_count; i++) {
        if (r->set->nodes[r->now[i]].op == GLOB_END)
            return true;
    }
    return false;
}

int glob_run_save(const struct glob_run *r, struct glob_at *out) {
    *out = (struct glob_at){.nodes = malloc(MAX(r->now_count, (size_t)1) * sizeof *out->nodes)};
    if (out->nodes == NULL)
        return -ENOMEM;
    memcpy(out->nodes, r->now, r->now_count * sizeof *out->nodes);
    out->count = r->now_count;
    return 0;
}

void glob_run_load(struct glob_run *r, const struct glob_at *at) {
    memcpy(r->now, at->nodes, at->count * sizeof *r->now);
    r->now_count = at->count;
}

int glob_run_match(const struct glob_set *s, const char *path) {
    struct glob_run r;
    int result = glob_run_init(&r, s);
    if (result < 0)
        return result;
    glob_run_start(&r);
    glob_run_read(&r, path);
    result = glob_run_matched(&r);
    glob_run_fini(&r);
    return result;
}
