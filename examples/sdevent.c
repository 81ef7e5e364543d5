/* The job on sd-event(3).

     cc sdevent.c job.c $(pkg-config --cflags --libs execserver libsystemd) -o sdevent */
#include "job.h"

#include <sys/epoll.h>
#include <systemd/sd-event.h>

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *user) {
    struct job *job = user;
    (void)fd;
    (void)events;
    xs_client_process(job->client);
    return job->over ? sd_event_exit(sd_event_source_get_event(source), job->status) : 0;
}

int main(int argc, char **argv) {
    struct job job;
    sd_event *loop = NULL;
    if (sd_event_default(&loop) < 0 || job_begin(&job, argc, argv) < 0)
        return 2;
    sd_event_add_io(loop, NULL, xs_client_fd(job.client), EPOLLIN, on_readable, &job);
    int status = sd_event_loop(loop);
    job_end(&job);
    sd_event_unref(loop);
    return status;
}
