/* Rows 218 to 226: the terminal, objects of System V; rows from 301 on need a terminal on stdin. */

#include "probe.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* The kernel looks at the low 32 bits of a request only; a filter may not. */
#define HIGH_BITS 0x100000000UL

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* Column b: with high bits. Column a is the request. */
static int request(int fd, const struct probe_row *r, void *arg) {
    unsigned long number = (unsigned)r->a | (r->b ? HIGH_BITS : 0);
    return probe_done(syscall(SYS_ioctl, fd, number, arg));
}

/* Puts a letter into the input of the terminal; TIOCLINUX: asks for the keyboard's state. */
static int inject(const struct probe_row *r) {
    char byte = r->a == TIOCLINUX ? 6 : 'x';
    return request(0, r, &byte);
}

static int inject_by_name(const struct probe_row *r) {
    char byte = 'x';
    int fd = open(r->path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = request(fd, r, &byte);
    close(fd);
    return e;
}

/* Takes the terminal away from its session, by force with path set. */
static int steal(const struct probe_row *r) {
    if (setsid() < 0)
        return -errno;
    return probe_done(ioctl(0, TIOCSCTTY, r->path ? 1 : 0));
}

static int steal_and_inject(const struct probe_row *r) {
    char byte = 'x';
    if (setsid() < 0)
        return -errno;
    int e = probe_done(ioctl(0, TIOCSCTTY, 1));
    int injected = request(0, r, &byte);
    return injected == 0 ? 0 : e ? e : injected;
}

static int shared_memory(const struct probe_row *r) {
    (void)r;
    return probe_done(shmget(aim.ipc, 0, 0));
}

static int queue(const struct probe_row *r) {
    (void)r;
    return probe_done(msgget(aim.ipc, 0));
}

static int semaphores(const struct probe_row *r) {
    (void)r;
    return probe_done(semget(aim.ipc, 0, 0));
}

static int posix_queue(const struct probe_row *r) {
    (void)r;
    mqd_t q = mq_open(aim.mqueue, O_RDONLY | O_NONBLOCK);
    if (q == (mqd_t)-1)
        return -errno;
    mq_close(q);
    return 0;
}

static int inherited(const struct probe_row *r) {
    (void)r;
    return probe_say("%s", probe_inherited);
}

const struct probe_row probe_ipc[] = {
    {218, inject, NULL, TIOCSTI, 0},  {219, inject, NULL, TIOCLINUX, 0},
    {220, steal, "force", 0, 0},      {221, steal_and_inject, NULL, TIOCSTI, 0},
    {222, shared_memory, NULL, 0, 0}, {223, queue, NULL, 0, 0},
    {224, semaphores, NULL, 0, 0},    {225, posix_queue, NULL, 0, 0},
    {226, inherited, NULL, 0, 0},     {0, NULL, NULL, 0, 0},
};

static int terminal(const struct probe_row *r) {
    int fd = open(r->path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = isatty(fd) ? 0 : -ENOTTY;
    close(fd);
    return e;
}

/* Writes nothing, but asks for the right to. */
static int writable(const struct probe_row *r) {
    int fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = probe_done(write(fd, "", 0));
    close(fd);
    return e;
}

static int host_terminal(const struct probe_row *r) {
    (void)r;
    return probe_opened(open(aim.terminal, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

static int wait_stopped(void *unused) {
    (void)unused;
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    if (tcsetpgrp(0, getpgrp()) < 0)
        return errno;
    return tcgetpgrp(0) == getpgrp() ? 0 : 255;
}

/* What a shell does for a job: a group of its own, in the foreground, and back. */
static int process_control(const struct probe_row *r) {
    (void)r;
    pid_t before = tcgetpgrp(0);
    if (before < 0)
        return -errno;
    int e = -probe_child(wait_stopped, NULL);
    signal(SIGTTOU, SIG_IGN);
    if (tcsetpgrp(0, before) < 0 && e == 0)
        e = -errno;
    return e;
}

static int session(const struct probe_row *r) {
    (void)r;
    pid_t sid = tcgetsid(0);
    if (sid < 0)
        return -errno;
    return sid == getsid(0) ? 0 : -EXDEV;
}

static int hang_up(const struct probe_row *r) {
    (void)r;
    return probe_done(vhangup());
}

static int settings(const struct probe_row *r) {
    struct termios t;
    (void)r;
    if (tcgetattr(0, &t) < 0)
        return -errno;
    return probe_done(tcsetattr(0, TCSANOW, &t));
}

const struct probe_row probe_tty[] = {
    {301, inject, NULL, TIOCSTI, 0},
    {302, inject, NULL, TIOCSTI, 1},
    {303, inject, NULL, TIOCLINUX, 0},
    {304, inject, NULL, TIOCLINUX, 1},
    {305, steal, NULL, 0, 0},
    {306, steal, "force", 0, 0},
    {307, steal_and_inject, NULL, TIOCSTI, 0},
    {308, steal_and_inject, NULL, TIOCSTI, 1},
    {309, terminal, "/dev/tty", 0, 0},
    {310, inject_by_name, "/dev/tty", TIOCSTI, 0},
    {311, inject_by_name, "/dev/tty", TIOCSTI, 1},
    {312, terminal, "/dev/console", 0, 0},
    {313, hang_up, NULL, 0, 0},
    {314, inherited, NULL, 0, 0},
    {315, host_terminal, NULL, 0, 0},
    {316, inject, NULL, TIOCCONS, 0},
    {317, writable, "/dev/stderr", 0, 0},
    {318, process_control, NULL, 0, 0},
    {319, session, NULL, 0, 0},
    {320, settings, NULL, 0, 0},
    {321, terminal, "/proc/self/fd/0", 0, 0},
    {0, NULL, NULL, 0, 0},
};
