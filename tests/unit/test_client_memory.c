/* Whatever a client does, every allocation of it may fail once: nothing crashes, hangs or leaks,
 * and each call ends exactly once. */

#include "client_play.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ENDS 24 /* turns within which an answered call ends */

/* -- the server: an answer for each method -- */

static const struct {
    const char *method, *result;
} answers[] = {
    {"process/start", "{\"processId\":\"p\"}"},
    {"process/attach", "{\"attachId\":4}"},
    {"process/write", "{\"status\":\"accepted\"}"},
    {"process/closeStdin", "{\"status\":\"accepted\"}"},
    {"process/terminate", "{\"running\":true}"},
    {"process/list", "{\"processes\":[{\"processId\":\"p\",\"exitCode\":null}]}"},
    {"process/read", "{\"chunks\":[{\"seq\":2,\"stream\":\"stdout\",\"chunk\":\"eHg=\"}],"
                     "\"nextSeq\":5,\"exited\":true,\"exitCode\":3,\"closed\":true}"},
    {"process/snapshot",
     "{\"stdout\":\"eA==\",\"stderr\":\"\",\"terminal\":\"\",\"streams\":{"
     "\"stdout\":{\"headBytes\":1,\"tailBytes\":0,\"omittedBytes\":0,\"totalBytes\":1},"
     "\"stderr\":{\"headBytes\":0,\"tailBytes\":0,\"omittedBytes\":0,\"totalBytes\":0},"
     "\"terminal\":{\"headBytes\":0,\"tailBytes\":0,\"omittedBytes\":0,\"totalBytes\":0}},"
     "\"exited\":false,\"closed\":false}"},
    {"fs/readFile", "{\"dataBase64\":\"eHl6\"}"},
    {"fs/readDirectory",
     "{\"entries\":[{\"fileName\":\"f\",\"isDirectory\":false,\"isFile\":true}]}"},
    {"fs/walk", "{\"entries\":[{\"path\":\"file:///d/e\",\"kind\":\"directory\"},"
                "{\"path\":\"file:///d/f\",\"kind\":\"file\"},"
                "{\"path\":\"file:///d/l\",\"kind\":\"symlink\",\"target\":\"f\"}],"
                "\"errors\":[{\"path\":\"file:///d/g\",\"message\":\"no\"}],\"truncated\":false}"},
    {"fs/canonicalize", "{\"path\":\"file:///c\"}"},
    {"fs/readLink", "{\"target\":\"t\"}"},
    {"fs/watchMissing", "{\"watching\":true}"},
    {"fs/readBlock", "{\"chunk\":\"eHl6\",\"eof\":true}"},
};

static const char directory[] =
    "{\"isDirectory\":true,\"isFile\":false,\"size\":0,\"modifiedAtMs\":1,\"mode\":493}";
static const char file[] =
    "{\"isDirectory\":false,\"isFile\":true,\"size\":3,\"modifiedAtMs\":1,\"mode\":420}";

static const char *answer_to(const char *line) {
    if (strstr(line, "\"fs/getMetadata\"") != NULL)
        return strstr(line, "\"file:///d\"") != NULL || strstr(line, "file:///d/e\"") != NULL
                   ? directory
                   : file;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\"", answers[i].method);
        if (strstr(line, quoted) != NULL)
            return answers[i].result;
    }
    return "{}";
}

/* Answers every request that has come. */
static void serve(struct play *p) {
    char text[65536 + 64];
    for (char *line = (char *)(uintptr_t)hear(p), *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        if (strncmp(line, "{\"id\":", 6) != 0)
            continue;
        snprintf(text, sizeof text, "{\"id\":%llu,\"result\":%s}\n", strtoull(line + 6, NULL, 10),
                 answer_to(line));
        say(p, text);
    }
}

static void turns(struct play *p) {
    for (int i = 0; i < ENDS; i++) {
        turn(p);
        serve(p);
    }
}

/* Ends a call that may have begun: by its answer, or cancelled. The result. */
static int ends(struct play *p, struct done *d, int begun) {
    if (begun < 0) {
        assert_int_equal(d->times, 0);
        return begun;
    }
    turns(p);
    if (d->times == 0)
        xs_call_cancel(&d->call);
    turn(p);
    assert_int_equal(d->times, 1);
    return d->result;
}

#define TRY(begin_)                                                                                \
    do {                                                                                           \
        struct done d = {.call.done = on_done};                                                    \
        int begun_ = (begin_);                                                                     \
        int result_ = ends(p, &d, begun_);                                                         \
        worst = worst < 0 ? worst : result_;                                                       \
    } while (0)

static const char capable[] =
    "{\"id\":1,\"result\":{" SESSION ",\"environmentInfo\":{\"shell\":{\"name\":\"b\",\"path\":"
    "\"/bin/b\"},\"cwd\":\"file:///w\",\"capabilities\":{\"fsLinks\":true,\"fsReadMaxBytes\":true,"
    "\"fsTimes\":true,\"fsRename\":true,\"fsSetPermissions\":true,\"fsMetadataMode\":true,"
    "\"fileWriteStreaming\":true,\"fsOpenUpdate\":true,\"fsAtomicWrite\":true,\"fsWatch\":true,"
    "\"fsWatchMissing\":true,\"processAck\":true,\"processAttach\":true,\"processCloseStdin\":true,"
    "\"processList\":true,\"processResize\":true,\"processSignals\":[\"usr1\"],"
    "\"processSnapshot\":true,\"processTerminateModes\":true}}}}\n";

/* -- what is tried -- */

static const char output[] =
    "{\"method\":\"process/output\",\"params\":{\"processId\":\"p\",\"seq\":2,"
    "\"stream\":\"stdout\",\"chunk\":\"eHg=\"}}\n"
    "{\"method\":\"process/output\",\"params\":{\"processId\":\"p\",\"seq\":1,"
    "\"stream\":\"stderr\",\"chunk\":\"eHg=\"}}\n";
static const char the_end[] =
    "{\"method\":\"process/exited\",\"params\":{\"processId\":\"p\",\"seq\":3,\"exitCode\":3,"
    "\"resources\":{\"userTimeMs\":1}}}\n"
    "{\"method\":\"process/closed\",\"params\":{\"processId\":\"p\",\"seq\":4}}\n";

static struct xs_options *command(void) {
    struct xs_options *o = xs_options_new();
    if (o == NULL || xs_options_add(o, XS_OPT_ARGV, "sh") < 0 ||
        xs_options_add(o, XS_OPT_ENV, "A=b") < 0 || xs_options_str(o, XS_OPT_CWD, "/c") < 0 ||
        xs_options_str(o, XS_OPT_PROCESS_ID, "p") < 0 || xs_options_num(o, XS_OPT_STDIN, 1) < 0 ||
        xs_options_str(o, XS_OPT_SANDBOX, "read-only") < 0) {
        xs_options_free(o);
        return NULL;
    }
    return o;
}

static int processes(struct play *p) {
    int worst = 0;
    struct xs_options *o = command();
    struct xs_process *process = NULL, *other = NULL;
    const struct xs_event *event = NULL;
    struct xs_snapshot snapshot = XS_INIT(struct xs_snapshot);
    struct xs_exit exit = XS_INIT(struct xs_exit);
    struct xs_bytes json = {NULL, 0};
    if (o == NULL)
        return XS_ENOMEM;
    TRY(xs_process_start(p->client, o, &process, &d.call));
    xs_options_free(o);
    if (process != NULL) {
        say(p, output);
        TRY(xs_process_next(process, &event, &d.call));
        TRY(xs_process_write(process, "abc", 3, &d.call));
        TRY(xs_process_resize(process, 1, 2, &d.call));
        TRY(xs_process_signal(process, 10, &d.call));
        TRY(xs_process_snapshot(process, 100, &snapshot, &d.call));
        xs_snapshot_fini(&snapshot);
        TRY(xs_process_read(process, 0, 0, 0, &json, &d.call));
        xs_bytes_free(&json);
        TRY(xs_process_terminate(process, 5, &d.call));
        say(p, the_end);
        TRY(xs_process_communicate(process, "in", 2, 100, &snapshot, &d.call));
        xs_snapshot_fini(&snapshot);
        TRY(xs_process_wait(process, 1, -1, &exit, &d.call));
        assert_true(worst < 0 || exit.code == 3);
    }
    xs_process_free(process);
    TRY(xs_process_list(p->client, &json, &d.call));
    xs_bytes_free(&json);
    TRY(xs_process_adopt(p->client, "q", 0, &other, &d.call));
    xs_process_free(other);
    other = NULL;
    TRY(xs_process_view(p->client, "s", "v", 0, &other, &d.call));
    xs_process_free(other);
    return worst;
}

static void on_change(struct xs_watch *w, const struct xs_change *c, void *user) {
    (void)w;
    (void)c;
    (void)user;
}

static int file_calls(struct play *p) {
    int worst = 0;
    struct xs_fs *f = NULL;
    struct xs_stat stat = XS_INIT(struct xs_stat);
    struct xs_bytes bytes = {NULL, 0};
    struct xs_entries *entries = NULL;
    struct xs_walk walk = XS_INIT(struct xs_walk);
    struct xs_file *open = NULL;
    struct xs_watch *watch = NULL;
    char buffer[16];
    if (xs_fs_new(p->client, NULL, &f) < 0)
        return XS_ENOMEM;
    TRY(xs_fs_stat(f, "/s", 0, &stat, &d.call));
    TRY(xs_fs_read(f, "r", 0, 100, &bytes, &d.call));
    xs_bytes_free(&bytes);
    TRY(xs_fs_write(f, "/w", "abc", 3, XS_ATOMIC, &d.call));
    TRY(xs_fs_list(f, "/d", &entries, &d.call));
    xs_entries_free(entries);
    entries = NULL;
    walk.links = 1;
    TRY(xs_fs_walk(f, "/d", &walk, &entries, &d.call));
    xs_entries_free(entries);
    TRY(xs_fs_mkdir(f, "/m", XS_RECURSIVE, &d.call));
    TRY(xs_fs_rename(f, "/a", "/b", 0, &d.call));
    TRY(xs_fs_canonicalize(f, "/c", &bytes, &d.call));
    xs_bytes_free(&bytes);
    TRY(xs_fs_read_link(f, "/l", &bytes, &d.call));
    xs_bytes_free(&bytes);
    TRY(xs_fs_symlink(f, "/l", "t", &d.call));
    TRY(xs_fs_open(f, "/o", XS_OPEN_UPDATE, &open, &d.call));
    if (open != NULL) {
        TRY(xs_file_read(open, 0, buffer, sizeof buffer, &d.call));
        TRY(xs_file_write(open, 0, "abc", 3, &d.call));
        xs_file_free(open);
    }
    TRY(xs_fs_watch(f, "/d", XS_RECURSIVE, on_change, NULL, &watch, &d.call));
    say(p,
        "{\"method\":\"fs/changed\",\"params\":{\"watchId\":\"w2\",\"changedPaths\":[\"file:///d/"
        "x\"]}}\n");
    turns(p);
    xs_watch_free(watch);
    xs_fs_free(f);
    return worst;
}

static int on_progress(void *user, const struct xs_progress *progress) {
    (void)user;
    (void)progress;
    return 0;
}

static int copies(struct play *p) {
    int worst = 0;
    struct xs_options *o = xs_options_new();
    if (o == NULL || xs_options_num(o, XS_OPT_RECURSIVE, 1) < 0) {
        xs_options_free(o);
        return XS_ENOMEM;
    }
    TRY(xs_copy_upload(p->client, "up", "/target", o, on_progress, NULL, &d.call));
    TRY(xs_copy_download(p->client, "/d", "down", o, on_progress, NULL, &d.call));
    xs_options_free(o);
    return MIN(worst, 0);
}

static int exec(struct play *p) {
    int worst = 0;
    struct xs_exec *x = NULL;
    struct xs_exec_result *result = NULL;
    struct xs_options *o = command();
    if (o == NULL || xs_exec_new(p->client, NULL, NULL, &x) < 0) {
        xs_options_free(o);
        return XS_ENOMEM;
    }
    struct done d = {.call.done = on_done};
    int begun = xs_exec_command(x, o, &result, &d.call);
    xs_options_free(o);
    if (begun == 0) {
        turn(p);
        serve(p);
        say(p, output);
        say(p, the_end);
    }
    worst = ends(p, &d, begun);
    xs_exec_result_free(result);
    xs_exec_free(x);
    turns(p);
    return worst;
}

/* -- every allocation -- */

static int once(int (*what)(struct play *p)) {
    struct play p;
    int r = play_begin(&p);
    if (r < 0)
        close((int)p.n);
    else
        r = play_connect(&p, capable);
    if (r == 0)
        r = what(&p);
    play_end(&p);
    return r;
}

static void every_allocation_fails(int (*what)(struct play *p)) {
    fail_at = allocations = 0;
    assert_true(once(what) >= 0);
    const long all = allocations;
    assert_true(all > 50);
    long failed = 0;
    for (long i = 1; i <= all; i++) {
        allocations = 0;
        fail_at = i;
        failed += once(what) < 0;
    }
    fail_at = 0;
    assert_true(failed > all / 4); /* others are done without: logs, errors' texts */
    print_message("%ld allocations, %ld of them fatal to a call\n", all, failed);
}

static void fails_in_processes(void **state) {
    (void)state;
    every_allocation_fails(processes);
}

static void fails_in_files(void **state) {
    (void)state;
    every_allocation_fails(file_calls);
}

static void fails_in_exec(void **state) {
    (void)state;
    every_allocation_fails(exec);
}

static void fails_in_copies(void **state) {
    (void)state;
    char place[] = "/tmp/client-memory-XXXXXX";
    assert_non_null(mkdtemp(place));
    assert_int_equal(chdir(place), 0);
    assert_int_equal(mkdir("up", 0700), 0);
    assert_int_equal(mkdir("up/e", 0700), 0);
    int fd = open("up/e/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "abc", 3), 3);
    close(fd);
    assert_int_equal(symlink("e", "up/l"), 0);
    every_allocation_fails(copies);
    assert_int_equal(chdir("/"), 0);
    char command_line[64];
    snprintf(command_line, sizeof command_line, "rm -r %s", place);
    assert_int_equal(system(command_line), 0); // NOLINT(cert-env33-c)
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_in_processes),
        cmocka_unit_test(fails_in_files),
        cmocka_unit_test(fails_in_exec),
        cmocka_unit_test(fails_in_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
