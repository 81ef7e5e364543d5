/* The job on epoll(7), where the client's descriptor is one of many.

     cc epoll.c job.c $(pkg-config --cflags --libs execserver) -o epoll */
#include "job.h"

#include <sys/epoll.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct job job;
    if (job_begin(&job, argc, argv) < 0)
        return 2;
    int loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = job.client};
    epoll_ctl(loop, EPOLL_CTL_ADD, xs_client_fd(job.client), &event);
    while (!job.over && epoll_wait(loop, &event, 1, -1) >= 0)
        xs_client_process(event.data.ptr);
    close(loop);
    return job_end(&job);
}
