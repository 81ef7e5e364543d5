#pragma once
/*
 * Commands that are none. Linked with --wrap in place of supervisor_start() and what goes with it,
 * they let a whole server run as always but start nothing; the caller plays their part.
 */

#include "proc/supervisor.h"

#define STUBS_MAX 16 /* that live at once; a start beyond fails with EAGAIN */

struct stub {
    struct supervisor *sup; /* NULL: none */
    pid_t pid;
    int fds[3];  /* the command's ends of its streams */
    int channel; /* a launcher's, or -1 */
    bool asked;  /* the server wants it dead */
    bool ended;  /* to be reaped */
};

/* The i-th of those that live, counted round; NULL when none does. */
struct stub *stub_get(unsigned i);

/* Each tells the server what a supervisor would. */
void stub_runs(struct stub *s);
void stub_fails(struct stub *s, int error);
void stub_exits(struct stub *s, int status);
void stub_is_gone(struct stub *s);

/* Does what the server has asked for. Whether there was anything. */
bool stub_obey(void);
