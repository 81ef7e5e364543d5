"""Plays recorded sessions of the old server again, with another server in its place."""

import json
import re

from harness.recordings import PLACE

RECORDINGS = PLACE / "mcp"
# Sessions 12 and 13 are of a client and of wrappers.
FILES = sorted(path for path in RECORDINGS.glob("*.jsonl") if path.name < "12") if (
    RECORDINGS.is_dir()) else []


SPELLINGS = (
    (r'\\"duration\\":\{[^}]*\}', r'\\"duration\\":0'),
    (r"\b[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d\b", "DATE"),
    (r"(pipe|socket):\[\d+\]", r"\1:[N]"),
    (r"/proc/\d+/", "/proc/PID/"),
    (r"line 1: +\d+ Killed", "line 1: PID Killed"),
    (r"(SigQ:\\+t)[0-9/]+", r"\1N"),
    (r"(CapEff:\\+t)[0-9a-f]+", r"\1MASK"),
    (r"RUST_BACKTRACE=1\\+n", ""),
    # Our sandbox mounts read-only, the old one refuses by Landlock.
    ("Read-only file system", "Permission denied"),
    # A shim of the recording's host.
    (r"mktemp: failed to create file via template [^:]*: Permission denied(\\+n)?", ""),
    (r"\$PYENV|/[a-z/]*/\.pyenv", "PYENV"),
)


class Session:
    """The lines of one recorded session."""

    def __init__(self, file, name, lines):
        self.file, self.name, self.lines = file, name, lines
        start = next(line for line in lines if line["dir"] == "note" and "argv" in line)
        self.options = [word for word in start["argv"][1:] if word == "--preserve-program-paths"]
        self.rules = start.get("rules")
        self.exit = next((line["exit"] for line in lines if "exit" in line), None)

    def __repr__(self):
        return self.name


def sessions(path):
    """The sessions of one file."""
    made, lines, name = [], [], path.stem
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if line["dir"] == "note" and "session" in line:
            name = line["session"]
        elif line["dir"] == "note" and "argv" in line:
            lines = [line]
            made.append((name, lines))
        elif lines:
            lines.append(line)
    return [Session(path.stem, name, lines) for name, lines in made]


def every():
    return [session for path in FILES for session in sessions(path)]


def normal(value, places):
    """A message without what differs from run to run, and from host to host."""
    text = json.dumps(value)
    for real, name in places:
        text = text.replace(str(real), name)
    for pattern, to in SPELLINGS:
        text = re.sub(pattern, to, text)
    return json.loads(text)


def replay(session, server, places):
    """Yields (request, recorded answer, our answer) for each answered request."""
    places = [(str(real), name) for real, name in places]
    back = {name: real for real, name in places}
    requests = {}
    for line in session.lines[1:]:
        if line["dir"] == "c2s":
            text = json.dumps(line["msg"]) if "msg" in line else line.get("raw")
            if text is None:
                continue
            for name, real in back.items():
                text = text.replace(name, real)
            message = line.get("msg") or {}
            if "method" in message and "id" in message:
                requests[json.dumps(message["id"])] = message
            if server.ended:
                return
            server.line(text)
        elif line["dir"] == "s2c" and "msg" in line:
            message = line["msg"]
            if "method" in message:
                ours = server.other()
                yield None, normal(message, places), normal(ours, places)
            else:
                key = json.dumps(message["id"])
                ours = server.answer(message["id"])
                yield requests.get(key), normal(message, places), normal(ours, places)
