#include "job.h"

#include <stdio.h>

static void job_fail(struct job *job) {
    fprintf(stderr, "%s\n", xs_error_text(xs_client_error(job->client)));
    job->status = 255;
    job->over = 1;
}

static int on_event(struct xs_process *process, const struct xs_event *event, void *user) {
    (void)process;
    struct job *job = user;
    switch (event->type) {
    case XS_EV_OUTPUT:
        fwrite(event->data, 1, event->n, event->stream == XS_STDERR ? stderr : stdout);
        break;
    case XS_EV_EXITED: job->status = event->exit->code; break;
    case XS_EV_CLOSED: job->over = 1; break;
    case XS_EV_GAP: fprintf(stderr, "output is lost\n"); break;
    case XS_EV_FAILED:
        fprintf(stderr, "%s\n", event->text);
        job->status = 255;
        job->over = 1;
        break;
    }
    return 0;
}

static void on_started(struct xs_call *call, int result) {
    struct job *job = call->user;
    if (result < 0)
        job_fail(job);
    else
        xs_process_on_event(job->process, on_event, job);
}

static void on_connected(struct xs_call *call, int result) {
    struct job *job = call->user;
    if (result < 0) {
        job_fail(job);
        return;
    }
    struct xs_options *options = xs_options_new();
    for (char **word = job->words; *word; word++)
        xs_options_add(options, XS_OPT_ARGV, *word);
    job->call = (struct xs_call){.done = on_started, .user = job};
    if (xs_process_start(job->client, options, &job->process, &job->call) < 0)
        job_fail(job);
    xs_options_free(options);
}

int job_begin(struct job *job, int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s URL COMMAND [ARG...]\n", argv[0]);
        return -1;
    }
    *job = (struct job){.words = argv + 2};
    struct xs_options *options = xs_options_new();
    xs_options_str(options, XS_OPT_URL, argv[1]);
    int result = xs_client_new(options, &job->client);
    xs_options_free(options);
    job->call = (struct xs_call){.done = on_connected, .user = job};
    if (result < 0 || xs_client_connect(job->client, &job->call) < 0) {
        job_fail(job);
        job_end(job);
        return -1;
    }
    return 0;
}

int job_end(struct job *job) {
    xs_process_free(job->process);
    xs_client_free(job->client);
    return job->status;
}
