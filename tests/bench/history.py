#!/usr/bin/python3 -B
"""history: bench/history.jsonl, a line for each figure of a row and the commit that it was measured at, and its plot.

Run by itself it draws docs/speed.svg; with - it prints the plot.
"""
import json
import math
import os
import re
import subprocess
import sys

from setting import ROOT

HISTORY = os.path.join(ROOT, "bench", "history.jsonl")
PLOT = os.path.join(ROOT, "docs", "speed.svg")
# What is drawn: a panel for each title, its rows, in one unit.
PANELS = (
    ("times the speed of SystemC, each event simulated", ("irregular-pe1", "irregular-cube8", "irregular-sram8",
                                                          "irregular-sip128")),
    ("times the speed of SystemC, with fast-forward", ("systemc-pe1", "systemc-cube8", "systemc-sram8", "systemc-sip128")),
    ("CPU seconds of all benches of the library", ("library-timing", "library-data")),
    ("ms of CPU: a build more than an empty program, and other numbers", ("build-128", "build-4096", "build-other",
                                                                          "numbers")),
    ("without fast-forward, times as long as with it", ("skipped-whole-1", "skipped-whole-8", "skipped-whole-128",
                                                        "skipped-whole-4096", "skipped-library")),
)
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
WIDTH, HEIGHT, LEFT, RIGHT, TOP = 860, 170, 60, 180, 30
MILLISECONDS = {"s": 1e3, "ms": 1, "us": 1e-3}


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def is_wanted():
    """A figure belongs to a commit: ends the bench if something was edited since."""
    wanted = bool(os.environ.get("HISTORY"))
    if wanted and (not git("rev-parse", "HEAD") or git("status", "--porcelain", "--untracked-files=no")):
        print("bench: HISTORY=1 needs a tree without changes: commit first", file=sys.stderr)
        sys.exit(2)
    return wanted


def append(table):
    """Appends the rows that were measured, and draws the plot."""
    commit, date = git("rev-parse", "--short=7", "HEAD"), git("show", "-s", "--format=%cs", "HEAD")
    with open(HISTORY, "a", encoding="utf-8") as file:
        for row in table:
            if found := re.match(r"([\d.,]+) ?([A-Za-z/]+)", row["measured"]):
                line = {"commit": commit, "date": date, "row": row["row"], "figure": float(found[1].replace(",", "")),
                        "unit": found[2]}
                file.write(json.dumps(line) + "\n")
    draw()


def lines():
    with open(HISTORY, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def panel(title, rows, top, history, commits):
    """The SVG of one panel: a logarithmic scale over the commits of the history, in its order."""
    points = {row: [(commits.index(line["commit"]), line["figure"] * MILLISECONDS[line["unit"]]
                     if "ms of CPU" in title else line["figure"]) for line in history if line["row"] == row]
              for row in rows}
    values = [value for drawn in points.values() for _, value in drawn]
    low = math.floor(math.log10(min(values, default=1)))
    high = max(low + 1, math.ceil(math.log10(max(values, default=1))))
    right = WIDTH - RIGHT

    def at(index, value):
        x = LEFT + (right - LEFT) * (index + 0.5) / len(commits)
        return x, top + TOP + (HEIGHT - TOP - 30) * (high - math.log10(value)) / (high - low)

    out = [f'<text x="{LEFT}" y="{top + 18}" font-weight="bold">{title}</text>']
    for power in range(low, high + 1):
        _, y = at(0, 10**power)
        out.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for index, commit in enumerate(commits):
        x, _ = at(index, 10**low)
        out.append(f'<text x="{x:.1f}" y="{top + HEIGHT - 14}" text-anchor="middle" font-size="9">{commit}</text>')
    for number, (row, drawn) in enumerate(points.items()):
        colour, places = COLOURS[number], [at(*point) for point in drawn]
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        if len(places) > 1:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            out.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        last = f" {drawn[-1][1]:.3g}" if drawn else ""
        out.append(f'<text x="{right + 10}" y="{top + TOP + 12 + 16 * number}" fill="{colour}">{row}{last}</text>')
    return out


def plot():
    history = lines()
    commits = list(dict.fromkeys(line["commit"] for line in history))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(PANELS)}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for number, (title, rows) in enumerate(PANELS):
        out += panel(title, rows, HEIGHT * number, history, commits)
    return "\n".join(out + ["</svg>", ""])


def draw():
    with open(PLOT, "w", encoding="utf-8") as file:
        file.write(plot())


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(plot())
    else:
        draw()
