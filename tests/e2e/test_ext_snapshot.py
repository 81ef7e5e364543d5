"""process/snapshot: head and tail of each stream, counted to the byte."""

import os

import pytest

from harness import procfs
from harness.rpc import unb64
from harness.settings import SANITIZED
from harness.waiting import until

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
FIRST = 10**14  # lines of 15 digits and a newline: what a byte is tells where it is
LINE = 16


def lines(size, skip=0):
    """A command that prints size bytes, from line number skip on."""
    assert size % LINE == 0
    return f"seq {FIRST + skip} {FIRST + skip + size // LINE - 1}"


def expected(start, end):
    """The bytes from start to end of what lines() prints."""
    low, high = start // LINE, -(-end // LINE)
    text = "".join(f"{FIRST + i}\n" for i in range(low, high)).encode()
    return text[start - low * LINE:end - low * LINE]


def check(got, stream, total, cap=MIB, source=expected):
    """A stream of a snapshot that keeps cap bytes."""
    data, counts = unb64(got[stream]), got["streams"][stream]
    assert set(counts) == {"headBytes", "tailBytes", "omittedBytes", "totalBytes"}
    head, tail = counts["headBytes"], counts["tailBytes"]
    assert counts["totalBytes"] == total
    assert counts["omittedBytes"] == total - head - tail == max(0, total - cap)
    if total > cap:
        assert (head, tail) == (cap // 2, cap - cap // 2)
    assert len(data) == head + tail
    assert data[:head] == source(0, head)
    assert data[head:] == source(total - tail, total)


NONE = {"headBytes": 0, "tailBytes": 0, "omittedBytes": 0, "totalBytes": 0}


def test_shape(client):
    process = client.run("printf out; printf err >&2; exit 2")
    got = client.ask("snapshot", process)
    assert set(got) == {"stdout", "stderr", "terminal", "truncated", "streams", "running",
                        "exited", "exitCode", "closed", "sandboxDenied", "nextSeq"}
    assert (unb64(got["stdout"]), unb64(got["stderr"]), got["terminal"]) == (b"out", b"err", "")
    assert got["streams"]["stdout"] == {"headBytes": 3, "tailBytes": 0, "omittedBytes": 0,
                                        "totalBytes": 3}
    assert got["streams"]["terminal"] == NONE
    assert got["truncated"] is False and got["running"] is False
    assert got["exited"] and got["closed"] and got["exitCode"] == 2
    assert got["sandboxDenied"] is False
    assert got["nextSeq"] == process.closed["seq"] + 1


def test_terminal(client):
    process = client.run("stty -opost; echo out; echo err >&2", tty=True)
    got = client.ask("snapshot", process)
    assert (got["stdout"], got["stderr"]) == ("", "")
    assert unb64(got["terminal"]) == b"out\nerr\n"
    assert got["streams"]["terminal"]["totalBytes"] == 8
    assert got["streams"]["stdout"] == got["streams"]["stderr"] == NONE


def test_takes_no_number_and_no_output(client):
    process = client.start("echo x; read go", pipeStdin=True)
    client.wait_output(process, "x\n")
    before = client.read(process)
    first = client.ask("snapshot", process)
    assert client.ask("snapshot", process) == first and first["running"] is True
    assert client.read(process) == before
    client.terminate(process)


@pytest.mark.parametrize("size", [MIB - LINE, MIB, MIB + LINE, 3 * MIB])
def test_around_the_cap(client, size):
    process = client.run(lines(size), sink=lambda *_: None)
    got = client.ask("snapshot", process)
    check(got, "stdout", size)
    assert got["truncated"] == (size > MIB)


@pytest.mark.parametrize("limit", [0, 1, 2, 17, 1000, 65537, 2**32, 2**64 - 1])
def test_max_bytes(client, limit):
    """Of each stream at most so many bytes, half of them from its beginning."""
    process = client.run(f"{lines(4 * MIB)}; {lines(160)} >&2", sink=lambda *_: None)
    got = client.ask("snapshot", process, maxBytes=limit)
    check(got, "stdout", 4 * MIB, min(limit, MIB))
    check(got, "stderr", 160, min(limit, MIB))
    assert got["truncated"] is True


def test_streams_do_not_displace_each_other(client):
    """Both streams flood in turns: each has its own head and tail."""
    part = 2 * MIB
    script = "; ".join(f"{lines(part, skip=i * part // LINE)}; "
                       f"{lines(part, skip=i * part // LINE)} >&2" for i in range(3))
    got = client.ask("snapshot", client.run(script, sink=lambda *_: None))
    check(got, "stdout", 3 * part)
    check(got, "stderr", 3 * part)


def test_tail_of_a_stream_that_fell_silent(client):
    """Its last bytes survive a flood of the other one, in parts and as a whole."""
    size = 700 * KIB
    script = f"{lines(size)} >&2; " + "; ".join([lines(MIB // 4)] * 9)
    process = client.run(script, sink=lambda *_: None)
    got = client.ask("snapshot", process)
    check(got, "stderr", size)
    assert got["streams"]["stderr"]["omittedBytes"] == 0


def test_many_small_chunks(client):
    """More chunks than are retained for process/read."""
    script = ("i=0; while [ $i -lt 60000 ]; do echo $((100000 + i)); i=$((i+1)); done; "
              "echo last >&2")
    process = client.run(script, sink=lambda *_: None)
    got = client.ask("snapshot", process)
    text = "".join(f"{100000 + i}\n" for i in range(60000)).encode()
    assert unb64(got["stdout"]) == text and unb64(got["stderr"]) == b"last\n"
    assert got["truncated"] is False


def test_while_it_prints(client):
    process = client.start(f"{lines(2 * MIB)}; read go; {lines(2 * MIB, skip=2 * MIB // LINE)}",
                           pipeStdin=True, sink=lambda *_: None)
    until(lambda: client.ask("snapshot", process)["streams"]["stdout"]["totalBytes"] == 2 * MIB,
          "the first part")
    check(client.ask("snapshot", process), "stdout", 2 * MIB)
    client.write(process, "go\n")
    client.wait_closed(process)
    check(client.ask("snapshot", process), "stdout", 4 * MIB)


@pytest.mark.parametrize("cap", [64 * KIB, 2 * MIB])
def test_retained_output(fleet, cap):
    """--retained-output is the cap of a stream and of process/read."""
    client = fleet.start("--retained-output", str(cap)).client()
    process = client.run(f"{lines(3 * MIB)}; {lines(320)} >&2", sink=lambda *_: None)
    got = client.ask("snapshot", process)
    check(got, "stdout", 3 * MIB, cap)
    check(got, "stderr", 320, cap)
    chunks = client.read(process)["chunks"]
    assert 0 < sum(len(unb64(c["chunk"])) for c in chunks) <= cap


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.limit(1800)
def test_a_gibibyte(fleet, tmp_path, tty):
    """Nobody reads meanwhile; memory stays small; stderr is whole."""
    server = fleet.start("--session-ttl", "600")
    client = server.client()
    client.run("true")
    before = int(procfs.status(server.pid)["VmHWM"].split()[0]) * KIB
    total = GIB // (16 if tty else 1)
    half = total // 2
    done = tmp_path / "done"
    script = (f"echo one >&2; {lines(half)}; echo two >&2; {lines(half, skip=half // LINE)}; "
              f"echo three >&2; echo >{done}")
    if tty:
        script = f"stty -opost; {lines(total)}; echo >{done}"
    process = client.start(script, tty=tty, sink=lambda *_: None)
    client.transport.reset()
    until(lambda: os.path.exists(done), "the end of the output", 240)
    again = server.connect()
    params = {"clientName": "e2e", "resumeSessionId": client.session}
    again.make_sink = lambda name: lambda *_: None
    until(lambda: "result" in again.answer(again.send("initialize", params)), "the resume")
    again.notify("initialized")
    assert again.ask("wait", process)["exitCode"] == 0
    got = again.ask("snapshot", process)
    check(got, "terminal" if tty else "stdout", total)
    if not tty:
        assert unb64(got["stderr"]) == b"one\ntwo\nthree\n"
        assert got["streams"]["stderr"] == {"headBytes": 14, "tailBytes": 0, "omittedBytes": 0,
                                            "totalBytes": 14}
    entry, = [p for p in again.call("process/list")["processes"]
              if p["processId"] == process.name]
    assert entry["bytes"] == total + (0 if tty else 14)
    if not SANITIZED:
        peak = int(procfs.status(server.pid)["VmHWM"].split()[0]) * KIB
        # The replay buffer, head and tail of each stream, and one answer with its Base64.
        assert peak - before < 12 * MIB


def test_output_that_was_dropped(fleet):
    """A closed process that lost its output says so in the counts."""
    client = fleet.start("--closed-output-max", "0").client()
    process = client.run(f"{lines(2 * MIB)}; echo err >&2", sink=lambda *_: None)
    got = client.ask("snapshot", process)
    assert (got["stdout"], got["stderr"]) == ("", "")
    assert got["truncated"] is True
    assert got["streams"]["stdout"] == {"headBytes": 0, "tailBytes": 0, "omittedBytes": 2 * MIB,
                                        "totalBytes": 2 * MIB}
    assert got["streams"]["stderr"] == {"headBytes": 0, "tailBytes": 0, "omittedBytes": 4,
                                        "totalBytes": 4}


@pytest.mark.parametrize("params, text", [
    ({}, "missing field `processId`"),
    ({"processId": "p", "maxBytes": -1}, "invalid number"),
    ({"processId": "p", "maxBytes": "1"}, 'invalid type: string "1", expected usize'),
])
def test_bad_params(client, params, text):
    assert client.error("process/snapshot", params) == (-32602, text)


def test_unknown_process(client):
    assert client.refusal("snapshot", "none") == (-32600, "unknown process id none")
