"""Nothing that a session started outlives it, however it hides."""

import os
import signal

import pytest

from harness import procfs
from harness.waiting import until

# Each makes one process that has the token among its arguments and leaves its leader.
HIDING = {
    "child": "sleep {t} &",
    "group": "setsid sleep {t} &",
    "double fork": "(sleep {t} &) &",
    "double fork and setsid": "(setsid sleep {t} </dev/null >/dev/null 2>&1 &) &",
    "ignoring": "(trap '' TERM HUP INT QUIT; exec sleep {t}) &",
    "hidden and ignoring": "(trap '' TERM HUP INT; "
                           "setsid sh -c \"trap '' TERM HUP; sleep {t} & :\" "
                           "</dev/null >/dev/null 2>&1 &) &",
    "stopped": "(sh -c 'kill -STOP $$; :' {t} &) &",
    "own terminal": "(setsid setsid -w sleep {t} &) &",
}
MODES = pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])


def everything(token):
    """A script that starts one of each kind, and how many processes carry the token."""
    return "trap '' HUP; " + " ".join(s.format(t=token) for s in HIDING.values())


def start_all(client, tty, tail="sleep 1000"):
    token = procfs.mark()
    process = client.start(f"{everything(token)} echo ready; {tail}", tty=tty)
    client.wait_output(process, "ready")
    # "own terminal" has setsid and sleep.
    pids = procfs.wait_marked(token, len(HIDING) + 1)
    return process, token, pids


@MODES
@pytest.mark.parametrize("kind", HIDING)
def test_terminate_kills_each_kind(client, kind, tty):
    token = procfs.mark()
    process = client.start(f"trap '' HUP; {HIDING[kind].format(t=token)} sleep 1000", tty=tty)
    procfs.wait_marked(token, 2 if kind == "own terminal" else 1)
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []


@MODES
def test_terminate(client, tty):
    process, token, _ = start_all(client, tty)
    other, other_token, _ = start_all(client, tty)
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []
    # Those of another process are not touched.
    assert len(procfs.marked(other_token)) == len(HIDING) + 1
    client.terminate(other)
    client.wait_closed(other)
    assert procfs.wait_marked(other_token, 0) == []


@MODES
def test_session_end(fleet, tty):
    server = fleet.start("--session-ttl", "0")
    client, other = server.client(), server.client()
    _, token, _ = start_all(client, tty)
    _, other_token, _ = start_all(other, tty)
    client.end()
    assert procfs.wait_marked(token, 0) == []
    assert len(procfs.marked(other_token)) == len(HIDING) + 1
    other.transport.reset()
    assert procfs.wait_marked(other_token, 0) == []


@MODES
def test_leftovers_of_a_finished_command_live_as_long_as_the_session(fleet, tty):
    server = fleet.start("--session-ttl", "0")
    client = server.client()
    token = procfs.mark()
    script = everything(token)
    process = client.start(f"exec 3>&1 >/dev/null 2>&1; {script} exec 3>&-; exit 0", tty=tty)
    client.wait_exited(process)
    procfs.wait_marked(token, len(HIDING) + 1)
    assert client.terminate(process) == {"running": False}
    client.run("true")
    assert len(procfs.marked(token)) == len(HIDING) + 1
    client.end()
    assert procfs.wait_marked(token, 0) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@MODES
def test_server_is_ended(server, number, tty):
    client = server.client()
    _, token, _ = start_all(client, tty)
    leftovers = procfs.mark()
    client.run(f"setsid sleep {leftovers} >/dev/null 2>&1 </dev/null & exit 0")
    procfs.wait_marked(leftovers)
    server.stop(number)
    assert procfs.wait_marked(token, 0) == []
    assert procfs.wait_marked(leftovers, 0) == []


@MODES
def test_server_is_killed(server, tty):
    client = server.client()
    _, token, _ = start_all(client, tty)
    server.send_signal(signal.SIGKILL)
    assert server.popen.wait() == -signal.SIGKILL
    server.wait()
    assert procfs.wait_marked(token, 0) == []


def test_stdio_end(fleet):
    client = fleet.stdio()
    _, token, _ = start_all(client, False)
    client.transport.close_stdin()
    client.transport.rest()
    assert client.transport.wait() == 0
    assert procfs.wait_marked(token, 0) == []


def orphan(client, token):
    """Runs a command that leaves two descendants, and kills the supervisor above them."""
    process = client.start(f"sleep {token} & setsid sleep {token} & echo $PPID; exit 0")
    client.wait_exited(process)
    pids = procfs.wait_marked(token, 2)
    os.kill(int(process.output()), signal.SIGKILL)
    return pids


def test_supervisor_killed_after_its_leader_ended(fleet):
    server = fleet.start("--session-ttl", "0")
    client = server.client()
    token = procfs.mark()
    orphan(client, token)
    client.end()
    assert procfs.wait_marked(token, 0) == []
    procfs.wait_no_zombies(server.pid)
    server.client().run("true")


def test_supervisor_killed_before_the_server_ends(server):
    token = procfs.mark()
    orphan(server.client(), token)
    server.stop()
    assert procfs.wait_marked(token, 0) == []


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
def test_helper_from_before_the_server(fleet, ended):
    """What an entry point started before it became the server is not the server's to kill."""
    token, other = procfs.mark(), procfs.mark()
    server = fleet.start(quiet=False, wrapper=[
        "/bin/sh", "-c", f'sleep {token} >/dev/null 2>&1 & exec "$0" "$@"'])
    helper, = procfs.wait_marked(token)
    left = []
    try:
        assert procfs.parent(helper) == server.pid
        client = server.client()
        if ended:
            left = orphan(client, other)
        else:
            process = client.start("read x; kill -9 $PPID; sleep 1000", pipeStdin=True)
            client.write(process, "\n")  # not before the start is answered
            assert client.wait_closed(process).exited["signal"] == "SIGKILL"
        assert client.run("true").exit_code == 0
        assert procfs.alive(helper)
        server.stop()
        assert procfs.alive(helper)
    finally:
        for pid in [helper, *left]:
            procfs.kill(pid)


def test_keep_detached_spares_what_called_setsid(fleet):
    server = fleet.start("--keep-detached", "--session-ttl", "0")
    client = server.client()
    kept, killed = procfs.mark(), procfs.mark()
    client.start(f"setsid sleep {kept} </dev/null >/dev/null 2>&1 & "
                 f"sleep {killed} & sleep {killed}")
    procfs.wait_marked(killed, 2)
    kept_pid, = procfs.wait_marked(kept)
    until(lambda: procfs.session(kept_pid) == kept_pid, "setsid")
    try:
        client.end()
        assert procfs.wait_marked(killed, 0) == []
        server.stop()
        assert procfs.alive(kept_pid)
    finally:
        os.kill(kept_pid, signal.SIGKILL)
        procfs.wait_gone(kept_pid)


def test_fork_storm_is_killed(client):
    """Processes that keep forking while they are killed do not escape."""
    token = procfs.mark()
    forking = (f"f() {{ setsid sh -c 'sleep 0.01; exec sleep {token}' & }}; "
               "while :; do f; f; f; sleep 0.005; done")
    process = client.start(forking)
    procfs.wait_at_least(token, 20)
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []


def test_orphans_are_reaped(server):
    client = server.client()
    for _ in range(10):
        client.run("(sleep 0.01 &) & (setsid true &) & exit 0")
    token = procfs.mark()
    process = client.start(f"(setsid true &) & (true &) & sleep {token}")
    procfs.wait_marked(token)
    procfs.wait_no_zombies(server.pid)
    client.terminate(process)
    client.wait_closed(process)
    procfs.wait_no_zombies(server.pid)


def test_descriptors_after_descendants(server):
    client = server.client()
    client.run("true")
    before = server.fds()
    for tty in (False, True):
        process, _, _ = start_all(client, tty)
        client.terminate(process)
        client.wait_closed(process)
    server.wait_fds(before + 1)
