"""The registry of cases, and what a case has at hand while it runs on one side."""

import asyncio
import os
import re
import shutil

from .peer import StdioPeer, WebSocketPeer
from .websocket import open_tcp

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")


class Case:
    def __init__(self, number, name, function, slow):
        self.number = number
        self.name = name
        self.function = function
        self.slow = slow


class Registry:
    def __init__(self):
        self.cases = []
        self.topic = None
        self.seed = 1  # of random cases

    def case(self, name, slow=False):
        """Decorator: registers `async def f(t)` as topic/name."""
        def register(function):
            self.cases.append(Case(len(self.cases), f"{self.topic}/{name}", function, slow))
            return function
        return register


REGISTRY = Registry()
case = REGISTRY.case


class Run:
    """One case on one side. The case reports through `see`; everything is closed at the end."""

    def __init__(self, of, side, alone=False):
        self.name = of.name
        self.alone = alone  # no other case runs: there is time for everything
        self.side = side
        self.dir = os.path.join(side.dir, "cases", str(of.number))
        # A case may be observed again.
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.seen = {}
        self.peers = []
        self.writers = []
        self.sessions = []
        self.pids = []

    def see(self, label, value):
        if label in self.seen:
            raise ValueError(f"label {label} used twice")
        self.seen[label] = value

    async def open(self, server="plain", headers=""):
        """A WebSocket connection before the handshake."""
        peer = await WebSocketPeer.connect(self, await self.side.port(server), headers)
        self.peers.append(peer)
        return peer

    async def connect(self, server="plain"):
        """A WebSocket connection after the handshake."""
        peer = await self.open(server)
        await peer.hello()
        return peer

    async def tcp(self, server="plain"):
        reader, writer = await open_tcp(await self.side.port(server))
        self.writers.append(writer)
        return reader, writer

    async def stdio(self, *options):
        peer = await StdioPeer.spawn(self, [*self.side.command, "--listen", "stdio", *options],
                                     cwd=self.side.cwd, env=self.side.env)
        self.peers.append(peer)
        return peer

    def learn_session(self, answer):
        """Remembers a session id, so that it is masked when observations are compared."""
        session = answer.get("result", {}).get("sessionId")
        if session is not None and session not in self.sessions:
            self.sessions.append(session)
            if not UUID4.match(session):
                self.see(f"session id {len(self.sessions)}", "not a lower-case UUID of version 4")
        return session

    def file(self, name, content="", mode=0o644):
        """Makes a file below the case's directory and returns its path."""
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    async def fate(self, pid, seconds=60.0):
        """Whether a process ends within the time given, seen through a pidfd."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return "gone"
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(fd, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), seconds)
            return "gone"
        except asyncio.TimeoutError:
            self.pids.append(pid)
            return "alive"
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def replacements(self):
        masks = [(s, f"<session {i}>") for i, s in enumerate(self.sessions, 1)]
        return masks + [(self.dir, "<dir>"), (self.side.dir, "<side>")]

    async def close(self):
        for peer in self.peers:
            if peer.odd:
                self.seen["form of messages"] = sorted(set(peer.odd))[:3]
            await peer.close()
        for writer in self.writers:
            writer.close()
        for pid in self.pids:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
