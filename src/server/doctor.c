#include "server/doctor.h"

#include "server/sandbox.h"

#include <sys/utsname.h>

/* Columns as of enum launch_backend. */
static const struct {
    const char *what;
    bool by[LAUNCH_BACKENDS];
} doctor_rows[] = {
    {"files read-only, single ones writable", {true, true, true}},
    {"writable directories, with protected names inside", {true, true, false}},
    {"denied paths, hidden files", {true, true, false}},
    {"no network", {true, true, true}},
    {"managed network", {true, true, false}},
    {"private /dev, /proc and System V IPC", {true, true, false}},
    {"processes of the host out of reach", {true, true, false}},
};

static const char *doctor_yes(bool yes) {
    return yes ? "yes" : "no";
}

static void doctor_print_backends(const struct backend *b, FILE *out) {
    int best = backend_best(b);
    fputs("Backends, the preferred first:\n", out);
    for (int i = 0; i < LAUNCH_BACKENDS; i++) {
        const struct backend_try *t = &b->tries[i];
        fprintf(out, "  %-9s ", backend_name((enum launch_backend)i));
        if (!t->works)
            fprintf(out, "no: %s\n", t->fault.text);
        else
            fprintf(out, "yes%s%s\n", i == best ? ", in use" : "",
                    t->shares_proc ? ", with the container's /proc" : "");
    }
}

static void doctor_print_table(const struct backend *b, FILE *out) {
    fprintf(out, "\n%-57s", "What they can enforce here:");
    for (int i = 0; i < LAUNCH_BACKENDS; i++)
        fprintf(out, " %-8s", backend_name((enum launch_backend)i));
    for (size_t row = 0; row < ARRAY_LEN(doctor_rows); row++) {
        fprintf(out, "\n  %-55s", doctor_rows[row].what);
        for (int i = 0; i < LAUNCH_BACKENDS; i++)
            fprintf(out, " %-8s", doctor_yes(b->tries[i].works && doctor_rows[row].by[i]));
    }
    fputs("\n", out);
}

static void doctor_print_kernel(const struct backend *b, FILE *out) {
    struct utsname u;
    char value[64];
    if (uname(&u) == 0)
        fprintf(out, "\nKernel: %s %s %s\n", u.sysname, u.release, u.machine);
    if (b->landlock > 0)
        fprintf(out, "  %-46s ABI %u\n", "Landlock", b->landlock);
    else
        fprintf(out, "  %-46s %s\n", "Landlock", "not there (CONFIG_SECURITY_LANDLOCK, lsm=)");
    const char *name;
    for (size_t i = 0; (name = backend_setting(i)) != NULL; i++) {
        backend_setting_value(name, value, sizeof value);
        fprintf(out, "  %-46s %s\n", name, value[0] != '\0' ? value : "not there");
    }
}

int doctor_run(FILE *out) {
    struct sandbox_host h;
    struct backend b = {0};
    sandbox_host_init(&h, false, NULL);
    if (h.self < 0) {
        fprintf(out,
                "No sandbox is possible: /proc/self/exe cannot be opened, or be copied into "
                "memory\nto run it from there (vm.memfd_noexec): %s.\n",
                err_os_text(-h.self));
        return 1;
    }
    backend_probe(h.self, true, &b);
    sandbox_host_fini(&h);
    doctor_print_backends(&b, out);
    doctor_print_table(&b, out);
    doctor_print_kernel(&b, out);
    bool full = b.tries[LAUNCH_USERNS].works || b.tries[LAUNCH_ROOT].works;
    fprintf(out, "\n%s\n",
            full                             ? "Every sandbox policy can be enforced."
            : b.tries[LAUNCH_LANDLOCK].works ? "Some sandbox policies can be enforced, others are "
                                               "refused."
                                             : "Starts that ask for a sandbox are refused.");
    return full && fflush(out) == 0 && !ferror(out) ? 0 : 1;
}
