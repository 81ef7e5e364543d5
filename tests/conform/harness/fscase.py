"""What the cases about files share: the fixture tree, its URIs, calls and their effects."""

import os
import stat
import time
import urllib.parse

from .fstree import USER, Tree, changes, raw, snapshot, top

WALK = {"maxDepth": 8, "maxDirectories": 100, "maxEntries": 1000, "followDirectorySymlinks": False}

# Every kind of path that the tables of the methods tell apart; "" is the tree itself.
PATHS = ["f", "empty", "nope", "nope/x", "f/x", "f/x/y", "d", "d/f", "d/e/f", "ed", "full", "lnk",
         "lnk/x", "abs", "dl", "dl/f", "dl/e/f", "dl/nope", "ll", "dang", "dang/x", "dangdeep",
         "dang-in-dir", "loop1", "loop1/x", "self", "fifo", "fifo/x", "fifolnk", "sock", "null",
         "null/x", "nulllnk", "blk", "hl", "ro", "noperm", "suid", "dl/../f", "d/", "f/", "dl/",
         "lnk/", "d/./f", "long", "toolong", "rodir/f", "rodir/new", "locked/f", "locked/nope",
         "locked", "xonly/f", "xonly/new", "xonly", "ronly", "ronly/f", "lnk-locked", "others",
         "others-dir/f", "others-dir/new", "sticky/other", "sticky/mine", "sticky/otherlnk", ""]
WAITS_ON_WRITE = ("fifo", "fifolnk")  # the reference waits for a reader


def build(root, user, only=None):
    """The fixture. With `user` it belongs to the plain user but for what is named others."""
    t = Tree(root, USER if user else None, only)
    t.file("f", b"0123456789")
    t.file("empty")
    t.directory("d")
    t.file("d/f", b"F")
    t.directory("d/e")
    t.file("d/e/f", b"EF")
    t.directory("ed")
    t.directory("full", 0o750)
    t.file("full/g", b"G", 0o600)
    t.directory("full/sub")
    t.file("full/sub/h", b"H")
    t.link("full/toh", "sub/h")
    t.fifo("full/fifo")
    t.link("lnk", "f")
    t.link("abs", "/d/f")
    t.link("dl", "d")
    t.link("ll", "lnk")
    t.link("dang", "nowhere")
    t.link("dangdeep", "no/where")
    t.link("dang-in-dir", "ed/made")
    t.link("loop1", "loop2")
    t.link("loop2", "loop1")
    t.link("self", "self")
    t.fifo("fifo")
    t.link("fifolnk", "fifo")
    t.socket("sock")
    t.link_outside("nulllnk", "/dev/null")
    t.device("null")
    t.device("blk", stat.S_IFBLK, 240, 0)  # of no driver
    t.file("hard", b"hard")
    t.hard("hl", "hard")
    t.file("ro", b"ro", 0o444)
    t.file("noperm", b"np", 0)
    t.file("suid", b"suid", 0o4755)
    t.file("long".ljust(255, "g"), b"L")
    for name, mode in (("rodir", 0o555), ("locked", 0), ("xonly", 0o311), ("ronly", 0o444)):
        t.directory(name, mode)
        t.file(f"{name}/f", name)
        t.directory(f"{name}/sub")
        t.link(f"{name}/l", "f")
    t.link("lnk-locked", "locked/f")
    t.file("others", b"o", 0o644)
    t.directory("others-dir")
    t.file("others-dir/f", b"of", 0o600)
    t.directory("sticky", 0o1777)
    t.file("sticky/mine", b"mine")
    t.file("sticky/other", b"other", 0o666)
    t.link("sticky/otherlnk", "other")
    for name in (b"others", b"others-dir", b"others-dir/f", b"sticky", b"sticky/other",
                 b"sticky/otherlnk"):
        t.owners[name] = 0
    t.finish()
    return t


def real(name):
    return {"long": "long".ljust(255, "g"), "toolong": "long".ljust(256, "g")}.get(name, name)


def masked(answer):
    """An answer without what differs from run to run: times of now, order of a listing."""
    if not isinstance(answer, dict):
        return answer
    now = time.time() * 1000
    out = {}
    for key, value in answer.items():
        if key in ("createdAtMs", "modifiedAtMs") and isinstance(value, int) \
                and abs(value - now) < 3_600_000:
            value = "<now>"
        out[key] = value
    if out.get("entries") and "fileName" in out["entries"][0]:
        out["entries"] = sorted(out["entries"], key=lambda e: (e["fileName"], str(e)))
    return out


class Files:
    """The fixture of a case and a connection to work on it."""

    def __init__(self, t, c, user):
        self.t = t
        self.c = c
        self.user = user
        self.root = os.path.join(t.dir, "t")
        self.state = None
        self.reset()

    @classmethod
    async def open(cls, t, user=False, server=None):
        return cls(t, await t.connect(server or ("user" if user else "plain")), user)

    def reset(self):
        build(self.root, self.user)
        self.state = snapshot(self.root)

    def repair(self, done):
        """Makes anew what was changed."""
        if "" in done:
            self.reset()
            return
        build(self.root, self.user, {top(name) for name in done})
        left = changes(self.state, snapshot(self.root))
        if left:
            raise AssertionError(f"not repaired: {left}")

    def path(self, name):
        return os.path.join(raw(self.root), raw(real(name)))

    def uri(self, name):
        """Quotes what must be quoted, and keeps dots and slashes as they are."""
        text = raw(self.root) + (b"/" + raw(real(name)) if name else b"")
        return "file://" + urllib.parse.quote(text)

    async def call(self, method, name=None, **params):
        """Calls a method; `name` is the path in the tree."""
        params = {k: v for k, v in params.items() if v is not None}
        if name is not None:
            params = {"path": self.uri(name), **params}
        return masked(await self.c.call(f"fs/{method}", params))

    async def see(self, label, method, name=None, **params):
        """A call that changes nothing."""
        self.t.see(label, await self.call(method, name, **params))

    async def effect(self, label, method, name=None, **params):
        """A call, what it answers and what it does to the tree, which is then made anew."""
        answer = await self.call(method, name, **params)
        done = changes(self.state, snapshot(self.root))
        self.t.see(label, {"answer": answer, "changes": done} if done else answer)
        if done:
            self.repair(done)


def both(name="follow"):
    return ((f"{name} default", None), (f"{name} true", True), (f"{name} false", False))


