"""The tools: results, output, time, sessions, the sandbox, and the end of everything."""

import os
import signal

import pytest

from harness import procfs
from harness.waiting import until


@pytest.fixture
def server(start):
    made = start("--intercept", "off")
    made.hello(full=True)
    return made


def marked(mark):
    """Processes with that word among their arguments."""
    found = []
    for pid in procfs.pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if mark.encode() in f.read().split(b"\0") and procfs.alive(pid):
                    found.append(pid)
        except OSError:
            pass
    return found


def sleeper(name):
    """A number of seconds that no other test sleeps for."""
    return f"1000.{os.getpid()}{abs(hash(name)) % 100000}"


def test_a_result(server):
    result = server.run("echo hi; echo err >&2; exit 3")
    assert result.pop("duration").keys() == {"secs", "nanos"}
    assert result == {"exit_code": 3, "output": "hi\nerr\n", "timed_out": False}


def test_output_comes_in_order(server):
    assert server.run("echo 1; echo 2 >&2; echo 3; echo 4 >&2")["output"] == "1\n2\n3\n4\n"


def test_a_signal(server):
    result = server.run("kill -9 $$")
    assert (result["exit_code"], result["signal"]) == (137, "SIGKILL")


def test_dispositions_are_default(server):
    assert server.run("seq 1 100000 | head -1; echo ${PIPESTATUS[0]}")["output"] == "1\n141\n"


def test_descriptors(server):
    assert server.run("ls -m /proc/self/fd")["output"] == "0, 1, 2, 3\n"
    assert server.run("readlink /proc/self/fd/0")["output"] == "/dev/null\n"


@pytest.mark.parametrize("command, output", [
    (r"printf 'caf\xe9\n'", "caf\ufffd\n"), (r"printf '\xe2\x82'; sleep 0.1; printf '\xac'", "\u20ac"),
    (r"printf 'a\0b'", "a\0b")])
def test_bytes(server, command, output):
    assert server.run(command)["output"] == output


def test_long_output_loses_its_middle(server):
    result = server.run("seq 1 100000", max_output_bytes=100)
    first, line, last = result["output"].partition("[\u2026 ")
    assert first.startswith("1\n2\n") and last.endswith("99999\n100000\n") and line
    assert f"{result['omitted_bytes']} bytes omitted" in result["output"]
    assert result["omitted_bytes"] == 588895 - len(first) - len(last.partition("\n")[2])
    assert "omitted_bytes" not in server.run("seq 1 10000")


def test_memory_stays_bounded(server):
    before = int(procfs_rss(server.process.pid))
    assert server.run("head -c 200000000 /dev/zero", timeout_ms=100000)["omitted_bytes"] > 0
    assert int(procfs_rss(server.process.pid)) < before + 8192


def procfs_rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(line.split()[1] for line in f if line.startswith("VmRSS"))


def test_a_background_child_delays_nothing(server, tmp_path):
    mark = sleeper("background")
    result = server.run(f"(sleep {mark}; echo late) & echo started")
    assert result["output"] == "started\n" and result["exit_code"] == 0
    assert marked(mark)  # it lives on


def test_a_sandboxed_background_child_lives_on_too(start, tmp_path):
    server = start("--intercept", "off")
    server.hello()
    mark = sleeper("sandboxed")
    assert server.run(f"sleep {mark} & echo started")["output"] == "started\n"
    assert marked(mark)
    server.close()
    until(lambda: not marked(mark), "end of the background child")


def test_a_timeout(server):
    mark = sleeper("timeout")
    result = server.run(f"echo before; setsid sleep {mark} & sleep {mark}", timeout_ms=300)
    assert (result["exit_code"], result["timed_out"], result["output"]) == (124, True, "before\n")
    until(lambda: not marked(mark), "end of the whole tree")


def test_a_timeout_of_zero(server):
    assert server.run("sleep 1000", timeout_ms=0)["timed_out"] is True


def test_sigterm_comes_before_sigkill(server):
    result = server.run("trap 'echo told; exit 5' TERM; while :; do sleep 0.01; done",
                        timeout_ms=200)
    assert result["output"].endswith("told\n") and result["exit_code"] == 124


def test_cancellation(server):
    mark = sleeper("cancel")
    number = server.call(f"setsid sleep {mark} & sleep {mark}", timeout_ms=1000000)
    until(lambda: len(marked(mark)) == 2, "both run")
    server.send("notifications/cancelled", {"requestId": number, "reason": "user"})
    until(lambda: not marked(mark), "end of the whole tree")
    assert server.request("ping")["result"] == {}
    assert number not in server.answers


@pytest.mark.parametrize("how", ["eof", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, "stdout"])
@pytest.mark.parametrize("full", [True, False])
def test_the_end_takes_everything_along(start, how, full):
    server = start("--intercept", "off")
    server.hello(full=full)
    mark = sleeper(f"end{how}{full}")
    server.call(f"setsid sleep {mark} & (sleep {mark} &) ; sleep {mark}", timeout_ms=1000000)
    until(lambda: len(marked(mark)) == 3, "all run")
    if how == "eof":
        assert server.close() == 0
    elif how == "stdout":
        os.kill(server.process.pid, signal.SIGSTOP)
        server.line('{"jsonrpc":"2.0","id":"x","method":"ping"}')
        os.kill(server.process.pid, signal.SIGCONT)
        assert server.close() == 0
    else:
        assert server.signal(how) == 0
    until(lambda: not marked(mark), "end of everything")


def test_a_killed_server_takes_everything_along(start):
    server = start("--intercept", "off")
    server.hello(full=True)
    mark = sleeper("killed")
    server.call(f"setsid sleep {mark} & sleep {mark}", timeout_ms=1000000)
    until(lambda: len(marked(mark)) == 2, "both run")
    server.signal(signal.SIGKILL)
    until(lambda: not marked(mark), "end of everything")


def test_a_command_that_cannot_start(server):
    result = server.answer(server.call("true", workdir="/nonexistent"))["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == "No such file or directory (os error 2)"
    result = server.answer(server.call("a\0b"))["result"]
    assert result["content"][0]["text"] == "nul byte found in provided data"


def test_a_long_command(server, tmp_path):
    text = "x" * 600000
    assert server.run(f"echo -n {text} | wc -c")["output"].strip() == "600000"
    server.state({"type": "read-only"})
    assert server.run(f"echo -n {text} | wc -c; touch {tmp_path}/no; echo $?")["output"].endswith(
        "1\n")
    assert server.answer(server.call("x" * 1100000))["result"]["isError"]


def test_the_working_directory(server, tmp_path):
    assert server.run("pwd", workdir=str(tmp_path))["output"] == f"{tmp_path}\n"
    assert server.run("pwd", workdir=f"{tmp_path}/../{tmp_path.name}/.")["output"] == f"{tmp_path}\n"
    server.full(tmp_path)
    assert server.run("pwd", workdir=None)["output"] == f"{tmp_path}\n"


# -- the sandbox --

def test_without_a_state_everything_is_read_only(start, tmp_path):
    server = start("--intercept", "off")
    server.hello()
    result = server.run(f"touch {tmp_path}/x; echo $?; printenv CODEX_SANDBOX_NETWORK_DISABLED")
    assert result["output"].endswith("1\n1\n")
    assert not (tmp_path / "x").exists()


def test_workspace_write(server, tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    server.state({"type": "workspace-write", "exclude_slash_tmp": True,
                  "exclude_tmpdir_env_var": True}, inside)
    server.run("touch a; touch ../out", workdir=str(inside))
    assert (inside / "a").exists() and not outside.exists()


def test_a_state_of_one_call(server, tmp_path):
    state = {"permissionProfile": {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
            {"path": {"type": "path", "path": str(tmp_path)}, "access": "write"}]}},
        "codexLinuxSandboxExe": "/x", "sandboxCwd": tmp_path.as_uri(), "useLegacyLandlock": False}
    for key in ("codex/sandbox-state", "codex/sandbox-state-meta"):
        made = server.result(server.call("pwd; touch here; touch /var/tmp/no-such; echo $?",
                                         meta={key: state}, workdir=None))
        assert made["output"].startswith(f"{tmp_path}\n") and made["output"].endswith("1\n")
        (tmp_path / "here").unlink()
    bad = server.answer(server.call("true", meta={"codex/sandbox-state": {"x": 1}}))["result"]
    assert bad["isError"]


def test_bad_states(server):
    update = "codex/sandbox-state/update"
    assert server.request(update)["error"]["message"] == "missing params for sandbox state request"
    params = {"sandboxPolicy": {"type": "bogus"}, "sandboxCwd": "/tmp"}
    assert server.request(update, params)["error"] == {
        "code": -32602, "message": "failed to deserialize sandbox state", "data": params}
    assert server.request(update, {"sandboxPolicy": {"type": "read-only"}})["result"] == {}


# -- sessions --

def write(server, session, **arguments):
    return server.result(server.call(None, tool="write_stdin", session_id=session, **arguments))


def told(server, session, text, **arguments):
    """Waits until the output has the text, or for "" until the end; the last answer, all output."""
    result = write(server, session, yield_time_ms=60000, **arguments)
    output = result["output"]
    while result["exit_code"] is None and not (text and text in output):
        result = write(server, session, yield_time_ms=60000)
        output += result["output"]
    return result, output


def test_a_session(server):
    first = server.run("echo ready; while read x; do echo got $x; done; echo over; exit 4",
                       yield_time_ms=0)
    assert first["exit_code"] is None
    session = first["session_id"]
    if "ready" not in first["output"]:
        assert told(server, session, "ready")[1] == "ready\n"
    assert told(server, session, "one", chars="one\n")[1] == "got one\n"
    last, output = told(server, session, "", chars="\4")
    assert (last["exit_code"], output) == (4, "over\n") and "session_id" not in last
    gone = server.answer(server.call(None, tool="write_stdin", session_id=session))["result"]
    assert gone["isError"] and gone["content"][0]["text"] == f"unknown session_id {session}"


def test_a_session_on_a_terminal(server):
    session = server.run("sleep 0.1; tty; echo ready; exec cat", tty=True,
                         yield_time_ms=0)["session_id"]
    assert told(server, session, "ready")[1].startswith("/dev/pts/")
    assert told(server, session, "typed", chars="typed\n")[1]
    assert told(server, session, "", signal="INT")[0]["signal"] == "SIGINT"


def test_a_command_that_ends_in_time_has_no_session(server):
    assert "session_id" not in server.run("echo x", yield_time_ms=60000)


def test_the_oldest_finished_session_makes_room(server, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first = server.run(f"read x < {fifo}", yield_time_ms=0)["session_id"]
    rest = [server.run("sleep 1000", yield_time_ms=0)["session_id"] for _ in range(63)]
    refused = server.answer(server.call("true", yield_time_ms=0))["result"]
    assert refused["isError"] and "64 sessions" in refused["content"][0]["text"]
    fifo.write_text("x\n")

    def again():
        result = server.answer(server.call("sleep 1000", yield_time_ms=0))["result"]
        return not result["isError"]
    until(again, "the finished session makes room", every=0.05)
    lost = server.answer(server.call(None, tool="write_stdin", session_id=first))["result"]
    assert lost["isError"]
    assert write(server, rest[0], signal="KILL", yield_time_ms=60000)["signal"] == "SIGKILL"


# -- progress --

def test_progress(server):
    number = server.call("echo working; sleep 3.2; echo '  '", meta={"progressToken": "p"},
                         timeout_ms=100000)
    told = [server.other(), server.other()]
    server.result(number)
    assert [m["method"] for m in told] == ["notifications/progress"] * 2
    assert all(m["params"]["progressToken"] == "p" for m in told)
    assert told[0]["params"]["message"] == "working"
    assert told[0]["params"]["progress"] < told[1]["params"]["progress"]
    assert server.request("ping")["result"] == {}
