"""`exec-server execpolicy allow`: the rule counts for a running server from then on."""

import os
import subprocess

import pytest

from harness.settings import BINARY

SECCOMP = "grep Seccomp: /proc/self/status"


def allow(home, *words, **more):
    return subprocess.run([BINARY, "execpolicy", "allow", *words], capture_output=True, text=True,
                          env={"CODEX_HOME": str(home)}, check=False, **more)


def test_a_running_server_follows(start):
    server = start()
    server.hello()
    command = f"dash -c '{SECCOMP}'"
    assert server.run(command)["output"] == "Seccomp:\t2\n"
    line = f'prefix_rule(pattern=["dash", "-c", "{SECCOMP}"], decision="allow")\n'
    for _ in range(2):
        done = allow(server.home, "dash", "-c", SECCOMP)
        assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
    assert (server.home / "rules" / "default.rules").read_text() == line
    assert server.run(command)["output"] == "Seccomp:\t0\n"
    assert server.run(f"dash -c 'true; {SECCOMP}'")["output"] == "Seccomp:\t2\n"


@pytest.mark.parametrize("words, code, text", [
    ([], 2, "<COMMAND>"), (["--"], 2, "<COMMAND>"), (["-x"], 2, "unexpected argument '-x'"),
    ([b"\xff"], 2, "not UTF-8"), (["x"], 1, "failed to create rules directory"),
    (["--help"], 0, ""), (["--", "-x"], 1, "failed to create rules directory")])
def test_wrong_use(tmp_path, words, code, text):
    done = allow(tmp_path / "none", *words)
    assert done.returncode == code and text in done.stderr
    assert os.listdir(tmp_path) == []
