"""Sessions: detach, resume, isolation."""

import asyncio

from harness.case import case
from harness.peer import brief

TICKER = "while read a; do echo $a; done"


async def resume(t, session, **more):
    """A new connection that resumed the session; waits while the old one counts as attached."""
    for _ in range(100):
        c = await t.open()
        answer = await c.take(c.post("initialize", {"clientName": "b",
                                                    "resumeSessionId": session, **more}))
        if "error" not in answer or answer["error"]["code"] != -32010:
            return c, answer
        await c.close()
        await asyncio.sleep(0.05)
    raise AssertionError("the session stayed attached")


@case("resume")
async def resumed(t):
    a = await t.open()
    session = await a.hello()
    p = await a.start(TICKER, pipeStdin=True)
    t.see("write", await p.write("one\n", "w1"))
    await p.until_text("one\n")
    a.drop()
    b, answer = await resume(t, session)
    t.see("same session", answer["result"]["sessionId"] == session)
    t.see("result", sorted(answer["result"]))
    t.see("before initialized", await b.call("process/read", {"processId": "p"}))
    b.send('{"method":"initialized"}')
    t.see("retained", await b.call("process/read", {"processId": "p", "afterSeq": 0}))
    t.see("nothing new", await b.call("process/read", {"processId": "p", "afterSeq": 1}))
    t.see("id taken", await b.call("process/start", b.start_params(["/bin/true"])))
    p.peer, b.processes["p"] = b, p
    t.see("write id remembered", await p.write("two\n", "w1"))
    t.see("new write", await p.write("three\n", "w2"))
    await p.until_text("three\n")
    t.see("output", p.text())
    t.see("terminate", await p.terminate())
    await p.until_closed()
    t.see("end", p.summary())


@case("resume-after-exit")
async def resume_after_exit(t):
    """Output and exit that happened while detached are retained, not replayed."""
    a = await t.open()
    session = await a.hello()
    fifo = t.dir + "/fifo"
    p = await a.start(f"mkfifo {fifo}; exec 3<>{fifo}; echo ready; read x <&3; echo $x; exit 5")
    await p.until_text("ready\n")
    a.drop()
    with open(fifo, "w", encoding="ascii") as f:
        f.write("away\n")
    b, _ = await resume(t, session)
    b.send('{"method":"initialized"}')
    waited = await b.call("process/read", {"processId": "p", "afterSeq": 2**64 - 1,
                                           "waitMs": 20000})
    t.see("at the end", waited)
    retained = await b.call("process/read", {"processId": "p"})
    for chunk in retained["chunks"]:
        chunk.pop("seq")  # the reference may number the exit before the last output
    t.see("retained", retained)
    t.see("terminate", await b.call("process/terminate", {"processId": "p"}))


@case("resume-attached")
async def resume_attached(t):
    a = await t.open()
    session = await a.hello()
    await a.start(["/bin/sleep", "1000"], processId="bg")
    b = await t.open()
    t.see("resume", await b.call("initialize", {"clientName": "b", "resumeSessionId": session}))
    t.see("no session", await b.call("process/read", {"processId": "bg"}))
    await b.hello()
    t.see("other session", await b.call("process/read", {"processId": "bg"}))
    t.see("same id elsewhere", await b.finish_of(["/bin/true"], processId="bg"))
    t.see("first undisturbed", await a.call("environment/status"))
    t.see("still running", await a.call("process/terminate", {"processId": "bg"}))


@case("resume-silent-peer")
async def resume_silent(t):
    """The session is attached to a connection that no longer answers pings."""
    a = await t.open()
    session = await a.hello()
    await a.call("environment/status")
    a.task.cancel()
    answers = []
    for _ in range(30):
        c = await t.open()
        answers.append(await c.call("initialize", {"clientName": "b", "resumeSessionId": session}))
        await c.close()
        if isinstance(answers[-1], dict):
            break
        await asyncio.sleep(0.1)
    t.see("first answer", answers[0])
    t.see("within 3 s", "resumed" if isinstance(answers[-1], dict) else "refused")


@case("resume-twice")
async def resume_twice(t):
    a = await t.open()
    session = await a.hello()
    await a.start(["/bin/sleep", "1000"])
    a.drop()
    for label in ("first", "second"):
        c, answer = await resume(t, session)
        t.see(label, answer["result"]["sessionId"] == session)
        c.drop()
    c, _ = await resume(t, session)
    c.send('{"method":"initialized"}')
    t.see("running", await c.call("process/terminate", {"processId": "p"}))


@case("resume-after-reset")
async def resume_after_reset(t):
    a = await t.open()
    session = await a.hello()
    a.ws.abort()
    c, answer = await resume(t, session)
    t.see("same session", answer["result"]["sessionId"] == session)
    t.see("again", await c.call("initialize", {"clientName": "x", "resumeSessionId": session}))


@case("resume-during-long-poll")
async def resume_during_long_poll(t):
    a = await t.open()
    session = await a.hello()
    p = await a.start(["/bin/sleep", "1000"])
    a.post("process/read", {"processId": "p", "waitMs": 60000})
    a.drop()
    c, answer = await resume(t, session)
    t.see("same session", answer["result"]["sessionId"] == session)
    c.send('{"method":"initialized"}')
    t.see("terminate", await c.call("process/terminate", {"processId": p.id}))


@case("unknown")
async def unknown(t):
    c = await t.open()
    for session in ("x", "", "00000000-0000-4000-8000-000000000000", "é\n"):
        t.see(repr(session), await c.call("initialize", {"clientName": "x",
                                                         "resumeSessionId": session}))


@case("isolation")
async def isolation(t):
    a, b = await t.connect(), await t.connect()
    await a.start(["/bin/sleep", "1000"])
    t.see("read", await b.call("process/read", {"processId": "p"}))
    t.see("terminate", await b.call("process/terminate", {"processId": "p"}))
    t.see("write", await b.call("process/write", {"processId": "p", "chunk": "", "writeId": "1"}))
    t.see("start", await b.finish_of("echo other"))
    t.see("first", await a.call("process/terminate", {"processId": "p"}))


@case("expiry", slow=True)
async def expiry(t):
    """A session is forgotten, and its processes are killed, 30 s after the disconnect."""
    a = await t.open()
    session = await a.hello()
    p = await a.start("echo $$; exec sleep 1000")
    await p.until_text("\n")
    pid = int(p.text())
    a.drop()
    await asyncio.sleep(20)
    t.see("after 20 s", await t.fate(pid, 0.1))
    t.see("later", await t.fate(pid, 120))
    c = await t.open()
    t.see("resume", await c.call("initialize", {"clientName": "x", "resumeSessionId": session}))


@case("resume-after-20-s", slow=True)
async def resume_late(t):
    a = await t.open()
    session = await a.hello()
    await a.start(["/bin/sleep", "1000"])
    a.drop()
    await asyncio.sleep(20)
    c = await t.open()
    answer = await c.take(c.post("initialize", {"clientName": "b", "resumeSessionId": session}))
    t.see("session", brief(answer).get("sessionId") == session)
    c.send('{"method":"initialized"}')
    t.see("running", await c.call("process/terminate", {"processId": "p"}))


@case("retention", slow=True)
async def retention(t):
    """A closed process keeps its id for 30 s."""
    c = await t.connect()
    t.see("first", await c.finish_of("exit 3"))
    await asyncio.sleep(20)
    t.see("after 20 s", await c.call("process/read", {"processId": "p"}))
    t.see("taken", await c.call("process/start", c.start_params(["/bin/true"])))
    await asyncio.sleep(15)
    t.see("after 35 s", await c.call("process/read", {"processId": "p"}))
    t.see("free", await c.finish_of("echo two"))
