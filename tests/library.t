#!/usr/bin/python3
"""library: the benches of kernels/ verify for every dtype they claim, at uneven sizes, on 1, 8, 128 PEs and 2 SIPs,
and the race check has nothing to say.

tests/library/BENCH.jsonl has a point of a sweep on each line: the bench's parameters, and "on", the machines of that
point by the names below; all of them if it does not say. limit: 600
"""
import json
import os
import sys

from harness import Broken, ROOT, SCRATCH, done, ok, read, run, simulator, write

POINTS = os.path.join(ROOT, "tests", "library")
MACHINES = {
    "one": os.path.join(POINTS, "one.yaml"),
    "eight": os.path.join(POINTS, "eight.yaml"),
    "ref_sip": os.path.join(ROOT, "topologies", "ref_sip.yaml"),
    "two_sips": os.path.join(ROOT, "topologies", "two_sips.yaml"),
}
SLOW = ("ref_sip",)                                      # not under sanitizers


def points_of(bench, machine):
    lines = [json.loads(line) for line in read(os.path.join(POINTS, bench + ".jsonl")).splitlines()]
    return [{name: value for name, value in line.items() if name != "on"}
            for line in lines if machine in line.get("on", MACHINES)]


def every(program, bench, machine):
    """One sweep; a point that did not verify is told with its parameters."""
    points = points_of(bench, machine)
    if not points:
        return
    path = write(os.path.join(SCRATCH, f"{bench}-{machine}.jsonl"), "".join(json.dumps(p) + "\n" for p in points))
    ended = run(program, "run", bench, "--races", "--points", path, timeout=300)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    wrong = [str(point) for point, answer in zip(points, answers)
             if not answer.get("verify") or any(check["status"] != "ok" for check in answer["verify"])]
    ok(ended.returncode == 0 and len(answers) == len(points) and not wrong,
       f"{bench} on {machine}, {len(points)} points", *wrong, ended.said[-3000:] if ended.returncode else None)


try:
    benches = sys.argv[1:] or sorted(name[:-6] for name in os.listdir(POINTS) if name.endswith(".jsonl"))
    for machine, topology in MACHINES.items():
        if machine in SLOW and os.environ.get("SAN"):
            continue
        program = simulator(topology)
        for bench in benches:
            every(program, bench, machine)
except Broken as reason:
    ok(False, "a simulator", reason)
done()
