"""A process is killed at a step of a sandboxed start: nothing stays on the host."""

import os
import re
import signal
from pathlib import Path

import pytest

from harness import procfs
from harness.confined import Calls
from harness.files import os_error
from harness.meddler import Meddler
from harness.rpc import b64
from harness.sandbox import PROTECTED, Place
from harness.settings import BINARY, ROOT
from harness.waiting import until

WW = ("r :root", "w :project_roots")
STEPS = Path(BINARY).parent / "tests" / "exec-server-steps"
NUMBERS = re.findall(r"^    (STEP_\w+)", (ROOT / "src/base/step.h").read_text(), re.MULTILINE)
NAMES = [name.removeprefix("STEP_").lower() for name in NUMBERS if name not in
         ("STEP_NONE", "STEP_COUNT")]

# Of the four around a command; those that spare the server come first, to share one.
VICTIMS = [("launcher",), ("init",), ("supervisor",), ("launcher", "supervisor"), ("server",),
           ("supervisor", "server")]
EVERYBODY = ("launcher", "init", "supervisor", "server")

stepwise = pytest.mark.skipif(not STEPS.exists(), reason="a build without the steps")


def comm(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def stopped(server, step):
    """A process of the server that waits at a step."""
    return next((p for p in procfs.below(server.pid) if comm(p) == f"step-{step:02d}"), None)


class Start:
    """A start that has stopped at a step."""

    def __init__(self, server, place, step):
        self.server = server
        place.client = server.client()
        # The command ends by itself, for the steps behind its end.
        place.client.send("process/start", place.params(["/bin/true"], WW))
        self.name = f"step-{step:02d}"
        self.stopped = until(lambda: stopped(server, step), self.name)
        self.around = {"server": server.pid, **self._chain()}

    def _chain(self):
        """Supervisor, launcher and init, as far as they are there: above and below who stopped."""
        chain = [self.stopped]
        while procfs.parent(chain[0]) != self.server.pid:
            chain.insert(0, procfs.parent(chain[0]))
        while len(chain) < 3 and (living := [p for p in procfs.children(chain[-1])
                                             if procfs.alive(p)]):
            chain.append(living[0])
        return dict(zip(("supervisor", "launcher", "init"), chain))

    def kill(self, victims):
        """Kills them, lets the rest go on, and waits for its end."""
        below = procfs.below(self.server.pid)
        for role in victims:
            procfs.kill(self.around[role])
        until(lambda: self._let_go(below), f"end of all, {victims} killed")

    def _let_go(self, below):
        """Processes that reach the step later go on as well."""
        left = [pid for pid in below if procfs.alive(pid)]
        for pid in left:
            if comm(pid) == self.name:
                procfs.kill(pid, signal.SIGUSR2)
        return not left


@pytest.fixture
def place(tmp_path_factory):
    made = Place(None, os.geteuid(), parent=str(tmp_path_factory.mktemp("kills")))
    yield made
    made.close()


def mounted(place):
    return str(place.base) in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def stop_at(fleet, step):
    return fleet.start(binary=str(STEPS), quiet=False, env={"EXEC_SERVER_STEP": str(step)})


@stepwise
@pytest.mark.parametrize("step", range(1, len(NAMES) + 1), ids=NAMES)
def test_killed_at(fleet, place, step):
    server = None
    for victims in VICTIMS:
        server = server or stop_at(fleet, step)
        start = Start(server, place, step)
        start.kill([role for role in victims if role in start.around])
        if "server" in victims:
            server.popen.wait()
            server = None
        until(lambda: place.left() == [], f"removal of the places, {victims} killed")
        assert not mounted(place)


@stepwise
@pytest.mark.parametrize("name", ["place_made", "place_opened", "place_held", "place_timed",
                                  "laid_out", "sweep_locked"])
def test_all_killed_at(fleet, shared, place, name):
    """Nobody is left to clean up: the next sandbox there does."""
    start = Start(stop_at(fleet, NAMES.index(name) + 1), place, NAMES.index(name) + 1)
    # None may act on another's end. The server first: it continues a supervisor that was stopped.
    for role in reversed(EVERYBODY):
        if role in start.around:
            os.kill(start.around[role], signal.SIGSTOP)
    start.kill([role for role in EVERYBODY if role in start.around])
    start.server.popen.wait()
    assert place.left() != []
    place.client = shared.client()
    assert place.run("true", *WW).code == 0
    until(lambda: place.left() == [], "removal of the places")


@stepwise
def test_what_the_user_makes_meanwhile_stays(fleet, place):
    """A directory of his own, empty, under a name that was noted but not made yet."""
    step = NAMES.index("place_noted") + 1
    server = stop_at(fleet, step)
    start = Start(server, place, step)
    for name in PROTECTED:
        place.mkdir(f"ws/{name}")
    start.kill(["launcher"])
    assert place.left() == sorted(PROTECTED)
    place.client = fleet.start().client()
    assert place.run("true", *WW).code == 0
    assert place.left() == sorted(PROTECTED)


def test_launcher_outlives_supervisor_and_server(fleet, place):
    """Killed in one go, while the command runs: the launcher ends it and cleans up."""
    server = fleet.start(quiet=False)
    place.client = server.client()
    token = procfs.mark()
    place.start(["/bin/sleep", token], *WW)
    assert place.left() == sorted(PROTECTED)
    supervisor, = procfs.children(server.pid)
    server.send_signal(signal.SIGSTOP)
    procfs.kill(supervisor)
    server.send_signal(signal.SIGKILL)
    server.popen.wait()
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the places")


@stepwise
@pytest.mark.parametrize("before", ["directory", "file", "nothing"])
def test_git_changes_while_a_helper_starts(fleet, place, before):
    """What .git leads to in the end is protected, not what it led to when the helper was asked for.
    """
    step = NAMES.index("laid_out") + 1
    server = fleet.start(binary=str(STEPS), env={"EXEC_SERVER_STEP": str(step)})
    place.client = server.client()
    git = place.ws / ".git"
    if before == "directory":
        git.mkdir()
    elif before == "file":
        place.put("ws/old/config", "OLD")
        place.put("ws/.git", "gitdir: old\n")
    place.put("ws/real/config", "SAFE")
    place.put("ws/new", "gitdir: real\n")
    calls = Calls(place, *WW)
    call = calls.send("writeFile", place.ws / "real/config", dataBase64=b64("[core]\n"))
    waiting = until(lambda: stopped(server, step), "the helper's launcher")
    if before == "directory":
        git.rmdir()
    (place.ws / "new").rename(git)
    procfs.kill(waiting, signal.SIGUSR2)
    # The helper that replaces it comes to the same step.
    with Meddler(lambda _: [procfs.kill(p, signal.SIGUSR2) for p in [stopped(server, step)] if p]):
        assert calls.client.answer(call)["error"]["message"] == os_error(30)[1]
    assert (place.ws / "real/config").read_text() == "SAFE"
    place.client.close()
