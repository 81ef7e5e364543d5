"""process/read: paging, waiting, state."""

from harness.case import case

# Each line on stdin gives one chunk, so that all servers cut the output alike.
PACED = "for i in 1 2 3 4 5; do read a; printf 0123456789; done; read a; printf end; read a; exit 3"
LAST = 2**64 - 1


async def paced(c, chunks):
    p = await c.start(PACED, pipeStdin=True)
    for n in range(1, chunks + 1):
        await p.write("\n")
        await c.until(lambda: len(p.output("stdout")) >= 10 * n)
    return p


@case("paging while running")
async def paging(t):
    c = await t.connect()
    p = await paced(c, 5)
    for after in (None, 0, 1, 2, 4, 5, 100, LAST):
        t.see(f"after {after}", await p.read(afterSeq=after))
    for most in (0, 1, 9, 10, 11, 19, 20, 21, 25, 30, 49, 50, 51, 1000, LAST):
        t.see(f"at most {most}", await p.read(maxBytes=most))
        t.see(f"after 1, at most {most}", await p.read(afterSeq=1, maxBytes=most))
    t.see("nothing, no wait", await p.read(afterSeq=5, maxBytes=1, waitMs=0))
    t.see("nothing, short wait", await p.read(afterSeq=5, waitMs=50))
    t.see("beyond, short wait", await p.read(afterSeq=100, waitMs=50))


@case("paging after the end")
async def paging_after(t):
    c = await t.connect()
    p = await paced(c, 5)
    await p.write("\n")
    await p.until_text("end")
    await p.write("\n")
    await p.until_closed()
    for after in (None, 0, 5, 6, 7, 8, 9, LAST):
        t.see(f"after {after}", await p.read(afterSeq=after))
        t.see(f"after {after}, waiting", await p.read(afterSeq=after, waitMs=20000))
        t.see(f"after {after}, at most 1", await p.read(afterSeq=after, maxBytes=1))
    for most in (0, 10, 55, 1000):
        t.see(f"at most {most}", await p.read(maxBytes=most))


@case("waiting for output")
async def waiting(t):
    c = await t.connect()
    p = await c.start("sleep 0.5; printf x; read a; exit 4", pipeStdin=True)
    t.see("first", await p.read(waitMs=20000))
    t.see("nothing yet", await p.read(afterSeq=1, waitMs=1))
    await p.write("\n")
    await p.until_closed()
    t.see("at the end", await p.read(afterSeq=1, waitMs=20000))


@case("waiting for the end")
async def waiting_end(t):
    c = await t.connect()
    for label, params in (("closed", {"afterSeq": LAST, "waitMs": 20000}),
                          ("unlimited", {"waitMs": LAST})):
        p = await c.start(["/bin/sleep", "0.3"], processId=label)
        answer = await p.read(**params)
        if label == "unlimited":
            # Returns at the exit, when the streams may or may not have ended.
            answer = {k: answer[k] for k in ("chunks", "exited", "exitCode")}
        t.see(label, answer)
        await p.until_closed()


@case("wait through late output")
async def late_output(t):
    """A read beyond everything returns only when all streams are closed."""
    c = await t.connect()
    p = await c.start("echo a; sleep 0.2; echo b; (sleep 0.3; echo late) & exit 6")
    for i in range(2):
        answer = await p.read(afterSeq=LAST, waitMs=20000)
        answer.pop("nextSeq")
        t.see(str(i), answer)
    t.see("end", (await p.until_closed()).summary())


@case("exited but not closed")
async def exited_open(t):
    """A background child holds the output open."""
    c = await t.connect()
    fifo = t.dir + "/fifo"
    p = await c.start(f"mkfifo {fifo}; (cat {fifo}; echo late) & exit 3")
    await p.until_exited()
    t.see("at once", await p.read(waitMs=20000))
    t.see("waits", await p.read(afterSeq=1, waitMs=100))
    t.see("at once again", await p.read(afterSeq=0, waitMs=20000))
    t.see("terminate", await p.terminate())
    with open(fifo, "w", encoding="ascii"):
        pass
    await p.until_closed()
    t.see("after", await p.read(afterSeq=1))
    t.see("end", p.summary())
