"""One client's work is cut into slices: others are answered in between, and order is kept."""

import json
import os
import resource

import pytest

from harness.waiting import until
from harness.ws import TEXT, connect_tcp, frame

MIB = 1 << 20
BOMBS = 60
# More steps than any limit of the patterns allows.
EXPENSIVE = {"inherit": "none", "ignoreDefaultExcludes": True, "exclude": [],
             "set": {f"{'a' * 3000}{i}": "" for i in range(10)},
             "includeOnly": [f"{'*a' * 20}b{i}" for i in range(400)]}
# Nearly as many.
COSTLY = {**EXPENSIVE, "includeOnly": [f"{'*a' * 20}b{i}" for i in range(8)]}


def start_params(name, **options):
    return {"processId": name, "argv": ["/bin/sh", "-c", "read x"], "cwd": "/", "env": {},
            "tty": False, "pipeStdin": True, "arg0": None, **options}


def arrived(client):
    """How many answers have come, without waiting."""
    while client.pump(0) is not None:
        pass
    return len(client.answers)


def test_others_are_answered_between_refused_starts(shared, undecided):
    """A queue of expensive requests begins at once. Another client does not wait for its
    end: the other client is answered when some of them are refused and others are not."""
    hostile, other = shared.client(), shared.client()
    hostile.send("process/start", start_params("first", argv=[undecided.path]))
    for i in range(BOMBS):
        hostile.send("process/start", start_params(f"bomb {i}", envPolicy=EXPENSIVE))
    hostile.call("environment/status", {})  # it overtakes: all before it are queued
    assert arrived(hostile) == 0
    undecided.decide()
    seen = set()
    while arrived(hostile) < BOMBS + 1:
        other.sync()
        seen.add(arrived(hostile))
    assert seen & set(range(2, BOMBS)), "nobody was answered while the queue was worked off"
    refused = [a["error"]["message"] for a, in hostile.answers.values() if "error" in a]
    assert refused == ["the patterns of envPolicy are too expensive"] * BOMBS
    hostile.close()
    other.close()


def test_others_are_answered_between_failed_starts(fleet, undecided):
    """The starts get as far as the pipes, and no descriptor is left: a lane that is freed at once
    is no reason to go on with the queue before others have had their turn."""
    limit, count = 64, 3 * BOMBS
    server = fleet.start(quiet=False, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                         (limit, limit)))
    hostile, other = server.client(), server.client()
    hostile.send("process/start", start_params("first", argv=[undecided.path]))
    for i in range(count):
        hostile.send("process/start", start_params(f"bomb {i}", envPolicy=COSTLY))
    hostile.call("environment/status", {})
    idle = [connect_tcp(server.address) for _ in range(limit)]
    until(lambda: server.fds() == limit, "no descriptor is left")
    undecided.decide()
    seen = set()
    while arrived(hostile) < count + 1:
        other.sync()
        seen.add(arrived(hostile))
    # One answer may have been on its way when the queue was let go.
    assert len(seen & set(range(2, count))) > 2, "nobody was answered while the queue ran"
    failed = [a["error"]["message"] for a, in hostile.answers.values() if "error" in a]
    assert failed == ["No file descriptors available (os error 24)"] * count
    for sock in idle:
        sock.close()


def test_nothing_overtakes_a_large_message(client):
    """A thread reads a large start. A request that names its process waits until that is known."""
    for name in ("first", "second", "third"):
        env = {"X": "y" * (100 * 1024), "Y": "\n" * (100 * 1024)}
        start = client.send("process/start", start_params(name, env=env))
        terminate = client.send("process/terminate", {"processId": name})
        status = client.send("environment/status", {})
        assert client.result(terminate) == {"running": True}
        assert client.result(start)["processId"] == name
        assert client.result(status) == {"status": "ready"}


def test_large_messages_keep_their_order(shared):
    """What is read in a thread is answered in its turn."""
    client = shared.client()
    large = {"path": "/nonexistent", "x": ["y"] * 50000}
    sent = [client.send("fs/getMetadata", large if i % 3 else {"path": "/nonexistent"})
            for i in range(30)]
    answered = [json.loads(client.transport.receive())["id"] for _ in sent]
    assert answered == sent
    client.close()


@pytest.mark.parametrize("text", [b"[" + b"1," * 200000, b"x" * MIB, b'{"id":1,"method":"a","params":"'
                                  + b"QUJD" * MIB + b'\\n"}'], ids=["cut", "junk", "escape"])
def test_large_messages_that_are_wrong(shared, text):
    client = shared.client()
    client.transport.send_bytes(frame(TEXT, text))
    answer = json.loads(client.transport.receive())
    assert answer["error"]["code"] in (-32600, -32601)
    client.sync()
    client.close()


def test_the_end_while_a_thread_reads(server):
    """Connections that end before their large message was read leave nothing behind."""
    witness = server.client()
    fds = server.fds()
    text = json.dumps({"id": 1, "method": "environment/status", "params": {"x": "\n" * (4 * MIB)}})
    for _ in range(3):
        client = server.client()
        client.transport.send_text(text)
        client.transport.close()
    witness.sync()
    server.wait_fds(fds)


def test_few_threads_read_large_messages(server):
    """However many arrive at once, they leave the loop its CPU."""
    readers = min(max((os.cpu_count() or 1) // 2, 1), 4)
    clients = [server.client() for _ in range(16)]
    before = server.threads()
    text = json.dumps({"id": 2, "method": "none", "params": {"x": "\n" * (2 * MIB)}})
    data = frame(TEXT, text.encode())
    for client in clients:
        client.transport.send_bytes(data[:-1])
    for client in clients:
        client.transport.send_bytes(data[-1:])
    for client in clients:
        assert json.loads(client.transport.receive())["error"]["code"] == -32601
    # Threads stay a while when they have nothing to do. A sanitizer may have one of its own.
    assert server.threads() <= before + readers + 1
