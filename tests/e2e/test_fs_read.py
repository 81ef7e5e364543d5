"""fs/readFile: content, refusals with links followed or not, names, limits, moving files."""

import os
import socket

import pytest

from harness.files import MIB, Files, os_error, uri
from harness.meddler import Meddler, exchange
from harness.rpc import unb64

LIMIT = 512 * MIB
TOO_LARGE = (-32600, f"file is too large to read: limit is {LIMIT} bytes")
NOT_REGULAR = (-32600, "path is not a regular file")


def not_a_file(path):
    return -32600, f"path `{path}` is not a file"


@pytest.fixture
def tree(place):
    """One of each kind."""
    (place / "a.txt").write_bytes(b"hello\n")
    (place / "empty").touch()
    (place / "dir").mkdir()
    (place / "dir" / "inner").write_bytes(b"inner")
    (place / "link").symlink_to("a.txt")
    (place / "link2").symlink_to("link")
    (place / "dirlink").symlink_to("dir")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("pool")
    (place / "pool").symlink_to("loop")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "socket"))
    return place


# What reading gives with links followed, and without.
CASES = {
    "a.txt": (b"hello\n", b"hello\n"),
    "empty": (b"", b""),
    "dir/inner": (b"inner", b"inner"),
    "link": (b"hello\n", os_error(40)),
    "link2": (b"hello\n", os_error(40)),
    "dirlink/inner": (b"inner", os_error(20)),
    "dirlink": (not_a_file, os_error(40)),
    "dangling": (os_error(2), os_error(40)),
    "dangling/x": (os_error(2), os_error(20)),
    "loop": (os_error(40), os_error(40)),
    "loop/x": (os_error(40), os_error(20)),
    "missing": (os_error(2), os_error(2)),
    "missing/x": (os_error(2), os_error(2)),
    "a.txt/x": (os_error(20), os_error(20)),
    "dir": (not_a_file, NOT_REGULAR),
    "fifo": (not_a_file, NOT_REGULAR),
    "socket": (os_error(6), os_error(6)),
    "x" * 256: (os_error(36), os_error(36)),
}


def check(files, path, expected, **params):
    """Reads and compares with bytes, an error, or a function that makes the error."""
    if isinstance(expected, bytes):
        assert files.read(path, **params) == expected
    else:
        expected = expected(path) if callable(expected) else expected
        assert files.error("readFile", path, **params) == expected


@pytest.mark.parametrize("name", CASES, ids=lambda n: n[:20])
def test_kinds_of_paths(files, tree, name):
    follow, no_follow = CASES[name]
    check(files, tree / name, follow)
    check(files, tree / name, follow, followSymlinks=True)
    check(files, tree / name, follow, followSymlinks=None)
    check(files, tree / name, no_follow, followSymlinks=False)


@pytest.mark.parametrize("path, follow, no_follow", [
    ("/", not_a_file, (-32600, "path must name an entry")),
    ("/dev/null", not_a_file, NOT_REGULAR),
    ("/dev/zero", not_a_file, NOT_REGULAR),
    ("/proc/self/mem", os_error(5), os_error(20)),
    ("/proc/sys/kernel/ostype", b"Linux\n", b"Linux\n"),
])
def test_special_files(files, path, follow, no_follow):
    check(files, path, follow)
    check(files, path, no_follow, followSymlinks=False)


def test_files_without_a_size(files):
    """procfs and sysfs say 0 or 4096, whatever there is to read."""
    with open("/proc/filesystems", "rb") as f:
        assert files.read("/proc/filesystems") == f.read()
    assert files.read("/proc/self/status").startswith(b"Name:\t")
    with open("/sys/kernel/mm/transparent_hugepage/enabled", "rb") as f:
        assert files.read("/sys/kernel/mm/transparent_hugepage/enabled") == f.read()


def test_without_permission(plain_files, place):
    (place / "secret").write_bytes(b"x")
    (place / "secret").chmod(0o600)
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "x").write_bytes(b"x")
    for name in ("secret", "closed/x", "closed/missing"):
        for follow in (True, False):
            assert plain_files.error("readFile", place / name, followSymlinks=follow) \
                == os_error(13)


def test_below_a_directory_that_can_only_be_searched(plain_files, place):
    (place / "search").mkdir(mode=0o711)
    (place / "search" / "x").write_bytes(b"found")
    for follow in (True, False):
        assert plain_files.read(place / "search" / "x", followSymlinks=follow) == b"found"


# Names.

ODD_NAMES = [b"\xff\xfe", b"caf\xe9", b"\xc3\xa9t\xc3\xa9", "\U0001F600".encode(), b" blank ",
             b"new\nline", b"tab\t", b"\x01\x7f", b'"quoted"', b"back\\slash", b"100%", b"%41",
             b"a?b", b"a#b", b"a|b", b"{}[]^`<>", b"..x", b"...", b"~", b"C:", b"file:", b"-rf"]


@pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
def test_odd_names(files, place, name):
    path = os.path.join(os.fsencode(place), name)
    with open(path, "wb") as f:
        f.write(b"odd " + name)
    for follow in (True, False):
        assert files.read(path, followSymlinks=follow) == b"odd " + name


def test_text_for_a_name_that_is_not_utf8(files, place):
    os.mkdir(os.path.join(os.fsencode(place), b"d\xff\xfe"))
    assert files.error("readFile", os.path.join(os.fsencode(place), b"d\xff\xfe")) \
        == not_a_file(f"{place}/d\ufffd\ufffd")


def test_longest_name(files, place):
    (place / ("n" * 255)).write_bytes(b"long")
    for follow in (True, False):
        assert files.read(place / ("n" * 255), followSymlinks=follow) == b"long"
        assert files.error("readFile", place / ("n" * 256), followSymlinks=follow) == os_error(36)


def deep_directory(place, length):
    """Makes nested directories; a descriptor of the last, whose path has exactly length bytes."""
    path, fd = os.fsencode(place), os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    while len(path) < length:
        left = length - len(path) - 1
        name = b"d" * (left if left <= 200 else min(200, left - 2))
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, path = inner, path + b"/" + name
    assert len(path) == length
    return fd, path


def put(fd, name, data):
    made = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
    os.write(made, data)
    os.close(made)


def test_longest_path(files, place):
    """4,095 bytes and the terminator are PATH_MAX."""
    fd, path = deep_directory(place, 4090)
    put(fd, "last", b"fits")
    put(fd, "lasts", b"beyond")
    os.close(fd)
    assert files.read(path + b"/last") == b"fits"
    assert files.error("readFile", path + b"/lasts") == os_error(36)
    assert files.error("readFile", path + b"/nowhere") == os_error(36)


def test_longer_paths_without_following(files, place):
    fd, path = deep_directory(place, 9000)
    put(fd, "deep", b"down here")
    os.close(fd)
    assert files.read(path + b"/deep", followSymlinks=False) == b"down here"
    assert files.error("readFile", path + b"/none", followSymlinks=False) == os_error(2)
    assert files.error("readFile", path + b"/deep") == os_error(36)


@pytest.mark.parametrize("spelling", ["{}/a.txt/", "{}/./a.txt", "{}//a.txt", "{}/dir/../a.txt",
                                      "{}/dirlink/../a.txt", "{}/missing/../a.txt", "{}/a.txt/."])
def test_spellings_of_a_native_path(client, tree, spelling):
    result = client.call("fs/readFile", {"path": spelling.format(tree)})
    assert unb64(result["dataBase64"]) == b"hello\n"


# Sizes.

@pytest.mark.parametrize("size", [1, 2, 3, 4095, 4096, 65535, 65536, 65537, MIB, 3 * MIB - 1,
                                  4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 4 * MIB + 2, 12 * MIB + 5])
def test_content_of_every_size(files, place, size):
    data = os.urandom(size)
    (place / "data").write_bytes(data)
    for follow in (True, False):
        assert files.read(place / "data", followSymlinks=follow) == data


@pytest.mark.parametrize("size", [LIMIT + 1, 2 * LIMIT, 2**40])
def test_more_than_the_limit(files, place, size):
    with open(place / "large", "wb") as f:
        f.truncate(size)
    for follow in (True, False):
        assert files.error("readFile", place / "large", followSymlinks=follow) == TOO_LARGE


# Files that others change.

def test_a_file_that_grows(files, place):
    """An answer holds at least what was there before, in order."""
    path = place / "growing"
    line = b"0123456789abcde\n"
    path.write_bytes(line)
    with open(path, "ab", buffering=0) as f:
        def step(count):
            f.write(line * 100)
            return count < 500
        with Meddler(step):
            for _ in range(20):
                before = path.stat().st_size
                data = files.read(path)
                assert len(data) >= before
                assert data == (line * (len(data) // 16 + 1))[:len(data)]


def test_a_file_that_shrinks_and_grows(files, place):
    """Whatever moment is met, the connection goes on and no byte is invented."""
    path = place / "moving"
    path.write_bytes(b"x" * MIB)
    with open(path, "r+b", buffering=0) as f:
        def step(count):
            f.truncate(0 if count % 2 else 100)
            f.seek(0)
            f.write(b"x" * MIB)
        with Meddler(step):
            for _ in range(60):
                data = files.read(path)
                # A truncated part that is written again may be seen as a hole.
                assert len(data) <= MIB and set(data) <= {0, ord("x")}
    assert files.read(path) == b"x" * MIB


def test_a_path_that_is_replaced(files, place):
    """Replaced by rename, it is one or the other, never a mixture or an error."""
    path, other = place / "current", place / "next"
    contents = [bytes([ord("a") + i]) * (3000 * i + 1) for i in range(8)]
    path.write_bytes(contents[0])

    def step(count):
        other.write_bytes(contents[count % 8])
        os.replace(other, path)
    with Meddler(step):
        for _ in range(300):
            assert files.read(path) in contents


def test_races_for_a_link_without_following(files, place):
    """A directory that becomes a link and back is passed only while it is a directory."""
    (place / "outside").mkdir()
    (place / "outside" / "f").write_bytes(b"secret")
    (place / "dir").mkdir()
    (place / "dir" / "f").write_bytes(b"inside")
    (place / "lure").symlink_to("outside")

    def step(_count):
        exchange(place / "dir", place / "lure")
    seen = set()
    with Meddler(step):
        for _ in range(500):
            seen.add(str(files.outcome("readFile", place / "dir" / "f", followSymlinks=False)))
    assert not any("c2VjcmV0" in s for s in seen)
    assert any("aW5zaWRl" in s for s in seen)


# Requests.

def test_many_pipelined(files, place):
    for i in range(64):
        (place / str(i)).write_bytes(b"%d" % i * (i + 1))
    idents = [files.send("readFile", place / str(i)) for i in range(64)]
    for i, ident in enumerate(idents):
        assert unb64(files.client.result(ident)["dataBase64"]) == b"%d" % i * (i + 1)


def test_answers_keep_their_order(files, place):
    """Large, small, failing, by the loop or by a thread: first come, first served."""
    (place / "large").write_bytes(b"x" * (3 * MIB))
    (place / "small").write_bytes(b"y")
    names = ["large", "small", "missing", "small", "large", "small"] * 4
    idents = [files.send("readFile", place / n, followSymlinks=i % 3 > 0)
              for i, n in enumerate(names)]
    order = []
    while len(order) < len(idents):
        order.append(files.client.pump()["id"])
    assert order == idents


def test_nothing_stays_open(fleet, place):
    server = fleet.start()
    files = Files(server.client())
    (place / "f").write_bytes(b"x" * 100000)
    files.read(place / "f")
    before = server.fds()
    for follow in (True, False):
        for name in ("f", "missing", "missing/x", "f/x", "."):
            files.outcome("readFile", place / name, followSymlinks=follow)
    server.wait_fds(before)
    assert not [t for t in server.fd_targets() if t.startswith(str(place))]


def test_over_stdio(fleet, place):
    files = Files(fleet.stdio())
    data = os.urandom(6 * MIB)
    (place / "f").write_bytes(data)
    assert files.read(place / "f") == data
    assert files.error("readFile", place / "g") == os_error(2)


def test_native_and_uri(client, place):
    (place / "a b%41").write_bytes(b"odd")
    for path in (f"{place}/a b%41", uri(place / "a b%41"), f"file:{place}/a%20b%2541",
                 f"FILE://LocalHost{place}/a%20b%2541", f" {place}/a b%41"[1:]):
        assert unb64(client.call("fs/readFile", {"path": path})["dataBase64"]) == b"odd"
