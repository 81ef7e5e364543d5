/* DENY: the call fails, and the caller is made to write the reason and to exit. It needs no program
 * for that, only two system calls. */
#include "intercept/intercept_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DENY_TEXT_MAX (INTERCEPT_REASON_MAX + 64)
#define DENY_CODE 1

void intercept_deny_go(struct intercept_ask *a) {
    int r = intercept_trace_seize(a->tid);
    if (r < 0) { /* somebody else traces it */
        (void)intercept_respond(a, -EACCES);
        intercept_ask_over(a);
        return;
    }
    intercept_ask_set(a, INTERCEPT_REFUSING);
    list_append(&a->host->traced, &a->traced);
    (void)intercept_respond(a, -EACCES);
}

/* Makes it write the reason. False: it cannot, and only sees its call fail. */
static bool deny_print(struct intercept_ask *a) {
    char text[DENY_TEXT_MAX];
    int n = a->reason == NULL ? snprintf(text, sizeof text, "Execution denied\n")
                              : snprintf(text, sizeof text, "Execution denied: %s\n", a->reason);
    if (intercept_trace_save(a->tid, &a->saved) < 0)
        return false;
    uint64_t at = 0;
    if (intercept_trace_can_call(&a->saved, a->arch))
        at = intercept_trace_room(&a->saved, (size_t)n);
    if (at == 0 || intercept_trace_write(a->tid, at, text, (size_t)n) < 0)
        return false;
    const uint64_t args[5] = {STDERR_FILENO, at, (uint64_t)n};
    return intercept_trace_call(a->tid, &a->saved, TRACE_WRITE, args) == 0;
}

static void deny_give_up(struct intercept_ask *a) {
    intercept_trace_restore(a->tid, &a->saved);
    intercept_trace_let_go(a->tid, 0);
    intercept_ask_over(a);
}

/* The text is written, or cannot be. */
static void deny_exit(struct intercept_ask *a) {
    const uint64_t args[5] = {DENY_CODE};
    if (intercept_trace_call(a->tid, &a->saved, TRACE_EXIT, args) < 0) {
        deny_give_up(a);
        return;
    }
    intercept_trace_let_go(a->tid, 0);
    intercept_ask_over(a);
}

void intercept_deny_stopped(struct intercept_ask *a, int status) {
    if (a->state == INTERCEPT_REFUSING && intercept_trace_is_stop(status)) {
        if (!deny_print(a)) {
            deny_give_up(a);
            return;
        }
        intercept_ask_set(a, INTERCEPT_PRINTING);
    } else if (a->state == INTERCEPT_PRINTING && intercept_trace_is_call(status)) {
        if (++a->steps == 2) { /* the start of the call, then its end */
            deny_exit(a);
            return;
        }
    }
    intercept_trace_continue(a->tid, a->state == INTERCEPT_PRINTING);
}
