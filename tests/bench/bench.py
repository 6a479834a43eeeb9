#!/usr/bin/python3 -B
"""bench.py [ROW ...]: the goals of speed, measured: a row each, or those named, by name or by a part of it.

A row is a ratio of two things that are run in turn, pinned to one core: CPU time, user and system, of whole processes,
and the median of the pairs' ratios. In the environment: PAIRS (5), JSON=FILE for a copy that machines read, HISTORY=1 to
append the rows to bench/history.jsonl, SHARED (../shared, the folder that has peers/), and what setting.py names.

Exit status 0 when all rows could be measured and simulated ends are equal, 1 when not, 2 when no row has a name.
How long anything took is never an error.
"""
import json
import os
import subprocess
import sys
import tempfile
import textwrap

import build_time
import data_pass
import history
import itself
import memory
import peers
import searching
import skipping
from setting import CC, CORE, PEERS, ROOT, Broken, EndsDiffer, NotMeasured, Setting

ROWS = [row for rows in (peers, itself, skipping, build_time, memory, data_pass, searching) for row in rows.ROWS]
FORM = "{:18} {:>12} {:>10}  {:6} {:5}  {}"
DETAIL_AT, WIDTH = 58, 120
METHOD = """\
Medians of {pairs} pairs, A, B, A, B, on core {core}: CPU time of whole processes, for each stage service. A peer runs
the given input, ours the same launch again and again for about a second; simulated ends are held against each other.
Rows marked `skips` are made by fast-forward: what repeats itself is computed, not simulated."""


def chosen(words):
    """The rows that the words name; a word without a row ends the bench."""
    for word in words:
        if not any(row.answers_to(word) for row in ROWS):
            parts = sorted({part for row in ROWS for part in row.name.split("-") if "-" in row.name})
            print(textwrap.fill(f"bench: no row {word!r}; there are: {' '.join(row.name for row in ROWS)}; and by "
                                f"their parts: {' '.join(parts)}", WIDTH, break_on_hyphens=False), file=sys.stderr)
            sys.exit(2)
    return [row for row in ROWS if not words or any(row.answers_to(word) for word in words)]


def pairs():
    word = os.environ.get("PAIRS") or "5"
    if not word.isdecimal() or int(word) == 0:
        print(f"bench: PAIRS is a number of pairs, at least 1, not {word!r}", file=sys.stderr)
        sys.exit(2)
    return int(word)


def copy_path():
    """Where the copy for machines goes, or None; that it can be written is seen before the work."""
    path = os.environ.get("JSON")
    if path and not os.access(os.path.dirname(path) or ".", os.W_OK):
        print(f"bench: JSON={path}: there is no such folder, or it cannot be written to", file=sys.stderr)
        sys.exit(2)
    return path


def write_copy(path, document):
    """All of it or nothing."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def first_line(*command):
    try:
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    except OSError:
        said = ""
    return (said.splitlines() or ["unknown"])[0]


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def host():
    """What the figures belong to; a commit is `-dirty` when something was edited since."""
    return {"cpu": cpu_model(), "cores": os.cpu_count(), "compiler": first_line(CC, "--version"),
            "commit": first_line("git", "describe", "--always", "--dirty", "--exclude", "*"),
            "load_at_start": load()}


def measured(row, setting):
    """(the row as it stands in the JSON file, whether it could be measured and ends are equal)"""
    values = {"row": row.name, "goal": row.goal, "measured": None, "met": None, "skips": row.skips}
    try:
        result = row.measure(setting)
        return values | {"measured": result.measured, "met": result.met, "detail": result.detail} | result.figures, True
    except NotMeasured as why:
        return values | {"measured": "not measured", "detail": str(why)}, True
    except EndsDiffer as why:
        return values | {"measured": "ENDS DIFFER", "detail": str(why)}, False
    except (Broken, OSError, ImportError) as why:
        return values | {"measured": "failed", "detail": str(why)}, False


def show(values):
    met = {True: "met", False: "missed", None: "-"}[values["met"]]
    detail = textwrap.wrap(values["detail"], WIDTH - DETAIL_AT) or [""]
    print(FORM.format(values["row"], values["measured"], values["goal"], met, "skips" if values["skips"] else "", detail[0]))
    for line in detail[1:]:
        print(" " * DETAIL_AT + line)
    sys.stdout.flush()


def head(about, count):
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load_at_start']}; {about['compiler']}; "
          f"commit {about['commit']}")
    print(METHOD.format(pairs=count, core=CORE))
    print(FORM.format("row", "measured", "goal", "", "", "detail"), flush=True)


def without_peers(rows):
    """The rows that need no peers, which are not there."""
    print(f"bench: no peers in {PEERS}: their rows are left out; SHARED=FOLDER says where peers/ is", file=sys.stderr)
    return [row for row in rows if not row.needs_peers]


def main():
    rows, count, copy, keeps = chosen(sys.argv[1:]), pairs(), copy_path(), history.is_wanted()
    os.environ.pop("KBGEN_CACHE", None)             # so that what kbgen keeps is in the folder where it runs
    if any(row.needs_peers for row in rows) and not os.path.isdir(PEERS):
        rows = without_peers(rows)
    about, good, table = host(), bool(rows), []
    head(about, count)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        setting = Setting(folder, count)
        for row in rows:
            values, fine = measured(row, setting)
            good &= fine
            table.append(values)
            show(values)
    about["load_at_end"] = load()
    print(f"load at the end {about['load_at_end']}")
    if copy:
        write_copy(copy, {"host": about, "pairs": count, "rows": table})
    if keeps:
        history.append(table)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
