"""Unix sockets, sockets passed by a service manager, and readiness."""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import procfs
from harness.rpc import Client
from harness.server import Server, environment, run
from harness.settings import BINARY, ROOT
from harness.waiting import Deadline, readable, until
from harness.ws import Closed, Refused, WebSocket, connect_tcp


ANALYZE = shutil.which("systemd-analyze")
ACTIVATE = shutil.which("systemd-socket-activate")
STRANGER = 65534
INHERIT_ALL = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {},
               "includeOnly": []}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to change its user")
activation = pytest.mark.skipif(not ACTIVATE, reason="systemd-socket-activate is not installed")


@pytest.fixture
def place():
    """A directory that every user can enter, with a short name."""
    with tempfile.TemporaryDirectory(prefix="listen-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def start_unix(fleet, path, *args, **options):
    return fleet.start(*args, listen=f"unix://{path}", **options)


def fails_to_listen(path, reason):
    code, out, err = run("--listen", f"unix://{path}")
    assert (code, out, err) == (1, "", f"Error: cannot listen on unix://{path}: {reason}\n")


def peer_of(sock):
    try:
        return sock.getpeername()
    except OSError:
        return None  # it listens


# The socket file.

def test_unix(fleet, place):
    path = place / "socket"
    before = os.umask(0)
    try:
        server = start_unix(fleet, path)
    finally:
        os.umask(before)
    assert server.url == f"unix://{path}"
    mode = os.lstat(path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    client = server.client()
    process = client.run("echo out; cat <&0")
    assert process.output() == b"out\n" and process.exit_code == 0
    server.stop()
    assert not os.path.lexists(path)


def test_umask_is_restored(fleet, place):
    before = os.umask(0o027)
    try:
        server = start_unix(fleet, place / "socket")
    finally:
        os.umask(before)
    assert server.client().run("umask").output() == b"0027\n"


@pytest.mark.parametrize("target", ["/readyz", "/healthz"])
def test_unix_http(fleet, place, target):
    server = start_unix(fleet, place / "socket")
    assert server.http().ask(target).status == 200


def test_unix_resume(fleet, place):
    server = start_unix(fleet, place / "socket")
    client = server.connect()
    session = client.initialize()["sessionId"]
    process = client.start("read line; echo got $line", pipeStdin=True)
    client.transport.drop()
    again = server.client(resume=session)
    again.write(process, "hello\n")
    again.wait(lambda: process.name in again.processes and again.processes[process.name].closed,
               "end of the process")
    assert again.processes[process.name].output() == b"got hello\n"


def test_unix_goodbye(fleet, place):
    """What was asked before the end of the input is answered."""
    client = start_unix(fleet, place / "socket").connect()
    ident = client.send("initialize", {"clientName": "e2e"})
    client.transport.half_close()
    assert "sessionId" in client.result(ident)
    with pytest.raises(Closed):
        client.pump()


def test_unix_large_output(fleet, place):
    """More than any buffer between the two holds."""
    client = start_unix(fleet, place / "socket").client()
    size = 8 << 20
    process = client.run(f"head -c {size} /dev/zero")
    assert len(process.output()) == size


def test_unix_auth(fleet, place):
    (place / "token").write_text("secret-token")
    server = start_unix(fleet, place / "socket", "--ws-auth", "capability-token",
                        "--ws-token-file", str(place / "token"), "--require-auth")
    with pytest.raises(Refused):
        server.client()
    server.client(headers=[("Authorization", "Bearer secret-token")]).sync()


def test_unix_peer_name(fleet, place):
    server = start_unix(fleet, place / "socket", quiet=False)
    client = server.client()
    assert "client connected: peer=unix " in server.stderr()
    client.send_raw("{")
    client.wait(lambda: client.answers.get(-1), "an error")
    assert "unix" in client.answers[-1][0]["error"]["message"]


def test_stale_socket_is_replaced(fleet, place):
    path = place / "socket"
    server = start_unix(fleet, path)
    server.popen.kill()
    server.popen.wait()

    def deserted():
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(str(path)) == errno.ECONNREFUSED
    until(deserted, "nobody listens any more")
    assert os.path.lexists(path)
    start_unix(fleet, path).client().sync()


def test_live_socket_is_kept(fleet, place):
    path = place / "socket"
    server = start_unix(fleet, path)
    fails_to_listen(path, "a server is listening there already: choose another path")
    server.client().sync()


@pytest.mark.parametrize("make", [
    lambda path: path.write_text("precious"),
    lambda path: path.mkdir(),
    lambda path: os.mkfifo(path),
    lambda path: path.symlink_to("nowhere"),
], ids=["file", "directory", "fifo", "link"])
def test_other_files_are_kept(place, make):
    path = place / "socket"
    make(path)
    before = os.lstat(path)
    fails_to_listen(path, "the file exists and is not a socket: choose another path, or remove it")
    after = os.lstat(path)
    assert (before.st_ino, before.st_mode, before.st_size) == (
        after.st_ino, after.st_mode, after.st_size)


def test_datagram_socket_is_kept(place):
    path = place / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        fails_to_listen(path, "Protocol wrong type for socket (os error 91)")
        assert os.path.lexists(path)


def test_missing_directory(place):
    fails_to_listen(place / "absent" / "socket", "No such file or directory (os error 2)")


def test_foreign_file_survives_the_end(fleet, place):
    """What has taken the place of the socket file is not removed."""
    path = place / "socket"
    server = start_unix(fleet, path)
    path.unlink()
    path.write_text("precious")
    server.stop()
    assert path.read_text() == "precious"


def test_max_connections_on_unix(fleet, place):
    server = start_unix(fleet, place / "socket", "--max-connections", "1")
    client = server.client()
    assert server.http().read().status == 503
    client.sync()


@pytest.mark.parametrize("url, line", [
    ("unix://", "invalid unix --listen URL `unix://`; expected `unix:///PATH`"),
    ("unix://socket", "invalid unix --listen URL `unix://socket`; expected `unix:///PATH`"),
    (f"unix:///{'x' * 107}", f"invalid unix --listen URL `unix:///{'x' * 107}`; "
     "the path is longer than 107 bytes"),
])
def test_bad_unix_url(url, line):
    assert run("--listen", url) == (1, "", f"Error: {line}\n")


# Who may connect.

LOOK = """
import os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
try:
    s.sendall(b"GET /readyz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    print(s.recv(12).decode())
except (BrokenPipeError, ConnectionResetError):
    print()
"""


def look_as(uid, path):
    """The first bytes that a user is answered; empty when the server hangs up."""
    done = subprocess.run(["/usr/bin/python3", "-c", LOOK, str(path), str(uid)], timeout=120,
                          capture_output=True, check=True)
    return done.stdout.decode().strip()


@as_root
def test_strangers_are_refused(fleet, place):
    path = place / "socket"
    server = start_unix(fleet, path, "--log-level", "warn", quiet=False)
    with pytest.raises(subprocess.CalledProcessError):  # by the mode of the file
        look_as(STRANGER, path)
    path.chmod(0o666)
    assert look_as(STRANGER, path) == ""
    assert re.search(rf'WARN connection refused: reason="the socket is for another user" '
                     rf'peer="unix: user {STRANGER}, process \d+"\n', server.stderr())
    assert look_as(0, path) == "HTTP/1.1 200"
    server.client().sync()


@as_root
def test_owner_and_root_are_accepted(fleet, place, monkeypatch):
    program = place / "exec-server"
    shutil.copy(BINARY, program)
    program.chmod(0o755)
    monkeypatch.setattr("harness.server.BINARY", str(program))
    home = place / "own"
    home.mkdir(mode=0o755)
    os.chown(home, STRANGER, STRANGER)

    def become():
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
    server = start_unix(fleet, home / "socket", preexec=become)
    assert server.client().run("id -u").output() == f"{STRANGER}\n".encode()
    assert look_as(STRANGER, home / "socket") == "HTTP/1.1 200"
    (home / "socket").chmod(0o666)
    assert look_as(STRANGER - 1, home / "socket") == ""


# A socket that was passed.

class Activated(Server):
    """A server that systemd-socket-activate starts on the first connection."""

    def __init__(self, address, *args, listen=None, extra=()):
        self.where = address
        self.poke = None
        super().__init__(*args, listen=listen, quiet=False, wrapper=[
            ACTIVATE, "-l", address if isinstance(address, str) else f"{address[0]}:{address[1]}",
            *extra])

    def _read_url(self):
        until(lambda: "Listening on" in self.stderr(), "systemd-socket-activate")
        self.poke = connect_tcp(self.where)
        return super()._read_url()

    def abandon(self):
        if self.poke:
            self.poke.close()
        super().abandon()


@pytest.fixture
def activated():
    made = []

    def start(*args, **options):
        made.append(Activated(*args, **options))
        return made[-1]
    yield start
    try:
        for server in made:
            server.stop()
    finally:
        for server in made:
            server.abandon()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@activation
@pytest.mark.parametrize("listen", [None, "fd://"])
def test_activation_tcp(activated, listen):
    port = free_port()
    server = activated(("127.0.0.1", port), listen=listen, extra=["--fdname", "name"])
    assert server.url == f"ws://127.0.0.1:{port}"
    client = server.client()
    names = {line.partition("=")[0] for line in
             client.run("env", env={}, envPolicy=INHERIT_ALL).output().decode().splitlines()}
    assert "PATH" in names
    assert not [name for name in names if name.startswith("LISTEN_")]
    # Commands get the standard descriptors and nothing else.
    listed = client.run("ls /proc/self/fd").output().split()
    assert set(listed) - {b"3"} == {b"0", b"1", b"2"}
    assert b"socket" not in client.run("ls -l /proc/self/fd/3 2>&1").output()


@activation
def test_activation_unix(activated, place):
    path = str(place / "socket")
    server = activated(path)
    assert server.url == f"unix://{path}"
    server.client().sync()
    server.stop()
    assert os.path.lexists(path)  # it belongs to who made it


@activation
@as_root
def test_activation_unix_refuses_strangers(activated, place):
    path = place / "socket"
    server = activated(str(path))
    path.chmod(0o666)
    assert look_as(STRANGER, path) == ""
    server.client().sync()


@activation
def test_listen_wins_over_activation(place):
    """The passed socket is left alone when --listen says something else."""
    path = str(place / "socket")
    server = Activated(path, listen="ws://127.0.0.1:0")
    try:
        assert server.url.startswith("ws://127.0.0.1:")
        client = server.client()
        assert b"socket" not in client.run("ls -l /proc/self/fd/3 2>&1").output()
        server.stop()
    finally:
        server.abandon()


def run_passed(*sockets, args=(), fds=None):
    """Runs the program, which must end by itself, with sockets passed."""
    script = ('import os, sys\n'
              'for i, fd in enumerate(map(int, sys.argv[1].split()), 3):\n'
              '    os.dup2(fd, i)\n'
              'os.environ["LISTEN_PID"] = str(os.getpid())\n'
              'os.execv(sys.argv[2], sys.argv[2:])\n')
    numbers = []
    for sock in sockets:
        # Above the numbers that the script overwrites.
        numbers.append(fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD, 40))
    try:
        done = subprocess.run(["/usr/bin/python3", "-c", script, " ".join(map(str, numbers)),
                               BINARY, *args], pass_fds=numbers, timeout=120, check=False,
                              env=environment({"LISTEN_FDS": str(fds or len(sockets))}),
                              stdin=subprocess.DEVNULL, capture_output=True)
    finally:
        for number in numbers:
            os.close(number)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_refused_descriptors():
    with socket.socket() as one, socket.socket() as two, open("/dev/null", "rb") as null, \
            socket.socket(type=socket.SOCK_DGRAM) as datagram:
        line = "Error: the descriptor passed (LISTEN_FDS) is not a listening stream socket\n"
        for thing in (one, null, datagram):
            assert run_passed(thing) == (1, "", line)
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
            sock.listen()
        assert run_passed(one, two) == (
            1, "", "Error: 2 sockets were passed (LISTEN_FDS); expected one\n")


def test_passed_socket_that_is_exposed():
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))
        sock.listen()
        code, out, err = run_passed(sock, args=["--require-auth"])
        assert (code, out) == (1, "")
        assert err.startswith("Error: --require-auth: `fd://` is not a loopback address")


def test_no_socket_passed():
    line = "Error: --listen fd://: no socket was passed (LISTEN_FDS): start it from a systemd socket unit\n"
    assert run("--listen", "fd://") == (1, "", line)
    assert run("--listen", "fd://", env={"LISTEN_PID": "1", "LISTEN_FDS": "1"}) == (1, "", line)


# What the service manager is told.

@pytest.fixture(params=["path", "abstract"])
def manager(request, place):
    """A notification socket and its name in NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        if request.param == "path":
            name = str(place / "notify")
            sock.bind(name)
        else:
            name = f"@exec-server-test-{os.getpid()}"
            sock.bind("\0" + name[1:])
        yield sock, name


def told(sock):
    assert readable(sock, Deadline().left()), "no notification"
    return sock.recv(4096).decode()


def test_notify(fleet, manager):
    sock, name = manager
    server = fleet.start(env={"NOTIFY_SOCKET": name})
    assert told(sock) == "READY=1"
    client = server.client()
    assert b"NOTIFY_SOCKET" not in client.run("env", env={}, envPolicy=INHERIT_ALL).output()
    server.stop()
    assert told(sock) == "STOPPING=1"
    assert not readable(sock, 0)


def test_notify_not_ready(manager):
    """A server that cannot start says nothing."""
    sock, name = manager
    code, _, _ = run("--listen", "unix:///nonexistent/x", env={"NOTIFY_SOCKET": name})
    assert code == 1
    assert not readable(sock, 0)


def test_notify_nobody(fleet):
    server = fleet.start("--log-level", "warn", env={"NOTIFY_SOCKET": "/nonexistent"}, quiet=False)
    server.client().sync()
    server.stop()


# TCP.

def test_small_messages_do_not_wait_for_others(server):
    """TCP_NODELAY is set, or a message right behind another one waits for 40 ms."""
    with contextlib.ExitStack() as scope:
        server.client()
        found = [scope.enter_context(sock) for sock in procfs.sockets(server.pid)]
        own = {c.sock.getsockname() for c in server.clients}
        connections = [s for s in found if peer_of(s) in own]
        assert len(connections) == 1
        assert connections[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# The unit files.

UNITS = ("exec-server", "exec-server-loopback")

@pytest.mark.skipif(not ANALYZE, reason="systemd-analyze is not installed")
def test_unit_files(tmp_path):
    for source in (ROOT / "contrib" / "systemd").iterdir():
        text = source.read_text().replace("ExecStart=exec-server", f"ExecStart={BINARY}")
        (tmp_path / source.name).write_text(text)
    units = [str(tmp_path / f"{name}.{kind}") for kind in ("service", "socket")
             for name in UNITS]
    done = subprocess.run([ANALYZE, "verify", "--man=no", *units], capture_output=True, check=False,
                          timeout=120)
    assert (done.returncode, done.stderr.decode()) == (0, "")


def unit_words(name, place):
    """The command line of a unit without the operator's options, with a token of our own."""
    text = (ROOT / "contrib" / "systemd" / f"{name}.service").read_text()
    words = re.search(r"^ExecStart=exec-server (.*)$", text, re.M).group(1).split()
    assert words.pop() == "$EXEC_SERVER_OPTIONS"
    (place / "tokens").write_text("codex a-token\n")
    (place / "tokens").chmod(0o600)
    return [word.replace("/etc/exec-server", str(place)) for word in words]


@pytest.mark.skipif(not ACTIVATE, reason="systemd-socket-activate is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_units_by_socket_activation(place, name):
    """The first connection starts the server; a Codex client shows the token, xs needs none."""
    if name == "exec-server":
        where, headers = str(place / "activated"), []
        address = where
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = free.getsockname()
        where, headers = f"127.0.0.1:{address[1]}", [("Authorization", "Bearer a-token")]
    popen = subprocess.Popen([ACTIVATE, "-l", where, BINARY, *unit_words(name, place)],
                             env=environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: can_connect(address), "the socket")
        client = Client(WebSocket(address, headers=headers))
        client.initialize()
        assert client.run("echo here").output() == b"here\n"
        if headers:
            with pytest.raises(Refused):
                WebSocket(address)
        client.end()
    finally:
        popen.terminate()
        assert popen.wait(120) == 0


def can_connect(address):
    """Whether something listens there, asked without a connection."""
    if isinstance(address, str):  # of a socket that is only bound, the flags are 0
        table, texts = "/proc/net/unix", (address, " 00010000 ")
    else:
        table, texts = "/proc/net/tcp", (f"0100007F:{address[1]:04X} 00000000:0000 0A",)
    with open(table, encoding="utf-8") as f:
        return any(all(text in line for text in texts) for line in f)


def test_unit_starts_the_server(place):
    """The command line of the unit is one that the program takes."""
    code, out, err = run(*unit_words("exec-server", place), "--print-config", cwd=place)
    assert (code, err) == (0, "")
    assert json.loads(out)["listen"] == "fd://"
