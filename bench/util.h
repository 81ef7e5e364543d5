// Clocks, process figures and the result printer shared by every measurement.
//
// The driver is a short-lived program: any failure ends it with a message, so none of these
// calls returns an error.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Prints "bench: MESSAGE" on stderr and exits with status 1.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...);

// Monotonic time in nanoseconds.
uint64_t now_ns(void);

// CPU time (user and system, all threads, without its children) used so far by `pid`, in
// nanoseconds. The same quantity as utime + stime of /proc/PID/stat, without its 10 ms grain.
uint64_t process_cpu_ns(pid_t pid);

// CPU time of the children that `pid` has waited for, and of theirs, in nanoseconds (10 ms grain).
uint64_t process_children_cpu_ns(pid_t pid);

// VmRSS of `pid` in bytes.
uint64_t process_rss(pid_t pid);

// The highest VmRSS of `pid` in bytes since process_forget_peak.
uint64_t process_peak(pid_t pid);
void process_forget_peak(pid_t pid);

// The calling process runs on that CPU from now on; -1: wherever it does.
void pin_to(int cpu);

// Reads the whole file of at most `cap` - 1 bytes into `out` and terminates it.
void read_small_file(const char *path, char *out, size_t cap);

// Lets the kernel send on a connection as fast as it can. Its default may be an algorithm that
// spaces out what is sent, bbr for one, also to the same machine.
void send_unpaced(int fd);

// Latency samples in nanoseconds, allocated for a known count.
struct samples {
    uint64_t *ns;
    size_t count;
    size_t cap;
};

void samples_init(struct samples *s, size_t cap);
void samples_add(struct samples *s, uint64_t ns);
void samples_free(struct samples *s);

// The result is one JSON object on one line of stdout: result_begin, any number of the others,
// result_end.
void result_begin(const char *measure);
void result_number(const char *name, uint64_t value);
void result_samples(const struct samples *s);
void result_end(void);
