"""fs/walk: order, limits, links, errors."""

import os

from harness.case import case
from harness.fscase import WALK, Files
from harness.fstree import USER, Tree


def tree(root, owner=None):
    w = Tree(root, owner)
    w.directory("nested")
    w.file("nested/deep")
    w.directory("nested/.hid")
    w.file("nested/.hid/x")
    w.directory("nested/more")
    w.directory("nested/more/most")
    w.file("nested/more/most/last")
    w.directory("Zcap")
    w.file("Zcap/z")
    w.directory(".hid")
    w.file(".hid/h")
    w.directory(".hid/sub")
    w.file(".file")
    w.directory("ünï")
    w.file("ünï/ï")
    w.file("a.txt")
    w.file("a-txt")
    w.file("a/txt".replace("/", "~"))
    w.file("sp ace%")
    w.fifo("fifo")
    w.socket("sock")
    w.link("zlink", "nested")
    w.link("alink", "Zcap")
    w.link("flink", "a.txt")
    w.link("dang", "nowhere")
    w.link("loop", "loop")
    w.link("up", "..")
    w.link("here", ".")
    w.link("hidlink", ".hid")
    w.link("Zcap/back", "../nested")
    w.link("nested/more/abs", "/Zcap")
    w.link("Zcap/z2", "z")
    w.directory("empty")
    w.file(b"n\xff", b"")
    w.directory(b"d\xff")
    w.file(b"d\xff/in", b"")
    w.directory("locked", 0)
    w.directory("ronly", 0o444)
    w.modes[b"ronly/f"] = 0o644
    open(w.path("ronly/f"), "wb").close()
    os.mkdir(w.path("ronly/sub"))
    os.symlink("f", w.path("ronly/l"))
    w.finish()
    return w


async def walk(t, c, root, name, path="", **options):
    t.see(name, await c.call("fs/walk", {"path": f"file://{root}/{path}",
                                         "options": {**WALK, **options}}))


def add(user):
    who = "a user" if user else "root"

    @case(f"options as {who}")
    async def options(t):
        root = t.dir + "/w"
        tree(root, USER if user else None)
        c = await t.connect("user" if user else "plain")
        for follow in (False, True):
            for prune in (False, True):
                base = {"followDirectorySymlinks": follow, "pruneHiddenDirectories": prune}
                for depth in (0, 1, 2, 64):
                    await walk(t, c, root, f"{follow} {prune} depth {depth}", maxDepth=depth,
                               **base)
                for n in (1, 2, 3, 5, 9, 10000):
                    await walk(t, c, root, f"{follow} {prune} directories {n}", maxDirectories=n,
                               **base)
                for n in range(1, 45):
                    await walk(t, c, root, f"{follow} {prune} entries {n}", maxEntries=n, **base)
                await walk(t, c, root, f"{follow} {prune} both", maxEntries=12, maxDirectories=3,
                           **base)

    @case(f"roots as {who}")
    async def roots(t):
        root = t.dir + "/w"
        tree(root, USER if user else None)
        c = await t.connect("user" if user else "plain")
        for follow in (False, True):
            for path in ("zlink", "zlink/", "flink", "a.txt", "a.txt/x", "dang", "loop", "nope",
                         "nope/x",
                         "fifo", "sock", "locked", "locked/x", "ronly", "ronly/sub", "up", "here",
                         ".hid",
                         "here/nested", "zlink/more", "n%FF", "d%FF", "empty", "hidlink"):
                await walk(t, c, root, f"{path} {follow}", path, followDirectorySymlinks=follow)
                await walk(t, c, root, f"{path} {follow} pruned", path,
                           followDirectorySymlinks=follow,
                           pruneHiddenDirectories=True)


for _user in (False, True):
    add(_user)


@case("limits come first")
async def limits(t):
    files = await Files.open(t)
    for options in ({"maxDirectories": 0}, {"maxEntries": 0}, {"maxDepth": 65},
                    {"maxDirectories": 10001},
                    {"maxEntries": 50001}, {"maxDepth": 0}, {"maxEntries": 0, "maxDepth": 65},
                    {"maxDepth": 64, "maxDirectories": 10000, "maxEntries": 50000},
                    {"maxDepth": 2**64 - 1}):
        for name in ("nope", "f"):
            await files.see(f"{options} {name}", "walk", name, options={**WALK, **options})
    t.see("foreign", await files.call("walk", path="file:///C:/x",
                                      options={**WALK, "maxEntries": 0}))


@case("root as written")
async def as_written(t):
    """The URIs of the entries begin with the URI of the root."""
    tree(t.dir + "/w")
    c = await t.connect()
    for form in ("/w/nested", "/w/nested/", "/w//nested", "/w/n%65sted", "/w/nest%65d//",
                 "/w%2Fnested",
                 "/w/./nested/.", "/w/nested/more/..", "/w/%C3%BCn%C3%AF", "/w/\u00fcn\u00ef",
                 "/w/%c3%bcn%c3%af", "/w/d%ff", "/w\\nested", "/w/%2e/nested"):
        for start in ("file://", "FILE:", "file://localhost", "file:///"):
            t.see(f"{start} {form}", await c.call("fs/walk", {"path": start + t.dir + form,
                                                              "options": WALK}))


@case("depth")
async def depth(t):
    """More levels than the deepest walk."""
    files = await Files.open(t)
    os.makedirs(files.path("deep/" + "/".join(["x"] * 70)))
    for n in (3, 63, 64):
        await files.see(str(n), "walk", "deep", options={**WALK, "maxDepth": n})
