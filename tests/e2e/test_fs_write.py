"""fs/writeFile: in place, with links followed or not, what it refuses, full disks."""

import fcntl
import os
import shutil
import socket
import stat
import subprocess

import pytest

from harness.files import MIB, Files, os_error
from harness.meddler import Meddler, exchange
from harness.resting import wait_rest
from harness.rpc import b64

BAD_BASE64 = "fs/writeFile requires valid base64 dataBase64: "
DONE = {}


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def tree(place):
    (place / "a.txt").write_bytes(b"old content")
    (place / "dir").mkdir()
    (place / "dir" / "inner").write_bytes(b"old inner")
    (place / "link").symlink_to("a.txt")
    (place / "dirlink").symlink_to("dir")
    (place / "dangling").symlink_to("made")
    (place / "dangling-far").symlink_to("missing/made")
    (place / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "socket"))
    return place


# The outcome with links followed, without, and the file that is written then.
CASES = {
    "new": (DONE, DONE, "new"),
    "a.txt": (DONE, DONE, "a.txt"),
    "dir/inner": (DONE, DONE, "dir/inner"),
    "dir/new": (DONE, DONE, "dir/new"),
    "link": (DONE, os_error(40), "a.txt"),
    "dirlink/inner": (DONE, os_error(20), "dir/inner"),
    "dirlink/new": (DONE, os_error(20), "dir/new"),
    "dangling": (DONE, os_error(40), "made"),
    "dangling-far": (os_error(2), os_error(40), None),
    "loop": (os_error(40), os_error(40), None),
    "dir": (os_error(21), os_error(21), None),
    "dirlink": (os_error(21), os_error(40), None),
    "missing/new": (os_error(2), os_error(2), None),
    "a.txt/new": (os_error(20), os_error(20), None),
    "socket": (os_error(6), os_error(6), None),
    "n" * 255: (DONE, DONE, "n" * 255),
    "n" * 256: (os_error(36), os_error(36), None),
}


def snapshot(place):
    """Every entry below a directory with its kind, mode and content."""
    found = {}
    for path in sorted(place.rglob("*")):
        info = os.lstat(path)
        content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else \
            path.read_bytes() if stat.S_ISREG(info.st_mode) else None
        found[str(path.relative_to(place))] = info.st_mode, content
    return found


@pytest.mark.parametrize("follow", [True, False, None])
@pytest.mark.parametrize("name", CASES, ids=lambda n: n[:20])
def test_kinds_of_paths(files, tree, name, follow):
    expected = CASES[name][1 if follow is False else 0]
    before = snapshot(tree)
    assert files.outcome("writeFile", tree / name, dataBase64=b64(b"new"), followSymlinks=follow) \
        == expected
    after = snapshot(tree)
    if expected == DONE:
        assert after.pop(CASES[name][2])[1] == b"new"
        before.pop(CASES[name][2], None)
    assert after == before


@pytest.mark.parametrize("path, follow, no_follow", [
    ("/", os_error(21), (-32600, "path must name an entry")),
    ("/dev/null", DONE, (-32600, "path is not a regular file")),
    ("/dev/full", os_error(28), (-32600, "path is not a regular file")),
    ("/proc/self/status", os_error(13), os_error(20)),
])
def test_special_files(plain_files, path, follow, no_follow):
    assert plain_files.outcome("writeFile", path, dataBase64=b64("x")) == follow
    assert plain_files.outcome("writeFile", path, dataBase64=b64("x"), followSymlinks=False) \
        == no_follow


def test_fifo(files, place):
    """Never waits: without a reader it is ENXIO, with one it is not a file."""
    fifo = place / "fifo"
    os.mkfifo(fifo)
    for params in ({}, {"followSymlinks": False}, {"atomic": False}):
        assert files.error("writeFile", fifo, dataBase64=b64("x"), **params) == os_error(6)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert files.error("writeFile", fifo, dataBase64=b64("x")) \
        == (-32600, f"path `{fifo}` is not a file")
    assert files.error("writeFile", fifo, dataBase64=b64("x"), followSymlinks=False) \
        == (-32600, "path is not a regular file")
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_running_program(files, place):
    program = shutil.copy("/bin/sleep", place / "program")
    with subprocess.Popen([program, "1000"]) as running:
        for follow in (True, False):
            assert files.error("writeFile", program, dataBase64="", followSymlinks=follow) \
                == os_error(26)
        running.kill()
    with open("/bin/sleep", "rb") as f:
        assert (place / "program").read_bytes() == f.read()


def test_written_in_place(files, place):
    """Inode, mode, owner and other names of the file stay."""
    path = place / "f"
    path.write_bytes(b"a longer content than before")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(0o6751)
    os.link(path, place / "second")
    before = path.stat()
    for follow in (True, False):
        content = b"content %d" % follow
        files.write(path, content, followSymlinks=follow)
        assert (place / "second").read_bytes() == content
        after = path.stat()
        assert (after.st_ino, after.st_uid, after.st_gid) \
            == (before.st_ino, before.st_uid, before.st_gid)
        assert stat.S_IMODE(after.st_mode) & 0o777 == 0o751


@pytest.mark.parametrize("umask, expected", [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_mode_of_new_files(fleet, place, umask, expected):
    files = Files(fleet.start(preexec=lambda: os.umask(umask)).client())
    for name, follow in (("a", True), ("b", False)):
        files.write(place / name, b"x", followSymlinks=follow)
        assert mode(place / name) == expected


def test_without_permission(plain_files, place):
    (place / "other").write_bytes(b"kept")
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    for follow in (True, False):
        for name in ("other", "new"):
            assert plain_files.error("writeFile", place / name, dataBase64="",
                                     followSymlinks=follow) == os_error(13)
        plain_files.write(place / "open" / f"new{follow}", b"mine", followSymlinks=follow)
    assert (place / "other").read_bytes() == b"kept"
    assert not (place / "new").exists()
    assert (place / "open" / "newTrue").stat().st_uid == 65534


def test_read_only_file_system(files, mounts, place):
    (place / "source").mkdir()
    (place / "source" / "f").write_bytes(b"kept")
    target = mounts.read_only(place / "source")
    for name in ("f", "new"):
        for follow in (True, False):
            assert files.error("writeFile", target / name, dataBase64="", followSymlinks=follow) \
                == os_error(30)
    assert (place / "source" / "f").read_bytes() == b"kept"


# Base64.

@pytest.mark.parametrize("text, reason", [
    ("!!", "Invalid symbol 33, offset 0."),
    ("a", "Invalid input length: 1"),
    ("YQ", "Invalid padding"),
    ("YQ=", "Invalid padding"),
    ("abc", "Invalid padding"),
    ("YR==", "Invalid last symbol 82, offset 1."),
    ("YWJj\n", "Invalid symbol 10, offset 4."),
    ("-_-_", "Invalid symbol 45, offset 0."),
    ("YQ==YQ==", "Invalid symbol 61, offset 2."),
    ("\u00e9", "Invalid symbol 195, offset 0."),
])
def test_bad_base64(files, place, text, reason):
    """Refused before the file system is touched."""
    (place / "f").write_bytes(b"kept")
    for name in ("f", "new", "missing/new"):
        for follow in (True, False):
            assert files.error("writeFile", place / name, dataBase64=text, followSymlinks=follow) \
                == (-32600, BAD_BASE64 + reason)
    assert (place / "f").read_bytes() == b"kept"
    assert os.listdir(place) == ["f"]


def test_data_that_is_escaped(client, place):
    """The solidus of Base64 may be written as an escape, and so may every other letter."""
    client.send_raw('{"id":900,"method":"fs/writeFile","params":{"path":"%s/f",'
                    '"dataBase64":"\\/\\u002b8\\u003d"}}' % place)
    assert client.result(900) == {}
    assert (place / "f").read_bytes() == b"\xff\xef"


# Sizes.

@pytest.mark.parametrize("size", [0, 1, 2, 3, 4095, 65536, MIB + 1, 12 * MIB])
def test_content_of_every_size(files, place, size):
    data = os.urandom(size)
    for follow in (True, False):
        path = place / f"f{follow}"
        path.write_bytes(b"x" * 70000)
        files.write(path, data, followSymlinks=follow)
        assert path.read_bytes() == data


def test_largest_message(files, place):
    """64 MiB of message hold 48 MiB less a little."""
    data = os.urandom(MIB) * 47
    files.write(place / "f", data)
    assert (place / "f").read_bytes() == data


def test_many_pipelined(files, place):
    idents = [files.send("writeFile", place / str(i), dataBase64=b64(b"%d" % i * 1000))
              for i in range(64)]
    for i, ident in enumerate(idents):
        assert files.client.result(ident) == {}
        assert (place / str(i)).read_bytes() == b"%d" % i * 1000


def test_large_ones_pipelined(files, place):
    """Those that wait keep their own memory, and each is checked before its file is touched."""
    contents = [os.urandom(300_000 + 700_001 * i) for i in range(6)]
    good, bad = [], []
    for i, data in enumerate(contents):
        text = b64(data)
        at = len(text) // 2 + i
        good.append(files.send("writeFile", place / str(i), dataBase64=text))
        (place / f"bad{i}").write_bytes(b"old")
        bad.append((files.send("writeFile", place / f"bad{i}",
                               dataBase64=text[:at] + "*" + text[at + 1:]), at))
    for i, data in enumerate(contents):
        assert files.client.result(good[i]) == {}
        assert (place / str(i)).read_bytes() == data
        ident, at = bad[i]
        error = files.client.answer(ident)["error"]
        assert error["message"] == f"{BAD_BASE64}Invalid symbol 42, offset {at}."
        assert (place / f"bad{i}").read_bytes() == b"old"


def test_what_is_acknowledged_can_be_read(files, place):
    """Requests of one connection see what the ones before them did."""
    path = place / "f"
    wanted = []
    for i in range(32):
        files.send("writeFile", path, dataBase64=b64(b"%d" % i))
        wanted.append(files.send("readFile", path))
    for i, ident in enumerate(wanted):
        assert files.client.result(ident) == {"dataBase64": b64(b"%d" % i)}


# Full disks.

@pytest.mark.parametrize("follow", [True, False])
def test_full_disk(files, mounts, follow):
    """A part may stay; the connection and what else lies on the disk are unharmed."""
    disk = mounts.tmpfs("size=1m")
    (disk / "other").write_bytes(b"o" * 100000)
    data = os.urandom(2 * MIB)
    assert files.error("writeFile", disk / "f", dataBase64=b64(data), followSymlinks=follow) \
        == os_error(28)
    kept = (disk / "f").read_bytes()
    assert 0 < len(kept) < MIB and data.startswith(kept)
    assert (disk / "other").read_bytes() == b"o" * 100000
    files.remove(disk / "f")
    files.write(disk / "f", data[:500000], followSymlinks=follow)
    assert (disk / "f").read_bytes() == data[:500000]


def test_no_inode_left(files, mounts):
    disk = mounts.tmpfs("size=1m,nr_inodes=3")
    files.write(disk / "a", b"1")
    files.write(disk / "b", b"2")
    for follow in (True, False):
        assert files.error("writeFile", disk / "c", dataBase64="", followSymlinks=follow) \
            == os_error(28)
    assert sorted(os.listdir(disk)) == ["a", "b"]


@pytest.mark.parametrize("number", [5, 28, 122])
def test_failing_file_system(files, faultfs, number):
    """EIO, ENOSPC, EDQUOT in the middle of the data, at once, and at the end of it."""
    for name in (f"e{number}-write", f"e{number}-write@300000"):
        path = faultfs.file(name, b"old")
        for follow in (True, False):
            assert files.error("writeFile", path, dataBase64=b64(b"n" * MIB),
                               followSymlinks=follow) == os_error(number)
        kept = (faultfs.real / name).read_bytes()
        assert kept == b"n" * (300000 if "@" in name else 0)
    path = faultfs.file(f"e{number}-open", b"old")
    for follow in (True, False):
        assert files.error("writeFile", path, dataBase64="", followSymlinks=follow) \
            == os_error(number)
        assert files.error("writeFile", faultfs.path / f"e{number}-create", dataBase64="",
                           followSymlinks=follow) == os_error(number)
    files.write(faultfs.path / "fine", b"fine")
    assert (faultfs.real / "fine").read_bytes() == b"fine"


def test_short_writes(files, faultfs):
    data = os.urandom(100000)
    for follow in (True, False):
        files.write(faultfs.path / "short-write", data, followSymlinks=follow)
        assert (faultfs.real / "short-write").read_bytes() == data


# Others at work.

def test_races_for_a_link_without_following(files, place):
    """A directory that becomes a link and back is passed only while it is a directory."""
    (place / "outside").mkdir()
    (place / "outside" / "f").write_bytes(b"safe")
    (place / "dir").mkdir()
    (place / "dir" / "f").write_bytes(b"old")
    (place / "lure").symlink_to("outside")
    outcomes = []
    with Meddler(lambda _: exchange(place / "dir", place / "lure")):
        for _ in range(400):
            outcomes.append(files.outcome("writeFile", place / "dir" / "f", dataBase64=b64("new"),
                                          followSymlinks=False))
    assert all(o in (DONE, os_error(20)) for o in outcomes) and DONE in outcomes
    assert (place / "outside" / "f").read_bytes() == b"safe"


def test_two_connections_write_one_file(shared, place):
    first, second = Files(shared.client()), Files(shared.client())
    contents = [b"1" * MIB, b"2" * MIB]
    idents = [[f.send("writeFile", place / "f", dataBase64=b64(c)) for _ in range(4)]
              for f, c in ((first, contents[0]), (second, contents[1]))]
    for f, sent in zip((first, second), idents):
        for ident in sent:
            assert f.client.result(ident) == {}
    assert set((place / "f").read_bytes()) <= {ord("1"), ord("2")}
    first.write(place / "f", b"last")
    assert (place / "f").read_bytes() == b"last"


def test_locked_file(files, place):
    """Advisory locks of others are theirs."""
    with open(place / "f", "wb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        files.write(place / "f", b"x")
    assert (place / "f").read_bytes() == b"x"


def test_client_that_vanishes(shared, place):
    """What was acknowledged is there, whatever came after it."""
    files = Files(shared.client())
    idents = [files.send("writeFile", place / str(i), dataBase64=b64(b"x" * 100000))
              for i in range(50)]
    for ident in idents[:20]:
        assert files.client.result(ident) == {}
    files.client.transport.reset()
    for i in range(20):
        assert (place / str(i)).read_bytes() == b"x" * 100000
    # What runs by then still ends: it may make a file between two looks at the descriptors.
    wait_rest(shared, after=lambda: not [t for t in shared.fd_targets()
                                         if t.startswith(str(place))])
