"""Sessions: scope, detach, resume, takeover, time-to-live."""

import time

import pytest

from harness import procfs
from harness.rpc import RpcError, b64, unb64
from harness.sessions import ATTACHED, resume
from harness.settings import PATIENCE
from harness.waiting import Deadline, patiently, until
from harness.ws import Closed


def leave(client, how):
    ws = client.transport
    if how == "close frame":
        client.end()
    elif how == "fin":
        ws.drop()
    elif how == "reset":
        ws.reset()
    else:
        ws.half_close()


WAYS = ["close frame", "fin", "reset", "half-close"]


def read_all(client, name, after=0):
    """Seqs, bytes per stream and the last answer of process/read."""
    result = client.read(name, afterSeq=after)
    streams = {}
    for chunk in result["chunks"]:
        streams[chunk["stream"]] = streams.get(chunk["stream"], b"") + unb64(chunk["chunk"])
    return [c["seq"] for c in result["chunks"]], streams, result


def test_process_ids_belong_to_a_session(shared):
    one, two = shared.client(), shared.client()
    first = one.start("echo one", processId="same")
    second = two.start("echo two", processId="same")
    one.wait_closed(first)
    two.wait_closed(second)
    assert (first.output(), second.output()) == (b"one\n", b"two\n")
    one.start("true", processId="mine")
    assert two.error("process/read", {"processId": "mine"}) == (
        -32600, "unknown process id mine")
    assert two.terminate("mine") == {"running": False}
    assert two.write("mine", "x", writeId="1") == {"status": "unknownProcess"}
    one.close()
    two.close()


@pytest.mark.parametrize("how", WAYS)
def test_resume(shared, how):
    first = shared.client()
    process = first.start("cat", pipeStdin=True)
    first.write(process, "before\n", writeId="1")
    first.wait_output(process, "before\n")
    seen = process.next_seq - 1
    leave(first, how)
    second = resume(shared, first.session)
    # The server ignores a write id that it knows, and takes a new one.
    assert second.write(process, "before\n", writeId="1") == {"status": "accepted"}
    assert second.write(process, "after\n", writeId="2") == {"status": "accepted"}
    second.wait(lambda: process.name in second.processes, "a notification")
    live = second.processes[process.name]
    second.wait_output(live, "after\n")
    assert live.events[0][0] == seen + 1
    assert live.output() == b"after\n"
    seqs, streams, _ = read_all(second, process.name)
    assert seqs == list(range(1, len(seqs) + 1))
    assert streams == {"stdout": b"before\nafter\n"}
    assert second.terminate(process) == {"running": True}
    second.wait_closed(live)
    first.close()
    second.close()


def test_resume_many_times(shared):
    client = shared.client()
    process = client.start("cat", pipeStdin=True)
    for i in range(10):
        client.write(process, f"{i}", writeId=str(i))
        client.transport.drop()
        client = resume(shared, client.session)
        client.write(process, f"{i}", writeId=str(i))
    client.write(process, "!")
    until(lambda: read_all(client, process.name)[1].get("stdout") == b"0123456789!",
          "all writes once")
    client.terminate(process)
    client.close()


def test_no_replay(shared):
    first = shared.client()
    process = first.run("echo hello")
    first.transport.drop()
    second = resume(shared, first.session)
    second.sync()
    assert second.processes == {}
    seqs, streams, result = read_all(second, process.name)
    assert (seqs, streams) == ([1], {"stdout": b"hello\n"})
    assert result["closed"] and result["nextSeq"] == 4
    second.close()


def test_output_is_drained_and_retained_while_detached(shared, tmp_path):
    """A child does not block without a client; the newest MiB stays, numbering goes on."""
    first = shared.client()
    gate, done = tmp_path / "gate", tmp_path / "done"
    script = (f"echo ready; while [ ! -e {gate} ]; do sleep 0.02; done; "
              f"head -c 5000000 /dev/zero; printf END; touch {done}; sleep 1000")
    process = first.start(script)
    first.wait_output(process, "ready\n")
    last = process.next_seq - 1
    first.end()
    gate.touch()
    until(done.exists, "end of the output without a reader")
    second = resume(shared, first.session)
    until(lambda: read_all(second, process.name, last)[1].get("stdout", b"").endswith(b"END"),
          "retained output")
    seqs, streams, result = read_all(second, process.name, last)
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) and seqs[0] > last + 1
    assert result["nextSeq"] == seqs[-1] + 1
    assert 1048576 - 65536 <= len(streams["stdout"]) <= 1048576
    assert second.quiet()
    second.terminate(process)
    second.close()


def test_disconnect_unblocks_a_stalled_child(shared, tmp_path):
    first = shared.client()
    done = tmp_path / "done"
    process = first.start(f"head -c 50000000 /dev/zero; touch {done}; sleep 1000")
    first.wait_output(process, b"\0")
    first.transport.reset()
    until(done.exists, "end of the output")
    second = resume(shared, first.session)
    result = read_all(second, process.name)[2]
    assert not result["exited"]
    second.terminate(process)
    second.close()


def test_exit_while_detached(shared, tmp_path):
    first = shared.client()
    gate = tmp_path / "gate"
    process = first.start(f"while [ ! -e {gate} ]; do sleep 0.02; done; echo end; exit 7")
    first.end()
    gate.touch()
    second = resume(shared, first.session)
    result = second.read(process, afterSeq=2**64 - 1, waitMs=20000)
    assert result["closed"] and result["exitCode"] == 7
    seqs, streams, result = read_all(second, process.name)
    assert (seqs, streams, result["nextSeq"]) == ([1], {"stdout": b"end\n"}, 4)
    second.close()


def test_start_in_flight_survives_a_disconnect(shared):
    """A start whose connection vanished is finished: its id never stays in limbo."""
    for _ in range(20):
        first = shared.client()
        first.sync()
        first.send("process/start", first.start_params("sleep 1000", processId="p"))
        first.transport.drop()
        second = resume(shared, first.session)
        answer = None
        starting = {"code": -32600, "message": "process id p is starting"}
        while answer is None or answer.get("error") == starting:
            answer = second.answer(second.send("process/read", {"processId": "p"}))
        if "result" in answer:
            assert second.terminate("p") == {"running": True}
        else:
            assert answer["error"]["message"] == "unknown process id p"
            second.start("true", processId="p")
        second.close()


def test_attached_session_is_refused_and_undisturbed(shared):
    first = shared.client()
    first.sync()
    other = shared.connect()
    params = {"clientName": "x", "resumeSessionId": first.session}
    assert other.error("initialize", params) == (-32010, ATTACHED.format(first.session))
    first.sync()
    assert other.error("initialize", params) == (-32010, ATTACHED.format(first.session))
    first.sync()
    other.initialize()
    other.sync()
    first.close()
    other.close()


def attempts(server, session, deadline):
    """Tries to resume, as clients do, until it succeeds; the client and the refusals."""
    refused = 0
    while True:
        client = server.connect()
        answer = client.answer(client.send(
            "initialize", {"clientName": "x", "resumeSessionId": session}))
        if "result" in answer:
            client.notify("initialized", {})
            return client, refused
        assert answer["error"]["code"] == -32010
        refused += 1
        client.close()
        assert not deadline.passed(), "no takeover"
        time.sleep(0.05)


def test_takeover_of_a_silent_connection(shared):
    """A peer that is connected but silent loses its session 2 s after an attempt to resume."""
    first = shared.client()
    process = first.start("cat", pipeStdin=True)
    first.sync()
    second, refused = attempts(shared, first.session, Deadline())
    assert refused > 0
    assert second.write(process, "taken\n", writeId="1") == {"status": "accepted"}
    second.wait(lambda: process.name in second.processes, "output")
    with pytest.raises(Closed):
        while first.transport.receive() is not None:
            pass
    second.terminate(process)
    second.close()


def test_no_takeover_of_a_live_connection(shared):
    """Answering pings is enough to keep a session for longer than the 2 s."""
    def answer_in_time():
        """A connection that has answered the ping; None when this machine is too busy for it."""
        first = shared.client()
        params = {"clientName": "x", "resumeSessionId": first.session}
        asked = time.monotonic()
        assert shared.connect().error("initialize", params)[0] == -32010
        # Pings are answered while messages are awaited.
        until(lambda: first.transport.receive(0.05) is None and first.transport.pings, "a ping")
        return first if time.monotonic() - asked < 1.5 else None
    first = until(answer_in_time, "a ping answered in time")
    end = Deadline(3.0)
    while not end.passed():
        first.transport.receive(0.05)
    first.sync()
    other = shared.connect()
    params = {"clientName": "x", "resumeSessionId": first.session}
    assert other.error("initialize", params)[0] == -32010
    first.close()
    other.close()


@pytest.mark.parametrize("how", WAYS)
def test_ttl_zero_ends_the_session_at_once(fleet, how):
    server = fleet.start("--session-ttl", "0")
    client = server.client()
    token = procfs.mark()
    client.start(["/bin/sleep", token])
    client.start(f"setsid sleep {token} & wait", tty=True)
    procfs.wait_marked(token, 2)
    leave(client, how)
    procfs.wait_marked(token, 0)
    again = server.connect()
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": client.session}) == (
        -32600, f"unknown session id {client.session}")
    client.close()


def test_ttl(fleet):
    def attempt(ttl):
        server = fleet.start("--session-ttl", str(ttl // 1000))
        client = server.client()
        token = procfs.mark()
        client.start(["/bin/sleep", token])
        pid, = procfs.wait_marked(token)
        client.end()
        # Resuming stops the clock; it starts again at the next disconnect.
        try:
            client = resume(server, client.session)
        except RpcError:
            return None
        client.sync()
        assert procfs.alive(pid)
        client.end()
        procfs.wait_gone(pid, ttl / 1000 + PATIENCE)
        return server, client
    server, client = patiently(attempt, 1000)
    again = server.connect()
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": client.session}) == (
        -32600, f"unknown session id {client.session}")


def test_descriptors_of_ended_sessions_are_released(fleet):
    server = fleet.start("--session-ttl", "0")
    server.client().end()
    before = server.fds()
    for _ in range(30):
        client = server.client()
        client.start("cat", pipeStdin=True)
        client.start("cat", tty=True)
        client.transport.reset()
    server.wait_fds(before)
    until(lambda: not server.zombies(), "no zombies")


def test_pending_requests_of_a_lost_connection_are_dropped(shared):
    first = shared.client()
    process = first.start("sleep 1000")
    for _ in range(50):
        first.send("process/read", {"processId": process.name, "waitMs": 10**9})
    first.sync()
    first.transport.reset()
    second = resume(shared, first.session)
    assert second.quiet()
    second.terminate(process)
    second.close()


def test_parked_write_is_dropped_or_done_once(shared):
    """A write that waited when its connection vanished can be repeated with its id."""
    first = shared.client()
    process = first.start("read go; wc -c", pipeStdin=True)
    chunk = b"x" * 99999 + b"\n"
    for i in range(400):
        first.send("process/write",
                   {"processId": process.name, "chunk": b64(chunk), "writeId": str(i)})
    first.transport.half_close()
    second = resume(shared, first.session)
    second.terminate(process)
    second.sync()
    first.close()
    second.close()
