"""The rounds of a measurement. In a virtual machine the host may take the CPUs for others, and then
everything is slow: such a round is taken again, for all programs alike, when the host is quiet."""

import sys
import time

STOLEN_MAX = 0.03  # of the CPU time of a round
PATIENCE = 180  # seconds that a run may wait for the host, in all


def cpu_times():
    """Time that the host took from the CPUs, and time in all, since the machine started."""
    with open("/proc/stat", encoding="ascii") as f:
        times = [int(n) for n in f.readline().split()[1:9]]
    return times[7], sum(times)


def stolen(since):
    """The share taken since then, by cpu_times()."""
    now = cpu_times()
    return (now[0] - since[0]) / max(1, now[1] - since[1])


class Patience:
    """What is left of it."""

    def __init__(self):
        self.left = PATIENCE

    def wait(self):
        """Until the host has taken little for two seconds."""
        calm = 0
        while calm < 2 and self.left > 0:
            print(".", end="", file=sys.stderr, flush=True)
            since = cpu_times()
            time.sleep(1)
            calm = calm + 1 if stolen(since) < STOLEN_MAX / 2 else 0
            self.left -= 1


class Round:
    """One round; whether it counts is known when the next one begins."""

    kept = True


class Rounds:
    """Gives a Round for each turn, and takes back what a disturbed one has added to the results. As
    many as there are rounds can be taken again, then they count as they are."""

    def __init__(self, count, results):
        self.count = count
        self.results = results

    def __iter__(self):
        left, again = self.count, self.count
        while left > 0:
            turn, since = Round(), cpu_times()
            self.results.mark()
            yield turn
            if again > 0 and stolen(since) > STOLEN_MAX:
                turn.kept = False
                again -= 1
                self.results.take_back()
                self.results.patience.wait()
            else:
                left -= 1
