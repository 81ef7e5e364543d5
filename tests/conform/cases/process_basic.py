"""Plain commands: output, notifications, reads of the whole, exit codes."""

import base64
import sys

from harness.case import case

PIPE_AND_TTY = ((False, "pipe"), (True, "tty"))


@case("output and exit")
async def output(t):
    """Reads pace the script, so that the chunks and their numbers are the same everywhere."""
    c = await t.connect()
    p = await c.start("printf 'out1\\n'; read a; printf 'err1\\n' >&2; read a; exit 7",
                      pipeStdin=True, arg0=None)
    await p.until_text("out1\n")
    await p.write("\n")
    await p.until_text("err1\n", "stderr")
    await p.write("\n")
    await p.until_closed()
    t.see("notifications", sorted(([m, e] for m, e in p.events), key=lambda x: x[1]["seq"]))
    for params in ({"afterSeq": None, "maxBytes": None, "waitMs": None}, {"afterSeq": 2},
                   {"afterSeq": 4, "waitMs": 1000}, {"afterSeq": 1, "maxBytes": 1}):
        t.see(f"read {params}", await p.read(**params))


@case("silent")
async def silent(t):
    c = await t.connect()
    p = await c.start(["/bin/true"])
    await p.until_closed()
    t.see("notifications", sorted(([m, e] for m, e in p.events), key=lambda x: x[1]["seq"]))


@case("streams")
async def streams(t):
    c = await t.connect()
    for tty, name in PIPE_AND_TTY:
        t.see(name, await c.finish_of("echo out; echo err >&2", processId=name, tty=tty))
        t.see(f"{name} binary", await c.finish_of("printf 'a\\377\\000\\302b'",
                                                  processId=name + "b", tty=tty))
        t.see(f"{name} 300 kB", {k: v if k != "stdout" and k != "pty" else len(v) for k, v in (
            await c.finish_of("head -c 300000 /dev/zero | tr '\\0' x", processId=name + "l",
                              tty=tty)).items()})
    t.see("arguments", await c.finish_of(["printf", "[%s]", "a b", "", "$x", "é", "\n"],
                                         processId="args"))
    t.see("early close", await c.finish_of("exec 1>&- 2>&-; exit 9", processId="early"))


@case("retained tail")
async def retained(t):
    """2 MiB written, 1 MiB retained; chunk sizes differ, so only ranges are compared."""
    c = await t.connect()
    p = await c.start("head -c 2097152 /dev/zero; exit 3")
    await p.until_closed()
    t.see("delivered", len(p.output("stdout")))
    answer = await p.read()
    size = sum(len(base64.b64decode(x["chunk"])) for x in answer.pop("chunks"))
    t.see("retained", "about 1 MiB" if 983040 <= size <= 1048576 else size)
    answer.pop("nextSeq")
    t.see("rest", answer)


def exits(script, name):
    @case(f"exit {name}")
    async def one(t):
        c = await t.connect()
        for tty, kind in PIPE_AND_TTY:
            t.see(kind, await c.finish_of(script, processId=kind, tty=tty))


for _code in (0, 1, 2, 126, 127, 128, 255, 256, 300):
    exits(f"exit {_code}", str(_code))
for _signal in (1, 2, 3, 6, 9, 11, 13, 14, 15, 31, 34, 64):
    exits(f"ulimit -c 0; kill -{_signal} $$; exec sleep 60", f"by signal {_signal}")


@case("read while running and after")
async def read_states(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"], pipeStdin=True)
    t.see("running", await p.read())
    t.see("interrupt", await p.signal())
    t.see("end", (await p.until_closed()).summary())
    t.see("after", await p.read(afterSeq=0, waitMs=1000))
    t.see("signal after", await p.signal())


@case("interrupt")
async def interrupt(t):
    c = await t.connect()
    for tty, kind in PIPE_AND_TTY:
        p = await c.start("trap 'echo trapped; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", processId=kind, tty=tty)
        stream = "pty" if tty else "stdout"
        await p.until_text("ready", stream)
        t.see(f"{kind} answer", await p.signal())
        await p.until_closed()
        t.see(f"{kind} end", p.exited())
        t.see(f"{kind} trapped", "trapped" in p.text(stream))


@case("signal before write")
async def signal_before_write(t):
    """What was asked first reaches the process first."""
    c = await t.connect()
    echo = ("import os, signal\n"
            "signal.signal(signal.SIGINT, lambda *a: os.write(1, b'int\\n'))\n"
            "os.write(1, b'ready\\n')\n"
            "while True:\n    os.write(1, os.read(0, 100))\n")
    p = await c.start([sys.executable, "-c", echo], pipeStdin=True)
    await p.until_text("ready\n")
    expected = "ready\n"
    for i in range(20):
        await p.signal()
        await p.write(f"{i}\n")
        expected += f"int\n{i}\n"
        await c.until(lambda: len(p.text()) >= len(expected))
    t.see("in order", p.text() == expected)
    t.see("terminate", await p.terminate())
