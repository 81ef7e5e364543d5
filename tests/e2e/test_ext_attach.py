"""process/attach and process/detach: watching a process of another session."""

import time

import pytest

from harness import procfs
from harness.fleet import Fleet
from harness.meddler import Meddler
from harness.rpc import unb64
from harness.settings import SANITIZED
from harness.starting import Undecided
from harness.waiting import Deadline, readable, until

MIB = 1 << 20
TOO_MANY = -32600, "too many viewers (limit 16 per process, 64 per connection)"
DETACHED = "process/detached"


@pytest.fixture(scope="module")
def shared(nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    # On a busy machine a test may look after the default of 30 s.
    yield made.start("--allow-attach", "--concurrent-requests", "4", "--closed-retention", "3600")
    made.finish()


@pytest.fixture
def owner(shared):
    made = shared.client()
    yield made
    made.close()


@pytest.fixture
def viewer(shared):
    made = shared.client()
    yield made
    made.close()


def talker(owner, **options):
    """A process that repeats its input."""
    return owner.start("while read line; do echo $line; done; exit 3", pipeStdin=True, **options)


def test_not_allowed(server):
    owner, viewer = server.client(), server.client()
    process = owner.start("sleep 1000")
    params = {"sessionId": owner.session, "processId": process.name}
    assert viewer.error("process/attach", params) == (
        -32600, "attach is not allowed on this server")
    # Nothing about sessions is given away either.
    assert viewer.error("process/attach", {**params, "sessionId": "x"}) == (
        -32600, "attach is not allowed on this server")
    assert owner.error("process/attach", params) == (
        -32600, "attach is not allowed on this server")
    assert viewer.call("process/detach", {"attachId": 1}) == {}


def test_live(owner, viewer):
    process = talker(owner)
    view = viewer.attach(owner.session, process)
    for word in ("one", "two"):
        owner.write(process, f"{word}\n")
        viewer.wait(lambda w=word: w.encode() in view.output(), word)
    owner.ask("closeStdin", process)
    viewer.wait(lambda: view.closed, "the end")
    owner.wait_closed(process)
    assert view.events[:-2] == process.events[:-2]
    mine, theirs = dict(process.exited), dict(view.exited)
    del mine["processId"], mine["seq"]
    assert mine == theirs and theirs["exitCode"] == 3
    assert not view.gaps and not viewer.processes


def test_first_events_follow_the_answer(owner, viewer):
    process = owner.run("echo x; exit 4")
    ident = viewer.send("process/attach", {"sessionId": owner.session, "processId": process.name})
    seen = []
    while len(seen) < 4:
        message = viewer.pump()
        seen.append(message.get("method") or message["id"])
    assert seen == [ident, "process/output", "process/exited", "process/closed"]


@pytest.mark.parametrize("after", [None, 0, 1, 2, 3, 4])
def test_replay(owner, viewer, after):
    """Everything after afterSeq comes, whenever it happened."""
    process = talker(owner)
    for word in ("a", "b"):
        owner.write(process, word + "\n")
        owner.wait_output(process, word)
    view = viewer.attach(owner.session, process, afterSeq=after)
    owner.write(process, "c\n")
    owner.wait_output(process, "c")
    owner.ask("closeStdin", process)
    viewer.wait(lambda: view.closed, "the end")
    assert [seq for seq, _, _ in view.events] == list(range((after or 0) + 1, 6))
    assert view.output() == b"".join(d for s, _, d in process.events[:3] if s > (after or 0))


@pytest.mark.parametrize("after", [3, 4, 2**63, 2**64 - 1])
def test_after_the_end(owner, viewer, after):
    process = owner.run("echo x")
    view = viewer.attach(owner.session, process, afterSeq=after)
    viewer.barrier()
    assert not view.events and not view.gaps
    assert viewer.call("process/detach", {"attachId": view.id}) == {}


def test_from_the_future(owner, viewer):
    """Numbers that nobody has yet are waited for."""
    process = talker(owner)
    view = viewer.attach(owner.session, process, afterSeq=2)
    for word in ("a", "b", "c"):
        owner.write(process, word + "\n")
        owner.wait_output(process, word)
    viewer.wait(lambda: view.seen == 3, "the third event")
    assert view.output() == b"c\n" and not view.gaps
    owner.terminate(process)


def test_terminal(owner, viewer):
    process = owner.start("stty -echo; echo ready; read go", tty=True)
    view = viewer.attach(owner.session, process)
    viewer.wait(lambda: b"ready" in view.output("pty"), "output")
    owner.terminate(process)
    viewer.wait(lambda: view.closed, "the end")


def test_own_session(owner):
    process = talker(owner)
    view = owner.attach(owner.session, process)
    owner.write(process, "x\n", closeStdin=True)
    owner.wait_closed(process)
    owner.wait(lambda: view.closed, "the end")
    assert view.output() == process.output() == b"x\n"


def test_twice(owner, viewer):
    process = talker(owner)
    views = [viewer.attach(owner.session, process) for _ in range(2)]
    assert views[0].id != views[1].id
    owner.write(process, "x\n", closeStdin=True)
    for view in views:
        viewer.wait(lambda v=view: v.closed, "the end")
        assert view.output() == b"x\n"


def test_read_only(owner, viewer):
    """A viewer gets no right over the process."""
    process = talker(owner)
    viewer.attach(owner.session, process)
    assert viewer.write(process, "x\n") == {"status": "unknownProcess"}
    assert viewer.terminate(process) == {"running": False}
    assert viewer.refusal("snapshot", process) == (
        -32600, f"unknown process id {process.name}")
    assert viewer.call("process/list") == {"processes": []}
    owner.ask("closeStdin", process)
    assert owner.wait_closed(process).exit_code == 3


def test_detach(owner, viewer):
    process = talker(owner)
    view = viewer.attach(owner.session, process)
    owner.write(process, "a\n")
    viewer.wait(lambda: view.output() == b"a\n", "output")
    assert viewer.call("process/detach", {"attachId": view.id}) == {}
    owner.write(process, "b\n", closeStdin=True)
    owner.wait_closed(process)
    viewer.barrier()
    assert view.output() == b"a\n" and not view.closed and not view.detached
    assert viewer.call("process/detach", {"attachId": view.id}) == {}
    assert viewer.call("process/detach", {"attachId": 2**64 - 1}) == {}


def test_detach_of_somebody_else(shared, owner, viewer):
    process = talker(owner)
    view = viewer.attach(owner.session, process)
    assert shared.client().call("process/detach", {"attachId": view.id}) == {}
    owner.write(process, "a\n", closeStdin=True)
    viewer.wait(lambda: view.closed, "the end")


def test_viewer_disconnects(shared, owner):
    """Its views are gone; a resumed session starts without any."""
    process = talker(owner)
    viewer = shared.client()
    viewer.attach(owner.session, process)
    viewer.end()
    again = shared.client(resume=viewer.session)
    owner.write(process, "a\n")
    owner.wait_output(process, "a")
    again.barrier()
    assert not again.other and not again.views
    view = again.attach(owner.session, process)
    owner.ask("closeStdin", process)
    again.wait(lambda: view.closed, "the end")
    assert view.output() == b"a\n"


def test_viewer_is_reset(shared, owner):
    process = talker(owner)
    for _ in range(20):
        viewer = shared.client()
        viewer.attach(owner.session, process)
        viewer.transport.reset()
    owner.write(process, "a\n", closeStdin=True)
    assert owner.wait_closed(process).output() == b"a\n"


def test_owner_disconnects(shared, viewer):
    """The process runs on, and is seen running on."""
    owner = shared.client()
    process = owner.start("echo a; read go; echo $go; exit 5", pipeStdin=True)
    view = viewer.attach(owner.session, process)
    viewer.wait(lambda: view.output() == b"a\n", "output")
    owner.end()
    late = shared.client().attach(owner.session, process)
    assert late.id != view.id
    again = shared.client(resume=owner.session)
    again.write(process, "b\n")
    viewer.wait(lambda: view.closed, "the end")
    assert view.output() == b"a\nb\n" and view.exited["exitCode"] == 5 and not view.gaps


def test_session_ends(fleet):
    server = fleet.start("--allow-attach", "--session-ttl", "0")
    owner, viewer = server.client(), server.client()
    process = owner.start("echo a; sleep 1000")
    view = viewer.attach(owner.session, process)
    viewer.wait(lambda: view.output() == b"a\n", "output")
    owner.end()
    viewer.wait(lambda: view.detached, DETACHED)
    assert not view.closed
    assert viewer.error("process/attach", {"sessionId": owner.session,
                                           "processId": process.name}) == (
        -32600, f"unknown session id {owner.session}")


def test_start_that_fails(owner, viewer, tmp_path):
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    undecided = Undecided(tmp_path, tmp_path / "text")
    params = owner.start_params([undecided.path, "-c", "true"])
    start = owner.send("process/start", params)
    owner.call("process/list")
    view = viewer.attach(owner.session, params["processId"])
    undecided.decide()
    assert owner.answer(start)["error"] == {"code": -32603,
                                            "message": "Exec format error (os error 8)"}
    viewer.wait(lambda: view.detached, DETACHED)


def test_entry_that_is_removed(fleet):
    """A viewer that has not seen the end hears that there is no more."""
    server = fleet.start("--allow-attach", "--closed-retention", "0.2")
    owner = server.client()
    viewer = server.client(rcvbuf=4096)
    process = owner.start("read go; head -c 20000000 /dev/zero", pipeStdin=True,
                          sink=lambda *_: None)
    view = viewer.attach(owner.session, process)
    owner.write(process, "go\n")
    owner.wait_closed(process)
    until(lambda: owner.call("process/list") == {"processes": []}, "removal")
    viewer.wait(lambda: view.detached, DETACHED)
    assert not view.closed and len(view.output()) < 20_000_000


def test_viewer_that_stalls(shared, owner):
    """It never holds up the process, and learns what it missed."""
    viewer = shared.client(rcvbuf=4096)
    process = owner.start("read go; seq 100000000000000 100000001999999; echo err >&2",
                          pipeStdin=True, sink=lambda *_: None)
    view = viewer.attach(owner.session, process)
    before = shared.rss()
    owner.write(process, "go\n")
    # Nobody reads the viewer's socket, and yet the process comes to its end.
    owner.wait_closed(process)
    assert SANITIZED or shared.rss() - before < 8 * MIB
    viewer.wait(lambda: view.closed, "the end")
    assert len(view.gaps) >= 1
    # What did come is right: whole chunks of the stream, in order.
    assert view.output("stderr") == b"err\n"
    whole = b"".join(b"%d\n" % (10**14 + i) for i in range(2_000_000))
    position = 0
    for _, stream, data in view.events:
        if stream == "stdout":
            found = whole.find(data, position)
            assert found >= 0
            position = found + len(data)
    assert position == len(whole)
    assert 0 < len(view.output("stdout")) < len(whole)
    # What is retained is what a viewer can still get.
    kept = owner.read(process)["chunks"]
    late = shared.client()
    other = late.attach(owner.session, process)
    late.wait(lambda: other.closed, "the end")
    assert other.gaps == [(1, kept[0]["seq"] - 1)]
    assert other.output() == b"".join(unb64(c["chunk"]) for c in kept)


def test_loud_view_beside_quiet_ones(shared, owner):
    """A viewer that is too slow for one process still learns of the others."""
    viewer, other = shared.client(rcvbuf=65536), shared.client()
    flood = owner.start("exec cat /dev/zero", sink=lambda *_: None)
    quiet = [talker(other) for _ in range(8)]
    loud = viewer.attach(owner.session, flood)
    loud.file = lambda *_: None
    views = [viewer.attach(other.session, process) for process in quiet]
    slow = Deadline()

    def drain(_):
        if readable(owner.transport.sock, 0.1):
            owner.transport.sock.recv(MIB)

    def look():
        viewer.pump(1)
        time.sleep(0.01)  # slower than the flood

    with Meddler(drain):
        for _ in range(100):
            look()
        for process in quiet:
            other.write(process, "end\n", closeStdin=True)
        for process in quiet:
            other.wait_closed(process)
        while not all(view.closed for view in views):
            assert not slow.passed(), [len(view.events) for view in views]
            look()
    assert [view.output() for view in views] == [b"end\n"] * len(views)
    viewer.close()
    other.close()


def test_stalled_owner(shared, viewer):
    """The pace is the owner's: what it does not take has not happened."""
    owner = shared.client(rcvbuf=4096)
    owner.make_sink = lambda name: lambda *_: None
    size = 30_000_007
    process = owner.start(f"head -c{size} /dev/zero")
    view = viewer.attach(owner.session, process)
    until(lambda: any(procfs.writing(p) for p in procfs.marked(f"-c{size}")), "a blocked child")
    viewer.barrier()
    assert not view.exited
    owner.wait_closed(process)
    viewer.wait(lambda: view.closed, "the end")


def test_limit_per_process(shared, owner):
    process = talker(owner)
    params = {"sessionId": owner.session, "processId": process.name}
    viewers = [shared.client() for _ in range(16)]
    views = [v.attach(owner.session, process) for v in viewers]
    late = shared.client()
    assert late.error("process/attach", params) == TOO_MANY
    viewers[3].call("process/detach", {"attachId": views[3].id})
    last = late.attach(owner.session, process)
    assert viewers[3].error("process/attach", params) == TOO_MANY
    viewers[5].end()
    views[3] = viewers[3].attach(owner.session, process)
    owner.write(process, "x\n", closeStdin=True)
    for client, view in [*zip(viewers, views), (late, last)]:
        if client is not viewers[5]:
            client.wait(lambda v=view: v.closed, "the end")
            assert view.output() == b"x\n"


def test_limit_per_connection(owner, viewer):
    processes = [talker(owner) for _ in range(5)]
    for i in range(64):
        viewer.attach(owner.session, processes[i // 16])
    params = {"sessionId": owner.session, "processId": processes[4].name}
    assert viewer.error("process/attach", params) == TOO_MANY
    # The end of a process gives its views back.
    owner.ask("closeStdin", processes[0])
    viewer.wait(lambda: sum(bool(v.closed) for v in viewer.views.values()) == 16, "the end")
    viewer.attach(owner.session, processes[4])
    for process in processes[1:]:
        owner.terminate(process)


def test_unknown_ids(owner, viewer):
    process = talker(owner)
    assert viewer.error("process/attach", {"sessionId": "s", "processId": process.name}) == (
        -32600, "unknown session id s")
    assert viewer.error("process/attach", {"sessionId": viewer.session,
                                           "processId": process.name}) == (
        -32600, f"unknown process id {process.name}")
    assert viewer.error("process/attach", {"sessionId": owner.session, "processId": "p"}) == (
        -32600, "unknown process id p")
    owner.terminate(process)


@pytest.mark.parametrize("params, text", [
    ({"processId": "p"}, "missing field `sessionId`"),
    ({"sessionId": "s", "processId": None},
     "invalid type: null, expected a string"),
    ({"sessionId": "s", "processId": "p", "afterSeq": -1}, "invalid number"),
    ({"sessionId": "s", "processId": "p", "afterSeq": "1"},
     'invalid type: string "1", expected u64'),
])
def test_bad_params(viewer, params, text):
    assert viewer.error("process/attach", params) == (-32602, text)


@pytest.mark.parametrize("params", [None, {}, {"attachId": None}, {"attachId": "1"},
                                    {"attachId": -1}])
def test_bad_detach(viewer, params):
    assert viewer.error("process/detach", params)[0] == -32602


def test_before_initialize(shared):
    client = shared.connect()
    assert client.error("process/attach", {"sessionId": "s", "processId": "p"}) == (
        -32600, "client must call initialize before using exec methods")
