"""fs/remove, fs/copy, fs/rename: whole trees and their limits."""

import os
import shutil
import socket
import stat

import pytest

from harness.files import MIB, Files, os_error, uri
from harness.meddler import Meddler, exchange
from harness.waiting import until

DONE = {}
LINK_REFUSED = (-32600, "path contains a symbolic link")
NO_ENTRY = (-32600, "path must name an entry")


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def snapshot(place):
    """Every entry below a directory with its mode and content."""
    found = {}
    for path in sorted(place.rglob("*")):
        info = os.lstat(path)
        content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else \
            path.read_bytes() if stat.S_ISREG(info.st_mode) else None
        found[str(path.relative_to(place))] = info.st_mode, content
    return found


@pytest.fixture
def tree(place):
    (place / "file").write_bytes(b"content")
    (place / "dir" / "sub").mkdir(parents=True)
    (place / "dir" / "f").write_bytes(b"inner")
    (place / "dir" / "sub" / "g").write_bytes(b"deeper")
    (place / "dir" / "out").symlink_to("../other")
    (place / "other").mkdir()
    (place / "other" / "kept").write_bytes(b"kept")
    (place / "empty").mkdir()
    (place / "link").symlink_to("file")
    (place / "dirlink").symlink_to("other")
    (place / "dangling").symlink_to("nowhere")
    os.mkfifo(place / "fifo")
    make_socket(place / "socket")
    return place


# Removing.

# Outcomes: follow; no-follow and not recursive. Both with force.
REMOVED = {
    "file": (DONE, DONE),
    "fifo": (DONE, DONE),
    "socket": (DONE, DONE),
    "empty": (DONE, DONE),
    "link": (DONE, LINK_REFUSED),
    "dirlink": (DONE, LINK_REFUSED),
    "dangling": (DONE, LINK_REFUSED),
    "dir": (DONE, os_error(39)),
    "dir/sub": (DONE, os_error(39)),
    "dir/f": (DONE, DONE),
    "dirlink/kept": (DONE, os_error(20)),
    "missing": (DONE, DONE),
    "missing/x": (DONE, DONE),
    "dangling/x": (DONE, os_error(20)),
    "file/x": (os_error(20), os_error(20)),
    "n" * 256: (os_error(36), os_error(36)),
}


@pytest.mark.parametrize("name", REMOVED, ids=lambda n: n[:20])
@pytest.mark.parametrize("follow", [True, False])
def test_remove(files, tree, name, follow):
    expected = REMOVED[name][not follow]
    before = snapshot(tree)
    params = {} if follow else {"followSymlinks": False, "recursive": False}
    assert files.outcome("remove", tree / name, **params) == expected
    if expected == DONE:
        assert not os.path.lexists(tree / name)
        real = str((tree / name).parent.resolve().relative_to(tree) / (tree / name).name)
        before = {k: v for k, v in before.items() if k != real and not k.startswith(real + "/")}
    assert snapshot(tree) == before


@pytest.mark.parametrize("name", ["missing", "missing/x"])
def test_remove_what_is_missing(files, place, name):
    for params in ({}, {"followSymlinks": False}):
        assert files.error("remove", place / name, recursive=False, force=False, **params) \
            == os_error(2)
        files.remove(place / name, recursive=False, force=None, **params)


def test_remove_not_recursive(files, tree):
    before = snapshot(tree)
    assert files.error("remove", tree / "dir", recursive=False) == os_error(39)
    assert snapshot(tree) == before
    files.remove(tree / "empty", recursive=False)
    files.remove(tree / "dirlink", recursive=False)
    assert not (tree / "empty").exists() and (tree / "other" / "kept").exists()


def test_remove_recursively_without_following(files, tree):
    """Refused before the path is looked at; recursive is the default."""
    refused = (-32603, "recursive no-follow removal is unsupported")
    for params in ({}, {"recursive": True}, {"recursive": None}):
        for path in (tree / "file", tree / "missing", "/"):
            assert files.error("remove", path, followSymlinks=False, **params) == refused
    assert (tree / "file").exists()


def test_remove_the_root(files):
    assert files.error("remove", "/", recursive=False) == os_error(16)
    assert files.error("remove", "/", recursive=False, followSymlinks=False) == NO_ENTRY


def test_remove_a_mount_point(files, mounts):
    disk = mounts.tmpfs("size=1m")
    (disk / "f").write_bytes(b"x")
    assert files.error("remove", disk, recursive=False) == os_error(16)
    assert (disk / "f").exists()


def test_remove_without_permission(plain_files, place):
    (place / "f").touch()
    (place / "d").mkdir()
    (place / "d").chmod(0o777)
    (place / "d" / "mine").touch()
    (place / "d" / "closed").mkdir(mode=0o755)
    (place / "d" / "closed" / "f").touch()
    for force in (True, False):
        assert plain_files.error("remove", place / "f", force=force) == os_error(13)
        assert plain_files.error("remove", place / "f", force=force, recursive=False,
                                 followSymlinks=False) == os_error(13)
    assert plain_files.error("remove", place / "d" / "closed") == os_error(13)
    assert (place / "d" / "closed" / "f").exists()


def test_remove_from_a_read_only_disk(files, mounts, tree):
    target = mounts.read_only(tree / "dir")
    before = snapshot(tree / "dir")
    for name in ("f", "sub", "out"):
        assert files.error("remove", target / name) == os_error(30)
    assert snapshot(tree / "dir") == before


def test_remove_many_and_deep(files, place):
    """A thousand entries, names that are not UTF-8, and more levels than PATH_MAX allows."""
    top = place / "top"
    top.mkdir()
    for i in range(1000):
        (top / f"f{i}").touch()
    os.mkdir(os.path.join(os.fsencode(top), b"\xff\xfe"))
    files.mkdir(str(top) + "/" + "/".join(["d" * 250] * 30), followSymlinks=False)
    files.mkdir(str(top) + "/e" * 1000, followSymlinks=False)
    files.remove(top)
    assert os.listdir(place) == []


def test_remove_never_enters_a_link(files, place):
    """A directory that becomes a link while the tree is removed is not entered."""
    (place / "outside").mkdir()
    for i in range(50):
        (place / "outside" / str(i)).touch()
    (place / "lure").symlink_to(place / "outside")
    outcomes = []
    for _ in range(60):
        (place / "tree" / "dir").mkdir(parents=True)
        for i in range(20):
            (place / "tree" / "dir" / f"f{i}").touch()

        def step(_count):
            try:
                exchange(place / "tree" / "dir", place / "lure")
            except AssertionError:
                return False
            return True
        with Meddler(step):
            outcomes.append(files.outcome("remove", place / "tree"))
        if not os.path.islink(place / "lure"):
            shutil.rmtree(place / "lure")
            (place / "lure").symlink_to(place / "outside")
        if os.path.lexists(place / "tree"):
            files.remove(place / "tree")
    assert len(os.listdir(place / "outside")) == 50


def test_remove_what_others_remove_too(shared, place):
    clients = [Files(shared.client()) for _ in range(3)]
    for _ in range(10):
        for i in range(10):
            (place / "top" / str(i)).mkdir(parents=True)
            (place / "top" / str(i) / "f").touch()
        idents = [f.send("remove", place / "top") for f in clients]
        for f, ident in zip(clients, idents):
            assert f.client.result(ident) == {}
        assert os.listdir(place) == []


def test_remove_failing_file_system(files, faultfs):
    """What could not be removed stays; what comes before it may be gone."""
    (faultfs.real / "dir").mkdir()
    faultfs.file("dir/e5-unlink", b"stays")
    faultfs.file("other", b"kept")
    assert files.error("remove", faultfs.path / "dir") == os_error(5)
    assert (faultfs.real / "dir" / "e5-unlink").read_bytes() == b"stays"
    assert (faultfs.real / "other").read_bytes() == b"kept"
    (faultfs.real / "e5-list").mkdir()
    assert files.error("remove", faultfs.path / "e5-list") == os_error(5)


# Copying.

SELF = (-32600, "fs/copy cannot copy a directory to itself or one of its descendants")
NEEDS_RECURSIVE = (-32600, "fs/copy requires recursive: true when sourcePath is a directory")
KINDS_ONLY = (-32600, "fs/copy only supports regular files, directories, and symlinks")


def test_copy_a_file(files, tree):
    """Mode and content of the source, whatever was there."""
    # A write by somebody without privileges takes these bits away.
    mode = 0o6740 if os.geteuid() == 0 else 0o740
    (tree / "file").chmod(mode)
    (tree / "old").write_bytes(b"a much longer content than the other")
    (tree / "old").chmod(0o600)
    os.link(tree / "old", tree / "second")
    for recursive in (True, False):
        for name in ("new", "old"):
            files.copy(tree / "file", tree / name, recursive)
            assert (tree / name).read_bytes() == b"content"
            assert stat.S_IMODE((tree / name).stat().st_mode) == mode
    assert (tree / "second").read_bytes() == b"content"


@pytest.mark.parametrize("size", [0, 1, 65537, 5 * MIB + 3])
def test_copy_every_size(files, place, size):
    content = os.urandom(size)
    (place / "a").write_bytes(content)
    files.copy(place / "a", place / "b")
    assert (place / "b").read_bytes() == content


def test_copy_a_sparse_file(files, place):
    with open(place / "a", "wb") as f:
        f.seek(64 * MIB)
        f.write(b"end")
    files.copy(place / "a", place / "b")
    assert (place / "b").stat().st_size == 64 * MIB + 3
    with open(place / "b", "rb") as f:
        assert f.read(10) == b"\0" * 10
        f.seek(64 * MIB - 5)
        assert f.read() == b"\0" * 5 + b"end"


@pytest.mark.parametrize("destination, expected", [
    ("dir", os_error(21)), ("dirlink", os_error(21)), ("missing/x", os_error(2)),
    ("other/kept/x", os_error(20)), ("socket", os_error(6)), ("n" * 256, os_error(36))])
def test_copy_a_file_to_where_it_cannot_go(files, tree, destination, expected):
    before = snapshot(tree)
    assert files.copy_error(tree / "file", tree / destination) == expected
    assert snapshot(tree) == before


def test_copy_a_file_through_links(files, tree):
    (tree / "to-kept").symlink_to("other/kept")
    files.copy(tree / "file", tree / "to-kept")
    assert (tree / "to-kept").is_symlink() and (tree / "other" / "kept").read_bytes() == b"content"
    files.copy(tree / "file", tree / "dangling")
    assert (tree / "dangling").is_symlink() and (tree / "nowhere").read_bytes() == b"content"
    files.copy(tree / "file", tree / "dirlink" / "new")
    assert (tree / "other" / "new").read_bytes() == b"content"


def test_copy_onto_itself(files, tree):
    """Refused, and nothing is lost, by whatever name."""
    os.link(tree / "file", tree / "hard")
    for name in ("file", "hard", "link"):
        code, _ = files.copy_error(tree / "file", tree / name)
        assert code == -32600
        assert (tree / "file").read_bytes() == b"content"
    assert stat.S_IMODE((tree / "file").stat().st_mode) == 0o644


def test_copy_to_a_fifo(files, tree):
    """Never waits: without a reader it is ENXIO, with one it is not a file."""
    assert files.copy_error(tree / "file", tree / "fifo") == os_error(6)
    reader = os.open(tree / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    assert files.copy_error(tree / "file", tree / "fifo") \
        == (-32600, f"path `{tree}/fifo` is not a file")
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_copy_special_files(files, tree):
    for name in ("fifo", "socket"):
        for recursive in (True, False):
            assert files.copy_error(tree / name, tree / "new", recursive) == KINDS_ONLY
    assert files.copy_error("/dev/null", tree / "new") == KINDS_ONLY
    files.copy(tree / "file", "/dev/null")
    files.copy("/proc/sys/kernel/ostype", tree / "new")
    assert (tree / "new").read_bytes() == b"Linux\n"


def test_copy_missing(files, tree):
    for name, number in (("missing", 2), ("missing/x", 2), ("file/x", 20), ("n" * 256, 36)):
        for recursive in (True, False):
            assert files.copy_error(tree / name, tree / "new", recursive) == os_error(number)
    assert not (tree / "new").exists()


def test_copy_a_link(files, tree):
    """The link itself, never what it leads to."""
    for recursive in (True, False):
        for name in ("link", "dirlink", "dangling"):
            files.copy(tree / name, tree / f"{name}{recursive}", recursive)
            assert os.readlink(tree / f"{name}{recursive}") == os.readlink(tree / name)
    for name in ("file", "dir", "link", "dangling", "fifo"):
        assert files.copy_error(tree / "dirlink", tree / name, True) == os_error(17)
    files.client.call("fs/copy", {"sourcePath": uri(tree / "dirlink") + "/", "recursive": True,
                                  "destinationPath": uri(tree / "slash")})
    assert os.readlink(tree / "slash") == "other"
    long = tree / "long"
    long.symlink_to("x" * 4000)
    files.copy(long, tree / "long2")
    assert os.readlink(tree / "long2") == "x" * 4000


def test_copy_a_tree(files, tree):
    """Directories with the usual mode, files with theirs; odd kinds are left out."""
    source = tree / "dir"
    source.chmod(0o700)
    (source / "f").chmod(0o751)
    os.mkfifo(source / "fifo")
    make_socket(source / "s")
    odd = os.path.join(os.fsencode(source), b"\xff\xfe")
    with open(odd, "wb") as f:
        f.write(b"odd")
    assert files.copy_error(source, tree / "new", False) == NEEDS_RECURSIVE
    files.copy(source, tree / "a" / "b" / "new", True)
    made = snapshot(tree / "a" / "b" / "new")
    expected = {k: v for k, v in snapshot(source).items() if k not in ("fifo", "s")}
    expected["sub"] = stat.S_IFDIR | 0o755, None
    assert made == expected
    assert stat.S_IMODE((tree / "a" / "b" / "new").stat().st_mode) == 0o755


def test_copy_merges(files, tree):
    (tree / "target" / "sub").mkdir(parents=True)
    (tree / "target" / "f").write_bytes(b"will be overwritten")
    (tree / "target" / "sub" / "own").write_bytes(b"stays")
    (tree / "dir" / "out").unlink()
    files.copy(tree / "dir", tree / "target", True)
    assert snapshot(tree / "target").keys() == {"f", "sub", "sub/g", "sub/own"}
    assert (tree / "target" / "f").read_bytes() == b"inner"
    files.copy(tree / "dir", tree / "dirlink", True)
    assert (tree / "other" / "sub" / "g").read_bytes() == b"deeper"
    assert (tree / "other" / "kept").read_bytes() == b"kept"


def test_copy_a_tree_where_it_cannot_go(files, tree):
    for name in ("file", "dangling", "link"):
        assert files.copy_error(tree / "dir", tree / name, True) == os_error(17)
    # An entry where a link must go stops the copy; what is done stays.
    (tree / "target").mkdir()
    (tree / "target" / "out").write_bytes(b"in the way")
    assert files.copy_error(tree / "dir", tree / "target", True) == os_error(17)
    assert (tree / "target" / "out").read_bytes() == b"in the way"


@pytest.mark.parametrize("destination", ["dir", "dir/x", "dir/sub", "dir/sub/x/y", "alias/x",
                                         "alias", "other/../dir/x"])
def test_copy_a_tree_into_itself(files, tree, destination):
    (tree / "alias").symlink_to("dir")
    before = snapshot(tree)
    assert files.copy_error(tree / "dir", tree / destination, True) == SELF
    assert snapshot(tree) == before


def test_copy_to_a_name_that_only_looks_like_a_descendant(files, tree):
    files.copy(tree / "dir", tree / "dir2", True)
    files.copy(tree / "dir" / "sub", tree / "dir" / "sub2", True)
    assert (tree / "dir2" / "sub" / "g").exists() and (tree / "dir" / "sub2" / "g").exists()


def test_copy_a_loop(files, place):
    """Links are copied as links, so a loop of them has no end to look for."""
    (place / "a" / "b").mkdir(parents=True)
    (place / "a" / "b" / "up").symlink_to(place / "a")
    (place / "a" / "self").symlink_to("self")
    files.copy(place / "a", place / "c", True)
    assert snapshot(place / "c") == snapshot(place / "a")


def test_copy_without_permission(plain_files, place):
    (place / "secret").write_bytes(b"x")
    (place / "secret").chmod(0o600)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    (place / "f").write_bytes(b"x")
    assert plain_files.copy_error(place / "secret", place / "open" / "x") == os_error(13)
    assert plain_files.copy_error(place / "f", place / "x") == os_error(13)
    assert plain_files.copy_error(place / "f", place / "secret") == os_error(13)
    plain_files.copy(place / "f", place / "open" / "x")
    assert (place / "open" / "x").stat().st_uid == 65534


def test_copy_to_a_full_disk(files, mounts, place):
    disk = mounts.tmpfs("size=1m")
    (place / "large").write_bytes(b"x" * 2 * MIB)
    (disk / "kept").write_bytes(b"kept")
    assert files.copy_error(place / "large", disk / "copy") == os_error(28)
    assert (disk / "kept").read_bytes() == b"kept"
    assert (place / "large").stat().st_size == 2 * MIB
    files.remove(disk / "copy")
    files.copy(disk / "kept", place / "back")
    assert (place / "back").read_bytes() == b"kept"


@pytest.mark.parametrize("number", [5, 122])
def test_copy_with_a_failing_file_system(files, faultfs, place, number):
    (place / "f").write_bytes(b"x" * 500000)
    assert files.copy_error(place / "f", faultfs.path / f"e{number}-write@100000") \
        == os_error(number)
    assert files.copy_error(faultfs.file(f"e{number}-read@100000", b"y" * 500000), place / "g") \
        == os_error(number)
    assert set((place / "g").read_bytes()) <= {ord("y")}
    (faultfs.real / "dir").mkdir()
    faultfs.file(f"dir/e{number}-open", b"x")
    assert files.copy_error(faultfs.path / "dir", place / "dir", True) == os_error(number)
    data = os.urandom(100000)
    files.copy(faultfs.file("short-read", data), faultfs.path / "short-write")
    assert (faultfs.real / "short-write").read_bytes() == data


def test_copy_while_the_source_is_removed(files, place):
    """Entries that vanish are errors or are left out, never a hang or a crash."""
    for _ in range(10):
        for i in range(100):
            (place / "a" / str(i)).mkdir(parents=True)
        with Meddler(lambda count: (shutil.rmtree(place / "a" / str(count)), count < 99)[1]):
            outcome = files.outcome("copy", None, sourcePath=uri(place / "a"), recursive=True,
                                    destinationPath=uri(place / "b"))
        assert outcome == DONE or outcome[0] in (-32004, -32603)
        shutil.rmtree(place / "a")
        shutil.rmtree(place / "b", ignore_errors=True)


def test_a_disconnect_during_a_long_copy(fleet, place):
    """It goes on or stops, and leaves no descriptor open."""
    (place / "source").mkdir()
    for i in range(800):
        (place / "source" / str(i)).write_bytes(b"x")
    server = fleet.start()
    files = Files(server.client())
    files.send("copy", None, sourcePath=uri(place / "source"), recursive=True,
               destinationPath=uri(place / "target"))
    until((place / "target").exists, "the copy has begun")
    files.client.transport.reset()
    until(lambda: not [t for t in server.fd_targets() if t.startswith(str(place))],
          "the copy has ended")
    server.client().sync()


# Renaming (an extension).

def test_rename(files, tree):
    before = (tree / "file").stat().st_ino
    files.rename(tree / "file", tree / "new")
    assert (tree / "new").stat().st_ino == before and not (tree / "file").exists()
    files.rename(tree / "dir", tree / "other" / "moved")
    assert (tree / "other" / "moved" / "sub" / "g").read_bytes() == b"deeper"
    files.rename(tree / "fifo", tree / "fifo2")
    assert stat.S_ISFIFO((tree / "fifo2").stat().st_mode)
    files.rename(tree / "new", tree / "new")
    assert (tree / "new").stat().st_ino == before


def test_rename_does_not_follow_the_last_link(files, tree):
    files.rename(tree / "link", tree / "dangling")
    assert os.readlink(tree / "dangling") == "file" and (tree / "file").read_bytes() == b"content"
    files.rename(tree / "file", tree / "dirlink")
    assert not (tree / "dirlink").is_symlink() and (tree / "other" / "kept").exists()
    (tree / "to-dir").symlink_to("dir")
    files.rename(tree / "to-dir" / "f", tree / "f")
    assert (tree / "f").read_bytes() == b"inner"


@pytest.mark.parametrize("source, destination, number", [
    ("missing", "new", 2), ("file", "missing/new", 2), ("file", "dir", 21), ("dir", "file", 20),
    ("empty", "dir", 39), ("dir", "dir/sub/x", 22), ("file/x", "new", 20), ("file", "file/x", 20),
    ("n" * 256, "new", 36), ("file", "n" * 256, 36)])
def test_rename_refusals(files, tree, source, destination, number):
    before = snapshot(tree)
    assert files.rename_error(tree / source, tree / destination) == os_error(number)
    assert snapshot(tree) == before


def test_rename_replaces_unless_told_not_to(files, tree):
    before = snapshot(tree)
    for name in ("other/kept", "dangling", "fifo", "link", "dir", "empty"):
        assert files.rename_error(tree / "file", tree / name, replace=False) == os_error(17)
    assert snapshot(tree) == before
    files.rename(tree / "file", tree / "other" / "kept", replace=True)
    assert (tree / "other" / "kept").read_bytes() == b"content"
    files.rename(tree / "other" / "kept", tree / "file", replace=False)
    files.rename(tree / "dir", tree / "empty", replace=None)
    assert (tree / "empty" / "f").read_bytes() == b"inner"


def test_rename_to_another_file_system(files, mounts, place):
    disk = mounts.tmpfs("size=1m")
    (place / "f").write_bytes(b"x")
    for params in ({}, {"replace": False}):
        assert files.rename_error(place / "f", disk / "f", **params) == os_error(18)
    assert (place / "f").read_bytes() == b"x" and os.listdir(disk) == []


def test_rename_without_permission(plain_files, place, files):
    (place / "f").write_bytes(b"x")
    assert plain_files.rename_error(place / "f", place / "g") == os_error(13)
    assert files.rename_error("/", place / "g")[0] == -32603
    assert (place / "f").exists()


def test_rename_where_the_file_system_cannot_refuse_to_replace(files, faultfs):
    faultfs.file("a", b"a")
    faultfs.file("b", b"b")
    files.rename(faultfs.path / "a", faultfs.path / "b")
    assert (faultfs.real / "b").read_bytes() == b"a"
    faultfs.file("e5-rename", b"x")
    assert files.rename_error(faultfs.path / "e5-rename", faultfs.path / "c") == os_error(5)
    assert (faultfs.real / "e5-rename").read_bytes() == b"x"
