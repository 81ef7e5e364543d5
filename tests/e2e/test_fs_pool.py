"""Calls that take their time: a file system that hangs keeps nobody waiting but its own client."""

import itertools
import os
import signal

import pytest

from harness import procfs
from harness.files import MIB, Files, os_error, uri
from harness.mounts import FaultFs
from harness.resting import waits_until
from harness.rpc import b64
from harness.settings import SANITIZED
from harness.waiting import until

THREADS = 256
SITE_JOBS = 48  # that one file system may keep
CALLS = 64
WALK = {"maxDepth": 1, "maxDirectories": 9, "maxEntries": 99, "followDirectorySymlinks": False}


def open_in(server, faultfs):
    return [t for t in server.fd_targets() if t.startswith(str(faultfs.path))]


# How to get stuck in a callback of the file system: sends a request, and says what must be the
# answer once it is let go.

def stuck_in(op):
    def mark(way):
        way.op = op
        return way
    return mark


@stuck_in("open")
def read_open(files, faultfs):
    path = faultfs.file("hang-open", b"content")
    return files.send("readFile", path), {"dataBase64": b64("content")}


@stuck_in("read")
def read_read(files, faultfs):
    path = faultfs.file("hang-read", b"content")
    return files.send("readFile", path, followSymlinks=False), {"dataBase64": b64("content")}


@stuck_in("open")
def open_handle(files, faultfs):
    path = faultfs.file("hang-open", b"content")
    return files.send("open", path, handleId="h"), {"handleId": "h"}


@stuck_in("read")
def read_block(files, faultfs):
    files.open(faultfs.file("hang-read", b"content"), "h")
    return (files.send("readBlock", handleId="h", offset=1, len=3),
            {"chunk": b64("ont"), "eof": False})


@stuck_in("write")
def write_block(files, faultfs):
    files.open(faultfs.path / "hang-write", "h", mode="replace")
    return files.send("writeBlock", handleId="h", offset=0, chunk=b64("x")), {}


@stuck_in("flush")
def close_handle(files, faultfs):
    files.open(faultfs.file("hang-flush", b"content"), "h")
    return files.send("close", handleId="h"), {}


@stuck_in("write")
def write_file(files, faultfs):
    return files.send("writeFile", faultfs.path / "hang-write", dataBase64=b64("x")), {}


@stuck_in("create")
def create_file(files, faultfs):
    return (files.send("writeFile", faultfs.path / "hang-create", dataBase64=b64("x"),
                       followSymlinks=False), {})


@stuck_in("stat")
def metadata(files, faultfs):
    path = faultfs.file("hang-stat", b"content")
    return files.send("getMetadata", path), None


@stuck_in("stat")
def canonicalize(files, faultfs):
    path = faultfs.file("hang-stat")
    return files.send("canonicalize", path), {"path": uri(path)}


@stuck_in("mkdir")
def make_directory(files, faultfs):
    return files.send("createDirectory", faultfs.path / "hang-mkdir"), {}


@stuck_in("list")
def list_directory(files, faultfs):
    (faultfs.real / "hang-list").mkdir(exist_ok=True)
    return files.send("readDirectory", faultfs.path / "hang-list"), {"entries": []}


@stuck_in("list")
def walk(files, faultfs):
    (faultfs.real / "hang-list").mkdir(exist_ok=True)
    return (files.send("walk", faultfs.path / "hang-list", options=WALK),
            {"entries": [], "errors": [], "truncated": False})


@stuck_in("unlink")
def remove(files, faultfs):
    path = faultfs.file("hang-unlink")
    return files.send("remove", path), {}


@stuck_in("read")
def copy(files, faultfs):
    path = faultfs.file("hang-read", b"content")
    return (files.send("copy", None, sourcePath=uri(path), recursive=False,
                       destinationPath=uri(faultfs.path / "copy")), {})


@stuck_in("rename")
def rename(files, faultfs):
    path = faultfs.file("hang-rename")
    return (files.send("rename", None, sourcePath=uri(path),
                       destinationPath=uri(faultfs.path / "new")), {})


@stuck_in("chmod")
def set_permissions(files, faultfs):
    path = faultfs.file("hang-chmod")
    return files.send("setPermissions", path, mode=0o600), {}


@stuck_in("utimens")
def set_times(files, faultfs):
    path = faultfs.file("hang-utimens")
    return files.send("setTimes", path, modifiedAtMs=1000), {}


@stuck_in("symlink")
def make_link(files, faultfs):
    return files.send("symlink", faultfs.path / "hang-symlink", target="x"), {}


WAYS = [read_open, read_read, open_handle, read_block, write_block, close_handle, write_file,
        create_file, metadata, canonicalize, make_directory, list_directory, walk, remove, copy,
        rename, set_permissions, set_times, make_link]


def get_stuck(way, files, faultfs):
    """Sends the request and waits until it hangs; its id and the answer to come."""
    ident, expected = way(files, faultfs)
    faultfs.hangs(way.op, f"hang-{way.op}")
    return ident, expected


every_way = pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)


def exercise(files, place):
    """A bit of everything, by the loop and by threads."""
    files.write(place / "f", b"x" * 5000)
    assert files.read(place / "f") == b"x" * 5000
    assert files.metadata(place / "f")["size"] == 5000
    files.copy(place / "f", place / "g")
    handle = files.open(place / "g")
    assert files.read_block(handle, 4990, 100) == (b"x" * 10, True)
    files.close(handle)
    assert set(files.list(place)) >= {"f", "g"}
    assert files.error("readFile", place / "missing") == os_error(2)
    files.remove(place / "g")
    assert files.client.run("echo alive").output() == b"alive\n"


@every_way
def test_only_the_own_connection_waits(server, faultfs, place, way):
    files, other = Files(server.client()), Files(server.client())
    process = files.client.start("trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done")
    files.client.wait_output(process, "ready\n")
    (place / "local").write_bytes(b"local")
    files.open(place / "local", "local")
    ident, expected = get_stuck(way, files, faultfs)
    exercise(other, place)
    # What overtakes is answered; output goes on.
    files.client.sync()
    files.client.interrupt(process)
    files.client.wait_closed(process)
    assert process.exit_code == 5
    files.close("local")
    files.close("never opened")
    # What does not overtake waits, in order. A close is no ordinary request.
    later = [files.send("readFile", place / "f"), files.send("getMetadata", place / "f")]
    files.client.sync()
    assert ident not in files.client.answers
    if way is not close_handle:
        assert not set(later) & set(files.client.answers)
    faultfs.release()
    result = files.client.result(ident)
    assert expected is None or result == expected
    assert files.client.result(later[0]) == {"dataBase64": b64(b"x" * 5000)}
    assert files.client.result(later[1])["size"] == 5000


def test_the_server_ends(fleet, place):
    """No call is waited for, whichever it is and whatever signal says so."""
    signals = itertools.cycle([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    servers, systems = [], []
    try:
        for way in WAYS:
            directory = place / way.__name__
            directory.mkdir()
            systems.append(FaultFs(directory))
            servers.append(fleet.start())
            get_stuck(way, Files(servers[-1].client()), systems[-1])
        for server in servers:
            server.send_signal(next(signals))
        for server in servers:
            assert server.wait() == 0
    finally:
        for system in systems:
            system.finish()


@every_way
def test_a_disconnect_leaves_nothing(server, faultfs, place, way):
    """The session can be resumed at once; when the hang ends nothing of it is left."""
    files = Files(server.client())
    get_stuck(way, files, faultfs)
    files.client.transport.reset()

    def resume():
        client = server.connect()
        answer = client.answer(client.send(
            "initialize", {"clientName": "x", "resumeSessionId": files.client.session}))
        if "result" not in answer:
            client.close()
            return None
        client.notify("initialized", {})
        return client
    resumed = Files(until(resume, "the session is free"))
    exercise(resumed, place)
    faultfs.release()
    op = way.op
    faultfs.wait(f"went {op} /hang-{op}")
    assert resumed.read(faultfs.file("fine", b"fine")) == b"fine"
    assert resumed.error("readBlock", handleId="h", offset=0, len=1)[0] == -32004
    until(lambda: not open_in(server, faultfs), "no handle left")


def test_several_at_once(server, faultfs, place):
    """Each on its own connection; then the server ends. None holds a lock that another wants."""
    ways = [write_block, read_open, open_handle, read_read, read_block, close_handle,
            list_directory]
    waiting = [(files, way(files, faultfs)[0]) for files, way in
               ((Files(server.client()), way) for way in ways)]
    for way in ways:
        faultfs.hangs(way.op, f"hang-{way.op}")
    exercise(Files(server.client()), place)
    for files, ident in waiting:
        files.client.sync()
        assert ident not in files.client.answers
    server.stop()


def test_over_stdio(fleet, faultfs):
    """SIGTERM ends it as well, and the end of input waits for the answer."""
    client = fleet.stdio()
    files = Files(client)
    ident, expected = get_stuck(read_open, files, faultfs)
    client.sync()
    client.transport.close_stdin()
    faultfs.release()
    assert client.result(ident) == expected
    assert client.transport.wait() == 0
    faultfs.hold()
    client = fleet.stdio()
    get_stuck(read_open, Files(client), faultfs)
    client.transport.popen.send_signal(signal.SIGTERM)
    assert client.transport.wait() == 0


# Handles.

def test_close_waits_for_a_call_on_its_handle(server, faultfs, place):
    """Another handle is closed at once, the id is not free before its file is closed."""
    files = Files(server.client())
    files.open(faultfs.file("hang-read", b"content"), "stuck")
    files.open(faultfs.file("fine", b"fine"), "fine")
    files.open(place / "local", "local", mode="replace")
    read = files.send("readBlock", handleId="stuck", offset=0, len=7)
    faultfs.hangs("read", "hang-read")
    close = files.send("close", handleId="stuck")
    files.close("local")
    files.close("fine")
    until(lambda: len(open_in(server, faultfs)) == 1, "one handle is left")
    files.client.sync()
    assert close not in files.client.answers
    faultfs.release()
    assert files.client.result(read) == {"chunk": b64("content"), "eof": False}
    assert files.client.result(close) == {}
    assert open_in(server, faultfs) == []


def test_close_stays_behind_what_has_not_begun(server, faultfs):
    """A close never overtakes a request that names its handle."""
    files = Files(server.client())
    ident, expected = get_stuck(read_open, files, faultfs)
    path = faultfs.file("f", b"content")
    opened = files.send("open", path, handleId="h")
    read = files.send("readBlock", handleId="h", offset=0, len=7)
    close = files.send("close", handleId="h")
    again = files.send("readBlock", handleId="h", offset=0, len=7)
    files.close("other")
    assert not {opened, read, close, again} & set(files.client.answers)
    faultfs.release()
    assert files.client.result(ident) == expected
    assert files.client.result(opened) == {"handleId": "h"}
    assert files.client.result(read) == {"chunk": b64("content"), "eof": False}
    assert files.client.result(close) == {}
    assert files.client.answer(again)["error"]["code"] == -32004


def test_close_of_a_file_that_is_being_opened(server, faultfs):
    files = Files(server.client())
    ident, _ = get_stuck(open_handle, files, faultfs)
    close = files.send("close", handleId="h")
    files.client.sync()
    assert close not in files.client.answers
    faultfs.release()
    assert files.client.result(ident) == {"handleId": "h"}
    assert files.client.result(close) == {}
    assert open_in(server, faultfs) == []


def test_disconnect_with_handles_that_cannot_be_closed(server, faultfs, place):
    """Closing hangs: nobody waits for it, and it is done in the end."""
    files = Files(server.client())
    for i in range(5):
        files.open(faultfs.file(f"hang-flush.{i}", b"x"))
    files.client.transport.reset()
    for i in range(5):
        faultfs.hangs("flush", f"hang-flush.{i}")
    exercise(Files(server.client()), place)
    faultfs.release()
    exercise(Files(server.client()), place)
    for i in range(5):
        faultfs.wait(f"went flush /hang-flush.{i}")
    until(lambda: not open_in(server, faultfs), "no handle left")


def test_a_vanished_writer(server, faultfs):
    """What was acknowledged is there; what hangs is done or not, and nothing stays open."""
    files = Files(server.client())
    files.open(faultfs.path / "hang-write@200000", "h", mode="replace")
    for i in range(4):
        files.write_block("h", i * 50000, b"%d" % i * 50000)
    files.send("writeBlock", handleId="h", offset=200000, chunk=b64(b"4" * 50000))
    faultfs.hangs("write", "hang-write@200000")
    for i in range(5, 9):
        files.send("writeBlock", handleId="h", offset=i * 50000, chunk=b64(b"%d" % i * 50000))
    files.client.transport.reset()
    server.client().sync()
    faultfs.release()
    until(lambda: not open_in(server, faultfs), "no handle left")
    content = (faultfs.real / "hang-write@200000").read_bytes()
    whole = b"".join(b"%d" % i * 50000 for i in range(9))
    assert content[:200000] == whole[:200000]
    assert content == whole[:len(content)] and len(content) % 50000 == 0


# A file system that hangs altogether.

def fill_site(server, faultfs):
    """As many calls hang as may, each for another connection; then more, up to 64, wait."""
    path = faultfs.file("hang-open", b"content")
    stuck = []
    for i in range(CALLS):
        files = Files(server.client())
        stuck.append((files, files.send("readFile", path)))
        if i < SITE_JOBS:
            faultfs.hangs("open", "hang-open")
    return stuck


def assert_answered(stuck):
    """Those that hung, now that they do not; the others may have waited for too long."""
    for files, ident in stuck[:SITE_JOBS]:
        assert files.client.result(ident) == {"dataBase64": b64("content")}
    for files, ident in stuck[SITE_JOBS:]:
        answer = files.client.answer(ident)
        assert "error" in answer or answer["result"] == {"dataBase64": b64("content")}


def test_a_dead_mount(server, faultfs, place):
    """It keeps its own callers waiting: no other file system, and nothing that is cached."""
    other, holder = Files(server.client()), Files(server.client())
    exercise(other, place)
    holder.open(faultfs.file("hang-flush", b"x"), "h")
    faultfs.file("fine", b"fine")
    (place / "link").symlink_to(faultfs.path / "fine")
    (place / "around").symlink_to(faultfs.path)
    stuck = fill_site(server, faultfs)
    holder.client.transport.reset()
    exercise(other, place)
    for files, ident in stuck[:SITE_JOBS]:
        assert ident not in files.client.answers
    # By whatever name, after 5 s.
    clients = [Files(server.client()) for _ in range(3)]
    paths = [faultfs.path / "fine", place / "link", place / "around" / "fine"]
    idents = [f.send("readFile", path) for f, path in zip(clients, paths)]
    for files, ident in zip(clients, idents):
        answer = files.client.answer(ident)
        assert (answer["error"]["code"], answer["error"]["message"]) == os_error(11)
    assert procfs.opening(server.pid) == SITE_JOBS
    assert "hang open /hang-open" not in faultfs.said
    exercise(other, place)
    faultfs.release()
    assert_answered(stuck)
    until(lambda: not open_in(server, faultfs), "the handle is closed")
    for files, path in zip(clients, paths):
        assert files.read(path) == b"fine"


def test_a_dead_mount_and_a_stopped_server(server, faultfs):
    """A stop interrupts the calls that hang; they are made again."""
    files = Files(server.client())
    ident = files.send("readFile", faultfs.file("hang-open", b"content"))
    faultfs.hangs("open", "hang-open")
    server.send_signal(signal.SIGSTOP)
    until(lambda: procfs.state(server.pid) == "T", "the stop")
    server.send_signal(signal.SIGCONT)
    faultfs.hangs("open", "hang-open")
    faultfs.release()
    assert files.client.result(ident) == {"dataBase64": b64("content")}


def test_two_dead_mounts_and_their_end(server, place):
    """One comes back, one is gone for good: nobody else notices."""
    systems = []
    try:
        for name in ("first", "second"):
            (place / name).mkdir()
            systems.append(FaultFs(place / name))
        stuck = [fill_site(server, system) for system in systems]
        other = Files(server.client())
        exercise(other, place)
        systems[0].release()
        assert_answered(stuck[0])
        exercise(other, place)
        systems[1].kill()
        for files, ident in stuck[1]:
            assert "error" in files.client.answer(ident)
        exercise(other, place)
    finally:
        for system in systems:
            system.finish()


def test_copies_from_a_dead_mount(server, faultfs, place):
    """They count where they hang, not where they write to."""
    copies = []
    for i in range(CALLS):
        path = faultfs.file(f"hang-open.{i}", b"content")
        files = Files(server.client())
        copies.append((files, files.send("copy", None, sourcePath=uri(path), recursive=False,
                                         destinationPath=uri(place / f"copy.{i}"))))
        if i < SITE_JOBS:
            faultfs.hangs("open", f"hang-open.{i}")
    exercise(Files(server.client()), place)
    for files, ident in copies[SITE_JOBS:]:
        assert "error" in files.client.answer(ident)
    assert procfs.opening(server.pid) == SITE_JOBS
    faultfs.release()
    for files, ident in copies[:SITE_JOBS]:  # else they go on while the place is taken away
        files.client.answer(ident)


def test_trees_that_lead_into_a_dead_mount(server, faultfs, place):
    """Walks that begin on a healthy disk are not held against it."""
    walks = []
    for i in range(CALLS):
        (faultfs.real / f"hang-list.{i}").mkdir()
        (place / f"tree.{i}").mkdir()
        (place / f"tree.{i}" / "link").symlink_to(faultfs.path / f"hang-list.{i}")
        files = Files(server.client())
        options = WALK | {"maxDepth": 9, "followDirectorySymlinks": True}
        walks.append((files, files.send("walk", place / f"tree.{i}", options=options)))
        faultfs.hangs("list", f"hang-list.{i}")
    exercise(Files(server.client()), place)
    faultfs.release()
    for files, ident in walks:
        assert "result" in files.client.answer(ident)


def test_a_dead_mount_and_the_end(server, faultfs):
    fill_site(server, faultfs)
    server.stop()


@pytest.mark.skipif(SANITIZED, reason="a sanitizer may have threads of its own")
def test_idle_threads_that_lack_the_cpu(fleet, faultfs):
    """At the end the server does not take them for calls that hang."""
    server = fleet.start()
    assert Files(server.client()).read(faultfs.file("f", b"content")) == b"content"
    idle, = {int(t) for t in os.listdir(f"/proc/{server.pid}/task")} - {server.pid}
    until(lambda: waits_until(f"{server.pid}/task/{idle}"), "the thread is idle")
    with procfs.halted(idle):
        server.send_signal(signal.SIGTERM)
        first = until(lambda: waits_until(server.pid), "the server waits for the thread")
        until(lambda: (waits_until(server.pid) or first) > first, "it waits for longer")
    assert server.wait() == 0


def test_threads_go_when_idle(fleet, faultfs):
    """They are made on demand, one for each call that runs."""
    server = fleet.start()
    before = server.threads()
    assert before <= 2
    clients = [Files(server.client()) for _ in range(10)]
    path = faultfs.file("hang-open", b"content")
    idents = [f.send("readFile", path) for f in clients]
    for _ in idents:
        faultfs.hangs("open", "hang-open")
    assert before + 10 <= server.threads() <= before + 11
    faultfs.release()
    for files, ident in zip(clients, idents):
        files.client.result(ident)


# Several requests at a time.

def test_one_connection_has_its_share(fleet, faultfs, place):
    """By default one ordinary call runs, whatever is sent."""
    server = fleet.start()
    files = Files(server.client())
    path = faultfs.file("hang-open", b"content")
    idents = [files.send("readFile", path) for _ in range(30)]
    faultfs.hangs("open", "hang-open")
    files.client.sync()
    assert "hang open /hang-open" not in faultfs.said
    exercise(Files(server.client()), place)
    faultfs.release()
    for ident in idents:
        assert files.client.result(ident) == {"dataBase64": b64("content")}


@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_concurrent_requests(fleet, faultfs, place, lanes):
    """N calls at once, answered as they end; the next waits; what overtakes does not."""
    server = fleet.start("--concurrent-requests", str(lanes))
    files = Files(server.client())
    (place / "f").write_bytes(b"f")
    path = faultfs.file("hang-open", b"content")
    idents = []
    for i in range(lanes - 1):
        idents.append(files.send("readFile", path))
        faultfs.hangs("open", "hang-open")
        assert files.read(place / "f") == b"f"
        assert files.metadata(faultfs.file(f"n{i}"))["size"] == 0
    idents.append(files.send("readFile", path))
    faultfs.hangs("open", "hang-open")
    waiting = files.send("readFile", place / "f")
    files.client.sync()
    files.close("never opened")
    assert not {waiting, *idents} & set(files.client.answers)
    exercise(Files(server.client()), place)
    faultfs.release()
    for ident in idents:
        assert files.client.result(ident) == {"dataBase64": b64("content")}
    assert "dataBase64" in files.client.result(waiting)


def test_concurrent_writes(fleet, place):
    """Many blocks at a time, in whatever order, and all of them are written."""
    server = fleet.start("--concurrent-requests", "8")
    files = Files(server.client())
    handle = files.open(place / "f", mode="replace")
    blocks = [os.urandom(70000) for _ in range(60)]
    idents = [files.send("writeBlock", handleId=handle, offset=i * 70000, chunk=b64(block))
              for i, block in enumerate(blocks)]
    close = files.send("close", handleId=handle)
    for ident in (*idents, close):
        assert files.client.result(ident) == {}
    assert (place / "f").read_bytes() == b"".join(blocks)


def test_processes_while_calls_hang(server, faultfs):
    """Starts, output, ends and the parent-death signal are not the threads' business."""
    get_stuck(read_open, Files(server.client()), faultfs)
    client = server.client()
    for _ in range(10):
        assert client.run("echo out; echo err >&2; exit 3").exit_code == 3
    token = procfs.mark()
    process = client.start(f"sleep {token}", tty=True)
    procfs.wait_marked(token)
    client.terminate(process)
    client.wait_closed(process)
    procfs.wait_marked(token, 0)


def test_processes_while_handles_cannot_be_closed(server, faultfs):
    """A child that inherits a handle would wait for the file system when it closes it."""
    files = Files(server.client())
    files.open(faultfs.file("hang-flush", b"x"), "h")
    client = server.client()
    for tty in (False, True):
        assert client.run("echo out", tty=tty).output().strip() == b"out"


def test_many_clients(server, place):
    """Forty connections, all methods, no descriptor or thread too many."""
    clients = [Files(server.client()) for _ in range(40)]
    (place / "data").write_bytes(os.urandom(MIB))
    data = (place / "data").read_bytes()
    for i, files in enumerate(clients):
        (place / str(i)).mkdir()
    sent = []
    for i, files in enumerate(clients):
        own = place / str(i)
        sent.append([
            files.send("writeFile", own / "f", dataBase64=b64(b"%d" % i)),
            files.send("readFile", place / "data"),
            files.send("copy", None, sourcePath=uri(place / "data"), recursive=False,
                       destinationPath=uri(own / "copy")),
            files.send("readFile", own / "f", followSymlinks=False),
            files.send("remove", own)])
    for i, (files, idents) in enumerate(zip(clients, sent)):
        results = [files.client.result(ident) for ident in idents]
        assert results == [{}, {"dataBase64": b64(data)}, {}, {"dataBase64": b64(b"%d" % i)}, {}]
    assert os.listdir(place) == ["data"]
    assert server.threads() <= THREADS + 3
    until(lambda: not [t for t in server.fd_targets() if t.startswith(str(place))],
          "no descriptor left")
