"""A fork bomb ends with its command, whichever way that is ended."""

import os
import signal
from pathlib import Path

import pytest

from harness import procfs
from harness.sandbox import uri
from harness.settings import BINARY, ROOT

# Members that want every CPU all the time; `make verify` takes a thousand.
COUNT = int(os.environ.get("E2E_BOMB", "250"))
LEASH = 120  # seconds after which a bomb ends by itself
READ_ALL = {"type": "restricted", "entries": [
    {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}

CONFINED = pytest.mark.parametrize("confined", [False, True], ids=["plain", "sandboxed"])


def program():
    places = [Path(BINARY).parent / "tests" / "bomb", ROOT / "build" / "tests" / "bomb"]
    return str(next(p for p in places if p.exists()))


class Bomb:
    """A process of which COUNT members live, each forking and calling setsid all the time."""

    def __init__(self, client, cwd, confined, count=COUNT, kind=()):
        self.client, self.token = client, procfs.mark()
        params = client.start_params([program(), self.token, str(count), str(LEASH), *kind],
                                     cwd=uri(cwd))
        if confined:
            params["sandbox"] = {"permissions": {"type": "managed", "network": "restricted",
                                                 "file_system": READ_ALL}, "cwd": uri(cwd)}
        client.call("process/start", params)
        self.process = client.processes[params["processId"]]
        client.wait_output(self.process, "full")

    def members(self):
        return procfs.marked(self.token)


@CONFINED
def test_terminate(client, tmp_path, confined):
    bomb = Bomb(client, tmp_path, confined)
    assert client.terminate(bomb.process) == {"running": True}
    client.wait_closed(bomb.process)
    assert bomb.members() == []
    assert client.run("true").exit_code == 0


def test_terminate_of_members_that_change(client, tmp_path):
    """None of them lives long enough to be listed, and then killed by its number."""
    bomb = Bomb(client, tmp_path, False, 50, ["hop"])
    assert client.terminate(bomb.process) == {"running": True}
    client.wait_closed(bomb.process)
    assert bomb.members() == []


@CONFINED
def test_sigterm_of_the_server(server, tmp_path, confined):
    bomb = Bomb(server.client(), tmp_path, confined)
    server.send_signal(signal.SIGTERM)
    assert server.popen.wait() == 0
    assert bomb.members() == []


@CONFINED
def test_sigkill_of_the_server(server, tmp_path, confined):
    bomb = Bomb(server.client(), tmp_path, confined)
    server.send_signal(signal.SIGKILL)
    server.popen.wait()
    assert procfs.wait_marked(bomb.token, 0) == []
