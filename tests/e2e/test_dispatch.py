"""Order of requests: what steps aside, what overtakes, what stays behind."""

import pytest

from harness.rpc import b64

FAR = 10**9
TOO_MANY = {"code": -32600,
            "message": "too many waiting requests on this connection (limit 1024)"}


def long_poll(client, process, **extra):
    return client.send("process/read", {"processId": process.name, "waitMs": FAR, **extra})


def fill_stdin(client, process, size=65536):
    """Writes until one waits; returns the ids of the writes not answered yet."""
    chunk, waiting = b64(b"x" * size), []
    for _ in range(400):
        waiting.append(client.send("process/write", {"processId": process.name, "chunk": chunk}))
        client.barrier()
        while waiting and waiting[0] in client.answers:
            assert client.result(waiting.pop(0)) == {"status": "accepted"}
        if waiting:
            return waiting
    raise AssertionError("400 writes to a process that does not read were accepted")


def test_answers_come_in_order(client):
    idents = []
    for i in range(500):
        idents.append(client.send("process/read", {"processId": f"none-{i}"}))
        idents.append(client.send("process/write", {"processId": "none", "chunk": ""}))
        idents.append(client.send("unknown/method"))
    client.wait(lambda: len(client.answers) == len(idents), "all answers")
    assert list(client.answers) == idents


def test_pipelined_life_of_a_process(client):
    """Requests naming the same process are never reordered before they began."""
    name = client.new_name()
    start = client.send("process/start",
                        client.start_params("cat", processId=name, pipeStdin=True))
    write = client.send("process/write", {"processId": name, "chunk": b64("x"), "writeId": "1"})
    interrupt = client.send("process/signal", {"processId": "other", "signal": "interrupt"})
    read = client.send("process/read", {"processId": name, "waitMs": FAR})
    terminate = client.send("process/terminate", {"processId": name})
    assert client.result(start)["processId"] == name
    assert client.result(write) == {"status": "accepted"}
    assert client.result(interrupt) == {}
    assert client.result(terminate) == {"running": True}
    assert client.result(read)["nextSeq"] > 0
    client.wait_closed(client.processes[name])


def test_start_and_terminate_at_once(client):
    """Terminate ends a process or cancels its start, whichever state it meets."""
    for _ in range(30):
        name = client.new_name()
        start = client.send("process/start", client.start_params("sleep 1000", processId=name))
        terminate = client.send("process/terminate", {"processId": name})
        answer = client.answer(start)
        assert client.result(terminate) == {"running": True}
        if "result" in answer:
            client.wait_closed(client.processes[name])
            assert client.processes[name].exit_code == 137
        else:
            assert answer["error"] == {"code": -32600,
                                       "message": f"process {name} start was cancelled"}
            assert client.run("exit 3", processId=name).exit_code == 3


def test_long_poll_steps_aside(client):
    process = client.start("cat", pipeStdin=True)
    waiting = long_poll(client, process)
    client.barrier()
    client.sync()
    other = client.run("echo other")
    assert other.output() == b"other\n"
    assert client.answers == {}
    assert client.write(process, "wake\n") == {"status": "accepted"}
    result = client.result(waiting)
    assert [c["chunk"] for c in result["chunks"]] == [b64("wake\n")]
    client.terminate(process)


def test_terminate_overtakes_a_long_poll(client):
    process = client.start("sleep 1000")
    first = long_poll(client, process, afterSeq=2**64 - 1)
    assert client.terminate(process) == {"running": True}
    assert client.result(first)["closed"]
    client.wait_closed(process)


def test_signal_overtakes_a_long_poll(client):
    process = client.start("trap 'echo got; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    client.wait_output(process, "ready\n")
    waiting = long_poll(client, process, afterSeq=2**64 - 1)
    assert client.interrupt(process) == {}
    result = client.result(waiting)
    assert result["closed"] and result["exitCode"] == 5


def test_every_waiter_wakes(client):
    process = client.start("read line; echo $line", pipeStdin=True)
    waiting = [long_poll(client, process) for _ in range(100)]
    closed = [long_poll(client, process, afterSeq=2**64 - 1) for _ in range(100)]
    client.barrier()
    assert client.answers == {}
    client.write(process, "go\n")
    for ident in waiting:
        assert client.result(ident)["chunks"][0]["chunk"] == b64("go\n")
    for ident in closed:
        result = client.result(ident)
        assert result["closed"] and result["chunks"] == []


def test_wait_ends_at_its_time(client):
    process = client.start("sleep 1000")
    idents = [client.send("process/read", {"processId": process.name, "waitMs": ms})
              for ms in (0, 1, 20, 40, 60)]
    for ident in idents:
        result = client.result(ident)
        assert result["chunks"] == [] and not result["exited"] and result["nextSeq"] == 1
    client.terminate(process)


def test_shorter_waits_are_not_behind_longer_ones(client):
    process = client.start("sleep 1000")
    forever = long_poll(client, process)
    short = client.send("process/read", {"processId": process.name, "waitMs": 30})
    client.result(short)
    assert client.answers == {}
    client.terminate(process)
    assert client.result(forever)["exited"]


def test_full_stdin_steps_aside(client):
    process = client.start("sleep 1000", pipeStdin=True)
    waiting = fill_stdin(client, process)
    client.sync()
    assert client.run("echo free").output() == b"free\n"
    other = client.start("cat", pipeStdin=True)
    assert client.write(other, "through\n") == {"status": "accepted"}
    client.wait_output(other, "through\n")
    assert client.terminate(other) == {"running": True}
    assert client.read(process)["chunks"] == []
    assert client.terminate(process) == {"running": True}
    for ident in waiting:
        assert client.answer(ident)["error"] == {
            "code": -32603, "message": "failed to write to process stdin"}
    client.wait_closed(process)


def test_at_least_128_chunks_are_queued(client):
    process = client.start("sleep 1000", pipeStdin=True)
    for _ in range(129):
        assert client.write(process, b"x" * 512) == {"status": "accepted"}
    client.terminate(process)


def test_later_writes_stay_behind_a_waiting_one(client, tmp_path):
    """Bytes arrive in the order of the requests, whatever waited."""
    gate = tmp_path / "gate"
    count, size = 400, 30000
    process = client.start(
        f"while [ ! -e {gate} ]; do sleep 0.02; done; head -c {count * size} | cksum",
        pipeStdin=True)
    chunks = [bytes([i & 255, i >> 8]) * (size // 2) for i in range(count)]
    idents = [client.send("process/write", {"processId": process.name, "chunk": b64(chunk),
                                            "writeId": str(i)})
              for i, chunk in enumerate(chunks)]
    client.sync()
    # A repeated id answers at once or waits, but never writes again.
    again = client.send("process/write", {"processId": process.name, "chunk": b64(chunks[0]),
                                          "writeId": "0"})
    gate.touch()
    for ident in (*idents, again):
        assert client.result(ident) == {"status": "accepted"}
    client.wait_closed(process)
    expected = client.start(f"head -c {count * size} | cksum", pipeStdin=True)
    client.write(expected, b"".join(chunks))
    client.wait_closed(expected)
    assert process.output() == expected.output()


def test_writes_to_a_slow_reader_are_answered_one_by_one(client):
    process = client.start("while read -r line; do :; done; echo done", pipeStdin=True)
    idents = [client.send("process/write", {"processId": process.name,
                                            "chunk": b64(b"line\n" * 2000)})
              for _ in range(200)]
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    assert client.terminate(process) == {"running": True}


def test_limit_of_parked_requests(client):
    process = client.start("sleep 1000")
    other = client.start("cat", pipeStdin=True)
    waiting = [long_poll(client, process) for _ in range(1024)]
    client.barrier()
    assert client.answers == {}
    assert client.answer(long_poll(client, process))["error"] == TOO_MANY
    assert client.answer(long_poll(client, other))["error"] == TOO_MANY
    # What does not wait is served.
    assert client.read(process)["chunks"] == []
    assert client.write(other, "x") == {"status": "accepted"}
    client.wait_output(other, "x")
    assert client.read(other, waitMs=FAR)["chunks"]
    client.terminate(process)
    for ident in waiting:
        assert client.result(ident)["exited"]
    # The places are free again.
    again = long_poll(client, other, afterSeq=2**64 - 1)
    client.barrier()
    assert client.answers == {}
    client.terminate(other)
    assert client.result(again)["closed"]


def test_limit_of_parked_writes(client):
    process = client.start("sleep 1000", pipeStdin=True)
    fill_stdin(client, process)
    waiting = [client.send("process/write", {"processId": process.name, "chunk": b64("x")})
               for _ in range(1100)]
    client.barrier()
    refused = [i for i in waiting if i in client.answers]
    assert 70 < len(refused) < 1100
    for ident in refused:
        assert client.answer(ident)["error"] == TOO_MANY
    client.terminate(process)
    for ident in waiting:
        if ident not in refused:
            assert client.answer(ident)["error"]["code"] == -32603


def test_parked_requests_of_one_connection_do_not_count_for_another(shared):
    one, two = shared.client(), shared.client()
    for client in (one, two):
        process = client.start("sleep 1000")
        for _ in range(1024):
            long_poll(client, process)
        client.barrier()
        assert client.answers == {}
        client.terminate(process)
        client.wait_closed(process)
        client.close()


def test_malformed_and_unknown_do_not_wait_behind_a_long_poll(client):
    process = client.start("sleep 1000")
    long_poll(client, process)
    client.send_raw("nonsense")
    assert client.answer(-1)["error"]["code"] == -32600
    assert client.error("unknown")[0] == -32601
    client.notify("initialized", {})
    client.sync()
    client.terminate(process)


@pytest.fixture(params=["2", "8"])
def lanes(fleet, request):
    return fleet.start("--concurrent-requests", request.param).client()


def test_lanes_answer_everything(lanes):
    process = lanes.start("sleep 1000")
    waiting = long_poll(lanes, process)
    idents = []
    for i in range(300):
        idents.append(lanes.send("process/start",
                                 lanes.start_params("exit 3", processId=f"q{i}")))
        idents.append(lanes.send("environment/status"))
    for ident in idents:
        lanes.result(ident)
    for i in range(300):
        lanes.wait(lambda name=f"q{i}": name in lanes.processes, "a start")
        lanes.wait_closed(lanes.processes[f"q{i}"])
        assert lanes.processes[f"q{i}"].exit_code == 3
    assert lanes.answers == {}
    assert lanes.terminate(process) == {"running": True}
    assert lanes.result(waiting)["exited"]


def test_lanes_of_control_methods_are_free(lanes):
    process = lanes.start("sleep 1000")
    waiting = [long_poll(lanes, process) for _ in range(8)]
    lanes.sync()
    assert lanes.call("environment/info")["platformOs"] == "linux"
    assert lanes.interrupt("none") == {}
    assert lanes.terminate(process) == {"running": True}
    for ident in waiting:
        assert lanes.result(ident)["exited"]


def test_same_id_twice_in_lanes(lanes):
    """Of two starts with one id exactly one succeeds."""
    for i in range(30):
        params = lanes.start_params("true", processId=f"twice{i}")
        answers = [lanes.send("process/start", params) for _ in range(2)]
        got = [lanes.answer(ident) for ident in answers]
        errors = [a["error"] for a in got if "error" in a]
        assert errors == [{"code": -32600, "message": f"process twice{i} already exists"}]


def test_waiting_requests_leave_no_trace(server):
    client = server.client()
    process = client.start("sleep 1000")
    before = server.fds()
    for _ in range(500):
        client.send("process/read", {"processId": process.name, "waitMs": 1})
    client.wait(lambda: len(client.answers) == 500, "all answers")
    assert server.fds() == before
