"""How things end: interrupted and killed clients, restarted and killed servers, stdio, tokens."""

import asyncio
import os
import signal

from .common import check, environments_file, equal, gone, pid_in, scenario, within
from .sandbox import LEFT, Alive, left

SLEEPER = "sleep 1000 & echo $! >child.pid; echo $$ >leader.pid; echo up; exec sleep 1000"


async def sleeper(b, m):
    """A command that would go on for long; returns what the model was told."""
    o = await m.shell(SLEEPER, yield_time_ms=250)
    check(o.session, "the command must still be running")
    if b.proxy:
        await b.proxy.until_output("up")
    return o


async def both_gone(b, seconds=60):
    for name in ("leader", "child"):
        await gone(pid_in(b, name), seconds)


@scenario
async def left_running(b):
    """What still runs when the client ends is terminated, with its descendants."""
    await b.start_server()
    async with b.client() as m:
        await sleeper(b, m)
    await both_gone(b)
    check(b.proxy.processes()[0]["terminated"], "the client did not ask for its end")


@scenario
async def client_interrupted(b):
    """SIGINT to the client ends the command."""
    await b.start_server()
    async with b.client(exit_code=None) as m:
        await sleeper(b, m)
        m.child.send_signal(signal.SIGINT)
        await asyncio.wait_for(m.child.wait(), 120)
    await both_gone(b)


async def killed_client(b, options, seconds):
    await b.start_server(*options)
    async with b.client(exit_code=None) as m:
        await sleeper(b, m)
        m.child.kill()
        await m.child.wait()
        os.kill(pid_in(b, "leader"), 0)
    await both_gone(b, seconds)
    # The server has lost nothing but that session.
    async with b.client() as m:
        within("next", (await m.shell("echo next")).out)
    equal([c["params"]["resumeSessionId"] for c in b.proxy.calls("initialize")], [None, None],
          "sessions asked for")


@scenario
async def client_killed(b):
    """A client killed by SIGKILL says nothing: its commands end with its session (--session-ttl 2
    where the server has that option)."""
    await killed_client(b, ("--session-ttl", "2") if b.ours else (), 45)


@scenario(slow=True)
async def client_killed_default(b):
    """The same with the default, 30 s."""
    await killed_client(b, (), 45)


@scenario(slow=True, differs={"tree": LEFT})
async def client_killed_in_sandbox(b):
    """The same with a sandboxed command."""
    await b.start_server()
    async with b.client(exit_code=None, sandbox="workspace-write") as m:
        alive = await Alive.start(b, m)
        m.child.kill()
        await m.child.wait()
    await alive.ended(45)
    if b.ours:
        await left(b, ["fifo"])


@scenario
async def turn_interrupted(b):
    """turn/interrupt leaves the command running as a background terminal; the next turn goes on
    with it; cleaning ends it."""
    await b.start_server()
    async with b.app("danger-full-access", "never") as (m, app):
        await sleeper(b, m)
        turn = await stopped(app, m)
        os.kill(pid_in(b, "leader"), 0)
        next_turn = await app.turn()
        check(next_turn != turn, "a new turn")
        await m.first_request()
        within("still-works", (await m.shell("echo still-works")).out)
        await app.call("thread/backgroundTerminals/clean", {"threadId": app.thread})
        await both_gone(b)


async def stopped(app, m):
    """Interrupts the turn while the model is thinking."""
    turn = app.current
    await app.call("turn/interrupt", {"threadId": app.thread, "turnId": turn})
    await app.until_turn_ends()
    m.forget()
    return turn


@scenario(differs={"calls": "the reference resets the connection; the first call may notice"})
async def server_restart(b):
    """The server ends and a new one takes its port: the next command opens a new session."""
    await b.start_server()
    async with b.client() as m:
        within("before", (await m.shell("echo before")).out)
        code = await b.end_server()
        check(code == 0 or not b.ours, f"exit status of the server: {code}")
        await b.start_server()
        # The first call may still see the lost session; the next one opens a new session.
        o = await m.shell("echo after", yield_time_ms=20000)
        if o.code is None:
            within("resume", o.text)
            o = await m.shell("echo after", yield_time_ms=20000)
        within("after", o.out)
    equal(b.proxy.calls("initialize")[-1]["params"]["resumeSessionId"], None, "last session")


async def lost_with_server(b, how):
    # During a grace period the client may hear how the command ended.
    await b.start_server(*["--shutdown-grace-ms=0"] if b.every_option else [])
    async with b.client() as m:
        o = await sleeper(b, m)
        await b.end_server(how)
        if b.ours:
            await both_gone(b)
        await b.start_server()
        o = await m.stdin(o.session)
        equal((o.code, o.session), (None, None), "the lost command")
        within("after", (await m.shell("echo after", yield_time_ms=20000)).out)
    for name in ("leader", "child"):
        try:
            os.kill(pid_in(b, name), signal.SIGKILL)
        except ProcessLookupError:
            pass


@scenario
async def restart_while_running(b):
    """SIGTERM to the server ends its commands; the client is told, and goes on with a new one."""
    await lost_with_server(b, signal.SIGTERM)


@scenario
async def server_killed(b):
    """SIGKILL to the server ends its commands as well."""
    await lost_with_server(b, signal.SIGKILL)


@scenario
async def no_server(b):
    """Without a server the model is told that there is no environment."""
    await b.start_server()
    b.proxy.down = True
    async with b.client() as m:
        o = await m.shell("echo never-run")
        equal((o.code, o.session), (None, None), "exit code and session")
    check(b.proxy.refused >= 1, "the client did not try")


@scenario
async def stdio(b):
    """The client starts the server itself and talks to it through pipes."""
    program, *args = [*b.server_command, "--listen", "stdio"]
    quoted = ", ".join(f'"{a}"' for a in args)
    entry = environments_file(f'program = "{program}"\nargs = [{quoted}]')
    async with b.client(environments=entry) as m:
        o = await m.shell("echo over-stdio; exit 2")
        equal(o.code, 2, "exit code")
        within("over-stdio", o.out)
        o = await m.shell("read x; echo \"<$x>\"", tty=True, yield_time_ms=250)
        text, code = await m.until_exit(await m.stdin(o.session, "word\n"))
        within("<word>", text)
        equal(code, 0, "exit code on the terminal")
        within("Success", (await m.patch("*** Add File: new/file\n+x")).text)
        o = await m.shell("seq 1 100000", yield_time_ms=20000, max_output_tokens=100)
        equal((o.code, o.tokens), (0, -(-588895 // 4)), "exit code and tokens of the large output")
        o = await sleeper(b, m)
    await both_gone(b)


@scenario
async def stdio_in_sandbox(b):
    """Sandboxed commands and patches through a server that the client started."""
    program, *args = [*b.server_command, "--listen", "stdio"]
    quoted = ", ".join(f'"{a}"' for a in args)
    entry = environments_file(f'program = "{program}"\nargs = [{quoted}]')
    async with b.client(environments=entry, sandbox="workspace-write") as m:
        within("in", (await m.shell("echo in >new; cat new")).out)
        o = await m.shell(f"echo out >{b.outside}/new")
        equal(o.code, 1, "exit code")
        within("Read-only file system", o.out)
        within("Success", (await m.patch("*** Add File: patched\n+x")).text)
        check("Success" not in (await m.patch(f"*** Add File: {b.outside}/p\n+x")).text,
              "the patch outside was not denied")
    equal(sorted(os.listdir(b.work)), ["new", "patched"], "names in the workspace")
    equal(os.listdir(b.outside), [], "names outside")


@scenario(since=("0.166.0", "auth_bearer_token is newer"))
async def bearer_token(b):
    """A server that asks for a capability token; the wrong token gives no environment."""
    token = os.path.join(b.root, "token")
    with open(token, "w", encoding="ascii") as f:
        f.write("correct-horse\n")
    await b.start_server("--ws-auth", "capability-token", "--ws-token-file", token)
    for secret, works in (("correct-horse", True), ("wrong", False)):
        entry = environments_file(f'url = "{b.url}"\nauth_bearer_token = "{secret}"')
        async with b.client(environments=entry) as m:
            o = await m.shell("echo with-token")
        equal("with-token\n" in o.out and o.code == 0, works, f"token {secret!r} works")
