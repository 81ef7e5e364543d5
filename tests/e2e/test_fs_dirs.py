"""fs/createDirectory, fs/readDirectory, fs/walk."""

import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from harness.files import Files, os_error, uri
from harness.meddler import Meddler, exchange

DONE = {}
FILE, DIRECTORY, OTHER = (False, True), (True, False), (False, False)
BUDGET = 4 << 20
ENTRIES_MAX = 50000


# Making.

@pytest.fixture
def tree(place):
    (place / "file").write_bytes(b"x")
    (place / "dir").mkdir()
    (place / "dirlink").symlink_to("dir")
    (place / "filelink").symlink_to("file")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    return place


# Outcomes: follow recursive, follow not, no-follow recursive, no-follow not.
MADE = {
    "new": (DONE, DONE, DONE, DONE),
    "dir/new": (DONE, DONE, DONE, DONE),
    "a/b/c": (DONE, os_error(2), DONE, os_error(2)),
    "dir": (DONE, os_error(17), DONE, os_error(17)),
    "file": (os_error(17), os_error(17), os_error(20), os_error(17)),
    "file/x": (os_error(20),) * 4,
    "file/x/y": (os_error(20),) * 4,
    "dirlink": (DONE, os_error(17), os_error(20), os_error(17)),
    "dirlink/x": (DONE, DONE, os_error(20), os_error(20)),
    "dirlink/x/y": (DONE, os_error(2), os_error(20), os_error(20)),
    "filelink": (os_error(17), os_error(17), os_error(20), os_error(17)),
    "dangling": (os_error(17), os_error(17), os_error(20), os_error(17)),
    "dangling/x": (os_error(17), os_error(2), os_error(20), os_error(20)),
    "loop": (os_error(17), os_error(17), os_error(20), os_error(17)),
    "loop/x": (os_error(40), os_error(40), os_error(20), os_error(20)),
    "n" * 255: (DONE, DONE, DONE, DONE),
    "n" * 256: (os_error(36),) * 4,
}
WAYS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.mark.parametrize("way", WAYS, ids=lambda w: f"follow={w[0]},recursive={w[1]}")
@pytest.mark.parametrize("name", MADE, ids=lambda n: n[:20])
def test_make(files, tree, name, way):
    follow, recursive = way
    expected = MADE[name][WAYS.index(way)]
    before = sorted(tree.rglob("*"))
    assert files.outcome("createDirectory", tree / name, recursive=recursive,
                         followSymlinks=follow) == expected
    if expected == DONE:
        assert (tree / name).is_dir()
    else:
        assert sorted(tree.rglob("*")) == before


def test_make_defaults(files, place):
    """Recursive, links followed; null is the same as nothing."""
    files.mkdir(place / "a" / "b")
    files.mkdir(place / "a" / "b", recursive=None, followSymlinks=None)
    assert (place / "a" / "b").is_dir()


def test_make_the_root(files):
    outcomes = [files.outcome("createDirectory", "/", followSymlinks=f, recursive=r)
                for f, r in WAYS]
    assert outcomes == [DONE, os_error(17), DONE, (-32603, "directory already exists")]


@pytest.mark.parametrize("umask, expected", [(0o022, 0o755), (0o077, 0o700), (0, 0o777)])
def test_mode_of_new_directories(fleet, place, umask, expected):
    files = Files(fleet.start(preexec=lambda: os.umask(umask)).client())
    files.mkdir(place / "a" / "b")
    files.mkdir(place / "c" / "d", followSymlinks=False)
    files.mkdir(place / "e", recursive=False)
    for name in ("a", "a/b", "c", "c/d", "e"):
        assert stat.S_IMODE((place / name).stat().st_mode) == expected


def test_make_without_permission(plain_files, place):
    (place / "closed").mkdir(mode=0o700)
    for follow, recursive in WAYS:
        for name in ("new", "closed/new"):
            assert plain_files.error("createDirectory", place / name, followSymlinks=follow,
                                     recursive=recursive) == os_error(13)
    assert not (place / "new").exists()


def test_make_on_a_full_or_read_only_disk(files, mounts):
    disk = mounts.tmpfs("size=1m,nr_inodes=4")
    files.mkdir(disk / "a" / "b")
    assert files.error("createDirectory", disk / "c" / "d") == os_error(28)
    assert (disk / "c").is_dir() and not (disk / "c" / "d").exists()
    target = mounts.read_only(disk)
    for follow, recursive in WAYS:
        assert files.error("createDirectory", target / "new", followSymlinks=follow,
                           recursive=recursive) == os_error(30)
    files.mkdir(target / "a" / "b")


def test_make_names_that_are_not_utf8(files, place):
    name = os.path.join(os.fsencode(place), b"\xff", b"\xfe\xfd")
    for follow in (True, False):
        files.mkdir(name, followSymlinks=follow)
        assert os.path.isdir(name)
        os.rmdir(name)


def test_make_beyond_path_max(files, place):
    """Without links followed every step is relative to the one before."""
    path = str(place) + "/" + "/".join(["d" * 200] * 40)
    assert files.error("createDirectory", path) == os_error(36)
    files.mkdir(path, followSymlinks=False)
    assert files.metadata(path, followSymlinks=False)["isDirectory"]
    assert files.error("createDirectory", path, followSymlinks=False, recursive=False) \
        == os_error(17)


def test_two_make_the_same(shared, place):
    """A race that somebody else won is no failure."""
    clients = [Files(shared.client()) for _ in range(4)]
    for follow in (True, False):
        for i in range(20):
            path = place / f"{follow}{i}" / "a" / "b" / "c" / "d"
            idents = [f.send("createDirectory", path, followSymlinks=follow) for f in clients]
            for f, ident in zip(clients, idents):
                assert f.client.result(ident) == {}


def test_make_races_for_a_link(files, place):
    (place / "outside").mkdir()
    (place / "dir").mkdir()
    (place / "lure").symlink_to("outside")
    outcomes = []
    with Meddler(lambda _: exchange(place / "dir", place / "lure")):
        for i in range(300):
            outcomes.append(files.outcome("createDirectory", place / "dir" / str(i) / "x",
                                          followSymlinks=False))
    assert os.listdir(place / "outside") == []
    assert DONE in outcomes and all(o in (DONE, os_error(20)) for o in outcomes)


# Listing.

@pytest.fixture
def kinds(tree):
    (tree / ".hidden").touch()
    (tree / "fifolink").symlink_to("fifo")
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tree / "socket"))
    return tree


KINDS = {"file": FILE, "dir": DIRECTORY, "dirlink": DIRECTORY, "filelink": FILE, ".hidden": FILE,
         "fifo": OTHER, "fifolink": OTHER, "socket": OTHER}


def test_list(files, kinds):
    """Links are what they lead to, or left out when they lead nowhere."""
    assert files.list(kinds) == KINDS
    assert files.list(kinds / "dirlink") == {}
    if os.geteuid() == 0:
        os.mknod(kinds / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        assert files.list(kinds) == {**KINDS, "null": OTHER}


def test_list_refusals(files, kinds):
    for name, expected in (("file", 20), ("filelink", 20), ("fifo", 20), ("missing", 2),
                           ("dangling", 2), ("loop", 40), ("file/x", 20), ("n" * 256, 36)):
        assert files.error("readDirectory", kinds / name) == os_error(expected)


def test_list_odd_names(files, place):
    names = ["\u00e9", "a\nb", '"', "\\", "\x7f", "n" * 255, " ", "\U0001F600"]
    for name in names:
        (place / name).touch()
    assert files.list(place) == dict.fromkeys(names, FILE)


def test_list_names_that_are_not_utf8(files, place):
    """Each bad sequence becomes U+FFFD; two names may look the same."""
    names = {b"\xff": "\ufffd", b"\xfe": "\ufffd", b"a\xff\xffb": "a\ufffd\ufffdb",
             b"\xe2\x82": "\ufffd", b"x\xe2\x82y": "x\ufffdy", b"\xc3\xa9\xc3": "\u00e9\ufffd",
             b"\xed\xa0\x80": "\ufffd\ufffd\ufffd", b"\xf0\x9f\x98": "\ufffd"}
    for name in names:
        with open(os.path.join(os.fsencode(place), name), "wb"):
            pass
    result = files.call("readDirectory", place)
    assert sorted(e["fileName"] for e in result["entries"]) == sorted(names.values())
    assert all(e["isFile"] for e in result["entries"])


def test_list_without_permission(plain_files, place):
    (place / "closed").mkdir(mode=0o700)
    assert plain_files.error("readDirectory", place / "closed") == os_error(13)
    assert plain_files.error("readDirectory", place / "closed" / "x") == os_error(13)
    # What may be read but not searched is known by its kind; links are not.
    (place / "names").mkdir()
    (place / "names" / "dir").mkdir()
    (place / "names" / "file").touch()
    (place / "names" / "link").symlink_to("file")
    (place / "names").chmod(0o744)
    assert plain_files.list(place / "names") == {"dir": DIRECTORY, "file": FILE}
    # A link into a closed place is left out.
    (place / "link").symlink_to("closed/x")
    assert plain_files.list(place) == {"closed": DIRECTORY, "names": DIRECTORY}


def test_list_special_file_systems(files):
    assert files.list("/proc/self/task") != {}
    assert files.list("/")["proc"] == DIRECTORY
    assert set(files.list("/dev")) >= {"null", "zero"}


def test_list_failing_file_system(files, faultfs):
    (faultfs.real / "e5-list").mkdir()
    (faultfs.real / "e13-list").mkdir()
    assert files.error("readDirectory", faultfs.path / "e5-list") == os_error(5)
    assert files.error("readDirectory", faultfs.path / "e13-list") == os_error(13)
    faultfs.file("e5-stat")
    faultfs.file("fine")
    assert files.list(faultfs.path)["fine"] == FILE


@pytest.fixture(scope="module")
def crowd(nothing_left):  # pylint: disable=unused-argument
    """A directory of 50,000 files, with room to add some."""
    memory = "/dev/shm"
    path = Path(os.path.realpath(tempfile.mkdtemp(dir=memory if os.path.isdir(memory) else None)))
    fd = os.open(path, os.O_RDONLY)
    for i in range(ENTRIES_MAX):
        os.close(os.open(f"f{i:05d}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
    os.close(fd)
    yield path
    shutil.rmtree(path)


def test_list_the_most_entries(files, crowd):
    found = files.list(crowd)
    assert len(found) == ENTRIES_MAX and set(found.values()) == {FILE}
    assert set(found) == {f"f{i:05d}" for i in range(ENTRIES_MAX)}
    # What is left out is not counted.
    (crowd / "dangling").symlink_to("nowhere")
    assert len(files.list(crowd)) == ENTRIES_MAX
    (crowd / "dangling").unlink()


@pytest.mark.parametrize("more", [1, 2, 500])
def test_list_too_many_entries(files, crowd, more):
    added = [crowd / f"more{i}" for i in range(more)]
    for path in added:
        path.touch()
    assert files.error("readDirectory", crowd) == (
        -32603, f"fs/readDirectory returned {ENTRIES_MAX + more} entries; limit is {ENTRIES_MAX}")
    for path in added:
        path.unlink()


def test_walk_a_crowd(files, crowd):
    """4 MiB of result, each item 64 bytes and its URI."""
    result = files.walk(crowd)
    cost = 64 + len(uri(crowd / "f00000"))
    assert result["truncated"] and result["errors"] == []
    assert len(result["entries"]) == BUDGET // cost
    assert result["entries"][0] == {"path": uri(crowd / "f00000"), "kind": "file"}
    assert [e["path"] for e in result["entries"]] == [
        uri(crowd / f"f{i:05d}") for i in range(len(result["entries"]))]


def test_list_that_changes(files, place):
    """What stays is listed exactly once, whatever else comes and goes."""
    for i in range(300):
        (place / f"stays{i}").touch()

    def step(count):
        (place / f"new{count}").touch()
        if count > 20:
            (place / f"new{count - 20}").unlink()
    with Meddler(step):
        for _ in range(20):
            names = [e["fileName"] for e in files.call("readDirectory", place)["entries"]]
            stays = [n for n in names if n.startswith("stays")]
            assert len(stays) == len(set(stays)) == 300


# Walking.

def walked(result, place):
    """Entries as "kind name", relative to a place."""
    prefix = uri(place) + "/"
    assert all(e["path"].startswith(prefix) for e in result["entries"])
    return [f"{e['kind'][0]} {e['path'].removeprefix(prefix)}" for e in result["entries"]]


@pytest.fixture
def forest(place):
    """Depth, hidden names, links; order by bytes."""
    for name in (".hid", "Zcap", "nested/deep/er", "\u00fcn\u00ef"):
        (place / name).mkdir(parents=True)
    for name in (".hid/h", "Zcap/z", "nested/n", "nested/deep/d", "nested/deep/er/e", "a", "b.txt"):
        (place / name).touch()
    (place / "flink").symlink_to("a")
    (place / "dlink").symlink_to("nested")
    (place / "dangling").symlink_to("nowhere")
    (place / "nested" / "up").symlink_to("..")
    os.mkfifo(place / "fifo")
    return place


WALKED = ["d .hid", "d Zcap", "f a", "f b.txt", "d nested", "d %C3%BCn%C3%AF", "f .hid/h",
          "f Zcap/z", "d nested/deep", "f nested/n", "f nested/deep/d", "d nested/deep/er",
          "f nested/deep/er/e"]


def test_walk(files, forest):
    """Breadth first, names in the order of their bytes; links and odd kinds are left out."""
    result = files.walk(forest)
    assert walked(result, forest) == WALKED
    assert result["errors"] == [] and result["truncated"] is False


def test_walk_depth(files, forest):
    assert walked(files.walk(forest, depth=0), forest) == WALKED[:6]
    assert walked(files.walk(forest, depth=1), forest) == WALKED[:10]
    assert walked(files.walk(forest, depth=2), forest) == WALKED[:12]
    assert walked(files.walk(forest, depth=3), forest) == WALKED
    for depth in range(4):
        assert files.walk(forest, depth=depth)["truncated"] is False


def test_walk_following(files, forest):
    """A linked directory is read once, under the first path that leads to it; no loop."""
    result = files.walk(forest, follow=True)
    assert result["truncated"] is False and result["errors"] == []
    assert walked(result, forest) == [
        "d .hid", "d Zcap", "f a", "f b.txt", "d dlink", "d nested", "d %C3%BCn%C3%AF", "f .hid/h",
        "f Zcap/z", "d dlink/deep", "f dlink/n", "d dlink/up", "f dlink/deep/d", "d dlink/deep/er",
        "f dlink/deep/er/e"]


def test_walk_directory_loops(files, place):
    (place / "a" / "b").mkdir(parents=True)
    (place / "a" / "b" / "root").symlink_to(place)
    (place / "a" / "self").symlink_to(".")
    (place / "x").symlink_to("a/b")
    result = files.walk(place, follow=True)
    assert walked(result, place) == ["d a", "d x", "d a/b", "d a/self", "d x/root"]
    assert result["truncated"] is False


def test_walk_pruning(files, forest):
    result = files.walk(forest, pruneHiddenDirectories=True)
    assert walked(result, forest) == [e for e in WALKED if e != "f .hid/h"]
    # A visible link to a hidden directory is read.
    (forest / "show").symlink_to(".hid")
    names = walked(files.walk(forest, follow=True, pruneHiddenDirectories=True), forest)
    assert "d .hid" in names and "d show" in names and "f show/h" in names


def test_walk_limit_of_entries(files, forest):
    """Names that give no entry count as well, dangling links do not."""
    for limit in range(1, 8):
        result = files.walk(forest, entries=limit)
        assert result["truncated"] is True
        assert walked(result, forest) == WALKED[:len(result["entries"])]
    # .hid Zcap a b.txt dlink fifo flink nested ...
    assert walked(files.walk(forest, entries=4), forest) == WALKED[:4]
    assert walked(files.walk(forest, entries=7), forest) == WALKED[:4]
    assert walked(files.walk(forest, entries=8), forest) == WALKED[:5]
    count = 9 + 1 + 1 + 3 + 2 + 1
    assert files.walk(forest, entries=count)["truncated"] is False
    assert files.walk(forest, entries=count - 1)["truncated"] is True


def test_walk_limit_of_directories(files, forest):
    """One more is listed but not read, and the walk goes on."""
    result = files.walk(forest, directories=1)
    assert walked(result, forest) == WALKED[:6] and result["truncated"] is True
    result = files.walk(forest, directories=2)
    assert walked(result, forest) == WALKED[:7] and result["truncated"] is True
    assert files.walk(forest, directories=7)["truncated"] is False
    assert files.walk(forest, directories=6)["truncated"] is True


@pytest.mark.parametrize("limits, text", [
    ({"directories": 0}, "filesystem walk limits must be greater than zero"),
    ({"entries": 0}, "filesystem walk limits must be greater than zero"),
    ({"depth": 65}, None), ({"directories": 10001}, None), ({"entries": 50001}, None),
    ({"depth": 2**64 - 1}, None)])
def test_walk_limits(files, place, limits, text):
    """Checked before the root is looked at."""
    text = text or "filesystem walk limits exceed maximums: depth=64, directories=10000, " \
        "entries=50000"
    options = {"maxDepth": limits.get("depth", 1), "maxEntries": limits.get("entries", 1),
               "maxDirectories": limits.get("directories", 1), "followDirectorySymlinks": False}
    assert files.error("walk", place / "missing", options=options) == (-32600, text)


def test_walk_roots(files, forest):
    empty = {"entries": [], "errors": [], "truncated": False}
    for name in ("a", "fifo", "flink", "dlink"):
        assert files.walk(forest / name) == empty
    for name in ("a", "fifo", "flink"):
        assert files.walk(forest / name, follow=True) == empty
    assert walked(files.walk(forest / "dlink", follow=True), forest / "dlink")[:2] \
        == ["d deep", "f n"]
    options = {"maxDepth": 1, "maxEntries": 1, "maxDirectories": 1,
               "followDirectorySymlinks": False}
    for name, number in (("missing", 2), ("dangling", 2), ("a/x", 20), ("n" * 256, 36)):
        for follow in (True, False):
            options["followDirectorySymlinks"] = follow
            assert files.error("walk", forest / name, options=options) == os_error(number)


def test_walk_of_a_long_uri(files, forest):
    """Entries begin with the URI as the client wrote it, however long."""
    root = uri(forest) + "/" * 60000 + "nested"
    result = files.client.call("fs/walk", {"path": root, "options": {
        "maxDepth": 1, "maxEntries": 9, "maxDirectories": 9, "followDirectorySymlinks": False}})
    assert result["entries"][0] == {"path": f"{root}/deep", "kind": "directory"}


def test_walk_without_permission(plain_files, place):
    """What cannot be read is told; the rest is walked."""
    (place / "closed").mkdir(mode=0o700)
    (place / "open").mkdir()
    (place / "open" / "f").touch()
    (place / "names").mkdir()
    (place / "names" / "f").touch()
    (place / "names").chmod(0o744)
    result = plain_files.walk(place)
    assert walked(result, place) == ["d closed", "d names", "d open", "f open/f"]
    denied = "Permission denied (os error 13)"
    assert result["errors"] == [{"path": uri(place / "closed"), "message": denied},
                                {"path": uri(place / "names" / "f"), "message": denied}]
    result = plain_files.walk(place / "closed")
    assert result["entries"] == [] and not result["truncated"]
    assert result["errors"] == [{"path": uri(place / "closed"), "message": denied}]
    options = {"maxDepth": 1, "maxEntries": 1, "maxDirectories": 1,
               "followDirectorySymlinks": False}
    assert plain_files.error("walk", place / "closed" / "x", options=options) == os_error(13)


def test_walk_names_that_are_not_utf8(files, place):
    (place / "fine").touch()
    with open(os.path.join(os.fsencode(place), b"b\xff"), "wb"):
        pass
    result = files.walk(place)
    assert walked(result, place) == ["f fine"]
    assert result["errors"] == [{"path": uri(place) + "/b%EF%BF%BD",
                                 "message": "No such file or directory (os error 2)"}]


def test_walk_odd_names(files, place):
    names = ["a b", 'q"', "h#", "p%41", "q?", "b\\", "new\nline", "[x]", "{y}", "~", "\x7f"]
    for name in names:
        (place / name).touch()
    result = files.walk(place)
    assert [e["path"] for e in result["entries"]] == [uri(place / n) for n in sorted(names)]
    for entry, name in zip(result["entries"], sorted(names)):
        assert files.client.call("fs/canonicalize", {"path": entry["path"]})["path"] \
            == uri(place / name)


def test_walk_failing_file_system(files, faultfs):
    (faultfs.real / "e5-list").mkdir()
    faultfs.file("e5-stat")
    faultfs.file("fine")
    result = files.walk(faultfs.path)
    assert "f fine" in walked(result, faultfs.path)
    assert {"path": uri(faultfs.path / "e5-list"), "message": "I/O error (os error 5)"} \
        in result["errors"]


def test_walk_deep(files, place):
    """64 levels, and paths beyond PATH_MAX, end without harm."""
    path = str(place) + "/" + "/".join(["d" * 100] * 70)
    files.mkdir(path, followSymlinks=False)
    result = files.walk(place)
    assert 30 < len(result["entries"]) <= 65
    short = place / "short"
    (short / "/".join(["d"] * 70)).mkdir(parents=True)
    result = files.walk(short)
    assert len(result["entries"]) == 65 and result["truncated"] is False
