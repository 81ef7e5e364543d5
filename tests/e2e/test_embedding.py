"""A foreign program that contains the server: examples/embed-server.c."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.fleet import Fleet
from harness.sandbox import READ_ONLY, Place, uri
from harness.settings import BINARY, PATIENCE

PROGRAM = Path(BINARY).parent / "tests" / "embed-server"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="built without the library")


@pytest.fixture(name="c")
def client():
    fleet = Fleet()
    yield fleet.start(wrapper=[str(PROGRAM)], binary="serve").client()
    fleet.finish()


@pytest.fixture(name="place")
def confined(c):
    made = Place(c, os.geteuid())
    yield made
    made.close()


def test_the_program_is_its_own():
    done = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.startswith("a program of its own")


def test_the_server_has_its_options():
    done = subprocess.run([PROGRAM, "serve", "--version"], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    own = subprocess.run([BINARY, "--version"], capture_output=True, text=True, timeout=PATIENCE,
                         check=True)
    assert done.stdout == own.stdout
    done = subprocess.run([PROGRAM, "serve", "--nonsense"], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 2


def test_it_serves_commands(c):
    assert c.run(["sh", "-c", "echo out; exit 7"]).exit_code == 7


def test_it_serves_a_sandboxed_command(place):
    kept = place.put("outside/kept", "kept\n")
    result = place.run(f"echo in >made; echo x >{kept}", "r :root", "w :project_roots")
    assert READ_ONLY in result.text
    assert result.code != 0
    assert (place.ws / "made").read_text() == "in\n"
    assert kept.read_text() == "kept\n"


def test_it_reads_files_in_a_sandbox(c, place):
    path = place.put("ws/text", "hello\n")
    answer = c.call("fs/readFile", {"path": uri(path), "sandbox": place.sandbox("r :root")})
    assert answer["dataBase64"] == "aGVsbG8K"
