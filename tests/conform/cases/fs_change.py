"""The methods that write, make and remove, on every kind of path, as root and as a plain user:
the answer and what became of the tree."""

import os

from harness.case import case
from harness.fscase import PATHS, WAITS_ON_WRITE, Files
from harness.peer import b64
from harness.values import BASE64

NEW = ["new", "new/deep/er", "d/new", "dl/new", "dl/new/deep", "rodir/a/b", "xonly/a/b",
       "locked/a/b", "others-dir/a/b", "dang-in-dir/x", "new/", "new/../newer"]
DIRECTORY = [(f"{'follow' if f else 'no-follow'}, {'recursive' if r else 'single'}",
              {"followSymlinks": f, "recursive": r}) for f in (True, False) for r in (True, False)]
REMOVE = [(f"{mode}, {'forced' if force else 'unforced'}", {**params, "force": force})
          for mode, params in DIRECTORY for force in (True, False)]
WRITE = [("follow", {"followSymlinks": True}), ("no-follow", {"followSymlinks": False})]


def add(method, mode, params, user):
    @case(f"{method} {mode} as {'a user' if user else 'root'}")
    async def change(t):
        files = await Files.open(t, user)
        for name in PATHS + NEW:
            if name in WAITS_ON_WRITE and params.get("dataBase64") and params["followSymlinks"]:
                continue
            await files.effect(name or "the tree", method, name, **params)
            if method == "open":
                await files.call("close", handleId="h")


for _user in (False, True):
    for _mode, _params in WRITE:
        add("writeFile", _mode, {**_params, "dataBase64": b64("hello")}, _user)
    for _mode, _params in DIRECTORY:
        add("createDirectory", _mode, _params, _user)
    for _mode, _params in REMOVE:
        add("remove", _mode, _params, _user)
    add("open", "replace", {"handleId": "h", "mode": "replace"}, _user)


@case("defaults")
async def defaults(t):
    files = await Files.open(t)
    for name in ("full", "dl", "lnk", "nope", "nope/x"):
        await files.effect(f"remove {name}", "remove", name)
    for name in ("full", "new/deep", "dl/new"):
        await files.effect(f"createDirectory {name}", "createDirectory", name)
    for name in ("lnk", "new", "dang"):
        await files.effect(f"writeFile {name}", "writeFile", name, dataBase64="aGk=")
        await files.effect(f"open {name}", "open", name, handleId=name, mode="replace")


@case("writeFile contents")
async def contents(t):
    files = await Files.open(t)
    for size in (0, 1, 2, 3, 4095, 4096, 65537, 3_000_000):
        for follow in (True, False):
            await files.effect(f"{size} {follow}", "writeFile", "f", followSymlinks=follow,
                               dataBase64=b64((bytes(range(251)) * (size // 251 + 1))[:size]))


@case("writeFile base64")
async def base64_errors(t):
    """Bad base64 is found before anything is touched, but after a bad path."""
    files = await Files.open(t)
    for text in BASE64:
        await files.effect(f"{text[:40]!r} of {len(text)}", "writeFile", "f", dataBase64=text)
    for label, name in (("missing parent", "nope/x"), ("directory", "d")):
        await files.effect(label, "writeFile", name, dataBase64="!!")
    for params in ({"dataBase64": "!!", "path": "bad"}, {"dataBase64": "!!",
                                                         "path": "file:///C:/x"},
                   {"dataBase64": "!!", "path": "file:///", "followSymlinks": False}):
        t.see(str(params), await files.c.call("fs/writeFile", params))


@case("writeFile to a FIFO with a reader")
async def fifo_with_reader(t):
    files = await Files.open(t)
    reader = os.open(files.path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
    for name in WAITS_ON_WRITE:
        for follow in (True, False):
            await files.effect(f"{name} {follow}", "writeFile", name, dataBase64="eA==",
                               followSymlinks=follow)
        await files.effect(f"open {name}", "open", name, handleId=name, mode="replace")
    os.close(reader)


@case("the root")
async def the_root(t):
    """Nothing here may ever be recursive."""
    c = await t.connect()
    for follow in (True, False):
        for method, params in (
                ("remove", {"recursive": False}), ("remove", {"recursive": False, "force": False}),
                ("createDirectory", {"recursive": False}), ("createDirectory", {}),
                ("writeFile", {"dataBase64": "eA=="})):
            t.see(f"{method} {params} {follow}", await c.call(
                f"fs/{method}", {"path": "file:///", "followSymlinks": follow, **params}))
    t.see("recursive no-follow removal", await c.call(
        "fs/remove", {"path": "file:///nonexistent-conform", "followSymlinks": False}))
    t.see("open", await c.call("fs/open", {"path": "file:///", "handleId": "h", "mode": "replace"}))


@case("devices")
async def devices(t):
    c = await t.connect()
    for path in ("/dev/null", "/dev/full"):
        for follow in (True, False):
            t.see(f"{path} {follow}", await c.call("fs/writeFile", {
                "path": f"file://{path}", "dataBase64": "eA==", "followSymlinks": follow}))
        t.see(f"open {path}", await c.call("fs/open", {"path": f"file://{path}", "handleId": path,
                                                       "mode": "replace"}))
    t.see("procfs", await c.call("fs/createDirectory", {"path": "file:///proc/nonexistent"}))


@case("umask")
async def umask(t):
    files = await Files.open(t, server="umask")
    for follow in (True, False):
        await files.effect(f"writeFile {follow}", "writeFile", "new", dataBase64="eA==",
                           followSymlinks=follow)
        await files.effect(f"writeFile existing {follow}", "writeFile", "f", dataBase64="eA==",
                           followSymlinks=follow)
        await files.effect(f"createDirectory {follow}", "createDirectory", "new/deep/er",
                           followSymlinks=follow)
    await files.effect("open", "open", "new", handleId="h", mode="replace")
    for name in ("f", "suid", "noperm", "ro", "full", "lnk"):
        for to in ("new", "empty"):
            await files.effect(f"copy {name} {to}", "copy", sourcePath=files.uri(name),
                               destinationPath=files.uri(to), recursive=True)


@case("deep")
async def deep(t):
    """Paths of more than 4,095 bytes can only be named in no-follow mode."""
    files = await Files.open(t)
    name = "/".join(["deep" * 50] * 24)
    for follow in (True, False):
        await files.see(f"make {follow}", "createDirectory", name, followSymlinks=follow)
    for follow in (True, False):
        await files.see(f"write {follow}", "writeFile", name + "/f", dataBase64="eA==",
                        followSymlinks=follow)
        await files.see(f"read {follow}", "readFile", name + "/f", followSymlinks=follow)
        await files.see(f"metadata {follow}", "getMetadata", name + "/f", followSymlinks=follow)
        await files.see(f"open {follow}", "open", name + "/f", handleId=str(follow))
        await files.see(f"remove {follow}", "remove", name + "/f", followSymlinks=follow,
                        recursive=False)
    for method in ("canonicalize", "readDirectory"):
        await files.see(method, method, name)
    first = name.partition("/")[0]
    for depth in (8, 64):
        for path in (first, ""):
            await files.see(f"walk {depth} {path[:4]}", "walk", path, options={
                "maxDepth": depth, "maxDirectories": 1000, "maxEntries": 1000,
                "followDirectorySymlinks": True})
    await files.see("copy", "copy", sourcePath=files.uri(first), recursive=True,
                    destinationPath=files.uri("copied"))
    for top in (first, "copied"):
        await files.see(f"remove {top[:6]}", "remove", top)
    await files.effect("nothing is left", "remove", "nope")
