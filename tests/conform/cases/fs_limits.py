"""Large files, large directories, full file systems."""

import os
import subprocess

from harness.case import case
from harness.fscase import WALK, Files
from harness.peer import b64

LIMIT = 512 << 20


@case("too large to read")
async def too_large(t):
    """The file has a hole only; one of exactly the limit would take the reference 2 GB."""
    files = await Files.open(t)
    t.file("t/big")
    os.truncate(files.path("big"), LIMIT + 1)
    for follow in (True, False):
        await files.see(f"readFile {follow}", "readFile", "big", followSymlinks=follow)
    await files.see("metadata", "getMetadata", "big")
    await files.see("open", "open", "big", handleId="h")
    for offset in (0, LIMIT, LIMIT + 1):
        await files.see(f"block at {offset}", "readBlock", handleId="h", offset=offset, len=4)
    os.unlink(files.path("big"))


@case("large answers")
async def large_answers(t):
    files = await Files.open(t)
    data = bytes(i * 31 % 256 for i in range(1 << 16)) * 320
    t.file("t/big", data)
    for follow in (True, False):
        answer = await files.call("readFile", "big", followSymlinks=follow)
        t.see(f"readFile {follow}", answer == {"dataBase64": b64(data)})


@case("large requests")
async def large_requests(t):
    files = await Files.open(t)
    data = bytes(i * 29 % 256 for i in range(1 << 16)) * 160
    await files.effect("writeFile", "writeFile", "f", dataBase64=b64(data))


@case("many entries")
async def many_entries(t):
    """50,000 are listed, 50,001 are not; a walk stops at its budget."""
    files = await Files.open(t)
    many = files.path("many")
    os.mkdir(many)
    fd = os.open(many, os.O_RDONLY)
    os.mknod(b"%050d" % 0, 0o600, dir_fd=fd)
    for n in range(1, 50_000):
        os.link(b"%050d" % 0, b"%050d" % n, src_dir_fd=fd, dst_dir_fd=fd)
    answer = await files.call("readDirectory", "many")
    t.see("50000", [len(answer["entries"]), answer["entries"][0], answer["entries"][-1]])
    os.symlink("nowhere", many + b"/dangling")
    answer = await files.call("readDirectory", "many")
    t.see("a dangling link does not count", len(answer["entries"]))
    options = {**WALK, "maxDepth": 64, "maxDirectories": 10000, "maxEntries": 50000}
    answer = await files.call("walk", "many", options=options)
    t.see("walk", [len(answer["entries"]), answer["entries"][-1], answer["truncated"],
                   answer["errors"]])
    answer = await files.call("walk", "", options=options)
    t.see("walk from above", [len(answer["entries"]), answer["entries"][-1], answer["truncated"]])
    os.link(b"%050d" % 0, b"last", src_dir_fd=fd, dst_dir_fd=fd)
    await files.see("50001", "readDirectory", "many")
    os.close(fd)
    await files.see("remove", "remove", "many")
    t.see("gone", os.path.lexists(many))


@case("full file system")
async def full(t):
    files = await Files.open(t)
    small = os.path.join(t.dir, "t", "small")
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "conform", small], check=True)
    try:
        await files.see("open", "open", "small/f", handleId="w", mode="replace")
        await files.see("write too much", "writeBlock", handleId="w", offset=0,
                        chunk=b64(b"x" * 200000))
        t.see("what is left", os.stat(small + "/f").st_size)
        await files.see("still open", "writeBlock", handleId="w", offset=0, chunk=b64("ok"))
        await files.see("close", "close", handleId="w")
        for follow in (True, False):
            await files.see(f"writeFile {follow}", "writeFile", "small/f", followSymlinks=follow,
                            dataBase64=b64(b"y" * 200000))
            t.see(f"writeFile {follow}: what is left", os.stat(small + "/f").st_size)
        await files.see("other file", "writeFile", "small/g", dataBase64=b64("z"))
        os.unlink(small + "/f")
        t.file("t/source", b"s" * 200000)
        await files.see("copy", "copy", sourcePath=files.uri("source"), recursive=False,
                        destinationPath=files.uri("small/f"))
        await files.see("a mount point", "remove", "small", recursive=False)
        await files.see("a mount point, no-follow", "remove", "small", recursive=False,
                        followSymlinks=False)
        await files.see("a mount point, recursive", "remove", "small")
        t.see("afterwards", sorted(os.listdir(small)))
        await files.see("a directory that holds one", "remove", "", recursive=False)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@case("read-only file system")
async def read_only(t):
    files = await Files.open(t)
    fixed = os.path.join(t.dir, "t", "fixed")
    os.mkdir(fixed)
    subprocess.run(["mount", "-t", "tmpfs", "conform", fixed], check=True)
    try:
        for name in ("f", "d/g"):
            t.file(f"t/fixed/{name}", "content")
        subprocess.run(["mount", "-o", "remount,ro", fixed], check=True)
        for follow in (True, False):
            for name in ("f", "d", "d/g", "new", "new/deep"):
                label = f"{name} {follow}"
                await files.see(f"writeFile {label}", "writeFile", f"fixed/{name}", dataBase64="",
                                followSymlinks=follow)
                for recursive in (True, False):
                    await files.see(f"createDirectory {label} {recursive}", "createDirectory",
                                    f"fixed/{name}", recursive=recursive, followSymlinks=follow)
                    await files.see(f"remove {label} {recursive}", "remove", f"fixed/{name}",
                                    recursive=recursive, followSymlinks=follow)
        for name in ("f", "d", "new"):
            await files.see(f"open {name}", "open", f"fixed/{name}", handleId=name, mode="replace")
            for source in ("f", "d", "lnk"):
                await files.see(f"copy {source} {name}", "copy", sourcePath=files.uri(source),
                                destinationPath=files.uri(f"fixed/{name}"), recursive=True)
        await files.see("readFile", "readFile", "fixed/f")
    finally:
        subprocess.run(["umount", "-l", fixed], check=True)


@case("across file systems")
async def across(t):
    files = await Files.open(t)
    other = os.path.join(t.dir, "t", "other")
    os.mkdir(other)
    subprocess.run(["mount", "-t", "tmpfs", "conform", other], check=True)
    try:
        for source in ("f", "full", "lnk", "suid", "empty"):
            await files.see(f"copy {source}", "copy", sourcePath=files.uri(source), recursive=True,
                            destinationPath=files.uri(f"other/{source}"))
        t.see("copied", sorted(os.listdir(other)))
        t.see("content", open(other + "/f", encoding="ascii").read())
        await files.see("remove", "remove", "other/full")
    finally:
        subprocess.run(["umount", "-l", other], check=True)
