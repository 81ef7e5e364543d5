"""Sandboxed commands and patches: what is allowed works, what is not is denied and told so."""

import asyncio
import os
import signal
import uuid

from rig.model import tool

from .common import (check, equal, exists, get, make_fifo, put, release, resumed, scenario, within,
                     without)
from .files import PATCH, patched, picture, seed, shown

READ_ONLY = "Read-only file system"
SIGNALS = "the reference's signals reach its launcher, not the command: no trap runs"
LEFT = "the reference leaves its placeholders for missing protected names behind"


async def commands(b, m, *expected):
    """Runs (command, exit code, denied, text in the output) one after another."""
    first = len(b.proxy.calls("process/start"))
    for command, code, _, text in expected:
        o = await m.shell(command)
        equal(o.code, code, f"exit code of {command!r} ({o.text[-300:]!r})")
        within(text, o.out)
    seen = b.proxy.processes()[first:]
    equal([(p["sandboxed"], p["type"], p["denied"]) for p in seen],
          [(True, "linuxSeccomp", denied) for _, _, denied, _ in expected],
          "sandboxed, sandboxType, sandboxDenied")


class Alive:
    """A sandboxed command that would go on for long. Process numbers inside differ from those
    outside, so a FIFO that it and its children hold open tells whether one is alive."""

    @classmethod
    async def start(cls, b, m, before=""):
        self = cls()
        fifo = make_fifo(b)
        o = await m.shell(f"exec 3<>{fifo}; {before}echo up; exec sleep 1000", yield_time_ms=250)
        check(o.session, f"the command must still be running: {o.text!r}")
        self.session = o.session
        await b.proxy.until_output("up")
        self.fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        return self

    async def ended(self, seconds=60):
        """Waits until nobody holds the FIFO: that is the end of its data."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self.fd, lambda: os.read(self.fd, 65536) or ended.set())
        try:
            await asyncio.wait_for(ended.wait(), seconds)
        except asyncio.TimeoutError:
            raise AssertionError("a command in the sandbox is still alive") from None
        finally:
            loop.remove_reader(self.fd)
            os.close(self.fd)


async def left(b, names, seconds=60):
    """Waits until the workspace holds these names alone."""
    deadline = asyncio.get_running_loop().time() + seconds
    while sorted(os.listdir(b.work)) != names:
        check(asyncio.get_running_loop().time() < deadline,
              f"left in the workspace: {os.listdir(b.work)}")
        await asyncio.sleep(0.02)


def nothing(b, *names):
    equal([n for n in names if exists(b.root, n)], [], "files that must not be there")


@scenario
async def read_only(b):
    """Read-only: reading works, no write does, a plain failure is not taken for a denial."""
    await b.start_server()
    put(f"{b.work}/file", "content\n")
    scratch = f"/tmp/real-client-{uuid.uuid4()}"
    async with b.client(sandbox="read-only") as m:
        await commands(
            b, m,
            ("cat file; head -c 5 /etc/passwd; pwd", 0, False, f"content\nroot:{b.work}\n"),
            ("echo x >new", 1, True, READ_ONLY),
            ("echo x >>file", 1, True, READ_ONLY),
            ("rm file", 1, True, READ_ONLY),
            (f"echo x >{b.outside}/new", 1, True, READ_ONLY),
            (f"echo x >{scratch}", 1, True, READ_ONLY),
            ("echo failing; exit 5", 5, False, "failing"),
            ("no-such-program-xyz", 127, False, "not found"),
            ("echo to-null >/dev/null; echo done", 0, False, "done"))
    equal(get(f"{b.work}/file"), "content\n", "the file")
    check(not exists(b.at_server(scratch)), f"{scratch} was written")
    nothing(b, "work/new", "outside/new")


@scenario
async def workspace_write(b):
    """Workspace-write: the workspace and /tmp can be written, nothing else, nor through a link."""
    await b.start_server()
    put(f"{b.outside}/target", "kept\n")
    os.symlink(b.outside, f"{b.work}/way-out")
    os.symlink(f"{b.outside}/target", f"{b.work}/file-out")
    scratch = f"/tmp/real-client-{uuid.uuid4()}"
    try:
        async with b.client(sandbox="workspace-write") as m:
            await commands(
                b, m,
                ("mkdir -p a/b; echo x >a/b/new; cat a/b/new", 0, False, "x\n"),
                (f"echo tmp >{scratch}; cat {scratch}", 0, False, "tmp"),
                (f"echo x >{b.outside}/new", 1, True, READ_ONLY),
                ("echo x >way-out/new", 1, True, READ_ONLY),
                ("echo x >file-out", 1, True, READ_ONLY),
                (f"echo x >{b.server_home}/new", 1, True, READ_ONLY),
                ("cat file-out", 0, False, "kept"))
        equal(get(f"{b.work}/a/b/new"), "x\n", "the new file")
        equal(get(b.at_server(scratch)), "tmp\n", "the file in /tmp")
        equal(get(f"{b.outside}/target"), "kept\n", "the file outside")
        nothing(b, "outside/new", "server/new")
    finally:
        if exists(b.at_server(scratch)):
            os.unlink(b.at_server(scratch))


@scenario
async def protected_names(b):
    """.git of a workspace can be read but not written; missing ones cannot be made, and leave
    nothing behind."""
    await b.start_server()
    put(f"{b.work}/.git/config", "[core]\n")
    async with b.client(sandbox="workspace-write") as m:
        o = [await m.shell(c) for c in ("cat .git/config", "echo x >>.git/config",
                                        "mkdir .codex && echo x >.codex/config.toml",
                                        "mkdir .agents", "mv .git gone")]
    equal(o[0].code, 0, "exit code of reading")
    within("[core]", o[0].out)
    for x in o[1:]:
        check(x.code not in (0, None), f"a protected name was written: {x.text!r}")
    equal(get(f"{b.work}/.git/config"), "[core]\n", ".git/config")
    equal(os.listdir(b.work), [".git"], "names in the workspace")


@scenario
async def full_access(b):
    """Full access sends no sandbox; what was denied works."""
    await b.start_server()
    async with b.client() as m:
        equal((await m.shell(f"echo x >{b.outside}/new; mkdir .codex")).code, 0, "exit code")
    equal([(p["sandboxed"], p["denied"]) for p in b.proxy.processes()], [(False, False)],
          "sandboxed, denied")
    check(exists(b.outside, "new"), "the file outside is missing")


@scenario
async def network(b):
    """Connections are denied unless the configuration allows them."""
    await b.start_server()
    visits = asyncio.Queue()

    async def visit(_, writer):
        visits.put_nowait(1)
        writer.write(b"welcome\n")
        writer.close()

    listener = await asyncio.start_server(visit, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3"
    try:
        for mode in ("read-only", "workspace-write"):
            async with b.client(sandbox=mode) as m:
                o = await m.shell(connect)
                check(o.code not in (0, None), "the connection was not denied")
                without("welcome", o.out)
                o = await m.shell("echo net=$CODEX_SANDBOX_NETWORK_DISABLED")
                within("net=1", o.out)
        equal(visits.qsize(), 0, "connections while the network is denied")
        equal([p["denied"] for p in b.proxy.processes()], [True, False] * 2, "sandboxDenied")
        allowed = "[sandbox_workspace_write]\nnetwork_access = true\n"
        async with b.client(allowed, sandbox="workspace-write") as m:
            o = await m.shell(connect)
            equal(o.code, 0, "exit code with the network allowed")
            within("welcome", o.out)
            equal((await m.shell(f"echo x >{b.outside}/new")).code, 1, "a write outside")
        equal(visits.qsize(), 1, "connections while the network is allowed")
    finally:
        listener.close()


@scenario
async def extra_roots(b):
    """writable_roots and --add-dir widen the workspace, exclude_slash_tmp narrows it."""
    await b.start_server()
    more = b.directory("more")
    tables = (f'[sandbox_workspace_write]\nwritable_roots = ["{b.outside}"]\n'
              "exclude_slash_tmp = true\n")
    async with b.client(tables, sandbox="workspace-write", args=("--add-dir", more)) as m:
        await commands(
            b, m,
            (f"echo x >{b.outside}/new", 0, False, ""),
            (f"echo x >{more}/new", 0, False, ""),
            (f"echo x >{b.server_home}/new", 1, True, READ_ONLY),
            (f"echo x >/tmp/real-client-{uuid.uuid4()}", 1, True, READ_ONLY))
    for place in (b.outside, more):
        equal(get(f"{place}/new"), "x\n", f"the file in {place}")
    nothing(b, "server/new")


@scenario
async def missing_directory(b):
    """A working directory that does not exist is an error in a sandbox as well."""
    await b.start_server()
    async with b.client(sandbox="workspace-write") as m:
        o = await m.shell("echo x", workdir="/nonexistent-dir/zz")
        check(o.code != 0, "a missing directory must not succeed")
        within("still-alive", (await m.shell("echo still-alive")).out)


@scenario
async def output(b):
    """2 MB of output, both streams, four commands at once: as without a sandbox."""
    await b.start_server()
    size = sum(len(str(i)) + 1 for i in range(1, 300001))
    async with b.client(sandbox="workspace-write") as m:
        lines = await m.shell("seq 1 300000", yield_time_ms=30000, max_output_tokens=2000)
        both = await m.shell("echo to-out; echo to-err >&2; kill -TERM $$")
        # Each ends only when all have begun.
        waits = "".join(f"until [ -e at-{i} ]; do sleep 0.05; done; " for i in range(4))
        jobs = await m.call(*(tool("exec_command", cmd=f"touch at-{i}; {waits}echo job-{i}",
                                   yield_time_ms=20000) for i in range(4)))
    equal((lines.code, lines.tokens), (0, -(-size // 4)), "exit code and tokens")
    equal(both.code, 143, "exit code after SIGTERM")
    within("to-out", both.out)
    within("to-err", both.out)
    equal([x.code for x in jobs], [0] * 4, "exit codes")
    for i, x in enumerate(jobs):
        within(f"job-{i}", x.out)


@scenario
async def pty(b):
    """A terminal inside the sandbox: size, input, and a denied write."""
    await b.start_server()
    async with b.client(sandbox="read-only") as m:
        o = await m.shell("test -t 0 && test -t 1 && echo is-tty; stty size; printf 'name? '; "
                          "read n; echo \"hi <$n>\"; echo x >new", tty=True, yield_time_ms=250)
        await b.proxy.until_output("name? ")
        text, code = await m.until_exit(await m.stdin(o.session, "bob\n"), o.out)
    within("is-tty\r\n24 80\r\nname? ", b.proxy.processes()[0]["output"])
    within("hi <bob>", text)
    within(READ_ONLY, text)
    equal(code, 1, "exit code")
    equal(b.proxy.processes()[0]["denied"], True, "sandboxDenied")
    nothing(b, "work/new")


@scenario(differs={"processes": SIGNALS, "calls": SIGNALS})
async def pty_interrupt(b):
    """Ctrl-C on a terminal inside the sandbox interrupts what runs in the foreground."""
    await b.start_server()
    async with b.client(sandbox="workspace-write") as m:
        o = await m.shell("trap 'echo got-$((40+2)); exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", tty=True, yield_time_ms=250)
        await b.proxy.until_output("ready")
        text, code = await m.until_exit(await m.stdin(o.session, "\x03"), o.out)
    if b.ours:
        within("got-42", text)
        equal(code, 42, "exit code")
    check(code not in (0, None), "Ctrl-C must end the command")


@scenario(differs={"processes": SIGNALS, "calls": SIGNALS})
async def pipe_interrupt(b):
    """Ctrl-C without a terminal is a signal that reaches the command in the sandbox."""
    await b.start_server()
    async with b.client(sandbox="workspace-write") as m:
        o = await m.shell("trap 'echo got-int; exit 42' INT; echo ready; "
                          "while :; do sleep 0.1; done", yield_time_ms=250)
        await b.proxy.until_output("ready")
        text, code = await m.until_exit(await m.stdin(o.session, "\x03"))
        o = await m.shell("echo second; exec sleep 1000", yield_time_ms=250)
        await b.proxy.until_output("second")
        _, plain = await m.until_exit(await m.stdin(o.session, "\x03"))
    if b.ours:
        within("got-int", text)
        equal(code, 42, "exit code of the trap")
    check(code not in (0, None), "the signal must end the command")
    equal(plain, 130, "exit code without a trap")


@scenario(differs={"tree": LEFT})
async def ended_with_client(b):
    """Sandboxed commands that still run when the client ends are ended, with what they started."""
    await b.start_server()
    async with b.client(sandbox="workspace-write") as m:
        alive = await Alive.start(b, m, "(setsid sleep 1000) & ")
    await alive.ended(10 if b.ours else 60)
    check(b.proxy.processes()[0]["terminated"], "the client did not ask for its end")
    if b.ours:
        await left(b, ["fifo"])


@scenario
async def resumed_in_sandbox(b):
    """The connection drops while a sandboxed command runs."""
    await b.start_server()
    fifo = make_fifo(b)
    async with b.client(sandbox="workspace-write") as m:
        o = await m.shell(f"exec 3<>{fifo}; echo one; read a <&3; echo two; "
                          f"echo x >{b.outside}/nope; exit 6", yield_time_ms=250)
        await b.proxy.until_output("one")
        b.proxy.cut()
        await release(fifo)
        text, code = await m.until_exit(await m.stdin(o.session), o.out)
    equal([text.count(w) for w in ("one\n", "two\n")], [1, 1], "each line once")
    equal(code, 6, "exit code")
    equal(b.proxy.processes()[0]["denied"], True, "sandboxDenied")
    resumed(b)


@scenario
async def patch_in_workspace(b):
    """apply_patch in the workspace: every call carries the sandbox, and all of them work."""
    await b.start_server()
    seed(b)
    async with b.client(sandbox="workspace-write") as m:
        within("Success", (await m.patch(PATCH)).text)
    patched(b)
    writes = b.proxy.calls("fs/writeFile")
    check(writes and all(w["params"]["sandbox"] for w in writes), "a write without a sandbox")
    equal(sorted(os.listdir(b.work)), ["moved", "new", "upd.txt"], "names in the workspace")


@scenario
async def patch_denied(b):
    """apply_patch outside of the workspace, through links, of protected names, and read-only."""
    await b.start_server()
    put(f"{b.outside}/target", "kept\n")
    put(f"{b.work}/.git/config", "kept\n")
    put(f"{b.work}/inside", "kept\n")
    os.symlink(b.outside, f"{b.work}/way-out")
    os.symlink(f"{b.outside}/target", f"{b.work}/file-out")
    update = "@@\n-kept\n+changed"
    async with b.client(sandbox="workspace-write") as m:
        for text in (f"*** Add File: {b.outside}/new\n+x", "*** Add File: way-out/new\n+x",
                     f"*** Update File: {b.outside}/target\n{update}",
                     f"*** Update File: file-out\n{update}",
                     f"*** Update File: .git/config\n{update}",
                     "*** Add File: .codex/config.toml\n+x",
                     f"*** Delete File: {b.outside}/target", "*** Delete File: way-out/target"):
            without("Success", (await m.patch(text)).text)
    async with b.client(sandbox="read-only") as m:
        for text in (f"*** Update File: inside\n{update}", "*** Add File: new\n+x",
                     "*** Delete File: inside"):
            without("Success", (await m.patch(text)).text)
    for name in ("outside/target", "work/.git/config", "work/inside"):
        equal(get(os.path.join(b.root, name)), "kept\n", name)
    nothing(b, "outside/new", "work/new", "work/.codex")


@scenario
async def images_in_sandbox(b):
    """Images, AGENTS.md and skills are read under read-only and workspace-write."""
    await b.start_server()
    put(f"{b.work}/.git/HEAD", "ref: refs/heads/main\n")
    put(f"{b.work}/AGENTS.md", "ROOT-RULE\n")
    put(f"{b.work}/.agents/skills/x/SKILL.md",
        "---\nname: x-skill\ndescription: ABOUT-x\n---\nBODY\n")
    path = picture(b, "large.png", 1024)
    for mode in ("read-only", "workspace-write"):
        async with b.client(sandbox=mode) as m:
            for text in ("ROOT-RULE", "ABOUT-x"):
                within(text, str(m.first["input"]))
            check(shown(await m.view(path)).startswith("data:image/"), "no image")


@scenario
async def git_in_sandbox(b):
    """git reads a repository in the workspace; it cannot commit, since .git is protected."""
    await b.start_server()
    async with b.client() as m:
        o = await m.shell("git init -q -b main . && echo one >file && git add file && "
                          "git -c user.name=n -c user.email=e@x commit -qm first")
        equal(o.code, 0, f"exit code of the set-up ({o.out!r})")
    async with b.client(sandbox="workspace-write") as m:
        o = await m.shell("git log --format=%s; echo two >>file; git status --short; git diff")
        for text in ("first", " M file", "+two"):
            within(text, o.out)
        o = await m.shell("git -c user.name=n -c user.email=e@x commit -qam second")
        check(o.code not in (0, None), "the commit was not denied")
        within("first", (await m.shell("git log --format=%s")).out)


@scenario(differs={"tree": LEFT})
async def server_killed_in_sandbox(b):
    """The server dies by SIGKILL: the sandboxed command dies with it, and a new server works."""
    await b.start_server()
    async with b.client(sandbox="workspace-write") as m:
        alive = await Alive.start(b, m)
        await b.end_server(signal.SIGKILL)
        if b.ours:
            await alive.ended()
            await left(b, ["fifo"])
        await b.start_server()
        o = await m.stdin(alive.session)
        equal((o.code, o.session), (None, None), "the lost command")
        o = await m.shell("echo again >file; cat file")
        within("again", o.out)
