"""A server that has nothing to do does nothing."""

from harness import procfs
from harness.resting import sleeps, wait_rest
from harness.waiting import until

# Well below the 30 s of the ping.
REST = 4.0


def assert_asleep(server):
    """No timer of the server or of its children is going to fire soon."""
    wait_rest(server, REST)
    children = list(procfs.descendants(server.pid))
    until(lambda: all(sleeps(pid, REST) for pid in children), "the children sleep")
    wait_rest(server, REST)


def test_nobody_connected(server):
    server.client().end()
    assert_asleep(server)


def test_with_everything_that_waits(fleet):
    """Waiters, long polls, viewers, time limits, graces and held streams cost nothing."""
    server = fleet.start("--allow-attach", "--shutdown-grace-ms", "1000")
    client, viewer = server.client(), server.client()
    process = client.start("echo x; exec sleep 1000", timeoutMs=600_000)
    client.wait_output(process, "x\n")
    for _ in range(500):
        client.send("process/wait", {"processId": process.name})
        client.send("process/read", {"processId": process.name, "afterSeq": 1,
                                     "waitMs": 600_000})
    view = viewer.attach(client.session, process)
    viewer.wait(lambda: view.seen == 1, "the replay")
    stubborn = client.start("trap '' TERM; echo ready; exec sleep 1000", tty=True)
    client.wait_output(stubborn, "ready")
    client.terminate(stubborn, mode={"graceful": {"timeoutMs": 600_000}})
    held = client.start("exec sleep 1000 & exit 0")
    client.wait_exited(held)
    client.barrier()
    assert_asleep(server)
    client.sync()
    assert client.ask("snapshot", process)["running"] is True


def test_detached_session(fleet):
    server = fleet.start("--session-ttl", "600")
    client = server.client()
    client.start("exec sleep 1000", pipeStdin=True)
    client.start("exec sleep 1000", tty=True)
    client.end()
    assert_asleep(server)
