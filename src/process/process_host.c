#include "process/process_host.h"

#include "process/network.h"
#include "process/process.h"
#include "process/snapshot.h"

#include <sodium.h>

int process_host_init(struct process_host *h, const struct process_settings *settings,
                      struct rlimit nofile, const char *home) {
    h->settings = *settings;
    list_init(&h->detached);
    list_init(&h->dying);
    list_init(&h->captures);
    hash_init(&h->sessions);
    hash_init(&h->shown);
    ledger_init(&h->ledger);
    retention_init(&h->outputs, settings->closed_output_max);
    retention_init(&h->entries, PROCESS_HOST_ENTRIES_MAX);
    randombytes_buf(h->write_key, sizeof h->write_key);
    remains_init(&h->remains, h->loop);
    sandbox_host_init(&h->sandbox, settings->inherit_pids, home);
    proxy_host_init(&h->proxies, h->loop, &network_ops, NULL);
    int r = proc_host_init(&h->procs, h->loop, nofile);
    h->procs.children.spare_strays |= settings->keep_detached;
    return r;
}

int process_host_check_limits(struct process_host *h, struct err *e) {
    struct limits all = h->settings.limits;
    struct limits_steps steps = {0};
    struct cgroup group = {0};
    for (int k = 0; k < LIMITS_KINDS; k++) {
        if (!all.given[k])
            all.value[k] = h->settings.limits_max.value[k];
        all.given[k] |= h->settings.limits_max.given[k];
    }
    int r = limits_plan(&all, &h->procs.cgroups, &group, &steps, e);
    limits_steps_fini(&steps);
    cgroup_remove(&group);
    return r;
}

void process_host_fini(struct process_host *h) {
    for (struct list *n; (n = list_first(&h->dying)) != NULL;)
        process_free(
            list_entry(n, struct process, link)); /* only what could not be ended in time */
    snapshot_free_dying(h);
    remains_fini(&h->remains);
    proxy_host_fini(&h->proxies);
    proc_host_fini(&h->procs);
    hash_fini(&h->sessions);
    hash_fini(&h->shown);
    retention_fini(&h->outputs);
    retention_fini(&h->entries);
    sandbox_host_fini(&h->sandbox);
    ledger_fini(&h->ledger);
}

void process_host_ask_to_end(struct process_host *h) {
    for (size_t i = 0; i < h->sessions.nbuckets; i++) {
        for (struct hash_node *n = h->sessions.buckets[i]; n != NULL; n = n->next) {
            struct session *s = container_of(n, struct session, node);
            list_for_each(it, &s->order) {
                proc_ask_to_end(&list_entry(it, struct process, order)->proc);
            }
            list_for_each(it, &s->leftovers) {
                proc_ask_to_end(&list_entry(it, struct process, link)->proc);
            }
        }
    }
}

void process_host_end_detached(struct process_host *h) {
    list_for_each(n, &h->detached) {
        session_end(list_entry(n, struct session, detached_node));
    }
}

void process_host_end_sessions(struct process_host *h) {
    for (size_t i = 0; i < h->sessions.nbuckets; i++) {
        while (h->sessions.nbuckets > 0 && h->sessions.buckets[i] != NULL)
            session_end(container_of(h->sessions.buckets[i], struct session, node));
    }
}

static void process_host_count_session(const struct session *s, struct metrics_now *now) {
    list_for_each(n, &s->order) {
        const struct proc *p = &list_entry(n, struct process, order)->proc;
        now->processes[p->state]++;
        now->stdin_queue += p->stdinq.bytes;
        if (p->state != PROC_CLOSED)
            now->retained_open += proc_retained(p);
    }
}

void process_host_count(const struct process_host *h, struct metrics_now *now) {
    now->detached = h->detached_count;
    now->attached = h->sessions.count - h->detached_count - h->console_count;
    now->retained_closed = h->outputs.bytes;
    now->supervisors = h->procs.children.live;
    for (size_t i = 0; i < h->sessions.nbuckets; i++) {
        for (struct hash_node *n = h->sessions.buckets[i]; n != NULL; n = n->next)
            process_host_count_session(container_of(n, struct session, node), now);
    }
}
