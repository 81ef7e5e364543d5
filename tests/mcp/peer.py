"""A client of an MCP server that speaks its lines of JSON."""

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import threading

from harness.settings import BINARY, PATIENCE

OLD_SERVER, OLD_WRAPPER = "codex-exec-mcp-server", "codex-execve-wrapper"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Old:
    """The old server's programs."""

    def __init__(self, directory):
        self.directory = directory
        vendor = directory / "vendor" / f"{os.uname().machine}-unknown-linux-musl"
        self.server, self.wrapper = vendor / OLD_SERVER, vendor / OLD_WRAPPER
        self.bash = vendor / "bash" / "debian-12" / "bash"
        self.launcher = directory / "bin" / "mcp-server.js"
        for program in (self.server, self.wrapper, self.bash):
            program.chmod(0o755)


class Mcp:
    """A server, and what it has sent."""

    def __init__(self, directory, *options, rules=None, program=None, env=None, name="mcp",
                 requirements=None, stderr=None):
        self.home, self.system = directory / "codex-home", directory / "etc-codex"
        (self.home / "rules").mkdir(parents=True, exist_ok=True)
        self.system.mkdir(exist_ok=True)
        if rules is not None:
            self.rules(rules)
        if requirements is not None:
            (self.system / "requirements.toml").write_text(requirements)
        command = [program, *options] if program else [
            BINARY, name, "--system-config", self.system, *options]
        self.ids = itertools.count(1)
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "CODEX_HOME": str(self.home), **(env or {})})
        self.answers, self.others = {}, queue.Queue()
        self.changed = threading.Condition()
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def rules(self, text):
        path = self.home / "rules" / "test.rules"
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                if "method" in message or message["id"] is None:
                    self.others.put(message)
                else:
                    self.answers[message["id"]] = message
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    # -- messages --

    def line(self, text):
        self.process.stdin.write(text.encode() + b"\n" if isinstance(text, str) else text)
        self.process.stdin.flush()

    def send(self, method, params=None, **members):
        message = {"jsonrpc": "2.0", **members, "method": method}
        if params is not None:
            message["params"] = params
        self.line(json.dumps(message))

    def ask(self, method, params=None):
        """Sends a request; its id."""
        number = next(self.ids)
        self.send(method, params, id=number)
        return number

    def answer(self, number, patience=PATIENCE):
        with self.changed:
            good = self.changed.wait_for(lambda: number in self.answers or self.ended, patience)
            assert good and number in self.answers, f"no answer to {number}"
            return self.answers.pop(number)

    def request(self, method, params=None):
        return self.answer(self.ask(method, params))

    def other(self):
        """The next notification or request of the server, or an error without an id."""
        return self.others.get(timeout=PATIENCE)

    def reply(self, number, result):
        self.line(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))

    # -- the protocol --

    def hello(self, version="2025-06-18", elicitation=True, full=False):
        capabilities = {"elicitation": {}} if elicitation else {}
        made = self.request("initialize", {"protocolVersion": version, "capabilities": capabilities,
                                           "clientInfo": {"name": "test", "version": "1"}})
        self.send("notifications/initialized")
        if full:
            self.full()
        return made["result"]

    def full(self, cwd="/tmp"):
        """No sandbox from now on."""
        self.state({"type": "danger-full-access"}, cwd)

    def state(self, policy, cwd="/tmp"):
        answer = self.request("codex/sandbox-state/update",
                              {"sandboxPolicy": policy, "sandboxCwd": str(cwd)})
        assert answer["result"] == {}

    def call(self, command, meta=None, tool="shell", **arguments):
        """Sends tools/call; its id."""
        if tool == "shell":
            arguments = {"command": command, "login": False, "workdir": "/tmp", **arguments}
        params = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return self.ask("tools/call", params)

    def modern(self, method, params=None, elicitation=True):
        """A request of the revision without a handshake; its id."""
        capabilities = {"elicitation": {"form": {}}} if elicitation else {}
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities}
        return self.ask(method, {**(params or {}), "_meta": meta})

    def result(self, number):
        """The document in the answer to a tools/call."""
        answer = self.answer(number)
        assert "result" in answer, answer
        result = answer["result"]
        assert not result.get("isError"), result
        document = json.loads(result["content"][0]["text"])
        if "structuredContent" in result:
            assert result["structuredContent"] == document
        return document

    def run(self, command, **arguments):
        return self.result(self.call(command, **arguments))

    # -- the end --

    def close(self):
        """Ends the input; the exit status."""
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def signal(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.reader.join(PATIENCE)
        self.process.stdout.close()
