"""Faults of the old server. Ours has none of them; the old one shows each, so the test would find
it."""

import contextlib
import json
import os
import signal

import pytest

from harness import procfs
from harness.settings import BINARY
from harness.waiting import until
from peer import OLD_SERVER, OLD_WRAPPER

RULES = 'prefix_rule(pattern=["sh"])\nprefix_rule(pattern=["dash"])\n'
LIMIT = 100000  # milliseconds that a command may take
TRIES = 4


class Side:
    """Makes servers of one kind."""

    def __init__(self, start, place, limit, **options):
        self.start, self.place, self.limit, self.options = start, place, limit, options
        self.made = 0

    def server(self, **env):
        options = dict(self.options)
        server = self.start(*options.pop("words", ()), rules=RULES, env=env, **options)
        server.hello(full=True)
        return server

    def fifo(self):
        self.made += 1
        path = self.place / f"fifo{self.made}"
        os.mkfifo(path)
        return path


@pytest.fixture(params=["patched", "notify"])
def ours(request, start, tmp_path):
    """Our server, with our wrapper and Bash under the names of the old ones, and by default."""
    if request.param == "notify":
        return Side(start, tmp_path, LIMIT)
    bash = request.getfixturevalue("our_bash")
    links = tmp_path / "links"
    links.mkdir()
    for name in (OLD_SERVER, OLD_WRAPPER):
        (links / name).symlink_to(BINARY)
    return Side(start, tmp_path, LIMIT, program=links / OLD_SERVER, words=("--bash", bash, "--execve", links / OLD_WRAPPER))


@pytest.fixture
def theirs(start, old, tmp_path):
    """The old server with its wrapper and Bash."""
    words = ("--bash", old.bash, "--execve", old.wrapper)
    before = set(procfs.descendants(os.getpid()))
    yield Side(start, tmp_path, 3000, program=old.server, words=words)
    while left := set(procfs.descendants(os.getpid())) - before:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def text(server, command, limit=LIMIT):
    """The output, or the error that is there instead."""
    return text_of(server.answer(server.call(command, timeout_ms=limit)))


def text_of(answer):
    if "error" in answer:
        return answer["error"]["message"]
    return json.loads(answer["result"]["content"][0]["text"])["output"]


def held(fifo):
    """Whether a process has it open."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def stays(side, fifo):
    """Whether a process still has it open, when all should have ended."""
    if side.limit != LIMIT:
        return held(fifo)
    until(lambda: not held(fifo), "the end of what holds it")
    return False


# -- each says whether the fault was seen --

def orphans(how):
    def seen(side):
        server, fifos = side.server(), [side.fifo() for _ in range(3)]
        hold = "bash -c 'read x <> {}; :'"
        server.call(f"({hold.format(fifos[0])}) & setsid {hold.format(fifos[1])} & "
                    f"{hold.format(fifos[2])}; :", timeout_ms=1000000)
        for fifo in fifos:
            until(lambda fifo=fifo: held(fifo), "it runs")
        if how == "eof":
            server.close()
        else:
            server.signal(how)
        return any([stays(side, fifo) for fifo in fifos])
    return seen


def survives_sigint(side):
    server, fifo = side.server(), side.fifo()
    text(server, ":")  # the old server takes SIGINT over with its first command
    number = server.call(f"read x <> {fifo}", timeout_ms=1000000)
    until(lambda: held(fifo), "it runs")
    server.process.send_signal(signal.SIGINT)
    if side.limit == LIMIT:
        return server.process.wait() != 0
    server.answer(number)
    return server.request("ping")["result"] == {}


def escalated_outlive_a_timeout(side):
    server, fifo = side.server(), side.fifo()
    text(server, f"sh -c 'exec 0<>{fifo}; read x'", limit=1500)
    return stays(side, fifo)


def cancellation_is_ignored(side):
    server, fifo = side.server(), side.fifo()
    number = server.call(f"read x <> {fifo}", timeout_ms=1000000)
    until(lambda: held(fifo), "it runs")
    server.send("notifications/cancelled", {"requestId": number})
    server.request("ping")
    return stays(side, fifo)


def pipelines_hang(side):
    server = side.server()
    numbers = [server.call("sh -c 'echo one' | sh -c cat", timeout_ms=side.limit)
               for _ in range(10)]
    answers = [text_of(server.answer(number)) for number in numbers]
    return any("timed out" in answer for answer in answers)


def arguments_get_lost(side):
    """Vectors of many lengths: the old Bash writes behind them."""
    lists = ["x" * n for n in range(1, 8)]
    command = "".join(f"for i in 1 3 5 7 9; do /usr/bin/echo {' '.join(words)}; done; "
                      for words in lists)
    want = "".join(f"{' '.join(words)}\n" * 5 for words in lists)
    return any(text(side.server(**pads), command) != want for pads in paddings())


def the_environment_is_damaged(side):
    command = "for i in 1 3 5 7 9; do {}; done; ".format(
        "; ".join(f"GIVEN={n} printenv GIVEN{' b' * n}" for n in range(6)))
    want = "".join(f"{n}\n" for n in range(6)) * 5
    return any(text(side.server(**pads), command) != want for pads in paddings())


def paddings():
    """Environments of several sizes: what is damaged depends on the heap."""
    return ({f"PAD{n}": "" for n in range(count)} for count in range(TRIES))


def sigpipe_is_ignored(side):
    got = text(side.server(), "seq 1 100000 | head -1; echo ${PIPESTATUS[0]}")
    return got != "1\n141\n"


def background_programs_fail(side):
    server, fifo, out = side.server(), side.fifo(), side.place / "late"
    server.run(f"(read x < {fifo}; uname) > {out} 2>&1 &")
    fifo.write_text("go\n")
    return "Linux" not in until(lambda: out.read_text() if out.exists() else "", "it went on")


def a_killed_program_exits_with_127(side):
    return text(side.server(), "sh -c 'kill -9 $$' 2>/dev/null | cat; echo ${PIPESTATUS[0]}") != "137\n"


def escalated_programs_get_the_servers_variables(side):
    return text(side.server(EXTRA="set"), "unset EXTRA; sh -c 'echo ${EXTRA-none}'") != "none\n"


def descriptors_leak(side):
    return text(side.server(), "sh -c 'ls -m /proc/self/fd'") != "0, 1, 2, 3\n"


def a_bad_line_ends_the_server(side):
    server = side.server()
    server.line("{")
    with contextlib.suppress(OSError, AssertionError):
        return server.request("ping")["result"] != {}
    return True


FAULTS = [*(orphans(how) for how in ("eof", signal.SIGTERM, signal.SIGHUP)), survives_sigint,
          escalated_outlive_a_timeout, cancellation_is_ignored, pipelines_hang, arguments_get_lost,
          the_environment_is_damaged, sigpipe_is_ignored, background_programs_fail,
          a_killed_program_exits_with_127, escalated_programs_get_the_servers_variables,
          descriptors_leak, a_bad_line_ends_the_server]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__qualname__)
def test_ours_has_none(ours, fault):
    assert not fault(ours)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__qualname__)
def test_the_old_server_has_it(theirs, fault):
    assert fault(theirs)
