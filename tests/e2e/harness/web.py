"""What tests of http/request need beside harness/origin.py: requests, streams, programs."""

import os

from . import procfs
from .rpc import unb64
from .settings import BINARY
from .waiting import until

PROGRAM = os.path.join(os.path.dirname(BINARY), "exec-server-http")
DELTA = "http/request/bodyDelta"


def available():
    return os.access(PROGRAM, os.X_OK)


def params(url, method="GET", name="r", **more):
    return {"method": method, "url": url, "requestId": name, **more}


def header(name, value, **more):
    return {"name": name, "value": value, **more}


def body_of(result):
    return unb64(result["bodyBase64"])


def headers_of(result):
    return [(h["name"], h["value"]) for h in result["headers"]]


class Stream:
    """The bodyDelta notifications of one request, checked as they come."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.taken = 0
        self.frames = []

    def poll(self):
        for message in self.client.other[self.taken:]:
            self.taken += 1
            if message["method"] == DELTA and message["params"]["requestId"] == self.name:
                frame = message["params"]
                assert list(frame) == ["requestId", "seq", "deltaBase64", "done", "error"]
                assert not self.done, f"a frame after the last: {frame}"
                assert frame["seq"] == len(self.frames) + 1
                assert frame["done"] == (frame["deltaBase64"] == "")
                assert frame["done"] or frame["error"] is None
                self.frames.append(frame)
        return self.frames

    @property
    def done(self):
        return bool(self.frames) and self.frames[-1]["done"]

    @property
    def body(self):
        return b"".join(unb64(f["deltaBase64"]) for f in self.frames)

    @staticmethod
    def data(frame):
        return unb64(frame["deltaBase64"])

    def wait_body(self, size):
        self.client.wait(lambda: self.poll() and len(self.body) >= size, f"{size} bytes")

    def finish(self):
        """The body, after the last frame, and the error in it."""
        self.client.wait(lambda: self.poll() and self.done, f"end of {self.name}")
        return self.body, self.frames[-1]["error"]


def stream(client, url, name="s", **more):
    """Starts a stream: its result and the stream. Call it before other frames are filed."""
    made = Stream(client, name)
    made.taken = len(client.other)
    result = client.call("http/request", params(url, name=name, streamResponse=True, **more))
    assert result["bodyBase64"] == ""
    return result, made


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None


def programs(server):
    """The HTTP programs of a server that run."""
    return [pid for pid in procfs.descendants(server.pid) if procfs.alive(pid)
            and name_of(pid) == "exec-http"]


def program_of(server):
    """The only one, when it is ready."""
    until(lambda: len(programs(server)) == 1, "one HTTP program")
    return programs(server)[0]
