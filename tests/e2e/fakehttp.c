/*
 * An HTTP program that was taken over: sends the bytes of the files beside it, NAME.hello at once
 * and NAME.frames after the first bytes of the server. Then it waits until the server hangs up.
 * With NAME.scribble it also does its worst to the memory that it shares with the server.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET 3
#define SLOTS 4

static char buffer[1 << 16];

static void send_file(const char *self, const char *suffix) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s.%s", self, suffix);
    int fd = open(path, O_RDONLY);
    for (ssize_t n; fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0;)
        (void)!send(SOCKET, buffer, (size_t)n, MSG_NOSIGNAL);
}

static size_t shared;

/* Changes all of the memory again and again. */
static void *scribble(void *memory) {
    volatile uint64_t *words = memory;
    for (uint64_t n = 1;; n = n * 6364136223846793005u + 1)
        words[n % (shared / sizeof *words)] = n;
    return NULL;
}

/* The memory cannot shrink: else the server would die of reading it. 0, or -1 if it can. */
static int misuse_memory(void) {
    struct stat st;
    pthread_t thread;
    if (fstat(SLOTS, &st) != 0 || ftruncate(SLOTS, 0) == 0 || ftruncate(SLOTS, 1 << 24) == 0)
        return -1;
    shared = (size_t)st.st_size;
    void *memory = mmap(NULL, shared, PROT_READ | PROT_WRITE, MAP_SHARED, SLOTS, 0);
    return memory == MAP_FAILED ? -1 : -pthread_create(&thread, NULL, scribble, memory);
}

int main(void) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return 1;
    self[n] = '\0';
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s.scribble", self);
    if (access(path, F_OK) == 0 && misuse_memory() != 0)
        return 1;
    send_file(self, "hello");
    (void)!recv(SOCKET, buffer, sizeof buffer, 0);
    send_file(self, "frames");
    ssize_t got;
    do
        got = recv(SOCKET, buffer, sizeof buffer, 0);
    while (got > 0);
    return 0;
}
