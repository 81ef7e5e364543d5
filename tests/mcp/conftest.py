"""Fixtures for tests of the MCP server; those of tests/e2e serve too."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE)]
# pylint: disable=wrong-import-position
SPEC = importlib.util.spec_from_file_location("e2e_conftest", HERE.parent / "e2e" / "conftest.py")
sys.modules["e2e_conftest"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sys.modules["e2e_conftest"])
E2E = sys.modules["e2e_conftest"]
nothing_left, place, private_tmp = E2E.nothing_left, E2E.place, E2E.private_tmp
(pytest_collection_modifyitems, pytest_configure, pytest_runtest_protocol) = (
    E2E.pytest_collection_modifyitems, E2E.pytest_configure, E2E.pytest_runtest_protocol)

from peer import Mcp, Old  # pylint: disable=wrong-import-position


def package(name, version):
    """The directory of an npm package; without it the test is skipped."""
    done = subprocess.run([ROOT / "tools" / "npm-package", name, version], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def old(private_tmp):  # pylint: disable=redefined-outer-name,unused-argument
    """The programs of the last release of the old server."""
    return Old(package("@openai/codex-shell-tool-mcp", "0.97.0"))


@pytest.fixture(scope="session")
def our_bash():
    """The Bash of `make bash`."""
    bash = Path(os.environ.get("PATCHED_BASH", ROOT / "dist" / "bash"))
    if not bash.exists():
        pytest.skip("`make bash` has not been run; `make verify` does it")
    return bash


@pytest.fixture
def start(tmp_path):
    """start(*options, rules=TEXT, ...): a server of one test."""
    servers = []

    def made(*options, **more):
        servers.append(Mcp(tmp_path, *options, **more))
        return servers[-1]
    yield made
    for server in servers:
        server.kill()
