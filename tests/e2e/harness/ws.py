"""A WebSocket client that leaves every byte of every frame to the test."""

import base64
import hashlib
import os
import select
import socket
import struct

from .http import Response, read_head
from .waiting import Deadline, readable, ready, writable

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(Exception):
    """The peer ended the connection. code is None when it sent no close frame."""

    def __init__(self, code=None, reason=b"", how="eof"):
        super().__init__(f"connection ended: close code {code}, reason {reason!r}, {how}")
        self.code, self.reason, self.how = code, reason, how


class Refused(Exception):
    """The upgrade was answered with something other than 101."""

    def __init__(self, response):
        super().__init__(f"upgrade refused: {response.status} {response.body!r}")
        self.response = response


class Frame:
    def __init__(self, fin, opcode, payload):
        self.fin, self.opcode, self.payload = fin, opcode, payload

    def __repr__(self):
        return f"Frame(fin={self.fin}, opcode={self.opcode}, {len(self.payload)} bytes)"


def xor(data, key):
    """data masked with the four bytes of key."""
    if key == b"\0\0\0\0" or not data:
        return bytes(data)
    n = len(data)
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(data, "little") ^ int.from_bytes(pad, "little")).to_bytes(n, "little")


def head(opcode, length, *, fin=True, rsv=0, key=b"\0\0\0\0"):
    """Frame head; key None leaves the mask bit clear."""
    mask = 0 if key is None else 0x80
    first = (0x80 if fin else 0) | (rsv << 4) | opcode
    if length < 126:
        out = struct.pack("!BB", first, mask | length)
    elif length < 65536:
        out = struct.pack("!BBH", first, mask | 126, length)
    else:
        out = struct.pack("!BBQ", first, mask | 127, length)
    return out + (key or b"")


def frame(opcode, payload=b"", *, fin=True, rsv=0, key=b""):
    """A whole frame, masked with a random key unless key is given (None: not masked)."""
    if key == b"":
        key = os.urandom(4)
    body = payload if key is None else xor(payload, key)
    return head(opcode, len(payload), fin=fin, rsv=rsv, key=key) + body


def upgrade_request(path="/", headers=(), key="dGhlIHNhbXBsZSBub25jZQ==", host="localhost"):
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: Upgrade",
             "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def connect_tcp(address, rcvbuf=None):
    """A non-blocking connection to (host, port) or to the path of a Unix socket."""
    local = isinstance(address, str)
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(socket.AF_UNIX if local else family, socket.SOCK_STREAM)
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.settimeout(Deadline().left())
    sock.connect(address)
    if not local:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock


class WebSocket:
    """One connection. Nothing is read unless a test asks for it."""

    def __init__(self, address, *, path="/", headers=(), rcvbuf=None, early=b"",
                 host="localhost"):
        self.sock = connect_tcp(address, rcvbuf)
        self.buf = bytearray()
        self.ended = None
        self.answer_pings = True
        self.pings = []
        key = base64.b64encode(os.urandom(16))
        self.send_bytes(upgrade_request(path, headers, key.decode(), host) + early)
        status, fields, self.buf = read_head(self.sock, self.buf, Deadline())
        self.response = Response(status, fields, b"")
        if status != 101:
            self.response = Response.finish(self.sock, self.buf, status, fields)
            self.sock.close()
            raise Refused(self.response)
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        assert self.response.header("sec-websocket-accept") == accept

    # Sending.

    def send_bytes(self, data, seconds=None):
        """Sends raw bytes without reading; fails when the peer does not take them in time."""
        deadline = Deadline(seconds)
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view):]
            except BlockingIOError:
                if not writable(self.sock, deadline.left()):
                    raise AssertionError("peer does not read") from None

    def send_while_reading(self, data, seconds=None):
        """Sends raw bytes and keeps what arrives meanwhile for later calls of receive."""
        deadline = Deadline(seconds)
        view = memoryview(data)
        while view:
            got = ready(self.sock, select.POLLIN | select.POLLOUT, deadline.left())
            if not got:
                raise AssertionError("peer neither reads nor writes")
            if got & select.POLLIN:
                self._fill(Deadline(0))
            if got & select.POLLOUT:
                try:
                    view = view[self.sock.send(view):]
                except BlockingIOError:
                    pass

    def try_send(self, data):
        """Sends what fits without waiting and returns the rest."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view):]
            except BlockingIOError:
                break
        return bytes(view)

    def send_frame(self, opcode, payload=b"", **options):
        self.send_bytes(frame(opcode, payload, **options))

    def send_text(self, text):
        data = text.encode() if isinstance(text, str) else text
        # A zero key keeps large messages cheap; small ones exercise the unmasking.
        self.send_frame(TEXT, data, key=b"\0\0\0\0" if len(data) > 1 << 20 else b"")

    def send_close(self, code=1000, reason=b""):
        self.send_frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)

    # Receiving.

    def _fill(self, deadline):
        """Reads once into the buffer. False: nothing came before the deadline."""
        while True:
            try:
                data = self.sock.recv(1 << 18)
            except BlockingIOError:
                if not readable(self.sock, deadline.left()):
                    return False
                continue
            except (ConnectionResetError, BrokenPipeError) as e:
                raise Closed(how=type(e).__name__) from None
            if not data:
                raise Closed()
            self.buf += data
            return True

    def _take_frame(self):
        """The next complete frame in the buffer, or None."""
        buf = self.buf
        if len(buf) < 2:
            return None
        length, start = buf[1] & 0x7F, 2
        if length == 126:
            start = 4
        elif length == 127:
            start = 10
        if len(buf) < start:
            return None
        if start > 2:
            length = int.from_bytes(buf[2:start], "big")
        if len(buf) < start + length:
            return None
        assert not buf[1] & 0x80, "server frame is masked"
        assert not buf[0] & 0x70, "server frame has a reserved bit"
        out = Frame(bool(buf[0] & 0x80), buf[0] & 15, bytes(buf[start:start + length]))
        del buf[:start + length]
        return out

    def receive_frame(self, seconds=None):
        """The next frame; None after the deadline; Closed at the end of the connection."""
        deadline = Deadline(seconds)
        while True:
            got = self._take_frame()
            if got:
                return got
            if not self._fill(deadline):
                return None

    def receive(self, seconds=None):
        """The next message as bytes; None after the deadline.

        Pings are recorded and answered. Raises Closed with the code of the peer's close frame.
        """
        deadline = Deadline(seconds)
        parts = []
        while True:
            got = self.receive_frame(deadline.left())
            if got is None:
                assert not parts, "message not completed in time"
                return None
            if got.opcode == CLOSE:
                code = struct.unpack("!H", got.payload[:2])[0] if got.payload else 1005
                raise Closed(code, got.payload[2:], "close frame")
            if got.opcode == PING:
                self.pings.append(got.payload)
                if self.answer_pings:
                    self.send_frame(PONG, got.payload)
            elif got.opcode != PONG:
                assert got.opcode == (CONT if parts else TEXT), "server sends text messages"
                parts.append(got.payload)
                if got.fin:
                    return b"".join(parts)

    def receive_close(self, seconds=None):
        """Waits for the close frame and the end of the TCP connection; returns the code.

        None when the connection ended without a close frame.
        """
        deadline = Deadline(seconds)
        try:
            while True:
                if self.receive(deadline.left()) is None:
                    raise AssertionError("connection was not ended")
        except Closed as end:
            code = end.code
        if code is not None:
            self.wait_eof(deadline.left())
        return code

    def wait_eof(self, seconds=None):
        deadline = Deadline(seconds)
        try:
            while self._fill(deadline):
                pass
        except Closed:
            return
        raise AssertionError("TCP connection was not ended")

    # Ending.

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends the connection with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def drop(self):
        """Ends the connection without a close frame."""
        self.sock.close()

    def close(self):
        if self.sock.fileno() >= 0:
            self.sock.close()
