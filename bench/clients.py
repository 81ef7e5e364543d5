"""The group `client`: `xs` and the library beside OpenSSH, both on the loopback, in turn."""

import filecmp
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import openssh
from servers import BenchError, Candidate, running

MB = 1000 * 1000
GIB = 1 << 30
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(TOP, "build-bench")
LINE = 125 * MB  # of the relay, bytes in a second
DELAY = 25  # and milliseconds, each way
TREE_FILES, TREE_BYTES = 10000, 4096


def wait(process, what, seconds=600):
    """The time of a program that has just begun, until it ends with 0."""
    begin = time.monotonic()
    if process.wait(seconds) != 0:
        raise BenchError(f"{what} ended with {process.returncode}")
    return time.monotonic() - begin


def seconds_of(command, env=None):
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    return wait(process, shlex.join(command[:3]))


def peak_of(command, env):
    """The highest resident memory of a program, in bytes."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory(process.pid, "VmHWM"))
        time.sleep(0.02)
    if process.returncode != 0:
        raise BenchError(f"{shlex.join(command[:3])} ended with {process.returncode}")
    return peak


def memory(pid, what):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            found = re.search(what + r":\s+(\d+) kB", f.read())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


class Clients:
    """One run of the group. `bench` is the figures.Bench that collects the values."""

    def __init__(self, bench):
        self.bench = bench
        self.xs = os.environ.get("XS", os.path.join(TOP, "dist", "xs"))
        if not os.access(self.xs, os.X_OK):
            raise BenchError(f"{self.xs} is not there; make dist-static builds it")
        self.place = os.path.join("/dev/shm" if os.access("/dev/shm", os.W_OK) else WORK,
                                  f"exec-server-bench.{os.getpid()}")
        self.size = GIB // 4 if bench.quick else GIB
        self.ssh = self.server = self.env = self.plain = None

    def run(self):
        """Everything, on one server and one sshd."""
        self.plain = [c for c in self.bench.candidates if c.name == "ours"]
        ours = [Candidate(c.name, [*c.command, "--http-files"], c.env) for c in self.plain]
        os.makedirs(self.place)
        try:
            with openssh.running(os.path.join(self.place, "ssh")) as self.ssh, \
                    running(ours) as servers:
                self.server = servers[0]
                self.env = self.environment(self.server.port)
                for part in (self.sizes, self.commands, self.keys, self.calls, self.idle, self.cat,
                             self.copies, self.trees, self.relay, self.large):
                    part()
        finally:
            shutil.rmtree(self.place, ignore_errors=True)

    @staticmethod
    def environment(port):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CODEX_", "XS_"))}
        return dict(env, XS_HOST=f"ws://127.0.0.1:{port}")

    def add(self, figure, name, value):
        self.bench.results.add(figure, name, value)

    def path(self, name):
        return os.path.join(self.place, name)

    # What is small.

    def sizes(self):
        self.add("client_program_size", "ours", os.stat(self.xs).st_size / 1000)
        library = os.path.join(TOP, "build", "src", "libexecserver.so.0")
        if not os.path.exists(library):
            raise BenchError(f"{library} is not there; make builds it")
        stripped = self.path("library")
        subprocess.run(["strip", "-o", stripped, library], check=True)
        self.add("client_library_size", "ours", os.stat(stripped).st_size / 1000)

    def commands(self):
        """`true`, from exec to exit."""
        millis = 1000 if self.bench.quick else 3000
        programs = {"ours": ("client_true", [self.xs, "run", "true"]),
                    "ssh": ("client_true", [*self.ssh.ssh, "true"]),
                    "mux": ("client_true_mux", [*self.ssh.mux, "true"]),
                    "machine": ("client_true", ["/bin/true"])}
        samples = {name: [] for name in programs}
        for turn in self.bench.rounds(4, 2):
            taken = {name: self.bench.driver("program", command=command, env=self.env, count=300,
                                             warmup=2, millis=millis)["samples"]
                     for name, (_, command) in programs.items()}
            if turn.kept:
                for name, values in taken.items():
                    samples[name] += values
        for name, (figure, _) in programs.items():
            self.percentiles(figure, "ssh" if name == "mux" else name, samples[name])
        self.percentiles("client_true_mux", "ours", samples["ours"])

    def percentiles(self, figure, name, samples):
        ordered = sorted(samples)
        for share, suffix in ((0.5, "p50"), (0.99, "p99")):
            at = min(len(ordered) - 1, int(len(ordered) * share))
            if f"{figure}_{suffix}" in self.bench.figures:
                self.add(f"{figure}_{suffix}", name, ordered[at] / 1e3)

    def keys(self):
        """One key through a terminal, beside the bench client's PTY figure."""
        options = {"count": 1000, "warmup": 20, "millis": 1000 if self.bench.quick else 3000}
        taken = {"ours": [], "machine": [], "ssh": []}
        for turn in self.bench.rounds(4, 2):
            done = {"ours": self.bench.driver("key", command=[self.xs, "run", "-t", "cat"],
                                              env=self.env, **options),
                    "ssh": self.bench.driver("key", command=[*self.ssh.ssh, "-t", "cat"],
                                             env=self.env, **options),
                    "machine": self.bench.driver("echo", self.server, tty=True, **options)}
            if turn.kept:
                for name, result in done.items():
                    taken[name] += result["samples"]
        for name, samples in taken.items():
            self.percentiles("client_key", name, samples)

    def calls(self):
        """environment/status by the library, and by the bench client; each on a CPU of its own."""
        program = self.build_calls()
        first, second = sorted(os.sched_getaffinity(0))[:2]
        self.server.pin(second)
        taken = {"ours": [], "machine": []}
        for turn in self.bench.rounds(6, 2):
            ours = subprocess.run([program, self.env["XS_HOST"], "5000", str(first)], check=False,
                                  capture_output=True, text=True, timeout=120)
            if ours.returncode != 0:
                raise BenchError(f"calls: {ours.stderr.strip()}")
            driver = self.bench.driver("status", self.server, count=5000, warmup=100, millis=2000,
                                       cpu=first)
            if turn.kept:
                taken["ours"] += [int(line) for line in ours.stdout.split()]
                taken["machine"] += driver["samples"]
        for name, samples in taken.items():
            self.percentiles("client_call", name, samples)
        for thread in os.listdir(f"/proc/{self.server.pid}/task"):
            os.sched_setaffinity(int(thread), os.sched_getaffinity(0))

    def build_calls(self):
        library = os.path.join(TOP, "build-static", "src", "libexecserver.a")
        program = self.path("calls")
        command = [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu17", "-D_GNU_SOURCE", "-O2",
                   "-I", os.path.join(TOP, "include"), "-o", program,
                   os.path.join(TOP, "bench", "library", "calls.c"), library, "-lsodium",
                   "-lpthread", "-lm"]
        if subprocess.run(command, check=False).returncode != 0:
            raise BenchError("the program that calls the library could not be built")
        return program

    def idle(self):
        """A client whose command does nothing."""
        for _ in range(self.bench.count(3, 1)):
            process = subprocess.Popen([self.xs, "run", "-n", "sleep", "1000"], env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            time.sleep(1)
            if process.poll() is not None:
                raise BenchError(f"xs run sleep ended with {process.returncode}")
            self.add("client_idle", "ours", memory(process.pid, "VmRSS") / 1000)
            process.send_signal(signal.SIGTERM)
            process.wait(10)

    # What is large.

    def data(self, name, size):
        """A file of bytes that no compression makes smaller."""
        path = self.path(name)
        block = os.urandom(1 << 20)
        with open(path, "wb") as f:
            for i in range(size >> 20):
                f.write(i.to_bytes(8, "little") + block[8:])
        return path

    def cat(self):
        source = self.data("source", self.size)
        programs = {"ours": [self.xs, "run", "cat", source], "ssh": [*self.ssh.ssh, "cat", source]}
        for _ in self.bench.rounds(5, 2):
            for name, command in programs.items():
                self.add("client_cat", name, self.size / MB / seconds_of(command, self.env))
            done = self.bench.driver("bulk", self.server, bytes=self.size)
            self.add("client_cat", "machine", self.size / MB / (done["wall_ns"] / 1e9))

    def copies(self):
        """One file, up and down."""
        source, target = self.path("source"), self.path("target")
        ways = {"client_up": {"ours": [self.xs, "cp", source, f":{target}"],
                              "ssh": [*self.ssh.scp, source, f"bench:{target}"]},
                "client_down": {"ours": [self.xs, "cp", f":{source}", target],
                                "ssh": [*self.ssh.scp, f"bench:{source}", target]}}
        for turn, _ in enumerate(self.bench.rounds(5, 2)):
            for figure, programs in ways.items():
                for name, command in {**programs, "machine": ["cp", source, target]}.items():
                    seconds = self.copied(command, source, target, turn == 0)
                    self.add(figure, name, self.size / MB / seconds)

    def copied(self, command, source, target, check):
        seconds = seconds_of(command, self.env)
        if check and not filecmp.cmp(source, target, shallow=False):
            raise BenchError(f"{shlex.join(command[:2])} made another file")
        os.unlink(target)
        return seconds

    def trees(self):
        source, target = self.path("tree"), self.path("copy")
        files = TREE_FILES // 10 if self.bench.quick else TREE_FILES
        for i in range(files):
            directory = os.path.join(source, f"directory-{i // 100}")
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, f"file-{i}"), "wb") as f:
                f.write(os.urandom(TREE_BYTES))
        ways = {"client_tree_up": {"ours": [self.xs, "cp", "-r", source, f":{target}"],
                                   "ssh": [*self.ssh.scp, "-r", source, f"bench:{target}"]},
                "client_tree_down": {"ours": [self.xs, "cp", "-r", f":{source}", target],
                                     "ssh": [*self.ssh.scp, "-r", f"bench:{source}", target]}}
        for _ in self.bench.rounds(3, 1):
            for figure, programs in ways.items():
                for name, command in {**programs, "machine": ["cp", "-r", source, target]}.items():
                    seconds = seconds_of(command, self.env)
                    self.check_tree(source, target, files)
                    shutil.rmtree(target)
                    self.add(figure, name, files / seconds)

    @staticmethod
    def check_tree(source, target, files):
        found = sum(len(names) for _, _, names in os.walk(target))
        one = os.path.join("directory-0", "file-7")
        if found != files or not filecmp.cmp(os.path.join(source, one), os.path.join(target, one),
                                             shallow=False):
            raise BenchError(f"a copy of the tree has {found} of {files} files")

    def relay(self):
        """A file over a line that is long and not wide."""
        source, target = self.path("source"), self.path("target")
        relay = subprocess.Popen(
            [self.bench.driver.path, "relay", "--port", str(self.server.port), "--bytes",
             str(LINE), "--millis", str(DELAY)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            env = self.environment(int(relay.stdout.readline()))
            for turn, _ in enumerate(self.bench.rounds(2, 1)):
                for figure, command in (("client_far_up", [self.xs, "cp", source, f":{target}"]),
                                        ("client_far_down", [self.xs, "cp", f":{source}", target])):
                    begin = time.monotonic()
                    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
                    wait(process, shlex.join(command[:2]))
                    seconds = time.monotonic() - begin
                    if turn == 0 and not filecmp.cmp(source, target, shallow=False):
                        raise BenchError("the relay, or xs cp, made another file")
                    os.unlink(target)
                    self.add(figure, "ours", self.size / MB / seconds)
                    self.add(figure, "machine", LINE / MB)
        finally:
            relay.kill()
            relay.wait()
            relay.stdout.close()

    def large(self):
        """Memory of a copy that is ten times as large; it has holes, and goes to the disk. As raw
        bytes, and in blocks from a server without --http-files."""
        for name in ("source", "target"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        source = os.path.join(WORK, f"large.{os.getpid()}")
        target = source + ".copy"
        try:
            with open(source, "wb") as f:
                f.truncate(10 * self.size)
            peaks = []
            with running(self.plain) as servers:
                for env in (self.env, self.environment(servers[0].port)):
                    for way in ([f":{source}", target], [source, f":{target}"]):
                        peaks.append(peak_of([self.xs, "cp", *way], env))
                        os.unlink(target)
            self.add("client_copy_memory", "ours", max(peaks) / 1000)
        finally:
            for path in (source, target):
                if os.path.exists(path):
                    os.unlink(path)
