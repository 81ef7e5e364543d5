"""Fixtures, the time limit of a test, and the check that nothing outlives one."""

import ctypes
import os
import resource
import signal

import pytest

from harness import procfs
from harness.fleet import Fleet
from harness.longwaits import LongWaits
from harness.settings import BINARY, PATIENCE
from harness.starting import Undecided
from harness.waiting import until

PR_SET_CHILD_SUBREAPER = 36
TIME_LIMIT = 120 + 3 * PATIENCE


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): time limit of a test")
    if not os.access(BINARY, os.X_OK):
        raise pytest.UsageError(f"no program at {BINARY}: build it or set EXEC_SERVER")
    # Some tests hold more connections than the usual soft limit allows.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    # Whatever a server leaves behind becomes a child of this process, where it is seen.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Fails a test that hangs, fixtures included."""
    def late(_number, _frame):
        raise TimeoutError("time limit of the test")
    marker = item.get_closest_marker("limit")
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, marker.args[0] if marker else TIME_LIMIT)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def reap_adopted(ours):
    """Reaps orphans that ended; returns those that still run."""
    left = []
    for pid in procfs.descendants(os.getpid()):
        if pid in ours:
            continue
        if procfs.state(pid) == "Z" and procfs.parent(pid) == os.getpid():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        elif procfs.alive(pid):
            left.append(pid)
    return left


@pytest.fixture(scope="session", autouse=True)
def long_waits(request):
    """Starts what takes half a minute at once, so that it runs beside the other tests."""
    if not any(item.fspath.basename == "test_timers.py" for item in request.session.items):
        yield None
        return
    waits = LongWaits()
    yield waits
    waits.finish()


@pytest.fixture
def fleet():
    """Servers of one test: fleet.start(*args), fleet.stdio(*args)."""
    made = Fleet()
    yield made
    made.finish()


@pytest.fixture
def server(fleet):
    """A fresh server with default options."""
    return fleet.start()


@pytest.fixture
def undecided(tmp_path):
    """A program, a copy of sh, that a start gets stuck on until undecided.decide()."""
    program = Undecided(tmp_path)
    yield program
    program.decide()


@pytest.fixture(scope="module", autouse=True)
def nothing_left(request):
    """After the tests of a file nothing that a server started is alive."""
    before = set(procfs.descendants(os.getpid()))
    yield
    try:
        until(lambda: not reap_adopted(before), "end of everything the servers started")
    except AssertionError as e:
        left = [procfs.describe(pid) for pid in reap_adopted(before)]
        raise AssertionError(f"still running: {left}") from e


@pytest.fixture(scope="module")
def shared(nothing_left):  # pylint: disable=unused-argument
    """One server for all tests of a module that do not disturb each other."""
    made = Fleet()
    yield made.start()
    made.finish()


@pytest.fixture
def client(shared):
    """An initialised connection with its own session on the shared server."""
    made = shared.client()
    yield made
    made.close()
