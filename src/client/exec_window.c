#include "client/exec_window.h"

#include "base/util.h"

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return MIN(MAX(v, low), high);
}

int64_t exec_window_command(int64_t asked) {
    return clamp(asked < 0 ? EXEC_WINDOW_COMMAND : asked, EXEC_WINDOW_MIN, EXEC_WINDOW_MAX);
}

int64_t exec_window_write(int64_t asked, bool input, int64_t poll_max) {
    int64_t ms = asked < 0 ? EXEC_WINDOW_WRITE : asked;
    if (input)
        return clamp(ms, EXEC_WINDOW_MIN, EXEC_WINDOW_MAX);
    int64_t ceiling = poll_max < 0 ? EXEC_WINDOW_POLL_MAX : poll_max;
    return clamp(ms, EXEC_WINDOW_POLL_MIN, MAX(ceiling, EXEC_WINDOW_POLL_MIN));
}

static bool is_newest(const struct exec_window_slot *slots, size_t n, size_t i) {
    size_t later = 0;
    for (size_t k = 0; k < n; k++)
        later += slots[k].used > slots[i].used;
    return later < EXEC_WINDOW_NEWEST;
}

/* The least recently used of the candidates that have exited, or of those that run. */
static int oldest(const struct exec_window_slot *slots, size_t n, bool exited, bool *busy) {
    int found = -1;
    for (size_t i = 0; i < n; i++) {
        if (slots[i].exited != exited || is_newest(slots, n, i))
            continue;
        if (slots[i].busy)
            *busy = true;
        else if (found < 0 || slots[i].used < slots[found].used)
            found = (int)i;
    }
    return found;
}

int exec_window_victim(const struct exec_window_slot *slots, size_t n) {
    bool busy = false, ignored;
    int found = oldest(slots, n, true, &busy);
    return found >= 0 || busy ? found : oldest(slots, n, false, &ignored);
}
