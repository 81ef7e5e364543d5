"""fs/readFile of large files: sent in fragments as they are read."""

import asyncio
import json
import os
import signal

import pytest
import websockets

from harness import procfs
from harness.files import MIB, Files, os_error, uri
from harness.rpc import b64, unb64
from harness.settings import SANITIZED
from harness.stream import Stream
from harness.waiting import readable, until
from harness.ws import PING, Closed

LIMIT = 512 * MIB
FIRST = 4 * MIB  # read before the answer begins
FRAGMENT_MAX = 16 * MIB
GROWTH_MAX = 8_000_000


def pattern(size):
    """Content in which every place is known."""
    block = b"".join(b"%08d" % i for i in range(MIB // 8))
    return (block * (size // MIB + 1))[:size]


@pytest.fixture
def large(place):
    """A file of 16 MiB and a bit."""
    content = pattern(16 * MIB + 12345)
    (place / "large").write_bytes(content)
    return place / "large", content


def open_in(server, place):
    return [t for t in server.fd_targets() if t.startswith(str(place))]


def begin(files, path, sink=None, **params):
    """Asks for a file and takes the first piece of the answer."""
    return Stream(files.client.transport, files.send("readFile", path, **params), sink).begin()


def slow(server):
    """A connection whose peer takes next to nothing by itself."""
    return Files(server.client(rcvbuf=4096))


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def peak(pid):
    return int(procfs.status(pid)["VmHWM"].split()[0]) * 1024


# Content.

def test_content(files, large):
    path, content = large
    for follow in (True, False):
        assert files.read(path, followSymlinks=follow) == content


def test_fragments(files, large):
    path, content = large
    stream = begin(files, path)
    assert stream.finish() == content
    assert len(stream.fragments) > 2 and max(stream.fragments) <= FRAGMENT_MAX
    files.client.sync()


@pytest.mark.parametrize("size", [FIRST - 1, FIRST, FIRST + 1, FIRST + 2, FIRST + 3, 5 * MIB,
                                  9 * MIB + 1, 20 * MIB])
def test_sizes(files, place, size):
    content = pattern(size)
    (place / "f").write_bytes(content)
    assert files.read(place / "f") == content


@pytest.mark.limit(1800)
def test_the_largest_file(files, place):
    with open(place / "sparse", "wb") as f:
        f.truncate(LIMIT)

    zeros = bytes(8 * MIB)

    def sink(data):
        assert data == zeros[:len(data)]
    stream = begin(files, place / "sparse", sink)
    stream.finish()
    assert stream.size == LIMIT


def test_memory(fleet, place):
    """200 MB for a reader that is slow: at most 8 MB more than before."""
    server = fleet.start()
    files = slow(server)
    with open(place / "f", "wb") as f:
        f.truncate(200_000_000)
    files.read("/proc/self/status")
    before = procfs.rss(server.pid)
    reset_peak(server.pid)
    stream = begin(files, place / "f", lambda data: None)
    # It waits for the reader, not for the end of the file.
    until(lambda: procfs.state(server.pid) == "S", "the server waits")
    stream.finish()
    assert stream.size == 200_000_000
    if not SANITIZED:
        assert peak(server.pid) - before <= GROWTH_MAX
        files.client.sync()
        until(lambda: procfs.rss(server.pid) - before < 3 * MIB, "the memory is given back")


def test_a_foreign_client(shared, large):
    """The client of another author puts the fragments together."""
    path, content = large

    async def talk():
        async with websockets.connect(shared.url, max_size=None, compression=None) as ws:
            async def ask(method, params):
                await ws.send(json.dumps({"id": 1, "method": method, "params": params}))
                return json.loads(await ws.recv())["result"]
            await ask("initialize", {"clientName": "x"})
            await ws.send('{"method":"initialized","params":{}}')
            return await ask("fs/readFile", {"path": uri(path)})
    assert unb64(asyncio.run(talk())["dataBase64"]) == content


def test_over_stdio(fleet, large):
    path, content = large
    files = Files(fleet.stdio())
    assert files.read(path) == content
    files.client.sync()


# What else is said meanwhile.

def test_messages_wait_for_the_end(shared, large, place):
    """Output, ends and answers arrive whole, in order, after the stream."""
    path, content = large
    files = slow(shared)
    client = files.client
    gate = place / "gate"
    talker = client.start(f"while [ ! -e {gate} ]; do sleep 0.01; done; "
                          "for i in 1 2 3 4 5; do echo $i; echo $i >&2; done; exit 7")
    sleeper = client.start("trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done")
    client.wait_output(sleeper, "ready\n")
    stream = begin(files, path)
    gate.touch()
    control = [client.send("environment/status"),
               client.send("process/signal", {"processId": sleeper.name, "signal": "interrupt"}),
               client.send("process/terminate", {"processId": "no such process"}),
               client.send("fs/close", {"handleId": "no such handle"})]
    ordinary = [files.send("getMetadata", path), files.send("readFile", place / "missing")]
    assert stream.finish() == content
    assert [client.result(i) for i in control] == [{"status": "ready"}, {}, {"running": False}, {}]
    assert client.result(ordinary[0])["size"] == len(content)
    assert client.answer(ordinary[1])["error"]["code"] == -32004
    client.wait_closed(talker)
    client.wait_closed(sleeper)
    assert talker.exit_code == 7 and sleeper.exit_code == 9
    assert talker.output("stdout") == talker.output("stderr") == b"1\n2\n3\n4\n5\n"


def test_a_talker_during_a_stream(shared, large, place):
    """More output than may be queued: the talker waits, and nothing is lost."""
    path, content = large
    files = slow(shared)
    client = files.client
    gate = place / "gate"
    got = []
    talker = client.start(f"while [ ! -e {gate} ]; do sleep 0.01; done; head -c 6000000 /dev/zero",
                          sink=lambda seq, stream, data: got.append(len(data)))
    stream = begin(files, path)
    gate.touch()
    assert stream.finish() == content
    client.wait_closed(talker)
    assert sum(got) == 6000000 and talker.exit_code == 0


def test_signals_reach_their_target_during_a_stream(shared, large):
    """Only the answers are held back, not what was asked for."""
    path, content = large
    files = slow(shared)
    token = procfs.mark()
    process = files.client.start(f"sleep {token}")
    procfs.wait_marked(token)
    stream = begin(files, path)
    ident = files.client.send("process/terminate", {"processId": process.name})
    procfs.wait_marked(token, 0)
    assert stream.finish() == content
    assert files.client.result(ident) == {"running": True}
    files.client.wait_closed(process)


def test_pings_are_answered_during_a_stream(shared, large):
    path, content = large
    files = slow(shared)
    stream = begin(files, path)
    for payload in (b"one", b"two", b""):
        files.client.transport.send_frame(PING, payload)
    assert stream.finish() == content
    assert stream.pongs == [b"one", b"two", b""]
    files.client.sync()


def test_requests_wait_in_order(shared, large, place):
    path, content = large
    files = slow(shared)
    stream = begin(files, path)
    idents = []
    for i in range(20):
        idents += [files.send("writeFile", place / "f", dataBase64=b64(b"%d" % i)),
                   files.send("readFile", place / "f")]
    assert stream.finish() == content
    for i in range(20):
        assert files.client.result(idents[2 * i]) == {}
        assert files.client.result(idents[2 * i + 1]) == {"dataBase64": b64(b"%d" % i)}


def test_streams_one_after_another(files, large):
    path, content = large
    idents = [files.send("readFile", path) for _ in range(3)]
    for ident in idents:
        assert Stream(files.client.transport, ident).finish() == content


def test_streams_at_once_on_one_connection(fleet, large, place):
    """With several requests at a time each answer is still one message, whole."""
    path, content = large
    (place / "small").write_bytes(b"small")
    files = Files(fleet.start("--concurrent-requests", "4").client())
    idents = [files.send("readFile", path) for _ in range(3)]
    idents.append(files.send("readFile", place / "small"))
    answers = [unb64(files.client.result(i)["dataBase64"]) for i in idents]
    assert answers == [content] * 3 + [b"small"]


def test_streams_on_several_connections(shared, large):
    path, content = large
    streams = [begin(slow(shared), path) for _ in range(4)]
    other = Files(shared.client())
    assert other.read(path) == content
    for stream in reversed(streams):
        assert stream.finish() == content


# Ends.

@pytest.mark.parametrize("number", [5, 122])
def test_an_early_failure_is_an_answer(files, faultfs, number):
    for offset in (0, 1, MIB, FIRST - 1):
        path = faultfs.file(f"e{number}-read@{offset}", b"x" * (6 * MIB))
        for follow in (True, False):
            assert files.error("readFile", path, followSymlinks=follow) == os_error(number)
    files.client.sync()


def test_a_failure_midway_is_an_answer(files, faultfs):
    """The file is probed to its end before the answer begins."""
    for offset in (FIRST, 9000000, 20 * MIB - 1):
        path = faultfs.file(f"e5-read@{offset}", b"x" * (20 * MIB))
        for follow in (True, False):
            assert files.error("readFile", path, followSymlinks=follow) == os_error(5)
    files.client.sync()


@pytest.mark.parametrize("name, known", [("pagemap", -32600), ("mem", -32603)])
def test_endless_files_of_the_kernel(files, name, known):
    assert files.error("readFile", f"/proc/self/{name}", maxBytes=16 * MIB)[0] == known
    files.client.sync()


def break_later(faultfs, content):
    """A file, and what makes it fail from byte 9000000 on."""
    path = faultfs.file("fine", content)
    return path, lambda: os.rename(path, path.with_name("e5-read@9000000"))


def test_a_late_failure_costs_the_call(shared, faultfs):
    """A disk that dies while the answer is on its way: the result is spoiled, the error follows."""
    content = pattern(30 * MIB)
    path, fail = break_later(faultfs, content)
    files = slow(shared)
    process = files.client.start("echo kept; cat", pipeStdin=True)
    files.client.wait_output(process, "kept\n")
    stream = begin(files, path)
    fail()
    got = stream.finish(fails=True)
    assert stream.error == os_error(5)
    assert content.startswith(got) and FIRST <= len(got) <= 9000000
    assert files.client.terminate(process) == {"running": True}
    assert files.read(faultfs.file("other", content)) == content
    until(lambda: not open_in(shared, faultfs.path), "no descriptor left")


def test_no_reader_takes_a_spoiled_result(shared, faultfs):
    """The message is JSON: its reader finds an error, and no content."""
    path, fail = break_later(faultfs, pattern(30 * MIB))
    files = slow(shared)
    ident = files.send("readFile", path)
    first = files.client.transport.receive_frame()
    fail()
    text = first.payload
    while not (frame := files.client.transport.receive_frame()).fin:
        text += frame.payload
    text += frame.payload
    pairs = json.loads(text, object_pairs_hook=list)
    assert [k for k, _ in pairs] == ["id", "result", "error"] and pairs[0][1] == ident
    (name, begun), (again, nothing) = pairs[1][1]
    assert name == again == "dataBase64" and nothing is None
    assert begun.endswith("!") and "!" not in begun[:-1]
    assert dict(pairs[2][1]) == dict(zip(("code", "message"), os_error(5)))


def test_a_late_failure_over_stdio(fleet, faultfs):
    content = pattern(30 * MIB)
    path, fail = break_later(faultfs, content)
    client = fleet.stdio()
    ident = Files(client).send("readFile", path)
    os.set_blocking(client.transport.popen.stdout.fileno(), True)
    head = b'{"id":%d,"result":{"dataBase64":"' % ident
    assert client.transport.popen.stdout.read(len(head)) == head
    fail()
    line = client.transport.popen.stdout.readline()
    assert line.endswith(b'!","dataBase64":null},"error":{"code":-32603,'
                         b'"message":"I/O error (os error 5)"}}\n')
    os.set_blocking(client.transport.popen.stdout.fileno(), False)
    client.sync()


def test_a_file_that_shrinks(shared, place):
    """It simply ends earlier."""
    content = pattern(30 * MIB)
    (place / "f").write_bytes(content)
    files = slow(shared)
    stream = begin(files, place / "f")
    os.truncate(place / "f", 5 * MIB)
    got = stream.finish()
    assert content.startswith(got) and FIRST <= len(got) < 30 * MIB
    files.client.sync()


def test_a_file_that_is_replaced(shared, large, place):
    """What was opened is what is sent."""
    path, content = large
    stream = begin(slow(shared), path)
    (place / "new").write_bytes(b"new")
    os.replace(place / "new", path)
    assert stream.finish() == content


def test_a_file_that_grows(shared, place):
    content = pattern(20 * MIB)
    (place / "f").write_bytes(content[:15 * MIB])
    stream = begin(slow(shared), place / "f")
    with open(place / "f", "ab") as f:
        f.write(content[15 * MIB:])
    got = stream.finish()
    assert content.startswith(got) and len(got) >= 15 * MIB


def test_a_file_that_grows_beyond_the_limit(shared, place):
    """What was there when the answer began is what is sent."""
    content = pattern(20 * MIB)
    (place / "f").write_bytes(content)
    files = slow(shared)
    stream = begin(files, place / "f", maxBytes=20 * MIB)
    with open(place / "f", "ab") as f:
        f.write(b"x" * (10 * MIB))
    assert stream.finish() == content
    files.client.sync()


@pytest.mark.parametrize("how", ["reset", "drop", "half_close"])
def test_a_client_that_vanishes(fleet, large, place, how):
    """Nothing stays open, and the session can be resumed."""
    path, _ = large
    server = fleet.start()
    other = server.client()
    before = server.fds()
    for _ in range(3):
        files = slow(server)
        begin(files, path)
        assert open_in(server, place)
        getattr(files.client.transport, how)()
        until(lambda: not open_in(server, place), "the file is closed")
        other.sync()

        def resume(session=files.client.session):
            client = server.connect()
            answer = client.answer(client.send(
                "initialize", {"clientName": "x", "resumeSessionId": session}))
            client.close()
            return "result" in answer
        until(resume, "the session is free")
        files.client.close()
    server.wait_fds(before)


def test_a_client_that_closes(shared, large, place):
    """A close frame is answered; the rest of the message is not sent."""
    path, content = large
    files = slow(shared)
    stream = begin(files, path)
    files.client.transport.send_close(1000)
    try:
        while not stream.ended:
            assert stream.step(), "the connection does not end"
    except Closed as end:
        assert end.code in (1000, None)
    assert content.startswith(b"".join(stream.kept))
    until(lambda: not open_in(shared, place), "the file is closed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_during_a_stream(server, large, number):
    path, _ = large
    begin(slow(server), path)
    begin(slow(server), path)
    server.stop(number)


def begin_and_hang(files, faultfs, content):
    """A stream whose file hangs after its beginning."""
    path = faultfs.file("fine", content)
    stream = begin(files, path)
    os.rename(path, path.with_name("hang-read"))
    while not readable(faultfs.popen.stdout, 0):
        stream.step(0.1)
    faultfs.hangs("read", "hang-read")
    assert not stream.ended
    return stream


def test_a_hang_midway(server, faultfs):
    """Others are served; pings are answered; then the stream goes on."""
    content = pattern(30 * MIB)
    files = slow(server)
    other = Files(server.client())
    stream = begin_and_hang(files, faultfs, content)
    files.client.transport.send_frame(PING, b"there?")
    while not stream.pongs:
        assert stream.step(), "no pong"
    assert other.read(faultfs.file("other", b"fine")) == b"fine"
    assert other.client.run("echo x").output() == b"x\n"
    faultfs.release()
    assert stream.finish() == content


def test_vanishing_while_it_hangs_midway(server, faultfs):
    files = slow(server)
    begin_and_hang(files, faultfs, pattern(30 * MIB))
    files.client.transport.reset()
    server.client().sync()

    def resume():
        client = server.connect()
        return "result" in client.answer(client.send(
            "initialize", {"clientName": "x", "resumeSessionId": files.client.session}))
    until(resume, "the session is free")
    faultfs.release()
    until(lambda: not open_in(server, faultfs.path), "the file is closed")


def test_the_server_ends_while_it_hangs_midway(server, faultfs):
    begin_and_hang(slow(server), faultfs, pattern(30 * MIB))
    server.stop()
