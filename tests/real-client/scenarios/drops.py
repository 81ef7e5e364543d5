"""The connection drops: at every message of a command's life, for a while, in a flood."""

from .common import (add, check, equal, exists, get, gone, make_fifo, pid_in, release, resumed,
                     scenario, within)

TALK = "echo ready; read a; echo \"<$a>\"; read a; echo \"[$a]\"; exit 9"

# Name: the traps (direction, message, how much of it still passes, which one of its kind).
# Every one of them must leave the command and its output whole.
UNNOTICED = {
    "connect": [("c2s", "connect", 0, 1)],
    "upgrade": [("c2s", "upgrade", 0, 1)],
    "upgrade-answer": [("s2c", "upgrade", 0.5, 1)],
    "initialize": [("c2s", "initialize", 0, 1)],
    "initialize-answer": [("s2c", "initialize", 0, 1)],
    "initialized": [("c2s", "initialized", 0, 1)],
    "probe": [("c2s", "fs/getMetadata", 0, 1)],
    "probe-answer": [("s2c", "fs/getMetadata", 0, 2)],
    "output": [("s2c", "process/output", 0, 1)],
    "output-half": [("s2c", "process/output", 0.5, 1)],
    "output-after": [("s2c", "process/output", 1, 1)],
    "write": [("c2s", "process/write", 0, 1)],
    "write-half": [("c2s", "process/write", 0.5, 2)],
    "write-answer": [("s2c", "process/write", 0, 1)],
    "exited": [("s2c", "process/exited", 0, 1)],
    "exited-after": [("s2c", "process/exited", 1, 1)],
    "closed": [("s2c", "process/closed", 0, 1)],
    "terminate": [("c2s", "process/terminate", 0, 1)],
    "terminate-answer": [("s2c", "process/terminate", 0, 1)],
    "resume": [("s2c", "process/output", 1, 1), ("c2s", "initialize", 0, 2)],
    "resume-answer": [("s2c", "process/output", 1, 1), ("s2c", "initialize", 0, 2)],
    "resumed": [("s2c", "process/output", 1, 1), ("c2s", "initialized", 0, 2)],
    "read": [("s2c", "process/output", 1, 1), ("c2s", "process/read", 0, 1)],
    "read-answer": [("s2c", "process/output", 1, 1), ("s2c", "process/read", 0.5, 1)],
}


# What is lost here is lost before there is a session, and older clients connect once only.
FIRST_CONNECTION = ("connect", "upgrade", "upgrade-answer", "initialize", "initialize-answer")


async def talk(b, tries):
    """Plays TALK; returns the text and the exit code.

    A client whose first connection was lost may begin the turn before it has connected again. It
    then has no environment in this turn; tries: how many clients may be told so, plus one.
    """
    for left in reversed(range(tries)):
        async with b.client() as m:
            o = await m.shell(TALK, tty=True, yield_time_ms=250)
            if left > 0 and "Wait for an environment to become available" in o.text:
                m.outputs.remove(o)  # it depends on the time, and is not compared
                continue
            check(o.session, f"the command must be running: {o.text!r}")
            await b.proxy.until_output("ready")
            text = o.out
            o = await m.stdin(o.session, "one\n", yield_time_ms=250)
            check(o.session, f"the command must be running: {o.text!r}")
            text += o.out
            o = await m.stdin(o.session, "two\n", yield_time_ms=3000)
            text, code = await m.until_exit(o, text)
            within("after", (await m.shell("echo after")).out)
            return text, code


def unnoticed(name, traps):
    async def play(b):
        await b.start_server()
        set_traps = [b.proxy.trap(d, m, part=part, nth=nth) for d, m, part, nth in traps]
        text, code = await talk(b, 2 if name in FIRST_CONNECTION else 1)
        equal([t.name for t in set_traps if not t.sprung.is_set()], [], "traps not sprung")
        equal(code, 9, "exit code")
        for word in ("ready", "<one>", "[two]"):
            equal(text.count(word), 1, f"times of {word} in {text!r}")
        equal(len(b.proxy.calls("process/start")), 2, "starts")

    what = ", then ".join(f"{m} {'to' if d == 'c2s' else 'from'} the server"
                          for d, m, _, _ in traps)
    since = ("0.166.0", "older clients connect once only") if name in FIRST_CONNECTION else None
    add(play, f"drop-{name}", f"The connection is lost at {what}; nothing else is.", since=since)


for _name, _traps in UNNOTICED.items():
    unnoticed(_name, _traps)


@scenario
async def drop_start(b):
    """process/start does not arrive: the model is told, and the command was not run."""
    await b.start_server()
    trap = b.proxy.trap("c2s", "process/start")
    async with b.client() as m:
        o = await m.shell("echo run >>ran; echo first")
        equal((o.code, o.session), (None, None), "what the model is told")
        check(trap.sprung.is_set(), "the trap was not sprung")
        check(not exists(b.work, "ran"), "the command was run")
        o = await m.shell("echo run >>ran; echo second")
        within("second", o.out)
    equal(get(f"{b.work}/ran"), "run\n", "runs")


@scenario
async def drop_start_answer(b):
    """The answer to process/start is lost: the model is told, and the command is ended."""
    await b.start_server()
    b.proxy.trap("s2c", "process/start")
    async with b.client() as m:
        o = await m.shell("exec sleep 1000")
        equal((o.code, o.session), (None, None), "what the model is told")
        o = await m.shell("echo second")
        within("second", o.out)
        await b.proxy.until(lambda: b.proxy.processes()[0]["code"] == 137, "exit code 137")
    equal(b.proxy.calls("process/terminate")[0]["result"], {"running": True}, "terminate")


@scenario
async def drop_signal(b):
    """process/signal is lost: the model can send it again."""
    await b.start_server()
    b.proxy.trap("c2s", "process/signal")
    async with b.client() as m:
        o = await m.shell("trap 'echo got-int; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", yield_time_ms=250)
        await b.proxy.until_output("ready")
        session = o.session
        o = await m.stdin(session, "\x03")
        if o.code is None:
            o = await m.stdin(session, "\x03")
    check(b.proxy.connections == 2, "there was no second connection")


@scenario
async def drop_signal_answer(b):
    """The answer to process/signal is lost: the command still sees the signal once."""
    await b.start_server()
    b.proxy.trap("s2c", "process/signal")
    async with b.client() as m:
        o = await m.shell("trap 'echo got-int >>seen; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", yield_time_ms=250)
        await b.proxy.until_output("ready")
        await m.stdin(o.session, "\x03")
        await b.proxy.until(lambda: b.proxy.processes()[0]["code"] is not None, "the exit")
    equal(get(f"{b.work}/seen"), "got-int\n", "signals seen")


def patch_dropped(direction, method, written):
    async def play(b):
        await b.start_server()
        trap = b.proxy.trap(direction, method)
        async with b.client() as m:
            o = await m.patch("*** Add File: first\n+x")
            check(trap.sprung.is_set(), "the trap was not sprung")
            equal(exists(b.work, "first"), written, f"first was written ({o.text!r})")
            within("Success", (await m.patch("*** Add File: second\n+x")).text)
        equal(get(f"{b.work}/second"), "x\n", "the second file")
        resumed(b)

    lost = "request" if direction == "c2s" else "answer"
    add(play, f"drop-patch-{lost}",
        f"The {lost} of a patch's {method} is lost; the next patch works.")


patch_dropped("c2s", "fs/writeFile", False)
patch_dropped("s2c", "fs/writeFile", True)


@scenario
async def resume(b):
    """The connection drops while a command runs; output and exit code are complete."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; read a <&3; "
                          "echo three; exit 6", yield_time_ms=250)
        await b.proxy.until_output("one")
        text = o.out
        b.proxy.cut()
        await release(fifo)
        o = await m.stdin(o.session, yield_time_ms=5000)
        await release(fifo)
        text, code = await m.until_exit(o, text)
    equal([text.count(w) for w in ("one\n", "two\n", "three\n")], [1, 1, 1], "each line once")
    equal(code, 6, "exit code")
    resumed(b)


@scenario
async def resume_after_exit(b):
    """The command ends while nobody is connected."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; echo x >ended.pid; "
                          "exit 5", yield_time_ms=250)
        await b.proxy.until_output("one")
        b.proxy.down = True
        b.proxy.cut()
        await release(fifo)
        refused = b.proxy.refused
        await b.proxy.until(lambda: b.proxy.refused > refused + 3 and exists(b.work, "ended.pid"),
                            "the command's end")
        b.proxy.down = False
        text, code = await m.until_exit(o)
    equal([text.count(w) for w in ("one\n", "two\n")], [1, 1], "each line once")
    equal(code, 5, "exit code")
    resumed(b)


@scenario
async def resume_terminal(b):
    """A PTY survives three drops with input between them."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("for i in 1 2 3; do read a; echo \"<$a>\"; done; exit 8", tty=True,
                          yield_time_ms=250)
        text, session = "", o.session
        for word in ("one", "two", "three"):
            text += o.out
            b.proxy.cut()
            o = await m.stdin(session, word + "\n", yield_time_ms=1000)
        text, code = await m.until_exit(o, text)
    for word in ("<one>", "<two>", "<three>"):
        equal(text.count(word), 1, f"times of {word}")
    equal(code, 8, "exit code")


@scenario
async def resume_burst(b):
    """The connection drops in the middle of a flood: nothing is lost or doubled."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; seq 1 20000; read a <&3; seq 20001 60000; echo; "
                          "echo END", yield_time_ms=1500, max_output_tokens=100000)
        b.proxy.trap("s2c", "process/output", part=0.5, nth=3)
        await release(fifo)
        text, code = await m.until_exit(o)
    within("END", text)
    equal(code, 0, "exit code")
    check(b.proxy.processes()[0]["bytes"] ==
          "".join(f"{i}\n" for i in range(1, 60001)).encode() + b"\nEND\n", "all output")
    resumed(b)


@scenario
async def resume_parallel(b):
    """Four commands run while the connection drops; each goes on by itself."""
    await b.start_server()
    fifos = [make_fifo(b, f"f{i}") for i in range(4)]
    async with b.client() as m:
        running = [await m.shell(f"exec 3<>{f}; echo up-{i}; read a <&3; echo \"$a\"; exit {i}",
                                 yield_time_ms=250) for i, f in enumerate(fifos)]
        for i in range(4):
            await b.proxy.until_output(f"up-{i}")
        b.proxy.cut()
        for i, fifo in enumerate(fifos):
            await release(fifo, f"word-{i}\n")
        for i, o in enumerate(running):
            text, code = await m.until_exit(await m.stdin(o.session), o.out)
            equal((text.count(f"up-{i}\n"), text.count(f"word-{i}\n"), code), (1, 1, i),
                  f"output and exit code of command {i}")
    resumed(b)


@scenario
async def outage(b):
    """The network is away while the client tries again and again."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; exit 7",
                          yield_time_ms=250)
        await b.proxy.until_output("one")
        b.proxy.down = True
        b.proxy.cut()
        before = b.proxy.refused
        await b.proxy.until(lambda: b.proxy.refused >= before + 30, "30 attempts")
        b.proxy.down = False
        await release(fifo)
        text, code = await m.until_exit(o)
    equal([text.count(w) for w in ("one\n", "two\n")], [1, 1], "each line once")
    equal(code, 7, "exit code")
    resumed(b)


@scenario
async def half_open(b):
    """The client has lost the connection and the server does not know: it is told to wait with
    -32010 until the server has noticed."""
    await b.start_server()
    fifo = make_fifo(b)

    def waiting():
        return [c for c in b.proxy.calls("initialize") if c.get("error", {}).get("code") == -32010]

    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; exit 3",
                          yield_time_ms=250)
        await b.proxy.until_output("one")
        b.proxy.cut_client()
        await b.proxy.until(lambda: len(waiting()) >= 3, "-32010 three times")
        await release(fifo)
        b.proxy.cut_server()
        text, code = await m.until_exit(o)
    equal([text.count(w) for w in ("one\n", "two\n")], [1, 1], "each line once")
    equal(code, 3, "exit code")
    resumed(b)


@scenario(slow=True)
async def outage_too_long(b):
    """After more than 25 s the client gives the command up; the next one opens a new session,
    and the lost command is ended by the server."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("echo $$ >leader.pid; echo up; exec sleep 1000", yield_time_ms=250)
        check(o.session, "the command must still be running")
        await b.proxy.until_output("up")
        b.proxy.down = True
        b.proxy.cut()
        o = await m.stdin(o.session, yield_time_ms=40000)
        equal((o.code, o.session), (None, None), "the lost command")
        b.proxy.down = False
        within("after", (await m.shell("echo after")).out)
    equal(b.proxy.calls("initialize")[-1]["params"]["resumeSessionId"], None, "last session")
    await gone(pid_in(b, "leader"), 40)
