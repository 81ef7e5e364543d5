"""What the cases about sandboxes share: profiles in short, a place on disk, starts in it.

An entry is "ACCESS TARGET": access r, w, d or n; a target is a token (":root",
":project_roots/sub"), a pattern ("glob:PATTERN") or a path. In all texts `@` stands for the
place. A fixture is a list of names in it: "d/" a directory, "l->target" a link, "f=text" a file."""

import asyncio
import functools
import os
import re
import shutil

from .fscase import masked
from .peer import ABSENT

ACCESS = {"r": "read", "w": "write", "d": "deny", "n": "none"}
LEVEL = {"windowsSandboxLevel": "disabled"}
PATH = "/usr/bin:/bin"
HELPER = re.compile(r"^error -32603: (fs sandbox helper failed with status exit status: 101.*|"
                    r"Broken pipe \(os error 32\))$", re.DOTALL)
REGISTRY = "codex-bwrap-synthetic-mount-targets"  # what the reference keeps in TMPDIR
NAMESPACE = re.compile(r"\b(cgroup|ipc|mnt|net|pid|time|user|uts):\[(\d+)\]")
LISTED = re.compile(r"^([-dlcbps][rwxstST-]{9}) +\d+ (\S+) +(\S+) +(?:\d+|\d+, +\d+) "
                    r"+\w{3} +\d+ +[\d:]+ (.*)$", re.MULTILINE)

# What the reference client sends for a workspace that may be written.
WORK = ["r :root", "w :project_roots", "w :slash_tmp", "w :tmpdir", "r :project_roots/.git skip",
        "r :project_roots/.agents skip", "r :project_roots/.codex skip"]


def special(kind, **more):
    return {"type": "special", "value": {"kind": kind, **more}}


def target(text):
    """The path of an entry."""
    if text.startswith(":"):
        kind, slash, sub = text[1:].partition("/")
        return special(kind, **({"subpath": sub} if slash else {}))
    if text.startswith("glob:"):
        return {"type": "glob_pattern", "pattern": text.removeprefix("glob:")}
    if text.startswith("@"):
        text = "file://" + text
    return {"type": "path", "path": text}


def entry(text):
    if isinstance(text, dict):
        return text
    access, _, rest = text.partition(" ")
    rest, skip, _ = rest.partition(" skip")
    more = {"missing_path_behavior": "skip"} if skip else {}
    return {"path": target(rest), "access": ACCESS[access], **more}


def managed(*entries, network="restricted", **more):
    return {"type": "managed", "network": network,
            "file_system": {"type": "restricted", "entries": [entry(e) for e in entries], **more}}


def unrestricted(network):
    return {"type": "managed", "network": network, "file_system": {"type": "unrestricted"}}


def external(network):
    return {"type": "external", "network": network}


DISABLED = {"type": "disabled"}


def context(profile, roots=("@/ws",), cwd="file://@/ws", **more):
    """A sandbox object; `profile` is a list of entries or the permissions themselves."""
    uris = [r if ":" in r else f"file://{r}" for r in roots]
    made = {"permissions": managed(*profile) if isinstance(profile, (list, tuple)) else profile,
            **LEVEL, "cwd": cwd, "workspaceRoots": uris, **more}
    return {k: v for k, v in made.items() if v is not ABSENT}


def _mask_namespace(m):
    host = os.readlink(f"/proc/self/ns/{m[1]}")
    return f"{m[1]}:{'the host' if host == m[0] else 'its own'}"


def mask(text):
    """Leaves out what differs from run to run: sizes, counts and times of a listing, ids."""
    text = LISTED.sub(r"\1 \2 \3 \4", text)
    text = re.sub(r"^total \d+\n", "", text, flags=re.MULTILINE)
    text = NAMESPACE.sub(_mask_namespace, text)
    text = re.sub(r"/bindfile\w+", "/bindfile", text)
    return re.sub(r"thread 'main' \(\d+\)", "thread 'main'", text)


def outcome(process):
    """How a start ended, in one text: the error, or the end and the output."""
    if not isinstance(process.response, dict):
        return process.response
    end = process.exited()
    text = f"exit {end['exitCode']}" + (", denied" if end["sandboxDenied"] else "")
    if process.response["sandboxType"] != "linuxSeccomp":
        text += f", sandbox {process.response['sandboxType']}"
    for stream in ("stdout", "stderr", "pty"):
        if process.output(stream):
            text += f"\n[{stream}]\n{mask(process.text(stream))}"
    return text


@functools.cache
def shared():
    return asyncio.Lock()


class Place:
    """A directory for one start after the other, made anew each time."""

    def __init__(self, t, c):
        self.t, self.c = t, c
        self.root = os.path.join(t.dir, "p")
        self.count = 0

    @classmethod
    async def open(cls, t, server="plain"):
        return cls(t, await t.connect(server))

    def fill(self, value):
        """Puts the place's path in for `@`."""
        if isinstance(value, str):
            return value.replace("@", self.root)
        if isinstance(value, dict):
            return {k: self.fill(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.fill(v) for v in value]
        return value

    def make(self, *names, owner=None):
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("ws/", *names):
            name, arrow, link = self.fill(name).partition("->")
            name, equals, text = name.partition("=")
            path = os.path.join(self.root, name)
            os.makedirs(path if name.endswith("/") else os.path.dirname(path), exist_ok=True)
            if arrow:
                os.symlink(link, path)
            elif not name.endswith("/"):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text if equals else "x")
        if owner is not None:
            for top, directories, files in os.walk(self.root):
                for path in (top, *(os.path.join(top, n) for n in directories + files)):
                    os.lchown(path, owner, owner)

    def left(self):
        """What is there: directories with a slash, links with their target."""
        found = []
        for top, directories, files in os.walk(self.root):
            directories[:] = [d for d in directories if not d.startswith(REGISTRY)]
            for name in directories + files:
                path = os.path.join(top, name)
                mark = "->" + os.readlink(path) if os.path.islink(path) else \
                    "/" if os.path.isdir(path) else ""
                found.append(os.path.relpath(path, self.root) + mark)
        return " ".join(sorted(found))

    def start_params(self, command, sandbox=ABSENT, at="ws", env=None, **more):
        cwd = at if at.startswith("file:") else f"file://@/{at}"
        return self.fill({"cwd": cwd, "env": {"PATH": PATH, **(env or {})},
                          **({} if sandbox is ABSENT else {"sandbox": sandbox}), **more,
                          "argv": ["/bin/sh", "-c", command] if isinstance(command, str)
                          else command})

    async def start(self, command, sandbox=ABSENT, **more):
        """Starts it under a new id."""
        self.count += 1
        params = self.start_params(command, sandbox, **more)
        return await self.c.start(params.pop("argv"), processId=f"p{self.count}", **params)

    async def run(self, command, sandbox=ABSENT, alone=False, **more):
        """How it ends. `alone`: both sides would put names into one directory of the host."""
        if alone:
            async with shared():
                return await self.run(command, sandbox, **more)
        process = await self.start(command, sandbox, **more)
        if isinstance(process.response, dict):
            await process.until_closed()
        return outcome(process)

    async def see(self, label, command, sandbox=ABSENT, **more):
        """Runs it; shows how it ended and what is there afterwards."""
        got = await self.run(command, sandbox, **more)
        self.t.see(label, f"{got}\n[left] {self.left()}")

    async def call(self, method, **params):
        """A file call. Of the reference's helper that fails one or the other is told."""
        answer = masked(await self.c.call(f"fs/{method}", self.fill(params)))
        return HELPER.sub("error -32603: the helper failed", answer) \
            if isinstance(answer, str) else answer
