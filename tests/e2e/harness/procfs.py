"""What /proc says about processes."""

import contextlib
import ctypes
import itertools
import os
import select
import signal
import socket

from .waiting import until

_LIBC = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438  # on every architecture
_marks = itertools.count(1)


def _stat(pid):
    """Fields of /proc/PID/stat after the command name: state, ppid, pgrp, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def state(pid):
    """One letter, or None when there is no such process."""
    fields = _stat(pid)
    return fields[0].decode() if fields else None


def alive(pid):
    return state(pid) not in (None, "Z", "X")


def parent(pid):
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def session(pid):
    fields = _stat(pid)
    return int(fields[3]) if fields else None


def describe(pid):
    """One line for a message."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f"{pid} of {parent(pid)}, {state(pid)}: {f.read()!r}"
    except (FileNotFoundError, ProcessLookupError):
        return f"{pid}: gone"


def descendants(pid):
    """All processes below pid with their states, zombies included."""
    parents = {}
    states = {}
    for p in pids():
        fields = _stat(p)
        if fields:
            parents.setdefault(int(fields[1]), []).append(p)
            states[p] = fields[0].decode()
    found, queue = {}, [pid]
    while queue:
        for child in parents.get(queue.pop(), ()):
            found[child] = states[child]
            queue.append(child)
    return found


def children(pid):
    """The children of pid's first thread, dead ones included; much cheaper than descendants()."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def below(pid):
    """All processes below pid, by children()."""
    found = children(pid)
    for child in found:
        found.extend(children(child))
    return found


def zombies(pid):
    return [p for p, s in descendants(pid).items() if s == "Z"]


def fds(pid):
    """Number of open descriptors."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def sockets(pid):
    """Copies of the sockets that a process has open; to be closed by the caller."""
    taken, process = [], os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                fd = _LIBC.syscall(_PIDFD_GETFD, process, int(name), 0)
                assert fd >= 0, os.strerror(ctypes.get_errno())
                taken.append(socket.socket(fileno=fd))
    finally:
        os.close(process)
    return taken


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


# Numbers of openat(2) and openat2(2) on this machine.
_OPENS = {"257", "437"} if os.uname().machine == "x86_64" else {"56", "437"}


def opening(pid):
    """The number of threads that sleep in an open(2)."""
    count = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as f:
                count += f.read().split()[0] in _OPENS
        except (FileNotFoundError, ProcessLookupError):
            pass
    return count


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def rss(pid):
    """Resident bytes."""
    return int(status(pid)["VmRSS"].split()[0]) * 1024


def mark():
    """An argument for sleep(1) that no other process has."""
    return f"86400.{os.getpid()}{next(_marks):05d}"


def marked(token):
    """Live descendants of this process with token among their arguments."""
    wanted = token.encode()
    found = []
    for pid in descendants(os.getpid()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if wanted in f.read().split(b"\0") and alive(pid):
                    found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def wait_marked(token, count=1, seconds=None):
    """Waits until exactly count processes carry token; returns them."""
    def right():
        found = marked(token)
        return (found or True) if len(found) == count else None
    found = until(right, f"{count} processes named {token}", seconds)
    return [] if found is True else found


def wait_at_least(token, count):
    """Waits until at least count processes carry token."""
    until(lambda: len(marked(token)) >= count, f"{count} processes named {token}")


def wait_no_zombies(pid):
    """Waits until no descendant of pid is a zombie."""
    until(lambda: not zombies(pid), f"no zombies below {pid}")


def wait_gone(pid, seconds=None):
    """Waits until pid is no longer running."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        until(lambda: poller.poll(50) or not alive(pid), f"end of process {pid}", seconds)
    finally:
        os.close(fd)


# Number of write(2) on this machine.
_WRITE = "1" if os.uname().machine == "x86_64" else "64"


def writing(pid):
    """True when pid sleeps in write(2)."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            words = f.read().split()
    except PermissionError:
        return state(pid) == "S"
    except (FileNotFoundError, ProcessLookupError):
        return False
    return words[:1] == [_WRITE] and state(pid) == "S"


_SEIZE, _INTERRUPT, _DETACH, _WALL = 0x4206, 0x4207, 17, 0x40000000


@contextlib.contextmanager
def halted(tid):
    """One thread of another process does not run; the others do."""
    def trace(request):
        return _LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(tid), None, None) == 0
    assert trace(_SEIZE), os.strerror(ctypes.get_errno())
    assert trace(_INTERRUPT), os.strerror(ctypes.get_errno())
    os.waitpid(tid, _WALL)
    try:
        yield
    finally:
        if not trace(_DETACH):
            os.waitpid(tid, _WALL)  # it has died: its process ends when the tracer knows


def kill(pid, number=signal.SIGKILL):
    """A signal, SIGKILL, to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
