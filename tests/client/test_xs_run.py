"""xs run: words, streams, exit statuses, signals. Numbers are those of the acceptance list."""

import json
import os
import signal
import socket
import subprocess

import pytest

from harness import procfs
from harness.settings import SANITIZED
from harness.waiting import until
from harness.xs import XS

MB = 1 << 20


@pytest.fixture(params=["ours", "reference"])
def both(request, xs):
    """The user, at our server and at the reference."""
    if request.param == "reference":
        xs.host = request.getfixturevalue("reference").url
    return xs


def test_01_exit_status(both):
    assert both.run("run", "true").ok() == b""
    assert both.run("run", "sh", "-c", "exit 7").status == 7
    assert both.run("run", "sh", "-c", "kill -9 $$").status == 137
    assert both.run("run", "false").err == ""


def test_02_cannot_be_run(both):
    for args, status, name in ((["nosuch"], 127, "nosuch"), (["/tmp"], 126, "/tmp"),
                               (["-w", "/nosuch", "true"], 126, "/nosuch"),
                               (["-w", "/etc/passwd", "true"], 126, "/etc/passwd"),
                               (["/etc/passwd"], 126, "/etc/passwd")):
        done = both.run("run", *args)
        assert done.status == status, (args, done)
        assert done.err.startswith(f"xs: {name}: ") and done.err.count("\n") == 1, done
        assert done.out == b""


def test_03_no_server(lone_xs):
    url = "ws://127.0.0.1:1"
    for more in ([], ["-q"]):
        done = lone_xs.run("-H", url, *more, "run", "true")
        assert done.status == 255
        assert done.err.startswith(f"xs: {url}: ") and done.err.count("\n") == 1, done
    # Nothing is chosen in silence, least of all this machine.
    done = lone_xs.run("run", "true")
    assert done.status == 2 and done.err.startswith("xs: ") and "CODEX_EXEC_SERVER_URL" in done.err


def _listener():
    return socket.create_server(("127.0.0.1", 0))


def test_04_input_ends(both):
    assert both.run("run", "cat", stdin=b"a\n").ok() == b"a\n"
    assert both.run("run", "cat").ok() == b""
    assert both.run("run", "-n", "cat", stdin=b"a\n").ok() == b""
    assert both.run("run", "wc", "-c", stdin=bytes(3 * MB)).text().split() == [str(3 * MB)]


def test_04_spool(reference, xs):
    """The reference cannot close stdin: the input goes through files, which are private and gone
    when the command begins."""
    before = set(os.listdir("/tmp"))
    said = xs.run("-v", "run", "sh", "-c", "ls -l /proc/self/fd/0; cat", stdin=b"x",
                  host=reference.url)
    assert said.status == 0 and b"(deleted)" in said.out and said.out.endswith(b"x"), said
    assert "the input goes through files there" in said.err
    assert xs.run("run", "nosuch", stdin=b"x", host=reference.url).status == 127
    done = xs.run("run", "-w", "/nosuch", "cat", stdin=b"x", host=reference.url)
    assert done.status == 126 and "/nosuch" in done.err, done
    left = {name for name in set(os.listdir("/tmp")) - before if name.startswith("xs-stdin")}
    assert not left


def test_05_streams_stay_apart(both):
    done = both.run("run", "sh", "-c", "echo o; echo e >&2")
    assert (done.status, done.out, done.err) == (0, b"o\n", "e\n")


def test_06_input_comes_back(xs, tmp_path):
    """tests/verify/xs sends 1 GiB."""
    data = os.urandom(MB) * 16
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(data)
    with open(source, "rb") as stdin, open(back, "wb") as stdout:
        done = xs.start("run", "cat", stdin=stdin, stdout=stdout)
        assert done.wait().status == 0
    assert back.read_bytes() == data


def test_07_yes_head_ends(both):
    """The reader of the output goes: the command is ended."""
    mark = f"XS_TEST_MARK=yes-{os.getpid()}"
    first = both.start("run", "-e", mark, "yes")
    head = subprocess.run(["head", "-1"], stdin=first.popen.stdout, stdout=subprocess.PIPE,
                          check=True)
    first.popen.stdout.close()
    first.popen.stdout = None
    assert head.stdout == b"y\n"
    assert first.wait().status == 141
    until(lambda: not [p for p in _marked(mark)], "the end of the command")


def _marked(mark):
    """Processes with a variable."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() in f.read().split(b"\0") and procfs.state(int(pid)) != "Z":
                    yield int(pid)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass


TRAPS = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "QUIT": signal.SIGQUIT,
         "USR1": signal.SIGUSR1, "USR2": signal.SIGUSR2, "INT": signal.SIGINT}


@pytest.mark.parametrize("name", TRAPS)
def test_08_signals_reach_a_trap(xs, name):
    done = xs.start("run", "sh", "-c", f"trap 'echo {name}; exit 9' {name}; echo ready; "
                                       "while :; do sleep 0.01; done")
    done.expect(b"ready\n")
    done.signal(TRAPS[name])
    done = done.wait()
    assert (done.status, done.out) == (9, f"ready\n{name}\n".encode())


def test_08_signals_at_the_reference(reference, xs):
    """It knows INT alone; signals that end commands end them."""
    done = xs.start("run", "sh", "-c", "trap 'exit 9' INT; echo ready; "
                                       "while :; do sleep 0.01; done", host=reference.url)
    done.expect(b"ready\n")
    done.signal(signal.SIGINT)
    assert done.wait().status == 9
    done = xs.start("run", "sh", "-c", "echo ready; while :; do sleep 0.01; done",
                    host=reference.url)
    done.expect(b"ready\n")
    done.signal(signal.SIGUSR1)
    done.expect_err("the server cannot send SIGUSR1")
    done.signal(signal.SIGTERM)
    assert done.wait().status > 128


def test_08_three_interrupts(xs):
    done = xs.start("run", "sh", "-c", "trap 'echo no' INT; echo ready; "
                                       "while :; do sleep 0.01; done")
    done.expect(b"ready\n")
    for _ in range(2):
        seen = done.out.count(b"no\n")
        done.signal(signal.SIGINT)
        while done.out.count(b"no\n") == seen:
            assert done.read()
    done.signal(signal.SIGINT)
    done = done.wait()
    assert done.status == 130 or done.out.count(b"no\n") >= 3, done


def test_08_a_signal_while_connecting(lone_xs):
    """Nobody has the command yet: xs ends by the signal."""
    with _listener() as listener:
        done = lone_xs.start("-H", f"ws://127.0.0.1:{listener.getsockname()[1]}", "run", "true")
        peer, _ = listener.accept()
        peer.recv(1 << 16)  # the request for a WebSocket
        done.signal(signal.SIGTERM)
        assert done.wait().status == 128 + signal.SIGTERM
        peer.close()


def test_08_ignored_signals_stay_ignored(xs):
    """As under nohup."""
    done = xs.start("run", "sh", "-c", "echo ready; read a; echo $a", stdin=True,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    done.expect(b"ready\n")
    done.signal(signal.SIGHUP)
    done.write(b"still here\n")
    done = done.wait()
    assert (done.status, done.out) == (0, b"ready\nstill here\n")


# -- words, options, statuses

def test_words(xs, tmp_path):
    """As docker: no shell, and options end at the first word."""
    assert xs.run("run", "echo", "$HOME", "-n", "--", "*").text() == "$HOME -n -- *\n"
    assert xs.run("run", "--", "printf", "%s", "a b").ok() == b"a b"
    assert xs.run("exec", "echo", "alias").text() == "alias\n"
    assert xs.run("run", "-it", "-T", "echo", "x").ok() == b"x\n"
    assert xs.run("run", "-w", str(tmp_path), "pwd").text() == f"{tmp_path}\n"
    assert xs.run("run", "-c", "echo $0 $1; exit 4", "name", "arg").out == b"name arg\n"
    text = xs.run("run", "-e", "A=x=y", "-e", "COPIED", "-e", "ABSENT", "env",
                  env={"COPIED": "from here", "OTHER": "1", "XS_TOKEN": "t0ken"}).text()
    lines = text.splitlines()
    assert "A=x=y" in lines and "COPIED=from here" in lines
    assert not [x for x in lines if x.startswith(("ABSENT", "OTHER", "XS_TOKEN"))]


def test_timeout(both):
    done = both.run("run", "--timeout", "100ms", "sleep", "100")
    assert done.status == 124 and "its time was over" in done.err
    assert both.run("run", "--timeout", "1h", "true").status == 0


def test_limits_and_sandbox(xs):
    assert xs.run("run", "--limit", "files=17", "sh", "-c", "ulimit -n").text() == "17\n"
    done = xs.run("run", "--sandbox", "read-only", "sh", "-c", "echo x >/tmp/denied")
    assert done.status != 0 and not os.path.exists("/tmp/denied")
    assert xs.run("run", "--limit", "files=x", "true").status == 2
    assert xs.run("run", "--limit", "nonsense=1", "true").status == 2
    assert xs.run("run", "--net", "true").status == 2


@pytest.mark.parametrize("args", [
    [], ["nosuch"], ["run"], ["-x"], ["run", "--nosuch", "true"], ["run", "-w", "", "true"],
    ["run", "--timeout", "soon", "true"], ["run", "--timeout", "99999999999d", "true"],
    ["run", "--escape", "ab", "true"], ["run", "-d", "--name", "../x", "true"], ["cp", "a"],
    ["kill", "-s", "BOGUS", "x"], ["chmod", "9", "x"], ["ping", "--count", "0"],
    ["completion", "tcsh"], ["run", "--status-fd", "77", "true"], ["cp", "a", "b"],
])
def test_usage(xs, args):
    done = xs.run(*args)
    assert done.status == 2 and done.err.startswith("xs: ") and done.out == b"", done


def test_status_fd(both):
    def told(*args, **more):
        read, write = os.pipe()
        done = both.run(*args[:1], "--status-fd", str(write), *args[1:], pass_fds=(write,), **more)
        os.close(write)
        with open(read, "rb") as f:
            return done.status, json.loads(f.read())
    status, line = told("run", "sh", "-c", "exit 3")
    assert (status, line["end"], line["status"], line["exitCode"]) == (3, "exited", 3, 3)
    status, line = told("run", "sh", "-c", "kill -TERM $$")
    assert (status, line["status"]) == (143, 143)
    status, line = told("run", "--timeout", "50ms", "sleep", "100")
    assert (status, line["end"]) == (124, "timedOut")
    status, line = told("run", "nosuch")
    assert (status, line["end"]) == (127, "cannotRun") and "nosuch" in line["error"]
    status, line = told("run", "true", host="ws://127.0.0.1:1")
    assert (status, line["end"]) == (255, "notConnected")
    status, line = told("run", "true", host="no such thing")
    assert (status, line["end"]) == (2, "notConnected")


def test_status_fd_that_is_not_open(xs):
    """One of our own descriptors must not take its number, and nothing runs."""
    for fd in ("9", "5"):
        done = xs.run("run", "--status-fd", fd, "echo", "ran")
        assert done.status == 2 and done.out == b"" and "descriptor" in done.err, done


def test_closed_standard_streams(xs, tmp_path):
    """Descriptors 0 to 2 that are closed are not taken by a connection."""
    script = f'"{XS}" run sh -c "echo out; echo err >&2; cat" <&- >&- 2>&-; echo $?'
    done = subprocess.run(["sh", "-c", script], env=xs.environment(None, None), cwd=tmp_path,
                          stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"0\n"


def test_output_that_fails(xs):
    """A full disk is told, and the status is not the command's."""
    with open("/dev/full", "wb") as full:
        done = xs.start("run", "echo", "x", stdout=full).wait()
    assert done.status == 255 and "cannot write the output" in done.err, done


def test_slow_reader_is_waited_for(xs):
    """A reader that takes its time gets everything, and xs keeps little meanwhile."""
    done = xs.start("run", "head", "-c", str(24 * MB), "/dev/zero")
    assert done.read()
    until(lambda: procfs.state(done.pid) == "S", "xs at rest")
    assert SANITIZED or procfs.rss(done.pid) < 12 * MB
    done = done.wait()
    assert done.status == 0 and len(done.out) == 24 * MB


def test_verbose(xs):
    """-v tells of connections, -vv of messages, without their data; -q of errors alone."""
    assert ": new session " in xs.run("-v", "run", "true").err
    done = xs.run("-vv", "run", "echo", "s3cret-data")
    assert "-> process/start, id " in done.err and "<- process/output, " in done.err
    assert "s3cret-data" not in done.err
    assert xs.run("-q", "run", "--timeout", "1ms", "sleep", "9").err == ""
    assert xs.run("-q", "run", "nosuch").err != ""


def test_help_and_version(xs):
    assert xs.run("--version").text().startswith("xs ")
    text = xs.run("--help").text()
    for name in ("run", "cp", "attach", "completion"):
        assert f"  {name} " in text
        assert xs.run(name, "--help").text().startswith(f"Usage: xs [OPTIONS] {name}")
