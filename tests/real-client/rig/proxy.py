"""A TCP proxy between client and server that reads along and can cut the connection."""

import asyncio
import json


class Sniffer:
    """Takes the messages out of one direction of a WebSocket connection."""

    def __init__(self, on_message):
        self.on_message = on_message
        self.buffer = bytearray()
        self.upgraded = False
        self.whole = bytearray()

    def feed(self, data):
        self.buffer += data
        if not self.upgraded:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            del self.buffer[:end + 4]
            self.upgraded = True
        while self._frame():
            pass

    def _frame(self):
        b = self.buffer
        if len(b) < 2:
            return False
        size, at = b[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(b) < 2 + width:
                return False
            size, at = int.from_bytes(b[2:2 + width], "big"), 2 + width
        key = b""
        if b[1] & 0x80:
            key, at = bytes(b[at:at + 4]), at + 4
        if len(b) < at + size:
            return False
        first, payload = b[0], bytes(b[at:at + size])
        del b[:at + size]
        if first & 0x0F < 8:
            if key:
                pad = (key * (size // 4 + 1))[:size]
                payload = (int.from_bytes(payload, "big") ^
                           int.from_bytes(pad, "big")).to_bytes(size, "big")
            self.whole += payload
            if first & 0x80:
                self.on_message(json.loads(self.whole))
                self.whole.clear()
        return True


class Proxy:
    def __init__(self, port):
        self.target = port
        self.messages = []
        self.connections = 0
        self._open = []
        self._server = None

    async def listen(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        self.connections += 1
        number = self.connections
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        pair = (writer, up_writer)
        self._open.append(pair)

        async def pump(source, sink, direction):
            sniffer = Sniffer(lambda m: self.messages.append((number, direction, m)))
            try:
                while data := await source.read(1 << 16):
                    sniffer.feed(data)
                    sink.write(data)
                    await sink.drain()
            except OSError:
                pass
            for w in pair:
                w.close()

        await asyncio.gather(pump(reader, up_writer, "c2s"), pump(up_reader, writer, "s2c"))

    def cut(self):
        """Drops every connection, as a network would."""
        pairs, self._open = self._open, []
        for pair in pairs:
            for writer in pair:
                writer.transport.abort()

    def close(self):
        self.cut()
        if self._server:
            self._server.close()

    def calls(self, method):
        """Requests of the client with their answers, as {params, result or error}."""
        found = []
        for number, direction, m in self.messages:
            if direction == "c2s" and m.get("method") == method and "id" in m:
                answer = next((a for n, d, a in self.messages
                               if n == number and d == "s2c" and a.get("id") == m["id"]
                               and "method" not in a), {})
                found.append({**answer, "params": m.get("params")})
        return found

    def notes(self, method):
        return [m["params"] for _, d, m in self.messages
                if d == "s2c" and m.get("method") == method]

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
