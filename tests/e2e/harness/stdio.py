"""The program under test spoken to through its stdin and stdout."""

import os
import subprocess
import tempfile

from .rpc import Client
from .server import REPORT, environment
from .settings import BINARY
from .waiting import Deadline, readable, writable
from .ws import Closed


class Stdio:
    """A transport of one JSON document per line."""

    def __init__(self, *args, listen="stdio", env=None, cwd=None, command=None,
                 pass_fds=()):
        self.stderr_file = tempfile.TemporaryFile()
        command = command or [BINARY, "--listen", listen, *args]
        env = {"EXEC_SERVER_LOG": "error", **(env or {})}  # errors alone
        self.popen = subprocess.Popen(command, env=environment(env), cwd=cwd, bufsize=0,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.stderr_file, pass_fds=pass_fds)
        self.pid = self.popen.pid
        self.buf = bytearray()
        os.set_blocking(self.popen.stdin.fileno(), False)
        os.set_blocking(self.popen.stdout.fileno(), False)

    def send_bytes(self, data):
        deadline = Deadline()
        view = memoryview(data)
        fd = self.popen.stdin.fileno()
        while view:
            try:
                view = view[os.write(fd, view):]
            except BlockingIOError:
                assert writable(fd, deadline.left()), "server does not read"

    def send_text(self, text):
        self.send_bytes((text.encode() if isinstance(text, str) else text) + b"\n")

    def receive(self, seconds=None):
        """The next line without its end; None after the deadline; Closed at EOF."""
        deadline = Deadline(seconds)
        fd = self.popen.stdout.fileno()
        while True:
            end = self.buf.find(b"\n")
            if end >= 0:
                line = bytes(self.buf[:end])
                del self.buf[:end + 1]
                return line
            if not readable(fd, deadline.left()):
                return None
            data = os.read(fd, 1 << 18)
            if not data:
                assert not self.buf, f"unterminated line {bytes(self.buf[:200])!r}"
                raise Closed()
            self.buf += data

    def close_stdin(self):
        self.popen.stdin.close()

    def rest(self):
        """All lines up to EOF."""
        lines = []
        try:
            while True:
                line = self.receive()
                assert line is not None, "stdout stays open"
                lines.append(line)
        except Closed:
            return lines

    def wait(self, seconds=None):
        """Waits for the end; the exit code."""
        code = self.popen.wait(Deadline(seconds).left())
        self.stderr_file.seek(0)
        err = self.stderr_file.read().decode(errors="replace")
        assert not REPORT.search(err), err
        assert err == "", f"stderr not empty: {err}"
        return code

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.stderr_file):
            stream.close()


def stdio_client(*args, **options):
    client = Client(Stdio(*args, **options))
    client.initialize()
    return client
