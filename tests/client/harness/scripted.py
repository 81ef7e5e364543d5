"""A server that a test scripts: one function for each connection, with messages and raw bytes."""

import base64
import hashlib
import json
import socket
import struct
import threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SESSION = "0a1b2c3d-0000-4000-8000-00000000abcd"
INFO = {"shell": {"name": "sh", "path": "/bin/sh"}, "executorVersion": "9", "cwd": "file:///srv",
        "userHomeDir": "file:///home/u", "tempDir": "file:///tmp", "capabilities": {}}
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Gone(Exception):
    """The client closed the connection."""


class Connection:
    """One WebSocket. `number` counts from 0."""

    def __init__(self, sock, number):
        self.sock, self.number = sock, number
        self.head = b""
        self.buffer = b""
        self.pings = 0
        self.close_code = None
        self.silent = False  # no pong

    # -- bytes

    def take(self, n):
        while len(self.buffer) < n:
            data = self.sock.recv(1 << 16)
            if not data:
                raise Gone
            self.buffer += data
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def raw(self, data):
        self.sock.sendall(data)

    # -- the opening

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            data = self.sock.recv(1 << 16)
            if not data:
                raise Gone
            self.buffer += data
        self.head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return self.headers()

    def headers(self):
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}

    def accept_key(self):
        key = self.headers()["sec-websocket-key"].encode()
        return base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()

    def upgrade(self):
        self.read_head()
        self.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
                 + self.accept_key().encode() + b"\r\n\r\n")

    # -- frames

    def frame(self, payload, opcode=TEXT, fin=True):
        n = len(payload)
        head = bytes([(0x80 if fin else 0) | opcode])
        if n < 126:
            head += bytes([n])
        elif n < 65536:
            head += b"\x7e" + struct.pack(">H", n)
        else:
            head += b"\x7f" + struct.pack(">Q", n)
        self.raw(head + payload)

    def receive_frame(self):
        first, second = self.take(2)
        assert second & 0x80, "a client's frame must be masked"
        n = second & 0x7F
        if n == 126:
            n, = struct.unpack(">H", self.take(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.take(8))
        assert n <= 1 << 20, "frames have at most 1 MiB"
        mask = self.take(4)
        data = self.take(n)
        key = (mask * (n // 4 + 1))[:n]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(n, "big")
        return first & 0x0F, bool(first & 0x80), data

    def receive(self):
        """The next message; answers pings, raises Gone at a close frame."""
        whole = b""
        while True:
            opcode, fin, data = self.receive_frame()
            if opcode == PING:
                self.pings += 1
                if not self.silent:
                    self.frame(data, PONG)
            elif opcode == CLOSE:
                self.close_code = struct.unpack(">H", data[:2])[0] if data else 1005
                self.frame(data, CLOSE)
                raise Gone
            elif opcode != PONG:
                whole += data
                if fin:
                    return json.loads(whole)

    # -- messages

    def send(self, message):
        self.frame(json.dumps(message).encode())

    def answer(self, request, result):
        self.send({"id": request["id"], "result": result})

    def refuse(self, request, code, message="no"):
        self.send({"id": request["id"], "error": {"code": code, "message": message}})

    def note(self, method, params):
        self.send({"method": method, "params": params})

    def initialize(self, session=SESSION, info=INFO, **more):
        """Answers the handshake; returns the params of initialize."""
        request = self.receive()
        assert request["method"] == "initialize"
        assert self.receive() == {"method": "initialized", "params": {}}
        result = {"sessionId": session, **more}
        if info is not None:
            result["environmentInfo"] = info
        self.answer(request, result)
        return request["params"]

    def open(self, **more):
        self.upgrade()
        return self.initialize(**more)


class Scripted:
    """Calls script(connection) in a thread for each connection. `errors` has what scripts raised,
    which fails the test at the end."""

    def __init__(self, script):
        self.script = script
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}"
        self.connections, self.errors, self.threads = [], [], []
        self.closing = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            if self.closing:
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, len(self.connections))
            self.connections.append(connection)
            thread = threading.Thread(target=self.run, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def run(self, connection):
        try:
            self.script(connection)
        except (Gone, OSError):
            pass
        except BaseException as error:  # pylint: disable=broad-except
            self.errors.append(error)
        finally:
            connection.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.closing = True
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            pass
        self.thread.join()
        self.listener.close()
        for connection in self.connections:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        if kind is None and self.errors:
            raise self.errors[0]
