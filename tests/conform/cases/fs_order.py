"""The file methods within the handshake, the envelope and the order of answers."""

import os

from harness.case import case
from harness.fscase import WALK, Files, masked
from harness.peer import brief

CALLS = [("readFile", {"path": "file:///etc/hostname"}), ("open",
                                                          {"handleId": "h", "path": "file:///etc"}),
         ("readBlock", {"handleId": "h", "offset": 0, "len": 1}),
         ("writeBlock", {"handleId": "h", "offset": 0, "chunk": "YQ=="}),
         ("close", {"handleId": "h"}),
         ("writeFile", {"path": "file:///nonexistent/x", "dataBase64": ""}),
         ("createDirectory", {"path": "file:///proc/nonexistent"}),
         ("getMetadata", {"path": "file:///"}),
         ("canonicalize", {"path": "file:///"}), ("readDirectory", {"path": "file:///nonexistent"}),
         ("walk", {"path": "file:///nonexistent", "options": WALK}),
         ("remove", {"path": "file:///nonexistent/x"}),
         ("copy", {"sourcePath": "file:///nonexistent", "destinationPath": "file:///nonexistent/x",
                   "recursive": False}),
         ("watchMissing", {"watchId": 1, "missing": []})]
UNKNOWN = ["unwatchMissing", "move", "symlink", "search", "stat", "exists", "chmod", "append",
           "truncate", "readLink", "missingChanged", "glob", "flush", "sync", "discover", "join",
           "parent", "", "readfile", "ReadFile", "rename", "watch", "unwatch", "setPermissions",
           "setTimes"]


@case("before initialize")
async def before_initialize(t):
    c = await t.open()
    for method, params in CALLS:
        t.see(method, await c.call(f"fs/{method}", params))
        t.see(f"{method} without params", await c.call(f"fs/{method}"))
        t.see(f"{method} bad params", await c.call(f"fs/{method}",
                                                   {**params, next(iter(params)): 5}))
    t.see("bad base64", await c.call("fs/writeFile", {"path": "file:///x", "dataBase64": "!"}))
    t.see("bad base64 of a block", await c.call("fs/writeBlock", {"handleId": "h", "offset": 0,
                                                                  "chunk": "!"}))
    t.see("foreign", await c.call("fs/readFile", {"path": "file:///C:/x"}))
    t.see("limits", await c.call("fs/walk", {"path": "file:///x",
                                             "options": {**WALK, "maxDepth": 99}}))
    t.see("long id", await c.call("fs/close", {"handleId": "x" * 33}))


@case("before initialized")
async def before_initialized(t):
    c = await t.open()
    await c.call("initialize", {"clientName": "x"})
    for method, params in CALLS:
        t.see(method, await c.call(f"fs/{method}", params))
        t.see(f"{method} bad params", await c.call(f"fs/{method}",
                                                   {**params, next(iter(params)): 5}))


def add_unknown(name):
    @case(f"unknown: {name}")
    async def unknown(t):
        c = await t.open()
        t.see("before initialize", await c.call(f"fs/{name}", {}))
        await c.hello()
        t.see("after", await c.call(f"fs/{name}", {}))


for _name in UNKNOWN:
    add_unknown(_name)


def text(params, method="fs/readFile", extra="", request_id="1"):
    return f'{{{extra}"id":{request_id},"method":"{method}","params":{{{params}}}}}'


@case("envelope")
async def envelope(t):
    files = await Files.open(t)
    uri = files.uri("f")
    path = f'"path":"{uri}"'
    odd = uri.replace("/", "\\/").replace("f", "\\u0066")
    for name, message in {
            "duplicate key": text(f"{path},{path}"),
            "duplicate, nested": text(f'{path},"options":{{"maxDepth":1,"maxDepth":1}}', "fs/walk"),
            "lone surrogate": text('"path":"file:///\\ud800"'),
            "escapes": text(f'"p\\u0061th":"{odd}"', "fs\\/readFile"),
            "string id": text(path, request_id='"x"'),
            "jsonrpc": text(path, extra='"jsonrpc":"2.0",'),
            "NUL at the end": text(f'"path":"{uri}\\u0000"'),
            "-0": text('"handleId":"h","offset":-0,"len":1', "fs/readBlock")}.items():
        t.see(name, await files.c.exchange(message))


@case("pipelined")
async def pipelined(t):
    """Without waiting for answers: they come in the order of the requests, and every request sees
    what those before it did."""
    files = await Files.open(t)
    calls = [("writeFile", {"path": "p", "dataBase64": "MQ=="}), ("readFile", {"path": "p"}),
             ("open", {"handleId": "h", "path": "p"}), ("readBlock",
                                                        {"handleId": "h", "offset": 0, "len": 9}),
             ("writeFile", {"path": "p", "dataBase64": "MjI="}),
             ("readBlock", {"handleId": "h", "offset": 0, "len": 9}),
             ("remove", {"path": "p"}), ("readFile", {"path": "p"}),
             ("readBlock", {"handleId": "h", "offset": 1, "len": 9}),
             ("createDirectory", {"path": "p/q"}), ("getMetadata", {"path": "p/q"}),
             ("canonicalize", {"path": "p/q/../q"}), ("readDirectory", {"path": "p"}),
             ("walk", {"path": "p", "options": WALK}), ("remove", {"path": "p"}),
             ("getMetadata", {"path": "p"})]
    ids = []
    for _ in range(5):
        for method, params in calls:
            if "path" in params:
                params = {**params, "path": files.uri(params["path"])}
            ids.append(files.c.post(f"fs/{method}", params))
        ids.append(files.c.post("fs/open", {"handleId": f"own{len(ids)}", "path": files.uri("f")}))
    mark = len(files.c.answers)
    answers = [masked(brief(await files.c.take(i))) for i in ids]
    t.see("answers", answers)
    t.see("in order", [m["id"] for m in files.c.answers[mark:] if m["id"] in ids] == ids)


@case("two lanes")
async def lanes(t):
    """With two requests at a time everything is answered as well."""
    files = await Files.open(t, server="lanes")
    ids = [files.c.post("fs/readFile", {"path": files.uri(n)}) for n in ("f", "nope", "d", "lnk",
                                                                         "fifo")]
    t.see("answers", [brief(await files.c.take(i)) for i in ids])
    t.see("open", await files.call("open", "f", handleId="h"))
    ids = [files.c.post("fs/readBlock", {"handleId": "h", "offset": n,
                                         "len": 2}) for n in range(12)]
    t.see("blocks", [brief(await files.c.take(i)) for i in ids])


@case("over stdio")
async def stdio(t):
    files = await Files.open(t)
    c = await t.stdio()
    await c.hello()
    for method, params in (
            ("readFile", {"path": files.uri("f")}), ("writeFile", {"path": files.uri("new"),
                                                                   "dataBase64": "eA=="}),
            ("open", {"handleId": "h", "path": files.uri("f")}),
            ("readBlock", {"handleId": "h", "offset": 3, "len": 3}), ("close", {"handleId": "h"}),
            ("watchMissing", {"watchId": 1, "missing": [files.uri("watched")]})):
        t.see(method, masked(await c.call(f"fs/{method}", params)))
    os.mkdir(files.path("watched"))
    await c.until(lambda: c.notes)
    t.see("notification", c.notes)
