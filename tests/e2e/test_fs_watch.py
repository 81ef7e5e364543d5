"""fs/watch, fs/unwatch and fs/changed."""

import os
import shutil
import signal

import pytest

from harness import procfs
from harness.files import Files, os_error, uri
from harness.limits import user_limit
from harness.settings import SANITIZED
from harness.waiting import until

MIB = 1 << 20
CHANGED = "fs/changed"
INOTIFY = "anon_inode:inotify"
TOO_MANY = -32600, "at most 64 watches may exist per connection"
TOO_LARGE = -32600, "at most 8192 directories may be watched per connection"


class Watches:
    """The watches of one connection, and what they have told."""

    def __init__(self, client, place):
        self.client, self.place = client, place
        self.told = []
        self.fences = 0

    def watch(self, name, path, **params):
        """Sets up a watch; the real path, relative to the place."""
        result = self.client.call("fs/watch", {"watchId": name, "path": uri(path), **params})
        assert list(result) == ["path"]
        return self.short(result["path"])

    def unwatch(self, name):
        assert self.client.call("fs/unwatch", {"watchId": name}) == {}

    def error(self, name, path, **params):
        return self.client.error("fs/watch", {"watchId": name, "path": uri(path), **params})

    def short(self, text):
        start = uri(self.place)
        assert text.startswith(start), text
        return text[len(start) + 1:] or "."

    def take(self):
        """Checks the shape of what has come and keeps it as (watch, paths, overflow)."""
        messages, self.client.other = self.client.other, []
        for message in messages:
            assert list(message) == ["method", "params"] and message["method"] == CHANGED, message
            params = message["params"]
            assert list(params) == ["watchId", "changedPaths", "overflow"]
            paths = [self.short(text) for text in params["changedPaths"]]
            assert len(set(paths)) == len(paths) <= 1024
            assert not (params["overflow"] and paths)
            assert params["overflow"] or paths
            self.told.append((params["watchId"], paths, params["overflow"]))
        return self.told

    def paths(self, name):
        return {path for watch, paths, _ in self.take() if watch == name for path in paths}

    def overflows(self, name):
        return sum(overflow for watch, _, overflow in self.take() if watch == name)

    def wait_paths(self, name, *wanted):
        """Waits until these were told; returns and forgets all that was."""
        self.client.wait(lambda: self.paths(name) >= set(wanted), f"{wanted} of {self.told}")
        got = self.paths(name)
        self.told = [told for told in self.told if told[0] != name]
        return got

    def wait_overflow(self, name):
        self.client.wait(lambda: self.overflows(name), "overflow")
        self.told = [told for told in self.told if told[0] != name]

    def fence(self):
        """All that happened before is told when this returns: a later change is."""
        self.fences += 1
        name = f"fence {self.fences}"
        directory = self.place.parent / f"{self.place.name}.fence"
        directory.mkdir(exist_ok=True)
        self.client.call("fs/watch", {"watchId": name, "path": uri(directory)})
        (directory / name).touch()
        self.client.wait(lambda: any(m["params"]["watchId"] == name for m in self.client.other),
                         "the fence")
        self.client.other = [m for m in self.client.other if m["params"]["watchId"] != name]
        self.unwatch(name)
        shutil.rmtree(directory)
        return self.take()


@pytest.fixture
def watches(client, place):
    return Watches(client, place)


def test_directory(watches, place):
    (place / "d").mkdir()
    (place / "d/sub").mkdir()
    (place / "d/f").touch()
    assert watches.watch("w", place / "d") == "d"
    assert watches.fence() == []
    (place / "d/new").touch()
    assert watches.wait_paths("w", "d/new") == {"d/new"}
    (place / "d/f").write_text("x")
    assert watches.wait_paths("w", "d/f") == {"d/f"}
    (place / "d/f").rename(place / "d/g")
    assert watches.wait_paths("w", "d/f", "d/g") == {"d/f", "d/g"}
    (place / "d/g").unlink()
    assert watches.wait_paths("w", "d/g") == {"d/g"}
    (place / "d/g").symlink_to("nowhere")
    (place / "d/h").mkdir()
    assert watches.wait_paths("w", "d/g", "d/h") == {"d/g", "d/h"}
    (place / "d").chmod(0o700)
    assert watches.wait_paths("w", "d") == {"d"}
    # Not meant: what lies deeper, what lies beside, reading.
    (place / "d/sub/deep").touch()
    (place / "beside").touch()
    (place / "d/new").read_text()
    assert watches.fence() == []


def test_tree(watches, place):
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/f").touch()
    assert watches.watch("w", place, recursive=True) == "."
    (place / "a/b/f").write_text("x")
    assert watches.wait_paths("w", "a/b/f") == {"a/b/f"}
    (place / "a/n/m/o").mkdir(parents=True)
    (place / "a/n/m/o/f").touch()
    watches.wait_paths("w", "a/n", "a/n/m", "a/n/m/o", "a/n/m/o/f")
    (place / "a/n/m/o/f").write_text("x")
    assert watches.wait_paths("w", "a/n/m/o/f") == {"a/n/m/o/f"}
    (place / "a").rename(place / "z")
    watches.wait_paths("w", "a", "z", "z/b", "z/b/f", "z/n/m/o/f")
    watches.fence()
    watches.told.clear()
    (place / "z/n/m/o/f").write_text("y")
    assert watches.wait_paths("w", "z/n/m/o/f") == {"z/n/m/o/f"}
    shutil.rmtree(place / "z/n")
    assert watches.wait_paths("w", "z/n", "z/n/m", "z/n/m/o", "z/n/m/o/f") == {
        "z/n", "z/n/m", "z/n/m/o", "z/n/m/o/f"}


def test_moved_out_and_in(watches, place):
    (place / "in/d/e").mkdir(parents=True)
    watches.watch("w", place / "in", recursive=True)
    (place / "in/d").rename(place / "out")
    assert watches.wait_paths("w", "in/d") == {"in/d"}
    (place / "out/e/f").touch()
    assert watches.fence() == []
    (place / "out").rename(place / "in/c")
    assert watches.wait_paths("w", "in/c", "in/c/e", "in/c/e/f") == {"in/c", "in/c/e", "in/c/e/f"}
    (place / "in/c/e/g").touch()
    assert watches.wait_paths("w", "in/c/e/g") == {"in/c/e/g"}


def test_links_are_not_followed(watches, place):
    for name in ("in", "out", "later"):
        (place / name).mkdir()
    (place / "in/link").symlink_to(place / "out")
    watches.watch("w", place / "in", recursive=True)
    (place / "in/other").symlink_to(place / "later")
    assert watches.wait_paths("w", "in/other") == {"in/other"}
    (place / "out/f").touch()
    (place / "later/f").touch()
    assert watches.fence() == []


def test_file(watches, place):
    """A file is watched by its name: it may be replaced, go and come."""
    (place / "f").touch()
    assert watches.watch("w", place / "f", recursive=True) == "f"
    (place / "g").touch()
    place.chmod(0o700)
    assert watches.fence() == []
    (place / "f").write_text("x")
    assert watches.wait_paths("w", "f") == {"f"}
    (place / "g").rename(place / "f")
    assert watches.wait_paths("w", "f") == {"f"}
    (place / "f").unlink()
    assert watches.wait_paths("w", "f") == {"f"}
    (place / "f").write_text("again")
    assert watches.wait_paths("w", "f") == {"f"}


def test_real_path(watches, place):
    (place / "d").mkdir()
    (place / "d/f").touch()
    (place / "dlink").symlink_to("d")
    (place / "flink").symlink_to("dlink/f")
    assert watches.watch("d", place / "dlink") == "d"
    assert watches.watch("f", place / "flink") == "d/f"
    (place / "d/f").write_text("x")
    assert watches.wait_paths("d", "d/f") == watches.wait_paths("f", "d/f") == {"d/f"}


def test_names(watches, place):
    """Names that are not UTF-8, as long as can be, or full of characters with a meaning."""
    names = [b"\xff\xfe", b"n" * 255, b'"\\ %?#\n', "grün".encode()]
    directory = os.fsencode(place)
    watches.client.call("fs/watch", {"watchId": "wätch \"\\", "path": uri(place)})
    for name in names:
        with open(directory + b"/" + name, "wb"):
            pass
    wanted = {uri(directory + b"/" + name) for name in names}
    got = set()

    def complete():
        for message in watches.client.other:
            assert message["params"]["watchId"] == "wätch \"\\"
            got.update(message["params"]["changedPaths"])
        return got >= wanted
    watches.client.wait(complete, "all names")
    assert got == wanted


@pytest.mark.parametrize("way", ["removed", "moved"])
def test_end_of_the_root(watches, place, way):
    """One more notification, then silence; the id stays taken."""
    (place / "d/e").mkdir(parents=True)
    watches.watch("w", place / "d", recursive=True)
    if way == "removed":
        shutil.rmtree(place / "d")
        assert watches.wait_paths("w", "d", "d/e") == {"d", "d/e"}
    else:
        (place / "d").rename(place / "x")
        assert watches.wait_paths("w", "d") == {"d"}
        (place / "x/e/f").touch()
    (place / "d").mkdir(exist_ok=True)
    (place / "d/f").touch()
    assert watches.fence() == []
    assert watches.error("w", place) == (-32600, "watch `w` already exists")
    watches.unwatch("w")
    watches.watch("w", place / "d")


def test_unwatch(watches, place):
    watches.watch("one", place)
    watches.watch("two", place)
    watches.watch("three", place, recursive=True)
    watches.unwatch("one")
    watches.unwatch("never")
    watches.unwatch("x" * 1000)
    (place / "f").touch()
    assert watches.wait_paths("two", "f") == watches.wait_paths("three", "f") == {"f"}
    watches.unwatch("two")
    watches.unwatch("three")
    (place / "g").touch()
    assert watches.fence() == []
    assert watches.watch("one", place) == "."
    (place / "g").unlink()
    assert watches.wait_paths("one", "g") == {"g"}


def test_unwatch_forgets_what_was_not_told(watches, place):
    """A change, at once the end of the watch, and no notification after the answer."""
    for i in range(20):
        watches.watch("w", place)
        (place / f"f{i}").touch()
        watches.unwatch("w")
        before = len(watches.take())
        assert len(watches.fence()) == before
        watches.told.clear()


ERRORS = {
    "missing": ("none", os_error(2)),
    "dangling": ("dangling", os_error(2)),
    "loop": ("loop", os_error(40)),
    "below a file": ("file/x", os_error(20)),
    "long name": ("n" * 256, os_error(36)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(watches, place, name):
    (place / "file").touch()
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    path, error = ERRORS[name]
    assert watches.error("w", place / path) == error
    assert watches.watch("w", place) == "."


def test_bad_params(watches, place):
    good = {"watchId": "w", "path": uri(place)}
    for change, text in [
            ({"watchId": 1}, "invalid type: number, expected a string"),
            ({"path": "x"}, "invalid URI: relative URL without a base"),
            ({"path": None}, "invalid type: null, expected a string"),
            ({"recursive": 1}, "invalid type: number, expected a boolean")]:
        assert watches.client.error("fs/watch", {**good, **change}) == (-32602, text)
    for absent in good:
        params = {k: v for k, v in good.items() if k != absent}
        assert watches.client.error("fs/watch", params) == (-32602, f"missing field `{absent}`")
    assert watches.client.error("fs/unwatch", {}) == (-32602, "missing field `watchId`")
    assert watches.client.error("fs/watch", {**good, "path": "file:///C:/x"}) == (
        -32600, "'file:///C:/x' is invalid on 'linux'")
    for size in (0, 65):
        assert watches.client.error("fs/watch", {**good, "watchId": "w" * size}) == (
            -32600, "watch ID must have 1 to 64 bytes")
    for params in ({**good, "recursive": None}, {**good, "watchId": "w" * 64},
                   {**good, "watchId": "native", "path": str(place)}):
        assert watches.client.call("fs/watch", params) == {"path": uri(place)}


def test_handshake(server, place):
    client = server.connect()
    for method in ("fs/watch", "fs/unwatch"):
        assert client.error(method, {"watchId": "w", "path": uri(place)}) == (
            -32600, "client must call initialize before using filesystem methods")


def test_unreadable(plain, place):
    client = plain.client()
    (place / "secret").mkdir(mode=0o700)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    watches = Watches(client, place)
    assert watches.error("w", place / "secret") == os_error(13)
    assert watches.watch("w", place, recursive=True) == "."
    (place / "secret/f").touch()
    (place / "open/f").touch()
    assert watches.wait_paths("w", "open/f") == {"open/f"}


def test_at_most_64_watches(watches, place):
    for i in range(64):
        watches.watch(f"w{i}", place)
    assert watches.error("w0", place) == (-32600, "watch `w0` already exists")
    assert watches.error("one more", place) == TOO_MANY
    (place / "f").touch()
    watches.client.wait(lambda: {told[0] for told in watches.take()} ==
                        {f"w{i}" for i in range(64)}, "all of them")
    watches.unwatch("w7")
    watches.watch("one more", place)


def test_at_most_8192_directories(watches, place):
    for i in range(8190):
        (place / "big" / f"d{i}").mkdir(parents=True)
    (place / "small/d").mkdir(parents=True)
    watches.watch("big", place / "big", recursive=True)
    assert watches.error("small", place / "small", recursive=True) == TOO_LARGE
    assert watches.error("all", place, recursive=True) == TOO_LARGE
    watches.watch("small", place / "small")
    (place / "big/d8189/f").touch()
    assert watches.wait_paths("big", "big/d8189/f") == {"big/d8189/f"}
    # Later an overflow tells that the server cannot watch all.
    (place / "big/more").mkdir()
    watches.wait_overflow("big")
    watches.unwatch("small")
    (place / "big/again").mkdir()
    watches.wait_paths("big", "big/again")
    watches.fence()
    (place / "big/again/f").touch()
    watches.wait_paths("big", "big/again/f")


def test_more_than_1024_paths(watches, place):
    (place / "in").mkdir()
    (place / "wide/sub").mkdir(parents=True)
    for i in range(1024):
        (place / "wide" / f"f{i}").touch()
    watches.watch("w", place / "in", recursive=True)
    (place / "wide").rename(place / "in/wide")
    watches.wait_overflow("w")
    watches.fence()
    watches.told.clear()
    # The tree is known all the same.
    (place / "in/wide/sub/f").touch()
    assert watches.wait_paths("w", "in/wide/sub/f") == {"in/wide/sub/f"}


def test_kernel_queue_overflows(server, place):
    """Events that the kernel drops are reported, and directories made meanwhile are found."""
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as f:
        most = int(f.read())
    watches = Watches(server.client(), place)
    watches.watch("w", place, recursive=True)
    (place / "a").touch()
    (place / "b").touch()
    watches.wait_paths("w", "a", "b")
    server.send_signal(signal.SIGSTOP)
    for i in range(most + 10):
        os.utime(place / "ab"[i % 2])
    (place / "unheard").mkdir()
    server.send_signal(signal.SIGCONT)
    watches.wait_overflow("w")
    watches.fence()
    watches.told.clear()
    (place / "unheard/f").touch()
    watches.wait_paths("w", "unheard/f")


@pytest.mark.parametrize("limit, value, error", [
    ("max_inotify_instances", 0, os_error(24)), ("max_inotify_watches", 3, os_error(28))])
def test_limits_of_the_kernel(fleet, place, limit, value, error):
    server = fleet.start(wrapper=user_limit(limit, value))
    (place / "a/b/c/d").mkdir(parents=True)
    watches = Watches(server.client(), place)
    assert watches.error("w", place, recursive=True) == error
    if value == 0:
        return
    # What the failed watch had is free again; later it is an overflow.
    assert watches.watch("w", place / "a/b", recursive=True) == "a/b"
    (place / "a/b/more").mkdir()
    watches.wait_overflow("w")


def test_answer_comes_first(client, place):
    """Something changes all the time."""
    process = client.start(f"while :; do : > {place}/f; done")
    for i in range(50):
        ident = client.send("fs/watch", {"watchId": f"w{i}", "path": uri(place)})
        client.answer(ident)
        assert all(m["params"]["watchId"] != f"w{i}" for m in client.other)
        client.wait(lambda name=f"w{i}": any(m["params"]["watchId"] == name
                                             for m in client.other), "a change")
        assert client.call("fs/unwatch", {"watchId": f"w{i}"}) == {}
        client.other.clear()
        client.sync()
        assert not client.other
    client.terminate(process)
    client.wait_closed(process)


@pytest.mark.parametrize("lanes", [1, 4])
def test_pipelined(fleet, place, lanes):
    """Many set-ups and ends at once."""
    server = fleet.start("--concurrent-requests", str(lanes))
    client = server.client()
    (place / "a/b").mkdir(parents=True)
    idents = []
    for i in range(300):
        params = {"watchId": f"w{i % 5}", "path": uri(place), "recursive": True}
        idents.append(client.send("fs/watch", params))
        idents.append(client.send("fs/unwatch", {"watchId": f"w{i % 5}"}))
    for ident in idents:
        answer = client.answer(ident)
        if lanes == 1:
            assert "result" in answer
    for i in range(5):
        client.call("fs/unwatch", {"watchId": f"w{i}"})
    client.other.clear()
    watches = Watches(client, place)
    watches.watch("last", place, recursive=True)
    (place / "a/b/f").touch()
    assert watches.wait_paths("last", "a/b/f") == {"a/b/f"}
    assert server.fd_targets().count(INOTIFY) == 1


def test_goes_with_its_connection(server, place):
    client = server.client()
    client.sync()
    before = server.fds()
    (place / "a/b").mkdir(parents=True)
    watches = Watches(client, place)
    watches.watch("w", place, recursive=True)
    watches.watch("f", place / "a", recursive=True)
    assert server.fd_targets().count(INOTIFY) == 1
    (place / "a/new").mkdir()  # a scan may be under way
    client.end()
    until(lambda: INOTIFY not in server.fd_targets(), "the end of the watches")
    server.wait_fds(before - 1)
    again = Watches(server.client(resume=client.session), place)
    (place / "a/f").touch()
    assert again.fence() == []
    assert again.watch("w", place) == "."


def test_other_connections_hear_nothing(shared, watches, place):
    other = Watches(shared.client(), place)
    watches.watch("w", place)
    assert other.watch("w", place) == "."
    watches.unwatch("w")
    (place / "f").touch()
    assert other.wait_paths("w", "f") == {"f"}
    assert watches.fence() == []
    other.client.end()


def test_slow_client(server, place):
    """While it reads nothing, changes are collected in bounded memory, and told when it does."""
    client = server.client(rcvbuf=4096)
    watches = Watches(client, place)
    watches.watch("w", place)
    token = procfs.mark()
    size = []
    process = client.start(f"exec yes {token}", sink=lambda seq, stream, data: size.append(seq))
    until(lambda: any(procfs.writing(pid) for pid in procfs.marked(token)), "a full queue")
    before = server.rss()
    for i in range(3000):
        (place / f"{i}-{'n' * 200}").touch()
    (place / "last").touch()
    if not SANITIZED:
        assert server.rss() - before < 4 * MIB
    client.send("process/terminate", {"processId": process.name})
    client.wait_closed(process)
    client.wait(lambda: watches.overflows("w") or "last" in watches.paths("w"), "the changes")
    watches.fence()
    # All that was not told as a path is told as an overflow; few messages say it.
    assert watches.overflows("w") or len(watches.paths("w")) == 3001
    assert len(watches.told) < 10


def test_churn(watches, place):
    """Trees come and go and move; in the end the watch knows what there is."""
    watches.watch("w", place, recursive=True)
    process = watches.client.start(
        f"cd {place}; for i in 1 2 3 4 5 6 7 8 9 10; do mkdir -p a/b/c d/e; mv a/b d/e/x; "
        "mv d a/y; rm -rf a/y/e; mv a z; rm -rf z; done; mkdir -p a/b/c")
    watches.client.wait_closed(process)
    assert process.exit_code == 0
    watches.fence()
    watches.fence()  # what was found is scanned by now
    watches.told.clear()
    (place / "a/b/c/f").touch()
    assert watches.wait_paths("w", "a/b/c/f") == {"a/b/c/f"}


def test_hung_file_system(server, faultfs, place):
    """It holds up the watches of its connection and nothing else; the client may leave."""
    faultfs.file("hang-stat")
    client, other = server.client(), server.client()
    client.sync()
    other.sync()
    before = server.fds()
    watches = Watches(client, place)
    watches.watch("w", place)
    client.send("fs/watch", {"watchId": "h", "path": uri(faultfs.path / "hang-stat")})
    faultfs.hangs("stat", "hang-stat")
    rest = Watches(other, place)
    rest.watch("w", place)
    (place / "f").touch()
    assert rest.wait_paths("w", "f") == {"f"}
    client.close()
    faultfs.release()
    other.close()
    server.wait_fds(before - 2)


def test_hung_file_system_is_waited_for(server, faultfs, place):
    """What has happened meanwhile is told when it goes on."""
    faultfs.file("hang-stat")
    client = server.client()
    watches = Watches(client, place)
    watches.watch("w", place)
    ident = client.send("fs/watch", {"watchId": "h", "path": uri(faultfs.path / "hang-stat")})
    faultfs.hangs("stat", "hang-stat")
    (place / "f").touch()
    client.sync()
    faultfs.release()
    assert client.result(ident) == {"path": uri(faultfs.path / "hang-stat")}
    assert watches.wait_paths("w", "f") == {"f"}


def test_written_by_fs_methods(watches, place):
    files = Files(watches.client)
    watches.watch("w", place, recursive=True)
    files.write(place / "f", b"x")
    assert watches.wait_paths("w", "f") == {"f"}
    files.write(place / "f", b"y", atomic=True)
    assert "f" in watches.wait_paths("w", "f")


def test_stdio(fleet, place):
    client = fleet.stdio()
    watches = Watches(client, place)
    watches.watch("w", place)
    (place / "f").touch()
    assert watches.wait_paths("w", "f") == {"f"}
