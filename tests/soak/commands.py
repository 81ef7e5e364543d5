"""Activities with processes. Each takes the world, a source of chance, and a scope to clean up."""

import time

from harness import procfs
from harness.procfs import mark
from harness.rpc import b64

from ledger import Grown, Source
from link import Link

LARGEST = 200_000  # of a stream, so that a resume finds all of it
IN_FLIGHT = 6
# Descendants that ignore signals, leave the session, fork and die; then the output.
FAMILY = """
for i in 1 2 3 4 5; do (sh -c 'exit 1' &) ; done
(trap '' TERM HUP INT; setsid sleep {mark} & ) >/dev/null 2>&1 </dev/null
"""
STUBBORN = "trap '' TERM HUP INT QUIT\n"
OUTPUT = """
part() {{ tail -c "+$(($2 + 1))" "$1" | head -c "$3"; }}
part {file} {out_at} {out} & part {file} {err_at} {err} >&2
wait
"""


class Command:
    """One command of a storm."""

    def __init__(self, world, rng):
        self.tty = rng.random() < 0.2
        data, file = (world.text, world.text_file) if self.tty else (world.blob, world.blob_file)
        names = ["pty"] if self.tty else ["stdout", "stderr"]
        self.sources = {name: piece(rng, data) for name in names}
        out, err = self.sources[names[0]], self.sources[names[-1]]
        self.fate = rng.choices(["ends", "killed", "stubborn", "timeout"], [12, 2, 1, 1])[0]
        self.code = rng.randrange(100)
        script = FAMILY.format(mark=mark()) if rng.random() < 0.15 else ""
        if self.fate == "stubborn":
            script = STUBBORN + script
        script += OUTPUT.format(file=file, out_at=out.start, out=out.length, err_at=err.start,
                                err=0 if self.tty else err.length)
        script += f"exit {self.code}" if self.fate in ("ends", "killed") else f"exec sleep {mark()}"
        self.options = {"tty": self.tty}
        if self.fate == "timeout":
            # Sleep lets SIGTERM end it; the output must not be cut short.
            self.options["timeoutMs"] = 20_000 if rng.random() < 0.5 else rng.randrange(1, 300)
        if rng.random() < 0.2:
            self.options |= {"sandbox": world.sandbox(rng.choice([None, world.workspace])),
                             "cwd": f"file://{world.workspace}"}
        self.command = script
        self.kill_after = rng.choice([0, 0, 1, 1000, 50_000])
        self.ledger = self.params = None
        self.answer_to = self.kill_id = None

    def all_there(self):
        return all(self.ledger.got[k] == s.total() for k, s in self.sources.items())

    def kill_due(self):
        """Stubborn ones are killed when all their output has come."""
        if self.fate == "killed":
            return self.ledger.total() >= self.kill_after
        return self.fate in ("stubborn", "timeout") and self.all_there()

    def kill_params(self, rng):
        graceful = {"mode": {"type": "graceful", "timeoutMs": rng.randrange(50, 300)}}
        return {"processId": self.ledger.name, **(graceful if rng.random() < 0.5 else {})}

    def check(self, link):
        codes = {"ends": [self.code], "killed": [self.code, 137, 143], "stubborn": [137],
                 "timeout": [137, 143]}[self.fate]
        if self.fate == "stubborn" and not self.ledger.total():
            codes = [137, 143]  # nothing told that it has begun to be
        cut = self.fate == "killed" or self.options.get("timeoutMs", 20_000) < 20_000
        link.finish(self.ledger, codes, whole=not cut)


def piece(rng, data):
    length = rng.choice([0, 1, rng.randrange(100), rng.randrange(LARGEST), LARGEST])
    return Source(data, rng.randrange(len(data) - LARGEST), length)


class Storm:
    """Commands in flight on a session that keeps losing its connection."""

    def __init__(self, world, rng, link):
        self.world, self.rng, self.link = world, rng, link
        self.live = []

    def begin(self):
        command = Command(self.world, self.rng)
        client = self.link.client
        command.params = client.start_params(command.command, **command.options)
        name = command.params["processId"]
        command.ledger = self.link.expect(name, command.sources)
        command.answer_to = client.send("process/start", command.params)
        self.live.append(command)

    def recover(self):
        """After a resume: starts that never arrived and kills that may not have are repeated."""
        unknown = self.link.resume()
        for command in self.live:
            if command.ledger.name in unknown:
                assert command.answer_to is not None, "the server forgot a process"
                command.answer_to = self.link.client.send("process/start", command.params)
            else:
                command.answer_to = None
            if command.kill_id is not None:
                command.kill_id = None

    def advance(self):
        client = self.link.client
        client.pump(0.02)
        while client.pump(0) is not None:
            pass
        for command in list(self.live):
            if command.answer_to in client.answers:
                client.result(command.answer_to)
                self.world.count("process")
                command.answer_to = None
            if command.kill_id in client.answers:
                client.result(command.kill_id)
                command.kill_id = -1
            if command.answer_to is not None:
                continue
            if command.ledger.closed:
                command.check(self.link)
                self.live.remove(command)
            elif command.kill_id is None and command.kill_due():
                command.kill_id = client.send("process/terminate", command.kill_params(self.rng))


def storm(world, rng, scope):
    """Short commands with pipes, terminals and sandboxes; some killed; connections lost."""
    link = Link(world, rng)
    scope.callback(link.close)
    run = Storm(world, rng, link)
    todo, losses = rng.randrange(5, 25), rng.choice([0, 1, 3])
    while todo or run.live:
        while todo and len(run.live) < IN_FLIGHT:
            run.begin()
            todo -= 1
        run.advance()
        if losses and run.live and rng.random() < 0.1:
            losses -= 1
            link.lose()
            run.recover()


def echo(world, rng, scope):
    """What is written to a process comes back, once, over lost connections."""
    link = Link(world, rng)
    scope.callback(link.close)
    tty = rng.random() < 0.3
    total = rng.randrange(1, 500_000)
    data = (world.text if tty else world.blob)[-total:]
    source = Grown(b"ready\n" if tty else b"")
    script = f"exec head -c {total}"
    options = {"tty": tty, "pipeStdin": not tty}
    if tty:
        script = f"stty raw -echo && echo ready && {script}"
    if rng.random() < 0.3:
        options |= {"sandbox": world.sandbox(), "cwd": f"file://{world.workspace}"}
    ledger = link.start(script, {"pty" if tty else "stdout": source}
                        | ({} if tty else {"stderr": Source(b"")}), **options)
    if tty:
        link.client.wait(lambda: ledger.total() >= 6, "a terminal in raw mode")
    write_all(link, ledger, source, data, rng)
    link.wait_closed(ledger)
    link.finish(ledger, [0])


def write_all(link, ledger, source, data, rng):
    """Writes data in pieces with ids; those without an answer are repeated after a loss."""
    sent, unanswered, number = 0, {}, 0
    while sent < len(data) or unanswered:
        if sent < len(data) and source.total() - ledger.total() < 200_000 and len(unanswered) < 20:
            chunk = data[sent:sent + rng.choice([1, rng.randrange(1, 5000), 60_000])]
            sent += len(chunk)
            number += 1
            source.add(chunk)
            params = {"processId": ledger.name, "chunk": b64(chunk), "writeId": f"w{number}"}
            unanswered[number] = params, link.client.send("process/write", params)
            link.client.pump(0)
        else:
            link.client.pump(0.05)
        for key, (_, ident) in list(unanswered.items()):
            if ident in link.client.answers:
                assert link.client.result(ident) == {"status": "accepted"}
                del unanswered[key]
        if rng.random() < 0.01:
            link.lose()
            assert not link.resume(), "the server forgot a process"
            for key, (params, _) in unanswered.items():
                unanswered[key] = params, link.client.send("process/write", params)


def slow(world, rng, scope):
    """A client that reads late and in small pieces gets everything."""
    link = Link(world, rng, rcvbuf=8192)
    scope.callback(link.close)
    copies = rng.choice([1, 2])
    ledger = link.start(["cat", *[str(world.blob_file)] * copies],
                        {"stdout": Source(world.blob * copies), "stderr": Source(b"")})
    for _ in range(rng.randrange(3)):
        time.sleep(rng.uniform(0.1, 0.7))
        for _ in range(rng.randrange(10)):
            link.client.pump(0)
    link.wait_closed(ledger)
    link.finish(ledger, [0])
    world.count("fault: slow reader")


def family(world, rng, scope):
    """Descendants that ignore signals and leave their parents die with a terminate."""
    link = Link(world, rng)
    scope.callback(link.close)
    name = mark()
    script = (f"{STUBBORN} for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM INT; sleep {name}' &)"
              f"; done; (sh -c 'sleep {name} & exit' &); printf up; while :; do sleep {name}; done")
    options = {"tty": rng.random() < 0.3}
    if rng.random() < 0.4:
        options |= {"sandbox": world.sandbox(), "cwd": f"file://{world.workspace}"}
    stream = "pty" if options["tty"] else "stdout"
    ledger = link.start(script, {stream: Source(b"up")}, **options)
    link.client.wait(lambda: ledger.total() == 2, "a word of the process")
    for _ in range(rng.randrange(3)):
        link.client.call("process/signal", {"processId": ledger.name, "signal": rng.choice(
            ["interrupt", "terminate", "hangup"])})
    mode = rng.choice([{}, {"mode": {"type": "graceful", "timeoutMs": 100}}])
    assert link.client.call("process/terminate", {"processId": ledger.name, **mode})["running"]
    link.wait_closed(ledger)
    link.finish(ledger, [137])
    procfs.wait_marked(name, 0)
    world.count("fault: children that ignore signals, fork and die")


ACTIVITIES = {storm: 6, echo: 5, slow: 2, family: 2}
