"""Outages: what is sent again, what is lost, how long it is tried, when it is given up."""

import itertools
import threading
import time

import pytest

from harness.core import LIB, Client, Code, Pending, State
from harness.cutting import DOWN, FIN, HOLE, RST, UP, Cut, Proxy
from harness.scripted import SESSION, TEXT, Gone, Scripted

STATUS = "environment/status"


def proxied(server, plan=()):
    return Proxy(server.address, plan)


def resumed(client, times):
    """Waits until the client has been lost and has come back so often."""
    client.until(lambda: client.states.count(State.RESUMING) >= times
                 and client.state() == State.READY)


@pytest.mark.parametrize("kind", [FIN, RST])
def test_a_cut_between_calls(shared, kind):
    with proxied(shared) as proxy, Client(proxy.url) as client:
        session = client.info().session
        for turn in range(1, 4):
            proxy.cut_all(kind)
            resumed(client, turn)
            assert client.rpc(STATUS) == (0, {"status": "ready"})
        assert client.info().session == session
        assert client.close() == 0


def run_once(proxy, passed=None):
    """Start, read, end. Every call answers, or is lost; a lost start was made once at most.

    passed: takes the bytes that had passed before the goodbye, after which nobody resumes.
    """
    outcome = []
    with Client(proxy.url, connect=False, connect_ms=20000) as client:
        first = client.connect()
        assert first == 0, client.error()
        start = {"processId": "p", "argv": ["sh", "-c", "cat; exit 7"], "cwd": "/", "env": {},
                 "tty": False, "pipeStdin": True}
        for method, params in (
                ("process/start", start),
                ("process/write", {"processId": "p", "chunk": "eHl6", "writeId": "1"}),
                ("process/closeStdin", {"processId": "p", "writeId": "2"}),
                ("process/wait", {"processId": "p"}),
                ("process/read", {"processId": "p", "afterSeq": 0, "maxBytes": None, "waitMs": 0})):
            code, value = client.rpc(method, params)
            while code == Code.ELOST:
                outcome.append("lost")
                code, value = client.rpc(method, params)
                if method == "process/start" and code == Code.EREMOTE:
                    assert "already" in client.error(), client.error()
                    code = 0
            assert code == 0, client.error()
        assert value["exitCode"] == 7 and value["closed"]
        assert [c["chunk"] for c in value["chunks"]] == ["eHl6"]
        if passed is not None:
            passed.update(proxy.passed)
        assert client.close() == 0, client.error()
    return "lost" if outcome else "whole"


def lengths(server):
    """The bytes of an uncut run, each way."""
    passed = {}
    with proxied(server) as proxy:
        assert run_once(proxy, passed) == "whole"
    return passed


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("twice", [False, True])
def test_s14_calls_cut_at_every_byte(shared, direction, twice):
    """In steps of a prime, so that all places are met in turn by the parameters."""
    total = lengths(shared)[direction]
    seen = {"whole": 0, "lost": 0}
    step = 89
    for at, kind in zip(range(1 + int(twice) * 5, total - 80, step), itertools.cycle((FIN, RST))):
        plan = [Cut(direction, at, kind)] + [Cut(direction, 40 + at % 500, RST)] * twice
        with proxied(shared, plan) as proxy:
            result = run_once(proxy)
            seen[result] += 1
            assert proxy.cuts, f"{plan} was not made"
            assert len(proxy.cuts) == len(plan), plan
    assert seen["whole"] and seen["lost"], seen


def test_what_was_not_sent_is_sent(fleet):
    """A call that begins in an outage waits for its end."""
    server = fleet.start()
    with proxied(server) as proxy, Client(proxy.url) as client:
        proxy.refusing = True
        proxy.cut_all()
        client.until(lambda: client.state() == State.RESUMING)
        asked = [client.ask(STATUS) for _ in range(10)]
        assert all(a.refused == 0 for a in asked)
        for _ in range(5):
            client.run(100)
        assert all(a.result is None for a in asked)
        proxy.refusing = False
        assert [a.wait() for a in asked] == [0] * 10
        # The caller can ask for a try at once.
        proxy.cut_all()
        client.until(lambda: client.states.count(State.RESUMING) == 2)
        LIB.xs_client_retry(client.handle)
        resumed(client, 2)


# -- scripted servers

def scripted(*scripts, **options):
    """A server whose connections run these scripts in turn, the last one again and again."""
    def script(c):
        scripts[min(c.number, len(scripts) - 1)](c)
    return Scripted(script, **options)


def serve(c, **more):
    """A server that answers every call."""
    c.open(**more)
    while True:
        c.answer(c.receive(), {"connection": c.number})


def hang_up(c):
    c.open()
    c.receive()


def again(code, message="no"):
    def script(c):
        c.upgrade()
        c.refuse(c.receive(), code, message)
        c.receive()
        c.receive()
    return script


def test_a_call_whose_answer_is_lost():
    with scripted(hang_up, serve) as server, Client(server.url) as client:
        assert client.rpc("x/y")[0] == Code.ELOST
        assert "x/y" in client.error()
        assert client.rpc("x/y") == (0, {"connection": 1})


def test_the_session_is_in_use_for_a_while():
    busy = again(-32010, "session is already attached")
    with scripted(hang_up, busy, busy, busy, serve) as server, Client(server.url) as client:
        assert client.rpc("x/y")[0] == Code.ELOST
        assert client.rpc("x/y") == (0, {"connection": 4})
    with Scripted(busy) as server:
        client = Client(server.url, connect=False, session_id=SESSION, resume_ms=600)
        assert client.connect() == Code.EGONE
        assert "session is in use" in client.error() and len(server.connections) > 3
        client.free()


@pytest.mark.parametrize("second, code, why", [
    (again(-32600, "unknown session id S"), Code.EGONE, "session is lost"),
    (lambda c: c.open(session="another"), Code.EPROTO, "another session"),
    (lambda c: (c.read_head(), c.raw(b"HTTP/1.1 401 x\r\n\r\n")), Code.EAUTH, "401"),
])
def test_what_ends_a_session(second, code, why):
    with scripted(hang_up, second) as server, Client(server.url) as client:
        lost = client.ask("x/y")
        client.until(lambda: client.state() == State.FAILED)
        assert lost.wait() in (code, Code.ELOST) and why in client.error()
        assert client.rpc("x/y")[0] == code and why in client.error()
        assert len(server.connections) == 2


def test_s18_a_server_that_forgot(fleet):
    server = fleet.start()
    with proxied(server) as proxy, Client(proxy.url) as client:
        other = fleet.start()
        proxy.target = other.address
        proxy.cut_all()
        client.until(lambda: client.state() == State.FAILED)
        assert client.rpc(STATUS)[0] == Code.EGONE and "session is lost" in client.error()


def test_close_code_1001():
    """The server goes away: a short patience."""
    def leave(c):
        c.open()
        c.frame(b"\x03\xe9bye", 8)
        c.receive()

    def refuse(c):
        c.sock.close()
    with scripted(leave, refuse) as server, Client(server.url) as client:
        begin = time.monotonic()
        client.until(lambda: client.state() == State.FAILED)
        assert time.monotonic() - begin >= 1.5
        assert client.rpc("x/y")[0] == Code.EGONE
        assert any("1001 bye" in line for _, line in client.lines)


def test_an_outage_has_a_limit():
    with scripted(hang_up, lambda c: c.sock.close()) as server, \
            Client(server.url, resume_ms=900) as client:
        code, _ = client.rpc("x/y")
        assert code == Code.EGONE and "could not resume" in client.error()
        assert client.state() == State.FAILED and client.states == [
            State.CONNECTING, State.READY, State.RESUMING, State.FAILED]
        assert 3 < len(server.connections) < 15


def test_the_limit_counts_each_outage():
    """Many outages, together longer than the limit."""
    turns = 6

    def script(c):
        c.open()
        if c.number % 4 in (1, 2) and c.number < 4 * turns:
            return
        c.answer(c.receive(), {"connection": c.number})
    with Scripted(script) as server, Client(server.url, resume_ms=1500) as client:
        for _ in range(turns * 2):
            code, _ = client.rpc("x/y")
            assert code in (0, Code.ELOST), client.error()


@pytest.mark.parametrize("payload", [
    b"{", b"[]", b"5", b"{}", b'{"id":1}', b'{"id":[],"result":1}', b'{"method":5}',
    b'{"id":7,"result":1,"error":{"code":1,"message":""}}', b'{"id":7,"error":5}',
    b'{"id":7,"error":{"code":"x","message":""}}', b'{"a":1,"a":2}', b"\xff\xfe"])
def test_malformed_messages(payload):
    """The connection is dropped; the third time for good."""
    def script(c):
        c.open()
        c.frame(payload)
        try:
            c.receive()
        except Gone:
            pass
    with Scripted(script) as server, Client(server.url) as client:
        client.until(lambda: client.state() == State.FAILED)
        assert client.rpc("x/y")[0] == Code.EPROTO
        assert len(server.connections) == 3


@pytest.mark.parametrize("frame", [
    b"\x81\x81\0\0\0\0a", b"\xc1\x01a", b"\x83\x01a", b"\x81\x7e\x00\x01a", b"\x09\x00",
    b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", b"\x81\x7f\0\0\0\0\x05\0\0\0", b"\x88\x01a"])
def test_malformed_frames(frame):
    def script(c):
        c.open()
        c.raw(frame)
        c.take(1000)
    with Scripted(script) as server, Client(server.url) as client:
        client.until(lambda: client.state() == State.FAILED)
        assert client.rpc("x/y")[0] == Code.EPROTO
        assert len(server.connections) == 3


def test_what_is_ignored():
    """Unknown notifications, members and answers; requests get -32601."""
    def script(c):
        c.open(later=5)
        request = c.receive()
        c.note("no/such", {"x": 1})
        c.send({"method": "none"})
        c.send({"id": 999, "result": {}})
        c.send({"id": -1, "error": {"code": -32600, "message": "stray"}})
        c.send({"id": 5, "method": "network/policyRequest", "params": {}})
        assert c.receive() == {"id": 5, "error": {"code": -32601,
                                                  "message": "this client serves no method"}}
        c.frame(b"p", 9)
        c.frame(b'{"id":%d,"jsonr' % request["id"], TEXT, False)
        c.frame(b"", 9)
        c.frame(b'pc":"2.0","result":{"a":[1.50,"\\u00e9\\n",null,true,{}]}}', 0)
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        assert client.rpc("x/y") == (0, {"a": [1.5, "\u00e9\n", None, True, {}]})
        assert client.state() == State.READY


# -- silence

def test_s20_a_silent_connection_is_lost(fleet):
    """A black hole is noticed by pings; the same session comes back after it."""
    server = fleet.start()
    with proxied(server, [None]) as proxy, \
            Client(proxy.url, ping_ms=100, dead_ms=400) as client:
        proxy.set_hole(True)
        lost = client.ask(STATUS)
        client.until(lambda: client.state() == State.RESUMING)
        proxy.set_hole(False)
        assert lost.wait() in (0, Code.ELOST)
        resumed(client, 1)
        assert any("nothing came" in line for _, line in client.lines)
        assert client.rpc(STATUS)[0] == 0


def test_s20_for_good():
    holes = [Cut(UP, 0, HOLE)] * 100
    with Scripted(serve) as real, Proxy(("127.0.0.1", real.port), [None, *holes]) as proxy, \
            Client(proxy.url, ping_ms=100, dead_ms=300, resume_ms=1000) as client:
        assert client.rpc("x/y")[0] == 0
        proxy.set_hole(True)
        code, _ = client.rpc("x/y")
        assert code == Code.EGONE, client.error()
        assert client.state() == State.FAILED


def test_s19_a_server_that_stops_for_a_while(fleet):
    """It is pinged, and answers in time."""
    server = fleet.start()
    with Client(server.url, ping_ms=50, dead_ms=60000) as client:
        server.send_signal(19)
        asked = client.ask(STATUS)
        for _ in range(8):
            client.run(100)
        assert asked.result is None
        server.send_signal(18)
        assert asked.wait() == 0
        assert client.states == [State.CONNECTING, State.READY]


def test_no_ping_while_nothing_is_awaited():
    counts = []

    def script(c):
        c.open()
        c.silent = True
        counts.append(c)
        request = c.receive()
        time.sleep(0)
        c.answer(request, {})
        c.receive()
    with Scripted(script) as server, Client(server.url, ping_ms=20, dead_ms=100) as client:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            client.run(50)
        assert client.state() == State.READY and counts[0].pings == 0
        assert client.rpc("x/y")[0] == 0


def test_the_silence_of_a_stopped_client_does_not_count():
    """Nobody pinged, so nobody can be dead."""
    asked = threading.Event()

    def script(c):
        c.open()
        request = c.receive()
        asked.wait(60)
        c.answer(request, {"late": 1})
        c.receive()
    with Scripted(script) as server, Client(server.url, ping_ms=100, dead_ms=300) as client:
        pending = client.ask("x/y")
        client.run(10)
        time.sleep(0.6)  # as if the process was stopped
        asked.set()
        assert pending.wait() == 0
        assert client.states == [State.CONNECTING, State.READY]


# -- the end

def test_detach_and_resume(fleet):
    server = fleet.start()
    with Client(server.url, session_ttl_ms=60000) as client:
        assert client.rpc("process/start", {"processId": "p", "argv": ["sleep", "100"], "cwd": "/",
                                            "env": {}, "tty": False})[0] == 0
        code, session = client.detach()
        assert code == 0 and client.state() == State.CLOSED
    with Client(server.url, session_id=session) as client:
        code, value = client.rpc("process/list")
        assert code == 0 and [p["processId"] for p in value["processes"]] == ["p"]
        assert client.close() == 0


def test_a_detach_that_the_server_cannot_grant():
    def script(c):
        c.open()
        c.receive()
    with Scripted(script) as server, Client(server.url, session_ttl_ms=60000) as client:
        code, _ = client.detach()
        assert code == Code.ENOTSUP and "30000 ms" in client.error()
        assert client.state() == State.READY


def test_close_says_goodbye():
    with Scripted(hang_up) as server, Client(server.url) as client:
        pending = client.ask("x/y")
        del pending
        assert client.close() == 0
        assert client.state() == State.CLOSED and client.close() == 0
        assert server.connections[0].close_code in (1000, None)


def test_a_close_whose_peer_is_silent():
    gate = threading.Event()

    def script(c):
        c.open()
        gate.wait(60)
    with Scripted(script) as server, Client(server.url) as client:
        assert client.close() == 0
        gate.set()


def test_free_while_it_connects(shared):
    client = Client(shared.url, connect=False)
    pending = Pending(client)
    assert client.connect(pending) == 0
    client.free()
    assert pending.result is None
