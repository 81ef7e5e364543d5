"""The sizes that README.md promises, compared with built files."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
UNITS = {"kB": 1e3, "MB": 1e6}
TOLERANCE = 0.05  # of what is promised: a figure changes with nearly every commit


def promised(label):
    """The figures of the row of README's table that begins with the label, in bytes."""
    for line in README.read_text().splitlines():
        if line.startswith(f"| {label}"):
            cells = line.strip("| ").split(" | ")
            return [float(n) * UNITS[unit]
                    for n, unit in re.findall(r"([\d.]+) (kB|MB)", cells[-1])]
    raise LookupError(f"README.md has no row {label!r}")


def stale(label, *sizes):
    """What is wrong in a row, or None. The sizes are those of its first figures; None: not built."""
    figures = promised(label)
    assert 0 < len(sizes) <= len(figures), (label, figures, sizes)
    wrong = [f"{size} bytes" for figure, size in zip(figures, sizes)
             if size is not None and abs(size - figure) > TOLERANCE * figure]
    return f"README.md, sizes, {label}: it is {', '.join(wrong)} now" if wrong else None
