"""A server with a console, and what a viewer does first."""

import os
import pathlib
import re

from harness.server import Server
from harness.waiting import until

HERE = pathlib.Path(__file__).resolve().parent
PAGE = os.environ.get("CONSOLE_PAGE")  # files to serve instead of the embedded ones
PICTURES = pathlib.Path(
    os.environ.get(
        "CONSOLE_PICTURES",
        HERE.parents[1] /
        "build" /
         "console-pictures"))
LINK = re.compile(r"^console: (http://\S+/#([\w-]+))$", re.MULTILINE)


class Console(Server):
    """A server with a console; its log has errors alone."""

    def __init__(self, *args, control=False, console="ws://127.0.0.1:0", **options):
        more = ["--console", console, *(["--console-control"] if control else []),
                *(["--console-page", PAGE] if PAGE else [])]
        super().__init__(*more, *args, quiet=False, env={"EXEC_SERVER_LOG": "error"}, **options)
        found = until(lambda: LINK.search(self.stderr()), "the console's link")
        self.link, self.token = found.groups()
        self.origin = self.link.partition("/#")[0]
        self.port = int(self.origin.rpartition(":")[2])

    def wait(self, seconds=None):
        said = LINK.sub("", self.stderr()).strip()
        code = super().wait(seconds)
        assert said == "", said
        return code


def inside(url, origin):
    return url.startswith((f"{origin}/", f"ws{origin.removeprefix('http')}/", f"blob:{origin}/"))


def ready(page):
    page.wait("document.getElementById('status').dataset.state === 'ready'", "a connection")


def show_process(page, words):
    """Opens the process whose command has these words, and returns when its terminal is there."""
    page.wait("[...document.querySelectorAll('.processes .row .command')].some((one) => "
              f"one.textContent.includes({words!r}))", f"a row with {words}")
    page.evaluate("[...document.querySelectorAll('.processes .row .command')].find((one) => "
                  f"one.textContent.includes({words!r})).click()")
    page.wait(f"document.querySelector('.process .command')?.textContent.includes({words!r}) && "
              "document.querySelector('.xterm-rows')?.children.length > 0", "its terminal")
