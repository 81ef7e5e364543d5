"""Symbolic links (extensions): fs/readLink, fs/symlink, fs/walk with `links`."""

import os

import pytest

from harness.confined import Calls
from harness.files import os_error, uri
from harness.meddler import Meddler, exchange
from harness.rpc import b64
from harness.sandbox import place as confined_place
from harness.sandbox import servers, user

__all__ = ["confined_place", "servers", "user"]

NOT_A_LINK = (-32600, "path is not a symbolic link")
TARGETS = [b"x", b"/abs/path", b"../up//./", b"a b\n\t\"\\\x01", "\u00fc\u20ac".encode(), b"\xff",
           b"a\xc3/\xe2\x82", b"%41", b"file:///x", b"n" * 4095, b"\xfe" * 4095, b"\xef\xbf\xbd"]
R, PR = "r :root", "w :project_roots"
WW, MIN = (R, PR), ("r :minimal", PR)
NO_FILE, DENIED, READ_ONLY, EXISTS = os_error(2), os_error(13), os_error(30), os_error(17)


# Targets.

@pytest.mark.parametrize("target", TARGETS, ids=lambda t: repr(t[:12]))
def test_targets(files, place, target):
    """Any bytes go there and come back."""
    files.symlink(place / "l", target)
    assert os.readlink(os.fsencode(place / "l")) == target
    assert files.read_link(place / "l") == target
    result = files.call("readLink", place / "l")
    try:
        assert result == {"target": target.decode()}
        files.symlink(place / "text", target.decode())
    except UnicodeDecodeError:
        assert "\ufffd" in result["target"]
    files.call("symlink", place / "again", **result)  # the members as they came
    assert os.readlink(os.fsencode(place / "again")) == target


@pytest.mark.parametrize("params, text", [
    ({}, "missing field `target`"), ({"target": None}, "missing field `target`"),
    ({"targetBase64": None, "target": None}, "missing field `target`"),
    ({"target": ""}, "target must have 1 to 4095 bytes"),
    ({"targetBase64": ""}, "target must have 1 to 4095 bytes"),
    ({"target": "x" * 4096}, "target must have 1 to 4095 bytes"),
    ({"target": "\u20ac" * 1366}, "target must have 1 to 4095 bytes"),
    ({"targetBase64": b64(b"x" * 4096)}, "target must have 1 to 4095 bytes"),
    ({"targetBase64": b64(b"x" * 500000)}, "target must have 1 to 4095 bytes"),
    ({"target": "a\0b"}, "target contains a NUL byte"),
    ({"targetBase64": b64(b"a\0")}, "target contains a NUL byte"),
    ({"target": "x", "targetBase64": b64(b"\0")}, "target contains a NUL byte"),
    ({"targetBase64": "x"}, None), ({"targetBase64": "!!!!"}, None), ({"targetBase64": 5}, None),
    ({"target": 5}, None), ({"target": ["x"]}, None), ({"target": {}}, None)])
def test_bad_targets(files, place, params, text):
    code, found = files.error("symlink", place / "l", **params)
    assert code == -32602 and text in (None, found)
    assert list(place.iterdir()) == []


# Paths.

@pytest.fixture
def tree(place):
    (place / "file").touch()
    (place / "dir").mkdir()
    (place / "dir" / "in").symlink_to("elsewhere")
    (place / "link").symlink_to("file")
    (place / "dirlink").symlink_to("dir")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "fifo")
    return place


# What reading gives, and making.
PATHS = {
    "link": (b"file", EXISTS), "dirlink": (b"dir", EXISTS), "dangling": (b"nowhere", EXISTS),
    "loop": (b"loop", EXISTS), "dirlink/in": (b"elsewhere", EXISTS), "file": (NOT_A_LINK, EXISTS),
    "dir": (NOT_A_LINK, EXISTS), "fifo": (NOT_A_LINK, EXISTS), "missing": (NO_FILE, {}),
    "dirlink/new": (NO_FILE, {}), "missing/x": (NO_FILE, NO_FILE),
    "dangling/x": (NO_FILE, NO_FILE), "file/x": (os_error(20), os_error(20)),
    "loop/x": (os_error(40), os_error(40)), "n" * 256: (os_error(36), os_error(36)),
}


@pytest.mark.parametrize("name", PATHS, ids=lambda n: n[:20])
def test_paths(files, tree, name):
    read, made = PATHS[name]
    if isinstance(read, bytes):
        assert files.read_link(tree / name) == read
    else:
        assert files.error("readLink", tree / name) == read
    assert files.outcome("symlink", tree / name, target="new") == made
    if made == {}:
        assert files.read_link(tree / name) == b"new"
    assert (tree / "file").read_bytes() == b"" and not (tree / "nowhere").exists()


def test_the_root(files):
    assert files.error("readLink", "/") == NOT_A_LINK
    assert files.error("symlink", "/", target="x") == EXISTS


def test_names_that_are_not_utf8(files, place):
    path = os.fsencode(place) + b"/n\xff"
    files.symlink(path, b"\xfe")
    assert os.readlink(path) == b"\xfe" and files.read_link(path) == b"\xfe"


def test_without_permission(plain_files, place):
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "l").symlink_to("x")
    assert plain_files.error("readLink", place / "closed" / "l") == DENIED
    assert plain_files.error("symlink", place / "new", target="x") == DENIED


def test_on_a_read_only_disk(files, mounts, tree):
    target = mounts.read_only(tree / "dir")
    assert files.read_link(target / "in") == b"elsewhere"
    assert files.error("symlink", target / "new", target="x") == READ_ONLY
    assert files.error("symlink", target / "in", target="x") == EXISTS


def test_two_at_once(shared, place):
    """One of many makes the link; the others hear that it exists."""
    clients = [shared.client() for _ in range(8)]
    for name in map(str, range(20)):
        sent = [c.send("fs/symlink", {"path": uri(place / name), "target": str(i)})
                for i, c in enumerate(clients)]
        answers = [c.answer(i) for c, i in zip(clients, sent)]
        made = [i for i, a in enumerate(answers) if "result" in a]
        assert len(made) == 1 and os.readlink(place / name) == str(made[0])
        assert all(a["error"]["message"] == EXISTS[1] for a in answers if "error" in a)
    for client in clients:
        client.close()


# Walks.

def links(files, result):
    found = {}
    for entry in result["entries"]:
        if entry["kind"] == "symlink":
            found[entry["path"]] = files.target(entry) if "target" in entry else None
    return found


def test_walk(files, tree):
    os.symlink(b"\xff", os.fsencode(tree) + b"/dir/b\xfe")
    result = files.walk(tree, links=True)
    assert result["errors"] == [] and not result["truncated"]
    base = os.fsencode(tree)
    assert links(files, result) == {
        uri(base + name): target for name, target in (
            (b"/link", b"file"), (b"/dirlink", b"dir"), (b"/dangling", b"nowhere"),
            (b"/loop", b"loop"), (b"/dir/in", b"elsewhere"), (b"/dir/b\xfe", b"\xff"))}
    others = {e["path"]: e["kind"] for e in result["entries"] if e["kind"] != "symlink"}
    assert others == {uri(tree / "file"): "file", uri(tree / "dir"): "directory"}
    for off in ({}, {"links": False}, {"links": None}):
        assert links(files, files.walk(tree, **off)) == {}
        assert files.walk(tree, **off)["errors"] == []  # a link of a bad name is no entry
    for bad in (0, 1, "true", [], {}):
        with pytest.raises(Exception, match="expected a boolean"):
            files.walk(tree, links=bad)
    with pytest.raises(Exception, match="cannot both list and follow links"):
        files.walk(tree, links=True, follow=True)


def test_walk_of_a_link(files, tree):
    assert files.walk(tree / "dirlink", links=True)["entries"] == []
    assert links(files, files.walk(tree / "dir", links=True)) \
        == {uri(tree / "dir" / "in"): b"elsewhere"}


def test_walk_counts_links(files, place):
    for name in "abcd":
        (place / name).symlink_to("nowhere")
    result = files.walk(place, links=True, entries=3)
    assert result["truncated"] and len(result["entries"]) == 3
    assert not files.walk(place, links=True, entries=4)["truncated"]


def test_a_tree_and_its_copy(files, place):
    """What a walk says is enough to make the tree again."""
    source, copy = place / "source", place / "copy"
    (source / "d" / "e").mkdir(parents=True)
    os.symlink(b"../\xff", source / "d" / "odd")
    (source / "d" / "e" / "up").symlink_to("../..")
    (source / os.fsdecode(b"n\xff")).write_bytes(b"data")
    files.mkdir(copy)
    for entry in files.walk(source, links=True)["entries"]:
        target = entry["path"].replace("/source/", "/copy/")
        if entry["kind"] == "directory":
            files.client.call("fs/createDirectory", {"path": target})
        elif entry["kind"] == "symlink":
            members = {k: v for k, v in entry.items() if k.startswith("target")}
            files.client.call("fs/symlink", {"path": target, **members})
        else:
            files.call("copy", None, sourcePath=entry["path"], destinationPath=target,
                       recursive=False)
    def listing(root):
        return sorted((p.relative_to(root), os.readlink(p) if p.is_symlink() else None)
                      for p in root.rglob("*"))
    assert listing(copy) == listing(source) and len(listing(copy)) == 5


def test_walk_with_names_that_change(files, place):
    """A link that becomes a file or a directory, or goes, is an entry or an error of its own."""
    (place / "a").symlink_to("target")
    (place / "other").write_bytes(b"")
    (place / "t").mkdir()
    (place / "t" / "leak").touch()
    (place / "lure").symlink_to("t")
    (place / "z").mkdir()
    def step(_):
        exchange(place / "a", place / "other")
        exchange(place / "lure", place / "z")
    with Meddler(step):
        for _ in range(200):
            result = files.walk(place, links=True)
            assert not any("lure/leak" in e["path"] or "z/leak" in e["path"]
                           for e in result["entries"])
            assert all(t in (b"target", b"t") for t in links(files, result).values())


# In a sandbox.

@pytest.fixture
def world(confined_place):
    place = confined_place
    place.put("ws/f", "F")
    place.put("ws/deny/s", "S")
    place.link("ws/deny/l", "SECRET")
    place.put("ws/.git/config", "C")
    place.put("out/f", "O")
    place.link("ws/link", "../out/f")
    place.link("ws/dlink", "../out")
    place.link("out/olink", "ELSEWHERE")
    return place


def test_confined(world):
    ws, out = world.ws, world.base / "out"
    calls = Calls(world, R, PR, "d ws/deny", f"d glob:{ws}/**/*.env")
    for i, target in enumerate(TARGETS):
        calls.symlink(ws / f"n{i}", target)
        assert os.readlink(os.fsencode(ws / f"n{i}")) == target
        assert calls.read_link(ws / f"n{i}") == target
    assert (ws / "n0").lstat().st_uid == world.uid
    world.link("ws/secret.env", "SECRET")
    for path, expected in ((ws / "f", EXISTS), (ws / "link", EXISTS), (ws / "no/x", NO_FILE),
                           (ws / "f/x", os_error(20)), (ws / ".git", READ_ONLY),
                           (ws / ".git/x", READ_ONLY), (ws / ".codex", READ_ONLY),
                           (ws / ".codex/x", READ_ONLY), (ws / "deny", DENIED),
                           (ws / "deny/x", DENIED), (ws / "new.env", DENIED), (out / "x", READ_ONLY),
                           (ws / "dlink/x", READ_ONLY), ("/dev/x", READ_ONLY),
                           ("/dev/shm/x", READ_ONLY), ("/proc/x", READ_ONLY)):
        assert calls.outcome("symlink", path, target="f") == expected, path
        assert path == ws / "f" or os.path.lexists(path) == (expected == EXISTS or
                                                             path in (ws / ".git", ws / "deny"))
    assert calls.read_link(out / "olink") == calls.read_link(ws / "dlink/olink") == b"ELSEWHERE"
    assert calls.read_link(ws / "link") == b"../out/f"
    assert calls.error("readLink", ws / "f") == NOT_A_LINK
    assert calls.error("readLink", ws / "deny/l") == DENIED
    assert calls.error("readLink", ws / "secret.env") == DENIED
    assert calls.error("readLink", ws / "no") == NO_FILE
    hidden = Calls(world, *MIN)
    assert hidden.error("readLink", out / "olink") == NO_FILE
    assert hidden.error("readLink", ws / "dlink/olink") == NO_FILE
    assert hidden.read_link(ws / "link") == b"../out/f"
    assert hidden.outcome("symlink", out / "x", target="f") in (NO_FILE, READ_ONLY)
    for entries in ((R,), ("r :minimal", "r ws")):
        assert Calls(world, *entries).error("symlink", ws / "x", target="f") == READ_ONLY
    assert sorted(os.listdir(out)) == ["f", "olink"]


def test_confined_walk(world):
    ws = world.ws
    world.link("ws/secret.env", "SECRET")
    calls = Calls(world, R, PR, "d ws/deny", f"d glob:{ws}/**/*.env")
    for root in (ws, world.base):
        found = links(calls, calls.walk(root, links=True))
        assert found[uri(ws / "link")] == b"../out/f" and found[uri(ws / "dlink")] == b"../out"
        assert found[uri(ws / "secret.env")] is None
        assert uri(ws / "deny/l") not in found
    world.link("around", "ws")
    found = links(calls, calls.walk(world.base / "around/.", links=True))
    assert b"SECRET" not in found.values()


def test_links_open_nothing(world):
    """Whatever a client links to, its calls and commands reach what the policy grants."""
    ws, out = world.ws, world.base / "out"
    world.put("ws/a.env", "SECRET")
    calls = Calls(world, *MIN, "d ws/deny", f"d glob:{ws}/**/*.env")
    for target in (out, "../out", "../out/f", "deny", "deny/s", "a.env", ".git", ".git/config",
                   ".codex", "/etc/passwd", "/proc/self/root/etc", "/", "..", "l"):
        calls.symlink(ws / "l", str(target))
        for path in (ws / "l", ws / "l/f", ws / "l/s", ws / "l/config", ws / "l/x"):
            read = calls.outcome("readFile", path)
            assert read not in [{"dataBase64": b64(t)} for t in ("O", "S", "SECRET")], (target, path)
            for method, params in (("writeFile", {"dataBase64": b64("x")}), ("setTimes", {
                    "modifiedAtMs": 0}), ("setPermissions", {"mode": 0o600}),
                    ("open", {"handleId": "h", "mode": "update"})):
                outcome = calls.outcome(method, path, **params)
                assert isinstance(outcome, tuple), (target, path, method, outcome)
        calls.remove(ws / "l", recursive=False)
    assert sorted(os.listdir(out)) == ["f", "olink"] and (out / "f").read_text() == "O"
    assert (out / "f").stat().st_mtime > 1 and (ws / ".git/config").read_text() == "C"
    assert (ws / "a.env").read_text() == "SECRET" and (ws / "deny/s").read_text() == "S"
    assert (ws / ".git/config").stat().st_mtime > 1 and not os.path.lexists(ws / ".codex")


def test_links_do_not_widen_the_next_policy(world):
    """A root that leads over a link of the client's own is refused, as over a command's."""
    ws, out = world.ws, world.base / "out"
    Calls(world, *WW).symlink(ws / "root", str(out))
    code, text = Calls(world, R, PR, "w ws/root").error("writeFile", ws / "root/x",
                                                        dataBase64=b64("x"))
    assert code == -32603 and "crosses writable symlink" in text
    code, text = Calls(world, R, PR, "d ws/root").error("readFile", ws / "f")
    assert code == -32603 and "crosses writable symlink" in text
    assert sorted(os.listdir(out)) == ["f", "olink"]


def test_confined_races(world):
    """Names that change between decision and act lead nowhere else."""
    ws, out = world.ws, world.base / "out"
    world.put("ws/real/f", "REAL")
    world.link("ws/other", "../out")
    calls = Calls(world, *WW)
    hidden = Calls(world, *MIN)
    with Meddler(lambda _: exchange(ws / "real", ws / "other")):
        for i in range(60):
            calls.outcome("symlink", ws / "real" / f"n{i}", target="x")
            calls.outcome("setTimes", ws / "real/f", modifiedAtMs=0)
            calls.outcome("open", ws / "real/f", handleId=f"u{i}", mode="update")
            read = hidden.outcome("readLink", ws / "real/olink")
            assert isinstance(read, tuple), read
    assert sorted(os.listdir(out)) == ["f", "olink"]
    assert (out / "f").stat().st_mtime > 1
