"""Two servers that get the same requests one by one: their processes and a blocking client."""

import json
import os
import select
import signal
import socket
import subprocess

from .fstree import USER
from .websocket import PING, PONG, TEXT, compact, frame, upgrade_request

PATIENCE = 120.0  # seconds for an answer
# In a mount namespace of its own a server can write below its directory and nowhere else.
CONFINED = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
            'mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"', "sh"]


# A program that a plain user can reach by a path, as the reference must to start itself, and a
# /tmp for what it puts there.
REACHABLE = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             'mount --bind "$1" "$2" && mount -t tmpfs -o mode=1777 tmpfs /tmp && shift 2 && '
             'exec "$@"', "sh"]


def can_confine(directory):
    return subprocess.run([*CONFINED, directory, "true"], check=False, stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


class Server:
    """A server that works below a directory, as root or as a plain user."""

    def __init__(self, command, directory, user, confined, reachable=False):
        self.dir = directory
        self.home = os.path.join(directory, "home")
        temporary = os.path.join(directory, "tmp")
        for d in (directory, temporary, self.home, os.path.join(self.home, ".codex")):
            os.mkdir(d)
            if user:
                os.chown(d, USER, USER)
        # Through a descriptor, as the program may lie where the plain user cannot reach.
        program = os.open(command[0], os.O_RDONLY)
        argv = [f"/proc/self/fd/{program}", *command[1:], "--listen", "ws://127.0.0.1:0"]
        place = os.path.join(os.path.dirname(directory), "program")
        installed = os.path.dirname(os.path.dirname(command[0]))
        if reachable:
            os.mkdir(place)
            argv[0] = os.path.join(place, os.path.relpath(command[0], installed))
        if user:
            argv = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *argv]
        if confined:
            argv = [*CONFINED, directory, *argv]
        if reachable:
            argv = [*REACHABLE, installed, place, *argv]
        with open(os.path.join(directory, "log"), "wb") as log:
            self.child = subprocess.Popen(
                argv, cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                pass_fds=[program], env={"PATH": "/usr/bin:/bin", "HOME": self.home,
                                               "TMPDIR": temporary})
        os.close(program)
        line = self.child.stdout.readline().decode()
        if not line.startswith("ws://127.0.0.1:"):
            raise RuntimeError(f"{command[0]} did not start: {line!r}")
        self.port = int(line.strip().rpartition(":")[2])

    def stop(self):
        """Ends the server; returns a complaint about the way it ended, or None."""
        if self.child.poll() is not None:
            return f"{self.dir}: ended early with {self.child.returncode}"
        self.child.send_signal(signal.SIGTERM)
        try:
            code = self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return f"{self.dir}: did not end within 10 s of SIGTERM"
        return f"{self.dir}: exit status {code}" if code else None


class Silence(Exception):
    """No answer in time, or the connection is gone."""


class Client:
    """One connection. Answers are returned as they came, notifications are collected."""

    def __init__(self, server):
        self.notes = []
        self.buffer = b""
        self.sock = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.sendall(upgrade_request())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        self.buffer = self.buffer.partition(b"\r\n\r\n")[2]
        self.send('{"id":0,"method":"initialize","params":{"clientName":"conform"}}')
        self.answer()
        self.send('{"method":"initialized"}')

    def send(self, text):
        data = text.encode()
        n = len(data)
        size = bytes([0x80 | n]) if n < 126 else b"\xfe" + n.to_bytes(2, "big") if n < 65536 \
            else b"\xff" + n.to_bytes(8, "big")
        # A mask of zeros leaves the text as it is.
        self.sock.sendall(bytes([0x80 | TEXT]) + size + bytes(4) + data)

    def _more(self, wait=PATIENCE):
        # The reference does not set TCP_NODELAY: immediate ACKs save 40 ms an exchange.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if wait < PATIENCE and not select.select([self.sock], [], [], wait)[0]:
            return False
        try:
            data = self.sock.recv(1 << 20)
        except TimeoutError:
            raise Silence(f"no answer within {PATIENCE:.0f} s") from None
        except OSError as error:
            raise Silence(str(error)) from None
        if not data:
            raise Silence("the server ended the connection")
        self.buffer += data
        return True

    def _frame(self, wait=PATIENCE):
        """The next frame as (opcode, fin, payload); None when the wait is over."""
        while True:
            b = self.buffer
            if len(b) >= 2:
                size, head = b[1] & 0x7F, 2
                if size >= 126:
                    head = 4 if size == 126 else 10
                    size = int.from_bytes(b[2:head], "big") if len(b) >= head else 0
                if len(b) >= head + size:
                    self.buffer = b[head + size:]
                    return b[0] & 0x0F, b[0] & 0x80, b[head:head + size]
            if not self._more(wait):
                return None

    def _message(self, wait=PATIENCE):
        whole = b""
        while True:
            got = self._frame(wait)
            if got is None:
                return None
            opcode, fin, payload = got
            if opcode == PING:
                self.sock.sendall(frame(PONG, payload))
            elif opcode < 8:
                whole += payload
                if fin:
                    return whole

    def answer(self):
        """The next answer as it came."""
        while True:
            message = self._message()
            if not message.startswith(b'{"method"'):
                return message
            self.notes.append(json.loads(message))

    def listen(self, wait):
        """Collects notifications until none has come for that many seconds."""
        while (message := self._message(wait)) is not None:
            self.notes.append(json.loads(message))

    def call(self, method, params):
        self.send(compact({"id": 0, "method": method, "params": params}))
        return json.loads(self.answer())

    def close(self):
        self.sock.close()
