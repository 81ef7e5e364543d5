// The measuring client of the benchmark: one measurement per call, one JSON line as its result.
//
//   driver MEASURE [--port N] [--pid N] [--count N] [--warmup N] [--window N] [--millis N]
//                  [--bytes N] [--entries N] [--path PATH] [--sandbox JSON] [--cwd URI] [--tty]
//                  [--verify] [--cpu N] [--server-cpu N] [--floods N] [-- COMMAND...]
#include "machine.h"
#include "measure.h"
#include "util.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// No measurement may take longer, whatever the server does.
#define TIME_LIMIT_S 180

static void run_generate(const struct measure_options *o) {
    generate(o->bytes);
}

static const struct {
    const char *name;
    void (*run)(const struct measure_options *o);
    int needs_server;
} MEASURES[] = {
    {"start", measure_start, 1},
    {"login", measure_login, 1},
    {"echo", measure_echo, 1},
    {"bulk", measure_bulk, 1},
    {"status", measure_status, 1},
    {"pipeline", measure_pipeline, 1},
    {"spawns", measure_spawns, 1},
    {"connections", measure_connections, 1},
    {"crowd-connections", measure_crowd_connections, 1},
    {"crowd-processes", measure_crowd_processes, 1},
    {"slow-reader", measure_slow_reader, 1},
    {"file-read", measure_file_read, 1},
    {"file-write", measure_file_write, 1},
    {"block-read", measure_block_read, 1},
    {"block-write", measure_block_write, 1},
    {"metadata", measure_metadata, 1},
    {"small-read", measure_small_read, 1},
    {"small-write", measure_small_write, 1},
    {"metadata-pipeline", measure_metadata_pipeline, 1},
    {"small-read-pipeline", measure_small_read_pipeline, 1},
    {"walk", measure_walk, 1},
    {"list", measure_list, 1},
    {"copy", measure_copy, 1},
    {"attack", measure_attack, 1},
    {"request", measure_request, 1},
    {"stream", measure_stream, 1},
    {"startup", measure_startup, 0},
    {"program", measure_program, 0},
    {"key", measure_key, 0},
    {"relay", measure_relay, 0},
    {"machine-spawn", machine_spawn, 0},
    {"machine-status", machine_status, 0},
    {"machine-metadata", machine_metadata, 0},
    {"machine-small-read", machine_small_read, 0},
    {"machine-echo", machine_echo, 0},
    {"machine-bulk", machine_bulk, 0},
    {"machine-file-read", machine_file_read, 0},
    {"machine-file-write", machine_file_write, 0},
    {"machine-request", machine_request, 0},
    {"generate", run_generate, 0},
};

static uint64_t parse_number(const char *text, uint64_t max) {
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || v > max)
        fail("bad number '%s'", text);
    return v;
}

static void parse_options(int argc, char **argv, struct measure_options *o) {
    static const struct option table[] = {
        {"port", required_argument, NULL, 'p'},
        {"pid", required_argument, NULL, 'i'},
        {"count", required_argument, NULL, 'c'},
        {"warmup", required_argument, NULL, 'w'},
        {"window", required_argument, NULL, 'n'},
        {"millis", required_argument, NULL, 'm'},
        {"bytes", required_argument, NULL, 'b'},
        {"path", required_argument, NULL, 'f'},
        {"entries", required_argument, NULL, 'e'},
        {"sandbox", required_argument, NULL, 's'},
        {"cwd", required_argument, NULL, 'd'},
        {"tty", no_argument, NULL, 't'},
        {"verify", no_argument, NULL, 'v'},
        {"cpu", required_argument, NULL, 'u'},
        {"server-cpu", required_argument, NULL, 'U'},
        {"floods", required_argument, NULL, 'F'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (c) {
        case 'p': o->port = (uint16_t)parse_number(optarg, UINT16_MAX); break;
        case 'i': o->pid = (pid_t)parse_number(optarg, INT32_MAX); break;
        case 'c': o->count = (size_t)parse_number(optarg, 10000000); break;
        case 'w': o->warmup = (size_t)parse_number(optarg, 10000000); break;
        case 'n': o->window = (size_t)parse_number(optarg, 100000); break;
        case 'm': o->millis = parse_number(optarg, 100000); break;
        case 'b': o->bytes = parse_number(optarg, (uint64_t)1 << 40); break;
        case 'e': o->entries = (size_t)parse_number(optarg, 10000000); break;
        case 'f': o->path = optarg; break;
        case 's': o->sandbox = optarg; break;
        case 'd': o->cwd = optarg; break;
        case 't': o->tty = 1; break;
        case 'v': o->verify = 1; break;
        case 'F': o->floods = (size_t)parse_number(optarg, 1000); break;
        case 'u': o->cpu = (int)parse_number(optarg, CPU_SETSIZE - 1); break;
        case 'U': o->server_cpu = (int)parse_number(optarg, CPU_SETSIZE - 1); break;
        default: exit(2);
        }
    }
    o->command = argv + optind;
}

int main(int argc, char **argv) {
    struct measure_options o = {.count = 100,
                                .warmup = 10,
                                .window = 8,
                                .millis = 1000,
                                .bytes = 1 << 20,
                                .cpu = -1,
                                .server_cpu = -1};

    if (argc < 2)
        fail("usage: driver MEASURE [OPTIONS] [-- COMMAND...]");
    parse_options(argc - 1, argv + 1, &o);
    pin_to(o.cpu);
    alarm(TIME_LIMIT_S);
    for (size_t i = 0; i < sizeof MEASURES / sizeof MEASURES[0]; i++) {
        if (strcmp(argv[1], MEASURES[i].name) != 0)
            continue;
        if (MEASURES[i].needs_server && (o.port == 0 || o.pid == 0))
            fail("%s needs --port and --pid", argv[1]);
        MEASURES[i].run(&o);
        return 0;
    }
    fail("unknown measure '%s'", argv[1]);
}
