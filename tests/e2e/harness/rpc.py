"""The JSON-RPC layer over a WebSocket or stdio: ids, answers, notifications per process."""

import base64
import itertools
import json
import os

from .waiting import Deadline
from .ws import Closed

PATH = "/usr/local/bin:/usr/bin:/bin"


def b64(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def unb64(text):
    return base64.b64decode(text, validate=True)


class RpcError(Exception):
    def __init__(self, error):
        assert set(error) == {"code", "message"}, error
        super().__init__(f"{error['code']} {error['message']}")
        self.code, self.message = error["code"], error["message"]


class Process:
    """What was notified about one process, in order of arrival."""

    def __init__(self, name, first_seq, sink=None):
        self.name = name
        self.next_seq = first_seq
        self.events = []
        self.exited = None
        self.closed = None
        # Takes (seq, stream, data) of output that is not to be kept.
        self.sink = sink

    def file(self, method, params):
        """Checks order and shape of a notification and keeps it."""
        seq = params["seq"]
        assert self.closed is None, f"{self.name}: notification after closed: {params}"
        if self.next_seq is not None:
            assert seq == self.next_seq, f"{self.name}: seq {seq} instead of {self.next_seq}"
        self.next_seq = seq + 1
        kind = method.partition("/")[2]
        if kind == "output":
            assert set(params) == {"processId", "seq", "stream", "chunk"}, params.keys()
            data = unb64(params["chunk"])
            assert 0 < len(data) <= 65536
            if self.sink:
                self.sink(seq, params["stream"], data)
            else:
                self.events.append((seq, params["stream"], data))
            return
        self.events.append((seq, kind, params))
        if kind == "exited":
            extra = {"signal"} if params["exitCode"] > 128 else set()
            assert set(params) - extra == {"processId", "seq", "exitCode", "sandboxDenied"}, params
            assert self.exited is None
            self.exited = params
        else:
            assert kind == "closed" and set(params) == {"processId", "seq"}, (method, params)
            assert self.exited is not None, f"{self.name}: closed before exited"
            self.closed = params

    def output(self, stream=None):
        return b"".join(data for _, kind, data in self.events
                        if isinstance(data, bytes) and stream in (None, kind))

    @property
    def exit_code(self):
        return self.exited["exitCode"] if self.exited else None


class Client:
    """One connection. transport needs send_text(text), receive(seconds) and close()."""

    def __init__(self, transport):
        self.transport = transport
        self.ids = itertools.count(1)
        self.session = None
        self.answers = {}
        self.processes = {}
        # Names of processes by the id of their start, until it is answered.
        self.started_here = {}
        self.sinks = {}
        self.make_sink = lambda name: None
        self.other = []
        self.received = 0

    # Sending.

    def send_raw(self, text):
        self.transport.send_text(text)

    def encode(self, method, params=None, **extra):
        """Text of a new request and its id. Starts of processes are noted."""
        ident = next(self.ids)
        message = {"id": ident, "method": method, **extra}
        if params is not None:
            message["params"] = params
        if method == "process/start" and isinstance(params, dict):
            self.started_here[ident] = params.get("processId")
        return ident, json.dumps(message, separators=(",", ":"))

    def send(self, method, params=None, **extra):
        ident, text = self.encode(method, params, **extra)
        self.send_raw(text)
        return ident

    def notify(self, method, params=None):
        message = {"method": method}
        if params is not None:
            message["params"] = params
        self.send_raw(json.dumps(message))

    # Receiving.

    def file(self, data):
        """Files one message that arrived."""
        message = json.loads(data)
        self.received += 1
        if "method" not in message:
            if "error" in message:
                assert list(message) == ["error", "id"], message
                assert list(message["error"]) == ["code", "message"], message
            else:
                assert list(message) == ["id", "result"], message
            ident = message["id"]
            name = self.started_here.pop(ident, None) if isinstance(ident, int) else None
            if name is not None and "result" in message:
                self.processes[name] = Process(
                    name, 1, self.sinks.pop(name, None) or self.make_sink(name))
            self.answers.setdefault(ident, []).append(message)
            return message
        params = message.get("params")
        if message["method"] in ("process/output", "process/exited", "process/closed"):
            assert list(message) == ["method", "params"], message.keys()
            name = params["processId"]
            if name not in self.processes:
                assert name not in self.started_here.values(), "notified before start's answer"
                self.processes[name] = Process(name, None, self.make_sink(name))
            self.processes[name].file(message["method"], params)
        else:
            self.other.append(message)
        return message

    def pump(self, seconds=None):
        """Receives and files one message; None after the deadline."""
        data = self.transport.receive(seconds)
        return None if data is None else self.file(data)

    def wait(self, predicate, what, seconds=None):
        """Receives until predicate() is true."""
        deadline = Deadline(seconds)
        while not predicate():
            if self.pump(deadline.left()) is None and deadline.passed():
                raise AssertionError(f"not received in time: {what}")

    def answer(self, ident, seconds=None):
        """The answer to a request sent before, as {"result": ...} or {"error": ...}."""
        self.wait(lambda: self.answers.get(ident), f"answer to request {ident}", seconds)
        message = self.answers[ident].pop(0)
        if not self.answers[ident]:
            del self.answers[ident]
        return message

    def result(self, ident, seconds=None):
        message = self.answer(ident, seconds)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def call(self, method, params=None, seconds=None, **extra):
        return self.result(self.send(method, params, **extra), seconds)

    def error(self, method, params=None, seconds=None):
        """Code and text of the error that a request must give."""
        try:
            result = self.call(method, params, seconds)
        except RpcError as e:
            return e.code, e.message
        raise AssertionError(f"{method} succeeded: {str(result)[:200]}")

    def sync(self):
        """The connection lives and answers."""
        assert self.call("environment/status") == {"status": "ready"}

    def barrier(self):
        """Everything sent before is answered when this returns (parked requests apart)."""
        assert self.error("process/read", {"processId": "no such process"}) == (
            -32600, "unknown process id no such process")

    def quiet(self):
        """Nothing has arrived besides what is already filed."""
        before = self.received
        self.barrier()
        return self.received == before + 1

    # Life of a connection.

    def initialize(self, resume=None, name="e2e"):
        params = {"clientName": name}
        if resume is not None:
            params["resumeSessionId"] = resume
        result = self.call("initialize", params)
        self.session = result["sessionId"]
        self.notify("initialized", {})
        return result

    def close(self):
        self.transport.close()

    def end(self):
        """Closes a WebSocket properly and waits until the server is done with it."""
        self.transport.send_close()
        try:
            while self.transport.receive() is not None:
                pass
        except Closed as end:
            assert end.code == 1000
        self.transport.wait_eof()
        self.transport.close()

    # Processes.

    names = itertools.count(1)

    def new_name(self):
        return f"p{os.getpid()}-{next(Client.names)}"

    def start_params(self, command, **options):
        """Parameters of a start; a string is a script for sh."""
        if isinstance(command, str):
            command = ["/bin/sh", "-c", command]
        params = {"processId": self.new_name(), "argv": command, "cwd": "file:///tmp",
                  "env": {"PATH": PATH}, "tty": False}
        params.update(options)
        return params

    def start(self, command, sink=None, **options):
        """Starts a process and returns its record."""
        params = self.start_params(command, **options)
        if sink:
            self.sinks[params["processId"]] = sink
        result = self.call("process/start", params)
        assert result == {"processId": params["processId"], "sandboxType": "none"}, result
        return self.processes[params["processId"]]

    def start_error(self, command, **options):
        return self.error("process/start", self.start_params(command, **options))

    def run(self, command, **options):
        """Starts a process and waits until it is closed."""
        process = self.start(command, **options)
        return self.wait_closed(process)

    def wait_closed(self, process, seconds=None):
        self.wait(lambda: process.closed, f"end of process {process.name}", seconds)
        return process

    def wait_exited(self, process, seconds=None):
        self.wait(lambda: process.exited, f"exit of process {process.name}", seconds)
        return process

    def wait_output(self, process, text, seconds=None):
        wanted = text.encode() if isinstance(text, str) else text
        self.wait(lambda: wanted in process.output(), f"output {wanted!r}", seconds)
        return process.output()

    def read(self, process, **params):
        name = process if isinstance(process, str) else process.name
        result = self.call("process/read", {"processId": name, **params})
        keys = {"chunks", "nextSeq", "exited", "exitCode", "closed", "failure", "sandboxDenied"}
        assert set(result) - {"signal"} == keys, result.keys()
        assert result["failure"] is None
        return result

    def write(self, process, data, **extra):
        name = process if isinstance(process, str) else process.name
        return self.call("process/write", {"processId": name, "chunk": b64(data), **extra})

    def terminate(self, process):
        name = process if isinstance(process, str) else process.name
        return self.call("process/terminate", {"processId": name})

    def interrupt(self, process):
        name = process if isinstance(process, str) else process.name
        return self.call("process/signal", {"processId": name, "signal": "interrupt"})
