"""What clients can make a server hold while it reads and writes files for them."""

import json
import threading
from contextlib import contextmanager

import pytest

from harness import procfs
from harness.files import MIB, Files, uri
from harness.resting import wait_rest
from harness.rpc import b64
from harness.settings import SANITIZED
from harness.waiting import writable
from harness.ws import TEXT, frame


def address_space(pid):
    return int(procfs.status(pid)["VmSize"].split()[0]) * 1024


def sparse(path, size):
    with open(path, "wb") as f:
        f.truncate(size)
    return path


@contextmanager
def sending(action):
    """Sends from another thread, since it may take until something is read or let go."""
    thread = threading.Thread(target=action)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


def check_growth(server, before, limit, measure=procfs.rss):
    if not SANITIZED:
        assert measure(server.pid) - before < limit


def test_short_answers_of_large_requests(fleet, place):
    """An answer that nobody reads takes what is in it, not what was asked for."""
    server = fleet.start()
    files = Files(server.client(rcvbuf=4096))
    (place / "f").write_bytes(b"x")
    files.open(place / "f", "h")
    files.read_block("h", 0, MIB)
    before = address_space(server.pid)
    count = 150_000  # about 7 MB of answers: what the socket takes, and some 3 MB more
    request = json.dumps({"id": 7, "method": "fs/readBlock",
                          "params": {"handleId": "h", "offset": 0, "len": MIB}}).encode()
    requests = frame(TEXT, request, key=b"\0\0\0\0") * count
    with sending(lambda: files.client.transport.send_bytes(requests)) as sender:
        wait_rest(server, after=lambda: not sender.is_alive())
        check_growth(server, before, 64 * MIB, address_space)
        server.client().sync()
        files.client.wait(lambda: len(files.client.answers.get(7, ())) == count, "all answers")
    assert all(a["result"] == {"chunk": "eA==", "eof": True} for a in files.client.answers[7])


@pytest.mark.parametrize("size", [5 * MIB, 4 * MIB - 1])
def test_reads_at_a_time(fleet, place, size):
    """Many may run, but not all of them fill their memory."""
    server = fleet.start("--concurrent-requests", "256")
    files = Files(server.client(rcvbuf=4096))
    files.metadata(place)
    before = server.rss()
    wanted = [files.send("readFile", sparse(place / f"f{i}", size)) for i in range(24)]
    files.client.send("environment/status")
    wait_rest(server)
    check_growth(server, before, 64 * MIB)
    other = Files(server.client())
    assert other.read(sparse(place / "other", MIB)) == bytes(MIB)
    expected = b64(bytes(size))
    for ident in wanted:
        assert files.client.result(ident)["dataBase64"] == expected
    files.client.sync()


@pytest.mark.parametrize("size", [8 * MIB, 1])
def test_writes_at_a_time(fleet, faultfs, size):
    """Data of writes that hang, or what came with it; what follows is not taken in."""
    server = fleet.start("--concurrent-requests", "256")
    client = server.client()
    before = server.rss()
    paths = [faultfs.file(f"hang-write.{i}") for i in range(40)]
    params = {"dataBase64": b64(bytes(size)), "ignored": "x" * (8 * MIB - size)}
    texts = [client.encode("fs/writeFile", {"path": uri(path), **params}) for path in paths]

    def send():
        for _, text in texts:
            client.transport.send_text(text)
    with sending(send):
        for i in range(2):
            faultfs.hangs("write", f"hang-write.{i}")
        wait_rest(server, after=lambda: not writable(client.transport.sock, 0))
        check_growth(server, before, 240 * MIB)
        faultfs.release()
    for ident, _ in texts:
        assert client.result(ident) == {}
    assert {(faultfs.real / path.name).stat().st_size for path in paths} == {size}


@pytest.mark.parametrize("lanes", [1, 256])
def test_small_after_large(fleet, faultfs, lanes):
    """What waits holds memory of its own size, not that of a larger message before it."""
    server = fleet.start("--concurrent-requests", str(lanes))
    client, other = server.client(), server.client()
    small, large = b64(bytes(256 * 1024)), "x" * (12 * MIB)
    waiting = []
    for i in range(40):
        path = faultfs.file(f"hang-write.{i}")
        other.error("none", large)
        waiting.append(client.send("fs/writeFile", {"path": uri(path), "dataBase64": small}))
        if i == 0:
            faultfs.hangs("write", path.name)
            before = server.rss()
        for _ in range(12):  # turns in which the server takes in all of it
            other.sync()
    check_growth(server, before, 100 * MIB)
    faultfs.release()
    for ident in waiting:
        assert client.result(ident) == {}


@pytest.mark.parametrize("size", [10, 5 * MIB])
def test_a_long_id(server, place, size):
    """The longest id fits into one frame with a block, and before a stream."""
    files = Files(server.client())
    sparse(place / "f", size)
    ident = "\x01" * MIB
    if size == 10:
        files.open(place / "f", "h")
        method, params = "fs/readBlock", {"handleId": "h", "offset": 0, "len": 10}
    else:
        method, params = "fs/readFile", {"path": uri(place / "f")}
    ws = files.client.transport
    ws.send_text(json.dumps({"id": ident, "method": method, "params": params}))
    assert json.loads(ws.receive())["id"] == ident
    ws.send_text(json.dumps({"id": ident + "x", "method": method, "params": params}))
    answer = json.loads(ws.receive())
    assert answer["id"] == -1 and answer["error"]["code"] == -32600
    files.client.sync()
