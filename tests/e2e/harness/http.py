"""HTTP/1.1 exchanges byte by byte."""

from .waiting import Deadline, readable, writable


class Ended(Exception):
    """The peer closed before a whole response arrived."""


class Response:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def header(self, name):
        """Value of the only header of that lower-case name, or None."""
        values = [v for k, v in self.fields if k == name]
        assert len(values) <= 1, f"repeated header {name}"
        return values[0] if values else None

    @classmethod
    def finish(cls, sock, buf, status, fields, method="GET"):
        """Reads the body that belongs to a head already read from buf."""
        out = cls(status, fields, b"")
        length = 0 if method == "HEAD" else int(out.header("content-length") or 0)
        deadline = Deadline()
        while len(buf) < length:
            buf += receive(sock, deadline)
        out.body = bytes(buf[:length])
        del buf[:length]
        return out


def receive(sock, deadline):
    if not readable(sock, deadline.left()):
        raise AssertionError("no answer in time")
    try:
        data = sock.recv(65536)
    except ConnectionResetError:
        data = b""
    if not data:
        raise Ended()
    return data


def read_head(sock, buf, deadline):
    """Status, list of (name, value) and the bytes that follow the head."""
    while b"\r\n\r\n" not in buf:
        buf += receive(sock, deadline)
    end = buf.index(b"\r\n\r\n")
    lines = bytes(buf[:end]).decode("latin-1").split("\r\n")
    del buf[:end + 4]
    version, status = lines[0].split(" ")[:2]
    assert version in ("HTTP/1.1", "HTTP/1.0"), lines[0]
    fields = []
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields.append((name, value.strip()))
    return int(status), fields, buf


class Http:
    """One connection that speaks plain HTTP."""

    def __init__(self, sock):
        self.sock = sock
        self.buf = bytearray()

    def send(self, data):
        deadline = Deadline()
        view = memoryview(data.encode("latin-1") if isinstance(data, str) else data)
        while view:
            try:
                view = view[self.sock.send(view):]
            except BlockingIOError:
                assert writable(self.sock, deadline.left()), "peer does not read"

    def read(self, method="GET"):
        status, fields, self.buf = read_head(self.sock, self.buf, Deadline())
        return Response.finish(self.sock, self.buf, status, fields, method)

    def ask(self, target, method="GET", headers=(), version="1.1", body=""):
        lines = [f"{method} {target} HTTP/{version}", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in headers]
        self.send("\r\n".join(lines) + "\r\n\r\n" + body)
        return self.read(method)

    def wait_eof(self, seconds=None):
        """Waits for the end; fails when bytes arrive."""
        deadline = Deadline(seconds)
        assert not self.buf, f"unexpected bytes: {bytes(self.buf)!r}"
        try:
            data = receive(self.sock, deadline)
        except Ended:
            return
        raise AssertionError(f"unexpected bytes: {data!r}")

    def close(self):
        self.sock.close()
