/* exec-server: start and control processes for a remote coding agent. */

#include "execserver.h"

int main(int argc, char **argv) {
    xs_server_stage(argc, argv); /* first: a launcher has rules of its own */
    return xs_server_run(argc, argv);
}
