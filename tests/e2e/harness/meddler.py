"""A process that changes the file system while a test looks at it."""

import ctypes
import os
import threading

AT_FDCWD, RENAME_EXCHANGE = -100, 2


class Meddler:
    """A thread that calls step(0), step(1), ... until the block ends or a step returns False."""

    def __init__(self, step):
        self.ending = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self._run, args=(step,))

    def _run(self, step):
        count = 0
        try:
            while not self.ending.is_set() and step(count) is not False:
                count += 1
        except BaseException as e:  # pylint: disable=broad-except
            self.failure = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.ending.set()
        self.thread.join()
        if self.failure and kind is None:
            raise self.failure


def exchange(first, second):
    """Swaps two names in one step."""
    done = ctypes.CDLL(None, use_errno=True).renameat2(
        AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE)
    assert done == 0, os.strerror(ctypes.get_errno())
