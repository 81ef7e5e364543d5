"""Slow readers, deep pipelines, hung requests: nothing blocks others or grows."""

import json

import pytest

from harness import procfs
from harness.rpc import b64
from harness.settings import SANITIZED
from harness.waiting import until
from harness.ws import TEXT, frame, head

MIB = 1 << 20
PATTERN = b"0123456789\n"


def peak(server):
    """Largest resident size so far, in bytes."""
    return int(procfs.status(server.pid)["VmHWM"].split()[0]) * 1024


def reset_peak(server):
    with open(f"/proc/{server.pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


class Grown:
    """Asserts how much memory a server used on top of what it had."""

    def __init__(self, server):
        self.server = server
        reset_peak(server)
        self.before = server.rss()

    def check(self, limit=8 * MIB):
        if not SANITIZED:
            grown = peak(self.server) - self.before
            assert grown < limit, f"memory grew by {grown} bytes"


def blocked(token):
    """True when a process with token among its arguments sleeps in write(2)."""
    return any(procfs.writing(pid) for pid in procfs.marked(token))


class PatternSink:
    """Checks a periodic stream without keeping it."""

    def __init__(self, stream):
        self.size = 0
        self.stream = stream
        self.repeated = PATTERN * (65536 // len(PATTERN) + 3)

    def __call__(self, _seq, stream, data):
        start = self.size % len(PATTERN)
        assert stream == self.stream
        assert data == self.repeated[start:start + len(data)], f"wrong bytes after {self.size}"
        self.size += len(data)


def start_pattern(client, size, tty=False):
    """Starts a process that writes size bytes; its argument finds it in /proc."""
    token = f"-c{size}"
    raw = "stty raw; " if tty else ""
    process = client.start(f"{raw}yes 0123456789 | head {token}", tty=tty,
                           sink=PatternSink("pty" if tty else "stdout"))
    return process, token


def test_5000_requests_before_the_first_read(server):
    client = server.client()
    client.sync()
    process = client.start("cat", pipeStdin=True)
    requests, idents = [], []
    for i in range(5000):
        method, params = [
            ("process/read", {"processId": process.name, "afterSeq": i}),
            ("environment/status", None),
            ("process/write", {"processId": process.name, "chunk": b64(f"{i}\n"),
                               "writeId": str(i)}),
            ("process/signal", {"processId": "none", "signal": "interrupt"}),
            ("unknown", {"x": "y" * 100}),
        ][i % 5]
        ident, text = client.encode(method, params)
        assert len(text) <= 200
        idents.append(ident)
        requests.append(frame(TEXT, text.encode()))
    client.transport.send_bytes(b"".join(requests))
    for ident in idents:
        client.answer(ident)
    expected = b"".join(b"%d\n" % i for i in range(2, 5000, 5))
    client.wait(lambda: process.output() == expected, "all that was written")


def test_5000_requests_at_once_on_a_tiny_receive_buffer(server):
    client = server.client(rcvbuf=4096)
    data, idents = b"", []
    for _ in range(5000):
        ident, text = client.encode("environment/status")
        idents.append(ident)
        data += frame(TEXT, text.encode())
    client.transport.send_bytes(data)
    for ident in idents:
        client.result(ident)


def test_reading_while_writing_never_blocks(server):
    """Any depth of pipelining works for a client that reads while it writes."""
    client = server.client()
    count = 10000 if SANITIZED else 40000
    one = frame(TEXT, b'{"id":1,"method":"environment/status","pad":"' + b"x" * 300 + b'"}')
    grown = Grown(server)
    client.transport.send_while_reading(one * count)
    for _ in range(count):
        assert client.answer(1)["result"] == {"status": "ready"}
    grown.check()


@pytest.mark.limit(1800)
def test_200_mb_to_a_client_that_stalls(server):
    client = server.client()
    client.run("true")
    grown = Grown(server)
    process, token = start_pattern(client, 200_000_000)
    # The client reads nothing until the child is blocked.
    until(lambda: blocked(token), "a blocked child")
    other = server.client()
    assert other.run("echo free").output() == b"free\n"
    client.wait_closed(process, 240)
    assert process.sink.size == 200_000_000
    assert process.exit_code == 0
    grown.check()


def test_stalled_clients_stall_only_their_children(server):
    clients, tokens = [], []
    grown = Grown(server)
    for i in range(4):
        client = server.client(rcvbuf=8192)
        process, token = start_pattern(client, 30_000_000 + i)
        clients.append((client, process))
        tokens.append(token)
    for token in tokens:
        until(lambda t=token: blocked(t), "a blocked child")
    other = server.client()
    for i in range(50):
        assert other.run(f"echo {i}").output() == b"%d\n" % i
    grown.check(40 * MIB)
    for client, process in clients:
        assert client.terminate(process) == {"running": True}
        client.wait_closed(process)
        assert process.exit_code in (0, 137)
        client.close()


@pytest.mark.parametrize("tty", [False, True])
def test_stalled_then_complete_on_a_tiny_buffer(server, tty):
    client = server.client(rcvbuf=4096)
    process, token = start_pattern(client, 20_000_000, tty)
    until(lambda: blocked(token), "a blocked child")
    client.wait_closed(process)
    assert process.sink.size == 20_000_000


def test_large_answers_do_not_pile_up(server):
    """Answers of 1.4 MB each, asked for without reading, do not fill the memory."""
    client = server.client()
    process = client.run("head -c 1048576 /dev/zero")
    grown = Grown(server)
    count = 100
    one = json.dumps({"id": 1, "method": "process/read", "params": {"processId": process.name}})
    client.transport.send_bytes(frame(TEXT, one.encode()) * count)
    other = server.client()
    for _ in range(20):
        other.run("true")
    for _ in range(count):
        result = client.answer(1)["result"]
        assert sum(len(c["chunk"]) for c in result["chunks"]) >= 1048576 * 4 // 3
    grown.check(16 * MIB)


def test_several_processes_share_a_stalled_connection(server):
    client = server.client(rcvbuf=8192)
    grown = Grown(server)
    processes = [start_pattern(client, 3_000_000 + i) for i in range(20)]
    until(lambda: any(blocked(token) for _, token in processes), "a blocked child")
    for i, (process, _) in enumerate(processes):
        client.wait_closed(process)
        assert process.sink.size == 3_000_000 + i
    # Each process retains up to 1 MiB, and half as much again as the head of its stdout.
    grown.check(40 * MIB)


def test_answers_while_output_floods(client):
    """Requests are answered in between while a process writes without end."""
    flood = client.start("exec cat /dev/zero", sink=lambda *_: None)
    for i in range(30):
        other = client.run(f"echo {i}")
        assert other.output() == b"%d\n" % i
    assert client.terminate(flood) == {"running": True}
    client.wait_closed(flood)


def test_hung_requests_of_four_do_not_slow_a_fifth(server):
    hung = []
    for i in range(4):
        client = server.client(rcvbuf=8192)
        sleeper = client.start("sleep 1000", pipeStdin=True)
        for _ in range(200):
            client.send("process/read", {"processId": sleeper.name, "waitMs": 10**9})
        for _ in range(300):
            client.send("process/write", {"processId": sleeper.name, "chunk": b64(b"x" * 5000)})
        if i % 2:
            start_pattern(client, 50_000_000)
        if i >= 2:
            client.transport.send_bytes(head(TEXT, 50 * MIB) + b"{")
        hung.append((client, sleeper))
    fifth = server.client()
    for i in range(100):
        assert fifth.run(f"echo {i}").output() == b"%d\n" % i
    until(lambda: not server.zombies(), "no zombies")


def test_half_a_message_blocks_nobody(server):
    stuck = [server.client() for _ in range(20)]
    for client in stuck:
        client.transport.send_bytes(head(TEXT, 60 * MIB) + b"x" * 1000)
    grown = Grown(server)
    other = server.client()
    assert other.run("echo ok").output() == b"ok\n"
    grown.check()


def test_a_stalled_client_that_vanishes_frees_everything(fleet):
    server = fleet.start("--session-ttl", "0")
    server.client().end()
    before = server.fds()
    for _ in range(5):
        client = server.client(rcvbuf=4096)
        _, token = start_pattern(client, 40_000_000)
        until(lambda t=token: blocked(t), "a blocked child")
        client.transport.reset()
        procfs.wait_marked(token, 0)
    server.wait_fds(before)


def test_parked_writes_are_bounded_in_bytes(server):
    """A child that never reads does not let a client fill the memory."""
    client = server.client()
    process = client.start("sleep 1000", pipeStdin=True)
    grown = Grown(server)
    request = json.dumps({"id": 1, "method": "process/write", "params": {
        "processId": process.name, "chunk": b64(b"x" * (6 * MIB))}}).encode()
    count = 30
    for _ in range(count):
        client.transport.send_while_reading(frame(TEXT, request, key=b"\0\0\0\0"))
    client.sync()
    grown.check(110 * MIB)
    assert client.terminate(process) == {"running": True}
    codes = set()
    for _ in range(count):
        answer = client.answer(1)
        codes.add(answer.get("error", {}).get("code"))
    assert codes == {None, -32600, -32603}
    client.wait_closed(process)


def test_pressure_before_initialize(server):
    """A queue that was long before the session began stalls its children too."""
    client = server.connect(rcvbuf=4096)
    ws = client.transport
    size = 60_000_007
    texts = ['{"id":1,"method":"%s"}' % ("x" * 4000)] * 900 + [
        '{"id":2,"method":"initialize","params":{"clientName":"x"}}', '{"method":"initialized"}',
        json.dumps({"id": 3, "method": "process/start",
                    "params": client.start_params(f"yes | head -c{size}")})]
    grown = Grown(server)
    ws.send_while_reading(b"".join(frame(TEXT, text.encode()) for text in texts))

    def stalled():
        # Reads no more than the server needs to come to the start.
        if not procfs.marked(f"-c{size}"):
            ws.receive_frame(0.001)
        return blocked(f"-c{size}")
    until(stalled, "a blocked child")
    grown.check()
    ws.reset()


def test_many_waiting_reads_are_woken_by_one_chunk(server):
    client = server.client()
    process = client.start("read go; head -c 65536 /dev/zero; read go", pipeStdin=True)
    idents = [client.send("process/read", {"processId": process.name, "waitMs": 10**9})
              for _ in range(1000)]
    client.barrier()
    grown = Grown(server)
    client.send("process/write", {"processId": process.name, "chunk": b64("\n")})
    other = server.client()
    for _ in range(20):
        other.run("true")
    for ident in idents:
        assert client.result(ident)["chunks"]
    grown.check(16 * MIB)
    client.terminate(process)
