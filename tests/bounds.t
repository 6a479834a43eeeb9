#!/usr/bin/python3
"""bounds: docs/kernels.md has each bench, with its figures at its defaults on ref_sip. plain build only, limit: 600

BLESS=1 writes the figures. They are simulated, and the same on every host. Other suites verify each bench.
"""
import os
import re

from harness import ROOT, bless, ok, read, run, simulator, suite, topology
from shown import figures

TABLE = os.path.join(ROOT, "docs", "kernels.md")
HEAD = "|---|---|---|---|---|---|---|\n"
FULL = {"layer": (("scale=1",),)}                       # the figures beside those of its defaults, which verify quickly
BENCH = re.compile(r"(?m)^(\w+): (.*) \((kernels/\w+\.c)\)\n((?:  .*\n)*)")


def benches(program):
    """(name, what it shows, its file, its parameters as they are listed) of each."""
    return [found.groups() for found in BENCH.finditer(run(program, "list").stdout.split("kernels:\n")[0])]


def dtypes(params):
    found = re.search(r"(?m)^  dtype +=.*\(([^)]*)\)$", params)
    return found[1] if found else ""


def stopped_by(output):
    """The part of the machine that bounds a run, and how busy it is."""
    found = re.search(r"(?m)^bound by +([^,:;]*)(?:[^,:;]*)(?:[,:] (\d[\d.]* %)?)", output)
    return " ".join(part for part in found.groups() if part) if found else ""


def row(program, bench, *words):
    name, what, file, params = bench
    ended = run(program, "run", name, *words, "--data", "off", timeout=200)
    cells = figures(ended.stdout) or ["", "", ""]
    ok(ended.returncode == 0 and cells[2], f"the summary of {' '.join((name, *words))} has time and bound", ended.said)
    called = f"[{' '.join((name, *words))}](../{file})"
    return "| " + " | ".join([called, what, dtypes(params), *cells, stopped_by(ended.stdout)]) + " |\n"


def verified_by_suites(program):
    known = set(re.findall(r'\("(\w+)"', read(os.path.join(ROOT, "tests", "collectives.t"))))
    known |= {name.removesuffix(".jsonl") for name in os.listdir(os.path.join(ROOT, "tests", "library"))}
    missing = [bench[0] for bench in benches(program) if bench[0] not in known]
    ok(not missing, "every bench has points in tests/library or is run by tests/collectives.t", *missing)


def main():
    program = simulator(topology("ref_sip"))
    verified_by_suites(program)
    before, _, was = read(TABLE).partition(HEAD)
    now = "".join(row(program, bench, *words)
                  for bench in benches(program) for words in ((), *FULL.get(bench[0], ())))
    bless(TABLE, before + HEAD + now)
    wrong = sorted(set(was.splitlines()) ^ set(now.splitlines()))
    ok(read(TABLE).endswith(HEAD + now), "the table of docs/kernels.md has the figures of these runs", *wrong)


suite(main)
