"""One run of everything that a cut may disturb, for any server, and what must be true after it."""

import ctypes
import hashlib
import random
import signal

from execserver import _lib
from harness.core import LIB, Client, Code
from harness.procs import Ev, Process

INPUT = 65536
CONTENT = 20000
# Terminals pass every byte as it is, both ways. `read` may be interrupted by the trap.
SCRIPT = ("test -t 0 && stty raw -echo; printf x >>starts; trap 'printf s >>signals' USR1 INT; "
          f"printf R; head -c {INPUT} | tee in; printf D; while ! read line; do :; done; exit 7")


class Files:
    """File calls of one client."""

    def __init__(self, client):
        self.handle = ctypes.c_void_p()
        assert LIB.xs_fs_new(client.handle, None, ctypes.byref(self.handle)) == 0

    def write(self, path, data):
        return LIB.xs_fs_write(self.handle, str(path).encode(), data, len(data), 0, None)

    def read(self, path):
        out = _lib.Bytes()
        code = LIB.xs_fs_read(self.handle, str(path).encode(), 0, 1 << 20, ctypes.byref(out), None)
        data = ctypes.string_at(out.data, out.n) if code == 0 else None
        LIB.xs_bytes_free(ctypes.byref(out))
        return code, data

    def free(self):
        LIB.xs_fs_free(self.handle)


class Wrong(AssertionError):
    """A promise was broken."""


def check(condition, *what):
    if not condition:
        raise Wrong(" ".join(map(str, what)))


class Run:
    """start, 64 KiB through stdin and back, resize, signal, a file up and down, exit 7."""

    def __init__(self, url, place, tty, seed=1, **more):
        self.place, self.tty = place, tty
        rng = random.Random(seed)
        self.data = rng.randbytes(INPUT)
        self.content = rng.randbytes(CONTENT)
        self.output, self.last, self.code = b"", 0, None
        self.client = Client(url, connect=False, connect_ms=30000, init_ms=30000, **more)
        self.process = None

    def next(self):
        e = self.process.next()
        check(e is not None and e.type not in (Ev.GAP, Ev.FAILED), e, e and e.text)
        check(e.seq == self.last + 1, e, "behind", self.last)
        self.last = e.seq
        self.output += e.data
        if e.type == Ev.EXITED:
            self.code = e.code
        return e

    def until(self, n):
        while len(self.output) < n:
            check(self.next().type == Ev.OUTPUT, "it ended after", len(self.output), "bytes")

    def must(self, code):
        check(code >= 0, code, self.client.error())

    def signalled(self):
        """How often a signal came, which was sent once."""
        path = self.place / "signals"
        return path.stat().st_size if path.exists() else 0

    def whole(self):
        self.must(self.client.connect())
        started = Process.start(self.client, ["/bin/sh", "-c", SCRIPT], cwd=str(self.place),
                                tty=int(self.tty), stdin=1, **({"rows": 24, "cols": 80}
                                if self.tty and self.can("processResize") else {}))
        check(isinstance(started, Process), started, self.client.error())
        self.process = started
        self.until(1)
        self.must(self.process.write(self.data))
        self.until(INPUT + 2)
        if self.tty and self.can("processResize"):
            self.must(self.process.resize(30, 90))
        number = signal.SIGUSR1 if self.can("processSignals") else signal.SIGINT
        sent = self.process.signal(number)
        check(sent in (0, 1, Code.ELOST), sent, self.client.error())
        files = Files(self.client)
        self.must(files.write(self.place / "file", self.content))
        code, content = files.read(self.place / "file")
        self.must(code)
        files.free()
        check(content == self.content, "the file has changed")
        if sent != Code.ELOST:
            self.await_signal()
        self.must(self.process.write(b"go\n"))
        if not self.tty and self.can("processCloseStdin"):
            code = self.process.close_stdin()  # it may have ended by then
            check(code in (0, Code.EREMOTE, Code.EGONE), code, self.client.error())
        while self.next().type != Ev.CLOSED:
            pass
        check(self.process.next() is None, "an event behind the last one")
        self.judge(sent)
        self.must(self.client.close())

    def await_signal(self):
        """The trap runs while its shell waits for the line."""
        for _ in range(3000):
            if self.signalled():
                return
            self.client.run(2)

    def can(self, what):
        return LIB.xs_client_can(self.client.handle, what.encode()) == 1

    def judge(self, sent):
        check(self.code == 7, "exit", self.code)
        check(self.output == b"R" + self.data + b"D", "the output differs:", len(self.output))
        digest = hashlib.sha256((self.place / "in").read_bytes()).hexdigest()
        check(digest == hashlib.sha256(self.data).hexdigest(), "stdin differs there")
        check((self.place / "starts").read_bytes() == b"x", "it was not started once")
        times = self.signalled()
        check(times <= 1 and (sent == Code.ELOST or times == 1), times, "signals")

    def free(self):
        if self.process:
            self.process.free()
        self.client.free()


def start_once(url, path, **more):
    """One start; how often it ran. XS_ELOST is an answer, a second run is none."""
    client = Client(url, connect=False, connect_ms=30000, init_ms=30000, **more)
    try:
        code = client.connect()
        check(code == 0, code, client.error())
        process = Process.start(client, ["/bin/sh", "-c", 'printf x >>"$0"', str(path)])
        lost = process == Code.ELOST
        if not lost:
            check(isinstance(process, Process), process, client.error())
            code, e = process.wait()
            check(code == 0 and e.code == 0, code, e.code, client.error())
            process.free()
        check(client.close() == 0, client.error())
        return lost
    finally:
        client.free()
