#pragma once
/*
 * The escape matrix: one attempt per row, each in a child of its own. A row that succeeds undoes
 * what it did, so that the rows after it meet the same world. No row may do harm even where it
 * succeeds: settings are written back as they were read, and calls that would stop the machine get
 * arguments that are refused after the permission is checked (PROBE_REACHED).
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The targets of the rows, made by the starter of the probe. Arguments of the form name=value. */
struct probe_aim {
    const char *ws;       /* the workspace; also the working directory */
    const char *outside;  /* a sibling of it */
    const char *denied;   /* a directory that the profile denies */
    const char *disk;     /* the block device of the root file system */
    const char *shm;      /* name of a host's file in /dev/shm */
    const char *mqueue;   /* name of a host's POSIX queue, with its slash */
    const char *abstract; /* of abstract sockets: NAME is the stream, NAME-dgram the datagram one */
    const char *key;      /* description of a key in the user keyring */
    const char *address;  /* an IPv4 address of the host that is not loopback */
    const char *terminal; /* a terminal of the host, of the same user */
    int pid;              /* a host process of the same user, made by "probe hold" */
    int serial;           /* of that key */
    int ipc;              /* key of a SysV segment, queue and semaphore set */
    int tcp;              /* ports of listeners on the host's loopback */
    int udp;
};

extern struct probe_aim aim;

/* A row: how to try it, and on what. Columns a and b are the function's own. */
struct probe_row {
    int number;
    int (*run)(const struct probe_row *r);
    const char *path; /* see probe_path() */
    int a;
    int b;
};

/*
 * What a row returns: 0 it succeeded ("OK"); a negative errno; PROBE_SAID after probe_say(), which
 * sets the text of the result.
 */
#define PROBE_SAID 1
int probe_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* -1 to the negative errno, anything else to 0. */
static inline int probe_done(long r) {
    return r < 0 ? -errno : 0;
}

/* For calls made to fail once the permission is there: every other error is a success. */
#define PROBE_REACHED(r, error) ((r) == -(error) ? 0 : (r))

/* 0 after closing a descriptor, or the error that came in its place. */
int probe_opened(int fd);

/*
 * The path with the aim put in: "W/x" below the workspace, "O/x" outside, "D/x" denied, "~/x/" a
 * file of this program's own name in /x; anything else as it is. In static memory: the last four
 * results stay.
 */
const char *probe_path(const char *path);

/* The name of an error, or a number. */
const char *probe_error(int error);

/* Reads at most size - 1 bytes of a file, NUL-terminated; the count or a negative errno. */
ssize_t probe_read(const char *path, char *text, size_t size);

/* Runs `fn` in a child: its exit status (0 to 255), 256 for a signal, or a negative errno. */
int probe_child(int (*fn)(void *), void *arg);

/* Executes "path end", which is to exit with 0; 0 or a negative errno. */
int probe_execute(const char *path);

/* Attempts that more than one group makes. */
int probe_open(const struct probe_row *r);   /* a: flags */
int probe_create(const struct probe_row *r); /* creates, writes, removes */

/* The groups, each ended by number 0. */
extern const struct probe_row probe_files[];
extern const struct probe_row probe_system[];
extern const struct probe_row probe_spaces[];
extern const struct probe_row probe_tasks[];
extern const struct probe_row probe_kernel[];
extern const struct probe_row probe_net[];
extern const struct probe_row probe_ipc[];
extern const struct probe_row probe_tty[];

/* Address that is the same in every copy of this program. */
extern long probe_scratch;

/* Descriptors above 2 at the start, e.g. "3,7", or "none". */
extern char probe_inherited[256];
