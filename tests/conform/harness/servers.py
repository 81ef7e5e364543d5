"""Starts the servers under comparison, each kind once and only when a case needs it."""

import asyncio
import base64
import hashlib
import os
import resource
import signal

from .fstree import USER

TOKEN = "sekret-token"
SECRET = "0123456789abcdef0123456789abcdef"

# The environment of both servers. The odd names are there for the environment policy cases.
ENVIRONMENT = {
    "EXEC_SERVER_LOG": "error",  # as quiet as the reference
    "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "tester",
    "LOGNAME": "tester", "TERM": "vt100", "SHELL": "/bin/nosuchshell",
    "FOO": "foo", "BARFOO": "barfoo", "FOOD": "food", "Home": "odd-home", "path": "odd-path",
    "MY_KEY": "k", "A_SECRET": "s", "xTokenx": "t", "monkey": "m", "PASSWORD": "p",
    "OPENAI_IDENTITY_TOKEN_FILE": "/x", "CODEX_THREAD_ID": "inherited",
    "CODEX_TOOL_CALL_ID": "inherited", "EMPTY": "", "WITH_SPACE": "a b",
}


def options(kind, side_dir):
    """Command line options of a kind of server."""
    token, secret = os.path.join(side_dir, "token"), os.path.join(side_dir, "secret")
    jwt = ["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", secret]
    return {
        "plain": [],
        "user": [],
        "umask": [],
        "few-descriptors": [],
        "empty-tmpdir": [],
        "lanes": ["--concurrent-requests", "2"],
        "capability": ["--ws-auth", "capability-token", "--ws-token-file", token],
        "digest": ["--ws-auth", "capability-token", "--ws-token-sha256",
                   hashlib.sha256(TOKEN.encode()).hexdigest().upper()],
        "jwt": jwt,
        "jwt-claims": jwt + ["--ws-issuer", "me", "--ws-audience", "you",
                             "--ws-max-clock-skew-seconds", "0"],
        "jwt-blank": jwt + ["--ws-issuer", " ", "--ws-audience", ""],
    }[kind]


def circumstances(kind):
    """What of a server's process differs from ours, as arguments of Popen."""
    if kind == "user":
        return {"user": USER, "group": USER, "extra_groups": []}
    if kind == "umask":
        return {"umask": 0o077}
    if kind == "few-descriptors":
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))}
    return {}


def variables(kind):
    """What is added to the environment of a kind of server."""
    return {"TMPDIR": ""} if kind == "empty-tmpdir" else {}


class Side:
    """One of the two programs: its files, its environment and its running servers."""

    def __init__(self, name, command, root):
        self.name = name
        self.command = command
        self.dir = os.path.join(root, name)
        self.home = os.path.join(self.dir, "home")
        self.cwd = os.path.join(self.dir, "cwd")
        for d in (self.home, self.cwd, os.path.join(self.home, ".codex")):
            os.makedirs(d)
        with open(os.path.join(self.dir, "token"), "w", encoding="ascii") as f:
            f.write(f"\n {TOKEN}\t\n")
        with open(os.path.join(self.dir, "secret"), "w", encoding="ascii") as f:
            f.write(SECRET + "\n")
        self.env = {**ENVIRONMENT, "HOME": self.home}
        self._servers = {}
        self._locks = {}

    async def port(self, kind):
        """The port of the server of this kind, which is started at the first call."""
        async with self._locks.setdefault(kind, asyncio.Lock()):
            if kind not in self._servers:
                self._servers[kind] = await self._start(kind)
            return self._servers[kind][1]

    def _user_home(self):
        """A home for the plain user."""
        home = os.path.join(self.dir, "user-home")
        for d in (home, os.path.join(home, ".codex")):
            os.mkdir(d)
            os.chown(d, USER, USER)
        return home

    async def _start(self, kind):
        home = self._user_home() if kind == "user" else self.home
        # Started through a descriptor, as the program may lie where the plain user cannot reach.
        program = os.open(self.command[0], os.O_RDONLY | os.O_CLOEXEC)
        child = await asyncio.create_subprocess_exec(
            *self.command, "--listen", "ws://127.0.0.1:0", *options(kind, self.dir),
            executable=f"/proc/self/fd/{program}", close_fds=False,
            cwd=self.cwd, env={**self.env, "HOME": home, **variables(kind)},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=open(os.path.join(self.dir, f"{kind}.log"), "wb"), **circumstances(kind))
        os.close(program)
        line = (await asyncio.wait_for(child.stdout.readline(), 120)).decode()
        if not line.startswith("ws://127.0.0.1:"):
            raise RuntimeError(f"{self.name} {kind} did not start: {line!r}")
        return child, int(line.strip().rpartition(":")[2])

    async def stop(self):
        """Ends every server; returns complaints about the way they ended."""
        complaints = []
        for kind, (child, _) in self._servers.items():
            if child.returncode is not None:
                complaints.append(f"{self.name} {kind}: ended early with {child.returncode}")
                continue
            child.send_signal(signal.SIGTERM)
            try:
                code = await asyncio.wait_for(child.wait(), 120)
                if code != 0:
                    complaints.append(f"{self.name} {kind}: exit status {code} after SIGTERM")
            except asyncio.TimeoutError:
                complaints.append(f"{self.name} {kind}: did not end within 120 s of SIGTERM")
                child.kill()
                await child.wait()
        return complaints


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
