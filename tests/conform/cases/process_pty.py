"""Terminals: settings, editing, control characters, jobs."""

import re
import sys

from harness.case import case


@case("settings")
async def settings(t):
    c = await t.connect()
    p = await c.finish_of("stty -a; test -t 0 && test -t 1 && test -t 2 && echo all; "
                          "tty | tr -d 0-9; test -e /dev/tty && : </dev/tty && echo controlling",
                          tty=True)
    t.see("settings", p)


@case("owner of the device")
async def owner(t):
    c = await t.connect()
    t.see("mode", await c.finish_of("stat -c '%a %U' $(tty)", tty=True))


@case("line editing and end of file")
async def editing(t):
    c = await t.connect()
    p = await c.start(["/bin/cat"], tty=True)
    t.see("write", await p.write("hello\n"))
    await p.until_text("hello\r\nhello\r\n", "pty")
    await p.write("par\x7ftt")
    await p.until_text("par\b \btt", "pty")
    await p.write("\x04\x04")
    t.see("end", (await p.until_closed()).summary())


def key(name, byte, argv, needle):
    @case(f"key {name}")
    async def one(t):
        c = await t.connect()
        p = await c.start(argv, tty=True)
        await p.write("abc")
        await p.until_text("abc", "pty")
        t.see("write", await p.write(byte))
        if needle:
            await p.until_text(needle, "pty")
            t.see("terminate", await p.terminate())
        await p.until_closed()
        t.see("exited", p.exited())
        if not needle:
            t.see("output", p.text("pty"))


key("interrupt", "\x03", ["/bin/cat"], None)
key("quit", "\x1c", ["/bin/sh", "-c", "ulimit -c 0; exec cat"], None)
key("suspend", "\x1a", ["/bin/cat"], "^Z")


@case("raw mode")
async def raw(t):
    c = await t.connect()
    p = await c.start("stty raw -echo; echo R; head -c 5 | od -An -c", tty=True)
    await p.until_text("R", "pty")
    t.see("write", await p.write("a\rb\x03\x04"))
    t.see("end", (await p.until_closed()).summary())


@case("long line")
async def long_line(t):
    """The kernel keeps 4095 bytes of a line in canonical mode."""
    c = await t.connect()
    p = await c.start("stty -echo; echo R; head -n1 | wc -c", tty=True)
    await p.until_text("R", "pty")
    t.see("write", await p.write("x" * 6000))
    t.see("end of line", await p.write("\n"))
    t.see("end", (await p.until_closed()).summary())


# A session leader that gives the terminal to a job in a group of its own.
LEADER = r"""
import os, signal
signal.signal(signal.SIGINT, lambda *a: os.write(1, b'trapped\n'))
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.write(1, b'job\n')
    while True:
        signal.pause()
status = os.waitpid(job, 0)[1]
os.tcsetpgrp(0, os.getpid())
os.write(1, b'job ended by %d\n' % os.WTERMSIG(status))
"""


@case("foreground job")
async def jobs(t):
    """A signal reaches the leader's own group, a control character the foreground job."""
    c = await t.connect()
    p = await c.start([sys.executable, "-c", LEADER], tty=True)
    await p.until_text("job", "pty")
    t.see("signal", await p.signal())
    await p.until_text("trapped", "pty")
    t.see("control character", await p.write("\x03"))
    await p.until_closed()
    t.see("end", p.summary())


@case("output modes")
async def output_modes(t):
    c = await t.connect()
    t.see("both streams", await c.finish_of("echo out; echo err >&2", tty=True, processId="a"))
    t.see("let go", await c.finish_of("exec >/dev/null 2>&1 </dev/null; sleep 0.2", tty=True,
                                      processId="b"))
    t.see("tabs", await c.finish_of("printf 'a\\tb\\n\\303\\251\\n'", tty=True, processId="c"))


@case("large output")
async def large(t):
    c = await t.connect()
    p = await c.start("seq 1 50000", tty=True)
    await p.until_closed()
    lines = p.text("pty").split("\r\n")
    t.see("complete", lines == [str(i) for i in range(1, 50001)] + [""])
    t.see("exited", p.exited())
    t.see("numbering", p.numbering())


@case("device name")
async def device(t):
    c = await t.connect()
    p = await c.finish_of("tty", tty=True)
    t.see("is a pts", bool(re.fullmatch(r"/dev/pts/\d+\r\n", p["pty"])))
