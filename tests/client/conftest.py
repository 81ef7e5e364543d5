"""The fixtures of tests/e2e, and the client library under test.

`harness` is the package of tests/e2e; modules of tests/client/harness belong to it too.
EXEC_SERVER names the server. The library is the one of its build, unless EXECSERVER_LIBRARY names
another.
"""

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE), str(ROOT / "python")]
# pylint: disable=wrong-import-position,unused-import
import pytest

import harness

harness.__path__.append(str(HERE / "harness"))
from execserver import _lib
from harness.settings import BINARY

os.environ.setdefault("EXECSERVER_LIBRARY", str(Path(BINARY).parent / "src" / _lib.SONAME))

SPEC = importlib.util.spec_from_file_location("e2e_conftest", HERE.parent / "e2e" / "conftest.py")
sys.modules["e2e_conftest"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sys.modules["e2e_conftest"])
E2E = sys.modules["e2e_conftest"]
(fleet, mounts, nothing_left, place, plain, private_tmp, server, shared) = (
    E2E.fleet, E2E.mounts, E2E.nothing_left, E2E.place, E2E.plain, E2E.private_tmp, E2E.server,
    E2E.shared)
(pytest_collection_modifyitems, pytest_configure, pytest_runtest_protocol) = (
    E2E.pytest_collection_modifyitems, E2E.pytest_configure, E2E.pytest_runtest_protocol)


# pylint: disable=wrong-import-order
from harness.servers import Reference
from harness.xs import Xs


@pytest.fixture
def xs(tmp_path, shared):
    """A user of the server that a file of tests shares."""
    user = Xs(tmp_path / "home", shared.url)
    yield user
    user.finish()


@pytest.fixture
def lone_xs(tmp_path):
    """A user without a server."""
    user = Xs(tmp_path / "home")
    yield user
    user.finish()


@pytest.fixture(scope="module")
def reference(nothing_left, tmp_path_factory):  # pylint: disable=redefined-outer-name,unused-argument
    """A server of the reference that the tests of a file share."""
    server = Reference(tmp_path_factory.mktemp("reference"))
    yield server
    server.abandon()
