"""process/ack: output that a client has not acknowledged stays; a process that must wait waits
alone."""

import random
import subprocess

import pytest

from harness import procfs
from harness.resting import wait_rest
from harness.rpc import unb64
from harness.sessions import resume
from harness.settings import SANITIZED
from harness.waiting import until

MIB = 1 << 20
# Unacknowledged output at which the server stops reading, with the usual --retained-output.
FULL = MIB - 65536
ACK_EVERY = 256 << 10
# However slow the machine.
LONG = ("--session-ttl", "3600", "--closed-retention", "3600")


def acking(server, **asked):
    """A client that acknowledges output."""
    client = server.connect()
    client.initialize(outputAck=True, **asked)
    return client


def blocked(token):
    return any(procfs.writing(pid) for pid in procfs.marked(token))


def numbers(count):
    return subprocess.run(["seq", str(count)], check=True, stdout=subprocess.PIPE).stdout


class Follower:
    """Follows one process through cuts of its connection, as a client library does."""

    def __init__(self, server, command, every=ACK_EVERY, **options):
        self.server, self.every = server, every
        self.seen = self.unacked = 0
        self.streams, self.waiting = {}, {}
        self.client = acking(server)
        self.process = self.client.start(command, sink=self.take, **options)
        self.name = self.process.name

    @property
    def size(self):
        return sum(map(len, self.streams.values()))

    def take(self, seq, stream, data):
        """One chunk, from a notification or an answer, in any order."""
        if seq > self.seen:
            self.waiting[seq] = stream, data
        while self.seen + 1 in self.waiting:
            self.seen += 1
            stream, data = self.waiting.pop(self.seen)
            self.streams.setdefault(stream, bytearray()).extend(data)
            self.unacked += len(data)
        if self.unacked >= self.every:
            self.ack()

    def ack(self):
        self.client.send("process/ack", {"processId": self.name, "seq": self.seen})
        self.unacked = 0

    def check_acks(self):
        """No acknowledgement that was answered failed."""
        assert all(a.get("result") == {} for told in self.client.answers.values() for a in told)

    def cut(self, how):
        """Leaves with whatever is under way."""
        self.check_acks()
        getattr(self.client.transport, how)()
        self.resume()

    def resume(self):
        """Comes back and asks for what it missed: nothing may be gone."""
        self.client = resume(self.server, self.client.session, outputAck=True)
        self.client.make_sink = lambda name: self.take
        result = self.client.read(self.name, afterSeq=self.seen)
        for chunk in result["chunks"]:
            self.take(chunk["seq"], chunk["stream"], unb64(chunk["chunk"]))
        assert not self.waiting, f"events after {self.seen} are gone"
        return result

    def over(self):
        process = self.client.processes.get(self.name)
        return process is not None and process.closed

    def finish(self):
        """Follows it to its end; the last answer of process/read."""
        self.ack()  # what the last connection could not
        self.client.wait(lambda: self.over() or self.client.read(self.name)["closed"], "the end")
        result = self.client.read(self.name, afterSeq=self.seen)
        assert not self.waiting
        for chunk in result["chunks"]:
            self.take(chunk["seq"], chunk["stream"], unb64(chunk["chunk"]))
        assert not self.waiting
        self.client.barrier()
        self.check_acks()
        # Every number was an event: output, exited, closed.
        assert result["closed"] and result["nextSeq"] == self.seen + 3
        return result


def cut_at_random(follower, size, cuts):
    """Cuts that many times, at places of the output that chance chooses."""
    chance = random.Random(size)
    for place in sorted(chance.randrange(size) for _ in range(cuts)):
        follower.client.wait(lambda p=place: follower.size >= p, "output")
        follower.cut(chance.choice(["reset", "drop"]))


@pytest.mark.limit(1200)
def test_no_gap_in_a_flood(fleet):
    """64 MB, cut at 20 places: not a byte is missing, doubled or out of order."""
    server = fleet.start(*LONG)
    count, cuts = (1_000_000, 8) if SANITIZED else (8_150_000, 20)
    expected = numbers(count)
    follower = Follower(server, f"seq {count}; exit 7")
    cut_at_random(follower, len(expected), cuts)
    assert follower.finish()["exitCode"] == 7
    assert list(follower.streams) == ["stdout"]
    assert follower.streams["stdout"] == expected


@pytest.mark.limit(600)
def test_no_gap_on_both_streams(fleet):
    count = 500_000
    expected = numbers(count)
    follower = Follower(fleet.start(*LONG), f"seq {count} & seq {count} >&2; wait")
    cut_at_random(follower, 2 * len(expected), 8)
    follower.finish()
    assert follower.streams == {"stdout": expected, "stderr": expected}


@pytest.mark.limit(600)
def test_no_gap_on_a_terminal(fleet):
    count = 400_000
    expected = numbers(count)
    server = fleet.start(*LONG, "--retained-output", "65536")  # a terminal is slow
    follower = Follower(server, f"stty -opost; seq {count}", every=1, tty=True)
    cut_at_random(follower, len(expected), 8)
    follower.finish()
    assert follower.streams == {"pty": expected}


@pytest.mark.parametrize("size", [65536, 65537, 200_000])
def test_no_gap_with_little_room(fleet, size):
    """With room for a single chunk each one waits for the acknowledgement of the one before."""
    server = fleet.start(*LONG, "--retained-output", str(size))
    expected = numbers(1_000_000)
    follower = Follower(server, "seq 1000000", every=max(1, size - 65536))
    cut_at_random(follower, len(expected), 5)
    follower.finish()
    assert follower.streams["stdout"] == expected


class Flood:
    """A process that writes without end, or so many bytes, and whose output is counted."""

    def __init__(self, client, size=None, script=None):
        self.client, self.size, self.last, self.acked = client, 0, 0, 0
        self.token = f"-c{size}" if size else f"mark{client.new_name()}"
        command = script or (f"head {self.token} /dev/zero" if size else f"yes {self.token}")
        self.process = client.start(["/bin/sh", "-c", f"{command}; exit 3", "sh", self.token],
                                    sink=self.count)
        self.name = self.process.name

    def count(self, seq, _stream, data):
        self.size += len(data)
        self.last = seq

    def ack(self, **more):
        """Acknowledges what has arrived."""
        self.acked = self.size
        assert self.client.ask("ack", self.name, seq=self.last, **more) == {}

    def wait_stalled(self, server):
        """The server stops reading it and has nothing else to do."""
        self.client.wait(lambda: self.size - self.acked >= FULL, "output")
        wait_rest(server, after=lambda: blocked(self.token))
        self.client.barrier()
        assert self.size - self.acked <= MIB
        assert self.client.quiet()


def test_a_process_waits_alone(server):
    """One that nobody acknowledges stalls; others of the connection go on."""
    client = acking(server)
    stalled = Flood(client)
    stalled.wait_stalled(server)
    echo = client.start("cat", pipeStdin=True)
    client.write(echo, "hello\n")
    client.wait_output(echo, "hello\n")
    other = Flood(client, 4 * MIB)
    while other.process.closed is None:
        other.ack()
        client.wait(lambda: other.process.closed or other.size > other.acked, "output")
    assert other.size == 4 * MIB
    assert client.quiet()
    # An acknowledgement lets it go on, as far as it reaches.
    stalled.ack()
    stalled.wait_stalled(server)
    # One that goes back changes nothing.
    assert client.ask("ack", stalled.name, seq=1) == {}
    assert client.quiet()
    client.terminate(stalled.name)
    stalled.ack()
    client.wait_closed(stalled.process)


def test_exited_while_held(server):
    """The leader ends, the rest of its output waits in the pipes: nothing of it is lost."""
    client = acking(server)
    # More than the server reads, and the rest fits the pipes wherever it stops.
    flood = Flood(client, script="head -c1000000 /dev/zero >&2; head -c49000 /dev/zero")
    client.wait(lambda: flood.size >= FULL, "output")
    procfs.wait_marked(flood.token, 0)
    wait_rest(server)
    client.barrier()
    assert flood.size <= MIB and flood.process.exited is None
    assert not client.read(flood.name, afterSeq=flood.last)["exited"]
    assert client.terminate(flood.name) == {"running": False}
    waiting = client.send("process/wait", {"processId": flood.name})
    flood.ack()
    client.wait_closed(flood.process)
    assert flood.size == 1_049_000 and flood.process.exit_code == 3
    assert client.result(waiting)["exitCode"] == 3


def test_terminate_while_held(server):
    client = acking(server)
    flood = Flood(client)
    flood.wait_stalled(server)
    assert client.terminate(flood.name) == {"running": True}
    procfs.wait_marked(flood.token, 0)
    wait_rest(server)
    client.barrier()
    assert flood.process.exited is None
    flood.ack()
    client.wait_closed(flood.process)
    assert flood.process.exited["signal"] == "SIGKILL" and flood.size > flood.acked


def test_hold_false(server):
    """A process that is no longer held forgets its oldest output, as without outputAck."""
    client = acking(server)
    flood = Flood(client, 8 * MIB)
    flood.wait_stalled(server)
    assert client.ask("ack", flood.name, seq=0, hold=False) == {}
    client.wait_closed(flood.process)
    assert flood.size == 8 * MIB
    assert client.read(flood.name)["chunks"][0]["seq"] > 1


def test_hold_again(server):
    """A client can hold one process alone, too."""
    client = server.client()
    flood = Flood(client)
    client.wait(lambda: flood.size >= 4 * MIB, "output")
    flood.ack(hold=True)
    until(lambda: client.quiet() and blocked(flood.token), "the stall")
    first = flood.last
    flood.ack(hold=None)  # null leaves it
    flood.wait_stalled(server)
    chunks = client.read(flood.name, afterSeq=first)["chunks"]
    assert [c["seq"] for c in chunks] == list(range(first + 1, flood.last + 1))
    flood.ack(hold=False)
    client.wait(lambda: flood.size >= flood.acked + 4 * MIB, "output")
    client.terminate(flood.name)
    client.wait_closed(flood.process)


def test_detached(fleet):
    """Nobody is there: it stalls, and goes on when its client is back."""
    server = fleet.start(*LONG)
    follower = Follower(server, "yes | head -c8000000; exit 4")
    follower.client.wait(lambda: follower.size > 0, "output")
    follower.client.transport.reset()
    wait_rest(server, after=lambda: blocked("-c8000000"))
    result = follower.resume()
    assert not result["exited"] and result["chunks"]
    assert follower.finish()["exitCode"] == 4
    assert follower.streams["stdout"] == b"y\n" * 4_000_000


def test_another_client_does_not_ask(fleet):
    """A session's processes are held as the connection it has now wants it."""
    server = fleet.start(*LONG)
    client = acking(server)
    flood = Flood(client, 6 * MIB)
    flood.wait_stalled(server)
    client.transport.reset()
    plain = resume(server, client.session)
    assert plain.limits is None
    got = plain.call("process/wait", {"processId": flood.name})
    assert got["closed"] and got["exitCode"] == 3
    assert plain.read(flood.name)["chunks"][0]["seq"] > 1


def test_another_client_asks(fleet):
    """A client that begins to acknowledge late finds all output that is still retained."""
    server = fleet.start(*LONG)
    client = server.client()
    flood = Flood(client)
    client.wait(lambda: flood.size >= 2 * MIB, "output")
    client.transport.reset()
    second = resume(server, client.session, outputAck=True)
    wait_rest(server, after=lambda: blocked(flood.token))
    result = second.read(flood.name)
    seqs = [c["seq"] for c in result["chunks"]]
    assert seqs == list(range(seqs[0], result["nextSeq"])) and seqs[0] > 1
    assert second.ask("ack", flood.name, seq=seqs[-1]) == {}
    second.wait(lambda: flood.name in second.processes, "news")
    assert second.processes[flood.name].events[0][0] == seqs[-1] + 1
    second.terminate(flood.name)


def test_unseen_until_acknowledged(fleet):
    """Of the output of closed processes, what a client has acknowledged goes first."""
    server = fleet.start(*LONG, "--closed-output-max", str(4 * MIB), "--retained-output", "262144")
    client = acking(server)
    kept, gone = [Flood(client, 100_000) for _ in range(2)]
    for flood in (kept, gone):
        client.wait_closed(flood.process)
    gone.ack()
    for _ in range(30):
        flood = Flood(client, 150_000)
        client.wait_closed(flood.process)
        assert client.ask("ack", flood.name, seq=flood.process.closed["seq"]) == {}
    assert client.read_any(gone.name)["failure"] is not None
    result = client.read(kept.name)
    assert sum(len(unb64(c["chunk"])) for c in result["chunks"]) == 100_000


def test_overtakes(server, undecided):
    """An acknowledgement does not wait for a start that hangs, not even for its own."""
    client = acking(server)
    flood = Flood(client)
    flood.wait_stalled(server)
    params = client.start_params([undecided.path, "-c", "head -c 4000000 /dev/zero"])
    start = client.send("process/start", params)
    behind = client.send("process/list")
    assert client.ask("ack", params["processId"], seq=0, hold=False) == {}
    assert client.refusal("ack", params["processId"], seq=1) == (
        -32602, "seq 1 is above the last event, 0")
    flood.ack()
    client.wait(lambda: flood.size - flood.acked >= FULL, "output")
    client.sync()
    assert behind not in client.answers and start not in client.answers
    undecided.decide()
    client.result(start)
    client.result(behind)
    client.wait_closed(client.processes[params["processId"]])
    client.terminate(flood.name)
    flood.ack()
    client.wait_closed(flood.process)


def test_session_ends_while_held(fleet):
    server = fleet.start("--session-ttl", "0")
    client = acking(server)
    flood = Flood(client)
    flood.wait_stalled(server)
    client.transport.reset()
    procfs.wait_marked(flood.token, 0)


def test_stdio(fleet):
    client = fleet.stdio(initialize=False)
    client.initialize(outputAck=True)
    flood = Flood(client)
    client.wait(lambda: flood.size >= FULL, "output")
    until(lambda: blocked(flood.token), "the stall")
    client.barrier()
    assert flood.size <= MIB
    client.terminate(flood.name)
    flood.ack()
    client.wait_closed(flood.process)


@pytest.mark.parametrize("params, message", [
    ({"seq": 0}, "missing field `processId`"),
    ({"processId": "p"}, "missing field `seq`"),
    ({"processId": "p", "seq": -1}, "invalid number"),
    ({"processId": "p", "seq": "1"}, 'invalid type: string "1", expected u64'),
    ({"processId": "p", "seq": None}, "invalid type: null, expected u64"),
    ({"processId": "p", "seq": 0, "hold": 1}, "invalid type: number, expected a boolean"),
])
def test_bad_params(client, params, message):
    assert client.error("process/ack", params) == (-32602, message)


def test_errors(client):
    assert client.error("process/ack", {"processId": "none", "seq": 0}) == (
        -32600, "unknown process id none")
    process = client.run("echo; exit 2")
    last = process.closed["seq"]
    for seq in (last + 1, 2 ** 64 - 1):
        assert client.refusal("ack", process, seq=seq) == (
            -32602, f"seq {seq} is above the last event, {last}")
    assert client.ask("ack", process, seq=last) == {}
    assert client.read(process)["chunks"]
