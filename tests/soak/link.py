"""A session that loses its connection in every way there is, and comes back."""

import socket
import time

from harness.rpc import Client
from harness.waiting import Deadline
from harness.ws import TEXT, Closed, frame

from ledger import Ledger

TCP_REPAIR = 19


def vanish(sock):
    """Forgets a connection without a word to the peer, as a machine that loses its power does.

    False where that is not allowed; the connection is closed then.
    """
    try:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    except PermissionError:
        sock.close()
        return False
    sock.close()
    return True


def cut_frame(ws, rng):
    """Sends the beginning of a frame."""
    whole = frame(TEXT, b'{"id":1000000,"method":"environment/status"}' * rng.choice([1, 2000]))
    ws.try_send(whole[:rng.randrange(1, len(whole))])


class SoakClient(Client):
    """Hands events to ledgers instead of keeping them."""

    def __init__(self, transport, ledgers):
        super().__init__(transport)
        self.ledgers = ledgers
        self.make_sink = lambda name: ledgers[name].offer

    def file(self, data):
        message = super().file(data)
        if message.get("method") in ("process/exited", "process/closed"):
            params = message["params"]
            kind = message["method"].partition("/")[2]
            self.ledgers[params["processId"]].offer(params["seq"], kind, params.get("exitCode"))
        return message


class Link:
    """One session with its ledgers. Everything it holds goes with close()."""

    def __init__(self, world, rng, **options):
        self.world, self.rng, self.options = world, rng, options
        self.ledgers = {}
        self.dangling = []
        self.client = self.connect(None)

    def connect(self, resume):
        """A connection with a session; the old one may take a while to be found dead."""
        deadline = Deadline()
        while True:
            options = dict(self.options)
            if self.rng.random() < 0.15:
                options.setdefault("rcvbuf", 16384)
            client = SoakClient(self.world.server.websocket(**options), self.ledgers)
            self.world.server.clients.remove(client.transport)
            params = {"clientName": "soak"}
            if resume:
                params["resumeSessionId"] = resume
            answer = client.answer(client.send("initialize", params))
            if "result" in answer:
                client.session = answer["result"]["sessionId"]
                assert resume in (None, client.session)
                client.notify("initialized", {})
                return client
            client.close()
            assert answer["error"]["code"] == -32010 and not deadline.passed(), answer
            time.sleep(0.02)

    def lose(self):
        """Loses the connection in some way."""
        ws = self.client.transport
        how = self.rng.choice(["reset", "fin", "cut mid-frame", "half-open", "half-closed"])
        if how == "cut mid-frame":
            cut_frame(ws, self.rng)
            self.rng.choice([ws.reset, ws.drop])()
        elif how == "half-open":
            vanish(ws.sock)
        elif how == "half-closed":
            ws.half_close()
            self.dangling.append(ws)
        else:
            (ws.reset if how == "reset" else ws.drop)()
        self.world.count(f"fault: connection lost, {how}")

    def resume(self):
        """Attaches the session to a new connection and reads what was missed."""
        self.client = self.connect(self.client.session)
        self.world.count("session resumed")
        return [name for name in list(self.ledgers) if not self.read_missed(name)]

    def read_missed(self, name):
        """False when the server does not know the process."""
        ledger = self.ledgers[name]
        while True:
            answer = self.client.answer(self.client.send(
                "process/read", {"processId": name, "afterSeq": ledger.next_seq - 1}))
            message = answer.get("error", {}).get("message", "")
            if message != f"process id {name} is starting":
                break
        if "result" in answer:
            ledger.catch_up(answer["result"])
            return True
        assert message == f"unknown process id {name}", answer
        return False

    def expect(self, name, sources):
        """A ledger for a process."""
        self.ledgers[name] = Ledger(name, sources)
        return self.ledgers[name]

    def start(self, command, sources, **options):
        """Starts a process and returns its ledger."""
        params = self.client.start_params(command, **options)
        ledger = self.expect(params["processId"], sources)
        self.client.call("process/start", params)
        self.world.count("process")
        return ledger

    def wait_closed(self, ledger):
        self.client.wait(lambda: ledger.closed, f"end of {ledger.name}")

    def finish(self, ledger, codes, whole=True):
        """Checks a process that has ended, and forgets it."""
        ledger.check(codes, whole)
        self.world.checked(ledger.total())
        del self.ledgers[ledger.name]
        self.client.processes.pop(ledger.name, None)

    def close(self):
        """Ends it in one of the ways a client may; what still runs is the server's to kill."""
        ws = self.client.transport
        if ws.sock.fileno() >= 0 and self.rng.random() < 0.5:
            try:
                ws.send_close()
                while ws.receive() is not None:
                    pass
            except (Closed, OSError):
                pass
        for sock in (ws, *self.dangling):
            sock.close()
