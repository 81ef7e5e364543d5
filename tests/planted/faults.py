"""The faults: the statement that each one changes, and the checks that must notice.

A marker comment alone on its line, `/* planted: NAME */`, stands in src/ above the statement that
the fault NAME changes. The statement reaches down to the first line that ends in `;`, `{` or `}`.
A fault describes its change in terms that survive a new name or another file where it can.
`says` is a pattern that the check's output must match, so that no other failure counts.
"""

import pathlib
import re
from dataclasses import dataclass
from typing import Callable

MARKER = re.compile(r"^ */\* planted: ([\w-]+) \*/\n", re.MULTILINE)
STATEMENT = re.compile(r"(?:.*\n)*?.*[;{}](?: */\*.*\*/)?\n")


class Misplaced(Exception):
    """The source has no place, or more than one, for a fault."""


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
class Library(Check):
    """Tests of tests/client: the client library against the program."""
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
    change: Callable[[str], str]  # gets the marked statement, returns what takes its place
    checks: list
    cheap: bool = False  # tests/run plants it, too, for the first check


def e2e(says, *tests):
    return E2e(tests, says)


def library(says, *tests):
    return Library(tests, says)


def drop(_statement):
    return ""


def twice(statement):
    return statement * 2


def instead(text):
    return lambda _statement: f"{text}\n"


def before(text):
    return lambda statement: f"{text}\n{statement}"


def after(text):
    return lambda statement: f"{statement}{text}\n"


def edit(pattern, new):
    """Replaces the only match of a pattern in the statement."""
    def change(statement):
        text, found = re.subn(pattern, new, statement, flags=re.DOTALL)
        if found != 1:
            raise Misplaced(f"{found} matches of {pattern!r} in the marked statement, not one")
        return text
    return change


def markers(source):
    """Lists (name, file) of every marker below a directory."""
    return [(name, path) for path in sorted(pathlib.Path(source).rglob("*.[ch]"))
            for name in MARKER.findall(path.read_text())]


def planted(fault, source):
    """Returns the file that a fault changes, its text and its text with the fault."""
    files = [path for name, path in markers(source) if name == fault.name]
    if len(files) != 1:
        raise Misplaced(f"{len(files)} markers /* planted: {fault.name} */, not one")
    text = files[0].read_text()
    start = next(m.end() for m in MARKER.finditer(text) if m.group(1) == fault.name)
    end = STATEMENT.match(text, start).end()
    changed = fault.change(text[start:end])
    return files[0], text, text[:start] + changed + text[end:]


def misplaced(source):
    """Lists what is wrong with the markers; builds nothing."""
    known = {fault.name for fault in FAULTS}
    problems = [f"{path}: marker of an unknown fault {name}"
                for name, path in markers(source) if name not in known]
    for fault in FAULTS:
        try:
            planted(fault, source)
        except Misplaced as error:
            problems.append(f"{fault.name}: {error}")
    return problems


# A descriptor is forgotten instead of closed.
LEAK = edit(r"util_close_fd\(&(.+)\);", r"\1 = -1;")

FAULTS = [
    Fault(
        "skipped-seq", "a number is left out before the end of a process",
        before("    p->next_seq++;"),
        [e2e(r"seq 4 instead of 3", "test_output.py::test_both_streams"),
         # It waits for the number that never comes.
         Conform("process-basic/output and exit", r"broke off on ours"),
         Fuzz("conn", r"n == s->seq \+ 1")],
        cheap=True),
    Fault(
        "lost-output", "output that comes together with the hang-up is not read",
        after("    if (events & EPOLLHUP)\n        proc_stream_end(s->owner, s);"),
        [e2e(r"assert b'", "test_output.py::test_end_that_comes_with_the_output")],
        cheap=True),
    Fault(
        "lost-byte", "the last byte of a full chunk is lost",
        edit(r"\(size_t\)n", "(size_t)n - (n == OUTLOG_CHUNK_MAX)"),
        [e2e(r"assert", "test_output.py::test_large_output_precedes_exit"),
         Soak(r"FAILED +no lost or doubled byte")]),
    Fault(
        "doubled-write-id", "the client gives two writes to stdin one number",
        edit(r"\+\+p->write_number", "1 + p->write_number / 2"),
        [library(r"an id twice", "test_core_process.py::test_writes_have_ids_of_their_own")],
        cheap=True),
    Fault(
        "lost-ack", "the client does not acknowledge what was consumed",
        edit(r"procflow_send_ack\(p, -1\) < 0", "false"),
        [library(r"it did not happen",
                 "test_core_process.py::test_what_was_consumed_is_acknowledged")]),
    Fault(
        "missed-exit", "the client takes the number of EXITED in process/read for lost output", drop,
        [Unit("evqueue", r"FAILED")]),
    Fault(
        "trusted-part", "a download goes on with a part without comparing its end",
        edit(r"if \(.*\)", "if (here == NULL)"),
        [library(r"assert", "test_core_copies.py::test_a_part_is_compared")]),
    Fault(
        "forgotten-output", "output that the client has not acknowledged is evicted",
        edit(r"p->keep_unacked", "false"),
        [e2e(r"events after \d+ are gone", "test_ext_ack.py::test_no_gap_in_a_flood")]),
    Fault(
        "leaked-stdin", "the standard input of an ended process stays open", LEAK,
        [e2e(r"at most \d+ descriptors",
             "test_sessions.py::test_descriptors_of_ended_sessions_are_released")]),
    Fault(
        "leaked-launch", "a descriptor of each sandboxed start stays open", LEAK,
        [e2e(r"at most \d+ descriptors", "test_sandbox_start.py::test_many_in_a_row"),
         Soak(r"FAILED +descriptors back to the start")]),
    Fault(
        "no-nodelay", "TCP_NODELAY is not set", drop,
        [e2e(r"TCP_NODELAY", "test_listen.py::test_small_messages_do_not_wait_for_others"),
         Bench("echo_pipe", r"missed: .*echo_pipe_p50")],
        cheap=True),
    Fault(
        "ignored-policy", "a sandboxPolicy beside the other members is checked and forgotten", drop,
        [e2e(r"succeeded", "test_sandbox_asked.py::test_policy_of_a_file_call")]),
    Fault(
        "writable-proc", "a command in a container can write to /proc",
        edit(r" \| MOUNT_ATTR_RDONLY", ""),
        [e2e(r"assert", "test_containers.py::test_proc_is_read_only")]),
    Fault(
        "unsandboxed-start", "a command that cannot be sandboxed starts without",
        edit(r"return (.*);", r"(void)\1;\n    return 0;"),
        [e2e(r"process/start succeeded", "test_sandbox_start.py::test_no_backend")],
        cheap=True),
    Fault(
        "unsandboxed-call", "a file call is served without its sandbox", instead("    return 0;"),
        [e2e(r"assert", "test_sandbox_files.py::test_denied_path")]),
    Fault(
        "call-fallback", "a file call whose helper cannot be started is served without it",
        instead("        if (j->confined.helper != NULL)\n"
                "            fs_helper_unref(steal_ptr(&j->confined.helper));\n"
                "        err_fini(&j->err);\n        fs_job_queue(j);"),
        [e2e(r"fs/\w+ succeeded", "test_sandbox_start.py::test_no_backend")]),
    Fault(
        "ignored-pattern", "the helper lets a denied pattern pass", drop,
        [e2e(r"fs/readFile succeeded", "test_sandbox_files.py::test_patterns")]),
    Fault(
        "unfiltered", "neither Landlock nor seccomp confine a command", drop,
        [e2e(r"test_rows", "test_sandbox_matrix.py::test_rows[credentials and seccomp-plain-WW]")]),
    Fault(
        "unprotected-name", "the place of a missing .git is not held",
        edit(r"return .*;", "return 0;"),
        [e2e(r"assert",
             "test_sandbox_scenarios.py::test_missing_names_are_empty_and_read_only")]),
    Fault(
        "wrong-base64", "a last byte alone is encoded wrongly",
        edit(r"p\[i\],", "n - i > 1 ? p[i] : p[i] & 0xf0,"),
        [Unit("base64", r"FAILED"),
         e2e(r"assert b'out", "test_output.py::test_both_streams"),
         Fuzz("base64", r"ERROR: libFuzzer")]),
    Fault(
        "late-twice", "an answer that took a while is sent twice", twice,
        [e2e(r"answered twice", "test_output.py::test_both_streams")]),
    Fault(
        "answered-twice", "an answer is sent twice", twice,
        [e2e(r"answered twice", "test_envelope.py::test_answered"),
         Fuzz("conn", r"c->answered <= c->sent")]),
    Fault(
        "stale-session", "a session lives on for a thousand times as long",
        edit(r"LOOP_MS", "LOOP_MS * 1000"),
        [e2e(r"end of process", "test_sessions.py::test_ttl")]),
    Fault(
        "repeated-write", "a repeated write is done twice", drop,
        [e2e(r"not received in time: output",
             "test_write.py::test_repeated_id_is_not_written_again")]),
    Fault(
        "spared-orphan", "terminate kills the group of the leader alone",
        instead("    bool done = h.leader < 0;"),
        [e2e(r"could not be ended in time",
             "test_descendants.py::test_terminate_kills_each_kind")]),
    Fault(
        "any-token", "every bearer token is good", edit(r"== 0", "<= 0"),
        [e2e(r"assert|DID NOT RAISE", "test_auth.py::TestCapability::test_bad_token")]),
    Fault(
        "any-origin", "web pages may connect", edit(r"\.p != NULL", ".n > 1000"),
        [e2e(r"assert", "test_http.py::test_origin_is_refused")]),
    Fault(
        "any-page", "a page of another origin speaks with the console",
        edit(r"strncasecmp\(.*?\) == 0", "true"),
        [e2e(r"DID NOT RAISE", "test_console_http.py::test_foreign_origins")]),
    Fault(
        "any-port", "a page of another port is taken for the console's",
        edit(r"str_eqz\(port, digits\)", "true"),
        [Unit("console_http", r"Host 127\.0\.0\.1:8081"),
         e2e(r"assert 200 == 421", "test_console_http.py::test_foreign_hosts"),
         Fuzz("console", r"ERROR: libFuzzer")]),
    Fault(
        "token-again", "a link of the console works twice", drop,
        [Unit("ticket", r"a_token_is_good_once"),
         e2e(r"succeeded", "test_console.py::test_a_token_is_good_once")]),
    Fault(
        "only-look", "who may only look may act", edit(r"settings\.control", "settings.on"),
        [e2e(r"succeeded|Closed", "test_console.py::test_only_look")]),
]
