"""What the real client does with the server. Each scenario gets a fresh server."""

import asyncio
import base64
import errno
import os
import signal

from rig.model import tool

ALL = []


def scenario(function):
    ALL.append(function)
    return function


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def within(needle, text):
    check(needle in text, f"{needle!r} is not in {text[-600:]!r}")


async def gone(pid, seconds=10):
    """Waits for the end of a process."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except asyncio.TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"process {pid} is still alive") from None
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def release(fifo, text="go\n", seconds=30):
    """Lets a command go on that reads from the FIFO, as soon as it does."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            check(error.errno == errno.ENXIO, str(error))
            check(asyncio.get_running_loop().time() < deadline, "nobody reads the FIFO")
            await asyncio.sleep(0.02)
    os.write(fd, text.encode())
    os.close(fd)


def make_fifo(b, name="fifo"):
    path = os.path.join(b.work, name)
    os.mkfifo(path)
    return path


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
                          "exit 3", yield_time_ms=500)
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
        within("is-tty", o.out)
        within("24 80", o.out)
        within("name? ", o.out)
        o = await m.stdin(o.session, "bob\n")
        text, code = await m.until_exit(o)
    within("hi <bob>", text)
    equal(code, 4, "exit code")
    writes = b.proxy.calls("process/write")
    equal([base64.b64decode(w["params"]["chunk"]) for w in writes], [b"bob\n"], "writes")
    equal(writes[0]["result"], {"status": "accepted"}, "answer to the write")
    equal({n["stream"] for n in b.proxy.notes("process/output")}, {"pty"}, "streams")


@scenario
async def terminal_keys(b):
    """Ctrl-C interrupts, Ctrl-D ends the input, several writes keep their order."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("echo started; sleep 1000; echo not-reached", tty=True,
                          yield_time_ms=500)
        text, code = await m.until_exit(await m.stdin(o.session, "\x03"))
        check(code not in (None, 0), f"Ctrl-C must end the command: {code}")
        check("not-reached" not in text, "the command went on after Ctrl-C")
        o = await m.shell("cat; echo cat-done", tty=True, yield_time_ms=500)
        session, text = o.session, ""
        for chars in ("one\n", "two\n", "\x04"):
            text += o.out
            o = await m.stdin(session, chars, yield_time_ms=1000)
        text, code = await m.until_exit(o, text)
    for word in ("one\r\none", "two\r\ntwo", "cat-done"):
        within(word.replace("\r", ""), text.replace("\r", ""))
    equal(code, 0, "exit code of cat")


@scenario
async def interrupt(b):
    """Ctrl-C to a command without a PTY becomes process/signal."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("trap 'echo got-int; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", yield_time_ms=700)
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
                          "printf '\\202\\254\\n'", yield_time_ms=500)
        await release(fifo)
        await m.until_exit(o)
    got = b"".join(base64.b64decode(n["chunk"]) for n in b.proxy.notes("process/output"))
    equal(got, b"a\xff\0b\xe2\x82\xac\n", "bytes")


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


@scenario
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


@scenario
async def background_child(b):
    """The shell ends while a child holds the output: closed comes when the child lets go."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; (read a <&3; echo late) & echo early",
                          yield_time_ms=700)
        within("early", o.out)
        check(o.session, "the output is still open")
        await release(fifo)
        text, code = await m.until_exit(o)
    within("late", text)
    equal(code, 0, "exit code")


@scenario
async def left_running(b):
    """What still runs when the client ends is terminated, with its descendants."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("sleep 1000 & echo $! >child; echo $$ >leader; exec sleep 1000",
                          yield_time_ms=700)
        check(o.session, "the command must still be running")
    for name in ("leader", "child"):
        with open(os.path.join(b.work, name), encoding="ascii") as f:
            await gone(int(f.read()))
    check(any(c.get("result") == {"running": True} for c in b.proxy.calls("process/terminate")),
          "the client asked for the end of a running process")


@scenario
async def client_interrupted(b):
    """SIGINT to the client ends the command."""
    await b.start_server()
    async with b.client(exit_code=None) as m:
        o = await m.shell("echo $$ >leader; exec sleep 1000", yield_time_ms=700)
        check(o.session, "the command must still be running")
        m.child.send_signal(signal.SIGINT)
        await asyncio.wait_for(m.child.wait(), 30)
    with open(os.path.join(b.work, "leader"), encoding="ascii") as f:
        await gone(int(f.read()))


@scenario
async def resume(b):
    """The connection drops while a command runs; output and exit code are complete."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; read a <&3; "
                          "echo three; exit 6",
                          yield_time_ms=700)
        text = o.out
        b.proxy.cut()
        await release(fifo)
        o = await m.stdin(o.session, yield_time_ms=5000)
        await release(fifo)
        text, code = await m.until_exit(o, text)
    equal([text.count(w) for w in ("one\n", "two\n", "three\n")], [1, 1, 1], "each line once")
    equal(code, 6, "exit code")
    sessions = b.proxy.calls("initialize")
    equal(sessions[-1]["params"]["resumeSessionId"], sessions[0]["result"]["sessionId"],
          "resumed session")


@scenario
async def resume_after_exit(b):
    """The command ends while nobody is connected."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client() as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; exit 5",
                          yield_time_ms=700)
        b.proxy.cut()
        await release(fifo)
        text, code = await m.until_exit(o)
    equal([text.count(w) for w in ("one\n", "two\n")], [1, 1], "each line once")
    equal(code, 5, "exit code")


@scenario
async def resume_terminal(b):
    """A PTY survives three drops with input between them."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("for i in 1 2 3; do read a; echo \"<$a>\"; done; exit 8", tty=True,
                          yield_time_ms=700)
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
                          "echo END",
                          yield_time_ms=1500, max_output_tokens=100000)
        await release(fifo)
        b.proxy.cut()
        text, code = await m.until_exit(o)
    within("END", text)
    equal(code, 0, "exit code")
    seen = {}
    for n in b.proxy.notes("process/output"):
        equal(seen.setdefault(n["seq"], n["chunk"]), n["chunk"], "a chunk under its number")
    for call in b.proxy.calls("process/read"):
        for n in call["result"]["chunks"]:
            equal(seen.setdefault(n["seq"], n["chunk"]), n["chunk"], "a chunk under its number")
    got = b"".join(base64.b64decode(seen[k]) for k in sorted(seen))
    equal(got, "".join(f"{i}\n" for i in range(1, 60001)).encode() + b"\nEND\n", "all output")


@scenario
async def server_restart(b):
    """The server ends and a new one takes its port: the next command opens a new session."""
    await b.start_server()
    async with b.client() as m:
        within("before", (await m.shell("echo before")).out)
        old = b.server
        proxy, url = b.proxy, b.url
        old.send_signal(signal.SIGTERM)
        equal(await asyncio.wait_for(old.wait(), 10), 0, "exit status of the server")
        await b.start_server()
        b.proxy.close()
        proxy.target, b.proxy, b.url = b.proxy.target, proxy, url
        # The first call may still see the lost session; the next one opens a new session.
        o = await m.shell("echo after", yield_time_ms=20000)
        if o.code is None:
            within("resume", o.text)
            o = await m.shell("echo after", yield_time_ms=20000)
        within("after", o.out)
    equal(b.proxy.calls("initialize")[-1]["params"]["resumeSessionId"], None, "last session")


def environments_file(b, entry):
    return f'default = "box"\ninclude_local = false\n[[environments]]\nid = "box"\n{entry}\n'


@scenario
async def stdio(b):
    """The client starts the server itself and talks to it through pipes."""
    program, *args = [*b.server_command, "--listen", "stdio"]
    quoted = ", ".join(f'"{a}"' for a in args)
    entry = environments_file(b, f'program = "{program}"\nargs = [{quoted}]')
    async with b.client(environments=entry) as m:
        o = await m.shell("echo over-stdio; exit 2")
        equal(o.code, 2, "exit code")
        within("over-stdio", o.out)
        o = await m.shell("read x; echo \"<$x>\"", tty=True, yield_time_ms=500)
        text, code = await m.until_exit(await m.stdin(o.session, "word\n"))
        within("<word>", text)
        equal(code, 0, "exit code on the terminal")
        o = await m.shell("echo $$ >leader; exec sleep 1000", yield_time_ms=500)
        check(o.session, "the command must still be running")
    with open(os.path.join(b.work, "leader"), encoding="ascii") as f:
        await gone(int(f.read()))


@scenario
async def bearer_token(b):
    """A server that asks for a capability token; the wrong token gives no environment."""
    token = os.path.join(b.root, "token")
    with open(token, "w", encoding="ascii") as f:
        f.write("correct horse\n".replace(" ", "-"))
    await b.start_server("--ws-auth", "capability-token", "--ws-token-file", token)
    for secret, works in (("correct-horse", True), ("wrong", False)):
        entry = environments_file(b, f'url = "{b.url}"\nauth_bearer_token = "{secret}"')
        async with b.client(environments=entry) as m:
            o = await m.shell("echo with-token")
        equal("with-token\n" in o.out and o.code == 0, works, f"token {secret!r} works")
