"""fs/watchMissing and fs/missingChanged."""

import asyncio
import os

from harness.case import case as register
from harness.fscase import Files

# The system has few inotify instances, 128 for a user as a rule.
GATE = asyncio.Semaphore(6)
GRACE = 0.2  # seconds more for a notification, on a busy machine


def case(name):
    """Registers a case of which few run at the same time."""
    def wrap(function):
        @register(name)
        async def gated(t):
            async with GATE:
                await function(t)
        return gated
    return wrap


class Watcher:
    """Watches on one connection; a second one shows when notifications have had their time."""

    @classmethod
    async def open(cls, t, user=False):
        self = cls()
        self.t = t
        self.files = await Files.open(t, user)
        self.barrier = await t.connect("user" if user else "plain")
        self.number = 0
        self.barriers = 0
        os.makedirs(os.path.join(t.dir, "barrier"), exist_ok=True)
        return self

    async def watch(self, label, *missing, number=None, **params):
        """Asks for the next id unless told another."""
        self.number = self.number + 1 if number is None else number
        params = {k: self.files.uri(v) for k, v in params.items()}
        answer = await self.files.c.call("fs/watchMissing", {
            "watchId": self.number, "missing": [self.files.uri(m) for m in missing], **params})
        self.t.see(label, answer)
        return answer

    def fired(self):
        return [n["params"]["watchId"] for n in self.files.c.notes]

    async def settle(self):
        """Waits until what happened before has been noticed."""
        self.barriers += 1
        path = os.path.join(self.t.dir, "barrier", str(self.barriers))
        before = len(self.barrier.notes)
        answer = await self.barrier.call("fs/watchMissing", {"watchId": self.barriers,
                                                             "missing": ["file://" + path]})
        if answer != {"watching": True}:
            raise AssertionError(f"barrier: {answer}")
        with open(path, "wb"):
            pass
        await self.barrier.until(lambda: len(self.barrier.notes) > before)
        await self.files.c.call("environment/status")

    async def after(self, label, *actions):
        """What has fired after the actions."""
        before = len(self.files.c.notes)
        for action in actions:
            action()
        await self.settle()
        try:
            grace = GRACE * 20 if self.t.alone else GRACE
            await self.files.c.until(lambda: len(self.files.c.notes) > before, grace)
        except asyncio.TimeoutError:
            pass
        self.t.see(label, self.fired())

    def path(self, name):
        return self.files.path(name)

    def make(self, name):
        return lambda: os.close(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o644))

    def mkdir(self, name):
        return lambda: os.mkdir(self.path(name))

    def rename(self, old, new):
        return lambda: os.rename(self.path(old), self.path(new))

    def unlink(self, name):
        return lambda: os.unlink(self.path(name))

    def append(self, name):
        def act():
            with open(self.path(name), "ab") as f:
                f.write(b"more")
        return act


FIRES = {
    "creation": ("new", lambda w: [w.make("new")]),
    "creation of a directory": ("new", lambda w: [w.mkdir("new")]),
    "creation of a link": ("new", lambda w: [lambda: os.symlink("x", w.path("new"))]),
    "creation of a hard link": ("new", lambda w: [lambda: os.link(w.path("f"), w.path("new"))]),
    "creation of a FIFO": ("new", lambda w: [lambda: os.mkfifo(w.path("new"))]),
    "rename into place": ("new", lambda w: [w.rename("f", "new")]),
    "rename of a directory into place": ("new", lambda w: [w.rename("d", "new")]),
    "made and removed": ("new", lambda w: [w.make("new"), w.unlink("new")]),
    "first missing ancestor": ("a/b/c", lambda w: [w.mkdir("a")]),
    "file as missing ancestor": ("a/b/c", lambda w: [w.make("a")]),
    "whole chain": ("a/b/c", lambda w: [lambda: os.makedirs(w.path("a/b/c"))]),
    "existing ancestor removed": ("ed/new", lambda w: [lambda: os.rmdir(w.path("ed"))]),
    "existing ancestor renamed": ("d/e/new", lambda w: [w.rename("d", "dd")]),
    "existing ancestor replaced": ("d/e/new", lambda w: [w.rename("d", "dd"), w.mkdir("d")]),
    "in a lower directory": ("d/e/new", lambda w: [w.make("d/e/new")]),
    "odd name": ("sp ace%\n☃", lambda w: [w.make("sp ace%\n☃")]),
    "bytes": (b"n\xff", lambda w: [w.make(b"n\xff")]),
    "mode of an ancestor": ("d/e/new", lambda w: [lambda: os.chmod(w.path("d"), 0o700)]),
    "mode of the parent": ("d/e/new", lambda w: [lambda: os.chmod(w.path("d/e"), 0o700)]),
    "times of the parent": ("d/e/new", lambda w: [lambda: os.utime(w.path("d/e"))]),
    "other case": ("new", lambda w: [w.make("New")]),
    "sibling that is not ASCII": ("new", lambda w: [w.make("é")]),
    "sibling that is not UTF-8": ("new", lambda w: [w.make(b"\xff")]),
    "sibling of what is not ASCII": ("é", lambda w: [w.make("new2")]),
    "non-ASCII elsewhere": ("d/new", lambda w: [w.make("ed/é")]),
    "non-ASCII sibling written": ("new", lambda w: [w.append("é0")]),
    "non-ASCII sibling removed": ("new", lambda w: [w.unlink("é0")]),
    "non-ASCII sibling renamed": ("new", lambda w: [w.rename("é0", "e0")]),
    "non-ASCII sibling gets a new mode": ("new", lambda w: [lambda: os.chmod(w.path("é0"), 0o600)]),
    "sibling of a non-ASCII ancestor": ("é1/new", lambda w: [w.make("new2")]),
    "write beside a non-ASCII ancestor": ("é1/new", lambda w: [w.append("f")]),
    "ancestor in other case": ("d/new", lambda w: [w.make("D")]),
    "sibling made": ("new", lambda w: [w.make("new2")]),
    "sibling removed": ("new", lambda w: [w.unlink("f")]),
    "sibling written": ("new", lambda w: [w.append("f")]),
    "sibling renamed": ("new", lambda w: [w.rename("f", "f2")]),
    "sibling of a missing ancestor": ("a/b", lambda w: [w.mkdir("aa")]),
    "parent listed": ("d/new", lambda w: [lambda: os.listdir(w.path("d"))]),
    "child of a sibling": ("new", lambda w: [w.make("d/new")]),
}
PRESENT = {
    "append": ("f", lambda w: [w.append("f")]),
    "truncate": ("f", lambda w: [lambda: os.truncate(w.path("f"), 3)]),
    "chmod": ("f", lambda w: [lambda: os.chmod(w.path("f"), 0o600)]),
    "utime": ("f", lambda w: [lambda: os.utime(w.path("f"))]),
    "read": ("f", lambda w: [lambda: open(w.path("f"), "rb").close()]),
    "unlink": ("f", lambda w: [w.unlink("f")]),
    "rename away": ("f", lambda w: [w.rename("f", "f2")]),
    "rename over": ("f", lambda w: [w.rename("empty", "f")]),
    "hard link": ("f", lambda w: [lambda: os.link(w.path("f"), w.path("f2"))]),
    "write through a hard link": ("hard", lambda w: [w.append("hl")]),
    "sibling made": ("f", lambda w: [w.make("sibling")]),
    "sibling written": ("f", lambda w: [w.append("empty")]),
    "opened to write": ("f", lambda w: [lambda: open(w.path("f"), "ab").close()]),
    "child of a directory": ("d", lambda w: [w.make("d/new")]),
    "grandchild of a directory": ("d", lambda w: [w.make("d/e/new")]),
    "child of a directory written": ("d", lambda w: [w.append("d/f")]),
    "mode of a directory": ("d", lambda w: [lambda: os.chmod(w.path("d"), 0o700)]),
    "directory removed": ("ed", lambda w: [lambda: os.rmdir(w.path("ed"))]),
    "parent renamed": ("d/f", lambda w: [w.rename("d", "dd")]),
    "FIFO": ("fifo", lambda w: [lambda: os.chmod(w.path("fifo"), 0o600)]),
}


def add_fires(name, path, actions):
    @case(f"missing: {name}")
    async def fires(t):
        w = await Watcher.open(t)
        if "non-ASCII" in name:
            t.file("t/é0")
            os.mkdir(w.path("é1"))
        await w.watch("watch", path)
        await w.after("fired", *actions(w))
        await w.after("once only", w.make("sticky/again"), w.make("new3"))


def add_present(name, path, actions):
    @case(f"present: {name}")
    async def fires(t):
        w = await Watcher.open(t)
        await w.watch("watch", "never/there", present=path)
        await w.after("fired", *actions(w))


for _name, (_path, _actions) in FIRES.items():
    add_fires(_name, _path, _actions)
for _name, (_path, _actions) in PRESENT.items():
    add_present(_name, _path, _actions)


@case("ids")
async def ids(t):
    w = await Watcher.open(t)
    await w.watch("zero", "a", number=0)
    await w.watch("five", "a", number=5)
    await w.watch("five again", "b", number=5)
    await w.watch("four", "b", number=4)
    await w.after("the first of five is watched", w.make("b"))
    await w.after("and fires", w.make("a"))
    await w.watch("five after it fired", "c", number=5)
    await w.watch("refused six", "a", number=6)
    await w.watch("six is used up", "c", number=6)
    await w.watch("largest", "c", number=2**64 - 1)
    await w.watch("nothing is larger", "e", number=2**64 - 1)
    await w.after("largest fires", w.make("c"))


@case("one at a time")
async def one_at_a_time(t):
    """Every way in which a watch ends or does not end the one before it."""
    w = await Watcher.open(t)
    many = [f"q{n}" for n in range(65)]
    for n, (label, missing, more) in enumerate((
            ("another", ["other"], {}), ("existing", ["f"], {}), ("nothing", [], {}),
            ("65", many, {}), ("dangling", ["dang"], {}), ("below a link", ["dl/x"], {}),
            ("below a file", ["f/x"], {}), ("absent present", ["other"], {"present": "nope"}),
            ("linked present", ["other"], {"present": "lnk"}),
            ("lower", ["other"], {"number": 1}))):
        await w.watch(f"{label}: first", f"first{n}")
        now = w.number
        await w.watch(f"{label}: second", *missing, **more)
        w.number = max(now, w.number)
        await w.after(f"{label}: fired", w.make(f"first{n}"))
    for n, missing in enumerate((["x"], ["file:///C:/x"], 5, ["file:///a?"])):
        await w.watch(f"{missing}: first", f"raw{n}")
        w.number += 1
        t.see(f"{missing}: second", await w.files.c.call("fs/watchMissing", {
            "watchId": w.number, "missing": missing}))
        await w.after(f"{missing}: fired", w.make(f"raw{n}"))


@case("what can be watched")
async def watchable(t):
    w = await Watcher.open(t)
    for missing in ("nope", "nope/x", "f", "d", "f/x", "lnk", "lnk/x", "dl/x", "dl/e/x", "dang",
                    "dang/x",
                    "loop1", "loop1/x", "fifo", "fifo/x", "sock/x", "null/x", "locked/x", "ed/x",
                    "toolong",
                    "dl/../nope2", "nope/", "", "long/x"):
        await w.watch(f"missing {missing}", missing)
    for present in ("f", "d", "nope", "lnk", "dl", "dl/f", "dang", "loop1", "fifo", "sock", "null",
                    "f/x",
                    "ed", "", "locked/f", "nope/x"):
        await w.watch(f"present {present}", "nope", present=present)
    for present in ("file:///", "file:///proc/version", "file:///dev/null", "file:///C:/x"):
        w.number += 1
        t.see(f"present {present}", await w.files.c.call("fs/watchMissing", {
            "watchId": w.number, "missing": [w.files.uri("nope")], "present": present}))
    for missing in ("file:///", "file:///nonexistent-conform", "file:///proc/nonexistent",
                    "file:///proc/self/nonexistent", "file:///C:/x"):
        w.number += 1
        t.see(f"missing {missing}", await w.files.c.call("fs/watchMissing", {
            "watchId": w.number, "missing": [missing]}))


@case("what a user can watch")
async def user_watchable(t):
    w = await Watcher.open(t, user=True)
    for missing in ("nope", "locked/x", "xonly/x", "ronly/x", "rodir/x", "others-dir/x"):
        await w.watch(f"missing {missing}", missing)
    for present in ("f", "others", "noperm", "locked", "locked/f", "xonly/f", "ronly/f", "ronly"):
        await w.watch(f"present {present}", "nope", present=present)


@case("numbers")
async def numbers(t):
    """At most 64 paths, and at most 64 directories."""
    w = await Watcher.open(t)
    for n in (1, 63, 64, 65, 200):
        await w.watch(f"{n} in one directory", *(f"x{i}" for i in range(n)))
    await w.watch("the same 64 times", *(["x"] * 64))
    for i in range(64):
        os.mkdir(w.path(f"d/{i}"))
    ancestors = len(w.files.root.strip("/").split("/")) + 2  # with the root and d
    for n in (64 - ancestors - 1, 64 - ancestors, 64 - ancestors + 1, 64):
        await w.watch(f"{n - 64 + ancestors} more than the rest", *(f"d/{i}/x" for i in range(n)))
    room = 64 - ancestors
    await w.watch("present in one of them", *(f"d/{i}/x" for i in range(room)), present="d/f")
    await w.watch("present is a directory", *(f"d/{i}/x" for i in range(room)), present="d/63")
    await w.watch("present elsewhere", *(f"d/{i}/x" for i in range(room)), present="full/g")
    await w.watch("present elsewhere, room for it", *(f"d/{i}/x" for i in range(room - 1)),
                  present="full/g")
    await w.after("the last of many fires", w.make(f"d/{room - 2}/x"))


@case("several paths")
async def several(t):
    w = await Watcher.open(t)
    for n, name in enumerate(("a", "d/b", "full/sub/c")):
        await w.watch(f"watch {name}", "a", "d/b", "full/sub/c", present="f")
        await w.after(f"{name} fires", w.make(name))
        os.unlink(w.path(name))
    await w.watch("one exists", "a", "f")
    await w.watch("one is foreign", "a", "d/b", present="f")
    await w.after("present fires", w.append("f"))


@case("connections")
async def connections(t):
    """Watches of two connections do not touch each other; one ends with its connection."""
    w = await Watcher.open(t)
    other = await t.connect()
    params = {"watchId": 1, "missing": [w.files.uri("new")]}
    t.see("other", await other.call("fs/watchMissing", params))
    await w.watch("this", "new")
    await w.after("this fired", w.make("new"))
    await other.until(lambda: other.notes)
    t.see("other fired", other.notes)
    third = await t.connect()
    t.see("third", await third.call("fs/watchMissing", {"watchId": 9,
                                                        "missing": [w.files.uri("new2")]}))
    await third.close()
    await w.after("after it left", w.make("new2"))


@case("by the server itself")
async def by_the_server(t):
    """Changes through the methods of the same connection fire as well, after their answers."""
    w = await Watcher.open(t)
    for n, (method, params) in enumerate((
            ("writeFile", {"dataBase64": ""}), ("createDirectory", {}),
            ("open", {"handleId": "h", "mode": "replace"}))):
        await w.watch(f"{method} watch", f"new{n}")
        t.see(f"{method} answer", await w.files.call(method, f"new{n}", **params))
        await w.after(f"{method} fired")
    await w.watch("copy watch", "copied/deep")
    t.see("copy", await w.files.call("copy", sourcePath=w.files.uri("d"), recursive=True,
                                     destinationPath=w.files.uri("copied")))
    await w.after("copy fired")
    await w.watch("remove watch", "full/nope")
    t.see("remove", await w.files.call("remove", "full"))
    await w.after("remove fired")
