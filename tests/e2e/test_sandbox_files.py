"""File calls in a sandbox: what a profile allows."""

import os

import pytest

from harness import acl
from harness.confined import Calls
from harness.files import MIB, Files, os_error
from harness.rpc import b64
from harness.sandbox import place, servers, uri, user

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"
RO, WW, MIN = (R,), (R, PR), ("r :minimal", PR)
DENY = (R, PR, "d ws/deny")
NO_FILE, DENIED, READ_ONLY, BUSY = os_error(2), os_error(13), os_error(30), os_error(16)


@pytest.fixture
def world(place):
    """A workspace with one of everything, and a directory outside."""
    place.put("ws/f", "F")
    place.put("ws/sub/g", "G")
    place.put("ws/deny/s", "S")
    place.put("ws/.git/config", "C")
    place.put("out/f", "O")
    place.link("ws/link", "../out/f")
    place.link("ws/dlink", "../out")
    return place


def outcomes(world, *entries):
    """What every operation gives: code and text of the error, or a result."""
    calls = Calls(world, *entries)
    at = world.base
    found = {}
    for name in ("ws/f", "out/f", "ws/deny/s", "ws/nope", "ws/link", "ws/sub"):
        found[f"read {name}"] = calls.outcome("readFile", at / name)
    found["read nofollow"] = calls.outcome("readFile", at / "ws/link", followSymlinks=False)
    for name in ("ws/n", "out/n", "ws/.git/c", "ws/.codex/c", "ws/.aws", "ws/link", "ws/deny/n"):
        found[f"write {name}"] = calls.outcome("writeFile", at / name, dataBase64=b64("x"))
    for name in ("ws/d/e", "out/d", "ws/.codex", "ws/.codex/x"):
        found[f"mkdir {name}"] = calls.outcome("createDirectory", at / name, recursive=True)
    for name in ("ws/sub", "ws/deny"):
        found[f"list {name}"] = calls.outcome("readDirectory", at / name)
    for name in ("out/f", "ws/.git"):
        found[f"remove {name}"] = calls.outcome("remove", at / name)
    for source, target in (("ws/f", "ws/g"), ("ws/f", "out/g"), ("ws/deny/s", "ws/h")):
        found[f"copy {source} {target}"] = calls.outcome(
            "copy", None, sourcePath=uri(at / source), destinationPath=uri(at / target),
            recursive=False)
    return found


def base_outcomes(world):
    none = {"entries": [{"fileName": "g", "isDirectory": False, "isFile": True}]}
    return {
        "read ws/f": {"dataBase64": b64("F")}, "read out/f": {"dataBase64": b64("O")},
        "read ws/deny/s": {"dataBase64": b64("S")}, "read ws/nope": NO_FILE,
        "read ws/link": {"dataBase64": b64("O")},
        "read ws/sub": (-32600, f"path `{world.ws}/sub` is not a file"),
        "read nofollow": os_error(40),
        "write ws/n": {}, "write out/n": READ_ONLY, "write ws/.git/c": READ_ONLY,
        "write ws/.codex/c": READ_ONLY, "write ws/.aws": READ_ONLY, "write ws/link": READ_ONLY,
        "write ws/deny/n": {}, "mkdir ws/d/e": {}, "mkdir out/d": READ_ONLY,
        "mkdir ws/.codex": READ_ONLY, "mkdir ws/.codex/x": READ_ONLY, "list ws/sub": none,
        "list ws/deny": {"entries": [{"fileName": "n", "isDirectory": False, "isFile": True},
                                     {"fileName": "s", "isDirectory": False, "isFile": True}]},
        "remove out/f": READ_ONLY, "remove ws/.git": READ_ONLY, "copy ws/f ws/g": {},
        "copy ws/f out/g": READ_ONLY, "copy ws/deny/s ws/h": {}}


def sort_lists(found):
    for value in found.values():
        if isinstance(value, dict) and "entries" in value:
            value["entries"].sort(key=lambda e: e["fileName"])
    return found


def test_workspace_write(world):
    assert sort_lists(outcomes(world, *WW)) == base_outcomes(world)
    assert (world.ws / "n").read_text() == "x" and (world.ws / "g").read_text() == "F"
    assert world.left() == [".git"] and (world.ws / ".git/config").read_text() == "C"
    assert sorted(p.name for p in (world.base / "out").iterdir()) == ["f"]


def test_read_only(world):
    found = sort_lists(outcomes(world, *RO))
    expected = base_outcomes(world)
    changed = {k: READ_ONLY for k in ("write ws/n", "write ws/deny/n", "mkdir ws/d/e",
                                      "copy ws/f ws/g", "copy ws/deny/s ws/h")}
    expected.update(changed)
    expected["write ws/.codex/c"] = NO_FILE
    expected["list ws/deny"]["entries"].pop(0)
    assert found == expected
    assert world.left() == [".git"]


def test_denied_path(world):
    found = sort_lists(outcomes(world, *DENY))
    expected = base_outcomes(world)
    expected.update({k: DENIED for k in ("read ws/deny/s", "write ws/deny/n", "list ws/deny",
                                         "copy ws/deny/s ws/h")})
    assert found == expected


def test_minimal(world):
    found = sort_lists(outcomes(world, *MIN))
    expected = base_outcomes(world)
    expected.update({k: NO_FILE for k in (
        "read out/f", "read ws/link", "write out/n", "remove out/f", "copy ws/f out/g")})
    expected["write ws/link"] = NO_FILE
    expected["mkdir out/d"] = READ_ONLY
    assert found == expected
    assert (world.base / "out/f").read_text() == "O"


def test_nothing_vanishes(world):
    """What is not granted cannot be changed with success."""
    calls = Calls(world, *MIN)
    for path in ("/new", "/var/new", "/dev/new", "/dev/shm/new", "/tmp/new", "/etc/new",
                 world.base / "new"):
        assert calls.outcome("writeFile", path, dataBase64="") in (NO_FILE, READ_ONLY), path
        assert calls.outcome("createDirectory", path, recursive=True) == READ_ONLY, path
        assert not os.path.lexists(path)
    assert calls.error("remove", world.base / "out/f") == NO_FILE
    assert calls.call("remove", world.ws / "nope") == {}
    for calls in (Calls(world, *RO), Calls(world, *WW)):
        for path in ("/dev/new", "/dev/shm/new", "/proc/self/comm", "/proc/sys/kernel/hostname"):
            assert calls.outcome("writeFile", path, dataBase64=b64("x")) == READ_ONLY, path
        calls.write("/dev/null", b"gone")


def test_single_file(world):
    """A write entry for a file, and for nothing beside it."""
    calls = Calls(world, "r :minimal", "w ws/f")
    calls.write(world.ws / "f", b"new")
    assert calls.read(world.ws / "f") == b"new" and (world.ws / "f").read_text() == "new"
    assert calls.error("writeFile", world.ws / "g", dataBase64="") == READ_ONLY
    assert calls.error("readFile", world.ws / "sub/g") == NO_FILE


def test_patterns(world):
    """They hold for what is made later, too."""
    world.put("ws/a.env", "SECRET")
    calls = Calls(world, R, PR, f"d glob:{world.ws}/**/*.env")
    assert calls.error("readFile", world.ws / "a.env") == DENIED
    assert calls.read(world.ws / "f") == b"F"
    world.put("ws/sub/b.env", "LATER")
    world.link("ws/plain", "sub/b.env")
    for name in ("ws/sub/b.env", "ws/plain"):
        assert calls.error("readFile", world.base / name) == DENIED
        assert calls.error("writeFile", world.base / name, dataBase64="") == DENIED
        assert calls.error("open", world.base / name, handleId="h") == DENIED
    assert calls.copy_error(world.ws / "sub/b.env", world.ws / "c") == DENIED
    assert calls.copy_error(world.ws / "sub", world.ws / "tree", recursive=True) == DENIED
    assert calls.rename_error(world.ws / "sub/b.env", world.ws / "c") == DENIED
    assert calls.rename_error(world.ws / "sub", world.ws / "moved") == DENIED
    assert calls.error("remove", world.ws / "sub") == DENIED
    assert calls.error("remove", world.ws / "a.env") == DENIED
    assert calls.metadata(world.ws / "a.env")["size"] == 0
    assert (world.ws / "sub/b.env").read_text() == "LATER"
    assert not (world.ws / "c").exists() and not (world.ws / "tree/b.env").exists()


def test_protected_names(world):
    """Absent ones cannot come into being by any way, present ones do not change."""
    calls = Calls(world, *WW)
    ws = world.ws
    world.link("ws/up", ".")
    world.link("ws/dangling", ".agents")
    world.put("ws/tree/.codex/x")
    for name in (".agents", ".codex", ".aws"):
        for path in (ws / name, ws / "up" / name, ws / name / "x"):
            assert calls.error("createDirectory", path) == READ_ONLY, path
            assert calls.error("writeFile", path, dataBase64="") == READ_ONLY, path
            assert calls.error("writeFile", path, dataBase64="", atomic=True) == READ_ONLY, path
            assert calls.error("open", path, handleId="h", mode="replace") == READ_ONLY, path
            assert calls.error("open", path, handleId="h", mode="update") == READ_ONLY, path
            assert calls.copy_error(ws / "f", path) == READ_ONLY, path
            assert calls.rename_error(ws / "f", path) == READ_ONLY, path
            assert calls.error("symlink", path, target="f") == READ_ONLY, path
            assert calls.copy_error(ws / "sub", path, recursive=True) == READ_ONLY, path
    assert calls.error("writeFile", ws / "dangling", dataBase64="") == READ_ONLY
    assert calls.copy_error(ws / "tree", ws, recursive=True) == READ_ONLY
    assert calls.copy_error(ws / "tree/.codex", ws / ".codex", recursive=True) == READ_ONLY
    for error in (calls.error("remove", ws / ".git"), calls.error("remove", ws),
                  calls.rename_error(ws / ".git", ws / "git"),
                  calls.error("setPermissions", ws / ".git/config", mode=0o600),
                  calls.error("setPermissions", ws / ".git", mode=0o700),
                  calls.error("setTimes", ws / ".git/config", modifiedAtMs=0),
                  calls.error("setTimes", ws / ".git", modifiedAtMs=0, followSymlinks=False)):
        assert error in (READ_ONLY, BUSY)
    assert world.left() == [".git"]
    assert (ws / ".git/config").read_text() == "C" and (ws / "f").read_text() == "F"
    calls.mkdir(ws / "sub/.git")


def test_set_times(world):
    """What may be written may get another time."""
    ws, out = world.ws, world.base / "out"
    before = (out / "f").stat().st_mtime_ns
    world.put("ws/a.env", "SECRET")
    calls = Calls(world, R, PR, "d ws/deny", f"d glob:{ws}/**/*.env")
    for follow in (True, False):
        calls.set_times(ws / "f", 1234567, followSymlinks=follow)
        assert (ws / "f").stat().st_mtime_ns == 1234567000000
        calls.set_times(ws / "sub", -1, followSymlinks=follow)
        assert (ws / "sub").stat().st_mtime_ns == -1000000
        for path, expected in ((out / "f", READ_ONLY), (out, READ_ONLY), (ws / "deny/s", DENIED),
                               (ws / "deny", DENIED), (ws / "a.env", DENIED), (ws / "no", NO_FILE),
                               (ws / ".git/config", READ_ONLY), (ws / ".codex", READ_ONLY)):
            assert calls.outcome("setTimes", path, modifiedAtMs=0, followSymlinks=follow) \
                == expected, path
    assert calls.error("setTimes", ws / "link", modifiedAtMs=0) == READ_ONLY
    assert calls.error("setTimes", ws / "dlink/f", modifiedAtMs=0) == READ_ONLY
    calls.set_times(ws / "link", 5000, followSymlinks=False)
    assert (ws / "link").lstat().st_mtime_ns == 5000000000
    assert (out / "f").stat().st_mtime_ns == before
    for calls, expected in ((Calls(world, *RO), READ_ONLY), (Calls(world, *MIN), NO_FILE)):
        assert calls.error("setTimes", out / "f", modifiedAtMs=0) == expected
    assert (out / "f").stat().st_mtime_ns == before


def test_protected_name_in_a_copied_tree(world):
    calls = Calls(world, *WW)
    world.put("out/.codex/x")
    assert calls.copy_error(world.base / "out", world.ws, recursive=True) == READ_ONLY
    assert world.left() == [".git"]


def test_granted_name(world):
    calls = Calls(world, R, PR, "w ws/.git", "w ws/.codex")
    calls.write(world.ws / ".git/config", b"new")
    calls.mkdir(world.ws / ".codex/x", recursive=True)
    assert calls.error("createDirectory", world.ws / ".aws") == READ_ONLY


def test_missing_carve_out(world):
    calls = Calls(world, R, PR, "d ws/a/b", "r ws/ro/x")
    assert calls.error("createDirectory", world.ws / "a") == READ_ONLY
    assert calls.error("createDirectory", world.ws / "a/b/c", recursive=True) in (DENIED, READ_ONLY)
    assert calls.error("symlink", world.ws / "a", target="sub") == READ_ONLY
    assert calls.error("writeFile", world.ws / "ro/x", dataBase64="") == READ_ONLY
    world.put("ws/a/b/s", "S")  # by somebody else
    assert calls.error("readFile", world.ws / "a/b/s") == DENIED


def test_atomic_write_keeps_the_access_list(world):
    """Of ids that the sandbox knows; others cannot be kept, and the file stays as it was."""
    calls = Calls(world, *WW)
    acl.guard(world.ws / "f")
    answer = calls.outcome("writeFile", world.ws / "f", dataBase64=b64("new"), atomic=True)
    assert acl.kept(world.ws / "f") == acl.KEPT
    assert (world.ws / "f").read_text() == ("new" if answer == {} else "F")


def test_every_method(world):
    calls = Calls(world, *MIN)
    ws = world.ws
    calls.write(ws / "w", b"data")
    calls.write(ws / "w", b"atomic", atomic=True)
    assert (ws / "w").read_text() == "atomic"
    calls.write(ws / "w", b"nofollow", followSymlinks=False)
    assert calls.read(ws / "w", followSymlinks=False) == b"nofollow"
    calls.chmod(ws / "w", 0o600)
    assert calls.metadata(ws / "w")["mode"] == 0o600
    calls.rename(ws / "w", ws / "v")
    calls.copy(ws / "sub", ws / "copy", recursive=True)
    assert (ws / "copy/g").read_text() == "G"
    assert calls.canonicalize(ws / "copy/g") == uri(ws / "copy/g")
    assert "link" not in calls.list(ws) and calls.list(ws)["v"] == (False, True)
    found = {e["path"] for e in calls.walk(ws)["entries"]}
    assert uri(ws / "copy/g") in found
    calls.remove(ws / "copy")
    assert not (ws / "copy").exists()
    assert set(calls.list(world.base)) == {"ws"}


def test_new_files_have_the_mode_of_others(world):
    calls, direct = Calls(world, *WW), Files(world.client)
    calls.write(world.ws / "a", b"")
    direct.write(world.ws / "b", b"")
    assert (world.ws / "a").stat().st_mode == (world.ws / "b").stat().st_mode
    assert (world.ws / "a").stat().st_uid == world.uid


@pytest.mark.parametrize("mode, left", [(0o6755, 0o755), (0o4711, 0o711), (0o2644, 0o2644)])
def test_a_write_takes_the_set_user_id(world, mode, left):
    """As the kernel takes it when a command in the sandbox writes."""
    calls, path = Calls(world, *WW), world.ws / "ids"
    for name in ("write", "replace", "update"):
        path.unlink(missing_ok=True)
        direct = Files(world.client)
        direct.write(path, b"old")
        os.chmod(path, mode)
        if name == "write":
            calls.write(path, b"new")
        else:
            handle = calls.open(path, mode=name)
            calls.write_block(handle, 0, b"new")
            calls.close(handle)
        assert (path.stat().st_mode & 0o7777, path.read_bytes()) == (left, b"new"), name


def test_handles(world):
    calls = Calls(world, *MIN)
    handle = calls.open(world.ws / "new", mode="replace")
    calls.write_block(handle, 0, b"abc" * 1000)
    calls.close(handle)
    handle = calls.open(world.ws / "new")
    assert calls.read_block(handle, 2997, 10) == (b"abc", True)
    calls.close(handle)
    handle = calls.open(world.ws / "new", mode="update")
    calls.write_block(handle, 3000, b"end")
    calls.close(handle)
    assert (world.ws / "new").read_bytes() == b"abc" * 1000 + b"end"
    calls.close(calls.open(world.ws / "made", mode="update"))
    assert (world.ws / "made").read_bytes() == b""
    assert calls.error("open", world.base / "out/f", handleId="x", mode="update") == NO_FILE
    assert calls.error("open", world.ws / "link", handleId="x", mode="update") == NO_FILE
    assert (world.base / "out/f").read_text() == "O"
    assert calls.error("open", world.base / "out/f", handleId="x") == NO_FILE
    assert calls.error("open", world.ws / "sub", handleId="x")[0] == -32600


@pytest.mark.parametrize("form", ["{}/", "{}//", "{}/.", "{}%2F", "{}/x/..", "localhost{}"])
def test_forms_of_policy_paths(world, form):
    """Slashes at the end, encoded ones and dots mean the same path."""
    calls = Calls(world, "r :minimal", f"w file://{form.format(world.ws)}",
                  f"d file://{form.format(world.ws / 'deny')}")
    calls.write(world.ws / "f", b"new")
    assert (world.ws / "f").read_text() == "new"
    assert calls.error("readFile", world.ws / "deny/s") == DENIED
    assert calls.error("readFile", world.base / "out/f") == NO_FILE


def test_odd_bytes_in_policies(world):
    """Names that are not UTF-8, and those that look like patterns or escapes."""
    for name in (b"n\xff", b"a*b", b"[x]{y}", b"new\nline", b"per%41cent", b"back\\slash"):
        root = os.fsencode(world.base) + b"/" + name
        os.mkdir(root)
        os.mkdir(root + b"/deny")
        for path in (root, root + b"/deny"):
            os.chown(path, world.uid, world.uid)
        calls = Calls(world, "r :minimal", f"w {uri(root)}", f"d {uri(root + b'/deny')}")
        calls.write(root + b"/f", b"x")
        assert calls.read(root + b"/f") == b"x"
        with open(root + b"/f", "rb") as f:
            assert f.read() == b"x"
        assert calls.error("readDirectory", root + b"/deny") == DENIED
        assert calls.error("writeFile", root + b"/.git", dataBase64="") == READ_ONLY
        assert calls.error("readFile", root)[0] == -32600
        assert calls.error("readFile", world.ws / "f") == NO_FILE


def test_watches(world):
    """A watch would tell of what a policy hides."""
    assert Calls(world, *MIN).error("watch", world.ws, watchId="w") == (
        -32600, "fs/watch is not available in a sandbox")
    assert Calls(world, *RO).call("watch", world.ws, watchId="w") == {"path": uri(world.ws)}
    world.client.call("fs/unwatch", {"watchId": "w"})


def test_large_files(world):
    calls = Calls(world, *MIN)
    data = os.urandom(1 << 20) * 9
    calls.write(world.ws / "big", data)
    assert (world.ws / "big").stat().st_size == len(data)
    assert calls.read(world.ws / "big", seconds=60) == data
    calls.write(world.ws / "big", data[:5 * MIB], atomic=True)
    assert calls.read(world.ws / "big", maxBytes=5 * MIB) == data[:5 * MIB]
    assert calls.error("readFile", world.ws / "big", maxBytes=1)[0] == -32600


def test_large_result(world):
    """More than a packet holds."""
    for i in range(4000):
        (world.ws / f"{'n' * 60}{i}").touch()
    assert len(Calls(world, *MIN).list(world.ws)) >= 4000


def test_capability(place):
    info = place.client.call("environment/info")
    assert info["capabilities"]["sandboxedFileStreaming"] is True
