"""The client for programs without an event loop; each call blocks until it is done.

    with connect("ws://127.0.0.1:8765") as client:
        process = client.start(["make"])
        for event in process:
            print(event)

Threads that use one client take turns. Made by python/twin from aio.py: change that file.
"""

from __future__ import annotations

import ctypes
import json
import os
from typing import (TYPE_CHECKING, Any, Iterator, Callable, Dict, List, Mapping,
                    Optional, Sequence, Type)

from . import _callbacks, _lib, _options, errors
from ._callbacks import ChangeSink, ClientSink, EventSink, ExecSink, ProgressSink
from ._drive import BlockingDriver as Driver
from ._drive import Handle, failure, library, register
from ._lib import Code, Flags, Log, Open, State, Stream
from ._model import (Change, CommandFailed, Completed, Entry, Event, ExecInfo, ExecResult, Exit,
                     Info, Output, Progress, Snapshot, Stat, Tree, exec_result_of, exit_of,
                     info_of, memory, snapshot_of, stat_of, tree_of)
from ._options import Bag, ClientOptions, CopyOptions, StartOptions, encode, milliseconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

Command = _options.Command
Text = _options.Text
MAX_OUTPUT = 64 << 20  # bytes that run() and communicate() keep of each stream
MAX_READ = 64 << 20
BLOCK = 1 << 20  # bytes of one call on an open file


def _new(where: Optional[str], options: Mapping[str, Any]) -> Client:
    c = library()
    pointer = ctypes.c_void_p()
    with Bag(options, where or "") as bag:
        result = c.xs_client_new(bag, ctypes.byref(pointer))
    if result < 0:
        raise failure(result, c.xs_client_error(None))
    assert pointer.value
    try:
        return Client(Driver(pointer.value))
    except BaseException:
        c.xs_client_free(pointer)
        raise


def _connect(where: Optional[str], options: Mapping[str, Any]) -> Client:
    client = _new(where, options)
    try:
        client._call(client._c.xs_client_connect, client)
    except BaseException:
        client.free()
        raise
    return client


class Client(Handle):
    """A session on an exec-server. connect() makes it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._c = driver.c
        self._call, self._get = driver.call, driver.get
        self._sink = ClientSink(driver)
        user = register(self._sink)
        self._c.xs_client_on_state(driver.pointer, _callbacks.on_state, user)
        self._c.xs_client_on_log(driver.pointer, _callbacks.on_log, user)
        self.fs = Files(self, None)
        self._exec: Optional[Exec] = None

    def _handle(self) -> int:
        return self._driver.check()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        try:
            if self.state == State.READY:
                self.close()
        except errors.Error:
            pass  # what ran there ends with the session
        finally:
            self.free()

    # -- the connection --

    @property
    def state(self) -> State:
        if self._driver.pointer is None:
            return State.CLOSED
        return State(self._get(self._c.xs_client_state, self))

    @property
    def info(self) -> Info:
        raw = self._get(self._c.xs_client_info, self)
        if not raw:
            raise errors.make(Code.ECONNECT, "never connected")
        return info_of(raw.contents)

    @property
    def on_state(self) -> Optional[Callable[[State], object]]:
        """Called at each change of the connection's state."""
        return self._sink.state

    @on_state.setter
    def on_state(self, function: Optional[Callable[[State], object]]) -> None:
        self._sink.state = function

    @property
    def on_log(self) -> Optional[Callable[[Log, str], object]]:
        """Called with lines for a log; they have no secrets."""
        return self._sink.log

    @on_log.setter
    def on_log(self, function: Optional[Callable[[Log, str], object]]) -> None:
        self._sink.log = function

    def can(self, capability: str) -> bool:
        """Whether the server announced a capability, such as "processAck"."""
        return bool(self._get(self._c.xs_client_can, self, encode(capability)))

    def retry(self) -> None:
        """After a loss: tries to resume now."""
        self._get(self._c.xs_client_retry, self)

    def rpc(self, method: str, params: Optional[Mapping[str, Any]] = None) -> Any:
        """Sends any request of the protocol; returns its result."""
        raw = _lib.Bytes()
        text = None if params is None else json.dumps(params).encode()
        self._call(self._c.xs_client_rpc, self, encode(method), text,
                         ctypes.byref(raw), undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return json.loads(self._taken(raw))

    def _taken(self, raw: _lib.Bytes) -> bytes:
        try:
            return memory(raw.data, raw.n)
        finally:
            self._c.xs_bytes_free(ctypes.byref(raw))

    def close(self) -> None:
        """Terminates what runs, ends the session, frees the client."""
        if self._driver.pointer is None:
            return
        try:
            self._call(self._c.xs_client_close, self)
        finally:
            self.free()

    def detach(self) -> str:
        """Leaves everything running; connect(session_id=...) finds it again. Frees the client."""
        session = ctypes.create_string_buffer(_lib.SESSION_ID)
        self._call(self._c.xs_client_detach, self, session)
        self.free()
        return session.value.decode()

    def free(self) -> None:
        """Drops the connection at once. What runs there lives until the session's time is over."""
        self._driver.free()

    # -- processes --

    def _words(self, command: Command) -> List[Text]:
        return _options.words(command, self.info.shell if isinstance(command, str) else "")

    def start(self, command: Command, **options: Unpack[StartOptions]) -> Process:
        """Starts a program. A string is a command of the shell there, a list a program with its
        arguments."""
        out = ctypes.c_void_p()
        with Bag({"argv": self._words(command), **options}) as bag:
            self._call(self._c.xs_process_start, self, bag, ctypes.byref(out),
                             undo=lambda: self._c.xs_process_free(out))
        return Process(self, out)

    def run(self, command: Command, *, input: Optional[bytes] = None, check: bool = False,
                  max_output: int = MAX_OUTPUT, **options: Unpack[StartOptions]) -> Completed:
        """Runs a program to its end. With `check`, a code other than 0 raises CommandFailed."""
        words = self._words(command)
        if input is not None:
            options = {**options, "stdin": True}  # type: ignore[misc]
        with self.start(words, **options) as process:
            end = process.communicate(input, max_output=max_output)
        assert end.exit is not None
        completed = Completed(tuple(_options.shown(words)), end.exit,
                              end.stdout or end.pty or Output(), end.stderr or Output())
        if check and completed.code != 0:
            raise CommandFailed(completed)
        return completed

    def adopt(self, id: str, after: int = 0) -> Process:
        """A process of the session that was resumed; events go on after number `after`."""
        out = ctypes.c_void_p()
        self._call(self._c.xs_process_adopt, self, encode(id), after,
                         ctypes.byref(out), undo=lambda: self._c.xs_process_free(out))
        return Process(self, out)

    def view(self, id: str, *, session: Optional[str] = None, after: int = 0) -> Process:
        """Looks at a process of any session, without a part in it."""
        out = ctypes.c_void_p()
        self._call(self._c.xs_process_view, self,
                         None if session is None else encode(session), encode(id), after,
                         ctypes.byref(out), undo=lambda: self._c.xs_process_free(out))
        return Process(self, out)

    def processes(self) -> List[Any]:
        """The processes of the session, as the protocol's process/list tells them."""
        raw = _lib.Bytes()
        self._call(self._c.xs_process_list, self, ctypes.byref(raw),
                         undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return list(json.loads(self._taken(raw))["processes"])

    @property
    def exec(self) -> Exec:
        """The tools exec_command and write_stdin of a language model."""
        if self._exec is None:
            self._exec = Exec(self)
        return self._exec

    # -- files --

    def files(self, *, sandbox: Optional[str] = None, writable: Sequence[Text] = (),
              sandbox_json: Optional[str] = None) -> Files:
        """File calls in a sandbox."""
        return Files(self, {"sandbox": sandbox, "writable": writable,
                            "sandbox_json": sandbox_json})

    def upload(self, local: Text, remote: Text, *,
                     progress: Optional[Callable[[Progress], Optional[bool]]] = None,
                     **options: Unpack[CopyOptions]) -> int:
        """Copies a file or, with recursive=True, a tree to the server. Returns how many things it
        left out. If `progress` returns True or raises, the copy ends."""
        return self._copy(self._c.xs_copy_upload, local, remote, progress, options)

    def download(self, remote: Text, local: Text, *,
                       progress: Optional[Callable[[Progress], Optional[bool]]] = None,
                       **options: Unpack[CopyOptions]) -> int:
        """Copies from the server, as upload() does to it."""
        return self._copy(self._c.xs_copy_download, remote, local, progress, options)

    def _copy(self, function: Any, source: Text, target: Text,
                    progress: Optional[Callable[[Progress], Optional[bool]]],
                    options: Mapping[str, Any]) -> int:
        sink = ProgressSink(progress or (lambda _: None))
        with Bag(options) as bag:
            return self._call(function, self, encode(source), encode(target), bag,
                                    _callbacks.on_progress, register(sink), during=sink.begin)


class _Object(Handle):
    """An object of a client, freed with it or before it."""

    def __init__(self, client: Client, out: ctypes.c_void_p, free: Any) -> None:
        assert out.value
        self._client, self._free = client, free
        self._driver, self._c = client._driver, client._c
        self._raw: Optional[int] = out.value

    def _handle(self) -> int:
        if self._raw is None:
            raise errors.make(Code.EINVAL, "it is freed")
        return self._raw

    def free(self) -> None:
        """Frees it at once; harmless when it is freed already."""
        self._driver.release(self._free, self)

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None:
            self._raw = None
            self._driver.discard(self._free, raw)


class Process(_Object):
    """A process there. Iterating gives its events; the last is Closed or Failed."""

    def __init__(self, client: Client, out: ctypes.c_void_p) -> None:
        super().__init__(client, out, client._c.xs_process_free)
        self._sink: Optional[EventSink] = None
        self.id: str = os.fsdecode(self._c.xs_process_id(self._raw))

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.free()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if self._sink is None:
            self._sink = EventSink(self._driver)
            self._driver.get(self._c.xs_process_on_event, self, _callbacks.on_event,
                             register(self._sink))
        if not self._sink.items and not self._sink.over:
            self._driver.wait(self._sink)
        if not self._sink.items:
            raise StopIteration
        event = self._sink.take()
        if self._sink.may_go_on() and self._raw is not None:
            self._driver.get(self._c.xs_process_unpause, self)
        return event

    def write(self, data: bytes) -> None:
        """Writes everything to stdin, once. If it is cancelled, some may be written."""
        self._driver.call(self._c.xs_process_write, self, data, len(data))

    def close_stdin(self) -> None:
        self._driver.call(self._c.xs_process_close_stdin, self)

    def resize(self, rows: int, cols: int) -> None:
        self._driver.call(self._c.xs_process_resize, self, rows, cols)

    def signal(self, number: int) -> None:
        """Sends a signal, once."""
        self._driver.call(self._c.xs_process_signal, self, number)

    def terminate(self, grace: float = 0) -> None:
        """SIGTERM and, after `grace` seconds, SIGKILL for everything it started."""
        self._driver.call(self._c.xs_process_terminate, self, milliseconds(grace))

    def wait(self, *, closed: bool = False, timeout: Optional[float] = None) -> Exit:
        """Waits for its exit or, with `closed`, for the end of its output too."""
        raw = _lib.Exit()
        self._driver.call(self._c.xs_process_wait, self, int(closed),
                                -1 if timeout is None else milliseconds(timeout),
                                ctypes.byref(raw))
        return exit_of(raw)

    def read(self, after: int = 0, max_bytes: int = 1 << 20, wait: float = 0) -> Any:
        """The protocol's process/read."""
        raw = _lib.Bytes()
        self._driver.call(self._c.xs_process_read, self, after, max_bytes,
                                milliseconds(wait), ctypes.byref(raw),
                                undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return json.loads(self._client._taken(raw))

    def snapshot(self, max_bytes: int = 1 << 20) -> Snapshot:
        """What the server retains."""
        raw = _lib.Snapshot()
        self._driver.call(self._c.xs_process_snapshot, self, max_bytes,
                                ctypes.byref(raw),
                                undo=lambda: self._c.xs_snapshot_fini(ctypes.byref(raw)))
        return self._snapshot(raw)

    def communicate(self, input: Optional[bytes] = None, *,
                          max_output: int = MAX_OUTPUT) -> Snapshot:
        """Writes `input`, closes stdin, reads everything, waits for the end. Keeps the first and
        the last half of `max_output` of each stream."""
        raw = _lib.Snapshot()
        data = input or b""
        self._driver.call(self._c.xs_process_communicate, self, data, len(data),
                                max_output, ctypes.byref(raw),
                                undo=lambda: self._c.xs_snapshot_fini(ctypes.byref(raw)))
        return self._snapshot(raw)

    def _snapshot(self, raw: _lib.Snapshot) -> Snapshot:
        try:
            return snapshot_of(raw)
        finally:
            self._c.xs_snapshot_fini(ctypes.byref(raw))


class Files(Handle):
    """File calls there. Paths are absolute, or relative to the server's directory."""

    def __init__(self, client: Client, sandbox: Optional[Mapping[str, Any]]) -> None:
        self._client = client
        self._driver, self._c = client._driver, client._c
        self._call = client._driver.call
        self._sandbox = sandbox
        self._raw: Optional[int] = None

    def _handle(self) -> int:
        if self._raw is None:
            out = ctypes.c_void_p()
            if self._sandbox is None:
                self._driver.direct(self._c.xs_fs_new, self._client, None, ctypes.byref(out))
            else:
                with Bag(self._sandbox) as bag:
                    self._driver.direct(self._c.xs_fs_new, self._client, bag, ctypes.byref(out))
            self._raw = out.value
        assert self._raw is not None
        return self._raw

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None:
            self._driver.discard(self._c.xs_fs_free, raw)

    def stat(self, path: Text, *, follow: bool = True) -> Stat:
        raw = _lib.Stat()
        self._call(self._c.xs_fs_stat, self, encode(path),
                         0 if follow else Flags.NOFOLLOW, ctypes.byref(raw))
        return stat_of(raw)

    def read(self, path: Text, *, follow: bool = True, max_bytes: int = MAX_READ) -> bytes:
        """The whole file; a larger one is an error."""
        raw = _lib.Bytes()
        self._call(self._c.xs_fs_read, self, encode(path),
                         0 if follow else Flags.NOFOLLOW, max_bytes, ctypes.byref(raw),
                         undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return self._client._taken(raw)

    def write(self, path: Text, data: bytes, *, follow: bool = True,
                    atomic: bool = False) -> None:
        """Replaces a file; `atomic`: nobody ever sees half of it."""
        flags = (0 if follow else Flags.NOFOLLOW) | (Flags.ATOMIC if atomic else 0)
        self._call(self._c.xs_fs_write, self, encode(path), data, len(data), flags)

    def list(self, path: Text) -> List[Entry]:
        out = ctypes.POINTER(_lib.Entries)()
        self._call(self._c.xs_fs_list, self, encode(path), ctypes.byref(out),
                         undo=lambda: self._c.xs_entries_free(out))
        return self._tree(out).entries

    def walk(self, path: Text, *, max_depth: int = 0, max_directories: int = 0,
                   max_entries: int = 0, follow: bool = False, prune_hidden: bool = False,
                   links: bool = False) -> Tree:
        """Everything below a directory; 0: the most that the server allows."""
        out = ctypes.POINTER(_lib.Entries)()
        limits = _lib.Walk(max_depth=max_depth, max_directories=max_directories,
                           max_entries=max_entries, follow=follow, prune_hidden=prune_hidden,
                           links=links)
        self._call(self._c.xs_fs_walk, self, encode(path), ctypes.byref(limits),
                         ctypes.byref(out), undo=lambda: self._c.xs_entries_free(out))
        return self._tree(out)

    def _tree(self, out: Any) -> Tree:
        try:
            return tree_of(out.contents)
        finally:
            self._c.xs_entries_free(out)

    def mkdir(self, path: Text, *, parents: bool = False) -> None:
        self._call(self._c.xs_fs_mkdir, self, encode(path),
                         Flags.RECURSIVE if parents else 0)

    def remove(self, path: Text, *, recursive: bool = False, force: bool = False) -> None:
        flags = (Flags.RECURSIVE if recursive else 0) | (Flags.FORCE if force else 0)
        self._call(self._c.xs_fs_remove, self, encode(path), flags)

    def chmod(self, path: Text, mode: int, *, follow: bool = True) -> None:
        self._call(self._c.xs_fs_chmod, self, encode(path), mode,
                         0 if follow else Flags.NOFOLLOW)

    def copy(self, source: Text, target: Text, *, recursive: bool = False) -> None:
        """Copies there, on the server."""
        self._call(self._c.xs_fs_copy, self, encode(source), encode(target),
                         Flags.RECURSIVE if recursive else 0)

    def rename(self, source: Text, target: Text, *, replace: bool = True) -> None:
        self._call(self._c.xs_fs_rename, self, encode(source), encode(target),
                         0 if replace else Flags.NOREPLACE)

    def set_times(self, path: Text, modified_ms: int, *, follow: bool = True) -> None:
        self._call(self._c.xs_fs_set_times, self, encode(path), modified_ms,
                         0 if follow else Flags.NOFOLLOW)

    def canonicalize(self, path: Text) -> str:
        raw = _lib.Bytes()
        self._call(self._c.xs_fs_canonicalize, self, encode(path),
                         ctypes.byref(raw),
                         undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return os.fsdecode(self._client._taken(raw))

    def read_link(self, path: Text) -> str:
        raw = _lib.Bytes()
        self._call(self._c.xs_fs_read_link, self, encode(path), ctypes.byref(raw),
                         undo=lambda: self._c.xs_bytes_free(ctypes.byref(raw)))
        return os.fsdecode(self._client._taken(raw))

    def symlink(self, path: Text, target: Text) -> None:
        """Makes a link at `path`."""
        self._call(self._c.xs_fs_symlink, self, encode(path), encode(target))

    def watch(self, path: Text, *, recursive: bool = False) -> Watch:
        """Reports changes of a file or directory, or of everything below it."""
        out = ctypes.c_void_p()
        sink = ChangeSink(self._driver)
        self._call(self._c.xs_fs_watch, self, encode(path),
                         Flags.RECURSIVE if recursive else 0, _callbacks.on_watch, register(sink),
                         ctypes.byref(out), undo=lambda: self._c.xs_watch_free(out))
        return Watch(self._client, out, sink)

    def watch_missing(self, paths: Sequence[Text]) -> Watch:
        """Reports when one of these paths, which do not exist, appears."""
        out = ctypes.c_void_p()
        sink = ChangeSink(self._driver)
        array = (ctypes.c_char_p * (len(paths) + 1))(*map(encode, paths), None)
        self._call(self._c.xs_fs_watch_missing, self, array, _callbacks.on_watch,
                         register(sink), ctypes.byref(out),
                         undo=lambda: self._c.xs_watch_free(out))
        return Watch(self._client, out, sink)

    def open(self, path: Text, mode: Open = Open.READ) -> File:
        """Opens a file for reading, replacing or updating (without truncating it)."""
        out = ctypes.c_void_p()
        self._call(self._c.xs_fs_open, self, encode(path), int(mode),
                         ctypes.byref(out), undo=lambda: self._c.xs_file_free(out))
        return File(self._client, out)


class Watch(_Object):
    """Changes of files. Iterating gives them; it ends with free() and raises if the watch failed."""

    def __init__(self, client: Client, out: ctypes.c_void_p, sink: ChangeSink) -> None:
        super().__init__(client, out, client._c.xs_watch_free)
        self._sink = sink

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.free()

    def free(self) -> None:
        super().free()
        self._sink.end()

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        if not self._sink.items and not self._sink.over:
            self._driver.wait(self._sink)
        if self._sink.items:
            return self._sink.items.popleft()
        if self._sink.failed is not None:
            raise errors.make(Code.EREMOTE, self._sink.failed)
        raise StopIteration


class File(_Object):
    """An open file there."""

    def __init__(self, client: Client, out: ctypes.c_void_p) -> None:
        super().__init__(client, out, client._c.xs_file_free)

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        if self._raw is not None and kind is None:
            self.close()
        self.free()

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes, fewer only at the end of the file."""
        parts = []
        while size > 0:
            part = self._read_block(offset, min(size, BLOCK))
            if not part:
                break
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return b"".join(parts)

    def _read_block(self, offset: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        n = self._driver.call(self._c.xs_file_read, self, offset, buffer, size)
        return buffer.raw[:n]

    def write(self, offset: int, data: bytes) -> None:
        """Writes all."""
        for start in range(0, len(data), BLOCK):
            block = data[start:start + BLOCK]
            self._driver.call(self._c.xs_file_write, self, offset + start, block,
                                    len(block))

    def close(self) -> None:
        """Closes and frees it; an error of an earlier write may come here."""
        self._driver.call(self._c.xs_file_close, self, undo=None, ends=True)


class Exec(Handle):
    """Unified exec. Functions for its events may be set: begin, delta, interaction, end."""

    def __init__(self, client: Client, *,
                 begin: Optional[Callable[[ExecInfo], object]] = None,
                 delta: Optional[Callable[[ExecInfo, Stream, bytes], object]] = None,
                 interaction: Optional[Callable[[ExecInfo, bytes], object]] = None,
                 end: Optional[Callable[[ExecInfo, Exit, Optional[Output]], object]] = None
                 ) -> None:
        self._client = client
        self._driver, self._c = client._driver, client._c
        self.events = ExecSink(client._driver)
        self.events.begin, self.events.delta = begin, delta
        self.events.interaction, self.events.end = interaction, end
        out = ctypes.c_void_p()
        self._driver.direct(self._c.xs_exec_new, client,
                            ctypes.byref(_callbacks.EXEC_EVENTS), register(self.events),
                            ctypes.byref(out))
        self._raw: Optional[int] = out.value

    def _handle(self) -> int:
        if self._raw is None:
            raise errors.make(Code.EINVAL, "it is freed")
        return self._raw

    def free(self) -> None:
        """Terminates what runs."""
        self._driver.release(self._c.xs_exec_free, self)

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None:
            self._driver.discard(self._c.xs_exec_free, raw)

    def command(self, command: Command, *, yield_time: Optional[float] = None,
                      max_tokens: Optional[int] = None,
                      **options: Unpack[StartOptions]) -> ExecResult:
        """exec_command: starts a command, and returns when it ends or `yield_time` is over."""
        values: Dict[str, Any] = {"argv": self._client._words(command), "yield_time": yield_time,
                                  "max_tokens": max_tokens}
        values.update(options)
        out = ctypes.POINTER(_lib.ExecResult)()
        with Bag(values) as bag:
            self._driver.call(self._c.xs_exec_command, self, bag,
                                    ctypes.byref(out),
                                    undo=lambda: self._c.xs_exec_result_free(out))
        return self._result(out)

    def write_stdin(self, session: int, data: bytes = b"", *,
                          yield_time: Optional[float] = None, max_tokens: Optional[int] = None,
                          poll_max: Optional[float] = None) -> ExecResult:
        """write_stdin: types into a command or, without data, looks how far it is."""
        values = {"yield_time": yield_time, "max_tokens": max_tokens, "poll_max": poll_max}
        out = ctypes.POINTER(_lib.ExecResult)()
        with Bag(values) as bag:
            self._driver.call(self._c.xs_exec_write_stdin, self, session, data,
                                    len(data), bag, ctypes.byref(out),
                                    undo=lambda: self._c.xs_exec_result_free(out))
        return self._result(out)

    def _result(self, out: Any) -> ExecResult:
        try:
            return exec_result_of(out.contents)
        finally:
            self._c.xs_exec_result_free(out)


def connect(where: Optional[str] = None, **options: Unpack[ClientOptions]) -> Client:
    """A connected client; `with` closes it.

    `where` is a URL or what `xs -H` takes: the name of an environment, "local", or nothing for the
    default one."""
    return _connect(where, options)
