"""The order of answers, with one lane and with two."""

from harness.case import case
from harness.peer import brief


async def long_polls(t, server):
    """Two long polls, then requests behind them; the polls end with the process."""
    c = await t.connect(server)
    p = await c.start("echo a; exec sleep 1000")
    await p.until_text("a\n")
    c.post("process/read", {"processId": "p", "afterSeq": 5, "waitMs": 1500}, "poll")
    c.post("process/read", {"processId": "p", "afterSeq": 5, "waitMs": 1500}, "poll2")
    mark = len(c.answers)
    c.post("environment/status", None, "status")
    c.post("process/terminate", {"processId": "p"}, "terminate")
    c.post("nope", None, "unknown")
    c.send("junk")
    ids = ["poll", "poll2", "status", "terminate", "unknown", -1]
    answers = {i: await c.take(i) for i in ids}
    order = [m["id"] for m in c.answers[mark:]]
    t.see("polls are answered", "before status" if order.index("poll") < order.index("status")
          else "after status")
    if server == "plain":
        t.see("order of the rest", [i for i in order if i not in ("poll", "poll2")])
    t.see("answers", {str(i): brief(m) for i, m in answers.items()})
    t.see("end", (await p.until_closed()).summary())


@case("one lane")
async def one_lane(t):
    await long_polls(t, "plain")


@case("two lanes")
async def two_lanes(t):
    await long_polls(t, "lanes")


@case("head of line")
async def head_of_line(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"])
    c.post("process/read", {"processId": "p", "waitMs": 1500}, 3)
    c.post("process/terminate", {"processId": "p"}, 4)
    c.post("environment/status", {}, 5)
    answers = [await c.take(i) for i in (3, 4, 5)]
    t.see("order", [m["id"] for m in c.answers[-3:]])
    t.see("answers", [brief(m) for m in answers])
    t.see("end", (await p.until_closed()).summary())


@case("pipelined requests")
async def pipelined(t):
    """Requests that do not wait are answered in order."""
    c = await t.connect()
    mark = len(c.answers)
    for i in range(60):
        c.post("process/read", {"processId": f"none-{i}"}, i)
    answers = [brief(await c.take(i)) for i in range(60)]
    t.see("order", [m["id"] for m in c.answers[mark:]] == list(range(60)))
    t.see("last", answers[-1])


@case("start then use")
async def start_then_use(t):
    """Requests that name a process follow its start without waiting for the answer."""
    c = await t.connect()
    c.post("process/start", c.start_params(["/bin/cat"], pipeStdin=True), 1)
    c.post("process/write", {"processId": "p", "chunk": "aGkK", "writeId": "1"}, 2)
    c.post("process/read", {"processId": "p", "waitMs": 20000}, 3)
    c.post("process/start", c.start_params(["/bin/true"]), 4)
    for i in (1, 2, 3, 4):
        t.see(str(i), brief(await c.take(i)))
    c.post("process/terminate", {"processId": "p"}, 5)
    t.see("5", brief(await c.take(5)))


@case("duplicate start pipelined")
async def duplicate_start(t):
    c = await t.connect()
    c.post("process/start", c.start_params(["/bin/sleep", "1000"]), 1)
    c.post("process/start", c.start_params(["/bin/sleep", "1000"]), 2)
    c.post("process/terminate", {"processId": "p"}, 3)
    for i in (1, 2, 3):
        t.see(str(i), brief(await c.take(i)))


@case("several waiters")
async def several_waiters(t):
    """All long polls on one process end when it closes."""
    c = await t.connect("lanes")
    p = await c.start("read a; exit 3", pipeStdin=True)
    for i in (1, 2):
        c.post("process/read", {"processId": "p", "afterSeq": 2**64 - 1, "waitMs": 20000}, i)
    other = await t.connect("lanes")
    t.see("other connection", await other.call("environment/status"))
    t.see("status meanwhile", await c.call("environment/status"))
    t.see("signal meanwhile", await c.call("process/signal", {"processId": "none",
                                                             "signal": "interrupt"}))
    c.post("process/terminate", {"processId": "p"}, 3)
    t.see("terminate", brief(await c.take(3)))
    t.see("polls", [brief(await c.take(i)) for i in (1, 2)])
    t.see("end", (await p.until_closed()).summary())
