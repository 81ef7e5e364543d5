"""fs/open, fs/readBlock, fs/writeBlock, fs/close: handles of a connection."""

import os
import socket
import stat

import pytest

from harness.files import MIB, Files, os_error, uri
from harness.rpc import b64, unb64
from harness.waiting import until

LIMIT = 128
TOO_MANY = (-32600, "at most 128 file handles may be open per connection")
TOO_LONG = (-32600, "file handle ID must not exceed 32 bytes")
BAD_READ_LENGTH = (-32600, "file read block length must be between 1 and 1048576")
BAD_WRITE_LENGTH = (-32600, "file write block length must be between 1 and 1048576")
BAD_RANGE = (-32600, "file write range exceeds the signed 64-bit file offset limit")


def unknown(handle):
    return -32004, f"unknown file handle `{handle}`"


def exists(handle):
    return -32600, f"file handle `{handle}` already exists"


def not_a_file(path):
    return -32600, f"path `{path}` is not a file"


def open_in(server, place):
    """Descriptors of a server that refer to files below a directory."""
    return [t for t in server.fd_targets() if t.startswith(str(place))]


@pytest.fixture
def data(place):
    """A file of 3 MiB and 5 bytes, and what is in it."""
    content = os.urandom(3 * MIB + 5)
    (place / "data").write_bytes(content)
    return place / "data", content


# Reading.

def test_read_to_the_end(files, data):
    path, content = data
    handle = files.open(path)
    got, offset, eof = [], 0, False
    while not eof:
        chunk, eof = files.read_block(handle, offset, MIB)
        assert len(chunk) == MIB or eof
        got.append(chunk)
        offset += len(chunk)
    assert b"".join(got) == content
    files.close(handle)


def test_eof_is_told_by_a_short_block(files, place):
    (place / "f").write_bytes(b"0123456789")
    handle = files.open(place / "f")
    assert files.read_block(handle, 0, 10) == (b"0123456789", False)
    assert files.read_block(handle, 10, 1) == (b"", True)
    assert files.read_block(handle, 0, 11) == (b"0123456789", True)
    assert files.read_block(handle, 9, 1) == (b"9", False)
    assert files.read_block(handle, 9, 2) == (b"9", True)
    assert files.read_block(handle, 2**62, MIB) == (b"", True)
    assert files.read_block(handle, 3, 4) == (b"3456", False)
    (place / "empty").touch()
    empty = files.open(place / "empty")
    assert files.read_block(empty, 0, MIB) == (b"", True)


@pytest.mark.parametrize("length", [0, MIB + 1, 2**63, 2**64 - 1])
def test_length_of_a_read(files, place, length):
    """Checked before the handle is looked up; the handle stays."""
    (place / "f").write_bytes(b"x")
    handle = files.open(place / "f")
    for name in (handle, "nobody"):
        assert files.error("readBlock", handleId=name, offset=0, len=length) == BAD_READ_LENGTH
    assert files.read_block(handle, 0, MIB) == (b"x", True)


def test_a_failing_read_closes_the_handle(files, place):
    (place / "f").write_bytes(b"x")
    for offset in (2**63 - 1, 2**63, 2**64 - 1):
        handle = files.open(place / "f")
        assert files.error("readBlock", handleId=handle, offset=offset, len=MIB) == os_error(22)
        assert files.error("readBlock", handleId=handle, offset=0, len=1) == unknown(handle)
    handle = files.open(place / "g", mode="replace")
    assert files.error("readBlock", handleId=handle, offset=0, len=1) == os_error(9)
    assert files.error("writeBlock", handleId=handle, offset=0, chunk="QQ==") == unknown(handle)
    files.open(place / "f", handle)
    assert files.read_block(handle, 0, 5) == (b"x", True)


def test_read_failures_of_the_file_system(shared, faultfs):
    files = Files(shared.client())
    content = os.urandom(500000)
    path = faultfs.file("e5-read@300000", content)
    handle = files.open(path)
    assert files.read_block(handle, 0, 300000) == (content[:300000], False)
    assert files.error("readBlock", handleId=handle, offset=200000, len=200000) == os_error(5)
    assert files.error("readBlock", handleId=handle, offset=0, len=1) == unknown(handle)
    until(lambda: not open_in(shared, faultfs.path), "the file is closed")
    handle = files.open(faultfs.file("short-read", content))
    assert files.read_block(handle, 0, MIB) == (content, True)
    assert files.read_block(handle, 7, 400000) == (content[7:400007], False)


def test_the_handle_keeps_its_file(files, place):
    """Replaced, unlinked, grown, shrunk: the handle is what was opened."""
    path = place / "f"
    path.write_bytes(b"first")
    handle = files.open(path)
    (place / "other").write_bytes(b"second")
    os.replace(place / "other", path)
    assert files.read_block(handle, 0, 100) == (b"first", True)
    second = files.open(path)
    path.unlink()
    assert files.read_block(second, 0, 100) == (b"second", True)
    path.write_bytes(b"abc")
    third = files.open(path)
    with open(path, "ab") as f:
        f.write(b"defg")
    assert files.read_block(third, 0, 100) == (b"abcdefg", True)
    os.truncate(path, 2)
    assert files.read_block(third, 0, 2) == (b"ab", False)
    assert files.read_block(third, 2, 10) == (b"", True)


def test_larger_than_readfile_allows(files, place):
    """There is no limit of size for handles."""
    with open(place / "sparse", "wb") as f:
        f.seek(2**40)
        f.write(b"end")
    handle = files.open(place / "sparse")
    assert files.read_block(handle, 2**40 - 2, 100) == (b"\0\0end", True)


# Opening.

@pytest.fixture
def tree(place):
    (place / "f").write_bytes(b"old")
    (place / "dir").mkdir()
    (place / "link").symlink_to("f")
    (place / "dirlink").symlink_to("dir")
    (place / "dangling").symlink_to("made")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "socket"))
    return place


# What opening gives to read, and to write. None: it succeeds.
OPENED = {
    "f": (None, None),
    "link": (None, None),
    "new": (os_error(2), None),
    "dangling": (os_error(2), None),
    "dir": (not_a_file, os_error(21)),
    "dirlink": (not_a_file, os_error(21)),
    "fifo": (not_a_file, os_error(6)),
    "socket": (os_error(6), os_error(6)),
    "loop": (os_error(40), os_error(40)),
    "missing/f": (os_error(2), os_error(2)),
    "f/f": (os_error(20), os_error(20)),
    "n" * 256: (os_error(36), os_error(36)),
}


@pytest.mark.parametrize("mode", ["read", "replace", "update"])
@pytest.mark.parametrize("name", OPENED, ids=lambda n: n[:20])
def test_kinds_of_paths(files, tree, name, mode):
    expected = OPENED[name][mode != "read"]
    expected = expected(tree / name) if callable(expected) else expected
    if expected:
        assert files.error("open", tree / name, handleId="h", mode=mode) == expected
        assert files.error("readBlock", handleId="h", offset=0, len=1) == unknown("h")
        assert (tree / "f").read_bytes() == b"old"
        return
    files.open(tree / name, "h", mode=mode)
    kept = b"" if mode == "replace" or name in ("new", "dangling") else b"old"
    assert (tree / name).read_bytes() == kept


def test_devices(files):
    for mode in ("read", "replace", "update"):
        assert files.error("open", "/dev/null", handleId="h", mode=mode) == not_a_file("/dev/null")
    assert files.error("open", "/", handleId="h") == not_a_file("/")
    assert files.error("open", "/", handleId="h", mode="replace") == os_error(21)


def test_fifo_with_a_reader(files, tree):
    reader = os.open(tree / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    for mode in ("replace", "update"):
        assert files.error("open", tree / "fifo", handleId="h", mode=mode) \
            == not_a_file(tree / "fifo")
    os.close(reader)


def test_links_are_always_followed(files, tree):
    """There is no followSymlinks here: it is one of the fields that nobody knows."""
    handle = files.open(tree / "link", followSymlinks=False)
    assert files.read_block(handle, 0, 10) == (b"old", True)


def test_mode_of_a_replaced_file(fleet, place):
    files = Files(fleet.start(preexec=lambda: os.umask(0o027)).client())
    (place / "old").write_bytes(b"old")
    (place / "old").chmod(0o604)
    before = (place / "old").stat()
    files.open(place / "old", mode="replace")
    files.open(place / "new", mode="replace")
    after = (place / "old").stat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, 0)
    assert stat.S_IMODE((place / "new").stat().st_mode) == 0o640


def test_update_continues_a_file(fleet, place):
    """An upload that was cut goes on where it was, on another connection."""
    server = fleet.start(preexec=lambda: os.umask(0o027))
    files = Files(server.client())
    handle = files.open(place / "f", mode="update")
    files.write_block(handle, 0, b"first ")
    files.client.close()
    files = Files(server.client())
    before = (place / "f").stat()
    assert stat.S_IMODE(before.st_mode) == 0o640
    handle = files.open(place / "f", mode="update")
    assert (place / "f").read_bytes() == b"first "
    files.write_block(handle, 6, b"second")
    assert files.error("readBlock", handleId=handle, offset=0, len=1) == os_error(9)
    assert (place / "f").read_bytes() == b"first second"
    assert (place / "f").stat().st_ino == before.st_ino


def test_update_and_replace_at_once(files, place):
    """Both write to the one file there is."""
    first = files.open(place / "f", mode="update")
    files.write_block(first, 0, b"12345678")
    second = files.open(place / "f", mode="replace")
    files.write_block(first, 4, b"ABCD")
    files.write_block(second, 0, b"xy")
    assert (place / "f").read_bytes() == b"xy\0\0ABCD"


def test_without_permission(plain_files, place):
    (place / "f").write_bytes(b"kept")
    (place / "f").chmod(0o600)
    for mode in ("read", "replace", "update"):
        assert plain_files.error("open", place / "f", handleId="h", mode=mode) == os_error(13)
    for mode in ("replace", "update"):
        assert plain_files.error("open", place / "new", handleId="h", mode=mode) == os_error(13)
    assert (place / "f").read_bytes() == b"kept"


# Ids and limits.

@pytest.mark.parametrize("handle", ["", "x" * 32, "\u00e9" * 16, "a`b\"c\\d\n", "\u20ac" * 10,
                                    "0", "../x", "\U0001F600" * 8])
def test_ids(files, place, handle):
    (place / "f").write_bytes(b"x")
    files.open(place / "f", handle)
    assert files.error("open", place / "missing", handleId=handle) == exists(handle)
    assert files.read_block(handle, 0, 1) == (b"x", False)
    files.close(handle)
    assert files.error("readBlock", handleId=handle, offset=0, len=1) == unknown(handle)


@pytest.mark.parametrize("handle", ["x" * 33, "\u00e9" * 17, "\u20ac" * 11, "x" * 10000])
def test_ids_that_are_too_long(files, place, handle):
    """The first check of all four methods."""
    assert files.error("open", place / "missing", handleId=handle) == TOO_LONG
    assert files.error("readBlock", handleId=handle, offset=0, len=0) == TOO_LONG
    assert files.error("writeBlock", handleId=handle, offset=0, chunk="") == TOO_LONG
    assert files.error("close", handleId=handle) == TOO_LONG


def test_number_of_handles(shared, place):
    """128, to read and to write together; the next touches nothing."""
    files = Files(shared.client())
    (place / "f").write_bytes(b"kept")
    handles = [files.open(place / "f") for _ in range(64)]
    handles += [files.open(place / f"w{i}", mode="replace") for i in range(64)]
    assert files.error("open", place / "f", handleId="more", mode="replace") == TOO_MANY
    assert files.error("open", place / "missing", handleId="more") == TOO_MANY
    assert files.error("open", place / "f", handleId=handles[3]) == exists(handles[3])
    assert (place / "f").read_bytes() == b"kept"
    # Other connections have their own.
    other = Files(shared.client())
    other.open(place / "f", handles[0])
    assert len(open_in(shared, place)) == LIMIT + 1
    files.close(handles[7])
    files.open(place / "f", "more")
    assert files.error("open", place / "f", handleId="yet more") == TOO_MANY
    files.client.transport.reset()
    until(lambda: len(open_in(shared, place)) == 1, "the handles of the other connection only")
    assert other.read_block(handles[0], 0, 10) == (b"kept", True)
    other.client.end()
    until(lambda: not open_in(shared, place), "no handle left")


def test_a_failed_open_is_not_counted(files, place):
    (place / "f").touch()
    for i in range(200):
        assert files.error("open", place / "missing", handleId=f"x{i}") == os_error(2)
    for i in range(LIMIT):
        files.open(place / "f", f"x{i}")


def test_pipelined_opens_count(files, place):
    """Opens that are under way have their places."""
    (place / "f").touch()
    idents = [files.send("open", place / "f", handleId=f"h{i}") for i in range(LIMIT + 5)]
    answers = [files.client.answer(i) for i in idents]
    assert ["result" in a for a in answers] == [True] * LIMIT + [False] * 5
    assert all(a["error"]["message"] == TOO_MANY[1] for a in answers[LIMIT:])


def test_handles_belong_to_the_connection(shared, place):
    (place / "f").write_bytes(b"x")
    first, second = Files(shared.client()), Files(shared.client())
    first.open(place / "f", "mine")
    assert second.error("readBlock", handleId="mine", offset=0, len=1) == unknown("mine")
    second.close("mine")
    assert first.read_block("mine", 0, 1) == (b"x", False)
    first.client.end()
    resumed = Files(shared.client(resume=first.client.session))
    assert resumed.error("readBlock", handleId="mine", offset=0, len=1) == unknown("mine")
    until(lambda: not open_in(shared, place), "the handle is closed")


def test_closing(files, place):
    (place / "f").write_bytes(b"x")
    files.close("never opened")
    files.close("")
    handle = files.open(place / "f")
    files.close(handle)
    files.close(handle)
    files.open(place / "f", handle)
    assert files.read_block(handle, 0, 1) == (b"x", False)


def test_handles_are_not_inherited(files, place):
    (place / "f").write_bytes(b"x")
    for mode in ("read", "replace"):
        files.open(place / "f", mode=mode)
    output = files.client.run("ls -l /proc/self/fd").output()
    assert str(place).encode() not in output


# Writing.

def test_write_and_read_back(files, place):
    content = os.urandom(2 * MIB + 77)
    (place / "f").write_bytes(b"x" * (4 * MIB))
    handle = files.open(place / "f", mode="replace")
    assert (place / "f").stat().st_size == 0
    for offset in range(0, len(content), MIB):
        files.write_block(handle, offset, content[offset:offset + MIB])
    assert (place / "f").read_bytes() == content
    files.close(handle)


def test_any_order_holes_and_overlaps(files, place):
    handle = files.open(place / "f", mode="replace")
    files.write_block(handle, 10, b"later")
    files.write_block(handle, 0, b"first")
    files.write_block(handle, 3, b"XYZ")
    assert (place / "f").read_bytes() == b"firXYZ\0\0\0\0later"
    other = files.open(place / "f", mode="replace")
    files.write_block(handle, 2, b"a")
    files.write_block(other, 1, b"b")
    assert (place / "f").read_bytes() == b"\0ba"


@pytest.mark.parametrize("size", [0, MIB + 1, 3 * MIB])
def test_length_of_a_write(files, place, size):
    handle = files.open(place / "f", mode="replace")
    assert files.error("writeBlock", handleId=handle, offset=0, chunk=b64(b"x" * size)) \
        == BAD_WRITE_LENGTH
    assert files.error("writeBlock", handleId="nobody", offset=0, chunk=b64(b"x" * size)) \
        == BAD_WRITE_LENGTH
    files.write_block(handle, 0, b"y" * MIB)
    assert (place / "f").read_bytes() == b"y" * MIB


def test_range_of_a_write(files, place):
    handle = files.open(place / "f", mode="replace")
    for offset in (2**63 - 1, 2**63, 2**64 - 1):
        assert files.error("writeBlock", handleId=handle, offset=offset, chunk=b64("ab")) \
            == BAD_RANGE
    # Allowed by the protocol, too far for the file system.
    assert files.error("writeBlock", handleId=handle, offset=2**63 - 3, chunk=b64("ab")) \
        == os_error(27)
    files.write_block(handle, 0, b"still open")
    assert (place / "f").read_bytes() == b"still open"


@pytest.mark.parametrize("chunk, reason", [
    ("!", "Invalid symbol 33, offset 0."), ("YQ", "Invalid padding"),
    ("a", "Invalid input length: 1"),
    ("YR==", "Invalid last symbol 82, offset 1."), ("YWJj\n", "Invalid symbol 10, offset 4.")])
def test_bad_base64(files, place, chunk, reason):
    handle = files.open(place / "f", mode="replace")
    for name in (handle, "nobody", "x" * 33):
        assert files.error("writeBlock", handleId=name, offset=0, chunk=chunk) == (-32602, reason)
    files.write_block(handle, 0, b"fine")


def test_a_failing_write_keeps_the_handle(files, place):
    (place / "f").write_bytes(b"kept")
    handle = files.open(place / "f")
    assert files.error("writeBlock", handleId=handle, offset=0, chunk=b64("x")) == os_error(9)
    assert files.read_block(handle, 0, 10) == (b"kept", True)
    assert files.error("writeBlock", handleId="nobody", offset=0, chunk=b64("x")) \
        == unknown("nobody")


def test_full_disk(files, mounts):
    disk = mounts.tmpfs("size=1m")
    (disk / "other").write_bytes(b"o" * 300000)
    handle = files.open(disk / "f", mode="replace")
    files.write_block(handle, 0, b"1" * 500000)
    assert files.error("writeBlock", handleId=handle, offset=500000, chunk=b64(b"2" * MIB)) \
        == os_error(28)
    kept = (disk / "f").read_bytes()
    assert kept == b"1" * 500000 + b"2" * (len(kept) - 500000)
    (disk / "other").unlink()
    files.write_block(handle, 500000, b"3" * 200000)
    assert (disk / "f").read_bytes()[:700000] == b"1" * 500000 + b"3" * 200000


@pytest.mark.parametrize("number", [5, 28, 122])
def test_write_failures_of_the_file_system(files, faultfs, number):
    handle = files.open(faultfs.path / f"e{number}-write@100000", mode="replace")
    files.write_block(handle, 0, b"a" * 60000)
    assert files.error("writeBlock", handleId=handle, offset=60000, chunk=b64(b"b" * 60000)) \
        == os_error(number)
    files.write_block(handle, 0, b"c" * 10)
    assert (faultfs.real / f"e{number}-write@100000").read_bytes() \
        == b"c" * 10 + b"a" * 59990 + b"b" * 40000
    short = files.open(faultfs.path / "short-write", mode="replace")
    files.write_block(short, 5, b"0123456789" * 10000)
    assert (faultfs.real / "short-write").read_bytes() == b"\0" * 5 + b"0123456789" * 10000


def test_close_of_a_file_that_cannot_be_flushed(shared, faultfs):
    """fs/close succeeds for every id; the descriptor is gone."""
    files = Files(shared.client())
    handle = files.open(faultfs.file("e5-flush", b"x"))
    assert files.read_block(handle, 0, 5) == (b"x", True)
    files.close(handle)
    assert open_in(shared, faultfs.path) == []


# Pipelining.

def test_two_reads_in_flight(files, data):
    path, content = data
    handle = files.open(path)
    block = 100000
    offsets = list(range(0, len(content) + block, block))
    def ask(offset):
        return files.send("readBlock", handleId=handle, offset=offset, len=block)
    flight = [ask(offsets[0]), ask(offsets[1])]
    got = []
    for offset in offsets[2:] + [None, None]:
        result = files.client.result(flight.pop(0))
        got.append(unb64(result["chunk"]))
        if offset is not None:
            flight.append(ask(offset))
    assert b"".join(got) == content and result["eof"]


def test_64_pipelined_reads_and_writes(files, data, place):
    path, content = data
    source, target = files.open(path), files.open(place / "copy", mode="replace")
    block = len(content) // 64 + 1
    reads = [files.send("readBlock", handleId=source, offset=i * block, len=block)
             for i in range(64)]
    chunks = [files.client.result(ident)["chunk"] for ident in reads]
    writes = [files.send("writeBlock", handleId=target, offset=i * block, chunk=chunk)
              for i, chunk in enumerate(chunks)]
    closed = files.send("close", handleId=target)
    for ident in (*writes, closed):
        assert files.client.result(ident) == {}
    assert (place / "copy").read_bytes() == content


def test_a_whole_life_in_one_packet(files, place):
    """Each request finds what the ones before it left, although nobody waits in between."""
    (place / "f").write_bytes(b"x")
    idents = []
    for i in range(40):
        handle = f"h{i % 3}"
        idents += [files.send("open", place / "f", handleId=handle),
                   files.send("readBlock", handleId=handle, offset=0, len=9),
                   files.send("close", handleId=handle),
                   files.send("readBlock", handleId=handle, offset=0, len=9)]
    for i in range(40):
        opened, read, closed, late = [files.client.answer(x) for x in idents[4 * i:4 * i + 4]]
        assert opened["result"] == {"handleId": f"h{i % 3}"}
        assert read["result"] == {"chunk": "eA==", "eof": True}
        assert closed["result"] == {}
        assert late["error"]["code"] == -32004


def test_vanishing_in_the_middle_of_writes(shared, place):
    """What was acknowledged is in the file; no handle stays open."""
    files = Files(shared.client())
    handle = files.open(place / "f", mode="replace")
    idents = [files.send("writeBlock", handleId=handle, offset=i * 50000, chunk=b64(b"x" * 50000))
              for i in range(100)]
    for ident in idents[:30]:
        assert files.client.result(ident) == {}
    files.client.transport.reset()
    until(lambda: not open_in(shared, place), "the handle is closed")
    content = (place / "f").read_bytes()
    assert len(content) >= 30 * 50000 and set(content) == {ord("x")}


def test_vanishing_in_the_middle_of_opens(shared, place):
    for i in range(60):
        (place / str(i)).touch()
    for _ in range(5):
        files = Files(shared.client())
        for i in range(60):
            files.send("open", place / str(i), handleId=str(i))
        files.client.transport.reset()
    until(lambda: not open_in(shared, place), "no handle stays")


def test_over_stdio(fleet, data):
    path, content = data
    files = Files(fleet.stdio())
    handle = files.open(path)
    assert files.read_block(handle, 1, MIB) == (content[1:MIB + 1], False)
    files.close(handle)
    assert files.error("readBlock", handleId=handle, offset=0, len=1) == unknown(handle)


def test_bad_mode(client, place):
    for mode in ("bogus", "Read", "Update", ""):
        assert client.error("fs/open", {"handleId": "h", "path": uri(place), "mode": mode}) \
            == (-32602, f"unknown variant `{mode}`, expected `read` or `replace`")
    code, _ = client.error("fs/open", {"handleId": "h", "path": uri(place), "mode": None})
    assert code == -32602
