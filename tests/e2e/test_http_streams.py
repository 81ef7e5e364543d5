"""http/request: streams, slow clients, cancelled connections, and the life of the HTTP program."""

import os
import shutil
import signal
import stat
import struct
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from harness import procfs
from harness.origin import Origin
from harness.resting import wait_rest
from harness.rpc import b64
from harness.settings import BINARY, SANITIZED
from harness.waiting import until
from harness.web import (PROGRAM, Stream, available, body_of, params, program_of, programs,
                         stream)

pytestmark = pytest.mark.skipif(not available(), reason="built without exec-server-http")

MIB = 1 << 20
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
FAKE = os.path.join(os.path.dirname(BINARY), "tests", "fakehttp")
ENDED = "the HTTP program ended unexpectedly"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.fixture(name="origins")
def make_origins():
    made = []

    def make(handle, **options):
        made.append(Origin(handle, **options))
        return made[-1]
    yield make
    for origin in made:
        origin.close()


class Held:
    """An answer that goes on when the test says so, and never ends by itself."""

    def __init__(self):
        self.exchange = None

    def __call__(self, x):
        self.exchange = x
        x.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n" +
               chunk(b"first"))
        return not x.ended()


def endless(x):
    """Sends without end; counts what the peer took."""
    x.send(CHUNKED)
    block = chunk(bytes(65536))
    try:
        while True:
            x.send(block)
            x.sent += 65536
    except OSError:
        return False


# Streams.


def test_a_stream_arrives_piece_by_piece(server, origins):
    held = Held()
    client = server.client()
    result, s = stream(client, origins(held).url)
    assert result == {"status": 200, "headers": [
        {"name": "connection", "value": "close"},
        {"name": "transfer-encoding", "value": "chunked"}], "bodyBase64": ""}
    s.wait_body(5)
    for more in (b"second", b"third"):
        held.exchange.send(chunk(more))
        s.wait_body(len(s.body) + len(more))
    held.exchange.send(b"0\r\n\r\n")
    assert s.finish() == (b"firstsecondthird", None)
    assert len(s.frames) == 4


def test_streams_that_are_empty_large_or_broken(server, origins):
    data = bytes(range(253)) * 20000

    def handle(x):
        if x.target == "/empty":
            x.answer(204)
        elif x.target == "/large":
            x.answer(body=data)
        else:
            x.send(CHUNKED + chunk(b"abc") + (b"zz\r\n" if x.target == "/bad" else b""))
        return x.target != "/cut"
    o = origins(handle)
    client = server.client()
    for path, body, error in (("/empty", b"", None), ("/large", data, None),
                              ("/cut", b"abc", "error decoding response body"),
                              ("/bad", b"abc", "error decoding response body")):
        _, s = stream(client, o.url + path)
        assert s.finish() == (body, error), path


def test_a_stream_that_fails_before_its_head_has_no_frames(server):
    client = server.client()
    s = Stream(client, "s")
    code, _ = client.error("http/request",
                           params("http://127.0.0.1:1/", name="s", streamResponse=True))
    client.barrier()
    assert code == -32603 and s.poll() == []


def test_a_time_limit_ends_a_stream(server, origins):
    client = server.client()
    o = origins(Held())
    _, s = stream(client, o.url, timeoutMs=3000)
    assert s.finish() == (b"first", "error decoding response body")
    o.wait_closed()


def test_names_are_free_again_at_the_end(server, origins):
    held = Held()
    o = origins(lambda x: held(x) if x.target == "/held" else x.answer(body=b"x"))
    client = server.client()
    _, s = stream(client, o.url + "/held", name="dup")
    again = params(o.url, name="dup", streamResponse=True)
    assert client.error("http/request", again) == (
        -32602, "http/request streamResponse requestId `dup` is already active")
    assert body_of(client.call("http/request", params(o.url, name="dup"))) == b"x"
    _, other = stream(server.client(), o.url, name="dup")  # names belong to connections
    assert other.finish() == (b"x", None)
    s.wait_body(5)
    held.exchange.send(b"0\r\n\r\n")
    s.finish()
    _, s = stream(client, o.url, name="dup")
    assert s.finish() == (b"x", None)


def test_many_streams_at_once(server, origins):
    o = origins(lambda x: x.answer(body=x.target.encode() * 5000))
    client = server.client()
    made = [Stream(client, f"s{i}") for i in range(40)]
    asked = [client.send("http/request", params(f"{o.url}/{s.name}", name=s.name,
                                                streamResponse=True)) for s in made]
    for ident in asked:
        assert client.result(ident)["status"] == 200
    for s in made:
        assert s.finish() == (f"/{s.name}".encode() * 5000, None)


def test_other_requests_go_on_beside_a_stream_but_wait_for_a_head(server, origins):
    held = Held()
    heads = origins(lambda x: not x.ended())
    client = server.client()
    _, s = stream(client, origins(held).url)
    assert client.call("environment/info")["platformOs"] == "linux"
    waiting = client.send("http/request", params(heads.url, timeoutMs=2000))
    heads.wait_seen(1)
    later = client.send("process/read", {"processId": "none"})
    client.sync()  # overtakes
    assert waiting not in client.answers and later not in client.answers
    assert client.answer(waiting)["error"]["code"] == -32603
    assert client.answer(later)["error"]["code"] == -32600
    s.wait_body(5)


def test_too_many_requests_are_refused(fleet, origins):
    o = origins(lambda x: not x.ended())
    server = fleet.start("--concurrent-requests", "300")
    client = server.client()
    for i in range(256):
        client.send("http/request", params(o.url, name=str(i)))
    assert client.error("http/request", params(o.url)) == (
        -32603, "http/request failed: at most 256 requests may be active on a connection")


# Slow clients, and connections that end.


def test_a_slow_client_stalls_its_own_stream_only(server, origins):
    slow_origin, quick = origins(endless), origins(lambda x: x.answer(body=b"quick"))
    slow, other = server.client(), server.client()
    slow.call("http/request", params(slow_origin.url, streamResponse=True))
    sent = [-1]

    def stalled():
        """The origin can send no more: it was so twice in a row, with calls between."""
        before, sent[0] = sent[0], slow_origin.seen[0].sent
        for _ in range(20):
            assert body_of(other.call("http/request", params(quick.url))) == b"quick"
        return before == sent[0]
    until(stalled, "a stalled origin")
    assert sent[0] < 64 * MIB
    if not SANITIZED:
        assert procfs.rss(server.pid) < 64 * MIB
        assert all(procfs.rss(pid) < 96 * MIB for pid in programs(server))
    # It goes on as soon as the client reads.
    s = Stream(slow, "r")
    s.wait_body(16 * MIB)
    slow.close()
    slow_origin.wait_closed()


def test_the_end_of_a_connection_ends_its_transfers(server, origins):
    stuck, streaming = origins(lambda x: not x.ended()), origins(Held())
    client = server.client()
    stream(client, streaming.url)
    client.send("http/request", params(stuck.url))
    stuck.wait_seen(1)
    client.close()
    stuck.wait_closed()
    streaming.wait_closed()
    until(lambda: not programs(server), "end of the program")


def test_a_resumed_session_has_no_streams_but_can_ask_again(server, origins):
    held = Held()
    o = origins(lambda x: held(x) if x.target == "/held" else x.answer(body=b"x"))
    first = server.client()
    stream(first, o.url + "/held", name="s")
    first.close()
    second = server.client(resume=first.session)
    _, s = stream(second, o.url, name="s")
    assert s.finish() == (b"x", None)


def test_the_server_ends_while_streams_run(fleet, origins):
    server = fleet.start()
    o = origins(Held())
    stream(server.client(), o.url)
    program_of(server)
    server.stop()
    o.wait_closed()


# The program.


def test_it_starts_on_demand_one_for_each_connection(server, origins):
    o = origins(lambda x: x.answer(body=b"x"))
    clients = [server.client() for _ in range(3)]
    assert not programs(server)
    for made, client in enumerate(clients, 1):
        client.call("http/request", params(o.url))
        client.call("http/request", params(o.url))
        assert len(programs(server)) == made
    wait_rest(server)


def test_at_most_32_run_and_an_idle_one_makes_room(server, origins):
    o = origins(lambda x: x.answer(body=b"x") if x.target == "/" else not x.ended())
    clients = [server.client() for _ in range(34)]
    for client in clients[:33]:
        client.call("http/request", params(o.url))
    until(lambda: len(programs(server)) == 32, "32 programs")
    for i, client in enumerate(clients[:32]):
        client.send("http/request", params(f"{o.url}/hang"))
        o.wait_seen(34 + i)
    assert clients[33].error("http/request", params(o.url)) == (
        -32603, "http/request failed: all 32 HTTP programs are in use")
    clients[0].close()
    until(lambda: len(programs(server)) == 31, "room for a program")
    assert body_of(clients[33].call("http/request", params(o.url))) == b"x"


def test_its_crash_is_an_error_and_the_next_request_works(server, origins):
    held = Held()
    o = origins(lambda x: held(x) if x.target == "/held" else
                x.answer(body=b"x") if x.target == "/" else x.send(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc") or not x.ended()
                if x.target == "/part" else not x.ended())
    client = server.client()
    for path, text in (("/hang", f"http/request failed: {ENDED}"), ("/part", ENDED)):
        before = len(o.seen)
        _, s = stream(client, o.url + "/held", name=path)
        s.wait_body(5)
        waiting = client.send("http/request", params(o.url + path))
        o.wait_seen(before + 2)
        procfs.kill(program_of(server))
        error = client.answer(waiting)["error"]
        assert error["code"] == -32603 and error["message"].endswith(text)
        assert s.finish() == (b"first", ENDED)
        assert body_of(client.call("http/request", params(o.url))) == b"x"


@pytest.mark.parametrize("seen", [0, 1])
def test_a_program_that_hangs_hurts_only_its_connection(server, origins, seen):
    o = origins(lambda x: x.answer(body=b"x"))
    client, other = server.client(), server.client()
    if seen:
        client.call("http/request", params(o.url))
    asked = client.send("http/request", params(o.url, timeoutMs=20000))
    pid = program_of(server)
    os.kill(pid, signal.SIGSTOP)
    assert body_of(other.call("http/request", params(o.url))) == b"x"
    client.close()
    until(lambda: pid not in programs(server), "end of the stopped program")
    assert asked


def test_a_request_is_killed_at_any_moment(server, origins):
    """Kills the program while requests of all kinds are under way: each gets one answer."""
    o = origins(lambda x: x.answer(body=bytes(300000)))
    client = server.client()
    for round_ in range(12):
        before = len(o.seen)
        asked = [client.send("http/request", params(o.url, "POST", str(i), bodyBase64=b64(
            bytes(100000 * i)), streamResponse=i % 2 == 0)) for i in range(3)]
        o.wait_seen(before + round_ % 3)
        for pid in programs(server):
            procfs.kill(pid)
        for ident in asked:
            answer = client.answer(ident)
            assert "result" in answer or answer["error"]["code"] == -32603
    # If the last kill came after the answers, the next request may meet the dead program.
    answer = client.answer(client.send("http/request", params(o.url)))
    if "result" not in answer:
        assert "ended unexpectedly" in answer["error"]["message"]
        answer = client.answer(client.send("http/request", params(o.url)))
    assert body_of(answer["result"]) == bytes(300000)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer cannot work in it")
def test_it_is_confined(server, origins):
    client = server.client()
    client.call("http/request", params(origins(lambda x: x.answer()).url))
    status = procfs.status(program_of(server))
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0 or os.geteuid() != 0
    pid = program_of(server)
    kinds = {os.readlink(f"/proc/{pid}/fd/{fd}").partition(":")[0]
             for fd in os.listdir(f"/proc/{pid}/fd")}
    assert kinds <= {"socket", "pipe", "/dev/null", "anon_inode"}
    with open(f"/proc/{pid}/environ", "rb") as f:
        assert f.read() == b""


# Where it is found.


@pytest.mark.parametrize("how", ["none", "alone"])
def test_without_it_the_method_is_unknown(fleet, tmp_path, how):
    alone = shutil.copy(BINARY, tmp_path) if how == "alone" else BINARY
    server = fleet.start(*(["--http-program", "none"] if how == "none" else []), binary=alone)
    client = server.connect()
    unknown = (-32601, "exec-server stub does not implement `http/request` yet")
    assert client.error("http/request", {}) == unknown
    info = client.initialize()["environmentInfo"]
    assert "httpHeaderEnvVars" not in info["capabilities"]
    assert client.error("http/request", params("http://127.0.0.1:1/")) == unknown


def test_it_is_named_by_an_option_and_announced(fleet, tmp_path, origins):
    place = shutil.copy(PROGRAM, tmp_path / "own")
    server = fleet.start("--http-program", str(place))
    client = server.connect()
    info = client.initialize()["environmentInfo"]
    assert info["capabilities"]["httpHeaderEnvVars"] is True
    o = origins(lambda x: x.answer(body=b"x"))
    assert body_of(client.call("http/request", params(o.url))) == b"x"


def test_an_option_that_cannot_be_used_ends_the_server(tmp_path):
    from harness.server import run  # pylint: disable=import-outside-toplevel
    for path, text in ((tmp_path / "none-there", "No such file or directory (os error 2)"),
                       (tmp_path, "Permission denied (os error 13)")):
        code, _, err = run("--http-program", str(path))
        assert (code, err) == (1, f"Error: cannot use --http-program {path}: {text}\n")


def fake(tmp_path, text):
    path = tmp_path / "fake"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("made, text", [
    ("no program", "the HTTP program cannot be started: Exec format error (os error 8)"),
    ("other", ENDED)])
def test_programs_that_are_none(fleet, tmp_path, made, text):
    path = "/bin/true" if made == "other" else fake(tmp_path, "x")
    client = fleet.start("--http-program", path).client()
    assert client.error("http/request", params("http://127.0.0.1:1/")) == (
        -32603, f"http/request failed: {text}")


# A program that was taken over: what it sends is not believed.

HELLO, REQUEST, HEAD, DATA, END, SLOT, TAKEN = 1, 2, 5, 6, 7, 8, 9
DATA_MAX = 96 << 10


def frame(kind, ident, payload=b""):
    return struct.pack("=III", len(payload), ident, kind) + payload


def slot(size, ident=1):
    return frame(SLOT, ident, struct.pack("=I", size))


def block(data):
    return struct.pack("=I", len(data)) + data


def head(status=200, *fields):
    return struct.pack("=II", status, len(fields)) + b"".join(
        block(name) + block(value) for name, value in fields)


GOOD = b"\0" + block(b"")
HEADED = frame(HEAD, 1, head())
WRONG = {
    "an unknown kind": frame(10, 1),
    "a kind of the server": frame(REQUEST, 1),
    "a length without end": struct.pack("=III", 0xffffffff, 1, DATA),
    "an id that was never given": frame(HEAD, 7, head()),
    "a second greeting": frame(HELLO, 0, block(b"1")),
    "data before the head": frame(DATA, 1, b"x"),
    "an end before the head": frame(END, 1, GOOD),
    "two heads": HEADED * 2,
    "a status that is none": frame(HEAD, 1, head(99)),
    "a name in upper case": frame(HEAD, 1, head(200, (b"X", b"y"))),
    "a value with a line end": frame(HEAD, 1, head(200, (b"x", b"a\nb"))),
    "a value that is no text": frame(HEAD, 1, head(200, (b"x", b"\xff"))),
    "more fields than bytes": frame(HEAD, 1, struct.pack("=II", 200, 1024)),
    "bytes behind a head": frame(HEAD, 1, head() + b"x"),
    "no data": HEADED + frame(DATA, 1),
    "too much data": HEADED + frame(DATA, 1, bytes(DATA_MAX + 1)),
    "a slot before the head": slot(1),
    "an empty slot": HEADED + slot(0),
    "more than a slot holds": HEADED + slot(DATA_MAX + 1),
    "a slot without a length": HEADED + frame(SLOT, 1),
    "a slot of many lengths": HEADED + frame(SLOT, 1, bytes([1] * 8)),
    "slots taken": frame(TAKEN, 1, struct.pack("=I", 1)),
    "a reason that is no text": frame(END, 1, b"\1" + block(b"\xff")),
    "an end that is neither": frame(END, 1, b"\2" + block(b"")),
}


def hostile(tmp_path, frames, version=None):
    """A program that sends these frames for a request."""
    if version is None:
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, check=True)
        version = done.stdout.split()[1]
    path = shutil.copy(FAKE, tmp_path / "fake")
    (tmp_path / "fake.hello").write_bytes(frame(HELLO, 0, block(version)))
    (tmp_path / "fake.frames").write_bytes(frames)
    return str(path)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_program_must_not_send(fleet, tmp_path, wrong):
    server = fleet.start("--http-program", hostile(tmp_path, WRONG[wrong]))
    client = server.client()
    code, text = client.error("http/request", params("http://127.0.0.1:1/"))
    assert (code, text.rpartition(": ")[2]) == (-32603, "the HTTP program sent something wrong")
    client.sync()


def test_data_after_the_end_is_not_believed(fleet, tmp_path):
    """An answer that waits for another one to be sent is complete."""
    frames = b"".join(frame(HEAD, i, head()) + frame(DATA, i, bytes(DATA_MAX)) * 80 +
                      frame(END, i, GOOD) for i in (1, 2)) + frame(DATA, 2, b"more")
    program = hostile(tmp_path, b"")
    os.unlink(program + ".frames")
    os.mkfifo(program + ".frames")
    client = fleet.start("--http-program", program, "--concurrent-requests", "8").client()
    asked = [client.send("http/request", params("http://127.0.0.1:1/")) for _ in range(2)]
    client.barrier()
    Thread(target=Path(program + ".frames").write_bytes, args=[frames], daemon=True).start()
    bodies = [body_of(client.result(a)) for a in asked]
    assert [len(b) for b in bodies] == [80 * DATA_MAX] * 2


@pytest.mark.parametrize("streamed", [False, True])
def test_shared_memory_that_changes_while_it_is_read(fleet, tmp_path, streamed):
    """What arrives is Base64 of the length that was announced, and the server is well."""
    frames = HEADED + slot(DATA_MAX) * 100 + slot(1) + slot(5) + frame(END, 1, GOOD)
    program = hostile(tmp_path, frames)
    Path(program + ".scribble").touch()
    client = fleet.start("--http-program", program).client()
    if streamed:
        _, made = stream(client, "http://127.0.0.1:1/")
        body, error = made.finish()
        assert error is None
    else:
        body = body_of(client.call("http/request", params("http://127.0.0.1:1/")))
    assert len(body) == 100 * DATA_MAX + 6
    client.sync()


def test_a_program_of_another_version(fleet, tmp_path):
    server = fleet.start("--http-program", hostile(tmp_path, b"", b"0.0.1"))
    assert server.client().error("http/request", params("http://127.0.0.1:1/")) == (
        -32603, "http/request failed: the HTTP program is not of the server's version")
