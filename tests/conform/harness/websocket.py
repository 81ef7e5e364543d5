"""A small WebSocket client that can also send what a client must not send."""

import asyncio
import json
import os
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def frame(opcode, payload=b"", fin=True, rsv=0, masked=True, length=None, bits=7):
    """One frame as bytes. `length` replaces the announced length, for lies about it; `bits` (16 or
    64) writes it longer than it need be."""
    if isinstance(payload, str):
        payload = payload.encode()
    n = len(payload) if length is None else length
    bit = 0x80 if masked else 0
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if n < 126 and bits == 7:
        head += bytes([bit | n])
    elif n < 65536 and bits < 64:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if not masked:
        return head + payload
    if len(payload) > 65536:
        return head + bytes(4) + payload
    key = os.urandom(4)
    return head + key + bytes(b ^ key[i & 3] for i, b in enumerate(payload))


async def open_tcp(port):
    """A TCP connection to a loopback port as (reader, writer)."""
    return await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)


def upgrade_request(extra="", path="/"):
    return (f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{extra}\r\n").encode()


class WebSocket:
    """Frames over an upgraded connection. Pings are answered by the reader."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.sock = writer.get_extra_info("socket")

    @classmethod
    async def connect(cls, port, headers=""):
        reader, writer = await open_tcp(port)
        writer.write(upgrade_request(headers))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(head.decode("latin-1"))
        return cls(reader, writer)

    def write(self, data):
        self.writer.write(data)

    def send_text(self, text):
        self.write(frame(TEXT, text))

    async def read_frame(self):
        """(opcode, fin, payload); raises IncompleteReadError at the end of the stream."""
        # The reference does not set TCP_NODELAY: immediate ACKs save 40 ms an exchange.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        first, second = await self.reader.readexactly(2)
        n = second & 0x7F
        if n == 126:
            n = struct.unpack(">H", await self.reader.readexactly(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", await self.reader.readexactly(8))[0]
        if second & 0x80:
            raise ConnectionError("the server masked a frame")
        return first & 0x0F, bool(first & 0x80), await self.reader.readexactly(n)

    def abort(self):
        """Ends the connection with a reset instead of an orderly close."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self):
        self.writer.close()


def compact(message):
    """The text both servers are expected to send for a message."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)
