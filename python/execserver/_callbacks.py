"""The functions that the library calls. None of them lets an exception out: there is C below."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

from . import _lib, _model
from ._drive import Call, Driver, Inbox, target

PAUSE_AT = 256 * 1024  # bytes of output that wait for their consumer here
MOST_CHANGES = 1024
EVENT_COST = 256  # bytes that an event without data counts


class EventSink(Inbox[_model.Event]):
    """The events of a process. It holds the library back while much waits."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.waiting = 0
        self.paused = False
        driver.inboxes.add(self)

    def take(self) -> _model.Event:
        event = self.items.popleft()
        self.waiting -= cost(event)
        return event

    def may_go_on(self) -> bool:
        """Whether the library shall send more again; it says so once."""
        again = self.paused and self.waiting < PAUSE_AT // 2
        self.paused = self.paused and not again
        return again

    def add(self, event: _model.Event) -> int:
        self.waiting += cost(event)
        self.put(event, isinstance(event, (_model.Closed, _model.Failed)))
        self.paused = self.waiting >= PAUSE_AT and not self.over
        return _lib.PAUSE if self.paused else 0


def cost(event: _model.Event) -> int:
    return EVENT_COST + (len(event.data) if isinstance(event, _model.Data) else 0)


class ChangeSink(Inbox[_model.Change]):
    """The changes of a watch. Too many become one that says "anything"."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.failed: Optional[str] = None
        driver.inboxes.add(self)

    def add(self, raw: Any) -> None:
        if raw.failed:
            self.failed = os.fsdecode(raw.failed)
            self.end()
            return
        if len(self.items) >= MOST_CHANGES:
            self.items.clear()
            self.put(_model.Change((), True))
            return
        paths = tuple(os.fsdecode(path) for path in raw.paths[:raw.n])
        self.put(_model.Change(paths, bool(raw.overflow)))


@_lib.callback(_lib.OnEvent)
def on_event(_process: int, raw: Any, user: int) -> int:
    sink = target(user)
    if sink is None:
        return 0
    try:
        return int(sink.add(_model.event_of(raw.contents)))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)
        return 0


@_lib.callback(_lib.OnWatch)
def on_watch(_watch: int, raw: Any, user: int) -> None:
    sink = target(user)
    if sink is None:
        return
    try:
        sink.add(raw.contents)
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


class ProgressSink:
    """Passes the progress of a copy to a function; an exception or True of it ends the copy."""

    def __init__(self, function: Callable[[_model.Progress], Optional[bool]]) -> None:
        self.function = function
        self.call: Optional[Call] = None

    def begin(self, call: Call) -> None:
        self.call = call

    def add(self, raw: Any) -> int:
        try:
            return int(bool(self.function(_model.progress_of(raw))))
        except BaseException as error:  # pylint: disable=broad-except
            if self.call is not None:
                self.call.callback_error = error
            return 1


@_lib.callback(_lib.OnProgress)
def on_progress(user: int, raw: Any) -> int:
    sink = target(user)
    return 0 if sink is None else int(sink.add(raw.contents))


class ClientSink:
    """What a client tells beside its operations."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.state: Optional[Callable[[_lib.State], object]] = None
        self.log: Optional[Callable[[_lib.Log, str], object]] = None


@_lib.callback(_lib.OnState)
def on_state(_client: int, state: int, user: int) -> None:
    sink = target(user)
    if sink is None or sink.state is None:
        return
    try:
        sink.state(_lib.State(state))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


@_lib.callback(_lib.OnLog)
def on_log(level: int, line: bytes, user: int) -> None:
    sink = target(user)
    if sink is None or sink.log is None:
        return
    try:
        sink.log(_lib.Log(level), os.fsdecode(line))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


class ExecSink:
    """Functions for the events of unified exec; each may be None."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.begin: Optional[Callable[[_model.ExecInfo], object]] = None
        self.delta: Optional[Callable[[_model.ExecInfo, _lib.Stream, bytes], object]] = None
        self.interaction: Optional[Callable[[_model.ExecInfo, bytes], object]] = None
        self.end: Optional[Callable[[_model.ExecInfo, _model.Exit, Optional[_model.Output]],
                                    object]] = None


@_lib.callback(_lib.ExecBegin)
def exec_begin(user: int, info: Any) -> None:
    sink = target(user)
    if sink is None or sink.begin is None:
        return
    try:
        sink.begin(_model.exec_info_of(info.contents))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


@_lib.callback(_lib.ExecDelta)
def exec_delta(user: int, info: Any, stream: int, data: int, n: int) -> None:
    sink = target(user)
    if sink is None or sink.delta is None:
        return
    try:
        sink.delta(_model.exec_info_of(info.contents), _lib.Stream(stream),
                   _model.memory(data, n))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


@_lib.callback(_lib.ExecInteraction)
def exec_interaction(user: int, info: Any, data: int, n: int) -> None:
    sink = target(user)
    if sink is None or sink.interaction is None:
        return
    try:
        sink.interaction(_model.exec_info_of(info.contents), _model.memory(data, n))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


@_lib.callback(_lib.ExecEnd)
def exec_end(user: int, info: Any, ended: Any, transcript: Any) -> None:
    sink = target(user)
    if sink is None or sink.end is None:
        return
    try:
        sink.end(_model.exec_info_of(info.contents), _model.exit_of(ended.contents),
                 _model.part_of(transcript))
    except BaseException as error:  # pylint: disable=broad-except
        sink.driver.callback_failed(error)


EXEC_EVENTS = _lib.ExecEvents(begin=exec_begin, delta=exec_delta, interaction=exec_interaction,
                              end=exec_end)
