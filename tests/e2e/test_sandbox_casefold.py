"""File systems that ignore case: `.GIT` counts as `.git`."""

import os

import pytest

from harness.confined import Calls
from harness.files import os_error
from harness.mounts import FaultFs
from harness.sandbox import READ_ONLY, Place, servers, users

__all__ = ["servers"]

R, PR = "r :root", "w :project_roots"
RO, NO = os_error(30), os_error(13)


@pytest.fixture
def folding(servers):
    """A place of root's on a FUSE file system that ignores case."""
    if "root" not in users():
        pytest.skip("needs root to mount")
    client = servers.get("root").client()
    outer = Place(client, 0)
    fuse = FaultFs(outer.base, "fold")
    yield Place(client, 0, parent=fuse.path)
    client.close()
    fuse.finish()
    outer.close()


def test_it_ignores_case(folding):
    folding.put("ws/Name", "x")
    assert (folding.ws / "nAME").read_text() == "x"


def test_file_calls(folding):
    """Protected and denied names, there or not, and what matches a pattern."""
    folding.put("ws/.git/config", "C")
    folding.put("ws/secret/key", "S")
    folding.put("ws/x.env", "E")
    calls = Calls(folding, R, PR, "d ws/secret", "d ws/gone", f"d glob:{folding.ws}/**/*.env")
    at = folding.ws
    for name in (".GIT/config", ".Git/new", ".AWS", ".Codex/x", ".aw\u017f", ".agents\u200c"):
        assert calls.error("writeFile", at / name, dataBase64="") == RO, name
    for name in (".AWS", ".Codex/x/y", ".agEnts"):
        assert calls.error("createDirectory", at / name, recursive=True) == RO, name
    for name in ("SECRET/key", "secret/KEY", "X.env", "x.ENV"):
        assert calls.error("readFile", at / name) == NO, name
        assert calls.error("remove", at / name, recursive=False, force=False) == NO, name
    assert calls.error("writeFile", at / "GONE", dataBase64="")[1] in (RO[1], NO[1])
    assert calls.error("writeFile", at / "NEW.ENV", dataBase64="") == NO
    assert calls.rename_error(at / ".GIT", at / "moved") == RO
    assert calls.error("remove", at / ".GIT", recursive=True, force=True) == RO
    folding.put("ws/evil/config", "x")
    assert calls.rename_error(at / "evil", at / ".AGENTS") == RO
    assert calls.copy_error(at / "evil", at / ".AGENTS", recursive=True) == RO
    calls.write(at / "Plain", b"p")
    assert calls.read(at / "pLAIN") == b"p"
    assert sorted(os.listdir(at)) == [".git", "Plain", "evil", "secret", "x.env"]


@pytest.mark.parametrize("entries", [
    (R, PR), (R, PR, "d ws/secret"), (R, "w ws/sub", "w ws/sub/.git", "w ws/sub/.aws",
                                      "w ws/sub/.codex", "w ws/sub/.agents", "d ws/secret"),
    (R, "d glob:W/**/*.env")])
def test_commands_are_refused(folding, entries):
    """A mount on FUSE covers one spelling: there is no way to enforce such a policy."""
    folding.mkdir("ws/sub")
    folding.put("ws/secret/key", "S")
    folding.put("ws/x.env", "E")
    entries = [entry.replace("W/", f"{folding.ws}/") for entry in entries]
    code, text = folding.error(*entries)
    assert code == -32603 and "ignores case" in text
    assert folding.left() == []


def test_commands_that_need_no_mount(folding):
    folding.put("ws/f")
    assert folding.tries(["cat F", "touch x"], R) == ["content", READ_ONLY]
