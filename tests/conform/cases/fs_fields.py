"""Every field of the file methods: absent, null, of every wrong type and at its limits. The
requests of one field share a connection."""

import copy

from harness.case import case
from harness.fscase import WALK, Files, masked
from harness.peer import ABSENT
from harness.values import BASE64, NUMBERS, WRONG, Literal, ask, label

# PATH names a file of the tree, NONE what is not there, NEW what may be made.
METHODS = {
    "readFile": {"path": "PATH", "followSymlinks": True, "sandbox": None},
    "open": {"handleId": "h", "path": "PATH", "sandbox": None, "mode": "read"},
    "readBlock": {"handleId": "h", "offset": 0, "len": 4},
    "writeBlock": {"handleId": "w", "offset": 0, "chunk": "YQ=="},
    "close": {"handleId": "none"},
    "writeFile": {"path": "NEW", "dataBase64": "YQ==", "followSymlinks": True, "sandbox": None},
    "createDirectory": {"path": "NEW", "recursive": True, "followSymlinks": True, "sandbox": None},
    "getMetadata": {"path": "PATH", "followSymlinks": True, "sandbox": None},
    "canonicalize": {"path": "PATH", "sandbox": None},
    "readDirectory": {"path": "DIRECTORY", "sandbox": None},
    "walk": {"path": "DIRECTORY", "options": WALK, "sandbox": None},
    "remove": {"path": "NONE", "recursive": False, "force": True, "followSymlinks": True,
               "sandbox": None},
    "copy": {"sourcePath": "PATH", "destinationPath": "NEW", "recursive": False, "sandbox": None},
    "watchMissing": {"watchId": 1, "missing": ["NONE"], "present": None},
}
NAMES = {"PATH": "f", "DIRECTORY": "full", "NONE": "nope", "NEW": "new"}
INTEGERS = ("offset", "len", "watchId", "maxDepth", "maxDirectories", "maxEntries")
LIMITS = {
    "handleId": ["x" * 32, "x" * 33, "é" * 16, "é" * 17, "\0", "a\nb"],
    "len": [1, 1048575, 1048576, 1048577, 2**32, 2**63, 2**64 - 1],
    "offset": [1, 10, 11, 2**31, 2**63 - 1, 2**63 - 5, 2**63, 2**64 - 1],
    "chunk": BASE64, "dataBase64": BASE64,
    "mode": ["replace", "READ", "Read", "write", "append", {"read": None}, {"replace": None},
             {"read": 1}, {"type": "x"}, {"read": None, "replace": None}, ["read"]],
    "missing": [[], [None], ["file:///C:/x"], ["/x"], [""], [[]], ["NONE", 5], ["NONE", "NONE"]],
    "present": ["PATH", "NONE", "file:///C:/x", ["PATH"]],
    "maxDepth": [0, 1, 64, 65], "maxDirectories": [1, 10000, 10001],
    "maxEntries": [1, 50000, 50001],
}


def filled(value, files):
    """The value with the names of the tree in place."""
    if isinstance(value, dict):
        return {k: filled(v, files) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v, files) for v in value]
    return files.uri(NAMES[value]) if isinstance(value, str) and value in NAMES else value


async def prepared(t):
    """Handles that the block methods can work on."""
    files = await Files.open(t)
    await files.call("open", "f", handleId="h")
    await files.call("open", "empty", handleId="w", mode="replace")
    return files


def values(field):
    out = [ABSENT] + WRONG + LIMITS.get(field, [])
    if field in INTEGERS:
        out += [Literal(n) for n in NUMBERS]
    return out


def add(method, base, path):
    @case(f"{method}-{'.'.join(path)}")
    async def one(t):
        files = await prepared(t)
        for n, value in enumerate(values(path[-1])):
            params = copy.deepcopy(base)
            if method == "open" and path != ["handleId"]:
                params["handleId"] = str(n)
            if method == "watchMissing" and path != ["watchId"]:
                params["watchId"] = n + 1
            place = params
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            answer = await ask(files.c, f"fs/{method}", filled(params, files))
            t.see(f"{n} {label(value)}", masked(answer))


for _method, _base in METHODS.items():
    for _field in _base:
        add(_method, _base, [_field])
for _field in [*WALK, "pruneHiddenDirectories"]:
    add("walk", METHODS["walk"], ["options", _field])


@case("whole params")
async def whole(t):
    files = await prepared(t)
    for method in METHODS:
        for value in [ABSENT] + [v for v in WRONG if not isinstance(v, list)]:
            t.see(f"{method} {label(value)}", await ask(files.c, f"fs/{method}", value))


@case("arrays for params")
async def arrays(t):
    """Accepted by the reference where they are complete; so only methods that change nothing."""
    files = await prepared(t)
    for method, params in METHODS.items():
        t.see(f"{method} empty", await ask(files.c, f"fs/{method}", []))
        t.see(f"{method} one", await ask(files.c, f"fs/{method}", ["x"]))
    for method in ("readFile", "getMetadata", "readBlock"):
        whole_list = filled(list(METHODS[method].values()), files)
        t.see(f"{method} all", masked(await ask(files.c, f"fs/{method}", whole_list)))
        t.see(f"{method} fewer", await ask(files.c, f"fs/{method}", whole_list[:-1]))
        t.see(f"{method} more", await ask(files.c, f"fs/{method}", whole_list + [1]))


@case("names of fields")
async def names(t):
    """Case matters, unknown names are ignored, snake case is unknown."""
    files = await prepared(t)
    link = files.uri("lnk")
    for label_, method, params in (
            ("capital", "readFile", {"Path": link}),
            ("snake case", "readFile", {"path": link, "follow_symlinks": False}),
            ("capital option", "readFile", {"path": link, "FollowSymlinks": False}),
            ("unknown", "readFile", {"path": link, "x": [1, {"y": None}]}),
            ("data", "writeFile", {"path": files.uri("new"), "data": "YQ=="}),
            ("source", "copy", {"source": link, "destination": link, "recursive": False}),
            ("handle", "close", {"handle_id": "h"}),
            ("options flat", "walk", {"path": files.uri("d"), **WALK}),
            ("option snake", "walk", {"path": files.uri("d"), "options": {
                **WALK, "prune_hidden_directories": None}}),
            ("sandbox of watchMissing", "watchMissing", {"watchId": 1, "missing": [],
                                                         "sandbox": 5}),
            ("sandbox of readBlock", "readBlock", {"handleId": "h", "offset": 0, "len": 1,
                                                   "sandbox": 5}),
            ("follow of copy", "copy", {"sourcePath": link, "destinationPath": files.uri("new2"),
                                        "recursive": False, "followSymlinks": "x"}),
            ("follow of open", "open", {"handleId": "x", "path": link, "followSymlinks": "x"})):
        t.see(label_, masked(await files.c.call(f"fs/{method}", params)))


@case("several errors")
async def several(t):
    """Which of several errors is reported, for both orders of the members."""
    files = await prepared(t)
    for method, base in METHODS.items():
        bad = {k: 5 if not isinstance(v, int) else "x" for k, v in base.items()}
        for n, order in enumerate((bad, dict(reversed(bad.items())))):
            t.see(f"{method} order {n}", await files.c.call(f"fs/{method}", order))
        t.see(f"{method} last only", await files.c.call(
            f"fs/{method}", dict([list(bad.items())[-1]])))
