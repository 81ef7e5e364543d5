"""Extensions of the fs methods: capabilities, maxBytes, atomic writes."""

import os
import random
import signal
import stat

import pytest

from harness import acl
from harness.files import MIB, Files, os_error
from harness.meddler import Meddler
from harness.rpc import b64
from harness.waiting import Deadline
from harness.ws import Closed

SEED = int(os.environ.get("E2E_SEED", "4"))
LIMIT = 512 * MIB
ALWAYS = ["fsWatchMissing", "environmentConfigRead", "capabilityDiscoveryV2", "shellSnapshotV2",
          "fileWriteStreaming", "fsRename",
          "fsSetPermissions", "fsMetadataMode",
          "fsWatch", "fsAtomicWrite", "fsReadMaxBytes", "fsOpenUpdate", "fsTimes",
          "fsLinks"]


# Capabilities.

@pytest.mark.parametrize("args, http", [((), False), (("--http-files",), True)])
def test_capabilities(fleet, args, http):
    client = fleet.start(*args).connect()
    capabilities = client.initialize()["environmentInfo"]["capabilities"]
    assert {name: capabilities.get(name) for name in ALWAYS} == dict.fromkeys(ALWAYS, True)
    assert capabilities["httpFiles"] is http
    assert capabilities["httpFilesAt"] is http
    assert capabilities["sandboxedFileStreaming"] is True
    assert client.call("environment/info")["capabilities"] == capabilities


# maxBytes.

def too_large(limit):
    return -32600, f"file is too large to read: limit is {limit} bytes"


@pytest.mark.parametrize("size", [0, 1, 1000, 70000, 5 * MIB])
def test_max_bytes(files, place, size):
    (place / "f").write_bytes(b"x" * size)
    for follow in (True, False):
        for limit in (size, size + 1, 2**64 - 1, None):
            assert files.read(place / "f", maxBytes=limit, followSymlinks=follow) == b"x" * size
        if size > 0:
            for limit in (size - 1, 0):
                assert files.error("readFile", place / "f", maxBytes=limit,
                                   followSymlinks=follow) == too_large(limit)


def test_max_bytes_lifts_no_limit(files, place):
    with open(place / "f", "wb") as f:
        f.truncate(LIMIT + 1)
    assert files.error("readFile", place / "f", maxBytes=2 * LIMIT) == too_large(LIMIT)


def test_max_bytes_of_files_without_a_size(files):
    """What counts is what there is to read."""
    assert files.read("/proc/sys/kernel/ostype", maxBytes=6) == b"Linux\n"
    assert files.error("readFile", "/proc/sys/kernel/ostype", maxBytes=5) == too_large(5)
    assert files.error("readFile", "/proc/self/status", maxBytes=10) == too_large(10)


def test_max_bytes_of_a_file_that_grows(files, place):
    """Never more than asked for, whatever moment is met."""
    (place / "f").write_bytes(b"x" * 1000)
    with open(place / "f", "r+b", buffering=0) as f:
        def step(count):
            f.truncate(1000 if count % 2 else 200000)
        with Meddler(step):
            for _ in range(100):
                outcome = files.outcome("readFile", place / "f", maxBytes=1000)
                assert outcome == too_large(1000) or outcome == {"dataBase64": b64(b"x" * 1000)}


@pytest.mark.parametrize("value", ["5", True, [], {}, 1.5])
def test_max_bytes_that_is_no_number(files, place, value):
    assert files.error("readFile", place, maxBytes=value)[0] == -32602


# Atomic writes.

def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_atomic_write(files, place):
    for follow in (True, False):
        path = place / f"f{follow}"
        files.write(path, b"first", atomic=True, followSymlinks=follow)
        assert path.read_bytes() == b"first"
        files.write(path, b"second, longer", atomic=True, followSymlinks=follow)
        files.write(path, b"third", atomic=True, followSymlinks=follow)
        assert path.read_bytes() == b"third"
        files.write(path, b"", atomic=True, followSymlinks=follow)
        assert path.read_bytes() == b""
    assert sorted(os.listdir(place)) == ["fFalse", "fTrue"]


def test_not_atomic(files, place):
    (place / "f").write_bytes(b"old")
    before = (place / "f").stat().st_ino
    for value in (False, None):
        files.write(place / "f", b"new", atomic=value)
        assert (place / "f").stat().st_ino == before
    files.write(place / "f", b"new", atomic=True)
    assert (place / "f").stat().st_ino != before
    for value in (1, "true", []):
        assert files.error("writeFile", place / "f", dataBase64="", atomic=value)[0] == -32602


def test_atomic_write_keeps_mode_and_owner(files, place):
    path = place / "f"
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(0o6750)
    before = path.stat()
    files.write(path, b"new", atomic=True)
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) \
        == (before.st_mode, before.st_uid, before.st_gid)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("follow", [True, False])
def test_atomic_write_keeps_access_list_and_attributes(files, place, follow):
    """Without the list the group would get what only one more user had."""
    path = place / "f"
    path.write_bytes(b"old")
    acl.guard(path)
    files.write(path, b"new", atomic=True, followSymlinks=follow)
    assert path.read_bytes() == b"new"
    assert acl.kept(path) == acl.KEPT
    files.write(path, b"in place", followSymlinks=follow)
    assert acl.kept(path) == acl.KEPT


def test_copy_keeps_the_access_list(files, place):
    for name in ("f", "there"):
        (place / name).write_bytes(name.encode())
    acl.guard(place / "f")
    for name in ("there", "fresh"):
        files.copy(place / "f", place / name)
        assert acl.kept(place / name) == (acl.guarded(), None, 0o660)
        assert (place / name).read_bytes() == b"f"


@pytest.mark.parametrize("umask, expected", [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_atomic_write_of_a_new_file(fleet, place, umask, expected):
    files = Files(fleet.start(preexec=lambda: os.umask(umask)).client())
    files.write(place / "f", b"x", atomic=True)
    assert mode(place / "f") == expected


def test_atomic_write_and_links(files, place):
    """A link that is followed stays, and the file it leads to is replaced."""
    (place / "dir").mkdir()
    (place / "dir" / "f").write_bytes(b"old")
    (place / "link").symlink_to("dir/f")
    (place / "link2").symlink_to(place / "link")
    (place / "dirlink").symlink_to("dir")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    os.link(place / "dir" / "f", place / "hard")
    files.write(place / "link", b"new", atomic=True)
    assert os.readlink(place / "link") == "dir/f"
    assert (place / "dir" / "f").read_bytes() == b"new"
    assert (place / "hard").read_bytes() == b"old"
    files.write(place / "link2", b"newer", atomic=True)
    assert (place / "dir" / "f").read_bytes() == b"newer"
    files.write(place / "dirlink" / "f", b"newest", atomic=True)
    assert (place / "dir" / "f").read_bytes() == b"newest"
    assert files.error("writeFile", place / "dangling", dataBase64="", atomic=True) == os_error(2)
    assert files.error("writeFile", place / "loop", dataBase64="", atomic=True) == os_error(40)
    for name, number in (("link", 40), ("dangling", 40), ("dirlink/f", 20)):
        assert files.error("writeFile", place / name, dataBase64="", atomic=True,
                           followSymlinks=False) == os_error(number)
    assert os.listdir(place / "dir") == ["f"]
    assert sorted(os.listdir(place)) == ["dangling", "dir", "dirlink", "hard", "link", "link2",
                                         "loop"]


def test_atomic_write_refusals(files, place):
    (place / "dir").mkdir()
    (place / "f").write_bytes(b"kept")
    os.mkfifo(place / "fifo")
    for follow in (True, False):
        for name, number in (("dir", 21), ("missing/f", 2), ("f/x", 20), ("n" * 256, 36)):
            assert files.error("writeFile", place / name, dataBase64="", atomic=True,
                               followSymlinks=follow) == os_error(number)
    assert files.error("writeFile", place / "fifo", dataBase64="", atomic=True) \
        == (-32600, f"path `{place}/fifo` is not a file")
    assert files.error("writeFile", place / "fifo", dataBase64="", atomic=True,
                       followSymlinks=False) == (-32600, "path is not a regular file")
    assert files.error("writeFile", "/dev/null", dataBase64="", atomic=True) \
        == (-32600, "path `/dev/null` is not a file")
    assert files.error("writeFile", "/", dataBase64="", atomic=True) == os_error(21)
    assert files.error("writeFile", place / "f", dataBase64="!", atomic=True)[0] == -32600
    assert sorted(os.listdir(place)) == ["dir", "f", "fifo"]


def test_atomic_write_of_odd_names(files, place):
    for name in (b"n" * 255, b"\xff\xfe", b"." * 3, "\u20ac".encode() * 85):
        path = os.path.join(os.fsencode(place), name)
        for content in (b"one", b"two"):
            files.write(path, content, atomic=True)
            with open(path, "rb") as f:
                assert f.read() == content
    assert len(os.listdir(place)) == 4


def test_atomic_write_without_permission(plain_files, place):
    """A file that may not be written is not replaced either."""
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    (place / "open" / "other").write_bytes(b"kept")
    for follow in (True, False):
        assert plain_files.error("writeFile", place / "open" / "other", dataBase64="",
                                 atomic=True, followSymlinks=follow) == os_error(13)
        assert plain_files.error("writeFile", place / "new", dataBase64="", atomic=True,
                                 followSymlinks=follow) == os_error(13)
    assert (place / "open" / "other").read_bytes() == b"kept"
    assert os.listdir(place / "open") == ["other"]


def test_atomic_write_to_a_read_only_disk(files, mounts, place):
    (place / "source").mkdir()
    (place / "source" / "f").write_bytes(b"kept")
    target = mounts.read_only(place / "source")
    for name in ("f", "new"):
        assert files.error("writeFile", target / name, dataBase64="", atomic=True) == os_error(30)
    assert os.listdir(place / "source") == ["f"]


def test_atomic_write_to_a_full_disk(files, mounts):
    """The old file stays, and nothing beside it."""
    disk = mounts.tmpfs("size=4m")
    old = os.urandom(2 * MIB)
    (disk / "f").write_bytes(old)
    (disk / "f").chmod(0o640)
    for follow in (True, False):
        for name in ("f", "new"):
            assert files.error("writeFile", disk / name, dataBase64=b64(os.urandom(3 * MIB)),
                               atomic=True, followSymlinks=follow) == os_error(28)
    assert os.listdir(disk) == ["f"]
    assert (disk / "f").read_bytes() == old and mode(disk / "f") == 0o640
    files.write(disk / "f", b"fits", atomic=True)
    assert (disk / "f").read_bytes() == b"fits"


def test_atomic_write_failures(shared, faultfs):
    """EIO and EDQUOT while writing, at the end, or when it takes its place."""
    files = Files(shared.client())
    for name in ("e5-rename", "e122-rename"):
        path = faultfs.file(name, b"old")
        assert files.error("writeFile", path, dataBase64=b64("new"), atomic=True) \
            == os_error(int(name[1:].partition("-")[0]))
        assert (faultfs.real / name).read_bytes() == b"old"
    assert sorted(os.listdir(faultfs.real)) == ["e122-rename", "e5-rename"]
    files.write(faultfs.path / "fine", b"new", atomic=True)
    assert (faultfs.real / "fine").read_bytes() == b"new"
    assert not [t for t in shared.fd_targets() if t.startswith(str(faultfs.path))]


def test_readers_see_the_old_or_the_new(shared, place):
    files, reader = Files(shared.client()), Files(shared.client())
    contents = [bytes([65 + i]) * (100000 + 1000 * i) for i in range(8)]
    (place / "f").write_bytes(contents[0])
    idents = [files.send("writeFile", place / "f", dataBase64=b64(contents[i % 8]), atomic=True)
              for i in range(60)]
    for _ in range(60):
        assert reader.read(place / "f") in contents
    for ident in idents:
        assert files.client.result(ident) == {}
    assert os.listdir(place) == ["f"]


def test_two_atomic_writers(shared, place):
    clients = [Files(shared.client()) for _ in range(4)]
    contents = [bytes([65 + i]) * 50000 for i in range(4)]
    idents = [[f.send("writeFile", place / "f", dataBase64=b64(c), atomic=True) for _ in range(10)]
              for f, c in zip(clients, contents)]
    for f, sent in zip(clients, idents):
        for ident in sent:
            assert f.client.result(ident) == {}
    assert (place / "f").read_bytes() in contents
    assert os.listdir(place) == ["f"]


def test_killed_while_writing(fleet, place):
    """Killed at any moment: the file is the old one or the new one, whole; so is its mode."""
    rng = random.Random(SEED)
    path = place / "f"
    current = b"\0" * (8 * MIB)
    path.write_bytes(current)
    path.chmod(0o641)
    changed = 0
    for turn in range(1, 11):
        new = bytes([turn]) * (8 * MIB)
        server = fleet.start()
        files = Files(server.client())
        ident = files.send("writeFile", path, dataBase64=b64(new), atomic=True)
        # Some time between the arrival of the request and a bit after the answer.
        deadline = Deadline(rng.uniform(0, 0.12))
        try:
            while not deadline.passed() and files.client.pump(deadline.left()) is None:
                pass
        except Closed:
            pass
        acknowledged = ident in files.client.answers
        server.send_signal(signal.SIGKILL)
        server.wait()
        found = path.read_bytes()
        assert found in (current, new)
        assert found == new or not acknowledged
        assert mode(path) == 0o641
        changed += found == new
        current = found
        left = [n for n in os.listdir(place) if n != "f"]
        # What a kill may leave is told from the outside, and is never taken for the file.
        assert all(n.startswith(".f.") and n.endswith(".tmp") for n in left)
        for name in left:
            assert mode(place / name) in (0o600, 0o641)
            (place / name).unlink()
    server = fleet.start()
    Files(server.client()).write(path, b"last", atomic=True)
    assert path.read_bytes() == b"last" and os.listdir(place) == ["f"]


def test_a_client_that_vanishes(fleet, place):
    """The write is done or not done; nothing is left beside the file."""
    old, new = b"o" * MIB, b"n" * (4 * MIB)
    server = fleet.start()
    for i in range(8):
        (place / str(i)).write_bytes(old)
        files = Files(server.client())
        files.send("writeFile", place / str(i), dataBase64=b64(new), atomic=True)
        files.client.transport.half_close()
        files.client.transport.wait_eof()
    server.stop()
    assert sorted(os.listdir(place)) == [str(i) for i in range(8)]
    for i in range(8):
        assert (place / str(i)).read_bytes() in (old, new)


def test_the_server_ends_while_writing(fleet, place):
    old, new = b"o" * MIB, b"n" * (4 * MIB)
    (place / "f").write_bytes(old)
    server = fleet.start()
    files = Files(server.client())
    for _ in range(5):
        files.send("writeFile", place / "f", dataBase64=b64(new), atomic=True)
    server.stop()
    assert (place / "f").read_bytes() in (old, new)
    assert os.listdir(place) == ["f"]
