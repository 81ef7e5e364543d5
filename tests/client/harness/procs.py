"""Processes over the calls of execserver.h, for tests of their rules."""

import ctypes
import hashlib

from execserver import _lib
from harness.core import LIB, Code, Pending, error_text, options

Ev, Stream = _lib.Ev, _lib.Stream


class Event:
    """A copy of one event."""

    def __init__(self, e):
        self.type, self.seq = Ev(e.type), e.seq
        self.to = e.gap_to
        self.stream = Stream(e.stream)
        self.data = ctypes.string_at(e.data, e.n) if e.type == Ev.OUTPUT else b""
        self.code = e.exit.contents.code if e.exit else None
        self.signal = e.exit.contents.signal if e.exit else None
        self.text = e.text.decode() if e.text else None

    def __repr__(self):
        return f"{self.type.name} {self.seq}..{self.to} {len(self.data)}"


class Process:
    """A process of a harness.core.Client."""

    def __init__(self, client, handle):
        self.client, self.handle = client, handle
        self.function = None

    @classmethod
    def start(cls, client, argv, **more):
        """A started process, or the error's code."""
        bag = options(argv=argv, **more)
        handle = ctypes.c_void_p()
        code = LIB.xs_process_start(client.handle, bag, ctypes.byref(handle), None)
        LIB.xs_options_free(bag)
        return cls(client, handle) if code == 0 else Code(code)

    @classmethod
    def adopt(cls, client, name, after=0):
        handle = ctypes.c_void_p()
        code = LIB.xs_process_adopt(client.handle, name.encode(), after, ctypes.byref(handle), None)
        return cls(client, handle) if code == 0 else Code(code)

    def free(self):
        handle, self.handle = self.handle, None
        if handle:
            LIB.xs_process_free(handle)

    def id(self):
        return LIB.xs_process_id(self.handle).decode()

    def next(self):
        """The next event, None behind the last one."""
        at = ctypes.POINTER(_lib.Event)()
        code = LIB.xs_process_next(self.handle, ctypes.byref(at), None)
        assert code >= 0, self.client.error()
        return Event(at.contents) if code == 1 else None

    def events(self):
        while (e := self.next()) is not None:
            yield e

    def on_event(self, function):
        """function(event) returns 0 or PAUSE; None: none."""
        self.function = _lib.OnEvent(
            lambda p, e, user: function(Event(e.contents)) or 0) if function else _lib.OnEvent()
        LIB.xs_process_on_event(self.handle, self.function, None)

    def unpause(self):
        LIB.xs_process_unpause(self.handle)

    def write(self, data, call=None):
        return LIB.xs_process_write(self.handle, data, len(data), call and call.ref())

    def close_stdin(self):
        return LIB.xs_process_close_stdin(self.handle, None)

    def resize(self, rows, cols):
        return LIB.xs_process_resize(self.handle, rows, cols, None)

    def signal(self, number):
        return LIB.xs_process_signal(self.handle, number, None)

    def terminate(self, grace_ms=0):
        return LIB.xs_process_terminate(self.handle, grace_ms, None)

    def wait(self, closed=True, ms=-1):
        """Result and struct xs_exit."""
        e = _lib.Exit()
        code = LIB.xs_process_wait(self.handle, closed, ms, ctypes.byref(e), None)
        return code, e

    def ask_wait(self):
        """An asynchronous wait for the end."""
        pending = Pending(self.client)
        assert LIB.xs_process_wait(self.handle, 1, -1, None, pending.ref()) == 0
        return pending

    def communicate(self, data, most):
        """Result, and of standard output: head, tail, bytes in all."""
        s = _lib.Snapshot()
        code = LIB.xs_process_communicate(self.handle, data, len(data), most, ctypes.byref(s), None)
        if code < 0:
            return code, error_text(LIB.xs_client_error(self.client.handle)), b"", 0
        part = s.out.contents
        text = ctypes.string_at(part.data, part.head + part.tail)
        result = code, text[:part.head], text[part.head:], part.total
        LIB.xs_snapshot_fini(ctypes.byref(s))
        return result


class Story:
    """What the events of a process tell in all; every rule of their order is checked."""

    def __init__(self):
        self.bytes = 0
        self.digest = hashlib.sha256()
        self.gaps = []  # (from, to)
        self.last = 0  # number of the last event
        self.code = None
        self.exits = self.ends = 0
        self.failed = None

    def take(self, e):
        assert not self.ends and self.failed is None, f"{e} behind the end"
        if e.type == Ev.FAILED:
            self.failed = e.text
            return self
        if e.type == Ev.EXITED and self.gaps and e.seq <= self.last:
            pass  # its own number was lost with output
        else:
            assert e.seq == self.last + 1, f"{e} behind {self.last}"
            self.last = e.to if e.type == Ev.GAP else e.seq
        if e.type == Ev.OUTPUT:
            self.bytes += len(e.data)
            self.digest.update(e.data)
        elif e.type == Ev.GAP:
            assert not self.gaps or self.gaps[-1][1] + 1 < e.seq, "two GAPs for one hole"
            self.gaps.append((e.seq, e.to))
        elif e.type == Ev.EXITED:
            self.exits += 1
            self.code = e.code
        elif e.type == Ev.CLOSED:
            self.ends += 1
            assert self.exits == 1
        return self

    def all(self, process):
        for e in process.events():
            self.take(e)
        return self
