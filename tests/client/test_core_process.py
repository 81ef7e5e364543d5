"""Events of processes: cuts, windows, pauses, calls in the middle of floods."""

import base64
import hashlib
import os
import random
import threading

import pytest

from execserver import _lib
from harness.core import LIB, Client, Code, Pending, State, options
from harness.cutting import DOWN, FIN, RST, UP, Cut, Proxy
from harness.families import start_reference
from harness.procs import Ev, Process, Story
from harness.scenario import Files, start_once
from harness.scripted import INFO, Scripted
from harness.settings import PATIENCE, SANITIZED

MEGA = 1 << 20
ACKS = {**INFO, "capabilities": {"processAck": True}}


def flood(n):
    """A command that writes n bytes, and their digest."""
    data = (b"0123456789abcdef" * 64)[:1000] + b"\n"
    line = data[:-1].decode()
    lines = n // len(data)
    digest = hashlib.sha256(data * lines).hexdigest()
    return ["/bin/sh", "-c", f"yes {line} | head -n {lines}"], lines * len(data), digest


@pytest.fixture(name="ref")
def reference(fleet, place):
    return start_reference(fleet, "0.166.0", place)


def started(client, argv, **more):
    process = Process.start(client, argv, **more)
    assert isinstance(process, Process), client.error()
    return process


# -- cuts in floods (tests/verify/cuts has the long form)

def test_s15_a_flood_with_acknowledgements_is_whole(shared):
    argv, size, digest = flood(16 * MEGA)
    rng = random.Random(15)
    marks = sorted(rng.randrange(size) for _ in range(10))
    with Proxy(shared.address) as proxy, Client(proxy.url) as client:
        process, story, cuts = started(client, argv), Story(), 0
        for e in process.events():
            story.take(e)
            while marks and story.bytes >= marks[0]:
                marks.pop(0)
                proxy.cut_all(rng.choice((FIN, RST)))
                cuts += 1
        assert (story.bytes, story.digest.hexdigest(), story.gaps) == (size, digest, [])
        assert cuts == 10 and story.ends == 1 and story.code == 0
        process.free()


def test_s16_without_acknowledgements_every_loss_is_in_one_gap(ref):
    """Story checks that each number is handed out once, alone or inside exactly one GAP."""
    argv, size, digest = flood(16 * MEGA)
    with Proxy(ref.address) as proxy, Client(proxy.url) as client:
        assert not LIB.xs_client_can(client.handle, b"processAck")
        process, story = started(client, argv), Story()
        for e in process.events():
            story.take(e)
            if len(proxy.cuts) < 3 and story.bytes > (len(proxy.cuts) + 1) * MEGA:
                proxy.cuts.append("by hand")
                proxy.cut_all(RST)
        assert story.failed is None and story.ends == 1 and story.code == 0
        if not story.gaps:
            assert story.digest.hexdigest() == digest
        else:
            assert story.bytes < size
        process.free()


def resumed_with(chunks, following, info=INFO):
    """A server that loses numbers: it cuts after number 2 and then retains only `chunks`."""
    def note(c, seq, data=b"x"):
        c.note("process/output", {"processId": "p", "seq": seq, "stream": "stdout",
                                  "chunk": base64.b64encode(data).decode()})

    def script(c):
        c.open(info=info)
        if c.number == 0:
            start = c.receive()
            assert start["method"] == "process/start"
            c.answer(start, {"processId": "p"})
            note(c, 1)
            note(c, 2)
            return
        read = c.receive()
        assert read["method"] == "process/read" and read["params"]["afterSeq"] == 2
        c.answer(read, {"chunks": [{"seq": n, "stream": "stdout", "chunk": "eQ=="}
                                   for n in chunks],
                        "nextSeq": chunks[-1] + 1, "exited": False, "exitCode": None,
                        "closed": False, "failure": None})
        for n in range(chunks[-1] + 1, following):
            note(c, n)
        c.note("process/exited", {"processId": "p", "seq": following, "exitCode": 0})
        c.note("process/closed", {"processId": "p", "seq": following + 1})
        while True:
            c.receive()
    return Scripted(script)


def test_s16_what_the_server_forgot_is_exactly_the_gap():
    with resumed_with([7, 8, 10], 14) as server, Client(server.url) as client:
        process, story = started(client, ["x"], process_id="p"), Story()
        story.all(process)
        assert story.gaps == [(3, 6), (9, 9)] and story.last == 15 and story.code == 0
        process.free()


def test_s16_a_gap_may_end_the_process():
    with resumed_with([7], 9) as server, Client(server.url, gap_fails=1) as client:
        process = started(client, ["x"], process_id="p")
        seen = list(process.events())
        assert [e.type for e in seen[-2:]] == [Ev.GAP, Ev.FAILED]
        assert "3 to 6" in seen[-1].text
        code, _ = process.wait()
        assert code == Code.EGAP
        process.free()


# -- starts

def test_s17_start_never_runs_twice(shared, place):
    """Cuts around its answer; the long form makes 10,000 of them."""
    rng = random.Random(17)
    for number in range(24):
        way, kind = rng.choice((UP, DOWN, DOWN)), rng.choice((FIN, RST))
        at = rng.randint(400, 640) if way == UP else rng.randint(1400, 1600)
        with Proxy(shared.address, [Cut(way, at, kind)]) as proxy:
            path = place / str(number)
            lost = start_once(proxy.url, path)
            times = path.stat().st_size if path.exists() else 0
            assert times <= 1 and (lost or times == 1)


def lost_start(ttl, wait):
    """A server that takes a start, hangs up, and knows nothing of it later."""
    starts = []

    def script(c):
        c.open(limits={"sessionTtlMs": 60000, "closedRetentionMs": ttl,
                       "retainedOutputBytes": MEGA})
        request = c.receive()
        if c.number == 0:
            starts.append(request)
            threading.Event().wait(wait)
            return
        assert request["method"] == "process/read"
        c.refuse(request, -32600, "unknown process id p")
        request = c.receive()
        if request["method"] == "process/start":
            starts.append(request)
        c.answer(request, {"processId": "p"})
        c.receive()
    return Scripted(script), starts


def test_s17_an_unknown_start_is_sent_again_while_the_server_would_know_it():
    server, starts = lost_start(30000, 0)
    with server, Client(server.url) as client:
        started(client, ["x"], process_id="p").free()
        assert len(starts) == 2
        assert [s["params"]["processId"] for s in starts] == ["p", "p"]


def test_s17_an_unknown_start_is_lost_when_the_server_may_have_forgotten_it():
    server, starts = lost_start(2100, 0.3)
    with server, Client(server.url) as client:
        assert Process.start(client, ["x"], process_id="p") == Code.ELOST
        assert "may have run" in client.error() and len(starts) == 1


# -- writes and acknowledgements

def test_writes_have_ids_of_their_own():
    """And keep them when they are sent again after a cut."""
    writes = []  # (connection, id, chunk)

    def script(c):
        c.open(info={**INFO, "capabilities": {"processCloseStdin": True}})
        if c.number == 0:
            c.answer(c.receive(), {"processId": "p"})
        while True:
            request = c.receive()
            params = request["params"]
            if request["method"] == "process/read":
                c.answer(request, {"chunks": [], "nextSeq": 1, "exited": False, "exitCode": None,
                                   "closed": False, "failure": None})
                continue
            if "writeId" not in params:
                c.answer(request, {})
                continue
            writes.append((c.number, params["writeId"], params.get("chunk")))
            if c.number == 0 and len(writes) == 2:
                return
            if c.number == 0:
                continue  # neither of both is answered
            c.answer(request, {"status": "accepted"})
    with Scripted(script) as server, Client(server.url) as client:
        process = started(client, ["cat"], process_id="p", stdin=1)
        asked = [Pending(client) for _ in range(3)]
        for n, pending in enumerate(asked):
            assert process.write(b"%d" % n, pending) == 0
        assert [pending.wait() for pending in asked] == [0] * 3
        assert process.close_stdin() == 0
        process.free()
    sent = {}
    for _, name, chunk in writes:
        assert sent.setdefault(name, chunk) == chunk, "an id twice"
    assert len(sent) == 4, "an id twice"
    assert [chunk for number, _, chunk in writes if number == 1] == ["MA==", "MQ==", "Mg==", None]


def test_what_was_consumed_is_acknowledged():
    acks = []

    def script(c):
        c.open(info=ACKS)
        c.answer(c.receive(), {"processId": "p"})
        for seq in range(1, 9):
            c.note("process/output", {"processId": "p", "seq": seq, "stream": "stdout",
                                      "chunk": base64.b64encode(bytes(65536)).decode()})
        while True:
            request = c.receive()
            if request["method"] == "process/ack":
                acks.append(request["params"]["seq"])
            c.answer(request, {})
    with Scripted(script) as server, Client(server.url) as client:
        process, story = started(client, ["x"], process_id="p"), Story()

        def on_event(e):
            story.take(e)
            return 0
        process.on_event(on_event)
        client.until(lambda: story.bytes == 8 * 65536)
        client.until(lambda: acks and acks[-1] == 8, limit=PATIENCE)
        assert acks == [4, 8]
        process.free()


# -- windows

def pausing(client, argv, after=1, **more):
    """A process whose consumer pauses after so many events of output."""
    process = started(client, argv, **more)
    process.story, process.outputs = Story(), 0

    def on_event(e):
        process.story.take(e)
        process.outputs += e.type == Ev.OUTPUT
        return _lib.PAUSE if process.outputs == after else 0
    process.on_event(on_event)
    client.until(lambda: process.outputs >= after)
    return process


def test_s21_while_one_is_paused_others_go_on(shared):
    argv, size, digest = flood(24 * MEGA)
    with Client(shared.url) as client:
        assert LIB.xs_client_can(client.handle, b"processAck")
        paused = pausing(client, argv)
        other_argv, other_size, other_digest = flood(8 * MEGA)
        other, story = started(client, other_argv), Story()
        story.all(other)  # no call is awaited: only the paused one may stand still
        assert (story.bytes, story.digest.hexdigest()) == (other_size, other_digest)
        assert paused.outputs == 1 and not paused.story.exits
        paused.unpause()
        client.until(lambda: paused.story.ends)
        assert not paused.story.gaps and paused.story.digest.hexdigest() == digest
        assert paused.story.bytes == size
        other.free()
        paused.free()


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(SANITIZED, reason="memory of a sanitizer's build")
@pytest.mark.parametrize("acks", [True, False])
def test_s22_a_paused_flood_takes_little_memory(shared, acks, request):
    """The growth of this process; the client itself is the smallest part of it."""
    server = shared if acks else request.getfixturevalue("ref")
    with Client(server.url) as client:
        warm = started(client, ["/bin/true"])
        Story().all(warm)
        before = resident()
        paused = pausing(client, ["/usr/bin/yes"])
        for _ in range(40):
            client.run(10)
        assert client.rpc("environment/status")[0] == 0
        assert resident() - before < 4 * MEGA
        paused.free()
        warm.free()


@pytest.mark.parametrize("kind", ["ours", "reference"])
def test_s23_no_call_hangs_because_a_window_is_full(kind, shared, place, request):
    server = shared if kind == "ours" else request.getfixturevalue("ref")
    with Client(server.url, window=65536) as client:
        paused = pausing(client, ["/usr/bin/yes"])
        for _ in range(20):
            client.run(10)
        assert client.rpc("environment/status")[0] == 0
        files = Files(client)
        assert files.write(place / "f", b"content") == 0
        assert files.read(place / "f") == (0, b"content")
        files.free()
        other = started(client, ["/bin/sh", "-c", "head -c 4000000 /dev/zero; exit 3"])
        assert other.wait(ms=int(PATIENCE * 1000))[0] == 0  # nobody takes its output
        assert other.wait()[1].code == 3
        echo = started(client, ["/bin/cat"], stdin=1)
        assert echo.write(b"x" * 3 * MEGA) == 0  # comes back, and nobody takes it
        assert echo.terminate() >= 0 and echo.wait()[0] == 0
        assert paused.terminate() >= 0
        paused.unpause()
        client.until(lambda: paused.story.ends)
        for process in (paused, other, echo):
            process.free()
        assert client.close() == 0


@pytest.mark.parametrize("size", [100 * MEGA // (8 if SANITIZED else 1)])
def test_s26_communicate_of_much(shared, size):
    most = 100_000
    with Client(shared.url) as client:
        process = started(client, ["/bin/cat"], stdin=1)
        data = random.Random(26).randbytes(MEGA) * (size // MEGA)
        code, head, tail, total = process.communicate(data, most)
        assert code == 0 and total == len(data)
        assert head == data[:most // 2] and tail == data[-most // 2:]
        process.free()


# -- lifetimes

@pytest.mark.parametrize("what", ["process", "client", "other"])
def test_a_callback_of_events_may_free_anything(shared, what):
    client = Client(shared.url)
    process = started(client, ["/bin/sh", "-c", "while :; do echo x; done"])
    other = started(client, ["/usr/bin/yes"])
    freed = []

    def on_event(_):
        if not freed:
            freed.append(1)
            {"process": process, "client": client, "other": other}[what].free()
        return 0
    handle = client.handle
    other.on_event(lambda e: 0)
    process.on_event(on_event)
    while not freed:
        LIB.xs_client_run(handle, 50)
    if what != "client":
        for _ in range(3):
            client.run(10)
        (other if what == "process" else process).free()
        client.free()


def test_free_ends_what_waits(shared):
    with Client(shared.url) as client:
        process = started(client, ["/bin/cat"], stdin=1)
        waits = [process.ask_wait() for _ in range(3)]
        write = Pending(client)
        assert process.write(b"x" * MEGA, write) == 0
        process.free()
        assert [w.wait() for w in waits] == [Code.ECANCELED] * 3
        assert write.wait() in (0, Code.ECANCELED)


@pytest.mark.parametrize("state", [State.CONNECTING, State.RESUMING])
def test_a_process_is_started_and_freed_at_every_state(shared, state):
    """Asynchronous starts that are cancelled, or whose client is freed, leave nothing running."""
    with Proxy(shared.address) as proxy:
        client = Client(proxy.url, connect=state != State.CONNECTING)
        connecting = Pending(client)  # it must live until it is done
        if state == State.CONNECTING:
            assert client.connect(connecting) == 0
        else:
            proxy.refusing = True
            proxy.cut_all()
            client.until(lambda: client.state() == State.RESUMING)
        asked, out = [], []
        for _ in range(6):
            pending, place = Pending(client), _lib.c_void_p()
            bag = options(argv=["/bin/sleep", "1000"])
            assert LIB.xs_process_start(client.handle, bag, _lib.ctypes.byref(place),
                                        pending.ref()) == 0
            LIB.xs_options_free(bag)
            asked.append(pending)
            out.append(place)
        for pending in asked[:3]:
            pending.cancel()
        proxy.refusing = False
        assert [p.wait() for p in asked] == [Code.ECANCELED] * 3 + [0] * 3
        assert [bool(place) for place in out] == [False] * 3 + [True] * 3
        code, listed = client.rpc("process/list")
        assert code == 0 and len([p for p in listed["processes"] if p["state"] == "running"]) == 3
        assert client.close() == 0
        client.free()


# -- hostile servers

def hostile(*notes, info=INFO):
    def script(c):
        c.open(info=info)
        start = c.receive()
        c.answer(start, {"processId": "p"})
        for method, params in notes:
            c.note(method, {"processId": "p", **params})
        while True:
            request = c.receive()
            if request["method"] == "process/start":
                c.refuse(request, -32600, "exists")
            else:
                c.refuse(request, -32600, "unknown process id p")
    return Scripted(script)


OUT = {"stream": "stdout", "chunk": "eA=="}


@pytest.mark.parametrize("notes", [
    [("process/output", {**OUT, "seq": 0})],
    [("process/output", {**OUT, "seq": -1})],
    [("process/output", {**OUT, "seq": 1 << 64})],
    [("process/output", {**OUT, "seq": 1, "chunk": "!"})],
    [("process/output", {**OUT, "seq": 1, "stream": "stdin"})],
    [("process/output", {**OUT, "seq": 1, "chunk": "QUFB" * 400000})],  # above 1 MiB
    [("process/exited", {"seq": 1, "exitCode": 1 << 40})],
    [("process/exited", {"seq": 1, "exitCode": "0"})],
    [("process/exited", {"seq": 1}), ("process/closed", {"seq": 2}),
     ("process/output", {**OUT, "seq": 3})],
    [("process/exited", {"seq": 1}), ("process/closed", {"seq": 2}),
     ("process/closed", {"seq": 3})],
    [("process/output", {"seq": 1})],
    [("process/attachGap", {"fromSeq": 5, "toSeq": 1, "attachId": 0})],
])
def test_malformed_events_drop_the_connection(notes):
    with hostile(*notes) as server, Client(server.url) as client:
        process = started(client, ["x"], process_id="p")
        story = Story().all(process)
        assert story.failed or story.ends
        client.until(lambda: any("malformed" in line for _, line in client.lines))
        process.free()


def test_answers_that_never_come_end_by_the_limit():
    """Also xs_client_close(): the server is alive, and says nothing."""
    def script(c):
        c.open()
        c.answer(c.receive(), {"processId": "p"})
        while True:
            c.receive()
    with Scripted(script) as server, Client(server.url, call_ms=300) as client:
        process = started(client, ["x"], process_id="p")
        assert process.write(b"x") == Code.ETIMEOUT
        assert process.wait()[0] == Code.ETIMEOUT
        assert process.signal(2) == Code.ETIMEOUT
        assert client.close() == Code.ETIMEOUT
        assert client.state() == State.CLOSED
        assert client.close() == 0
        process.free()


def test_texts_of_a_server_are_one_harmless_line():
    evil = "a\x1b[2Jb\x9b31mc\x07\r\nd\x7fe\u00e9\u202e"

    def script(c):
        c.open()
        c.refuse(c.receive(), -32000, evil)
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        assert client.rpc("x/y")[0] == Code.EREMOTE
        text = client.error()
        assert text.startswith("x/y: a [2Jb ")
        assert not any(ord(ch) < 32 or 0x7F <= ord(ch) < 0xA0 for ch in text)
        assert "\u00e9" in text


def test_requests_with_long_ids_get_no_answer():
    """What waits to be sent is bounded."""
    def script(c):
        c.open()
        first = c.receive()
        c.send({"id": "i" * 5000, "method": "no/such"})
        c.send({"id": "short", "method": "no/such"})
        reply = c.receive()
        assert reply["id"] == "short" and reply["error"]["code"] == -32601
        c.answer(first, {})
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        assert client.rpc("x/y") == (0, {})


@pytest.mark.skipif(SANITIZED, reason="memory of a sanitizer's build")
def test_a_view_of_nothing_but_losses_takes_no_memory():
    """GAPs that nobody takes join."""
    count = 60000

    def script(c):
        c.open(info={**INFO, "capabilities": {"processAttach": True}})
        c.answer(c.receive(), {"attachId": 7})
        for n in range(1, count):
            c.note("process/attachGap", {"processId": "p", "attachId": 7, "fromSeq": n, "toSeq": n})
        c.answer(c.receive(), {})
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        view = _lib.c_void_p()
        assert LIB.xs_process_view(client.handle, b"s", b"p", 0, _lib.ctypes.byref(view), None) == 0
        before = resident()
        assert client.rpc("x/y")[0] == 0
        assert resident() - before < 2 * MEGA
        process = Process(client, view)
        first = process.next()
        assert (first.type, first.seq, first.to) == (Ev.GAP, 1, count - 1)
        process.free()
