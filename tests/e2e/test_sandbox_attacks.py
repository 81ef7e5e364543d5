"""Ways out of a sandbox that were open once, or nearly: each as an attacker would go it."""

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import sandbox
from harness.sandbox import BUSY, DENIED, PROTECTED, READ_ONLY
from harness.settings import BINARY, PATIENCE

place, servers, user = sandbox.place, sandbox.servers, sandbox.user  # fixtures

RUN = Path(BINARY).parent / "tests" / "sandbox" / "sandbox-run"
MARK = 1163412802  # modification time of a directory that holds a place
WORK = ("r :root", "w :project_roots")
# As the usual client says it.
USUAL = (*WORK, "r :project_roots/.git", "r :project_roots/.agents", "r :project_roots/.codex")


def mark(path):
    os.utime(path, (MARK, MARK))


# What leads past the mounts: files of the host that the command has not by a name.

def state(path):
    st = os.stat(path)
    return st.st_mode, st.st_mtime_ns, st.st_ctime_ns, st.st_size


def test_own_program(place, servers):
    """The command's first program may be the launcher's own, by a name that no mount covers: a
    whole server in the sandbox, whose children name its file."""
    before = state(servers.program)
    process = place.start(["/proc/self/exe", "--listen", "stdio"], "r :root", pipeStdin=True)
    attack = "chmod 4777 /proc/$PPID/exe; chmod 0 /proc/$PPID/exe; echo x >>/proc/$PPID/exe; " \
             "touch /proc/$PPID/exe; echo tried"
    lines = [
        {"id": 1, "method": "initialize", "params": {"clientName": "inner"}},
        {"method": "initialized"},
        {"id": 2, "method": "process/start", "params": {
            "processId": "p", "argv": ["/bin/sh", "-c", attack], "cwd": "file:///", "env": {},
            "tty": False, "pipeStdin": False, "arg0": None}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    place.client.write(process, text.encode())
    place.client.wait_output(process, b'"process/closed"')
    place.client.terminate(process)
    place.client.wait_closed(process)
    assert state(servers.program) == before
    assert place.run("echo ok", "r :root").out == "ok\n"


def test_null_by_descriptor(place):
    """Where there is no input the command has the host's /dev/null."""
    before = state("/dev/null")
    script = "import os; os.fchmod(0, 0o666)"  # what it is: a hole must not break the host
    result = place.run(["/usr/bin/python3", "-c", script], "r :root")
    assert result.code == 1 and ("Errno 30" in result.err or "Errno 1]" in result.err), result
    assert state("/dev/null") == before
    assert place.run("read x; echo $?; cat </dev/null; echo y >/dev/null", "r :root").out == "1\n"


# Directories that hold places, as others see and touch them.

def test_a_mark_hides_nothing(place):
    """Times can be set by anybody: what has the mark and is not empty is an ordinary directory."""
    place.put("hidden/secret", "secret\n")
    place.put("ws/.git/config", "[core]\n")
    place.put("ws/sub/file")
    for name in ("hidden", "ws/.git", "ws/sub", "ws"):
        mark(place.path(name))
    tried = place.tries(["cat ../hidden/secret", "cat .git/config", "echo x >.git/config",
                         "echo x >sub/file", "echo x >new && cat new"],
                        *WORK, "d hidden", "r ws/sub")
    assert tried == [DENIED, "[core]", READ_ONLY, READ_ONLY, "x"]
    assert (place.ws / ".git/config").read_text() == "[core]\n"


def test_nobody_else_holds_a_place(place):
    """Without its lock a place would be removed under the mount, by the end of another sandbox."""
    path = place.mkdir("ws/.git")
    mark(path)
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        code, text = place.error(*WORK)
        assert code == -32603 and f"{place.ws}/.git" in text and "os error 11" in text
    finally:
        os.close(fd)
    assert place.run("ls -A", *WORK).out.split() == sorted(PROTECTED)
    assert place.left() == []


@pytest.mark.parametrize("entries", [WORK, USUAL, (*WORK, "d ws/.git")],
                         ids=["work", "usual", "denied"])
def test_place_not_marked_yet(place, entries):
    """Another sandbox makes a placeholder, then marks it: one that comes between must hold it too."""
    path = place.mkdir("ws/.git")
    process = place.start("echo ready; read x; mkdir .git/x; rmdir .git; mkdir -p .git/x", *entries,
                          pipeStdin=True)
    place.client.wait_output(process, "ready")
    mark(path)
    fd = os.open(path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)
    place.client.write(process, b"\n")
    assert place.client.wait_closed(process).exit_code == 1
    assert place.left() == []  # nobody else is there to remove it


@pytest.mark.parametrize("entries", [WORK, USUAL], ids=["work", "usual"])
def test_root_without_write_permission(place, entries):
    """Its owner can give it back: the places must be held before."""
    place.ws.chmod(0o555)
    code, text = place.error(*entries)
    assert code == -32603 and "os error 13" in text and str(place.ws) in text
    for name in PROTECTED:
        place.ws.chmod(0o755)
        place.mkdir(f"ws/{name}")
    place.ws.chmod(0o555)
    tried = place.tries(["chmod u+w . && mv .git x", "touch .git/x"], *entries)
    assert tried == [BUSY, READ_ONLY]


def test_write_permission_taken_away(place):
    """A command can keep its placeholders from being removed; the next sandbox must hold them."""
    assert place.run("chmod a-w .", *WORK).code == 0
    assert place.left() == sorted(PROTECTED)
    tried = place.tries(["chmod u+w . && mkdir .git/hooks", "mv .git x", "rmdir .git"], *WORK)
    assert tried == [READ_ONLY, BUSY, BUSY]
    assert place.left() == []


@pytest.mark.parametrize("entries", [WORK, USUAL], ids=["work", "usual"])
def test_directory_of_a_git_file(place, entries):
    place.put("other/real/config", "[core]\n")
    place.put("ws/.git", f"gitdir: {place.base}/other/real\n")
    tried = place.tries(["echo x >>../other/real/config", "mv ../other/real ../other/x",
                         "touch ../other/file", "echo x >.git"], *entries, roots=("ws", "other"))
    assert tried == [READ_ONLY, BUSY, "ok", READ_ONLY]


@pytest.mark.parametrize("mode", ["0", "111", "311"])
def test_matches_in_an_unlisted_directory(place, mode):
    """One command closes a directory, so that the next one's patterns do not find what is in it."""
    place.put("ws/sub/.env", "secret\n")
    entries = (*WORK, f"d glob:{place.ws}/**/.env")
    assert place.tries([f"chmod {mode} sub"], *entries) == ["ok"]
    tried = place.tries(["chmod 755 sub", "cat sub/.env", "rm sub/.env", "mv sub x; cat x/.env"],
                        *entries)
    assert tried == ["ok", DENIED, BUSY, DENIED]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give away a group")
@pytest.mark.parametrize("mode", ["0", "100", "600", "644"])
def test_matches_in_a_directory_of_a_foreign_group(place, mode):
    """Where the group is not of the namespace, its capabilities open no directory either."""
    place.put("ws/sub/.env", "secret\n")
    os.chown(place.ws / "sub", place.uid, 54321)
    entries = (*WORK, f"d glob:{place.ws}/**/.env")
    assert place.tries([f"chmod {mode} sub"], *entries) == ["ok"]
    tried = place.tries(["chmod 755 sub", "cat sub/.env", "mv sub x"], *entries)
    assert tried == [READ_ONLY, DENIED, BUSY]


def test_names_in_errors(place):
    """A workspace decides what the text of a refusal holds: it must be JSON all the same."""
    raw = os.fsencode(place.ws) + b"/a\xff\n\"\x7f"
    os.symlink(raw + b"b", place.ws / "link")
    os.symlink("/etc", raw + b"b")
    code, text = place.error(*WORK, "r ws/link/x")
    assert code == -32603 and "crosses writable symlink" in text
    os.unlink(place.ws / "link")
    os.symlink(raw + b"b", place.ws / ".git")
    code, text = place.error(*WORK)
    assert code == -32603 and text.endswith(f"{place.ws}/.git")


# The kernel's objects that have an owner, but no file system to protect them.

INTO_CGROUP = """
import ctypes, os, struct, sys
fd = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
# struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, ..., cgroup
args = struct.pack("11Q", 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, fd)
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(435, args, len(args))
if pid == 0:
    os._exit(0)
print("made" if pid > 0 else os.strerror(ctypes.get_errno()))
"""


def test_another_control_group(place):
    """A child can be born into one by a descriptor for reading."""
    with open("/proc/self/mounts", encoding="ascii", errors="replace") as f:
        groups = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    if not groups:
        pytest.skip("no cgroup2 here")
    command = ["/usr/bin/python3", "-c", INTO_CGROUP, groups[0]]
    assert place.run(command, "r :root").out == "Function not implemented\n"
    threads = "import threading; t = threading.Thread(target=print); t.start(); t.join()"
    assert place.run(["/usr/bin/python3", "-c", threads], "r :root").out == "\n"


def test_lease_of_a_readable_file(place):
    """A lease would hold up every process that opens the file, and file calls of the server too."""
    path = place.put("file")
    script = "import fcntl, os, sys\n" \
             "fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)"
    result = place.run(["/usr/bin/python3", "-c", script, str(path)], "r :root")
    assert result.code == 1 and "Operation not permitted" in result.err, result


# Hosts that lack something, by the launcher alone.

def launched(*args):
    """Runs a command in a sandbox without a server."""
    if not RUN.exists():
        pytest.skip("built without tests")
    return subprocess.run([RUN, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)


def test_attributes_with_landlock_alone(tmp_path):
    """Landlock knows nothing of ioctl() on files."""
    path = tmp_path / "file"
    path.write_text("content\n")
    script = "import fcntl, os, struct, sys\n" \
             "fd = os.open(sys.argv[1], os.O_RDONLY)\n" \
             "flags = struct.unpack('L', fcntl.ioctl(fd, 0x80086601, bytes(8)))[0]\n" \
             "for n in 0x40086602, 0x40046602, 0x401c5820, 0x40806685, 0x800c6613, 0x5000940e:\n" \
             "    try:\n" \
             "        fcntl.ioctl(fd, n, struct.pack('L', flags) + bytes(200))\n" \
             "    except OSError as e:\n" \
             "        print(e.errno)\n"
    python = ["/usr/bin/python3", "-c", script, path]
    done = launched("--full", "--backend", "landlock", "--cwd", "/", "--", *python)
    assert done.stdout == "1\n" * 6, done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("abi", [0, 1])
def test_roots_of_other_processes(tmp_path, abi):
    """In the host's user namespace, with its pids and without Landlock, /proc/PID/root of a process
    that has no capabilities is the way out."""
    same = ["--full", "--rw", tmp_path, "--inherit", "--landlock", abi, "--cwd", "/"]
    done = launched(*same, "--backend", "root", "--", "true")
    assert done.returncode == 125 and "could be entered" in done.stderr
    with subprocess.Popen(["setpriv", "--inh-caps=-all", "--bounding-set=-all", "cat"],
                          stdin=subprocess.PIPE) as held:
        attack = ["ls", f"/proc/{held.pid}/root/"]
        done = launched(*same, "--backend", "userns", "--", *attack)
        assert done.returncode == 2 and DENIED in done.stderr
        held.stdin.close()


TRACED = """
import ctypes, os, signal, time
leader = os.getpid()
if os.fork() == 0:
    while open(f"/proc/{leader}/stat").read().split(")")[1].split()[0] != "t":
        time.sleep(0.01)
    print("stopped", flush=True)
    time.sleep(1000)
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
os.kill(leader, signal.SIGSTOP)
"""


@pytest.mark.parametrize("confined", [False, True])
def test_tracer_by_force(place, confined):
    """A command can make its parent its tracer: its stops are then told like an end."""
    command = ["/usr/bin/python3", "-c", TRACED]
    if confined:
        process = place.start(command, *WORK, network="enabled")
    else:
        process = place.client.start(command)
    place.client.wait_output(process, "stopped")
    assert place.client.read(process)["exited"] is False
    place.client.terminate(process)
    place.client.wait_closed(process)
    assert process.exit_code == 137
    assert place.left() == []
