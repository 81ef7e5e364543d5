"""A TCP proxy between client and server that reads along and can cut the connection, also at a
chosen message."""

import asyncio
import base64
import json

from .everything import authorised

WAIT_SECONDS = 120


class Sniffer:
    """Takes one direction of a WebSocket connection apart, message by message."""

    def __init__(self):
        self.buffer = bytearray()
        self.upgraded = False
        self.whole = bytearray()

    def feed(self, data):
        """Yields (bytes to pass on, message or None); the head of the upgrade is "upgrade"."""
        self.buffer += data
        if not self.upgraded:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end + 4])
            del self.buffer[:end + 4]
            self.upgraded = True
            yield head, "upgrade"
        while found := self._frame():
            yield found

    def _frame(self):
        b = self.buffer
        if len(b) < 2:
            return None
        size, at = b[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(b) < 2 + width:
                return None
            size, at = int.from_bytes(b[2:2 + width], "big"), 2 + width
        key = b""
        if b[1] & 0x80:
            key, at = bytes(b[at:at + 4]), at + 4
        if len(b) < at + size:
            return None
        raw = bytes(b[:at + size])
        del b[:at + size]
        return raw, self._message(raw[0], raw[at:], key) if raw[0] & 0x0F < 8 else None

    def _message(self, first, payload, key):
        if key:
            size = len(payload)
            pad = (key * (size // 4 + 1))[:size]
            payload = (int.from_bytes(payload, "big") ^
                       int.from_bytes(pad, "big")).to_bytes(size, "big")
        self.whole += payload
        if not first & 0x80:
            return None
        whole, self.whole = self.whole, bytearray()
        return json.loads(whole)


def encode(message, masked):
    """A text frame; the mask of zeros leaves the payload as it is."""
    payload = json.dumps(message).encode()
    size, bit = len(payload), 0x80 if masked else 0
    if size < 126:
        head = bytes([0x81, bit | size])
    elif size < 1 << 16:
        head = bytes([0x81, bit | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x81, bit | 127]) + size.to_bytes(8, "big")
    return head + (bytes(4) if masked else b"") + payload


class Link:
    """One connection of the client, with the one to the server that belongs to it."""

    def __init__(self, number, client, server):
        self.number = number
        self.client = client
        self.server = server
        self.methods = {}  # of requests, by id
        self.held = []  # answers to process/start

    def name(self, direction, message):
        """The method of a request or notification; for an answer that of its request."""
        if message == "upgrade" or "method" in message:
            name = message if message == "upgrade" else message["method"]
            if direction == "c2s" and "id" in message:
                self.methods[message["id"]] = name
            return name
        return self.methods.get(message.get("id"))

    def abort(self):
        for writer in (self.client, self.server):
            writer.transport.abort()


class Trap:
    """Cuts the connection at the nth message of this name. `part` is how much of the message
    still gets through: 0 nothing, 0.5 half of its bytes, 1 all of it."""

    def __init__(self, direction, name, part=0, nth=1):
        self.direction = direction
        self.name = name
        self.part = part
        self.left = nth
        self.sprung = asyncio.Event()

    def catches(self, direction, name):
        if (direction, name) != (self.direction, self.name):
            return False
        self.left -= 1
        return self.left == 0


class Proxy:
    def __init__(self, port):
        self.target = port
        self.messages = []  # (number of the connection, direction, message), lost ones too
        self.connections = 0
        self.refused = 0
        self.down = False  # refuse every connection
        self.late_starts = False  # pass on answers to process/start only after process/closed
        self.traps = []
        self.fault = None  # of rig.faults: changes messages on their way
        self.authorise = False  # add a token to every upgrade
        self._open = []
        self._half_open = []
        self._watchers = []
        self._server = None

    async def listen(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        trap = self._caught("c2s", "connect")
        if self.down or trap:
            self.refused += 1
            writer.transport.abort()
            if trap:
                trap.sprung.set()
            self._tell()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            self.refused += 1
            writer.transport.abort()
            self._tell()
            return
        self.connections += 1
        link = Link(self.connections, writer, up_writer)
        self._open.append(link)
        await asyncio.gather(self._pump(link, reader, up_writer, "c2s"),
                             self._pump(link, up_reader, writer, "s2c"))

    async def _pump(self, link, source, sink, direction):
        sniffer = Sniffer()
        try:
            while data := await source.read(1 << 16):
                for raw, message in sniffer.feed(data):
                    if self.authorise and message == "upgrade" and direction == "c2s":
                        raw = authorised(raw)
                    if self.fault and isinstance(message, dict):
                        if self.fault(direction, message):
                            raw = encode(message, direction == "c2s")
                    trap = message and self._note(link, direction, message)
                    if trap:
                        await self._spring(link, trap, sink, raw)
                        return
                    sink.write(self._reorder(link, direction, raw, message))
                await sink.drain()
        except OSError:
            pass
        if link not in self._half_open:
            link.client.close()
            link.server.close()

    def _note(self, link, direction, message):
        """Records a message; returns the trap it falls into, if there is one."""
        name = link.name(direction, message)
        if message != "upgrade":
            self.messages.append((link.number, direction, message))
        self._tell()
        return self._caught(direction, name)

    def _reorder(self, link, direction, raw, message):
        """The bytes to pass on now."""
        if self.late_starts and direction == "s2c" and message:
            name = link.name(direction, message)
            if name == "process/start":
                link.held.append(raw)
                return b""
            if name == "process/closed":
                raw += b"".join(link.held)
                link.held.clear()
        return raw

    def _caught(self, direction, name):
        # Every trap counts, so no generator that stops at the first one.
        caught = [t for t in self.traps if t.catches(direction, name)]
        return caught[0] if caught else None

    async def _spring(self, link, trap, sink, raw):
        if trap.part:
            sink.transport.set_write_buffer_limits(0)
            sink.write(raw[:int(len(raw) * trap.part)])
            await sink.drain()
        if link in self._open:
            self._open.remove(link)
        link.abort()
        trap.sprung.set()
        self._tell()

    def trap(self, *where, **how):
        self.traps.append(Trap(*where, **how))
        return self.traps[-1]

    def cut(self):
        """Drops every connection, as a network would."""
        links, self._open = self._open, []
        for link in links:
            link.abort()

    def cut_client(self):
        """The client loses its connections; the server does not learn of it."""
        links, self._open = self._open, []
        self._half_open += links
        for link in links:
            link.client.transport.abort()

    def cut_server(self):
        """Now the server does."""
        links, self._half_open = self._half_open, []
        for link in links:
            link.server.transport.abort()

    def close(self):
        self.cut()
        self.cut_server()
        if self._server:
            self._server.close()

    def _tell(self):
        for watcher in self._watchers:
            watcher.set()

    async def until(self, condition, what, seconds=WAIT_SECONDS):
        """Waits for a condition on the messages that passed; checks it after each message."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while not condition():
                watcher.clear()
                await asyncio.wait_for(watcher.wait(),
                                       deadline - asyncio.get_running_loop().time())
        except asyncio.TimeoutError:
            raise AssertionError(f"not seen within {seconds} s: {what}") from None
        finally:
            self._watchers.remove(watcher)

    async def until_output(self, text, seconds=WAIT_SECONDS):
        await self.until(lambda: any(text in p["output"] for p in self.processes()),
                         f"output {text!r}", seconds)

    def calls(self, method):
        """Requests of the client with their answers, as {params, result or error}."""
        answers = {(n, m["id"]): m for n, d, m in self.messages
                   if d == "s2c" and "id" in m and "method" not in m}
        return [{**answers.get((n, m["id"]), {}), "method": method, "params": m.get("params")}
                for n, d, m in self.messages
                if d == "c2s" and m.get("method") == method and "id" in m]

    def notes(self, method):
        return [m["params"] for _, d, m in self.messages
                if d == "s2c" and m.get("method") == method]

    def processes(self):
        """What became of each process, in the order of the starts: from notifications, and from
        answers to process/read where the client missed some."""
        found = {}
        for call in self.calls("process/start"):
            p = call["params"]
            found[p["processId"]] = {
                "argv": p["argv"], "tty": p["tty"], "sandboxed": bool(p.get("sandbox")),
                "type": call.get("result", {}).get("sandboxType"), "error": call.get("error"),
                "chunks": {}, "code": None, "denied": None, "closed": False,
                "terminated": False}
        for method, p in self._told():
            process = found.get(p["processId"])
            if process and method == "process/output":
                process["chunks"][p["seq"]] = (p["stream"], base64.b64decode(p["chunk"]))
            elif process and method == "process/exited":
                process.update(code=p["exitCode"], denied=p.get("sandboxDenied"))
            elif process and method == "process/closed":
                process["closed"] = True
        for call in self.calls("process/terminate"):
            process = found.get(call["params"]["processId"])
            if process and call.get("result") != {"running": False}:
                process["terminated"] = True
        for process in found.values():
            process["streams"] = {}
            chunks = [chunk for _, chunk in sorted(process.pop("chunks").items())]
            for stream, data in chunks:
                process["streams"][stream] = process["streams"].get(stream, b"") + data
            process["bytes"] = b"".join(data for _, data in chunks)
            process["output"] = process["bytes"].decode("utf-8", "replace")
        return list(found.values())

    def _told(self):
        for _, d, m in self.messages:
            if d == "s2c" and m.get("method", "").startswith("process/"):
                yield m["method"], m["params"]
        for call in self.calls("process/read"):
            result, name = call.get("result"), call["params"]["processId"]
            for chunk in result["chunks"] if result else ():
                yield "process/output", {"processId": name, **chunk}
            if result and result["exited"]:
                yield "process/exited", {"processId": name, **result}
            if result and result["closed"]:
                yield "process/closed", {"processId": name}

    def violations(self):
        """What every client relies on: numbers from 1 without gap or repetition, nothing after
        closed, answers only to requests."""
        bad = []
        asked = {(n, m["id"]) for n, d, m in self.messages if d == "c2s" and "id" in m}
        for n, d, m in self.messages:
            if d == "s2c" and "method" not in m and (n, m.get("id")) not in asked:
                bad.append(f"answer without request: {m}")
        numbers, closed = {}, {}
        for _, d, m in self.messages:
            if d == "s2c" and m.get("method", "").startswith("process/"):
                p = m["params"]
                if p["processId"] in closed:
                    bad.append(f"{m['method']} after process/closed")
                numbers.setdefault(p["processId"], []).append(p["seq"])
                if m["method"] == "process/closed":
                    closed[p["processId"]] = p["seq"]
        for process, seqs in numbers.items():
            if len(set(seqs)) != len(seqs):
                bad.append(f"repeated number for {process}")
            last = closed.get(process)
            if self.connections == 1 and last and sorted(seqs) != list(range(1, last + 1)):
                bad.append(f"gap in the numbers of {process}")
        return bad
