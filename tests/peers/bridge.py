"""WebSocket clients of others as programs: every library behind one interface.

A program gets URL and CA file, "" without one. Both directions are records: a letter, four bytes of
length, the payload. To the program: T text message, F fragment of one, L the last, P ping, C close
(code, reason). From it: O open, M message, P ping came, Q pong came, X closed (code, reason; empty:
without a close frame), E trouble (text).
"""

import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pytest

from harness.settings import BINARY, ROOT
from harness.waiting import Deadline, readable
from harness.ws import Closed

HERE = pathlib.Path(__file__).resolve().parent
NODE_MODULES = "/usr/share/nodejs"


def demand(there, what):
    """Skips what is not installed where nothing can be installed; else it is a failure."""
    if not there and os.environ.get("PEERS_INSTALLED_ONLY") == "1":
        pytest.skip(f"{what} is not installed")
    assert there, f"{what} is missing: `tools/deps peers` installs it"


def built(name):
    """A program that meson has built: beside the one under test, or in build/."""
    places = [pathlib.Path(BINARY).parent / "tests" / name, ROOT / "build" / "tests" / name]
    found = next((str(p) for p in places if p.exists()), None)
    demand(found, f"{name}, which needs libwebsockets-dev,")
    return found


def python_websockets():
    demand(pathlib.Path("/usr/lib/python3/dist-packages/websockets").exists(), "python3-websockets")
    return ["/usr/bin/python3", str(HERE / "peer_websockets.py")]


def node_ws():
    demand(shutil.which("node") and pathlib.Path(NODE_MODULES, "ws").exists(), "node-ws")
    return ["node", str(HERE / "peer_ws.js")]


# Programs, and whether one tells the code by which the server answers its own close.
PROGRAMS = {
    "python3-websockets": (python_websockets, True),
    "libwebsockets": (lambda: [built("peer_lws")], False),
    "node-ws": (node_ws, True),
}


class Peer:
    """One connection of a foreign client; a transport of harness.rpc.Client."""

    def __init__(self, name, url, ca=""):
        find, self.tells_answer = PROGRAMS[name]
        command = find()
        self.errors = tempfile.TemporaryFile()
        env = {**os.environ, "NODE_PATH": NODE_MODULES}
        self.popen = subprocess.Popen([*command, url, ca], bufsize=0, env=env, stderr=self.errors,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.buf = bytearray()
        self.pings, self.pongs = [], []
        kind, text = self.record(Deadline())
        assert kind == "O", (kind, text, self.trouble())

    def trouble(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-2000:]

    # Sending.

    def put(self, kind, payload=b""):
        view = memoryview(kind.encode() + struct.pack("!I", len(payload)) + payload)
        while view:
            view = view[os.write(self.popen.stdin.fileno(), view):]

    def send_text(self, text):
        self.put("T", text.encode() if isinstance(text, str) else text)

    def send_fragments(self, parts):
        for part in parts[:-1]:
            self.put("F", part)
        self.put("L", parts[-1])

    def send_close(self, code=1000, reason=b""):
        self.put("C", struct.pack("!H", code) + reason)

    # Receiving.

    def record(self, deadline):
        """The next record; None after the deadline."""
        while True:
            if len(self.buf) >= 5:
                length, = struct.unpack("!I", self.buf[1:5])
                if len(self.buf) >= 5 + length:
                    kind, payload = chr(self.buf[0]), bytes(self.buf[5:5 + length])
                    del self.buf[:5 + length]
                    return kind, payload
            if not readable(self.popen.stdout, deadline.left()):
                return None
            data = os.read(self.popen.stdout.fileno(), 1 << 20)
            assert data, f"the client ended: {self.trouble()}"
            self.buf += data

    def receive(self, seconds=None):
        """The next message; None after the deadline. Closed at the end."""
        deadline = Deadline(seconds)
        while True:
            got = self.record(deadline)
            if got is None:
                return None
            kind, payload = got
            if kind == "M":
                return payload
            if kind == "X":
                code = struct.unpack("!H", payload[:2])[0] if payload else None
                raise Closed(code, payload[2:])
            if kind == "E":
                raise Closed(None, payload, "trouble")
            (self.pings if kind == "P" else self.pongs).append(payload)

    def wait_pong(self, payload):
        deadline = Deadline()
        while payload not in self.pongs:
            kind, got = self.record(deadline) or ("", b"")
            assert kind == "Q", f"no pong but {kind!r} {got[:100]!r}"
            self.pongs.append(got)

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.errors):
            stream.close()
