"""The faults: what is changed in the source, and which checks must notice.

`old` stands exactly once in `file`; who changes that place adapts the fault. `says` is a pattern
that the check's output must match, so that nothing is noticed for another reason.
"""

from dataclasses import dataclass


class Check:
    """What has to notice. Compared by what it runs, not by what it should say."""

    def key(self):
        raise NotImplementedError

    def __eq__(self, other):
        return type(self) is type(other) and self.key() == other.key()

    def __hash__(self):
        return hash((type(self), self.key()))


@dataclass(eq=False)
class E2e(Check):
    """Tests of tests/e2e."""
    tests: tuple
    says: str

    def key(self):
        return self.tests

    def __str__(self):
        return " ".join(self.tests)


@dataclass(eq=False)
class Named(Check):
    name: str
    says: str

    def key(self):
        return self.name


class Unit(Named):
    """A program of tests/unit."""

    def __str__(self):
        return f"unit test {self.name}"


class Fuzz(Named):
    """The kept inputs of a fuzz target."""

    def __str__(self):
        return f"fuzz target {self.name}"


class Conform(Named):
    """Cases of tests/conform."""

    def __str__(self):
        return f"conform case {self.name}"


class Bench(Named):
    """A group of bench/run, in its quick form."""

    def __str__(self):
        return f"bench {self.name}"


@dataclass(eq=False)
class Soak(Check):
    """The short soak."""
    says: str

    def key(self):
        return ()

    def __str__(self):
        return "soak"


@dataclass
class Fault:
    name: str
    what: str
    file: str
    old: str
    new: str
    checks: list
    cheap: bool = False  # planted by tests/run, too, for the first check


def e2e(says, *tests):
    return E2e(tests, says)


FAULTS = [
    Fault(
        "skipped-seq", "a number is left out before the end of a process", "src/proc/proc.c",
        "    p->exited_seq = p->next_seq++;",
        "    p->exited_seq = ++p->next_seq;\n    p->next_seq++;",
        [e2e(r"seq 4 instead of 3", "test_output.py::test_both_streams"),
         # It waits for the number that never comes.
         Conform("process-basic/output and exit", r"broke off on ours"),
         Fuzz("conn", r"n == s->seq \+ 1")],
        cheap=True),
    Fault(
        "lost-output", "what comes together with the hang-up is not read", "src/proc/proc.c",
        "    (void)events;\n"
        "    struct proc_stream *s = container_of(io, struct proc_stream, io);\n",
        "    struct proc_stream *s = container_of(io, struct proc_stream, io);\n"
        "    if (events & EPOLLHUP)\n        proc_stream_end(s->owner, s);\n",
        [e2e(r"assert b'", "test_output.py::test_end_that_comes_with_the_output")],
        cheap=True),
    Fault(
        "lost-byte", "the last byte of a full chunk is lost", "src/proc/proc.c",
        "    p->ops->output(p, seq, s->name, p->host->scratch, (size_t)n);",
        "    p->ops->output(p, seq, s->name, p->host->scratch,\n"
        "                   (size_t)n - (n == OUTLOG_CHUNK_MAX));",
        [e2e(r"assert", "test_output.py::test_large_output_precedes_exit"),
         Soak(r"FAILED +no lost or doubled byte")]),
    Fault(
        "leaked-stdin", "the standard input of an ended process stays open", "src/proc/proc.c",
        "    loop_io_del(p->host->loop, &p->in);\n    util_close_fd(&p->in.fd);\n",
        "    loop_io_del(p->host->loop, &p->in);\n    p->in.fd = -1;\n",
        [e2e(r"at most \d+ descriptors",
             "test_sessions.py::test_descriptors_of_ended_sessions_are_released")]),
    Fault(
        "leaked-launch", "a descriptor of each sandboxed start stays open", "src/sandbox/host/sandbox_host.c",
        "        util_close_fd(&l->child.handed[i]);",
        "        l->child.handed[i] = -1;",
        [e2e(r"at most \d+ descriptors", "test_sandbox_start.py::test_many_in_a_row"),
         Soak(r"FAILED +descriptors back to the start")]),
    Fault(
        "no-nodelay", "TCP_NODELAY is not set", "src/net/sock.c",
        "    sock_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);\n", "",
        [e2e(r"TCP_NODELAY", "test_listen.py::test_small_messages_do_not_wait_for_others"),
         Bench("echo_pipe", r"missed: .*echo_pipe_p50")],
        cheap=True),
    Fault(
        "ignored-policy", "a sandboxPolicy beside the other members is checked and forgotten",
        "src/process/sandbox_members.c",
        "    *sandbox = params;\n", "",
        [e2e(r"succeeded", "test_sandbox_asked.py::test_policy_of_a_file_call")]),
    Fault(
        "writable-proc", "the /proc of a container can be written to", "src/sandbox/inside/mounts_system.c",
        "    if (proc < 0 || sys_mount_setattr(proc, \"\", 1, MOUNTS_EMPTY | MOUNT_ATTR_RDONLY, 0, 0)"
        " < 0 ||\n",
        "    if (proc < 0 || sys_mount_setattr(proc, \"\", 1, MOUNTS_EMPTY, 0, 0) < 0 ||\n",
        [e2e(r"assert", "test_containers.py::test_proc_is_read_only")]),
    Fault(
        "unsandboxed-start", "what cannot be sandboxed is started without", "src/process/start.c",
        "    return sandbox_host_prepare(&server->sandbox, &s->policy, server->procs.children.nofile,"
        " &s->arena,\n                           &s->spec, &s->launch, e);",
        "    (void)sandbox_host_prepare(&server->sandbox, &s->policy, server->procs.children.nofile,"
        " &s->arena,\n                          &s->spec, &s->launch, e);\n    return 0;",
        [e2e(r"process/start succeeded", "test_sandbox_start.py::test_no_backend")],
        cheap=True),
    Fault(
        "unsandboxed-call", "a file call is served without its sandbox", "src/files/fs_ops.c",
        "    return profile_files_need(p->profile, write) == PROFILE_CONFINED;",
        "    (void)write;\n    return 0;",
        [e2e(r"assert", "test_sandbox_files.py::test_denied_path")]),
    Fault(
        "call-fallback", "a file call whose helper cannot be started is served without it",
        "src/files/fs_confined.c",
        "        rpc_fail(steal_ptr(&j->call), &j->err);\n        return;\n",
        "        if (x->helper != NULL)\n            fs_helper_unref(steal_ptr(&x->helper));\n"
        "        err_fini(&j->err);\n",
        [e2e(r"fs/\w+ succeeded", "test_sandbox_start.py::test_no_backend")]),
    Fault(
        "ignored-pattern", "the helper lets a denied pattern pass",
        "src/sandbox/policy/access_globs.c",
        "        if (!deep && glob_run_match(&glob->set, rest + 1) != 0)\n            return true;\n",
        "        (void)deep;\n",
        [e2e(r"fs/readFile succeeded", "test_sandbox_files.py::test_patterns")]),
    Fault(
        "unfiltered", "neither Landlock nor seccomp confine a command", "src/sandbox/inside/command.c",
        "    if (command_confine(c) < 0)\n        return;\n", "    (void)command_confine;\n",
        [e2e(r"test_rows", "test_sandbox_matrix.py::test_rows[credentials and seccomp-plain-WW]")]),
    Fault(
        "unprotected-name", "the place of a missing .git is not held", "src/sandbox/policy/access.c",
        "        return make_guard(m, path, NULL);\n    if (error != 0) {",
        "        return 0;\n    if (error != 0) {",
        [e2e(r"assert",
             "test_sandbox_scenarios.py::test_missing_names_are_empty_and_read_only")]),
    Fault(
        "wrong-base64", "a last byte alone is encoded wrongly", "src/json/base64.c",
        "last[3] = {p[i], n - i > 1", "last[3] = {n - i > 1 ? p[i] : p[i] & 0xf0, n - i > 1",
        [Unit("base64", r"FAILED"),
         e2e(r"assert b'out", "test_output.py::test_both_streams"),
         Fuzz("base64", r"ERROR: libFuzzer")]),
    Fault(
        "late-twice", "an answer that took a while is sent twice", "src/rpc/rpc.c",
        "    rpc_send_result(p, (struct str){c->id, c->id_len});",
        "    rpc_send_result(p, (struct str){c->id, c->id_len});\n"
        "    rpc_send_result(p, (struct str){c->id, c->id_len});",
        [e2e(r"answered twice", "test_output.py::test_both_streams")]),
    Fault(
        "answered-twice", "an answer is sent twice", "src/rpc/rpc.c",
        "        rpc_send_result(p, buf_str(&id));",
        "        rpc_send_result(p, buf_str(&id));\n        rpc_send_result(p, buf_str(&id));",
        [e2e(r"answered twice", "test_envelope.py::test_answered"),
         Fuzz("conn", r"c->answered <= c->sent")]),
    Fault(
        "stale-session", "a session lives on for a thousand times as long", "src/process/session.c",
        "loop_timer_set(&server->loop, &s->ttl, ttl * LOOP_MS)",
        "loop_timer_set(&server->loop, &s->ttl, ttl * LOOP_MS * 1000)",
        [e2e(r"end of process", "test_sessions.py::test_ttl")]),
    Fault(
        "repeated-write", "a repeated write is done twice", "src/process/process_wait.c",
        "    if (id != NULL && stdinq_seen(&p->stdinq, *id))\n        return PROCESS_WRITE_ACCEPTED;\n", "",
        [e2e(r"not received in time: output",
             "test_write.py::test_repeated_id_is_not_written_again")]),
    Fault(
        "spared-orphan", "terminate kills the group of the leader alone", "src/proc/supervisor.c",
        "    bool done = hunt_down(&h);\n", "    bool done = h.leader < 0;\n",
        [e2e(r"could not be ended in time",
             "test_descendants.py::test_terminate_kills_each_kind")]),
    Fault(
        "any-token", "every bearer token is good", "src/net/auth.c",
        "sodium_memcmp(digest, a->digest, sizeof digest) == 0 ? NULL : AUTH_BAD_TOKEN",
        "sodium_memcmp(digest, a->digest, sizeof digest) <= 0 ? NULL : AUTH_BAD_TOKEN",
        [e2e(r"assert|DID NOT RAISE", "test_auth.py::TestCapability::test_bad_token")]),
    Fault(
        "any-origin", "web pages may connect", "src/net/http.c",
        "void http_route(const struct http_request *r, struct http_answer *a) {\n"
        "    http_answer_init(r, a);\n    if (http_header_get(r, \"origin\").p != NULL)",
        "void http_route(const struct http_request *r, struct http_answer *a) {\n"
        "    http_answer_init(r, a);\n    if (http_header_get(r, \"origin\").n > 1000)",
        [e2e(r"assert", "test_http.py::test_origin_is_refused")]),
]
