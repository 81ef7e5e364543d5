"""Sandboxed processes as the server sees them: starts, errors, signals, terminals, ends."""

import fcntl
import os
import signal
import socket
import subprocess

import pytest

from harness import procfs
from harness.confined import Calls
from harness.limits import user_limit
from harness.rpc import PATH, RpcError
from harness.sandbox import PROTECTED, Result, place, servers, user, users
from harness.server import run
from harness.settings import PATIENCE, SANITIZED
from harness.waiting import patiently, until

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"
RO, WW, MIN = (R,), (R, PR), ("r :minimal", PR)
PROFILES = pytest.mark.parametrize("entries", [RO, WW, MIN], ids=["ro", "ww", "min"])
MODES = pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])
PYTHON = "/usr/bin/python3"

MISSING = (-32603, "No such file or directory (os error 2)")
NOT_ALLOWED = (-32603, "Permission denied (os error 13)")


def server_of(place, servers):
    return servers.get(next(name for name, uid in users().items() if uid == place.uid))


def managed(files, network):
    return {"type": "managed", "file_system": files, "network": network}


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return len(f.readlines())


# What a start answers.

OPEN = {"type": "unrestricted"}


def context(permissions):
    return {"permissions": permissions, "windowsSandboxLevel": "disabled"}


@pytest.mark.parametrize("sandbox, kind", [
    (None, "none"),
    *((context(permissions), "linuxSeccomp") for permissions in (
        {"type": "disabled"}, {"type": "external", "network": "enabled"}, managed(OPEN, "enabled"),
        {"type": "external", "network": "restricted"}, managed(OPEN, "restricted"))),
], ids=str)
def test_sandbox_type(place, sandbox, kind):
    """Any sandbox object counts, whether it confines anything or not."""
    params = {**place.params(["/bin/true"], ()), "sandbox": sandbox}
    assert place.client.call("process/start", params)["sandboxType"] == kind
    process = place.client.processes[params["processId"]]
    place.client.wait_exited(process)
    listed, = [e for e in place.client.call("process/list")["processes"]
               if e["processId"] == process.name]
    assert listed["sandboxType"] == kind
    assert place.client.wait_closed(process).exit_code == 0


def test_profile_without_entries(place):
    """Lets nothing be read: not even a program."""
    nothing = managed({"type": "restricted", "entries": []}, "enabled")
    assert place.error(sandbox=context(nothing), command=["/bin/true"], at="/")[0] == -32603


def test_backend(place, servers):
    info = place.client.call("environment/info")
    assert info["sandboxBackend"] in ("userns", "root")
    assert info["capabilities"]["linuxRootWritePreservesDevices"] is True
    assert info["capabilities"]["linuxApprovedRootWritePreservesRestrictions"] is True
    again = server_of(place, servers).connect()
    assert again.initialize()["environmentInfo"]["sandboxBackend"] == info["sandboxBackend"]


# Errors of a start.

@PROFILES
@MODES
def test_missing_program(place, entries, tty):
    assert place.error(*entries, command=["/no/such/program"], tty=tty) == MISSING
    assert place.error(*entries, command=["no-such-program"], tty=tty) == MISSING
    assert place.error(*entries, command=["./no-such-program"], tty=tty) == MISSING
    assert place.left() == []


@PROFILES
def test_programs_that_cannot_be_run(place, entries):
    place.put("ws/plain", "echo x\n")
    place.put("ws/garbage", "\x7fELF garbage", mode=0o755)
    place.put("ws/lost", "#!/no/such/interpreter\n", mode=0o755)
    place.put("ws/bin/only", "#!/bin/sh\n")
    assert place.error(*entries, command=[str(place.ws / "plain")]) == NOT_ALLOWED
    assert place.error(*entries, command=[str(place.ws)]) == NOT_ALLOWED
    assert place.error(*entries, command=[str(place.ws / "garbage")]) == (
        -32603, "Exec format error (os error 8)")
    assert place.error(*entries, command=[str(place.ws / "lost")]) == MISSING
    assert place.error(*entries, command=["only"],
                       env={"PATH": f"{place.ws}/bin:/usr/bin"}) == NOT_ALLOWED
    assert place.error(*entries, command=[str(place.ws / "plain" / "x")]) == (
        -32603, "Not a directory (os error 20)")


def test_program_that_is_denied_or_hidden(place):
    program = place.put("ws/sub/run", "#!/bin/sh\n", mode=0o755)
    assert place.error(*WW, "d ws/sub", command=[str(program)]) == NOT_ALLOWED
    hidden = place.put("other/run", "#!/bin/sh\n", mode=0o755)
    assert place.error(*MIN, command=[str(hidden)]) == MISSING
    assert place.run([str(hidden)], *WW).code == 0


def test_cwd_that_is_missing(place):
    assert place.error(*WW, at="nowhere") == MISSING
    assert place.error(*WW, at="nowhere/below") == MISSING
    place.put("ws/file")
    assert place.error(*WW, at="ws/file") == (-32603, "Not a directory (os error 20)")
    assert place.left() == []


def test_cwd_that_is_denied_or_hidden(place):
    """The reference silently starts in the home directory."""
    place.mkdir("ws/secret/below")
    place.mkdir("other")
    assert place.error(*WW, "d ws/secret", at="ws/secret") == NOT_ALLOWED
    assert place.error(*WW, "d ws/secret", at="ws/secret/below") == NOT_ALLOWED
    assert place.error(*MIN, at="other") == MISSING
    assert place.left() == []


def test_cwd_of_the_sandbox_need_not_exist(place):
    got = place.run("pwd", *WW, sandbox={**place.sandbox(*WW), "cwd": "file:///no/such/place"})
    assert (got.code, got.out) == (0, f"{place.ws}\n")


def test_cwd_through_a_link(place):
    place.link("way", "ws")
    got = place.run("pwd; echo $PWD; /bin/pwd", *WW, at="way")
    assert got.out == f"{place.ws}\n" * 3


def test_relative_program_is_searched_inside(place):
    place.put("ws/bin/tool", "#!/bin/sh\necho tool $0\n", mode=0o755)
    place.put("other/tool", "#!/bin/sh\necho other\n", mode=0o755)
    env = {"PATH": f"{place.base}/other:{place.ws}/bin:/usr/bin:/bin"}
    assert place.run(["tool"], *WW, env=env).out == "other\n"
    assert place.run(["tool"], *MIN, env=env).out == f"tool {place.ws}/bin/tool\n"


def test_arg0(place):
    assert place.run(["/bin/sh", "-c", "echo $0"], *RO, arg0="other").out == "other\n"
    got = place.run([PYTHON, "-c", "print(open('/proc/self/cmdline').read().split(chr(0))[0])"],
                    *RO, arg0="-login")
    assert got.out == "-login\n"


def test_odd_arguments(place):
    assert place.error(*RO, command=["/bin/true", "a\0b"]) == (
        -32603, "nul byte found in provided data")
    assert place.error(*RO, command=[]) == (-32602, "argv must not be empty")
    assert place.error(*RO, command=[""]) == (-32603, "missing program for pipe spawn")
    assert place.error(*RO, command=[""], tty=True) == (-32603, "missing program for PTY spawn")
    assert place.error(*RO, command=["/bin/true", "x" * (4 << 20)]) == (
        -32603, "Argument list too long (os error 7)")
    assert place.error(*RO, command=["/bin/true", *["x"] * 70000]) == (
        -32603, "Argument list too long (os error 7)")
    words = ["", " ", "é", "*", "\n", "x" * 100000]
    got = place.run([PYTHON, "-c", "import sys; print(ascii(sys.argv[1:]))", *words], *RO)
    assert got.out == ascii(words) + "\n"


def test_foreign_paths(place):
    """Checked in the reference's order, before argv and the id."""
    far = "file://server/share"
    entry = {"path": {"type": "path", "path": far}, "access": "read"}
    bad_entry = (-32602, f"invalid sandbox permission path URI: '{far}' is invalid on 'linux'")
    place.start("sleep 100", *WW)
    taken = next(iter(place.client.processes))
    text = "is not valid on this exec-server host: "
    for more in ({}, {"argv": []}, {"processId": taken}, {"cwd": far}, {"env": {"A": "\0"}}):
        params = {**place.params("true", (entry,)), **more}
        assert place.client.error("process/start", params) == bad_entry
    assert place.error(*WW, sandbox={**place.sandbox(*WW), "cwd": far}) == (
        -32602, f"sandbox cwd URI `{far}` {text}'{far}' is invalid on 'linux'")
    params = {**place.params("true", WW, sandbox={**place.sandbox(*WW), "cwd": None}), "cwd": far}
    assert place.client.error("process/start", params) == (
        -32602, f"sandbox cwd URI `{far}` {text}'{far}' is invalid on 'linux'")
    assert place.error(sandbox={**place.sandbox(*WW), "workspaceRoots": [far]}) == (
        -32602, f"sandbox workspace root URI `{far}` {text}'{far}' is invalid on 'linux'")
    mxc = {**place.sandbox(entry), "windowsSandboxLevel": "mxc"}
    assert place.error(sandbox=mxc) == (-32602, "native MXC is unavailable on this executor")


def test_glob_that_cannot_be_expanded(place):
    code, text = place.error(*WW, "d glob:/*.txt")
    assert code == -32603 and "/*.txt" in text
    assert place.left() == []


def test_protected_name_that_is_a_link(place):
    """Set-up failures are errors of the start and name the step."""
    place.mkdir("ws/real")
    place.link("ws/.git", "real")
    code, text = place.error(*WW)
    assert code == -32603 and ".git" in text and text.startswith("sandbox: ")
    assert place.left() == [".git"]


def test_id_is_free_after_a_failed_start(place):
    params = place.params(["/no/such/program"], WW)
    for _ in range(3):
        assert place.client.error("process/start", params) == MISSING
    params["argv"] = ["/bin/sh", "-c", "exit 4"]
    place.client.call("process/start", params)
    process = place.client.wait_closed(place.client.processes[params["processId"]])
    assert process.exit_code == 4


def test_lifecycle_notifications(place, servers):
    client = server_of(place, servers).client(notifications=["process/started", "process/failed"])
    place.client, old = client, place.client
    process = place.start("exit 3", *WW)
    client.wait_closed(process)
    params = place.params(["/no/such/program"], WW)
    assert client.error("process/start", params) == MISSING
    client.barrier()
    started, failed = client.other
    assert started["method"] == "process/started" and started["params"]["pid"] > 0
    assert failed["params"] == {"processId": params["processId"], "message": MISSING[1]}
    client.close()
    place.client = old


# Streams.

@PROFILES
def test_output(place, entries):
    got = place.run("echo out; echo err >&2; exit 7", *entries)
    assert (got.out, got.err, got.code) == ("out\n", "err\n", 7)
    got = place.run([PYTHON, "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 12000)"],
                    *entries)
    assert got.code == 0 and len(got.out) > 0


def test_large_output_in_order(place):
    process = place.start("seq 1 200000", *WW)
    place.client.wait_closed(process)
    assert process.output("stdout") == "".join(f"{i}\n" for i in range(1, 200001)).encode()


def test_input(place):
    process = place.start("cat; echo end", *WW, pipeStdin=True)
    data = os.urandom(300000).hex()
    for i in range(0, len(data), 50000):
        place.client.write(process, data[i:i + 50000])
    place.client.ask("closeStdin", process)
    place.client.wait_closed(process)
    assert process.output("stdout").decode() == data + "end\n"
    assert place.run("cat; readlink /proc/self/fd/0", *WW).out == "/dev/null\n"


def test_environment(place):
    """The requested one, and PWD."""
    got = place.run(["/usr/bin/env", "-0"], *WW, env={"A": "1", "LD_X": "kept", "TMPDIR": "/none"})
    assert sorted(got.out.split("\0")) == sorted(
        ["", "A=1", "LC_ALL=C", "LD_X=kept", f"PATH={PATH}", f"PWD={place.ws}", "TMPDIR=/none"])


@MODES
def test_descriptors(place, tty):
    got = place.run([PYTHON, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"],
                    *WW, tty=tty)
    assert got.text == "[0, 1, 2, 3]\n"  # 3 is the directory itself


# Signals.

@MODES
@PROFILES
def test_signal_can_be_handled(place, entries, tty):
    process = place.start("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done",
                          *entries, tty=tty)
    place.client.wait_output(process, "ready")
    assert place.client.interrupt(process) == {}
    got = Result(place.client.wait_closed(process))
    assert "caught" in got.text and got.code == 5 and not got.denied


NUMBERS = {"interrupt": "INT", "terminate": "TERM", "kill": "KILL", "hangup": "HUP",
           "quit": "QUIT", "usr1": "USR1", "usr2": "USR2"}


@pytest.mark.parametrize("word", NUMBERS)
def test_signals(place, word):
    name = NUMBERS[word]
    process = place.start(f"echo ready; exec sleep {procfs.mark()}", *WW)
    place.client.wait_output(process, "ready")
    place.client.ask("signal", process, signal=word)
    place.client.wait_closed(process)
    assert process.exited["signal"] == f"SIG{name}"
    assert process.exit_code == 128 + getattr(signal, f"SIG{name}")
    assert process.exited["sandboxDenied"] is False
    assert place.left() == []


def test_signals_reach_the_group(place):
    """The outer shell sees to its trap when the inner one has ended, which is by the signal."""
    inner = f"trap 'exit 3' INT; echo ready; sleep {procfs.mark()} & wait; exit 4"
    process = place.start(f'trap "exit 8" INT; sh -c "{inner}"; exit 9', *WW)
    place.client.wait_output(process, "ready")
    place.client.interrupt(process)
    assert place.client.wait_closed(process).exit_code == 8


def test_stop_and_continue(place):
    process = place.start("i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done", *WW)
    place.client.wait_output(process, "3\n")
    place.client.ask("signal", process, signal="stop")
    seen = None
    while seen != len(process.output()):  # until nothing comes any more
        seen = len(process.output())
        place.client.pump(0.3)
    place.client.ask("signal", process, signal="continue")
    place.client.wait(lambda: len(process.output()) > seen, "more output")
    place.client.terminate(process)
    place.client.wait_closed(process)


def test_signal_before_it_runs(place, servers):
    """One sent with the start waits for it."""
    client = server_of(place, servers).client()
    place.client, old = client, place.client
    params = place.params(f"trap 'exit 6' TERM; sleep {procfs.mark()} & wait; exit 7", WW)
    ident = client.send("process/start", params)
    client.send("process/signal", {"processId": params["processId"], "signal": "terminate"})
    assert client.result(ident)["sandboxType"] == "linuxSeccomp"
    # The shell may or may not have set its trap by then.
    assert client.wait_closed(client.processes[params["processId"]]).exit_code in (6, 143)
    client.close()
    place.client = old


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT", "HUP", "USR1", "SYS", "BUS"])
def test_killed_by_a_signal(place, name):
    got = place.start(f"kill -{name} $$", *WW)
    place.client.wait_closed(got)
    number = getattr(signal, f"SIG{name}")
    assert (got.exit_code, got.exited["signal"]) == (128 + number, f"SIG{name}")
    assert got.exited["sandboxDenied"] == (name == "SYS")


@pytest.mark.parametrize("code", [0, 1, 2, 101, 127, 128, 137, 254, 255])
def test_exit_codes(place, code):
    process = place.start(f"exit {code}", *WW)
    place.client.wait_closed(process)
    assert process.exit_code == code and "signal" not in process.exited


# Terminals.

def test_controlling_terminal(place):
    got = place.run("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; : </dev/tty && echo open; "
                    "echo x >/dev/stderr; echo y >/dev/stdout; stty size; "
                    "cut -d' ' -f5,6,8 /proc/$$/stat", *WW, tty=True)
    lines = got.text.splitlines()
    assert lines[:5] == ["all", "open", "x", "y", "24 80"], got
    group, session, foreground = lines[5].split()
    assert group == session == foreground
    assert got.code == 0


def test_control_c_runs_the_trap(place):
    """In the reference it kills the whole sandbox."""
    process = place.start("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done",
                          *WW, tty=True)
    place.client.wait_output(process, "ready")
    place.client.write(process, "\x03")
    got = Result(place.client.wait_closed(process))
    assert "caught" in got.text and got.code == 7


def test_job_control(place):
    """An interactive shell: Ctrl-C ends the job, not the shell; Ctrl-Z stops it."""
    process = place.start(["/bin/bash", "--norc", "-i"], *WW, tty=True, env={"PS1": "$ "})
    client = place.client
    client.wait_output(process, "$ ")
    client.write(process, "stty -echo; echo shell-$((40+2))\n")
    client.wait_output(process, "shell-42\r\n")
    # Not before sleep runs: bash forgets a signal that a subshell gets on its way to exec.
    first, second = procfs.mark(), procfs.mark()
    client.write(process, f"sleep {first}\n")
    procfs.wait_marked(first)
    client.write(process, "\x03")
    client.write(process, "echo code-$?\n")
    client.wait_output(process, "code-130")
    client.write(process, f"sleep {second}\n")
    procfs.wait_marked(second)
    client.write(process, "\x1a")
    client.wait_output(process, "Stopped")
    client.write(process, "jobs %1 >/dev/null && echo known-$((2+3))\n")
    client.wait_output(process, "known-5")
    client.write(process, "exec sh -c 'exit 9'\n")
    assert client.wait_closed(process).exit_code == 9
    assert "no job control" not in process.output().decode()


def test_resize(place):
    process = place.start("trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done",
                          *WW, tty=True)
    place.client.wait_output(process, "ready")
    place.client.ask("resize", process, size={"rows": 33, "cols": 99})
    got = Result(place.client.wait_closed(process))
    assert "33 99" in got.text and got.code == 3


def test_end_of_file_on_a_terminal(place):
    process = place.start("stty -echo; echo ready; cat; echo done", *WW, tty=True)
    place.client.wait_output(process, "ready")
    place.client.write(process, "text\n")
    place.client.ask("closeStdin", process)
    assert place.client.wait_closed(process).output().endswith(b"text\r\ndone\r\n")


# Ends.

DAEMON = ("import os, sys\n"
          "for _ in range(2):\n"
          "    if os.fork(): os._exit(0)\n"
          "    os.setsid()\n"
          "os.execv(\"/bin/sleep\", [\"sleep\", sys.argv[1]])\n")


@MODES
def test_background_children_end_with_the_command(place, tty):
    token = procfs.mark()
    process = place.start(f"setsid sleep {token} & sleep {token} & {PYTHON} -c '{DAEMON}' {token}; "
                          "echo ready; read x", *WW, tty=tty, pipeStdin=True)
    place.client.wait_output(process, "ready")
    procfs.wait_marked(token, 3)
    place.client.write(process, "\n")
    place.client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []
    assert place.left() == []


@MODES
@PROFILES
def test_terminate_leaves_nothing(place, servers, entries, tty):
    server, token, before = server_of(place, servers), procfs.mark(), mounts()
    place.client.sync()
    fds = server.fds()
    process = place.start(f"trap '' TERM INT HUP; setsid sleep {token} & "
                          f"{PYTHON} -c '{DAEMON}' {token}; echo ready; exec sleep {token}",
                          *entries, tty=tty, pipeStdin=True)
    place.client.wait_output(process, "ready")
    procfs.wait_marked(token, 3)
    assert place.client.terminate(process) == {"running": True}
    place.client.wait_closed(process)
    assert process.exit_code == 137
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the synthetic directories")
    server.wait_fds(fds)
    procfs.wait_no_zombies(server.pid)
    assert mounts() == before


def test_graceful_terminate(place):
    process = place.start("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done",
                          *WW)
    place.client.wait_output(process, "ready")
    assert place.client.terminate(process, mode="graceful") == {"running": True}
    got = Result(place.client.wait_closed(process))
    assert "bye" in got.out and got.code == 4


def test_graceful_terminate_of_the_deaf(place):
    process = place.start("trap '' TERM; echo ready; while :; do sleep 0.05; done", *WW)
    place.client.wait_output(process, "ready")
    place.client.terminate(process, mode={"type": "graceful", "timeoutMs": 100})
    assert place.client.wait_closed(process).exit_code == 137
    until(lambda: place.left() == [], "removal of the synthetic directories")


def test_timeout(place):
    def attempt(limit):
        params = {**place.params("echo ready; exec sleep 1000", WW), "timeoutMs": limit}
        try:
            place.client.call("process/start", params)
        except RpcError:
            return None
        process = place.client.wait_closed(place.client.processes[params["processId"]])
        return process if process.output() == b"ready\n" else None
    process = patiently(attempt, 300)
    assert process.exited["timedOut"] is True and process.exit_code == 143


def test_neighbours_share_synthetic_directories(place):
    """The end of one takes nothing from the other."""
    first = place.start("echo ready; read x; touch .git/x", *WW, pipeStdin=True)
    second = place.start("echo ready; read x; touch .git/x", *WW, pipeStdin=True)
    for process in (first, second):
        place.client.wait_output(process, "ready")
    place.client.terminate(first)
    place.client.wait_closed(first)
    assert place.left() == sorted(PROTECTED)
    place.client.write(second, "\n")
    got = Result(place.client.wait_closed(second))
    assert got.code != 0 and got.denied and "Read-only file system" in got.err
    until(lambda: place.left() == [], "removal of the synthetic directories")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_end_of_the_server(place, servers, user, number):
    """However the server ends, no process, mount or directory stays."""
    server, token, before = servers.start(user), procfs.mark(), mounts()
    place.client, old = server.client(), place.client
    process = place.start(f"trap '' TERM HUP; setsid sleep {token} & echo ready; exec sleep {token}",
                          *WW)
    place.client.wait_output(process, "ready")
    procfs.wait_marked(token, 2)
    assert place.left() == sorted(PROTECTED)
    server.stop(number, -number if number == signal.SIGKILL else 0)
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the synthetic directories")
    assert mounts() == before
    place.client = old


def test_server_killed_during_starts(place, servers, user):
    server, before = servers.start(user), mounts()
    place.client, old = server.client(), place.client
    token = procfs.mark()
    for _ in range(8):
        place.client.send("process/start", place.params(["/bin/sleep", token], WW))
    until(place.left, "a start that is under way")
    server.stop(signal.SIGKILL, -signal.SIGKILL)
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the synthetic directories")
    assert mounts() == before
    place.client = old


def test_end_of_a_session(place, servers, user):
    """Nothing in a sandbox is spared, whatever it did to its session."""
    server, token = servers.start(user, "--session-ttl", "0", "--keep-detached"), procfs.mark()
    place.client, old = server.client(), place.client
    process = place.start(f"setsid sleep {token} & echo ready; exec sleep {token}", *WW)
    place.client.wait_output(process, "ready")
    procfs.wait_marked(token, 2)
    place.client.close()
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the synthetic directories")
    place.client = old
    server.stop()


def test_shutdown_with_grace(place, servers, user):
    """SIGTERM reaches the command, not just what is around it."""
    server = servers.start(user, "--shutdown-grace-ms", "60000")
    place.client, old = server.client(), place.client
    process = place.start("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done",
                          *WW)
    place.client.wait_output(process, "ready")
    server.send_signal(signal.SIGTERM)
    got = Result(place.client.wait_closed(process))
    assert "bye" in got.out and got.code == 4
    assert server.wait() == 0
    place.client = old


def test_cancelled_start(place, servers, user):
    """A terminate that overtakes the start's end."""
    server = servers.start(user, "--concurrent-requests", "8")
    place.client, old = server.client(), place.client
    for _ in range(10):
        params = place.params(["/bin/sleep", "1000"], WW)
        ident = place.client.send("process/start", params)
        place.client.call("process/terminate", {"processId": params["processId"]})
        try:
            place.client.result(ident)
            place.client.wait_closed(place.client.processes[params["processId"]])
        except RpcError as e:
            assert e.message == f"process {params['processId']} start was cancelled"
    until(lambda: place.left() == [], "removal of the synthetic directories")
    place.client = old
    server.stop()


# Limits.

def limited(place, script, entries=WW, **limits):
    params = {**place.params(script, entries), "limits": limits}
    place.client.call("process/start", params)
    return Result(place.client.wait_closed(place.client.processes[params["processId"]]))


def test_limits(place):
    assert limited(place, "ulimit -Sn; ulimit -Hn", openFiles=17).out == "17\n17\n"
    level = max(7, os.nice(0))
    assert limited(place, "nice", nice=level).out == f"{level}\n"
    assert limited(place, "cat /proc/self/oom_score_adj", oomScoreAdj=321).out == "321\n"


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more address space")
def test_memory_limit(place):
    hog = f"{PYTHON} -c 'x = b\"x\" * (1 << 30)'"
    assert limited(place, hog, memoryBytes=256 << 20).code != 0
    assert limited(place, "echo fine", memoryBytes=256 << 20).out == "fine\n"


def test_descriptor_limit_is_the_servers_first_one(servers, user, place):
    def few():
        import resource  # pylint: disable=import-outside-toplevel
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 4000))
    server = servers.start(user, preexec=few)
    place.client, old = server.client(), place.client
    assert place.run("ulimit -Sn; ulimit -Hn", *WW).out == "300\n4000\n"
    place.client = old
    server.stop()


# Denial.

KEYWORDS = ("operation not permitted", "permission denied", "read-only file system", "seccomp",
            "sandbox", "landlock", "failed to write file")


@pytest.mark.parametrize("script, denied", [
    ("echo x >/etc/x", True),
    ("echo x >/etc/x; exit 0", False),
    ("exit 1", False),
    ("no-such-command", False),
    ("echo Permission denied; exit 3", True),
    ("echo Permission denied >&2; exit 3", True),
    ("echo permission; echo denied >&2; exit 3", False),
    ("echo SECCOMP; exit 127", True),
    ("echo sandbox; exit 126", True),
    ("exit 159", True),
    ("kill -SYS $$", True),
    ("kill -KILL $$", False),
    ("kill -TERM $$", False),
    ("echo sandbox; head -c 2000000 /dev/zero; exit 3", False),
    ("head -c 2000000 /dev/zero; echo sandbox; exit 3", True),
    (f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'", True),
], ids=lambda v: v if isinstance(v, str) else str(v))
def test_denied(place, script, denied):
    process = place.start(script, *RO)
    place.client.wait_closed(process)
    assert process.exited["sandboxDenied"] is denied, Result(process)
    assert place.client.read(process)["sandboxDenied"] is denied
    assert place.client.ask("snapshot", process)["sandboxDenied"] is denied
    assert place.client.ask("wait", process)["sandboxDenied"] is denied


@pytest.mark.parametrize("word", KEYWORDS)
def test_denial_keywords(place, word):
    assert place.run(f"echo 'x: {word.upper()}.' >&2; exit 1", *RO).denied
    assert place.run(f"printf '{word}'; exit 1", *RO, tty=True).denied
    assert not place.run(f"printf '{word[:-1]}'; exit 1", *RO).denied


@pytest.mark.parametrize("sandbox, denied", [
    (None, False), (context({"type": "disabled"}), True),
    (context({"type": "external", "network": "enabled"}), True),
    (context(managed(OPEN, "enabled")), True)], ids=str)
def test_any_sandbox_object_counts(place, sandbox, denied):
    params = {**place.params("echo Permission denied; exit 3", ()), "sandbox": sandbox}
    place.client.call("process/start", params)
    process = place.client.wait_closed(place.client.processes[params["processId"]])
    assert process.exit_code == 3 and process.exited["sandboxDenied"] is denied
    assert place.client.read(process)["sandboxDenied"] is denied


def test_denied_only_when_it_has_exited(place):
    process = place.start("echo sandbox; read x; exit 3", *WW, pipeStdin=True)
    place.client.wait_output(process, "sandbox")
    assert place.client.read(process)["sandboxDenied"] is False
    place.client.write(process, "\n")
    assert place.client.wait_closed(process).exited["sandboxDenied"] is True


def test_connection_refused_is_no_denial(place):
    script = f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'"
    got = place.run(script, *WW, network="enabled")
    assert got.code == 1 and "refused" in got.err and not got.denied


# PID namespace.

def test_pid_namespaces(place, servers, user):
    script = f"echo $$; kill -0 {os.getpid()} && echo sees; ls /proc | grep -c '^[0-9]'"
    got = place.run(script, *WW).out.split()
    assert int(got[0]) < 10 and len(got) == 2 and int(got[1]) < 10
    server = servers.start(user, "--linux-sandbox-pid-namespace", "inherit")
    place.client, old = server.client(), place.client
    process = place.start("echo $$; read x", *WW, pipeStdin=True)
    place.client.wait_output(process, "\n")
    pid = int(process.output())
    assert procfs.alive(pid) and procfs.describe(pid).endswith("read x\\x00'")
    place.client.write(process, "\n")
    place.client.wait_closed(process)
    token = procfs.mark()
    process = place.start(f"setsid sleep {token} & echo ready; exec sleep {token}", *WW)
    place.client.wait_output(process, "ready")
    procfs.wait_marked(token, 2)
    place.client.terminate(process)
    place.client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []
    process = place.start(f"setsid sleep {token} & echo ready", *WW)
    place.client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [], "removal of the synthetic directories")
    place.client = old
    server.stop()


# Managed networks.

CONNECT = (f"{PYTHON} -c 'import socket, sys\n"
           "for port in sys.argv[1:]:\n"
           "    try:\n"
           "        s = socket.create_connection((\"127.0.0.1\", int(port)), 10)\n"
           "        s.sendall(b\"ping\")\n"
           "        print(s.recv(10).decode())\n"
           "    except OSError as e:\n"
           "        print(type(e).__name__)' ")


def test_managed_network(place):
    """The ports that are named lead to the host's, nothing else does."""
    with socket.create_server(("127.0.0.1", 0)) as known, \
            socket.create_server(("127.0.0.1", 0)) as other:
        ports = [s.getsockname()[1] for s in (known, other)]
        network = {"loopbackPorts": ports[:1], "allowLocalBinding": False}
        process = place.start(CONNECT + f"{ports[0]} {ports[1]}", *WW, enforceManagedNetwork=True,
                              managedNetwork=network)
        known.settimeout(PATIENCE)
        peer, _ = known.accept()
        with peer:
            assert peer.recv(10) == b"ping"
            peer.sendall(b"pong")
            got = Result(place.client.wait_closed(process))
        assert got.out.split()[0] == "pong" and "Error" in got.out.split()[1], got


def test_managed_network_confines_what_nothing_else_does(place):
    sandbox = {"permissions": {"type": "disabled"}}
    got = place.run("touch ../x; ls /sys/class/net || true; " + CONNECT + "1", sandbox=sandbox,
                    enforceManagedNetwork=True)
    assert got.code == 0 and "Error" in got.out, got
    assert (place.base / "x").exists()


def test_managed_network_needs_to_be_enforced(place):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        got = place.run(f"{PYTHON} -c 'import socket; "
                        f"socket.create_connection((\"127.0.0.1\", {port}))'",
                        sandbox=context({"type": "disabled"}), managedNetwork={"loopbackPorts": []})
        assert got.code == 0, got
    assert place.error(*WW, enforceManagedNetwork=True,
                       managedNetwork={"loopbackPorts": [1] * 1025}) == (
        -32602, "managedNetwork has more than 1024 loopbackPorts")


# Backends.

NO_LANDLOCK = r"""
import ctypes, os, struct, sys
number = 444  # landlock_create_ruleset, on every architecture
code = struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, number,
                   0x06, 0, 0, 0x00050000 | 38, 0x06, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
FILE_CALLS = {"readFile": {}, "open": {"handleId": "h"}, "getMetadata": {}, "readDirectory": {},
              "writeFile": {"dataBase64": "eA=="}, "remove": {}}
POWERLESS = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")


@pytest.fixture
def crippled(servers, place):
    """Starts a server on a host that cannot do everything: without user namespaces and ..."""
    def start(*wrapper):
        server = servers.fleet.start(binary=servers.program, cwd="/",
                                     wrapper=[*user_limit("max_user_namespaces", 0), *wrapper])
        place.client = server.client()
        return place
    old = place.client
    yield start
    place.client = old


ROOT_IDS = pytest.mark.parametrize("user", [next(iter(users()))])


@ROOT_IDS
def test_backend_root(crippled, user):  # pylint: disable=unused-argument
    """... with the capabilities for the other ones."""
    place = crippled()
    assert place.client.call("environment/info")["sandboxBackend"] == "root"
    place.mkdir("ws/.git")
    place.put("ws/secret/x")
    got = place.tries(["touch a", "touch .git/x", "touch ../x", "cat secret/x", "mkdir .codex",
                       "echo $$", "grep -c 'CapEff:.0*$' /proc/self/status"],
                      *WW, "d ws/secret")
    assert got == ["ok", "Read-only file system", "Read-only file system", "Permission denied",
                   "File exists", "2", "1"]
    assert place.error(*WW, command=["/no/such/program"]) == MISSING
    token = procfs.mark()
    process = place.start(f"setsid sleep {token} & echo ready; exec sleep {token}", *WW)
    place.client.wait_output(process, "ready")
    place.client.terminate(process)
    place.client.wait_closed(process)
    assert procfs.wait_marked(token, 0) == []
    until(lambda: place.left() == [".git"], "removal of the synthetic directories")


@ROOT_IDS
def test_backend_landlock(crippled, user):  # pylint: disable=unused-argument
    """... without them: what Landlock alone can enforce."""
    place = crippled(*POWERLESS)
    info = place.client.call("environment/info")
    assert info["sandboxBackend"] == "landlock"
    assert info["capabilities"]["linuxRootWritePreservesDevices"] is False
    assert place.tries(["touch a", "touch ../x", "cat /etc/hostname >/dev/null"], *RO) == [
        "Permission denied", "Permission denied", "ok"]
    got = place.run(CONNECT + "1", *RO)
    assert "PermissionError" in got.out
    place.put("ws/file")
    assert place.tries(["echo y >file", "touch a"], *RO, "w ws/file") == ["ok", "Permission denied"]
    assert (place.ws / "file").read_text() == "y\n"
    code, text = place.error(*WW)
    assert code == -32603 and "Landlock alone cannot" in text
    code, text = place.error(*MIN)
    assert code == -32603 and "user.max_*_namespaces" in text and "os error 28" in text
    code, text = place.error(*RO, "d ws")
    assert code == -32603
    process = place.start("trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done", *RO)
    place.client.wait_output(process, "ready")
    place.client.ask("signal", process, signal="terminate")
    assert place.client.wait_closed(process).exit_code == 6


@ROOT_IDS
def test_no_backend(crippled, user):  # pylint: disable=unused-argument
    """Nothing runs unconfined instead."""
    place = crippled(*POWERLESS, PYTHON, "-c", NO_LANDLOCK)
    assert place.client.call("environment/info")["sandboxBackend"] is None
    for entries in (RO, WW, MIN):
        code, text = place.error(*entries, command=["/bin/touch", "x"])
        assert code == -32603 and text.startswith("sandbox: ") and "user.max_" in text, text
    assert os.listdir(place.ws) == []
    assert place.client.run(["/bin/touch", str(place.ws / "y")]).exit_code == 0
    calls = Calls(place, *MIN)
    for method, more in FILE_CALLS.items():
        code, text = calls.error(method, place.ws / "y", **more)
        assert code == -32603 and "sandbox: " in text and "user.max_" in text, (method, text)
    assert os.listdir(place.ws) == ["y"] and (place.ws / "y").stat().st_size == 0


@ROOT_IDS
def test_executable_without_landlock(servers, place, user):  # pylint: disable=unused-argument
    """The server's program, which a command can name as its own, cannot be written to."""
    server = servers.fleet.start(binary=servers.program, cwd="/",
                                 wrapper=[PYTHON, "-c", NO_LANDLOCK])
    place.client, old = server.client(), place.client
    log = f"--audit-log={place.ws}/{procfs.mark()}"
    process = place.start(["/proc/self/exe", "--listen", "stdio", log], *WW, pipeStdin=True)
    pid, = procfs.wait_marked(log)
    assert os.readlink(f"/proc/{pid}/exe").startswith("/memfd:")
    fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY)
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
    os.close(fd)
    place.client.terminate(process)
    place.client.wait_closed(process)
    place.client = old


def test_doctor(servers, user):
    code, text, err = run("doctor")
    assert (code, err) == (0, "")
    assert "  userns    yes, in use\n" in text and "Every sandbox policy can be enforced." in text
    assert f"Kernel: Linux {os.uname().release}" in text
    assert run("doctor", "now")[0] == 2
    if user == "root":
        limited = [*user_limit("max_user_namespaces", 0), *POWERLESS]
        done = subprocess.run([*limited, servers.program, "doctor"], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1 and done.stderr == ""
        assert "  userns    no: " in done.stdout and "  landlock  yes, in use\n" in done.stdout
        assert "Some sandbox policies can be enforced, others are refused." in done.stdout


# Many.

def namespaces():
    """Mount namespaces of what we started, orphans included: those are ours then."""
    found = set()
    for pid in procfs.descendants(os.getpid()):
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/mnt"))
        except OSError:
            pass
    return found


@pytest.mark.limit(1800)
def test_many_in_a_row(place, servers):
    count = int(os.environ.get("E2E_SANDBOX_COMMANDS", "100"))
    server = server_of(place, servers)
    place.run("true", *WW)
    fds, before, known = server.fds(), mounts(), namespaces()
    for i in range(count):
        assert place.run(f"touch f; exit {i % 200}", *WW).code == i % 200
    until(lambda: place.left() == [], "removal of the synthetic directories")
    server.wait_fds(fds)
    procfs.wait_no_zombies(server.pid)
    assert mounts() == before and len(server.fd_targets()) <= fds
    until(lambda: namespaces() <= known, "end of the namespaces")


@pytest.mark.limit(1800)
def test_many_at_once(place, servers):
    count = 100 if "E2E_SANDBOX_COMMANDS" in os.environ else 30
    server = server_of(place, servers)
    place.run("true", *WW)
    fds, before, known = server.fds(), mounts(), namespaces()
    running = [place.start("echo ready; read x; exit 5", *WW, pipeStdin=True) for _ in range(count)]
    for process in running:
        place.client.wait_output(process, "ready", 120)
    assert place.left() == sorted(PROTECTED)
    for i, process in enumerate(running):
        if i % 3 == 0:
            place.client.terminate(process)
        else:
            place.client.write(process, "\n")
    for i, process in enumerate(running):
        place.client.wait_closed(process, 120)
        assert process.exit_code == (137 if i % 3 == 0 else 5)
    until(lambda: place.left() == [], "removal of the synthetic directories")
    server.wait_fds(fds)
    procfs.wait_no_zombies(server.pid)
    assert mounts() == before
    until(lambda: namespaces() <= known, "end of the namespaces")
