"""The patched Bash of `make bash`, alone and with a wrapper that writes down what it gets."""

import os
import subprocess

import pytest

from harness.settings import PATIENCE

# Writes its arguments and a few variables, then runs the program.
WRAPPER = """#!/usr/bin/python3
import os, sys
with open(os.environ["WRAPPER_LOG"], "a") as log:
    print(sys.argv[1:], os.environ.get("CODEX_ESCALATE_SOCKET"), file=log)
os.execve(sys.argv[1], sys.argv[2:], os.environ)
"""


class Shell:
    """The shell below a wrapper."""

    def __init__(self, bash, place, name="BASH_EXEC_WRAPPER"):
        self.bash, self.log = bash, place / "log"
        self.wrapper = place / "wrapper"
        self.wrapper.write_text(WRAPPER)
        self.wrapper.chmod(0o755)
        self.env = {"PATH": "/usr/bin:/bin", "WRAPPER_LOG": str(self.log), name: str(self.wrapper),
                    "CODEX_ESCALATE_SOCKET": "7", "LC_ALL": "C.UTF-8"}

    def run(self, script, **more):
        """Status, output, and the programs that the wrapper got."""
        self.log.write_text("")
        done = subprocess.run([self.bash, "-c", script], env={**self.env, **more}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout, self.log.read_text().splitlines()


@pytest.fixture
def shell(our_bash, tmp_path):
    return Shell(our_bash, tmp_path)


@pytest.mark.parametrize("command, seen", [
    ("uname", ["/usr/bin/uname", "uname"]), ("exec uname", ["/usr/bin/uname", "uname"]),
    ("(uname)", ["/usr/bin/uname", "uname"]), ("x=$(uname)", ["/usr/bin/uname", "uname"]),
    ("uname | :", ["/usr/bin/uname", "uname"]), ("uname & wait", ["/usr/bin/uname", "uname"]),
    ("cat <(uname)", ["/usr/bin/uname", "uname"]), ("trap uname EXIT", ["/usr/bin/uname", "uname"]),
    ("exec -a -x uname 'a b' ''", ["/usr/bin/uname", "-x", "a b", ""]),
    ("exec -l uname", ["/usr/bin/uname", "-uname"])])
@pytest.mark.parametrize("name", ["BASH_EXEC_WRAPPER", "EXEC_WRAPPER"])
def test_every_program_goes_to_the_wrapper(our_bash, tmp_path, name, command, seen):
    assert f"{seen} 7" in Shell(our_bash, tmp_path, name).run(command)[2]


@pytest.mark.parametrize("trick", [
    "unset BASH_EXEC_WRAPPER EXEC_WRAPPER CODEX_ESCALATE_SOCKET;", "BASH_EXEC_WRAPPER= ",
    "export BASH_EXEC_WRAPPER=/usr/bin/env;", "export -n BASH_EXEC_WRAPPER CODEX_ESCALATE_SOCKET;",
    "BASH_EXEC_WRAPPER=' '", "EXEC_WRAPPER=/usr/bin/env", "CODEX_ESCALATE_SOCKET=9",
    "declare +x BASH_EXEC_WRAPPER;"])
def test_no_variable_leads_past_the_wrapper(shell, trick):
    status, _, seen = shell.run(f"{trick} uname; {shell.bash} -c 'id -u; exit 4'")
    assert status == 4
    assert [line.split(",")[0][2:] for line in seen] == [
        "/usr/bin/uname'", f"{shell.bash}'", "/usr/bin/id'"]
    assert all(line.endswith(" 7") for line in seen)


def test_an_empty_environment_keeps_the_variables_of_the_wrapper(shell):
    shell.wrapper.write_text(f"#!/bin/sh\nenv > {shell.log}\n")
    seen = shell.run("exec -c uname")[2]
    assert {f"BASH_EXEC_WRAPPER={shell.wrapper}", "CODEX_ESCALATE_SOCKET=7"} <= set(seen)
    assert "WRAPPER_LOG" not in "".join(seen)


def test_without_a_wrapper_it_is_a_bash(our_bash, tmp_path):
    shell = Shell(our_bash, tmp_path, "NOTHING")
    assert shell.run("id -u; nosuch_zz; echo $?", BASH_EXEC_WRAPPER="") == (
        0, f"{os.getuid()}\n{our_bash}: line 1: nosuch_zz: command not found\n127\n", [])


@pytest.mark.parametrize("wrapper", ["/nonexistent", "/etc/passwd", "/", "relative", " "])
def test_without_its_wrapper_nothing_runs(shell, wrapper):
    status, output, _ = shell.run("id; echo $?; shopt -s execfail; exec id; echo still; id",
                                  BASH_EXEC_WRAPPER=wrapper)
    assert status == 126 and "uid=" not in output and "\n126\n" in output and "still\n" in output
    assert f"/usr/bin/id: cannot start the exec wrapper {wrapper}: " in output


@pytest.mark.parametrize("command, text, code", [
    ("nosuch_zz", "command not found", 127), ("/nonexistent", "No such file or directory", 127),
    ("/etc/passwd", "Permission denied", 126), ("/etc", "Is a directory", 126),
    ("exec /nonexistent", "No such file or directory", 127),
    (": > $T/x; chmod 755 $T/x; /usr/bin/true $(head -c 3000000 /dev/zero | tr '\\0' x)",
     "Argument list too long", 126)])
def test_the_shell_says_itself_what_cannot_run(shell, tmp_path, command, text, code):
    status, output, seen = shell.run(command, T=str(tmp_path))
    assert status == code and text in output and str(shell.wrapper) not in output
    assert not any("nonexistent" in line or "/etc" in line for line in seen)


ARGUMENTS = """
words=() expected=
for n in {0..12}; do
    got=$(/usr/bin/printf '[%s]' "${words[@]}")
    [ "$got" = "${expected:-[]}" ] || { echo "$n words: $got"; exit 1; }
    env -- printenv LAST || exit 2
    words+=("w$n") expected+="[w$n]"
done | uniq
for i in 1 3 5; do env true || exit 3; sleep 0.01 || exit 4; done
(exec ls /nonexistent) 2>&1 | grep "^ls: " || exit 5
exit 9
"""


def arguments_arrive(shell):
    """Vectors of many lengths: the old patch writes behind them."""
    for marks in range(2):
        env = {f"MARK{i}": "x" * i for i in range(marks)}
        status, output, _ = shell.run(ARGUMENTS, **env, LAST="here")
        assert (status, output) == (
            9, "here\nls: cannot access '/nonexistent': No such file or directory\n")


def variables_arrive(shell):
    for words in range(6):
        for marks in range(3):
            env = {f"MARK{i}": "x" * i for i in range(marks)}
            script = f"for i in 1 3 5 7; do GIVEN=x printenv GIVEN{' b' * words}; done"
            assert shell.run(script, **env)[1] == "x\n" * 4


def the_heap_is_sound(shell):
    """glibc checks its heap when it is told to: a write behind a vector ends the shell."""
    status, output, _ = shell.run(
        "shopt -s execfail; for i in {1..50}; do exec uname a{1..9} b; done; echo still",
        BASH_EXEC_WRAPPER="/nonexistent", MALLOC_CHECK_="3", MALLOC_PERTURB_="165",
        LD_PRELOAD="libc_malloc_debug.so.0")
    assert status == 0 and output.endswith("still\n")


def unset_changes_nothing(shell):
    assert shell.run("unset BASH_EXEC_WRAPPER; uname")[2]


CHECKS = [arguments_arrive, variables_arrive, the_heap_is_sound, unset_changes_nothing]


@pytest.mark.parametrize("check", CHECKS)
def test_ours(shell, check):
    check(shell)


@pytest.mark.parametrize("check", CHECKS)
def test_the_old_one_fails(old, tmp_path, check):
    with pytest.raises(AssertionError):
        check(Shell(old.bash, tmp_path))
