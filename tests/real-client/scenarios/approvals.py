"""What needs the user's word: the client asks, and the answer decides. The client is
`codex app-server`, since `codex exec` cannot ask."""

from .common import check, equal, exists, get, put, scenario, within, without
from .sandbox import nothing

ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "the scenario wants it"}


def asked(app, kind, times):
    equal([r["method"] for r in app.requests], [f"item/{kind}/requestApproval"] * times,
          "what the client asked")


def starts(b):
    return [(p["sandboxed"], p["code"], p["denied"]) for p in b.proxy.processes()]


@scenario
async def retry_after_denial(b):
    """A denied command is run again without the sandbox when the user agrees. The client does that
    only with commands that end within 150 ms of their start."""
    await b.start_server()
    b.proxy.late_starts = True
    async with b.app("workspace-write", "untrusted") as (m, app):
        o = await m.shell(f"echo x >{b.outside}/new && cat {b.outside}/new")
        equal(o.code, 0, f"exit code ({o.text!r})")
    check(app.requests, "the client did not ask")
    equal(get(f"{b.outside}/new"), "x\n", "the file outside")
    equal(starts(b), [(True, 1, True), (False, 0, False)], "sandboxed, code, denied")


@scenario
async def retry_declined(b):
    """When the user declines, nothing happens outside of the sandbox."""
    await b.start_server()
    async with b.app("workspace-write", "untrusted") as (m, app):
        app.decision = "decline"
        o = await m.shell(f"echo x >{b.outside}/new")
        check(o.code != 0, "the declined command has succeeded")
    check(app.requests, "the client did not ask")
    check(all(sandboxed for sandboxed, _, _ in starts(b)), "a run without the sandbox")
    nothing(b, "outside/new")


@scenario
async def denial_not_asked(b):
    """With on-request a denial is told to the model, and nobody is asked."""
    await b.start_server()
    async with b.app("read-only", "on-request") as (m, app):
        o = await m.shell("echo x >new")
        equal(o.code, 1, "exit code")
        within("Read-only file system", o.out)
        equal(app.requests, [], "what the client asked")
    equal(starts(b), [(True, 1, True)], "sandboxed, code, denied")
    nothing(b, "work/new")


@scenario
async def escalation(b):
    """The model asks for a run without the sandbox: granted, then declined."""
    await b.start_server()
    async with b.app("workspace-write", "on-request") as (m, app):
        o = await m.shell(f"echo x >{b.outside}/granted", **ESCALATED)
        equal(o.code, 0, "exit code of the granted run")
        asked(app, "commandExecution", 1)
        app.decision = "decline"
        o = await m.shell(f"echo x >{b.outside}/declined", **ESCALATED)
        check(o.code != 0, "the declined command has succeeded")
        asked(app, "commandExecution", 2)
        o = await m.shell(f"echo x >{b.outside}/plain")
        equal(o.code, 1, "exit code of the run in the sandbox")
        asked(app, "commandExecution", 2)
    equal(starts(b), [(False, 0, False), (True, 1, True)], "sandboxed, code, denied")
    check(exists(b.outside, "granted"), "the granted write is missing")
    nothing(b, "outside/declined", "outside/plain")


@scenario
async def escalated_terminal(b):
    """A terminal without the sandbox, granted."""
    await b.start_server()
    async with b.app("read-only", "on-request") as (m, app):
        o = await m.shell("printf 'name? '; read n; echo \"$n\" >new", tty=True,
                          yield_time_ms=250, **ESCALATED)
        await b.proxy.until_output("name? ")
        _, code = await m.until_exit(await m.stdin(o.session, "bob\n"))
        equal(code, 0, "exit code")
        check(app.requests, "the client did not ask")
    equal(get(f"{b.work}/new"), "bob\n", "the file")


@scenario
async def patch_asked(b):
    """A patch outside of the workspace is asked for: granted, then declined."""
    await b.start_server()
    put(f"{b.outside}/target", "kept\n")
    async with b.app("workspace-write", "on-request") as (m, app):
        within("Success", (await m.patch("*** Add File: inside\n+x")).text)
        equal(app.requests, [], "what the client asked for a patch inside")
        within("Success", (await m.patch(f"*** Add File: {b.outside}/granted\n+x")).text)
        asked(app, "fileChange", 1)
        app.decision = "decline"
        o = await m.patch(f"*** Update File: {b.outside}/target\n@@\n-kept\n+changed")
        without("Success", o.text)
        asked(app, "fileChange", 2)
    equal(get(f"{b.outside}/granted"), "x\n", "the granted patch")
    equal(get(f"{b.outside}/target"), "kept\n", "the declined patch")
