#pragma once
/*
 * The HTTP program: makes the HTTP requests of one connection of the server, and parses HTTP and
 * TLS in its place. One thread, curl's multi interface; threads of curl resolve names.
 */

/* Serves the server at the other end of a socket until it hangs up. `slots` is the memory that they
 * share (http/http_slots.h); it is closed. The exit status. */
int fetch_run(int sock, int slots);
