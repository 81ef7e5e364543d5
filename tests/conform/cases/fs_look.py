"""The methods that change nothing, on every kind of path, as root and as a plain user."""

import os

from harness.case import case
from harness.fscase import PATHS, WALK, Files, masked

FOLLOW = [("default", {}), ("true", {"followSymlinks": True}), ("false", {"followSymlinks": False})]
LOOKS = {
    "readFile": FOLLOW,
    "getMetadata": FOLLOW,
    "canonicalize": [("", {}), ("ignores followSymlinks", {"followSymlinks": False})],
    "readDirectory": [("", {})],
    "walk": [("", {"options": WALK}),
             ("following", {"options": {**WALK, "followDirectorySymlinks": True}})],
    "open": [("default", {"handleId": "h"}), ("read", {"handleId": "h", "mode": "read"})],
}

# Of the system, the same for both servers; nothing here is ever written to.
SYSTEM = ["/", "/proc/version", "/proc/self/mem", "/proc/self/fd/0", "/proc/self/status/x",
          "/proc/self/cwd", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/null",
          "/dev/zero", "/dev/tty", "/dev/full", "/etc/passwd", "/etc", "/nope", "/..",
          "/root/nope", "/proc/1/environ", "/proc/1/root/etc", "/proc/1/fd"]


def add_look(method, mode, params, user):
    @case(f"{method} {mode or 'plain'} as {'a user' if user else 'root'}")
    async def look(t):
        files = await Files.open(t, user)
        for name in PATHS:
            await files.see(name or "the tree", method, name, **params)
            if method == "open":
                await files.call("close", handleId="h")


for _method, _modes in LOOKS.items():
    for _mode, _params in _modes:
        for _user in (False, True):
            add_look(_method, _mode, _params, _user)


def add_system(user):
    @case(f"system files as {'a user' if user else 'root'}")
    async def system(t):
        c = await t.connect("user" if user else "plain")
        for path in SYSTEM:
            for method in ("readFile", "getMetadata"):
                for follow in (True, False):
                    answer = masked(await c.call(f"fs/{method}", {"path": f"file://{path}",
                                                                  "followSymlinks": follow}))
                    # Directories of the system change their times at any moment.
                    if isinstance(answer, dict) and answer.get("isDirectory"):
                        answer["modifiedAtMs"] = "<any>"
                    t.see(f"{method} {path} {follow}", answer)
            if not path.startswith("/proc/self/"):
                t.see(f"canonicalize {path}", await c.call("fs/canonicalize",
                                                           {"path": f"file://{path}"}))
            t.see(f"open {path}", await c.call("fs/open", {"path": f"file://{path}",
                                                           "handleId": "h"}))
            t.see(f"readBlock {path}", await c.call("fs/readBlock", {"handleId": "h", "offset": 0,
                                                                     "len": 10}))
            await c.call("fs/close", {"handleId": "h"})


for _user in (False, True):
    add_system(_user)


@case("content")
async def content(t):
    """Sizes around the boundaries of base64 and of buffers."""
    files = await Files.open(t)
    for size in (1, 2, 3, 4, 255, 256, 4095, 4096, 4097, 65535, 65536, 65537, 1048576, 5000001):
        data = bytes(i * 7 % 256 for i in range(256)) * (size // 256 + 1)
        t.file("t/sized", data[:size])
        for follow in (True, False):
            await files.see(f"{size} bytes, {follow}", "readFile", "sized", followSymlinks=follow)


@case("times")
async def times(t):
    """Modification times before 1970, of fractions of a millisecond, and far away."""
    files = await Files.open(t)
    for ns in (0, 1, 999_999, 1_000_000, 1_999_999, -1, -1_000_000, -1_500_000_000, -999_999,
               -86_400_000_000_000, 1_794_724_835_166_999_999, 2**32 * 10**9,
               4_000_000_000 * 10**9):
        os.utime(files.path("f"), ns=(0, ns))
        os.utime(files.path("d"), ns=(0, ns))
        for name in ("f", "lnk", "d"):
            for follow in (True, False):
                await files.see(f"{ns} {name} {follow}", "getMetadata", name, followSymlinks=follow)


@case("creation time")
async def creation_time(t):
    """The time of birth in no-follow mode is that of the file, not of its last change."""
    files = await Files.open(t)
    answer = await files.c.call("fs/getMetadata", {"path": files.uri("f"), "followSymlinks": False})
    t.see("old file, born now", masked(answer))
    t.see("below procfs", masked(await files.c.call(
        "fs/getMetadata", {"path": "file:///proc/version", "followSymlinks": False})))
