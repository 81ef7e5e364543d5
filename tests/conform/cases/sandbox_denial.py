"""sandboxDenied: what the output of a command that failed says about its sandbox."""

from harness.case import case
from harness.peer import ABSENT
from harness.sandbox import DISABLED, Place, context, external, managed

READ = ["r :root"]
KEYWORDS = ["operation not permitted", "PERMISSION DENIED", "Read-Only File System", "seccomp",
            "SandBox", "landlock", "failed to write file", "EPERM", "EROFS"]
CONNECT = "import socket\ntry:\n socket.create_connection(('127.0.0.1', 9))\n" \
          "except OSError as e:\n raise SystemExit(str(e))"
ROWS = [
    ("denied write", READ, "echo x > nope || exit 1"),
    ("denied write, own code", READ, "echo x > nope"),
    ("denied write, exit 0", READ, "echo x > nope; exit 0"),
    ("exit 1", READ, "exit 1"), ("exit 2", READ, "exit 2"),
    ("not found", READ, "nosuchcmd"), ("not executable", READ, "f=/etc/passwd; $f"),
    *((f"says {word}", READ, f"echo '{word}'; exit 3") for word in KEYWORDS),
    ("stderr", READ, "echo 'permission denied' >&2; exit 3"),
    ("over two streams", READ, "printf 'permission '; sleep 0.2; printf 'denied' >&2; exit 3"),
    ("over two writes", READ, "printf 'permission '; sleep 0.2; printf 'denied'; exit 3"),
    ("two lines", READ, "echo permission; echo denied; exit 3"),
    *((f"says it, exit {n}", READ, f"echo 'permission denied'; exit {n}")
      for n in (0, 1, 2, 126, 127)),
    ("no sandbox", None, "echo 'permission denied'; exit 3"),
    ("disabled", DISABLED, "echo 'permission denied'; exit 3"),
    ("disabled, SIGSYS", DISABLED, "kill -SYS $$"),
    ("external", external("enabled"), "echo 'permission denied'; exit 3"),
    ("unconfined, exit 0", external("enabled"), "echo 'permission denied'"),
    *((f"signal {name}", READ, f"kill -{name} $$") for name in ("SYS", "KILL", "TERM", "SEGV")),
    ("exit 159", READ, "exit 159"), ("exit 158", READ, "exit 158"),
    ("network", READ, ["/usr/bin/python3", "-c", CONNECT]),
    ("network enabled", managed("r :root", network="enabled"),
     ["/usr/bin/python3", "-c", CONNECT]),
]


def add(first):
    @case(f"rows from {first}")
    async def rows(t):
        place = await Place.open(t)
        place.make()
        for name, profile, command in ROWS[first:first + 10]:
            sandbox = ABSENT if profile is None else context(profile)
            t.see(name, await place.run(command, sandbox))


for _first in range(0, len(ROWS), 10):
    add(_first)


@case("terminal")
async def terminal(t):
    place = await Place.open(t)
    place.make()
    t.see("says it", await place.run("echo 'permission denied'; exit 3", context(READ), tty=True))
    t.see("exit 0", await place.run("echo 'permission denied'; exit 0", context(READ), tty=True))


@case("much output")
async def much(t):
    place = await Place.open(t)
    place.make()
    fill = "head -c 2000000 /dev/zero | tr '\\0' a"
    for name, script in (("early", f"echo permission denied; {fill}; exit 3"),
                         ("late", f"{fill}; echo permission denied; exit 3")):
        process = await place.start(script, context(READ))
        await process.until_closed()
        t.see(name, [process.exited()["exitCode"], process.exited()["sandboxDenied"],
                     len(process.output("stdout"))])
