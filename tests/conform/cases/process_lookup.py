"""Program lookup and arg0."""

from harness.case import case

TOOL = "#!/bin/sh\necho tool-{} \"$0\" \"$@\"\n"


def fixtures(t):
    t.file("a/tool", TOOL.format("a"), 0o755)
    t.file("b/tool", TOOL.format("b"), 0o755)
    t.file("cwd/tool", TOOL.format("cwd"), 0o755)
    t.file("cwd/sub/tool", TOOL.format("sub"), 0o755)
    t.file("a/noexec", TOOL.format("a"), 0o644)
    t.file("b/noexec", TOOL.format("b"), 0o755)
    t.file("a/isdir/x")
    t.file("b/isdir", TOOL.format("b"), 0o755)
    t.file("a/nosheb", "echo nosheb\n", 0o755)
    t.file("a/badint", "#!/nonexistent/int\n", 0o755)
    t.file("a/garb", b"\x7fELFgarbage", 0o755)
    return t.dir + "/a", t.dir + "/b"


def table(a, b):
    return {
        "no PATH": (["tool", "x"], {}), "no PATH, system program": (["env"], {}),
        "found": (["tool", "x y"], {"PATH": a}), "second": (["tool"], {"PATH": f"{b}:{a}"}),
        "empty PATH": (["tool"], {"PATH": ""}),
        "empty component": (["tool"], {"PATH": ":/nonexistent"}),
        "empty component last": (["tool"], {"PATH": "/nonexistent:"}),
        "dot": (["tool"], {"PATH": "."}), "relative component": (["tool"], {"PATH": "sub"}),
        "relative program": (["sub/tool"], {"PATH": "/usr/bin"}),
        "dot slash": (["./tool"], {"PATH": "/usr/bin"}),
        "not executable, then found": (["noexec"], {"PATH": f"{a}:{b}"}),
        "not executable": (["noexec"], {"PATH": a}),
        "directory, then found": (["isdir"], {"PATH": f"{a}:{b}"}),
        "directory": (["isdir"], {"PATH": a}),
        "no shebang by path": ([a + "/nosheb"], {"PATH": a}),
        "no shebang": (["nosheb"], {"PATH": a}),
        "bad interpreter by path": ([a + "/badint"], {"PATH": "/usr/bin"}),
        "bad interpreter": (["badint"], {"PATH": a}),
        "garbage by path": ([a + "/garb"], {"PATH": "/usr/bin"}),
        "absent": (["nosuchtool"], {"PATH": f"{a}:{b}"}),
        "absent by path": (["/nonexistent/x"], {}), "directory by path": (["/tmp"], {}),
        "not executable by path": ([a + "/noexec"], {}),
        "PATH component is a file": (["tool"], {"PATH": f"{a}/tool:{a}"}),
        "only a file in PATH": (["tool"], {"PATH": f"{a}/tool"}),
        "long component": (["tool"], {"PATH": f"/{'x' * 5000}:{a}"}),
        "long name": (["x" * 300], {"PATH": a}),
        "only in the server's PATH": (["env"], {"PATH": a}),
        "lower-case path": (["tool"], {"path": a}),
    }


def add(tty):
    @case("tty" if tty else "pipe")
    async def one(t):
        a, b = fixtures(t)
        c = await t.connect()
        for label, (argv, env) in table(a, b).items():
            seen = await c.finish_of(argv, processId=label, env=env, tty=tty,
                                     cwd=f"file://{t.dir}/cwd")
            if "env" in argv and isinstance(seen["start"], dict):
                seen = seen["exited"]
            t.see(label, seen)


add(False)
add(True)

ARG0 = {
    "custom": ["/bin/sh", "-c", "echo [$0]; tr '\\0' '|' </proc/$$/cmdline"],
    "/bin/echo": ["/bin/sh", "-c", "echo hi"],
    "": ["/bin/sh", "-c", "echo [$0]; tr '\\0' '|' </proc/$$/cmdline"],
    "a\0b": ["/bin/sh", "-c", "echo hi"],
    "é": ["/bin/sh", "-c", "tr '\\0' '|' </proc/$$/cmdline"],
}


def add_arg0(tty):
    @case(f"arg0 {'tty' if tty else 'pipe'}")
    async def one(t):
        a, _ = fixtures(t)
        c = await t.connect()
        for name, argv in ARG0.items():
            t.see(repr(name), await c.finish_of(argv, processId=name, arg0=name, tty=tty))
        t.see("in PATH", await c.finish_of(["tool", "zz"], processId="tool", arg0="custom",
                                           env={"PATH": a}, tty=tty))


add_arg0(False)
add_arg0(True)
