"""sessionLimits: a client asks how long its session and its closed processes are kept."""

import pytest

from harness.rpc import RpcError
from harness.sessions import resume
from harness.waiting import until

HOUR = 3_600_000
# The usual times are short, so that others pass while those that were asked for do not.
SHORT = ("--session-ttl", "0.2", "--closed-retention", "0.2")
LASTING_MAX = 64


def ask(server, **asked):
    """A client that asks, and what it was granted."""
    client = server.connect()
    return client, client.initialize(**asked).get("limits")


def limits(ttl, closed, retained=1 << 20):
    return {"sessionTtlMs": ttl, "closedRetentionMs": closed, "retainedOutputBytes": retained}


def test_granted_up_to_the_maximum(fleet):
    server = fleet.start(*SHORT, "--session-ttl-max", "60", "--closed-retention-max", "0.5",
                         "--retained-output", "70000")
    for asked, ttl, closed in [
            ({"sessionTtlMs": 5000}, 5000, 200),
            ({"sessionTtlMs": 60_000, "closedRetentionMs": 500}, 60_000, 500),
            ({"sessionTtlMs": 60_001, "closedRetentionMs": 501}, 60_000, 500),
            ({"sessionTtlMs": 2 ** 64 - 1, "closedRetentionMs": 2 ** 64 - 1}, 60_000, 500),
            ({"sessionTtlMs": 7}, 7, 200),
            ({"closedRetentionMs": 0}, 200, 0),
            ({"sessionTtlMs": 0, "closedRetentionMs": None}, 0, 200),
            ({"outputAck": True}, 200, 200)]:
        client, got = ask(server, **asked)
        assert got == limits(ttl, closed, 70000), asked
        client.close()


def test_default_maximum(server):
    assert ask(server, sessionTtlMs=2 ** 64 - 1, closedRetentionMs=2 ** 64 - 1)[1] == limits(
        24 * HOUR, 24 * HOUR)


@pytest.mark.parametrize("asked", [
    {}, {"outputAck": False}, {"outputAck": None, "sessionTtlMs": None, "closedRetentionMs": None}])
def test_told_only_who_asks(server, asked):
    result = server.connect().initialize(**asked)
    assert list(result) == ["sessionId", "environmentInfo"]


@pytest.mark.parametrize("options, granted", [
    (("--session-ttl", "0"), 0),
    (("--session-ttl", "0", "--session-ttl-max", "5"), 5000),
    (("--session-ttl", "50", "--session-ttl-max", "0"), 50_000),
    (("--session-ttl", "172800"), 48 * HOUR)])
def test_maximum_and_default(fleet, options, granted):
    """A maximum lowers no default; a default of 0 asks for a maximum by name."""
    assert ask(fleet.start(*options), sessionTtlMs=48 * HOUR)[1] == limits(granted, 30_000)


def test_stdio(fleet):
    """Nobody can come back."""
    client = fleet.stdio(initialize=False)
    result = client.initialize(sessionTtlMs=HOUR, closedRetentionMs=HOUR)
    assert result["limits"] == limits(0, HOUR)


def refused(server, session):
    """True once the session is gone."""
    client = server.connect()
    try:
        client.initialize(session)
    except RpcError as error:
        return error.message == f"unknown session id {session}"
    finally:
        client.close()
    return False


def test_comes_back_late(fleet):
    """A session that was granted more is there when one that left later is gone."""
    server = fleet.start(*SHORT)
    client, _ = ask(server, sessionTtlMs=HOUR)
    process = client.start("cat", pipeStdin=True)
    other = server.client()
    client.end()
    other.end()
    # Trying to resume would give it its time anew.
    watcher = server.client()
    watcher.run("sleep 0.5")
    until(lambda: refused(server, other.session), "the end of the other one", every=0.5)
    again = resume(server, client.session)
    again.write(process.name, "still here\n")
    assert again.read(process.name, waitMs=60_000)["chunks"]
    assert again.terminate(process.name) == {"running": True}


def test_closed_processes_are_kept(fleet):
    server = fleet.start(*SHORT)
    client, _ = ask(server, closedRetentionMs=HOUR)
    other = server.client()
    kept = client.run("echo kept; exit 5")
    gone = other.run("echo gone")
    until(lambda: other.call("process/list")["processes"] == [], "the other one is forgotten")
    assert client.read(kept)["exitCode"] == 5
    with pytest.raises(RpcError):
        other.read(gone)


def test_resume_asks_again(fleet):
    server = fleet.start("--session-ttl", "5", "--closed-retention", "6")
    client, got = ask(server, sessionTtlMs=HOUR)
    assert got == limits(HOUR, 6000)
    for asked, granted in [
            ({"closedRetentionMs": HOUR}, limits(HOUR, HOUR)),  # the other one stays
            ({}, None),
            ({"outputAck": True}, limits(HOUR, HOUR)),
            ({"sessionTtlMs": 7000, "closedRetentionMs": 100}, limits(7000, 100)),
            ({"sessionTtlMs": 2 * HOUR}, limits(2 * HOUR, 100))]:
        client.end()
        client = resume(server, client.session, **asked)
        assert client.limits == granted


def test_few_sessions_last(fleet):
    """64 of them; the next one gets the usual times, and is told."""
    server = fleet.start("--session-ttl", "20", "--closed-retention", "30")
    lasting = []
    for i in range(LASTING_MAX):
        asked = {"sessionTtlMs": HOUR} if i % 2 else {"closedRetentionMs": HOUR}
        client, got = ask(server, **asked)
        assert got == (limits(HOUR, 30_000) if i % 2 else limits(20_000, HOUR))
        lasting.append(client)
    late, got = ask(server, sessionTtlMs=HOUR, closedRetentionMs=HOUR)
    assert got == limits(20_000, 30_000)
    assert ask(server, sessionTtlMs=19_000)[1] == limits(19_000, 30_000)
    # A session that has its place keeps it, and can have more.
    lasting[1].end()
    lasting[1] = resume(server, lasting[1].session, sessionTtlMs=2 * HOUR, closedRetentionMs=HOUR)
    assert lasting[1].limits == limits(2 * HOUR, HOUR)
    # One that asks for less makes room, and one that ends.
    lasting[1].end()
    lasting[1] = resume(server, lasting[1].session, sessionTtlMs=10_000, closedRetentionMs=0)
    late.end()
    late = resume(server, late.session, sessionTtlMs=HOUR)
    assert late.limits == limits(HOUR, 30_000)
    assert ask(server, sessionTtlMs=HOUR)[1] == limits(20_000, 30_000)
    late.end()
    late = resume(server, late.session, sessionTtlMs=0)
    late.end()
    assert ask(server, sessionTtlMs=HOUR)[1] == limits(HOUR, 30_000)


@pytest.mark.parametrize("asked, message", [
    ({"outputAck": 1}, "invalid type: number, expected a boolean"),
    ({"sessionTtlMs": -1}, "invalid number"),
    ({"sessionTtlMs": 1.5}, "invalid number"),
    ({"closedRetentionMs": "1"}, 'invalid type: string "1", expected u64'),
])
def test_bad_params(server, asked, message):
    client = server.connect()
    assert client.error("initialize", {"clientName": "e2e", **asked}) == (-32602, message)
    client.initialize()
    client.sync()
