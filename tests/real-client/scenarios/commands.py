"""Commands: simple, failing, long, on a terminal, large, binary, parallel."""

import base64
import os

from rig.model import tool

from .common import check, equal, make_fifo, put, release, scenario, within, without

KILLED_ON_PTY = "a command on a terminal that dies by a signal has exit code 1 with the reference"


@scenario
async def simple(b):
    """One short command; both streams, the working directory, one session."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("echo hello; pwd; echo oops >&2")
    equal(o.code, 0, "exit code")
    for text in ("hello\n", b.work, "oops"):
        within(text, o.out)
    equal(len(b.proxy.calls("initialize")), 1, "initialize calls")
    start = b.proxy.calls("process/start")[0]
    equal(start["result"]["processId"], start["params"]["processId"], "processId")


@scenario
async def failing(b):
    """Exit codes, a missing program, death by signal."""
    await b.start_server()
    async with b.client() as m:
        o = [await m.shell(c) for c in ("echo out; echo err >&2; exit 7", "no-such-program-xyz",
                                        "kill -9 $$", "kill -TERM $$", "true")]
    equal([x.code for x in o], [7, 127, 137, 143, 0], "exit codes")
    within("out", o[0].out)
    within("err", o[0].out)


@scenario
async def spawn_error(b):
    """A working directory that does not exist is an error, and the session goes on."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("echo x", workdir="/nonexistent-dir/zz")
        after = await m.shell("echo still-alive")
    check(o.code != 0, "a missing directory must not succeed")
    equal(b.proxy.calls("process/start")[0]["error"],
          {"code": -32603, "message": "No such file or directory (os error 2)"}, "error")
    within("still-alive", after.out)


@scenario
async def polling(b):
    """A command outlives the yield time; the client polls until it ends."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; for i in 1 2 3; do echo tick-$i; read a <&3; done; "
                          "exit 3", yield_time_ms=250)
        check(o.session, "the command must still be running")
        text = ""
        for _ in range(2):
            await release(fifo)
            text += o.out
            o = await m.stdin(o.session, yield_time_ms=5000)
        await release(fifo)
        text, code = await m.until_exit(o, text)
    equal([text.count(f"tick-{i}\n") for i in (1, 2, 3)], [1, 1, 1], "each tick once")
    equal(code, 3, "exit code")
    equal(len(b.proxy.calls("process/write")), 0, "writes while polling")


@scenario
async def terminal(b):
    """A PTY: prompt, answer, echo, size."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("test -t 0 && test -t 1 && echo is-tty; stty size; printf 'name? '; "
                          "read n; echo \"hi <$n>\"; exit 4", tty=True, yield_time_ms=1000)
        await b.proxy.until_output("name? ")
        text, code = await m.until_exit(await m.stdin(o.session, "bob\n"), o.out)
    within("is-tty\r\n24 80\r\nname? ", b.proxy.processes()[0]["output"])
    within("hi <bob>", text)
    equal(code, 4, "exit code")
    writes = b.proxy.calls("process/write")
    equal([base64.b64decode(w["params"]["chunk"]) for w in writes], [b"bob\n"], "writes")
    equal(writes[0]["result"], {"status": "accepted"}, "answer to the write")
    equal({n["stream"] for n in b.proxy.notes("process/output")}, {"pty"}, "streams")


@scenario(differs={"processes": KILLED_ON_PTY, "calls": KILLED_ON_PTY})
async def terminal_keys(b):
    """Ctrl-C interrupts, Ctrl-D ends the input, several writes keep their order."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("echo started; sleep 1000; echo not-reached", tty=True,
                          yield_time_ms=250)
        await b.proxy.until_output("started")
        text, code = await m.until_exit(await m.stdin(o.session, "\x03"))
        check(code not in (None, 0), f"Ctrl-C must end the command: {code}")
        without("not-reached", text)
        o = await m.shell("echo ready; cat; echo cat-done", tty=True, yield_time_ms=250)
        await b.proxy.until_output("ready")
        session, text = o.session, ""
        for chars in ("one\n", "two\n", "\x04"):
            text += o.out
            o = await m.stdin(session, chars, yield_time_ms=1000)
        text, code = await m.until_exit(o, text)
    for word in ("one\r\none", "two\r\ntwo", "cat-done"):
        within(word.replace("\r", ""), text.replace("\r", ""))
    equal(code, 0, "exit code of cat")


@scenario
async def terminal_programs(b):
    """An interpreter at its prompt, job control of a shell, a question without echo."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("TERM=dumb /usr/bin/python3 -q", tty=True, yield_time_ms=1000)
        await b.proxy.until_output(">>> ")
        o = await m.stdin(o.session, "6*7+100000\n", yield_time_ms=250)
        await b.proxy.until_output("100042")
        _, code = await m.until_exit(await m.stdin(o.session, "\x04"))
        equal(code, 0, "exit code of the interpreter")
        o = await m.shell("bash --norc --noprofile -i", tty=True, yield_time_ms=1000)
        o = await m.stdin(o.session, "PS1=; sleep 1000 & jobs; kill %1; wait; echo jobs-$((4+5))\n",
                          yield_time_ms=1000)
        await b.proxy.until_output("jobs-9")
        text, code = await m.until_exit(await m.stdin(o.session, "exit 11\n"), o.out)
        without("no job control", text)
        equal(code, 11, "exit code of the shell")
        o = await m.shell("stty -echo; printf 'secret? '; read s; stty echo; echo; echo len=${#s}",
                          tty=True, yield_time_ms=250)
        await b.proxy.until_output("secret? ")
        text, code = await m.until_exit(await m.stdin(o.session, "hush-hush\n"), o.out)
    shell, question = b.proxy.processes()[1:]
    within("Running", shell["output"])
    without("hush", question["output"])
    within("len=9", text)


@scenario
async def large_input(b):
    """150 kB written to a terminal in raw mode arrive whole."""
    await b.start_server()
    data = "".join(f"{i:09d}\n" for i in range(15000))
    async with b.client() as m:
        o = await m.shell(f"stty raw -echo; echo ready; head -c {len(data)} | cksum", tty=True,
                          yield_time_ms=250)
        await b.proxy.until_output("ready")
        text, code = await m.until_exit(await m.stdin(o.session, data, yield_time_ms=10000))
    equal(code, 0, "exit code")
    put(os.path.join(b.root, "data"), data)
    with os.popen(f"cksum <{b.root}/data") as f:
        within(f.read().strip(), text)


@scenario
async def interrupt(b):
    """Ctrl-C to a command without a PTY becomes process/signal."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("trap 'echo got-int; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", yield_time_ms=250)
        await b.proxy.until_output("ready")
        text, code = await m.until_exit(await m.stdin(o.session, "\x03"))
    within("got-int", text)
    equal(code, 42, "exit code")
    equal([c["params"]["signal"] for c in b.proxy.calls("process/signal")], ["interrupt"],
          "signals")


@scenario
async def no_input(b):
    """Without a PTY the input is at its end."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("cat; echo cat=$?; readlink /proc/self/fd/0", yield_time_ms=10000)
    equal(o.code, 0, "exit code")
    within("cat=0\n/dev/null\n", o.out)


@scenario
async def large_output(b):
    """2 MB of lines, then one line of 3 MB on a pipe and on a PTY: every byte counts."""
    await b.start_server()
    size = sum(len(str(i)) + 1 for i in range(1, 300001))
    async with b.client() as m:
        lines = await m.shell("seq 1 300000", yield_time_ms=30000, max_output_tokens=2000)
        pipe = await m.shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END",
                             yield_time_ms=30000, max_output_tokens=500)
        pty = await m.shell("head -c 3000000 /dev/zero | tr '\\0' y; echo; echo END", tty=True,
                            yield_time_ms=30000, max_output_tokens=500)
    equal([o.code for o in (lines, pipe, pty)], [0, 0, 0], "exit codes")
    # The client counts a token for every four bytes it received.
    equal([o.tokens for o in (lines, pipe, pty)],
          [-(-n // 4) for n in (size, 3000005, 3000007)], "tokens")
    within("1\n2\n3\n", lines.out)
    within("299999\n300000", lines.out)
    within("END", pipe.out)
    within("END", pty.out)


@scenario
async def binary_output(b):
    """Bytes that are not UTF-8, NUL, and a character split over two chunks."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; printf 'a\\377\\000b\\342'; read a <&3; "
                          "printf '\\202\\254\\n'", yield_time_ms=250)
        await release(fifo)
        await m.until_exit(o)
        every = await m.shell("/usr/bin/python3 -c 'import os; "
                              "os.write(1, bytes(range(256)) * 4000)'", yield_time_ms=20000)
    equal(b.proxy.processes()[0]["bytes"], b"a\xff\0b\xe2\x82\xac\n", "bytes")
    equal(every.code, 0, "exit code")
    check(b.proxy.processes()[1]["bytes"] == bytes(range(256)) * 4000, "every byte value")


@scenario
async def parallel(b):
    """Four commands at the same time: each waits for all the others."""
    await b.start_server()
    for i in range(4):
        make_fifo(b, f"f{i}")
    # Command i opens FIFO i for reading and the next one for writing: none ends alone.
    commands = [f"(echo x >f{(i + 1) % 4}) & read a <f{i}; wait; echo job-{i}" for i in range(4)]
    async with b.client() as m:
        o = await m.call(*(tool("exec_command", cmd=c, yield_time_ms=20000) for c in commands))
    equal([x.code for x in o], [0] * 4, "exit codes")
    for i, x in enumerate(o):
        within(f"job-{i}", x.out)


@scenario
async def many(b):
    """Twelve commands one after another on one connection."""
    await b.start_server()
    async with b.client() as m:
        for i in range(12):
            within(f"n-{i}", (await m.shell(f"echo n-{i}")).out)
    equal(len(b.proxy.calls("initialize")), 1, "sessions")
    equal([c["result"] for c in b.proxy.calls("process/terminate")], [{"running": False}] * 12,
          "terminate after each command")


ENVIRONMENTS = {
    "all": ("", {"SERVER_SIDE": "yes", "TERM": "dumb", "NO_COLOR": "1", "CODEX_CI": "1"},
            ["HOME", "PATH"], []),
    "core": ('inherit = "core"\nset = { SET = "yes" }', {"SET": "yes"}, ["HOME", "PATH"],
             ["SERVER_SIDE"]),
    "none": ('inherit = "none"\nset = { PATH = "/usr/bin:/bin" }', {"PATH": "/usr/bin:/bin"}, [],
             ["HOME", "SERVER_SIDE"]),
    "exclude": ('inherit = "all"\nexclude = ["SERVER_*", "HOM?"]\nset = { SERVER_X = "kept" }',
                {"SERVER_X": "kept"}, ["PATH"], ["HOME", "SERVER_SIDE"]),
    "include": ('inherit = "all"\ninclude_only = ["PATH", "hom*"]', {}, ["HOME", "PATH"],
                ["SERVER_SIDE"]),
}


@scenario(differs={"processes": "the reference puts directories of its own into PATH"})
async def environment(b):
    """The client's shell_environment_policy, applied by the server."""
    await b.start_server()
    for name, (policy, values, present, absent) in ENVIRONMENTS.items():
        async with b.client(f"[shell_environment_policy]\n{policy}\n") as m:
            o = await m.shell("env | sed 's/^/E:/'", login=False)
        env = dict(line[2:].split("=", 1) for line in o.out.splitlines()
                   if line.startswith("E:") and "=" in line)
        equal({k: env.get(k) for k in values}, values, f"{name}: values")
        equal([k for k in present if k not in env], [], f"{name}: missing names")
        equal([k for k in absent if k in env], [], f"{name}: names too many")


@scenario(since=("0.166.0", "older clients take the exit for the end of the output"))
async def background_child(b):
    """The shell ends while a child holds the output: closed comes when the child lets go."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; (read a <&3; echo late) & echo early",
                          yield_time_ms=250)
        within("early", o.out)
        check(o.session, "the output is still open")
        await release(fifo)
        text, code = await m.until_exit(o)
    within("late", text)
    equal(code, 0, "exit code")


MCP_SERVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rig",
                          "mcp_server.py")


@scenario
async def mcp_server(b):
    """An MCP server that the client runs through the server: a command with its input on a pipe,
    over a drop of the connection too."""
    await b.start_server()
    tables = (f'[mcp_servers.demo]\ncommand = "/usr/bin/python3"\nargs = ["{MCP_SERVER}"]\n'
              f'environment_id = "remote"\ncwd = "{b.work}"\n')
    async with b.client(tables) as m:
        spaces = [t["name"] for t in m.first["tools"] if t["type"] == "namespace"]
        check(spaces, "no tool of the MCP server was offered")

        async def echo(text):
            return (await m.call({**tool("echo", text=text), "namespace": spaces[0]})).text

        within("got 5: hello", await echo("hello"))
        within("got 300000: xxx", await echo("x" * 300000))
        b.proxy.cut()
        within("got 5: again", await echo("again"))
    start = b.proxy.calls("process/start")[0]["params"]
    equal((start["pipeStdin"], start["tty"]), (True, False), "pipeStdin and tty")
    check(b.proxy.processes()[0]["terminated"], "the client did not end the MCP server")
    equal(b.proxy.connections, 2, "connections")
