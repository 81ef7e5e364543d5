#pragma once
/* What the doctor found: for the files of this module. */

#include "app/doctor.h"
#include "sandbox/host/sandbox_host.h"

enum doctor_policy {
    DOCTOR_READ,    /* all can be read, nothing written */
    DOCTOR_FILE,    /* a single file can be written */
    DOCTOR_WRITE,   /* a directory can be written, but for protected names */
    DOCTOR_DENY,    /* a path is denied */
    DOCTOR_HIDE,    /* only what is granted can be seen */
    DOCTOR_NETWORK, /* with the network of the host */
    DOCTOR_MANAGED, /* with a managed network */
    DOCTOR_POLICIES
};

struct doctor {
    int self;               /* our executable, or -errno: no sandbox is possible */
    struct backend backend; /* in general, and facts about the host */
    struct backend_try trials[DOCTOR_POLICIES][LAUNCH_BACKENDS];
    int used[DOCTOR_POLICIES]; /* the backend that the server would take; -1: refused */
    unsigned causes;           /* bits of enum cause_kind */
    enum doctor_status status;
};

/* "readOnly"; "all files read-only". */
const char *doctor_policy_name(enum doctor_policy p);
const char *doctor_policy_text(enum doctor_policy p);

/* The fault of a trial; "" when there was none. */
const char *doctor_fault(const struct backend_try *t);

/* Writes the report as one JSON object. */
void doctor_json_print(const struct doctor *d, FILE *out);
