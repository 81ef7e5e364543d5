"""limits of process/start: what a command may use."""

import os
import shutil
import tempfile

import pytest

from harness import procfs
from harness.fleet import Fleet
from harness.settings import BINARY, SANITIZED
from harness.waiting import until

MIB = 1 << 20
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to take another uid")
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
# Each of its processes tries for ever to make another.
BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        os.write(1, b"no more\\n")
        time.sleep(0.05)
"""
RANGES = {"memoryBytes": (1 << 20, 2**63 - 1), "pids": (1, 4194304), "openFiles": (3, 1 << 30),
          "nice": (-20, 19), "oomScoreAdj": (-1000, 1000), "cpuWeight": (1, 10000),
          "cpuPercent": (1, 1000000)}


def cgroups():
    """Whether a server started here has controllers of a cgroup v2 subtree."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        own = [line[3:].strip() for line in f if line.startswith("0::")]
    base = "/sys/fs/cgroup" + own[0].rstrip("/") if own else ""
    try:
        with open(f"{base}/cgroup.controllers", encoding="ascii") as f:
            return bool(f.read().strip()) and os.access(base, os.W_OK)
    except OSError:
        return False


WITHOUT_CGROUPS = pytest.mark.skipif(cgroups(), reason="cgroup controllers are delegated")


def free_uid():
    """A uid that nobody has."""
    used = {os.stat(f"/proc/{pid}").st_uid for pid in procfs.pids() if procfs.alive(pid)}
    return next(u for u in range(70000 + os.getpid() % 5000, 2**31) if u not in used)


def processes_of(uid):
    found = []
    for pid in procfs.pids():
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid and procfs.alive(pid):
                found.append(pid)
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def program(nothing_left):  # pylint: disable=unused-argument
    """The program under test where every user can run it."""
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    path = shutil.copy(BINARY, directory)
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(directory)


class Plain:
    """A server of a user with a uid of its own."""

    def __init__(self, fleet, program):
        self.uid = free_uid()
        ids = [f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        self.server = fleet.start(binary=program, wrapper=["setpriv", *ids], cwd="/")
        self.client = self.server.client()

    def others(self):
        """Its processes besides the server."""
        return [pid for pid in processes_of(self.uid) if pid != self.server.pid]


@pytest.fixture
def plain(program):
    fleet = Fleet()
    yield Plain(fleet, program)
    fleet.finish()


def inside(client, script, **limits):
    return client.run(script, limits=limits).output("stdout").decode()


# What is visible inside.

def test_open_files(client):
    assert inside(client, "ulimit -Sn; ulimit -Hn", openFiles=17) == "17\n17\n"


def test_open_files_really(client):
    process = client.run("exec 3</dev/null 4</dev/null; exec 5</dev/null", limits={"openFiles": 5})
    assert process.exit_code != 0 and b"Too many open files" in process.output("stderr")


def test_nice(client):
    assert inside(client, "nice", nice=7) == "7\n"
    if os.geteuid() == 0:
        assert inside(client, "nice", nice=-3) == "-3\n"


def test_oom_score(client):
    assert inside(client, "cat /proc/self/oom_score_adj", oomScoreAdj=1000) == "1000\n"
    assert inside(client, "cat /proc/self/oom_score_adj", oomScoreAdj=321) == "321\n"


def test_all_at_once_and_null(client):
    limits = {"openFiles": 20, "nice": 3, "oomScoreAdj": 5, "memoryBytes": None, "pids": None,
              "cpuWeight": None}
    assert inside(client, "ulimit -n; nice; cat /proc/self/oom_score_adj", **limits) == \
        "20\n3\n5\n"


def test_none(client):
    before = client.run("ulimit -a; nice").output()
    assert client.run("ulimit -a; nice", limits=None).output() == before
    assert client.run("ulimit -a; nice", limits={}).output() == before


def test_terminal_and_direct(client):
    process = client.run("ulimit -n", tty=True, limits={"openFiles": 19})
    assert process.output().strip() == b"19"
    params = client.start_params("ulimit -n", limits={"openFiles": 18})
    client.call("process/start", {"direct": params})
    assert client.wait_closed(client.processes[params["processId"]]).output() == b"18\n"


def test_only_the_command_is_limited(server):
    client = server.client()
    inside(client, "true", openFiles=3, nice=19, oomScoreAdj=1000, memoryBytes=64 * MIB)
    with open(f"/proc/{server.pid}/oom_score_adj", encoding="ascii") as f:
        assert int(f.read()) != 1000
    assert os.getpriority(os.PRIO_PROCESS, server.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert client.run("exit 3").exit_code == 3


def test_started_with_too_little(client):
    """A limit that exec itself cannot live with ends the command, nothing else."""
    params = client.start_params("echo x", limits={"memoryBytes": MIB})
    answer = client.answer(client.send("process/start", params))
    if "result" in answer:
        assert client.wait_closed(client.processes[params["processId"]]).exit_code != 0
    else:
        assert answer["error"]["code"] == -32603
    assert client.run("exit 3").exit_code == 3


# A plain user.

@ROOT_ONLY
def test_limits_of_a_plain_user(plain):
    text = inside(plain.client, "cat /proc/self/limits", openFiles=33, pids=30,
                  memoryBytes=64 * MIB)
    rows = {line[:26].strip(): line[26:].split()[:2] for line in text.splitlines()}
    assert rows["Max open files"] == ["33", "33"]
    if not cgroups():
        assert rows["Max processes"] == ["30", "30"]
        assert rows["Max address space"] == [str(64 * MIB)] * 2


@ROOT_ONLY
@pytest.mark.skipif(SANITIZED, reason="needs the server's usual memory")
def test_memory_hog(plain):
    """It is stopped, the server serves on."""
    process = plain.client.start("head -c 300000000 /dev/zero | tail -n 1 | wc -c",
                                 limits={"memoryBytes": 64 * MIB})
    other = plain.server.client()
    assert other.run("exit 3").exit_code == 3
    plain.client.wait_closed(process)
    assert process.output("stdout") == b"0\n"
    assert b"memory exhausted" in process.output("stderr") or cgroups()
    assert (process.exited["resources"]["peakMemoryBytes"] or 0) <= 64 * MIB
    plain.client.sync()
    # Without the limit the same command does its work.
    assert inside(plain.client, "head -c 100000000 /dev/zero | tail -n 1 | wc -c") == "100000000\n"


@ROOT_ONLY
def test_fork_bomb(plain):
    """It never gets beyond its number, the server serves on, and an end is the end."""
    client, limit = plain.client, 20
    process = client.start([PYTHON, "-c", BOMB], limits={"pids": limit})
    client.wait_output(process, "no more")
    most = 0
    for _ in range(50):
        most = max(most, len(plain.others()))
        client.sync()
    assert limit // 2 < most <= limit
    # Others are not bound by its limit.
    other = plain.server.client()
    assert other.run("echo alive; exit 3").exit_code == 3
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    until(lambda: not plain.others(), "the end of the bomb")
    assert client.run("exit 4").exit_code == 4


@ROOT_ONLY
def test_fork_is_refused(plain):
    """The command itself sees the refusal."""
    process = plain.client.start("i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done",
                                 limits={"pids": 15})
    plain.client.wait_exited(process)
    assert process.exit_code != 0 and b"fork" in process.output("stderr").lower()
    assert len(plain.others()) <= 15


@ROOT_ONLY
def test_refusals_of_a_plain_user(plain):
    client = plain.client
    assert client.start_error("true", limits={"cpuWeight": 100}) == (
        -32600, "limits.cpuWeight cannot be enforced on this host: "
                "no cgroup v2 cpu controller is delegated")
    assert client.start_error("true", limits={"nice": -5}) == (
        -32603, "cannot set limits.nice: Permission denied (os error 13)")
    assert client.start_error("true", limits={"oomScoreAdj": -900}) == (
        -32603, "cannot set limits.oomScoreAdj: Permission denied (os error 13)")
    assert client.start_error("true", limits={"openFiles": 1 << 30}) == (
        -32600, "limits.openFiles cannot be enforced on this host: "
                "it is above the server's own hard limit")
    assert client.call("process/list") == {"processes": []}
    assert client.run("exit 3").exit_code == 3


# Refusals.

@ROOT_ONLY
@WITHOUT_CGROUPS
def test_refusals_of_root(client):
    assert client.start_error("true", limits={"cpuWeight": 100}) == (
        -32600, "limits.cpuWeight cannot be enforced on this host: "
                "no cgroup v2 cpu controller is delegated")
    assert client.start_error("true", limits={"pids": 100}) == (
        -32600, "limits.pids cannot be enforced on this host: no cgroup v2 pids controller is "
                "delegated, and the resource limit does not bind root")


@ROOT_ONLY
def test_more_files_than_the_kernel_allows(client):
    assert client.start_error("true", limits={"openFiles": 1 << 30}) == (
        -32603, "cannot set limits.openFiles: Operation not permitted (os error 1)")


@pytest.mark.parametrize("name", RANGES)
def test_range(client, name):
    low, high = RANGES[name]
    text = f"limits.{name} must be between {low} and {high}"
    assert client.start_error("true", limits={name: low - 1}) == (-32602, text)
    if high < 2**63 - 1:
        assert client.start_error("true", limits={name: high + 1}) == (-32602, text)
    assert client.start_error("true", limits={name: 2**63})[0] == -32602


@pytest.mark.parametrize("limits, text", [
    ({"memory": 1}, "unknown limit `memory`"),
    ({"openFiles": "5"}, 'invalid type: string "5", expected i64'),
    ({"openFiles": 5.5}, "invalid number"),
    ({"openFiles": True}, "invalid type: boolean `true`, expected i64"),
    ([], "invalid type: sequence, expected struct ProcessLimits"),
    ("all", 'invalid type: string "all", expected struct ProcessLimits'),
])
def test_bad_limits(client, limits, text):
    assert client.start_error("true", limits=limits) == (-32602, text)


def test_refusal_leaves_the_id_free(client):
    params = client.start_params("exit 3", limits={"unknown": 1})
    assert client.error("process/start", params)[0] == -32602
    del params["limits"]
    assert client.run("exit 3", processId=params["processId"]).exit_code == 3
