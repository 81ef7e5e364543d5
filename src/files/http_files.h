#pragma once
/*
 * Raw files over HTTP: GET, HEAD and PUT /v1/files?path=PATH. Every blocking step is a job of the
 * pool, one at a time per transfer: opening, sending (sendfile) until the socket is full, writing
 * what has been received. A PUT replaces the file as a whole (fs/fs_atomic.h); with `at` in its
 * query it writes into the file itself, in order, so that the size tells how far it came.
 *
 * A transfer reads a small file before its answer begins: so a failure becomes an error answer, and
 * files of the kernel (/proc, /sys) do not know their size.
 *
 * Maxima per job: HTTP_FILES_CHUNK bytes held, received or read; HTTP_FILES_TURN bytes sent.
 */

struct conn;
struct files_host;
struct http_answer;
struct http_request;

#define HTTP_FILES_CHUNK (1u << 20)
#define HTTP_FILES_SMALL 65536 /* bytes of a file that is read before the answer */
#define HTTP_FILES_TURN (8u << 20)

/* The events of connections that serve such requests (net/conn.h). */
void http_files_request(struct files_host *host, struct conn *c, const struct http_request *r,
                        const struct http_answer *a);
void http_files_body(struct conn *c);
void http_files_writable(struct conn *c);
void http_files_cut(struct conn *c);
