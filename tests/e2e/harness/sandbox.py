"""Sandboxed starts: permission profiles in short, and a place on disk for them."""

import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest

from .fleet import Fleet
from .rpc import PATH
from .settings import BINARY

ACCESS = {"r": "read", "w": "write", "d": "deny", "n": "none"}

# Texts of errors as programs print them.
READ_ONLY = "Read-only file system"
DENIED = "Permission denied"
BUSY = "Device or resource busy"
MISSING = "No such file or directory"
EXISTS = "File exists"
PROTECTED = (".git", ".agents", ".codex", ".aws")


def uri(path):
    return "file://" + quote(os.fsencode(path))


def special(kind, **more):
    return {"type": "special", "value": {"kind": kind, **more}}


def users():
    """Users to run a server as: root where we are root, and a plain one."""
    return {"root": 0, "plain": 12345} if os.geteuid() == 0 else {"plain": os.geteuid()}


class Servers:
    """A server for each user, started when it is first asked for."""

    def __init__(self):
        self.fleet = Fleet()
        self.made = {}
        self.directory = tempfile.mkdtemp()
        os.chmod(self.directory, 0o755)
        self.program = shutil.copy(BINARY, self.directory)
        os.chmod(self.program, 0o755)

    def start(self, user, *args, **options):
        uid = users()[user]
        ids = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        wrapper = ["setpriv", *ids] if uid != os.geteuid() else []
        return self.fleet.start(*args, binary=self.program, wrapper=wrapper, cwd="/", **options)

    def get(self, user):
        if user not in self.made:
            self.made[user] = self.start(user)
        return self.made[user]

    def close(self):
        self.fleet.finish()
        shutil.rmtree(self.directory)


class Result:
    """How a process ended."""

    def __init__(self, process):
        self.code = process.exit_code
        self.denied = process.exited["sandboxDenied"]
        self.out = process.output("stdout").decode(errors="replace")
        self.err = process.output("stderr").decode(errors="replace")
        self.text = process.output().decode(errors="replace").replace("\r\n", "\n")

    def __repr__(self):
        return f"Result(code={self.code}, denied={self.denied}, text={self.text!r})"


class Place:
    """A directory with a workspace `ws` in it, of one user, and starts confined to it.

    An entry is "ACCESS TARGET": access r, w, d or n; a target is a token (":root",
    ":project_roots/sub"), a pattern ("glob:PATTERN") or a path, relative to the place.
    """

    def __init__(self, client, uid, parent="/var/tmp"):
        self.client, self.uid = client, uid
        self.base = Path(tempfile.mkdtemp(prefix="sandbox-", dir=parent))
        self.base.chmod(0o755)
        self.ws = self.base / "ws"
        self.mkdir("ws")
        os.chown(self.base, uid, uid)

    def close(self):
        """Places that a sandbox held may vanish meanwhile, when a test did not wait for its end."""
        def failed(_function, _path, why):
            if not isinstance(why[1], FileNotFoundError):
                raise why[1]
        shutil.rmtree(self.base, onerror=failed)

    # Files.

    def mkdir(self, name):
        path = self.base
        for part in Path(name).parts:
            path = path / part
            if not path.exists():
                path.mkdir()
                os.chown(path, self.uid, self.uid)
        return path

    def put(self, name, text="content\n", mode=0o644):
        path = self.base / name
        self.mkdir(Path(name).parent)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.uid, self.uid)
        return path

    def link(self, name, target):
        path = self.base / name
        path.symlink_to(target)
        os.lchown(path, self.uid, self.uid)
        return path

    def left(self):
        """Protected names that a start left in the workspace."""
        return sorted(name for name in PROTECTED if os.path.lexists(self.ws / name))

    # Profiles.

    def path(self, name):
        return str(self.base / name)

    def entry(self, text):
        access, _, target = text.partition(" ")
        if target.startswith(":"):
            kind, slash, sub = target[1:].partition("/")
            path = special(kind, **({"subpath": sub} if slash else {}))
        elif target.startswith("glob:"):
            path = {"type": "glob_pattern", "pattern": target.removeprefix("glob:")}
        elif target.startswith("file:"):
            path = {"type": "path", "path": target}
        else:
            path = {"type": "path", "path": uri(self.path(target))}
        return {"path": path, "access": ACCESS[access]}

    def files(self, *entries, depth=None):
        made = {"type": "restricted", "entries": [
            e if isinstance(e, dict) else self.entry(e) for e in entries]}
        if depth is not None:
            made["glob_scan_max_depth"] = depth
        return made

    def sandbox(self, *entries, network="restricted", depth=None, roots=("ws",), **context):
        """A sandbox object; roots None leaves the key out."""
        made = {"permissions": {"type": "managed", "network": network,
                                "file_system": self.files(*entries, depth=depth)},
                "cwd": uri(self.ws), "windowsSandboxLevel": "disabled"}
        if roots is not None:
            made["workspaceRoots"] = [uri(self.path(root)) for root in roots]
        made.update(context)
        return {k: v for k, v in made.items() if v is not Ellipsis}

    # Starts.

    def params(self, command, entries, at="ws", env=None, tty=False, sandbox=None, **options):
        """Parameters of a start in the directory `at`; other options go into the sandbox object."""
        start = {k: options.pop(k) for k in ("pipeStdin", "arg0", "enforceManagedNetwork",
                                             "managedNetwork", "shellSnapshot") if k in options}
        if sandbox is None:
            sandbox = self.sandbox(*entries, **options)
        return self.client.start_params(
            command, cwd=uri(self.path(at)), tty=tty, sandbox=sandbox,
            env={"PATH": PATH, "LC_ALL": "C", **(env or {})}, **start)

    def start(self, command, *entries, **options):
        params = self.params(command, entries, **options)
        result = self.client.call("process/start", params)
        assert result == {"processId": params["processId"], "sandboxType": "linuxSeccomp"}, result
        return self.client.processes[params["processId"]]

    def run(self, command, *entries, **options):
        return Result(self.client.wait_closed(self.start(command, *entries, **options)))

    def error(self, *entries, command="true", **options):
        """Code and text of the error that a start must give."""
        return self.client.error("process/start", self.params(command, entries, **options))

    def tries(self, commands, *entries, **options):
        """Runs commands of the shell one by one: for each its output, or the error's text."""
        script = "".join(f'if m=$({{ {c}; }} 2>&1); then echo "${{m:-ok}}"; '
                         'else echo "${m##*: }"; fi; echo --next--; ' for c in commands)
        result = self.run(script, *entries, **options)
        assert result.code == 0 and not result.err, result
        found = result.out.split("--next--\n")
        assert found.pop() == "" and len(found) == len(commands), result
        return [text.rstrip("\n") for text in found]


# Fixtures, for the modules of tests that import them.

@pytest.fixture(scope="module")
def servers(nothing_left):  # pylint: disable=unused-argument
    made = Servers()
    yield made
    made.close()


@pytest.fixture(params=list(users()))
def user(request):
    return request.param


@pytest.fixture
def place(servers, user):  # pylint: disable=redefined-outer-name
    """A place of a user, on that user's server."""
    client = servers.get(user).client()
    made = Place(client, users()[user])
    yield made
    client.close()
    made.close()
