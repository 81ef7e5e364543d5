/* The job on GLib's main loop.

     cc glib.c job.c $(pkg-config --cflags --libs execserver glib-2.0) -o glib */
#include "job.h"

#include <glib-unix.h>

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user) {
    struct job *job = user;
    (void)fd;
    (void)condition;
    xs_client_process(job->client);
    return job->over ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

int main(int argc, char **argv) {
    struct job job;
    if (job_begin(&job, argc, argv) < 0)
        return 2;
    g_unix_fd_add(xs_client_fd(job.client), G_IO_IN, on_readable, &job);
    while (!job.over)
        g_main_context_iteration(NULL, TRUE);
    return job_end(&job);
}
