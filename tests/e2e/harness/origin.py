"""A scripted HTTP server on loopback: what it is sent, byte by byte, and what it answers."""

import contextlib
import socket
import ssl
import threading

from .waiting import Deadline, until


class Exchange:
    """One request as it came, and the connection to answer it on."""

    def __init__(self, sock, number):
        self.sock, self.number = sock, number
        self.data = b""
        self.lines, self.body = [], b""
        self.sent = 0  # for handlers that count

    def read_until(self, marker):
        while marker not in self.data:
            more = self.sock.recv(65536)
            if not more:
                return None
            self.data += more
        head, _, self.data = self.data.partition(marker)
        return head

    def read(self):
        """Reads one request; False at the end."""
        head = self.read_until(b"\r\n\r\n")
        if head is None:
            return False
        self.lines = head.split(b"\r\n")
        length = int(self.header("content-length") or 0)
        while len(self.data) < length:
            more = self.sock.recv(65536)
            if not more:
                return False
            self.data += more
        self.body, self.data = self.data[:length], self.data[length:]
        return True

    @property
    def target(self):
        return self.lines[0].split(b" ")[1].decode("latin-1")

    @property
    def method(self):
        return self.lines[0].split(b" ")[0].decode("latin-1")

    def header(self, name):
        for line in self.lines[1:]:
            key, _, value = line.partition(b": ")
            if key.lower() == name.encode():
                return value.decode("utf-8")
        return None

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, status=200, *headers, body=b""):
        """A whole answer, its length in front."""
        lines = [f"HTTP/1.1 {status} X", *headers, f"content-length: {len(body)}"]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)

    def ended(self):
        """Waits until the peer has hung up."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass
        return True


class Origin:
    """Listens; `handle(exchange)` runs for each request, in a thread for each connection. What it
    returns is ignored, unless it is False: that ends the connection."""

    def __init__(self, handle, tls=None, rcvbuf=None):
        self.handle, self.tls = handle, tls
        self.seen = []
        self.connections = 0
        self.open = set()
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, rcvbuf)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(64)
        self.port = self.sock.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            self.open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with contextlib.suppress(OSError, ssl.SSLError):
            if self.tls:
                self.open.discard(sock)
                sock = self.tls.wrap_socket(sock, server_side=True)
                self.open.add(sock)
            data = b""
            while True:
                exchange = Exchange(sock, len(self.seen))
                exchange.data = data
                if not exchange.read():
                    break
                self.seen.append(exchange)
                if self.handle(exchange) is False:
                    break
                data = exchange.data
        self.open.discard(sock)
        sock.close()

    def wait_seen(self, count):
        until(lambda: len(self.seen) >= count, f"{count} requests", Deadline().left())

    def wait_closed(self):
        until(lambda: not self.open, "end of all connections")

    def close(self):
        self.sock.close()
        for sock in list(self.open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
