"""Waiting: an asyncio loop watches a client's descriptor, or the calling thread polls it.

Every operation of the library gets a struct xs_call. A Call keeps that struct and everything that
the library fills in until `done` has run, even if the caller has left.
"""

from __future__ import annotations

import asyncio
import collections
import ctypes
import itertools
import os
import select
import threading
import weakref
from typing import Any, Callable, Deque, Dict, Generic, Optional, Set, TypeVar

from . import _lib, errors
from ._lib import Code

T = TypeVar("T")
Undo = Callable[[], object]

_library: Optional[ctypes.CDLL] = None
_keys = itertools.count(1)
_calls: Dict[int, Call] = {}  # in flight, of all clients; a key is the call's `user`
_targets: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def library() -> ctypes.CDLL:
    """libexecserver, loaded at the first use."""
    global _library  # pylint: disable=global-statement
    if _library is None:
        _library = _lib.load()
    return _library


def failure(code: int, error: Optional[int]) -> Exception:
    """The exception for a result below 0; `error` is a const struct xs_error *."""
    c = library()
    if not error or c.xs_error_code(error) != code:
        return errors.make(code, os.fsdecode(c.xs_error_name(code)))
    return errors.make(code, os.fsdecode(c.xs_error_text(error)), c.xs_error_os(error),
                       c.xs_error_rpc(error))


def register(target: Any) -> int:
    """A number for the `user` of callbacks; target() finds the object, while it lives."""
    number = next(_keys)
    _targets[number] = target
    return number


def target(number: Optional[int]) -> Any:
    return _targets.get(number or 0)


class Call:
    """One operation in flight."""

    def __init__(self, driver: Driver, keep: Any, undo: Optional[Undo]) -> None:
        self.driver = driver
        self.keep = keep  # memory of the operation's arguments
        self.undo = undo  # frees the result if nobody takes it
        self.key = next(_keys)
        self.raw = _lib.Call(done=_on_done, user=self.key)
        self.done = self.abandoned = False
        self.result = 0
        self.error: Optional[Exception] = None
        self.waiter: Optional[asyncio.Future[None]] = None
        self.callback_error: Optional[BaseException] = None

    def finish(self, result: int, error: Optional[int]) -> None:
        self.done, self.result = True, result
        if self.abandoned:
            self.drop()
            return
        if result < 0:
            self.error = failure(result, error)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def abandon(self) -> None:
        """The caller leaves: cancels the operation, or frees its result."""
        self.abandoned = True
        if self.done:
            self.drop()
        elif self.driver.pointer:
            self.driver.c.xs_call_cancel(ctypes.byref(self.raw))

    def drop(self) -> None:
        if self.result >= 0 and self.undo is not None and self.driver.pointer:
            self.undo()

    def take(self) -> int:
        if self.callback_error is not None:
            raise self.callback_error
        if self.error is not None:
            raise self.error
        return self.result


@_lib.callback(_lib.Done)
def _on_done(raw: Any, result: int) -> None:
    call = _calls.pop(raw.contents.user or 0, None)
    if call is not None:
        call.driver.calls.discard(call.key)
        error = None if result >= 0 else call.driver.c.xs_client_error(call.driver.pointer)
        call.finish(result, error)


class Handle:
    """An object of the library, or what stands for one."""

    _raw: Optional[int]

    def _handle(self) -> int:
        """Its handle, for a call that is being made; raises if it is freed."""
        raise NotImplementedError


def handles(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a._handle() if isinstance(a, Handle) else a for a in args)


class Inbox(Generic[T]):
    """Events that callbacks left and nobody has taken yet."""

    def __init__(self) -> None:
        self.items: Deque[T] = collections.deque()
        self.over = False
        self.waiter: Optional[asyncio.Future[None]] = None

    def put(self, item: T, last: bool = False) -> None:
        self.items.append(item)
        self.over = self.over or last
        self.wake()

    def end(self) -> None:
        self.over = True
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class Driver:
    """A client's handle, its calls in flight, and what other threads left for it to free."""

    def __init__(self, pointer: int) -> None:
        self.c = library()
        self.pointer: Optional[int] = pointer
        self.pid = os.getpid()
        self.fd: int = self.c.xs_client_fd(pointer)
        self.calls: Set[int] = set()
        self.inboxes: weakref.WeakSet[Inbox[Any]] = weakref.WeakSet()
        self.garbage: Deque[tuple[Any, int]] = collections.deque()
        self.failed: Optional[BaseException] = None  # of a callback

    def check(self) -> int:
        """The handle, if it may be used here and now."""
        if self.pid != os.getpid():
            raise RuntimeError("a client cannot be used in a child of fork()")
        if self.pointer is None:
            raise errors.make(Code.EGONE, "the client is closed")
        return self.pointer

    def collect(self) -> None:
        """Frees what the garbage collector found, perhaps in another thread."""
        while self.garbage and self.pointer is not None:
            free, pointer = self.garbage.popleft()
            free(pointer)

    def begin(self, function: Any, args: tuple[Any, ...], undo: Optional[Undo],
              ends: bool) -> Call:
        pointer = self.check()
        self.collect()
        raw = handles(args)
        call = Call(self, args, undo)
        _calls[call.key] = call
        self.calls.add(call.key)
        result = function(*raw, ctypes.byref(call.raw))
        if result < 0:
            _calls.pop(call.key, None)
            self.calls.discard(call.key)
            raise failure(result, self.c.xs_client_error(pointer))
        if ends:  # the library frees the object
            args[0]._raw = None
        return call

    def get(self, function: Any, *args: Any) -> Any:
        """Calls a function that neither waits nor fails."""
        self.check()
        self.collect()
        return function(*handles(args))

    def direct(self, function: Any, *args: Any) -> int:
        """Calls a function that does not wait and may fail."""
        result: int = self.get(function, *args)
        if result < 0:
            raise failure(result, self.c.xs_client_error(self.pointer))
        return result

    def release(self, free: Any, handle: Handle) -> None:
        """Frees an object now; harmless when it or the client is freed already."""
        raw, handle._raw = handle._raw, None
        if raw is not None and self.pointer is not None and self.pid == os.getpid():
            self.get(free, raw)

    def free(self) -> None:
        """Frees the client at once; what waits for it fails."""
        pointer, self.pointer = self.pointer, None
        self.garbage.clear()
        if pointer is None or self.pid != os.getpid():
            return
        self.unwatch()
        self.c.xs_client_free(pointer)
        for key in list(self.calls):
            call = _calls.pop(key, None)
            if call is not None:
                call.finish(Code.ECANCELED, None)
        self.calls.clear()
        for inbox in list(self.inboxes):
            inbox.end()

    def discard(self, free: Any, pointer: int) -> None:
        """Frees an object of the client soon; any thread may ask."""
        if self.pointer is not None and self.pid == os.getpid():
            self.garbage.append((free, pointer))
            self.nudge()

    def raise_failed(self) -> None:
        failed, self.failed = self.failed, None
        if failed is not None:
            raise failed

    def unwatch(self) -> None:
        pass

    def nudge(self) -> None:
        raise NotImplementedError

    def callback_failed(self, error: BaseException) -> None:
        raise NotImplementedError


class AsyncDriver(Driver):
    """Watches the descriptor in the running loop."""

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer)
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self.fd, _readable, weakref.ref(self))

    def __del__(self) -> None:
        if self.pointer is None or self.pid != os.getpid():
            return
        pointer, self.pointer = self.pointer, None
        try:
            self.loop.call_soon_threadsafe(_free_in_loop, self.loop, self.fd, self.c, pointer)
        except RuntimeError:  # the loop is closed
            self.c.xs_client_free(pointer)

    def check(self) -> int:
        if self.pid == os.getpid() and asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("this client belongs to another event loop")
        return super().check()

    async def call(self, function: Any, *args: Any, undo: Optional[Undo] = None,
                   during: Optional[Callable[[Call], None]] = None, ends: bool = False) -> int:
        """Runs an operation; its arguments are `args` and the call. `undo` frees its result if
        nobody waits any more; `ends`: it frees its object."""
        call = self.begin(function, args, undo, ends)
        call.waiter = self.loop.create_future()
        if during is not None:
            during(call)
        try:
            await call.waiter
        except BaseException:
            call.abandon()
            raise
        return call.take()

    async def wait(self, inbox: Inbox[Any]) -> None:
        """Waits until the inbox has something or is over."""
        self.check()
        while not inbox.items and not inbox.over:
            if inbox.waiter is not None and not inbox.waiter.done():
                raise RuntimeError("another task is waiting for these events")
            inbox.waiter = self.loop.create_future()
            await inbox.waiter

    def unwatch(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self.fd)

    def nudge(self) -> None:
        try:
            self.loop.call_soon_threadsafe(_collect, weakref.ref(self))
        except RuntimeError:
            pass

    def callback_failed(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.loop.call_exception_handler(
                {"message": "a callback of an execserver client failed", "exception": error})
        else:
            self.failed = self.failed or error


def _readable(reference: weakref.ref[AsyncDriver]) -> None:
    driver = reference()
    if driver is None or driver.pointer is None:
        return
    driver.collect()
    driver.c.xs_client_process(driver.pointer)
    driver.raise_failed()


def _collect(reference: weakref.ref[AsyncDriver]) -> None:
    driver = reference()
    if driver is not None and driver.pointer is not None:
        driver.collect()


def _free_in_loop(loop: asyncio.AbstractEventLoop, fd: int, c: ctypes.CDLL, pointer: int) -> None:
    loop.remove_reader(fd)
    c.xs_client_free(pointer)


class BlockingDriver(Driver):
    """Polls the descriptor in the calling thread. Threads take turns."""

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer)
        self.lock = threading.RLock()
        self.inside = False
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)

    def __del__(self) -> None:
        self.free()

    def get(self, function: Any, *args: Any) -> Any:
        with self.lock:
            return super().get(function, *args)

    def direct(self, function: Any, *args: Any) -> int:
        with self.lock:
            return super().direct(function, *args)

    def call(self, function: Any, *args: Any, undo: Optional[Undo] = None,
             during: Optional[Callable[[Call], None]] = None, ends: bool = False) -> int:
        with self.lock:
            self.not_inside()
            call = self.begin(function, args, undo, ends)
            if during is not None:
                during(call)
            try:
                while not call.done:
                    self.step()
            except BaseException:
                call.abandon()
                raise
            return call.take()

    def wait(self, inbox: Inbox[Any]) -> None:
        with self.lock:
            self.not_inside()
            while not inbox.items and not inbox.over:
                self.step()

    def step(self) -> None:
        pointer = self.check()
        self.collect()
        self.poll.poll()
        self.inside = True
        try:
            self.c.xs_client_process(pointer)
        finally:
            self.inside = False
        self.raise_failed()

    def not_inside(self) -> None:
        if self.inside:
            raise errors.make(Code.EBUSY, "a blocking call inside a callback")

    def free(self) -> None:
        with self.lock:
            super().free()

    def nudge(self) -> None:
        """Frees at once if no thread is inside the library."""
        if self.lock.acquire(blocking=False):
            try:
                if self.pointer is not None:
                    self.collect()
            finally:
                self.lock.release()

    def callback_failed(self, error: BaseException) -> None:
        self.failed = self.failed or error
