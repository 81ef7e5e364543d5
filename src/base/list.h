#pragma once
/* Intrusive doubly linked list. An unlinked node points to itself; the head is a node too. */

#include "base/util.h"

#include <stdbool.h>

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l) {
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l) {
    return l->next == l;
}

static inline void list_insert_before(struct list *pos, struct list *node) {
    node->prev = pos->prev;
    node->next = pos;
    pos->prev->next = node;
    pos->prev = node;
}

static inline void list_append(struct list *head, struct list *node) {
    list_insert_before(head, node);
}

/* Unlinks; harmless on an unlinked node. */
static inline void list_remove(struct list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* The first node, or NULL. */
static inline struct list *list_first(const struct list *head) {
    return list_empty(head) ? NULL : head->next;
}

#define list_entry(node, type, member) container_of(node, type, member)

/* Walks the list; the current node may be removed from it (but not its successor). */
#define list_for_each(it, head)                                                                    \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                      \
         it = it##_next, it##_next = it->next)
