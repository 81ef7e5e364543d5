"""Thousands of short commands, some killed, some interrupted by a lost connection.

E2E_STRESS_COMMANDS sets their number, E2E_SEED what happens to each.
"""

import os
import random
import select

import pytest

from harness.rpc import Client, unb64
from harness.settings import SANITIZED
from harness.waiting import Deadline, until

COMMANDS = int(os.environ.get("E2E_STRESS_COMMANDS", "1000" if SANITIZED else "1500"))
SEED = int(os.environ.get("E2E_SEED", "1"))
IN_FLIGHT = 64
SESSIONS = 4
LARGEST = 200_000
BOTH = 'head -c "$1" "$2" & head -c "$3" "$4" >&2; wait; exit "$5"'
ONE = 'head -c "$1" "$2"; exit "$5"'


class Command:
    """One command: what it must give, and what came so far by notification or read."""

    def __init__(self, name, rng, data):
        self.name = name
        self.tty = rng.random() < 0.05
        self.killed = rng.random() < 0.08
        self.kill_after = rng.choice([0, 0, 1, 1000, 50_000])
        self.code = rng.randrange(100)
        self.sizes = {"stdout": size(rng), "stderr": size(rng)}
        self.data = dict(data)
        if self.tty:
            self.sizes = {"pty": size(rng)}
        self.got = dict.fromkeys(self.sizes, 0)
        self.start_id = None
        self.kill_id = None
        self.started = False
        self.next_seq = 1
        self.pending = {}
        self.exited = None
        self.closed = False

    def params(self, client, files):
        first = "pty" if self.tty else "stdout"
        return client.start_params(
            ["/bin/sh", "-c", ONE if self.tty else BOTH, "sh", str(self.sizes[first]),
             files[first], str(self.sizes.get("stderr", 0)), files["stderr"], str(self.code)],
            processId=self.name, tty=self.tty)

    def offer(self, seq, kind, payload):
        """Takes an event from either source; keeps the order, drops what is known."""
        if seq < self.next_seq:
            return
        self.pending[seq] = (kind, payload)
        while self.next_seq in self.pending:
            kind, payload = self.pending.pop(self.next_seq)
            self.next_seq += 1
            self.take(kind, payload)

    def take(self, kind, payload):
        assert not self.closed, f"{self.name}: {kind} after closed"
        if kind == "exited":
            assert self.exited is None
            self.exited = payload
        elif kind == "closed":
            assert self.exited is not None
            self.closed = True
        else:
            start = self.got[kind]
            assert payload == self.data[kind][start:start + len(payload)], \
                f"{self.name}: wrong {kind} after {start} bytes"
            self.got[kind] = start + len(payload)

    def catch_up(self, result):
        """Events told by process/read after a resume."""
        seqs = set()
        for chunk in result["chunks"]:
            seqs.add(chunk["seq"])
            self.offer(chunk["seq"], chunk["stream"], unb64(chunk["chunk"]))
        if result["closed"]:
            self.offer(result["nextSeq"] - 1, "closed", None)
            seqs.add(result["nextSeq"] - 1)
        if result["exited"] and self.exited is None:
            known = seqs | set(self.pending)
            holes = [s for s in range(self.next_seq, result["nextSeq"]) if s not in known]
            assert len(holes) == 1, f"{self.name}: missing {holes}"
            self.offer(holes[0], "exited", result["exitCode"])

    def check(self):
        """Nothing is missing at the end."""
        assert not self.pending
        if self.exited == 137 and self.killed:
            assert all(self.got[k] <= n for k, n in self.sizes.items())
        else:
            assert (self.exited, self.got) == (self.code, self.sizes), self.name


def size(rng):
    return rng.choice([0, 1, rng.randrange(100), rng.randrange(LARGEST), rng.randrange(LARGEST),
                       LARGEST])


class StressClient(Client):
    """Hands events to the commands instead of keeping them."""

    def __init__(self, transport, commands):
        super().__init__(transport)
        self.commands = commands
        self.make_sink = lambda name: commands[name].offer

    def file(self, data):
        message = super().file(data)
        if "method" in message:
            kind, params = message["method"].partition("/")[2], message["params"]
            if kind == "exited":
                self.commands[params["processId"]].offer(params["seq"], kind, params["exitCode"])
            elif kind == "closed":
                self.commands[params["processId"]].offer(params["seq"], kind, None)
        return message


class Session:
    """One session: keeps its share of commands in flight over lost connections."""

    def __init__(self, server, rng, files, data):
        self.server, self.rng, self.files, self.data = server, rng, files, data
        self.live = {}
        self.done = 0
        self.drops = 0
        self.client = self.connect(None)
        self.session = self.client.session

    def connect(self, resume):
        """A connection; -32010 is retried like clients do."""
        deadline = Deadline()
        while True:
            options = {"rcvbuf": 16384} if self.rng.random() < 0.2 else {}
            client = StressClient(self.server.websocket(**options), self.live)
            params = {"clientName": "stress"}
            if resume:
                params["resumeSessionId"] = resume
            answer = client.answer(client.send("initialize", params))
            if "result" in answer:
                client.session = answer["result"]["sessionId"]
                client.notify("initialized", {})
                return client
            assert answer["error"]["code"] == -32010 and not deadline.passed(), answer
            client.close()

    def begin(self, name):
        command = Command(name, self.rng, self.data)
        self.live[name] = command
        command.start_id = self.client.send(
            "process/start", command.params(self.client, self.files))

    def drop(self):
        """Loses the connection in some way and resumes the session."""
        self.drops += 1
        ws = self.client.transport
        getattr(ws, self.rng.choice(["reset", "drop"]))()
        self.client = self.connect(self.session)
        for command in list(self.live.values()):
            self.recover(command)

    def recover(self, command):
        """What a client does after a resume: read what was missed, start what never began."""
        while True:
            answer = self.client.answer(self.client.send(
                "process/read", {"processId": command.name, "afterSeq": command.next_seq - 1}))
            message = answer.get("error", {}).get("message", "")
            if message != f"process id {command.name} is starting":
                break
        if "result" in answer:
            command.started, command.start_id = True, None
            command.catch_up(answer["result"])
        else:
            assert message == f"unknown process id {command.name}" and not command.started
            command.start_id = self.client.send(
                "process/start", command.params(self.client, self.files))
        if command.kill_id is not None:
            command.kill_id = self.client.send("process/terminate", {"processId": command.name})

    def advance(self):
        """Files what has arrived and acts on it."""
        while self.client.pump(0) is not None:
            pass
        for command in list(self.live.values()):
            if not command.started and command.start_id in self.client.answers:
                result = self.client.result(command.start_id)
                assert result["processId"] == command.name
                command.started = True
            if command.kill_id is not None and command.kill_id in self.client.answers:
                assert self.client.result(command.kill_id)["running"] in (True, False)
                command.kill_id = None
            if command.closed and command.kill_id is None:
                command.check()
                del self.live[command.name]
                self.client.processes.pop(command.name, None)
                self.done += 1
            elif (command.killed and command.started and command.kill_id is None
                  and not command.closed and sum(command.got.values()) >= command.kill_after):
                command.kill_after = 10**9
                command.kill_id = self.client.send("process/terminate",
                                                   {"processId": command.name})


@pytest.mark.limit(1800)
def test_many_short_commands(fleet, tmp_path):
    rng = random.Random(SEED)
    data = {"stdout": rng.randbytes(LARGEST), "stderr": rng.randbytes(LARGEST),
            "pty": bytes(rng.choices(range(33, 127), k=LARGEST))}
    files = {}
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
        files[name] = str(tmp_path / name)
    server = fleet.start()
    idle = [server.client() for _ in range(SESSIONS)]
    idle[0].run("true")
    before = server.fds()
    for client in idle:
        client.end()
    sessions = [Session(server, rng, files, data) for _ in range(SESSIONS)]
    started = 0
    stuck = Deadline(600)
    finished = 0
    while finished < COMMANDS:
        for session in sessions:
            while len(session.live) < IN_FLIGHT // SESSIONS and started < COMMANDS:
                session.begin(f"c{started}")
                started += 1
            session.advance()
            # By chance, and at the latest when half is done.
            due = finished > COMMANDS // 2 and not any(s.drops for s in sessions)
            if session.live and (due or rng.random() < 0.002):
                session.drop()
        count = sum(s.done for s in sessions)
        if count > finished:
            finished, stuck = count, Deadline(600)
        assert not stuck.passed(), [vars(c) for s in sessions for c in s.live.values()][:1]
        poller = select.poll()
        for session in sessions:
            poller.register(session.client.transport.sock, select.POLLIN)
        poller.poll(50)
    assert sum(s.drops for s in sessions) > 0
    for session in sessions:
        assert session.client.quiet()
    until(lambda: not server.zombies(), "no zombies")
    server.wait_fds(before)
