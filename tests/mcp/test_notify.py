"""Interception of every exec: what a patched shell does not see."""

import pytest

RULES = """
prefix_rule(pattern=["id"], decision="forbidden")
prefix_rule(pattern=["dash"])
"""
DENIED = "Execution denied: Execution forbidden by policy\n"


@pytest.fixture
def server(start):
    made = start(rules=RULES)  # the default
    made.hello()
    return made


@pytest.mark.parametrize("command", [
    "id", "command id", "env id", "(id)", "echo | xargs id", "bash -c id",
    r"find /etc/hostname -exec id \;",
    "nice id", "timeout 9 id", "setsid -w id", "unset BASH_EXEC_WRAPPER; id", "exec id",
    "/usr/bin/python3 -c 'import os; os.execv(\"/usr/bin/id\", [\"x\"])'",
    "/usr/bin/python3 -c 'import subprocess; subprocess.run([\"id\"])'",
    "/usr/bin/python3 -c 'import os; os.posix_spawn(\"/usr/bin/id\", [\"x\"], {})' ; sleep 0.2",
    "cp /usr/bin/true /tmp 2>/dev/null; PATH=/usr/bin:/bin bash -lc 'id'"])
def test_no_way_around_a_rule(server, command):
    assert DENIED in server.run(command, timeout_ms=100000)["output"]


def test_only_the_shells_own_commands_leave_the_sandbox(start):
    status = "grep Seccomp: /proc/self/status"
    server = start(rules=RULES)
    server.hello()
    assert server.run(f"dash -c '{status}'")["output"] == "Seccomp:\t0\n"
    assert server.run(f"env dash -c '{status}'")["output"] == "Seccomp:\t2\n"
    assert server.run(f"bash -c \"dash -c '{status}'\"")["output"] == "Seccomp:\t0\n"
    lifted = start("--escalate-descendants", rules=RULES)
    lifted.hello()
    assert lifted.run(f"env dash -c '{status}'")["output"] == "Seccomp:\t0\n"


def test_any_shell(start):
    server = start("--intercept", "notify", "--bash", "/bin/sh", rules=RULES)
    server.hello()
    assert server.run("id; echo $0")["output"] == f"{DENIED}/bin/sh\n"


def test_a_stopped_server_lets_nothing_start(start, tmp_path):
    server = start(rules=RULES)
    server.hello(full=True)
    server.run(f"(sleep 0.3; /bin/true && echo ran > {tmp_path}/ran) & ")
    server.signal(9)
    assert not (tmp_path / "ran").exists()
