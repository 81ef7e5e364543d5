"""The program under test as a child process."""

import os
import re
import signal
import subprocess
import tempfile

from . import procfs
from .http import Http
from .rpc import Client
from .settings import BINARY
from .waiting import Deadline, readable, until
from .ws import WebSocket, connect_tcp

REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:")


def environment(extra=None):
    """Environment of the server: small, the same everywhere, sanitizer options kept."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "HOME": "/tmp", "LANG": "C.UTF-8"}
    env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    env.update(extra or {})
    return {k: v for k, v in env.items() if v is not None}


def run(*args, env=None, cwd=None, seconds=120, stdin=subprocess.DEVNULL):
    """Runs the program to its end: exit code, stdout, stderr."""
    done = subprocess.run([BINARY, *args], env=environment(env), cwd=cwd, stdin=stdin,
                          capture_output=True, timeout=seconds, check=False)
    err = done.stderr.decode(errors="replace")
    assert not REPORT.search(err), err
    return done.returncode, done.stdout.decode(errors="replace"), err


def address_of(url):
    """Where to connect to a listener: (host, port), or the path of a Unix socket."""
    if url.startswith("unix:///"):
        return url.removeprefix("unix://")
    match = re.fullmatch(r"ws://(\[[0-9a-f:.]+\]|[0-9.]+):([0-9]+)", url)
    assert match, f"bad listening line {url!r}"
    host = match.group(1).strip("[]")
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return host, int(match.group(2))


class Server:
    """A server on a WebSocket listener, ready when the constructor returns."""

    def __init__(self, *args, env=None, cwd=None, listen="ws://127.0.0.1:0", quiet=True,
                 preexec=None, wrapper=(), binary=BINARY):
        self.quiet = quiet
        self.clients = []
        self.stderr_file = tempfile.TemporaryFile()
        if quiet:  # the log would be long: errors alone
            env = {"EXEC_SERVER_LOG": "error", **(env or {})}
        argv = [*wrapper, binary, *(["--listen", listen] if listen else []), *args]
        self.popen = subprocess.Popen(argv, env=environment(env), cwd=cwd, preexec_fn=preexec,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=self.stderr_file)
        self.pid = self.popen.pid
        self.url = self._read_url()
        self.address = address_of(self.url)

    def _read_url(self):
        deadline, line = Deadline(), b""
        fd = self.popen.stdout.fileno()
        while not line.endswith(b"\n"):
            assert readable(fd, deadline.left()), "no listening line"
            data = os.read(fd, 4096)
            if not data:
                self.popen.wait()
                raise AssertionError(f"server ended at start: {self.stderr()}")
            line += data
        assert line.count(b"\n") == 1, line
        return line.decode().rstrip("\n")

    # Connections.

    def websocket(self, **options):
        ws = WebSocket(self.address, **options)
        self.clients.append(ws)
        return ws

    def connect(self, **options):
        """A client that has not sent anything."""
        return Client(self.websocket(**options))

    def client(self, resume=None, notifications=None, **options):
        """An initialised client."""
        client = self.connect(**options)
        client.initialize(resume, **({"notifications": notifications} if notifications else {}))
        return client

    def http(self):
        http = Http(connect_tcp(self.address))
        self.clients.append(http)
        return http

    # Observation.

    def stderr(self):
        self.stderr_file.seek(0)
        return self.stderr_file.read().decode(errors="replace")

    def rss(self):
        return procfs.rss(self.pid)

    def fds(self):
        return procfs.fds(self.pid)

    def fd_targets(self):
        """What the open descriptors refer to."""
        targets = []
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                targets.append(os.readlink(f"/proc/{self.pid}/fd/{fd}"))
            except FileNotFoundError:
                pass
        return targets

    def threads(self):
        return procfs.threads(self.pid)

    def zombies(self):
        return procfs.zombies(self.pid)

    def running(self):
        return self.popen.poll() is None

    def wait_fds(self, count):
        """Waits until no more than count descriptors are open."""
        until(lambda: self.fds() <= count, f"at most {count} descriptors")

    # Ending.

    def send_signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds=None):
        """Waits for the end and checks everything a server must leave behind."""
        code = self.popen.wait(Deadline(seconds).left())
        rest = self.popen.stdout.read()
        self.popen.stdout.close()
        err = self.stderr()
        self.stderr_file.close()
        assert not REPORT.search(err), err
        assert rest == b"", f"more than one line on stdout: {rest!r}"
        if self.quiet:
            assert err == "", f"stderr not empty: {err}"
        return code

    def stop(self, number=signal.SIGTERM, code=0):
        """Ends the server with a signal and checks its exit code."""
        if self.popen.returncode is not None:
            return
        assert self.running(), f"server is gone: {self.popen.returncode}: {self.stderr()}"
        self.send_signal(number)
        assert self.wait() == code

    def abandon(self):
        """Last resort of the fixtures: nothing may outlive a test."""
        for client in self.clients:
            client.close()
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
