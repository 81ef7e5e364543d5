"""A command that floods gets a smaller share of the CPUs while it does."""

import os

import pytest

from harness import procfs
from harness.waiting import until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"),
                                reason="this kernel has no shares of sessions")
# Floods until it gets a line, and then waits.
FLOOD = "sleep {0} & yes & Y=$!; read x; kill $Y; wait $Y; wait"


def nice_of(token):
    """Of the session of the command."""
    (pid,) = procfs.marked(token)
    with open(f"/proc/{pid}/autogroup", encoding="ascii") as f:
        return int(f.read().split()[-1])


def own_nice(pid):
    with open(f"/proc/{pid}/autogroup", encoding="ascii") as f:
        return int(f.read().split()[-1])


@pytest.fixture
def flooded(fleet):
    """A server with floods that it reads for nobody, beside which one more is too many."""
    server = fleet.start()
    client = server.client()
    for _ in range(3):
        client.start("yes", sink=lambda *_: None)
    client.transport.reset()
    return server


def becomes(client, token, nice):
    def right():
        client.sync()
        return nice_of(token) == nice
    until(right, f"the share of nice {nice}")


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "pty"])
def test_the_share_of_a_flood(flooded, tty):
    client = flooded.client()
    quiet, flood = procfs.mark(), procfs.mark()
    client.start(f"sleep {quiet} & wait")
    process = client.start(FLOOD.format(flood), sink=lambda *_: None, tty=tty, pipeStdin=not tty)
    procfs.wait_marked(flood)
    procfs.wait_marked(quiet)
    becomes(client, flood, 15)
    assert nice_of(quiet) == 0 and own_nice(flooded.pid) == own_nice("self")
    client.write(process, "\n")
    becomes(client, flood, 0)
    client.terminate(process)
    client.wait_closed(process)


def test_what_a_flood_leaves_behind(flooded):
    """The leader has ended; the share of its session is put back all the same."""
    client = flooded.client()
    token = procfs.mark()
    process = client.start(f"sleep {token} & yes & Y=$!; read x; kill $Y",
                           sink=lambda *_: None, pipeStdin=True)
    procfs.wait_marked(token)
    becomes(client, token, 15)
    client.write(process, "\n")
    client.wait_exited(process)
    becomes(client, token, 0)


def test_a_sandboxed_flood(flooded):
    client = flooded.client()
    token = procfs.mark()
    sandbox = {"permissions": {"type": "managed", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]},
        "network": "restricted"}}
    params = client.start_params(FLOOD.format(token), sandbox=sandbox, pipeStdin=True)
    client.sinks[params["processId"]] = lambda *_: None
    client.call("process/start", params)
    process = client.processes[params["processId"]]
    procfs.wait_marked(token)
    becomes(client, token, 15)
    assert own_nice(flooded.pid) == own_nice("self")
    client.write(process, "\n")
    becomes(client, token, 0)
    client.terminate(process)
