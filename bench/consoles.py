"""The group `console`: a client whose commands are watched from the console, beside one whose
commands nobody watches. Both servers have a console; one has a viewer.

    consoles.py LINK     is that viewer: watches every command until it is killed
"""

import base64
import gzip
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time

from servers import BenchError, Candidate, running

CONSOLE = ["--console", "ws://127.0.0.1:0"]
LOOK_SECONDS = 0.02  # between two looks at the list; a page looks once a second


def frame(text):
    """A text frame with a mask of zeros."""
    data = text.encode()
    size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else \
        struct.pack("!BH", 0x80 | 126, len(data))
    return b"\x81" + size + b"\0\0\0\0" + data


class Viewer:
    """Reads all that comes; looks into answers to its list alone."""

    def __init__(self, link):
        host, port, token = re.fullmatch(r"http://([0-9.]+):(\d+)/#(.+)", link).groups()
        self.sock = socket.create_connection((host, int(port)))
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\n"
                           f"Origin: http://{host}:{port}\r\nConnection: Upgrade\r\n"
                           "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                           f"Sec-WebSocket-Key: {key}\r\n\r\n").encode())
        self.buf = b""
        while b"\r\n\r\n" not in self.buf:
            self.buf += self.sock.recv(4096)
        assert self.buf.startswith(b"HTTP/1.1 101 "), self.buf
        self.buf = self.buf.partition(b"\r\n\r\n")[2]
        self.last = 0
        self.revision = None
        self.watched = set()
        self.list_id = None
        self.send("console/login", {"token": token})

    def send(self, method, params):
        self.last += 1
        self.sock.sendall(frame(json.dumps({"id": self.last, "method": method,
                                            "params": params})))
        return self.last

    def look(self):
        self.list_id = self.send("console/list",
                                 {} if self.revision is None else {"after": self.revision})

    def take(self):
        """The frames in the buffer."""
        while len(self.buf) >= 2:
            size, start = self.buf[1] & 0x7F, 2
            if size == 126:
                size, start = int.from_bytes(self.buf[2:4], "big"), 4
            elif size == 127:
                size, start = int.from_bytes(self.buf[2:10], "big"), 10
            if len(self.buf) < start + size:
                return
            if self.buf[start:start + 6] == b'{"id":':
                self.hear(json.loads(self.buf[start:start + size]))
            self.buf = self.buf[start + size:]

    def hear(self, answer):
        if answer["id"] != self.list_id:
            return
        self.list_id = None
        self.revision = answer["result"]["revision"]
        for row in answer["result"]["processes"]:
            where = row["sessionId"], row["processId"]
            if row["state"] == "running" and where not in self.watched:
                self.watched.add(where)
                self.send("process/attach", {"sessionId": where[0], "processId": where[1]})

    def run(self):
        due = time.monotonic()
        print("ready", flush=True)
        while True:
            if self.list_id is None and time.monotonic() >= due:
                due = time.monotonic() + LOOK_SECONDS
                self.look()
            if select.select([self.sock], [], [], LOOK_SECONDS)[0]:
                data = self.sock.recv(1 << 18)
                if not data:
                    return
                self.buf += data
                self.take()


class Consoles:
    """Both candidates, and the viewer of ours."""

    def __init__(self, ours, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "page.gz"), "wb") as f:
            f.write(gzip.compress(b"<!doctype html>"))
        with open(os.path.join(directory, "manifest"), "w", encoding="ascii") as f:
            f.write("/ text/html page.gz\n")
        command = [*ours.command, *CONSOLE, "--console-page", directory]
        self.candidates = [Candidate(name, command, ours.env, self.log(name))
                           for name in ("ours", "alone")]
        self.viewer = None

    def log(self, name):
        return os.path.join(self.directory, f"{name}.log")

    def __enter__(self):
        self.servers = running(self.candidates)
        servers = self.servers.__enter__()
        with open(self.log("ours"), encoding="utf-8") as f:
            link = re.search(r"^console: (\S+)$", f.read(), re.M)
        if link is None:
            raise BenchError("there is no link to the console")
        self.viewer = subprocess.Popen([sys.executable, os.path.abspath(__file__), link[1]],
                                       stdout=subprocess.PIPE)
        if self.viewer.stdout.readline() != b"ready\n":
            raise BenchError("the viewer has failed")
        return servers

    def __exit__(self, *what):
        alive = self.viewer is not None and self.viewer.poll() is None
        if self.viewer is not None:
            self.viewer.kill()
            self.viewer.wait()
            self.viewer.stdout.close()
        self.servers.__exit__(*what)
        if not alive and what[0] is None:
            raise BenchError("the viewer has ended")


if __name__ == "__main__":
    Viewer(sys.argv[1]).run()
