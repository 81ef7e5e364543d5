/* The job on libuv.

     cc libuv.c job.c $(pkg-config --cflags --libs execserver libuv) -o libuv */
#include "job.h"

#include <uv.h>

static void on_readable(uv_poll_t *handle, int status, int events) {
    struct job *job = handle->data;
    (void)status;
    (void)events;
    xs_client_process(job->client);
    if (job->over)
        uv_close((uv_handle_t *)handle, NULL); /* uv_run() returns */
}

int main(int argc, char **argv) {
    struct job job;
    if (job_begin(&job, argc, argv) < 0)
        return 2;
    uv_poll_t handle = {.data = &job};
    uv_poll_init(uv_default_loop(), &handle, xs_client_fd(job.client));
    uv_poll_start(&handle, UV_READABLE, on_readable);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_loop_close(uv_default_loop());
    return job_end(&job);
}
