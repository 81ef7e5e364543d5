#!/usr/bin/python3
"""What interception costs per external command: /bin/true in a loop of the shell.

    bench/exec_cost.py [--execs N] [--rounds N] [--all-cpus]

On one CPU, with real-time priority where that is allowed, so that other load does not count. The
rounds of all configurations alternate. Microseconds per command: least, median, and the median
above that without interception.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("EXEC_SERVER", ROOT / "build" / "exec-server")).parent
DRIVER = BUILD / "tests" / "intercept-driver"
PRIORITY = 10


def settle(all_cpus):
    """In the child: one CPU and a priority that others do not have."""
    if not all_cpus:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--execs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--all-cpus", action="store_true")
    args = parser.parse_args()
    shell = ["/bin/sh", "-c", f"i=0; while [ $i -lt {args.execs} ]; do /bin/true; i=$((i+1)); done"]
    configurations = {
        "no interception": shell,
        "Run, unchecked": [DRIVER, "--no-check", "--", *shell],
        "Run": [DRIVER, "--", *shell],
        "Escalate": [DRIVER, "--escalate", "true", "--", *shell],
        "Deny": [DRIVER, "--deny", "true", "--", *shell],
    }
    taken = {name: [] for name in configurations}
    for _ in range(args.rounds):
        for name, command in configurations.items():
            since = time.monotonic()
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: settle(args.all_cpus))
            taken[name].append((time.monotonic() - since) / args.execs * 1e6)
    plain = statistics.median(taken["no interception"])
    for name, values in taken.items():
        median = statistics.median(values)
        print(f"{name:16} {min(values):6.0f} {median:6.0f} {median - plain:+6.0f}")


if __name__ == "__main__":
    main()
