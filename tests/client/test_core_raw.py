"""Copies as raw bytes over GET and PUT of /v1/files, and the way back to blocks."""

import hashlib
import os
import socket
import threading

import pytest

from execserver import _lib
from harness.core import LIB, Client, Pending, options
from harness.cutting import DOWN, HOLE, RST, UP, Cut, Proxy
from harness.settings import SANITIZED
from test_core_copies import BLOCK, SIZE, copy, resident, stop_half

WAYS = pytest.mark.parametrize("up", [True, False], ids=["up", "down"])


@pytest.fixture(name="source")
def large_file(place):
    path = place / "source"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture(name="raw")
def with_http_files(fleet):
    return fleet.start("--http-files")


def same(place, source, name="copy"):
    assert (place / name).read_bytes() == source.read_bytes()
    assert sorted(os.listdir(place)) == sorted([name, source.name])


class Detour:
    """Before a server: a request for raw files gets `answer`, a function of its socket and the
    bytes that have come, on a thread of its own. Everything else passes."""

    def __init__(self, server, answer):
        self.address, self.answer, self.asked = server.address, answer, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.socks, self.threads = [], []
        self.begin(self.serve)

    def begin(self, function, *args):
        thread = threading.Thread(target=function, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        for sock in [self.listener, *self.socks]:
            sock.close()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.socks.append(sock)
            self.begin(self.talk, sock)

    def talk(self, near):
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                more = near.recv(65536)
                if not more:
                    return
                data += more
            if b" /v1/files" in data.split(b"\r\n")[0]:
                self.asked.append(data.split(b"\r\n")[0])
                self.answer(near, data)
                return
            far = socket.create_connection(self.address)
            self.socks.append(far)
            far.sendall(data)
            self.begin(self.pump, far, near)
            self.pump(near, far)
        except OSError:
            pass

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def swallow(sock, data):
    """Reads the body of a PUT."""
    head, _, rest = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]) - len(rest)
    while left > 0:
        left -= len(sock.recv(min(left, 1 << 20)))


@WAYS
def test_bytes_pass_as_they_are(raw, place, source, up):
    with Proxy(raw.address) as proxy, Client(proxy.url) as client:
        assert copy(client, up, source, place / "copy") == 0
        passed = proxy.passed["up" if up else "down"]
        assert SIZE < passed < SIZE * 1.02 + 2 * BLOCK, "Base64 would be a third more"
        assert proxy.connections == 2
        same(place, source)


@WAYS
def test_a_token_goes_along(fleet, place, source, up):
    digest = hashlib.sha256(b"secret").hexdigest()
    server = fleet.start("--http-files", "--ws-auth", "capability-token", "--ws-token-sha256",
                         digest)
    with Proxy(server.address) as proxy:
        with Client(proxy.url, token="secret") as client:
            assert copy(client, up, source, place / "copy") == 0
            assert proxy.passed["up" if up else "down"] < SIZE * 1.02 + 2 * BLOCK
    same(place, source)


@WAYS
def test_a_part_is_gone_on_with(raw, place, source, up):
    with Proxy(raw.address) as proxy, Client(proxy.url) as client:
        stop_half(client, up, source, place / "copy")
        before = dict(proxy.passed)
        assert copy(client, up, source, place / "copy") == 0
        way = "up" if up else "down"
        # The last MiB is compared, as Base64, of the part and of the whole.
        assert proxy.passed[way] - before[way] < SIZE / 2 * 1.02 + 4 * BLOCK
        same(place, source)


@pytest.mark.parametrize("name", ["a b&at=9#?%41+.x", b"\xff\xfe=\x80", "\u00e9\u4e16"])
def test_names(raw, place, name):
    """Odd ones take the same way."""
    at = os.path.join(os.fsencode(place), os.fsencode(name))
    with open(at, "wb") as file:
        file.write(os.urandom(8 * BLOCK))
    with Proxy(raw.address) as proxy, Client(proxy.url) as client:
        assert copy(client, False, at, place / "down") == 0
        assert copy(client, True, place / "down", at + b"-up") == 0
        assert sum(proxy.passed.values()) < 19 * BLOCK and proxy.connections == 3
    with open(at, "rb") as one, open(at + b"-up", "rb") as other:
        assert one.read() == other.read() == (place / "down").read_bytes()


def test_what_goes_in_blocks(raw, place):
    """Small files, files in a sandbox, and those of a server behind a path."""
    (place / "small").write_bytes(bytes(BLOCK))
    (place / "large").write_bytes(bytes(8 * BLOCK))
    with Proxy(raw.address) as proxy:
        with Client(proxy.url) as client:
            assert copy(client, True, place / "small", place / "1") == 0
            assert copy(client, False, place / "large", place / "2", sandbox="read-only") == 0
        assert proxy.connections == 1
    assert (place / "2").stat().st_size == 8 * BLOCK


@WAYS
def test_cuts(raw, place, source, up):
    """Of all connections at once."""
    with Proxy(raw.address) as proxy, Client(proxy.url) as client:
        marks = [SIZE // 5, SIZE // 2, SIZE - SIZE // 10]

        def progress(p):
            if marks and p.bytes >= marks[0]:
                marks.pop(0)
                proxy.cuts.append(p.bytes)
                proxy.cut_all(RST)
            return 0
        assert copy(client, up, source, place / "copy", progress) == 0
        assert proxy.cuts, "nothing was cut"
        same(place, source)


@WAYS
def test_silence(raw, place, source, up):
    """A path that swallows everything for a while."""
    with Proxy(raw.address) as proxy, Client(proxy.url, ping_ms=300, dead_ms=1000) as client:
        timers = []

        def progress(p):
            if not timers and p.bytes >= SIZE // 4:
                proxy.set_hole(True)
                timers.append(threading.Timer(2.0, proxy.set_hole, [False]))
                timers[0].start()
            return 0
        assert copy(client, up, source, place / "copy", progress) == 0
        assert timers, "nothing was swallowed"
        timers[0].join()
        same(place, source)


@WAYS
@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 404 Not Found\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 41943040\r\n\r\n" + bytes(1000),
    b"HTTP/1.1 206 Partial Content\r\n\r\n",
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-41943039/41943040\r\n\r\nx",
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-41943039/41943041\r\n\r\nx",
    b"HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Range: bytes 0-41943039/41943040\r\n\r\n1\r\nx",
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-41943039/41943040\r\n\r\nshort",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + b"HTTP/1.1 500 No\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 206 Partial Content\r\n\r\n", b"nonsense\r\n\r\n", b"x" * 70000, b""])
def test_another_answer(raw, place, source, up, answer):
    """Whatever the answer is, blocks go on and the copy is right."""
    def respond(sock, _):
        sock.sendall(answer)
        sock.close()
    with Detour(raw, respond) as detour, Client(detour.url) as client:
        assert copy(client, up, source, place / "copy") == 0
        assert len(detour.asked) == 1
        assert detour.asked[0].startswith(b"PUT" if up else b"GET")
        assert any("goes on in blocks" in line for _, line in client.lines)
        same(place, source)


def test_bytes_that_went_elsewhere(raw, place, source):
    """Another server behind the proxy has taken them, and says so."""
    def respond(sock, data):
        swallow(sock, data)
        sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    with Detour(raw, respond) as detour, Client(detour.url) as client:
        assert copy(client, True, source, place / "copy") == 0
        assert len(detour.asked) == 1
        same(place, source)


def test_bytes_from_elsewhere(raw, place, source):
    """A file of the same size, of another server behind the proxy."""
    def respond(sock, _):
        sock.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-%d/%d\r\n\r\n"
                     % (SIZE - 1, SIZE) + bytes(SIZE))
    with Detour(raw, respond) as detour, Client(detour.url) as client:
        assert copy(client, False, source, place / "copy") == 0
        assert len(detour.asked) == 1
        same(place, source)


def test_more_bytes_than_the_file_has(raw, place, source):
    def respond(sock, _):
        sock.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-%d/%d\r\n\r\n"
                     % (SIZE - 1, SIZE))
        sock.sendall(source.read_bytes() + b"more" * BLOCK)
    with Detour(raw, respond) as detour, Client(detour.url) as client:
        assert copy(client, False, source, place / "copy") == 0
        same(place, source)


def test_a_tree_gives_up_raw_bytes(raw, place):
    """A proxy that lets nothing through is asked twice, not for each file."""
    (place / "tree").mkdir()
    for i in range(5):
        (place / "tree" / str(i)).write_bytes(os.urandom(5 * BLOCK))
    with Detour(raw, lambda sock, _: sock.close()) as detour, Client(detour.url) as client:
        assert copy(client, True, place / "tree", place / "copy", recursive=1) == 0
        assert 2 <= len(detour.asked) <= 3
    for i in range(5):
        assert (place / "copy" / str(i)).read_bytes() == (place / "tree" / str(i)).read_bytes()


@WAYS
@pytest.mark.parametrize("free", [False, True], ids=["cancelled", "freed"])
def test_left_in_the_middle(raw, place, source, up, free):
    plan = [None, Cut(UP if up else DOWN, SIZE // 2, HOLE)]
    with Proxy(raw.address, plan) as proxy, Client(proxy.url) as client:
        pending, bag = Pending(client), options()
        call = LIB.xs_copy_upload if up else LIB.xs_copy_download
        assert call(client.handle, os.fsencode(source), os.fsencode(place / "copy"), bag,
                    _lib.OnProgress(), None, pending.ref()) == 0
        LIB.xs_options_free(bag)
        while not proxy.cuts:
            client.run(1)
        if not free:
            pending.cancel()
            assert pending.wait() == _lib.Code.ECANCELED
        client.free()
        assert not (place / "copy").exists()
    with Client(raw.url) as client:
        assert copy(client, up, source, place / "copy") == 0
    same(place, source)


@pytest.mark.skipif(SANITIZED, reason="memory of a sanitizer's build")
@WAYS
def test_s30_memory_is_flat(raw, place, up):
    with (place / "source").open("wb") as file:
        file.truncate(300 * BLOCK)
    with Client(raw.url) as client:
        (place / "small").write_bytes(bytes(5 * BLOCK))
        assert copy(client, up, place / "small", place / "first") == 0
        before, most = resident(), []

        def progress(_):
            most.append(resident())
            return 0
        assert copy(client, up, place / "source", place / "copy", progress) == 0
        assert max(most) - before < 2 * BLOCK
