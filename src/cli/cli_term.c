#include "cli/cli_term.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Signals of faults, and those whose default ends the process and which nobody forwards. */
static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,    SIGABRT, SIGSYS, SIGTRAP,
                            SIGALRM, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO};

/* For the handler, which gets no pointer: the terminal that is raw. */
static struct {
    volatile sig_atomic_t fd; /* + 1; 0 = none */
    struct termios before;
} rescue;

static void on_fatal(int number) {
    int fd = rescue.fd - 1;
    rescue.fd = 0;
    if (fd >= 0)
        tcsetattr(fd, TCSANOW, &rescue.before);
    raise(number); /* SA_RESETHAND: this time it ends the process */
}

static void catch_fatal(bool on) {
    struct sigaction action = {.sa_handler = on ? on_fatal : SIG_DFL,
                               .sa_flags = on ? (int)SA_RESETHAND : 0};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        sigaction(fatal[i], &action, NULL);
}

/* A process in the background may set modes only if it blocks SIGTTOU. */
static int set_modes(int fd, const struct termios *modes) {
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    sigprocmask(SIG_BLOCK, &block, &before);
    int r;
    while ((r = tcsetattr(fd, TCSANOW, modes)) < 0 && errno == EINTR)
        ;
    r = r < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

int cli_term_raw(struct cli_term *t, int fd) {
    struct termios modes;
    if (t->raw)
        return 0;
    if (tcgetattr(fd, &modes) < 0)
        return -errno;
    t->fd = fd;
    t->before = modes;
    rescue.before = modes;
    rescue.fd = fd + 1;
    catch_fatal(true);
    cfmakeraw(&modes);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    t->raw = true;
    int r = set_modes(fd, &modes);
    if (r < 0)
        cli_term_restore(t);
    return r;
}

void cli_term_restore(struct cli_term *t) {
    if (!t->raw)
        return;
    t->raw = false;
    set_modes(t->fd, &t->before);
    rescue.fd = 0;
    catch_fatal(false);
}

void cli_term_again(struct cli_term *t) {
    if (!t->raw)
        return;
    struct termios modes = t->before;
    cfmakeraw(&modes);
    set_modes(t->fd, &modes);
}

int cli_term_suspend(struct cli_term *t) {
    int fd = t->fd;
    bool raw = t->raw;
    cli_term_restore(t);
    kill(0, SIGTSTP); /* returns when the process continues */
    return raw ? cli_term_raw(t, fd) : 0;
}

bool cli_term_size(int fd, unsigned *rows, unsigned *cols) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *rows = size.ws_row;
    *cols = size.ws_col;
    return true;
}
