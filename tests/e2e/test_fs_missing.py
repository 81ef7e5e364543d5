"""fs/watchMissing and fs/missingChanged."""

import itertools
import os
import threading

import pytest

from harness.files import uri
from harness.limits import user_limit
from harness.waiting import until

YES, NO = {"watching": True}, {"watching": False}
FIRED = "fs/missingChanged"


class Missing:
    """The watch of one connection."""

    def __init__(self, client, place):
        self.client, self.place = client, place
        self.ids = itertools.count(1)
        self.id = None

    def uri(self, name):
        return name if ":" in str(name) else uri(self.place / name)

    def params(self, missing, present=None, ident=None):
        self.id = next(self.ids) if ident is None else ident
        params = {"watchId": self.id, "missing": [self.uri(name) for name in missing]}
        return params if present is None else {**params, "present": self.uri(present)}

    def watch(self, *missing, present=None, ident=None):
        return self.client.call("fs/watchMissing", self.params(missing, present, ident))

    def error(self, *missing, present=None, ident=None):
        return self.client.error("fs/watchMissing", self.params(missing, present, ident))

    def send(self, *missing, ident=None):
        return self.client.send("fs/watchMissing", self.params(missing, ident=ident))

    def fired(self):
        """Ids of the watches that have fired until now."""
        messages, self.client.other = self.client.other, []
        for message in messages:
            assert list(message) == ["method", "params"] and message["method"] == FIRED, message
            assert list(message["params"]) == ["watchId"]
        return [message["params"]["watchId"] for message in messages]

    def wait_fired(self):
        self.client.wait(lambda: self.client.other, FIRED)
        return self.fired()

    def quiet(self):
        """Nothing has fired. The server has had the events before the request."""
        self.client.sync()
        self.client.barrier()
        return not self.client.other


@pytest.fixture
def missing(client, place):
    return Missing(client, place)


def replace(target, source):
    os.rename(source, target)


# What is missing, what is present, what is done to what; in a directory that holds a file, another,
# an empty directory and a directory with a file in it.
FIRES = {
    "file": ("a", None, lambda p: (p / "a").touch()),
    "directory": ("a", None, lambda p: (p / "a").mkdir()),
    "link": ("a", None, lambda p: (p / "a").symlink_to("nowhere")),
    "rename in": ("a", None, lambda p: replace(p / "a", p / "file")),
    "other case": ("a", None, lambda p: (p / "A").touch()),
    "name beyond ASCII": ("a", None, lambda p: (p / "é").touch()),
    "first directory": ("x/y/z", None, lambda p: (p / "x").mkdir()),
    "next directory": ("dir/y/z", None, lambda p: (p / "dir/y").mkdir()),
    "parent removed": ("empty/a", None, lambda p: (p / "empty").rmdir()),
    "parent renamed": ("dir/a", None, lambda p: (p / "dir").rename(p / "moved")),
    "parent's mode": ("dir/a", None, lambda p: (p / "dir").chmod(0o700)),
    "present written": ("a", "file", lambda p: (p / "file").write_text("new")),
    "present truncated": ("a", "file", lambda p: os.truncate(p / "file", 0)),
    "present's mode": ("a", "file", lambda p: (p / "file").chmod(0o600)),
    "present's times": ("a", "file", lambda p: os.utime(p / "file", (1, 1))),
    "present removed": ("a", "file", lambda p: (p / "file").unlink()),
    "present replaced": ("a", "file", lambda p: replace(p / "file", p / "other")),
    "present directory's mode": ("a", "dir", lambda p: (p / "dir").chmod(0o700)),
    "present's parent renamed": ("a", "dir/f", lambda p: (p / "dir").rename(p / "moved")),
}
QUIET = {
    "sibling": ("a", None, lambda p: (p / "b").touch()),
    "longer name": ("a", None, lambda p: (p / "ab").touch()),
    "sibling written": ("a", None, lambda p: (p / "file").write_text("new")),
    "sibling removed": ("a", None, lambda p: (p / "file").unlink()),
    "later name": ("x/y/z", None, lambda p: (p / "y").mkdir()),
    "parent listed": ("dir/a", None, lambda p: list((p / "dir").iterdir())),
    "present read": ("a", "file", lambda p: (p / "file").read_text()),
    "present opened": ("a", "file", lambda p: (p / "file").open("r+").close()),
    "present's sibling": ("a", "file", lambda p: (p / "other").write_text("new")),
    "child of present": ("a", "dir", lambda p: (p / "dir/new").touch()),
    "child of present written": ("a", "dir", lambda p: (p / "dir/f").write_text("new")),
}


@pytest.fixture
def tree(place):
    (place / "file").write_text("text")
    (place / "other").write_text("other")
    (place / "empty").mkdir()
    (place / "dir").mkdir()
    (place / "dir" / "f").write_text("f")
    return place


@pytest.mark.parametrize("name", FIRES)
def test_fires_once(missing, tree, name):
    absent, present, act = FIRES[name]
    assert missing.watch(absent, present=present) == YES
    assert missing.quiet()
    act(tree)
    assert missing.wait_fired() == [missing.id]
    (tree / "x1").touch()
    for path in (tree / "a", tree / "x"):
        path.touch()
    assert missing.quiet()


@pytest.mark.parametrize("name", QUIET)
def test_stays_quiet(missing, tree, name):
    absent, present, act = QUIET[name]
    assert missing.watch(absent, present=present) == YES
    act(tree)
    assert missing.quiet()
    # It is alive all the same.
    (tree / absent).parent.mkdir(parents=True, exist_ok=True)
    (tree / absent).touch()
    assert missing.wait_fired() == [missing.id]


REFUSED = {
    "exists": (["file"], None),
    "one exists": (["a", "file"], None),
    "dangling link": (["dangling"], None),
    "through a link": (["link/a"], None),
    "through a dangling link": (["dangling/a"], None),
    "through a file": (["file/a"], None),
    "present is missing": (["a"], "b"),
    "present is a link": (["a"], "link"),
    "present through a link": (["a"], "link/f"),
    "nothing": ([], None),
    "nothing but present": ([], "file"),
    "65": ([f"m{i}" for i in range(65)], None),
    "a drive": (["file:///C:/x"], None),
    "another host": (["file://server/a"], None),
    "present on another host": (["a"], "file://server/a"),
    "procfs": (["file:///proc/none"], None),
    "sysfs": (["file:///sys/none"], None),
    "root": (["file:///"], None),
    "long name": (["n" * 256], None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(missing, tree, name):
    """A refusal is an answer; it ends the watch before it and uses up its id."""
    (tree / "dangling").symlink_to("nowhere")
    (tree / "link").symlink_to("dir")
    absent, present = REFUSED[name]
    assert missing.watch("before") == YES
    assert missing.watch(*absent, present=present) == NO
    (tree / "before").touch()
    assert missing.quiet()
    assert missing.watch("again", ident=missing.id) == NO
    assert missing.watch("again") == YES
    (tree / "again").touch()
    assert missing.wait_fired() == [missing.id]


BAD = {
    "scheme": ({"missing": ["http://x"]}, "unsupported path URI scheme `http`"),
    "relative": ({"missing": ["x"]}, "invalid URI: relative URL without a base"),
    "NUL": ({"missing": ["file:///a%00b"]}, "'file:///a%00b' is invalid on 'linux'"),
    "foreign and bad": ({"missing": ["file:///C:/x", "http://x"]},
                        "unsupported path URI scheme `http`"),
    "number": ({"missing": [1]}, "invalid type: number, expected a string"),
    "bad before number": ({"missing": ["http://x", 1]}, "unsupported path URI scheme `http`"),
    "null": ({"missing": None}, "invalid type: null, expected a sequence"),
    "string": ({"missing": "x"}, 'invalid type: string "x", expected a sequence'),
    "present": ({"present": 1}, "invalid type: number, expected a string"),
    "present a list": ({"present": []}, "invalid type: sequence, expected a string"),
    "present bad": ({"present": "ftp://x"}, "unsupported path URI scheme `ftp`"),
    "negative": ({"watchId": -1}, "invalid number"),
    "fraction": ({"watchId": 1.5}, "invalid number"),
    "float": ({"watchId": 1.0}, "invalid number"),
    "too large": ({"watchId": 2**64}, "invalid number"),
    "id a string": ({"watchId": "1"}, 'invalid type: string "1", expected u64'),
    "id null": ({"watchId": None}, "invalid type: null, expected u64"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_params(missing, place, name):
    """They leave the watch alone, and the id unused."""
    change, text = BAD[name]
    assert missing.watch("a") == YES
    params = {"watchId": 7, "missing": [uri(place / "b")], **change}
    assert missing.client.error("fs/watchMissing", params) == (-32602, text)
    (place / "a").touch()
    assert missing.wait_fired() == [missing.id]
    assert missing.watch("b", ident=7) == YES


def test_params_in_order(missing):
    """The first misfit of the document is the error, then what is missing."""
    for params, text in [
            ({"missing": ["http://x"], "watchId": -1}, "unsupported path URI scheme `http`"),
            ({"watchId": -1, "missing": ["http://x"]}, "invalid number"),
            ({"present": "ftp://x", "missing": ["http://x"]}, "unsupported path URI scheme `ftp`"),
            ({"missing": ["http://x"]}, "unsupported path URI scheme `http`"),
            ({"missing": []}, "missing field `watchId`"),
            ({"watchId": 1}, "missing field `missing`"),
            ({}, "missing field `watchId`"),
            (None, "invalid type: null, expected struct FsWatchMissingParams")]:
        assert missing.client.error("fs/watchMissing", params) == (-32602, text)
    for params in ({"watchId": 1, "missing": [], "present": None},
                   {"watchId": 2, "missing": [], "sandbox": None, "other": {}}):
        assert missing.client.call("fs/watchMissing", params) == NO


def test_native_paths(missing, place):
    params = {"watchId": 1, "missing": [str(place / "a")], "present": str(place)}
    assert missing.client.call("fs/watchMissing", params) == YES
    (place / "a").touch()
    assert missing.wait_fired() == [1]


def test_handshake(server, place):
    client = server.connect()
    params = {"watchId": 1, "missing": [uri(place / "a")]}
    assert client.error("fs/watchMissing", params) == (
        -32600, "client must call initialize before using filesystem methods")
    assert client.error("fs/watchMissing", {"watchId": 1})[0] == -32602


def test_ids(missing, place):
    assert missing.watch("a", ident=0) == NO
    assert missing.watch("a", ident=3) == YES
    for lower in (2, 3, 0):
        assert missing.watch("b", ident=lower) == NO
    (place / "b").touch()
    assert missing.quiet()
    (place / "a").touch()
    assert missing.wait_fired() == [3]
    assert missing.watch("c", ident=3) == NO
    assert missing.watch("c", ident=4) == YES
    assert missing.watch("d", ident=2**64 - 1) == YES
    (place / "c").touch()
    assert missing.quiet()
    (place / "d").touch()
    assert missing.wait_fired() == [2**64 - 1]
    assert missing.watch("e", ident=2**64 - 1) == NO


def test_directories(missing, place):
    """Those above all paths count, each once, whether they exist or not."""
    above = len(place.parts)
    names = [f"d{i}/f" for i in range(64 - above)]
    assert missing.watch(*names) == YES
    assert missing.watch(*names, "one/more") == NO
    assert missing.watch("/".join("x" * (65 - above))) == YES
    assert missing.watch("/".join("x" * (66 - above))) == NO
    assert missing.watch(*[f"m{i}" for i in range(64)], present=".") == YES
    (place / "m63").touch()
    assert missing.wait_fired() == [missing.id]


def test_unreadable_directory(plain, place):
    client = plain.client()
    (place / "secret").mkdir(mode=0o711)
    (place / "open").mkdir()
    missing = Missing(client, place)
    assert missing.watch("secret/a") == NO
    assert missing.watch("open/a") == YES


def test_connections_are_independent(shared, place):
    one, two = (Missing(shared.client(), place) for _ in range(2))
    assert one.watch("a") == two.watch("a") == YES
    assert two.watch("b") == YES
    (place / "a").touch()
    assert one.wait_fired() == [1]
    assert two.quiet()
    one.client.end()
    (place / "b").touch()
    assert two.wait_fired() == [2]


def test_answer_comes_first(missing, place):
    """A change at the same moment is refused, or told after the answer; it is never lost."""
    seen = {True: 0, False: 0}
    for i in range(200):
        name = place / f"f{i}"
        go = threading.Event()
        maker = threading.Thread(target=lambda path, go: (go.wait(), path.touch()),
                                 args=(name, go))
        maker.start()
        if i % 3 == 0:
            go.set()
        ident = missing.send(name.name)
        if i % 3 == 1:
            go.set()
        first = missing.client.pump()
        go.set()
        assert first.get("id") == ident, first
        watching = first["result"]["watching"]
        seen[watching] += 1
        if watching:
            assert missing.wait_fired() == [missing.id]
        maker.join()
        missing.client.answers.clear()
    assert seen[True] > 0


def test_goes_with_its_connection(server, place):
    client = server.client()
    client.sync()
    before = server.fds()
    missing = Missing(client, place)
    for i in range(50):
        assert missing.watch(f"f{i}") == YES
    assert "anon_inode:inotify" in server.fd_targets()
    client.end()
    until(lambda: "anon_inode:inotify" not in server.fd_targets(), "the end of the watch")
    server.wait_fds(before - 1)
    again = Missing(server.client(resume=client.session), place)
    (place / "f49").touch()
    assert again.quiet()
    assert again.watch("g") == YES  # ids begin anew


@pytest.mark.parametrize("lanes", [1, 4])
def test_pipelined(fleet, place, lanes):
    """Of many, the last one counts, and no descriptor is left."""
    server = fleet.start("--concurrent-requests", str(lanes))
    client = server.client()
    missing = Missing(client, place)
    idents = [missing.send(f"f{i}") for i in range(200)]
    results = [client.result(ident) for ident in idents]
    assert results[-1] == YES and (lanes > 1 or results == [YES] * 200)
    # One for the watch, and perhaps one for the next.
    until(lambda: server.fd_targets().count("anon_inode:inotify") <= 2, "few instances")
    for i in range(200):
        (place / f"f{i}").touch()
    assert missing.wait_fired() == [200]
    assert missing.quiet()
    client.end()
    until(lambda: "anon_inode:inotify" not in server.fd_targets(), "no watch")


def test_mounts(missing, mounts):
    """A mount may bring a path without any directory changing, so each counts."""
    assert missing.watch("a") == YES
    target = mounts.tmpfs("size=1m")
    assert missing.wait_fired() == [missing.id]
    assert missing.watch(f"{target.name}/a") == YES
    mounts.finish()
    assert missing.wait_fired() == [missing.id]


def test_fuse(missing, faultfs):
    """A file system that others may change tells nothing."""
    assert missing.watch(f"{faultfs.path.name}/a") == NO
    assert missing.watch("a", present=faultfs.path.name) == YES


def test_no_instances_left(fleet, place):
    """The limit of the kernel is a refusal."""
    server = fleet.start(wrapper=user_limit("max_inotify_instances", 0))
    missing = Missing(server.client(), place)
    assert missing.watch("a") == NO
    assert missing.quiet()
