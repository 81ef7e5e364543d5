"""xs(1), the help and the completions say what the table of options says."""

import os
import re
import select
import shutil
import subprocess

import pytest

from harness.settings import ROOT
from harness.waiting import Deadline
from harness.xs import XS, Terminal

PAGE = ROOT / "man" / "xs.1"
TEXT = PAGE.read_text()
SHELLS = ("bash", "zsh", "fish")


def table(lone_xs):
    """{command, or "-" for all: {(name, letter)}}."""
    options = {}
    for line in lone_xs.run("completion", "list").text().splitlines():
        kind, command, *rest = line.split()
        options.setdefault("-" if command == "-" else command, set())
        if kind == "option":
            options[command].add(tuple(rest))
    return options


def documented():
    """The same from the manual page."""
    options = {}
    part, where = None, None
    for line in TEXT.splitlines():
        if line == ".Sh OPTIONS OF EVERY COMMAND":
            where = "-"
        elif m := re.match(r"\.Ss xs (\w+)", line):
            where = m.group(1)
        elif line.startswith(".Sh "):
            where = None
        elif where and line.startswith(".It Fl "):
            for part in line[4:].split(" ; "):
                flags = re.findall(r"Fl (-?[\w-]+)", part)
                name = [f[1:] for f in flags if f.startswith("-")][0]
                letter = [f for f in flags if not f.startswith("-")] or ["-"]
                options.setdefault(where, set()).add((name, letter[0]))
        if where:
            options.setdefault(where, set())
    return options


def test_it_is_free_of_faults():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", PAGE], capture_output=True,
                          text=True, check=False)
    assert done.stdout == ""


def test_its_options_are_those_of_the_table(lone_xs):
    page, program = documented(), table(lone_xs)
    assert sorted(page) == sorted(program)
    for command, options in program.items():
        assert page[command] == options, command


def test_its_synopses_are_those_of_the_help(lone_xs):
    for command in re.findall(r"^\.Ss xs (\w+)", TEXT, re.MULTILINE):
        usage = lone_xs.run(command, "--help").text().splitlines()[0]
        operands = usage.split(f" {command} [OPTIONS]")[1].split()
        line = re.search(rf"^\.Ss xs {command}\b(.*)$", TEXT, re.MULTILINE).group(1)
        words = re.sub(r"\[options\]", "", line).replace(" ...", "...").split()
        assert words == [w for w in operands], command


# -- completions, in real shells

def offered(xs, tmp_path, shell, line):
    """What a shell offers behind a line."""
    if not shutil.which(shell):
        pytest.fail(f"{shell} is missing (tools/deps test)")
    script = tmp_path / f"completion.{shell}"
    script.write_bytes(xs.run("completion", shell).ok())
    env = xs.environment(None, {"PATH": f"{os.path.dirname(XS)}:{xs.env['PATH']}"})
    if shell == "bash":
        program = f'''source {script}
            COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$' \\t\\n"=:'
            compopt() {{ :; }}; _xs; printf '%s\\n' "${{COMPREPLY[@]}}"'''
        return subprocess.run(["bash", "--norc", "-c", program], env=env, cwd=xs.home, check=True,
                              capture_output=True, text=True).stdout.split("\n")[:-1]
    if shell == "fish":
        program = f"source {script}; complete -C '{line}'"
        out = subprocess.run(["fish", "--no-config", "-c", program], env=env, cwd=xs.home,
                             check=True, capture_output=True, text=True).stdout
        return [x.split("\t")[0] for x in out.splitlines()]
    return zsh(script, env, xs.home, line)


def zsh(script, env, cwd, line):
    """zsh completes in its line editor alone: a terminal shows what it offers."""
    terminal = Terminal(["zsh", "-f"], {**env, "TERM": "dumb", "PS1": "P> "}, cwd, 200, 250)
    try:
        terminal.type("unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -d "
                      f"{cwd}/zcompdump; source {script}; zstyle ':completion:*' list-packed no; "
                      "setopt autolist; unsetopt automenu; LISTMAX=9999; print READY''GO\n")
        at = terminal.expect("READYGO\r\n")
        terminal.type(line + "\t")
        deadline, quiet = Deadline(), 0
        while quiet < 4 and not deadline.passed():
            readable, _, _ = select.select([terminal.master], [], [], 0.25)
            quiet = 0 if readable and terminal.read(0) else quiet + 1
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", terminal.screen[at:].decode(errors="replace"))
        return re.sub(r"\x1b.", "", text).replace("\r", " ").split()
    finally:
        terminal.abandon()


@pytest.mark.parametrize("shell", SHELLS)
def test_completions(xs, tmp_path, shell):
    (xs.home / "here-file").touch()
    (tmp_path / "there-one").touch()
    (tmp_path / "there-two").touch()
    xs.run("run", "-d", "--name", "kept-one", "true")
    xs.run("run", "-d", "--name", "kept-two", "true")

    def offers(line, *wanted):
        got = offered(xs, tmp_path, shell, line)
        for word in wanted:
            assert any(x.endswith(word) for x in got), (line, word, got)
        return got
    offers("xs c", "cat", "chmod", "completion", "cp")
    offers("xs run --t", "--timeout", "--tty")
    offers("xs attach kept-", "kept-one", "kept-two")
    offers(f"xs cat {tmp_path}/there-", "there-one", "there-two")
    offers("xs run --sandbox ", "read-only", "workspace-write")
    offers("xs kill -s WI", "WINCH")


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_of_a_server_that_says_nothing(lone_xs, tmp_path, shell):
    """They end after half a second, with nothing and without a word."""
    import socket  # pylint: disable=import-outside-toplevel
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lone_xs.host = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        done = lone_xs.run("completion", "complete", "remote", "/x")
        assert done.out == b"" and done.err.count("\n") <= 1
        assert not [x for x in offered(lone_xs, tmp_path, shell, "xs cat /x") if "xs:" in x]


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_valid(lone_xs, tmp_path, shell):
    script = tmp_path / "script"
    script.write_bytes(lone_xs.run("completion", shell).ok())
    subprocess.run([shell, "-n", script], check=True)
