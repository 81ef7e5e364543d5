"""How much output of closed processes the server keeps, and for how long."""

import pytest

from harness.rpc import unb64
from harness.sessions import resume
from harness.settings import SANITIZED
from harness.waiting import until

MIB = 1 << 20
SMALL = 4 * MIB
LONG = ("--session-ttl", "3600", "--closed-retention", "3600")  # however slow the machine
SHARED = (*LONG, "--closed-output-max", str(SMALL), "--retained-output", "65536")
LOST = "output of the process was dropped: closed processes retain at most {} bytes"


def kept(client, process, most=64 * MIB):
    """Bytes of retained output, and the answer: all or nothing, and a loss is told."""
    result = client.read_any(process)
    size = sum(len(unb64(c["chunk"])) for c in result["chunks"])
    assert result["failure"] == (None if size else LOST.format(most))
    return size, result


def fill(client, count, first=0):
    """Closed processes that retain 1 MiB each, oldest first."""
    processes = []
    for i in range(first, first + count):
        process = client.start(f"head -c 1048576 /dev/zero; exit {i % 100}", sink=lambda *_: None)
        processes.append(client.wait_closed(process))
    return processes


@pytest.mark.limit(1800)
def test_total_of_closed_processes_is_bounded(fleet):
    """64 MiB per server; the longest closed lose theirs first, exit code and seq stay."""
    server = fleet.start(*LONG)
    client = server.client()
    sizes = []
    running = client.start("head -c 1048576 /dev/zero; read go", pipeStdin=True,
                           sink=lambda _seq, _stream, data: sizes.append(len(data)))
    client.wait(lambda: sum(sizes) == MIB, "output")
    before = server.rss()
    processes = fill(client, 80)
    sizes = []
    for i, process in enumerate(processes):
        size, result = kept(client, process)
        sizes.append(size)
        assert result["closed"] and result["exitCode"] == i % 100
        assert result["nextSeq"] == process.closed["seq"] + 1
    assert sizes[0] == 0 and sizes[-1] == MIB
    # The head that a snapshot shows counts too: half of the retained size each.
    held = sum(size + MIB // 2 for size in sizes if size)
    assert 60 * MIB < held <= 64 * MIB
    # The oldest went first.
    assert sizes == sorted(sizes)
    assert kept(client, running)[0] == MIB
    if not SANITIZED:
        assert server.rss() - before < 80 * MIB
    # The bound holds for all sessions of the server together.
    other = server.client()
    fill(other, 10)
    sizes = [kept(client, p)[0] for p in processes]
    assert sum(size + MIB // 2 for size in sizes if size) <= 49 * MIB
    client.terminate(running)


def leave_unseen(server, size, tmp_path, count=1):
    """A session that is cut before its commands write `size` bytes each, and their names."""
    client, gate = server.client(), tmp_path / "gate"
    names = []
    for _ in range(count):
        done = tmp_path / client.new_name()
        process = client.start(f"echo ready; while [ ! -e {gate} ]; do sleep 0.02; done; "
                               f"head -c {size} /dev/zero; touch {done}")
        client.wait_output(process, "ready\n")
        names.append((process.name, done))
    client.transport.reset()
    gate.touch()
    for _, done in names:
        until(done.exists, "the command's end")
    return client.session, [name for name, _ in names]


def all_output(client, name):
    """Everything a process wrote, once it is closed."""
    client.call("process/wait", {"processId": name, "waitMs": None})
    result = client.read_any(name)
    return b"".join(unb64(c["chunk"]) for c in result["chunks"]), result


@pytest.mark.limit(400)
def test_another_client_erases_nothing(fleet, tmp_path):
    """A client is cut; another one runs 80 commands of 1 MB; the first one reads all."""
    server = fleet.start(*LONG)
    session, (name,) = leave_unseen(server, 500_000, tmp_path)
    other = server.client()
    for i in range(80):
        process = other.start("head -c 1000000 /dev/zero", sink=lambda *_: None)
        other.wait_closed(process)
    client = resume(server, session)
    data, result = all_output(client, name)
    assert data == b"ready\n" + bytes(500_000)
    assert result["failure"] is None and result["exitCode"] == 0


def run_and_leave(server, size):
    """A client that sees all output of one command and goes."""
    client = server.client()
    client.run(f"head -c {size} /dev/zero")
    client.end()


def test_clients_that_come_and_go_erase_nothing_unseen(fleet, tmp_path):
    """A hundred shares of others that have seen their output do not shrink an unseen one."""
    server = fleet.start(*SHARED)
    session, names = leave_unseen(server, 60_000, tmp_path, count=6)
    for _ in range(100):
        run_and_leave(server, 60_000)
    client = resume(server, session)
    for name in names:
        assert all_output(client, name)[0] == b"ready\n" + bytes(60_000)


def test_a_detached_client_does_not_starve_an_attached_one(fleet, tmp_path):
    """What a client has seen can be read again while it holds no more than its guarantee."""
    server = fleet.start(*SHARED)
    session, names = leave_unseen(server, 60_000, tmp_path, count=40)
    client = server.client()
    for _ in range(20):
        process = client.run("head -c 60000 /dev/zero")
        assert kept(client, process, SMALL)[0] == 60_000
    second = resume(server, session)
    left = [bool(all_output(second, name)[0]) for name in names]
    assert 20 < sum(left) <= 40


def test_what_was_read_after_a_resume_goes_first(fleet, tmp_path):
    server = fleet.start(*SHARED)
    session, names = leave_unseen(server, 60_000, tmp_path, count=40)
    client = resume(server, session)
    for name in names[20:]:
        assert len(all_output(client, name)[0]) == 60_006
    client.sync()
    other = server.client()
    for _ in range(16):
        other.run("head -c 60000 /dev/zero")
    left = [kept(client, name, SMALL)[0] > 0 for name in names]
    assert all(left[:20]) and not all(left[20:])


def test_a_loss_is_told(fleet):
    """A read of lost output says so; the numbers and the exit code stay."""
    server = fleet.start("--closed-output-max", "0", "--allow-attach")
    client = server.client()
    process = client.run("echo one; exit 3")
    result = client.read_any(process)
    assert result["failure"] == LOST.format(0)
    assert (result["chunks"], result["exitCode"], result["closed"]) == ([], 3, True)
    assert result["nextSeq"] == 4
    assert client.read(process, afterSeq=1)["chunks"] == []
    snapshot = client.ask("snapshot", process)
    assert snapshot["truncated"] and snapshot["streams"]["stdout"]["omittedBytes"] == 4
    viewer = client.attach(client.session, process)
    client.wait(lambda: viewer.closed, "the end")
    silent = client.run("exit 4")
    assert client.read(silent)["exitCode"] == 4


def test_id_stays_taken_after_close(client):
    name = client.new_name()
    client.run("true", processId=name)
    assert client.start_error("true", processId=name) == (
        -32600, f"process {name} already exists")
    assert client.terminate(name) == {"running": False}
    assert client.start_error("true", processId=name) == (
        -32600, f"process {name} already exists")


def test_many_closed_processes(server):
    client = server.client()
    client.run("true")
    before, fds = server.rss(), server.fds()
    for _ in range(400):
        client.run(["/bin/true"])
    assert server.fds() <= fds
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB


def test_small_output_is_kept_small(fleet):
    """A process that wrote a few bytes does not hold a large buffer."""
    server = fleet.start(*LONG)
    client = server.client()
    client.run("true")
    before = server.rss()
    processes = [client.run(["/bin/echo", "x"]) for _ in range(300)]
    for process in processes:
        assert kept(client, process)[0] == 2
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB
