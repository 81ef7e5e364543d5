"""Whether a server has something to do: what its loop waits for, read from the kernel."""

import ctypes
import math
import os
import struct

from .waiting import readable, until

_LIBC = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438  # on every architecture
# Where system calls that wait for a time have it: the argument, and its unit.
_LOOP = {441: (4, "timespec"), 232: (4, "ms"), 281: (4, "ms")}
_CALLS = {**_LOOP, 7: (3, "ms"), 35: (1, "timespec"), 128: (3, "timespec"),
          230: (3, "timespec"), 271: (3, "timespec")}
_FUTEX = {202: (4, "timespec")}
if os.uname().machine == "aarch64":
    _FUTEX = {98: (4, "timespec")}
    _LOOP = {441: (4, "timespec"), 22: (4, "ms")}
    _CALLS = {**_LOOP, 73: (3, "timespec"), 101: (1, "timespec"), 115: (3, "timespec"),
              137: (3, "timespec")}


def _words(pid):
    """The system call that the main thread sleeps in, with its arguments; [] while it runs."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            words = f.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word, 0) for word in words] if len(words) > 3 else []


def _memory(pid, address, size):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        f.seek(address)
        return f.read(size)


def planned(pid, calls):
    """Seconds that a process sleeps at most in one of these system calls; None otherwise."""
    words = _words(pid)
    if not words or words[0] not in calls:
        return None
    place, unit = calls[words[0]]
    if unit == "ms":
        milliseconds = ctypes.c_int(words[place] & 0xffffffff).value
        return math.inf if milliseconds < 0 else milliseconds / 1000
    if words[place] == 0:
        return math.inf
    try:
        seconds, nanoseconds = struct.unpack("qq", _memory(pid, words[place], 16))
    except (OSError, struct.error):
        return None
    return seconds + nanoseconds / 1e9


def waits_until(pid):
    """When a process (its main thread) or "PID/task/TID" stops waiting for another thread, by the
    monotonic clock; None if it does not wait, or has no limit."""
    end = planned(pid, _FUTEX)
    return None if end == math.inf else end


def sleeps(pid, seconds):
    """True when a process sleeps in the kernel, for more than that many seconds if for a time."""
    words = _words(pid)
    if not words or words[0] not in _CALLS:
        return bool(words)
    wait = planned(pid, _CALLS)
    return wait is not None and wait > seconds


def _has_events(pid):
    """True when an epoll instance of a process has something to report."""
    process = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{name}") != "anon_inode:[eventpoll]":
                    continue
            except FileNotFoundError:
                continue
            fd = _LIBC.syscall(_PIDFD_GETFD, process, int(name), 0)
            if fd < 0:
                return True  # it has changed: look again
            try:
                if readable(fd, 0):
                    return True
            finally:
                os.close(fd)
    finally:
        os.close(process)
    return False


def _threads_rest(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/stat", "rb") as f:
                if f.read().rpartition(b")")[2].split()[0] == b"R":
                    return False
        except (FileNotFoundError, ProcessLookupError):
            return False
    return True


def rests(pid, seconds=0.0):
    """True when no event waits for the loop and it sleeps for more than that many seconds."""
    wait = planned(pid, _LOOP)
    return (wait is not None and wait > seconds and not _has_events(pid) and _threads_rest(pid)
            and planned(pid, _LOOP) is not None)


def wait_rest(server, seconds=0.0, after=lambda: True):
    """Waits until a server has nothing more to do, once after() is true."""
    until(lambda: after() and rests(server.pid, seconds), "the server rests")
