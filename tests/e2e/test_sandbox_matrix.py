"""The escape matrix: every row under every profile, for a server of root and of a plain user.

What is tried and what must come of it is in tests/sandbox.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

import pytest

from harness.fleet import Fleet
from harness.settings import BINARY, PATIENCE, ROOT

sys.path.insert(0, str(ROOT / "tests" / "sandbox"))

import matrix  # pylint: disable=wrong-import-position
from matrix_world import World, build  # pylint: disable=wrong-import-position

PLAIN = 12345 if os.geteuid() == 0 else os.geteuid()
USERS = {"root": 0, "plain": PLAIN} if os.geteuid() == 0 else {"plain": PLAIN}
CASES = [(user, profile) for user in USERS for profile in matrix.PROFILES]
EACH = pytest.mark.parametrize("user, profile", CASES, ids=[f"{u}-{p}" for u, p in CASES])

# Rows that succeed for any process of a plain user which nothing confines: the probe can see an
# escape. Left out are those that depend on settings of the kernel.
OPEN = {1, 2, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
        29, 30, 32, 33, 36, 39, 40, 41, 44, 45, 46, 48, 49, 50, 52, 53, 54, 55, 61, 85, 86, 88,
        89, 90, 123, 124, 133, 136, 137, 140, 141, 144, 145, 146, 147, 174, 176, 177, 182,
        183, 185, 187, 188, 192, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213,
        214, 216, 222, 223, 224, 225, 231, 232, 233, 234, 236, 237, 238, 239, 240}

# Servers in other circumstances: arguments, what starts them, changes of the table.
Variant = namedtuple("Variant", "backend arguments wrapper changes")
NO_NAMESPACES = ["unshare", "--user", "--map-root-user", "--", "/bin/sh", "-c",
                 "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"]
NO_RIGHTS = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"]
VARIANTS = {
    "": Variant("userns", [], [], {}),
    "inherit": Variant("userns", ["--linux-sandbox-pid-namespace", "inherit"], [], matrix.INHERIT),
    "root": Variant("root", [], NO_NAMESPACES, {}),
    "landlock": Variant("landlock", [], NO_NAMESPACES + NO_RIGHTS, matrix.LANDLOCK),
}

Run = namedtuple("Run", "results terminal before after heard alive")


def special(kind, access, **more):
    return {"path": {"type": "special", "value": {"kind": kind, **more}}, "access": access}


def sandbox(profile, world):
    """The sandbox object of a profile: one of the matrix, SC (files unrestricted) or RL (all is
    readable)."""
    if profile == "SC":
        files = {"type": "unrestricted"}
    elif profile == "MIN":
        files = {"type": "restricted", "entries": [
            special("minimal", "read"), special("project_roots", "write")]}
    else:
        denied = {"path": {"type": "path", "path": f"file://{world.denied}"}, "access": "deny"}
        entries = [special("root", "read")]
        if profile != "RL":
            entries.append(denied)
        if profile in ("WW", "WN"):
            entries.append(special("project_roots", "write"))
        files = {"type": "restricted", "entries": entries}
    network = "enabled" if profile == "WN" else "restricted"
    return {"permissions": {"type": "managed", "file_system": files, "network": network},
            "cwd": f"file://{world.ws}", "workspaceRoots": [f"file://{world.ws}"],
            "windowsSandboxLevel": "disabled"}


class Matrix:
    """Runs the probe, each case once."""

    def __init__(self):
        self.fleet = Fleet()
        self.directory = tempfile.mkdtemp()
        os.chmod(self.directory, 0o755)
        self.probe = build(self.directory)
        self.program = shutil.copy(BINARY, self.directory)
        os.chmod(self.program, 0o755)

    def close(self):
        self.fleet.finish()
        shutil.rmtree(self.directory)

    @functools.cached_property
    def baseline(self):
        """Results of a plain user's process that nothing confines."""
        world = World(self.probe, PLAIN)
        try:
            done = subprocess.run(world.command(world.probe, *world.arguments()), cwd=world.ws,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                                  check=True)
            return matrix.parse(done.stdout.decode()), world.heard()
        finally:
            world.close()

    @functools.cache
    def client(self, user, variant):
        uid = USERS[user]
        ids = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        wrapper = ["setpriv", *ids] if uid != os.geteuid() else []
        name, arguments, more, _ = VARIANTS[variant]
        server = self.fleet.start(*arguments, binary=self.program, wrapper=[*wrapper, *more],
                                  cwd="/")
        client = server.connect()
        assert client.initialize()["environmentInfo"]["sandboxBackend"] == name
        return client

    def start(self, user, profile, variant, world, *words, **options):
        """Runs the probe in a sandbox; its output."""
        client = self.client(user, variant)
        params = client.start_params(
            [world.probe, *words, *world.arguments()], cwd=f"file://{world.ws}",
            sandbox=sandbox(profile, world), **options)
        result = client.call("process/start", params)
        assert result == {"processId": params["processId"], "sandboxType": "linuxSeccomp"}
        process = client.wait_closed(client.processes[params["processId"]], 6 * PATIENCE)
        assert process.exit_code == 0, process.output()
        assert process.output("stderr") == b""
        return matrix.parse(process.output().decode().replace("\r\n", "\n"))

    @functools.cache
    def run(self, user, profile, variant=""):
        world = World(self.probe, USERS[user])
        try:
            results = self.start(user, profile, variant, world)
            terminal = self.start(user, profile, variant, world, "tty", tty=True)
            return Run(results, terminal, world.before, world.state(), world.heard(),
                       world.held.poll() is None)
        finally:
            world.close()


@pytest.fixture(scope="module")
def runs(nothing_left):  # pylint: disable=unused-argument
    made = Matrix()
    yield made
    made.close()


def test_table_is_complete():
    numbers = [row.number for row in matrix.ROWS]
    assert len(numbers) == len(set(numbers))
    assert set(range(1, 227)) <= set(numbers)
    for row in matrix.ROWS + matrix.TERMINAL:
        assert row.why or "any" not in row.bars.values(), row


@pytest.mark.limit(1800)
def test_probe_sees_what_is_open(runs):
    results, heard = runs.baseline
    assert set(results) == {row.number for row in matrix.ROWS}
    assert [n for n in sorted(OPEN) if not matrix.success(results[n])] == []
    assert set(heard) == {"fifo", "outside datagram", "abstract datagram", "udp", "tcp",
                          "outside stream", "workspace stream", "abstract stream"}


def check_rows(runs, user, profile, variant="", section=None):
    run, changes = runs.run(user, profile, variant), VARIANTS[variant].changes
    column = "RO" if profile == "RL" else profile
    rows = [row for row in matrix.ROWS if section in (None, row.section)]
    wrong = matrix.compare(rows, column, run.results, runs.baseline[0], user == "root", changes)
    assert not wrong, "\n".join(["", *wrong])


def check_terminal(runs, user, profile, variant=""):
    run, changes = runs.run(user, profile, variant), VARIANTS[variant].changes
    column = "RO" if profile == "RL" else profile
    wrong = matrix.compare(matrix.TERMINAL, column, run.terminal,
                           dict.fromkeys(run.terminal, "OK"), user == "root", changes)
    assert not wrong, "\n".join(["", *wrong])


def check_host(runs, user, profile, variant=""):
    """Nothing outside is changed, and nothing came out."""
    run = runs.run(user, profile, variant)
    for what, before in run.before.items():
        assert run.after[what] == before, what
    assert run.alive
    heard = set(run.heard)
    if profile == "WN":
        heard -= {"outside datagram", "abstract datagram", "udp", "tcp", "outside stream",
                  "workspace stream", "abstract stream"}
    assert not heard


@pytest.mark.limit(1800)
@EACH
@pytest.mark.parametrize("section", matrix.SECTIONS)
def test_rows(runs, user, profile, section):
    check_rows(runs, user, profile, section=section)


@pytest.mark.limit(1800)
@EACH
def test_rows_on_a_terminal(runs, user, profile):
    check_terminal(runs, user, profile)


@pytest.mark.limit(1800)
@EACH
def test_nothing_outside_changed(runs, user, profile):
    check_host(runs, user, profile)


# Other circumstances.

def check_all(runs, user, profile, variant):
    check_rows(runs, user, profile, variant)
    check_terminal(runs, user, profile, variant)
    check_host(runs, user, profile, variant)


@pytest.mark.limit(1800)
@EACH
def test_processes_of_the_host_in_sight(runs, user, profile):
    check_all(runs, user, profile, "inherit")


@pytest.mark.limit(1800)
@pytest.mark.parametrize("profile", matrix.PROFILES)
@pytest.mark.parametrize("user", USERS)
def test_without_user_namespaces(runs, user, profile):
    """As root in a container: the same by the rights the server has."""
    check_all(runs, user, profile, "root")


@pytest.mark.limit(1800)
@pytest.mark.parametrize("user", USERS)
def test_without_namespaces(runs, user):
    """Landlock and seccomp alone."""
    check_all(runs, user, "RL", "landlock")


@pytest.mark.limit(1800)
@pytest.mark.parametrize("user", USERS)
def test_what_landlock_cannot_enforce_is_refused(runs, user):
    client = runs.client(user, "landlock")
    world = World(runs.probe, USERS[user])
    try:
        for profile in matrix.PROFILES:
            params = client.start_params(["/bin/true"], cwd="file:///",
                                         sandbox=sandbox(profile, world))
            code, text = client.error("process/start", params)
            assert code == -32603
            for word in ("namespaces", "os error 28", "user.max_"):
                assert word in text, text
        assert world.state() == world.before
    finally:
        world.close()


@pytest.mark.limit(1800)
def test_network_alone(runs):
    """Files unrestricted, network restricted: sockets, other kinds of system calls, debuggers."""
    world = World(runs.probe, PLAIN)
    try:
        results = runs.start("plain", "SC", "", world)
    finally:
        world.close()
    rows = [row for row in matrix.ROWS
            if row.section == "network" and row.number != 217 or row.number in
            (121, 125, 126, 127, 128, 129, 130, 132, 133, 134, 135, 160)]
    wrong = matrix.compare(rows, "RO", results, runs.baseline[0], False)
    assert not wrong, "\n".join(["", *wrong])
