"""What takes half a minute by specification, observed by a thread beside the other tests."""

import os
import signal
import threading
import time

from . import procfs
from .confined import Calls, helpers
from .http import Ended, Http
from .rpc import RpcError
from .sandbox import Place
from .server import Server
from .waiting import until
from .ws import Closed, connect_tcp

# Seconds that the server grants by default. It reads the clock once in a turn of its loop, which
# a busy machine makes long: so much less may be seen from outside.
GRACE, HEAD, UNUSED = 30, 10, 60
TURN = 2
# Only ends a wait that would last for ever.
LATE = 180
# Seconds between two looks.
OFTEN = 0.1


def granted(began, seconds):
    """What ended now was granted that time, which began later than it says."""
    assert time.monotonic() - began > seconds - TURN


class LongWaits:
    """Everything is set up by the constructor; result(name) waits for one observation."""

    def __init__(self):
        self.server = Server()
        self.results = {}
        self.threads = {}
        self.tokens = []
        self._watch("slow head", self._slow_head())
        self._watch("readiness", self._readiness())
        self._watch("initialize", self._initialize())
        self._watch("stopped", self._stopped())
        self._watch("ping", self._ping())
        self._watch("retention", self._retention())
        self._watch("session", self._session())
        self._watch("leftovers", self._leftovers())
        self._watch("helpers", self._helpers())

    def _watch(self, name, steps):
        """Runs the first step now, the rest in a thread."""
        next(steps)

        def run():
            try:
                for _ in steps:
                    pass
                self.results[name] = None
            except BaseException as e:  # pylint: disable=broad-except
                self.results[name] = e
        self.threads[name] = threading.Thread(target=run, name=name, daemon=True)
        self.threads[name].start()

    def result(self, name):
        """Returns when the observation succeeded; raises what went wrong."""
        self.threads[name].join(LATE)
        assert name in self.results, f"{name}: no result in time"
        if self.results[name] is not None:
            raise self.results[name]

    def finish(self):
        try:
            self.server.stop(signal.SIGTERM)
            self.stopped.stop(signal.SIGTERM)
            self.helped.stop(signal.SIGTERM)
        finally:
            self.server.abandon()
            self.stopped.abandon()
            self.helped.abandon()

    def _mark(self):
        self.tokens.append(procfs.mark())
        return self.tokens[-1]

    def _slow_head(self):
        """A request head that is not completed in 10 s is dropped, a trickle included."""
        began = time.monotonic()
        half = Http(connect_tcp(self.server.address))
        half.send("GET /readyz HTTP/1.1\r\nX: ")
        trickle = connect_tcp(self.server.address)
        trickle.setblocking(True)
        trickle.settimeout(1.0)
        yield
        ended = False
        while not ended:
            assert time.monotonic() - began < LATE, "a slow head is never dropped"
            try:
                trickle.send(b"G")
                ended = trickle.recv(4096) == b""
            except TimeoutError:
                pass
            except OSError:
                ended = True
        granted(began, HEAD)
        # Whatever is said before the end, the end must come.
        half.sock.setblocking(True)
        half.sock.settimeout(LATE)
        while half.sock.recv(4096):
            pass
        half.close()
        trickle.close()

    def _readiness(self):
        """Nobody keeps a connection by asking whether the server is ready."""
        http = Http(connect_tcp(self.server.address))
        started = time.monotonic()
        yield
        try:
            while http.ask("/readyz").header("connection") != "close":
                assert time.monotonic() - started < LATE, "a stranger keeps its place"
                time.sleep(4)
            http.wait_eof(LATE)
        except (Ended, ConnectionError):
            pass  # its time ended between two questions
        http.close()

    def _initialize(self):
        """A WebSocket that never sends `initialize` is closed after 30 s."""
        ws = self.server.websocket()
        started = time.monotonic()
        yield
        try:
            while True:
                assert time.monotonic() - started < LATE, "a silent connection stays"
                ws.receive(1)
        except Closed as end:
            assert (end.code, end.reason) == (1008, b"no initialize in time")
        granted(started, GRACE)

    def _stopped(self):
        """What came while the server was stopped counts, although every deadline has passed."""
        self.stopped = Server()
        client = self.stopped.connect()
        crowd = [self.stopped.http() for _ in range(200)]  # more than one look at the sockets finds
        for http in crowd:
            assert http.ask("/readyz").status == 200
        self.stopped.send_signal(signal.SIGSTOP)
        until(lambda: procfs.state(self.stopped.pid) == "T", "a stopped server")
        started = time.monotonic()
        for http in crowd:
            http.send("GET /readyz HTTP/1.1\r\n\r\n")
        first = client.send("initialize", {"clientName": "patient"})
        yield
        time.sleep(max(0, started + GRACE + 2 - time.monotonic()))
        self.stopped.send_signal(signal.SIGCONT)
        assert {http.read().status for http in crowd} == {200}
        assert "sessionId" in client.result(first)

    def _ping(self):
        """An empty ping comes every 30 s; a peer that never answers stays connected."""
        client = self.server.client()
        ws = client.transport
        ws.answer_pings = False
        yield
        until(lambda: ws.receive(0.5) is None and ws.pings, "a ping", LATE)
        assert set(ws.pings) == {b""}
        client.sync()

    def _retention(self):
        """The entry of a closed process stays for 30 s; one with an open stream stays."""
        client = self.server.client()
        began = time.monotonic()
        process = client.run("echo kept; exit 3")
        token = self._mark()
        held = client.start(f"sleep {token} & exit 0")
        client.wait_exited(held)
        yield
        assert client.read(process)["exitCode"] == 3
        assert client.start_error("true", processId=process.name)[0] == -32600

        def gone():
            try:
                client.read(process)
            except RpcError as e:
                assert (e.code, e.message) == (-32600, f"unknown process id {process.name}")
                return True
            return False
        until(gone, "removal of a closed process", LATE, OFTEN)
        granted(began, GRACE)
        assert client.write(process, "x", writeId="1") == {"status": "unknownProcess"}
        assert client.terminate(process) == {"running": False}
        del client.processes[process.name]
        assert client.run("exit 4", processId=process.name).exit_code == 4
        result = client.read(held)
        assert result["exited"] and not result["closed"]

    def _session(self):
        """A detached session lives for 30 s and takes its processes with it."""
        client = self.server.client()
        token = self._mark()
        client.start(f"trap '' TERM HUP; setsid sleep {token} & sleep {token}")
        procfs.wait_marked(token, 2)
        began = time.monotonic()
        client.transport.reset()
        yield
        until(lambda: len(procfs.marked(token)) < 2, "the end of the session", LATE, OFTEN)
        granted(began, GRACE)
        procfs.wait_marked(token, 0, LATE)
        other = self.server.connect()
        assert other.error("initialize", {"clientName": "x", "resumeSessionId": client.session}) \
            == (-32600, f"unknown session id {client.session}")
        other.close()

    def _leftovers(self):
        """What a finished command left behind outlives its entry."""
        client = self.server.client()
        token = self._mark()
        process = client.run(f"sleep {token} >/dev/null 2>&1 </dev/null & exit 0")
        pid, = procfs.wait_marked(token)
        yield
        until(lambda: "error" in client.answer(
            client.send("process/read", {"processId": process.name})), "removal", LATE, OFTEN)
        client.sync()
        assert procfs.alive(pid)
        client.end()

    def _helpers(self):
        """A helper in a sandbox ends when nobody has used it for 60 s."""
        server = self.helped = Server()
        client = server.client()
        place = Place(client, os.geteuid())
        place.put("ws/f", "F")
        began = time.monotonic()
        assert Calls(place, "r :minimal", "w :project_roots").read(place.ws / "f") == b"F"
        [pid] = helpers(server.pid)
        yield
        until(lambda: not procfs.alive(pid), "end of an idle helper", LATE, OFTEN)
        granted(began, UNUSED)
        client.sync()
        client.close()
        place.close()
