"""The scenarios notice faults: each is planted, and the run has to fail."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE))

from rig.outcome import differences  # noqa: E402

# The fault, a scenario that must notice it, a word of what it says.
FAULTS = [
    ("skip-seq", "simple", "exit code"),
    ("repeat-seq", "simple", "exit code"),
    ("lose-byte", "binary-output", "bytes"),
    ("no-sandbox", "read-only", "exit code"),
    ("no-sandbox", "patch-denied", "Success"),
    ("no-http", "mcp-http", "no tool"),
    ("no-proxy", "network-proxy", "exit code"),
    ("no-resume", "resume-after-exit", "stay running"),
]


@pytest.fixture(scope="session")
def codex():
    done = subprocess.run([TOP / "tools/reference"], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("the reference cannot be installed here")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("fault, scenario, word", FAULTS)
def test_a_planted_fault_is_noticed(codex, tmp_path, fault, scenario, word):
    command = [HERE / "run", "--server", os.environ["EXEC_SERVER"], "--codex", codex,
               "--no-compare", "--json", tmp_path / "result", "--only", scenario]
    done = subprocess.run([*command, "--plant", fault], capture_output=True, text=True,
                          check=False, timeout=900)
    assert done.returncode == 1, done.stdout
    assert word in done.stdout


def test_different_outcomes_are_told():
    ours, theirs = {"calls": ["a", "b"], "tree": []}, {"calls": ["a"], "tree": ["work/x"]}
    assert len(differences(ours, theirs, {})) == 2
    assert differences(ours, theirs, {"tree": "a reason"}) == ["calls: ours ['b'], reference []"]
    assert differences(ours, ours, {}) == []
