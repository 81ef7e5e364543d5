"""What all actors of a soak share: the server, data, counts, failures, and the gate."""

import collections
import os
import random
import re
import resource
import signal
import threading
import time
import traceback

import judge
from harness import procfs
from harness.metrics import metrics
from harness.rpc import RpcError
from harness.sandbox import PROTECTED, special, uri

BLOB = 4 << 20
MOST_FAILURES = 10
STOPPED, STARVED = "fault: server stopped and continued", "fault: descriptors exhausted"
# Errors of a server that has no descriptor left, whatever part of it noticed.
FAMINE_TEXTS = ("(os error 24)", "(os error 23)")


class World:
    def __init__(self, server, directory, seed, lasting):
        self.server, self.directory, self.seed = server, directory, seed
        # Connections may be left that only the server's next ping finds dead.
        self.lasting = lasting
        rng = random.Random(seed)
        # What streams carry: any bytes, and characters that a terminal passes on.
        self.blob = rng.randbytes(BLOB)
        self.text = bytes(rng.choices(range(33, 127), k=BLOB))
        self.blob_file, self.text_file = directory / "blob", directory / "text"
        self.blob_file.write_bytes(self.blob)
        self.text_file.write_bytes(self.text)
        self.workspace = directory / "ws"
        self.workspace.mkdir()
        self.can_sandbox = True
        self.disk = None  # a small file system
        self.disk_lock = threading.Lock()
        self.lock = threading.Lock()
        self.counts, self.excused = collections.Counter(), collections.Counter()
        self.bytes = 0
        self.failures = []
        self.famine_ends = 0.0

    # Counting.

    def count(self, name, n=1):
        with self.lock:
            self.counts[name] += n

    def checked(self, n):
        with self.lock:
            self.bytes += n

    def fail(self, what, error=None):
        text = f"{what}: {type(error).__name__}: {error}" if error else what
        trace = "".join(traceback.format_tb(error.__traceback__)) if error else ""
        with self.lock:
            self.failures.append({"what": text[:2000], "trace": trace})
            print(f"FAILED  {text[:2000]}\n{trace}", flush=True)

    def hopeless(self):
        return len(self.failures) >= MOST_FAILURES or not self.server.running()

    def refused(self, error):
        """Counts a refusal that is excused, by its text."""
        self.count("refused for want of descriptors")
        with self.lock:
            self.excused[re.sub(r"[0-9a-f]{8,}|/[^ :]+", "_", error.message)[:120]] += 1

    def starving(self, began=None):
        """Descriptors are, or were since `began`, short."""
        return (time.monotonic() - 5 if began is None else began) < self.famine_ends

    def excuses(self, error, began):
        """A refusal for want of descriptors while there were none."""
        return (isinstance(error, RpcError) and self.starving(began)
                and any(text in error.message for text in FAMINE_TEXTS))

    # Faults of the whole server.

    def stop_server(self, seconds):
        self.server.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.send_signal(signal.SIGCONT)
        self.count(STOPPED)

    def starve_server(self, seconds):
        """Leaves the server next to no descriptors."""
        before = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        self.famine_ends = time.monotonic() + seconds + 5
        low = self.server.fds() + 3
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (low, before[1]))
        time.sleep(seconds)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, before)
        self.famine_ends = time.monotonic() + 1
        self.count(STARVED)

    # Observation.

    def sessions(self):
        said = metrics(self.server)
        return sum(said.get("sessions", state=s) for s in ("attached", "detached"))

    def left_behind(self):
        """Protected names that sandboxes left in the workspace."""
        return [name for name in PROTECTED if os.path.lexists(self.workspace / name)]

    def memory(self):
        """Bytes: resident, its share of what is shared, private to it."""
        wanted = {"Rss": 0, "Pss": 0, "Anonymous": 0}
        with open(f"/proc/{self.server.pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                name = line.partition(":")[0]
                if name in wanted:
                    wanted[name] = int(line.split()[1]) * 1024
        return wanted

    def state(self):
        return {"descriptors": self.server.fds(), "threads": self.server.threads(),
                "processes": len(procfs.descendants(self.server.pid))}

    def settled_state(self, wanted=None):
        """The least of each count: connections that asked are on their way out.

        Looks for a second, or until all are as wanted, at most three minutes.
        """
        least, end = self.state(), time.monotonic() + (180 if wanted else 1)
        while time.monotonic() < end and not (wanted and judge.all_back(wanted, least)):
            time.sleep(0.1)
            least = {name: min(n, least[name]) for name, n in self.state().items()}
        return least

    # Policies.

    def sandbox(self, writable=None):
        """Everything may be read, `writable` written; no network. None where there is none."""
        if not self.can_sandbox:
            return None
        entries = [{"path": special("root"), "access": "read"}]
        if writable:
            entries.append({"path": {"type": "path", "path": uri(writable)}, "access": "write"})
        return {"permissions": {"type": "managed", "network": "restricted",
                                "file_system": {"type": "restricted", "entries": entries}},
                "cwd": uri(self.workspace), "workspaceRoots": [uri(self.workspace)],
                "windowsSandboxLevel": "disabled"}


class Gate:
    """Lets actors in, or waits until all are out."""

    def __init__(self, actors):
        self.actors = actors
        self.inside = actors
        self.open = self.over = False
        self.change = threading.Condition()

    def enter(self):
        """Waits until the gate is open; False when all is over."""
        with self.change:
            self.inside -= 1
            self.change.notify_all()
            self.change.wait_for(lambda: self.open or self.over)
            self.inside += 1
            return not self.over

    def set(self, is_open, over=False):
        with self.change:
            self.open, self.over = is_open, over
            self.change.notify_all()

    def wait_empty(self, seconds):
        with self.change:
            return self.change.wait_for(lambda: self.inside == 0, seconds)
