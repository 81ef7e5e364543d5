"""Raw files over HTTP: GET, HEAD and PUT /v1/files."""

import http.client
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
from urllib.parse import quote

import pytest

from harness import acl
from harness.files import MIB, TEXTS, Files, uri
from harness.fleet import Fleet
from harness.http import Ended, Http, receive
from harness.resting import wait_rest
from harness.rpc import b64
from harness.settings import BINARY, SANITIZED
from harness.waiting import Deadline, until
from harness.ws import TEXT, connect_tcp, frame, upgrade_request

SMALL = 65536  # read before the answer begins
CHUNK = MIB    # written at a time
SITE_JOBS = 48  # that one file system may keep
SIZES = [0, 1, 100, SMALL - 1, SMALL, SMALL + 1, MIB, 8 * MIB + 1, 20 * MIB + 3]


BLOCK = b"".join(b"%08d" % i for i in range(MIB // 8))


def pattern(size):
    """Content in which every place is known."""
    return (BLOCK * (size // MIB + 1))[:size]


def target(path):
    return "/v1/files?path=" + quote(os.fsencode(path), safe="/")


def text(number):
    return f"{TEXTS[number]} (os error {number})".encode()


class Raw(Http):
    """A connection that asks for files."""

    def __init__(self, server, rcvbuf=None):
        super().__init__(connect_tcp(server.address, rcvbuf))
        self.server = server
        server.clients.append(self)

    def head(self, method, path, *headers, version="1.1", host="localhost"):
        """A request head; a path that is no str is a file to be named."""
        where = path if isinstance(path, str) else target(path)
        lines = [f"{method} {where} HTTP/{version}", f"Host: {host}", *headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def get(self, path, *headers, method="GET", **options):
        self.send(self.head(method, path, *headers, **options))
        return self.read(method)

    def begin_put(self, path, length, *headers, **options):
        self.send(self.head("PUT", path, f"Content-Length: {length}", *headers, **options))

    def put(self, path, data, *headers, **options):
        head = self.head("PUT", path, f"Content-Length: {len(data)}", *headers, **options)
        self.send(head + data)
        return self.read()

    def take(self, count):
        """The next bytes of a body."""
        deadline = Deadline()
        while len(self.buf) < count:
            self.buf += receive(self.sock, deadline)
        data = bytes(self.buf[:count])
        del self.buf[:count]
        return data

    def take_rest(self):
        """What comes until the end of the connection."""
        deadline = Deadline()
        try:
            while True:
                self.buf += receive(self.sock, deadline)
        except Ended:
            data = bytes(self.buf)
            self.buf.clear()
            return data

    def begin_get(self, path, *headers):
        """Asks and reads the head of the answer only: status and length of the body."""
        self.send(self.head("GET", path, *headers))
        while b"\r\n\r\n" not in self.buf:
            self.buf += receive(self.sock, Deadline())
        head, _, rest = bytes(self.buf).partition(b"\r\n\r\n")
        self.buf = bytearray(rest)
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        return int(head.split()[1]), int(fields[b"content-length"])

    def again(self):
        """Another connection, after an answer that ended this one."""
        self.close()
        return Raw(self.server)

    def reset(self):
        """Ends the connection without a goodbye."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()


@pytest.fixture(scope="module")
def served(nothing_left):  # pylint: disable=unused-argument
    """One server for all tests that do not disturb each other."""
    made = Fleet()
    yield made.start("--http-files")
    made.finish()


@pytest.fixture
def raw(served):
    made = Raw(served)
    yield made
    made.close()


@pytest.fixture
def own(fleet):
    """A server of the test's own."""
    return fleet.start("--http-files")


def names(place):
    return sorted(os.listdir(place))


def check_alive(raw, place):
    """The connection can be used for what follows."""
    (place / "alive").write_bytes(b"alive")
    answer = raw.get(place / "alive")
    assert (answer.status, answer.body) == (200, b"alive")


# GET and HEAD.

@pytest.mark.parametrize("size", SIZES)
def test_get(raw, place, size):
    content = pattern(size)
    (place / "f").write_bytes(content)
    for _ in range(2):
        answer = raw.get(place / "f")
        assert answer.status == 200 and answer.body == content
        assert answer.header("accept-ranges") == "bytes"
        assert answer.header("content-length") == str(size)
        assert answer.header("content-range") is None and answer.header("connection") is None
        assert answer.header("content-type") == ("application/octet-stream" if size else None)


@pytest.mark.parametrize("size", SIZES)
def test_head(raw, place, size):
    (place / "f").write_bytes(pattern(size))
    answer = raw.get(place / "f", method="HEAD")
    assert answer.status == 200 and answer.header("content-length") == str(size)
    assert answer.header("accept-ranges") == "bytes"
    assert raw.get(place / "missing", method="HEAD").status == 404
    check_alive(raw, place)


def test_a_link_is_followed(raw, place):
    (place / "f").write_bytes(b"content")
    (place / "link").symlink_to("f")
    assert raw.get(place / "link").body == b"content"


@pytest.mark.parametrize("path", ["/proc/version", "/proc/sys/kernel/ostype",
                                  "/sys/kernel/mm/transparent_hugepage/enabled"])
def test_files_that_do_not_know_their_size(raw, path):
    with open(path, "rb") as f:
        content = f.read()
    answer = raw.get(target(path))
    assert (answer.status, answer.body) == (200, content)
    assert int(raw.get(target(path), method="HEAD").header("content-length")) == len(content)
    answer = raw.get(target(path), "Range: bytes=1-3")
    assert (answer.status, answer.body) == (206, content[1:4])


def test_a_large_file_that_does_not_know_its_size(raw, place):
    with open("/proc/kallsyms", "rb") as f:
        assert len(f.read(CHUNK + 1)) > CHUNK
    answer = raw.get(target("/proc/kallsyms"))
    assert answer.status == 500
    assert answer.body == b"the file has more than 1048576 bytes, but says 0"
    check_alive(raw, place)


# Ranges.

RANGES = [("0-", 0, None), ("0-0", 0, 1), ("3-5", 3, 6), ("-4", -4, None), ("7-", 7, None),
          ("0-99999999999999999999", 0, None), ("-99999999999999999999", 0, None)]


@pytest.mark.parametrize("size", [10, 3 * MIB])
@pytest.mark.parametrize("spec, start, end", RANGES, ids=[r[0] for r in RANGES])
def test_range(raw, place, size, spec, start, end):
    content = pattern(size)
    (place / "f").write_bytes(content)
    part = content[start:end]
    first = content[:start] if start >= 0 else content[:size + start]
    answer = raw.get(place / "f", f"Range: bytes={spec}")
    assert answer.status == 206 and answer.body == part
    wanted = f"bytes {len(first)}-{len(first) + len(part) - 1}/{size}"
    assert answer.header("content-range") == wanted
    answer = raw.get(place / "f", f"Range: bytes={spec}", method="HEAD")
    assert answer.status == 206 and answer.header("content-length") == str(len(part))
    assert answer.header("content-range") == wanted
    check_alive(raw, place)


def test_range_in_the_middle(raw, place):
    content = pattern(20 * MIB)
    (place / "f").write_bytes(content)
    answer = raw.get(place / "f", f"Range: bytes={5 * MIB + 1}-{15 * MIB}")
    assert answer.status == 206 and answer.body == content[5 * MIB + 1:15 * MIB + 1]


@pytest.mark.parametrize("size, spec", [
    (10, "10-"), (10, "10-20"), (10, "99999999999999999999-"), (10, "-0"), (0, "0-"), (0, "-1"),
    (3 * MIB, f"{3 * MIB}-"),
])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_range_outside(raw, place, size, spec, method):
    (place / "f").write_bytes(pattern(size))
    answer = raw.get(place / "f", f"Range: bytes={spec}", method=method)
    assert (answer.status, answer.body) == (416, b"")
    assert answer.header("content-range") == f"bytes */{size}"
    check_alive(raw, place)


@pytest.mark.parametrize("value", ["bytes=5-2", "bytes=5-6,8-9", "bytes=5-x", "bytes=5", "bytes=",
                                   "bytes=-", "items=5-6", "5-6", "", "bytes=5-,8-"])
@pytest.mark.parametrize("size", [10, SMALL + 10])
def test_range_to_be_ignored(raw, place, size, value):
    content = pattern(size)
    (place / "f").write_bytes(content)
    answer = raw.get(place / "f", f"Range: {value}")
    assert answer.status == 200 and answer.body == content


def test_range_of_another_version(raw, place):
    """There are no validators: what If-Range names is never what is there."""
    (place / "f").write_bytes(b"0123456789")
    for value in ('"etag"', "Sun, 06 Nov 1994 08:49:37 GMT"):
        answer = raw.get(place / "f", "Range: bytes=5-6", f"If-Range: {value}")
        assert (answer.status, answer.body) == (200, b"0123456789")


# PUT.

@pytest.mark.parametrize("size", [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 3])
def test_put(raw, place, size):
    content = pattern(size)
    answer = raw.put(place / "f", content)
    assert (answer.status, answer.body) == (201, b"")
    assert answer.header("content-length") == "0"
    assert (place / "f").read_bytes() == content
    answer = raw.put(place / "f", content[::-1])
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("content-length") is None
    assert (place / "f").read_bytes() == content[::-1]
    assert names(place) == ["f"]
    assert raw.get(place / "f").body == content[::-1]


def test_put_empties(raw, place):
    (place / "f").write_bytes(b"old")
    assert raw.put(place / "f", b"").status == 204
    assert (place / "f").read_bytes() == b""


def test_put_keeps_what_atomic_keeps(raw, place):
    (place / "f").write_bytes(b"old")
    (place / "f").chmod(0o640)
    os.link(place / "f", place / "hard")
    (place / "link").symlink_to("f")
    assert raw.put(place / "link", b"new").status == 204
    assert (place / "f").read_bytes() == b"new" and (place / "link").is_symlink()
    assert stat.S_IMODE((place / "f").stat().st_mode) == 0o640
    assert (place / "hard").read_bytes() == b"old"


def test_put_keeps_access_list_and_attributes(raw, place):
    """Also those that are set while the body is on its way."""
    (place / "f").write_bytes(b"old")
    acl.guard(place / "f")
    assert raw.put(place / "f", b"new").status == 204
    assert acl.kept(place / "f") == acl.KEPT
    (place / "g").write_bytes(b"old")
    raw.begin_put(place / "g", 3, "Expect: 100-continue")
    assert raw.read().status == 100
    acl.guard(place / "g")
    raw.send(b"new")
    assert raw.read().status == 204
    assert acl.kept(place / "g") == acl.KEPT


def test_put_byte_by_byte(raw, place):
    request = raw.head("PUT", place / "f", "Content-Length: 26") + b"abcdefghijklmnopqrstuvwxyz"
    for byte in request:
        raw.send(bytes([byte]))
    assert raw.read().status == 201
    assert (place / "f").read_bytes() == b"abcdefghijklmnopqrstuvwxyz"


def test_put_in_pieces(raw, place):
    content = pattern(3 * MIB + 17)
    raw.begin_put(place / "f", len(content))
    for at in range(0, len(content), 10007):
        raw.send(content[at:at + 10007])
    assert raw.read().status == 201
    assert (place / "f").read_bytes() == content


def test_the_old_file_stays_until_the_end(raw, place):
    (place / "f").write_bytes(b"old")
    raw.begin_put(place / "f", 2 * MIB + 1)
    raw.send(bytes(2 * MIB))
    until(lambda: sum(p.stat().st_size for p in place.iterdir()) >= 2 * MIB, "2 MiB are stored")
    assert (place / "f").read_bytes() == b"old" and len(names(place)) == 2
    raw.send(b"\0")
    assert raw.read().status == 204
    assert (place / "f").read_bytes() == bytes(2 * MIB + 1) and names(place) == ["f"]


# PUT with an offset.

def target_at(path, at):
    return f"{target(path)}&at={at}"


@pytest.mark.parametrize("at", [0, 1, 3, 9, 10])
def test_put_at(raw, place, at):
    """What is before and behind the body stays; it is the file itself."""
    (place / "f").write_bytes(b"0123456789")
    (place / "f").chmod(0o640)
    os.link(place / "f", place / "hard")
    answer = raw.put(target_at(place / "f", at), b"abc")
    assert (answer.status, answer.body) == (204, b"")
    wanted = b"0123456789"[:at] + b"abc" + b"0123456789"[at + 3:]
    assert (place / "f").read_bytes() == (place / "hard").read_bytes() == wanted
    assert stat.S_IMODE((place / "f").stat().st_mode) == 0o640
    assert raw.put(target_at(place / "f", at), b"").status == 204
    assert (place / "f").read_bytes() == wanted
    check_alive(raw, place)


def test_put_at_makes_a_file_at_its_beginning_only(raw, place):
    assert raw.put(target_at(place / "g", 1), b"abc").status == 404
    assert not (place / "g").exists()
    raw = raw.again()
    assert raw.put(target_at(place / "g", 0), b"abc").status == 204
    assert (place / "g").read_bytes() == b"abc"


@pytest.mark.parametrize("at, status", [
    ("4", 416), ("999999999999999999", 416), ("1000000000000000000", 400), ("-1", 400), ("", 400),
    ("1x", 400), ("%31", 204), ("+1", 400)])
def test_put_at_nowhere(raw, place, at, status):
    (place / "f").write_bytes(b"012")
    answer = raw.put(target_at(place / "f", at), b"abc")
    assert answer.status == status
    if status == 416:
        assert answer.body == b"the file has 3 bytes only"
    if status != 204:
        assert (place / "f").read_bytes() == b"012"


def test_put_at_of_other_kinds(raw, place):
    os.mkfifo(place / "fifo")
    for path, status in ((place, 400), (place / "fifo", 400), (place / "no" / "f", 404)):
        assert raw.put(target_at(path, 0), b"abc").status == status
        raw = raw.again()


def test_put_at_grows_in_order(raw, place):
    """After a cut the file has the first bytes of the body, and no others."""
    content = pattern(5 * MIB)
    (place / "f").write_bytes(content[:MIB])
    raw.begin_put(target_at(place / "f", MIB), 4 * MIB)
    raw.send(content[MIB:4 * MIB + 500])
    until(lambda: (place / "f").stat().st_size >= 4 * MIB, "3 MiB are stored")
    raw.reset()
    got = (place / "f").read_bytes()
    assert got == content[:len(got)] and names(place) == ["f"]


def test_pipelined(raw, place):
    """Everything at once: answers come in order, each sees what those before it did."""
    big = pattern(CHUNK + 5)
    request = b""
    for i in range(20):
        body = big if i % 7 == 3 else b"body %d" % i
        request += raw.head("PUT", place / "f", f"Content-Length: {len(body)}") + body
        request += raw.head("GET", place / "f") + raw.head("HEAD", place / "f")
        request += raw.head("GET", place / "missing") + raw.head("GET", "/readyz")
    raw.send(request)
    for i in range(20):
        body = big if i % 7 == 3 else b"body %d" % i
        assert raw.read().status == (204 if i else 201)
        answer = raw.read()
        assert answer.status == 200 and answer.body == body
        assert raw.read("HEAD").header("content-length") == str(len(body))
        assert raw.read().status == 404 and raw.read().status == 200


def test_many_pipelined_and_not_read(own, place):
    """Requests are not answered ahead of what the client reads."""
    (place / "f").write_bytes(pattern(60000))
    raw = Raw(own, rcvbuf=4096)
    check_alive(raw, place)
    before = own.rss()
    request = raw.head("GET", place / "f")
    count = 500  # 30 MB of answers
    raw.send(request * count)
    other = Raw(own)
    check_alive(other, place)
    if not SANITIZED:
        assert own.rss() - before < 10 * MIB
    assert all(raw.read().body == pattern(60000) for _ in range(count))


def test_continue(raw, place):
    raw.begin_put(place / "f", 5, "Expect: 100-Continue")
    answer = raw.read()
    assert (answer.status, answer.fields) == (100, [])
    raw.send(b"hello")
    assert raw.read().status == 201
    assert (place / "f").read_bytes() == b"hello"
    # Nothing to wait for.
    assert raw.put(place / "f", b"", "Expect: 100-continue").status == 204


def test_no_continue(raw, place):
    """What cannot be stored is not asked for."""
    raw.begin_put(place / "no" / "f", 5, "Expect: 100-continue")
    answer = raw.read()
    assert (answer.status, answer.body) == (404, text(2))
    assert answer.header("connection") == "close"
    raw.wait_eof()


def test_no_continue_for_http_1_0(raw, place):
    answer = raw.put(place / "f", b"hello", "Expect: 100-continue", version="1.0")
    assert answer.status == 201 and (place / "f").read_bytes() == b"hello"
    raw.wait_eof()


def test_no_part_of_a_file(raw, place):
    (place / "f").write_bytes(b"0123456789")
    answer = raw.put(place / "f", b"ab", "Content-Range: bytes 3-4/10")
    assert (answer.status, answer.body) == (400, b"a PUT replaces the whole file")
    raw.wait_eof()
    assert (place / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize("headers", [
    [], ["Transfer-Encoding: chunked"], ["Transfer-Encoding: gzip", "Content-Length: 5"]])
def test_length_required(raw, place, headers):
    raw.send(raw.head("PUT", place / "f", *headers))
    answer = raw.read()
    assert (answer.status, answer.body) == (411, b"a PUT needs a Content-Length")
    assert answer.header("connection") == "close"
    raw.wait_eof()
    assert names(place) == []


@pytest.mark.parametrize("lines", [
    ["Content-Length: -1"], ["Content-Length: +5"], ["Content-Length: 0x10"],
    ["Content-Length: 1e3"], ["Content-Length: 5, 5"], ["Content-Length:"],
    ["Content-Length: 5 5"], ["Content-Length: 9223372036854775808"],
    ["Content-Length: 18446744073709551621"], ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: 5", "content-length: 05"], ["Content-Length : 5"],
    ["Content-Length: 5\0"], ["X\r\nContent-Length: 5"],
])
def test_bad_lengths(raw, place, lines):
    raw.send(raw.head("PUT", place / "f", *lines) + b"hello")
    answer = raw.read()
    assert (answer.status, answer.body) == (400, b"")
    raw.wait_eof()
    assert names(place) == []


def test_the_same_length_twice(raw, place):
    assert raw.put(place / "f", b"hello", "Content-Length: 5").status == 201


# Clients that end in the middle.

ENDS = {"reset": Raw.reset, "close": Raw.close,
        "half-close": lambda raw: raw.sock.shutdown(socket.SHUT_WR)}


@pytest.mark.parametrize("sent", [0, 1, CHUNK, 3 * CHUNK + 5])
@pytest.mark.parametrize("length", [3 * CHUNK + 6, 999999999999999999])
@pytest.mark.parametrize("end", ENDS)
def test_put_cut_midway(own, place, end, length, sent):
    (place / "f").write_bytes(b"old")
    fds = own.fds()
    raw = Raw(own)
    raw.begin_put(place / "f", length)
    until(lambda: len(names(place)) == 2, "the temporary file")
    raw.send(bytes(sent))
    ENDS[end](raw)
    until(lambda: names(place) == ["f"], "no temporary file")
    assert (place / "f").read_bytes() == b"old"
    if end == "half-close":
        raw.wait_eof()
        raw.close()
    own.wait_fds(fds)
    check_alive(Raw(own), place)


def test_half_close_after_a_put(raw, place):
    """All of it was sent: it is stored, and answered."""
    content = pattern(5 * MIB + 7)
    request = raw.head("PUT", place / "f", f"Content-Length: {len(content)}")
    raw.sock.setblocking(True)
    raw.sock.sendall(request + content)
    raw.sock.shutdown(socket.SHUT_WR)
    raw.sock.setblocking(False)
    assert raw.read().status == 201
    raw.wait_eof()
    assert (place / "f").read_bytes() == content


def test_half_close_after_pipelined_requests(raw, place):
    content = pattern(3 * MIB)
    (place / "f").write_bytes(content)
    raw.send(raw.head("GET", place / "f") * 3 + raw.head("GET", place / "missing"))
    raw.sock.shutdown(socket.SHUT_WR)
    assert all(raw.read().body == content for _ in range(3))
    assert raw.read().status == 404
    raw.wait_eof()


def test_half_close_during_a_slow_get(own, place):
    """The rest of the file is wanted still."""
    (place / "f").write_bytes(pattern(20 * MIB))
    raw = Raw(own, rcvbuf=4096)
    assert raw.begin_get(place / "f") == (200, 20 * MIB)
    wait_rest(own)
    raw.sock.shutdown(socket.SHUT_WR)
    assert raw.take(20 * MIB) == pattern(20 * MIB)
    raw.wait_eof()


@pytest.mark.parametrize("end", ["reset", "close"])
def test_client_vanishes_during_a_get(own, place, end):
    with open(place / "f", "wb") as f:
        f.truncate(100_000_000)
    fds = own.fds()
    for _ in range(5):
        raw = Raw(own, rcvbuf=4096)
        assert raw.begin_get(place / "f") == (200, 100_000_000)
        ENDS[end](raw)
    own.wait_fds(fds)
    check_alive(Raw(own), place)


def test_slow_reader(own, place):
    """100 MB cost no memory, and nobody waits for them."""
    with open(place / "f", "wb") as f:
        f.truncate(100_000_000)
    other = Raw(own)
    check_alive(other, place)
    before = own.rss()
    slow = [Raw(own, rcvbuf=4096) for _ in range(8)]
    for raw in slow:
        assert raw.begin_get(place / "f") == (200, 100_000_000)
    wait_rest(own)
    check_alive(other, place)
    if not SANITIZED:
        assert own.rss() - before < 4 * MIB
    left = 100_000_000
    while left > 0:
        data = slow[0].take(min(left, 5_000_000))
        assert data == bytes(len(data))
        left -= len(data)
    check_alive(slow[0], place)


def test_file_that_shrinks(own, place):
    """The promised length cannot be kept: the connection ends, early."""
    (place / "f").write_bytes(pattern(50 * MIB))
    raw = Raw(own, rcvbuf=4096)
    assert raw.begin_get(place / "f") == (200, 50 * MIB)
    os.truncate(place / "f", 20 * MIB)
    data = raw.take_rest()
    assert len(data) < 50 * MIB and data == pattern(len(data))
    assert len(data) >= 20 * MIB
    check_alive(Raw(own), place)


def test_file_that_grows(raw, place):
    (place / "f").write_bytes(pattern(20 * MIB))
    assert raw.begin_get(place / "f") == (200, 20 * MIB)
    with open(place / "f", "ab") as f:
        f.write(b"more")
    assert raw.take(20 * MIB) == pattern(20 * MIB)
    check_alive(raw, place)


# Errors.

def test_what_is_no_file(raw, place):
    (place / "f").write_bytes(b"")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "socket"))
        for name, status, why in [
                ("missing", 404, text(2)), ("no/file", 404, text(2)), ("f/x", 500, text(20)),
                ("loop", 500, text(40)), ("x" * 256, 500, text(36)), ("socket", 400, text(6)),
                ("fifo", 400, f"path `{place}/fifo` is not a file".encode()),
                ("", 400, f"path `{place}` is not a file".encode())]:
            answer = raw.get(place / name)
            assert (answer.status, answer.body) == (status, why), name
            assert answer.header("content-type") == "text/plain; charset=utf-8"
            answer = raw.get(place / name, method="HEAD")
            assert answer.status == status
    for device in ("/dev/null", "/dev/zero", "/dev/tty"):
        assert raw.get(target(device)).status == 400
    assert raw.get(target("/")).body == b"path `/` is not a file"


def test_put_where_nothing_can_be_put(served, place):
    (place / "f").write_bytes(b"old")
    (place / "d").mkdir()
    os.mkfifo(place / "fifo")
    (place / "dangling").symlink_to("nowhere")
    before = names(place)
    for name, status, why in [
            ("no/file", 404, text(2)), ("dangling", 404, text(2)), ("f/x", 500, text(20)),
            ("d", 400, text(21)), ("", 400, text(21)), ("x" * 256, 500, text(36)),
            ("fifo", 400, f"path `{place}/fifo` is not a file".encode())]:
        raw = Raw(served)
        answer = raw.put(place / name, b"data")
        assert (answer.status, answer.body) == (status, why), name
        assert answer.header("connection") == "close"
        raw.wait_eof()
        raw = Raw(served)
        assert raw.put(place / name, b"").status == status
        check_alive(raw, place)
        (place / "alive").unlink()
    assert names(place) == before and (place / "f").read_bytes() == b"old"


def test_full_disk(raw, place, mounts):
    small = mounts.tmpfs("size=1m")
    (small / "f").write_bytes(b"old")
    answer = raw.put(small / "f", bytes(3 * MIB))
    assert (answer.status, answer.body) == (507, text(28))
    raw.wait_eof()
    until(lambda: names(small) == ["f"], "no temporary file")
    assert (small / "f").read_bytes() == b"old"


def test_read_only(raw, place, mounts):
    (place / "real").mkdir()
    (place / "real" / "f").write_bytes(b"old")
    there = mounts.read_only(place / "real")
    answer = raw.put(there / "f", b"")
    assert (answer.status, answer.body) == (500, text(30))
    assert raw.get(there / "f").body == b"old"


@pytest.mark.parametrize("number, status", [(5, 500), (13, 403), (28, 507), (122, 507)])
def test_failing_file_system(raw, faultfs, number, status):
    path = faultfs.file(f"e{number}-open", b"x")
    answer = raw.get(path)
    assert (answer.status, answer.body) == (status, text(number))
    # A small file that cannot be read is an answer.
    answer = raw.get(faultfs.file(f"e{number}-read@3", b"0123456789"))
    assert (answer.status, answer.body) == (status, text(number))
    # The last step of a PUT.
    answer = raw.put(faultfs.file(f"e{number}-rename", b"old"), b"new")
    assert (answer.status, answer.body) == (status, text(number))
    assert (faultfs.real / f"e{number}-rename").read_bytes() == b"old"
    assert names(faultfs.real) == sorted(
        [f"e{number}-open", f"e{number}-read@3", f"e{number}-rename"])


def test_large_file_that_fails_midway(served, faultfs, place):
    """What was promised cannot be given: the connection ends."""
    raw = Raw(served)
    path = faultfs.file(f"e5-read@{MIB}", pattern(2 * MIB))
    assert raw.begin_get(path) == (200, 2 * MIB)
    data = raw.take_rest()
    assert len(data) <= MIB and data == pattern(len(data))
    check_alive(Raw(served), place)


def test_short_reads_and_writes(raw, faultfs):
    content = pattern(300_001)
    assert raw.get(faultfs.file("short-read", content)).body == content
    assert raw.get(faultfs.file("short-read.small", content[:50000])).body == content[:50000]


class TestPlainUser:
    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory):
        if os.geteuid() != 0:
            pytest.skip("needs root to take another uid")
        directory = tmp_path_factory.mktemp("plain")
        for parent in [directory, *directory.parents][:-2]:
            parent.chmod(parent.stat().st_mode | 0o011)
        program = shutil.copy(BINARY, directory)
        os.chmod(program, 0o755)
        made = Fleet()
        ids = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        yield made.start("--http-files", binary=program, wrapper=["setpriv", *ids], cwd="/")
        made.finish()

    def test_no_permission(self, server, place):
        (place / "f").write_bytes(b"secret")
        (place / "f").chmod(0o600)
        (place / "open").write_bytes(b"open")
        (place / "closed").mkdir(0o700)
        raw = Raw(server)
        for path in (place / "f", place / "closed" / "f"):
            answer = raw.get(path)
            assert (answer.status, answer.body) == (403, text(13))
        assert raw.get(place / "open").body == b"open"
        # Neither the file nor its directory is his.
        for path in (place / "f", place / "open", place / "new"):
            assert Raw(server).put(path, b"x").body == text(13)
        assert names(place) == ["closed", "f", "open"]

    def test_own_directory(self, server, place):
        (place / "d").mkdir()
        os.chown(place / "d", 65534, 65534)
        raw = Raw(server)
        assert raw.put(place / "d" / "f", b"1").status == 201
        st = (place / "d" / "f").stat()
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (65534, 65534, 0o644)
        (place / "d" / "locked").write_bytes(b"root's")
        (place / "d" / "locked").chmod(0o644)
        answer = raw.put(place / "d" / "locked", b"2")
        assert (answer.status, answer.body) == (403, text(13))


# Paths.

def test_path_forms(raw, place):
    (place / "a+b c&d=e#f%41").write_bytes(b"odd")
    (place / "ü").write_bytes(b"umlaut")
    (place / "sub").mkdir()
    base = quote(str(place))
    odd = "a+b%20c%26d=e%23f%2541"
    for query, content in [
            (f"path={base}/{odd}", b"odd"),
            (f"path={quote(str(place / 'a+b c&d=e#f%41'), safe='')}", b"odd"),
            (f"path={quote(uri(place / 'a+b c&d=e#f%41'), safe='')}", b"odd"),
            (f"path=file://{base}/{odd.replace('%', '%25')}", b"odd"),
            (f"path=file://localhost{base}/%25C3%25BC", b"umlaut"),
            (f"path=file:{base}/%C3%BC", b"umlaut"),
            (f"path={base}/%c3%bc", b"umlaut"),
            (f"path={base}//sub/.././%C3%BC/", b"umlaut"),
            (f"x=1&path={base}/%C3%BC&path=/nowhere&y", b"umlaut"),
            (f"path={base}/%C3%BC#fragment", b"umlaut")]:
        answer = raw.get(f"/v1/files?{query}")
        assert (answer.status, answer.body) == (200, content), query
    answer = raw.get(f"http://localhost/v1/files?path={base}/%C3%BC")
    assert answer.body == b"umlaut"


def test_names_that_are_not_utf_8(raw, place):
    name = os.fsencode(place) + b"/\xff\xfe\x80"
    assert raw.put(os.fsdecode(target(name)), b"content").status == 201
    assert os.listdir(os.fsencode(place)) == [b"\xff\xfe\x80"]
    for path in (target(name), "/v1/files?path=" + quote(uri(name), safe="")):
        assert raw.get(path).body == b"content"
    answer = raw.get(target(os.fsencode(place) + b"/\xff"))
    assert (answer.status, answer.body) == (404, text(2))


@pytest.mark.parametrize("query, why", [
    ("", "the query has no `path`"), ("?", "the query has no `path`"),
    ("?path", "the query has no `path`"), ("?Path=/x", "the query has no `path`"),
    ("?path=", "invalid URI: relative URL without a base"),
    ("?path=etc/passwd", "invalid URI: relative URL without a base"),
    ("?path=~", "invalid URI: relative URL without a base"),
    ("?path=http://localhost/x", "unsupported path URI scheme `http`"),
    ("?path=file:///x%3Fy", "query parameters are not allowed in path URIs"),
    ("?path=file://server/x", "'file://server/x' is invalid on 'linux'"),
    ("?path=file:///C:/x", "'file:///C:/x' is invalid on 'linux'"),
    ("?path=/etc/pass%00wd", "path contains a NUL byte"),
    ("?path=/" + "x" * 65000, None),
])
def test_what_is_no_path(raw, query, why):
    answer = raw.get("/v1/files" + query)
    if why is None:
        assert (answer.status, answer.body) == (500, text(36))
    else:
        assert (answer.status, answer.body) == (400, why.encode())
    # The body that follows is not taken for a request.
    raw.send(raw.head("PUT", "/v1/files" + query, "Content-Length: 5") + b"hello")
    assert raw.read().status == answer.status
    raw.wait_eof()


def test_target_too_long(raw):
    raw.send(b"GET /v1/files?path=/" + b"x" * 66000 + b" HTTP/1.1\r\n\r\n")
    assert raw.read().status == 414


# Who may ask.

def test_off_by_default(server, place):
    (place / "f").write_bytes(b"x")
    raw = Raw(server)
    assert raw.get(place / "f").status == 404
    assert raw.get(place / "f", method="POST").status == 404
    assert raw.get(place / "f", "Sec-Fetch-Mode: cors").status == 404
    assert raw.put(place / "new", b"x").status == 404
    raw.wait_eof()
    assert names(place) == ["f"]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"])
def test_other_methods(raw, place, method):
    (place / "f").write_bytes(b"x")
    answer = raw.get(place / "f", method=method)
    assert (answer.status, answer.body) == (405, b"")
    assert answer.header("allow") == "GET,HEAD,PUT"
    check_alive(raw, place)


@pytest.mark.parametrize("path", ["/v1/files/", "/v1/file", "/V1/files", "//v1/files",
                                  "/v1/files/x"])
def test_other_paths(raw, path):
    assert raw.get(f"{path}?path=/proc/version").status == 404


GUARDED = [
    (["Origin: http://localhost"], "localhost"), (["Origin: null"], "localhost"),
    (["oRIGIN:"], "localhost"), (["Sec-Fetch-Mode: navigate"], "localhost"),
    (["sec-fetch-site: none"], "localhost"), (["SEC-FETCH-X:"], "localhost"),
    ([], "evil.example"), ([], "localhost.evil.example"), ([], ""),
    (["Host: localhost"], "localhost"),
]


@pytest.mark.parametrize("headers, host", GUARDED)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST"])
def test_browsers_and_strange_names(raw, place, headers, host, method):
    (place / "f").write_bytes(b"old")
    length = ["Content-Length: 3"] if method == "PUT" else []
    raw.send(raw.head(method, place / "f", *headers, *length, host=host))
    if method == "PUT":
        raw.send(b"new")
    answer = raw.read(method)
    assert answer.status == 403 and (b"--http-host" in answer.body or not answer.body)
    assert (place / "f").read_bytes() == b"old"
    if method == "PUT":
        raw.wait_eof()
    else:
        check_alive(raw, place)


def test_without_host(raw, place):
    (place / "f").write_bytes(b"x")
    raw.send(f"GET {target(place / 'f')} HTTP/1.1\r\n\r\n")
    assert raw.read().status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]:80", "LOCALHOST:1", "known.example"])
def test_known_names(fleet, place, host):
    (place / "f").write_bytes(b"content")
    raw = Raw(fleet.start("--http-files", "--http-host", "known.example"))
    assert raw.get(place / "f", host=host).body == b"content"


def read_log(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_authorization_and_audit(fleet, place):
    (place / "token").write_text("sekret")
    (place / "f").write_bytes(b"old")
    log = place / "audit"
    server = fleet.start("--http-files", "--ws-auth", "capability-token", "--ws-token-file",
                         str(place / "token"), "--audit-log", str(log))
    good, bad = "Authorization: Bearer sekret", "Authorization: Bearer wrong"
    raw = Raw(server)
    assert raw.get(place / "f").body == b"missing websocket bearer token"
    assert raw.get(place / "f", bad).status == 401
    assert raw.get(place / "f", bad, method="HEAD").status == 401
    answer = raw.get(place / "f", good)
    assert (answer.status, answer.body) == (200, b"old")
    assert raw.get(place / "f", good, method="POST").status == 405
    assert raw.put(place / "f", b"new", good).status == 204
    answer = raw.put(place / "f", b"bad", bad)
    assert (answer.status, answer.body) == (401, b"invalid websocket bearer token")
    raw.wait_eof()
    assert (place / "f").read_bytes() == b"new"
    raw = Raw(server)
    raw.get(place / "f", good, "Origin: http://x")
    raw.get(place / "f", good, "Sec-Fetch-Mode: cors")
    raw.get(place / "f", good, host="evil")
    until(lambda: sum(line["event"] == "refused" for line in read_log(log)) >= 7, "7 refusals")
    unknown = "/metrics or /v1/files from a browser or by an unknown name"
    wanted = [(401, "missing websocket bearer token"), (401, "invalid websocket bearer token"),
              (401, "invalid websocket bearer token"), (401, "invalid websocket bearer token"),
              (403, "the request has an Origin header"), (403, unknown), (403, unknown)]
    lines = [line for line in read_log(log) if line["event"] == "refused"]
    assert [(line["status"], line["reason"]) for line in lines] == wanted
    assert {line["what"] for line in lines} == {"connection"}
    assert "sekret" not in log.read_text() and "wrong" not in log.read_text()


# Connections.

def test_http_1_0(served, place):
    (place / "f").write_bytes(pattern(100_000))
    raw = Raw(served)
    answer = raw.get(place / "f", version="1.0")
    assert answer.status == 200 and answer.body == pattern(100_000)
    raw.wait_eof()
    raw = Raw(served)
    assert raw.put(place / "f", b"new", version="1.0").status == 204
    raw.wait_eof()
    assert (place / "f").read_bytes() == b"new"


@pytest.mark.parametrize("size", [0, 10, 3 * MIB])
def test_connection_close(served, place, size):
    raw = Raw(served)
    answer = raw.put(place / "f", pattern(size), "Connection: close")
    assert answer.status == 201 and answer.header("connection") == "close"
    raw.wait_eof()
    raw = Raw(served)
    answer = raw.get(place / "f", "Connection: close")
    assert answer.body == pattern(size) and answer.header("connection") == "close"
    raw.wait_eof()


def test_get_with_a_body(raw, place):
    """The body is not read, nor taken for a request."""
    (place / "f").write_bytes(b"content")
    raw.send(raw.head("GET", place / "f", "Content-Length: 20") + b"GET /readyz HTTP/1.1\r\n")
    answer = raw.read()
    assert answer.body == b"content" and answer.header("connection") == "close"
    raw.wait_eof()


def test_garbage_after_a_put(raw, place):
    raw.send(raw.head("PUT", place / "f", "Content-Length: 3") + b"new\x16\x03\x01garbage")
    assert raw.read().status == 201
    assert raw.read().status == 400
    raw.wait_eof()
    assert (place / "f").read_bytes() == b"new"


@pytest.mark.parametrize("together", [True, False])
def test_upgrade_on_the_same_connection(raw, place, together):
    (place / "f").write_bytes(pattern(3 * MIB))
    message = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    requests = [raw.head("GET", place / "f"),
                raw.head("PUT", place / "g", "Content-Length: 1") + b"x",
                upgrade_request(), frame(TEXT, message)]
    if together:
        raw.send(b"".join(requests))
    answers = []
    for request in requests[:3]:
        if not together:
            raw.send(request)
        answers.append(raw.read())
    if not together:
        raw.send(requests[3])
    assert [a.status for a in answers] == [200, 201, 101]
    assert answers[0].body == pattern(3 * MIB)
    first = raw.take(4)
    assert first[0] == 0x80 | TEXT and first[1] == 126
    answer = json.loads(raw.take(int.from_bytes(first[2:], "big")))
    assert answer["id"] == 1 and "sessionId" in answer["result"]


def test_unix_socket(fleet, place):
    (place / "f").write_bytes(pattern(3 * MIB))
    server = fleet.start("--http-files", listen=f"unix://{place}/socket")
    raw = Raw(server)
    assert raw.get(place / "f").body == pattern(3 * MIB)
    assert raw.put(place / "g", pattern(2 * MIB)).status == 201
    assert (place / "g").read_bytes() == pattern(2 * MIB)


def test_foreign_clients(served, place):
    content = pattern(3 * MIB + 1)
    connection = http.client.HTTPConnection(*served.address)
    connection.request("PUT", target(place / "f"), body=content)
    assert connection.getresponse().read() == b""
    connection.request("GET", target(place / "f"), headers={"Range": "bytes=-1000"})
    assert connection.getresponse().read() == content[-1000:]
    connection.close()

    host, port = served.address
    url = f"http://{host}:{port}{target(place / 'f')}"

    def curl(*args):
        return subprocess.run(["curl", "-sS", "--fail", *args, url], check=True, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True).stdout
    assert curl() == content
    assert b"content-length: 3145729\r\n" in curl("--head")
    assert curl("-r", "5-9") == content[5:10]
    (place / "upload").write_bytes(content[::-1])
    # curl sends Expect: 100-continue for such a size.
    curl("-T", str(place / "upload"))
    assert (place / "f").read_bytes() == content[::-1]
    (place / "empty").write_bytes(b"")
    curl("-T", str(place / "empty"))
    assert curl() == b""


# File systems that hang.

def test_a_hang_is_nobody_elses(own, faultfs, place):
    files = Files(own.client())
    hung = []
    for i in range(SITE_JOBS // 2):
        raw = Raw(own)
        raw.send(raw.head("GET", faultfs.file(f"hang-read.{i}", b"content")))
        faultfs.hangs("read", f"hang-read.{i}")
        hung.append(raw)
    for i in range(SITE_JOBS // 4):
        raw = Raw(own)
        (faultfs.real / f"d{i}").mkdir()  # a rename locks its directory
        path = faultfs.file(f"d{i}/hang-rename", b"old")
        raw.send(raw.head("PUT", path, "Content-Length: 3") + b"new")
        faultfs.hangs("rename", f"d{i}/hang-rename")
        hung.append(raw)
    (place / "f").write_bytes(pattern(3 * MIB))
    for raw in (Raw(own), Raw(own)):
        assert raw.get(place / "f").body == pattern(3 * MIB)
        assert raw.put(place / "g", pattern(2 * MIB)).status in (201, 204)
    assert files.read(place / "f") == pattern(3 * MIB)
    files.client.sync()
    faultfs.release()
    for raw in hung[:SITE_JOBS // 2]:
        assert raw.read().body == b"content"
    for raw in hung[SITE_JOBS // 2:]:
        assert raw.read().status == 204
    assert {(faultfs.real / f"d{i}" / "hang-rename").read_bytes()
            for i in range(SITE_JOBS // 4)} == {b"new"}


def test_when_a_file_system_hangs(own, faultfs, place):
    """Its transfers are refused after a while; all others go on."""
    client = own.client()
    (place / "big").write_bytes(pattern(20 * MIB))
    begun, begun_put, stream = Raw(own), Raw(own), Files(own.client(rcvbuf=4096))
    read = stream.send("readFile", place / "big")
    waiting = Raw(own)
    waiting.begin_put(faultfs.path / "put", 2 * MIB)
    until(lambda: len(names(faultfs.real)) == 1, "the temporary file")
    raws = [Raw(own) for _ in range(SITE_JOBS - 1)]
    for i, raw in enumerate(raws):
        path = faultfs.file(f"hang-read.{i}", pattern(2 * MIB))
        assert raw.begin_get(path) == (200, 2 * MIB)
        faultfs.hangs("read", f"hang-read.{i}")
    last = Raw(own)
    last.send(last.head("GET", faultfs.file("hang-read.small", b"x")))
    faultfs.hangs("read", "hang-read.small")
    # Its clean-up cannot run now, and must not run in the loop.
    waiting.reset()
    refused = Raw(own)
    refused.send(refused.head("GET", faultfs.file("fine", b"fine")))
    assert begun.get(place / "big").body == pattern(20 * MIB)
    assert begun_put.put(place / "put", bytes(2 * MIB)).status == 201
    assert stream.client.result(read) == {"dataBase64": b64(pattern(20 * MIB))}
    answer = refused.read()
    assert (answer.status, answer.body) == (500, text(11))
    check_alive(refused, place)  # now: an idle connection has a deadline
    client.sync()
    assert Raw(own).get("/readyz").status == 200
    for raw in raws[::2]:
        raw.reset()
    client.sync()
    faultfs.release()
    for raw in raws[1::2]:
        assert raw.take(2 * MIB) == pattern(2 * MIB)
    until(lambda: not [n for n in names(faultfs.real) if "hang" not in n and n != "fine"],
          "no temporary file")


@pytest.mark.parametrize("op", ["open", "read", "flush"])
def test_a_vanished_client_and_a_hang(own, faultfs, place, op):
    """The connection is gone at once, the rest when the hang ends."""
    fds = own.fds()
    raw = Raw(own)
    raw.send(raw.head("GET", faultfs.file(f"hang-{op}", pattern(100_000))))
    faultfs.hangs(op, f"hang-{op}")
    raw.reset()
    check_alive(Raw(own), place)
    faultfs.release()
    own.wait_fds(fds + 1)


@pytest.mark.parametrize("method, op", [
    ("GET", "stat"), ("GET", "open"), ("GET", "read"), ("PUT", "stat"), ("PUT", "rename")])
def test_stop_during_a_hang(own, faultfs, method, op):
    raw = Raw(own)
    path = faultfs.file(f"hang-{op}", pattern(100_000))
    if method == "GET":
        raw.send(raw.head("GET", path))
    else:
        raw.send(raw.head("PUT", path, "Content-Length: 3") + b"new")
    faultfs.hangs(op, f"hang-{op}")
    own.stop(signal.SIGTERM)


def test_stop_during_transfers(own, place):
    """No half file, no temporary file is left."""
    (place / "big").write_bytes(pattern(20 * MIB))
    (place / "old").write_bytes(b"old")
    readers = [Raw(own, rcvbuf=4096) for _ in range(3)]
    for raw in readers:
        raw.begin_get(place / "big")
    writers = [Raw(own) for _ in range(3)]
    for i, raw in enumerate(writers):
        raw.begin_put(place / ("old" if i == 0 else f"new{i}"), 5 * MIB)
        raw.send(bytes(2 * MIB))
    until(lambda: len(names(place)) == 5, "temporary files")
    own.stop(signal.SIGTERM)
    assert names(place) == ["big", "old"] and (place / "old").read_bytes() == b"old"
