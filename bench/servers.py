"""The programs that are measured: how they are started, found and asked."""

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import time

LISTEN = ["--listen", "ws://127.0.0.1:0"]


class BenchError(Exception):
    """Something that makes a figure impossible; its text is shown in the table."""


class Candidate:
    """A program and the way it is started."""

    def __init__(self, name, command, env, log=None):
        self.name = name
        self.command = command
        self.env = env
        self.log = log  # a file for its standard error; None: nobody reads it

    @property
    def program(self):
        return self.command[0]


class Server:
    """A running server on a port of its own; `pid` is the server process itself."""

    def __init__(self, candidate):
        self.name = candidate.name
        with open(candidate.log or os.devnull, "wb") as log:
            self.process = subprocess.Popen(
                candidate.command, env=candidate.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self.pid = self.process.pid
        try:
            self.port = self._read_port()
        except BaseException:
            self.stop()
            raise

    def _read_port(self):
        out = self.process.stdout
        if not select.select([out], [], [], 20)[0]:
            raise BenchError(f"{self.name} printed no address")
        match = re.fullmatch(rb"ws://127\.0\.0\.1:(\d+)\n", out.readline())
        if not match:
            raise BenchError(f"{self.name} did not print its address")
        return int(match[1])

    def rss(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024

    def pin(self, cpu):
        """All its threads run there from now on, and those that they make."""
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), {cpu})

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def running(candidates):
    """Starts one server of each candidate and stops them all afterwards."""
    servers = []
    try:
        for candidate in candidates:
            servers.append(Server(candidate))
        time.sleep(0.3)
        yield servers
    finally:
        for server in servers:
            server.stop()


class Driver:
    """Runs the measuring client."""

    def __init__(self, path):
        self.path = path

    def __call__(self, measure, server=None, command=None, env=None, **options):
        args = [self.path, measure]
        if server is not None:
            args += ["--port", str(server.port), "--pid", str(server.pid)]
        for name, value in options.items():
            args += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        if command is not None:
            args += ["--"] + command
        done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=200, check=False)
        if done.returncode != 0:
            text = done.stderr.strip() or f"driver ended with {done.returncode}"
            who = f"{server.name}: " if server is not None else ""
            raise BenchError(who + text.removeprefix("bench: "))
        return json.loads(done.stdout)


def native_program(path):
    """The program behind the script that npm installs, which would be measured with it."""
    with open(path, "rb") as f:
        if f.read(2) != b"#!":
            return path
    package = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    for base, _, names in os.walk(os.path.dirname(package)):
        if "codex" in names and "vendor" in base.split(os.sep):
            return os.path.join(base, "codex")
    raise BenchError(f"{path} is a script; name the native program")


def build_driver(source, target):
    """Compiles the client when a source is newer than it."""
    files = sorted(os.path.join(source, f) for f in os.listdir(source) if f.endswith((".c", ".h")))
    with contextlib.suppress(FileNotFoundError):
        if os.stat(target).st_mtime > max(os.stat(f).st_mtime for f in files):
            return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu17", "-D_GNU_SOURCE", "-O2",
               "-Wall", "-Wextra", "-o", target] + [f for f in files if f.endswith(".c")]
    if subprocess.run(command, check=False).returncode != 0:
        raise BenchError("the driver could not be built")
