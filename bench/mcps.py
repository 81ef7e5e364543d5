"""The group `mcp`: the MCP server beside the last release of the old one, with its Bash and wrapper.
In these rows the old server stands in the column of the reference."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from servers import BenchError

TOP = pathlib.Path(__file__).resolve().parent.parent
OLD = ("@openai/codex-shell-tool-mcp", "0.97.0")
SANDBOX = ("@openai/codex", "0.97.0")  # the program that makes the old server's sandboxes
SYSTEM = "x86_64-unknown-linux-musl"
EXECS = 100
RUN, ESCALATE = "/usr/bin/false", "/usr/bin/true"
RULES = 'prefix_rule(pattern=["true"])\n'
FORBIDS = RULES + 'prefix_rule(pattern=["id"], decision="forbidden")\n'
FULL, READ_ONLY = {"type": "danger-full-access"}, {"type": "read-only"}


def package(name, version):
    done = subprocess.run([TOP / "tools" / "npm-package", name, version], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise BenchError(done.stderr.strip().splitlines()[-1])
    return pathlib.Path(done.stdout.strip()) / "vendor" / SYSTEM


class Side:
    """One program: how it starts, and the shell that it runs."""

    def __init__(self, name, command, shell, helper=None):
        self.name, self.command, self.shell, self.helper = name, command, shell, helper


class Session:
    """A server that is told its policy; `home` has its rules."""

    def __init__(self, side, home, policy=None):
        self.side = side
        env = {**os.environ, "CODEX_HOME": str(home)}
        from_us, self.input = os.pipe()
        output, to_us = os.pipe()
        self.since = time.monotonic_ns()
        self.pid = os.posix_spawn(side.command[0], side.command, env, file_actions=[
            (os.POSIX_SPAWN_DUP2, from_us, 0), (os.POSIX_SPAWN_DUP2, to_us, 1)])
        os.close(from_us)
        os.close(to_us)
        self.output = os.fdopen(output, "rb")
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
        self.started = time.monotonic_ns() - self.since
        self.send({"method": "notifications/initialized"})
        if policy:
            self.ask("codex/sandbox-state/update", {
                "sandboxPolicy": policy, "sandboxCwd": "/tmp",
                "codexLinuxSandboxExe": side.helper and str(side.helper)})

    def send(self, message):
        os.write(self.input, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method, params):
        self.send({"id": 1, "method": method, "params": params})
        answer = json.loads(self.output.readline() or "{}")
        if "result" not in answer:
            raise BenchError(f"{self.side.name}: {answer or 'no answer'}")
        return answer["result"]

    def call(self, command):
        """Nanoseconds of one call; its output must be empty."""
        begin = time.monotonic_ns()
        result = self.ask("tools/call", {"name": "shell", "arguments": {
            "command": command, "login": False, "workdir": "/tmp", "timeout_ms": 60000}})
        taken = time.monotonic_ns() - begin
        document = json.loads(result["content"][0]["text"])
        if (document["exit_code"], document["output"]) != (0, ""):
            raise BenchError(f"{self.side.name}: {document}")
        return taken

    def rss(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def close(self):
        os.close(self.input)
        self.output.close()
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def session(*args):
    made = Session(*args)
    try:
        yield made
    finally:
        made.close()


def loop(program):
    """Runs a program EXECS times and a little more, whatever its exit code."""
    return f"i=0; while [ $i -lt {EXECS} ]; do {program}; i=$((i+1)); done; :"


def bare(side):
    """Nanoseconds of the loop in the side's own shell, without a server."""
    begin = time.monotonic_ns()
    subprocess.run([side.shell, "-c", loop(RUN)], check=True, stdin=subprocess.DEVNULL)
    return time.monotonic_ns() - begin


class Mcp:
    """`place` has the rules."""

    def __init__(self, bench, sides, place):
        self.bench, self.sides, self.place = bench, sides, place

    def home(self, name, rules):
        path = self.place / name
        (path / "rules").mkdir(parents=True)
        (path / "rules" / "bench.rules").write_text(rules)
        return path

    def starts(self, home):
        taken = []
        for turn in self.bench.rounds(8, 3):
            for side in self.sides:
                samples = []
                for _ in range(10):
                    with session(side, home) as s:
                        samples.append(s.started)
                taken.append((turn, side.name, {"samples": samples}))
        self.bench.add_samples("mcp_start", taken)

    def idle(self, home):
        for _ in range(self.bench.count(3, 1)):
            for side in self.sides:
                with session(side, home, FULL) as s:
                    time.sleep(0.3)
                    self.bench.results.add("mcp_idle", side.name, s.rss())

    def calls(self, figure, home, policy):
        taken = []
        for turn in self.bench.rounds(6, 2):
            for side in self.sides:
                with session(side, home, policy) as s:
                    s.call(":")
                    samples = [s.call(":") for _ in range(100)]
                taken.append((turn, side.name, {"samples": samples}))
        self.bench.add_samples(figure, taken)

    def execs(self, figure, home, program):
        """What a command costs above the same loop in the plain shell."""
        for _ in self.bench.rounds(9, 3):
            for side in self.sides:
                with session(side, home, FULL) as s:
                    s.call(":")
                    plain = bare(side) + s.call(":")
                    added = (s.call(loop(program)) - plain) / EXECS / 1e3
                self.bench.results.add(figure, side.name, max(added, 1))

    def run(self):
        home = self.home("allows", RULES)
        self.starts(home)
        self.idle(home)
        self.calls("mcp_call", home, FULL)
        self.calls("mcp_call_sandbox", home, READ_ONLY)
        self.execs("mcp_run", home, RUN)
        self.execs("mcp_run_checked", self.home("forbids", FORBIDS), RUN)
        self.execs("mcp_escalate", home, ESCALATE)


def run(bench):
    """Ours and the old one; nothing without ours."""
    ours = next((c.program for c in bench.candidates if c.name == "ours"), None)
    if ours is None:
        return
    vendor, helper = package(*OLD), package(*SANDBOX) / "codex" / "codex"
    bash = vendor / "bash" / "debian-12" / "bash"
    server, wrapper = vendor / "codex-exec-mcp-server", vendor / "codex-execve-wrapper"
    for path in (bash, server, wrapper, helper):
        path.chmod(0o755)
    # The old server refuses a home below /tmp, as the client does.
    place = pathlib.Path(tempfile.mkdtemp(prefix="mcp.", dir=os.path.dirname(bench.driver.path)))
    link = place / "codex-linux-sandbox"
    link.symlink_to(helper)
    sides = [Side("ours", [str(ours), "mcp"], "/bin/bash"),
             Side("old", [str(server), "--bash", str(bash), "--execve", str(wrapper)], str(bash),
                  link)]
    try:
        Mcp(bench, sides, place).run()
    finally:
        shutil.rmtree(place)
