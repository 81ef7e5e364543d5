"""File systems of a test: small ones, and one that fails."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from .settings import BINARY, ROOT
from .waiting import Deadline, readable

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 1 << 14, 1 << 18
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)
# Why there can be no mounts.
_refused = []


def _checked(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def private_namespace():
    """Mounts made from now on are seen by this process and its children only, and go with them.
    They do not see those that the host makes."""
    try:
        _checked(_libc.unshare(CLONE_NEWNS))
        _checked(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    except OSError as e:
        _refused.append(e)


def _demand_mounts():
    if _refused:
        pytest.skip(f"mounts are not allowed here: {_refused[0]}")


def mount(source, target, kind, flags=0, options=""):
    _checked(_libc.mount(os.fsencode(source), os.fsencode(target), kind and kind.encode(), flags,
                         options.encode()))


def unmount(target):
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH))


class PrivateTmp:
    """A /tmp of this process and its children: tests in other processes do not see each other."""

    def __init__(self):
        self.directory = None
        if _refused:
            return
        self.directory = tempfile.mkdtemp(prefix="e2e-", dir="/tmp")
        os.chmod(self.directory, 0o1777)
        # The program and the tests themselves may lie in /tmp.
        places = {str(p) for p in (ROOT, Path(BINARY).parent) if Path("/tmp") in p.parents}
        kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in sorted(places)}
        mount(self.directory, "/tmp", None, MS_BIND)
        for path, fd in kept.items():
            os.makedirs(path, exist_ok=True)
            mount(f"/proc/self/fd/{fd}", path, None, MS_BIND)
            os.close(fd)

    def finish(self):
        if self.directory:
            unmount("/tmp")
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None


class Mounts:
    """Mounts of one test below a directory of its own."""

    def __init__(self, directory):
        _demand_mounts()
        self.directory = directory
        self.mounted = []

    def _target(self, name):
        target = self.directory / name
        target.mkdir()
        return target

    def tmpfs(self, options, name="tmpfs"):
        """A tmpfs with options like "size=1m"."""
        target = self._target(name)
        mount("tmpfs", target, "tmpfs", 0, options)
        self.mounted.append(target)
        return target

    def read_only(self, source, name="read-only"):
        """The same directory, read-only."""
        target = self._target(name)
        mount(source, target, None, MS_BIND)
        self.mounted.append(target)
        mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
        return target

    def finish(self):
        while self.mounted:
            unmount(self.mounted.pop())


class FaultFs:
    """A directory seen through faultfs: `real` behind it, `path` in front."""

    def __init__(self, directory, *options):
        if not os.path.exists("/dev/fuse"):
            pytest.skip("no /dev/fuse on this machine")
        _demand_mounts()
        self.real, self.path = directory / "real", directory / "fuse"
        self.real.mkdir()
        self.path.mkdir()
        places = [Path(BINARY).parent / "tests" / "faultfs", ROOT / "build" / "tests" / "faultfs"]
        program = next((str(p) for p in places if p.exists()), None)
        assert program, "faultfs is not built: it needs libfuse3-dev"
        self.popen = subprocess.Popen([program, str(self.real), str(self.path), *options],
                                      bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.buf = b""
        self.said = []
        self.wait("ready")

    def file(self, name, data=b""):
        """Makes a file and returns its path in front."""
        (self.real / name).write_bytes(data)
        return self.path / name

    def wait(self, line):
        """Waits for a line of the file system's output, and takes it."""
        deadline = Deadline()
        while line not in self.said:
            assert readable(self.popen.stdout, deadline.left()), f"{line!r} not in {self.said}"
            data = os.read(self.popen.stdout.fileno(), 65536)
            assert data, "faultfs ended"
            *lines, self.buf = (self.buf + data).split(b"\n")
            self.said += [os.fsdecode(text) for text in lines]
        self.said.remove(line)

    def hangs(self, op, name):
        """Waits until a call hangs."""
        self.wait(f"hang {op} /{name}")

    def release(self):
        """Lets calls go that hang, and those that come."""
        self.popen.stdin.write(b"release\n")

    def hold(self):
        self.popen.stdin.write(b"hold\n")

    def kill(self):
        """The file system goes away without a word; its mount point stays."""
        self.popen.kill()
        self.popen.wait()

    def finish(self):
        """Ends the file system; calls that still hang fail."""
        killed = self.popen.returncode is not None
        self.popen.stdin.close()
        self.popen.stdout.close()
        if killed:
            unmount(self.path)
        else:
            assert self.popen.wait(120) == 0
