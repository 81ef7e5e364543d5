"""Exceptions: one class for each kind of failure that a caller may want to tell apart."""

from __future__ import annotations

from typing import Dict, Type

from ._lib import Code


class Error(Exception):
    """A call failed. `code` says how, `errno` holds the operating system's number (0: none), there
    or here, and `rpc_code` the server's JSON-RPC code (0: none)."""

    def __init__(self, code: Code, text: str, errno: int = 0, rpc_code: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.errno = errno
        self.rpc_code = rpc_code

    def __reduce__(self) -> tuple[object, ...]:
        return make, (self.code, self.text, self.errno, self.rpc_code)


class ConnectError(Error, ConnectionError):
    """There has never been a connection."""


class AuthError(Error, PermissionError):
    """The server refused the token (401, 403)."""


class TimedOut(Error, TimeoutError):
    """A deadline of the caller passed."""


class Canceled(Error):
    """The call was cancelled, or its client was closed."""


class Busy(Error):
    """A blocking call inside a callback, or too many calls at a time."""


class ProtocolError(Error):
    """The server broke the rules."""


class Lost(Error):
    """The request was sent and its answer lost: nobody knows whether it happened."""


class SessionGone(Error):
    """The session cannot be resumed; its processes are unreachable."""


class RemoteError(Error):
    """The server answered with an error."""


class Unsupported(Error):
    """The server cannot do this."""


class OutputLost(Error):
    """Output is missing."""


class LocalError(Error):
    """A file of this machine failed."""


class InvalidArgument(Error, ValueError):
    """An argument is wrong."""


_CLASSES: Dict[int, Type[Error]] = {
    Code.EINVAL: InvalidArgument, Code.EBUSY: Busy, Code.ETIMEOUT: TimedOut,
    Code.ECANCELED: Canceled, Code.ECONNECT: ConnectError, Code.EAUTH: AuthError,
    Code.EPROTO: ProtocolError, Code.ELOST: Lost, Code.EGONE: SessionGone,
    Code.EREMOTE: RemoteError, Code.ENOTSUP: Unsupported, Code.EGAP: OutputLost,
    Code.ELOCAL: LocalError,
}


def make(code: int, text: str, errno: int = 0, rpc_code: int = 0) -> Exception:
    """The exception of a negative result; MemoryError for XS_ENOMEM."""
    if code == Code.ENOMEM:
        return MemoryError(text)
    return _CLASSES.get(code, Error)(Code(code), text, errno, rpc_code)
