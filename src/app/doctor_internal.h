#pragma once
/* The findings of the doctor, for the files of this module only. */

#include "app/doctor.h"
#include "sandbox/host/sandbox_host.h"

enum doctor_policy {
    DOCTOR_READ,    /* read all, write nothing */
    DOCTOR_FILE,    /* write a single file */
    DOCTOR_WRITE,   /* write a directory, but no protected name */
    DOCTOR_DENY,    /* deny a path */
    DOCTOR_HIDE,    /* see only granted paths */
    DOCTOR_NETWORK, /* use the host's network */
    DOCTOR_MANAGED, /* use a managed network */
    DOCTOR_POLICIES
};

struct doctor {
    int self;               /* our executable, or -errno: no sandbox is possible */
    struct backend backend; /* in general, and facts about the host */
    struct backend_try trials[DOCTOR_POLICIES][LAUNCH_BACKENDS];
    int used[DOCTOR_POLICIES]; /* the backend that the server would use; -1: refused */
    unsigned causes;           /* bits of enum cause_kind */
    enum doctor_status status;
    bool notify; /* the kernel can tell of every exec (intercept/intercept.h) */
    char notify_why[256];
};

/* "readOnly"; "all files read-only". */
const char *doctor_policy_name(enum doctor_policy p);
const char *doctor_policy_text(enum doctor_policy p);

/* The fault of a trial; "" when there was none. */
const char *doctor_fault(const struct backend_try *t);

/* Writes the report as one JSON object. */
void doctor_json_print(const struct doctor *d, FILE *out);
