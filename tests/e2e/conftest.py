"""Fixtures, the time limit of a test, and the check that nothing outlives one."""

import ctypes
import os
import resource
import shutil
import signal
import tempfile
import zlib
from pathlib import Path

import pytest

from harness import procfs
from harness.files import Files
from harness.fleet import Fleet
from harness.longwaits import LongWaits
from harness.mounts import FaultFs, Mounts, PrivateTmp, private_namespace
from harness.recordings import MISSING
from harness.rpc import Client
from harness.schema import sampler
from harness.settings import BINARY, PATIENCE
from harness.starting import Undecided
from harness.waiting import until

PR_SET_CHILD_SUBREAPER = 36
PR_SET_THP_DISABLE = 41
TIME_LIMIT = 600 + 3 * PATIENCE


# Files that wait for most of their time come first, so that others run beside them.
WAITING = ("test_timers.py",)


def distributed(config):
    """True in a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): time limit of a test")
    if not os.access(BINARY, os.X_OK):
        raise pytest.UsageError(f"no program at {BINARY}: build it or set EXEC_SERVER")
    Client.sampler = sampler()
    # Some tests hold more connections than the usual soft limit allows.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    # Servers must be started in it.
    private_namespace()
    # Whatever a server leaves behind becomes a child of this process, where it is seen.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Servers inherit it. Resident memory would depend on the host's setting of huge pages.
    libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def pytest_terminal_summary(terminalreporter):
    """Nobody overlooks that the recordings are missing."""
    for report in terminalreporter.getreports("skipped"):
        if MISSING in str(report.longrepr):
            terminalreporter.write_line(f"*** {report.longrepr[2]} ***")
            break


def taken(item, parts, seed):
    """Whether a test belongs to the share: one of so many parts, which the seed chooses."""
    return zlib.crc32(f"{seed} {item.nodeid}".encode()) % parts == 0


def pytest_collection_modifyitems(config, items):
    parts, _, seed = os.environ.get("E2E_SHARE", "").partition(":")
    if parts:
        left_out = [item for item in items if not taken(item, int(parts), seed)]
        items[:] = [item for item in items if taken(item, int(parts), seed)]
        config.hook.pytest_deselected(items=left_out)
    if distributed(config):
        items.sort(key=lambda item: item.fspath.basename not in WAITING)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Fails a test that hangs, fixtures included."""
    def late(_number, _frame):
        raise TimeoutError("time limit of the test")
    marker = item.get_closest_marker("limit")
    before = signal.signal(signal.SIGALRM, late)
    seconds = max(TIME_LIMIT, marker.args[0]) if marker else TIME_LIMIT
    signal.setitimer(signal.ITIMER_REAL, seconds)
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
def private_tmp(request):
    """The tests of this process have /tmp for themselves."""
    made = PrivateTmp()
    if distributed(request.config):
        os.makedirs(os.path.dirname(request.config.option.basetemp), mode=0o700, exist_ok=True)
    yield
    made.finish()


@pytest.fixture(scope="session")
def long_waits(private_tmp):  # pylint: disable=redefined-outer-name,unused-argument
    """Starts at once everything that takes half a minute."""
    waits = LongWaits()
    yield waits
    waits.finish()


@pytest.fixture(scope="session", autouse=True)
def early_waits(request):
    """Without other workers the long waits run beside the other tests."""
    items = request.session.items
    if not distributed(request.config) and any("long_waits" in i.fixturenames for i in items):
        request.getfixturevalue("long_waits")


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


@pytest.fixture
def files(client):
    """The fs methods of a connection to the shared server."""
    return Files(client)


@pytest.fixture
def place():
    """An empty directory that every user may enter, gone after the test."""
    path = Path(os.path.realpath(tempfile.mkdtemp()))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def plain(nothing_left):  # pylint: disable=unused-argument
    """A server of a user without privileges (uid 65534), with umask 022."""
    if os.geteuid() != 0:
        pytest.skip("needs root to take another uid")
    made = Fleet()
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    program = shutil.copy(BINARY, directory)
    os.chmod(program, 0o755)
    ids = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    yield made.start(binary=program, wrapper=["setpriv", *ids], cwd="/")
    made.finish()
    shutil.rmtree(directory)


@pytest.fixture
def plain_files(plain):
    """The fs methods of a user without privileges."""
    client = plain.client()
    yield Files(client)
    client.close()


@pytest.fixture
def mounts(place):
    """File systems of a test, below `place`."""
    made = Mounts(place)
    yield made
    made.finish()


@pytest.fixture
def faultfs(place):
    """A file system that fails and hangs, see fuse/faultfs.c."""
    made = FaultFs(place)
    yield made
    made.finish()
