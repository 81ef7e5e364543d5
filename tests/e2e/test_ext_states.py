"""Each method of the process API in each state of a process, also after a resume."""

import pytest

from harness import procfs
from harness.fleet import Fleet
from harness.rpc import unb64
from harness.waiting import until

STATES = ["starting", "running", "exited", "closed", "removed"]
SIZE = {"rows": 30, "cols": 100}


@pytest.fixture(scope="module")
def servers(nothing_left):  # pylint: disable=unused-argument
    fleet = Fleet()
    made = {"removed": fleet.start("--concurrent-requests", "4", "--closed-retention", "0.2",
                                   "--allow-attach")}
    made["other"] = fleet.start("--concurrent-requests", "4", "--allow-attach")
    yield made
    fleet.finish()


class Case:
    """A process in a state, and the connection that may ask about it."""

    def __init__(self, server, state, undecided):
        self.server, self.state, self.undecided = server, state, undecided
        self.client = server.client()
        self.name = self.client.new_name()
        self.token = procfs.mark()
        self.ident = None

    def bring(self, tty=False):
        """Starts the process and waits until it is in its state."""
        script = {"starting": "echo out; echo err >&2; cat; exit 3",
                  "running": f"echo out; echo err >&2; exec 3<&0; sleep {self.token} & cat <&3; "
                             "exit 3",
                  "exited": f"trap '' HUP; echo out; echo err >&2; sleep {self.token} & exit 3",
                  }.get(self.state, "echo out; echo err >&2; exit 3")
        program = self.undecided.path if self.state == "starting" else "/bin/sh"
        params = self.client.start_params([program, "-c", script], processId=self.name, tty=tty,
                                          pipeStdin=not tty)
        self.ident = self.client.send("process/start", params)
        if self.state == "starting":
            until(lambda: self.entry() is not None, "the start")
            assert self.entry()["state"] == "starting"
            return
        self.client.result(self.ident)
        process = self.client.processes[self.name]
        self.client.wait(lambda: process.output().count(b"\n") == 2, "output")
        if self.state == "exited":
            self.client.wait_exited(process)
        if self.state in ("running", "exited"):
            procfs.wait_marked(self.token)
        else:
            self.client.wait_closed(process)
        if self.state == "removed":
            until(lambda: self.entry() is None, "removal")

    def entry(self):
        """What process/list says about the process, or None."""
        found = [p for p in self.client.call("process/list")["processes"]
                 if p["processId"] == self.name]
        assert len(found) <= 1
        return found[0] if found else None

    def resume(self):
        session, known = self.client.session, self.client.processes
        self.client.transport.reset()
        self.client = self.server.connect()
        self.client.processes = known
        params = {"clientName": "e2e", "resumeSessionId": session}
        until(lambda: "result" in self.client.answer(self.client.send("initialize", params)),
              "the end of the old connection")
        self.client.session = session
        self.client.notify("initialized")

    def ask(self, method, **params):
        return self.client.ask(method, self.name, **params)

    def refusal(self, method, **params):
        return self.client.refusal(method, self.name, **params)

    def not_there(self):
        """The error of methods that need a process that has started."""
        text = {"starting": f"process id {self.name} is starting",
                "removed": f"unknown process id {self.name}"}[self.state]
        return -32600, text

    def absent(self):
        return self.state in ("starting", "removed")

    def finish(self):
        """Ends the process and everything it left."""
        self.undecided.decide()
        for pid in procfs.marked(self.token):
            procfs.kill(pid)
        self.client.terminate(self.name)
        self.client.close()


@pytest.fixture(params=STATES)
def state(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["", "resumed"])
def case(request, servers, state, undecided):
    made = Case(servers.get(state, servers["other"]), state, undecided)
    bring = made.bring

    def bring_and_resume(**options):
        bring(**options)
        if request.param:
            made.resume()
        return made
    made.bring = bring_and_resume
    yield made
    made.finish()


def test_list(case):
    case.bring()
    entry = case.entry()
    if case.state == "removed":
        assert entry is None
        return
    assert entry["state"] == case.state
    assert set(entry) == {"processId", "argv", "pid", "state", "startedAtMs", "exitCode", "signal",
                          "timedOut", "sandboxType", "bytes", "resources"}
    ended = case.state in ("exited", "closed")
    assert entry["exitCode"] == (3 if ended else None)
    assert entry["signal"] is None and entry["timedOut"] is False
    assert entry["bytes"] == (0 if case.state == "starting" else 8)
    assert (entry["pid"] is None) == (entry["startedAtMs"] is None) == (case.state == "starting")
    assert entry["argv"][1] == "-c"


def test_snapshot(case):
    case.bring()
    if case.absent():
        assert case.refusal("snapshot") == case.not_there()
        return
    got = case.ask("snapshot")
    assert unb64(got["stdout"]) == b"out\n" and unb64(got["stderr"]) == b"err\n"
    assert got["running"] == (case.state == "running")
    assert got["exited"] == (case.state != "running") and got["closed"] == (case.state == "closed")
    assert got["nextSeq"] == {"running": 3, "exited": 4, "closed": 5}[case.state]


def test_wait_does_not_wait(case):
    case.bring()
    for goal in ("exited", "closed"):
        if case.absent():
            assert case.refusal("wait", until=goal, waitMs=0) == case.not_there()
            continue
        got = case.ask("wait", until=goal, waitMs=0)
        reached = case.state == "closed" or case.state == goal
        assert got["timedOut"] is not reached
        assert got["exited"] == (case.state != "running")
        assert got["exitCode"] == (None if case.state == "running" else 3)


@pytest.mark.parametrize("state", ["running", "exited"], indirect=True)
def test_wait_until_closed(case):
    case.bring()
    ident = case.client.send("process/wait", {"processId": case.name})
    case.client.barrier()
    assert ident not in case.client.answers
    if case.state == "running":
        assert case.ask("closeStdin") == {"status": "accepted"}
        assert case.ask("wait", until="exited")["exitCode"] == 3
    for pid in procfs.marked(case.token):
        procfs.kill(pid)
    got = case.client.result(ident)
    assert got["closed"] and got["exitCode"] == 3 and got["timedOut"] is False


def test_close_stdin(case):
    case.bring()
    status = {"starting": "starting", "removed": "unknownProcess"}.get(case.state, "accepted")
    assert case.ask("closeStdin", writeId="end") == {"status": status}
    if case.absent():
        assert case.ask("closeStdin", writeId="end") == {"status": status}
        return
    assert case.ask("closeStdin", writeId="end") == {"status": "accepted"}
    assert case.ask("closeStdin", writeId="other") == {"status": "stdinClosed"}
    assert case.ask("closeStdin") == {"status": "stdinClosed"}
    assert case.ask("write", chunk="", writeId="w") == {"status": "stdinClosed"}
    if case.state == "running":
        assert case.ask("wait", until="exited")["exitCode"] == 3


@pytest.mark.parametrize("tty", [True, False], ids=["tty", "pipe"])
def test_resize(case, tty):
    case.bring(tty=tty)
    if case.absent():
        assert case.refusal("resize", size=SIZE) == case.not_there()
    elif tty:
        assert case.ask("resize", size=SIZE) == {}
    else:
        assert case.refusal("resize", size=SIZE) == (
            -32602, f"process {case.name} is not attached to a PTY")


@pytest.mark.parametrize("hold", [None, False, True])
def test_ack(case, hold):
    case.bring()
    if case.state == "removed":
        assert case.refusal("ack", seq=0, hold=hold) == case.not_there()
        return
    assert case.ask("ack", seq=0, hold=hold) == {}
    if case.state != "starting":
        assert case.ask("ack", seq=case.ask("read")["nextSeq"] - 1, hold=hold) == {}
        assert len(case.ask("read")["chunks"]) == 2


@pytest.mark.parametrize("mode", [None, "force", "graceful"])
def test_terminate(case, mode):
    case.bring()
    running = case.state in ("starting", "running")
    assert case.ask("terminate", mode=mode) == {"running": running}
    if case.state == "running":
        got = case.ask("wait")
        assert got["signal"] == ("SIGTERM" if mode == "graceful" else "SIGKILL")
        assert procfs.wait_marked(case.token, 0) == []
    elif case.state == "starting":
        # The id is free at once.
        assert case.entry() is None
        if case.ident in case.client.answers:
            assert case.client.answer(case.ident)["error"] == {
                "code": -32600, "message": f"process {case.name} start was cancelled"}
    elif case.state == "exited":
        assert procfs.marked(case.token)


@pytest.mark.parametrize("signal", ["terminate", "SIGTERM"])
def test_signal(case, signal):
    case.bring()
    assert case.ask("signal", signal=signal) == {}
    if case.state == "starting":
        case.undecided.decide()
        until(lambda: case.entry()["state"] == "closed", "the end")
    if case.state in ("starting", "running"):
        assert case.ask("wait")["signal"] == "SIGTERM"
    elif case.state == "exited":
        case.client.barrier()
        assert procfs.marked(case.token)


def test_attach(case):
    case.bring()
    viewer = case.server.client()
    params = {"sessionId": case.client.session, "processId": case.name}
    if case.state == "removed":
        assert viewer.error("process/attach", params) == case.not_there()
        return
    view = viewer.attach(case.client.session, case.name)
    if case.state == "starting":
        case.undecided.decide()
    viewer.wait(lambda: view.output().count(b"\n") == 2, "output")
    assert view.output("stdout") == b"out\n" and view.output("stderr") == b"err\n"
    case.client.wait(lambda: case.entry()["state"] != "starting", "the start")
    case.ask("closeStdin")
    for pid in procfs.marked(case.token):
        procfs.kill(pid)
    viewer.wait(lambda: view.closed, "the end")
    assert view.exited["exitCode"] == 3 and view.seen == 4 and not view.gaps


def test_start_again(case):
    """An id is taken in every state but the last."""
    case.bring()
    params = case.client.start_params("exit 4", processId=case.name)
    if case.state == "removed":
        case.client.processes.pop(case.name, None)
        case.client.call("process/start", params)
        assert case.client.wait_closed(case.client.processes[case.name]).exit_code == 4
    else:
        assert case.client.error("process/start", params) == (
            -32600, f"process {case.name} already exists")
