#include "cli/cli_signals.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/signalfd.h>

static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int cli_signals_open(struct cli_signals *s) {
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++) {
        if (!is_ignored(forwarded[i])) /* nohup, or a shell's background */
            sigaddset(&set, forwarded[i]);
    }
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGCONT);
    s->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->fd < 0)
        return -errno;
    return sigprocmask(SIG_BLOCK, &set, &s->before) < 0 ? -errno : 0;
}

int cli_signals_next(struct cli_signals *s) {
    struct signalfd_siginfo info;
    if (s->fd < 0 || read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

void cli_signals_close(struct cli_signals *s) {
    if (s->fd < 0)
        return;
    while (cli_signals_next(s) != 0) /* nobody is left to hear them */
        ;
    close(s->fd);
    s->fd = -1;
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}
