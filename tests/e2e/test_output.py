"""Notifications, sequence numbers and process/read."""

import re
import signal

import pytest

from harness import procfs
from harness.rpc import b64, unb64
from harness.waiting import until

FOREVER = 2**64 - 1


def chunks(result):
    return [(c["seq"], c["stream"], unb64(c["chunk"])) for c in result["chunks"]]


def paused(client, script, **options):
    """A process that waits for a line between its steps."""
    return client.start(script.replace("PAUSE", "read go"), pipeStdin=True, **options)


def test_silent_process(client):
    process = client.run("true")
    assert [(seq, kind) for seq, kind, _ in process.events] == [(1, "exited"), (2, "closed")]


def test_both_streams(client):
    process = client.run("echo out; echo err >&2")
    assert process.output("stdout") == b"out\n"
    assert process.output("stderr") == b"err\n"
    assert [seq for seq, _, _ in process.events] == [1, 2, 3, 4]
    assert [kind for _, kind, _ in process.events[2:]] == ["exited", "closed"]


def test_output_before_exit_is_numbered_before_it(client):
    """What was readable when the leader was reaped precedes exited."""
    for i in range(100):
        process = client.run(f"echo {i}; echo {i} >&2; printf tail")
        assert process.output("stdout") == b"%d\ntail" % i
        assert [kind for _, kind, _ in process.events[-2:]] == ["exited", "closed"]
        assert process.events[-2][2] == process.exited


def test_large_output_precedes_exit(client):
    for size in (65535, 65536, 65537, 200000):
        process = client.run(f"head -c {size} /dev/zero; head -c {size} /dev/zero >&2")
        assert len(process.output("stdout")) == len(process.output("stderr")) == size
        assert [kind for _, kind, _ in process.events[-2:]] == ["exited", "closed"]


def test_end_that_comes_with_the_output(server, tmp_path):
    """A server that looks late finds both at once, and loses nothing."""
    client, gate = server.client(), tmp_path / "gate"
    process = client.start(f"echo $$; until [ -e {gate} ]; do sleep 0.02; done; "
                           "head -c 30000 /dev/zero; printf end; printf tail >&2; exit 3")
    pid = int(client.wait_output(process, "\n"))
    server.send_signal(signal.SIGSTOP)
    gate.touch()
    procfs.wait_gone(pid)
    server.send_signal(signal.SIGCONT)
    client.wait_closed(process)
    assert process.output("stdout") == b"%d\n%send" % (pid, bytes(30000))
    assert process.output("stderr") == b"tail" and process.exit_code == 3
    assert [kind for _, kind, _ in process.events[-2:]] == ["exited", "closed"]


def test_binary_output(client):
    data = bytes(range(256)) * 50
    process = client.start(f"head -c {len(data)}", pipeStdin=True)
    client.write(process, data)
    client.wait_closed(process)
    assert process.output("stdout") == data


def test_first_byte_is_not_delayed(client):
    process = paused(client, "printf a; PAUSE; printf b; PAUSE")
    client.wait_output(process, "a")
    client.write(process, "\n")
    client.wait_output(process, "ab")
    client.write(process, "\n")
    client.wait_closed(process)


def test_late_output_of_a_child_that_outlives_the_leader(client, tmp_path):
    gate = tmp_path / "gate"
    process = client.start(
        f"(while [ ! -e {gate} ]; do sleep 0.02; done; echo late) & echo early; exit 4")
    client.wait_exited(process)
    assert process.closed is None and process.exit_code == 4
    result = client.read(process)
    assert result["exited"] and not result["closed"] and result["exitCode"] == 4
    # Terminate of an exited process kills nothing.
    assert client.terminate(process) == {"running": False}
    assert client.start_error("true", processId=process.name) == (
        -32600, f"process {process.name} already exists")
    gate.touch()
    client.wait_closed(process)
    assert process.output() == b"early\nlate\n"
    assert process.exited["seq"] == 2 and process.closed["seq"] == 4


def test_streams_closed_before_exit(client):
    process = client.start("exec >&- 2>&-; read go; exit 6", pipeStdin=True)
    result = client.read(process, waitMs=100)
    assert not result["exited"] and not result["closed"]
    client.write(process, "\n")
    client.wait_closed(process)
    assert process.exit_code == 6
    assert [seq for seq, _, _ in process.events] == [1, 2]


@pytest.mark.parametrize("code", [0, 1, 2, 7, 126, 127, 128, 137, 254, 255])
@pytest.mark.parametrize("tty", [False, True])
def test_exit_codes(client, code, tty):
    process = client.run(f"exit {code}", tty=tty)
    assert process.exit_code == code
    assert process.exited.get("signal") is None
    result = client.read(process)
    assert result["exitCode"] == code and result.get("signal") is None


SIGNALS = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("ILL", 4), ("ABRT", 6), ("FPE", 8), ("KILL", 9),
           ("USR1", 10), ("SEGV", 11), ("USR2", 12), ("PIPE", 13), ("ALRM", 14), ("TERM", 15),
           ("XCPU", 24), ("SYS", 31)]


@pytest.mark.parametrize("name, number", SIGNALS)
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])
def test_exit_by_signal(client, name, number, tty):
    process = client.run(f"ulimit -c 0; kill -{name} $$; sleep 1000", tty=tty)
    assert process.exit_code == 128 + number
    assert process.exited["signal"] == f"SIG{name}"
    result = client.read(process)
    assert (result["exitCode"], result["signal"]) == (128 + number, f"SIG{name}")


@pytest.mark.parametrize("number", [32, 33, 34, 64])
def test_exit_by_real_time_signal(client, number):
    process = client.run(f"kill -{number} $$; sleep 1000")
    assert process.exit_code == 128 + number
    assert re.fullmatch(r"SIG[A-Z0-9]+([+-][0-9]+)?", process.exited["signal"])


# process/read

def test_read_of_a_finished_process(client):
    process = client.run("echo out; exit 3")
    result = client.read(process)
    assert chunks(result) == [(1, "stdout", b"out\n")]
    assert {k: result[k] for k in ("nextSeq", "exited", "exitCode", "closed", "failure",
                                   "sandboxDenied")} == {
        "nextSeq": 4, "exited": True, "exitCode": 3, "closed": True, "failure": None,
        "sandboxDenied": False}


def test_read_of_a_running_process(client):
    process = paused(client, "echo out; PAUSE")
    client.wait_output(process, "out\n")
    result = client.read(process)
    assert chunks(result) == [(1, "stdout", b"out\n")]
    assert (result["nextSeq"], result["exited"], result["exitCode"], result["closed"]) == (
        2, False, None, False)
    client.terminate(process)


def test_read_agrees_with_notifications(client):
    process = client.run("for i in 1 2 3 4 5; do echo $i; echo $i >&2; done; "
                         "head -c 300000 /dev/zero")
    told = [(seq, kind, data) for seq, kind, data in process.events if isinstance(data, bytes)]
    result = client.read(process)
    assert chunks(result) == told
    for after in range(0, process.next_seq + 1):
        assert chunks(client.read(process, afterSeq=after)) == [c for c in told if c[0] > after]


@pytest.fixture
def steps(client):
    """A closed process with chunks of 10, 20, 30 and 40 bytes, numbered 1 to 4."""
    process = paused(client, "".join(f"printf %0{n}d 0; PAUSE; " for n in (10, 20, 30, 40)))
    for i in range(4):
        client.wait(lambda n=i: len(process.events) == n + 1, "a chunk")
        client.write(process, "\n")
    client.wait_closed(process)
    assert process.closed["seq"] == 6
    return process


@pytest.mark.parametrize("after, most, seqs, next_seq", [
    (0, None, [1, 2, 3, 4], 7), (2, None, [3, 4], 7), (4, None, [], 7), (99, None, [], 7),
    (None, None, [1, 2, 3, 4], 7),
    (0, 0, [1], 2), (0, 1, [1], 2), (0, 10, [1], 2), (0, 29, [1], 2), (0, 30, [1, 2], 3),
    (0, 59, [1, 2], 3), (0, 60, [1, 2, 3], 4), (0, 100, [1, 2, 3, 4], 5),
    (0, 10**15, [1, 2, 3, 4], 5), (2, 0, [3], 4), (3, 5, [4], 5), (4, 0, [], 7), (4, 10, [], 7),
    (6, 1, [], 7), (FOREVER, 1, [], 7), (FOREVER, None, [], 7), (0, FOREVER, [1, 2, 3, 4], 5),
])
def test_paging(client, steps, after, most, seqs, next_seq):
    result = client.read(steps, afterSeq=after, maxBytes=most)
    assert [c["seq"] for c in result["chunks"]] == seqs
    assert result["nextSeq"] == next_seq
    assert result["closed"] and result["exited"]


def test_paging_reaches_everything(client, steps):
    after, seen = 0, []
    while True:
        result = client.read(steps, afterSeq=after, maxBytes=25)
        if not result["chunks"]:
            break
        seen += [c["seq"] for c in result["chunks"]]
        after = result["nextSeq"] - 1
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize("field", ["afterSeq", "maxBytes", "waitMs"])
@pytest.mark.parametrize("value, text", [
    ("1.0", "invalid number"), ("1e2", "invalid number"), ("-1", "invalid number"),
    ("18446744073709551616", "invalid number"), ("1.5", "invalid number"),
    ('"1"', None), ("true", None), ("[]", None)])
def test_bad_numbers(client, field, value, text):
    client.send_raw('{"id":700,"method":"process/read","params":{"processId":"x","%s":%s}}'
                    % (field, value))
    error = client.answer(700)["error"]
    assert error["code"] == -32602
    assert text is None or error["message"] == text


@pytest.mark.parametrize("value", ["-0", "0", "null", "18446744073709551615"])
@pytest.mark.parametrize("field", ["afterSeq", "maxBytes", "waitMs"])
def test_good_numbers(client, steps, field, value):
    client.send_raw('{"id":700,"method":"process/read","params":{"processId":"%s","%s":%s}}'
                    % (steps.name, field, value))
    assert client.answer(700)["result"]["closed"]


def test_unknown_process(client):
    assert client.error("process/read", {"processId": "é\n"}) == (
        -32600, "unknown process id é\n")
    assert client.error("process/read", {}) == (-32602, "missing field `processId`")
    assert client.error("process/read", None) == (
        -32602, "invalid type: null, expected struct ReadParams")


def test_wait_returns_on_output(client):
    process = paused(client, "PAUSE; echo x; PAUSE")
    waiting = client.send("process/read", {"processId": process.name, "waitMs": FOREVER})
    client.write(process, "\n")
    result = client.result(waiting)
    assert chunks(result) == [(1, "stdout", b"x\n")] and result["nextSeq"] == 2
    # Nothing new after 1: waits again.
    waiting = client.send("process/read", {"processId": process.name, "afterSeq": 1,
                                           "waitMs": 10**6})
    client.barrier()
    assert client.answers == {}
    client.write(process, "\n")
    result = client.result(waiting)
    assert result["exited"] and result["chunks"] == []
    client.wait_closed(process)


def test_wait_with_waiting_output_returns_at_once(client):
    process = paused(client, "echo x; PAUSE")
    client.wait_output(process, "x\n")
    assert chunks(client.read(process, waitMs=FOREVER)) == [(1, "stdout", b"x\n")]
    client.terminate(process)


def test_wait_after_exit_but_before_close(client, tmp_path):
    gate = tmp_path / "gate"
    process = client.start(f"(while [ ! -e {gate} ]; do sleep 0.02; done) & exit 0")
    client.wait_exited(process)
    # afterSeq below the seq of exited: returns at once, every time.
    for _ in range(2):
        result = client.read(process, afterSeq=0, waitMs=10**6)
        assert result["exited"] and not result["closed"] and result["nextSeq"] == 2
    # At the seq of exited it waits for the close.
    waiting = client.send("process/read", {"processId": process.name, "afterSeq": 1,
                                           "waitMs": 10**6})
    client.barrier()
    assert client.answers == {}
    gate.touch()
    assert client.result(waiting)["closed"]


def test_wait_on_a_closed_process_returns_at_once(client, steps):
    assert client.read(steps, afterSeq=FOREVER, waitMs=FOREVER)["closed"]


def test_wait_for_the_end(client):
    process = paused(client, "echo a; PAUSE; echo b; PAUSE; exit 9")
    waiting = client.send("process/read", {"processId": process.name, "afterSeq": FOREVER,
                                           "waitMs": FOREVER})
    client.write(process, "\n\n")
    result = client.result(waiting)
    assert result["closed"] and result["exitCode"] == 9 and result["chunks"] == []


# Retained output

def test_newest_mebibyte_is_kept(client):
    process = client.start("head -c 3000000 /dev/zero; printf END", sink=lambda *_: None)
    client.wait_closed(process)
    result = client.read(process)
    kept = chunks(result)
    total = sum(len(data) for _, _, data in kept)
    assert 1048576 - 65536 < total <= 1048576
    assert kept[-1][2].endswith(b"END")
    seqs = [seq for seq, _, _ in kept]
    assert seqs == list(range(seqs[0], process.exited["seq"]))


def test_exactly_a_mebibyte_is_kept_whole(client):
    process = client.run("head -c 1048576 /dev/zero")
    assert sum(len(data) for _, _, data in chunks(client.read(process))) == 1048576


def test_both_streams_share_the_ring(client):
    process = client.start("echo first >&2; head -c 3000000 /dev/zero", sink=lambda *_: None)
    client.wait_closed(process)
    assert {stream for _, stream, _ in chunks(client.read(process))} == {"stdout"}


def test_at_most_50000_chunks_are_kept(client):
    """Single bytes, each read before the next is written, so that each is a chunk."""
    count = 51000
    sizes = []
    process = client.start(f"exec dd bs=1 count={count} status=none", pipeStdin=True,
                           sink=lambda _seq, _stream, data: sizes.append(len(data)))
    client.write(process, b"x" * count)
    client.wait_closed(process)
    assert sum(sizes) == count
    result = client.read(process)
    assert len(result["chunks"]) == min(len(sizes), 50000)
    assert result["chunks"][-1]["seq"] == len(sizes)


def test_seq_is_contiguous_under_load(client):
    """The order is checked by the client for every notification."""
    processes = [client.start("for i in $(seq 300); do echo $i; echo $i >&2; done")
                 for _ in range(8)]
    expected = b"".join(b"%d\n" % i for i in range(1, 301))
    for process in processes:
        client.wait_closed(process)
        assert process.output("stdout") == process.output("stderr") == expected


def test_output_stays_readable_after_close(client):
    process = client.run(["/bin/echo", "kept"])
    for _ in range(3):
        assert chunks(client.read(process)) == [(1, "stdout", b"kept\n")]
    assert b64("kept\n") == client.read(process)["chunks"][0]["chunk"]


def test_no_zombie_after_exit(server):
    client = server.client()
    for _ in range(50):
        client.run("true")
    until(lambda: not server.zombies(), "reaped children")
