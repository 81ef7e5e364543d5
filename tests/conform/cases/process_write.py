"""Writes to the standard input of pipes and terminals."""

from harness.case import case
from harness.peer import b64


@case("echo through cat")
async def cat(t):
    c = await t.connect()
    p = await c.start(["/bin/cat"], pipeStdin=True)
    t.see("first", await p.write("hello\n", "w1"))
    t.see("same id", [await p.write("A", "same"), await p.write("B", "same")])
    t.see("empty", await p.write("", "e"))
    t.see("binary", await p.write(bytes(range(256)), "b"))
    await c.until(lambda: len(p.output("stdout")) >= 263)
    t.see("output", p.output("stdout").hex())
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("late", await p.write("late", "w9"))
    t.see("late repeated id", await p.write("x", "same"))
    t.see("late empty id", await p.write("x", ""))
    t.see("end", p.exited())


@case("reader that leaves")
async def leaves(t):
    c = await t.connect()
    p = await c.start(["/usr/bin/head", "-n1"], pipeStdin=True)
    t.see("two lines", await p.write("one\ntwo\n"))
    await p.until_closed()
    for i in range(3):
        t.see(f"after the end {i}", await p.write("more" * 10))
    t.see("end", p.summary())


@case("reader that closes its input")
async def closes(t):
    c = await t.connect()
    p = await c.start("exec 0<&-; echo ready; exec sleep 1000", pipeStdin=True)
    await p.until_text("ready")
    for i in range(3):
        t.see(str(i), await p.write("x" * 10))
    t.see("terminate", await p.terminate())


@case("no input")
async def no_input(t):
    c = await t.connect()
    p = await c.start("cat; echo end; exec sleep 1000")
    await p.until_text("end\n")
    t.see("running", await p.write("x"))
    await p.terminate()
    await p.until_closed()
    t.see("closed", await p.write("x"))
    t.see("output", p.text())


@case("terminal")
async def terminal(t):
    c = await t.connect()
    p = await c.start("read x; echo got:$x", tty=True)
    t.see("write", await p.write("abc\n"))
    await p.until_closed()
    t.see("after the end", [await p.write("more"), await p.write("more")])
    t.see("end", p.summary())


@case("terminal after terminate")
async def terminal_terminated(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"], tty=True)
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("write", await p.write("x"))


@case("large")
async def large(t):
    """1 MiB through cat in one write."""
    c = await t.connect()
    p = await c.start(["/bin/cat"], pipeStdin=True)
    data = bytes(i * 7 & 0xFF for i in range(1 << 20))
    t.see("write", await p.write(data))
    await c.until(lambda: len(p.output("stdout")) >= len(data))
    t.see("same bytes", p.output("stdout") == data)
    t.see("terminate", await p.terminate())


@case("order")
async def order(t):
    """Pipelined writes arrive in the order they were sent."""
    c = await t.connect()
    p = await c.start(["/bin/cat"], pipeStdin=True)
    for i in range(100):
        c.post("process/write", {"processId": "p", "chunk": b64(f"{i}\n"), "writeId": str(i)}, i)
    t.see("answers", [(await c.take(i)).get("result") for i in range(100)])
    await p.until_text("99\n")
    t.see("output", p.text())


@case("memory of write ids")
async def memory(t):
    """4096 ids are remembered for each process; the oldest goes first."""
    c = await t.connect()
    p = await c.start("stty -echo 2>/dev/null; exec cat", pipeStdin=True)
    for first in range(0, 4097, 64):
        ids = range(first, min(first + 64, 4097))
        for i in ids:
            c.post("process/write", {"processId": "p", "chunk": "", "writeId": f"id{i}"}, i)
        for i in ids:
            await c.take(i)
    t.see("forgotten", await p.write("first\n", "id0"))
    t.see("remembered", await p.write("second\n", "id4096"))
    t.see("mark", await p.write("mark\n", "mark"))
    await p.until_text("mark\n")
    t.see("output", p.text())
