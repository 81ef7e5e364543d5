"""Open files: fs/open, fs/readBlock, fs/writeBlock and fs/close."""

import os

from harness.case import case
from harness.fscase import Files
from harness.peer import b64

LONG = "x" * 33


@case("reading")
async def reading(t):
    files = await Files.open(t)
    await files.see("open", "open", "f", handleId="h")
    for offset, size in ((6, 3), (1, 2), (8, 4), (0, 2), (0, 10), (0, 11), (9, 1), (10, 1), (11, 1),
                         (100, 1), (10, 0), (0, 0), (0, 1048576), (0, 1048577), (0, 2**40)):
        await files.see(f"{size} at {offset}", "readBlock", handleId="h", offset=offset, len=size)
        await files.see(f"{size} at {offset}: still open", "open", "f", handleId="h")
    for n, (offset, size) in enumerate(((2**63 - 1, 1), (2**63 - 2, 1), (2**63 - 11, 10),
                                        (2**63, 1),
                                        (2**64 - 1, 1), (2**64 - 1, 5), (2**63 - 1, 10))):
        await files.see(f"far {n} open", "open", "f", handleId=f"f{n}")
        await files.see(f"far {n} read", "readBlock", handleId=f"f{n}", offset=offset, len=size)
        await files.see(f"far {n} again", "open", "f", handleId=f"f{n}")


@case("a file that changes")
async def changing(t):
    files = await Files.open(t)
    await files.see("open", "open", "f", handleId="g")
    t.file("t/replacement", "REPLACED")
    os.rename(files.path("replacement"), files.path("f"))
    await files.see("renamed over", "readBlock", handleId="g", offset=0, len=100)
    await files.see("open d/f", "open", "d/f", handleId="d")
    with open(files.path("d/f"), "ab") as f:
        f.write(b"grown")
    await files.see("grown", "readBlock", handleId="d", offset=0, len=100)
    os.truncate(files.path("d/f"), 2)
    await files.see("shrunk", "readBlock", handleId="d", offset=0, len=100)
    await files.see("beyond", "readBlock", handleId="d", offset=4, len=100)
    os.unlink(files.path("d/f"))
    await files.see("unlinked", "readBlock", handleId="d", offset=0, len=100)
    await files.see("its path", "readFile", "d/f")
    await files.see("empty", "open", "empty", handleId="e")
    await files.see("read empty", "readBlock", handleId="e", offset=0, len=1)


@case("writing")
async def writing(t):
    files = await Files.open(t)

    async def write(label, offset, data, handle="w"):
        await files.see(label, "writeBlock", handleId=handle, offset=offset, chunk=b64(data))
        t.see(f"{label}: content", open(files.path("f"), "rb").read()[:40].hex())

    await files.see("open", "open", "f", handleId="w", mode="replace")
    t.see("truncated at once", os.stat(files.path("f")).st_size)
    await write("first", 0, "hello")
    await write("gap", 10, "gap")
    await write("over", 0, "HE")
    await write("nothing", 0, "")
    await write("largest", 0, b"x" * 1048576)
    await write("too large", 0, b"x" * 1048577)
    await write("beyond", 2**63 - 1, "x")
    await write("just beyond", 2**63 - 2, "xx")
    await write("wraps", 2**64 - 1, "xx")
    await write("alive", 0, "alive")
    for chunk in ("!!", "YQ", "YQ=", "YR==", "YWJj\n", "é"):
        await files.see(f"chunk {chunk!r}", "writeBlock", handleId="w", offset=0, chunk=chunk)
    await files.see("two", "open", "f", handleId="w2", mode="replace")
    await write("old one", 0, "1111")
    await write("new one", 2, "22", "w2")
    await files.see("close", "close", handleId="w")
    await write("closed", 0, "x")
    await files.see("new file", "open", "new", handleId="n", mode="replace")
    await files.see("closed unwritten", "close", handleId="n")
    t.see("made", os.stat(files.path("new")).st_size)


@case("wrong direction")
async def direction(t):
    """A read that fails closes the handle, a write that fails does not."""
    files = await Files.open(t)
    await files.see("open to write", "open", "f", handleId="w", mode="replace")
    await files.see("read it", "readBlock", handleId="w", offset=0, len=3)
    await files.see("write afterwards", "writeBlock", handleId="w", offset=0, chunk="YQ==")
    for n in (63, 64):
        await files.see(f"open to write {n}", "open", "f", handleId="w", mode="replace")
        await files.see(f"read at {n}", "readBlock", handleId="w", offset=2**n - 1, len=3)
    await files.see("open to read", "open", "d/f", handleId="r")
    await files.see("write it", "writeBlock", handleId="r", offset=0, chunk="YQ==")
    await files.see("read afterwards", "readBlock", handleId="r", offset=0, len=3)
    await files.see("open a directory of handles", "open", "d", handleId="r2")
    t.see("open memory", await files.c.call("fs/open", {"handleId": "m",
                                                        "path": "file:///proc/self/mem"}))
    await files.see("read memory", "readBlock", handleId="m", offset=0, len=10)
    await files.see("read memory again", "readBlock", handleId="m", offset=0, len=10)


@case("ids")
async def ids(t):
    files = await Files.open(t)
    for handle in ("", "x" * 32, LONG, "é" * 16, "é" * 17, "a`b", "new\nline", "\0",
                   "\U0001f600" * 8):
        name = f"{handle!r:.20} of {len(handle)}"
        await files.see(f"open {name}", "open", "f", handleId=handle)
        await files.see(f"twice {name}", "open", "f", handleId=handle)
        await files.see(f"twice, missing {name}", "open", "nope", handleId=handle)
        await files.see(f"twice, replace {name}", "open", "f", handleId=handle, mode="replace")
        await files.see(f"read {name}", "readBlock", handleId=handle, offset=0, len=3)
        await files.see(f"close {name}", "close", handleId=handle)
        await files.see(f"close again {name}", "close", handleId=handle)
        await files.see(f"read closed {name}", "readBlock", handleId=handle, offset=0, len=3)
    t.see("untouched", os.stat(files.path("f")).st_size)


@case("order of checks")
async def order(t):
    files = await Files.open(t)
    await files.see("open", "open", "f", handleId="h")
    for label, method, params in (
            ("long id, missing file", "open", {"path": files.uri("nope"), "handleId": LONG}),
            ("long id, foreign path", "open", {"path": "file:///C:/x", "handleId": LONG}),
            ("known id, foreign path", "open", {"path": "file:///C:/x", "handleId": "h"}),
            ("long id, bad path", "open", {"path": "x", "handleId": LONG}),
            ("long id, bad length", "readBlock", {"handleId": LONG, "offset": 0, "len": 0}),
            ("unknown id, bad length", "readBlock", {"handleId": "u", "offset": 0, "len": 0}),
            ("unknown id", "readBlock", {"handleId": "u", "offset": 0, "len": 1}),
            ("long id, bad base64", "writeBlock", {"handleId": LONG, "offset": 0, "chunk": "!"}),
            ("unknown id, nothing", "writeBlock", {"handleId": "u", "offset": 0, "chunk": ""}),
            ("unknown id, far", "writeBlock", {"handleId": "u", "offset": 2**63, "chunk": "YQ=="}),
            ("far, nothing", "writeBlock", {"handleId": "h", "offset": 2**64 - 1, "chunk": ""}),
            ("read handle, far", "writeBlock", {"handleId": "h", "offset": 2**63, "chunk": "YQ=="}),
            ("long id", "close", {"handleId": LONG})):
        t.see(label, await files.c.call(f"fs/{method}", params))


@case("limit")
async def limit(t):
    files = await Files.open(t)
    seen = [await files.call("open", "f" if n % 2 else "d/new", handleId=f"L{n}",
                             mode="read" if n % 2 else "replace") for n in range(130)]
    t.see("130 times", seen)
    await files.see("over the limit, missing", "open", "nope", handleId="over")
    await files.see("over the limit, foreign", "open", path="file:///C:/x", handleId="over")
    await files.see("over the limit, known", "open", "f", handleId="L1")
    await files.see("over the limit, long", "open", "f", handleId=LONG)
    await files.effect("over the limit, replace", "open", "f", handleId="over", mode="replace")
    await files.see("close one", "close", handleId="L3")
    await files.see("room again", "open", "f", handleId="again")
    await files.see("full again", "open", "f", handleId="again2")
    await files.see("a read that fails", "readBlock", handleId="L0", offset=0, len=1)
    await files.see("makes room", "open", "f", handleId="again2")


@case("connections")
async def connections(t):
    """Handles belong to the connection, also when its session is resumed."""
    files = await Files.open(t)
    first = await t.open()
    session = await first.hello()
    params = {"handleId": "h", "path": files.uri("f")}
    t.see("first", await first.call("fs/open", params))
    t.see("second, unknown", await files.call("readBlock", handleId="h", offset=0, len=1))
    t.see("second, same id", await files.c.call("fs/open", params))
    await first.close()
    third = await t.open()
    for _ in range(100):
        answer = await third.call("initialize", {"clientName": "x", "resumeSessionId": session})
        if isinstance(answer, dict):
            break
    third.send('{"method":"initialized"}')
    t.see("resumed", await third.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1}))
    t.see("resumed, opened", await third.call("fs/open", params))


@case("few descriptors")
async def few_descriptors(t):
    """EMFILE on opening, and recovery from it. How many can be open differs."""
    files = await Files.open(t, server="few-descriptors")
    answers = [await files.call("open", "f", handleId=f"h{n}") for n in range(60)]
    errors = [a for a in answers if isinstance(a, str)]
    t.see("some fail", [bool(errors), sorted(set(errors))])
    t.see("metadata goes on", await files.call("getMetadata", "f"))
    for method in ("readFile", "readDirectory"):
        await files.see(method, method, "d/f" if method == "readFile" else "d")
    for n in range(60):
        await files.call("close", handleId=f"h{n}")
    await files.see("afterwards", "readFile", "f")
