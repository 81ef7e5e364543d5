/* The job on poll(2): wait for the descriptor, then process.

     cc poll.c job.c $(pkg-config --cflags --libs execserver) -o poll */
#include "job.h"

#include <poll.h>

int main(int argc, char **argv) {
    struct job job;
    if (job_begin(&job, argc, argv) < 0)
        return 2;
    struct pollfd ready = {.fd = xs_client_fd(job.client), .events = POLLIN};
    while (!job.over && poll(&ready, 1, -1) >= 0)
        xs_client_process(job.client);
    return job_end(&job);
}
