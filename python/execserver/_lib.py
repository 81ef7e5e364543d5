"""include/execserver.h for ctypes: structs, constants, and every function with its arguments.

tests/client/test_python_lib.py compares this file with the header. load() finds the library: the
variable EXECSERVER_LIBRARY, then a file beside this one, then the system's.
"""

from __future__ import annotations

import ctypes
import enum
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_uint, c_uint64, c_void_p)
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

SONAME = "libexecserver.so.0"
SERVER_SONAME = "libexecserver-server.so.0"
SESSION_ID = 37  # bytes of a session id with its NUL
PAUSE = 1  # XS_PAUSE


class Code(enum.IntEnum):
    """enum xs_err"""

    EINVAL = -1
    ENOMEM = -2
    EBUSY = -3
    ETIMEOUT = -4
    ECANCELED = -5
    ECONNECT = -6
    EAUTH = -7
    EPROTO = -8
    ELOST = -9
    EGONE = -10
    EREMOTE = -11
    ENOTSUP = -12
    EGAP = -13
    ELOCAL = -14


class State(enum.IntEnum):
    """enum xs_state"""

    NEW = 0
    CONNECTING = 1
    READY = 2
    RESUMING = 3
    FAILED = 4
    CLOSED = 5


class Log(enum.IntEnum):
    """enum xs_log"""

    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4
    WIRE = 5


class Stream(enum.IntEnum):
    """enum xs_stream"""

    STDOUT = 0
    STDERR = 1
    PTY = 2


class Ev(enum.IntEnum):
    """enum xs_ev"""

    OUTPUT = 0
    EXITED = 1
    CLOSED = 2
    GAP = 3
    FAILED = 4


class Flags(enum.IntFlag):
    """enum xs_flags"""

    NOFOLLOW = 1
    RECURSIVE = 2
    FORCE = 4
    ATOMIC = 8
    NOREPLACE = 16


class Kind(enum.IntEnum):
    """enum xs_kind"""

    OTHER = 0
    FILE = 1
    DIRECTORY = 2
    LINK = 3


class Open(enum.IntEnum):
    """enum xs_open"""

    READ = 0
    REPLACE = 1
    UPDATE = 2


# The prefix of each enum's names in C; Ev and Stream as there, Code without its E.
PREFIXES = {Code: "XS_", State: "XS_STATE_", Log: "XS_LOG_", Stream: "XS_", Ev: "XS_EV_",
            Flags: "XS_", Kind: "XS_KIND_", Open: "XS_OPEN_"}

# The keys of options, by the end of the macro's name: XS_OPT_URL is "url".
TEXTS = ("URL", "TOKEN", "TOKEN_FILE", "CA_FILE", "NAME", "PROGRAM", "PROGRAM_CWD", "SESSION_ID",
         "ARG0", "CWD", "INHERIT", "ENV_PRESET", "PROCESS_ID", "SANDBOX", "SANDBOX_JSON",
         "THREAD_ID", "TOOL_CALL_ID", "START_JSON", "LINKS")
NUMBERS = ("TOKEN_INSECURE", "CONNECT_MS", "INIT_MS", "CALL_MS", "PING_MS", "DEAD_MS", "RESUME_MS",
           "SESSION_TTL_MS", "CLOSED_RETENTION_MS", "WINDOW", "QUEUE", "GAP_FAILS", "LOG_WIRE", "TTY", "ROWS",
           "COLS", "STDIN", "TIMEOUT_MS", "LIMIT_MEMORY", "LIMIT_PIDS", "LIMIT_FILES",
           "LIMIT_NICE", "LIMIT_OOM", "LIMIT_CPU", "PREPARED", "NETWORK", "RECURSIVE", "PRESERVE",
           "RESUME", "ATOMIC", "FSYNC", "IN_FLIGHT", "YIELD_MS", "MAX_TOKENS", "POLL_MAX_MS")
LISTS = ("ARG", "PROGRAM_ENV", "ARGV", "ENV", "ENV_EXCLUDE", "ENV_ONLY", "WRITABLE")


def key(name: str) -> str:
    """The value of the macro XS_OPT_name."""
    return name.lower().replace("_", "-")


class Call(Structure):
    """struct xs_call"""


Done = CFUNCTYPE(None, POINTER(Call), c_int)
Call._fields_ = [("done", Done), ("user", c_void_p), ("priv", c_void_p * 6)]


class Bytes(Structure):
    """struct xs_bytes"""

    _fields_ = [("data", c_void_p), ("n", c_size_t)]


class Info(Structure):
    """struct xs_info"""

    _fields_ = [("url", c_char_p), ("session", c_char_p), ("version", c_char_p),
                ("shell", c_char_p), ("cwd", c_char_p), ("home", c_char_p), ("tmp", c_char_p),
                ("sandbox", c_char_p), ("resumable", c_int), ("limits_told", c_int),
                ("session_ttl_ms", c_int64), ("closed_retention_ms", c_int64),
                ("retained_output_bytes", c_int64)]


class Sized(Structure):
    """A struct that begins with its size, as XS_INIT makes it."""

    def __init__(self, **values: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **values)


class Exit(Sized):
    """struct xs_exit"""

    _fields_ = [("size", c_size_t), ("exited", c_int), ("closed", c_int), ("code", c_int),
                ("signal", c_int), ("timed_out", c_int), ("sandbox_denied", c_int),
                ("user_ms", c_uint64), ("system_ms", c_uint64), ("wall_ms", c_uint64),
                ("peak_bytes", c_uint64)]


class Event(Structure):
    """struct xs_event"""

    _fields_ = [("type", c_int), ("stream", c_int), ("seq", c_uint64), ("gap_to", c_uint64),
                ("data", c_void_p), ("n", c_size_t), ("exit", POINTER(Exit)), ("text", c_char_p)]


class Part(Structure):
    """struct xs_part"""

    _fields_ = [("data", c_void_p), ("head", c_size_t), ("tail", c_size_t), ("omitted", c_uint64),
                ("total", c_uint64)]


class Snapshot(Sized):
    """struct xs_snapshot"""

    _fields_ = [("size", c_size_t), ("out", POINTER(Part)), ("err", POINTER(Part)),
                ("pty", POINTER(Part)), ("exit", POINTER(Exit)), ("memory", c_void_p)]


class ExecInfo(Structure):
    """struct xs_exec_info"""

    _fields_ = [("session", c_int), ("id", c_char_p), ("call_id", c_char_p),
                ("argv", POINTER(c_char_p)), ("argc", c_size_t), ("cwd", c_char_p)]


ExecBegin = CFUNCTYPE(None, c_void_p, POINTER(ExecInfo))
ExecDelta = CFUNCTYPE(None, c_void_p, POINTER(ExecInfo), c_int, c_void_p, c_size_t)
ExecInteraction = CFUNCTYPE(None, c_void_p, POINTER(ExecInfo), c_void_p, c_size_t)
ExecEnd = CFUNCTYPE(None, c_void_p, POINTER(ExecInfo), POINTER(Exit), POINTER(Part))


class ExecEvents(Sized):
    """struct xs_exec_events"""

    _fields_ = [("size", c_size_t), ("begin", ExecBegin), ("delta", ExecDelta),
                ("interaction", ExecInteraction), ("end", ExecEnd)]


class ExecResult(Structure):
    """struct xs_exec_result"""

    _fields_ = [("session", c_int), ("exit", POINTER(Exit)), ("wall_s", c_double),
                ("chunk_id", c_char_p), ("original_tokens", c_uint64), ("output", c_void_p),
                ("n", c_size_t), ("text", c_char_p), ("text_n", c_size_t)]


class Stat(Sized):
    """struct xs_stat"""

    _fields_ = [("size", c_size_t), ("kind", c_int), ("is_link", c_int), ("mode", c_uint),
                ("bytes", c_uint64), ("created_ms", c_int64), ("modified_ms", c_int64)]


class Entry(Structure):
    """struct xs_entry"""

    _fields_ = [("name", c_void_p), ("name_len", c_size_t), ("kind", c_int), ("target", c_char_p)]


class WalkError(Structure):
    """struct xs_walk_error"""

    _fields_ = [("path", c_char_p), ("text", c_char_p)]


class Entries(Structure):
    """struct xs_entries"""

    _fields_ = [("entries", POINTER(Entry)), ("n", c_size_t), ("errors", POINTER(WalkError)),
                ("n_errors", c_size_t), ("truncated", c_int)]


class Walk(Sized):
    """struct xs_walk"""

    _fields_ = [("size", c_size_t), ("max_depth", c_uint64), ("max_directories", c_uint64),
                ("max_entries", c_uint64), ("follow", c_int), ("prune_hidden", c_int),
                ("links", c_int)]


class Change(Structure):
    """struct xs_change"""

    _fields_ = [("paths", POINTER(c_char_p)), ("n", c_size_t), ("overflow", c_int),
                ("failed", c_char_p)]


class Progress(Structure):
    """struct xs_progress"""

    _fields_ = [("file", c_char_p), ("bytes", c_uint64), ("total", c_uint64), ("files", c_uint64),
                ("files_total", c_uint64), ("rate", c_double), ("warning", c_char_p)]


STRUCTS: Dict[str, Any] = {
    "xs_call": Call, "xs_bytes": Bytes, "xs_info": Info, "xs_exit": Exit, "xs_event": Event,
    "xs_part": Part, "xs_snapshot": Snapshot, "xs_exec_info": ExecInfo,
    "xs_exec_events": ExecEvents, "xs_exec_result": ExecResult, "xs_stat": Stat,
    "xs_entry": Entry, "xs_walk_error": WalkError, "xs_entries": Entries, "xs_walk": Walk,
    "xs_change": Change, "xs_progress": Progress,
}

OnState = CFUNCTYPE(None, c_void_p, c_int, c_void_p)
OnLog = CFUNCTYPE(None, c_int, c_char_p, c_void_p)
OnDial = CFUNCTYPE(c_int, c_void_p, c_void_p)
OnEvent = CFUNCTYPE(c_int, c_void_p, POINTER(Event), c_void_p)
OnWatch = CFUNCTYPE(None, c_void_p, POINTER(Change), c_void_p)
OnProgress = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))


def callback(kind: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a Python function one that C can call."""
    return lambda function: kind(function)


_H = c_void_p  # a handle
_OUT = POINTER(c_void_p)  # where a handle goes
_K = POINTER(Call)
_S = c_char_p
_B = POINTER(Bytes)

# name: (type of the result, types of the arguments)
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "xs_version": (_S, []),
    "xs_client_error": (_H, [_H]),
    "xs_error_code": (c_int, [_H]),
    "xs_error_rpc": (c_int, [_H]),
    "xs_error_os": (c_int, [_H]),
    "xs_error_text": (_S, [_H]),
    "xs_error_name": (_S, [c_int]),
    "xs_options_new": (_H, []),
    "xs_options_free": (None, [_H]),
    "xs_options_str": (c_int, [_H, _S, _S]),
    "xs_options_num": (c_int, [_H, _S, c_int64]),
    "xs_options_add": (c_int, [_H, _S, _S]),
    "xs_options_environment": (c_int, [_H, _S]),
    "xs_options_list_environments": (c_int, [_H, _B]),
    "xs_options_error": (_H, [_H]),
    "xs_call_cancel": (None, [_K]),
    "xs_bytes_free": (None, [_B]),
    "xs_client_new": (c_int, [_H, _OUT]),
    "xs_client_free": (None, [_H]),
    "xs_client_connect": (c_int, [_H, _K]),
    "xs_client_close": (c_int, [_H, _K]),
    "xs_client_detach": (c_int, [_H, POINTER(c_char), _K]),
    "xs_client_fd": (c_int, [_H]),
    "xs_client_timeout_ms": (c_int, [_H]),
    "xs_client_process": (c_int, [_H]),
    "xs_client_run": (c_int, [_H, c_int]),
    "xs_client_wake": (None, [_H]),
    "xs_client_state": (c_int, [_H]),
    "xs_client_on_state": (None, [_H, OnState, c_void_p]),
    "xs_client_on_log": (None, [_H, OnLog, c_void_p]),
    "xs_client_on_dial": (None, [_H, OnDial, c_void_p]),
    "xs_client_info": (POINTER(Info), [_H]),
    "xs_client_can": (c_int, [_H, _S]),
    "xs_client_rpc": (c_int, [_H, _S, _S, _B, _K]),
    "xs_client_retry": (None, [_H]),
    "xs_snapshot_fini": (None, [POINTER(Snapshot)]),
    "xs_process_start": (c_int, [_H, _H, _OUT, _K]),
    "xs_process_adopt": (c_int, [_H, _S, c_uint64, _OUT, _K]),
    "xs_process_view": (c_int, [_H, _S, _S, c_uint64, _OUT, _K]),
    "xs_process_list": (c_int, [_H, _B, _K]),
    "xs_process_free": (None, [_H]),
    "xs_process_id": (_S, [_H]),
    "xs_process_on_event": (None, [_H, OnEvent, c_void_p]),
    "xs_process_unpause": (None, [_H]),
    "xs_process_next": (c_int, [_H, POINTER(POINTER(Event)), _K]),
    "xs_process_write": (c_int, [_H, c_void_p, c_size_t, _K]),
    "xs_process_close_stdin": (c_int, [_H, _K]),
    "xs_process_resize": (c_int, [_H, c_uint, c_uint, _K]),
    "xs_process_signal": (c_int, [_H, c_int, _K]),
    "xs_process_terminate": (c_int, [_H, c_int64, _K]),
    "xs_process_wait": (c_int, [_H, c_int, c_int64, POINTER(Exit), _K]),
    "xs_process_read": (c_int, [_H, c_uint64, c_uint64, c_uint64, _B, _K]),
    "xs_process_snapshot": (c_int, [_H, c_size_t, POINTER(Snapshot), _K]),
    "xs_process_communicate": (c_int, [_H, c_void_p, c_size_t, c_size_t, POINTER(Snapshot), _K]),
    "xs_exec_result_free": (None, [POINTER(ExecResult)]),
    "xs_exec_new": (c_int, [_H, POINTER(ExecEvents), c_void_p, _OUT]),
    "xs_exec_free": (None, [_H]),
    "xs_exec_command": (c_int, [_H, _H, POINTER(POINTER(ExecResult)), _K]),
    "xs_exec_write_stdin": (c_int, [_H, c_int, c_void_p, c_size_t, _H,
                                    POINTER(POINTER(ExecResult)), _K]),
    "xs_entries_free": (None, [POINTER(Entries)]),
    "xs_fs_new": (c_int, [_H, _H, _OUT]),
    "xs_fs_free": (None, [_H]),
    "xs_fs_stat": (c_int, [_H, _S, c_uint, POINTER(Stat), _K]),
    "xs_fs_read": (c_int, [_H, _S, c_uint, c_uint64, _B, _K]),
    "xs_fs_write": (c_int, [_H, _S, c_void_p, c_size_t, c_uint, _K]),
    "xs_fs_list": (c_int, [_H, _S, POINTER(POINTER(Entries)), _K]),
    "xs_fs_walk": (c_int, [_H, _S, POINTER(Walk), POINTER(POINTER(Entries)), _K]),
    "xs_fs_mkdir": (c_int, [_H, _S, c_uint, _K]),
    "xs_fs_remove": (c_int, [_H, _S, c_uint, _K]),
    "xs_fs_chmod": (c_int, [_H, _S, c_uint, c_uint, _K]),
    "xs_fs_copy": (c_int, [_H, _S, _S, c_uint, _K]),
    "xs_fs_rename": (c_int, [_H, _S, _S, c_uint, _K]),
    "xs_fs_set_times": (c_int, [_H, _S, c_int64, c_uint, _K]),
    "xs_fs_canonicalize": (c_int, [_H, _S, _B, _K]),
    "xs_fs_read_link": (c_int, [_H, _S, _B, _K]),
    "xs_fs_symlink": (c_int, [_H, _S, _S, _K]),
    "xs_fs_watch": (c_int, [_H, _S, c_uint, OnWatch, c_void_p, _OUT, _K]),
    "xs_fs_watch_missing": (c_int, [_H, POINTER(c_char_p), OnWatch, c_void_p, _OUT, _K]),
    "xs_watch_free": (None, [_H]),
    "xs_fs_open": (c_int, [_H, _S, c_int, _OUT, _K]),
    "xs_file_read": (c_int, [_H, c_uint64, c_void_p, c_size_t, _K]),
    "xs_file_write": (c_int, [_H, c_uint64, c_void_p, c_size_t, _K]),
    "xs_file_close": (c_int, [_H, _K]),
    "xs_file_free": (None, [_H]),
    "xs_copy_upload": (c_int, [_H, _S, _S, _H, OnProgress, c_void_p, _K]),
    "xs_copy_download": (c_int, [_H, _S, _S, _H, OnProgress, c_void_p, _K]),
}

# Of libexecserver-server.
SERVER_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "xs_server_stage": (c_int, [c_int, POINTER(c_char_p)]),
    "xs_server_run": (c_int, [c_int, POINTER(c_char_p)]),
}


def candidates(soname: str = SONAME) -> List[str]:
    """Where a library may be, the best place first."""
    chosen = os.environ.get("EXECSERVER_LIBRARY")
    if chosen and soname == SONAME:
        return [chosen]
    beside = Path(__file__).resolve().parent / soname
    return [str(beside), soname] if beside.is_file() else [soname]


def declare(library: ctypes.CDLL, functions: Dict[str, Tuple[Any, List[Any]]]) -> ctypes.CDLL:
    """Gives the functions of a library their types."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def load(path: Optional[str] = None) -> ctypes.CDLL:
    """The library with all its functions declared. ImportError names the places without one."""
    reasons = []
    for place in [path] if path else candidates():
        try:
            return declare(ctypes.CDLL(place), FUNCTIONS)
        except OSError as error:
            reasons.append(str(error))
        except AttributeError as error:
            reasons.append(f"{place} is of another version: {error}")
    raise ImportError("libexecserver is missing (EXECSERVER_LIBRARY may name it): "
                      + "; ".join(reasons))
