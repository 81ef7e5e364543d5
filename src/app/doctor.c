#include "app/doctor.h"

#include "app/doctor_internal.h"
#include "intercept/intercept.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define DOCTOR_SELF_MIN 20  /* above the descriptors that launchers get */
#define DOCTOR_PATH_MAX 128 /* bytes of the path of the directory for trials */

static const struct {
    const char *name, *text;
} doctor_policies[DOCTOR_POLICIES] = {
    [DOCTOR_READ] = {"readOnly", "all files read-only, no network"},
    [DOCTOR_FILE] = {"writableFile", "a single file writable"},
    [DOCTOR_WRITE] = {"writableDirectory", "a directory writable, with protected names"},
    [DOCTOR_DENY] = {"deniedPath", "a path denied"},
    [DOCTOR_HIDE] = {"hiddenFiles", "everything hidden but what is granted"},
    [DOCTOR_NETWORK] = {"network", "the network of the host"},
    [DOCTOR_MANAGED] = {"managedNetwork", "a managed network"},
};

const char *doctor_policy_name(enum doctor_policy p) {
    return doctor_policies[p].name;
}

const char *doctor_policy_text(enum doctor_policy p) {
    return doctor_policies[p].text;
}

const char *doctor_fault(const struct backend_try *t) {
    return t->works ? "" : t->fault.text;
}

/* -- trials -- */

/* A directory for trials to write to, with a file and a protected name. */
struct doctor_place {
    char dir[DOCTOR_PATH_MAX];
    char file[DOCTOR_PATH_MAX + 16], protected_dir[DOCTOR_PATH_MAX + 16],
        protected_file[DOCTOR_PATH_MAX + 32];
};

static int doctor_make_file(const char *path) {
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : 0;
}

static int doctor_fill_place(struct doctor_place *p) {
    snprintf(p->file, sizeof p->file, "%s/file", p->dir);
    snprintf(p->protected_dir, sizeof p->protected_dir, "%s/%s", p->dir, plan_protected[0]);
    snprintf(p->protected_file, sizeof p->protected_file, "%s/file", p->protected_dir);
    int r = doctor_make_file(p->file);
    if (r == 0 && mkdir(p->protected_dir, 0700) < 0)
        r = -errno;
    return r == 0 ? doctor_make_file(p->protected_file) : r;
}

/* 0, or -errno if no directory is writable. */
static int doctor_make_place(struct doctor_place *p) {
    static const char *const parents[] = {"/tmp", "/var/tmp", "/dev/shm", "."};
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        _cleanup_free_ char *real = realpath(parents[i], NULL);
        if (real == NULL)
            continue;
        snprintf(p->dir, sizeof p->dir, "%s/exec-server-doctor-XXXXXX", real);
        if (mkdtemp(p->dir) != NULL)
            return doctor_fill_place(p);
    }
    p->dir[0] = '\0';
    return -EROFS;
}

static void doctor_remove_place(const struct doctor_place *p) {
    if (p->dir[0] == '\0')
        return;
    (void)unlink(p->file);
    (void)unlink(p->protected_file);
    (void)rmdir(p->protected_dir);
    (void)rmdir(p->dir);
}

/* The plan of a trial; `entries` is room for two. */
static struct plan doctor_plan(enum doctor_policy kind, const struct doctor_place *place,
                               struct plan_entry entries[2]) {
    struct plan p = {.confine_files = true, .full_read = true, .cwd = "/"};
    entries[p.entry_count++] = (struct plan_entry){"/", PLAN_READ};
    if (kind == DOCTOR_WRITE)
        entries[p.entry_count++] = (struct plan_entry){place->dir, PLAN_WRITE};
    else if (kind == DOCTOR_FILE || kind == DOCTOR_DENY)
        entries[p.entry_count++] =
            (struct plan_entry){place->file, kind == DOCTOR_FILE ? PLAN_WRITE : PLAN_DENY};
    else if (kind == DOCTOR_HIDE) {
        p.full_read = false;
        p.minimal = true;
        entries[0] = (struct plan_entry){place->dir, PLAN_WRITE};
    }
    p.network = kind == DOCTOR_NETWORK   ? PLAN_NET_ENABLED
                : kind == DOCTOR_MANAGED ? PLAN_NET_MANAGED
                                         : PLAN_NET_RESTRICTED;
    p.entries = entries;
    return p;
}

static bool doctor_needs_place(enum doctor_policy kind) {
    return kind == DOCTOR_FILE || kind == DOCTOR_WRITE || kind == DOCTOR_DENY ||
           kind == DOCTOR_HIDE;
}

static void doctor_try_policy(struct doctor *d, enum doctor_policy kind,
                              const struct doctor_place *place, int no_place) {
    struct plan_entry entries[2];
    const struct plan plan = doctor_plan(kind, place, entries);
    _cleanup_err_ struct err e = ERR_INIT;
    for (unsigned b = 0; b < LAUNCH_BACKENDS; b++) {
        struct backend_try *t = &d->trials[kind][b];
        if (no_place < 0 && doctor_needs_place(kind))
            fault_os(&t->fault, FAULT_LOST, -no_place, "no directory to try it in");
        else
            backend_try_plan(d->self, (enum launch_backend)b, &plan, t);
    }
    enum launch_backend used;
    d->used[kind] =
        backend_choose(&d->backend, &plan, &used, &e) == 0 && d->trials[kind][used].works
            ? (int)used
            : -1;
}

/* The causes that keep backends from working. */
static unsigned doctor_causes(const struct doctor *d) {
    const struct cause_facts *f = &d->backend.facts;
    unsigned causes = f->delegated ? 0 : 1u << CAUSE_CGROUPS;
    bool shared = false;
    for (unsigned kind = 0; kind < DOCTOR_POLICIES; kind++) {
        int used = d->used[kind];
        if (used < 0) {
            int best = backend_best(&d->backend);
            bool weak = best < 0 || best == LAUNCH_LANDLOCK;
            causes |= cause_find(f, &d->trials[kind][weak ? LAUNCH_USERNS : best].fault);
        }
        shared |= used >= 0 && d->trials[kind][used].shares_proc;
    }
    return causes | (shared ? 1u << CAUSE_PROC : 0);
}

static enum doctor_status doctor_verdict(const struct doctor *d) {
    size_t good = 0;
    for (unsigned kind = 0; kind < DOCTOR_POLICIES; kind++)
        good += d->used[kind] >= 0;
    return good == DOCTOR_POLICIES ? DOCTOR_ALL : good > 0 ? DOCTOR_SOME : DOCTOR_NONE;
}

static void doctor_examine(struct doctor *d) {
    struct doctor_place place;
    backend_probe(d->self, true, &d->backend);
    int no_place = doctor_make_place(&place);
    for (unsigned kind = 0; kind < DOCTOR_POLICIES; kind++)
        doctor_try_policy(d, (enum doctor_policy)kind, &place, no_place);
    doctor_remove_place(&place);
    d->causes = doctor_causes(d);
    d->status = doctor_verdict(d);
}

/* -- the report as text -- */

static void doctor_print_backends(const struct doctor *d, FILE *out) {
    int best = backend_best(&d->backend);
    fputs("Backends, the preferred first:\n", out);
    for (int i = 0; i < LAUNCH_BACKENDS; i++) {
        const struct backend_try *t = &d->backend.tries[i];
        fprintf(out, "  %-9s ", backend_name((enum launch_backend)i));
        if (!t->works)
            fprintf(out, "no: %s\n", t->fault.text);
        else
            fprintf(out, "yes%s%s\n", i == best ? ", in use" : "",
                    t->shares_proc ? ", with the container's /proc" : "");
    }
}

static void doctor_print_table(const struct doctor *d, FILE *out) {
    fprintf(out, "\n%-48s", "Policies, each of them tried:");
    for (int i = 0; i < LAUNCH_BACKENDS; i++)
        fprintf(out, " %-8s", backend_name((enum launch_backend)i));
    for (unsigned kind = 0; kind < DOCTOR_POLICIES; kind++) {
        fprintf(out, "\n  %-46s", doctor_policies[kind].text);
        for (int i = 0; i < LAUNCH_BACKENDS; i++)
            fprintf(out, " %-8s", d->trials[kind][i].works ? "yes" : "no");
    }
    fputs("\n", out);
    for (unsigned kind = 0; kind < DOCTOR_POLICIES; kind++) {
        int best = backend_best(&d->backend);
        if (d->used[kind] < 0 && best >= 0)
            fprintf(out, "  refused: %s: %s\n", doctor_policies[kind].text,
                    doctor_fault(&d->trials[kind][best]));
    }
}

static void doctor_print_causes(const struct doctor *d, FILE *out) {
    enum cause_engine at = cause_engine_of(&d->backend.facts);
    if (d->causes != 0)
        fputs("\nCauses, and what would change that:\n", out);
    for (unsigned k = 0; k < CAUSES; k++) {
        if ((d->causes >> k & 1) == 0)
            continue;
        fprintf(out, "  %s: %s\n", cause_name(k), cause_text(k));
        for (unsigned engine = 0; engine < CAUSE_ENGINES; engine++) {
            if (cause_option(k, engine) != NULL)
                fprintf(out, "    %-12s %s%s\n", cause_engine_name(engine), cause_option(k, engine),
                        engine == at ? "   (this container)" : "");
        }
        if (cause_setting(k) != NULL)
            fprintf(out, "    %-12s sysctl %s\n", "host", cause_setting(k));
    }
}

static void doctor_print_host(const struct doctor *d, FILE *out) {
    const struct cause_facts *f = &d->backend.facts;
    struct utsname u;
    char value[64];
    if (uname(&u) == 0)
        fprintf(out, "\nKernel: %s %s %s\n", u.sysname, u.release, u.machine);
    if (d->backend.landlock > 0)
        fprintf(out, "  %-46s ABI %u\n", "Landlock", d->backend.landlock);
    else
        fprintf(out, "  %-46s %s\n", "Landlock", "not there (CONFIG_SECURITY_LANDLOCK, lsm=)");
    fprintf(out, "  %-46s %s\n", "seccomp filter around this process",
            f->seccomp == 0                           ? "none"
            : f->clone_filtered || f->mounts_filtered ? "yes, refuses namespaces or mounts"
                                                      : "yes");
    fprintf(out, "  %-46s %s\n", "security module around this process",
            f->apparmor  ? "AppArmor profile"
            : f->selinux ? "SELinux context"
                         : "none");
    fprintf(out, "  %-46s %s\n", "parts of /proc hidden", f->proc_hidden ? "yes" : "no");
    fprintf(out, "  %-46s %s\n", "cgroup delegated", f->delegated ? "yes" : "no");
    const char *name;
    for (size_t i = 0; (name = backend_setting(i)) != NULL; i++) {
        backend_setting_value(name, value, sizeof value);
        fprintf(out, "  %-46s %s\n", name, value[0] != '\0' ? value : "not there");
    }
}

/* What the MCP server can do: whether the kernel can tell of every exec. */
static void doctor_print_interception(const struct doctor *d, FILE *out) {
    fputs("\nInterception of programs (exec-server mcp):\n", out);
    if (d->notify)
        fputs("  notify    yes, in use\n", out);
    else
        fprintf(out, "  notify    no: %s\n", d->notify_why);
    fputs("  wrapper   yes, with a patched Bash (--bash)\n", out);
}

static void doctor_try_interception(struct doctor *d) {
    _cleanup_err_ struct err e = ERR_INIT;
    d->notify = intercept_probe(&e) == 0;
    snprintf(d->notify_why, sizeof d->notify_why, "%s", d->notify ? "" : err_msg(&e));
}

static void doctor_print(const struct doctor *d, FILE *out) {
    if (d->self < 0) {
        fprintf(out,
                "No sandbox is possible: /proc/self/exe cannot be opened, or be copied into "
                "memory\nto run it from there (vm.memfd_noexec): %s.\n",
                err_os_text(-d->self));
        return;
    }
    doctor_print_backends(d, out);
    doctor_print_table(d, out);
    doctor_print_causes(d, out);
    doctor_print_host(d, out);
    doctor_print_interception(d, out);
    fprintf(out, "\n%s\n",
            d->status == DOCTOR_ALL    ? "Every sandbox policy can be enforced."
            : d->status == DOCTOR_SOME ? "Some sandbox policies can be enforced, others are "
                                         "refused."
                                       : "Starts that ask for a sandbox are refused.");
}

int doctor_run(bool json, FILE *out) {
    struct sandbox_host h;
    static struct doctor d;
    sandbox_host_init(&h, false, NULL);
    d = (struct doctor){.self = h.self, .status = DOCTOR_NONE};
    doctor_try_interception(&d);
    if (h.self >= 0) {
        d.self = fcntl(h.self, F_DUPFD_CLOEXEC, DOCTOR_SELF_MIN);
        doctor_examine(&d);
        util_close_fd(&d.self);
        d.self = 0;
    }
    sandbox_host_fini(&h);
    if (json)
        doctor_json_print(&d, out);
    else
        doctor_print(&d, out);
    return fflush(out) == 0 && !ferror(out) ? (int)d.status : DOCTOR_SOME;
}
