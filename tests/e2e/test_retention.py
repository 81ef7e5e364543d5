"""What is kept of closed processes, and for how long."""

import pytest

from harness.rpc import unb64
from harness.settings import SANITIZED

MIB = 1 << 20


def kept(client, process):
    result = client.read(process)
    return sum(len(unb64(c["chunk"])) for c in result["chunks"]), result


def fill(client, count, first=0):
    """Closed processes that retain 1 MiB each, oldest first."""
    processes = []
    for i in range(first, first + count):
        process = client.start(f"head -c 1048576 /dev/zero; exit {i % 100}", sink=lambda *_: None)
        processes.append(client.wait_closed(process))
    return processes


@pytest.mark.limit(400)
def test_total_of_closed_processes_is_bounded(server):
    """64 MiB per server; the longest closed lose theirs first, exit code and seq stay."""
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


def test_small_output_is_kept_small(server):
    """A process that wrote a few bytes does not hold a large buffer."""
    client = server.client()
    client.run("true")
    before = server.rss()
    processes = [client.run(["/bin/echo", "x"]) for _ in range(300)]
    for process in processes:
        assert kept(client, process)[0] == 2
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB
