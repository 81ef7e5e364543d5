"""What an operator sees and sets: the log, tokens with names, proxies, limits, health checks."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
from urllib.parse import quote

import pytest

from harness.metrics import metrics
from harness.rpc import RpcError
from harness.server import environment, run
from harness.settings import BINARY
from harness.waiting import until
from harness.ws import Refused
from test_ext_limits import ROOT_ONLY, WITHOUT_CGROUPS

CAPABILITY = ("--ws-auth", "capability-token")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')


class Log:
    """The log of a server, as text or as JSON."""

    def __init__(self, server):
        self.server = server

    def lines(self):
        text = self.server.stderr()
        return text[:text.rfind("\n") + 1].splitlines()

    def events(self, message):
        """The lines of a message, as level and fields."""
        found = []
        for line in self.lines():
            if line.startswith("{"):
                fields = json.loads(line)
                if fields.pop("message") == message:
                    fields.pop("ts")
                    found.append((fields.pop("level").upper(), fields))
            elif match := re.fullmatch(rf"{STAMP} (\w+) {message}:( .*)", line):
                fields = {k: v.strip('"') for k, v in FIELD.findall(match.group(2))}
                found.append((match.group(1), fields))
        return found

    def wait(self, message, count=1):
        until(lambda: len(self.events(message)) >= count, f"{count} lines of {message!r}")
        found = self.events(message)
        assert len(found) == count, found
        return found[-1]


@pytest.fixture(params=["text", "json"])
def logged(request, fleet):
    """A server at the default level, and its log."""
    server = fleet.start("--log-format", request.param, quiet=False)
    return server, Log(server)


# The log.

def test_start_is_logged(logged):
    server, log = logged
    client = server.client()
    client.run("exit 0; secret-argument", cwd="file:///usr")
    level, fields = log.wait("process started")
    peer = fields["peer"]
    assert level == "INFO" and re.fullmatch(r"127\.0\.0\.1:\d+", peer)
    assert (fields["program"], fields["cwd"]) == ("/bin/sh", "/usr")
    assert len(fields["session"]) == 8 and fields["client"]
    assert log.events("client connected")[0][1]["peer"] == peer
    assert "secret-argument" not in server.stderr()


def test_failed_and_refused_starts_are_logged(logged):
    server, log = logged
    client = server.client()
    client.start_error("true", cwd="file:///missing")
    level, fields = log.wait("start failed")
    assert (level, fields["cwd"]) == ("WARN", "/missing")
    assert "No such file" in fields["reason"]
    params = client.start_params(["/bin/true", "secret-argument"])
    client.call("process/start", params)
    with pytest.raises(RpcError):
        client.call("process/start", params)
    level, fields = log.wait("start refused")
    assert (level, fields["program"]) == ("WARN", "/bin/true")
    assert "already exists" in fields["reason"] and fields["peer"].startswith("127.0.0.1:")
    assert "secret-argument" not in server.stderr()


FORGED = '2026-01-01T00:00:00.000Z INFO forged: a=b'
HOSTILE = [f"x\n{FORGED}", f"x\r\n<3>{FORGED}", "\x1b[2J\x1b]0;x\x07", 'q" program=/bin/true "',
           "\\", "\u2028\u202e", "\x7f\x9b", "{}", "p" * 9000]


def test_hostile_names_forge_no_line(logged):
    """Whatever a client calls itself and its programs: a line stays one line."""
    server, log = logged
    for number, name in enumerate(HOSTILE):
        client = server.connect()
        client.call("initialize", {"clientName": name})
        client.notify("initialized")
        with pytest.raises(RpcError):
            client.call("process/start", client.start_params([f"/none/{name}"], processId=name))
        client.start_error("true", cwd=f"file:///none/{quote(name[:100])}")
        client.close()
        log.wait("client gone", number + 1)
    assert "forged" in server.stderr()
    for line in log.lines():
        if line.startswith("{"):
            json.loads(line)
        else:
            assert re.match(rf"{STAMP} (INFO|WARN) \w", line), line
        assert line.isprintable() and not line.startswith(FORGED), line
        assert len(line) < 5000
    assert len(log.events("client connected")) == len(HOSTILE)
    assert {fields["client"] for _, fields in log.events("client connected")} >= {"{}"}


def test_lost_clients_are_logged(logged):
    server, log = logged
    client = server.client()
    client.start("cat", pipeStdin=True)
    client.close()
    level, fields = log.wait("client gone")
    assert level == "INFO" and fields["peer"].startswith("127.0.0.1:")
    assert (fields["running"], fields["keptMs"]) == ("1", "30000")
    assert fields["reason"] == "the client hung up"
    client = server.client()
    client.end()
    _, fields = log.wait("client gone", 2)
    assert (fields["running"], fields["reason"]) == ("0", "the client closed it")


def test_failed_logins_are_logged_and_counted_together(fleet, tmp_path):
    (tmp_path / "token").write_text("the-sekret")
    (tmp_path / "token").chmod(0o600)
    server = fleet.start(*CAPABILITY, "--ws-token-file", str(tmp_path / "token"), quiet=False)
    log = Log(server)
    for _ in range(40):
        with pytest.raises(Refused):
            server.websocket(headers=[("Authorization", "Bearer wrong-sekret")])
    assert 10 <= len(log.events("connection refused")) < 40  # one a second beyond the first ten
    level, fields = log.events("connection refused")[0]
    assert (level, fields["status"]) == ("WARN", "401")
    assert fields["reason"] == "invalid websocket bearer token"
    server.stop()


def test_sum_of_refusals_is_logged_at_the_end(fleet):
    server = fleet.start(*CAPABILITY, "--ws-token-sha256", "0" * 64, quiet=False)
    for _ in range(20):
        with pytest.raises(Refused):
            server.websocket()
    server.send_signal(signal.SIGTERM)
    server.popen.wait(120)
    assert re.search(r"WARN \d+ connections of 127\.0\.0\.1 refused in \d+ s\n", server.stderr())


def test_stdio_is_quiet_by_default(tmp_path):
    with open(tmp_path / "err", "w+b") as err:
        done = subprocess.run([BINARY, "--listen", "stdio"], stdin=subprocess.DEVNULL, stderr=err,
                              stdout=subprocess.PIPE, env=environment(), timeout=120, check=False)
        err.seek(0)
        assert (done.returncode, err.read()) == (0, b"")


def test_journal_gets_priorities(tmp_path):
    def serve(stream):
        with open(tmp_path / "err", "w+b") as err:
            stat = os.fstat(err.fileno())
            own = f"{stat.st_dev}:{stat.st_ino}"
            popen = subprocess.Popen([BINARY], stdin=subprocess.DEVNULL, stderr=err,
                                     stdout=subprocess.PIPE,
                                     env=environment({"JOURNAL_STREAM": stream or own}))
            popen.stdout.readline()
            popen.terminate()
            popen.communicate(timeout=120)
            err.seek(0)
            return err.read().decode()
    assert re.fullmatch(r"<6>listening on ws://127\.0\.0\.1:\d+\n", serve(None))
    assert re.fullmatch(rf"{STAMP} INFO listening on .*\n", serve("1:2"))


def test_open_token_file_is_named(fleet, tmp_path):
    path = tmp_path / "token"
    path.write_text("t")
    path.chmod(0o644)
    server = fleet.start(*CAPABILITY, "--ws-token-file", str(path), quiet=False)
    assert f"WARN every user can read {path}: run `chmod o-rwx {path}`\n" in server.stderr()


# Tokens with names.

@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    digest = hashlib.sha256(b"ann-token").hexdigest()
    path.write_text(f"# who\nci old-token\nann sha256:{digest}\n")
    path.chmod(0o600)
    return path


def bearer(token):
    return {"headers": [("Authorization", f"Bearer {token}")]}


def logins(server, token, name):
    return metrics(server, **bearer(token)).get("token_logins_total", token=name)


def test_rotation(fleet, tokens, tmp_path):
    audit = tmp_path / "audit"
    server = fleet.start(*CAPABILITY, "--ws-tokens-file", str(tokens), "--metrics",
                         "--audit-log", str(audit), quiet=False)
    log = Log(server)
    old = server.client(**bearer("old-token"))
    assert log.wait("client connected")[1]["token"] == "ci"
    server.client(**bearer("ann-token"))
    for wrong in ("new-token", "ci", "ann", "sha256:"):
        with pytest.raises(Refused):
            server.client(**bearer(wrong))
    # Both are valid while clients change over; then only the new one is.
    for text in ("ci old-token\nci new-token\n", "ci new-token\n"):
        tokens.write_text(text)
        before = server.stderr().count("token read again")
        server.send_signal(signal.SIGHUP)
        until(lambda: server.stderr().count("token read again") > before, "the new file")
        server.client(**bearer("new-token")).sync()
        if "old" in text:
            server.client(**bearer("old-token")).sync()
    for gone in ("old-token", "ann-token"):
        with pytest.raises(Refused):
            server.client(**bearer(gone))
    old.run("true")  # a connection outlives its token
    assert logins(server, "new-token", "ci") == 4
    assert logins(server, "new-token", "ann") == 1
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    starts = [line for line in lines if line["event"] == "start"]
    assert [line["subject"] for line in starts] == ["ci"]
    assert "-token" not in server.stderr() + audit.read_text().replace("bearer token", "")


def test_bad_file_changes_nothing(fleet, tokens):
    server = fleet.start(*CAPABILITY, "--ws-tokens-file", str(tokens), quiet=False)
    tokens.write_text("ci new-token\nsekret-without-name\n")
    server.send_signal(signal.SIGHUP)
    until(lambda: "the token stays as it was" in server.stderr(), "the complaint")
    assert f"{tokens}: line 2: expected `NAME TOKEN`" in server.stderr()
    assert "sekret" not in server.stderr()
    server.client(**bearer("old-token")).sync()
    with pytest.raises(Refused):
        server.client(**bearer("new-token"))


# Proxies.

@pytest.mark.parametrize("trusted, header, peer", [
    ([], "203.0.113.5", r"127\.0\.0\.1:\d+"),
    (["10.0.0.0/8"], "203.0.113.5", r"127\.0\.0\.1:\d+"),
    (["127.0.0.1"], "203.0.113.5", r"203\.0\.113\.5, via 127\.0\.0\.1:\d+"),
    (["127.0.0.0/8", "10.0.0.0/8"], "1.1.1.1, 203.0.113.5, 10.7.7.7",
     r"203\.0\.113\.5, via 127\.0\.0\.1:\d+"),
    (["127.0.0.1"], "not an address", r"127\.0\.0\.1:\d+"),
])
def test_forwarded_for(fleet, trusted, header, peer):
    server = fleet.start(*[f"--trusted-proxy={net}" for net in trusted], quiet=False)
    server.client(headers=[("X-Forwarded-For", header)])
    assert re.fullmatch(peer, Log(server).wait("client connected")[1]["peer"])


def test_failed_login_behind_a_proxy_names_the_client(fleet):
    server = fleet.start(*CAPABILITY, "--ws-token-sha256", "0" * 64, "--trusted-proxy=127.0.0.1",
                         quiet=False)
    with pytest.raises(Refused):
        server.websocket(headers=[("X-Forwarded-For", "2001:db8::1")])
    _, fields = Log(server).wait("connection refused")
    assert fields["peer"].startswith("2001:db8::1, via 127.0.0.1:")


# Limits of commands.

def test_time_limits(fleet):
    client = fleet.start("--command-timeout", "0.2", "--command-timeout-max", "600").client()
    assert client.run("sleep 1000").exit_code != 0
    assert client.run("true", timeoutMs=600_000).exit_code == 0
    assert client.start_error("true", timeoutMs=600_001) == (
        -32600, "timeoutMs must be at most 600000 on this server")


def test_time_limit_of_all(fleet):
    client = fleet.start("--command-timeout-max", "0.2").client()
    assert client.run("sleep 1000").exit_code != 0


def test_memory_limits(fleet):
    client = fleet.start("--command-memory", str(64 << 20),
                         "--command-memory-max", str(1 << 30)).client()
    def memory(**limits):
        more = {"limits": limits} if limits else {}
        return client.run(["/usr/bin/python3", "-c", "x = bytearray(100 << 20)"], **more).exit_code
    assert memory() != 0
    assert memory(nice=1) != 0
    assert memory(memoryBytes=1 << 29) == 0
    assert client.start_error("true", limits={"memoryBytes": (1 << 30) + 1}) == (
        -32600, "limits.memoryBytes must be at most 1073741824 on this server")


@pytest.mark.parametrize("params", [
    {"timeoutMs": value} for value in (0, -1, 1.5, "5", 600_001, 2**53, 2**63, 1e300, True, [])] + [
    {"limits": {"memoryBytes": value}} for value in
    (0, -1, 1.5, "5", (1 << 30) + 1, 2**53, 2**63, 1e300, True, [], {})] + [{"limits": []}])
def test_no_value_passes_a_maximum(capped, params):
    """What is no number within the maximum starts nothing."""
    client = capped.client()
    code, text = client.start_error("true", **params)
    assert code in (-32600, -32602) and text
    client.sync()


def test_nothing_asked_means_the_maximum(capped):
    client = capped.client()
    for params in ({}, {"timeoutMs": None}, {"limits": None}, {"limits": {}},
                   {"limits": {"memoryBytes": None}}, {"timeoutMs": 600_000},
                   {"limits": {"memoryBytes": 1 << 30}}):
        process = client.run("ulimit -v", **params)
        assert (process.exit_code, process.output()) == (0, b"1048576\n"), params


@pytest.fixture
def capped(fleet):
    return fleet.start("--command-timeout-max", "600", "--command-memory-max", str(1 << 30))


@ROOT_ONLY
@WITHOUT_CGROUPS
@pytest.mark.parametrize("option, limit", [("--command-pids-max", "pids"),
                                           ("--command-cpu-percent", "cpuPercent")])
def test_limits_that_the_host_cannot_enforce(option, limit):
    code, out, err = run("--listen", "ws://127.0.0.1:0", option, "10")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"limits.{limit} cannot be enforced on this host: " in err


@pytest.mark.parametrize("args, text", [
    (["--command-memory", "5"], "--command-memory: limits.memoryBytes must be between"),
    (["--command-memory", "3000000", "--command-memory-max", "2000000"],
     "--command-memory is more than --command-memory-max allows; lower it"),
    (["--command-timeout", "3", "--command-timeout-max", "2"],
     "--command-timeout is more than --command-timeout-max allows; lower it"),
])
def test_limits_that_make_no_sense(args, text):
    code, _, err = run(*args)
    assert code == 1 and err.startswith(f"Error: {text}")


# Latency.

def test_histograms(fleet):
    server = fleet.start("--metrics")
    client = server.client()
    client.run("true")
    client.run("true")
    client.call("fs/getMetadata", {"path": "file:///"})
    found = metrics(server)
    assert found.get("start_seconds_count") == 2
    assert found.get("start_seconds_bucket", le="+Inf") == 2
    assert found.get("start_seconds_sum") > 0
    assert found.get("file_call_seconds_count") == 1


# Health checks.

def test_health(fleet, tmp_path):
    server = fleet.start()
    assert run("health", server.url) == (0, f"{server.url}: ready\n", "")
    port = server.address[1]
    assert run("exec-server", "health", f"ws://0.0.0.0:{port}")[0] == 0
    path = f"unix://{tmp_path}/socket"
    fleet.start(listen=path)
    assert run("health", path)[0] == 0


def test_health_needs_no_token(fleet):
    server = fleet.start(*CAPABILITY, "--ws-token-sha256", "0" * 64)
    assert run("health", server.url)[0] == 0


def test_ill_health(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        assert run("health", url) == (1, "", f"Error: {url}: Connection refused\n")
    assert run("health", f"unix://{tmp_path}/none") == (
        1, "", f"Error: unix://{tmp_path}/none: No such file or directory\n")


def test_health_of_something_else():
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"ws://127.0.0.1:{other.getsockname()[1]}"
        popen = subprocess.Popen([BINARY, "health", url], stderr=subprocess.PIPE,
                                 env=environment())
        conn, _ = other.accept()
        conn.recv(100)
        conn.sendall(b"SSH-2.0-x\r\n")
        conn.close()
        assert b"`SSH-2.0-x`, not a 200: is it an exec-server?" in popen.communicate(timeout=120)[1]
        assert popen.returncode == 1
