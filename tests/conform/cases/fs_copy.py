"""fs/copy: every kind of source to every kind of destination, and trees onto trees."""

import os
import struct

from harness.case import case
from harness.fscase import Files

SOURCES = ["f", "empty", "suid", "noperm", "ro", "hl", "nope", "f/x", "lnk", "dang", "loop1", "dl",
           "dl/", "d", "ed", "full", "fifo", "sock", "null", "fifolnk", "dl/f", "locked",
           "locked/f", "ronly", "xonly", "rodir", "others", "others-dir", "sticky", "sticky/other"]
TARGETS = ["new", "new/", "new/deep", "d/new", "dl/new", "dl", "d", "ed", "empty", "noperm",
           "others", "dang", "dangdeep", "dang-in-dir", "loop1", "self", "f/x", "null", "sock",
           "full", "ro", "rodir/new", "rodir/f", "locked/new", "xonly/new", "others-dir/new",
           "sticky/other", "full/sub/in", "toolong", ""]


def add(source, user):
    @case(f"{source} as {'a user' if user else 'root'}")
    async def one(t):
        files = await Files.open(t, user)
        for target in TARGETS:
            if same(files, source, target):
                continue
            for recursive in (True, False):
                await files.effect(f"{target} {'recursive' if recursive else 'single'}", "copy",
                                   sourcePath=files.uri(source), destinationPath=files.uri(target),
                                   recursive=recursive)


def same(files, source, target):
    """A file copied onto itself is a case of its own."""
    try:
        return os.path.isfile(files.path(source)) and not os.path.islink(files.path(source)) \
            and os.path.samefile(files.path(source), files.path(target))
    except OSError:
        return False


for _source in SOURCES:
    for _user in (False, True):
        add(_source, _user)


@case("onto itself")
async def onto_itself(t):
    files = await Files.open(t)
    for source, target in (("f", "f"), ("f", "lnk"), ("f", "ll"), ("hard", "hl"), ("hl", "hard"),
                           ("d/f", "dl/f"), ("f", "dl/../f")):
        await files.effect(f"{source} to {target}", "copy", sourcePath=files.uri(source),
                           destinationPath=files.uri(target), recursive=False)


@case("trees with a common file")
async def common_file(t):
    """A tree is merged into another one that holds hard links to, or links to, its files."""
    files = await Files.open(t)

    def more():
        os.makedirs(files.path("other"))
        os.link(files.path("d/f"), files.path("other/f"))
        os.symlink("../d/f", files.path("ed/f"))

    for target in ("other", "ed"):
        files.reset()
        more()
        answer = await files.call("copy", sourcePath=files.uri("d"),
                                  destinationPath=files.uri(target), recursive=True)
        t.see(target, answer)
        t.see(f"{target}: source afterwards", open(files.path("d/f"), encoding="ascii").read())


@case("directories onto themselves")
async def directories(t):
    files = await Files.open(t)
    for source, target in (("d", "d"), ("d", "dl"), ("d", "d/e"), ("d", "d/e/new/er"),
                           ("d", "dl/new"),
                           ("d", "d/../d/x"), ("d", "dd"), ("full", "full/sub"), ("", "d/all"),
                           ("d", "dl/../d/new"), ("dl", "d/new"), ("d/e", "d")):
        await files.effect(f"{source} to {target}", "copy", sourcePath=files.uri(source),
                           destinationPath=files.uri(target), recursive=True)


@case("merge")
async def merge(t):
    """Twice the same tree: files are overwritten, a link stops it."""
    files = await Files.open(t)
    for source in ("d", "full"):
        for n in range(3):
            answer = await files.call("copy", sourcePath=files.uri(source),
                                      destinationPath=files.uri("merged/deep"), recursive=True)
            t.see(f"{source} {n}", answer)
    await files.effect("afterwards", "getMetadata", "merged/deep/f")


@case("merge conflicts")
async def merge_conflicts(t):
    """A directory where a file must go, a file where a directory must go."""
    files = await Files.open(t)
    for kind in ("directory", "file", "link to directory", "link to file", "dangling link"):
        for at in ("f", "e"):
            os.makedirs(files.path("target"))
            place = files.path(f"target/{at}")
            if kind == "directory":
                os.mkdir(place)
            elif kind == "file":
                t.file(f"t/target/{at}", "old content")
            else:
                os.symlink({"link to directory": "../ed", "link to file": "../empty",
                            "dangling link": "../made"}[kind], place)
            await files.effect(f"{kind} at {at}", "copy", sourcePath=files.uri("d"),
                               destinationPath=files.uri("target"), recursive=True)


@case("to a FIFO with a reader")
async def to_fifo(t):
    files = await Files.open(t)
    reader = os.open(files.path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
    for name in ("fifo", "fifolnk"):
        await files.effect(name, "copy", sourcePath=files.uri("f"), destinationPath=files.uri(name),
                           recursive=False)
    os.close(reader)


@case("system files")
async def system(t):
    files = await Files.open(t)
    for source in ("/proc/version", "/proc/filesystems", "/dev/null", "/sys/kernel/mm",
                   "/proc/self/mem"):
        await files.effect(source, "copy", sourcePath=f"file://{source}",
                           destinationPath=files.uri("new"), recursive=False)
    t.see("to /dev/null", await files.call("copy", sourcePath=files.uri("f"), recursive=False,
                                           destinationPath="file:///dev/null"))
    t.see("to the root", await files.call("copy", sourcePath=files.uri("f"), recursive=False,
                                          destinationPath="file:///"))
    t.see("from the root", await files.call("copy", sourcePath="file:///", recursive=False,
                                            destinationPath=files.uri("new")))


@case("sizes and holes")
async def sizes(t):
    files = await Files.open(t)
    for size in (1, 65536, 1048577):
        t.file("t/big", bytes(i % 253 for i in range(size)))
        t.see(f"{size}", await files.call("copy", sourcePath=files.uri("big"), recursive=False,
                                          destinationPath=files.uri("copied")))
        with open(files.path("big"), "rb") as a, open(files.path("copied"), "rb") as b:
            t.see(f"{size} is the same", a.read() == b.read())
    os.truncate(files.path("big"), 30_000_000)
    t.see("sparse", await files.call("copy", sourcePath=files.uri("big"), recursive=False,
                                     destinationPath=files.uri("copied")))
    t.see("size", os.stat(files.path("copied")).st_size)


@case("an access list")
async def access_list(t):
    """The group has nothing; the group bits of the mode are what one more user has."""
    files = await Files.open(t)
    everybody = 0xFFFFFFFF
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
        (0x01, 6, everybody), (0x02, 6, 4321), (0x04, 0, everybody), (0x10, 6, everybody),
        (0x20, 0, everybody)))
    os.setxattr(files.path("f"), "system.posix_acl_access", value)
    answer = await files.call("copy", sourcePath=files.uri("f"), destinationPath=files.uri("new"),
                              recursive=False)
    names = os.listxattr(files.path("new"))
    t.see("copy", answer)
    t.see("list", "kept" if "system.posix_acl_access" in names else "gone")
