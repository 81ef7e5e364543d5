"""Plots as SVG text: lines over two logarithmic axes, and bars of ratios. No library."""

import html
import math

COLOURS = {"ours": "#0b6e4f", "reference": "#c0392b", "machine": "#7f8c8d"}
NAMES = {"ours": "exec-server", "reference": "reference", "machine": "bare C loop"}
WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 46
FONT = 'font-family="system-ui, sans-serif"'


def short(value):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def powers(low, high):
    """The powers of ten from at or below `low` to at or above `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**n for n in range(first, max(last, first + 1) + 1)]


class Axis:
    """Logarithmic, from the first to the last of its marks."""

    def __init__(self, marks, begin, end):
        self.marks = marks
        self.begin, self.end = begin, end

    def at(self, value):
        low, high = math.log10(self.marks[0]), math.log10(self.marks[-1])
        return self.begin + (math.log10(value) - low) / (high - low) * (self.end - self.begin)


def text(x, y, words, anchor="middle", size=11, colour="#222", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}" {FONT} {extra}>{html.escape(words)}</text>')


def frame(title, width, height):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            f"<title>{html.escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            text(width / 2, 18, title, size=13)]


def grid(x, y, curve):
    out = []
    for mark in x.marks:
        at = x.at(mark)
        out.append(f'<line x1="{at:.1f}" y1="{y.begin}" x2="{at:.1f}" y2="{y.end}" '
                   'stroke="#e4e4e4"/>')
        out.append(text(at, y.begin + 15, short(mark)))
    for mark in y.marks:
        at = y.at(mark)
        out.append(f'<line x1="{x.begin}" y1="{at:.1f}" x2="{x.end}" y2="{at:.1f}" '
                   'stroke="#e4e4e4"/>')
        out.append(text(x.begin - 6, at + 4, short(mark), anchor="end"))
    out.append(text((x.begin + x.end) / 2, y.begin + 32, curve["x"], colour="#555"))
    middle = (y.begin + y.end) / 2
    out.append(text(14, middle, curve["y"], colour="#555",
                    extra=f'transform="rotate(-90 14 {middle:.1f})"'))
    return out


def line(points, x, y, colour):
    places = [(x.at(a), y.at(b)) for a, b in points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'
                   for a, b in places)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'


def legend(programs, width):
    out, at = [], width - RIGHT
    for name in reversed(programs):
        label = NAMES[name]
        out.append(text(at, 34, label, anchor="end", colour=COLOURS[name]))
        at -= 7 * len(label) + 14
    return out


def lines(curve):
    """One plot of a curve of curves.py."""
    programs = {n: [p for p in points if p[0] > 0 and p[1] > 0]
                for n, points in curve["points"].items()}
    every = [p for points in programs.values() for p in points]
    x = Axis(powers(min(p[0] for p in every), max(p[0] for p in every)), LEFT, WIDTH - RIGHT)
    y = Axis(powers(min(p[1] for p in every), max(p[1] for p in every)), HEIGHT - BOTTOM, TOP)
    out = frame(curve["title"], WIDTH, HEIGHT) + grid(x, y, curve)
    out += [line(points, x, y, COLOURS[name]) for name, points in programs.items()]
    return "\n".join(out + legend(list(programs), WIDTH) + ["</svg>", ""])


def bars(title, rows):
    """Ratios: rows of (name, ratio, bar it must clear or None)."""
    left, step, width = 250, 22, 760
    height = 44 + step * len(rows)
    scale = Axis(powers(1, max(r[1] for r in rows)), left, width - 70)
    out = frame(title, width, height)
    for i, (name, ratio, bar) in enumerate(rows):
        top = 32 + i * step
        end = scale.at(max(ratio, 1))
        out.append(text(left - 8, top + 13, name, anchor="end"))
        out.append(f'<rect x="{left}" y="{top + 2}" width="{max(end - left, 1):.1f}" height="14" '
                   f'fill="{COLOURS["ours"]}"/>')
        out.append(text(end + 5, top + 13, f"{ratio:.3g}x", anchor="start"))
        if bar:
            at = scale.at(bar)
            out.append(f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + 18}" '
                       'stroke="#222" stroke-width="2"/>')
    return "\n".join(out + ["</svg>", ""])
