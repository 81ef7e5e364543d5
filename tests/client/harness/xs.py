"""The program xs as one user has it: run to its end, in the background, or in a terminal."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import tempfile
import termios
from pathlib import Path

from harness import procfs
from harness.server import REPORT
from harness.settings import BINARY, PATIENCE
from harness.waiting import Deadline, readable, until

XS = os.environ.get("XS", str(Path(BINARY).parent / "xs"))
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


JOB = """
set -m
"$@"
status=$?
if [ $status = 148 ]; then
    echo STOPPED
    read -r line
    fg >/dev/null
    status=$?
fi
exit $status
"""


class Done:
    """An xs that has ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}, stdout {self.out[-500:]!r}, stderr {self.err!r}"

    def ok(self):
        """The output, if it ended well and said nothing."""
        assert (self.status, self.err) == (0, ""), self
        return self.out

    def text(self):
        return self.ok().decode()

    def json(self):
        return [json.loads(line) for line in self.text().splitlines()]


class Background:
    """A running xs: `popen`, and what it writes to stdout."""

    def __init__(self, popen, stderr):
        self.popen, self.pid = popen, popen.pid
        self.stderr_file = stderr
        self.out = bytearray()

    def read(self, seconds=None):
        """More output; b"" at its end."""
        fd = self.popen.stdout.fileno()
        assert readable(fd, Deadline(seconds).left()), f"no output: {self.err()}"
        data = os.read(fd, 1 << 16)
        self.out += data
        return data

    def expect(self, data):
        """Reads until the output contains `data`."""
        while data not in self.out:
            assert self.read(), f"{self.out!r} ended without {data!r}: {self.err()}"

    def write(self, data):
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def signal(self, number):
        self.popen.send_signal(number)

    def err(self):
        return os.pread(self.stderr_file.fileno(), 1 << 20, 0).decode(errors="replace")

    def expect_err(self, text):
        until(lambda: text in self.err(), f"{text!r} on stderr")

    def wait(self, seconds=None):
        """Its end, with the rest of the output."""
        if self.popen.stdin:
            self.popen.stdin.close()
        while self.popen.stdout and self.read(seconds):
            pass
        self.popen.wait(Deadline(seconds).left())
        done = Done(self.popen.returncode, bytes(self.out), self.err())
        assert not REPORT.search(done.err), done.err
        return done

    def abandon(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for file in (self.popen.stdin, self.popen.stdout, self.stderr_file):
            if file:
                try:
                    file.close()
                except BrokenPipeError:
                    pass


class Terminal:
    """An xs in a terminal of its own; `screen` is everything that was written to it."""

    def __init__(self, argv, env, cwd, rows, cols, stdout=None):
        self.master, self.slave = os.openpty()
        self.resize(rows, cols, notify=False)
        self.before = termios.tcgetattr(self.slave)
        self.screen = b""
        self.popen = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=self.slave, stdout=stdout or self.slave,
            stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.popen.pid

    def resize(self, rows, cols, notify=True):
        size = struct.pack("HHHH", rows, cols, 0, 0)
        fcntl.ioctl(self.master if notify else self.slave, termios.TIOCSWINSZ, size)

    def type(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def read(self, seconds):
        """More of the screen; b"" at the end."""
        if not readable(self.master, seconds):
            return None
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return b""
        self.screen += data
        return data

    def expect(self, data, start=0):
        """Reads until `data` is on the screen behind `start`; returns the place behind it."""
        deadline = Deadline()
        data = data if isinstance(data, bytes) else data.encode()
        while data not in self.screen[start:]:
            got = self.read(deadline.left())
            assert got, f"{data!r} is not in {self.screen[start:]!r}"
        return start + self.screen[start:].index(data) + len(data)

    def raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def until_raw(self):
        until(self.raw, "raw mode")

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self):
        """The exit status. The terminal must be as it was."""
        deadline = Deadline()
        while self.popen.poll() is None:
            assert not deadline.passed(), f"xs does not end: {self.screen!r}"
            self.read(0.01)
        while self.read(0):
            pass
        assert self.is_restored(), "the terminal was left with other modes"
        return self.popen.returncode

    def hang_up(self):
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def abandon(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)
        self.master = self.slave = -1


class Xs:
    """A user with a home directory, whose xs talks to `host` unless told otherwise."""

    def __init__(self, home, host=None, **env):
        self.home, self.host = Path(home), host
        self.home.mkdir(exist_ok=True)
        self.state = self.home / ".local" / "state" / "exec-server"
        self.env = {"PATH": PATHS, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm",
                    "NO_COLOR": "1", **env}
        self.env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        self.started = []

    def environment(self, host, extra):
        env = {**self.env, **(extra or {})}
        host = self.host if host is None else host
        if host and "XS_HOST" not in env:
            env["XS_HOST"] = host
        return {k: v for k, v in env.items() if v is not None}

    def run(self, *args, stdin=None, host=None, env=None, cwd=None, seconds=2 * PATIENCE, **more):
        """Runs xs to its end. stdin: bytes, a file, or /dev/null."""
        given = isinstance(stdin, bytes)
        done = subprocess.run(
            [XS, *args], env=self.environment(host, env), cwd=cwd or self.home, timeout=seconds,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more,
            **({"input": stdin} if given else {"stdin": stdin or subprocess.DEVNULL}))
        err = done.stderr.decode(errors="replace")
        assert not REPORT.search(err), err
        return Done(done.returncode, done.stdout, err)

    def start(self, *args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, host=None, env=None,
              cwd=None, **more):
        """Starts xs in the background; stdin=True is a pipe."""
        stderr = tempfile.TemporaryFile()
        popen = subprocess.Popen(
            [XS, *args], env=self.environment(host, env), cwd=cwd or self.home,
            stdin=subprocess.PIPE if stdin is True else stdin, stdout=stdout, stderr=stderr,
            **more)
        self.started.append(Background(popen, stderr))
        return self.started[-1]

    def terminal(self, *args, rows=24, cols=80, host=None, env=None, cwd=None, stdout=None):
        """Starts xs in a terminal."""
        self.started.append(Terminal([XS, *args], self.environment(host, env), cwd or self.home,
                                     rows, cols, stdout))
        return self.started[-1]

    def job(self, *args, **options):
        """An xs in a terminal as a job of a shell. When it stops the shell says so, waits for a
        line, and lets it go on."""
        terminal = Terminal(["bash", "-c", JOB, "bash", XS, *args],
                            self.environment(options.pop("host", None), None), self.home, 24, 80)
        self.started.append(terminal)
        return terminal

    def kept(self):
        """The state files by name."""
        return {path.stem: json.loads(path.read_text()) for path in self.state.glob("*.json")}

    def finish(self):
        for one in self.started:
            one.abandon()


def write_private(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def is_stopped(pid):
    """True while a signal holds the process."""
    return procfs.state(pid) == "T"


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
