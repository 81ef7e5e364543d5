"""What is measured, how often, and which bar it has to clear.

Every group below runs its rounds on all programs in turn, so that a disturbance of the machine
meets each of them. Its results are values by figure name; a value belongs to "ours", "reference"
or "machine" (the least code that does the same work).
"""

import dataclasses
import os
import statistics
import time

from servers import running

MB = 1000 * 1000
BULK_BYTES = 512 * 1024 * 1024


@dataclasses.dataclass
class Figure:
    """`times`: ours must be at least so many times better; `limit`: and at most so much."""
    title: str
    unit: str
    times: float = None
    limit: float = None
    more_is_better: bool = False


FIGURES = {
    "start_p50": Figure("/bin/true, start to closed, p50", "us", times=15),
    "start_p99": Figure("/bin/true, start to closed, p99", "us"),
    "start_cpu": Figure("  server CPU per command", "us"),
    "echo_pipe_p50": Figure("one byte through a pipe, p50", "us", times=100),
    "echo_pipe_p99": Figure("one byte through a pipe, p99", "us"),
    "echo_pipe_cpu": Figure("  server CPU per byte", "us"),
    "echo_pty_p50": Figure("one byte through a PTY, p50", "us", times=100),
    "echo_pty_p99": Figure("one byte through a PTY, p99", "us"),
    "echo_pty_cpu": Figure("  server CPU per byte", "us"),
    "pipe_rate": Figure("512 MiB of pipe output", "MB/s", times=3.5, more_is_better=True),
    "pipe_cpu": Figure("  server CPU", "s", times=5),
    "idle_rss": Figure("memory when idle (VmRSS)", "kB", times=15, limit=3000),
    "file_size": Figure("size of the program", "kB", limit=1500),
    "startup_p50": Figure("exec to the printed URL, p50", "us", times=5),
    "startup_p99": Figure("exec to the printed URL, p99", "us"),
    "connection": Figure("memory per idle connection", "kB", limit=16),
    "status_p50": Figure("environment/status, p50", "us"),
    "status_p99": Figure("environment/status, p99", "us"),
    "status_cpu": Figure("  server CPU per request", "us"),
    "pipeline_rate": Figure("requests, 64 in flight", "1/s", more_is_better=True),
    "pipeline_cpu": Figure("  server CPU per request", "us"),
    "pty_rate": Figure("64 MiB of PTY output", "MB/s", more_is_better=True),
    "pty_cpu": Figure("  server CPU per GB", "s"),
    "spawn_rate": Figure("commands, 8 in flight", "1/s", more_is_better=True),
    "spawn_cpu": Figure("  server CPU per command", "us"),
    "spawn_total_cpu": Figure("  with children (the command too)", "us"),
    "slow_reader": Figure("memory growth, reader stalled 3 s", "kB"),
}


class Results:
    """Values by figure and program, one list entry per round, and what failed."""

    def __init__(self):
        self.values = {}
        self.errors = {}

    def add(self, figure, name, value):
        self.values.setdefault(figure, {}).setdefault(name, []).append(value)

    def get(self, figure, name):
        values = self.values.get(figure, {}).get(name)
        return statistics.median(values) if values else None


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Bench:
    """Runs the groups; `candidates` are ours and, when it is there, the reference."""

    def __init__(self, driver, candidates, quick):
        self.driver = driver
        self.candidates = candidates
        self.quick = quick
        self.results = Results()

    def rounds(self, full, quick):
        return range(quick if self.quick else full)

    def latency(self, prefix, servers, machine, rounds, measure, **options):
        """Samples of all rounds of one program make its p50 and p99."""
        samples, cpu = {}, {}
        for _ in rounds:
            for server in servers:
                done = self.driver(measure, server, **options)
                samples.setdefault(server.name, []).extend(done["samples"])
                cpu[server.name] = cpu.get(server.name, 0) + done["cpu_ns"]
            if machine:
                done = self.driver(machine, **{k: v for k, v in options.items() if k != "millis"})
                samples.setdefault("machine", []).extend(done["samples"])
        for name, values in samples.items():
            self.results.add(f"{prefix}_p50", name, percentile(values, 0.50) / 1e3)
            self.results.add(f"{prefix}_p99", name, percentile(values, 0.99) / 1e3)
            if name in cpu:
                self.results.add(f"{prefix}_cpu", name, cpu[name] / len(values) / 1e3)

    def start(self):
        with running(self.candidates) as servers:
            self.latency("start", servers, "machine-spawn", self.rounds(4, 2), "start",
                         count=500, millis=1000 if self.quick else 4000)

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
                self.driver("bulk", server, bytes=16 * 1024 * 1024, verify=True, **options)
            for _ in rounds:
                targets = [(s.name, "bulk", s) for s in servers]
                if not options:
                    targets.append(("machine", "machine-bulk", None))
                for name, measure, server in targets:
                    done = self.driver(measure, server, bytes=amount, **options)
                    self.results.add(rate, name, amount / MB / (done["wall_ns"] / 1e9))
                    self.results.add(cpu, name, done["cpu_ns"] / 1e9 * cpu_scale)

    def pipe(self):
        self.bulk("pipe_rate", "pipe_cpu", self.rounds(9, 3), BULK_BYTES, 1)

    def pty(self):
        amount = 64 * 1024 * 1024
        self.bulk("pty_rate", "pty_cpu", self.rounds(5, 2), amount, 1e9 / amount, tty=True)

    def idle(self):
        for _ in self.rounds(3, 1):
            with running(self.candidates) as servers:
                time.sleep(0.7)
                for server in servers:
                    self.results.add("idle_rss", server.name, server.rss() / 1000)

    def size(self):
        for candidate in self.candidates:
            self.results.add("file_size", candidate.name, os.stat(candidate.program).st_size / 1000)

    def startup(self):
        samples = {}
        for _ in self.rounds(8, 3):
            for candidate in self.candidates:
                done = self.driver("startup", command=candidate.command, env=candidate.env,
                                   count=10, warmup=2)
                samples.setdefault(candidate.name, []).extend(done["samples"])
            done = self.driver("startup", command=["/bin/echo"], count=10, warmup=2)
            samples.setdefault("machine", []).extend(done["samples"])
        for name, values in samples.items():
            self.results.add("startup_p50", name, percentile(values, 0.50) / 1e3)
            self.results.add("startup_p99", name, percentile(values, 0.99) / 1e3)

    def connections(self):
        for _ in self.rounds(3, 1):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.driver("connections", server, count=500)
                    grown = done["rss_after"] - done["rss_before"]
                    self.results.add("connection", server.name, grown / done["count"] / 1000)

    def status(self):
        with running(self.candidates) as servers:
            self.latency("status", servers, "machine-status", self.rounds(4, 2), "status",
                         count=5000, warmup=100, millis=2000)

    def rate(self, rate, cpu, measure, count, **options):
        with running(self.candidates) as servers:
            for _ in self.rounds(4, 2):
                for server in servers:
                    done = self.driver(measure, server, millis=700 if self.quick else 1500,
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

    def slow_reader(self):
        for _ in self.rounds(2, 1):
            with running(self.candidates) as servers:
                for server in servers:
                    done = self.driver("slow-reader", server, bytes=200 * MB, millis=3000)
                    grown = done["rss_peak"] - done["rss_before"]
                    self.results.add("slow_reader", server.name, grown / 1000)


# Group name on the command line, and the figures that it gives.
GROUPS = {
    "start": ("start_p50", "start_p99", "start_cpu"),
    "echo_pipe": ("echo_pipe_p50", "echo_pipe_p99", "echo_pipe_cpu"),
    "echo_pty": ("echo_pty_p50", "echo_pty_p99", "echo_pty_cpu"),
    "pipe": ("pipe_rate", "pipe_cpu"),
    "idle": ("idle_rss",),
    "size": ("file_size",),
    "startup": ("startup_p50", "startup_p99"),
    "connections": ("connection",),
    "status": ("status_p50", "status_p99", "status_cpu"),
    "pipeline": ("pipeline_rate", "pipeline_cpu"),
    "pty": ("pty_rate", "pty_cpu"),
    "spawns": ("spawn_rate", "spawn_cpu", "spawn_total_cpu"),
    "slow_reader": ("slow_reader",),
}
