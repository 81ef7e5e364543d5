"""The audit log: what is in it, what is not, and that it never holds up the service."""

import json
import os
import re
import signal
import stat
import threading

import pytest

from harness.metrics import metrics
from harness.server import run
from harness.settings import SANITIZED
from harness.waiting import until
from harness.ws import Refused

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
STRANGER = 65534
# Long names make long lines, so that few of them fill the ring.
LONG_NAME = 4000
RING = 1 << 20

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to change its user")


class Log:
    """An audit log on a disk."""

    def __init__(self, path):
        self.path = path

    def text(self):
        return self.path.read_text() if self.path.exists() else ""

    def lines(self):
        """The complete lines, each checked for what every line has."""
        text = self.text()
        found = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
        for line in found:
            assert list(line)[:2] == ["ts", "event"] and TIME.fullmatch(line["ts"]), line
        assert [line["ts"] for line in found] == sorted(line["ts"] for line in found)
        return found

    def events(self, *names):
        return [line for line in self.lines() if line["event"] in names]

    def wait(self, event, count=1):
        """Waits for so many lines of an event; returns them."""
        until(lambda: len(self.events(event)) >= count, f"{count} lines of {event}")
        found = self.events(event)
        assert len(found) == count, found
        return found


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "audit.log")


def start_with(fleet, log, *args, **options):
    return fleet.start("--audit-log", str(log.path), *args, **options)


# What is in it.

def test_life_of_a_process(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    process = client.start("read line; exit 3", pipeStdin=True, cwd="file:///usr")
    client.write(process, "quite private\n")
    client.wait_closed(process)
    client.end()
    log.wait("disconnect")
    lines = log.lines()
    assert [line["event"] for line in lines] == ["connect", "start", "write", "exit", "disconnect"]
    connect, start, write, end, disconnect = lines
    who = {"peer": connect["peer"], "session": client.session[:8]}
    assert re.fullmatch(r"127\.0\.0\.1:\d+", connect["peer"])
    assert set(connect) == {"ts", "event", "peer"}
    about = {**who, "processId": process.name}
    pid = start["pid"]
    assert isinstance(pid, int)
    assert start == {"ts": start["ts"], "event": "start", **about, "pid": pid,
                     "argv": ["/bin/sh", "-c", "read line; exit 3"], "cwd": "/usr", "tty": False}
    assert write == {"ts": write["ts"], "event": "write", **about, "bytes": len("quite private\n"),
                     "status": "accepted"}
    resources = end.pop("resources")
    assert set(resources) == {"userTimeMs", "systemTimeMs", "peakMemoryBytes", "wallTimeMs"}
    assert end == {"ts": end["ts"], "event": "exit", "session": who["session"],
                   "processId": process.name, "pid": pid, "exitCode": 3}
    assert disconnect == {"ts": disconnect["ts"], "event": "disconnect", **who}


def test_signals_and_ends(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    hit = client.start("sleep 1000", tty=True, arg0="-sh")
    client.call("process/signal", {"processId": hit.name, "signal": "interrupt"})
    client.wait_closed(hit)
    killed = client.start("sleep 1000")
    client.terminate(killed)
    client.wait_closed(killed)
    asked = client.start("sleep 1000")
    client.call("process/terminate", {"processId": asked.name,
                                      "mode": {"type": "graceful", "timeoutMs": 5000}})
    client.wait_closed(asked)
    late = client.start("sleep 1000", timeoutMs=1)
    client.wait_closed(late)
    ends = {line["processId"]: line for line in log.wait("exit", 4)}
    assert ends[hit.name]["exitCode"] == 130 and ends[hit.name]["signal"] == "SIGINT"
    assert ends[killed.name]["signal"] == "SIGKILL" and "timedOut" not in ends[killed.name]
    assert ends[asked.name]["signal"] == "SIGTERM"
    assert ends[late.name]["timedOut"] is True
    assert [(line["processId"], line["signal"]) for line in log.events("signal")] == [
        (hit.name, "SIGINT")]
    assert [(line["processId"], line["mode"], line.get("timeoutMs"))
            for line in log.events("terminate")] == [
        (killed.name, "force", None), (asked.name, "graceful", 5000)]
    first = log.events("start")[0]
    assert first["tty"] is True and first["argv"][0] == "-sh" and first["program"] == "/bin/sh"


def test_failed_start(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    client.start_error(["/no/such/program", "argument"])
    failed, = log.wait("failed")
    assert failed["argv"] == ["/no/such/program", "argument"]
    assert failed["reason"] == "No such file or directory (os error 2)"
    assert not log.events("start", "exit")


@pytest.mark.parametrize("ttl", ["0", "600"])
def test_processes_that_end_with_their_session(fleet, log, ttl):
    """Each start has its exit, also when nobody is there to hear of it."""
    server = start_with(fleet, log, "--session-ttl", ttl)
    client = server.client()
    names = {client.start("sleep 1000").name for _ in range(3)}
    client.close()
    if ttl == "0":
        log.wait("exit", 3)
    server.stop()
    ends = log.events("exit")
    assert {line["processId"] for line in ends} == names and len(ends) == 3
    assert all(line["signal"] == "SIGKILL" and line["session"] == client.session[:8]
               for line in ends)


def test_write_states(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    none = client.start("sleep 1000")
    assert client.write(none, "x") == {"status": "stdinClosed"}
    cat = client.start("cat >/dev/null", pipeStdin=True)
    client.write(cat, "x" * 1000, closeStdin=True)
    client.wait_closed(cat)
    client.write("no such process", "x")
    client.barrier()
    found = log.wait("write", 2)
    assert [(line["processId"], line["bytes"], line["status"]) for line in found] == [
        (none.name, 1, "stdinClosed"), (cat.name, 1000, "accepted")]
    assert found[1]["closeStdin"] is True and "closeStdin" not in found[0]


def test_attach(fleet, log):
    server = start_with(fleet, log, "--allow-attach")
    owner, viewer = server.client(), server.client()
    process = owner.start("sleep 1000")
    viewer.call("process/attach", {"sessionId": owner.session, "processId": process.name})
    line, = log.wait("attach")
    assert line["processId"] == process.name and line["session"] == owner.session[:8]
    assert line["viewer"] == viewer.session[:8]


def test_stdio(fleet, log):
    client = fleet.stdio("--audit-log", str(log.path))
    client.run("true")
    client.transport.close_stdin()
    client.transport.rest()
    assert client.transport.wait() == 0
    lines = log.lines()
    assert [line["event"] for line in lines] == ["connect", "start", "exit", "disconnect"]
    assert lines[0]["peer"] == lines[3]["peer"] == "stdio"


# Refusals.

def test_http_refusals(fleet, log, tmp_path):
    token = tmp_path / "token"
    token.write_text("sekret")
    server = start_with(fleet, log, "--ws-auth", "capability-token", "--ws-token-file", str(token),
                        "--metrics")
    for headers in [(), [("Authorization", "Bearer wrong-secret")], [("Origin", "http://x")]]:
        with pytest.raises(Refused):
            server.websocket(headers=headers)
    server.http().ask("/metrics", headers=[("Sec-Fetch-Mode", "cors")])
    server.websocket(headers=[("Authorization", "Bearer sekret")])
    log.wait("connect")
    found = [(line["status"], line["reason"], line["what"]) for line in log.wait("refused", 4)]
    assert found == [(401, "missing websocket bearer token", "connection"),
                     (401, "invalid websocket bearer token", "connection"),
                     (403, "the request has an Origin header", "connection"),
                     (403, "/metrics or /v1/files from a browser or by an unknown name", "connection")]
    assert "sekret" not in log.text() and "wrong-secret" not in log.text()


def test_too_many_connections(fleet, log):
    server = start_with(fleet, log, "--max-connections", "1")
    client = server.client()
    with pytest.raises(Refused):
        server.websocket()
    line, = log.wait("refused")
    assert (line["status"], line["reason"]) == (503, "too many connections")
    assert re.fullmatch(r"127\.0\.0\.1:\d+", line["peer"])
    client.sync()


@as_root
def test_another_user(fleet, log, tmp_path):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and parent != parent.parent:
            parent.chmod(parent.stat().st_mode | 0o011)
    path = tmp_path / "socket"
    server = start_with(fleet, log, listen=f"unix://{path}")
    path.chmod(0o666)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setuid(STRANGER)
            server.http().ask("/readyz")
        except BaseException:  # pylint: disable=broad-except
            code = 0
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    line, = log.wait("refused")
    assert line["peer"].startswith(f"unix: user {STRANGER}, process {pid}")
    assert line["reason"] == "the socket is for another user" and "status" not in line
    assert server.client().sync() is None
    assert log.wait("connect")[0]["peer"] == "unix"


def test_sandboxed_start(fleet, log):
    """What was asked for, not the launcher; and whether it seems to have been denied."""
    client = start_with(fleet, log).client()
    files = {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}
    sandbox = {"permissions": {"type": "managed", "file_system": files, "network": "restricted"}}
    for command in (["/bin/sh", "-c", "echo sandbox; exit 3"], ["/no/such", "--token", "abc"]):
        params = client.start_params(command, sandbox=sandbox)
        ident = client.send("process/start", params)
        if "result" in client.answer(ident):
            client.wait_closed(client.processes[params["processId"]])
    client.run("true")
    started, plain = log.wait("start", 2)
    assert started["argv"] == ["/bin/sh", "-c", "echo sandbox; exit 3"]
    assert started["cwd"] == "/tmp" and started["sandboxed"] is True and "sandboxed" not in plain
    failed, = log.wait("failed")
    assert failed["argv"] == ["/no/such", "--token", "[redacted]"] and failed["sandboxed"] is True
    assert failed["reason"] == "No such file or directory (os error 2)"
    ended, other = log.wait("exit", 2)
    assert ended["exitCode"] == 3 and ended["sandboxDenied"] is True
    assert "sandboxDenied" not in other


def test_start_refusals(fleet, log):
    server = start_with(fleet, log, "--max-processes", "1", "--allow-prepared-exec", "false")
    client = server.client()
    files = {"type": "restricted", "entries": []}
    sandbox = {"permissions": {"type": "managed", "file_system": files, "network": "enabled"}}
    client.start("sleep 1000")
    errors = [
        client.start_error("true"),
        client.start_error("true", sandbox=sandbox),
        client.error("process/start", {"prepared": {
            "processId": "x", "io": {"type": "pipe"},
            "request": {"command": ["true", "--token", "abc"], "cwd": "file:///", "env": {}}}}),
    ]
    found = log.wait("refused", 3)
    assert [line["reason"] for line in found] == [message for _, message in errors]
    assert all(line["what"] == "process/start" and line["session"] == client.session[:8]
               for line in found)
    assert found[2]["processId"] == "x" and found[2]["argv"] == ["true", "--token", "[redacted]"]


def test_limits_refusal(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    # More than any host allows; found out before the start, or by the command's own process.
    _, message = client.start_error("true", limits={"openFiles": 1 << 30})
    line, = until(lambda: log.events("refused", "failed"), "a line")
    assert line["reason"] == message and "limits.openFiles" in message
    assert line["argv"] == ["/bin/sh", "-c", "true"] and not log.events("start")


# What is not in it.

def test_secrets(fleet, log):
    server = start_with(fleet, log, env={"OWN_TOKEN": "value-0"})
    client = server.client()
    client.run(["/bin/echo", "--token=value-1", "--password", "value-2", "API_KEY=value-3",
                "Authorization: Bearer value-4", "https://user:value-5@host/"])
    client.run("TOKEN=value-6; echo --secret value-7 'Authorization: Bearer value-8' >/dev/null",
               env={"PATH": "/bin", "SECRET": "value-9", "HARMLESS": "value-10"})
    process = client.start("cat", pipeStdin=True)
    client.write(process, "value-11\n")
    client.wait_output(process, "value-11")
    log.wait("write")
    text = log.text()
    assert "value-" not in text
    assert client.session not in text
    assert log.events("start")[0]["argv"] == [
        "/bin/echo", "--token=[redacted]", "--password", "[redacted]", "API_KEY=[redacted]",
        "Authorization: [redacted]", "https://[redacted]@host/"]
    assert log.events("start")[1]["argv"][2] == (
        "TOKEN=[redacted]; echo --secret [redacted] 'Authorization: [redacted]' >/dev/null")


def test_long_and_odd_arguments(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    client.run(["/bin/true", "x" * 100000, "more"])
    client.run(["/bin/true", "a\n\"\\\x01\u20ac\U0001f600"])
    client.run(["/bin/true"] + [""] * 10000)
    os.mkdir(log.path.parent / "bad\udcff")
    uri = f"file://{log.path.parent}/bad%FF"
    client.run(["/bin/true"], cwd=uri)
    long, odd, many, place = log.wait("start", 4)
    assert len(long["argv"]) == 2 and long["argvCut"] is True
    assert re.fullmatch(r"x+\.\.\.", long["argv"][1]) and len(long["argv"][1]) <= 4096 + 3
    assert odd["argv"][1] == "a\n\"\\\x01\u20ac\U0001f600" and "argvCut" not in odd
    assert len(many["argv"]) <= 4096 and many["argvCut"] is True
    assert place["cwd"] == f"{log.path.parent}/bad\ufffd"


# The file.

def test_file(fleet, log):
    log.path.write_text("kept\n")
    log.path.chmod(0o600)
    server = start_with(fleet, log)
    server.client()
    until(lambda: log.text().count("\n") == 2, "a line")
    assert log.text().startswith("kept\n{")
    server.stop()
    log.path.unlink()
    before = os.umask(0)
    try:
        fleet.start("--audit-log", str(log.path))
    finally:
        os.umask(before)
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


@pytest.mark.skipif(SANITIZED, reason="a sanitizer may have threads of its own")
def test_no_thread_without_it(fleet, log):
    assert fleet.start().threads() == 1
    assert start_with(fleet, log).threads() == 2


def test_commands_do_not_inherit_it(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    assert str(log.path) in server.fd_targets()
    process = client.run("exec ls -l /proc/self/fd /proc/self/task")
    assert str(log.path).encode() not in process.output()


@pytest.mark.parametrize("path, reason", [
    ("/no/such/directory/log", "No such file or directory (os error 2)"),
    ("/", "Is a directory (os error 21)"),
])
def test_cannot_be_opened(path, reason):
    code, out, err = run("--listen", "ws://127.0.0.1:0", "--audit-log", path)
    assert (code, out) == (1, "")
    assert err == f"Error: cannot open the audit log {path}: {reason}\n"


def test_rotation(fleet, log):
    server = start_with(fleet, log)
    server.client()
    log.wait("connect")
    old = Log(log.path.with_suffix(".1"))
    log.path.rename(old.path)
    server.send_signal(signal.SIGHUP)
    until(log.path.exists, "a new file")
    assert server.running()
    server.client()
    log.wait("connect")
    assert len(old.lines()) == 1 and len(log.lines()) == 1
    assert str(old.path) not in server.fd_targets()


def test_rotation_and_token(fleet, log, tmp_path):
    token = tmp_path / "token"
    token.write_text("one")
    server = start_with(fleet, log, "--ws-auth", "capability-token", "--ws-token-file", str(token))
    log.path.unlink()
    token.write_text("two")
    server.send_signal(signal.SIGHUP)
    until(log.path.exists, "a new file")

    def accepted():
        try:
            return server.websocket(headers=[("Authorization", "Bearer two")])
        except Refused:
            return None
    assert until(accepted, "the new token")


def test_rotation_fails(fleet, log):
    """Without a new file it goes on with the old one."""
    server = start_with(fleet, log, quiet=False)
    moved = Log(log.path.with_suffix(".1"))
    log.path.rename(moved.path)
    log.path.mkdir()
    server.send_signal(signal.SIGHUP)
    until(lambda: "cannot open the audit log" in server.stderr(), "a message")
    server.client()
    moved.wait("connect")


# A disk that is full or slow.

class Flood:
    """Requests whose lines are long."""

    def __init__(self, client):
        self.client = client
        self.name = "n" * LONG_NAME
        client.start("exec cat >/dev/null", processId=self.name, pipeStdin=True)
        self.sent = 0

    def run(self, count):
        for _ in range(count):
            assert self.client.write(self.name, "x") == {"status": "accepted"}
        self.sent += count


def dropped(server):
    return metrics(server).get("audit_lines_dropped_total")


def flood_until_dropped(server, flood):
    """The service answers each request, however full the log is."""
    flood.run(2 * RING // LONG_NAME)
    assert dropped(server) > 0
    assert flood.client.run("echo still here").output() == b"still here\n"
    server.client().sync()


def test_full_disk(fleet):
    server = fleet.start("--audit-log", "/dev/full", "--metrics", quiet=False)
    client = server.client()
    until(lambda: "cannot write the audit log /dev/full: No space left on device"
          in server.stderr(), "a message")
    assert dropped(server) == 0
    flood_until_dropped(server, Flood(client))
    assert server.stderr().count("cannot write the audit log") == 1
    assert "lines are dropped" in server.stderr()
    server.stop()


def test_fifo_without_reader(fleet, tmp_path):
    """The log waits, the service does not; nothing is lost without a trace."""
    path = tmp_path / "fifo"
    os.mkfifo(path, 0o600)
    server = fleet.start("--audit-log", str(path), "--metrics", quiet=False)
    client = server.client()
    flood = Flood(client)
    flood_until_dropped(server, flood)
    lost = dropped(server)

    lines = []

    def collect():
        with open(path, encoding="utf-8") as fifo:
            for line in fifo:
                lines.append(json.loads(line))
                if lines[-1]["event"] == "signal":
                    return
    reader = threading.Thread(target=collect, daemon=True)
    reader.start()
    until(lambda: any(line["event"] == "dropped" for line in lines), "the count")
    assert client.run("true").exit_code == 0
    client.call("process/signal", {"processId": flood.name, "signal": "usr1"})
    reader.join(timeout=120)
    assert not reader.is_alive()
    reports = [line for line in lines if line["event"] == "dropped"]
    assert sum(line["count"] for line in reports) == lost == dropped(server)
    at = lines.index(reports[0])
    # It stands where the lines are missing: behind writes, in front of what came later.
    assert lines[at - 1]["event"] == "write"
    assert [line["event"] for line in lines[at + 1:]][-3:] == ["start", "exit", "signal"]
    server.stop()


def test_stop_with_a_stuck_log(fleet, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path, 0o600)
    server = fleet.start("--audit-log", str(path), "--metrics", quiet=False)
    flood_until_dropped(server, Flood(server.client()))
    server.stop()


def test_nothing_is_lost_at_the_end(fleet, log):
    """What was put in before the end is written before the end."""
    server = start_with(fleet, log)
    client = server.client()
    flood = Flood(client)
    flood.run(100)
    server.stop()
    assert len(log.events("write")) == 100 and not log.events("dropped")
    assert len(log.events("exit")) == len(log.events("disconnect")) == 1
