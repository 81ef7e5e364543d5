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


def check_resources(resources):
    """Checks the shape of what a process used; the peak is null where it cannot be known."""
    assert set(resources) == {"userTimeMs", "systemTimeMs", "peakMemoryBytes", "wallTimeMs"}
    assert all(isinstance(v, int) and v >= 0 for k, v in resources.items()
               if not (k == "peakMemoryBytes" and v is None)), resources


def check_extra(params, exited):
    """Checks the additive members that describe an exit and returns their names."""
    if not exited:
        return set()
    names = set()
    if "timedOut" in params:
        assert params["timedOut"] is True
        names.add("timedOut")
    if "signal" in params:
        assert params["exitCode"] > 128 and params["signal"].startswith("SIG"), params
        names.add("signal")
    return names


class Process:
    """What was notified about one process, in order of arrival."""

    def __init__(self, name, first_seq, sink=None):
        self.name = name
        self.next_seq = first_seq
        self.events = []
        self.exited = None
        self.closed = None
        self.joined_late = False
        # Takes (seq, stream, data) of output that is not to be kept.
        self.sink = sink

    def file(self, method, params):
        """Checks order and shape of a notification and keeps it."""
        seq = params["seq"]
        assert self.closed is None, f"{self.name}: notification after closed: {params}"
        if self.next_seq is not None:
            assert seq == self.next_seq, f"{self.name}: seq {seq} instead of {self.next_seq}"
        elif seq > 1:
            self.joined_late = True  # resumed: what happened meanwhile was not announced
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
            check_resources(params["resources"])
            known = {"processId", "seq", "exitCode", "sandboxDenied", "resources"}
            assert set(params) == known | check_extra(params, True), params
            assert self.exited is None
            self.exited = params
        else:
            assert kind == "closed" and set(params) == {"processId", "seq"}, (method, params)
            assert self.exited is not None or self.joined_late, f"{self.name}: closed before exited"
            self.closed = params

    def output(self, stream=None):
        return b"".join(data for _, kind, data in self.events
                        if isinstance(data, bytes) and stream in (None, kind))

    @property
    def exit_code(self):
        return self.exited["exitCode"] if self.exited else None


class View:
    """The notifications of one process/attach, in order of arrival."""

    def __init__(self, name, attach_id, after):
        self.name, self.id = name, attach_id
        self.seen = after
        self.events = []
        self.gaps = []
        self.exited = self.closed = None
        self.detached = False

    def file(self, method, params):
        """Checks order and shape of a notification and keeps it."""
        params = dict(params)
        assert params.pop("attachId") == self.id
        assert params.pop("processId") == self.name, params
        assert self.closed is None and not self.detached, f"notification after the end: {params}"
        kind = method.partition("/")[2]
        if kind == "detached":
            assert not params, params
            self.detached = True
            return
        if kind == "attachGap":
            assert set(params) == {"fromSeq", "toSeq"}, params
            assert params["fromSeq"] == self.seen + 1 <= params["toSeq"], params
            self.gaps.append((params["fromSeq"], params["toSeq"]))
            self.seen = params["toSeq"]
            return
        seq = params.pop("seq")
        assert seq == self.seen + 1, f"seq {seq} instead of {self.seen + 1}"
        self.seen = seq
        if kind == "output":
            assert set(params) == {"stream", "chunk"}, params.keys()
            self.events.append((seq, params["stream"], unb64(params["chunk"])))
        elif kind == "exited":
            check_resources(params["resources"])
            known = {"exitCode", "sandboxDenied", "resources"}
            assert set(params) == known | check_extra(params, True), params
            self.exited = params
            self.events.append((seq, kind, params))
        else:
            assert kind == "closed" and not params, (method, params)
            self.closed = seq
            self.events.append((seq, kind, params))

    def output(self, stream=None):
        return b"".join(data for _, kind, data in self.events
                        if isinstance(data, bytes) and stream in (None, kind))


def named_process(params):
    """The process that the params of a start name, whatever their shape."""
    for shape in ("direct", "Direct", "prepared", "Prepared"):
        if "processId" not in params and isinstance(params.get(shape), dict):
            return params[shape].get("processId")
    return params.get("processId")


class Client:
    """One connection. transport needs send_text(text), receive(seconds) and close()."""

    # Judges messages by the schema (harness/schema.py); None: nobody does.
    sampler = None

    def __init__(self, transport):
        self.transport = transport
        # Far from those that tests write into messages of their own.
        self.ids = itertools.count(10_000_001)
        self.asked, self.told = set(), set()
        self.session = None
        self.answers = {}
        # Method, params and size of the text by id, for the sampler.
        self.calls = {}
        self.processes = {}
        # Names of processes by the id of their start, until it is answered.
        self.started_here = {}
        self.attaching = {}
        self.views = {}
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
        self.asked.add(ident)
        message = {"id": ident, "method": method, **extra}
        if params is not None:
            message["params"] = params
        if method == "process/start" and isinstance(params, dict):
            self.started_here[ident] = named_process(params)
        elif method == "process/attach" and isinstance(params, dict) and "processId" in params:
            self.attaching[ident] = params["processId"], params.get("afterSeq") or 0
        text = json.dumps(message, separators=(",", ":"))
        if self.sampler:
            self.calls[ident] = method, params, len(text)
        return ident, text

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
        if self.sampler and "method" in message:
            self.sampler.notified(message, len(data))
        if "method" not in message:
            if "error" in message:
                assert list(message) == ["error", "id"], message
                assert list(message["error"]) == ["code", "message"], message
            else:
                assert list(message) == ["id", "result"], message
            ident = message["id"]
            if self.sampler:
                call = self.calls.pop(ident, None) if isinstance(ident, int) else None
                self.sampler.answered(message, len(data), call)
            assert ident not in self.told, f"request {ident} is answered twice: {data[:200]!r}"
            if ident in self.asked:
                self.asked.discard(ident)
                self.told.add(ident)
            name = self.started_here.pop(ident, None) if isinstance(ident, int) else None
            if name is not None and "result" in message:
                self.processes[name] = Process(
                    name, 1, self.sinks.pop(name, None) or self.make_sink(name))
            attach = self.attaching.pop(ident, None) if isinstance(ident, int) else None
            if attach is not None and "result" in message:
                view = View(attach[0], message["result"]["attachId"], attach[1])
                assert view.id not in self.views
                self.views[view.id] = view
            self.answers.setdefault(ident, []).append(message)
            return message
        params = message.get("params")
        if isinstance(params, dict) and "attachId" in params:
            assert list(message) == ["method", "params"], message.keys()
            self.views[params["attachId"]].file(message["method"], params)
        elif message["method"] in ("process/output", "process/exited", "process/closed"):
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

    def initialize(self, resume=None, name="e2e", **extra):
        params = {"clientName": name, **extra}
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

    def read_any(self, process, **params):
        """process/read of a process that may have lost its output."""
        name = process if isinstance(process, str) else process.name
        result = self.call("process/read", {"processId": name, **params})
        keys = {"chunks", "nextSeq", "exited", "exitCode", "closed", "failure", "sandboxDenied"}
        assert set(result) == keys | check_extra(result, result["exited"]), result.keys()
        return result

    def read(self, process, **params):
        result = self.read_any(process, **params)
        assert result["failure"] is None
        return result

    def write(self, process, data, **extra):
        name = process if isinstance(process, str) else process.name
        return self.call("process/write", {"processId": name, "chunk": b64(data), **extra})

    def terminate(self, process, **extra):
        return self.ask("terminate", process, **extra)

    def ask(self, method, process, **params):
        """A process/ method of one process."""
        name = process if isinstance(process, str) else process.name
        return self.call(f"process/{method}", {"processId": name, **params})

    def refusal(self, method, process, **params):
        """Code and text of the error that a process/ method of one process gives."""
        name = process if isinstance(process, str) else process.name
        return self.error(f"process/{method}", {"processId": name, **params})

    def attach(self, session, process, **params):
        """Watches a process of a session; returns its notifications."""
        name = process if isinstance(process, str) else process.name
        result = self.call("process/attach", {"sessionId": session, "processId": name, **params})
        assert set(result) == {"attachId"}
        return self.views[result["attachId"]]

    def interrupt(self, process):
        name = process if isinstance(process, str) else process.name
        return self.call("process/signal", {"processId": name, "signal": "interrupt"})
