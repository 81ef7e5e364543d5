#include "ops/ops.h"

#include <inttypes.h>
#include <stdio.h>

int ops_init(struct ops *o, struct loop *loop, const char *path, struct err *e) {
    *o = (struct ops){.loop = loop};
    return path != NULL ? audit_open(&o->audit, path, e) : 0;
}

static void ops_put_text(struct audit *a, const char *name, const char *text, size_t max) {
    if (text != NULL && text[0] != '\0')
        audit_text(a, name, str_of(text), max);
}

void ops_put_who(struct ops *o, const struct ops_who *who) {
    ops_put_text(&o->audit, "peer", who->peer, OPS_TEXT_MAX);
    ops_put_text(&o->audit, "session", who->session, OPS_SESSION_LOGGED);
    ops_put_text(&o->audit, "client", who->client, OPS_TEXT_MAX);
    ops_put_text(&o->audit, "subject", who->subject, OPS_TEXT_MAX);
    if (who->console)
        audit_flag(&o->audit, "console", true);
}

void ops_log(enum log_level level, const char *message, const struct log_field *fields,
             size_t count, const struct ops_who *who) {
    struct log_field all[OPS_FIELDS_MAX + 4];
    if (!log_enabled(level))
        return;
    struct str session = str_of(who->session);
    session.n = MIN(session.n, (size_t)OPS_SESSION_LOGGED);
    if (count > 0)
        memcpy(all, fields, count * sizeof *fields);
    all[count++] = (struct log_field){"peer", str_of(who->peer)};
    all[count++] = (struct log_field){"session", session};
    all[count++] = (struct log_field){"client", str_of(who->client)};
    all[count++] = (struct log_field){"token", str_of(who->subject)};
    log_fields(level, message, all, count);
}

/* Writes the sums of refusals without a line of their own. */
static void ops_sum_refusals(struct ops *o) {
    struct audit *a = &o->audit;
    const char *key;
    uint64_t count;
    if (!o->refusals.waiting) /* o->loop may be missing: a start that failed */
        return;
    uint64_t seconds = (o->loop->now / LOOP_MS - o->refusals.since) / 1000;
    while (refusals_take(&o->refusals, &key, &count)) {
        const char *peer = key[0] != '\0' ? key : "others";
        log_warn("%" PRIu64 " connections of %s refused in %" PRIu64 " s", count, peer, seconds);
        if (!audit_enabled(a))
            continue;
        audit_begin(a, "refused");
        audit_text(a, "peer", str_of(peer), OPS_TEXT_MAX);
        audit_text(a, "what", STR_LIT("connections"), OPS_TEXT_MAX);
        audit_number(a, "count", (int64_t)count);
        audit_number(a, "seconds", (int64_t)seconds);
        audit_end(a);
    }
}

static void ops_on_refusals(struct loop_timer *t) {
    ops_sum_refusals(container_of(t, struct ops, refusals_timer));
}

void ops_turned_away(struct ops *o, enum metrics_refusal why, const char *peer, int status,
                     const char *reason) {
    struct audit *a = &o->audit;
    o->metrics.refused[why]++;
    bool room = !audit_enabled(a) || audit_has_share(a);
    if (!refusals_admit(&o->refusals, peer, o->loop->now / LOOP_MS, room)) {
        o->refusals_timer.fn = ops_on_refusals;
        if (o->refusals_timer.pos == 0)
            (void)!loop_timer_set(o->loop, &o->refusals_timer, REFUSALS_SUM_MS * LOOP_MS);
        return;
    }
    char code[16] = "";
    if (status != 0)
        snprintf(code, sizeof code, "%d", status);
    const struct log_field fields[] = {{"reason", str_of(reason)}, {"status", str_of(code)}};
    const struct ops_who who = {.peer = peer};
    ops_log(LOG_LEVEL_WARN, "connection refused", fields, ARRAY_LEN(fields), &who);
    if (!audit_enabled(a))
        return;
    audit_begin(a, "refused");
    audit_text(a, "peer", str_of(peer), OPS_TEXT_MAX);
    audit_text(a, "what", STR_LIT("connection"), OPS_TEXT_MAX);
    if (status != 0)
        audit_number(a, "status", status);
    audit_text(a, "reason", str_of(reason), OPS_TEXT_MAX);
    audit_end(a);
}

void ops_fini(struct ops *o) {
    ops_sum_refusals(o);
    if (o->loop != NULL)
        loop_timer_del(o->loop, &o->refusals_timer);
    audit_close(&o->audit);
    metrics_fini(&o->metrics);
}
