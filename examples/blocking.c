/* Runs a command and copies its output. Every call blocks.

     cc blocking.c $(pkg-config --cflags --libs execserver) -o blocking */
#include <execserver.h>
#include <stdio.h>

static int fail(const struct xs_client *client) {
    fprintf(stderr, "%s\n", xs_error_text(xs_client_error(client)));
    return 255;
}

/* Copies the output until the last event; returns the exit status. */
static int copy_output(struct xs_client *client, struct xs_process *process) {
    const struct xs_event *event;
    int code = 255;
    int more;
    while ((more = xs_process_next(process, &event, NULL)) > 0) {
        if (event->type == XS_EV_OUTPUT)
            fwrite(event->data, 1, event->n, event->stream == XS_STDERR ? stderr : stdout);
        else if (event->type == XS_EV_EXITED)
            code = event->exit->code;
        else if (event->type == XS_EV_GAP || event->type == XS_EV_FAILED)
            fprintf(stderr, "%s\n", event->text ? event->text : "output is lost");
    }
    return more < 0 ? fail(client) : code;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    struct xs_options *options = xs_options_new();
    xs_options_str(options, XS_OPT_URL, argv[1]);
    for (int i = 2; i < argc; i++)
        xs_options_add(options, XS_OPT_ARGV, argv[i]);

    struct xs_client *client = NULL;
    struct xs_process *process = NULL;
    int status;
    if (xs_client_new(options, &client) < 0 || xs_client_connect(client, NULL) < 0 ||
        xs_process_start(client, options, &process, NULL) < 0)
        status = fail(client);
    else
        status = copy_output(client, process);
    xs_process_free(process);
    xs_client_free(client);
    xs_options_free(options);
    return status;
}
