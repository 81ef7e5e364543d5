"""Children that outlive the command, and what terminate does to them."""

import asyncio
import re

from harness.case import case

PIPE_AND_TTY = ((False, "stdout"), (True, "pty"))


async def pid_in(p, stream, mark="child="):
    """The number the script printed after the mark, once it is there."""
    def found():
        return re.search(mark + r"(\d+)\s", p.text(stream))
    await p.peer.until(found)
    return int(found().group(1))


@case("output elsewhere")
async def elsewhere(t):
    """The child has let go of the output: the process closes, the child lives on."""
    c = await t.connect()
    p = await c.start("sleep 1000 >/dev/null 2>&1 & echo child=$!; exit 0")
    await p.until_closed()
    t.see("exited", p.exited())
    t.see("terminate", await p.terminate())
    t.see("child", await t.fate(await pid_in(p, "stdout"), 0.3))


@case("holds the output")
async def holds(t):
    c = await t.connect()
    p = await c.start("sleep 1000 & echo child=$!; exit 5")
    pid = await pid_in(p, "stdout")
    await p.until_exited()
    t.see("exited", p.exited())
    t.see("terminate", await p.terminate())
    t.see("signal", await p.signal())
    t.see("read", {k: v for k, v in (await p.read(afterSeq=5)).items() if k != "chunks"})
    t.see("id taken", await c.call("process/start", c.start_params(["/bin/true"])))
    t.see("child", await t.fate(pid, 0.3))


@case("own session")
async def own_session(t):
    c = await t.connect()
    p = await c.start("setsid sh -c 'echo child=$$; exec sleep 1000 >/dev/null 2>&1' & "
                      "read a; exit 0", pipeStdin=True)
    await p.until_text("child=")
    await p.write("\n")
    await p.until_exited()
    t.see("exited", p.exited())
    t.see("terminate", await p.terminate())
    t.see("child", await t.fate(await pid_in(p, "stdout"), 0.3))


@case("terminal hangs up")
async def hangs_up(t):
    """On a terminal the kernel sends SIGHUP to the group when the leader ends."""
    c = await t.connect()
    p = await c.start("sleep 1000 >/dev/null 2>&1 </dev/null & echo child=$!; exit 0", tty=True)
    await p.until_closed()
    t.see("exited", p.exited())
    t.see("child", await t.fate(await pid_in(p, "pty"), 60))


@case("terminal held")
async def terminal_held(t):
    c = await t.connect()
    p = await c.start("trap '' HUP; sleep 1000 & echo child=$!; exit 0", tty=True)
    pid = await pid_in(p, "pty")
    await p.until_exited()
    t.see("exited", p.exited())
    t.see("read", {k: v for k, v in (await p.read(afterSeq=5)).items() if k != "chunks"})
    t.see("child", await t.fate(pid, 0.3))


@case("late output on a terminal")
async def late_terminal(t):
    c = await t.connect()
    t.see("end", await c.finish_of("trap '' HUP; (sleep 0.3; echo late; sleep 0.1) & exit 4",
                                   tty=True))


@case("terminate stubborn")
async def stubborn(t):
    c = await t.connect()
    for tty, stream in PIPE_AND_TTY:
        p = await c.start("trap '' TERM HUP INT; echo leader=$$; sleep 1000 & echo child=$!; "
                          "echo READY; wait; wait; sleep 1000", processId=stream, tty=tty)
        await p.until_text("READY", stream)
        t.see(f"{stream} terminate", await p.terminate())
        await p.until_closed()
        t.see(f"{stream} exited", p.exited())
        for mark in ("leader=", "child="):
            t.see(f"{stream} {mark}", await t.fate(await pid_in(p, stream, mark)))


@case("terminate daemon")
async def daemon(t):
    """A descendant in a session of its own."""
    c = await t.connect()
    for tty, stream in PIPE_AND_TTY:
        p = await c.start("setsid sh -c 'trap \"\" HUP PIPE; echo child=$$; exec sleep 1000' & "
                          "read a", processId=stream, tty=tty, pipeStdin=True)
        await p.until_text("child=", stream)
        pid = await pid_in(p, stream)
        t.see(f"{stream} terminate", await p.terminate())
        await p.until_closed()
        t.see(f"{stream} exited", p.exited())
        t.see(f"{stream} child", await t.fate(pid, 3))


@case("terminate twice")
async def twice(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"])
    t.see("first", await p.terminate())
    await p.until_closed()
    t.see("after", await p.terminate())
    t.see("signal", await p.signal())
    t.see("end", p.summary())


@case("terminate stopped")
async def stopped(t):
    c = await t.connect()
    p = await c.start("echo child=$$; kill -STOP $$; sleep 1000")
    pid = await pid_in(p, "stdout")
    while not re.search(r"\) T ", open(f"/proc/{pid}/stat", encoding="ascii").read()):
        await asyncio.sleep(0.01)
    t.see("signal", await p.signal())
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("exited", p.exited())


@case("terminate with pending output")
async def pending(t):
    c = await t.connect()
    p = await c.start("yes")
    await p.until_text("y\n")
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("exited", p.exited())
    t.see("numbering", p.numbering())
    t.see("only whole output", set(p.text()) <= {"y", "\n"})


@case("leader gone, killed at removal", slow=True)
async def removal(t):
    """30 s after closing the reference kills what is left in the group."""
    c = await t.connect()
    p = await c.start("sleep 1000 >/dev/null 2>&1 & echo child=$!; exit 0")
    await p.until_closed()
    t.see("child after 34 s", await t.fate(await pid_in(p, "stdout"), 34))
