"""process/wait."""

import pytest

from harness import procfs
from harness.metrics import metrics
from harness.waiting import until

KEYS = {"exited", "exitCode", "closed", "sandboxDenied", "nextSeq", "timedOut"}
TOO_MANY = {"code": -32600,
            "message": "too many waiting requests on this connection (limit 1024)"}


def test_until_closed(client):
    process = client.start("echo x; exit 7")
    got = client.ask("wait", process)
    assert set(got) == KEYS
    assert got["exited"] and got["closed"] and got["exitCode"] == 7
    assert got["sandboxDenied"] is False and got["timedOut"] is False
    assert got["nextSeq"] == 4


def test_answer_follows_the_notifications(client):
    process = client.start("echo x; read go", pipeStdin=True)
    ident = client.send("process/wait", {"processId": process.name})
    client.ask("closeStdin", process)
    client.result(ident)
    assert process.closed


def test_until_exited(client):
    token = procfs.mark()
    process = client.start(f"sleep {token} & exit 5")
    got = client.ask("wait", process, until="exited")
    assert got["exited"] and not got["closed"] and got["exitCode"] == 5
    assert got["timedOut"] is False
    waiting = client.send("process/wait", {"processId": process.name, "until": "closed"})
    client.barrier()
    assert waiting not in client.answers
    for pid in procfs.wait_marked(token):
        procfs.kill(pid)
    assert client.result(waiting)["closed"]


@pytest.mark.parametrize("until", ["closed", "exited", None, "Closed", "Exited"])
def test_time_is_up(client, until):
    process = client.start("sleep 1000")
    for wait in (0, 1, 50):
        got = client.ask("wait", process, until=until, waitMs=wait)
        assert set(got) == KEYS
        assert got == {"exited": False, "exitCode": None, "closed": False, "sandboxDenied": False,
                       "nextSeq": 1, "timedOut": True}
    client.terminate(process)


@pytest.mark.parametrize("wait", [None, 10**9, 2**63, 2**64 - 1])
def test_does_not_block_others(client, wait):
    process = client.start("cat", pipeStdin=True)
    ident = client.send("process/wait", {"processId": process.name, "waitMs": wait})
    client.barrier()
    assert client.run("exit 3").exit_code == 3
    assert client.write(process, "x") == {"status": "accepted"}
    client.wait_output(process, "x")
    assert ident not in client.answers
    assert client.ask("closeStdin", process) == {"status": "accepted"}
    assert client.result(ident)["exitCode"] == 0


def test_signal_and_time_limit_are_told(client):
    process = client.start("sleep 1000", timeoutMs=1)
    got = client.ask("wait", process)
    assert set(got) == KEYS | {"signal", "processTimedOut"}
    assert got["signal"] == "SIGTERM" and got["exitCode"] == 143
    assert got["processTimedOut"] is True and got["timedOut"] is False


def test_a_thousand_waiters(server):
    """All are answered by one end, and none makes the server wake up before."""
    client = server.client()
    process = client.start("read go; exit 9", pipeStdin=True)
    idents = [client.send("process/wait", {"processId": process.name,
                                           "until": "exited" if i % 2 else "closed"})
              for i in range(1000)]
    client.barrier()
    assert not client.answers
    client.write(process, "go\n")
    for ident in idents:
        assert client.result(ident)["exitCode"] == 9
    client.sync()


def test_too_many_waiters(server):
    client = server.client()
    process = client.start("read go", pipeStdin=True)
    idents = [client.send("process/wait", {"processId": process.name}) for _ in range(1030)]
    client.barrier()
    assert list(client.answers) == idents[1024:]
    for ident in idents[1024:]:
        assert client.answer(ident)["error"] == TOO_MANY
    client.write(process, "go\n")
    for ident in idents[:1024]:
        assert client.result(ident)["closed"]


def test_waiters_of_a_lost_connection(server):
    """They are forgotten with it; a new connection can wait for the same process."""
    client = server.client()
    process = client.start("read go; exit 8", pipeStdin=True)
    for _ in range(100):
        client.send("process/wait", {"processId": process.name})
    client.barrier()
    client.end()
    again = server.client(resume=client.session)
    ident = again.send("process/wait", {"processId": process.name})
    again.write(process, "go\n")
    assert again.result(ident)["exitCode"] == 8
    assert not again.answers


@pytest.mark.parametrize("method", ["wait", "read"])
def test_answer_to_a_client_that_stalls(fleet, method):
    """A request that waits is answered, also when the process is forgotten meanwhile."""
    server = fleet.start("--closed-retention", "0.2", "--allow-attach", "--metrics")
    client = server.client(rcvbuf=4096)
    full = client.start("head -c 1048576 /dev/zero; read go", pipeStdin=True,
                        sink=lambda *_: None)
    client.wait(lambda: client.read(full)["nextSeq"] > 16, "output")
    token = procfs.mark()
    # Its streams end before it does: nothing about its end waits for the client.
    process = client.start(f"exec >&- 2>&-; exec sleep {token}")
    procfs.wait_marked(token)
    client.barrier()
    waiting = client.send(f"process/{method}", {"processId": process.name, "waitMs": 10**9})
    reads = [client.send("process/read", {"processId": full.name}) for _ in range(30)]
    # From here on nothing is received: answers come to rest in the server.
    seen = []

    def rests():
        seen.append(metrics(server).get("queue_bytes", queue="output"))
        return seen[-1] > 0 and seen[-1:] == seen[-2:-1]
    until(rests, "a queue at rest")
    pid, = procfs.wait_marked(token)
    procfs.kill(pid)
    until(lambda: not procfs.descendants(server.pid).keys() & {pid}, "the end")
    other = server.client()
    params = {"sessionId": client.session, "processId": process.name}
    until(lambda: "error" in other.answer(other.send("process/attach", params)), "removal")
    for ident in reads:
        client.result(ident)
    answer = client.answer(waiting)
    assert "result" in answer or answer["error"]["code"] == -32600
    client.terminate(full)


@pytest.mark.parametrize("params, text", [
    ({}, "missing field `processId`"),
    ({"processId": "p", "until": "done"},
     "unknown variant `done`, expected `closed` or `exited`"),
    ({"processId": "p", "waitMs": -1}, "invalid number"),
    ({"processId": "p", "waitMs": "1"}, 'invalid type: string "1", expected u64'),
])
def test_bad_params(client, params, text):
    assert client.error("process/wait", params) == (-32602, text)


def test_unknown_process(client):
    assert client.refusal("wait", "none") == (-32600, "unknown process id none")
