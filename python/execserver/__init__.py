"""Runs commands and handles files on an exec-server: a client for asyncio.

    async with connect("ws://127.0.0.1:8765") as client:
        print((await client.run(["uname", "-a"])).text)

execserver.blocking has the same without `await`. Errors are exceptions of execserver.errors.
"""

from . import errors
from ._lib import Code, Kind, Log, Open, State, Stream
from ._model import (Change, Closed, CommandFailed, Completed, Data, Entry, Event, ExecInfo,
                     ExecResult, Exit, Exited, Failed, Gap, Info, Output, Progress, Snapshot, Stat,
                     Tree)
from ._options import environments
from .aio import Client, Exec, File, Files, Process, Watch, connect
from .errors import Error

__all__ = [
    "Change", "Client", "Closed", "Code", "CommandFailed", "Completed", "Data", "Entry", "Error",
    "Event", "Exec", "ExecInfo", "ExecResult", "Exit", "Exited", "Failed", "File", "Files", "Gap",
    "Info", "Kind", "Log", "Open", "Output", "Process", "Progress", "Snapshot", "Stat", "State",
    "Stream", "Tree", "Watch", "connect", "environments", "errors", "version",
]


def version() -> str:
    """The version of libexecserver."""
    from ._drive import library  # the library is loaded at the first use
    return str(library().xs_version().decode())
