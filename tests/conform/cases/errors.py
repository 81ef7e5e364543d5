"""Errors of the process methods, on a running process and without one."""

import os

from harness.case import case
from harness.peer import ABSENT


@case("start")
async def start(t):
    c = await t.connect()
    garbage = t.file("garbage", b"\x00\x01\x02", 0o755)
    no_shebang = t.file("no-shebang", "echo hi\n", 0o755)
    bad_interpreter = t.file("bad-interpreter", "#!/nonexistent/sh\n", 0o755)
    loop = t.dir + "/loop"
    os.symlink(loop, loop)
    for label, argv, more in [
            ("argv empty", [], {}), ("program empty", [""], {}),
            ("program empty, tty", [""], {"tty": True}),
            ("no such program", ["/nonexistent/prog"], {}),
            ("not in PATH", ["nonexistent-prog-xyz"], {}),
            ("not executable", ["/etc/passwd"], {}), ("directory", ["/tmp"], {}),
            ("below a file", ["/etc/passwd/x"], {}), ("relative", ["./nope"], {}),
            ("garbage", [garbage], {}), ("no shebang", [no_shebang], {}),
            ("bad interpreter", [bad_interpreter], {}), ("symbolic link loop", [loop], {}),
            ("long name", ["/" + "x" * 300], {}),
            ("long argument", ["/bin/true", "x" * 140000], {}),
            ("long variable", ["/bin/true"], {"env": {"A": "x" * 140000}}),
            ("NUL in argument", ["echo", "a\0b"], {}), ("NUL in program", ["/bin/ec\0ho"], {}),
            ("NUL in arg0", ["/bin/true"], {"arg0": "a\0b"}),
            ("NUL in value", ["/bin/true"], {"env": {"A": "a\0b"}}),
            ("NUL in name", ["/bin/true"], {"env": {"A\0": "b"}}),
            ("cwd missing", ["/bin/true"], {"cwd": "file:///nonexistent/dir"}),
            ("cwd is a file", ["/bin/true"], {"cwd": "file:///etc/passwd"}),
            ("cwd bad escape", ["/bin/true"], {"cwd": "file:///tmp/%zz"}),
            ("cwd empty argv", [], {"cwd": "file://h/x"})]:
        t.see(label, (await c.start(argv, processId=label, **more)).response)


@case("start-tty")
async def start_tty(t):
    """Failures on a terminal that the reference reports as it does for pipes."""
    c = await t.connect()
    garbage = t.file("garbage", b"\x00\x01\x02", 0o755)
    for label, argv in [("no such program", ["/nonexistent/prog"]),
                        ("not executable", ["/etc/passwd"]), ("directory", ["/tmp"]),
                        ("garbage", [garbage]), ("argv empty", [])]:
        t.see(label, (await c.start(argv, processId=label, tty=True)).response)


@case("unknown-process")
async def unknown_process(t):
    c = await t.connect()
    for method, more in [("read", {}), ("read", {"waitMs": 5000}), ("terminate", {}),
                         ("signal", {"signal": "interrupt"}),
                         ("write", {"chunk": "", "writeId": "1"}),
                         ("write", {"chunk": "YQ==", "writeId": ""}),
                         ("write", {"chunk": "!", "writeId": ""})]:
        t.see(f"{method} {more}", await c.call(f"process/{method}", {"processId": "nope", **more}))
    t.see("odd id", await c.call("process/read", {"processId": "a\n\"é\0"}))
    for name in ("closeStdin", "resize", "wait", "snapshot", "list", "ack", "kill"):
        t.see(name, await c.call(f"process/{name}", {"processId": "nope"}))


@case("running-process")
async def running_process(t):
    c = await t.connect()
    p = await c.start(["/bin/sleep", "1000"])
    for params in ({"maxBytes": 0}, {"afterSeq": 2**64 - 1}, {"afterSeq": None, "maxBytes": None,
                                                              "waitMs": None}, {"waitMs": 1}):
        t.see(f"read {params}", await p.read(**params))
    t.see("write", await p.write("x"))
    t.see("duplicate", (await c.call("process/start", c.start_params(["/bin/true"]))))
    t.see("terminate with mode", await c.call("process/terminate", {"processId": "p",
                                                                    "mode": "force"}))
    t.see("end", (await p.until_closed()).summary())
    t.see("read", await p.read())
    t.see("terminate", await p.terminate())
    t.see("signal", await p.signal())
    t.see("write after the end", await p.write("x"))


@case("write-without-id")
async def write_without_id(t):
    c = await t.connect()
    await c.start("read a; echo got:$a", pipeStdin=True)
    t.see("write", await c.call("process/write", {"processId": "p", "chunk": "YQo="}))
    t.see("null", await c.call("process/write", {"processId": "p", "chunk": "YQo=",
                                                 "writeId": None}))


@case("native-cwd")
async def native_cwd(t):
    c = await t.connect()
    p = await c.start(["/bin/pwd"], cwd=t.dir)
    t.see("start", p.response)
    if isinstance(p.response, dict):
        t.see("end", (await p.until_closed()).summary())


@case("snapshot-and-network")
async def snapshot_and_network(t):
    c = await t.connect()
    shell = {"name": "bash", "path": "/bin/bash"}
    for label, more in [
            ("empty scope", {"shellSnapshot": {"scopeId": "", "shell": shell}}),
            ("fish", {"shellSnapshot": {"scopeId": "x", "shell": {"name": "fish",
                                                                  "path": "/bin/fish"}}}),
            ("enforced", {"enforceManagedNetwork": True}),
            ("managed", {"managedNetwork": {"loopbackPorts": [1], "allowLocalBinding": True}})]:
        t.see(label, (await c.start(["/bin/true"], processId=label, **more)).response)


@case("terminate-missing-params")
async def terminate_params(t):
    c = await t.connect()
    for label, params in [("none", ABSENT), ("null", None), ("{}", {}), ("string", "p"),
                          ("snake case", {"process_id": "p"}),
                          ("extra", {"processId": "p", "zz": 1})]:
        t.see(label, await c.call("process/terminate", params))
