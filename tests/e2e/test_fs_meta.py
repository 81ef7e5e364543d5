"""fs/getMetadata, fs/canonicalize, fs/setPermissions, fs/setTimes."""

import os
import socket
import stat

import pytest

from harness.files import os_error, uri
from harness.meddler import Meddler, exchange

DONE = {}
LINK_REFUSED = (-32600, "path contains a symbolic link")


@pytest.fixture
def tree(place):
    (place / "file").write_bytes(b"twelve bytes")
    (place / "dir").mkdir()
    (place / "dir" / "inner").touch()
    (place / "link").symlink_to("file")
    (place / "dirlink").symlink_to("dir")
    (place / "linklink").symlink_to("link")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "socket"))
    return place


def kind(metadata):
    return metadata["isDirectory"], metadata["isFile"], metadata["isSymlink"]


# Metadata.

# Directory, file, link; or the error. With links followed, and without.
KINDS = {
    "file": ((False, True, False), (False, True, False)),
    "dir": ((True, False, False), (True, False, False)),
    "dir/inner": ((False, True, False), (False, True, False)),
    "link": ((False, True, True), LINK_REFUSED),
    "linklink": ((False, True, True), LINK_REFUSED),
    "dirlink": ((True, False, True), LINK_REFUSED),
    "dirlink/inner": ((False, True, False), os_error(20)),
    "fifo": ((False, False, False), (False, False, False)),
    "socket": ((False, False, False), (False, False, False)),
    "dangling": (os_error(2), LINK_REFUSED),
    "loop": (os_error(40), LINK_REFUSED),
    "loop/x": (os_error(40), os_error(20)),
    "missing": (os_error(2), os_error(2)),
    "missing/x": (os_error(2), os_error(2)),
    "file/x": (os_error(20), os_error(20)),
    "n" * 256: (os_error(36), os_error(36)),
}


@pytest.mark.parametrize("follow", [True, False, None])
@pytest.mark.parametrize("name", KINDS, ids=lambda n: n[:20])
def test_kinds(files, tree, name, follow):
    expected = KINDS[name][follow is False]
    if len(expected) == 2:
        assert files.error("getMetadata", tree / name, followSymlinks=follow) == expected
        return
    metadata = files.metadata(tree / name, followSymlinks=follow)
    assert kind(metadata) == expected
    info = os.stat(tree / name)
    assert metadata["size"] == info.st_size
    assert metadata["modifiedAtMs"] == info.st_mtime_ns // 1000000


def test_the_root_and_devices(files):
    for follow in (True, False):
        assert kind(files.metadata("/", followSymlinks=follow)) == (True, False, False)
        null = files.metadata("/dev/null", followSymlinks=follow)
        assert kind(null) == (False, False, False) and null["size"] == 0
    assert files.metadata("/proc/self/status")["size"] == 0
    assert files.error("getMetadata", "/proc/self/status", followSymlinks=False) == os_error(20)


def test_times(files, place):
    path = place / "f"
    path.touch()
    for follow in (True, False):
        os.utime(path, ns=(0, 1234567890_987654321))
        assert files.metadata(path, followSymlinks=follow)["modifiedAtMs"] == 1234567890987
        os.utime(path, ns=(0, 2**33 * 10**9))
        assert files.metadata(path, followSymlinks=follow)["modifiedAtMs"] == 2**33 * 1000
        os.utime(path, ns=(0, 0))
        assert files.metadata(path, followSymlinks=follow)["modifiedAtMs"] == 0
    os.utime(path, ns=(0, -1_500_000_000))
    assert files.metadata(path)["modifiedAtMs"] == 0
    assert files.metadata(path, followSymlinks=False)["modifiedAtMs"] == -1500


def test_time_of_creation(files, place):
    """Real in both modes where the file system keeps it."""
    path = place / "f"
    path.touch()
    os.utime(path, ns=(0, 10**9))
    (place / "link").symlink_to("f")
    born = files.metadata(path, followSymlinks=False)["createdAtMs"]
    assert files.metadata(path)["createdAtMs"] == born
    assert files.metadata(place / "link")["createdAtMs"] == born
    assert born == 0 or abs(born - path.stat().st_ctime_ns // 1000000) < 60000


def test_no_time_of_creation(files, faultfs):
    path = faultfs.file("f")
    for follow in (True, False):
        assert files.metadata(path, followSymlinks=follow)["createdAtMs"] == 0


def test_large_size(files, place):
    with open(place / "f", "wb") as f:
        f.truncate(2**43)
    for follow in (True, False):
        assert files.metadata(place / "f", followSymlinks=follow)["size"] == 2**43


def test_no_permission_for_the_file_is_needed(plain_files, place):
    (place / "secret").write_bytes(b"1234")
    (place / "secret").chmod(0)
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "x").touch()
    for follow in (True, False):
        metadata = plain_files.metadata(place / "secret", followSymlinks=follow)
        assert metadata["size"] == 4 and kind(metadata) == (False, True, False)
        assert plain_files.error("getMetadata", place / "closed" / "x", followSymlinks=follow) \
            == os_error(13)


def test_long_paths(files, place):
    path = str(place) + "/" + "/".join(["d" * 200] * 30)
    files.mkdir(path, followSymlinks=False)
    assert files.error("getMetadata", path) == os_error(36)
    assert kind(files.metadata(path, followSymlinks=False)) == (True, False, False)


def test_names_that_are_not_utf8(files, place):
    path = os.path.join(os.fsencode(place), b"\xff\xfe")
    with open(path, "wb") as f:
        f.write(b"123")
    for follow in (True, False):
        assert files.metadata(path, followSymlinks=follow)["size"] == 3


def test_failing_file_system(files, faultfs):
    path = faultfs.file("e5-stat")
    for follow in (True, False):
        assert files.error("getMetadata", path, followSymlinks=follow) == os_error(5)


def test_what_is_cached_is_not_stale(files, place):
    """The loop answers from the kernel's caches; they know of every change."""
    path = place / "f"
    for size in range(50):
        path.write_bytes(b"x" * size)
        assert files.metadata(path)["size"] == size
        path.unlink()
        assert files.error("getMetadata", path) == os_error(2)
    (place / "other").symlink_to("dir")
    (place / "dir").mkdir()
    assert files.metadata(place / "other")["isDirectory"]
    (place / "dir").rmdir()
    assert files.error("getMetadata", place / "other") == os_error(2)


def test_many_pipelined(files, place):
    for i in range(64):
        (place / str(i)).write_bytes(b"x" * i)
    idents = [files.send("getMetadata", place / str(i)) for i in range(64)]
    for i, ident in enumerate(idents):
        assert files.client.result(ident)["size"] == i


def test_races_for_a_link(files, place):
    (place / "dir").mkdir()
    (place / "dir" / "f").write_bytes(b"1")
    (place / "outside").mkdir()
    (place / "outside" / "f").write_bytes(b"22")
    (place / "lure").symlink_to("outside")
    outcomes = []
    with Meddler(lambda _: exchange(place / "dir", place / "lure")):
        for _ in range(400):
            outcomes.append(files.outcome("getMetadata", place / "dir" / "f",
                                          followSymlinks=False))
    sizes = {o["size"] for o in outcomes if isinstance(o, dict)}
    assert sizes == {1}
    assert {o for o in outcomes if not isinstance(o, dict)} <= {os_error(20)}


# The real name.

def test_canonicalize(files, tree):
    (tree / "dir" / "up").symlink_to("../dirlink")
    for name, real in (("file", "file"), ("link", "file"), ("linklink", "file"), ("dir", "dir"),
                       ("dirlink", "dir"), ("dirlink/inner", "dir/inner"), ("fifo", "fifo"),
                       ("socket", "socket"), ("dir/up/up/inner", "dir/inner")):
        assert files.canonicalize(tree / name) == uri(tree / real)
    assert files.canonicalize("/") == "file:///"
    # Dots go before links are looked at, and nobody asks about following.
    assert files.client.call("fs/canonicalize", {"path": f"file://{tree}/dirlink/.."}) \
        == {"path": uri(tree)}
    assert files.canonicalize(tree / "link", followSymlinks=False) == uri(tree / "file")


@pytest.mark.parametrize("name, number", [
    ("missing", 2), ("missing/x", 2), ("dangling", 2), ("loop", 40), ("loop/x", 40),
    ("file/x", 20), ("link/x", 20), ("n" * 256, 36)])
def test_canonicalize_refusals(files, tree, name, number):
    assert files.error("canonicalize", tree / name) == os_error(number)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a b", b"100%", b'q"<>`{}', b"h#?", b"\x01\x7f",
                                  b"\xc3\xa9", b"[]^|~!$&'()*+,;=:@", b"C:", b"line\n", b"b\\s"],
                         ids=repr)
def test_canonicalize_odd_names(files, place, name):
    path = os.path.join(os.fsencode(place), name)
    os.mkdir(path)
    assert files.canonicalize(path) == uri(path)


def test_canonicalize_without_permission(plain_files, place):
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "f").touch()
    (place / "link").symlink_to("closed/f")
    for name in ("closed/f", "link"):
        assert plain_files.error("canonicalize", place / name) == os_error(13)


def test_canonicalize_many_links(files, place):
    (place / "f").touch()
    (place / "l0").symlink_to("f")
    for i in range(1, 41):
        (place / f"l{i}").symlink_to(f"l{i - 1}")
    assert files.canonicalize(place / "l38") == uri(place / "f")
    assert files.error("canonicalize", place / "l40") == os_error(40)


# Permissions (an extension).

@pytest.mark.parametrize("mode", [0, 0o644, 0o755, 0o7777, 0o1777, 0o4711])
def test_set_permissions(files, tree, mode):
    for follow in (True, False):
        for name in ("file", "dir", "fifo"):
            (tree / name).chmod(0o600)
            files.chmod(tree / name, mode, followSymlinks=follow)
            assert stat.S_IMODE((tree / name).stat().st_mode) == mode
            assert files.metadata(tree / name, followSymlinks=follow)["mode"] == mode
            (tree / name).chmod(0o700)
    assert (tree / "file").read_bytes() == b"twelve bytes"


def test_mode_of_a_link_is_that_of_its_target(files, tree):
    (tree / "file").chmod(0o640)
    assert files.metadata(tree / "link")["mode"] == 0o640
    files.chmod(tree / "link", 0o604)
    assert stat.S_IMODE((tree / "file").stat().st_mode) == 0o604


# With links followed, and without.
REFUSED = {
    "link": (DONE, LINK_REFUSED),
    "dangling": (os_error(2), LINK_REFUSED),
    "dirlink/inner": (DONE, os_error(20)),
    "missing": (os_error(2), os_error(2)),
    "missing/x": (os_error(2), os_error(2)),
    "file/x": (os_error(20), os_error(20)),
    "loop": (os_error(40), LINK_REFUSED),
    "n" * 256: (os_error(36), os_error(36)),
}


@pytest.mark.parametrize("name", REFUSED, ids=lambda n: n[:20])
def test_set_permissions_of_odd_paths(files, tree, name):
    for expected, follow in zip(REFUSED[name], (True, False)):
        before = os.stat(tree / "file").st_mode
        assert files.outcome("setPermissions", tree / name, mode=0o600, followSymlinks=follow) \
            == expected
        if expected != DONE:
            assert os.stat(tree / "file").st_mode == before
        (tree / "file").chmod(0o644)


@pytest.mark.parametrize("mode", [0o10000, 0o100644, 2**32, 2**64 - 1])
def test_set_permissions_of_too_many_bits(files, tree, mode):
    before = (tree / "file").stat().st_mode
    code, _ = files.error("setPermissions", tree / "file", mode=mode)
    assert code in (-32600, -32602)
    assert (tree / "file").stat().st_mode == before


@pytest.mark.parametrize("mode", [None, -1, "0644", 420.0, True, [], {}])
def test_set_permissions_of_no_number(files, tree, mode):
    before = (tree / "file").stat().st_mode
    code, _ = files.error("setPermissions", tree / "file", mode=mode)
    assert code == -32602
    assert files.error("setPermissions", tree / "file") == (-32602, "missing field `mode`")
    assert (tree / "file").stat().st_mode == before


def test_set_permissions_without_permission(plain_files, place):
    (place / "f").touch()
    (place / "f").chmod(0o666)
    for follow in (True, False):
        assert plain_files.error("setPermissions", place / "f", mode=0o777,
                                 followSymlinks=follow) == os_error(1)


def test_set_permissions_on_a_read_only_disk(files, mounts, tree):
    target = mounts.read_only(tree / "dir")
    for follow in (True, False):
        assert files.error("setPermissions", target / "inner", mode=0o777,
                           followSymlinks=follow) == os_error(30)


def test_set_permissions_races_for_a_link(files, place):
    """A directory that becomes a link and back is passed only while it is a directory."""
    (place / "dir").mkdir()
    (place / "dir" / "f").touch()
    (place / "outside").mkdir()
    (place / "outside" / "f").touch()
    (place / "outside" / "f").chmod(0o600)
    (place / "lure").symlink_to("outside")
    with Meddler(lambda _: exchange(place / "dir", place / "lure")):
        for i in range(400):
            files.outcome("setPermissions", place / "dir" / "f", mode=0o640 + i % 8,
                          followSymlinks=False)
    assert stat.S_IMODE((place / "outside" / "f").stat().st_mode) == 0o600


def test_set_permissions_races_for_the_last_link(files, place):
    (place / "f").touch()
    (place / "outside").touch()
    (place / "outside").chmod(0o600)
    (place / "lure").symlink_to("outside")
    with Meddler(lambda _: exchange(place / "f", place / "lure")):
        for _ in range(400):
            files.outcome("setPermissions", place / "f", mode=0o644, followSymlinks=False)
    assert stat.S_IMODE((place / "outside").stat().st_mode) == 0o600


# Times (an extension).

@pytest.mark.parametrize("ms", [0, 1, 999, 1000, -1, -1000, -1001, 1_700_000_000_123, 2**31 * 1000])
def test_set_times(files, tree, ms):
    for follow in (True, False):
        for name in ("file", "dir", "fifo"):
            os.utime(tree / name, ns=(123456789, 5))
            files.set_times(tree / name, ms, followSymlinks=follow)
            after = (tree / name).stat()
            assert (after.st_mtime_ns, after.st_atime_ns) == (ms * 1000000, 123456789)
            shown = max(ms, 0) if follow else ms
            assert files.metadata(tree / name, followSymlinks=follow)["modifiedAtMs"] == shown


@pytest.mark.parametrize("ms", [-2**63, 2**63 - 1])
def test_set_times_to_the_ends(files, tree, ms):
    """The file system takes the nearest time that it knows."""
    files.set_times(tree / "file", ms)
    assert ((tree / "file").stat().st_mtime > 2**31 - 2) == (ms > 0)


@pytest.mark.parametrize("text", ["1.5", "1e3", "9223372036854775808", "-9223372036854775809",
                                  "null", '"5"', "true", "[]", "{}"])
def test_set_times_of_no_number(client, tree, text):
    before = (tree / "file").stat().st_mtime_ns
    client.send_raw('{"id":704,"method":"fs/setTimes","params":{"path":"%s","modifiedAtMs":%s}}'
                    % (uri(tree / "file"), text))
    assert client.answer(704)["error"]["code"] == -32602
    assert (tree / "file").stat().st_mtime_ns == before


# With links followed, and without.
TIMES = {**REFUSED, "link": (DONE, DONE), "dangling": (os_error(2), DONE),
         "loop": (os_error(40), DONE)}


@pytest.mark.parametrize("name", TIMES, ids=lambda n: n[:20])
def test_set_times_of_odd_paths(files, tree, name):
    for expected, follow in zip(TIMES[name], (True, False)):
        os.utime(tree / "file", ns=(7, 7))
        assert files.outcome("setTimes", tree / name, modifiedAtMs=2000, followSymlinks=follow) \
            == expected
        followed = follow and name == "link"
        assert (tree / "file").stat().st_mtime_ns == (2000000000 if followed else 7)
        if expected == DONE and not follow:
            assert (tree / name).lstat().st_mtime_ns == 2000000000


def test_set_times_without_permission(plain_files, place):
    (place / "f").touch()
    (place / "f").chmod(0o666)
    for follow in (True, False):
        assert plain_files.error("setTimes", place / "f", modifiedAtMs=0,
                                 followSymlinks=follow) == os_error(1)


def test_set_times_on_a_read_only_disk(files, mounts, tree):
    target = mounts.read_only(tree / "dir")
    for follow in (True, False):
        assert files.error("setTimes", target / "inner", modifiedAtMs=0,
                           followSymlinks=follow) == os_error(30)


def test_set_times_races_for_a_link(files, place):
    (place / "dir").mkdir()
    (place / "dir" / "f").touch()
    (place / "outside").mkdir()
    (place / "outside" / "f").touch()
    before = (place / "outside" / "f").stat().st_mtime_ns
    (place / "lure").symlink_to("outside")
    (place / "g").touch()
    (place / "bait").symlink_to("outside/f")
    def step(_):
        exchange(place / "dir", place / "lure")
        exchange(place / "g", place / "bait")
    with Meddler(step):
        for _ in range(300):
            files.outcome("setTimes", place / "dir" / "f", modifiedAtMs=0, followSymlinks=False)
            files.set_times(place / "g", 0, followSymlinks=False)
    assert (place / "outside" / "f").stat().st_mtime_ns == before
