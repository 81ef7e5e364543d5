"""The report as one HTML file that needs nothing else, and its plots as files of their own."""

import html
import os

import plot
import report

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62em; margin: 2em auto;
       padding: 0 1em; }
table { border-collapse: collapse; }
td, th { padding: 2px 10px; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; white-space: pre; }
.PASS { color: #0b6e4f; } .FAIL { color: #c0392b; font-weight: bold; }
.plots { display: flex; flex-wrap: wrap; gap: 12px; }
"""


def machine_of(about):
    return (f"{about['date']}, {about['cpus']} x {about['cpu']}, Linux {about['kernel']}, "
            f"load {about['load'][0]:.1f} to {about['load_after'][0]:.1f}, "
            f"{about['stolen']:.1%} stolen by the host, {about['repeated']} rounds repeated")


def ratio_rows(rows):
    """What has a ratio to clear."""
    return [(r["title"].strip(), r["ratio"], r["times"])
            for r in rows if r["times"] and r["ratio"]]


def plots_of(data):
    """SVG text by name."""
    plots = {name: plot.lines(curve) for name, curve in data["curves"].items()}
    ratios = ratio_rows(data["figures"])
    if ratios:
        plots["ratios"] = plot.bars("Times better than the reference (mark: the bar)", ratios)
    return plots


def table(rows):
    head = "".join(f"<th>{h}</th>" for h in ("", "exec-server", "reference", "ratio",
                                             "bare C loop", "bar", ""))
    body = []
    for r in rows:
        ratio = "-" if r["ratio"] is None else f"{report.number(r['ratio'])}x"
        cells = [r["title"], report.number(r["ours"], r["unit"]),
                 report.number(r["reference"], r["unit"]), ratio,
                 report.number(r["machine"], r["unit"]), r["bar"]]
        body.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells)
                    + f'<td class="{r["verdict"]}">{r["verdict"]}</td></tr>')
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def page(data):
    plots = plots_of(data)
    first = plots.pop("ratios", "")
    notes = "".join(f"<p>{html.escape(n)}</p>"
                    for n in sorted({c["note"] for c in data["curves"].values()} - {""}))
    errors = "".join(f'<p class="FAIL">{html.escape(g)}: {html.escape(t)}</p>'
                     for g, t in data["errors"].items())
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>exec-server benchmark</title>
<style>{STYLE}</style></head><body>
<h1>exec-server beside the reference</h1>
<p>{html.escape(machine_of(data["about"]))}. One run; the programs take turns, medians of the
rounds. "Bare C loop" is the least code that does the same reads, encoding and writes.</p>
{errors}{first}
<h2>Growth</h2><div class="plots">{"".join(plots.values())}</div>{notes}
<h2>Figures</h2>{table(data["figures"])}
</body></html>
"""


def write(path, data):
    with open(path, "w", encoding="utf-8") as f:
        f.write(page(data))


def write_plots(directory, data):
    os.makedirs(directory, exist_ok=True)
    for name, svg in plots_of(data).items():
        with open(os.path.join(directory, f"{name}.svg"), "w", encoding="utf-8") as f:
            f.write(svg)
    with open(os.path.join(directory, "machine.txt"), "w", encoding="utf-8") as f:
        f.write(machine_of(data["about"]) + "\n")
