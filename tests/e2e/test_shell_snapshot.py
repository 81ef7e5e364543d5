"""Shell snapshots: how often startup files run, and what becomes of captures that fail or hang."""

import json
import os
import resource

import pytest

from harness import procfs
from harness.fleet import Fleet
from harness.rpc import PATH
from harness.sandbox import place, servers, user
from harness.waiting import until

__all__ = ["place", "servers", "user"]

BASH = {"name": "bash", "path": "/bin/bash"}
SNAPSHOT = {"scopeId": "s", "shell": BASH}
RUN = 'echo run >> "$HOME/runs"\n'


class Home:
    def __init__(self, path):
        self.path = path

    def profile(self, text):
        (self.path / ".bash_profile").write_text(RUN + text)

    @property
    def runs(self):
        try:
            return (self.path / "runs").read_text().count("run")
        except FileNotFoundError:
            return 0

    def options(self, **more):
        return {"cwd": f"file://{self.path}", "shellSnapshot": SNAPSHOT,
                "env": {"HOME": str(self.path), "PATH": PATH}, **more}

    def run(self, client, script, **more):
        return client.run(["/bin/bash", "-lc", script], **self.options(**more)).output("stdout")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def fleet(nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    yield made
    made.finish()


@pytest.fixture
def server(fleet):
    return fleet.start()


def test_startup_files_run_once(server, home):
    home.profile("f() { echo f; }\nexport A=a\n")
    client = server.client()
    for _ in range(5):
        assert home.run(client, "f; echo $A") == b"f\na\n"
    assert home.runs == 1
    assert client.call("process/list")["processes"] != []
    assert len(client.call("process/list")["processes"]) == 5  # the capture is not among them
    other = server.client()
    assert home.run(other, "f") == b"f\n"
    assert home.runs == 2  # another session
    other.close()
    client.close()


def test_starts_at_once_share_a_capture(fleet, home):
    """Ten starts wait while the profile reads a FIFO."""
    server = fleet.start("--concurrent-requests", "16")
    os.mkfifo(home.path / "gate")
    home.profile('read line < "$HOME/gate"\nexport A=$line\n')
    client = server.client()
    sent = []
    for _ in range(10):
        params = client.start_params(["/bin/bash", "-lc", "echo $A"], **home.options())
        sent.append((client.send("process/start", params), params["processId"]))
    until(lambda: home.runs == 1, "the profile")
    with open(home.path / "gate", "w") as gate:
        gate.write("open\n")
    for ident, name in sent:
        client.result(ident)
        client.wait_closed(client.processes[name])
        assert client.processes[name].output("stdout") == b"open\n"
    assert home.runs == 1
    client.close()


@pytest.mark.parametrize("text", ["exit 3\n", "kill -9 $$\n", "set -e\nfalse\n",
                                  "head -c 9000000 /dev/zero\n",
                                  "for i in {1..20000}; do eval \"long_function_$i() { echo; }\"; done\n"])
def test_failed_capture_is_a_normal_start(server, home, text):
    home.profile(f"export A=a\n{text}")
    client = server.client()
    expected = client.run(["/bin/bash", "-lc", "echo $A | tail -c 9"],
                          **home.options(shellSnapshot=None))
    before = home.runs
    found = client.run(["/bin/bash", "-lc", "echo $A | tail -c 9"], **home.options())
    assert found.exit_code == expected.exit_code
    assert found.output("stdout") == expected.output("stdout")
    assert home.runs == before + 2  # the capture, and the command itself
    client.close()


def test_background_programs_live_as_long_as_the_session(server, home):
    """A program that holds the output of the capture does not delay it."""
    token = procfs.mark()
    home.profile(f"sleep {token} &\nexport A=a\n")
    client = server.client()
    assert home.run(client, "echo $A") == b"a\n"
    assert len(procfs.wait_marked(token)) == 1
    assert home.run(client, "echo $A") == b"a\n"
    assert home.runs == 1
    client.call("environment/status")
    client.close()
    server.send_signal(15)
    server.wait()
    procfs.wait_marked(token, 0)


def test_hanging_capture_is_killed(server, home):
    token = procfs.mark()
    home.profile(f"[ -e done ] || {{ touch done; sleep {token}; }}\nexport A=a\n")
    client = server.client()
    assert home.run(client, "echo $A") == b"a\n"  # after 10 s
    procfs.wait_marked(token, 0)
    client.close()


def test_end_of_the_session_kills_a_capture(fleet, home):
    server = fleet.start("--session-ttl", "0")
    token = procfs.mark()
    home.profile(f"sleep {token}\n")
    client = server.client()
    client.send("process/start", client.start_params(["/bin/bash", "-lc", "echo"], **home.options()))
    procfs.wait_marked(token)
    client.close()
    procfs.wait_marked(token, 0)
    assert server.client().call("environment/status") == {"status": "ready"}


def test_terminate_ends_the_wait(fleet, home):
    server = fleet.start("--concurrent-requests", "4")
    token = procfs.mark()
    home.profile(f"sleep {token}\n")
    client = server.client()
    params = client.start_params(["/bin/bash", "-lc", "echo"], **home.options())
    ident = client.send("process/start", params)
    procfs.wait_marked(token)
    client.call("process/terminate", {"processId": params["processId"]})
    answer = client.answer(ident)
    assert answer["error"]["message"].endswith("start was cancelled")
    # The id is free, and the next start of the key waits for the same capture.
    assert client.run("echo ok", processId=params["processId"]).output() == b"ok\n"
    client.close()


def test_a_start_that_fails_after_its_wait(fleet, home, tmp_path):
    """The client is told as for any other start whose exec fails, and so is the operator."""
    log = tmp_path / "audit"
    server = fleet.start("--concurrent-requests", "4", "--audit-log", str(log))
    os.mkfifo(home.path / "gate")
    home.profile('read line < "$HOME/gate"\n')
    client = server.client(notifications=["process/failed"])
    params = client.start_params(["/bin/bash", "-lc", "echo"], **home.options())
    ident = client.send("process/start", params)
    until(lambda: home.runs == 1, "the profile")
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir(f"/proc/{server.pid}/fd")))
    full = min(set(range(len(used) + 1)) - used)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (full, limits[1]))
    with open(home.path / "gate", "w", encoding="ascii") as gate:
        gate.write("open\n")
    why = "No file descriptors available (os error 24)"
    assert client.answer(ident)["error"] == {"code": -32603, "message": why}
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    client.sync()
    assert [m for m in client.other if m["method"] == "process/failed"] == [{
        "method": "process/failed", "params": {"processId": params["processId"], "message": why}}]
    assert home.run(client, "echo ok", processId=params["processId"]) == b"ok\n"  # the id is free
    client.close()
    server.stop()
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    failed, = [line for line in lines if line["event"] == "failed"]
    assert failed["argv"] == ["/bin/bash", "-lc", "echo"] and failed["reason"] == why


def test_resume_in_the_middle(server, home):
    """The connection is lost while a start waits; the session goes on without it."""
    os.mkfifo(home.path / "gate")
    home.profile('read line < "$HOME/gate"\nexport A=$line\n')
    client = server.client()
    session = client.session
    params = client.start_params(["/bin/bash", "-lc", "echo $A; sleep 600"], **home.options())
    client.send("process/start", params)
    until(lambda: home.runs == 1, "the profile")
    client.close()
    with open(home.path / "gate", "w") as gate:
        gate.write("open\n")
    again = server.client(resume=session)

    def told():
        answer = again.answer(again.send("process/read", {"processId": params["processId"]}))
        return answer.get("result", {}).get("chunks")
    until(told, "output", every=0.05)
    again.call("process/terminate", {"processId": params["processId"]})
    again.close()


def test_killed_server_leaves_no_capture(fleet, home):
    server = fleet.start()
    token = procfs.mark()
    home.profile(f"(sleep {token}) & sleep {token}\n")
    client = server.client()
    client.send("process/start", client.start_params(["/bin/bash", "-lc", "echo"], **home.options()))
    procfs.wait_at_least(token, 1)
    server.send_signal(9)
    procfs.wait_marked(token, 0)
    server.abandon()


def test_many_keys(server, home):
    """The least recently used snapshot makes room."""
    home.profile("export A=a\n")
    client = server.client()

    def use(scope):
        assert home.run(client, "echo $A", shellSnapshot={"scopeId": scope, "shell": BASH}) == b"a\n"
    for n in range(16):
        use(f"{n}")
    use("0")
    assert home.runs == 16
    use("more")
    use("0")
    assert home.runs == 17
    use("1")  # had to go
    assert home.runs == 18
    client.close()


def test_terminal_and_files_of_the_command(server, home):
    """The command has its own terminal, and no descriptor of the capture."""
    home.profile("export A=a\n")
    client = server.client()
    for _ in range(2):
        p = client.run(["/bin/bash", "-lc", "tty; ls /proc/self/fd | wc -l; env"],
                       **home.options(tty=True))
        assert p.output().startswith(b"/dev/pts/")
        assert p.output().split(b"\r\n")[1] == b"4"
        assert b"SNAPSHOT" not in p.output()
    client.close()


def test_zsh(server, home):
    if not os.path.exists("/bin/zsh"):
        pytest.skip("no zsh")
    (home.path / ".zprofile").write_text(RUN + "export A=a\nsetopt extendedglob\nalias ll='ls -l'\n")
    (home.path / ".zshrc").write_text("f() { echo \"f $1\" }\n")
    shell = {"scopeId": "s", "shell": {"name": "zsh", "path": "/bin/zsh"}}
    client = server.client()
    for _ in range(2):
        p = client.run(["/bin/zsh", "-lc", "f x; echo $A $1; setopt | grep extended; alias ll", "z",
                        "arg"], **home.options(shellSnapshot=shell))
        assert p.output("stderr") == b""
        assert p.output("stdout") == b"f x\na arg\nextendedglob\nll='ls -l'\n"
    assert home.runs == 1
    client.close()


def test_sandbox(place):
    """The capture is as confined as its command: the profile cannot write outside either."""
    place.put("ws/.bash_profile", "echo x > ../out/leak\necho run >> runs\nexport A=a\n")
    place.mkdir("out")
    for _ in range(2):
        found = place.run(["/bin/bash", "-lc", "echo $A; touch ../out/leak"], "r :root", "w ws",
                          env={"HOME": place.path("ws"), "PATH": PATH}, shellSnapshot=SNAPSHOT)
        assert found.out == "a\n"
    assert not os.path.exists(place.path("out/leak"))
    assert (place.base / "ws/runs").read_text() == "run\n"
