"""The line transport."""

from harness.case import case
from harness.peer import brief

STATUS = '{"id":2,"method":"environment/status"}'


async def connect(t):
    c = await t.stdio()
    await c.hello()
    return c


@case("lines")
async def lines(t):
    c = await connect(t)
    for label, data in [("LF", STATUS + "\n"), ("CRLF", STATUS + "\r\n"),
                        ("blank", "\n\r\n \n\t\n"),
                        ("junk", "junk\n"), ("two documents", STATUS + STATUS + "\n"),
                        ("blanks around", f"   {STATUS}  \n"),
                        ("split document", "{\n" + STATUS[1:] + "\n"),
                        ("long line", STATUS[:-1] + " " * (1 << 20) + "}\n"),
                        ("array", "[]\n"), ("second initialize",
                                            '{"id":10,"method":"initialize","params":'
                                            '{"clientName":"x"}}\n')]:
        mark = len(c.answers)
        c.send_bytes(data.encode())
        await c.call("process/read", {"processId": "none"})
        t.see(label, [[m["id"], brief(m)] for m in c.answers[mark:-1]])
    c.eof()
    t.see("exit status", await c.exit_code())


@case("process")
async def process(t):
    c = await connect(t)
    t.see("pipe", await c.finish_of("echo out; echo err >&2; exit 3", processId="a"))
    t.see("tty", await c.finish_of("echo out; exit 3", processId="b", tty=True))
    p = await c.start("read a; echo got:$a", processId="c", pipeStdin=True)
    t.see("write", await p.write("x\n"))
    t.see("end", (await p.until_closed()).summary())


@case("end-of-input-kills")
async def end_of_input(t):
    c = await connect(t)
    p = await c.start("echo $$; trap '' TERM HUP INT; sleep 1000")
    await p.until_text("\n")
    c.eof()
    t.see("exit status", await c.exit_code())
    t.see("process", await t.fate(int(p.text())))


@case("end-at-once")
async def end_at_once(t):
    c = await t.stdio()
    c.eof()
    t.see("exit status", await c.exit_code())


@case("not-utf8")
async def not_utf8(t):
    c = await connect(t)
    await c.call("environment/status")
    c.send_bytes(b'{"id":"\xff"}\n')
    t.see("exit status", await c.exit_code())


@case("request-then-end")
async def request_then_end(t):
    c = await connect(t)
    await c.call("environment/status")
    mark = len(c.answers)
    c.send_bytes((STATUS + "\n").encode())
    c.eof()
    t.see("exit status", await c.exit_code())
    await c.task
    t.see("answers", [brief(m) for m in c.answers[mark:]])


@case("unterminated-last-line")
async def unterminated(t):
    c = await connect(t)
    await c.call("environment/status")
    mark = len(c.answers)
    c.send_bytes(STATUS.encode())
    c.eof()
    t.see("exit status", await c.exit_code())
    await c.task
    t.see("answers", [brief(m) for m in c.answers[mark:]])


@case("stray-notification")
async def stray(t):
    c = await connect(t)
    await c.call("environment/status")
    mark = len(c.answers)
    c.send('{"method":"nope"}')
    c.send(STATUS)
    c.eof()
    t.see("exit status", await c.exit_code())
    await c.task
    t.see("answers", [[m["id"], brief(m)] for m in c.answers[mark:]])


@case("two-lanes")
async def two_lanes(t):
    c = await t.stdio("--concurrent-requests", "2")
    await c.hello()
    t.see("status", await c.call("environment/status"))
