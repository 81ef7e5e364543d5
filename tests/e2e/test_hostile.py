"""Nothing a peer sends crashes, hangs or bloats the server."""

import json
import os
import random
import socket
import struct

import pytest

from harness.http import Ended
from harness.rpc import b64
from harness.settings import SANITIZED
from harness.waiting import until
from harness.ws import (BINARY, CLOSE, CONT, PING, TEXT, Closed, Refused, connect_tcp, frame, head,
                        upgrade_request)

MIB = 1 << 20
SEED = int(os.environ.get("E2E_SEED", "1"))


@pytest.fixture
def guarded(server):
    """A server with a witness: its process, its memory and a connection must survive."""
    witness = server.client()
    process = witness.start("cat", pipeStdin=True)
    before, fds = server.rss(), server.fds()
    yield server
    assert server.running()
    witness.write(process, "alive\n")
    witness.wait_output(process, "alive\n")
    for client in server.clients:
        if client is not witness.transport:
            client.close()
    server.wait_fds(fds)
    until(lambda: not server.zombies(), "no zombies")
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB


def drain(ws):
    """Reads until the server ends the connection or has nothing to say."""
    try:
        while ws.receive(0.02) is not None:
            pass
    except Closed:
        pass


def throw(sock, data):
    """Sends and closes, whatever the peer does."""
    sock.settimeout(5)
    try:
        sock.sendall(data)
    except OSError:
        pass
    sock.close()


def test_random_bytes_on_tcp(guarded):
    rng = random.Random(SEED)
    for _ in range(300):
        throw(connect_tcp(guarded.address), rng.randbytes(rng.choice([1, 10, 100, 5000, 70000])))


def test_random_frames(guarded):
    rng = random.Random(SEED)
    for _ in range(100):
        ws = guarded.websocket()
        data = b"".join(
            frame(rng.choice([0, 1, 1, 1, 2, 8, 9, 10, rng.randrange(16)]),
                  rng.randbytes(rng.choice([0, 1, 5, 125, 126, 3000])),
                  fin=rng.random() < 0.7, rsv=rng.choice([0] * 20 + [1, 4]))
            for _ in range(rng.randrange(1, 20)))
        try:
            ws.send_bytes(data)
        except OSError:
            pass
        ws.close()


def test_random_garbage_after_the_upgrade(guarded):
    rng = random.Random(SEED + 1)
    for _ in range(200):
        ws = guarded.websocket()
        throw(ws.sock, rng.randbytes(rng.choice([1, 2, 3, 14, 200, 10000])))


def test_truncated_frames(guarded):
    whole = frame(TEXT, b'{"id":1,"method":"initialize","params":{"clientName":"x"}}')
    for cut in range(len(whole)):
        ws = guarded.websocket()
        ws.send_bytes(whole[:cut])
        ws.drop()


def test_truncated_upgrades(guarded):
    request = upgrade_request()
    for cut in range(0, len(request), 3):
        sock = connect_tcp(guarded.address)
        throw(sock, request[:cut])


def test_mutated_requests(guarded):
    """Valid requests with bytes changed, cut, doubled: an answer or an end, never a crash."""
    rng = random.Random(SEED + 2)
    client = guarded.client()
    seeds = [
        {"id": 1, "method": "process/start", "params": client.start_params(["/bin/true"])},
        {"id": 2, "method": "process/read", "params": {"processId": "p", "afterSeq": 1,
                                                       "maxBytes": 5, "waitMs": 1}},
        {"id": 3, "method": "process/write", "params": {"processId": "p", "chunk": b64("hello"),
                                                        "writeId": "w"}},
        {"id": 4, "method": "process/signal", "params": {"processId": "p", "signal": "interrupt"}},
        {"id": 5, "method": "environment/info", "params": {}},
    ]
    pool = b'{}[]",:0123456789eE+-.\\/utfnl \xc3\xa9\x00\x01\xff'
    for _ in range(3000):
        data = bytearray(json.dumps(rng.choice(seeds)).encode())
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.choice(pool)
            elif kind == 1:
                del data[at:at + rng.randrange(1, 10)]
            elif kind == 2:
                data[at:at] = data[at:at + rng.randrange(1, 40)]
            else:
                data.insert(at, rng.choice(pool))
            if not data:
                data = bytearray(b"{")
        # Binary: invalid UTF-8 is malformed JSON there, not the end of the connection.
        client.transport.send_frame(BINARY, bytes(data))
    wait_for_id(client.transport, client.send("process/read", {"processId": "last"}))


def wait_for_id(ws, ident):
    while True:
        data = ws.receive()
        assert data is not None, "connection hangs"
        if json.loads(data).get("id") == ident:
            return


def test_json_bombs(guarded):
    client = guarded.client()
    for text in (b"[" * 1000000, b'{"a":' * 500000, b"[" + b"1," * 5000000, b'"' + b"x" * 20000000,
                 b'{"id":1,"method":"x","params":{' + b'"a":1,' * 3000000, b"1" * 10000000,
                 b'{"id":' + b"9" * 1000000 + b',"method":"x"}', b" " * 30000000,
                 b'"' + b"\\u0041" * 3000000 + b'"',
                 b'{"id":1,"method":"x","x":"' + b"\\" * 1000001):
        client.send_raw(text)
        assert client.answer(-1)["error"]["code"] == -32600
    client.sync()


def test_hash_collisions_are_harmless(guarded):
    """Many keys of equal length and prefix; the work stays bounded."""
    client = guarded.client()
    keys = ",".join(f'"{"a" * 200}{i:06}":0' for i in range(100000))
    client.send_raw('{"id":77,"method":"environment/status",' + keys + "}")
    assert client.answer(77)["result"] == {"status": "ready"}


def test_huge_strings_in_answers(guarded):
    client = guarded.client()
    big = "x" * MIB
    client.send_raw(json.dumps({"id": big, "method": "environment/status"}))
    assert client.answer(big)["result"] == {"status": "ready"}
    assert client.error("process/read", {"processId": big})[0] in (-32600, -32602)
    assert client.error("initialize", {"clientName": big})[0] == -32600
    assert client.error(big)[0] == -32601
    assert client.start_error([big])[0] == -32603
    assert client.start_error(["/bin/true"], cwd="/" + big)[0] in (-32602, -32603)
    assert client.error("process/signal", {"processId": "p", "signal": big})[0] == -32602


def test_connect_flood(guarded):
    for _ in range(5):
        sockets = [connect_tcp(guarded.address) for _ in range(200)]
        for sock in sockets:
            sock.close()


def test_half_open_upgrades(fleet):
    """More half-open requests than there are places: later clients get in when they go."""
    server = fleet.start("--max-connections", "2000")
    witness = server.client()
    before, fds = server.rss(), server.fds()
    half = upgrade_request()[:-2]
    sockets = []
    for _ in range(1500):
        sock = connect_tcp(server.address)
        sock.send(half)
        sockets.append(sock)
    witness.sync()
    assert server.client().run("echo in").output() == b"in\n"
    if not SANITIZED:
        assert (server.rss() - before) / len(sockets) < 16384
    for sock in sockets:
        sock.close()
    server.wait_fds(fds + 1)


def test_more_connections_than_places(fleet):
    server = fleet.start("--max-connections", "20")
    witness = server.client()
    fds = server.fds()
    sockets = [connect_tcp(server.address) for _ in range(300)]
    witness.sync()
    # Those that make room are closed at the end of the turn that accepts others.
    until(lambda: server.fds() <= fds + 20, "the maximum")
    for sock in sockets:
        sock.close()

    def enter():
        try:
            return server.client()
        except (Refused, Ended, Closed, OSError):
            return None
    until(enter, "a free place").sync()


def test_idle_connections_are_small(fleet):
    server = fleet.start("--max-connections", "2000")
    server.client().sync()
    before = server.rss()
    clients = [server.client() for _ in range(500)]
    for client in clients:
        client.sync()
    if not SANITIZED:
        assert (server.rss() - before) / len(clients) < 16384


def test_reset_in_every_state(guarded):
    def after_connect():
        return connect_tcp(guarded.address)

    def after_upgrade():
        return guarded.websocket().sock

    def after_initialize():
        return guarded.client().transport.sock

    def in_a_message():
        ws = guarded.client().transport
        ws.send_bytes(head(TEXT, 1000000) + b"x" * 5000)
        return ws.sock

    def in_a_fragment():
        ws = guarded.client().transport
        ws.send_frame(TEXT, b"{", fin=False)
        ws.send_frame(CONT, b"x", fin=False)
        return ws.sock

    def while_answering():
        client = guarded.client()
        process = client.run("head -c 1000000 /dev/zero")
        for _ in range(20):
            client.send("process/read", {"processId": process.name})
        return client.transport.sock

    def after_close():
        ws = guarded.client().transport
        ws.send_close()
        return ws.sock

    for state in (after_connect, after_upgrade, after_initialize, in_a_message, in_a_fragment,
                  while_answering, after_close):
        for linger in (True, False):
            sock = state()
            if linger:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()


def test_frames_after_a_protocol_error_are_ignored(guarded):
    client = guarded.client()
    start = json.dumps({"id": 1, "method": "process/start", "params": client.start_params(
        ["/bin/sh", "-c", "exit 0"], processId="late")}).encode()
    try:
        client.transport.send_bytes(frame(3, b"") + frame(TEXT, start) * 100)
    except OSError:
        pass
    with pytest.raises(Closed) as end:
        client.transport.receive()
    assert end.value.code in (1002, None)


def test_control_frame_storm(guarded):
    client = guarded.client()
    storm = (frame(PING, b"x" * 125) + frame(10, b"y" * 125)) * 5000
    client.transport.send_while_reading(storm)
    client.sync()
    client.transport.send_while_reading(frame(TEXT, b"{", fin=False)
                                        + frame(CONT, b" ", fin=False) * 50000
                                        + frame(CONT, b"}"))
    assert client.answer(-1)["error"]["code"] == -32600
    client.transport.send_frame(CLOSE)
    drain(client.transport)


def test_requests_for_unknown_things(guarded):
    client = guarded.client()
    for i in range(2000):
        client.send("process/read", {"processId": f"{i}", "waitMs": 10**9})
        client.send("process/write", {"processId": f"{i}", "chunk": ""})
        client.send("process/terminate", {"processId": f"{i}"})
    client.barrier()
    assert len(client.answers) == 6000


def test_write_ids_are_not_kept_whole(guarded):
    """4,096 ids of 20 kB each would be 80 MB."""
    client = guarded.client()
    process = client.start("cat >/dev/null", pipeStdin=True)
    count = 500 if SANITIZED else 2000
    for i in range(count):
        client.write(process, "x", writeId=f"{i}" + "y" * 20000)
    client.terminate(process)
    client.wait_closed(process)


def test_start_storm(guarded):
    client = guarded.client()
    idents = []
    for i in range(300):
        idents.append(client.send("process/start", client.start_params(
            ["/bin/true"] if i % 3 else ["/no/such"], processId=f"s{i}", tty=bool(i % 2))))
        idents.append(client.send("process/terminate", {"processId": f"s{i}"}))
    for ident in idents:
        client.answer(ident)
    for name in list(client.processes):
        client.wait_closed(client.processes[name])
