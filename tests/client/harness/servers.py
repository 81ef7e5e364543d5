"""Other servers than the one under test: the reference, old and new."""

import os
import subprocess

import pytest

from harness.server import Server
from harness.settings import ROOT

VERSIONS = ("0.166.0", "0.145.0")


def reference_path(version):
    """The program; skips, and says so, where it cannot be had."""
    done = subprocess.run([ROOT / "tools" / "reference", version], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"REFERENCE UNAVAILABLE: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Reference(Server):
    """A server of the reference, in a home of its own."""

    def __init__(self, home, version="0.166.0"):
        os.makedirs(home, exist_ok=True)
        super().__init__(wrapper=(reference_path(version),), binary="exec-server", quiet=False,
                         env={"HOME": str(home), "CODEX_HOME": None}, cwd=str(home))
