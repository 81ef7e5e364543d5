"""Asynchronous calls, callbacks, the descriptor, limits."""

import ctypes
import os
import select
import signal
import threading
import time

import pytest

from execserver import _lib
from harness.core import LIB, Client, Code, Pending, State
from harness.scripted import Scripted

STATUS = "environment/status"


def test_s25_blocking_inside_callbacks(shared):
    """A blocking call, process and run in a callback are XS_EBUSY; others may be started."""
    seen, more = [], []
    with Client(shared.url) as client:
        def then(_):
            seen.append((client.rpc(STATUS)[0], LIB.xs_client_process(client.handle),
                         LIB.xs_client_run(client.handle, 0), client.close()))
            more.append(client.ask(STATUS))
        client.ask(STATUS, then=then)
        client.until(lambda: more and more[0].result is not None)
        assert seen == [(Code.EBUSY,) * 4] and more[0].result == 0
        assert client.rpc(STATUS)[0] == 0

        def on_state(*_):
            seen.append(client.rpc(STATUS)[0])
        function = _lib.OnState(on_state)
        LIB.xs_client_on_state(client.handle, function, None)
        assert client.close() == 0
        client.run(0)
        assert seen[1:] == [Code.EBUSY]


@pytest.mark.parametrize("by", ["process", "blocking", "state", "log"])
def test_a_callback_may_free_its_client(shared, by):
    client = Client(shared.url, connect=False)
    handle = client.handle
    done = []

    def free(*_):
        if not done:
            done.append(1)
            client.free()
    if by in ("state", "log"):
        function = _lib.OnState(free) if by == "state" else _lib.OnLog(free)
        if by == "state":
            LIB.xs_client_on_state(handle, function, None)
        else:
            LIB.xs_client_on_log(handle, function, None)
        assert LIB.xs_client_connect(handle, None) in (0, Code.ECANCELED)
        assert done
        return
    assert client.connect() == 0
    others = [Pending(client) for _ in range(3)]
    client.ask(STATUS, then=free)
    for other in others:
        assert LIB.xs_client_rpc(handle, STATUS.encode(), None, None, other.ref()) == 0
    if by == "process":
        while not done:
            LIB.xs_client_run(handle, 100)
    else:
        assert LIB.xs_client_rpc(handle, b"process/list", None, None, None) == Code.ECANCELED
    assert [o.result for o in others] == [None] * 3


def test_cancel(shared):
    with Client(shared.url) as client:
        read = {"processId": "p", "afterSeq": 0, "maxBytes": None, "waitMs": 600000}
        start = {"processId": "p", "argv": ["cat"], "cwd": "/", "env": {}, "tty": False,
                 "pipeStdin": True}
        assert client.rpc("process/start", start)[0] == 0
        waiting = client.ask("process/read", read)
        client.run(50)
        assert waiting.result is None
        waiting.cancel()
        assert waiting.result is None  # later, from process
        assert waiting.wait() == Code.ECANCELED
        waiting.cancel()  # harmless
        # Before it was sent, and what is done already.
        early = client.ask(STATUS)
        early.cancel()
        assert early.wait() == Code.ECANCELED
        assert client.rpc(STATUS)[0] == 0
        assert client.close() == 0


def test_a_time_limit_for_calls():
    def script(c):
        c.open()
        c.receive()
        request = c.receive()
        c.answer(request, {"second": 1})
        c.receive()
    with Scripted(script) as server, Client(server.url, call_ms=150) as client:
        assert client.rpc("x/y")[0] == Code.ETIMEOUT
        assert "150 ms" in client.error()
        assert client.rpc("x/y") == (0, {"second": 1})


def test_s24_the_descriptor_alone(shared):
    """poll and process do everything, timers and failures too."""
    client = Client(shared.url, connect=False)
    fd = LIB.xs_client_fd(client.handle)
    poll = select.poll()
    poll.register(fd, select.POLLIN)

    def until(condition):
        turns = 0
        while not condition():
            assert poll.poll(60000), "nothing makes it readable"
            assert LIB.xs_client_process(client.handle) == 0
            turns += 1
            assert turns < 1000, "it spins"
    connect = Pending(client)
    assert client.connect(connect) == 0
    until(lambda: connect.result is not None)
    assert connect.result == 0 and LIB.xs_client_fd(client.handle) == fd
    for _ in range(20):
        asked = [client.ask(STATUS) for _ in range(5)]
        until(lambda: all(a.result is not None for a in asked))
        assert [a.result for a in asked] == [0] * 5
    assert LIB.xs_client_process(client.handle) == 0
    assert not poll.poll(100) or LIB.xs_client_process(client.handle) == 0
    ended = Pending(client)
    assert client.close(ended) == 0
    until(lambda: ended.result is not None)
    assert ended.result == 0
    late = Pending(client)
    assert client.close(late) == 0
    until(lambda: late.result is not None)
    client.free()


def test_s24_timers_make_it_readable():
    def script(c):
        c.open()
        c.receive()
        c.receive()
    with Scripted(script) as server:
        client = Client(server.url, call_ms=200)
        fd = LIB.xs_client_fd(client.handle)
        asked = client.ask("x/y")
        assert 0 < LIB.xs_client_timeout_ms(client.handle) <= 200
        end = time.monotonic() + 60
        while asked.result is None and time.monotonic() < end:
            select.select([fd], [], [], 60)
            LIB.xs_client_process(client.handle)
        assert asked.result == Code.ETIMEOUT
        client.free()


def test_an_idle_client_sleeps(shared):
    with Client(shared.url) as client:
        fd = LIB.xs_client_fd(client.handle)
        assert client.rpc(STATUS)[0] == 0
        for _ in range(5):
            LIB.xs_client_process(client.handle)
        assert not select.select([fd], [], [], 0.2)[0]


def test_wake(shared):
    with Client(shared.url) as client:
        threading.Timer(0.1, LIB.xs_client_wake, [client.handle]).start()
        begin = time.monotonic()
        assert client.run(60000) == 0
        assert time.monotonic() - begin < 50
        LIB.xs_client_wake(client.handle)
        assert select.select([LIB.xs_client_fd(client.handle)], [], [], 60)[0]
        client.run(0)
        assert not select.select([LIB.xs_client_fd(client.handle)], [], [], 0.1)[0]


def test_1024_calls():
    """One more is XS_EBUSY; their answers come in any order."""
    gate = threading.Event()

    def script(c):
        c.open()
        requests = [c.receive() for _ in range(1024)]
        gate.wait(60)
        for request in reversed(requests):
            c.answer(request, {})
        c.answer(c.receive(), {})
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        asked = [client.ask("x/y") for _ in range(1024)]
        assert all(a.refused == 0 for a in asked)
        over = client.ask("x/y")
        assert over.refused == Code.EBUSY and "1024" in client.error()
        gate.set()
        client.until(lambda: all(a.result == 0 for a in asked))
        assert over.result is None and client.rpc("x/y")[0] == 0


def test_the_queue_is_bounded(shared):
    big = {"text": "x" * 1500000}
    with Client(shared.url, queue=4 << 20) as client:
        os.kill(shared.pid, signal.SIGSTOP)
        try:
            asked = [client.ask("x/y", big) for _ in range(40)]
        finally:
            os.kill(shared.pid, signal.SIGCONT)
        refused = [a.refused for a in asked]
        assert refused[0] == 0 and refused[-1] == Code.EBUSY
        client.until(lambda: all(a.result is not None for a in asked if a.refused == 0))
        too_big = client.ask("x/y", {"text": "x" * (3 << 20)})
        assert too_big.refused == Code.EINVAL
        assert client.rpc(STATUS)[0] == 0


def test_wrong_requests(shared):
    with Client(shared.url) as client:
        for method, params in ((b"", None), (b'a"b', None), (b"x" * 300, None), (b"a", b"[]"),
                               (b"a", b"{"), (b"a", b"\xff"), (b"a", b"{}{}")):
            assert LIB.xs_client_rpc(client.handle, method, params, None, None) == Code.EINVAL
        assert client.rpc("nosuch")[0] == Code.ENOTSUP and client.error_rpc() == -32601
        code, _ = client.rpc("fs/readFile", {"path": "file:///nosuch"})
        assert code == Code.EREMOTE and client.error_rpc() == -32004
        assert LIB.xs_error_os(LIB.xs_client_error(client.handle)) == 2


def test_a_large_answer_and_a_large_request(shared, place):
    """Fragments on the way up, one frame or more on the way down."""
    blob = os.urandom(1400000).hex()[:1300000]
    with Client(shared.url) as client:
        path = f"file://{place}/x"
        code, _ = client.rpc("fs/writeFile", {"path": path, "dataBase64": blob[:1300000 // 4 * 4]})
        assert code == 0, client.error()
        code, value = client.rpc("fs/readFile", {"path": path})
        assert code == 0 and value["dataBase64"] == blob[:1300000 // 4 * 4]


def test_before_and_after():
    client = Client("ws://127.0.0.1:1", connect=False)
    assert client.rpc(STATUS)[0] == Code.ECONNECT and "not connected" in client.error()
    assert client.state() == State.NEW and not LIB.xs_client_info(client.handle)
    assert client.close() == 0 and client.state() == State.CLOSED
    client.free()
    LIB.xs_client_free(None)
    LIB.xs_options_free(None)
    LIB.xs_call_cancel(None)
    LIB.xs_bytes_free(None)


def test_many_clients_leave_nothing(shared):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))
    before = descriptors()
    for turn in range(20):
        client = Client(shared.url)
        if turn % 2:
            assert client.rpc(STATUS)[0] == 0
        if turn % 3 == 0:
            client.close()
        client.free()
    assert descriptors() == before
    assert ctypes.sizeof(_lib.Call) == 64
