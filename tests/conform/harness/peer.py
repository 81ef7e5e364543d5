"""JSON-RPC client over WebSocket or stdio, and the view of one process through it."""

import asyncio
import base64
import json

from .websocket import CLOSE, PING, PONG, WebSocket, compact, frame

WAIT = 120.0
SENTINEL = "sentinel"
ABSENT = object()


class Closed(Exception):
    """The server ended the connection while an answer was awaited."""


def brief(message):
    """A response without its id: the result, or one line for an error."""
    if "error" in message:
        error = dict(message["error"])
        text = f"error {error.pop('code')}: {error.pop('message')}"
        return text + (f" {json.dumps(error)}" if error else "")
    return message.get("result", message)


def text_of(data):
    return data.decode("utf-8", "backslashreplace")


def b64(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


class Process:
    """What the notifications and the start response told about one process."""

    def __init__(self, peer, process_id):
        self.peer = peer
        self.id = process_id
        self.events = []
        self.response = None

    def _of(self, kind):
        return [e for m, e in self.events if m == kind]

    def output(self, stream):
        chunks = sorted((e["seq"], e["chunk"]) for e in self._of("process/output")
                        if e["stream"] == stream)
        return b"".join(base64.b64decode(c, validate=True) for _, c in chunks)

    def text(self, stream="stdout"):
        return text_of(self.output(stream))

    async def until_text(self, needle, stream="stdout"):
        await self.peer.until(lambda: needle in self.text(stream) or self._of("process/closed"))
        if needle not in self.text(stream):
            raise AssertionError(f"closed without {needle!r}: {self.text(stream)!r}")

    async def until_exited(self):
        await self.peer.until(lambda: self._of("process/exited"))

    async def until_closed(self):
        """Until all events up to the last one are there: the reference may send them crosswise."""
        def complete():
            closed = self._of("process/closed")
            return closed and self._of("process/exited") and len(self.events) >= closed[0]["seq"]
        await self.peer.until(complete)
        return self

    def exited(self):
        """The members of process/exited but for the id and the sequence number."""
        event = dict(self._of("process/exited")[0])
        return {k: v for k, v in event.items() if k not in ("processId", "seq")}

    def numbering(self):
        """Says whether the sequence numbers are what every client relies on."""
        seqs = sorted(e["seq"] for _, e in self.events)
        closed = self._of("process/closed")
        if seqs != list(range(1, len(seqs) + 1)):
            return f"gap or repetition: {seqs}"
        if closed and closed[0]["seq"] != seqs[-1]:
            return "closed is not last"
        return "contiguous"

    def summary(self):
        """Everything that must agree between two servers for a process that was closed."""
        if not isinstance(self.response, dict):
            return {"start": self.response}
        out = {"start": self.response, "exited": self.exited(), "numbering": self.numbering()}
        for stream in sorted({e["stream"] for e in self._of("process/output")}):
            out[stream] = self.text(stream)
        return out

    async def write(self, data, write_id=ABSENT):
        self.peer.writes += 1
        write_id = f"w{self.peer.writes}" if write_id is ABSENT else write_id
        return await self.peer.call("process/write", {"processId": self.id, "chunk": b64(data),
                                                      "writeId": write_id})

    async def read(self, **params):
        return await self.peer.call("process/read", {"processId": self.id, **params})

    async def terminate(self):
        return await self.peer.call("process/terminate", {"processId": self.id})

    async def signal(self, name="interrupt"):
        return await self.peer.call("process/signal", {"processId": self.id, "signal": name})


class Peer:
    """Base of both transports: matches answers to requests, sorts notifications by process."""

    def __init__(self, run):
        self.run = run
        self.answers = []
        self.taken = set()
        self.notes = []
        self.processes = {}
        self.odd = []
        self.end = None
        self.writes = 0
        self.next_id = 1000
        self._waiters = []
        self.task = None

    def _wake(self):
        waiters, self._waiters = self._waiters, []
        for w in waiters:
            if not w.done():
                w.set_result(None)

    async def until(self, predicate, timeout=WAIT):
        """Waits for a message that makes the predicate true."""
        async def loop():
            while not predicate():
                if self.end is not None:
                    raise Closed(self.end)
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
        await asyncio.wait_for(loop(), timeout)

    def finish(self, how):
        if self.end is None:
            self.end = how
        self._wake()

    def receive(self, raw):
        text = raw.decode("utf-8", "strict")
        message = json.loads(text)
        if compact(message) != text.replace("\\/", "/"):
            self.odd.append("not compact JSON: " + text[:200])
        if "method" in message:
            self.notes.append(message)
            process = self.processes.get(message.get("params", {}).get("processId"))
            if process is not None:
                process.events.append((message["method"], message["params"]))
        else:
            order = list(message)
            if order not in (["id", "result"], ["error", "id"]):
                self.odd.append(f"members {order}")
            self.answers.append(message)
        self._wake()

    async def take(self, request_id):
        """The next unread answer with this id."""
        def found():
            for i, m in enumerate(self.answers):
                if i not in self.taken and m.get("id") == request_id \
                        and type(m.get("id")) is type(request_id):
                    return i
            return None
        await self.until(lambda: found() is not None)
        index = found()
        self.taken.add(index)
        return self.answers[index]

    def post(self, method, params=ABSENT, request_id=None):
        """Sends a request without waiting; returns its id."""
        if request_id is None:
            self.next_id += 1
            request_id = self.next_id
        message = {"id": request_id, "method": method}
        if params is not ABSENT:
            message["params"] = params
        self.send(compact(message))
        return request_id

    async def call(self, method, params=ABSENT):
        return brief(await self.take(self.post(method, params)))

    async def hello(self, **params):
        """The whole handshake; returns the session id."""
        answer = await self.take(self.post("initialize", {"clientName": "conform", **params}))
        session = self.run.learn_session(answer)
        self.send('{"method":"initialized","params":{}}')
        return session

    async def exchange(self, *texts):
        """Sends raw messages, then a request that is answered in order. Returns the answers
        that came before the answer to that request, and how the connection fares."""
        mark = len(self.answers)
        for text in texts:
            self.send(text)
        self.post("process/read", {"processId": SENTINEL}, SENTINEL)
        try:
            await self.take(SENTINEL)
            state = "open"
        except Closed as closed:
            state = str(closed)
        seen = [[m["id"], brief(m)] for m in self.answers[mark:] if m["id"] != SENTINEL]
        return {"answers": seen, "connection": state}

    def start_params(self, argv, **more):
        if isinstance(argv, str):
            argv = ["/bin/sh", "-c", argv]
        params = {"processId": "p", "argv": argv, "cwd": "file://" + self.run.dir,
                  "env": {"PATH": "/usr/bin:/bin"}, "tty": False, **more}
        return {k: v for k, v in params.items() if v is not ABSENT}

    async def start(self, argv, **more):
        """Starts a process; a string is a shell script."""
        params = self.start_params(argv, **more)
        process = Process(self, params.get("processId"))
        if isinstance(process.id, str):
            self.processes[process.id] = process
        process.response = await self.call("process/start", params)
        return process

    async def finish_of(self, argv, **more):
        """Runs a command until it is closed and returns its summary."""
        process = await self.start(argv, **more)
        if isinstance(process.response, dict):
            await process.until_closed()
        return process.summary()


class WebSocketPeer(Peer):
    @classmethod
    async def connect(cls, run, port, headers=""):
        peer = cls(run)
        peer.ws = await WebSocket.connect(port, headers)
        peer.task = asyncio.create_task(peer._read())
        return peer

    def send(self, text):
        self.ws.send_text(text)

    async def _read(self):
        code, whole = None, b""
        try:
            while True:
                opcode, fin, payload = await self.ws.read_frame()
                if opcode == PING:
                    self.ws.write(frame(PONG, payload))
                elif opcode == CLOSE:
                    code = int.from_bytes(payload[:2], "big") if payload else 1005
                elif opcode != PONG:
                    whole += payload
                    if fin:
                        self.receive(whole)
                        whole = b""
        except (asyncio.IncompleteReadError, OSError):
            self.finish("closed" if code is None else f"closed with code {code}")
        except Exception as error:
            self.finish(f"client failed: {error!r}")

    def drop(self):
        """Ends the connection as the real client does: no close frame, just TCP."""
        self.task.cancel()
        self.ws.close()

    async def close(self):
        if self.task:
            self.task.cancel()
        self.ws.close()


class StdioPeer(Peer):
    @classmethod
    async def spawn(cls, run, command, **popen):
        peer = cls(run)
        peer.child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, limit=1 << 27, **popen)
        peer.task = asyncio.create_task(peer._read())
        return peer

    def send(self, text):
        self.send_bytes(text.encode() + b"\n")

    def send_bytes(self, data):
        self.child.stdin.write(data)

    def eof(self):
        self.child.stdin.close()

    async def exit_code(self):
        return await asyncio.wait_for(self.child.wait(), WAIT)

    async def _read(self):
        try:
            while line := await self.child.stdout.readline():
                if not line.endswith(b"\n"):
                    self.odd.append("unterminated line")
                self.receive(line.rstrip(b"\n"))
            self.finish("end of output")
        except Exception as error:
            self.finish(f"client failed: {error!r}")

    async def close(self):
        self.task.cancel()
        if self.child.returncode is None:
            self.child.kill()
            await self.child.wait()
