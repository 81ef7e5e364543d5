"""What calls return and events tell. All of it is the caller's; nothing refers to the library."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple, Union

from . import _lib
from ._lib import Kind, Stream


@dataclass(frozen=True)
class Info:
    """What the server told about itself; None: it did not tell."""

    url: str
    session: str
    version: Optional[str]
    shell: str
    cwd: Optional[str]
    home: Optional[str]
    tmp: Optional[str]
    sandbox: Optional[str]
    resumable: bool
    limits_told: bool
    session_ttl_ms: int
    closed_retention_ms: int
    retained_output_bytes: int


@dataclass(frozen=True)
class Exit:
    """How a process ended. `code` is 128+n after signal n, -1 if unknown; figures are 0 if
    unknown."""

    exited: bool
    closed: bool
    code: int
    signal: int
    timed_out: bool
    sandbox_denied: bool
    user_ms: int
    system_ms: int
    wall_ms: int
    peak_bytes: int


class Output(bytes):
    """Bytes of a stream. If some are omitted, a line says so between the head and the tail."""

    head: bytes
    tail: bytes
    omitted: int
    total: int

    def __new__(cls, head: bytes = b"", tail: bytes = b"", omitted: int = 0,
                total: int = 0) -> Output:
        gap = b"\n... %d bytes omitted ...\n" % omitted if omitted else b""
        self = super().__new__(cls, head + gap + tail)
        self.head, self.tail, self.omitted, self.total = head, tail, omitted, total
        return self

    def __getnewargs__(self) -> Tuple[bytes, bytes, int, int]:  # type: ignore[override]
        return self.head, self.tail, self.omitted, self.total

    @property
    def text(self) -> str:
        return self.decode("utf-8", "replace")


@dataclass(frozen=True)
class Completed:
    """A process that has ended, and what it wrote. A terminal's output is stdout."""

    argv: Tuple[str, ...]
    exit: Exit
    stdout: Output
    stderr: Output

    @property
    def code(self) -> int:
        return self.exit.code

    @property
    def text(self) -> str:
        return self.stdout.text


class CommandFailed(Exception):
    """`run(check=True)`: the command did not exit with 0."""

    def __init__(self, completed: Completed) -> None:
        super().__init__(completed)
        self.completed = completed

    def __str__(self) -> str:
        last = self.completed.stderr.text.strip().rpartition("\n")[2]
        return (f"{' '.join(self.completed.argv)}: exit status {self.completed.code}"
                + (f": {last}" if last else ""))


@dataclass(frozen=True)
class Snapshot:
    """What the server retains of a process; None: it has no such stream."""

    exit: Optional[Exit]
    stdout: Optional[Output]
    stderr: Optional[Output]
    pty: Optional[Output]


@dataclass(frozen=True)
class Data:
    """The process wrote something."""

    seq: int
    stream: Stream
    data: bytes


@dataclass(frozen=True)
class Exited:
    """The program has ended; background processes of it may still write."""

    seq: int
    exit: Exit


@dataclass(frozen=True)
class Closed:
    """The last event: the output has ended."""

    seq: int
    exit: Exit


@dataclass(frozen=True)
class Gap:
    """The output from number `seq` to `to` is lost."""

    seq: int
    to: int


@dataclass(frozen=True)
class Failed:
    """The last event: nothing more can be known about the process."""

    text: str


Event = Union[Data, Exited, Closed, Gap, Failed]


@dataclass(frozen=True)
class Stat:
    """One file. `mode` is None and times are 0 if unknown."""

    kind: Kind
    is_link: bool
    mode: Optional[int]
    bytes: int
    created_ms: int
    modified_ms: int


@dataclass(frozen=True)
class Entry:
    """One name of a directory, or one path below it (walk)."""

    name: str
    kind: Kind
    target: Optional[str]


@dataclass(frozen=True)
class Tree:
    """The answer of walk: entries, what could not be read as (path, text), and whether a limit was
    reached."""

    entries: List[Entry]
    errors: List[Tuple[str, str]]
    truncated: bool


@dataclass(frozen=True)
class Change:
    """Paths that changed; with `overflow` anything may have."""

    paths: Tuple[str, ...]
    overflow: bool


@dataclass(frozen=True)
class Progress:
    """How far a copy is. `rate` is in bytes per second; `warning` names what is left out."""

    file: str
    bytes: int
    total: int
    files: int
    files_total: int
    rate: float
    warning: Optional[str]


@dataclass(frozen=True)
class ExecInfo:
    """The command that an event of unified exec is about."""

    session: int
    id: str
    call_id: str
    argv: Tuple[str, ...]
    cwd: str


@dataclass(frozen=True)
class ExecResult:
    """The answer to exec_command and write_stdin. `session` is 0 if the command has ended; `text`
    is for the model."""

    session: int
    exit: Optional[Exit]
    wall_s: float
    chunk_id: str
    original_tokens: int
    output: bytes
    text: str


# -- from the library's structs; `raw` is one of _lib's --

def fs_text(raw: Optional[bytes]) -> str:
    return os.fsdecode(raw or b"")


def optional(raw: Optional[bytes]) -> Optional[str]:
    return None if raw is None else os.fsdecode(raw)


def memory(pointer: Optional[int], n: int) -> bytes:
    return bytes(ctypes.string_at(pointer, n)) if pointer and n else b""


def info_of(raw: Any) -> Info:
    return Info(fs_text(raw.url), fs_text(raw.session), optional(raw.version), fs_text(raw.shell),
                optional(raw.cwd), optional(raw.home), optional(raw.tmp), optional(raw.sandbox),
                bool(raw.resumable), bool(raw.limits_told), raw.session_ttl_ms,
                raw.closed_retention_ms, raw.retained_output_bytes)


def exit_of(raw: Any) -> Exit:
    return Exit(bool(raw.exited), bool(raw.closed), raw.code, raw.signal, bool(raw.timed_out),
                bool(raw.sandbox_denied), raw.user_ms, raw.system_ms, raw.wall_ms, raw.peak_bytes)


def part_of(pointer: Any) -> Optional[Output]:
    if not pointer:
        return None
    raw = pointer.contents
    data = memory(raw.data, raw.head + raw.tail)
    return Output(data[:raw.head], data[raw.head:], raw.omitted, raw.total)


def snapshot_of(raw: Any) -> Snapshot:
    return Snapshot(exit_of(raw.exit.contents) if raw.exit else None, part_of(raw.out),
                    part_of(raw.err), part_of(raw.pty))


def event_of(raw: Any) -> Event:
    if raw.type == _lib.Ev.OUTPUT:
        return Data(raw.seq, Stream(raw.stream), memory(raw.data, raw.n))
    if raw.type == _lib.Ev.EXITED:
        return Exited(raw.seq, exit_of(raw.exit.contents))
    if raw.type == _lib.Ev.CLOSED:
        return Closed(raw.seq, exit_of(raw.exit.contents))
    if raw.type == _lib.Ev.GAP:
        return Gap(raw.seq, raw.gap_to)
    return Failed(fs_text(raw.text))


def stat_of(raw: Any) -> Stat:
    mode = None if raw.mode == 0xFFFFFFFF else raw.mode
    return Stat(Kind(raw.kind), bool(raw.is_link), mode, raw.bytes, raw.created_ms,
                raw.modified_ms)


def tree_of(raw: Any) -> Tree:
    entries = [Entry(os.fsdecode(memory(e.name, e.name_len)), Kind(e.kind), optional(e.target))
               for e in raw.entries[:raw.n]]
    errors = [(fs_text(e.path), fs_text(e.text)) for e in raw.errors[:raw.n_errors]]
    return Tree(entries, errors, bool(raw.truncated))


def progress_of(raw: Any) -> Progress:
    return Progress(fs_text(raw.file), raw.bytes, raw.total, raw.files, raw.files_total, raw.rate,
                    optional(raw.warning))


def exec_info_of(raw: Any) -> ExecInfo:
    return ExecInfo(raw.session, fs_text(raw.id), fs_text(raw.call_id),
                    tuple(os.fsdecode(word) for word in raw.argv[:raw.argc]), fs_text(raw.cwd))


def exec_result_of(raw: Any) -> ExecResult:
    text = ctypes.c_void_p.from_buffer(raw, _lib.ExecResult.text.offset)
    return ExecResult(raw.session, exit_of(raw.exit.contents) if raw.exit else None, raw.wall_s,
                      fs_text(raw.chunk_id), raw.original_tokens, memory(raw.output, raw.n),
                      memory(text.value, raw.text_n).decode("utf-8", "replace"))
