"""The helpers that make file calls in a sandbox: their life, and what others do to it."""

import os
import resource
import shutil
import signal

import pytest

from harness import procfs
from harness.confined import Calls, helpers
from harness.files import MIB, os_error
from harness.meddler import Meddler, exchange
from harness.mounts import FaultFs, Mounts
from harness.rpc import b64
from harness.sandbox import Place, place, servers, user
from harness.settings import SANITIZED
from harness.waiting import until

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"
WW, MIN = (R, PR), ("r :minimal", PR)
DENY = (R, PR, "d ws/deny")
NO_FILE, DENIED, READ_ONLY = os_error(2), os_error(13), os_error(30)
FAILED = "fs sandbox helper failed"


@pytest.fixture
def mine(servers, user, place):
    """A server of its own, and a connection to it."""
    server = servers.start(user)
    place.client = server.client()
    yield server
    place.client.close()
    server.stop()


def test_helpers_are_kept(mine, place):
    place.put("ws/f", "F")
    calls = Calls(place, *MIN)
    assert calls.read(place.ws / "f") == b"F"
    first = helpers(mine.pid)
    assert len(first) == 1
    for i in range(20):
        calls.write(place.ws / "f", str(i).encode())
    assert helpers(mine.pid) == first
    Calls(place, *WW).write(place.ws / "f", b"F")
    assert len(helpers(mine.pid)) == 2


def test_at_most_eight(mine, place):
    place.put("ws/f", "F")
    kept = None
    for i in range(12):
        calls = Calls(place, "r :minimal", "r ws", f"w ws/{i}")
        assert calls.read(place.ws / "f") == b"F"
        if i == 0:
            kept = calls
        kept.read(place.ws / "f")
        if i == 3:
            until(lambda: len(helpers(mine.pid)) == 4, "four helpers")
            oldest = helpers(mine.pid)
    until(lambda: len(helpers(mine.pid)) == 8, "eight helpers")
    assert len(set(oldest) & set(helpers(mine.pid))) <= 1


def test_killed(mine, place):
    place.put("ws/f", "F")
    calls = Calls(place, *MIN)
    for _ in range(3):
        assert calls.read(place.ws / "f") == b"F"
        [pid] = helpers(mine.pid)
        os.kill(pid, signal.SIGKILL)
        answer = calls.outcome("readFile", place.ws / "f")
        assert answer == {"dataBase64": b64("F")} or (
            answer[0] == -32603 and answer[1].startswith("fs sandbox helper failed")), answer
    assert calls.read(place.ws / "f") == b"F"
    until(lambda: len(helpers(mine.pid)) == 1, "one helper")


def test_replaced_root(mine, place):
    """A directory in the place of the old one is what is meant from then on."""
    place.put("ws/f", "OLD")
    for entries in (MIN, DENY):
        calls = Calls(place, *entries)
        assert calls.read(place.ws / "f") == b"OLD"
        os.rename(place.ws, place.base / "old")
        place.put("ws/f", "NEW")
        assert calls.read(place.ws / "f") == b"NEW"
        calls.write(place.ws / "f", b"WRITTEN")
        assert (place.ws / "f").read_text() == "WRITTEN"
        assert (place.base / "old/f").read_text() == "OLD"
        shutil.rmtree(place.ws)
        os.rename(place.base / "old", place.ws)
    os.rename(place.ws, place.base / "old")
    assert Calls(place, *MIN).error("readFile", place.ws / "f") == NO_FILE


def test_name_that_appears(mine, place):
    """What was absent and is there now is as it is for a fresh helper."""
    calls = Calls(place, *WW)
    calls.write(place.ws / "f", b"")
    place.put("ws/.git/config", "C")
    assert calls.error("writeFile", place.ws / ".git/config", dataBase64="") == READ_ONLY
    assert calls.error("writeFile", place.ws / ".git/new", dataBase64="") == READ_ONLY
    assert (place.ws / ".git/config").read_text() == "C"


def test_sessions_are_apart(mine, place):
    place.put("ws/f", "F")
    Calls(place, *MIN).read(place.ws / "f")
    other = mine.client()
    first, place.client = place.client, other
    Calls(place, *MIN).read(place.ws / "f")
    assert len(helpers(mine.pid)) == 2
    place.client = first
    other.close()


def test_end_of_the_server(servers, user, place):
    server = servers.start(user)
    place.client = server.client()
    place.put("ws/f", "F")
    Calls(place, *WW).write(place.ws / "f", b"")
    pids = helpers(server.pid)
    assert len(pids) == 1
    server.stop(signal.SIGKILL, -signal.SIGKILL)
    until(lambda: not any(procfs.alive(p) for p in pids), "end of the helpers")
    assert place.left() == []


def test_nothing_is_left(mine, place):
    calls = Calls(place, *WW)
    calls.write(place.ws / "f", b"x")
    assert place.left() == [], "while the helper lives"
    assert sorted(p.name for p in place.ws.iterdir()) == ["f"]


def test_many_at_once(mine, place):
    place.put("ws/f", "F")
    calls = Calls(place, *MIN)
    idents = [calls.send("readFile", place.ws / "f") for _ in range(200)]
    for ident in idents:
        assert place.client.answer(ident)["result"] == {"dataBase64": b64("F")}
    assert len(helpers(mine.pid)) == 1


# What is on disk changes under a helper.

def recreate(path, make):
    """Removes what is there and makes it again, if possible with the same inode number."""
    old = path.lstat().st_ino
    for _ in range(50):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        make()
        if path.lstat().st_ino == old:
            return


def test_recreated_denied_file(mine, place):
    """Another file by the same name, maybe with the same inode number."""
    place.put("ws/deny", "OLD")
    calls = Calls(place, *DENY)
    assert calls.error("readFile", place.ws / "deny") == DENIED
    recreate(place.ws / "deny", lambda: place.put("ws/deny", "NEW"))
    assert calls.error("readFile", place.ws / "deny") == DENIED
    assert calls.error("writeFile", place.ws / "deny", dataBase64="") == DENIED
    assert (place.ws / "deny").read_text() == "NEW"


def test_recreated_denied_directory(mine, place):
    place.put("ws/deny/s", "OLD")
    calls = Calls(place, *DENY)
    assert calls.error("readFile", place.ws / "deny/s") == DENIED
    recreate(place.ws / "deny", lambda: place.put("ws/deny/s", "NEW"))
    assert calls.error("readFile", place.ws / "deny/s") == DENIED
    assert calls.error("readDirectory", place.ws / "deny") == DENIED
    assert calls.error("open", place.ws / "deny/s", handleId="h") == DENIED


def test_recreated_root(mine, place):
    place.put("ws/f", "OLD")
    calls = Calls(place, *MIN)
    assert calls.read(place.ws / "f") == b"OLD"
    recreate(place.ws, lambda: place.put("ws/f", "NEW"))
    assert calls.read(place.ws / "f") == b"NEW"
    calls.write(place.ws / "f", b"WRITTEN")
    assert (place.ws / "f").read_text() == "WRITTEN"


def test_recreated_protected_name(mine, place):
    place.put("ws/.git/config", "OLD")
    calls = Calls(place, *WW)
    calls.write(place.ws / "f", b"")
    recreate(place.ws / ".git", lambda: place.put("ws/.git/config", "NEW"))
    assert calls.error("writeFile", place.ws / ".git/config", dataBase64="") == READ_ONLY
    assert calls.error("setPermissions", place.ws / ".git/config", mode=0o777) == READ_ONLY
    assert (place.ws / ".git/config").read_text() == "NEW"


def test_git_directory_that_appears(mine, place):
    """What a .git file names is protected from when it is there."""
    place.mkdir("trees")
    place.put("ws/.git", f"gitdir: {place.base}/trees/x\n")
    calls = Calls(place, R, PR, "w trees")
    calls.write(place.ws / "f", b"")
    place.put("trees/x/config", "C")
    assert calls.error("writeFile", place.base / "trees/x/config", dataBase64="") == READ_ONLY
    recreate(place.base / "trees/x", lambda: place.put("trees/x/config", "NEW"))
    assert calls.error("writeFile", place.base / "trees/x/config", dataBase64="") == READ_ONLY
    calls.write(place.base / "trees/y", b"")


def test_mounts_that_come_and_go(servers, tmp_path):
    """A file system mounted later is seen, and one that was unmounted is not."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    server = servers.start("root")
    mounts = Mounts(tmp_path)
    place = Place(server.client(), 0, tmp_path)
    calls = Calls(place, *MIN)
    calls.write(place.ws / "f", b"F")
    mounts.directory = place.ws
    inner = mounts.tmpfs("size=1m", "inner")
    (inner / "g").write_text("G")
    assert calls.read(inner / "g") == b"G"
    calls.write(inner / "h", b"H")
    assert (inner / "h").read_text() == "H"
    mounts.finish()
    assert calls.error("readFile", inner / "g") == NO_FILE
    calls.write(inner / "below", b"")
    assert [p.name for p in inner.iterdir()] == ["below"]
    place.client.close()
    server.stop()


# Patterns and links.

def test_target_of_a_denied_link(mine, place):
    """What a link with a denied name leads to is denied by its own name, too."""
    place.put("ws/plain", "SECRET")
    place.put("ws/dir/f", "SECRET")
    place.put("ws/open", "OPEN")
    place.link("ws/a.env", "plain")
    place.link("ws/b.env", "dir")
    calls = Calls(place, R, PR, f"d glob:{place.ws}/**/*.env")
    for name in ("plain", "dir/f", "a.env", "b.env/f"):
        assert calls.error("readFile", place.ws / name) == DENIED, name
        assert calls.error("writeFile", place.ws / name, dataBase64="") == DENIED, name
        assert calls.error("remove", place.ws / name) == DENIED, name
        assert calls.copy_error(place.ws / name, place.ws / "copy") == DENIED, name
    assert calls.error("readDirectory", place.ws / "dir") == DENIED
    assert calls.copy_error(place.ws / "dir", place.ws / "copies", recursive=True) == DENIED
    assert calls.read(place.ws / "open") == b"OPEN"
    place.link("ws/c.env", "open")
    until(lambda: calls.outcome("readFile", place.ws / "open") == DENIED, "the new link counts")
    os.unlink(place.ws / "c.env")
    until(lambda: calls.outcome("readFile", place.ws / "open") == {"dataBase64": b64("OPEN")},
          "the link is gone")


def test_swapped_links(mine, place):
    """A link that changes while calls are made never leads out of what is granted."""
    place.put("ws/in/f", "IN")
    place.put("out/f", "OUT")
    place.put("ws/real/f", "REAL")
    place.link("ws/d", "in")
    place.link("ws/other", "../out")
    calls = Calls(place, *WW)
    hidden = Calls(place, *MIN)
    swaps = [(place.ws / "d", place.ws / "other"), (place.ws / "real", place.ws / "other")]
    with Meddler(lambda i: exchange(*swaps[i % 2])):
        for i in range(60):
            for name in ("d", "real"):
                read = hidden.outcome("readFile", place.ws / name / "f")
                assert read in ({"dataBase64": b64("IN")}, {"dataBase64": b64("REAL")}, NO_FILE,
                                os_error(20)), read
                calls.outcome("writeFile", place.ws / name / f"n{i}", dataBase64=b64("x"))
                calls.outcome("remove", place.ws / name / f"n{i}", recursive=True)
                calls.outcome("setPermissions", place.ws / name / "f", mode=0o600)
                calls.outcome("setTimes", place.ws / name / "f", modifiedAtMs=1000)
    assert sorted(p.name for p in (place.base / "out").iterdir()) == ["f"]
    assert (place.base / "out/f").stat().st_mode & 0o777 == 0o644
    assert (place.base / "out/f").stat().st_mtime > 1


# A file system that hangs, and helpers that die.

@pytest.fixture
def stuck(servers, tmp_path):
    """A server of root, a place, and in its workspace a file system that hangs."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    server = servers.start("root")
    place = Place(server.client(), 0, tmp_path)
    faultfs = FaultFs(place.ws)
    place.faultfs = faultfs
    place.server = server
    yield place
    faultfs.finish()
    place.client.close()
    if server.popen.returncode is None:
        server.stop()


def test_killed_in_a_call(stuck):
    """The caller gets an error at once, the next call another helper."""
    calls = Calls(stuck, *MIN)
    stuck.put("ws/f", "F")
    ident = calls.send("readFile", stuck.faultfs.file("hang-open", b"x"))
    stuck.faultfs.hangs("open", "hang-open")
    [pid] = helpers(stuck.server.pid)
    os.kill(pid, signal.SIGKILL)
    stuck.faultfs.release()
    answer = stuck.client.answer(ident)
    assert answer["error"]["code"] == -32603 and answer["error"]["message"].startswith(FAILED)
    assert calls.read(stuck.ws / "f") == b"F"
    until(lambda: len(helpers(stuck.server.pid)) == 1, "one helper")
    assert pid not in helpers(stuck.server.pid)


def test_hang_is_its_own_connection_s(stuck):
    calls = Calls(stuck, *MIN)
    stuck.put("ws/f", "F")
    ident = calls.send("readFile", stuck.faultfs.file("hang-open", b"x"))
    stuck.faultfs.hangs("open", "hang-open")
    other = stuck.server.client()
    theirs = Calls(stuck, *MIN, client=other)
    for i in range(10):
        theirs.write(stuck.ws / f"n{i}", b"x")
        assert theirs.read(stuck.ws / "f") == b"F"
    other.close()
    stuck.faultfs.release()
    assert stuck.client.answer(ident)["result"] == {"dataBase64": b64("x")}


@pytest.mark.parametrize("op", ["open", "create", "unlink", "mkdir"])
def test_stop_with_a_hung_helper(stuck, op):
    """SIGTERM ends the server although a helper cannot be killed."""
    calls = Calls(stuck, *MIN)
    name = f"hang-{op}"
    if op in ("open", "unlink"):
        stuck.faultfs.file(name, b"x")
    method = {"open": "readFile", "create": "writeFile", "unlink": "remove",
              "mkdir": "createDirectory"}[op]
    data = {"dataBase64": ""} if op == "create" else {}
    calls.send(method, stuck.faultfs.path / name, **data)
    stuck.faultfs.hangs(op, name)
    pids = helpers(stuck.server.pid)
    stuck.server.popen.send_signal(signal.SIGTERM)
    stuck.server.popen.wait(20)
    stuck.faultfs.release()
    until(lambda: not any(procfs.alive(p) for p in pids), "end of the helper")


def test_end_of_the_session(servers, user, place):
    """Helpers go with their session, in a call or not."""
    server = servers.start(user, "--session-ttl", "0")
    client = server.client()
    calls = Calls(place, *MIN, client=client)
    place.put("ws/f", "F")
    for i in range(3):
        more = Calls(place, *MIN, f"r ws/{i}", client=client)
        assert more.read(place.ws / "f") == b"F"
    for i in range(50):
        calls.send("readFile", place.ws / "f")
    assert len(helpers(server.pid)) >= 3
    client.transport.reset()
    until(lambda: not helpers(server.pid), "end of the helpers")
    server.stop()


def test_stop_with_idle_helpers(servers, user, place):
    """They are no commands: nobody waits for them, nor for a grace period."""
    server = servers.start(user, "--shutdown-grace-ms", "60000")
    client = server.client()
    place.put("ws/f", "F")
    assert Calls(place, *MIN, client=client).read(place.ws / "f") == b"F"
    pids = helpers(server.pid)
    assert len(pids) == 1
    server.stop(signal.SIGTERM)
    assert not any(procfs.alive(p) for p in pids)


def test_calls_during_the_grace_period(servers, user, place):
    """File calls go on, and do not make it longer."""
    server = servers.start(user, "--shutdown-grace-ms", "60000")
    client = server.client()
    place.put("ws/f", "F")
    process = client.start("trap '' TERM; echo ready; read x; exit 5", pipeStdin=True)
    client.wait_output(process, b"ready")
    server.popen.send_signal(signal.SIGTERM)
    assert Calls(place, *MIN, client=client).read(place.ws / "f") == b"F"
    client.write(process, "\n")
    client.wait_closed(process)
    assert process.exit_code == 5
    server.popen.wait(20)


@pytest.mark.parametrize("user", ["root"], indirect=True)
def test_nothing_is_lost_without_descriptors(mine, place):
    """What a helper has opened cannot come to a server whose table is full."""
    place.put("ws/f", "F")
    calls = Calls(place, *MIN)
    assert calls.read(place.ws / "f") == b"F"
    until(lambda: str(place.ws / "f") not in mine.fd_targets(), "the file is closed")
    limits = resource.prlimit(mine.pid, resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir(f"/proc/{mine.pid}/fd")))
    full = min(set(range(len(used) + 1)) - used)
    resource.prlimit(mine.pid, resource.RLIMIT_NOFILE, (full, limits[1]))
    for follow in (True, False):
        assert calls.error("writeFile", place.ws / "f", dataBase64=b64("G"),
                           followSymlinks=follow) == os_error(24)
    assert calls.error("open", place.ws / "f", handleId="h", mode="replace") == os_error(24)
    assert (place.ws / "f").read_text() == "F"
    resource.prlimit(mine.pid, resource.RLIMIT_NOFILE, limits)
    calls.write(place.ws / "f", b"G")
    assert (place.ws / "f").read_text() == "G"


@pytest.mark.parametrize("user", ["root"], indirect=True)
def test_too_many_links(mine, place):
    """Where links with denied names lead is more than is remembered: all is denied then."""
    place.put("ws/f", "F")
    far = place.mkdir("far" + 16 * f"/{'d' * 250}")
    far = place.mkdir(far.relative_to(place.base) / ("d" * (4090 - len(f"{far}//secret"))))
    (far / "secret").write_text("S")
    for i in range(4200):
        os.symlink(far / "secret", place.ws / f"{i}.env")
    calls = Calls(place, R, PR, f"d glob:{place.ws}/**/*.env")
    for path in (place.ws / "f", far / "secret"):
        assert calls.error("readFile", path) == DENIED
    assert len(helpers(mine.pid)) == 1


def test_busy_ones_stay(stuck, servers):
    """A helper that makes a call does not end for others; when all do, a call is refused."""
    server = servers.start("root", "--concurrent-requests", "20")
    client = server.client()
    stuck.put("ws/f", "F")
    stuck.faultfs.file("hang-open", b"x")

    def policy(i):
        return Calls(stuck, *MIN, f"r ws/{i}", client=client)
    hung = [policy(0).send("readFile", stuck.faultfs.path / "hang-open")]
    stuck.faultfs.hangs("open", "hang-open")
    for i in range(1, 12):
        assert policy(i).read(stuck.ws / "f") == b"F"
    for i in range(1, 8):
        hung.append(policy(i).send("readFile", stuck.faultfs.path / "hang-open"))
        stuck.faultfs.hangs("open", "hang-open")
    until(lambda: len(helpers(server.pid)) == 8, "eight helpers")
    assert policy(8).error("readFile", stuck.ws / "f") == os_error(11)
    stuck.faultfs.release()
    for ident in hung:
        assert client.answer(ident)["result"] == {"dataBase64": b64("x")}
    assert policy(8).read(stuck.ws / "f") == b"F"
    client.close()
    server.stop()


def test_growth(mine, place):
    """Large files pass by the helper: neither of the two holds them."""
    data = os.urandom(MIB)
    with open(place.ws / "big", "wb") as f:
        for _ in range(64):
            f.write(data)
    os.chown(place.ws / "big", place.uid, place.uid)
    place.put("ws/small", "S")
    calls = Calls(place, *MIN)
    assert calls.read(place.ws / "big", maxBytes=128 * MIB, seconds=60)[:MIB] == data
    # It may have taken so long to decode that the helper ended meanwhile.
    assert calls.read(place.ws / "small") == b"S"
    [pid] = helpers(mine.pid)
    before = procfs.rss(mine.pid), procfs.rss(pid)
    for _ in range(3):
        assert len(calls.read(place.ws / "big", seconds=60)) == 64 * MIB
    if not SANITIZED:
        assert procfs.rss(mine.pid) - before[0] < 8 * MIB
        assert procfs.rss(pid) - before[1] < MIB


def test_handles_outlive_helpers(mine, place):
    """The server has the file, and nothing else of it: what the policy says later is no matter."""
    place.put("ws/f", "content")
    calls = Calls(place, *MIN)
    reading, writing = calls.open(place.ws / "f"), calls.open(place.ws / "new", mode="replace")
    [pid] = helpers(mine.pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not procfs.alive(pid), "end of the helper")
    os.rename(place.ws, place.base / "old")
    assert calls.read_block(reading, 0, 100) == (b"content", True)
    calls.write_block(writing, 0, b"written")
    calls.close(reading)
    calls.close(writing)
    assert (place.base / "old/new").read_text() == "written"


class ComesAndGoes(Meddler):
    """Somebody who makes and removes an empty directory."""

    def __init__(self, path):
        super().__init__(lambda _: (path.mkdir(), path.rmdir()))


def test_kept_while_a_protected_name_comes_and_goes(mine, place):
    calls = Calls(place, *WW)
    calls.write(place.ws / "f", b"")
    first = helpers(mine.pid)
    with ComesAndGoes(place.ws / ".git"):
        for i in range(200):
            calls.write(place.ws / "f", str(i).encode())
    assert helpers(mine.pid) == first


@pytest.mark.parametrize("name", [".git", ".agents"])
def test_protected_name_comes_and_goes(mine, place, name):
    """Another sandbox removes its empty directory while a helper starts: the call is none of its
    business, and the name stays protected."""
    protected = place.ws / name
    with ComesAndGoes(protected):
        for i in range(40):
            calls = Calls(place, R, PR, f"d ws/no-{i}")
            calls.write(place.ws / "f", str(i).encode())
            assert calls.outcome("writeFile", protected / "f", dataBase64=b64("F")) in (
                NO_FILE, READ_ONLY)
    assert not protected.exists()
