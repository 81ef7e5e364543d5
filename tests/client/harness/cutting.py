"""A proxy that cuts connections at a chosen byte, or swallows what passes."""

import select
import selectors
import socket
import struct
import threading

FIN, RST, HOLE = "fin", "rst", "hole"
UP, DOWN = "up", "down"  # to the server, to the client
PIECE = 1 << 16


class Cut:
    """After `at` bytes of one direction of a connection: an end (FIN, RST), or silence (HOLE)."""

    def __init__(self, direction, at, kind=FIN):
        self.direction, self.at, self.kind = direction, at, kind

    def __repr__(self):
        return f"{self.direction} {self.at} {self.kind}"


class Pair:
    """One connection and its way on."""

    def __init__(self, near, cut):
        self.near, self.far = near, None
        self.cut = cut
        self.passed = {UP: 0, DOWN: 0}
        self.silent = False


class Proxy:
    """Forwards connections to `target`, a (host, port) or a path. plan: the cut of each connection
    in turn, None for none; behind the plan nothing is cut. Everything runs in one thread."""

    def __init__(self, target, plan=()):
        self.target = target
        self.plan = list(plan)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}"
        self.cuts = []  # made so far
        self.missed = 0  # the connection ended before its cut
        self.connections = 0
        self.passed = {UP: 0, DOWN: 0}
        self.refusing = False  # connections end at once
        self.hole = False  # everything is swallowed, also new connections
        self.lock = threading.Lock()
        self.pairs = set()
        self.selector = selectors.DefaultSelector()
        self.bell, self.ring = socket.socketpair()
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.selector.register(self.bell, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ring.close()
        self.thread.join()
        for pair in list(self.pairs):
            self.end(pair, FIN)
        self.listener.close()
        self.bell.close()
        self.selector.close()

    # -- from tests

    def cut_all(self, kind=RST):
        """Cuts every connection now."""
        with self.lock:
            for pair in list(self.pairs):
                self.end(pair, kind)

    def set_hole(self, on):
        """A black hole: nothing passes. Off again, what waits in the sockets passes."""
        with self.lock:
            self.hole = on
            for pair in self.pairs:
                self.watch(pair)
        self.wake()

    # -- the thread

    def wake(self):
        self.ring.send(b".")

    def serve(self):
        while True:
            events = self.selector.select()
            with self.lock:
                for key, _ in events:
                    if key.fileobj is self.bell:
                        if not self.bell.recv(4096):
                            return
                    elif key.data is not None and self.is_live(key):
                        key.data(key.fileobj)

    def is_live(self, key):
        return key.fileobj.fileno() >= 0 and key.fileobj in self.selector.get_map()

    def accept(self, listener):
        near, _ = listener.accept()
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.refusing:
            near.close()
            return
        pair = Pair(near, self.plan.pop(0) if self.plan else None)
        self.connections += 1
        self.pairs.add(pair)
        if self.hole:
            return
        self.connect(pair)

    def connect(self, pair):
        try:
            if isinstance(self.target, str):
                pair.far = socket.socket(socket.AF_UNIX)
                pair.far.connect(self.target)
            else:
                pair.far = socket.create_connection(self.target)
                pair.far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self.end(pair, FIN)
            return
        if pair.cut and pair.cut.at == 0:
            self.make(pair)
            return
        self.watch(pair)

    def watch(self, pair):
        """Watches a pair unless it is silent."""
        quiet = self.hole or pair.silent
        if not quiet and pair.far is None:
            self.connect(pair)
            return
        for sock, way in ((pair.near, UP), (pair.far, DOWN)):
            if sock is None:
                continue
            known = sock in self.selector.get_map()
            if quiet and known:
                self.selector.unregister(sock)
            elif not quiet and not known:
                self.selector.register(sock, selectors.EVENT_READ,
                                       lambda _, p=pair, w=way: self.forward(p, w))

    def make(self, pair):
        self.cuts.append(pair.cut)
        if pair.cut.kind == HOLE:
            pair.silent = True
            self.watch(pair)
        else:
            self.end(pair, pair.cut.kind)

    def forward(self, pair, way):
        source, sink = (pair.near, pair.far) if way == UP else (pair.far, pair.near)
        cut = pair.cut if pair.cut and pair.cut.direction == way else None
        try:
            data = source.recv(min(PIECE, cut.at - pair.passed[way]) if cut else PIECE)
            if not data:
                self.end(pair, FIN)
                return
            pair.passed[way] += len(data)
            self.passed[way] += len(data)
            if not self.send(pair, sink, data):
                return
        except OSError:
            self.end(pair, RST)
            return
        if cut and pair.passed[way] >= cut.at:
            self.make(pair)

    def send(self, pair, sink, data):
        """Sends everything. Without the lock while it waits, so that a test that does not read can
        cut. False: it has."""
        data = memoryview(data)
        while data:
            try:
                data = data[sink.send(data, socket.MSG_DONTWAIT):]
            except BlockingIOError:
                self.lock.release()
                try:
                    select.select([], [sink], [], 0.1)
                except (OSError, ValueError):
                    pass  # it was closed meanwhile
                finally:
                    self.lock.acquire()
            if pair not in self.pairs:
                return False
        return True

    def end(self, pair, kind):
        if pair in self.pairs and pair.cut and pair.cut not in self.cuts:
            self.missed += 1
        self.pairs.discard(pair)
        for sock in (pair.near, pair.far):
            if sock is None:
                continue
            if sock in self.selector.get_map():
                self.selector.unregister(sock)
            if kind == RST:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
