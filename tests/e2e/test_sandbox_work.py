"""Work in a sandbox: protected names while others work there too, what is found, programs."""

import os
import subprocess

import pytest

from harness import procfs
from harness.sandbox import PROTECTED, READ_ONLY, place, servers, user
from harness.waiting import until

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"


def ready(place, process):
    place.client.wait_output(process, "ready")
    return process


def clean(place):
    until(lambda: place.left() == [], "end of the directories that held protected names")


# The directories that hold the places of protected names.

# Tried once more, after another sandbox of the same workspace has ended.
LATER = "echo ready; read x; for n in .git .agents .codex .aws; do mkdir -p $n/x && echo made; done"
NAMED = [R, PR, "r :project_roots/.git", "r :project_roots/.agents", "r :project_roots/.codex"]


@pytest.mark.parametrize("end", ["exit", "terminate"])
@pytest.mark.parametrize("entries", [[R, PR], NAMED], ids=["implied", "named"])
def test_two_sandboxes_in_one_workspace(place, end, entries):
    first = ready(place, place.start("echo ready; read x", *entries, pipeStdin=True))
    second = ready(place, place.start(LATER, *entries, pipeStdin=True))
    if end == "exit":
        place.client.write(first, "\n", writeId="1")
    else:
        place.client.terminate(first)
    place.client.wait_closed(first)
    place.client.barrier()
    assert place.left() == sorted(PROTECTED)
    place.client.write(second, "\n", writeId="1")
    place.client.wait_closed(second)
    assert b"made" not in second.output()
    clean(place)


def test_sandboxes_of_one_workspace_one_after_another(place):
    """While one ends another begins, all the time."""
    running = ready(place, place.start(LATER, R, PR, pipeStdin=True))
    for _ in range(10):
        following = place.start(LATER, R, PR, pipeStdin=True)
        place.client.write(running, "\n", writeId="1")
        ready(place, following)
        place.client.wait_closed(running)
        assert b"made" not in running.output()
        assert place.left() == sorted(PROTECTED)
        running = following
    place.client.write(running, "\n", writeId="1")
    place.client.wait_closed(running)
    assert b"made" not in running.output()
    clean(place)


def test_what_the_host_puts_there_stays(place):
    process = ready(place, place.start("echo ready; read x; ls -A .git", R, PR, pipeStdin=True))
    (place.ws / ".git/config").write_text("mine")
    place.client.write(process, "\n", writeId="1")
    place.client.wait_closed(process)
    until(lambda: place.left() == [".git"], "end of the other directories")
    assert (place.ws / ".git/config").read_text() == "mine"
    assert process.output() == b"ready\n"


def test_name_made_and_removed_by_the_host(place):
    """A directory of the host that takes the place of ours is not ours to remove."""
    process = ready(place, place.start("echo ready; read x", R, PR, pipeStdin=True))
    os.rmdir(place.ws / ".git")
    os.mkdir(place.ws / ".git")
    place.client.write(process, "\n", writeId="1")
    place.client.wait_closed(process)
    until(lambda: place.left() == [".git"], "end of the other directories")


def test_read_only_start_makes_nothing(place):
    process = ready(place, place.start("echo ready; read x", R, pipeStdin=True))
    assert place.left() == []
    place.client.write(process, "\n", writeId="1")
    place.client.wait_closed(process)


def test_failed_start_makes_nothing(place):
    assert place.error(R, PR, command=["/no/such/program"])[0] == -32603
    clean(place)


def test_no_mount_reaches_the_host(place):
    def mounts():
        with open("/proc/self/mountinfo", encoding="ascii", errors="replace") as f:
            return [line for line in f if str(place.base) in line or "/dev/shm" in line]
    before = mounts()
    process = ready(place, place.start("echo ready; read x", R, PR, "w /dev/shm", pipeStdin=True))
    assert mounts() == before
    place.client.write(process, "\n", writeId="1")
    place.client.wait_closed(process)
    assert mounts() == before


# Terminals and streams.

def test_suspended_job(place):
    process = place.start(["/bin/bash", "--norc", "-i"], R, tty=True,
                          env={"PS1": "$ ", "HISTFILE": ""})
    token = procfs.mark()
    place.client.write(process, f"sleep {token}\n", writeId="1")
    procfs.wait_marked(token)
    place.client.write(process, "\x1a", writeId="2")
    place.client.wait_output(process, "Stopped")
    place.client.write(process, "kill -9 %1\n", writeId="3")
    procfs.wait_marked(token, 0)
    # The first is refused when the shell has not yet seen that the job is gone.
    place.client.write(process, "exit 9\nexit 9\n", writeId="4")
    place.client.wait_closed(process)
    assert process.exit_code == 9


def test_standard_streams_can_be_reopened(place):
    got = place.run("echo a >/dev/stdout; echo b >/dev/stderr; cat </dev/stdin", R, tty=False)
    assert sorted(got.text.split()) == ["a", "b"] and got.code == 0
    got = place.run("echo a >/dev/stdout; echo b >/dev/stderr; echo c >/dev/tty", R, tty=True)
    assert got.text.split() == ["a", "b", "c"] and got.code == 0


# What a command finds.

def test_identity(place):
    got = place.tries(["id -u", "id -g", "hostname", "umask", "cat /proc/self/setgroups",
                       "stat -c %u .", "stat -c %u /usr"], R)
    assert got[:3] == [str(place.uid), str(place.uid), os.uname().nodename]
    assert got[4] == "deny" and got[5] == str(place.uid)
    assert got[6] == ("0" if place.uid == 0 else "65534")


def test_privileges(place):
    got = place.tries(["grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status | tr -s '\\t\\n' ' '"], R)
    none = "0" * 16
    assert got == [f"CapInh: {none} CapPrm: {none} CapEff: {none} CapBnd: {none} CapAmb: {none} "
                   "NoNewPrivs: 1 Seccomp: 2 "]


@pytest.mark.parametrize("network", ["restricted", "enabled"])
def test_namespaces(place, servers, user, network):
    kinds = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
    got = place.tries([f"readlink /proc/self/ns/{k}" for k in kinds], R, network=network)
    host = [os.readlink(f"/proc/{servers.get(user).pid}/ns/{k}") for k in kinds]
    same = {k for k, a, b in zip(kinds, got, host) if a == b}
    assert same == ({"net"} if network == "enabled" else set())


def test_processes_seen(place):
    got = place.tries(["ls /proc | grep -c '^[0-9]'", "cat /proc/1/comm"], R)
    assert int(got[0]) <= 6 and not got[1].startswith("systemd")


def test_bash_does_not_believe_in_rshd(place):
    """It asks whether its stdin is a socket when SHLVL is not set."""
    place.put("home/.bashrc", "echo sourced\n")
    for network in ("restricted", "enabled"):
        got = place.run(["/bin/bash", "-c", "echo hi"], R, network=network,
                        env={"HOME": place.path("home")})
        assert got.text == "hi\n"


# Network.

LISTEN = ["/usr/bin/python3", "-c", "import socket; s = socket.create_server(('127.0.0.1', 0)); "
          "c = socket.create_connection(s.getsockname()); print('connected')"]


def test_network(place):
    assert place.run(LISTEN, R, network="enabled").text == "connected\n"
    got = place.run(LISTEN, R)
    assert got.code == 1 and got.denied and "Operation not permitted" in got.text


# Programs that people run in a workspace.

def git(place, *words, where="repo"):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place.base), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-c", "safe.directory=*", "-c", "user.name=n", "-c", "user.email=e",
                    *words], cwd=place.base / where, env=env, check=True, capture_output=True)


def repository(place):
    place.put("repo/a", "one\n")
    place.mkdir("repo/sub")
    git(place, "init", "-q")
    git(place, "add", "a")
    git(place, "commit", "-qm", "first")
    subprocess.run(["chown", "-R", f"{place.uid}:{place.uid}", place.base / "repo"], check=True)


GIT = "git -c safe.directory='*' -c user.name=n -c user.email=e"


def test_git_reads(place):
    repository(place)
    got = place.tries([f"{GIT} log --format=%s", f"echo two >>a; {GIT} diff --stat | tail -1",
                       f"{GIT} status --short"], R, PR, roots=["repo"], at="repo")
    assert got[0] == "first" and "1 insertion" in got[1] and got[2] == " M a"
    got = place.tries([f"{GIT} rev-parse --show-toplevel"], R, PR, roots=["repo/sub"],
                      at="repo/sub")
    assert got == [place.path("repo")]


def test_git_does_not_write(place):
    repository(place)
    got = place.run(f"echo two >>a; {GIT} add a", R, PR, roots=["repo"], at="repo")
    assert got.code != 0 and got.denied and READ_ONLY in got.text


def test_git_writes_where_it_is_granted(place):
    repository(place)
    got = place.run(f"echo two >>a; {GIT} commit -qam second; {GIT} log --format=%s", R, PR,
                    "w repo/.git", roots=["repo"], at="repo")
    assert got.text == "second\nfirst\n"


def test_linked_worktree(place):
    repository(place)
    git(place, "worktree", "add", "-q", "../linked")
    subprocess.run(["chown", "-R", f"{place.uid}:{place.uid}", place.base], check=True)
    got = place.tries([f"{GIT} status --short", f"{GIT} log --format=%s", "touch n",
                       "touch ../repo/.git/worktrees/linked/x"], R, PR, "w repo",
                      roots=["linked"], at="linked")
    assert got == ["ok", "first", "ok", READ_ONLY]
    got = place.run(f"touch n; {GIT} add n; {GIT} commit -qm second; {GIT} log --format=%s",
                    R, PR, "w repo/.git", "w repo/.git/worktrees/linked", roots=["linked"],
                    at="linked")
    assert got.text == "second\nfirst\n"


def test_compiler_and_make(place):
    place.put("ws/m.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); }\n")
    place.put("ws/Makefile", "all: m\n\t@./m\nm: m.c\n\t@cc -o $@ $<\n")
    place.mkdir("tmp")
    got = place.run("make -j2", R, PR, "w :tmpdir", env={"TMPDIR": place.path("tmp")})
    assert got.text == "built\n", got
    got = place.run("make -B", "r :minimal", PR)
    assert got.text == "built\n", got


ASYNC = """
import asyncio, concurrent.futures, multiprocessing, subprocess, tempfile, threading
async def main():
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print(await loop.run_in_executor(pool, sum, [1, 2]))
    process = await asyncio.create_subprocess_exec('echo', 'sub', stdout=subprocess.PIPE)
    print((await process.communicate())[0].decode().strip())
    print(await asyncio.to_thread(threading.current_thread) is not None)
asyncio.run(main())
with multiprocessing.Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
with tempfile.NamedTemporaryFile(dir='.') as f:
    print('temporary')
"""


def test_python(place):
    place.put("ws/a.py", ASYNC)
    got = place.run(["/usr/bin/python3", "a.py"], R, PR)
    assert got.text.split("\n")[:-1] == ["3", "sub", "True", "[1, 2]", "temporary"], got


def test_temporary_files_in_a_minimal_sandbox(place):
    got = place.run("f=$(mktemp) && echo x >$f && cat $f", "r :minimal", PR)
    assert got.text == "x\n", got


