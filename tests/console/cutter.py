"""A way to the server that a test can cut, hold, and open again."""

import contextlib
import select
import socket
import threading


class Cutter:
    """Passes TCP connections on to a port of this host."""

    def __init__(self, port):
        self.to = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = []
        self.closed = self.held = False
        self.wake, self.waker = socket.socketpair()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            ends = [] if self.held else [end for pair in self.pairs for end in pair]
            ready, _, _ = select.select([self.wake, self.listener, *ends], [], [])
            if self.wake in ready and not self.wake.recv(64):
                return
            if self.listener in ready:
                self._accept()
            for end in ready:
                if end not in (self.wake, self.listener):
                    self._pass(end)

    def _accept(self):
        client, _ = self.listener.accept()
        if self.closed:
            client.close()
            return
        self.pairs.append((client, socket.create_connection(self.to)))

    def _pass(self, end):
        pair = next((pair for pair in self.pairs if end in pair), None)
        if pair is None:
            return
        other = pair[1] if end is pair[0] else pair[0]
        try:
            data = end.recv(1 << 16)
            other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(pair)

    def _drop(self, pair):
        self.pairs.remove(pair)
        for end in pair:
            end.close()

    def _again(self):
        self.waker.send(b"x")

    def cut(self):
        """Ends all connections, and refuses new ones until open()."""
        self.closed = True
        for pair in list(self.pairs):
            for end in pair:
                with contextlib.suppress(OSError):  # it may have ended by itself
                    end.shutdown(socket.SHUT_RDWR)
        self._again()

    def open(self):
        self.closed = self.held = False
        self._again()

    def hold(self):
        """Passes nothing on any more, and says nothing."""
        self.held = True
        self._again()

    def close(self):
        self.waker.close()
        self.thread.join()
        self.listener.close()
        for pair in self.pairs:
            for end in pair:
                end.close()
