"""The official SDK's client drives the server."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import package
from harness.settings import BINARY, PATIENCE

HERE = Path(__file__).resolve().parent
RULES = """
prefix_rule(pattern=["touch"], decision="prompt")
prefix_rule(pattern=["id"], decision="forbidden")
"""


@pytest.mark.parametrize("mode, name, version", [
    ("1", "sdk", "1.32.2"), ("2", "client", "2.4.0"), ("auto", "client", "2.4.0"),
    ("2026-07-28", "client", "2.4.0")])
def test_a_session_of_the_sdk(private_tmp, tmp_path, mode, name, version):
    del private_tmp
    sdk = package(f"@modelcontextprotocol/{name}", version)
    home = tmp_path / "home"
    (home / "rules").mkdir(parents=True)
    (home / "rules" / "a.rules").write_text(RULES)
    done = subprocess.run(
        ["node", HERE / "sdk_client.mjs", mode, sdk, BINARY, "mcp", "--system-config", tmp_path / "none"],
        env={**os.environ, "CODEX_HOME": str(home)}, capture_output=True, text=True,
        timeout=PATIENCE + 60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    duration = seen["result"].pop("duration")
    assert set(duration) == {"secs", "nanos"}
    assert seen == {
        "questions": ["Allow agent to run `/usr/bin/touch /tmp/sdk-asked` in `" + os.getcwd()
                      + "` outside the sandbox?"],
        "progress": seen["progress"], "version": "exec-server", "tools": ["shell", "write_stdin"],
        "result": {"exit_code": 3, "output": "out\n", "timed_out": False}, "asked": "0\n",
        "denied": "Execution denied: Execution forbidden by policy\n", "long": 0, "echo": "hi\n",
        "end": "SIGTERM", "bad": True, "cancelled": "cancelled"}
    assert seen["progress"] >= 2
