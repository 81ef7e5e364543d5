"""process/signal and process/terminate."""

import pytest

from harness import procfs
from harness.waiting import until

MODES = pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])


@MODES
def test_interrupt(client, tty):
    token = procfs.mark()
    process = client.start(["/bin/sleep", token], tty=tty)
    procfs.wait_marked(token)
    assert client.interrupt(process) == {}
    client.wait_closed(process)
    assert process.exit_code == 130
    assert process.exited["signal"] == "SIGINT"


@MODES
def test_interrupt_can_be_handled(client, tty):
    process = client.start(
        "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done", tty=tty)
    client.wait_output(process, "ready")
    assert client.interrupt(process) == {}
    client.wait_closed(process)
    assert b"caught" in process.output()
    assert process.exit_code == 5


def test_interrupt_reaches_the_whole_group(client):
    """A shell runs its trap only when its foreground child has ended."""
    token = procfs.mark()
    process = client.start(f"trap 'exit 8' INT; sleep {token}; exit 9")
    procfs.wait_marked(token)
    client.interrupt(process)
    client.wait_closed(process)
    assert process.exit_code == 8
    assert procfs.wait_marked(token, 0) == []


@pytest.mark.parametrize("name", ["nobody", ""])
def test_signal_of_an_unknown_process(client, name):
    assert client.interrupt(name) == {}


def test_signal_of_a_finished_process(client):
    process = client.run("true")
    assert client.interrupt(process) == {}


def test_signal_after_exit_sends_nothing(client):
    token = procfs.mark()
    process = client.start(f"sleep {token} & exit 0")
    client.wait_exited(process)
    pid, = procfs.wait_marked(token)
    assert client.interrupt(process) == {}
    client.sync()
    assert procfs.alive(pid)
    assert client.terminate(process) == {"running": False}
    assert procfs.alive(pid)


@pytest.mark.parametrize("params, code, text", [
    ({"processId": "p", "signal": "bogus"}, -32602, None),
    ({"processId": "p", "signal": "INT"}, -32602, None),
    ({"processId": "p", "signal": ""}, -32602, None),
    ({"processId": "p"}, -32602, "missing field `signal`"),
    ({"signal": "interrupt"}, -32602, "missing field `processId`"),
    ({"processId": "p", "signal": None}, -32602, None),
    ({"processId": "p", "signal": 2}, -32602, None),
    ({"processId": "p", "signal": {"interrupt": None}}, -32602, None),
    (None, -32602, "invalid type: null, expected struct SignalParams"),
])
def test_bad_signal_params(client, params, code, text):
    got = client.error("process/signal", params)
    assert got[0] == code
    assert text is None or got[1] == text


def test_unknown_signal_text(client):
    code, text = client.error("process/signal", {"processId": "p", "signal": "bogus"})
    assert code == -32602
    assert text.startswith("unknown variant `bogus`, expected ") and "`interrupt`" in text


@MODES
def test_terminate(client, tty):
    process = client.start("trap '' TERM HUP INT QUIT; echo ready; while :; do sleep 0.1; done",
                           tty=tty)
    client.wait_output(process, "ready")
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert process.exit_code == 137
    assert process.exited["signal"] == "SIGKILL"
    assert process.closed["seq"] == process.exited["seq"] + 1
    assert client.terminate(process) == {"running": False}
    assert client.read(process)["exitCode"] == 137


def test_terminate_of_nothing(client):
    assert client.terminate("nobody") == {"running": False}
    process = client.run("true")
    assert client.terminate(process) == {"running": False}


def test_terminate_twice_in_a_row(client):
    for _ in range(20):
        process = client.start("sleep 1000")
        first = client.send("process/terminate", {"processId": process.name})
        second = client.send("process/terminate", {"processId": process.name})
        assert client.result(first) == {"running": True}
        assert client.result(second)["running"] in (True, False)
        client.wait_closed(process)
        assert process.exit_code == 137


@pytest.mark.parametrize("extra", [{"mode": "force"}, {"mode": {"type": "force"}}, {"x": 1}])
def test_terminate_ignores_extra_params(client, extra):
    process = client.start("sleep 1000")
    assert client.call("process/terminate", {"processId": process.name, **extra}) == {
        "running": True}
    client.wait_closed(process)
    assert process.exit_code == 137


def test_output_before_terminate_is_delivered(client):
    process = client.start("echo before; sleep 1000")
    client.wait_output(process, "before\n")
    client.terminate(process)
    client.wait_closed(process)
    assert process.output() == b"before\n"
    assert client.read(process)["chunks"][0]["seq"] == 1


def test_terminate_while_output_floods(client):
    for _ in range(5):
        process = client.start("exec cat /dev/zero", sink=lambda *_: None)
        client.wait(lambda p=process: p.next_seq > 5, "output")
        assert client.terminate(process) == {"running": True}
        client.wait_closed(process)
        assert process.exit_code == 137


def test_terminate_closes_although_pipes_are_held_elsewhere(client):
    """exited and closed follow at once even if somebody else has the pipe."""
    process = client.start("echo $$; sleep 1000")
    client.wait(lambda: b"\n" in process.output(), "the pid")
    pid = int(process.output())
    with open(f"/proc/{pid}/fd/1", "wb", buffering=0) as held:
        assert client.terminate(process) == {"running": True}
        client.wait_closed(process)
        assert process.exit_code == 137
        with pytest.raises(BrokenPipeError):
            for _ in range(100):
                held.write(b"x" * 65536)


def test_terminate_of_a_stopped_process(client):
    process = client.start("echo ready; kill -STOP $$; sleep 1000")
    client.wait_output(process, "ready\n")
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert process.exit_code == 137


def test_stopped_child_is_not_an_exit(client):
    process = client.start("echo $$; kill -STOP $$; echo continued")
    client.wait(lambda: b"\n" in process.output(), "the pid")
    pid = int(process.output())
    until(lambda: procfs.state(pid) == "T", "a stopped child")
    assert not client.read(process)["exited"]
    client.run(f"kill -CONT {pid}")
    client.wait_closed(process)
    assert process.output().endswith(b"continued\n")


def test_terminate_many_at_once(client):
    processes = [client.start("sleep 1000 & sleep 1000", tty=bool(i % 2)) for i in range(60)]
    idents = [client.send("process/terminate", {"processId": p.name}) for p in processes]
    for ident in idents:
        assert client.result(ident) == {"running": True}
    for process in processes:
        client.wait_closed(process)
        assert process.exit_code == 137


def test_killed_from_outside(client):
    token = procfs.mark()
    process = client.start(["/bin/sleep", token])
    pid, = procfs.wait_marked(token)
    client.run(f"kill -KILL {pid}")
    client.wait_closed(process)
    assert process.exit_code == 137
