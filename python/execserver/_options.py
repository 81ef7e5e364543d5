"""Options: the keyword arguments of Python, and the library's bags of them."""

from __future__ import annotations

import ctypes
import json
import os
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, TypedDict,
                    Union)

from . import _lib
from ._drive import failure, library
from ._model import memory

Text = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Value = Union[None, bool, int, Text, Sequence[Text]]
Command = Union[str, Sequence[Text]]


class StartOptions(TypedDict, total=False):
    """Keyword arguments of start() and run(). Times are seconds."""

    cwd: Text  # relative to the server's
    env: Mapping[str, str]  # added to the environment
    inherit: str  # what of the server's environment: all (default), core, none
    env_exclude: Sequence[str]  # patterns of names
    env_only: Sequence[str]
    env_preset: str  # "agent"
    tty: bool
    rows: int
    cols: int
    stdin: bool  # a pipe instead of /dev/null
    timeout: float  # of the process; the server ends it
    limits: Mapping[str, int]  # memory, pids, files, nice, oom, cpu
    sandbox: str  # read-only, workspace-write
    writable: Sequence[Text]
    network: bool
    sandbox_json: str
    process_id: str
    arg0: Text
    prepared: bool
    thread_id: str
    tool_call_id: str
    start_json: str
    options: Mapping[str, Value]  # any others, by their key: {"limit-cpu": 50}


class ClientOptions(TypedDict, total=False):
    """Keyword arguments of connect(). Times are seconds."""

    token: str
    token_file: Text
    token_insecure: bool
    ca_file: Text
    name: str
    program: Text
    args: Sequence[Text]
    program_env: Mapping[str, str]
    program_cwd: Text
    connect_timeout: float
    init_timeout: float
    call_timeout: float
    ping: float
    dead: float
    resume_time: float  # for each outage; 0: never resume
    session_id: str
    session_ttl: float
    closed_retention: float
    window: int
    queue: int
    gap_fails: bool
    options: Mapping[str, Value]


class CopyOptions(TypedDict, total=False):
    """Keyword arguments of upload() and download()."""

    recursive: bool
    preserve: bool
    resume: bool
    atomic: bool
    fsync: bool
    links: str  # copy, follow, skip
    in_flight: int
    options: Mapping[str, Value]


# Arguments whose key is another name, and those that are seconds there, milliseconds here.
_RENAMED = {"args": "arg"}
_SECONDS = {"timeout": "timeout-ms", "connect_timeout": "connect-ms", "init_timeout": "init-ms",
            "call_timeout": "call-ms", "ping": "ping-ms", "dead": "dead-ms",
            "resume_time": "resume-ms",
            "session_ttl": "session-ttl-ms", "closed_retention": "closed-retention-ms",
            "yield_time": "yield-ms", "poll_max": "poll-max-ms"}
_LISTS = {_lib.key(name) for name in _lib.LISTS}
_NUMBERS = {_lib.key(name) for name in _lib.NUMBERS}


def encode(value: Any) -> bytes:
    """Text as the library takes it. A NUL would end it early."""
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise ValueError("embedded null byte")
    return raw


def milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def flatten(arguments: Mapping[str, Any]) -> Dict[str, Value]:
    """Keyword arguments as keys and values of the library."""
    out: Dict[str, Value] = {}
    for name, value in arguments.items():
        if value is None or name == "options":
            continue
        if name == "limits":
            out.update({f"limit-{what}": number for what, number in value.items()})
        elif name in _SECONDS:
            out[_SECONDS[name]] = milliseconds(value)
        elif name in ("env", "program_env"):
            out[_lib.key(name)] = [f"{key}={text}" for key, text in value.items()]
        else:
            out[_RENAMED.get(name) or _lib.key(name)] = value
    out.update(arguments.get("options") or {})
    return out


class Bag:
    """A struct xs_options for the time of a `with` block."""

    def __init__(self, arguments: Mapping[str, Any], environment: Optional[str] = None) -> None:
        self.c = library()
        self.values = flatten(arguments)
        self.environment = environment
        self.pointer: Optional[int] = None

    def __enter__(self) -> int:
        pointer = self.c.xs_options_new()
        if not pointer:
            raise MemoryError
        self.pointer = pointer
        try:
            if self.environment is not None:
                self.must(self.c.xs_options_environment(pointer, encode(self.environment)))
            for key, value in self.values.items():
                self.set(key, value)
        except BaseException:
            self.__exit__()
            raise
        return int(pointer)

    def __exit__(self, *_: object) -> None:
        pointer, self.pointer = self.pointer, None
        self.c.xs_options_free(pointer)

    def must(self, result: int) -> None:
        if result < 0:
            raise failure(result, self.c.xs_options_error(self.pointer))

    def set(self, key: str, value: Value) -> None:
        raw = encode(key)
        if key in _LISTS:
            if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
                raise TypeError(f"{key} is a list")
            for item in value:
                self.must(self.c.xs_options_add(self.pointer, raw, encode(item)))
        elif key in _NUMBERS:
            if not isinstance(value, int):
                raise TypeError(f"{key} is a number")
            self.must(self.c.xs_options_num(self.pointer, raw, value))
        else:
            self.must(self.c.xs_options_str(self.pointer, raw, encode(value)))


def words(command: Command, shell: str) -> List[Text]:
    """A command as words: a string is one for the shell there."""
    if isinstance(command, str):
        return [shell, "-c", command]
    return list(command)


def shown(command: Sequence[Text]) -> Iterator[str]:
    for word in command:
        yield os.fsdecode(word)


def environments() -> Dict[str, Any]:
    """The environments that connect() knows by name: "fromFile", "default" (an id or None) and
    "environments", a list with "id" and "url" or "program". No secrets are in it."""
    c = library()
    raw = _lib.Bytes()
    bag = Bag({})
    with bag as pointer:
        bag.must(c.xs_options_list_environments(pointer, ctypes.byref(raw)))
    try:
        known: Dict[str, Any] = json.loads(memory(raw.data, raw.n))
        return known
    finally:
        c.xs_bytes_free(ctypes.byref(raw))
