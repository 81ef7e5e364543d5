#include "process/denial.h"

#include <signal.h>
#include <string.h>

#define DENIAL_STATES 128 /* more than the phrases have characters in all */
#define DENIAL_CLASSES 32 /* more than the phrases have different characters */
#define DENIAL_DEPTH 22   /* characters that a state can remember: the longest phrase minus one */

static const char *const denial_phrases[] = {
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
};

/* A state stands for the longest suffix of the input that is a prefix of a phrase. */
enum { DENIAL_START, DENIAL_FOUND, DENIAL_FIRST };

struct denial_machine {
    uint8_t class_of[256]; /* 0: in no phrase */
    uint8_t next[DENIAL_STATES][DENIAL_CLASSES];
    uint8_t states, classes;
};

static uint8_t denial_class(struct denial_machine *m, char c) {
    uint8_t *class = &m->class_of[(unsigned char)c];
    if (*class == 0) {
        *class = ++m->classes;
        if (c >= 'a' && c <= 'z')
            m->class_of[(unsigned char)(c - 'a' + 'A')] = *class;
    }
    return *class;
}

/* The phrases as a tree; 0 stands for "no child". The last character of each leads to FOUND. */
static void denial_plant(struct denial_machine *m) {
    m->states = DENIAL_FIRST;
    for (size_t i = 0; i < ARRAY_LEN(denial_phrases); i++) {
        uint8_t at = DENIAL_START;
        for (const char *c = denial_phrases[i]; *c != '\0'; c++) {
            uint8_t *child = &m->next[at][denial_class(m, *c)];
            if (c[1] == '\0')
                *child = DENIAL_FOUND;
            else if (*child == 0)
                *child = m->states++;
            at = *child;
        }
    }
}

/* Adds the transitions for characters that continue no phrase, level by level (Aho-Corasick). */
static void denial_complete(struct denial_machine *m) {
    uint8_t queue[DENIAL_STATES], shorter[DENIAL_STATES] = {0};
    size_t head = 0, tail = 0;
    queue[tail++] = DENIAL_START;
    while (head < tail) {
        uint8_t at = queue[head++];
        for (size_t c = 0; c <= m->classes; c++) {
            uint8_t *child = &m->next[at][c];
            uint8_t other = at != DENIAL_START ? m->next[shorter[at]][c] : DENIAL_START;
            if (other == DENIAL_FOUND || *child == 0)
                *child = other;
            else if (*child != DENIAL_FOUND) {
                shorter[*child] = other;
                queue[tail++] = *child;
            }
        }
    }
    memset(m->next[DENIAL_FOUND], DENIAL_FOUND, DENIAL_CLASSES);
}

static uint8_t denial_run(const struct denial_machine *m, uint8_t state, struct str s) {
    for (size_t i = 0; i < s.n; i++)
        state = m->next[state][m->class_of[(unsigned char)s.p[i]]];
    return state;
}

/* Reads a piece of a stream: `own` is that stream's state, `all` the state of all streams. */
static bool denial_read(const struct denial_machine *m, struct str s, uint8_t *own, uint8_t *all) {
    struct str first = {s.p, MIN(s.n, (size_t)DENIAL_DEPTH)};
    *all = denial_run(m, *all, first);
    *own = denial_run(m, *own, s);
    if (*all == DENIAL_FOUND || *own == DENIAL_FOUND)
        return true;
    if (s.n >= DENIAL_DEPTH) /* earlier input no longer counts */
        *all = *own;
    return false;
}

/* The first chunk to look at. */
static size_t denial_first(const struct outlog *log) {
    size_t total = 0, i = log->count;
    while (i > 0 && total + outlog_at(log, i - 1)->len <= DENIAL_SEARCH_MAX)
        total += outlog_at(log, --i)->len;
    return i;
}

static bool denial_in_output(const struct outlog *log) {
    struct denial_machine m = {0};
    uint8_t own[OUTLOG_STREAMS] = {0}, all = DENIAL_START;
    denial_plant(&m);
    denial_complete(&m);
    for (size_t i = denial_first(log); i < log->count; i++) {
        const struct outlog_chunk *c = outlog_at(log, i);
        struct str s[2];
        outlog_bytes(log, c, s);
        if (denial_read(&m, s[0], &own[c->stream], &all) ||
            denial_read(&m, s[1], &own[c->stream], &all))
            return true;
    }
    return false;
}

bool denial_seen(const struct outlog *log, int exit_code) {
    return exit_code != 0 && (exit_code == 128 + SIGSYS || denial_in_output(log));
}
