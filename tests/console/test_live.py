"""Screens of real programs, lost connections, other viewers."""

import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from viewer import ready, show_process
from cutter import Cutter
from harness.settings import BINARY
from harness.waiting import until

XS = pathlib.Path(BINARY).parent / "xs"


class Tmux:
    """A terminal in which a user runs a command of the server, through xs."""

    def __init__(self, directory, server, cols, rows, *command):
        self.socket = str(directory / "tmux")
        config = directory / "tmux.conf"
        config.write_text(
            "set -g status off\nset -g default-terminal tmux-256color\nset -s escape-time 0\n")
        self.run(
    "-f",
    str(config),
    "new-session",
    "-d",
    "-x",
    str(cols),
    "-y",
    str(rows),
    "env",
    "LC_ALL=C.UTF-8",
    f"HOME={directory}",
    str(XS),
    "-H",
    server.url,
    "run",
    "-t",
     *command)

    def run(self, *words):
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        env.pop("TMUX", None)
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True,
                              capture_output=True, text=True, env=env).stdout

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def rows(self):
        return [line.rstrip() for line in self.run("capture-pane", "-p").split("\n")[:-1]]

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def tmux(tmp_path):
    made = []

    def start(*args):
        made.append(Tmux(tmp_path, *args))
        return made[-1]
    yield start
    for one in made:
        one.close()


def alike(page, terminal, predicate, what):
    """Waits until both show one screen that is as it should be."""
    def same():
        left, right = page.rows(), terminal.rows()
        return left == right and predicate(left)
    try:
        until(same, what, every=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}\npage:\n" + "\n".join(page.rows()) + "\ntmux:\n" +
                             "\n".join(terminal.rows())) from None


def test_vim(console, pages, tmux, tmp_path):
    text = tmp_path / "text.c"
    text.write_text(
    "".join(
        f"int f{i}(void) {{ return {i}; }} // \u00e4\u00f6 \u6f22\u5b57\n" for i in range(200)))
    terminal = tmux(console, 90, 28, "vim", "-u", "NONE", "-N", "-c", "syntax on", str(text))
    page = pages(console)
    show_process(page, "vim")
    alike(page, terminal, lambda rows: "int f0" in rows[0], "the first page of vim")
    terminal.keys(":set number", "Enter", "50G")
    alike(
    page,
    terminal,
    lambda rows: any(
        " 50 int f49" in row for row in rows),
         "a jump with numbers")
    terminal.keys(":split", "Enter", "G", "o", "new words", "Escape")
    alike(page, terminal, lambda rows: any("new words" in row for row in rows)
          and "int f49" in "\n".join(rows), "a split window with new text")
    terminal.run("resize-window", "-x", "100", "-y", "33")
    alike(page, terminal, lambda rows: len(rows) == 33, "a larger window")
    terminal.run("resize-window", "-x", "60", "-y", "20")
    alike(page, terminal, lambda rows: len(rows) == 20, "a smaller window")
    late = pages(link=more(page))
    show_process(late, "vim")
    alike(late, terminal, lambda rows: len(rows) == 20, "a viewer who comes late")


def test_htop(console, pages, tmux, tmp_path):
    if not shutil.which("htop"):
        pytest.skip("there is no htop")
    # Slow enough that the screen rests between two updates.
    terminal = tmux(console, 110, 30, "htop", "--delay=600")
    page = pages(console)
    show_process(page, "htop")
    alike(page, terminal, lambda rows: "F10" in rows[-1]
          and any("PID" in row for row in rows), "htop")
    terminal.keys("F2")
    alike(page, terminal, lambda rows: any(
        "Categories" in row or "Setup" in row for row in rows[3:]), "its setup")
    terminal.keys("Escape")
    terminal.keys("F5")
    alike(page, terminal, lambda rows: any("Load average" in row for row in rows), "its tree")


def more(page):
    """A link for one more viewer, without the clipboard."""
    return page.evaluate("""new Promise((done) => {
        document.execCommand = () => { done(document.activeElement.value); return true; };
        navigator.clipboard.writeText = () => Promise.reject(new Error('not now'));
        document.getElementById('link').click();
    })""")


def test_cut(consoles, pages):
    console = consoles("--console-host", "127.0.0.1")
    cutter = Cutter(console.port)
    client = console.client()
    process = client.start(
        ["/bin/sh", "-c", "for i in 1 2 3 4; do echo line $i; read x; done"], tty=True)
    page = pages()
    page.origin = f"http://127.0.0.1:{cutter.port}"
    page.go(f"{page.origin}/#{console.token}")
    ready(page)
    show_process(page, "line $i")
    page.wait_rows(lambda rows: "line 1" in rows, "the first line")
    for number in (2, 3):
        cutter.cut()
        page.wait("document.getElementById('status').textContent.includes('connection lost')")
        assert "trying again in" in page.text("#status")
        client.write(process, "\n")
        client.wait_output(process, f"line {number}")
        assert "line 1" in page.rows()  # what was there stays
        cutter.open()
        ready(page)
        page.wait_rows(lambda rows: f"line {number}" in rows, "what came meanwhile")
    client.write(process, "\n")
    page.wait_rows(
    lambda rows: [
        row for row in rows if row] == [
            "line 1",
            "",
            "line 2",
            "",
            "line 3",
            "",
            "line 4"] or [
                row for row in rows if row] == [
                    "line 1",
                    "line 2",
                    "line 3",
                    "line 4"],
                     "each line once")
    cutter.close()


def test_restart(consoles, pages):
    with socket.create_server(("127.0.0.1", 0)) as spare:
        port = spare.getsockname()[1]
    console = consoles(console=f"ws://127.0.0.1:{port}")
    client = console.client()
    client.start(["/bin/sh", "-c", "echo of the first server; read x"], tty=True)
    page = pages(console)
    show_process(page, "first server")
    page.wait_rows(lambda rows: "of the first server" in rows, "the output")
    console.stop()
    page.wait("document.getElementById('status').textContent.includes('connection lost')")
    assert "shutting down" in page.text("#status") or "ending" in page.text("#status")
    second = consoles(console=f"ws://127.0.0.1:{port}")
    page.wait("document.querySelector('#gate .why').checkVisibility()",
              "a restarted server does not know the page")
    assert "restarted" in page.text("#gate") and "new link" in page.text("#gate")
    assert "of the first server" in page.rows()
    second.client().run(["/bin/echo", "of the second"])
    page.evaluate(f"location.href = {second.link!r}")  # as one who follows the new link in this tab
    ready(page)
    assert page.evaluate("location.hash") == ""
    page.wait(
    "[...document.querySelectorAll('.processes .row')].map((row) => row.textContent).join().includes("
    "'of the second')")
    assert page.evaluate("document.querySelectorAll('.processes .row').length") == 1
    page.wait("document.querySelector('.note').textContent",
              "it says what became of the old process")
    assert "of the first server" in page.rows()


def test_two_viewers(control, pages):
    client = control.client()
    client.start(["/bin/sh", "-c", "echo ready; while read x; do echo got $x; done"], tty=True)
    first = pages(control)
    second = pages(link=more(first))
    for page in (first, second):
        show_process(page, "got")
        page.wait_rows(lambda rows: "ready" in rows, "the output")
    first.press("t")
    first.type("one\n")
    second.wait_rows(lambda rows: "got one" in rows, "what the first viewer typed")
    second.press("t")
    second.type("two\n")
    first.wait_rows(lambda rows: "got two" in rows, "what the second viewer typed")
    second.close()
    first.type("three\n")
    first.wait_rows(lambda rows: "got three" in rows, "life without the other")
    # Both are told apart in the audit log.
    first.press("L", "Control", "Shift")
    first.press("4")
    lines = first.wait(
    "(() => { const all = [...document.querySelectorAll('.audit .row')].filter((row) => "
    "row.querySelector('.event').textContent === 'write (console)')"
    ".map((row) => row.querySelector('.who').textContent); return all.length > 2 && all; })()")
    assert len(set(lines)) == 2, lines
