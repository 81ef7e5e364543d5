"""What is measured, how often, and which bar it has to clear.

Every group below runs its rounds on all programs in turn, so that a disturbance of the machine
meets each of them. Its results are values by figure name; a value belongs to "ours", "reference"
or "machine" (the least code that does the same work).
"""

import dataclasses
import os
import statistics
import sys
import time

import clients
import consoles
import filesets
import hostile
import mcps
import sandboxes
import webs
from rounds import Patience, Rounds
from servers import BenchError, running

MB = 1000 * 1000
BULK_BYTES = 512 * 1024 * 1024


@dataclasses.dataclass
class Figure:
    """`times`: ours must be at least so many times better; `limit`: and at most so much; `bare`:
    and at most so many times the bare loop's value (at least, if more is better). `beside`: the
    program that stands in the column of the reference."""
    title: str
    unit: str
    times: float = None
    limit: float = None
    bare: float = None
    more_is_better: bool = False
    beside: str = "reference"


FIGURES = {
    "start_p50": Figure("/bin/true, start to closed, p50", "us", times=15),
    "start_p99": Figure("/bin/true, start to closed, p99", "us"),
    "start_cpu": Figure("  server CPU per command", "us"),
    "login_first": Figure("first command of a login shell of 500 ms, p50", "ms"),
    "login_next": Figure("  the next one, with its shellSnapshot, p50", "ms", limit=50),
    "echo_pipe_p50": Figure("one byte through a pipe, p50", "us", times=100),
    "echo_pipe_p99": Figure("one byte through a pipe, p99", "us"),
    "echo_pipe_cpu": Figure("  server CPU per byte", "us"),
    "echo_pty_p50": Figure("one byte through a PTY, p50", "us", times=100),
    "echo_pty_p99": Figure("one byte through a PTY, p99", "us"),
    "echo_pty_cpu": Figure("  server CPU per byte", "us"),
    "pipe_rate": Figure("512 MiB of pipe output", "MB/s", times=3.5, more_is_better=True),
    "pipe_cpu": Figure("  server CPU", "s", times=5),
    "idle_rss": Figure("memory when idle (VmRSS)", "kB", times=15, limit=3000),
    "file_size": Figure("size of the program", "kB", limit=1900),
    "startup_p50": Figure("exec to the printed URL, p50", "us", times=5),
    "startup_p99": Figure("exec to the printed URL, p99", "us"),
    "connection": Figure("memory per idle connection", "kB", limit=16),
    "process_memory": Figure("memory per running process", "kB"),
    "http_p50": Figure("http/request of 100 bytes, p50", "us", times=3),
    "http_p99": Figure("http/request of 100 bytes, p99", "us"),
    "http_cpu": Figure("  CPU per request, server and HTTP program", "us"),
    "http_rate": Figure("1 GiB streamed by http/request", "MB/s", times=1.2, more_is_better=True),
    "http_stream_cpu": Figure("  CPU per GB, server and HTTP program", "s", times=2),
    "http_memory": Figure("  most memory of both", "MB", limit=40),
    "status_p50": Figure("environment/status, two CPUs, p50", "us"),
    "status_p99": Figure("environment/status, two CPUs, p99", "us"),
    "status_cpu": Figure("  server CPU per request", "us"),
    "status_one_p50": Figure("environment/status, one CPU, p50", "us"),
    "status_one_p99": Figure("environment/status, one CPU, p99", "us"),
    "status_one_cpu": Figure("  server CPU per request", "us"),
    "pipeline_rate": Figure("requests, 64 in flight", "1/s", more_is_better=True),
    "pipeline_cpu": Figure("  server CPU per request", "us"),
    "pty_rate": Figure("64 MiB of PTY output", "MB/s", times=1.1, more_is_better=True),
    "pty_cpu": Figure("  server CPU per GB", "s", times=1),
    "fair_echo_p50": Figure("one byte through a pipe, beside floods, p50", "us"),
    "fair_echo_p99": Figure("one byte through a pipe, beside floods, p99", "us", times=2),
    "fair_echo_rate": Figure("  output of the floods", "MB/s", more_is_better=True),
    "fair_status_p50": Figure("environment/status, beside floods, p50", "us"),
    "fair_status_p99": Figure("environment/status, beside floods, p99", "us", times=2),
    "fair_status_rate": Figure("  output of the floods", "MB/s", more_is_better=True),
    "spawn_rate": Figure("commands, 8 in flight", "1/s", more_is_better=True),
    "spawn_cpu": Figure("  server CPU per command", "us"),
    "spawn_total_cpu": Figure("  with children (the command too)", "us"),
    "slow_reader": Figure("memory growth, reader stalled 3 s", "kB"),
    "sandbox_read_p50": Figure("/bin/true, read-only sandbox, p50", "us", times=15),
    "sandbox_read_p99": Figure("/bin/true, read-only sandbox, p99", "us"),
    "sandbox_read_cpu": Figure("  server CPU per command", "us"),
    "sandbox_work_p50": Figure("/bin/true, workspace-write sandbox, p50", "us", times=15),
    "sandbox_work_p99": Figure("/bin/true, workspace-write sandbox, p99", "us"),
    "sandbox_work_cpu": Figure("  server CPU per command", "us"),
    "confined_read_p50": Figure("fs/readFile of 1 kB, sandboxed, p50", "us", times=30),
    "confined_read_p99": Figure("fs/readFile of 1 kB, sandboxed, p99", "us"),
    "confined_read_cpu": Figure("  server CPU per request", "us"),
    "confined_write_p50": Figure("fs/writeFile of 1 kB, sandboxed, p50", "us", times=30),
    "confined_write_p99": Figure("fs/writeFile of 1 kB, sandboxed, p99", "us"),
    "confined_write_cpu": Figure("  server CPU per request", "us"),
    "read_rate": Figure("fs/readFile of 64 MB", "MB/s", times=6, more_is_better=True),
    "read_cpu": Figure("  server CPU per GB", "s"),
    "read_memory": Figure("  growth of the memory peak", "kB", limit=8000),
    "write_rate": Figure("fs/writeFile of 6 MB, 2 in flight", "MB/s", times=4, more_is_better=True),
    "write_cpu": Figure("  server CPU per GB", "s"),
    "write_one_rate": Figure("fs/writeFile of 6 MB, one at a time", "MB/s", times=4,
                             more_is_better=True),
    "write_one_cpu": Figure("  server CPU per GB", "s"),
    "block_rate": Figure("fs/readBlock, 1 GB, 2 in flight", "MB/s", times=3, more_is_better=True),
    "block_cpu": Figure("  server CPU per GB", "s", times=4),
    "metadata_p50": Figure("fs/getMetadata, two CPUs, p50", "us", bare=1.6),
    "metadata_p99": Figure("fs/getMetadata, two CPUs, p99", "us"),
    "metadata_cpu": Figure("  server CPU per request", "us"),
    "metadata_one_p50": Figure("fs/getMetadata, one CPU, p50", "us"),
    "metadata_one_p99": Figure("fs/getMetadata, one CPU, p99", "us"),
    "metadata_one_cpu": Figure("  server CPU per request", "us"),
    "small_read_p50": Figure("fs/readFile of 1 kB, two CPUs, p50", "us", bare=1.6),
    "small_read_p99": Figure("fs/readFile of 1 kB, two CPUs, p99", "us"),
    "small_read_cpu": Figure("  server CPU per request", "us"),
    "small_read_one_p50": Figure("fs/readFile of 1 kB, one CPU, p50", "us"),
    "small_read_one_p99": Figure("fs/readFile of 1 kB, one CPU, p99", "us"),
    "small_read_one_cpu": Figure("  server CPU per request", "us"),
    "metadata_rate": Figure("fs/getMetadata, 64 in flight", "1/s", times=5, more_is_better=True),
    "metadata_rate_cpu": Figure("  server CPU per request", "us"),
    "small_read_rate": Figure("fs/readFile of 1 kB, 64 in flight", "1/s", times=5,
                              more_is_better=True),
    "small_read_rate_cpu": Figure("  server CPU per request", "us"),
    "walk_p50": Figure("fs/walk of 20,000 entries, p50", "us", times=4),
    "walk_p99": Figure("fs/walk of 20,000 entries, p99", "us"),
    "walk_cpu": Figure("  server CPU per walk", "us"),
    "write_block_rate": Figure("fs/writeBlock, 1 GB, 2 in flight", "MB/s", more_is_better=True),
    "write_block_cpu": Figure("  server CPU per GB", "s"),
    "list_p50": Figure("fs/readDirectory, 10,000 entries, p50", "us"),
    "list_p99": Figure("fs/readDirectory, 10,000 entries, p99", "us"),
    "list_cpu": Figure("  server CPU per request", "us"),
    "copy_p50": Figure("fs/copy of 64 MB, p50", "us"),
    "copy_p99": Figure("fs/copy of 64 MB, p99", "us"),
    "copy_cpu": Figure("  server CPU per copy", "us"),
    "client_true_p50": Figure("xs run true, exec to exit, beside ssh, p50", "us", times=20,
                              limit=3000, beside="ssh"),
    "client_true_p99": Figure("xs run true, exec to exit, beside ssh, p99", "us", beside="ssh"),
    "client_true_mux_p50": Figure("xs run true, beside ssh with ControlMaster, p50", "us", times=3,
                                  beside="ssh"),
    "client_key_p50": Figure("one key, xs run -t cat, beside ssh -t, p50", "us", bare=1.5,
                             beside="ssh"),
    "client_key_p99": Figure("one key, xs run -t cat, beside ssh -t, p99", "us", beside="ssh"),
    "client_cat": Figure("xs run cat of 1 GiB, beside ssh cat", "MB/s", times=3, bare=0.6,
                         more_is_better=True, beside="ssh"),
    "client_up": Figure("xs cp of 1 GiB up, beside scp", "MB/s", times=3, bare=0.4,
                        more_is_better=True, beside="ssh"),
    "client_down": Figure("xs cp of 1 GiB down, beside scp", "MB/s", times=3, bare=0.4,
                          more_is_better=True, beside="ssh"),
    "client_tree_up": Figure("xs cp -r of 10,000 files up, beside scp -r", "1/s", times=5,
                             more_is_better=True, beside="ssh"),
    "client_tree_down": Figure("xs cp -r of 10,000 files down, beside scp -r", "1/s", times=5,
                               more_is_better=True, beside="ssh"),
    "client_far_up": Figure("xs cp of 1 GiB up, 50 ms away, 1 Gb/s", "MB/s", bare=0.7,
                            more_is_better=True, beside="ssh"),
    "client_far_down": Figure("xs cp of 1 GiB down, 50 ms away, 1 Gb/s", "MB/s", bare=0.7,
                              more_is_better=True, beside="ssh"),
    "client_call_p50": Figure("environment/status by the library, p50", "us", bare=1.2,
                              beside="ssh"),
    "client_idle": Figure("memory of xs run that waits (VmRSS)", "kB", limit=3000, beside="ssh"),
    "client_copy_memory": Figure("memory peak of xs cp of 10 GiB", "kB", limit=16000,
                                 beside="ssh"),
    "client_library_size": Figure("size of libexecserver.so", "kB", limit=400, beside="ssh"),
    "client_program_size": Figure("size of xs", "kB", limit=1150, beside="ssh"),
    "console_rate": Figure("512 MiB of pipe output, watched, beside alone", "MB/s", times=0.95,
                           more_is_better=True, beside="alone"),
    "console_cpu": Figure("  server CPU", "s", beside="alone"),
    "console_echo_p50": Figure("one byte through a pipe, watched, p50", "us", times=0.95,
                               beside="alone"),
    "console_echo_p99": Figure("one byte through a pipe, watched, p99", "us", beside="alone"),
    "console_echo_cpu": Figure("  server CPU per byte", "us", beside="alone"),
    "console_start_p50": Figure("/bin/true, watched, p50", "us", times=0.95, beside="alone"),
    "console_start_p99": Figure("/bin/true, watched, p99", "us", beside="alone"),
    "console_start_cpu": Figure("  server CPU per command", "us", beside="alone"),
    "mcp_start_p50": Figure("MCP server, exec to the answer of initialize, p50", "us", times=4,
                            beside="old"),
    "mcp_start_p99": Figure("MCP server, exec to the answer of initialize, p99", "us",
                            beside="old"),
    "mcp_idle": Figure("MCP server, memory when idle (VmRSS)", "kB", times=5, beside="old"),
    "mcp_call_p50": Figure("a call of `:`, no sandbox, p50", "us", times=2, beside="old"),
    "mcp_call_p99": Figure("a call of `:`, no sandbox, p99", "us", beside="old"),
    "mcp_call_sandbox_p50": Figure("a call of `:`, read-only, p50", "us", times=2, beside="old"),
    "mcp_call_sandbox_p99": Figure("a call of `:`, read-only, p99", "us", beside="old"),
    "mcp_run": Figure("added to an external command, Run", "us", times=10, beside="old"),
    "mcp_run_checked": Figure("  where a rule forbids something", "us", beside="old"),
    "mcp_escalate": Figure("added to an external command, Escalate", "us", times=3, beside="old"),
    **{f"hostile_{name}_{what}_p99": Figure(f"{what} beside hostile {name}, p99", "us", limit=20000)
       for name in hostile.ATTACKS for what in ("status", "echo")},
}


class Results:
    """Values by figure and program, one list entry per round, and what failed."""

    def __init__(self):
        self.values = {}
        self.errors = {}
        self.marked = []  # lists that got a value since mark()
        self.repeated = 0
        self.patience = Patience()

    def add(self, figure, name, value):
        values = self.values.setdefault(figure, {}).setdefault(name, [])
        values.append(value)
        self.marked.append(values)

    def mark(self):
        self.marked = []

    def take_back(self):
        """Forgets what was added since mark()."""
        for values in self.marked:
            values.pop()
        self.mark()
        self.repeated += 1

    def get(self, figure, name):
        values = self.values.get(figure, {}).get(name)
        return statistics.median(values) if values else None


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def two_cpus():
    """Those that the client and the servers are pinned to."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise BenchError("two CPUs are needed")
    return cpus[:2]


class Bench:
    """Runs the groups; `candidates` are ours and the reference, or one of them."""

    def __init__(self, driver, candidates, files, quick):
        self.driver = driver
        self.candidates = candidates
        self.files = files
        self.quick = quick
        self.figures = FIGURES
        self.results = Results()

    def drive(self, measure, server=None, **options):
        """What the client measured. A fault of the reference is told, and it has a second try."""
        try:
            return self.driver(measure, server, **options)
        except BenchError as e:
            if server is None or server.name == "ours":
                raise
            print(f" ({e})", end="", file=sys.stderr, flush=True)
            return self.driver(measure, server, **options)

    def rounds(self, full, quick):
        return Rounds(self.count(full, quick), self.results)

    def count(self, full, quick):
        return quick if self.quick else full

    def latency(self, prefix, servers, machine, rounds, measure, own=None, **options):
        """Samples of all rounds of one program make its p50 and p99. `own`: options of the bare
        loop alone."""
        bare = {k: v for k, v in options.items() if k != "millis"} | (own or {})
        taken = []
        for turn in rounds:
            for server in servers:
                taken.append((turn, server.name, self.drive(measure, server, **options)))
            if machine:
                taken.append((turn, "machine", self.drive(machine, **bare)))
        self.add_samples(prefix, taken)
        for name in {server.name for server in servers}:
            done = [d for turn, who, d in taken if turn.kept and who == name]
            calls = sum(len(d["samples"]) for d in done)
            cpu = sum(d["cpu_ns"] for d in done)
            self.results.add(f"{prefix}_cpu", name, cpu / calls / 1e3)
        return taken

    def small(self, prefix, servers, measure, rounds, **options):
        """A small exchange, client and server on two CPUs and then on one: the scheduler would
        choose, for each client anew, and a wake-up of another CPU can cost more than the rest."""
        first, second = two_cpus()
        for name, cpu in (prefix, second), (f"{prefix}_one", first):
            for server in servers:
                server.pin(cpu)
            self.latency(name, servers, f"machine-{measure}", rounds(), measure,
                         own={"server-cpu": cpu}, cpu=first, **options)

    def add_samples(self, prefix, taken):
        """p50 and p99 of what was taken in the rounds that count."""
        samples = {}
        for turn, name, done in taken:
            if turn.kept:
                samples.setdefault(name, []).extend(done["samples"])
        for name, values in samples.items():
            self.results.add(f"{prefix}_p50", name, percentile(values, 0.50) / 1e3)
            self.results.add(f"{prefix}_p99", name, percentile(values, 0.99) / 1e3)

    def start(self):
        with running(self.candidates) as servers:
            self.latency("start", servers, "machine-spawn", self.rounds(4, 2), "start",
                         count=500, millis=1000 if self.quick else 4000)

    def login(self):
        """A tenth of what the startup files take is left for every command but the first."""
        home = self.files.login(0.5)
        with running(self.candidates) as servers:
            for _ in self.rounds(3, 2):
                for server in servers:
                    taken = self.drive("login", server, count=3, path=home)["samples"]
                    for name, values in (("first", taken[::2]), ("next", taken[1::2])):
                        self.results.add(f"login_{name}", server.name,
                                         percentile(values, 0.50) / 1e6)

    def echo(self, prefix, **options):
        with running(self.candidates) as servers:
            self.latency(prefix, servers, "machine-echo", self.rounds(4, 2), "echo",
                         count=2000, warmup=20, millis=1000 if self.quick else 4000, **options)

    def echo_pipe(self):
        self.echo("echo_pipe")

    def echo_pty(self):
        self.echo("echo_pty", tty=True)

    def bulk(self, rate, cpu, rounds, amount, cpu_scale, **options):
        """Every byte is compared once, on a smaller amount, before anything is timed."""
        with running(self.candidates) as servers:
            for server in servers:
                self.drive("bulk", server, bytes=16 * 1024 * 1024, verify=True, **options)
            for _ in rounds:
                targets = [(s.name, "bulk", s) for s in servers]
                if not options:
                    targets.append(("machine", "machine-bulk", None))
                for name, measure, server in targets:
                    done = self.drive(measure, server, bytes=amount, **options)
                    self.results.add(rate, name, amount / MB / (done["wall_ns"] / 1e9))
                    self.results.add(cpu, name, done["cpu_ns"] / 1e9 * cpu_scale)

    def pipe(self):
        self.bulk("pipe_rate", "pipe_cpu", self.rounds(9, 3), BULK_BYTES, 1)

    def pty(self):
        amount = 64 * 1024 * 1024
        self.bulk("pty_rate", "pty_cpu", self.rounds(5, 2), amount, 1e9 / amount, tty=True)

    def idle(self):
        for _ in range(self.count(3, 1)):
            with running(self.candidates) as servers:
                time.sleep(0.7)
                for server in servers:
                    self.results.add("idle_rss", server.name, server.rss() / 1000)

    def size(self):
        for candidate in self.candidates:
            self.results.add("file_size", candidate.name, os.stat(candidate.program).st_size / 1000)

    def startup(self):
        taken = []
        for turn in self.rounds(8, 3):
            for candidate in self.candidates:
                done = self.drive("startup", command=candidate.command, env=candidate.env,
                                   count=10, warmup=2)
                taken.append((turn, candidate.name, done))
            done = self.drive("startup", command=["/bin/echo"], count=10, warmup=2)
            taken.append((turn, "machine", done))
        self.add_samples("startup", taken)

    def connections(self):
        for _ in range(self.count(3, 1)):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.drive("connections", server, count=500)
                    grown = done["rss_after"] - done["rss_before"]
                    self.results.add("connection", server.name, grown / done["count"] / 1000)

    def processes(self):
        for _ in range(self.count(3, 1)):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.drive("crowd-processes", server, count=200)
                    grown = done["rss_after"] - done["rss_before"]
                    self.results.add("process_memory", server.name, grown / 200 / 1000)

    def status(self):
        with running(self.candidates) as servers:
            self.small("status", servers, "status", lambda: self.rounds(4, 2), count=5000,
                       warmup=100, millis=2000)

    def fair(self):
        """An innocent client beside three that read three floods each, one of them of a PTY."""
        for measure in "echo", "status":
            with running(self.candidates) as servers:
                taken = self.latency(f"fair_{measure}", servers, None, self.rounds(6, 3), measure,
                                     count=100000, warmup=20, millis=3000, floods=3)
            for turn, name, done in taken:
                if turn.kept:
                    self.results.add(f"fair_{measure}_rate", name,
                                     done["flood_bytes"] / MB / (done["wall_ns"] / 1e9))

    def rate(self, rate, cpu, measure, count, **options):
        with running(self.candidates) as servers:
            for _ in self.rounds(4, 2):
                for server in servers:
                    done = self.drive(measure, server, millis=700 if self.quick else 1500,
                                       **options)
                    self.results.add(rate, server.name, done[count] / (done["wall_ns"] / 1e9))
                    self.results.add(cpu, server.name, done["cpu_ns"] / done[count] / 1e3)
                    if "total_cpu_ns" in done:
                        self.results.add("spawn_total_cpu", server.name,
                                         done["total_cpu_ns"] / done[count] / 1e3)

    def pipeline(self):
        self.rate("pipeline_rate", "pipeline_cpu", "pipeline", "requests", window=64)

    def spawns(self):
        self.rate("spawn_rate", "spawn_cpu", "spawns", "spawns", window=8)

    def sandbox(self):
        """In a workspace where every protected name is missing, the most work for a sandbox."""
        directory = self.files.workspace()
        with running(self.candidates) as servers:
            for prefix, make in (("sandbox_read", sandboxes.read_only),
                                 ("sandbox_work", sandboxes.workspace_write)):
                self.latency(prefix, servers, None, self.rounds(4, 2), "start", count=300,
                             warmup=5, millis=1500 if self.quick else 4000,
                             cwd=sandboxes.uri(directory), sandbox=make(directory))

    def sandbox_files(self):
        """The first call, which starts whatever serves the next ones, is in the warm-up."""
        directory = self.files.workspace()
        options = {"bytes": filesets.SMALL, "count": 2000, "warmup": 5,
                   "millis": 1500 if self.quick else 4000,
                   "sandbox": sandboxes.restrictive(directory)}
        with running(self.candidates) as servers:
            self.latency("confined_read", servers, None, self.rounds(4, 2), "small-read",
                         path=self.files.file("workspace/small", filesets.SMALL), **options)
            self.latency("confined_write", servers, None, self.rounds(4, 2), "small-write",
                         path=self.files.path("workspace/written"), **options)

    def slow_reader(self):
        for _ in range(self.count(2, 1)):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.drive("slow-reader", server, bytes=200 * MB, millis=3000)
                    grown = done["rss_peak"] - done["rss_before"]
                    self.results.add("slow_reader", server.name, grown / 1000)

    def amount(self, name, measure, amount, rounds, servers, machine=None, **options):
        """Throughput and CPU of moving `amount` bytes; `options` say how."""
        for _ in rounds:
            targets = [(s.name, measure, s) for s in servers]
            if machine is not None:
                targets.append(("machine", machine, None))
            for who, what, server in targets:
                done = self.drive(what, server, **options)
                self.results.add(f"{name}_rate", who, amount / MB / (done["wall_ns"] / 1e9))
                self.results.add(f"{name}_cpu", who, done["cpu_ns"] / amount)

    def fs_read(self):
        """The memory peak is that of the first read of a fresh server."""
        options = {"path": self.files.large(), "bytes": filesets.LARGE}
        for _ in range(self.count(3, 1)):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.drive("file-read", server, count=1, **options)
                    grown = done["rss_peak"] - done["rss_before"]
                    self.results.add("read_memory", server.name, grown / 1000)
        with running(self.candidates) as servers:
            for server in servers:
                self.drive("file-read", server, verify=True, **options)
            self.amount("read", "file-read", 4 * filesets.LARGE, self.rounds(6, 2), servers,
                        machine="machine-file-read", count=4, **options)

    def fs_write(self):
        """In batches of four files; many clients, since the scheduler treats each its own way."""
        options = {"path": self.files.path("written"), "bytes": filesets.WRITTEN, "count": 8,
                   "warmup": 3}
        with running(self.candidates) as servers:
            for name, window in ("write", 2), ("write_one", 1):
                self.amount(name, "file-write", 32 * filesets.WRITTEN, self.rounds(12, 3), servers,
                            machine="machine-file-write", window=window, **options)

    def fs_block(self):
        options = {"path": self.files.huge(), "bytes": filesets.HUGE, "window": 2}
        with running(self.candidates) as servers:
            for server in servers:
                self.drive("block-read", server, verify=True, path=self.files.large(),
                            bytes=filesets.LARGE, window=2)
            self.amount("block", "block-read", filesets.HUGE, self.rounds(4, 2), servers,
                        machine="machine-file-read", count=1, **options)
        self.files.drop("huge")

    def fs_small(self):
        """Many clients, one after the other, rather than a few for a long time."""
        options = {"path": self.files.small(), "bytes": filesets.SMALL, "count": 1500,
                   "warmup": 100, "millis": 1000}
        with running(self.candidates) as servers:
            for prefix, measure in ("metadata", "metadata"), ("small_read", "small-read"):
                self.small(prefix, servers, measure, lambda: self.rounds(12, 4), **options)

    def fs_pipeline(self):
        options = {"path": self.files.small(), "window": 64}
        self.rate("metadata_rate", "metadata_rate_cpu", "metadata-pipeline", "requests", **options)
        self.rate("small_read_rate", "small_read_rate_cpu", "small-read-pipeline", "requests",
                  **options)

    def fs_walk(self):
        entries = filesets.TREE_DIRECTORIES * (filesets.TREE_FILES + 1)
        with running(self.candidates) as servers:
            self.latency("walk", servers, None, self.rounds(4, 2), "walk", count=20, warmup=2,
                         millis=3000, path=self.files.tree(), entries=entries)

    def fs_write_block(self):
        options = {"path": self.files.path("written"), "bytes": filesets.QUARTER, "window": 2}
        with running(self.candidates) as servers:
            for server in servers:
                self.drive("block-write", server, verify=True, count=1, warmup=0, **options)
            self.amount("write_block", "block-write", 4 * filesets.QUARTER, self.rounds(3, 1),
                        servers, count=4, warmup=1, **options)

    def fs_list(self):
        with running(self.candidates) as servers:
            self.latency("list", servers, None, self.rounds(4, 2), "list", count=50, warmup=2,
                         millis=2000, path=self.files.listing(), entries=filesets.LIST_ENTRIES)

    def fs_copy(self):
        with running(self.candidates) as servers:
            self.latency("copy", servers, None, self.rounds(4, 2), "copy", count=10, warmup=1,
                         millis=2000, path=self.files.large(), bytes=filesets.LARGE)

    def client(self):
        """xs and libexecserver beside OpenSSH; ours alone."""
        if any(c.name == "ours" for c in self.candidates):
            clients.Clients(self).run()

    def http(self):
        webs.run(self)

    def mcp(self):
        mcps.run(self)

    def hostile(self):
        """A client that did nothing wrong, beside one that does its worst; ours alone."""
        ours = [c for c in self.candidates if c.name == "ours"]
        with running(ours) as servers:
            for name in hostile.ATTACKS if ours else ():
                for what in ("status", "echo"):
                    self.beside(name, what, servers[0])

    def console(self):
        """A client whose commands are watched, beside one whose commands are not; ours alone."""
        for ours in [c for c in self.candidates if c.name == "ours"]:
            with consoles.Consoles(ours, self.files.path("console")) as servers:
                for _ in self.rounds(9, 3):
                    for server in servers:
                        done = self.drive("bulk", server, bytes=BULK_BYTES)
                        self.results.add("console_rate", server.name,
                                         BULK_BYTES / MB / (done["wall_ns"] / 1e9))
                        self.results.add("console_cpu", server.name, done["cpu_ns"] / 1e9)
                millis = 1000 if self.quick else 4000
                self.latency("console_echo", servers, None, self.rounds(4, 2), "echo",
                             count=2000, warmup=20, millis=millis)
                self.latency("console_start", servers, None, self.rounds(4, 2), "start",
                             count=500, warmup=5, millis=millis)

    def beside(self, name, what, server):
        taken, millis = [], 1000 if self.quick else 3000
        for turn in self.rounds(3, 1):
            with hostile.Attack(self.driver, server, name, self.files.path("hostile"),
                                4 * millis):
                done = self.drive(what, server, count=5000, warmup=20, millis=millis)
            taken.append((turn, server.name, done))
        samples = [ns for turn, _, done in taken if turn.kept for ns in done["samples"]]
        self.results.add(f"hostile_{name}_{what}_p99", "ours", percentile(samples, 0.99) / 1e3)


# Group name on the command line, and the figures that it gives.
GROUPS = {
    "start": ("start_p50", "start_p99", "start_cpu"),
    "login": ("login_first", "login_next"),
    "echo_pipe": ("echo_pipe_p50", "echo_pipe_p99", "echo_pipe_cpu"),
    "echo_pty": ("echo_pty_p50", "echo_pty_p99", "echo_pty_cpu"),
    "pipe": ("pipe_rate", "pipe_cpu"),
    "idle": ("idle_rss",),
    "size": ("file_size",),
    "startup": ("startup_p50", "startup_p99"),
    "connections": ("connection",),
    "processes": ("process_memory",),
    "status": ("status_p50", "status_p99", "status_cpu",
               "status_one_p50", "status_one_p99", "status_one_cpu"),
    "pipeline": ("pipeline_rate", "pipeline_cpu"),
    "pty": ("pty_rate", "pty_cpu"),
    "fair": ("fair_echo_p50", "fair_echo_p99", "fair_echo_rate",
             "fair_status_p50", "fair_status_p99", "fair_status_rate"),
    "spawns": ("spawn_rate", "spawn_cpu", "spawn_total_cpu"),
    "slow_reader": ("slow_reader",),
    "sandbox": ("sandbox_read_p50", "sandbox_read_p99", "sandbox_read_cpu",
                "sandbox_work_p50", "sandbox_work_p99", "sandbox_work_cpu"),
    "sandbox_files": ("confined_read_p50", "confined_read_p99", "confined_read_cpu",
                      "confined_write_p50", "confined_write_p99", "confined_write_cpu"),
    "fs_read": ("read_rate", "read_cpu", "read_memory"),
    "fs_write": ("write_rate", "write_cpu", "write_one_rate", "write_one_cpu"),
    "fs_block": ("block_rate", "block_cpu"),
    "fs_small": ("metadata_p50", "metadata_p99", "metadata_cpu",
                 "metadata_one_p50", "metadata_one_p99", "metadata_one_cpu",
                 "small_read_p50", "small_read_p99", "small_read_cpu",
                 "small_read_one_p50", "small_read_one_p99", "small_read_one_cpu"),
    "fs_pipeline": ("metadata_rate", "metadata_rate_cpu", "small_read_rate",
                    "small_read_rate_cpu"),
    "fs_walk": ("walk_p50", "walk_p99", "walk_cpu"),
    "fs_write_block": ("write_block_rate", "write_block_cpu"),
    "fs_list": ("list_p50", "list_p99", "list_cpu"),
    "fs_copy": ("copy_p50", "copy_p99", "copy_cpu"),
    "client": ("client_true_p50", "client_true_p99", "client_true_mux_p50", "client_key_p50",
               "client_key_p99", "client_cat", "client_up", "client_down", "client_tree_up",
               "client_tree_down", "client_far_up", "client_far_down", "client_call_p50",
               "client_idle", "client_copy_memory", "client_library_size", "client_program_size"),
    "http": ("http_p50", "http_p99", "http_cpu", "http_rate", "http_stream_cpu", "http_memory"),
    "console": ("console_rate", "console_cpu", "console_echo_p50", "console_echo_p99",
                "console_echo_cpu", "console_start_p50", "console_start_p99", "console_start_cpu"),
    "mcp": ("mcp_start_p50", "mcp_start_p99", "mcp_idle", "mcp_call_p50", "mcp_call_p99",
            "mcp_call_sandbox_p50", "mcp_call_sandbox_p99", "mcp_run", "mcp_run_checked",
            "mcp_escalate"),
    "hostile": tuple(f"hostile_{name}_{what}_p99"
                     for name in hostile.ATTACKS for what in ("status", "echo")),
}
