"""Sandboxed processes on terminals, their signals, what they leave behind."""

import re

from harness.case import case
from harness.peer import ABSENT
from harness.sandbox import WORK, Place, context, managed, outcome, unrestricted

PROFILES = {"no sandbox": None, "read": ["r :root"], "work": ["r :root", "w :project_roots"],
            "read, network": managed("r :root", network="enabled"),
            "unrestricted": unrestricted("restricted")}
TERMINAL = ("tty >/dev/null && echo tty; echo x > /dev/tty && echo devtty-ok; stty size; "
            "ls /proc/self/fd; readlink /proc/self/fd/0 | cut -c1-9; "
            "ps -o pid=,ppid=,pgid=,sid=,tpgid=,tty= -p $$")
TRAP = "trap 'echo GOTINT; exit 7' INT; echo ready; while :; do sleep 0.1; done"


def sandbox_of(profile):
    return ABSENT if profile is None else context(profile)


def add(name, profile):
    @case(f"terminal: {name}")
    async def terminal(t):
        place = await Place.open(t)
        place.make()
        got = await place.run(["/bin/bash", "-c", TERMINAL], sandbox_of(profile), tty=True,
                              env={"TERM": "xterm", "SHLVL": "1", "HOME": "/nonexistent"})
        got = re.sub(r" +", " ", re.sub(r"pts/\d+", "pts", got))
        t.see("end", re.sub(r"\b\d{3,}\b", "N", got))

    @case(f"interrupt: {name}")
    async def interrupt(t):
        place = await Place.open(t)
        place.make()
        for kind in ("key", "signal on a terminal", "signal"):
            process = await place.start(TRAP, sandbox_of(profile), tty=kind != "signal")
            await process.until_text("ready", "stdout" if kind == "signal" else "pty")
            sent = await (process.write(b"\x03") if kind == "key" else process.signal())
            await process.until_closed()
            t.see(kind, [sent, outcome(process), await process.terminate()])
        t.see("left", place.left())


for _name, _profile in PROFILES.items():
    add(_name, _profile)


@case("background")
async def background(t):
    """Background processes survive the end of their command, or do not."""
    place = await Place.open(t)
    for name, profile in (("none", None), ("read", ["r :root"]),
                          ("work", ["r :root", "w :project_roots"])):
        place.make()
        process = await place.start(
            "(setsid sleep 33.2 >/dev/null 2>&1 & echo $!); ps -o lstart= -p 1 >/dev/null; "
            "echo main-exit", sandbox_of(profile))
        await process.until_closed()
        lines = process.text().split()
        t.see(name, [lines[1:], process.exited()["exitCode"], place.left()])
        if profile is None:
            t.pids.append(int(lines[0]))


@case("end of a sandbox")
async def end(t):
    """What it put on the disk while it lived, and afterwards."""
    place = await Place.open(t)
    for how in ("by itself", "kill"):
        place.make()
        process = await place.start("echo ready; read x; exit 4",
                                    context(["r :root", "w :project_roots"]), pipeStdin=True)
        await process.until_text("ready")
        t.see(f"{how}, alive", place.left())
        if how == "by itself":
            await process.write(b"\n")
        else:
            t.see("terminate", await process.terminate())
        await process.until_closed()
        t.see(f"{how}, end", outcome(process))
        t.see(f"{how}, left", place.left())


@case("two in one workspace")
async def two(t):
    place = await Place.open(t)
    place.make()
    sandbox = context(["r :root", "w :project_roots"])
    script = "echo ready; read x; touch .git/x 2>/dev/null || echo safe"
    first = await place.start(script, sandbox, pipeStdin=True)
    await first.until_text("ready")
    second = await place.start(script, sandbox, pipeStdin=True)
    await second.until_text("ready")
    for name, process in (("first", first), ("second", second)):
        await process.write(b"\n")
        await process.until_closed()
        t.see(name, outcome(process))
        t.see(f"left after the {name}", place.left())


@case("missing program")
async def missing(t):
    place = await Place.open(t)
    place.make("ws/plain")
    for name, command in (("absolute", ["/no/such"]), ("searched", ["no-such"]),
                          ("not executable", ["@/ws/plain"]), ("directory", ["/usr"])):
        for mode in (False, True):
            t.see(f"{name}, tty {mode}", await place.run(command, context(["r :root"]), tty=mode))
    t.see("no arguments", await place.run([], context(["r :root"])))
    t.see("empty argument", await place.run([""], context(["r :root"])))
    t.see("cwd missing", await place.run("pwd", context(["r :root"]), at="nope"))
    t.see("work", await place.run("echo ok", context(WORK), alone=True))
