"""File calls in a sandbox: what profiles allow, through every method."""

import contextlib

from harness.case import case
from harness.fscase import WALK
from harness.peer import ABSENT
from harness.sandbox import (DISABLED, LEVEL, Place, context, entry, external, managed, shared,
                             unrestricted)

TREE = ["ws/f=F", "ws/sub/", "ws/deny/s=S", "ws/.git/config=C", "out/f=O", "ws/link->../out/f",
        "ws/dlink->../out"]
WORLD = {
    "read": ["r :root"],
    "work": ["r :root", "w :project_roots"],
    "work, denied": ["r :root", "w :project_roots", "d @/ws/deny"],
    "minimal": ["r :minimal", "w :project_roots"],
    "nothing": [],
    "root written, denied": ["w :root", "d @/ws/deny"],
    "root written": ["w :root"],
    "unrestricted": unrestricted("restricted"),
    "external": external("restricted"),
    "disabled": DISABLED,
}


# Of those that must run alone.
FEW = ("read ws/f", "write out/n", "remove ws/.git", "walk ws", "open ws/f")


def uri(name):
    return f"file://@/{name}"


def calls():
    """Label, method and params of a call of each kind."""
    for name in ("ws/f", "out/f", "ws/deny/s", "ws/nope", "ws/sub", "ws/link"):
        yield f"read {name}", "readFile", {"path": uri(name)}
    yield "read ws/link itself", "readFile", {"path": uri("ws/link"), "followSymlinks": False}
    for name in ("ws/n", "out/n", "ws/.git/c", "ws/.codex/c", "ws/link", "ws/deny/n"):
        yield f"write {name}", "writeFile", {"path": uri(name), "dataBase64": "eA=="}
    for name in ("ws/d/e", "out/d", "ws/.codex"):
        yield f"make {name}", "createDirectory", {"path": uri(name), "recursive": True}
    for name in ("ws/f", "ws/deny/s"):
        yield f"look at {name}", "getMetadata", {"path": uri(name)}
    yield "resolve ws/dlink", "canonicalize", {"path": uri("ws/dlink")}
    for name in ("ws", "ws/deny"):
        yield f"list {name}", "readDirectory", {"path": uri(name)}
    for name in ("ws/f", "out/f"):
        yield f"remove {name}", "remove", {"path": uri(name), "recursive": False, "force": False}
    yield "remove ws/.git", "remove", {"path": uri("ws/.git"), "recursive": True, "force": True}
    for source, goal in (("ws/f", "ws/g"), ("ws/f", "out/g"), ("ws/deny/s", "ws/g")):
        yield f"copy {source} to {goal}", "copy", {
            "sourcePath": uri(source), "destinationPath": uri(goal), "recursive": False}
    yield "open ws/f", "open", {"path": uri("ws/f"), "handleId": "h"}
    yield "walk ws", "walk", {"path": uri("ws"), "options": {**WALK, "maxDepth": 2}}


class Tree(Place):
    """A place that is made anew after each change."""

    def __init__(self, t, c, tree, sandbox):
        super().__init__(t, c)
        self.tree, self.sandbox = tree, sandbox
        self.make(*tree)
        self.before = self.left()
        # Where the root is written to but for some, both sides put names into that of the host.
        entries = sandbox["permissions"].get("file_system", {}).get("entries", [])
        self.alone = entry("w :root") in entries and any(
            e["access"] != "write" and e["path"]["type"] == "path" for e in entries)

    @classmethod
    async def open(cls, t, tree, sandbox):  # pylint: disable=arguments-differ,arguments-renamed
        return cls(t, await t.connect(), tree, sandbox)

    async def see(self, label, method, params):  # pylint: disable=arguments-differ
        """A call, and what is there afterwards if that has changed."""
        async with shared() if self.alone else contextlib.nullcontext():
            answer = await self.call(method, **params, sandbox=self.sandbox)
        after = self.left()
        if after == self.before:
            self.t.see(label, answer)
        else:
            self.t.see(label, {"answer": answer, "left": after})
            self.make(*self.tree)
        if method == "open":
            await self.call("close", handleId=params["handleId"])


def add_world(name, profile):
    @case(f"every call: {name}")
    async def world(t):
        place = await Tree.open(t, TREE, context(profile))
        for label, method, params in calls():
            if not place.alone or label in FEW or "deny" in label:
                await place.see(label, method, params)


for _name, _profile in WORLD.items():
    add_world(_name, _profile)


# Read and write access to a directory each, and neither to a third.
THREE = ["ok/f=OK", "ok/sub/", "no/f=NO", "rw/f=RW", "rw/.git/config=C", "rw/sub/x", "ws/f=WS",
         "ok/esc->../no/f", "ok/escd->../no", "rw/l->f"]


def add_three(group, rows):
    @case(f"some read, some written: {group}")
    async def three(t):
        sandbox = {"permissions": managed("r @/ok", "w @/rw"), **LEVEL}
        place = await Tree.open(t, THREE, sandbox)
        for n, (method, params) in enumerate(rows):
            path = params.get("path", params.get("sourcePath")).removeprefix("file://")
            await place.see(f"{n} {method} {path}", method, params)


def at(name):
    return name if name.startswith("file:") else uri(name)


def each(method, names, **more):
    return [(method, {"path": at(name), **more}) for name in names]


def copies(*rows):
    return [("copy", {"sourcePath": uri(source), "destinationPath": uri(goal),
                      "recursive": recursive}) for source, goal, recursive in rows]


DEEP = {"options": {**WALK, "maxDepth": 3, "followDirectorySymlinks": True}}
add_three("reading", [
    *each("readFile", ["ok/f", "no/f", "rw/f", "ok/nope", "ok", "ok/esc", "ok/escd/f",
                       "file:///etc/hostname", "file:///etc/passwd", "file:///var/lib/dpkg/status",
                       "file:///C:/x"]),
    *each("readFile", ["ok/f", "rw/f", "no/f"], followSymlinks=False),
    *each("getMetadata", ["ok/", "ok", "no", "no/f", "ok/f", "rw/.git", "ok/esc", "file:///home",
                          "file:///srv"]),
    *each("canonicalize", ["ok/f", "no/f", "ok/esc", "ok/escd"]),
    *each("readDirectory", ["", "ok", "no", "rw"]),
    *each("walk", ["ok", "no", ""], **DEEP),
    ("walk", {"path": uri("ok"), "options": {**WALK, "maxDepth": 99}})])
add_three("writing", [
    *each("writeFile", ["ok/f", "ok/new", "no/new", "rw/new", "rw/f", "rw/.git/config",
                        "rw/.git/new", "rw/.codex/x", "rw/.agents", "rw/sub/y", "rw/l",
                        "file:///etc/conform-x"], dataBase64="Vw=="),
    ("writeFile", {"path": uri("rw/bad"), "dataBase64": "!!"}),
    *each("createDirectory", ["ok/d", "no/d", "rw/d", "rw/.codex", "rw/.git/d", "rw/a/b/c",
                              "ok/sub", "ok", "file:///"]),
    *each("createDirectory", ["rw/sub", "ok/sub", "rw/new"], recursive=False),
    *each("remove", ["ok/f", "no/f", "rw/f", "rw/.git", "rw/sub", "no/nope", "ok/nope", "rw"]),
    *each("remove", ["no/f"], force=False),
    *copies(("ok/f", "rw/c", False), ("no/f", "rw/c2", False), ("ok/f", "ok/c", False),
            ("ok/f", "no/c", False), ("ok", "rw/okc", True), ("ok", "rw/x", False),
            ("rw/f", "rw/.aws/x", False))])
add_three("handles", [
    *each("open", ["ok/f", "no/f", "ok", "ok/nope", "ok/esc", "file:///dev/null"], handleId="h"),
    *each("open", ["ok/f", "rw/wr", "rw/.git/x", "no/x"], handleId="w", mode="replace")])


@case("blocks of a handle")
async def blocks(t):
    """The sandbox counts when a file is opened."""
    place = await Place.open(t)
    place.make(*THREE)
    sandbox = {"permissions": managed("r @/ok", "w @/rw"), **LEVEL}
    t.see("open", [await place.call("open", path=uri("ok/f"), handleId="r", sandbox=sandbox),
                   await place.call("open", path=uri("rw/n"), handleId="w", mode="replace",
                                    sandbox=sandbox)])
    t.see("read", await place.call("readBlock", handleId="r", offset=0, len=10))
    t.see("write", await place.call("writeBlock", handleId="w", offset=0, chunk="dmlh"))
    t.see("close", [await place.call("close", handleId=h) for h in "rw"])
    t.see("left", place.left())


# Which calls need a sandbox at all: profiles without workspace or working directory.
SOME = ["readFile", "readFile itself", "open", "getMetadata", "getMetadata itself", "canonicalize",
        "readDirectory", "walk", "writeFile", "open to write", "createDirectory", "copy", "remove",
        "remove nothing"]
BYPASS = {
    "root read": ["r :root"], "root read, some written": ["r :root", "w @/rw"],
    "root written, some read": ["w :root", "r @/no"], "root as a path": ["r file:///"],
    "root read, some denied": ["r :root", "d @/no"], "root denied": ["d :root", "r @/ok"],
}


def bypass_call(kind):
    name = {"readDirectory": "ok", "walk": "ok", "writeFile": "rw/n", "open to write": "rw/n",
            "createDirectory": "rw/d", "remove": "rw/f", "remove nothing": "rw/nope"}.get(
                kind, "ok/f")
    params = {"path": uri(name), **({"followSymlinks": False} if "itself" in kind else {})}
    method = kind.split()[0]
    if method == "open":
        params |= {"handleId": "h", **({"mode": "replace"} if "write" in kind else {})}
    if method == "walk":
        params |= DEEP
    if method == "writeFile":
        params["dataBase64"] = ""
    if method == "copy":
        params = {"sourcePath": uri("ok/f"), "destinationPath": uri("rw/c"), "recursive": False}
    return method, params


def add_bypass(name, profile):
    @case(f"direct or not: {name}")
    async def bypass(t):
        place = await Tree.open(t, THREE, {"permissions": managed(*profile), **LEVEL})
        for kind in SOME:
            await place.see(kind, *bypass_call(kind))


for _name, _profile in BYPASS.items():
    add_bypass(_name, _profile)


@case("nothing vanishes")
async def phantoms(t):
    place = await Tree.open(t, THREE, {"permissions": managed("r @/ok"), **LEVEL})
    for n, (method, params) in enumerate([
            *each("writeFile", ["phantom", "file:///conform-phantom", "file:///srv/conform-phantom",
                                "file:///home/x", "file:///etc/ph"], dataBase64="eA=="),
            *each("createDirectory", ["file:///var/tmp/conform-phantom", "ok/x"]),
            *copies(("ok/f", "phantomcopy", False)),
            *each("open", ["phantomopen"], handleId="p", mode="replace"),
            *each("remove", ["no", "ok"])]):
        await place.see(f"{n} {method}", method, params)


READS, WRITES = ("ok/f", "no/f", "ws/f", "rw/f"), ("ws/new", "rw/new", "ok/new")
UNKNOWN = {"kind": "unknown", "path": ":x"}


def token(value, access):
    return {"path": {"type": "special", "value": value}, "access": access}


HERE, ROOT_HERE = {"cwd": uri("ws")}, {"cwd": uri("ws"), "workspaceRoots": [uri("ws")]}
POLICIES = {
    "disabled": (DISABLED, {}), "external": (external("enabled"), {}),
    "unrestricted": (unrestricted("restricted"), {}),
    "root written": (["w :root"], {}), "root read": (["r :root"], {}),
    "root written, minimal": (["w :root", "r :minimal"], {}),
    "root written, unknown": (["w :root", token(UNKNOWN, "read")], {}),
    "root written, read": (["w :root", "r @/no"], {}),
    "root written, read and written": (["w :root", "r @/no", "w @/no"], {}),
    "root written, denied": (["w :root", "d @/no"], {}),
    "root read, none": (["r :root", "n @/no"], {}),
    "unknown written": ([token(UNKNOWN, "write"), "r @/ok"], {}),
    "tmpdir": (["w :tmpdir", "r @/ok"], {}),
    "tmpdir, listed": (["w :tmpdir", "r @/ok"], {"temporaryDirectories": [uri("ws")]}),
    "roots, none": (["w :project_roots"], {}),
    "roots, no cwd": (["w :project_roots"], {"workspaceRoots": [uri("ws")]}),
    "roots, cwd": (["w :project_roots"], HERE),
    "roots, both": (["w :project_roots"], ROOT_HERE),
    "roots, another cwd": (["w :project_roots"], {**ROOT_HERE, "cwd": uri("ok")}),
    "roots, context": (["w :project_roots"], {"policyContext": ROOT_HERE}),
    "roots, context without roots": (["w :project_roots"], {"policyContext": HERE}),
    "roots, context wins": (["w :project_roots"], {
        "cwd": uri("ok"), "workspaceRoots": [uri("ok")], "policyContext": ROOT_HERE}),
    "roots, old name": (["w :current_working_directory"], {}),
    "roots, subpath": (["r :project_roots/f"], ROOT_HERE),
    "foreign root": (["r @/ok"], {"workspaceRoots": ["file:///C:/x"]}),
    "foreign cwd": (["r @/ok"], {"cwd": "file:///C:/x"}),
    "cwd with host": (["r @/ok"], {"cwd": "file://server/x"}),
    "foreign entry": (["r file:///C:/x"], {}),
    "cwd missing": (["r @/ok"], {"cwd": "file:///nonexistent"}),
    "missing, read": (["r @/ok", "r @/missing"], {}),
    "missing, written": (["r @/ok", "w @/missing"], {}),
    "missing, written, skip": (["r @/ok", "w @/missing skip"], {}),
    "missing, denied": (["r @/ok", "d @/ok/missing"], {}),
    "pattern, read": (["r :root", "r glob:@/**/.env"], {}),
    "pattern, no cwd": (["r :root", "d glob:**/*.env"], {}),
    "pattern": (["r :root", "d glob:@/ws/**"], {}),
    "pattern, relative": (["r :root", "d glob:**/f"], HERE),
    "pattern, roots": (["r :root", "d glob:codex-project-roots://**/f"], ROOT_HERE),
    **{f"override {o}": (["r @/ok"], {"sandboxOverride": o}) for o in (
        "noOverride", "escalatedSandboxWithRestrictions", "bypassSandboxFirstAttempt")},
    "legacy Landlock": (["r @/ok", "w @/rw"], {"useLegacyLandlock": True}),
    "legacy Landlock, full read": (["r :root", "w @/rw"], {"useLegacyLandlock": True}),
    "MXC": (["r :root", "w @/rw"], {"windowsSandboxLevel": "mxc"}),
}


def add_policy(name, profile, more):
    @case(f"policy: {name}")
    async def policy(t):
        sandbox = context(profile, **{"cwd": ABSENT, "workspaceRoots": ABSENT, **more})
        place = await Tree.open(t, THREE, sandbox)
        for path in READS:
            await place.see(f"read {path}", "readFile", {"path": uri(path)})
        for path in WRITES:
            await place.see(f"write {path}", "writeFile", {"path": uri(path), "dataBase64": ""})


for _name, (_profile, _more) in POLICIES.items():
    add_policy(_name, _profile, _more)


@case("denied by a pattern")
async def pattern(t):
    """What a file that is denied looks like."""
    for name, profile in (("pattern", ["r :root", "d glob:@/ws/f*"]),
                          ("path", ["r :root", "d @/ws/deny"])):
        place = await Tree.open(t, ["ws/f=hello", "ws/deny/s"], {
            "permissions": managed(*profile), **LEVEL, "cwd": uri("ws")})
        for label, method, params in (
                ("open f", "open", {"path": uri("ws/f"), "handleId": "h"}),
                ("open deny/s", "open", {"path": uri("ws/deny/s"), "handleId": "h"}),
                ("open deny", "open", {"path": uri("ws/deny"), "handleId": "h"}),
                ("open nope", "open", {"path": uri("ws/nope"), "handleId": "h"}),
                ("list", "readDirectory", {"path": uri("ws")}),
                ("look at f", "getMetadata", {"path": uri("ws/f")}),
                ("resolve", "canonicalize", {"path": uri("ws/deny/../f")})):
            await place.see(f"{name}, {label}", method, params)
