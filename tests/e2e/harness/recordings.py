"""Exchanges that were recorded with the reference, from a directory beside the checkout."""

import json
import os
from pathlib import Path

from .settings import ROOT

PLACE = Path(os.environ.get("E2E_RECORDINGS", ROOT.parent / "shared" / "golden"))

# Begins the reason of a skipped test.
MISSING = "NO RECORDINGS"

# Topics whose files hold exchanges of this protocol, as JSON lines.
TOPICS = ("fs", "process", "sandbox", "wire")
# Marks of what a recording left out: such a message cannot be judged.
SHORTENED = ("...<", "<redacted>", "characters elided>")


def decoded(text):
    """The JSON text of one message; None if it is none, or says a name twice."""
    def members(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a duplicate name")
        return dict(pairs)
    try:
        return json.loads(text, object_pairs_hook=members)
    except (ValueError, RecursionError):
        return None


def message_of(value):
    """A recorded message as an object; None if it is not one JSON object, or not complete."""
    if isinstance(value, dict) and set(value) == {"raw"}:
        value = value["raw"]
    message = decoded(value) if isinstance(value, str) else value
    if not isinstance(message, dict) or any(mark in json.dumps(message) for mark in SHORTENED):
        return None
    return message


def messages(line):
    """(direction, connection, message) of what one line recorded."""
    where = line.get("conn", 0)
    if line.get("dir") in ("c2s", "s2c") and "msg" in line:
        yield line["dir"], where, message_of(line["msg"])
    elif "case" in line and isinstance(line.get("s2c"), str):
        # A case is an exchange of its own.
        where = "case", line["case"]
        yield "c2s", where, message_of(line.get("c2s"))
        yield "s2c", where, message_of(line["s2c"])


def files():
    return sorted(path for topic in TOPICS for path in (PLACE / topic).glob("*.jsonl"))


class Exchange:
    """A message of the server, and the request that it answers."""

    def __init__(self, path, message, asked):
        self.where = f"{path.parent.name}/{path.name}"
        self.message = message
        self.asked = asked  # requests with its id that have no answer yet
        self.notifies = "method" in message

    def choose(self, fits):
        """The first of these requests that the answer fits; None if there is none."""
        first = next((request for request in self.asked if fits(request["method"])), None)
        chosen = first or next(iter(self.asked), None)
        if chosen is not None:
            self.asked.remove(chosen)
        return chosen


def exchanges(path):
    """Every message of the server in a file; None in place of one that is not complete."""
    asked = {}
    for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        for direction, where, message in messages(json.loads(line)):
            if direction == "s2c":
                key = message and (where, json.dumps(message.get("id")))
                yield message and Exchange(path, message, asked.get(key, []))
            elif message and "method" in message and "id" in message:
                if message["method"] == "initialize":  # a new connection; the old one may have hung
                    asked = {key: [] if key[0] == where else v for key, v in asked.items()}
                key = where, json.dumps(message["id"])
                asked.setdefault(key, []).append(message)
