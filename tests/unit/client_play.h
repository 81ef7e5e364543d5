#pragma once
/* A client over a socket pair, whose other end the test plays, and allocations that fail. The
 * linker sends malloc() and its like here (unit_wraps in meson.build). */

#include "client/engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <cmocka.h>

/* -- allocations that fail: the linker sends calls here -- */

static long fail_at; /* 0: none fails */
static _Thread_local long allocations;

static bool fails(void) {
    return ++allocations == fail_at;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t a, size_t b);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t a, size_t b);
char *__real_strdup(const char *z);
char *__real_strndup(const char *z, size_t n);
int __real_vasprintf(char **out, const char *fmt, va_list ap);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t a, size_t b);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t a, size_t b);
char *__wrap_strdup(const char *z);
char *__wrap_strndup(const char *z, size_t n);
int __wrap_vasprintf(char **out, const char *fmt, va_list ap);

void *__wrap_malloc(size_t n) {
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t a, size_t b) {
    return fails() ? NULL : __real_calloc(a, b);
}

void *__wrap_realloc(void *p, size_t n) {
    return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t a, size_t b) {
    return fails() ? NULL : __real_reallocarray(p, a, b);
}

char *__wrap_strdup(const char *z) {
    return fails() ? NULL : __real_strdup(z);
}

char *__wrap_strndup(const char *z, size_t n) {
    return fails() ? NULL : __real_strndup(z, n);
}

int __wrap_vasprintf(char **out, const char *fmt, va_list ap) {
    return fails() ? -1 : __real_vasprintf(out, fmt, ap);
}

/* -- the other end -- */

struct play {
    int peer;
    struct xs_client *client;
    char text[65536];
    size_t n;
};

#define SESSION "\"sessionId\":\"0a1b2c3d-0000-4000-8000-00000000abcd\""
#define INFO                                                                                       \
    "\"environmentInfo\":{\"shell\":{\"name\":\"b\",\"path\":\"/bin/b\"},\"cwd\":\"file:///w\","   \
    "\"capabilities\":{\"a\":true,\"b\":false,\"c\":[],\"d\":[\"x\"]}}"

/* 0, or why no client could be made. */
static int play_begin(struct play *p) {
    int fds[2];
    char url[32];
    *p = (struct play){.peer = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    snprintf(url, sizeof url, "fd:%d", fds[0]);
    p->peer = fds[1];
    struct xs_options *o = xs_options_new();
    int r = o == NULL ? XS_ENOMEM : xs_options_str(o, XS_OPT_URL, url);
    r = r < 0 ? r : xs_client_new(o, &p->client);
    xs_options_free(o);
    /* It duplicates the descriptor when it connects. */
    if (r == 0)
        assert_int_equal(dup2(fds[0], fds[0]), fds[0]);
    p->n = (size_t)fds[0];
    return r;
}

static void play_end(struct play *p) {
    xs_client_free(p->client);
    close(p->peer);
}

static void say(struct play *p, const char *text) {
    size_t n = strlen(text);
    assert_int_equal(send(p->peer, text, n, MSG_NOSIGNAL), n);
}

/* What has come so far, as a string that is valid until the next call. */
static const char *hear(struct play *p) {
    ssize_t n = recv(p->peer, p->text, sizeof p->text - 1, MSG_DONTWAIT);
    p->text[MAX(n, (ssize_t)0)] = '\0';
    return p->text;
}

struct done {
    struct xs_call call;
    int result, times;
};

static void on_done(struct xs_call *k, int result) {
    struct done *d = container_of(k, struct done, call);
    d->result = result;
    d->times++;
}

static void turn(struct play *p) {
    for (int i = 0; i < 4; i++)
        assert_int_equal(xs_client_process(p->client), 0);
}

/* Connects to a server that answers initialize so; the result. */
static int play_connect(struct play *p, const char *hello) {
    struct done d = {.call.done = on_done};
    int fd = (int)p->n;
    int r = xs_client_connect(p->client, &d.call);
    close(fd);
    if (r < 0)
        return r;
    turn(p);
    if (d.times == 0) {
        assert_non_null(strstr(hear(p), "\"method\":\"initialize\""));
        say(p, hello);
        turn(p);
    }
    /* A failed allocation may leave it waiting. */
    if (d.times == 0)
        xs_call_cancel(&d.call);
    turn(p);
    assert_int_equal(d.times, 1);
    return d.result;
}
