"""Judges the results and prints them."""

from figures import FIGURES, GROUPS


def number(value, unit=""):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        text = f"{value:,.0f}"
    elif abs(value) >= 100:
        text = f"{value:.0f}"
    elif abs(value) >= 10:
        text = f"{value:.1f}"
    else:
        text = f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def ratio_of(figure, ours, reference):
    """How many times better ours is."""
    if ours is None or reference is None:
        return None
    better, worse = (reference, ours) if figure.more_is_better else (ours, reference)
    return worse / better if better > 0 else None


def bar_text(figure):
    parts = []
    if figure.times is not None:
        beside = "" if figure.beside == "reference" else f" {figure.beside}"
        parts.append(f">= {figure.times:g}x{beside}")
    if figure.limit is not None:
        parts.append(f"<= {number(figure.limit, figure.unit)}")
    if figure.bare is not None:
        parts.append(f"{'>=' if figure.more_is_better else '<='} {figure.bare:g}x machine")
    return ", ".join(parts)


def beyond(figure, ours, machine):
    """Whether ours is on the wrong side of the bare loop's value, times `bare`."""
    bar = figure.bare * machine
    return ours < bar if figure.more_is_better else ours > bar


def verdict_of(figure, ours, ratio, machine, names):
    """PASS, FAIL, or nothing where there is no bar to judge by or nobody to be judged."""
    absolute = figure.limit is not None or figure.bare is not None
    if (figure.times is None and not absolute) or "ours" not in names:
        return ""
    if ours is None:
        return "FAIL"
    if figure.limit is not None and ours > figure.limit:
        return "FAIL"
    if figure.bare is not None and (machine is None or beyond(figure, ours, machine)):
        return "FAIL"
    if figure.times is not None:
        if figure.beside == "reference" and "reference" not in names:
            return "PASS" if absolute else "no reference"
        if ratio is None or ratio < figure.times:
            return "FAIL"
    return "PASS"


def judge(results, groups, names):
    """`names` of the programs that were measured."""
    rows = []
    for group, key in ((g, f) for g in groups for f in GROUPS[g]):
        figure = FIGURES[key]
        ours, reference = results.get(key, "ours"), results.get(key, figure.beside)
        ratio = ratio_of(figure, ours, reference)
        machine = results.get(key, "machine")
        verdict = verdict_of(figure, ours, ratio, machine, names)
        if verdict and group in results.errors:
            verdict = "FAIL"
        rows.append({
            "figure": key, "title": figure.title, "unit": figure.unit, "ours": ours,
            "reference": reference, "ratio": ratio, "machine": machine,
            "bar": bar_text(figure), "times": figure.times, "verdict": verdict,
            "rounds": results.values.get(key, {}),
        })
    return rows


def table(rows):
    lines = [("", "ours", "reference", "ratio", "machine", "bar", "")]
    for r in rows:
        ratio = "-" if r["ratio"] is None else f"{number(r['ratio'])}x"
        lines.append((r["title"], number(r["ours"], r["unit"]), number(r["reference"], r["unit"]),
                      ratio, number(r["machine"], r["unit"]), r["bar"], r["verdict"]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = []
    for line in lines:
        cells = [c.ljust(w) if i in (0, 5, 6) else c.rjust(w)
                 for i, (c, w) in enumerate(zip(line, widths))]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)
