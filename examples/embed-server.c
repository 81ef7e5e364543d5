/*
 * A program that contains an exec-server: `embed-server serve [OPTIONS]` is exec-server(8).
 *
 *     cc embed-server.c $(pkg-config --cflags --libs execserver-server) -o embed-server
 *     ./embed-server serve --listen ws://127.0.0.1:0
 *
 * The server makes sandboxes, and helpers for files, by starting this program again with arguments
 * of its own. So xs_server_stage() comes first, before the program has threads, children, open
 * files or output.
 */

#include <execserver.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    xs_server_stage(argc, argv);
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return xs_server_run(argc - 1, argv + 1);
    printf("a program of its own; \"%s serve --help\" tells about the server in it\n", argv[0]);
    return 0;
}
