"""Process ids: reuse, odd ids, the order of checks."""

from harness.case import case


@case("reuse and order of checks")
async def reuse(t):
    c = await t.connect()

    async def try_start(label, argv, **more):
        t.see(label, (await c.start(argv, processId="a", **more)).response)

    await try_start("failed start", ["/nonexistent"])
    t.see("no entry", await c.call("process/read", {"processId": "a"}))
    t.see("free", await c.finish_of(["/bin/true"], processId="a"))
    await try_start("closed", ["/bin/true"])
    await try_start("empty argv first", [])
    await try_start("bad cwd first", ["/bin/true"], cwd="file://h/x")
    await try_start("duplicate before program", ["/nonexistent"])
    await try_start("duplicate before cwd on disk", ["/bin/true"], cwd="file:///nonexistent")
    await try_start("duplicate before NUL", ["/bin/true", "a\0b"])
    await try_start("bad cwd before empty argv", [], cwd="file://h/x")
    await try_start("thread id first", [], metadata={"threadId": "x"})


@case("odd ids")
async def odd_ids(t):
    c = await t.connect()
    for process_id in ("", " ", "é\n\0", "a" * 1000, "\"\\", "\u2028", "0", "😀"):
        label = ascii(process_id)[:40]
        t.see(label, await c.finish_of("exit 3", processId=process_id))
        t.see(f"{label} again", (await c.call("process/start", c.start_params(
            ["/bin/true"], processId=process_id))))
        t.see(f"{label} read", await c.call("process/read", {"processId": process_id}))


@case("terminate does not free the id")
async def terminate_keeps(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"])
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("start", await c.call("process/start", c.start_params(["/bin/true"])))


@case("many processes")
async def many(t):
    c = await t.connect()
    running = [await c.start(f"echo {i}; exit {i}", processId=str(i)) for i in range(20)]
    for p in running:
        await p.until_closed()
    t.see("ends", [p.summary() for p in running])
