// What the driver can measure on a running server. Every call prints one result line and ends
// the driver when the server does anything wrong.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct measure_options {
    uint16_t port;       // of the server on 127.0.0.1
    pid_t pid;           // of the server process itself
    size_t count;        // most samples, or connections
    size_t warmup;       // samples taken and dropped before
    size_t window;       // requests or processes in flight
    size_t entries;      // of a directory or a tree
    size_t floods;       // readers of floods at the same time, see flood.h
    uint64_t millis;     // most time for samples, duration of a rate measurement or of a stall
    uint64_t bytes;      // amount of output, or size of a file
    const char *path;    // absolute, of a file or a directory
    const char *sandbox; // JSON object to confine commands and file calls with, or NULL
    const char *cwd;     // URI of the commands' working directory; NULL: the root
    int tty;             // through a PTY instead of pipes
    int verify;          // decode and compare every byte; not for timing
    int cpu;             // the client runs there; -1: anywhere
    int server_cpu;      // the other side of a bare loop runs there; -1: anywhere
    char **command;      // command line for measure_startup, _program and _key, NULL at the end
};

// `/bin/true` from process/start until process/closed, one at a time; `sandbox` and `cwd` count.
void measure_start(const struct measure_options *o);

// `true` by a login shell of the home directory `path`, from its snapshot: in each of `count` new
// sessions the first command, which makes the snapshot, and the next one. Samples in turn.
void measure_login(const struct measure_options *o);

// One byte through `cat` and back, one at a time.
void measure_echo(const struct measure_options *o);

// `bytes` of output of one process, start to closed, with the server's CPU time.
void measure_bulk(const struct measure_options *o);

// environment/status, one at a time.
void measure_status(const struct measure_options *o);

// environment/status with `window` in flight for `millis`.
void measure_pipeline(const struct measure_options *o);

// `/bin/true` with `window` processes in flight for `millis`.
void measure_spawns(const struct measure_options *o);

// Resident memory before and after `count` initialized connections are opened.
void measure_connections(const struct measure_options *o);

// `count` connections, or processes that wait for input, at once: memory of the server before and
// with them, the time to open or start all, and samples of a request or an echo among them.
void measure_crowd_connections(const struct measure_options *o);
void measure_crowd_processes(const struct measure_options *o);

// `bytes` of output to a client that does not read for `millis`: highest resident memory.
void measure_slow_reader(const struct measure_options *o);

// fs/readFile of `path`, which has `bytes` of the test pattern, `count` times one after another;
// with the highest resident memory of the server meanwhile.
void measure_file_read(const struct measure_options *o);

// fs/writeFile of `bytes`, `window` in flight, in `count` batches after the warm-up. The files of a
// batch are called `path` and a number; they are not there before.
#define WRITE_BATCH 4
void measure_file_write(const struct measure_options *o);

// fs/open, fs/readBlock of 1 MiB with `window` in flight until the end of the file, fs/close.
void measure_block_read(const struct measure_options *o);

// fs/open for writing, fs/writeBlock of 1 MiB with `window` in flight, fs/close, `count` times
// after the warm-up; the file is not there before. `bytes` is a multiple of 1 MiB.
void measure_block_write(const struct measure_options *o);

// fs/getMetadata and fs/readFile of a small file `path`: one at a time, and `window` in flight.
void measure_metadata(const struct measure_options *o);
void measure_small_read(const struct measure_options *o);
void measure_metadata_pipeline(const struct measure_options *o);
void measure_small_read_pipeline(const struct measure_options *o);

// fs/writeFile of `bytes`, few, to `path`, which is not there before; one at a time.
void measure_small_write(const struct measure_options *o);

// fs/walk of the tree `path` with `entries` in it, fs/readDirectory of the directory `path` with as
// many; one at a time. The entries of the first answer are counted.
void measure_walk(const struct measure_options *o);
void measure_list(const struct measure_options *o);

// fs/copy of the file `path` to a name that is not there before, one at a time.
void measure_copy(const struct measure_options *o);

// Sends the message in the file `path` for `millis`, as fast as the server takes it, and drops what
// it answers.
void measure_attack(const struct measure_options *o);

// http/request of the URL `path`, one at a time; and streamed once, a body of `bytes`.
void measure_request(const struct measure_options *o);
void measure_stream(const struct measure_options *o);

// Start of `command` until it has printed a line, `count` times.
void measure_startup(const struct measure_options *o);

// `command` from exec to exit, `count` times or for `millis`, one at a time; it must end with 0.
void measure_program(const struct measure_options *o);

// One key through `command` on a terminal of its own, until its echo comes, one at a time. The
// terminal does not echo by itself.
void measure_key(const struct measure_options *o);

// Prints a port, and passes connections to it on to `port`: `bytes` in a second each way, each byte
// `millis` later. Runs until it is killed.
void measure_relay(const struct measure_options *o);

// Child side of measure_bulk: writes `bytes` of the test pattern to stdout, raw when it is a
// terminal.
void generate(uint64_t bytes);

// Byte at `offset` of the test pattern.
uint8_t pattern_at(uint64_t offset);
