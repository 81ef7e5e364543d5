"""Files: patches, AGENTS.md, skills, images, odd names."""

import base64
import os
import random
import struct
import zlib

from rig.model import tool

from .common import check, equal, exists, get, put, scenario, within, without

PATCH = """
*** Add File: new/dir/added.txt
+first
+second
*** Update File: upd.txt
@@
 one
-two
+TWO
 three
*** Delete File: del.txt
*** Update File: old-name.txt
*** Move to: moved/new-name.txt
@@
-before
+after
"""


def seed(b):
    for name, text in (("upd.txt", "one\ntwo\nthree\n"), ("del.txt", "bye\n"),
                       ("old-name.txt", "before\n")):
        put(os.path.join(b.work, name), text)


def patched(b):
    equal(get(f"{b.work}/new/dir/added.txt"), "first\nsecond\n", "added")
    equal(get(f"{b.work}/upd.txt"), "one\nTWO\nthree\n", "updated")
    equal(get(f"{b.work}/moved/new-name.txt"), "after\n", "moved")
    check(not exists(b.work, "del.txt"), "the deleted file is still there")
    check(not exists(b.work, "old-name.txt"), "the moved file is still there")


def noise(size):
    return random.Random(size).randbytes(size)


def png(side):
    """A picture of noise, so that it does not shrink."""
    rows = b"".join(b"\0" + noise(side * 3) for _ in range(side))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) +
            chunk(b"IEND", b""))


def picture(b, name, side):
    path = os.path.join(b.work, name)
    with open(path, "wb") as f:
        f.write(png(side))
    return path


def shown(output):
    """The image that a tool call gave the model, as its data URL."""
    urls = [p["image_url"] for p in output.parts if p.get("type") == "input_image"]
    check(urls, f"no image: {output.text!r:.300}")
    return urls[0]


@scenario
async def apply_patch(b):
    """apply_patch adds, updates, deletes and moves; no process is started."""
    await b.start_server()
    seed(b)
    async with b.client() as m:
        within("Success", (await m.patch(PATCH)).text)
    patched(b)
    equal(b.proxy.calls("process/start"), [], "processes")


@scenario
async def apply_patch_in_shell(b):
    """apply_patch as a here-document is done by the client, through the file system too."""
    await b.start_server()
    seed(b)
    async with b.client() as m:
        text = f"*** Begin Patch\n{PATCH.strip()}\n*** End Patch"
        await m.shell(f"apply_patch <<'EOF'\n{text}\nEOF\n")
    patched(b)
    equal(b.proxy.calls("process/start"), [], "processes")


@scenario
async def apply_patch_errors(b):
    """Patches that cannot be applied are told so, and change nothing."""
    await b.start_server()
    seed(b)
    os.mkdir(f"{b.work}/directory")
    patches = ("*** Update File: nope.txt\n@@\n-a\n+b", "*** Update File: upd.txt\n@@\n-zzz\n+b",
               "*** Delete File: nope.txt", "*** Update File: directory\n@@\n-a\n+b",
               "*** Add File: upd.txt/below.txt\n+x")
    async with b.client() as m:
        for text in patches:
            without("Success", (await m.patch(text)).text)
        within("Success", (await m.patch("*** Add File: late.txt\n+late")).text)
    equal(get(f"{b.work}/upd.txt"), "one\ntwo\nthree\n", "the untouched file")
    equal(sorted(os.listdir(b.work)), ["del.txt", "directory", "late.txt", "old-name.txt",
                                       "upd.txt"], "names")


@scenario
async def agents_md(b):
    """AGENTS.md of the project's root and of the working directory reach the model, in order."""
    await b.start_server()
    put(f"{b.work}/.git/HEAD", "ref: refs/heads/main\n")
    put(f"{b.work}/AGENTS.md", "ROOT-RULE\n")
    put(f"{b.work}/a/AGENTS.md", "HIDDEN-RULE\n")
    put(f"{b.work}/a/AGENTS.override.md", "OVER-RULE\n")
    put(f"{b.work}/a/b/AGENTS.md", "SUB-RULE\n")
    async with b.client(cwd=f"{b.work}/a/b") as m:
        told = str(m.first["input"])
    places = [told.find(word) for word in ("ROOT-RULE", "OVER-RULE", "SUB-RULE")]
    check(places[0] >= 0 and places == sorted(places), f"rules in order: {places}")
    without("HIDDEN-RULE", told)


@scenario
async def skills(b):
    """Skills of the repository are listed, and the one that is asked for is read."""
    await b.start_server()
    put(f"{b.work}/.git/HEAD", "ref: refs/heads/main\n")
    for name in ("alpha", "beta"):
        put(f"{b.work}/.agents/skills/{name}/SKILL.md",
            f"---\nname: {name}-skill\ndescription: ABOUT-{name}\n---\n\nBODY-OF-{name}\n")
    async with b.client(prompt="use $alpha-skill please") as m:
        told = str(m.first["input"])
        within("BODY-OF-beta", (await m.shell("cat .agents/skills/beta/SKILL.md")).out)
    for text in ("ABOUT-alpha", "ABOUT-beta", "BODY-OF-alpha"):
        within(text, told)
    without("BODY-OF-beta", told)
    check(b.proxy.calls("fs/walk"), "the client walked the skills")


@scenario
async def images(b):
    """view_image by absolute and relative path, small and of 3 MB; a missing one, a directory."""
    await b.start_server()
    small, large = picture(b, "small.png", 16), picture(b, "large.png", 1024)
    async with b.client() as m:
        first = shown(await m.view(small))
        check(first.startswith("data:image/png;base64,"), first[:40])
        equal(base64.b64decode(first.partition(",")[2]), png(16), "the picture")
        equal(shown(await m.view("small.png")), first, "the same by its relative path")
        check(len(shown(await m.view(large))) > 100_000, "the large picture is too small")
        for path in ("absent.png", b.work):
            o = await m.view(path)
            equal([p for p in o.parts if p.get("type") == "input_image"], [], f"image of {path}")
    equal(b.proxy.calls("fs/readFile")[-1]["params"]["path"].rpartition("/")[2], "large.png",
          "the last file read")


@scenario
async def odd_names(b):
    """A working directory with spaces, percent signs, # and ?, and letters beyond ASCII."""
    await b.start_server()
    place = f"{b.work}/sp ace %41 #h ?q \u00e9 \u2603"
    put(f"{place}/AGENTS.md", "ODD-RULE\n")
    async with b.client(cwd=place) as m:
        within("ODD-RULE", str(m.first["input"]))
        o = await m.shell('pwd; touch "made here"')
        within(place, o.out)
        within("Success", (await m.patch("*** Add File: na\u00efve file+&=.txt\n+x")).text)
    check(exists(place, "made here"), "the touched file is missing")
    equal(get(f"{place}/na\u00efve file+&=.txt"), "x\n", "patched file")


@scenario
async def late_project(b):
    """.git and a skill that appear during the run are noticed."""
    await b.start_server()
    async with b.client() as m:
        equal((await m.shell(
            "mkdir -p .agents/skills/late .git; echo 'ref: refs/heads/x' >.git/HEAD; "
            "printf -- '---\\nname: late-skill\\ndescription: LATE\\n---\\nbody\\n' "
            ">.agents/skills/late/SKILL.md")).code, 0, "exit code")
        if b.proxy.calls("fs/watchMissing"):
            await b.proxy.until(lambda: b.proxy.notes("fs/missingChanged"), "fs/missingChanged")
        within("two", (await m.shell("echo two")).out)


@scenario
async def large_files(b):
    """A picture and a patched file of 20 MB each; with the reference 9 and 2 MB, since it loses
    the connection at messages of more than 16 MiB."""
    await b.start_server()
    path = picture(b, "large.png", 2600 if b.ours else 1700)
    lines = [f"line {i:08d} {'x' * 100}\n" for i in range(170_000 if b.ours else 17_000)]
    put(f"{b.work}/large.txt", "".join(lines))
    async with b.client() as m:
        check(shown(await m.view(path)).startswith("data:image/"), "no image")
        old, new = lines[1000].strip(), "changed"
        o = await m.patch(f"*** Update File: large.txt\n@@\n-{old}\n+{new}")
        within("Success", o.text)
    lines[1000] = new + "\n"
    check(get(f"{b.work}/large.txt") == "".join(lines), "the patched file")
    equal(b.proxy.connections, 1, "connections")
    for name in ("large.txt", "large.png"):
        os.unlink(f"{b.work}/{name}")


@scenario(since=("0.166.0", "multi_env_copy_file is newer"))
async def copy_file(b):
    """The client copies files between two environments, block by block."""
    await b.start_server()
    names = ("one", "two")
    entries = "".join(f'[[environments]]\nid = "{n}"\nurl = "{b.url}"\n' for n in names)
    thread = {"environments": [{"environmentId": "one", "cwd": b.work},
                               {"environmentId": "two", "cwd": b.outside}]}
    sizes = {"empty": 0, "small": 10, "large": 5_000_001}
    for name, size in sizes.items():
        with open(f"{b.work}/{name}", "wb") as f:
            f.write(noise(size))

    def copy(name):
        return tool("multi_env_copy_file", source_environment_id="one",
                    source_path=f"{b.work}/{name}", target_environment_id="two",
                    target_path=f"{b.outside}/{name}")

    async with b.app("danger-full-access", "never", thread, features=("multi_env_copy_file",),
                     environments=f'default = "one"\ninclude_local = false\n{entries}') as (m, _):
        for name, size in sizes.items():
            within(str(size), (await m.call(copy(name))).text)
        within("not found", (await m.call(copy("absent"))).text)
    for name, size in sizes.items():
        with open(f"{b.outside}/{name}", "rb") as f:
            check(f.read() == noise(size), f"the copy {name!r} differs")
    check(len(b.proxy.calls("fs/writeBlock")) >= 5, "the blocks of the copy")
