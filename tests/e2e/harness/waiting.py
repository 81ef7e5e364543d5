"""Waiting with a deadline."""

import select
import time

from .settings import PATIENCE


class Deadline:
    """A moment after which a wait has failed."""

    def __init__(self, seconds=None):
        self.end = time.monotonic() + (PATIENCE if seconds is None else seconds)

    def left(self):
        """Seconds left, never negative."""
        return max(0.0, self.end - time.monotonic())

    def passed(self):
        return time.monotonic() >= self.end


def until(predicate, what, seconds=None, every=0.005):
    """Polls until predicate() is true and returns its value; fails after the deadline."""
    deadline = Deadline(seconds)
    while True:
        value = predicate()
        if value:
            return value
        if deadline.passed():
            raise AssertionError(f"did not happen in time: {what}")
        time.sleep(every)


def patiently(attempt, limit):
    """Calls attempt(limit), limit being a time that something else must fit in. Where it did not
    since the machine is busy, attempt() returns None and is called with a longer one."""
    while limit < 2 * PATIENCE * 1000:
        result = attempt(limit)
        if result is not None:
            return result
        limit *= 6
    raise AssertionError(f"does not fit in {limit / 6} either")


def ready(thing, events, seconds):
    """Waits until a socket or descriptor is ready; the events that are, or 0."""
    poller = select.poll()
    poller.register(thing, events)
    got = poller.poll(seconds * 1000)
    return got[0][1] if got else 0


def readable(thing, seconds):
    return ready(thing, select.POLLIN, seconds)


def writable(thing, seconds):
    return ready(thing, select.POLLOUT, seconds)
