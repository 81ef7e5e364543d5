"""A server with a controlling terminal: nothing that it runs or confines has that one."""

import fcntl
import os
import termios

import pytest

from harness.confined import Calls
from harness.files import os_error
from harness.rpc import b64
from harness.sandbox import Place

NO_TERMINAL = os_error(6)
ASK = "(: < /dev/tty) 2> /dev/null && echo has || echo none"


@pytest.fixture
def terminal():
    """The master of a terminal, and how a process makes it its own."""
    master, slave = os.openpty()

    def take():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    yield master, take
    os.close(slave)
    os.close(master)


@pytest.fixture
def place(fleet, terminal):
    server = fleet.start("--shutdown-grace-ms", "60000", preexec=terminal[1])
    found = Place(server.client(), 0)
    found.server = server
    try:
        yield found
        server.stop()
    finally:
        found.close()


def test_commands_have_not(place):
    assert place.client.run(ASK).output() == b"none\n"
    assert place.run(ASK, "r :root").out == "none\n"
    assert place.run(ASK, "r :root", "w :project_roots").out == "none\n"


def test_file_calls_have_not(place):
    calls = Calls(place, "r :root", "w :project_roots")
    assert calls.error("writeFile", "/dev/tty", dataBase64=b64("x")) == NO_TERMINAL


def test_interrupt_is_the_servers(place, terminal):
    """What its terminal sends does not reach them; the server asks them to end, as always."""
    command = ("trap 'echo INT' INT; trap 'echo TERM; exit 7' TERM; echo ready;"
               " while :; do sleep 0.05; done 2> /dev/null")
    started = [place.client.start(command), place.start(command, "r :root"),
               place.start(command, "r :root", tty=True)]
    for process in started:
        place.client.wait_output(process, b"ready")
    os.write(terminal[0], b"\x03")
    for process in started:
        place.client.wait_closed(process)
        assert process.exit_code == 7 and b"INT" not in process.output()
    assert place.server.wait() == 0
