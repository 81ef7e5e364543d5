"""Detached processes: run -d, ps, attach, logs, wait, kill, and their state files."""

import json
import os
import re
import signal
import stat

import pytest

from harness.settings import PATIENCE
from harness.waiting import until

KIB, MIB = 1 << 10, 1 << 20


def detach(xs, *args, name="job"):
    assert xs.run("run", "-d", "--name", name, *args).text() == f"{name}\n"
    return name


def closed(xs, name):
    """Waits until the server has the end."""
    until(lambda: {p["name"]: p["state"] for p in processes(xs)}[name] == "closed", "the end")


def processes(xs):
    return xs.run("ps", "--json").json()[0]["processes"]


def test_35_detached_and_back(xs, tmp_path):
    """The last MiB of the output, and the right code. tests/verify/xs waits for two minutes."""
    gate = tmp_path / "gate"
    script = f"while [ ! -e {gate} ]; do sleep 0.02; done; seq 1 400000; exit 9"
    detach(xs, "sh", "-c", script)
    assert [p["state"] for p in processes(xs)] == ["running"]
    gate.touch()
    closed(xs, "job")
    everything = "".join(f"{i}\n" for i in range(1, 400001)).encode()
    logs = xs.run("logs", "job").ok()
    assert len(logs) >= MIB - 64 * KIB and everything.endswith(logs)
    assert xs.run("logs", "--tail", "10", "job").ok() == everything[-10:]
    done = xs.run("attach", "job")
    assert (done.status, len(done.out)) == (9, 64 * KIB) and everything.endswith(done.out)
    assert xs.run("attach", "--tail", "5", "job").out == everything[-5:]
    assert xs.run("wait", "job").status == 9
    assert [(p["state"], p["exitCode"]) for p in processes(xs)] == [("closed", 9)]
    assert xs.run("kill", "job").ok() == b"" and processes(xs) == [] and xs.kept() == {}


def test_35_a_flood_goes_on_alone(xs):
    """Nobody reads what a detached command prints; it is not held up."""
    detach(xs, "sh", "-c", "head -c 20000000 /dev/zero; echo; exit 3")
    assert xs.run("wait", "job").status == 3
    logs = xs.run("logs", "job").ok()
    assert MIB - 64 * KIB <= len(logs) <= 2 * MIB and logs.endswith(b"\0\n")


def test_35_refused_without_session_limits(xs, reference):
    done = xs.run("run", "-d", "touch", str(xs.home / "ran"), host=reference.url)
    assert done.status == 126 and "cannot detach: " in done.err and "sessionLimits" in done.err
    assert not (xs.home / "ran").exists() and xs.kept() == {}
    terminal = xs.terminal("run", "-t", "sh", "-c", "stty -echo; echo ready; read a; exit 4",
                           host=reference.url)
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("~d")
    terminal.expect("cannot detach: ")
    terminal.type("\r")
    assert terminal.wait() == 4


def test_35_refused_where_a_session_ends_with_its_connection(xs):
    done = xs.run("-H", "local", "run", "-d", "true")
    assert done.status == 126 and "over this connection" in done.err, done


def test_35_a_server_that_grants_little(fleet, lone_xs):
    server = fleet.start("--session-ttl", "5", "--session-ttl-max", "5")
    done = lone_xs.run("run", "-d", "sleep", "1000", host=server.url)
    assert done.status != 0 and "keeps the session for 5 s" in done.err, done


def test_leaving_a_terminal_and_coming_back(xs):
    """~d, then attach: what was printed, and a repaint by two resizes."""
    script = ("trap 'echo size $(stty size)' WINCH; echo ready; "
              "while :; do read a && echo got $a; [ \"$a\" = end ] && exit 6; done")
    terminal = xs.terminal("run", "-t", "--name", "screen", "sh", "-c", script)
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("one\r")
    terminal.expect("got one\r\n")
    terminal.type("~d")
    assert terminal.wait() == 0
    assert terminal.screen.endswith(b"screen\r\n")
    assert list(xs.kept()) == ["screen"]
    back = xs.terminal("attach", "screen", rows=30, cols=90)
    at = back.expect("got one\r\n")
    back.expect("size 30 90\r\n", at)
    assert b"size 29 90" in back.screen
    back.type("end\r")
    back.expect("got end\r\n", at)
    assert back.wait() == 6
    assert xs.run("wait", "screen").status == 6


def test_a_second_xs(xs):
    """One has it; another one must say -d, and then the first leaves."""
    detach(xs, "sh", "-c", "trap '' HUP; echo ready; exec sleep 1000")
    first = xs.start("attach", "job")
    first.expect(b"ready\n")
    done = xs.run("attach", "job")
    assert done.status == 1 and "another xs is attached (attach -d throws it out)" in done.err, done
    second = xs.start("attach", "-d", "job")
    second.expect(b"ready\n")
    left = first.wait()
    assert left.status == 0 and "another xs attached" in left.err
    second.signal(signal.SIGTERM)
    assert second.wait().status == 143


def test_input_of_a_detached_command_is_empty(xs):
    assert xs.run("run", "-d", "--name", "job", "sh", "-c", "cat; exit 5", stdin=b"x").status == 0
    assert xs.run("wait", "job").status == 5 and xs.run("logs", "job").ok() == b""


def test_logs_follow(fleet, lone_xs, tmp_path):
    """With --allow-attach logs -f looks on while another xs is attached."""
    lone_xs.host = fleet.start("--allow-attach").url
    gate = tmp_path / "gate"
    detach(lone_xs, "sh", "-c", f"echo one; while [ ! -e {gate} ]; do sleep 0.01; done; echo two; exit 8")
    attached = lone_xs.start("attach", "job")
    attached.expect(b"one\n")
    looking = lone_xs.start("logs", "-f", "job")
    looking.expect(b"one\n")
    waiting = lone_xs.start("wait", "job")
    gate.touch()
    assert (attached.wait().status, looking.wait().status, waiting.wait().status) == (8, 0, 8)
    assert looking.out == b"one\ntwo\n"


def test_logs_follow_without_views(xs):
    """logs -f takes the session then, and gives it back when a signal ends it."""
    detach(xs, "sh", "-c", "echo one; exec sleep 1000")
    looking = xs.start("logs", "-f", "job")
    looking.expect(b"one\n")
    looking.signal(signal.SIGINT)
    assert looking.wait().status == 130
    assert [p["state"] for p in processes(xs)] == ["running"]


def test_wait_for_many(xs):
    for code in (3, 4):
        detach(xs, "sh", "-c", f"exit {code}", name=f"job{code}")
    assert xs.run("wait", "job4", "job3").status == 3
    assert xs.run("wait", "job3", "nosuch").status == 1


def test_kill(xs, tmp_path):
    told = tmp_path / "told"
    detach(xs, "sh", "-c", f"trap 'echo USR1 >{told}' USR1; trap 'exit 0' TERM; echo ready; "
                           "while :; do sleep 0.01; done")
    until(lambda: b"ready" in xs.run("logs", "job").out, "the trap")
    assert xs.run("kill", "-s", "SIGUSR1", "job").ok() == b""
    until(told.exists, "the signal")
    assert xs.run("kill", "--grace", "60s", "job").ok() == b""
    assert xs.kept() == {}
    detach(xs, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    assert xs.run("kill", "--grace", "50ms", "job").ok() == b""


def test_a_server_that_forgot(fleet, lone_xs):
    """Its end is told, and ps forgets what is gone."""
    server = fleet.start()
    lone_xs.host = server.url
    detach(lone_xs, "sleep", "1000")
    port = server.address[1]
    server.stop()
    assert [p["state"] for p in processes(lone_xs)] == ["unreachable"]
    fleet.start(listen=f"ws://127.0.0.1:{port}")
    for command in (["attach"], ["logs"], ["wait"]):
        done = lone_xs.run(*command, "job")
        assert done.status == 255 and "does not have its session any more" in done.err, done
    assert [p["state"] for p in processes(lone_xs)] == ["gone"]
    assert lone_xs.kept() == {} and processes(lone_xs) == []


# -- state files

def test_state_file(xs):
    token = "s3cret-token-0123456789"
    detach(xs, "sleep", "1000")
    path = xs.state / "job.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(xs.state.stat().st_mode) == 0o700
    assert token not in path.read_text()
    assert sorted(json.loads(path.read_text())) == sorted(
        ["version", "host", "sessionId", "processId", "command", "name", "tty", "startedAtMs"])
    assert os.listdir(xs.state) == ["job.json"]


def test_two_of_one_name(xs):
    """The name goes to one of them, and only its command runs."""
    runs = [xs.start("run", "-d", "--name", "one", "sleep", f"100{i}") for i in range(6)]
    ends = [run.wait() for run in runs]
    assert sorted(e.status for e in ends) == [0] + [1] * 5, ends
    assert all("the name one is taken" in e.err for e in ends if e.status)
    [process] = processes(xs)
    assert process["state"] == "running"
    assert xs.run("kill", "one").status == 0


def test_names_are_made_up(xs):
    names = {xs.run("run", "-d", *args).text().strip()
             for args in (["/bin/true"], ["-c", "true"], ["sh", "-c", "exit 0"])}
    assert len(names) == 3
    assert all(re.fullmatch(r"(true|shell|sh)-[0-9a-f]{4}", name) for name in names), names


GOOD = {"version": 1, "host": "ws://127.0.0.1:1", "sessionId": "0a1b2c3d-0000-4000-8000-00000000abcd",
        "processId": "p", "command": "x", "name": "bad", "tty": False, "startedAtMs": 1}


@pytest.mark.parametrize("text", [
    b"", b"{", b"[]", b"\xff", b"{}" * 40000, json.dumps({**GOOD, "name": "other"}).encode(),
    json.dumps({**GOOD, "sessionId": "../../x"}).encode(), json.dumps({**GOOD, "x": 1}).encode(),
    json.dumps({**GOOD, "version": 2}).encode(),
])
def test_damaged_state_files(xs, text):
    detach(xs, "true", name="good")
    (xs.state / "bad.json").write_bytes(text)
    done = xs.run("attach", "bad")
    assert done.status == 1 and done.err.startswith("xs: ") and done.err.count("\n") == 1, done
    done = xs.run("ps")
    assert done.status == 0 and "xs: bad: " in done.err and b"good" in done.out


def test_state_files_of_others(xs):
    """A link, a fifo, a file that others can write: none is read."""
    detach(xs, "true", name="good")
    text = json.dumps({**GOOD, "name": "bad"})
    bad = xs.state / "bad.json"
    (xs.state / "target").write_text(text)
    bad.symlink_to("target")
    assert xs.run("attach", "bad").status == 1
    bad.unlink()
    os.mkfifo(bad)
    assert xs.run("attach", "bad").status == 1
    bad.unlink()
    bad.write_text(text)
    bad.chmod(0o666)
    done = xs.run("attach", "bad")
    assert done.status == 1 and "nobody else can write" in done.err


def test_a_state_file_with_escapes(xs):
    """What a server or a file says never drives the terminal."""
    detach(xs, "true", name="good")
    state = xs.kept()["good"]
    state.update(command="a\033[2Jb", host="ws://127.0.0.1:1/\033]0;x\007")
    (xs.state / "good.json").write_text(json.dumps(state))
    for done in (xs.run("ps"), xs.run("attach", "good"), xs.run("-v", "logs", "good")):
        assert b"\033" not in done.out and "\033" not in done.err and "\007" not in done.err, done


def test_no_place_for_state(xs):
    """Without a state file a process could not be found again: nothing is started."""
    ran = xs.home / "ran"
    done = xs.run("run", "-d", "touch", str(ran), env={"HOME": None})
    assert done.status == 1 and "XDG_STATE_HOME" in done.err
    (xs.home / "file").touch()
    done = xs.run("run", "-d", "touch", str(ran), env={"XDG_STATE_HOME": str(xs.home / "file")})
    assert done.status == 1 and "file" in done.err and not ran.exists()


@pytest.mark.parametrize("moment", range(0, 12, 2))
def test_killed_while_detaching(xs, moment):
    """Whenever xs is killed, what runs has a state file, and ps tells what has become of it."""
    done = xs.start("run", "-d", "--name", "job", "sleep", "1000")
    until(lambda: done.popen.poll() is not None or _wakes(done.pid) >= moment, "the moment")
    done.popen.kill()
    done.popen.wait(PATIENCE)
    # A session whose client was killed is free at once: the connection has ended.
    until(lambda: all(p["state"] in ("running", "gone") for p in processes(xs)), "the session")
    left = {p["name"] for p in processes(xs)}
    assert left == set(xs.kept())
    if left:
        assert xs.run("kill", "job").status == 0


def _wakes(pid):
    """How often a process has gone to sleep."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return int(re.search(r"voluntary_ctxt_switches:\s+(\d+)", f.read()).group(1))
    except (FileNotFoundError, ProcessLookupError):
        return 1000
