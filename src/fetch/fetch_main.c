/* exec-server-http: makes HTTP requests for exec-server, which starts it. */

#include "fetch/fetch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAIN_SOCKET 3 /* the server hands them over */
#define MAIN_SLOTS 4

static int main_about(void) {
    puts("exec-server-http " EXEC_SERVER_VERSION);
    return 0;
}

int main(int argc, char **argv) {
    int type;
    socklen_t n = sizeof type;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return main_about();
    if (argc != 1 || getsockopt(MAIN_SOCKET, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
        type != SOCK_STREAM) {
        fputs("exec-server-http is a part of exec-server, which starts it\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    prctl(PR_SET_NAME, "exec-http", 0, 0, 0);
    return fetch_run(MAIN_SOCKET, MAIN_SLOTS);
}
