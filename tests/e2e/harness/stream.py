"""An answer to fs/readFile that arrives piece by piece."""

import binascii
import json
import socket
import struct

from .waiting import Deadline
from .ws import CLOSE, CONT, PING, PONG, TEXT, Closed

TAIL = b'"}}'
CUT = b'!","dataBase64":null},"error":'


class Stream:
    """Takes the fragments of the next message, which must answer request `ident`.

    The content is decoded as it comes and passed to sink(bytes), or kept.
    """

    def __init__(self, ws, ident, sink=None):
        self.ws = ws
        self.head = b'{"id":%d,"result":{"dataBase64":"' % ident
        self.kept = []
        self.sink = sink or self.kept.append
        self.buf = b""
        self.fragments = []
        self.pongs = []
        self.size = 0
        self.begun = self.ended = False
        self.error = None  # code and text, if the rest could not be read

    def _text(self, data):
        self.buf += data
        if not self.begun:
            if len(self.buf) < len(self.head):
                return
            assert self.buf.startswith(self.head), self.buf[:100]
            self.buf = self.buf[len(self.head):]
            self.begun = True
        if self.ended and CUT in self.buf:
            self.buf, error = self.buf.split(CUT)
            error = json.loads(error[:-1])
            self.error = error["code"], error["message"]
            self.buf += TAIL
        # The last letters may belong to the tail.
        usable = len(self.buf) if self.ended else len(self.buf) - len(TAIL)
        usable -= 0 if self.ended else max(usable, 0) % 4
        if self.ended:
            assert self.buf.endswith(TAIL), self.buf[-100:]
            usable -= len(TAIL)
        if usable > 0 or self.ended:
            content = binascii.a2b_base64(self.buf[:usable], strict_mode=True) if usable else b""
            self.buf = b"" if self.ended else self.buf[usable:]
            self.size += len(content)
            self.sink(content)

    def step(self, seconds=None):
        """Takes one frame; False when none came in time."""
        frame = self.ws.receive_frame(seconds)
        if frame is None:
            return False
        if frame.opcode == PONG:
            self.pongs.append(frame.payload)
        elif frame.opcode == PING:
            self.ws.send_frame(PONG, frame.payload)
        elif frame.opcode == CLOSE:
            code, = struct.unpack("!H", frame.payload[:2])
            raise Closed(code, frame.payload[2:], "close frame")
        else:
            assert frame.opcode == (CONT if self.fragments else TEXT), "a stream is one message"
            self.fragments.append(len(frame.payload))
            self.ended = frame.fin
            self._text(frame.payload)
        return True

    def begin(self):
        """Takes frames until the content has begun."""
        deadline = Deadline()
        while not self.begun:
            assert self.step(deadline.left()), "no answer in time"
        assert not self.ended, "not a stream"
        return self

    def finish(self, fails=False):
        """Takes the rest, no longer slowly; the content, unless a sink has it."""
        self.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        while not self.ended:
            assert self.step(), "the stream does not go on"
        assert fails or self.error is None, self.error
        return b"".join(self.kept)
