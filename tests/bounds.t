#!/usr/bin/python3
"""bounds: docs/kernels.md has each bench, with its figures at its defaults on ref_sip; BLESS=1 puts them there.

Simulated figures are the same on every host. Each bench is in a suite too, which verifies it. limit: 600
"""
import os
import re
import sys

from harness import Broken, ROOT, done, ok, read, run, simulator
from shown import figures

TABLE = os.path.join(ROOT, "docs", "kernels.md")
HEAD = "|---|---|---|---|---|---|---|\n"
FULL = {"layer": (("scale=1",),)}                       # beside its defaults, which verify in a moment
BENCH = re.compile(r"(?m)^(\w+): (.*) \((kernels/\w+\.c)\)\n((?:  .*\n)*)")


def benches(program):
    """(name, what it shows, its file, its parameters as they are listed) of each."""
    return [found.groups() for found in BENCH.finditer(run(program, "list").stdout.split("kernels:\n")[0])]


def dtypes(params):
    found = re.search(r"(?m)^  dtype +=.*\(([^)]*)\)$", params)
    return found[1] if found else ""


def stopped_by(output):
    """What holds it up, and how busy that is."""
    found = re.search(r"(?m)^bound by +([^,:;]*)(?:[^,:;]*)(?:[,:] (\d[\d.]* %)?)", output)
    return " ".join(part for part in found.groups() if part) if found else ""


def row(program, bench, *words):
    name, what, file, params = bench
    ended = run(program, "run", name, *words, "--data", "off", timeout=200)
    cells = figures(ended.stdout) or ["", "", ""]
    ok(ended.returncode == 0 and cells[2], f"{' '.join((name, *words))} has figures", ended.said)
    called = f"[{' '.join((name, *words))}](../{file})"
    return "| " + " | ".join([called, what, dtypes(params), *cells, stopped_by(ended.stdout)]) + " |\n"


def verified_by_suites(program):
    known = set(re.findall(r'\("(\w+)"', read(os.path.join(ROOT, "tests", "collectives.t"))))
    known |= {name.removesuffix(".jsonl") for name in os.listdir(os.path.join(ROOT, "tests", "library"))}
    missing = [bench[0] for bench in benches(program) if bench[0] not in known]
    ok(not missing, "every bench has points in tests/library, or is one of the collectives' suite", *missing)


def main():
    program = simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"))
    verified_by_suites(program)
    before, _, was = read(TABLE).partition(HEAD)
    now = "".join(row(program, bench, *words)
                  for bench in benches(program) for words in ((), *FULL.get(bench[0], ())))
    if os.environ.get("BLESS"):
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write(before + HEAD + now)
        was = now
    wrong = sorted(set(was.splitlines()) ^ set(now.splitlines()))
    ok(was == now, "docs/kernels.md has these figures", *wrong)


if os.environ.get("SAN"):
    print("1..0 # SKIP the figures are those of the plain build")
    sys.exit()
try:
    main()
except Broken as reason:
    ok(False, "a simulator", reason)
done()
