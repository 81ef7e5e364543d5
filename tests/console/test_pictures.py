"""Takes the pictures: every view at three sizes, light and dark; checks what a program can check of them.

They are left in build/console-pictures (CONSOLE_PICTURES). tests/console/keep-pictures puts a few into
doc/pictures.
"""

import pathlib
import tempfile

import pytest

from viewer import PICTURES, show_process
from harness.rpc import PATH

SIZES = {"desktop": (1280, 800), "tablet": (820, 1180), "phone": (390, 844)}

BUILD = r"""
printf '\033[1;36m==>\033[0m Building \033[1mwidget\033[0m 2.4.1\n'
for f in arena buf codec dispatch events frame; do printf '  \033[32mCC\033[0m  src/%s.c\n' $f; done
sleep 0.3; echo "src/frame.c:118:14: warning: unused variable 'left' [-Wunused-variable]" >&2; sleep 0.3
for f in hash json list main net outq pty ring; do printf '  \033[32mCC\033[0m  src/%s.c\n' $f; done
sleep 0.3; echo "src/ring.c:52:9: warning: comparison of integers of different signs [-Wsign-compare]" >&2; sleep 0.3
printf '  \033[33mLD\033[0m  build/widget\n\033[1;32m42 tests passed\033[0m, 0 failed\n'
sleep 1000
"""
TOP = r"""
printf '\033[2J\033[H\033[1mTasks\033[0m 214   \033[1mLoad\033[0m 0.42 0.36 0.31   \033[1mUptime\033[0m 6 days\n\n'
printf 'CPU 0 \033[32m|||||||||||\033[31m||||\033[0m                     34%%\n'
printf 'CPU 1 \033[32m||||||\033[34m|||||||||\033[31m||\033[0m                   41%%\n'
printf 'Mem   \033[32m||||||||||||||\033[33m|||||||||\033[0m       3.1G/8.0G\n\n'
printf '\033[7m  PID USER      CPU%%  MEM%%  TIME+    COMMAND                                \033[0m\n'
i=0; for c in 'cc1 -O2 src/frame.c' 'node server.js' 'postgres: writer' 'python3 -m pytest -q' 'sshd: agent' \
  'ld -o build/widget' 'git fetch --all' 'bash' 'cron -f' 'systemd --user' 'dbus-daemon' 'rsyslogd -n'; do
  i=$((i+1)); printf '%5d \033[36magent\033[0m     %4d  %4d  0:0%d.42  %s\n' $((4100+i*7)) $((34-i*2)) $((12-i/2)) $((i%10)) "$c"; done
printf '\n\033[30;46m F1 \033[0m Help \033[30;46m F3 \033[0m Search \033[30;46m F9 \033[0m Kill \033[30;46m F10 \033[0m Quit'
sleep 1000
"""


class Scene:
    """A server as it looks on a working day."""

    def __init__(self, server, directory):
        self.server = server
        project = directory / "widget"
        (project / "src").mkdir(parents=True)
        (project / "tests").mkdir()
        (project / "README.md").write_text("# widget\n\nA widget in C.\n\n    make\n    make test\n\n"
                                           "It reads frames from a socket and writes events to a ring.\n" * 3)
        for name in ("Makefile", "LICENSE", "meson.build"):
            (project / name).write_text(f"# {name}\n" * 20)
        agents = [server.connect() for _ in range(2)]
        for agent, name in zip(agents, ("codex", "nightly-review")):
            agent.initialize(name=name)
        self.project, self.programs = project, directory / "programs"
        self.programs.mkdir()
        for words in (
    "git status --short",
    "rg -n outq_flush src",
    "sed -n 1,80p src/ring.c",
     "git diff HEAD~1"):
            agents[0].wait_closed(self.run(agents[0], "exit 0", words))
        agents[0].wait_closed(self.run(agents[0], "echo 3 problems; exit 1", "npm run lint"))
        self.run(agents[1], "sleep 1000", "node server.js --port 8080")
        self.run(agents[1], TOP, "top", tty=True)
        self.run(agents[0], BUILD, "make test")

    def run(self, agent, script, words, **options):
        """Runs a script by the name of a program that people know."""
        program = self.programs / words.split()[0]
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
        return agent.start(words.split(), cwd=f"file://{self.project}",
                           env={"PATH": f"{self.programs}:{PATH}"}, **options)


@pytest.fixture
def scene(control):
    with tempfile.TemporaryDirectory(prefix="x") as directory:
        yield Scene(control, pathlib.Path(directory))


# Text whose contrast with what is behind it is too low, and content that does not fit.
FAULTS = """(() => {
    const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) =>
        c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => {
        for (let one = node; one; one = one.parentElement) {
            const [r, g, b, a] = parse(getComputedStyle(one).backgroundColor);
            if (a === undefined || a > 0.9) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const faults = [];
    if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is wider than the window');
    for (const node of document.querySelectorAll('body *')) {
        if (!node.checkVisibility({opacityProperty: true}) || node.closest('.xterm, .gutter, [inert], :disabled')) continue;
        const words = [...node.childNodes].filter((one) => one.nodeType === 3 && one.data.trim()).map((one) => one.data.trim());
        const box = node.getBoundingClientRect();
        if (node.matches('button, summary, input, select') && (box.right > innerWidth + 1 || box.left < -1))
            faults.push('outside: ' + node.textContent);
        if (node.matches('button, summary') && node.scrollWidth > node.clientWidth + 2) faults.push('cut: ' + node.textContent);
        if (!words.length || !box.width) continue;
        const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${words[0].slice(0, 40)} (${node.className})`);
    }
    return faults;
})()"""


def take(page, size, dark, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}-{size}-{'dark' if dark else 'light'}.png").write_bytes(page.picture())
    faults = page.evaluate(FAULTS)
    assert not faults, (name, size, dark, faults)


@pytest.mark.parametrize("size", SIZES)
def test_pictures(scene, pages, size):
    page = pages(scene.server, size=SIZES[size], touch=size == "phone")
    page.wait("document.querySelectorAll('.processes .row').length === 8")
    views = {
        "terminal": lambda: (page.press("1"), page.press("Escape"), show_process(page, "top"),
                             page.wait_rows(lambda rows: any("Quit" in row for row in rows), "the screen")),
        "pipes": lambda: (page.press("1"), page.press("Escape"), show_process(page, "make test"),
                          page.wait_rows(lambda rows: any("42 tests" in row for row in rows), "the output")),
        "processes": lambda: (page.press("Escape"), page.wait("!document.querySelector('.process')")),
        "sessions": lambda: (page.press("2"), page.wait("document.querySelector('.sessions .row')")),
        "files": lambda: (page.press("3"), page.wait("document.querySelector('.filespane input').value"),
                          page.evaluate(f"document.querySelector('.filespane input').value = '{scene.project}/README.md'"),
                          page.click(".filespane .bar button", "Go"),
                          page.wait("document.querySelector('.content pre')")),
        "audit": lambda: (page.press("4"), page.wait("document.querySelector('.audit .row')")),
        "keys": lambda: (page.press("?"), page.wait("document.querySelector('dialog')")),
    }
    for name, show in views.items():
        show()
        for dark in (False, True):
            page.scheme(dark)
            page.wait(
                f"matchMedia('(prefers-color-scheme: {'dark' if dark else 'light'})').matches")
            # Two frames later everything is drawn in its new colours.
            page.evaluate(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            take(page, size, dark, name)
