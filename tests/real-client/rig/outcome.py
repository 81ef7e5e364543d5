"""What a scenario led to, in a form that can be compared between two servers."""

import hashlib
import os
import re

# What differs from run to run.
VOLATILE = (
    (re.compile(r"127\.0\.0\.1([:/])\d+"), r"127.0.0.1\1PORT"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"[Pp]rocess id \d+|\bsession \d+"), "process N"),
    (re.compile(r"Wall time: [\d.]+"), "Wall time: N"),
    (re.compile(r"(?m)^\[(\d)\] \d+"), r"[\1] PID"),
    # How a connection was lost.
    (re.compile(r"transport disconnected: [^;]*"), "transport disconnected"),
)
FILE_METHODS = ("fs/readFile", "fs/writeFile", "fs/createDirectory", "fs/remove", "fs/open")
KEPT = 4000  # characters of a text; of a longer one the digest counts


def plain(text, root):
    text = text.replace(root, "ROOT")
    for pattern, name in VOLATILE:
        text = pattern.sub(name, text)
    if len(text) > KEPT:
        return f"{len(text)} characters, {hashlib.sha256(text.encode()).hexdigest()}"
    return text


def processes(bench):
    """Each process: how it was started, what it wrote, how it ended. Commands that run at the
    same time may start in any order."""
    found = []
    for p in bench.proxy.processes() if bench.proxy else ():
        error = p["error"] and [p["error"]["code"], plain(p["error"]["message"], bench.root)]
        ended = f"code {p['code']}, denied {p['denied']}, error {error}"
        # Its end may be told after the client has gone.
        ended = "ended by the client" if p["terminated"] and p["code"] in (None, 137) else ended
        found.append([plain(" ".join(p["argv"]), bench.root),
                      f"tty {p['tty']}, sandboxed {p['sandboxed']}, type {p['type']}", ended,
                      {name: plain(data.decode("utf-8", "replace"), bench.root)
                       for name, data in sorted(p["streams"].items())}])
    return sorted(found, key=lambda entry: entry[:3])


def calls(bench):
    """What the tools told the model. How often it had to ask again depends on the time."""
    found = []
    for model in bench.models:
        for o in model.outputs:
            if o.tool in ("exec_command", "write_stdin"):
                if o.code is not None:
                    found.append(f"exit code {o.code}")
                elif o.session is None:
                    found.append(plain(o.text, bench.root))
            else:
                found.append(plain(o.text, bench.root))
    return found


def files(bench):
    """Calls of the file system with their errors, each once, without the probes of the start."""
    lines = set()
    for method in sorted(FILE_METHODS) if bench.proxy else ():
        for c in bench.proxy.calls(method):
            error = c.get("error")
            sandboxed = " sandboxed" if c["params"].get("sandbox") else ""
            if "result" in c or error:
                answer = f"{error['code']} {error['message']}" if error else "ok"
                lines.add(plain(f"{method} {c['params']['path']}{sandboxed}: {answer}", bench.root))
    return sorted(lines)


def tree(bench):
    """Names, kinds and contents below the working directory and the one beside it."""
    found = []
    for top in (bench.work, bench.outside):
        for directory, names, rest in os.walk(top):
            if os.path.basename(directory) == ".git" and "objects" in names:
                names.clear()  # a real repository; its files hold times
                continue
            for name in sorted(names + rest):
                path = os.path.join(directory, name)
                short = os.path.relpath(path, bench.root)
                if os.path.islink(path):
                    found.append(f"{short} -> {plain(os.readlink(path), bench.root)}")
                elif os.path.isfile(path) and not name.endswith(".pid"):  # numbers of processes
                    with open(path, "rb") as f:
                        found.append(f"{short} {hashlib.sha256(f.read()).hexdigest()[:16]}")
                elif os.path.isdir(path):
                    found.append(f"{short}/")
    return sorted(found)


def outcome(bench):
    return {"processes": processes(bench), "calls": calls(bench), "files": files(bench),
            "tree": tree(bench)}


def differences(ours, theirs, excused):
    """Lines that say where two outcomes differ, without what is excused by its key."""
    lines = []
    for key in ours:
        if key in excused or ours[key] == theirs[key]:
            continue
        a, b = ours[key], theirs[key]
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        lines.append(f"{key}: ours {a[at:at + 1]!r:.700}, reference {b[at:at + 1]!r:.700}")
    return lines
