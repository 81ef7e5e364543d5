// Times of a call of libexecserver, one at a time: calls URL COUNT CPU prints nanoseconds.
#include <execserver.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WARMUP 100

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int die(const struct xs_client *c) {
    fprintf(stderr, "%s\n", xs_error_text(xs_client_error(c)));
    return 1;
}

int main(int argc, char **argv) {
    struct xs_options *o = xs_options_new();
    struct xs_client *c;
    cpu_set_t cpus;

    if (argc != 4 || o == NULL || xs_options_str(o, XS_OPT_URL, argv[1]) < 0)
        return 2;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)atoi(argv[3]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) < 0)
        return 2;
    if (xs_client_new(o, &c) < 0 || xs_client_connect(c, NULL) < 0)
        return die(c);
    for (int i = -WARMUP; i < atoi(argv[2]); i++) {
        struct xs_bytes answer = {0};
        uint64_t begin = now_ns();
        if (xs_client_rpc(c, "environment/status", NULL, &answer, NULL) < 0)
            return die(c);
        if (i >= 0)
            printf("%llu\n", (unsigned long long)(now_ns() - begin));
        xs_bytes_free(&answer);
    }
    xs_client_free(c);
    xs_options_free(o);
    return 0;
}
