"""Command line, start-up output, exit codes and messages."""

import os
import re
import signal
import socket
import subprocess

import pytest

from harness.http import Ended
from harness.server import environment, run
from harness.settings import BINARY
from harness.waiting import until
from harness.ws import Closed, Refused

LOOPBACK = "ws://127.0.0.1:0"

# Ways in which a connection may be turned away.
REFUSALS = (Refused, Closed, Ended, OSError)


def first_line(text):
    return text.split("\n", 1)[0]


def fails(code, line, *args, **options):
    """The program must end with code, print line first on stderr and nothing on stdout."""
    got, out, err = run(*args, **options)
    assert (got, out, first_line(err)) == (code, "", line)


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help(word):
    code, out, err = run(word)
    assert code == 0 and err == ""
    for option in ("--listen", "--concurrent-requests", "--ws-auth", "--session-ttl",
                   "--keep-detached", "--require-auth", "--max-connections", "--log-level"):
        assert option in out, option


def test_version():
    code, out, err = run("--version")
    assert code == 0 and err == ""
    assert re.fullmatch(r"exec-server [0-9]+\.[0-9]+\.[0-9]+ \([0-9a-z]+\+?\)\n", out)


def test_version_is_the_announced_one(server):
    version = run("--version")[1].split()[1]
    info = server.connect().initialize()["environmentInfo"]
    assert info["executorVersion"] == f"0.166.0+exec-server.{version}"


@pytest.mark.parametrize("args", [[], ["exec-server"]])
def test_default_listener(fleet, args):
    server = fleet.start(*args, listen=None)
    assert re.fullmatch(r"ws://127\.0\.0\.1:[0-9]+", server.url)
    server.client().sync()


@pytest.mark.parametrize("args", [
    ["exec-server", "--listen", LOOPBACK],
    ["--listen=" + LOOPBACK],
    ["-c", "a.b=1", "-c", "x=y", "--config", "k=v", "--config=k=v"],
    ["--enable", "one", "--enable", "two", "--disable", "three"],
    ["--strict-config"],
    ["--name", "box", "--environment-id", "env-1"],
    ["--proxy-private-ips-via-upstream"],
    ["--linux-sandbox-pid-namespace", "isolate"],
    ["--linux-sandbox-pid-namespace", "inherit"],
    ["--concurrent-requests", "18446744073709551615"],
    ["--session-ttl", "5"],
    ["--max-connections", "9"],
    ["--keep-detached"],
    ["--log-level", "error"],
])
def test_accepted(fleet, args):
    server = fleet.start(*args, listen=None)
    server.client().sync()


def test_ipv6(fleet):
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 on this machine")
    server = fleet.start(listen="ws://[::1]:0")
    assert re.fullmatch(r"ws://\[::1\]:[0-9]+", server.url)
    server.client().sync()


def test_chosen_port(fleet):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = fleet.start(listen=f"ws://127.0.0.1:{port}")
    assert server.url == f"ws://127.0.0.1:{port}"


def test_any_address_warns(fleet):
    server = fleet.start("--log-level", "error", listen="ws://0.0.0.0:0", quiet=False)
    assert re.fullmatch(r"ws://0\.0\.0\.0:[0-9]+", server.url)
    server.client().sync()
    warning = server.stderr()
    assert warning.count("\n") == 1
    assert "warning" in warning.lower() and "auth" in warning.lower()


def test_any_address_with_auth_does_not_warn(fleet):
    fleet.start("--ws-auth", "capability-token", "--ws-token-sha256", "0" * 64,
                listen="ws://0.0.0.0:0")


def test_require_auth_refuses_open_listener():
    code, out, err = run("--listen", "ws://0.0.0.0:0", "--require-auth")
    assert code == 1 and out == ""
    assert "--require-auth" in err or "auth" in err.lower()


def test_require_auth_is_content_with_auth(fleet):
    fleet.start("--require-auth", "--ws-auth", "capability-token", "--ws-token-sha256", "0" * 64,
                listen="ws://0.0.0.0:0")


@pytest.mark.parametrize("url", [
    "ws://localhost:0", "ws://127.0.0.1", "ws://127.0.0.1:", "ws://127.0.0.1:0/", "ws://:0",
    "ws://127.0.0.1:65536", "ws://127.0.0.1:-1", "ws://127.0.0.1:0 ", "ws:// 127.0.0.1:0",
    "ws://::1:0", "ws://[::1]", "ws://127.0.0.1:x", "ws://256.0.0.1:0", "ws://", "ws://1.2.3:0",
])
def test_bad_websocket_url(url):
    fails(1, f"Error: invalid websocket --listen URL `{url}`; expected `ws://IP:PORT`",
          "--listen", url)


@pytest.mark.parametrize("url", [
    "WS://127.0.0.1:0", "wss://127.0.0.1:0", "http://127.0.0.1:0", "127.0.0.1:0", "", "stdio:",
    "stdio:///", "STDIO", " ws://127.0.0.1:0", "unix:/tmp/x", "off",
])
def test_unsupported_url(url):
    fails(1, f"Error: unsupported --listen URL `{url}`; expected `ws://IP:PORT` or `stdio`",
          "--listen", url)


def test_port_in_use(server):
    fails(1, f"Error: cannot listen on {server.url}: Address in use (os error 98); another program "
          "listens there: choose another port, or 0 for any", "--listen", server.url)


AUTH_MODES = "`--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
JWT_FLAGS = ("`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and "
             "`--ws-max-clock-skew-seconds`")


@pytest.mark.parametrize("flag, value", [
    ("--ws-token-file", "f"), ("--ws-token-sha256", "0" * 64), ("--ws-shared-secret-file", "f"),
    ("--ws-issuer", "i"), ("--ws-audience", "a"), ("--ws-max-clock-skew-seconds", "1"),
])
def test_auth_flag_without_mode(flag, value):
    fails(1, f"Error: websocket auth flags require {AUTH_MODES}", flag, value)


CAPABILITY = ["--ws-auth", "capability-token"]
JWT = ["--ws-auth", "signed-bearer-token"]


def test_capability_without_source():
    fails(1, "Error: `--ws-token-file` or `--ws-token-sha256` is required when "
          "`--ws-auth capability-token` is set", *CAPABILITY)


def test_both_token_sources():
    fails(1, "Error: `--ws-token-file` and `--ws-token-sha256` are mutually exclusive",
          *CAPABILITY, "--ws-token-file", "f", "--ws-token-sha256", "0" * 64)


@pytest.mark.parametrize("flag, value", [
    ("--ws-shared-secret-file", "f"), ("--ws-issuer", "i"), ("--ws-audience", "a"),
    ("--ws-max-clock-skew-seconds", "1"),
])
def test_jwt_flag_in_capability_mode(flag, value):
    fails(1, f"Error: {JWT_FLAGS} require `--ws-auth signed-bearer-token`",
          *CAPABILITY, "--ws-token-sha256", "0" * 64, flag, value)


@pytest.mark.parametrize("flag, value", [
    ("--ws-token-file", "f"), ("--ws-token-sha256", "0" * 64)])
def test_token_flag_in_jwt_mode(flag, value):
    fails(1, "Error: `--ws-token-file` and `--ws-token-sha256` require "
          "`--ws-auth capability-token`, not `signed-bearer-token`", *JWT, flag, value)


def test_jwt_without_secret():
    fails(1, "Error: `--ws-shared-secret-file` is required when "
          "`--ws-auth signed-bearer-token` is set", *JWT)


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 65, "g" * 64])
def test_bad_digest(digest):
    fails(1, "Error: --ws-token-sha256 must be a 64-character hex SHA-256 digest",
          *CAPABILITY, "--ws-token-sha256", digest)


SOURCES = [(CAPABILITY, "--ws-token-file"), (JWT, "--ws-shared-secret-file")]


@pytest.mark.parametrize("mode, flag", SOURCES)
def test_unreadable_secret(tmp_path, mode, flag):
    path = tmp_path / "absent"
    fails(1, f"Error: failed to read websocket auth secret {path}: "
          "No such file or directory (os error 2)", *mode, flag, str(path))


@pytest.mark.parametrize("mode, flag", SOURCES)
def test_secret_that_is_not_utf8(tmp_path, mode, flag):
    path = tmp_path / "secret"
    path.write_bytes(b"\xff" * 40)
    fails(1, f"Error: failed to read websocket auth secret {path}: "
          "stream did not contain valid UTF-8", *mode, flag, str(path))


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n "])
@pytest.mark.parametrize("mode, flag", SOURCES)
def test_blank_secret(tmp_path, mode, flag, content):
    path = tmp_path / "secret"
    path.write_bytes(content)
    fails(1, f"Error: websocket auth secret {path} must not be empty", *mode, flag, str(path))


def test_short_secret(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"  " + b"x" * 31 + b"\n")
    fails(1, f"Error: signed websocket bearer secret {path} must be at least 32 bytes",
          *JWT, "--ws-shared-secret-file", str(path))


def test_skew_too_large(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"x" * 32)
    fails(1, "Error: websocket auth clock skew must fit in a signed 64-bit integer",
          *JWT, "--ws-shared-secret-file", str(path),
          "--ws-max-clock-skew-seconds", "9223372036854775808")


@pytest.mark.parametrize("listen", ["stdio", "stdio://"])
def test_auth_with_stdio(listen):
    fails(1, "Error: WebSocket auth requires a WebSocket listener, not stdio",
          *CAPABILITY, "--ws-token-sha256", "0" * 64, "--listen", listen)


def test_relative_secret_path(fleet, tmp_path):
    (tmp_path / "token").write_text("secret-token\n")
    server = fleet.start(*CAPABILITY, "--ws-token-file", "token", cwd=tmp_path)
    server.client(headers=[("Authorization", "Bearer secret-token")]).sync()


@pytest.mark.parametrize("args", [
    ["--bogus"],
    ["bogus"],
    ["exec-server", "bogus"],
    ["--ws-auth", "basic"],
    ["--ws-auth"],
    ["--listen"],
    ["--listen", LOOPBACK, "--listen", LOOPBACK],
    ["--concurrent-requests", "0"],
    ["--concurrent-requests", "-1"],
    ["--concurrent-requests", "two"],
    ["--concurrent-requests", ""],
    ["--concurrent-requests", "18446744073709551616"],
    ["--concurrent-requests", "1", "--concurrent-requests", "1"],
    ["--ws-max-clock-skew-seconds", "x"],
    ["--linux-sandbox-pid-namespace", "bogus"],
    ["--exit-on-stdin-close"],
    ["--session-ttl", "x"],
    ["--session-ttl", "-1"],
    ["--max-connections", "x"],
    ["--log-level", "bogus"],
    ["--require-auth=yes"],
])
def test_usage_error(args):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.strip() != ""


@pytest.mark.parametrize("args, word", [
    (["--remote", "https://example.invalid"], "--remote"),
    (["--remote", "https://example.invalid", "--listen", LOOPBACK], "--remote"),
    (["--remote", "https://example.invalid", "--ws-auth", "capability-token",
      "--ws-token-sha256", "0" * 64], "--remote"),
])
def test_refused_until_they_exist(args, word):
    code, out, err = run(*args)
    assert code in (1, 2) and out == ""
    assert word in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ends_on_signal(server, number):
    client = server.client()
    client.start("sleep 100")
    server.stop(number)
    with pytest.raises(Closed) as end:
        while client.pump():
            pass
    assert end.value.code == 1001


def test_closed_stdout_is_harmless():
    popen = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" >&-', BINARY],
                             env=environment({"EXEC_SERVER_LOG": "error"}),
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: listening(popen.pid), "a listening socket")
        popen.terminate()
        assert popen.wait(120) == 0
        assert popen.stderr.read() == b""
    finally:
        popen.kill()
        popen.wait()
        popen.stderr.close()


def listening(pid):
    """True when a process has a listening TCP socket."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return any(row[3] == "0A" and f"socket:[{row[9]}]" in inodes for row in rows)


def test_max_connections(fleet):
    server = fleet.start("--max-connections", "3")
    clients = [server.client() for _ in range(3)]
    with pytest.raises(REFUSALS):
        server.client()
    for client in clients:
        client.sync()
    clients.pop().end()

    def place():
        try:
            return server.client()
        except REFUSALS:
            return None
    until(place, "a free place after a connection ended").sync()


def test_secrets_are_not_logged(fleet, tmp_path):
    token = "very-secret-capability"
    (tmp_path / "token").write_text(token)
    server = fleet.start(*CAPABILITY, "--ws-token-file", str(tmp_path / "token"),
                         "--log-level", "debug", quiet=False)
    with pytest.raises(Refused):
        server.websocket(headers=[("Authorization", "Bearer wrong-secret")])
    client = server.client(headers=[("Authorization", f"Bearer {token}")])
    client.run("true", env={"PATH": "/bin", "API_KEY": "environment-secret"})
    text = server.stderr()
    assert text != ""
    for secret in (token, "wrong-secret", "environment-secret"):
        assert secret not in text


def test_environment_info(fleet, tmp_path):
    server = fleet.start(cwd=tmp_path, env={"HOME": "/srv", "TMPDIR": str(tmp_path)})
    client = server.connect()
    info = client.initialize()["environmentInfo"]
    assert client.call("environment/info") == info
    assert info["cwd"] == f"file://{tmp_path}"
    assert info["userHomeDir"] == "file:///srv"
    assert info["tempDir"] == f"file://{tmp_path}"
    assert info["temporaryDirectories"] == [f"file://{tmp_path}"]
    assert info["platformOs"] == "linux"
    assert os.access(info["shell"]["path"], os.X_OK)
    assert info["shell"]["name"] == os.path.basename(info["shell"]["path"])
    assert "providerId" not in info and "prependPathDirs" not in info
    assert all(isinstance(v, (bool, list)) for v in info["capabilities"].values())


def test_environment_info_without_tmpdir(server):
    info = server.connect().initialize()["environmentInfo"]
    assert info["temporaryDirectories"] == []
    assert info["tempDir"] == "file:///tmp"


