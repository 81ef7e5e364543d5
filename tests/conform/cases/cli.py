"""The command line: exit status and first line of the complaint."""

import asyncio
import os
import signal
import socket

from harness.case import case
from harness.peer import WAIT
from harness.servers import SECRET
from harness.websocket import open_tcp


async def launch(t, args, **popen):
    # A home of its own: the reference keeps files there that parallel starts quarrel about.
    os.makedirs(f"{t.dir}/.codex", exist_ok=True)
    return await asyncio.create_subprocess_exec(
        *t.side.command, *args, cwd=t.dir, env={**t.side.env, "HOME": t.dir},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, **popen)


async def refused(t, args, first_line=True):
    """Runs a command line that must not start a server."""
    child = await launch(t, args)
    try:
        out, err = await asyncio.wait_for(child.communicate(), WAIT)
    except asyncio.TimeoutError:
        child.kill()
        await child.wait()
        return "did not end"
    seen = {"exit status": child.returncode, "stdout": out.decode()}
    if first_line:
        seen["stderr"] = (err.decode().splitlines() or [""])[0]
    return seen


LISTEN = ["ws://localhost:0", "ws://127.0.0.1", "ws://127.0.0.1:0/", "ws://127.0.0.1:0/x",
          "ws:// 127.0.0.1:0", "WS://127.0.0.1:0", "ws://127.0.0.1:65536", "ws://127.0.0.1:-1",
          "ws://127.0.0.1:", "ws://", "ws://::1:0", "ws://[::1]", "ws://[::1:0", "ws://256.0.0.1:0",
          "ws://127.1:0", "ws://127.0.0.1:0x1", "ws://u@127.0.0.1:0", "wss://127.0.0.1:0",
          "http://127.0.0.1:0", "unix:/tmp/x", "stdio:", "stdio:///", "Stdio", "", " stdio",
          "127.0.0.1:0", "ws://127.0.0.1:0?x", "tcp://127.0.0.1:0"]


@case("listen")
async def listen(t):
    for url in LISTEN:
        t.see(url, await refused(t, ["--listen", url]))


@case("auth options")
async def auth_options(t):
    good, short = t.file("good", SECRET), t.file("short", "x" * 31)
    blank, binary = t.file("blank", " \n"), t.file("binary", b"\xff\xfe")
    digest = "0" * 64
    cap, jwt = ["--ws-auth", "capability-token"], ["--ws-auth", "signed-bearer-token"]
    for args in ([*cap], [*jwt], ["--ws-token-file", good], ["--ws-token-sha256", digest],
                 ["--ws-issuer", "x"], ["--ws-max-clock-skew-seconds", "5"],
                 ["--ws-shared-secret-file", good], [*cap, "--ws-shared-secret-file", good],
                 [*cap, "--ws-token-file", good, "--ws-token-sha256", digest],
                 [*cap, "--ws-token-file", good, "--ws-issuer", "x"],
                 [*jwt, "--ws-token-file", good], [*jwt, "--ws-token-sha256", digest],
                 [*cap, "--ws-token-sha256", "x"], [*cap, "--ws-token-sha256", "0" * 63],
                 [*cap, "--ws-token-sha256", "g" * 64],
                 [*cap, "--ws-token-file", "missing"], [*cap, "--ws-token-file", t.dir],
                 [*cap, "--ws-token-file", blank], [*cap, "--ws-token-file", binary],
                 [*jwt, "--ws-shared-secret-file", "missing"],
                 [*jwt, "--ws-shared-secret-file", short],
                 [*jwt, "--ws-shared-secret-file", blank],
                 [*jwt, "--ws-shared-secret-file", binary],
                 [*jwt, "--ws-shared-secret-file", good, "--ws-max-clock-skew-seconds",
                  "9223372036854775808"],
                 [*cap, "--ws-token-file", good, "--listen", "stdio"]):
        t.see(" ".join(args).replace(t.dir, "DIR"), await refused(t, args))


@case("usage errors")
async def usage(t):
    """Only the exit status counts: the texts come from an argument parser."""
    for args in (["--nope"], ["nope"], ["--listen"], ["--concurrent-requests", "0"],
                 ["--concurrent-requests", "-1"], ["--concurrent-requests", "x"],
                 ["--concurrent-requests"], ["--ws-auth", "basic"], ["--ws-auth"],
                 ["--ws-max-clock-skew-seconds", "x"], ["--ws-max-clock-skew-seconds", "-1"],
                 ["--listen", "stdio", "--listen", "stdio"],
                 ["--linux-sandbox-pid-namespace", "x"],
                 ["--exit-on-stdin-close"], ["-x"], ["--listen=stdio", "extra"]):
        t.see(" ".join(args), await refused(t, args, first_line=False))


@case("help")
async def help_option(t):
    for option in ("--help", "-h"):
        child = await launch(t, [option])
        out, err = await asyncio.wait_for(child.communicate(), WAIT)
        t.see(option, {"exit status": child.returncode, "names --listen": b"--listen" in out,
                       "stderr": err.decode()})


async def started(t, args, **popen):
    child = await launch(t, args, **popen)
    line = (await asyncio.wait_for(child.stdout.readline(), WAIT)).decode()
    return child, line


async def ended(child):
    """Exit status, and what was printed after the first line."""
    try:
        out, err = await asyncio.wait_for(child.communicate(), WAIT)
    except asyncio.TimeoutError:
        child.kill()
        return "did not end"
    return {"exit status": child.returncode, "stdout": out.decode(), "stderr": err.decode()}


def masked(line):
    return line[:line.rfind(":")] + ":<port>" + ("\n" if line.endswith("\n") else "")


@case("accepted options")
async def accepted(t):
    good = t.file("good", SECRET)
    for args in ([], ["--listen", "ws://127.0.0.1:0"], ["--listen", "ws://[::1]:0"],
                 ["--listen=ws://127.0.0.1:0"],
                 ["--concurrent-requests", "18446744073709551615"],
                 ["-c", "model=x", "--enable", "apps", "--disable", "goals"],
                 ["--config", "model=x"],
                 ["--name", "n", "--environment-id", "e"], ["--proxy-private-ips-via-upstream"],
                 ["--linux-sandbox-pid-namespace", "isolate"],
                 ["--ws-auth", "capability-token", "--ws-token-file", "good"],
                 ["--ws-auth", "capability-token", "--ws-token-sha256", " " + "A" * 64 + " "],
                 ["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", good,
                  "--ws-max-clock-skew-seconds", "9223372036854775807"]):
        child, line = await started(t, args)
        if line:
            child.terminate()
        t.see(" ".join(args).replace(t.dir, "DIR"), {"line": masked(line),
                                                     "end": await ended(child)})


@case("signals")
async def signals(t):
    for name in ("SIGTERM", "SIGINT"):
        child, _ = await started(t, [])
        child.send_signal(getattr(signal, name))
        t.see(name, await ended(child))


@case("sighup")
async def sighup(t):
    child, _ = await started(t, [])
    child.send_signal(signal.SIGHUP)
    t.see("end", await ended(child))


@case("port in use")
async def port_in_use(t):
    port = await t.side.port("plain")
    t.see("end", await refused(t, ["--listen", f"ws://127.0.0.1:{port}"]))


@case("stdout closed")
async def stdout_closed(t):
    """A server whose standard output is closed listens all the same."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = await launch(t, ["--listen", f"ws://127.0.0.1:{port}"],
                         preexec_fn=lambda: os.close(1))
    for _ in range(300):
        try:
            (await open_tcp(port))[1].close()
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)
    else:
        t.see("listening", False)
    child.terminate()
    t.see("exit status", (await ended(child))["exit status"])
