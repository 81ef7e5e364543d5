"""The launcher alone, started without a server: what a host may lack, and how things end."""

import contextlib
import ctypes
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from harness.sandbox import BUSY, DENIED, PROTECTED, READ_ONLY
from harness.settings import BINARY, PATIENCE
from harness.waiting import until

RUN = Path(BINARY).parent / "tests" / "sandbox" / "sandbox-run"
PLAIN = 12345
ROOT = os.geteuid() == 0
BACKENDS = ["userns", "root"] if ROOT else ["userns"]
FAILED = 125
MARK = 1163412802  # modification time of a directory that holds a place

# Runs a command as a user of a namespace in which no further user namespace can be made, which is
# what a hardened host or a container is like.
NESTED = """
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    if ctypes.CDLL(None).unshare(0x10000000 | 0x00020000) < 0:
        os._exit(99)
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as f:
        f.write("0")
    uid = int(sys.argv[1])
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.execv(sys.argv[2], sys.argv[2:])
os.read(ready[0], 1)
for name in "uid_map", "gid_map":
    with open(f"/proc/{pid}/{name}", "w") as f:
        f.write("0 0 65536")
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

pytestmark = pytest.mark.skipif(not RUN.exists(), reason="built without tests")
as_root = pytest.mark.skipif(not ROOT, reason="needs root")


class Place:
    """A workspace and a directory beside it, for a user."""

    def __init__(self, uid):
        self.uid = uid
        self.base = Path(os.path.realpath(tempfile.mkdtemp(dir="/var/tmp")))
        self.base.chmod(0o755)
        self.program = shutil.copy(RUN, self.base / "run")
        self.ws, self.outside = self.base / "ws", self.base / "outside"
        for path in self.ws, self.outside:
            path.mkdir()
            os.chown(path, uid, uid)

    def put(self, name, text="content\n"):
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        while path != self.base:
            os.chown(path, self.uid, self.uid)
            path = path.parent

    def command(self, *words, nested=False):
        run = [str(self.program), *map(str, words)]
        if nested:
            return ["/usr/bin/python3", "-c", NESTED, str(self.uid), *run]
        if self.uid == os.geteuid():
            return run
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *run]

    def start(self, *words, nested=False, **options):
        # pylint: disable=consider-using-with
        return subprocess.Popen(self.command(*words, nested=nested), cwd=self.ws,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def run(self, *words, **options):
        process = self.start(*words, **options)
        process.out, process.err = process.communicate(timeout=6 * PATIENCE)
        return process

    def sh(self, script, *options, **more):
        """What a shell says, both streams in one."""
        done = self.run(*options, "--", "/bin/sh", "-c", f"exec 2>&1; {script}", **more)
        assert done.err == "", done.err
        return done.out

    def refused(self, *options, **more):
        """The text of a start that fails."""
        done = self.run(*options, "--", "/bin/true", **more)
        assert done.returncode == FAILED and done.out == ""
        assert done.err.startswith("failed: ")
        assert self.left() == []
        return done.err

    def left(self):
        return sorted(os.listdir(self.ws))


@pytest.fixture(params=["root", "plain"] if ROOT else ["plain"])
def place(request):
    made = Place(0 if request.param == "root" else PLAIN if ROOT else os.geteuid())
    yield made
    shutil.rmtree(made.base)


@pytest.fixture
def mine():
    made = Place(os.geteuid())
    yield made
    shutil.rmtree(made.base)


WORK = """
touch ok && echo wrote; touch ../outside/x; mkdir .git/x; rmdir .codex
cat ../outside/secret; cat /proc/self/status | grep -c 'Cap.*:.0000000000000000'
echo $$; ls /proc/1/root; echo x >/proc/sys/kernel/hostname
"""


@as_root
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("nested", [False, True])
def test_same_with_each_backend(mine, backend, nested):
    if nested and backend == "userns":
        text = mine.refused("--full", "--backend", "userns", nested=True)
        assert "namespaces: clone: No space left on device (os error 28)" in text
        assert "user.max_*_namespaces" in text
        return
    mine.put("outside/secret")
    got = mine.sh(WORK, "--full", "--rw", mine.ws, "--deny", f"{mine.outside}/secret",
                  "--backend", backend, nested=nested)
    assert re.sub(r"[^\n]*: ", "", got).splitlines() == [
        "wrote", READ_ONLY, READ_ONLY, BUSY, DENIED, "5", "2", DENIED, READ_ONLY]
    assert mine.left() == ["ok"]


def probe(place, **options):
    """{backend: (works, text)} and the choice for a read-only plan."""
    done = place.run("--probe", **options)
    assert done.returncode == 0 and done.err == ""
    *lines, last = done.out.splitlines()
    words = [line.split(" ", 2) for line in lines]
    return {name: (works == "yes", text) for name, works, text in words}, last


def test_probe(place):
    found, chosen = probe(place)
    assert found["userns"] == (True, "own proc")
    assert found["landlock"] == (True, "own proc")
    assert found["root"][0] == (place.uid == 0)
    assert "CAP_SYS_ADMIN" in found["root"][1] or place.uid == 0
    assert chosen == "chosen userns"


@as_root
def test_probe_without_user_namespaces(place):
    found, chosen = probe(place, nested=True)
    assert not found["userns"][0] and "user.max_*_namespaces" in found["userns"][1]
    assert found["root"][0] == (place.uid == 0)
    assert chosen == ("chosen root" if place.uid == 0 else "chosen landlock")


# Landlock alone.

def test_landlock_alone_is_read_only(place):
    place.put("outside/file")
    os.mkfifo(place.outside / "fifo")
    os.chown(place.outside / "fifo", place.uid, place.uid)
    script = """touch x; echo x >../outside/file; rm ../outside/file; chmod 600 ../outside/file
        echo x >../outside/fifo; mv ../outside ../o; cat ../outside/file; echo x >/dev/null && echo y
        /bin/kill -0 1; echo x >/proc/self/oom_score_adj; python3 -c 'import socket; socket.socket()'"""
    got = place.sh(script, "--full", "--backend", "landlock").splitlines()
    last = [line.rsplit(": ", 1)[-1] for line in got]
    refused = "Operation not permitted"
    assert last[:8] == [DENIED, DENIED, DENIED, refused, DENIED, DENIED, "content", "y"]
    assert last[8].endswith((refused, "No such process")) and last[9] == DENIED
    assert last[-1].endswith(refused)
    assert (place.outside / "file").read_text() == "content\n"


def test_landlock_alone_grants_a_file(place):
    place.put("ws/file")
    got = place.sh("echo new >file && cat file; echo x >other", "--full", "--rw", f"{place.ws}/file",
                   "--backend", "landlock")
    assert got.splitlines()[0] == "new" and DENIED in got
    assert place.left() == ["file"]


def test_landlock_alone_refuses_what_it_cannot_do(place):
    backend = ["--backend", "landlock"]
    cases = {
        ("--full", "--rw", place.ws): "cannot protect",
        ("--full", "--deny", "/srv"): "files cannot be denied",
        ("--full", "--glob", f"{place.ws}/*.env"): "files cannot be denied",
        ("--minimal",): "files cannot be hidden",
        ("--full", "--net", "managed"): "a managed network needs namespaces",
        ("--full", "--landlock", "2"): "Landlock ABI 3 is needed",
        ("--full", "--landlock", "5"): "Landlock ABI 6 is needed",
        ("--full", "--landlock", "0"): "Landlock ABI 3 is needed",
    }
    for options, text in cases.items():
        assert text in place.refused(*options, *backend), options
    assert place.sh("echo ok", "--full", "--landlock", "5", "--inherit", *backend) == "ok\n"


@pytest.mark.parametrize("abi", range(1, 8))
def test_each_landlock_abi(place, abi):
    """As second layer: closes what mounts leave open, and nothing that they allow."""
    place.put("ws/a/file")
    (place.ws / "b").mkdir()
    os.chown(place.ws / "b", place.uid, place.uid)
    os.mkfifo(place.outside / "fifo")
    os.chown(place.outside / "fifo", place.uid, place.uid)
    reader = os.open(place.outside / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        script = ("mv a/file b/file && ln b/file a/f2 && >b/file && echo moved;"
                  "echo x >../outside/fifo")
        got = place.sh(script, "--full", "--rw", place.ws, "--landlock", abi)
        assert got.startswith("moved\n")
        # The first ABI would forbid to rename: it serves where nothing is written only.
        assert (DENIED in got) == (abi > 1)
        got = place.sh("echo x >../outside/fifo", "--full", "--landlock", abi)
        assert DENIED in got
    finally:
        os.close(reader)


# How things end.

def places_held(place):
    return sorted(n for n in os.listdir(place.ws)
                  if int((place.ws / n).stat().st_mtime) == MARK)


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_launcher(mine, backend):
    """Everything dies with it, and a process that has the list can clean up."""
    done = mine.run("--full", "--rw", mine.ws, "--backend", backend, "--kill", "--signal", 9,
                    "--", "/bin/sh", "-c", "sleep 1000 & exec sleep 1000")
    assert done.returncode == 128 + signal.SIGKILL
    assert mine.left() == []


def test_places_of_a_killed_sandbox_are_reused(mine):
    process = mine.start("--full", "--rw", mine.ws, "--", "/bin/sh", "-c", "echo; sleep 1000")
    process.stdout.readline()
    assert places_held(mine) == sorted(PROTECTED)
    process.kill()  # the launcher dies with it, and nobody is left to clean up
    process.communicate()
    until(lambda: mine.run("--full", "--rw", mine.ws, "--", "/bin/true").returncode == 0
          and mine.left() == [], "end of the directories")


def test_inherited_pids(place):
    """Processes of the host can be seen; the rest of the command ends with it all the same."""
    got = place.sh("ls -d /proc/%d; (sleep 1000 &); echo x >/proc/self/oom_score_adj; kill -9 %d"
                   % (os.getpid(), os.getpid()), "--full", "--rw", place.ws, "--inherit")
    assert got.splitlines()[0] == f"/proc/{os.getpid()}"
    assert READ_ONLY in got
    assert place.left() == []


def test_background_ends_with_the_command(place):
    got = place.sh("(setsid sleep 1000 &) ; (trap '' HUP TERM INT; sleep 1000) & echo over",
                   "--full", "--rw", place.ws)
    assert got == "over\n"
    assert place.left() == []


def test_orphans_are_reaped(place):
    got = place.sh("for i in 1 2 3 4 5 6 7 8 9; do (sh -c 'exit 0' & ) ; done; "
                   "while ps -A -o stat= | grep -q Z; do sleep 0.01; done; echo reaped", "--full")
    assert got == "reaped\n"


def test_limits_are_the_commands(place):
    # 7: open files, 6: processes, 9: address space
    got = place.sh("ulimit -n; ulimit -u 2>/dev/null || ulimit -p; ulimit -v", "--full",
                   "--limit", "7=77", "--limit", "6=888", "--limit", f"9={1 << 32}")
    assert got.split() == ["77", "888", str(1 << 22)]
    # Without any they are what the launcher was started with.
    assert place.sh("ulimit -n", "--full").strip() == str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


@pytest.mark.limit(1800)
def test_many(mine):
    """One after another and at once: nothing is left of them."""
    def mounts():
        return Path("/proc/self/mountinfo").read_text().count("\n")
    before = mounts()
    done = mine.run("--full", "--rw", mine.ws, "--repeat", 100, "--", "/bin/true")
    assert done.returncode == 0, done.err
    script = "mkdir -p .git/x 2>/dev/null && exit 4; exit 3"
    many = [mine.start("--full", "--rw", mine.ws, "--", "/bin/sh", "-c", script)
            for _ in range(50)]
    assert {process.wait() for process in many} == {3}
    for process in many:
        process.communicate()
    assert mine.left() == [] and mounts() == before


# The policy on disk.

def test_writable_links_decide_nothing(place):
    """What one command can leave behind must not widen what the next may do."""
    os.symlink("/etc", place.ws / "link")
    for options in (["--rw", f"{place.ws}/link"], ["--read", f"{place.ws}/link"],
                    ["--deny", f"{place.ws}/link/x"]):
        done = place.run("--full", "--rw", place.ws, *options, "--", "/bin/true")
        assert done.returncode == FAILED
        assert f"crosses writable symlink {place.ws}/link" in done.err
    # Where it cannot be replaced it may lead anywhere.
    os.symlink(place.outside, place.base / "alias")
    got = place.sh(f"touch {place.base}/alias/x && echo ok", "--full", "--rw", f"{place.base}/alias")
    assert got == "ok\n"


class Swapper:
    """Exchanges a directory and a link to somewhere else all the time, with rests of any length."""

    def __init__(self, path, target):
        self.path, self.other, self.target = str(path), str(path) + ".other", target
        os.mkdir(self.path)
        os.symlink(target, self.other)
        self.over = False
        self.thread = threading.Thread(target=self.swap)
        self.thread.start()

    def swap(self):
        libc = ctypes.CDLL(None, use_errno=True)
        a, b = os.fsencode(self.path), os.fsencode(self.other)
        chance = random.Random(1)
        while not self.over:
            assert libc.renameat2(-100, a, -100, b, 2) == 0  # RENAME_EXCHANGE
            if chance.random() < 0.1:
                time.sleep(chance.random() / 200)

    def end(self):
        """Leaves the directory in its place, and no link."""
        self.over = True
        self.thread.join()
        if os.path.islink(self.path):
            os.unlink(self.path)
            os.rename(self.other, self.path)
        else:
            os.unlink(self.other)


@pytest.mark.limit(1800)
def test_links_swapped_meanwhile(mine):
    """Whatever is in its place at any moment: nothing outside becomes writable."""
    swapper = Swapper(mine.ws / "sub", mine.outside)
    command = ["--full", "--rw", mine.ws, "--rw", f"{mine.ws}/sub", "--", "/bin/sh", "-c",
               "echo x >sub/made; exit 0"]
    try:
        for _ in range(150):
            done = mine.run(*command)
            assert done.returncode in (0, FAILED), done.err
            assert os.listdir(mine.outside) == []
    finally:
        swapper.end()
    # What failed ones left behind, if anything, is in nobody's way, and the next one's to clean.
    (mine.ws / "sub" / "made").unlink(missing_ok=True)
    done = mine.run(*command)
    assert (done.returncode, done.err) == (0, "")
    assert (mine.ws / "sub" / "made").read_text() == "x\n"
    assert os.listdir(mine.ws / "sub") == ["made"] and mine.left() == ["sub"]


@pytest.mark.parametrize("path", ["/proc", "/proc/sys", "/sys", "/sys/kernel"])
def test_kernel_files_are_not_granted(place, path):
    assert "cannot grant write access" in place.refused("--full", "--rw", path)


@as_root
def test_kernel_mounts_below_a_writable_root(mine):
    """A chroot with its own /proc: as root its settings would be writable."""
    (mine.ws / "proc").mkdir()
    script = f"""mount -t proc proc {mine.ws}/proc && cd {mine.ws} &&
        {mine.program} --full --rw {mine.ws} -- /bin/sh -c '
            test -w proc/sys/kernel/hostname && echo BAD
            touch f && echo ok; cat proc/sys/kernel/ostype' """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    assert done.stdout == "ok\nLinux\n"


@as_root
def test_devices_stay_the_hosts(mine):
    before = os.stat("/dev/null")
    got = mine.sh("chmod 600 /dev/null; chown 1 /dev/zero; echo x >/dev/null && echo ok", "--full")
    assert got.count(READ_ONLY) >= 1 and got.endswith("ok\n")
    assert os.stat("/dev/null").st_mode == before.st_mode


def test_list_is_bounded(mine):
    names = [f"--read={mine.ws}/{'n' * 200}{i}" for i in range(400)]
    done = mine.run("--full", "--rw", mine.ws, *names, "--", "/bin/true")
    assert done.returncode == FAILED and "protected name" in done.err
    assert mine.left() == []


# The helper that file calls go through.

def ask(place, what, *options):
    done = place.run("--helper", *options, "--", what)
    assert done.returncode == 7 and done.err == "", done.err
    return done.out


def test_helper(place):
    place.put("ws/file")
    place.put("outside/file")
    work = ["--minimal", "--rw", place.ws]
    assert ask(place, f"{place.ws}/file", *work) == "content\n"
    assert ask(place, f">{place.ws}/new", *work) == ""
    assert ask(place, f"{place.outside}/file", *work) == "errno 2"
    # Nothing succeeds into what vanishes: neither the root, nor /tmp, nor /dev.
    assert ask(place, ">/new", *work) == "errno 30"
    assert ask(place, ">/tmp/new", *work) in ("errno 2", "errno 30")
    assert ask(place, ">/dev/new", *work) == "errno 30"
    assert ask(place, ">/dev/shm/new", *work) == "errno 30"
    # And nothing is made on the host.
    assert place.left() == ["file", "new"]


# The network.

def test_shared_empty_network(place):
    """One for all that have none: nobody has a right over it, or can use it."""
    script = "readlink /proc/self/ns/net /proc/self/ns/user; grep -c . /proc/net/dev"
    outside = os.readlink("/proc/self/ns/net")
    net, user, lines = place.sh(script, "--full", "--share-network").split()
    assert net != outside and lines == "3"  # a head of two lines, and lo
    assert user != os.readlink("/proc/self/ns/user")
    got = place.sh("unshare -Ur ip link set lo up; ip link set lo up; echo over", "--full",
                   "--share-network")
    assert got.endswith("over\n")
    done = place.run("--full", "--share-network", "--repeat", 5, "--", "/bin/sh", "-c",
                     "readlink /proc/self/ns/net")
    assert done.returncode == 0
    assert len(set(done.out.split())) == 1 and outside not in done.out
    assert place.sh("readlink /proc/self/ns/net", "--full", "--net", "enabled",
                    "--share-network") == outside + "\n"


class Echo:
    """A server on the host's loopback."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.echo, args=self.socket.accept()[:1],
                                 daemon=True).start()

    def echo(self, peer):
        with peer:
            while data := peer.recv(65536):
                peer.sendall(data)

    def close(self):
        self.socket.close()


TALK = """
import socket, sys, threading
def connect(port):
    return socket.create_connection(("127.0.0.1", port), 20)
def talk(port, size):
    with connect(port) as s:
        sent = bytes(range(256)) * (size // 256)
        threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR))).start()
        got = b""
        while part := s.recv(65536):
            got += part
        assert got == sent
def refused(f, *a):
    try:
        f(*a)
    except OSError as e:
        return e.strerror
"""


def python(place, script, *options):
    return place.sh(f"/usr/bin/python3 - <<'END'\n{TALK}{script}\nEND\n", *options)


def test_managed_network(place):
    allowed, other = Echo(), Echo()
    dead = socket.socket()  # nobody listens, and nobody else gets the port
    dead.bind(("127.0.0.1", 0))
    closed = dead.getsockname()[1]
    script = f"""
talk({allowed.port}, 1 << 22)
threads = [threading.Thread(target=talk, args=({allowed.port}, 1 << 16)) for _ in range(40)]
[t.start() for t in threads]; [t.join() for t in threads]
print(refused(connect, {other.port}))
print(refused(lambda: connect({closed}).recv(1)))  # which of the two fails is a race
print(refused(socket.create_connection, ("192.0.2.1", 80), 20))
print(refused(socket.socket, socket.AF_UNIX))
s = socket.create_server(("127.0.0.1", 0)); c = connect(s.getsockname()[1]); print("own")
socket.socketpair()
"""
    got = python(place, script, "--full", "--net", "managed", "--port", allowed.port,
                 "--port", closed)
    assert got.splitlines() == ["Connection refused", "Connection reset by peer",
                                "Network is unreachable", "Operation not permitted", "own"]
    got = python(place, f"print(refused(connect, {allowed.port}))", "--full", "--net", "managed")
    assert got == "Connection refused\n"
    dead.close()
    allowed.close()
    other.close()


def test_managed_network_with_all_files(place):
    """Confined for the network's sake only: files are as on the host."""
    got = place.sh(f"touch {place.outside}/x && echo ok; ls -A; echo x >/proc/sys/kernel/hostname",
                   "--no-files", "--net", "managed")
    assert got.startswith("ok\n") and ("Read-only" in got or DENIED in got)
    assert place.left() == []


# Programs.

PYTHON = """
import asyncio, concurrent.futures, multiprocessing, subprocess, threading
async def main():
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await p.communicate(b"x" * 1000000)
    r = await asyncio.get_running_loop().run_in_executor(None, lambda: 5)
    await asyncio.to_thread(lambda: None)
    return len(out) + r
def f(x):
    return x * x
if __name__ == "__main__":
    print(asyncio.run(main()))
    with multiprocessing.Pool(2) as pool:
        print(pool.map(f, range(3)))
    print(multiprocessing.Queue() is not None)
"""


def test_python(place):
    (place.ws / "t.py").write_text(PYTHON)
    got = place.sh("/usr/bin/python3 t.py", "--full", "--rw", place.ws)
    assert got == "1000005\n[0, 1, 4]\nTrue\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_node_in_node(place):
    script = """
const { spawnSync, fork } = require("child_process");
const r = spawnSync(process.execPath, ["-e", "process.stdin.pipe(process.stdout)"], {input: "abc"});
console.log(r.stdout.toString());
const { Worker } = require("worker_threads");
new Worker("require('worker_threads').parentPort.postMessage(7)", {eval: true})
    .on("message", m => console.log(m));
"""
    (place.ws / "t.js").write_text(script)
    got = place.sh(f"{shutil.which('node')} t.js", "--full", "--rw", place.ws)
    assert got == "abc\n7\n"


def test_compiler_and_make(place):
    place.put("ws/Makefile", "t: t.o\n\tcc -o $@ $^\nt.o: t.c\n\tcc -c -o $@ $<\n")
    place.put("ws/t.c", "int main(void) { return 42; }\n")
    got = place.sh("make -s -j2 && ./t; echo $?", "--full", "--rw", place.ws,
                   "--env", "PATH=/usr/bin:/bin", "--env", "TMPDIR=" + str(place.ws))
    assert got == "42\n"
