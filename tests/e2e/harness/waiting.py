"""Waiting with a deadline."""

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


def until(predicate, what, seconds=None):
    """Polls until predicate() is true and returns its value; fails after the deadline."""
    deadline = Deadline(seconds)
    while True:
        value = predicate()
        if value:
            return value
        if deadline.passed():
            raise AssertionError(f"did not happen in time: {what}")
        time.sleep(0.005)
