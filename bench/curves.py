"""How the figures grow: the same measurement with ever more of something.

Each point is taken in rounds, all programs in turn. The results have the form
{curve: {"title", "x", "y", "points": {program: [[x, y], ...]}, "note"}}. Where the reference gives
up, its line ends and the note says why; for ours that is an error.
"""

import statistics

from servers import BenchError, running

MB = 1000 * 1000

CONNECTIONS = (1, 10, 100, 300, 1000)
PROCESSES = (1, 10, 50, 100, 250, 500)
OUTPUT = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
ENTRIES = (10, 100, 1000, 10000, 50000)

TITLES = {  # title, x, y
    "connections_memory": ("Memory with open connections", "connections", "MB"),
    "connections_latency": ("One request with open connections, p50", "connections", "us"),
    "processes_memory": ("Memory with running processes", "processes", "MB"),
    "processes_latency": ("One byte through a pipe with running processes, p50", "processes",
                          "us"),
    "processes_start": ("Time per start, 32 in flight", "processes", "us"),
    "output_time": ("Output of one command, start to closed", "bytes", "ms"),
    "entries_latency": ("fs/readDirectory, p50", "entries", "us"),
}


class Curves:
    """Measures all curves; `values` are lists by (curve, program, x)."""

    def __init__(self, driver, candidates, files, quick):
        self.driver = driver
        self.candidates = candidates
        self.files = files
        self.quick = quick
        self.values = {}
        self.notes = {}  # by the first word of the curve

    def add(self, curve, program, x, y):
        self.values.setdefault(curve, {}).setdefault(program, {}).setdefault(x, []).append(y)

    def rounds(self):
        return range(1 if self.quick else 3)

    def crowd(self, prefix, measure, sizes):
        """A fresh server for each size: memory is not given back by everybody."""
        able = list(self.candidates)
        for size in sizes:
            for _ in self.rounds():
                with running(able) as servers:
                    for server, candidate in zip(servers, list(able)):
                        try:
                            self.crowd_point(prefix, server, size,
                                             self.driver(measure, server, count=size))
                        except BenchError as e:
                            self.excuse(server, e, prefix, f"{size} {prefix}")
                            able.remove(candidate)

    def excuse(self, server, error, curve, where):
        """The reference may fail somewhere; that is noted, and the curve goes on."""
        if server is None or server.name == "ours":
            raise error
        self.notes[curve] = f"{error} (at {where})"

    def crowd_point(self, prefix, server, size, done):
        self.add(f"{prefix}_memory", server.name, size, done["rss_after"] / MB)
        self.add(f"{prefix}_latency", server.name, size, statistics.median(done["samples"]) / 1e3)
        if prefix == "processes":
            self.add("processes_start", server.name, size, done["wall_ns"] / size / 1e3)

    def connections(self):
        self.crowd("connections", "crowd-connections", CONNECTIONS)

    def processes(self):
        self.crowd("processes", "crowd-processes", PROCESSES)

    def output(self):
        with running(self.candidates) as servers:
            for size in OUTPUT:
                for _ in self.rounds():
                    targets = [(s.name, "bulk", s) for s in servers]
                    targets.append(("machine", "machine-bulk", None))
                    for name, measure, server in targets:
                        try:
                            done = self.driver(measure, server, bytes=size)
                            self.add("output_time", name, size, done["wall_ns"] / 1e6)
                        except BenchError as e:
                            self.excuse(server, e, "output", f"{size} bytes of output")

    def entries(self):
        with running(self.candidates) as servers:
            for size in ENTRIES:
                path = self.files.directory_of(size)
                for _ in self.rounds():
                    for server in servers:
                        done = self.driver("list", server, path=path, entries=size, count=50,
                                           warmup=2, millis=1000)
                        self.add("entries_latency", server.name, size,
                                 statistics.median(done["samples"]) / 1e3)

    def results(self):
        out = {}
        for curve, programs in self.values.items():
            title, x, y = TITLES[curve]
            points = {name: [[size, statistics.median(values)]
                             for size, values in sorted(sizes.items())]
                      for name, sizes in programs.items()}
            out[curve] = {"title": title, "x": x, "y": y, "points": points,
                          "note": self.notes.get(curve.split("_", maxsplit=1)[0], "")}
        return out


GROUPS = ("connections", "processes", "output", "entries")
