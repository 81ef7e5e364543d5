#pragma once
/*
 * Numbered steps of a sandboxed start, for tests that kill a process there. Only a test program has
 * them (EXEC_SERVER_STEPS); elsewhere step_reach() does nothing.
 *
 * The server's environment names a step, EXEC_SERVER_STEP. A process that reaches it renames itself
 * to "step-N" and waits for SIGUSR2; it stops there only once.
 */

enum step {
    STEP_NONE,
    STEP_SUPERVISOR_STARTS, /* the supervisor, before it executes the launcher */
    STEP_SUPERVISOR_WAITS,
    STEP_LAUNCHER_STARTS, /* the launcher, before it reads its request */
    STEP_PLACE_NOTED,     /* in the list */
    STEP_PLACE_MADE,      /* on the host, or found there */
    STEP_PLACE_OPENED,
    STEP_PLACE_HELD,
    STEP_PLACE_TIMED,
    STEP_LAID_OUT, /* all places are held */
    STEP_CLONED,   /* the launcher, beside init */
    STEP_INIT_STARTS,
    STEP_INIT_TIED,   /* to the launcher's life; has copies of its descriptors */
    STEP_INIT_CLOSED, /* no longer has them */
    STEP_INIT_MOUNTED,
    STEP_INIT_READY,    /* without privileges, before the command */
    STEP_INIT_STARTED,  /* the command runs */
    STEP_INIT_REPORTED, /* the server knows */
    STEP_INIT_ENDING,   /* the command has ended */
    STEP_INIT_ENDED,    /* with all it started; the launcher knows */
    STEP_CLEANING,      /* the launcher, before it removes the places */
    STEP_SWEEP_LOCKED,  /* about to remove a place */
    STEP_CLEANED,
    STEP_SUPERVISOR_SWEEPS,
    STEP_COUNT,
};

#ifdef EXEC_SERVER_STEPS

#include "base/rawsys.h"

#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

extern int step_wanted;

static inline void step_reach(enum step step) {
    if (step != (enum step)step_wanted)
        return;
    char name[] = {'s', 't', 'e', 'p', '-', (char)('0' + step / 10), (char)('0' + step % 10), 0};
    uint64_t usr2 = 1ull << (SIGUSR2 - 1);
    step_wanted = STEP_NONE;
    sys5(SYS_prctl, PR_SET_NAME, (long)name, 0, 0, 0);
    while (sys4(SYS_rt_sigtimedwait, (long)&usr2, 0, 0, sizeof usr2) < 0)
        ;
    sys5(SYS_prctl, PR_SET_NAME, (long)"stepped", 0, 0, 0);
}

#else

static inline void step_reach(enum step step) {
    (void)step;
}

#endif
