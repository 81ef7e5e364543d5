"""The blocking client: processes, threads, interrupts, callbacks, transports."""

import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

from execserver import Closed, Data, environments, errors
from execserver.blocking import Exec, connect
from harness import procfs
from harness.settings import PATIENCE
from harness.waiting import until


@pytest.fixture(name="client")
def connected(shared):
    """A client of its own session."""
    with connect(shared.url) as client:
        yield client


# -- processes --

def test_a_command_to_its_end(client):
    done = client.run(["sh", "-c", "cat; echo err >&2; exit 7"], input=b"in")
    assert (done.code, done.stdout, done.stderr) == (7, b"in", b"err\n")


def test_the_first_example_of_the_readme(shared):
    with connect(shared.url) as client:
        done = client.run(["uname", "-a"])
        assert done.text.startswith("Linux") and done.code == 0


def test_events_in_order(client):
    process = client.start(["sh", "-c", "echo a; exit 5"])
    events = list(process)
    assert events[0].data == b"a\n" and isinstance(events[-1], Closed)
    assert events[-1].exit.code == 5


def test_a_flood_through_a_pause(client):
    size = 20 << 20
    process = client.start(["head", "-c", str(size), "/dev/zero"])
    assert sum(len(e.data) for e in process if isinstance(e, Data)) == size


def test_an_unread_flood_does_not_stop_other_calls(client):
    process = client.start(["yes"])
    next(process)
    for _ in range(20):
        assert client.run(["echo", "x"]).text == "x\n"
    process.terminate()
    for event in process:
        pass
    assert isinstance(event, Closed)


def test_leaving_the_block_ends_the_process(client):
    token = procfs.mark()
    with client.start(["sleep", token]):
        procfs.wait_marked(token)
    procfs.wait_marked(token, 0)


def test_a_forgotten_process_is_terminated(client):
    token = procfs.mark()
    process = client.start(["sleep", token])
    process.itself = process
    procfs.wait_marked(token)
    del process
    gc.collect()
    client.rpc("environment/status")
    procfs.wait_marked(token, 0)


def test_forgotten_by_another_thread(client):
    token = procfs.mark()
    kept = [client.start(["sleep", token])]
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    client.rpc("environment/status")
    procfs.wait_marked(token, 0)


def test_threads_take_turns(client):
    texts = []

    def work(n):
        for i in range(20):
            texts.append(client.run(["echo", f"{n}.{i}"]).text)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == sorted(f"{n}.{i}\n" for n in range(3) for i in range(20))


INTERRUPTED = """
import sys
from execserver.blocking import connect
with connect(sys.argv[1]) as client:
    process = client.start(["sleep", sys.argv[2]])
    try:
        print("started", flush=True)
        process.wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    process.terminate()
    print("code", process.wait().code, flush=True)
"""


def test_an_interrupt_ends_the_call_and_nothing_else(shared):
    token = procfs.mark()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, shared.url, token], text=True,
                          stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout.readline() == "started\n"
        until(lambda: procfs.state(child.pid) == "S", "a wait")
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=PATIENCE)
    assert out in ("interrupted\ncode 137\n", "interrupted\ncode 143\n")


# -- callbacks --

def test_an_exception_of_a_listener_comes_out_of_the_call(client):
    def listener(_):
        raise KeyError("mine")
    client.on_state = listener
    with pytest.raises(KeyError, match="mine"):
        client.close()


# -- unified exec --

def test_exec_to_the_end(client):
    result = client.exec.command(["echo", "hello"])
    assert (result.session, result.exit.code, result.output) == (0, 0, b"hello\n")
    assert "Process exited with code 0" in result.text


def test_exec_with_input_and_events(client):
    told = []
    exec_ = Exec(client, begin=lambda i: told.append("begin"),
                 delta=lambda i, stream, data: told.append(data),
                 interaction=lambda i, data: told.append(("in", data)),
                 end=lambda i, ended, transcript: told.append(("end", ended.code)))
    result = exec_.command(["sh", "-c", "read x; echo got $x"], tty=True, yield_time=0.25)
    assert result.session and result.exit is None
    while result.session:
        result = exec_.write_stdin(result.session, b"it\n", yield_time=5)
    assert result.exit.code == 0 and b"got it" in result.output
    assert told[0] == "begin" and told.count(("end", 0)) == 1 and ("in", b"it\n") in told
    exec_.free()


def test_exec_ends_with_its_object(client):
    token = procfs.mark()
    exec_ = Exec(client)
    assert exec_.command(["sleep", token], yield_time=0.25).session
    exec_.free()
    client.rpc("environment/status")
    procfs.wait_marked(token, 0)


# -- transports --

def test_environments_that_are_known(monkeypatch, tmp_path, shared):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "environments.toml").write_text(
        f'default = "here"\n[[environments]]\nid = "here"\nurl = "{shared.url}"\n')
    known = environments()
    assert known["fromFile"] and known["default"] == "here"
    assert {e["id"]: e.get("url") for e in known["environments"]}["here"] == shared.url
    with connect() as client, connect("here") as other:
        assert client.info.url == other.info.url
    with pytest.raises(errors.InvalidArgument):
        connect("nowhere")


def test_local():
    with connect("local", program=os.environ.get("EXEC_SERVER_PROGRAM") or binary()) as client:
        assert client.run(["echo", "here"]).text == "here\n"


def test_stdio():
    with connect("stdio:", program=binary(), args=["--listen", "stdio"]) as client:
        assert client.run(["echo", "here"]).text == "here\n"
        assert not client.info.resumable


def binary():
    from harness.settings import BINARY
    return BINARY


def test_a_server_that_restarts_ends_the_session(fleet):
    server = fleet.start()
    with connect(server.url, resume_time=1) as client:
        process = client.start(["sleep", "1000"])
        states = []
        client.on_state = states.append
        server.stop()
        with pytest.raises((errors.SessionGone, errors.Lost)):
            process.wait()
        assert [s.name for s in states][-1] == "FAILED"
    until(lambda: not server.running(), "the end of the server")
