#!/usr/bin/python3
"""machines: every bench of the library verifies on machines whose PEs, slices, srams, TCMs, networks and DMAs are unlike
those of topologies/, and on those of fidelity/; a bench whose tensors no memory holds is refused. limit: 200

tests/machines.t [SEED [MACHINE...]]: the seed draws a point of tests/library/BENCH.jsonl for each machine and bench. Under
the sanitizers each bench runs on one of the machines.
"""
import json
import os
import random
import re
import sys

import yaml

from harness import LANES, ROOT, SAN, ok, read, run, simulator, suite, sweep, verifies

SEED, CHOSEN = (sys.argv[1:] + ["1"])[0], sys.argv[2:]
FOLDER, POINTS, FIDELITY = (os.path.join(ROOT, *names) for names in (("tests", "machines"), ("tests", "library"), ("fidelity",)))
SETS = sorted(name for name in os.listdir(FIDELITY) if os.path.isfile(os.path.join(FIDELITY, name, "set.yaml")))
VECTORS = [{"size": size, "dtype": dtype} for size, dtype in ((7, "f32"), (1025, "f16"), (1025, "i32"), (5003, "f32"))]
OTHERS = {"barrier": [{"count": 2, "skew_ns": 1000}]} | dict.fromkeys(
    ("all_gather", "all_reduce", "all_to_all", "broadcast", "reduce", "reduce_scatter"), VECTORS)


def machines():
    return sorted(name[:-5] for name in os.listdir(FOLDER)) + SETS


def program_of(name):
    if name not in SETS:
        return simulator(os.path.join(FOLDER, name + ".yaml"), name, settings=(LANES,))
    own = yaml.safe_load(read(os.path.join(FIDELITY, name, "set.yaml")))
    topology, *models = (os.path.join(FIDELITY, name, file) for file in [own["topology"], *own.get("models", [])])
    return simulator(topology, name, settings=(LANES,), impls=models)


def benches(program):
    return re.findall(r"(?m)^(\w+): .* \(kernels/\w+\.c\)$", run(program, "list").stdout)


def points(bench):
    """The points of a bench that do not take long and are for any machine, without the trivial one."""
    lines = [json.loads(line) for line in read(os.path.join(POINTS, bench + ".jsonl")).splitlines()]
    return OTHERS.get(bench) or [line for line in lines[1:] if not {"on", "plain"} & line.keys()] or lines[:1]


def is_drawn(bench, machine):
    names = machines()
    return not SAN or (names.index(machine) - sum(map(ord, bench))) % len(names) == 0


def every(machine):
    """Every bench at a point, without a race."""
    program, wrong, count = program_of(machine), [], 0
    for bench in benches(program):
        if is_drawn(bench, machine):
            point = random.Random(f"{SEED}/{machine}/{bench}").choice(points(bench))
            ended, answers = sweep(program, bench, [point])
            wrong += [] if verifies(answers[0]) else [f"{bench} {point}: {answers[0]}", ended.said]
            count += 1
    ok(not wrong, f"{count} benches verify on {machine}", *wrong)


def refused():
    """Where there are neither HBM nor srams, vectors can lie in TCMs; other tensors have no place."""
    program, wrong = program_of("tcm_alone"), []
    for bench in benches(program):
        if bench in OTHERS and bench != "barrier":
            _, answers = sweep(program, bench, [{"size": 1025, "space": "tcm"}])
            wrong += [] if verifies(answers[0]) else [f"{bench}: {answers[0]}"]
        ended = run(program, "run", bench)
        if ended.returncode != 2 or not re.search(r"^kernels/\w+\.[ch]:\d+: error: .*: the machine has no HBM$", ended.stderr):
            wrong.append(ended.said)
    ok(not wrong, "on tcm_alone collectives verify in TCMs, and other benches are refused", *wrong)


def tight():
    """Vectors that leave little of a TCM: what is kept between the levels, and the buffers, take no more than the rest."""
    points = [{"size": size, "dtype": "f16", "space": "tcm", "algorithm": "levels"} for size in (3000, 5000, 7000)]
    _, answers = sweep(program_of("small_tcm"), "all_to_all", points)
    ok(all(map(verifies, answers)), "on small_tcm all_to_all in levels verifies beside vectors that fill the TCM", answers)


def main():
    if not CHOSEN:
        tight()
    for machine in CHOSEN or machines():
        if machine == "tcm_alone":
            refused()
        else:
            every(machine)


suite(main)
