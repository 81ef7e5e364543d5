"""The audit log: what is in it, what is not, and that it never holds up the service."""

import base64
import hmac
import json
import os
import re
import signal
import stat
import threading
import time

import pytest

from harness import procfs
from harness.files import Files, os_error
from harness.metrics import metrics
from harness.resting import waits_until
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
    assert [line["event"] for line in lines] \
        == ["connect", "session", "start", "write", "exit", "disconnect"]
    connect, session, start, write, end, disconnect = lines
    who = {"peer": connect["peer"], "session": client.session[:8], "client": "e2e"}
    assert session == {"ts": session["ts"], "event": "session", **who, "resumed": False}
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
    assert end == {"ts": end["ts"], "event": "exit", "session": who["session"], "client": "e2e",
                   "processId": process.name, "pid": pid, "exitCode": 3}
    assert disconnect == {"ts": disconnect["ts"], "event": "disconnect", **who}


def test_signals_and_ends(fleet, log):
    server = start_with(fleet, log)
    client = server.client()
    hit = client.start("echo ready; exec sleep 1000", tty=True, arg0="-sh")
    client.wait_output(hit, "ready")  # a shell may miss a signal while it reads its profile
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
    assert [line["event"] for line in lines] \
        == ["connect", "session", "start", "exit", "disconnect"]
    assert lines[0]["peer"] == lines[4]["peer"] == "stdio"


def token_for(subject, secret):
    """A signed token."""
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    claims = {"exp": int(time.time()) + 3600, **({"sub": subject} if subject else {})}
    body = part(b'{"alg":"HS256"}') + b"." + part(json.dumps(claims).encode())
    return (body + b"." + part(hmac.digest(secret, body, "sha256"))).decode()


def test_client_and_subject(fleet, log, tmp_path):
    """Each line of a session tells which program asked, and with whose token."""
    secret = b"0123456789abcdef0123456789abcdef"
    (tmp_path / "secret").write_bytes(secret)
    server = start_with(fleet, log, "--ws-auth", "signed-bearer-token",
                        "--ws-shared-secret-file", str(tmp_path / "secret"))

    def connect(subject, name, **params):
        bearer = [("Authorization", f"Bearer {token_for(subject, secret)}")]
        client = server.connect(headers=bearer)
        client.initialize(name=name, **params)
        return client

    odd = 'a\nb"\u0007\u20ac'
    first = connect("alice@example.org", odd)
    first.run("true")
    first.close()
    log.wait("disconnect")
    lines = [line for line in log.lines() if "session" in line]
    assert [line["event"] for line in lines] == ["session", "start", "exit", "disconnect"]
    assert {(line["client"], line["subject"]) for line in lines} == {(odd, "alice@example.org")}
    second = connect("bob", "other", resumeSessionId=first.session)
    second.run("true")
    third = connect(None, "x" * 1000)
    third.run("true")
    session = log.wait("session", 3)
    assert [(s["client"], s.get("subject"), s["resumed"]) for s in session] \
        == [(odd, "alice@example.org", False), ("other", "bob", True), ("x" * 128, None, False)]
    starts = log.wait("start", 3)
    assert [s.get("subject") for s in starts] == ["alice@example.org", "bob", None]


# Changes of files.

def test_changes_of_files(fleet, log, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    server = start_with(fleet, log)
    client = server.client()
    files = Files(client)
    files.write(place / "f", b"private data")
    files.write(place / "f", b"other data", atomic=True)
    files.mkdir(place / "d")
    files.copy(place / "f", place / "g")
    files.rename(place / "g", place / "d" / "h")
    files.chmod(place / "f", 0o600)
    files.set_times(place / "f", 1500)
    files.symlink(place / "l", "to/where")
    files.symlink(place / "b", b"\xff")
    assert files.read_link(place / "l") == b"to/where"
    files.remove(place / "d", recursive=True)
    assert files.error("writeFile", place / "no" / "f", dataBase64="") == os_error(2)
    files.read(place / "f")  # no change
    files.metadata(place / "f")
    handle = files.open(place / "stream", mode="replace")
    files.write_block(handle, 0, b"0123456789")
    files.write_block(handle, 10, b"01234")
    files.close(handle)
    files.close(files.open(place / "f"))
    handle = files.open(place / "stream", mode="update")
    files.write_block(handle, 15, b"567")
    files.close(handle)
    name = str(place)
    found = [(line["method"].removeprefix("fs/"), line["path"].removeprefix(name + "/"),
              line.get("destination", "").removeprefix(name + "/"), line.get("bytes"), line["ok"],
              line.get("reason")) for line in log.wait("file", 15)]
    assert found == [
        ("writeFile", "f", "", 12, True, None),
        ("writeFile", "f", "", 10, True, None),
        ("createDirectory", "d", "", None, True, None),
        ("copy", "f", "g", None, True, None),
        ("rename", "g", "d/h", None, True, None),
        ("setPermissions", "f", "", None, True, None),
        ("setTimes", "f", "", None, True, None),
        ("symlink", "l", "to/where", None, True, None),
        ("symlink", "b", "\ufffd", None, True, None),
        ("remove", "d", "", None, True, None),
        ("writeFile", "no/f", "", 0, False, "No such file or directory (os error 2)"),
        ("open", "stream", "", None, True, None),
        ("close", "stream", "", 15, True, None),
        ("open", "stream", "", None, True, None),
        ("close", "stream", "", 3, True, None)]
    who = {(line["session"], line["client"]) for line in log.events("file")}
    assert who == {(client.session[:8], "e2e")}
    assert "private" not in log.text()


def test_changes_over_http(fleet, log, tmp_path):
    server = start_with(fleet, log, "--http-files")
    for path in (tmp_path / "f", tmp_path / "no" / "f"):
        http = server.http()
        http.send(f"PUT /v1/files?path={path} HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 4\r\n\r\ndata")
        http.read()
    cut = server.http()
    cut.send(f"PUT /v1/files?path={tmp_path}/cut HTTP/1.1\r\nHost: localhost\r\n"
             "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert cut.read().status == 100
    cut.sock.close()
    found = [(line["method"], line["path"], line["bytes"], line["ok"], line.get("reason"))
             for line in log.wait("file", 3)]
    assert found == [
        ("PUT /v1/files", f"{tmp_path}/f", 4, True, None),
        ("PUT /v1/files", f"{tmp_path}/no/f", 4, False, "No such file or directory (os error 2)"),
        ("PUT /v1/files", f"{tmp_path}/cut", 4, False,
         "the connection ended before the body did")]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", line["peer"]) for line in log.events("file"))


def test_a_change_that_outlives_its_connection(fleet, log, faultfs):
    """The log has the change when it is made, even if nobody waits for the answer."""
    server = start_with(fleet, log)
    client = server.client()
    path = faultfs.file("hang-write", b"")
    Files(client).send("writeFile", path, dataBase64="AAAA")
    faultfs.hangs("write", "hang-write")
    client.close()
    log.wait("disconnect")
    assert log.events("file") == []
    faultfs.release()
    line, = log.wait("file")
    assert (line["path"], line["ok"], line["session"]) == (str(path), True, client.session[:8])


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


def test_refusals_are_limited(fleet, log, tmp_path):
    """A peer without a token can neither fill the disk nor displace other lines: the log has sums."""
    token = tmp_path / "token"
    token.write_text("sekret")
    server = start_with(fleet, log, "--ws-auth", "capability-token", "--ws-token-file", str(token))
    http = server.http()
    for _ in range(500):
        http.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        assert http.read().status == 401
    server.websocket(headers=[("Authorization", "Bearer sekret")])
    log.wait("connect")
    server.stop()
    lines = log.events("refused")
    single = [line for line in lines if line["what"] == "connection"]
    sums = [line for line in lines if line["what"] == "connections"]
    assert 10 <= len(single) < 250 and sums
    assert len(single) + sum(line["count"] for line in sums) == 500
    assert {line["peer"] for line in sums} == {"127.0.0.1"}
    assert all(line["seconds"] >= 0 for line in sums)
    assert not log.events("dropped")


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
    until(lambda: log.text().count("\n") == 3, "two lines")
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
    log.wait("session")
    old = Log(log.path.with_suffix(".1"))
    log.path.rename(old.path)
    server.send_signal(signal.SIGHUP)
    until(log.path.exists, "a new file")
    assert server.running()
    server.client()
    log.wait("session")
    assert len(old.lines()) == 2 and len(log.lines()) == 2
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
    server.send_signal(signal.SIGTERM)
    server.popen.wait()
    assert re.search(r"ERROR [1-9]\d* lines of the audit log were lost\n", server.stderr())
    assert "the audit log does not answer: not waiting for it" in server.stderr()
    assert server.wait() == 0


@pytest.mark.skipif(SANITIZED, reason="a sanitizer may have threads of its own")
def test_stop_while_the_log_lacks_the_cpu(fleet, log):
    """The server does not take a busy machine for a stuck log."""
    server = start_with(fleet, log)
    writer, = {int(t) for t in os.listdir(f"/proc/{server.pid}/task")} - {server.pid}
    flood = Flood(server.client())
    # Halted in the middle of a write, the writer would look as if the file hung.
    until(lambda: log.events("session") and procfs.state(writer) == "S", "the writer has no lines")
    with procfs.halted(writer):
        flood.run(100)
        server.send_signal(signal.SIGTERM)
        first = until(lambda: waits_until(server.pid), "the server waits for the log")
        until(lambda: (waits_until(server.pid) or first) > first, "it waits for longer")
    assert server.wait() == 0
    assert len(log.events("write")) == 100 and not log.events("dropped")


def test_nothing_is_lost_at_the_end(fleet, log):
    """What was put in before the end is written before the end."""
    server = start_with(fleet, log)
    client = server.client()
    flood = Flood(client)
    flood.run(100)
    server.stop()
    assert len(log.events("write")) == 100 and not log.events("dropped")
    assert len(log.events("exit")) == len(log.events("disconnect")) == 1
