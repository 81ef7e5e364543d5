"""process/list and resources."""

import os
import time

import pytest

from harness import procfs, web
from harness.waiting import until


def entries(client):
    return client.call("process/list")["processes"]


def test_empty(server):
    client = server.client()
    assert client.call("process/list") == {"processes": []}
    assert client.call("process/list", {}) == {"processes": []}


def test_bad_params(client):
    assert client.error("process/list", {"processId": "x"})[0] == -32602
    assert client.error("process/list", [])[0] == -32602


def test_long_list_is_refused(server):
    """The answer is made in one turn of the loop: others wait for it, so it has its bound."""
    client = server.client()
    name = "\x01" * 4000  # six characters each in JSON
    starts = [client.send("process/start", {
        "processId": f"{name}{i}", "argv": ["/bin/true"], "cwd": "/", "env": {}, "tty": False,
        "pipeStdin": False, "arg0": None}) for i in range(200)]
    for start in starts:
        client.result(start)
    assert client.error("process/list") == (-32603, "too many processes to list")


def test_order_and_content(server):
    """Oldest first, with what each did."""
    client = server.client()
    before = int(time.time() * 1000)
    names = ["z", "a", "é\"\n", ""]
    client.run(["/bin/echo", "one", "t\"wo"], processId=names[0])
    client.run("kill -9 $$", processId=names[1])
    token = procfs.mark()
    client.wait_exited(client.start(f"sleep {token} & exit 9", processId=names[2]))
    running = client.start("echo $$; read go", processId=names[3], pipeStdin=True)
    client.wait_output(running, "\n")
    found = entries(client)
    after = int(time.time() * 1000)
    assert [e["processId"] for e in found] == names
    assert [e["state"] for e in found] == ["closed", "closed", "exited", "running"]
    assert [e["exitCode"] for e in found] == [0, 137, 9, None]
    assert [e["signal"] for e in found] == [None, "SIGKILL", None, None]
    assert found[0]["argv"] == ["/bin/echo", "one", "t\"wo"] and found[0]["bytes"] == 9
    assert found[3]["pid"] == int(running.output())
    assert all(before <= e["startedAtMs"] <= after for e in found)
    assert all(e["timedOut"] is False for e in found)


def test_other_sessions_are_not_listed(server):
    client, other = server.client(), server.client()
    client.run("true")
    assert entries(other) == []


def test_id_that_is_used_again(fleet):
    client = fleet.start("--closed-retention", "0").client()
    for code in range(5):
        client.processes.clear()
        assert client.run(f"exit {code}", processId="again").exit_code == code
        until(lambda: not entries(client), "removal")


def test_failed_start_is_not_listed(server):
    client = server.client()
    client.start_error(["/nonexistent"])
    assert entries(client) == []


@pytest.mark.parametrize("args, kept", [
    (["x" * 5000], 1), (["a", "x" * 5000], 2), (["y" * 100] * 100, None)])
def test_long_commands_are_cut(server, args, kept):
    """Whole arguments from the first on; the number of those left out is told."""
    client = server.client()
    argv = ["/bin/true", *args]
    client.run(argv)
    entry, = entries(client)
    got = entry["argv"]
    assert got == argv[:len(got)] and len(got) < len(argv)
    assert entry["argvOmitted"] == len(argv) - len(got)
    if kept is not None:
        assert len(got) == kept


def test_command_with_odd_characters(server):
    client = server.client()
    argv = ["/bin/true", "", "\u0001\"\\\n", "\U0001f600", "é" * 100]
    client.run(argv)
    entry, = entries(client)
    assert entry["argv"] == argv and "argvOmitted" not in entry


def test_many_processes(server):
    client = server.client()
    for _ in range(300):
        client.run(["/bin/true", "x" * 3000])
    found = entries(client)
    assert len(found) == 300 and all(e["argv"] == ["/bin/true", "x" * 3000] for e in found)


BUSY = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"


def test_resources_of_an_exit(client):
    """The exit and the list agree."""
    process = client.run(BUSY)
    used = process.exited["resources"]
    assert used["userTimeMs"] > 0
    assert used["wallTimeMs"] >= used["userTimeMs"] // os.cpu_count()
    entry, = [e for e in entries(client) if e["processId"] == process.name]
    assert entry["resources"] == used


def test_resources_count_children_that_were_waited_for(client):
    used = client.run(f"sh -c '{BUSY}'; true").exited["resources"]
    assert used["userTimeMs"] > 0


def test_peak_memory(fleet):
    """At least what the largest process of the command had."""
    process = fleet.start().client().run("head -c 40000000 /dev/zero | tail -n 1 >/dev/null")
    assert process.exited["resources"]["peakMemoryBytes"] > 40_000_000


def test_peak_of_a_small_command(fleet):
    """Below the server's own size nothing is known, and nothing is claimed."""
    client = fleet.start().client()
    client.error("process/read", {"processId": "x" * 20_000_000})  # makes the server large
    assert client.run("true").exited["resources"]["peakMemoryBytes"] is None


def test_resources_while_running(client):
    process = client.start(f"{BUSY}; echo done; read go", pipeStdin=True)
    client.wait_output(process, "done")
    entry, = [e for e in entries(client) if e["processId"] == process.name]
    used = entry["resources"]
    assert used["userTimeMs"] + used["systemTimeMs"] > 0 and used["peakMemoryBytes"] > 100_000
    assert used["wallTimeMs"] > 0
    client.ask("closeStdin", process)
    client.wait_closed(process)
    ended = process.exited["resources"]
    assert ended["wallTimeMs"] >= used["wallTimeMs"]
    assert ended["peakMemoryBytes"] is None or ended["peakMemoryBytes"] >= used["peakMemoryBytes"]


def test_capabilities(fleet):
    """What the server can do is announced."""
    always = {"processCloseStdin", "processResize", "processStartSize", "processWait",
              "processSnapshot", "processList", "processTerminateModes", "processTimeout",
              "processLimits", "processLifecycle", "fsWatchMissing", "fileWriteStreaming",
              "fsRename", "fsSetPermissions", "fsMetadataMode", "fsWatch", "fsAtomicWrite",
              "fsReadMaxBytes", "processAck", "sessionLimits", "fsOpenUpdate", "fsTimes", "fsLinks",
              "environmentConfigRead", "capabilityDiscoveryV2", "shellSnapshotV2"}
    signals = ["interrupt", "terminate", "kill", "hangup", "quit", "usr1", "usr2", "winch", "stop",
               "continue"]
    if web.available():
        always.add("httpHeaderEnvVars")
    for args, on in (((), False), (("--allow-attach", "--http-files"), True)):
        got = fleet.start(*args).client().call("environment/info")["capabilities"]
        # Those of the sandbox depend on the host: test_sandbox_start.py.
        got = {k: v for k, v in got.items() if k != "capabilityDiscoverySandbox"
               and not k.lower().startswith(("sandbox", "linux", "network"))}
        assert got == {**dict.fromkeys(always, True), "processSignals": signals,
                       "processAttach": on, "httpFiles": on, "httpFilesAt": on}
