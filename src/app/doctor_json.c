#include "app/doctor_internal.h"

#include "json/jsonw.h"

#include <sys/utsname.h>

#define DOCTOR_JSON_MAX 65536

/* Writes a member with `text`, one of our own texts or the kernel's: always UTF-8. */
static int json_text(struct buf *b, const char *name, const char *text) {
    int r = buf_putf(b, "\"%s\":", name);
    if (r == 0)
        r = text != NULL ? jsonw_str(b, str_of(text)) : buf_putz(b, "null");
    return r;
}

static const char *json_bool(bool yes) {
    return yes ? "true" : "false";
}

static int json_try(struct buf *b, const struct backend_try *t) {
    int r = buf_putf(b, "{\"works\":%s", json_bool(t->works));
    if (r == 0 && t->works)
        r = buf_putf(b, ",\"proc\":\"%s\"", t->shares_proc ? "shared" : "own");
    if (r == 0 && !t->works) {
        r = buf_putz(b, ",");
        if (r == 0)
            r = json_text(b, "step", fault_name(t->fault.step));
        if (r == 0)
            r = buf_putf(b, ",\"errno\":%d,", t->fault.error);
        if (r == 0)
            r = json_text(b, "why", t->fault.text);
    }
    return r < 0 ? r : buf_putz(b, "}");
}

static int json_backends(struct buf *b, const struct backend_try *tries) {
    int r = buf_putz(b, "{");
    for (unsigned i = 0; r == 0 && i < LAUNCH_BACKENDS; i++) {
        r = buf_putf(b, "%s\"%s\":", i > 0 ? "," : "", backend_name((enum launch_backend)i));
        if (r == 0)
            r = json_try(b, &tries[i]);
    }
    return r < 0 ? r : buf_putz(b, "}");
}

static int json_policies(struct buf *b, const struct doctor *d) {
    int r = buf_putz(b, ",\"policies\":{");
    for (unsigned k = 0; r == 0 && k < DOCTOR_POLICIES; k++) {
        const char *used = d->used[k] < 0 ? NULL : backend_name((enum launch_backend)d->used[k]);
        r = buf_putf(b, "%s\"%s\":{", k > 0 ? "," : "", doctor_policy_name((enum doctor_policy)k));
        if (r == 0)
            r = json_text(b, "enforcedBy", used);
        if (r == 0)
            r = buf_putz(b, ",\"trials\":");
        if (r == 0)
            r = json_backends(b, d->trials[k]);
        if (r == 0)
            r = buf_putz(b, "}");
    }
    return r < 0 ? r : buf_putz(b, "}");
}

static int json_cause(struct buf *b, enum cause_kind kind) {
    int r = buf_putz(b, "{");
    if (r == 0)
        r = json_text(b, "id", cause_name(kind));
    if (r == 0)
        r = buf_putz(b, ",");
    if (r == 0)
        r = json_text(b, "what", cause_text(kind));
    for (unsigned engine = 0; r == 0 && engine < CAUSE_ENGINES; engine++) {
        r = buf_putz(b, ",");
        if (r == 0)
            r = json_text(b, cause_engine_name(engine), cause_option(kind, engine));
    }
    if (r == 0)
        r = buf_putz(b, ",");
    if (r == 0)
        r = json_text(b, "sysctl", cause_setting(kind));
    return r < 0 ? r : buf_putz(b, "}");
}

static int json_causes(struct buf *b, unsigned causes) {
    int r = buf_putz(b, ",\"causes\":[");
    bool first = true;
    for (unsigned k = 0; r == 0 && k < CAUSES; k++) {
        if ((causes >> k & 1) == 0)
            continue;
        r = first ? 0 : buf_putz(b, ",");
        first = false;
        if (r == 0)
            r = json_cause(b, (enum cause_kind)k);
    }
    return r < 0 ? r : buf_putz(b, "]");
}

static int json_host(struct buf *b, const struct doctor *d) {
    const struct cause_facts *f = &d->backend.facts;
    enum cause_engine engine = cause_engine_of(f);
    struct utsname u;
    int r = buf_putz(b, ",\"host\":{");
    if (r == 0)
        r = json_text(b, "kernel", uname(&u) == 0 ? u.release : NULL);
    if (r == 0)
        r = buf_putf(b, ",\"landlock\":%u,", d->backend.landlock);
    if (r == 0)
        r = json_text(b, "container", engine < CAUSE_ENGINES ? cause_engine_name(engine) : NULL);
    if (r == 0)
        r = buf_putf(b,
                     ",\"seccomp\":%u,\"callsFiltered\":%s,\"appArmor\":%s,\"seLinux\":%s,"
                     "\"procHidden\":%s,\"cgroupDelegated\":%s,\"settings\":{",
                     f->seccomp, json_bool(f->clone_filtered || f->mounts_filtered),
                     json_bool(f->apparmor), json_bool(f->selinux), json_bool(f->proc_hidden),
                     json_bool(f->delegated));
    const char *name;
    for (size_t i = 0; r == 0 && (name = backend_setting(i)) != NULL; i++) {
        char value[64];
        backend_setting_value(name, value, sizeof value);
        r = i > 0 ? buf_putz(b, ",") : 0;
        if (r == 0)
            r = json_text(b, name, value[0] != '\0' ? value : NULL);
    }
    return r < 0 ? r : buf_putz(b, "}}");
}

void doctor_json_print(const struct doctor *d, FILE *out) {
    static const char *const verdicts[] = {
        [DOCTOR_ALL] = "all", [DOCTOR_SOME] = "some", [DOCTOR_NONE] = "none"};
    _cleanup_buf_ struct buf b = BUF_INIT(DOCTOR_JSON_MAX);
    int r = buf_putf(&b, "{\"enforces\":\"%s\"", verdicts[d->status]);
    int best = backend_best(&d->backend);
    if (r == 0)
        r = buf_putz(&b, ",");
    if (r == 0)
        r = json_text(&b, "backend", best < 0 ? NULL : backend_name((enum launch_backend)best));
    if (r == 0 && d->self < 0) {
        r = buf_putz(&b, ",");
        if (r == 0)
            r = json_text(&b, "why", err_os_text(-d->self));
    } else if (r == 0) {
        r = buf_putz(&b, ",\"backends\":");
        if (r == 0)
            r = json_backends(&b, d->backend.tries);
        if (r == 0)
            r = json_policies(&b, d);
        if (r == 0)
            r = json_causes(&b, d->causes);
        if (r == 0)
            r = json_host(&b, d);
    }
    if (r == 0)
        r = buf_putf(&b, ",\"intercept\":{\"notify\":%s,", json_bool(d->notify));
    if (r == 0)
        r = json_text(&b, "why", d->notify ? NULL : d->notify_why);
    if (r == 0)
        r = buf_putc(&b, '}');
    if (r == 0 && buf_putz(&b, "}\n") == 0)
        fwrite(b.p, 1, b.len, out);
}
