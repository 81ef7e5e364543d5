"""SIGTERM with --shutdown-grace-ms: processes may end by themselves, clients hear of it."""

import signal

import pytest

from harness import procfs
from harness.waiting import until
from harness.ws import connect_tcp

LONG = "3600000"
# Each says when SIGTERM arrives, and needs a stdin that stays open.
POLITE = "trap 'echo term; exit 7' TERM; echo ready; read go; exit 1"
BUSY = "trap 'echo term' TERM; echo ready; while ! read go; do :; done; echo $go; exit 8"


def begin(server, script, **options):
    client = server.client()
    process = client.start(script, pipeStdin=True, **options)
    client.wait_output(process, "ready")
    return client, process


def finish(server, client, code=0):
    assert client.transport.receive_close() == 1001
    assert server.wait() == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("tty", [False, True])
def test_traps_run_and_output_arrives(fleet, number, tty):
    server = fleet.start("--shutdown-grace-ms", LONG)
    client, process = begin(server, POLITE, tty=tty)
    server.send_signal(number)
    client.wait_closed(process)
    assert b"term" in process.output() and process.exit_code == 7
    assert "signal" not in process.exited
    finish(server, client)


@pytest.mark.parametrize("tty", [False, True])
def test_slow_reader_hears_everything(fleet, tty):
    """The last process is gone long before its output, its exit and its end are read."""
    server = fleet.start("--shutdown-grace-ms", LONG)
    client = server.client(rcvbuf=4096)
    size = 8_000_000
    process = client.start(f"trap 'head -c {size} /dev/zero; exit 7' TERM; echo ready; read go",
                           pipeStdin=True, tty=tty)
    client.wait_output(process, "ready")
    before = len(process.output())
    server.send_signal(signal.SIGTERM)
    # One message per look at all processes: slower than any writer.
    while procfs.descendants(server.pid):
        client.pump(0)
    client.wait_closed(process)
    assert process.exit_code == 7 and process.output().count(b"\0") == size
    assert len(process.output()) >= before + size
    finish(server, client)


def test_nothing_runs(fleet):
    """There is nothing to wait for."""
    server = fleet.start("--shutdown-grace-ms", LONG)
    client = server.client()
    client.run("true")
    server.send_signal(signal.SIGTERM)
    finish(server, client)


def test_without_a_grace_period(server):
    client, process = begin(server, POLITE)
    server.send_signal(signal.SIGTERM)
    finish(server, client)
    assert b"term" not in process.output()


def test_service_goes_on(fleet):
    """Everything but new connections and new processes."""
    server = fleet.start("--shutdown-grace-ms", LONG, "--allow-attach")
    client, process = begin(server, BUSY)
    viewer = server.client()
    view = viewer.attach(client.session, process)
    server.send_signal(signal.SIGTERM)
    client.wait_output(process, "term")
    assert client.start_error("true") == (-32600, "the server is shutting down")
    assert viewer.start_error("true") == (-32600, "the server is shutting down")
    with pytest.raises(ConnectionError):
        connect_tcp(server.address)
    client.sync()
    entry, = client.call("process/list")["processes"]
    assert entry["state"] == "running"
    assert client.ask("snapshot", process)["running"] is True
    waiting = client.send("process/wait", {"processId": process.name})
    assert client.write(process, "well\n") == {"status": "accepted"}
    assert client.result(waiting)["exitCode"] == 8
    assert process.output() == b"ready\nterm\nwell\n" and process.closed
    viewer.wait(lambda: view.closed, "the end")
    finish(server, client)


def test_second_signal_ends_at_once(fleet):
    server = fleet.start("--shutdown-grace-ms", LONG)
    client, process = begin(server, BUSY)
    server.send_signal(signal.SIGTERM)
    client.wait_output(process, "term")
    server.send_signal(signal.SIGTERM)
    finish(server, client)


def test_time_is_up(fleet):
    server = fleet.start("--shutdown-grace-ms", "200")
    token = procfs.mark()
    client, _ = begin(server, f"trap '' TERM; sleep {token} & echo ready; read go; read go")
    procfs.wait_marked(token)
    server.send_signal(signal.SIGTERM)
    finish(server, client)
    assert procfs.marked(token) == []


def test_ends_with_the_last_process(fleet):
    server = fleet.start("--shutdown-grace-ms", LONG)
    client, first = begin(server, BUSY)
    other, second = begin(server, BUSY)
    server.send_signal(signal.SIGTERM)
    client.wait_output(first, "term")
    other.wait_output(second, "term")
    client.write(first, "a\n")
    client.wait_closed(first)
    client.sync()
    assert server.running()
    other.write(second, "b\n")
    assert other.wait_closed(second).exit_code == 8
    finish(server, other)


def test_detached_session(fleet, tmp_path):
    """Its processes are asked to end too."""
    server = fleet.start("--shutdown-grace-ms", LONG)
    path = tmp_path / "said"
    client, _ = begin(server, f"trap 'echo term >{path}; exit 7' TERM; echo ready; read go")
    client.end()
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    assert path.read_text() == "term\n"


def test_start_under_way(fleet, undecided):
    """It gets the signal when it runs."""
    server = fleet.start("--shutdown-grace-ms", LONG, "--concurrent-requests", "4")
    client, process = begin(server, BUSY)
    params = client.start_params([undecided.path, "-c", "read go"], pipeStdin=True)
    start = client.send("process/start", params)
    client.call("process/list")
    server.send_signal(signal.SIGTERM)
    client.wait_output(process, "term")
    undecided.decide()
    client.result(start)
    late = client.wait_closed(client.processes[params["processId"]])
    assert late.exited["signal"] == "SIGTERM"
    client.write(process, "x\n")
    finish(server, client)


@pytest.mark.parametrize("held", [True, False], ids=["exited", "closed"])
def test_what_commands_left_behind(fleet, held):
    """Background children of commands that ended are asked to end like the rest."""
    server = fleet.start("--shutdown-grace-ms", LONG)
    client = server.client()
    token = procfs.mark()
    away = "" if held else ">/dev/null 2>&1"
    process = client.start(f"sleep {token} {away} & exit 0")
    client.wait_exited(process)
    procfs.wait_marked(token)
    server.send_signal(signal.SIGTERM)
    procfs.wait_marked(token, 0)
    finish(server, client)


def test_stdio(fleet):
    client = fleet.stdio("--shutdown-grace-ms", LONG)
    process = client.start(POLITE, pipeStdin=True)
    client.wait_output(process, "ready")
    client.transport.popen.send_signal(signal.SIGTERM)
    client.wait_closed(process)
    assert process.exit_code == 7
    assert client.transport.wait() == 0


def test_end_of_input_does_not_wait(fleet):
    """The end of stdin ends the session, and that kills."""
    client = fleet.stdio("--shutdown-grace-ms", LONG)
    token = procfs.mark()
    client.start(f"trap '' TERM; sleep {token}")
    procfs.wait_marked(token)
    client.transport.close_stdin()
    assert client.transport.wait() == 0
    until(lambda: not procfs.marked(token), "the end of the process")
