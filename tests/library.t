#!/usr/bin/python3
"""library: the benches of kernels/ verify for every dtype they claim, at uneven sizes, on 1, 8 and 128 PEs and on 2
SIPs, some on other machines, the race check finds nothing, and no run is faster than the bounds of its problem and of its algorithm.

tests/library/BENCH.jsonl has a point of a sweep on each line: parameters of the bench, and "on", the machines of that
point by the names below; without it the point is for all of them but the last two. Under the sanitizers each point is on
one of its machines, without the largest; those that take longest have "plain": true, and are left to the plain build.
limit: 600
"""
import json
import os
import sys

from harness import ROOT, SAN, ok, read, result, simulator, suite, sweep, topology, verifies

POINTS = os.path.join(ROOT, "tests", "library")
MACHINES = {
    "one": os.path.join(POINTS, "one.yaml"),
    "eight": os.path.join(POINTS, "eight.yaml"),
    "ref_sip": topology("ref_sip"),
    "two_sips": topology("two_sips"),
    "four_sips": os.path.join(POINTS, "four_sips.yaml"),
    "deep": os.path.join(POINTS, "deep.yaml"),
}
FEW = ("four_sips", "deep")                                    # only for the points that name them
LARGE = ("ref_sip",)                                    # not under the sanitizers


def points_of(bench, machine):
    lines = [json.loads(line) for line in read(os.path.join(POINTS, bench + ".jsonl")).splitlines()]
    return [{name: value for name, value in line.items() if name not in ("on", "plain")}
            for number, line in enumerate(lines)
            if machine in machines_of(line, number) and not (SAN and line.get("plain"))]


def machines_of(point, number):
    machines = point.get("on", [name for name in MACHINES if name not in FEW])
    if not SAN:
        return machines
    machines = [machine for machine in machines if machine not in LARGE]
    return machines[number % len(machines):][:1] if machines else []


def bounded(answer):
    """The problem needs no longer than the algorithm, part by part, and that no longer than the run."""
    if not answer or len(answer.get("bounds", [])) != 1:
        return False
    bounds, = answer["bounds"]
    return (0 < bounds["problem"]["bound_ps"] <= bounds["algorithm"]["bound_ps"] <= bounds["time_ps"] and
            all(least <= bounds["algorithm"][part] for part, least in bounds["problem"].items() if part != "by"))


def every(program, bench, machine):
    """One sweep; a point that does not verify, or is faster than its bounds, is told with its parameters."""
    points = points_of(bench, machine)
    if points:
        ended, answers = sweep(program, bench, points)
        wrong = [str(point) for point, answer in zip(points, answers) if not verifies(answer)]
        ok(ended.returncode == 0 and not wrong, f"{bench} verifies without a race at {len(points)} points on {machine}",
           *wrong, ended.said[-3000:] if ended.returncode else None)
        wrong = [f"{point}: {answer.get('bounds')}" for point, answer in zip(points, answers) if not bounded(answer)]
        ok(not wrong, f"{bench} takes no less than its problem's bound at {len(points)} points on {machine}", *wrong)


TIGHT = (("gemm", 4096, 4096, 4096, 950), ("gemm", 512, 1024, 2048, 875), ("gemm_2d", 2048, 2048, 2048, 900))


def tiles(program):
    """Tiles are whole cycles deep, those of the next block of C fit beside the one that is written, and the array works
    while the first panel comes: it is busy for most of the simulated time, where tiles of fewest bytes leave a quarter."""
    for bench, m, k, n, least in TIGHT:
        ended, made = result(program, bench, f"m={m}", f"k={k}", f"n={n}", "--data", "off")
        reached = made["bounds"][0]["problem"]
        ok(reached["by"] == "array" and reached["reached_permille"] >= least,
           f"{bench} of {m} x {k} x {n} keeps a deep array busy for {least / 10} % of the time", reached, ended.said)


def main():
    benches = sys.argv[1:] or sorted(name[:-6] for name in os.listdir(POINTS) if name.endswith(".jsonl"))
    for machine, file in MACHINES.items():
        if not (SAN and machine in LARGE):
            program = simulator(file)
            for bench in benches:
                every(program, bench, machine)
            if machine == "deep":
                tiles(program)


suite(main)
