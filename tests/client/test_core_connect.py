"""Connecting: transports, the opening of a WebSocket, tokens, the handshake, its failures."""

import os
import socket
import stat
import subprocess
import sys

import pytest

from execserver import _lib
from harness.core import LIB, Client, Code, State, error_text, options
from harness.scripted import INFO, SESSION, Scripted
from harness.settings import BINARY


def refused_new(url, **more):
    """The text of a client that cannot be made."""
    client = Client(url, connect=False, **more)
    assert client.new == Code.EINVAL
    text = client.error()
    assert client.state() == State.FAILED and client.connect() == Code.EINVAL
    client.free()
    return text


def failed(script, code, **more):
    """Why a client cannot connect to a scripted server."""
    with Scripted(script) as server, Client(server.url, connect=False, **more) as client:
        assert client.connect() == code, client.error()
        assert client.state() == State.FAILED
        return client.error()


def works(client):
    code, status = client.rpc("environment/status")
    assert (code, status) == (0, {"status": "ready"}), client.error()
    assert client.close() == 0
    assert client.state() == State.CLOSED
    assert client.rpc("environment/status")[0] == Code.EGONE


def test_ws(shared):
    with Client(shared.url) as client:
        info = client.info()
        assert os.fsdecode(info.cwd) == os.getcwd() and info.resumable and info.limits_told
        assert LIB.xs_client_can(client.handle, b"processAck") == 1
        assert LIB.xs_client_can(client.handle, b"nosuch") == 0
        works(client)


def test_unix(fleet, place):
    server = fleet.start(listen=f"unix://{place}/s o")
    with Client(f"unix://{place}/s%20o") as client:
        works(client)
    assert server.running()


def test_stdio_logs_its_stderr():
    with Client("stdio:", program="sh",
                arg=["-c", 'echo "hello $X" >&2; exec "$0" --listen stdio', BINARY],
                program_env=["X=there"]) as client:
        client.until(lambda: any("child: hello there" in line for _, line in client.lines))
        works(client)


@pytest.mark.parametrize("how", ["option", "beside", "path"])
def test_local(how, place):
    if how == "option":
        with Client("local:", program=BINARY) as client:
            assert not client.info().resumable
            works(client)
        return
    # A program finds exec-server beside itself, and then in PATH.
    (place / "bin").mkdir()
    beside = place / "bin" / "python"
    beside.write_bytes(open(os.path.realpath(sys.executable), "rb").read())
    beside.chmod(0o755)
    server = place / ("bin" if how == "beside" else "") / "exec-server"
    server.write_text(f'#!/bin/sh\nexec "{BINARY}" "$@"\n')
    server.chmod(0o755)
    code = ("import sys; sys.path[:0] = sys.argv[1:]\n"
            "from harness.core import Client\n"
            "c = Client('local:'); print(c.rpc('environment/status')); c.close(); c.free()")
    env = dict(os.environ, PATH=f"{place}:{os.environ['PATH']}", PYTHONHOME=sys.prefix,
               PYTHONDONTWRITEBYTECODE="1")
    here = os.path.dirname(__file__)
    code = f"import sys; sys.path[:0] = [{here!r}]; import conftest\n" + code
    done = subprocess.run([str(beside), "-c", code], env=env, capture_output=True, text=True,
                          check=False)
    assert done.stdout == "(0, {'status': 'ready'})\n", done.stderr


def test_local_ends_with_the_client():
    client = Client("local:", program=BINARY)
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="],
                              capture_output=True, text=True, check=True).stdout
    assert "--listen stdio" in children
    client.free()
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="],
                              capture_output=True, text=True, check=True).stdout
    assert "--listen stdio" not in children


def test_descriptors_of_the_caller():
    ours, theirs = socket.socketpair()
    child = subprocess.Popen([BINARY, "--listen", "stdio"], stdin=theirs, stdout=theirs)
    theirs.close()
    with Client(f"fd:{ours.fileno()}") as client:
        ours.close()  # it has its own
        works(client)
    assert child.wait() == 0


def test_pipes_of_the_caller():
    child = subprocess.Popen([BINARY, "--listen", "stdio"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    with Client(f"fd:{child.stdout.fileno()},{child.stdin.fileno()}") as client:
        child.stdin.close()
        assert client.rpc("environment/status")[0] == 0
        child.kill()
        child.wait()
        code, _ = client.rpc("environment/status")
        assert code in (Code.EGONE, Code.ELOST), client.error()
    child.stdout.close()


def test_a_child_that_ends_is_told():
    client = Client("stdio:", connect=False, program="sh", arg=["-c", "exit 3"])
    assert client.connect() == Code.ECONNECT
    assert "ended with status 3" in client.error()
    client.free()
    client = Client("stdio:", connect=False, program="/nosuch/program")
    assert client.connect() == Code.ELOCAL
    assert "/nosuch/program" in client.error() and "No such file" in client.error()
    client.free()


def test_ssh_runs_ssh(place):
    """The words that ssh gets; a script in its place runs the command."""
    ssh = place / "ssh"
    ssh.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$LOG"\n'
                   'for last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    code = (f"import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}]; import conftest\n"
            "from harness.core import Client\n"
            f"c = Client('ssh://me@host.example:2222{BINARY}')\n"
            "print(c.rpc('environment/status')); c.close(); c.free()")
    env = dict(os.environ, PATH=f"{place}:{os.environ['PATH']}", LOG=f"{place}/log",
               PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                          check=False)
    assert done.stdout == "(0, {'status': 'ready'})\n", done.stderr
    assert (place / "log").read_text().splitlines() == [
        "-T", "-o", "ServerAliveInterval=5", "-l", "me", "-p", "2222", "--", "host.example",
        f"'{BINARY}' --listen stdio"]


def test_wrong_urls():
    for url in ("", "nosuch", "http://x", "ws://", "ws://u:p@h/", "unix://rel", "fd:", "fd:x",
                "fd:1,2,3", "ssh://", "ssh://-oProxyCommand=x/", "ssh://h:0/", "ssh://u:p@h/",
                "stdio:x", "local:x"):
        text = refused_new(url)
        assert "\n" not in text
    assert "secret" not in refused_new("ws://user:secret@host/")


def test_s03_no_server():
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    client = Client(f"ws://127.0.0.1:{port}", connect=False)
    assert client.connect() == Code.ECONNECT
    text = client.error()
    assert f"ws://127.0.0.1:{port}" in text and "refused" in text and "\n" not in text
    assert client.state() == State.FAILED
    assert client.rpc("environment/status")[0] == Code.ECONNECT
    client.free()


def test_s03_deaf_server():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"ws://127.0.0.1:{deaf.getsockname()[1]}"
        client = Client(url, connect=False, connect_ms=200)
        assert client.connect() == Code.ECONNECT and url in client.error()
        client.free()


def test_no_answer_to_initialize():
    def script(c):
        c.upgrade()
        c.receive()
        c.receive()
        c.receive()
    text = failed(script, Code.ECONNECT, init_ms=200)
    assert "initialize" in text


# -- the answer to the upgrade

GOOD = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: KEY"]


def answer(lines, rest=b""):
    def script(c):
        c.read_head()
        text = "\r\n".join(lines).replace("KEY", c.accept_key()) + "\r\n\r\n"
        c.raw(text.encode("latin-1") + rest)
        c.receive()
    return script


@pytest.mark.parametrize("change, why", [
    ({0: "HTTP/1.0 101 x"}, "HTTP/1.1"), ({0: "HTTP/1.1 1x1 x"}, "status line"),
    ({1: "Upgrade: h2c"}, "upgrades to something else"), ({1: "X: y"}, "lacks a header"),
    ({2: "Connection: close"}, "lacks a header"), ({3: "X: y"}, "lacks a header"),
    ({3: "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA="}, "Accept is wrong"),
    ({1: "Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate"}, "not offered"),
    ({1: "Upgrade: websocket\r\nSec-WebSocket-Protocol: x"}, "not offered"),
    ({1: "Upgrade : websocket"}, "header is malformed"), ({1: "no header"}, "malformed"),
    ({1: "Upgrade: web\x01socket"}, "control character"),
    ({1: "Upgrade: websocket\nX: y"}, "CRLF"),
])
def test_a_wrong_101(change, why):
    lines = [change.get(i, line) for i, line in enumerate(GOOD)]
    assert why in failed(answer(lines), Code.EPROTO)


@pytest.mark.parametrize("status, code", [
    (401, Code.EAUTH), (403, Code.EAUTH), (404, Code.ECONNECT), (200, Code.ECONNECT),
    (302, Code.ECONNECT), (502, Code.ECONNECT), (500, Code.ECONNECT)])
def test_another_status(status, code):
    assert str(status) in failed(answer([f"HTTP/1.1 {status} x", "Content-Length: 0"]), code)


def test_a_head_without_end():
    def script(c):
        c.read_head()
        c.raw(b"HTTP/1.1 101 x\r\n" + b"A: b\r\n" * 60)
        while True:
            c.raw(b"A: b\r\n" * 100)
    text = failed(script, Code.EPROTO)
    assert "too many headers" in text or "too long" in text


# -- tokens

def test_a_token_is_sent(fleet, place):
    secret = place / "token"
    secret.write_text("s3cret\n")
    digest = __import__("hashlib").sha256(b"s3cret").hexdigest()
    server = fleet.start("--ws-auth", "capability-token", "--ws-token-sha256", digest)
    for more in ({"token": "s3cret"}, {"token_file": secret}):
        with Client(server.url, **more) as client:
            works(client)
    for more in ({}, {"token": "wrong"}):
        client = Client(server.url, connect=False, **more)
        assert client.connect() == Code.EAUTH
        assert "wrong" not in client.error() and "401" in client.error()
        client.free()


def test_s37_a_token_stays_at_home():
    """It goes to no address that is not loopback, and into no text."""
    name = socket.gethostname()
    for url in ("ws://192.0.2.1:1/", "ws://[2001:db8::1]:1/", f"ws://{name}.invalid:1/"):
        client = Client(url, connect=False, token="s3cret", connect_ms=300)
        assert client.connect() in (Code.EINVAL, Code.ECONNECT)
        assert "s3cret" not in client.error()
        assert not any("s3cret" in line for _, line in client.lines)
        client.free()
    client = Client("ws://192.0.2.1:1/", connect=False, token="s3cret", connect_ms=300)
    assert client.connect() == Code.EINVAL and "clear text" in client.error()
    client.free()
    # Behind a dialler of the caller the address counts too.
    with Scripted(lambda c: (c.open(), c.receive())) as server:
        heads = server.connections
        with Client(server.url, token="s3cret") as client:
            assert client.state() == State.READY
            assert b"Bearer s3cret" in heads[0].head
            assert b"Origin" not in heads[0].head


def test_a_token_that_no_header_can_have(place):
    assert "characters" in failed(answer(GOOD), Code.EINVAL, token="a\r\nX: y")
    (place / "t").write_text("")
    assert "token" in failed(answer(GOOD), Code.ELOCAL, token_file=place / "t")
    assert "token" in failed(answer(GOOD), Code.ELOCAL, token_file=place / "nosuch")
    assert stat.S_ISREG(os.stat(place / "t").st_mode)


# -- the handshake

def test_old_servers():
    """No environmentInfo: it is asked for. No shell: /bin/sh."""
    def script(c):
        c.upgrade()
        c.initialize(info=None)
        request = c.receive()
        assert request["method"] == "environment/info"
        c.answer(request, {"cwd": "file:///a%20b"})
        c.answer(c.receive(), {"status": "old"})
        c.receive()
    with Scripted(script) as server, Client(server.url) as client:
        info = client.info()
        assert (info.shell, info.cwd, info.home) == (b"/bin/sh", b"/a b", None)
        assert not info.limits_told and info.session_ttl_ms == 30000
        assert client.rpc("environment/status") == (0, {"status": "old"})


def test_what_initialize_says():
    seen = []

    def script(c):
        seen.append(c.open(limits={"sessionTtlMs": 5, "closedRetentionMs": 6,
                                   "retainedOutputBytes": 7}))
        c.receive()
    with Scripted(script) as server, Client(server.url, name="n", session_ttl_ms=99,
                                            closed_retention_ms=98) as client:
        info = client.info()
        assert (info.session_ttl_ms, info.closed_retention_ms) == (5, 6)
        assert info.session == SESSION.encode() and info.version == b"9"
    assert seen == [{"clientName": "n", "resumeSessionId": None, "outputAck": True,
                     "sessionTtlMs": 99, "closedRetentionMs": 98}]


@pytest.mark.parametrize("result", [{}, {"sessionId": 5}, {"sessionId": ""}, None,
                                    {"sessionId": "x" * 100}])
def test_a_wrong_answer_to_initialize(result):
    def script(c):
        c.upgrade()
        request = c.receive()
        c.answer(request, result)
        c.receive()
        c.receive()
    assert "session" in failed(script, Code.EPROTO)


def test_an_unknown_session():
    def script(c):
        c.upgrade()
        request = c.receive()
        assert request["params"]["resumeSessionId"] == SESSION
        c.refuse(request, -32600, "unknown session id X")
        c.receive()
        c.receive()
    text = failed(script, Code.EGONE, session_id=SESSION)
    assert "session is lost" in text and "unknown session id" in text


def test_a_dialler(shared):
    """The caller dials; a failure at first is an error, later it is tried again."""
    kind = _lib.OnDial
    tries = []

    def dial(_client, _user):
        tries.append(1)
        if len(tries) in (2, 3):
            return -111
        return socket.create_connection(shared.address).detach()
    function = kind(dial)
    client = Client("ws://nowhere.invalid/", connect=False)
    LIB.xs_client_on_dial(client.handle, function, None)
    assert client.connect() == 0, client.error()
    fds = [fd for fd in os.listdir("/proc/self/fd") if is_connected(int(fd), shared.address)]
    assert len(fds) == 1
    dead = socket.socket(fileno=os.dup(int(fds[0])))
    dead.shutdown(socket.SHUT_RDWR)
    dead.close()
    client.until(lambda: State.RESUMING in client.states and client.state() == State.READY)
    assert len(tries) == 4
    works(client)
    client.free()


def is_connected(fd, address):
    try:
        with socket.socket(fileno=os.dup(fd)) as one:
            return one.getpeername() == address
    except OSError:
        return False


# -- options

def test_options_have_kinds():
    bag = LIB.xs_options_new()
    for call in (lambda: LIB.xs_options_num(bag, b"url", 1), lambda: LIB.xs_options_str(bag, b"x", b""),
                 lambda: LIB.xs_options_add(bag, b"url", b""),
                 lambda: LIB.xs_options_num(bag, b"rows", 0),
                 lambda: LIB.xs_options_str(bag, b"rows", b"1")):
        assert call() == Code.EINVAL
        assert "option" in error_text(LIB.xs_options_error(bag))
    LIB.xs_options_free(bag)


def environment(name, **variables):
    """What xs_options_environment() makes of a name, in a process with these variables."""
    code = (f"import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}]; import conftest\n"
            "from harness.core import *\n"
            "bag = LIB.xs_options_new()\n"
            f"r = LIB.xs_options_environment(bag, {name!r})\n"
            "c = ctypes.c_void_p()\n"
            "print(r, error_text(LIB.xs_options_error(bag)) if r else "
            "(LIB.xs_client_new(bag, ctypes.byref(c)), Client('local:', connect=False) and '')[0])")
    env = {k: v for k, v in os.environ.items() if not k.startswith("CODEX_")}
    env.update(variables, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                          check=True)
    return done.stdout.strip()


def test_environments(place):
    assert "no exec-server is named" in environment(None, CODEX_HOME=str(place))
    assert environment(None, CODEX_HOME=str(place), CODEX_EXEC_SERVER_URL="ws://h/") == "0 0"
    assert environment(b"local", CODEX_HOME=str(place)) == "0 0"
    assert environment(b"ws://h:1/", CODEX_HOME=str(place)) == "0 0"
    assert "nosuch" in environment(b"nosuch", CODEX_HOME=str(place))
    (place / "environments.toml").write_text(
        'default = "box"\n[[environments]]\nid = "box"\nprogram = "sh"\nargs = ["-c", "x"]\n')
    assert environment(None, CODEX_HOME=str(place), CODEX_EXEC_SERVER_URL="junk") == "0 0"
    assert environment(b"box", CODEX_HOME=str(place)) == "0 0"


def test_old_options_stay_apart():
    bag = options(url="ws://h/", argv=["a", "b"], rows=5)
    client = _lib.c_void_p()
    assert LIB.xs_client_new(bag, _lib.ctypes.byref(client)) == 0
    LIB.xs_options_free(bag)
    LIB.xs_client_free(client)
    assert INFO["executorVersion"] == "9"
