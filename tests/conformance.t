#!/usr/bin/python3
"""conformance: every case of a folder gives its expected result, trace and exit status, and the oracle's statistics,
critical path and accounts.

tests/conformance.t [FOLDER [CASE...]]: without arguments the cases of tests/conformance. limit: 400, quick
Under the sanitizers the oracle is not asked: what it would say is compared in the plain build.
"""
import json
import os
import sys

sys.path[1:1] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), part) for part in ("oracle", "fuzz")]

from harness import Broken, ROOT, Replay, SAN, SCRATCH, done, first_difference, ok, read      # noqa: E402
from harness import result_difference, simulator, stats_difference, without_why  # noqa: E402
import causes                                                   # noqa: E402
from cases import expected                                      # noqa: E402
from stream import Stream                                       # noqa: E402
from topology import Topology                                   # noqa: E402


def statuses(value):
    """Every `status` in a result, at whatever depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == "status" else statuses(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from statuses(inner)


def complaints(case, got):
    """The differences between a replay of a case and what it expects."""
    want = read(os.path.join(case, "expected.json"))
    status = 0 if all(one == "ok" for one in statuses(json.loads(want))) else 1
    wrong = []
    if got.status != status:
        wrong += [f"exit status: want {status}", got.said]
    if not got.result:
        return wrong or ["there is no result", got.said]
    if difference := result_difference(want, without_why(got.result)):
        wrong.append("result, " + difference)
    if difference := first_difference(read(os.path.join(case, "trace.jsonl")), got.trace):
        wrong.append("trace, " + difference)
    if SAN:
        return wrong
    oracle = expected(Topology(os.path.join(case, "topo.yaml")), Stream(os.path.join(case, "stream.yaml")))
    if isinstance(oracle, str):
        wrong.append(oracle)
        return wrong
    if difference := stats_difference(oracle[2], got.stats):
        wrong.append("statistics, " + difference)
    if difference := causes.difference(got.result, oracle[3]):
        wrong.append("causes, " + difference)
    return wrong


def check(case):
    name = os.path.basename(case)
    try:
        program = simulator(os.path.join(case, "topo.yaml"))
    except Broken as why:
        ok(False, f"kbgen makes the machine of {name}", why)
        return
    wrong = complaints(case, Replay(program, os.path.join(case, "stream.yaml"), os.path.join(SCRATCH, name), more=["--why-launches"]))
    ok(not wrong, f"{name} gives its expected result, trace, status, statistics and causes", *wrong)


def main():
    folder = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "tests", "conformance")
    for case in sys.argv[2:] or sorted(os.listdir(folder)):
        if os.path.exists(os.path.join(folder, case, "topo.yaml")):
            check(os.path.join(folder, case))
    done()


main()
