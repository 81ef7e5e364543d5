#include "process/process_json.h"

#include "proc/resources.h"
#include "process/process.h"

#include <inttypes.h>
#include <stdio.h>

const char *process_json_word(const struct proc *p) {
    static const char *const words[] = {[PROC_STARTING] = "starting",
                                        [PROC_RUNNING] = "running",
                                        [PROC_EXITED] = "exited",
                                        [PROC_CLOSED] = "closed"};
    return words[p->state];
}

const char *process_json_sandbox(const struct process *p) {
    return p->sandboxed ? "linuxSeccomp" : "none";
}

int process_json_put_resources(const struct proc *p, struct buf *b) {
    struct resources r = resources_of(p);
    char peak[24] = "null";
    if (r.has_peak)
        snprintf(peak, sizeof peak, "%" PRIu64, r.peak_bytes);
    return buf_putf(b,
                    "{\"userTimeMs\":%" PRIu64 ",\"systemTimeMs\":%" PRIu64
                    ",\"peakMemoryBytes\":%s,\"wallTimeMs\":%" PRIu64 "}",
                    r.user_ms, r.system_ms, peak, r.wall_ms);
}

int process_json_put_extra(const struct proc *p, const char *timed_out, struct buf *b) {
    char name[16];
    int r = 0;
    if (p->state < PROC_EXITED)
        return 0;
    if (p->signal != 0) {
        proc_signal_name(p->signal, name);
        r = buf_putf(b, ",\"signal\":\"%s\"", name);
    }
    return r < 0 || !p->timed_out ? r : buf_putf(b, ",\"%s\":true", timed_out);
}

int process_json_put(const struct process *p, const char *timed_out, struct buf *b) {
    const struct proc *proc = &p->proc;
    bool exited = proc->state >= PROC_EXITED;
    char code[16] = "null";
    if (exited)
        snprintf(code, sizeof code, "%d", proc->exit_code);
    int r = buf_putf(b, "\"exited\":%s,\"exitCode\":%s,\"closed\":%s,\"sandboxDenied\":%s",
                     exited ? "true" : "false", code, proc->state == PROC_CLOSED ? "true" : "false",
                     p->sandbox_denied ? "true" : "false");
    return r < 0 ? r : process_json_put_extra(proc, timed_out, b);
}
