"""make install, make uninstall, and what make run tells a newcomer."""

import json
import os
import re
import signal
import subprocess

import pytest

from harness.settings import BINARY, ROOT
from harness.waiting import until
from harness.xs import Terminal

BUILD = ROOT / "build"
pytestmark = pytest.mark.skipif(os.path.dirname(BINARY) != str(BUILD),
                                reason="only the build directory of the Makefile is installed")


def make(*args, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", "--no-print-directory", "-C", ROOT, *args], env=env, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def prefix():
    options = json.loads(subprocess.check_output(["meson", "introspect", BUILD, "--buildoptions"]))
    return next(o["value"] for o in options if o["name"] == "prefix")


EXPECTED = (
    r"bin/exec-server", r"bin/xs", r"include/execserver\.h", r"lib/.*libexecserver\.so\.0\.[\d.]+",
    r"lib/.*libexecserver\.so\.0", r"lib/.*libexecserver\.so", r"lib/.*libexecserver\.a",
    r"lib/.*libexecserver-server\.a", r"lib/.*pkgconfig/execserver\.pc",
    r"share/man/man1/xs\.1", r"share/man/man3/libexecserver\.3", r"share/man/man8/exec-server\.8",
    r"share/bash-completion/completions/xs\.bash", r"share/zsh/site-functions/_xs",
    r"share/fish/vendor_completions\.d/xs\.fish", r"lib/systemd/system/exec-server\.service",
    r"lib/systemd/system/exec-server\.socket",
    r"lib/systemd/system/exec-server-loopback\.service",
    r"lib/systemd/system/exec-server-loopback\.socket", r"share/doc/exec-server/README\.md",
    r"share/doc/exec-server/doc/xs\.schema\.json",
    r"share/doc/exec-server/doc/protocol\.schema\.json",
)


def test_install_and_uninstall(tmp_path):
    """Everything comes, nothing of the tests, and everything goes."""
    place, where = tmp_path / "destination", prefix()
    arguments = [f"DESTDIR={place}", f"PREFIX={where}"]
    make("install", *arguments)
    root = str(place) + where + "/"
    files = [os.path.join(d, f)[len(root):] for d, _, names in os.walk(root) for f in names]
    for pattern in EXPECTED:
        assert [f for f in files if re.fullmatch(pattern, f)], (pattern, sorted(files))
    assert not [f for f in files if "test" in f or "fuzz" in f or "example" in f]
    done = subprocess.run([root + "bin/xs", "-H", "local", "run", "echo", "installed"],
                          stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"installed\n"
    (place / "mine").write_text("stays")
    make("uninstall", *arguments)
    left = [os.path.join(d, f) for d, _, names in os.walk(place) for f in names]
    assert left == [str(place / "mine")]
    assert not os.path.exists(root + "share/doc/exec-server")


def test_install_builds_no_test():
    """Of what it builds, nothing is in tests/."""
    needed = subprocess.check_output(["ninja", "-C", BUILD, "-t", "inputs", "installed"], text=True)
    assert "exec-server" in needed
    assert not [line for line in needed.splitlines() if re.match(r"\s*(tests|examples)/", line)]


@pytest.mark.parametrize("arguments", [[], ["--listen", "ws://127.0.0.1:0"]])
def test_run_tells_what_comes_next(tmp_path, arguments):
    """One line below the URL, only on a terminal; the command in it works."""
    terminal = Terminal([str(ROOT / "tools" / "run-server"), *arguments],
                        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, ROOT, 24, 200)
    try:
        at = terminal.expect("ws://127.0.0.1:")
        terminal.expect("run -t bash\r\n", at)
        lines = terminal.screen.decode().split("\r\n")
        [url] = [line for line in lines if re.fullmatch(r"ws://127\.0\.0\.1:\d+", line)]
        words = re.fullmatch(r"next: (\S+) -H (\S+) run -t bash",
                             lines[[n for n, x in enumerate(lines) if x.startswith("next: ")][0]])
        assert words.group(2) == url
        shell = Terminal([words.group(1), "-H", url, "run", "-t", "bash", "--norc"],
                         {"HOME": str(tmp_path), "TERM": "dumb"}, tmp_path, 24, 80)
        shell.until_raw()
        shell.type("exit 7\r")
        assert shell.wait() == 7
        shell.abandon()
        terminal.signal(signal.SIGTERM)
        assert terminal.popen.wait(60) == 0
    finally:
        terminal.abandon()


def test_run_without_a_terminal(tmp_path):
    """Standard output carries the URL alone, and standard error no word about xs."""
    out, err = tmp_path / "out", tmp_path / "err"
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        server = subprocess.Popen([ROOT / "tools" / "run-server"], cwd=ROOT, stdout=stdout,
                                  stderr=stderr, stdin=subprocess.DEVNULL)
        until(lambda: out.read_bytes().endswith(b"\n"), "the URL")
        server.terminate()
        assert server.wait(60) == 0
    assert re.fullmatch(rb"ws://127\.0\.0\.1:\d+\n", out.read_bytes())
    assert b"next: " not in err.read_bytes()
