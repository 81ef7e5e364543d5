"""Modes of process/terminate, names of process/signal, timeoutMs."""

import signal

import pytest

from harness import procfs
from harness.rpc import b64
from harness.waiting import patiently, until

WORDS = {"interrupt": "SIGINT", "terminate": "SIGTERM", "kill": "SIGKILL", "hangup": "SIGHUP",
         "quit": "SIGQUIT", "usr1": "SIGUSR1", "usr2": "SIGUSR2", "winch": "SIGWINCH",
         "stop": "SIGSTOP", "continue": "SIGCONT"}
FAR = 10**9
STUBBORN = "trap '' TERM; echo ready; sleep 1000"
# Needs a stdin that stays open.
POLITE = "trap 'echo bye; exit 6' TERM; echo ready; read go"

FORCE = [None, "force", {"type": "force"}, {"force": None}, {"force": {}},
         {"type": "graceful", "timeoutMs": 0}, "Force", {"type": "Force"}, {"Force": None},
         {"Force": {}}, {"Graceful": {"timeout_ms": 0}}]
GRACEFUL = ["graceful", {"type": "graceful"}, {"type": "graceful", "timeoutMs": FAR},
            {"type": "graceful", "timeoutMs": None}, {"graceful": {"timeoutMs": FAR}},
            {"graceful": {}}, {"graceful": None}, {"graceful": {"timeoutMs": 2**64 - 1}},
            "Graceful", {"type": "Graceful"}, {"Graceful": {"timeoutMs": FAR}},
            {"Graceful": {"timeout_ms": FAR}}, {"Graceful": None}]


@pytest.mark.parametrize("mode", FORCE)
@pytest.mark.parametrize("tty", [False, True])
def test_force(client, mode, tty):
    process = client.start(POLITE, tty=tty, pipeStdin=True)
    client.wait_output(process, "ready")
    assert client.terminate(process, mode=mode) == {"running": True}
    client.wait_closed(process)
    assert process.exited["signal"] == "SIGKILL" and b"bye" not in process.output()


@pytest.mark.parametrize("mode", GRACEFUL)
@pytest.mark.parametrize("tty", [False, True])
def test_graceful(client, mode, tty):
    """The command ends by itself, and what it says arrives."""
    process = client.start(POLITE, tty=tty, pipeStdin=True)
    client.wait_output(process, "ready")
    assert client.terminate(process, mode=mode) == {"running": True}
    client.wait_closed(process)
    assert process.exit_code == 6 and b"bye" in process.output()
    assert "signal" not in process.exited


def test_graceful_then_killed(client):
    process = client.start(STUBBORN)
    client.wait_output(process, "ready")
    assert client.terminate(process, mode={"type": "graceful", "timeoutMs": 50}) \
        == {"running": True}
    assert client.wait_closed(process).exited["signal"] == "SIGKILL"


def test_graceful_then_forced(client):
    process = client.start(STUBBORN)
    client.wait_output(process, "ready")
    assert client.terminate(process, mode={"graceful": {"timeoutMs": FAR}}) == {"running": True}
    assert client.ask("wait", process, waitMs=0)["timedOut"] is True
    assert client.terminate(process) == {"running": True}
    assert client.wait_closed(process).exited["signal"] == "SIGKILL"


def pipelined(client, undecided, *modes):
    """Starts a polite command and ends it in these modes before the start is decided."""
    params = client.start_params([undecided.path, "-c", POLITE], pipeStdin=True)
    start = client.send("process/start", params)
    ends = [client.send("process/terminate", {"processId": params["processId"], "mode": mode})
            for mode in modes]
    client.sync()
    undecided.decide()
    client.result(start)
    for end in ends:
        assert client.result(end) == {"running": True}
    return client.wait_closed(client.processes[params["processId"]])


def test_graceful_behind_its_start(client, undecided):
    """SIGTERM comes before the trap or after it; SIGKILL does not come."""
    process = pipelined(client, undecided, {"graceful": {"timeoutMs": FAR}})
    assert process.exit_code == 6 or process.exited["signal"] == "SIGTERM"


def test_forced_then_graceful_behind_a_start(client, undecided):
    process = pipelined(client, undecided, "force", {"graceful": {"timeoutMs": FAR}})
    assert process.exited["signal"] == "SIGKILL"


def test_graceful_then_forced_behind_a_start(client, undecided):
    process = pipelined(client, undecided, {"graceful": {"timeoutMs": FAR}}, "force")
    assert process.exited["signal"] == "SIGKILL"


def test_graceful_pipelined_with_its_start(client):
    """The same without anything that holds the start back."""
    for _ in range(20):
        params = client.start_params(POLITE, pipeStdin=True)
        start = client.send("process/start", params)
        end = client.send("process/terminate", {"processId": params["processId"],
                                                "mode": {"graceful": {"timeoutMs": FAR}}})
        client.result(start)
        assert client.result(end) == {"running": True}
        process = client.wait_closed(client.processes[params["processId"]])
        assert process.exit_code == 6 or process.exited["signal"] == "SIGTERM"


def test_graceful_leaves_input_open(client):
    """A command that cleans up can still be talked to; after a forced end it cannot."""
    process = client.start("trap 'echo term' TERM; echo ready; while ! read go; do :; done; "
                           "echo $go", pipeStdin=True)
    client.wait_output(process, "ready")
    client.terminate(process, mode={"graceful": {"timeoutMs": FAR}})
    client.wait_output(process, "term")
    assert client.write(process, "well\n") == {"status": "accepted"}
    assert client.wait_closed(process).output() == b"ready\nterm\nwell\n"


def test_waiting_writes_fail_when_the_time_is_up(client):
    process = client.start(STUBBORN, pipeStdin=True)
    client.wait_output(process, "ready")
    chunk = b64(b"x" * 65536)
    writes = [client.send("process/write", {"processId": process.name, "chunk": chunk})
              for _ in range(64)]
    client.barrier()
    assert writes[-1] not in client.answers
    client.terminate(process, mode={"graceful": {"timeoutMs": 50}})
    assert client.answer(writes[-1])["error"] == {
        "code": -32603, "message": "failed to write to process stdin"}
    client.wait_closed(process)


def test_graceful_kills_what_is_left(client):
    """A descendant that ignores SIGTERM in a session of its own goes when the time is up."""
    def attempt(limit):
        token = procfs.mark()
        process = client.start(f"(trap '' TERM; exec setsid sleep {token}) & echo ready; wait")
        procfs.wait_marked(token)
        client.terminate(process, mode={"graceful": {"timeoutMs": limit}})
        client.wait_exited(process)
        procfs.wait_marked(token, 0)
        client.wait_closed(process)
        return True if process.exited["signal"] == "SIGTERM" else None
    patiently(attempt, 300)


def test_graceful_kills_what_is_left_also_when_it_is_closed(fleet):
    client = fleet.start("--closed-retention", "0").client()
    token = procfs.mark()
    process = client.start(f"(trap '' TERM; exec setsid sleep {token} >/dev/null 2>&1) & "
                           "echo ready; wait")
    procfs.wait_marked(token)
    client.terminate(process, mode={"graceful": {"timeoutMs": 300}})
    client.wait_closed(process)
    procfs.wait_marked(token, 0)


@pytest.mark.parametrize("mode, text", [
    ("soft", "unknown variant `soft`, expected `force` or `graceful`"),
    ({"type": "soft"}, "unknown variant `soft`, expected `force` or `graceful`"),
    ({"soft": {}}, "unknown variant `soft`, expected `force` or `graceful`"),
    ({"type": "graceful", "timeoutMs": -1}, "invalid number"),
    ({"graceful": {"timeoutMs": "1"}}, 'invalid type: string "1", expected u64'),
    ({"graceful": 5}, "invalid type: number, expected struct TerminateMode"),
])
def test_bad_mode(client, mode, text):
    assert client.refusal("terminate", "none", mode=mode) == (-32602, text)


@pytest.mark.parametrize("mode", [1, True, [], {}, {"a": 1, "b": 2}])
def test_odd_mode(client, mode):
    assert client.refusal("terminate", "none", mode=mode)[0] == -32602


# Signals.

@pytest.mark.parametrize("name", sorted(set(WORDS) - {"stop", "continue", "winch"}))
@pytest.mark.parametrize("posix", [False, True])
@pytest.mark.parametrize("tty", [False, True])
def test_signal_that_kills(client, name, posix, tty):
    process = client.start(["/bin/sleep", "1000"], tty=tty)
    assert client.ask("signal", process, signal=WORDS[name] if posix else name) == {}
    client.wait_closed(process)
    assert process.exited["signal"] == WORDS[name]
    assert process.exit_code == 128 + getattr(signal, WORDS[name])


@pytest.mark.parametrize("name", ["winch", "SIGWINCH"])
def test_window_signal(client, name):
    process = client.start("trap 'echo winch; exit 0' WINCH; echo ready; read go", pipeStdin=True)
    client.wait_output(process, "ready")
    client.ask("signal", process, signal=name)
    assert client.wait_closed(process).output() == b"ready\nwinch\n"


@pytest.mark.parametrize("stop, go", [("stop", "continue"), ("SIGSTOP", "SIGCONT")])
def test_stop_and_continue(client, stop, go):
    process = client.start("echo $$; while read line; do echo $line; done", pipeStdin=True)
    pid = int(client.wait_output(process, "\n"))
    client.ask("signal", process, signal=stop)
    until(lambda: procfs.state(pid) == "T", "the stop")
    client.write(process, "heard\n")
    client.ask("signal", process, signal=go)
    client.wait_output(process, "heard")
    client.ask("closeStdin", process)
    client.wait_closed(process)


def test_signal_goes_to_the_group(client):
    process = client.start("exec 3<&0; trap 'echo leader' USR1; (trap 'echo child' USR1; "
                           "echo ready; while ! read go <&3; do :; done) & wait; wait; exit 3",
                           pipeStdin=True)
    client.wait_output(process, "ready")
    client.ask("signal", process, signal="usr1")
    client.wait_output(process, "child")
    client.wait_output(process, "leader")
    client.write(process, "go\n")
    assert client.wait_closed(process).exit_code == 3


@pytest.mark.parametrize("name", ["int", "INT", "Interrupt", "SIGSEGV", "sigterm", "9", "", "SIG"])
def test_unknown_signal(client, name):
    code, text = client.refusal("signal", "none", signal=name)
    assert code == -32602 and text.startswith(f"unknown variant `{name}`, expected ")
    for word in WORDS:
        assert f"`{word}`" in text


@pytest.mark.parametrize("value", [9, None, True, ["interrupt"], {"interrupt": None}])
def test_signal_of_a_wrong_type(client, value):
    assert client.refusal("signal", "none", signal=value)[0] == -32602


# Time limit.

@pytest.mark.parametrize("tty", [False, True])
def test_time_limit(client, tty):
    def attempt(limit):
        process = client.start(POLITE, timeoutMs=limit, tty=tty, pipeStdin=True)
        client.wait_closed(process)
        return process if b"ready" in process.output() else None
    process = patiently(attempt, 300)
    assert process.exited["timedOut"] is True and process.exit_code == 6
    assert b"bye" in process.output()
    assert client.read(process)["timedOut"] is True
    assert client.ask("snapshot", process)["timedOut"] is True
    entry, = [e for e in client.call("process/list")["processes"]
              if e["processId"] == process.name]
    assert entry["timedOut"] is True


def test_time_limit_of_a_stubborn_command(client):
    """Killed some time after the limit."""
    def attempt(limit):
        process = client.run(STUBBORN, timeoutMs=limit)
        return process if b"ready" in process.output() else None
    process = patiently(attempt, 300)
    assert process.exited["timedOut"] is True and process.exited["signal"] == "SIGKILL"


@pytest.mark.parametrize("limit", [None, FAR, 2**63, 2**64 - 1])
def test_time_limit_not_reached(client, limit):
    process = client.run("exit 2", timeoutMs=limit)
    assert process.exit_code == 2 and "timedOut" not in process.exited


def test_time_limit_ends_with_the_leader(client):
    """What the leader left behind has no limit."""
    def attempt(limit):
        token = procfs.mark()
        process = client.start(f"sleep {token} & sleep 0.01; exit 4", timeoutMs=limit)
        client.wait_exited(process)
        other = client.run("sleep 1000", timeoutMs=limit + 100)
        assert other.exited["timedOut"] is True
        return None if "timedOut" in process.exited else (process, token)
    process, token = patiently(attempt, 600)
    assert procfs.marked(token)
    for pid in procfs.marked(token):
        procfs.kill(pid)
    client.wait_closed(process)


def test_time_limit_while_detached(server):
    client = server.client()
    process = client.start("sleep 1000", timeoutMs=200)
    client.end()
    again = server.client(resume=client.session)
    again.processes = client.processes
    assert again.ask("wait", process)["processTimedOut"] is True


@pytest.mark.parametrize("limit, text", [
    (0, "timeoutMs must be at least 1"), (-1, "invalid number"),
    ("1", 'invalid type: string "1", expected u64'), (1.5, "invalid number")])
def test_bad_time_limit(client, limit, text):
    assert client.start_error("true", timeoutMs=limit) == (-32602, text)
