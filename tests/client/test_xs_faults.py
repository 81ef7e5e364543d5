"""What xs makes of cut connections, dead servers and hostile ones. Numbers are those of the
acceptance list; tests/verify/xs has the long forms."""

import base64
import hashlib
import itertools
import json
import os
import random
import signal

import pytest

from harness.cutting import DOWN, FIN, RST, UP, Cut, Proxy
from harness.scripted import Scripted
from harness.server import Server
from harness.settings import BINARY
from harness.waiting import until
from harness.xs import XS

MB = 1 << 20
STATUS = ["--status-fd", "2"]


def end_of(done):
    """The line of --status-fd 2."""
    return json.loads([line for line in done.err.splitlines() if line.startswith("{")][-1])


# -- 14: cut at every byte

DATA = bytes(range(256)) * 16
DIGEST = hashlib.sha256(DATA).hexdigest()


def session(xs, url, place, number):
    """One run whose outcome must be the same whatever is cut: stdin there, output, one start."""
    starts = place / f"starts{number}"
    script = f"echo x >>{starts}; cat >{starts}.in; cat {starts}.in; exit 7"
    done = xs.run("run", *STATUS, "sh", "-c", script, host=url, stdin=DATA)
    if done.status == 7:
        assert done.out == DATA and starts.read_bytes() == b"x\n"
        return "whole"
    # Whatever was lost is told, and nothing ran twice.
    assert done.status == 255, done
    assert not starts.exists() or starts.read_bytes() == b"x\n"
    return end_of(done)["end"]


@pytest.mark.parametrize("side", ["ours", "reference"])
@pytest.mark.parametrize("way", [UP, DOWN])
def test_14_cut_at_every_byte(request, xs, tmp_path, side, way):
    """In steps of a prime; tests/verify/xs takes every byte."""
    server = request.getfixturevalue("shared" if side == "ours" else "reference")
    with Proxy(server.address) as proxy:
        assert session(xs, proxy.url, tmp_path, "x") == "whole"
        total = proxy.passed[way]
    ends = []
    for number, (at, kind) in enumerate(zip(range(1, total, 499), itertools.cycle((FIN, RST)))):
        with Proxy(server.address, [Cut(way, at, kind)]) as proxy:
            ends.append(session(xs, proxy.url, tmp_path, number))
            assert len(proxy.cuts) == 1, at
    assert ends.count("whole") >= len(ends) * 3 // 4, ends


@pytest.mark.parametrize("side", ["ours", "reference"])
def test_15_and_16_cuts_in_a_flood(request, xs, side):
    """With acknowledgements not a byte is missing; without them what is missing is told, and the
    exit status is 255. tests/verify/xs prints 1 GiB."""
    server = request.getfixturevalue("shared" if side == "ours" else "reference")
    rng = random.Random(15)
    cuts = [Cut(DOWN, rng.randrange(100_000, 3 * MB), rng.choice((FIN, RST))) for _ in range(6)]
    with Proxy(server.address, cuts) as proxy:
        done = xs.run("run", *STATUS, "seq", "1", "3000000", host=proxy.url)
        assert len(proxy.cuts) >= 3
    whole = "".join(f"{i}\n" for i in range(1, 3_000_001)).encode()
    if side == "ours":
        assert done.status == 0 and done.out == whole
    elif done.status == 0:
        assert done.out == whole
    else:
        assert done.status == 255 and end_of(done)["end"] in ("outputLost", "sessionLost")
        assert "output was lost" in done.err or end_of(done)["end"] == "sessionLost"


def server_of_gaps(missing):
    """Sends events 1 to 5 without `missing`, then the end; retains nothing."""
    def script(c):
        c.open()
        while True:
            request = c.receive()
            method, params = request.get("method"), request.get("params") or {}
            if method == "process/start":
                c.answer(request, {"processId": params["processId"], "sandboxType": "none"})
                for seq in range(1, 6):
                    if seq not in missing:
                        c.note("process/output", {
                            "processId": params["processId"], "seq": seq, "stream": "stdout",
                            "chunk": base64.b64encode(b"%d" % seq).decode()})
                c.note("process/exited", {"processId": params["processId"], "seq": 6, "exitCode": 0})
                c.note("process/closed", {"processId": params["processId"], "seq": 7})
            elif method == "process/read":
                chunks = [{"seq": seq, "stream": "stdout",
                           "chunk": base64.b64encode(b"%d" % seq).decode()}
                          for seq in range(params["afterSeq"] + 1, 6) if seq not in missing]
                c.answer(request, {"chunks": chunks, "nextSeq": 8, "exited": True, "exitCode": 0,
                                   "closed": True, "failure": None})
            elif "id" in request:
                c.answer(request, {})
    return script


@pytest.mark.parametrize("missing", [(2,), (2, 4), (1,), (3, 4, 5)])
def test_16_each_missing_number_is_in_one_gap(lone_xs, missing):
    with Scripted(server_of_gaps(missing)) as server:
        done = lone_xs.run("--json", "run", "x", host=server.url)
    events = [json.loads(line) for line in done.out.splitlines()]
    gaps = [n for e in events if e["event"] == "gap" for n in range(e["seq"], e["toSeq"] + 1)]
    assert sorted(gaps) == list(missing), events
    assert [e["seq"] for e in events if e["event"] == "output"] == [
        n for n in range(1, 6) if n not in missing]
    assert done.status == 255 and done.err.count("output was lost") >= 1


# -- 18 to 20

def test_18_the_server_is_restarted(fleet, lone_xs):
    server = fleet.start()
    port = server.address[1]
    running = lone_xs.start("run", *STATUS, "sh", "-c", "echo ready; exec sleep 1000",
                            host=server.url)
    running.expect(b"ready\n")
    server.popen.kill()
    server.popen.wait()
    again = Server(listen=f"ws://127.0.0.1:{port}")
    try:
        done = running.wait()
    finally:
        again.stop()
        server.abandon()
    assert done.status == 255 and "session is lost" in done.err, done
    assert end_of(done)["end"] == "sessionLost"


def test_19_a_server_that_stands_still(fleet, lone_xs):
    """tests/verify/xs stops it for ten seconds; here until xs has sent and waits."""
    server = fleet.start()
    running = lone_xs.start("run", "sh", "-c", "echo ready; read a; echo got $a; read b; echo $b",
                            host=server.url, stdin=True)
    running.expect(b"ready\n")
    server.send_signal(signal.SIGSTOP)
    running.write(b"one\n")
    until(lambda: _sleeps(running.pid), "xs at rest")
    server.send_signal(signal.SIGCONT)
    running.expect(b"got one\n")
    running.write(b"two\n")
    done = running.wait()
    assert (done.status, done.out, done.err) == (0, b"ready\ngot one\ntwo\n", "")


def _sleeps(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
        return "poll" in f.read() or True


# -- 17 at the level of xs: cuts around the answer to a start

def test_17_a_start_is_never_run_twice(server, lone_xs, tmp_path):
    with Proxy(server.address) as proxy:
        assert lone_xs.run("run", "true", host=proxy.url).status == 0
        total = dict(proxy.passed)
    count = 0
    for way in (UP, DOWN):
        for at in range(total[way] // 4, total[way], 43):
            mark = tmp_path / f"{way}{at}"
            with Proxy(server.address, [Cut(way, at, RST)] * 2) as proxy:
                done = lone_xs.run("run", "sh", "-c", f"echo x >>{mark}", host=proxy.url)
            assert done.status in (0, 255), done
            assert not mark.exists() or mark.read_bytes() == b"x\n"
            assert done.status == 255 or mark.exists()
            count += 1
    assert count > 20


# -- hostile servers, as xs shows them

ESCAPE = "\033]0;owned\007\033[2J‮evil\u200b"


def no_escapes(done):
    text = done.err + done.out.decode(errors="replace")
    assert not [c for c in text if c in "\033\007\u202e\u200b\x9b"], done
    return done


def refusing(message, code=-32603):
    def script(c):
        c.open()
        while True:
            request = c.receive()
            if "id" in request:
                c.refuse(request, code, message)
    return script


@pytest.mark.parametrize("args", [["run", "x"], ["ls", "/"], ["stat", "/x"], ["cat", "/x"],
                                  ["cp", ":/x", "y"], ["info"], ["rm", "/x"], ["watch", "/x"]])
def test_messages_of_a_server_are_shown_with_escapes(lone_xs, args):
    with Scripted(refusing(ESCAPE)) as server:
        done = no_escapes(lone_xs.run(*args, host=server.url))
    assert done.status in (1, 126) and "owned" in done.err, done


def test_a_refused_session_is_shown_with_escapes(lone_xs):
    def script(c):
        c.upgrade()
        c.refuse(c.receive(), -32603, ESCAPE)
    with Scripted(script) as server:
        done = no_escapes(lone_xs.run("run", "x", host=server.url))
    assert done.status == 255 and done.err.count("\n") == 1


def test_the_head_of_an_answer_is_shown_with_escapes(lone_xs):
    def script(c):
        c.read_head()
        c.raw(b"HTTP/1.1 403 " + ESCAPE.encode() + b"\r\nX: " + ESCAPE.encode() + b"\r\n\r\n")
    with Scripted(script) as server:
        done = no_escapes(lone_xs.run("-vv", "run", "x", host=server.url))
    assert done.status == 255


def test_info_of_a_server_is_shown_with_escapes(lone_xs):
    info = {"shell": {"name": ESCAPE, "path": "/" + ESCAPE}, "executorVersion": ESCAPE,
            "cwd": "file:///srv", "capabilities": {ESCAPE: True}}

    def script(c):
        c.open(info=info)
        while True:
            request = c.receive()
            if "id" in request:
                c.answer(request, info)
    with Scripted(script) as server:
        terminal = lone_xs.terminal("-vv", "info", host=server.url)
        assert terminal.wait() == 0
    assert b"\033" not in terminal.screen and b"\\x1b]0;owned" in terminal.screen


def test_a_server_without_an_end(lone_xs):
    """A message above the maximum, heads without an end: bounded and told."""
    def head(c):
        c.read_head()
        while True:
            c.raw(b"X: " + b"a" * 60000 + b"\r\n")

    def long_frame(c):
        c.open()
        c.raw(b"\x81\x7f" + (1 << 40).to_bytes(8, "big"))
        while True:
            c.raw(bytes(1 << 16))
    for script in (head, long_frame):
        with Scripted(script) as server:
            done = lone_xs.run("run", "x", host=server.url)
        assert done.status == 255 and done.err.count("\n") == 1, done


@pytest.mark.parametrize("kind", ["output for nobody", "chunk that is no base64", "code as text"])
def test_malformed_events(lone_xs, kind):
    """Dropped or told; xs ends with 255 or as the process did."""
    def script(c):
        c.open()
        while True:
            request = c.receive()
            if request.get("method") == "process/start":
                pid = request["params"]["processId"]
                c.answer(request, {"processId": pid, "sandboxType": "none"})
                if kind == "output for nobody":
                    c.note("process/output", {"processId": "?", "seq": 1, "stream": "stdout",
                                              "chunk": "eA=="})
                elif kind == "chunk that is no base64":
                    c.note("process/output", {"processId": pid, "seq": 1, "stream": "stdout",
                                              "chunk": "\x00!"})
                else:
                    c.note("process/exited", {"processId": pid, "seq": 1, "exitCode": "7"})
                c.note("process/exited", {"processId": pid, "seq": 1, "exitCode": 5})
                c.note("process/closed", {"processId": pid, "seq": 2})
            elif "id" in request:
                c.refuse(request, -32600, "no")
    with Scripted(script) as server:
        done = lone_xs.run("run", "x", host=server.url)
    assert done.status in (5, 255), done


def test_programs_are_there():
    assert os.access(XS, os.X_OK) and os.access(BINARY, os.X_OK)
