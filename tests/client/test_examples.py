"""The programs of examples/: the same job on every loop, by descriptor and process alone."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.settings import BINARY, PATIENCE

BUILT = Path(BINARY).parent / "examples"
LOOPS = ["blocking", "poll", "epoll", "libuv", "glib", "sdevent"]


def run(name, url, *command):
    program = BUILT / name
    assert program.exists(), f"{name} is not built: tools/deps test installs its library"
    return subprocess.run([program, url, *command], capture_output=True, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL, env=os.environ)


@pytest.mark.parametrize("name", LOOPS)
def test_s24_one_program_on_every_loop(shared, name):
    done = run(name, shared.url, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


@pytest.mark.parametrize("name", LOOPS)
def test_much_output(shared, name):
    done = run(name, shared.url, "seq", "200000")
    assert done.returncode == 0
    assert done.stdout == b"".join(b"%d\n" % i for i in range(1, 200001))


@pytest.mark.parametrize("name", LOOPS)
def test_a_connection_that_fails(name):
    done = run(name, "ws://127.0.0.1:1", "true")
    assert done.returncode == 255 and b"127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("name", LOOPS)
def test_a_start_that_fails(shared, name):
    done = run(name, shared.url, "nosuch-program")
    assert done.returncode == 255 and b"nosuch-program" in done.stderr
