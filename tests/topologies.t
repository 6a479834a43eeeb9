#!/usr/bin/python3
"""topologies: each machine of topologies/ is made, has the size that its head says, and runs a gemm and a softmax.

limit: 200
"""
import os
import re

from harness import KBGEN, ROOT, SAN, ok, read, run, simulator, suite, topology

FOLDER = os.path.join(ROOT, "topologies")
SMALL_RUNS = (("gemm", "m=100", "k=70", "n=90"), ("softmax", "rows=77", "cols=300"))

# SIPs, cubes, PEs, and runs that are short there.
MACHINES = {
    "small": (1, 1, 2, SMALL_RUNS),
    "two_sips": (2, 8, 32, SMALL_RUNS),
    "ref_sip": (1, 16, 128, SMALL_RUNS),
    "ref_pod": (32, 512, 4096, (("gemm", "m=65536", "k=128", "n=128"), ("softmax", "rows=8192", "cols=1024"))),
}
BIG = ("ref_sip", "ref_pod")                            # not under the sanitizers


def machine(name):
    sips, cubes, pes, runs = MACHINES[name]
    path = topology(name)
    program = simulator(path)
    said = run(program, "info").stdout
    ok(re.search(rf"(?s)SIPs +{sips}\n.*cubes +{cubes}:.*PEs +{pes}:", said),
       f"{name} has {sips} SIPs, {cubes} cubes and {pes} PEs", said)
    ok(read(path).startswith(f"# {name}: "), f"the head of {name}.yaml has its name")
    for words in runs:
        ended = run(program, "run", *words, timeout=100)
        ok(ended.returncode == 0 and "\nverified " in ended.stdout, f"{' '.join(words)} verifies on {name}", ended.said)


def every_dtype():
    """small has lanes for each dtype."""
    model = run(KBGEN, "--dump", "model", topology("small")).stdout
    dtypes = ("f32", "f16", "bf16", "i32", "i16", "i8", "u8")
    lanes = [name for name in dtypes if not re.search(rf"lanes\.{name}\b", model)]
    ok(not lanes, "small has lanes for every dtype", *lanes, model)


def main():
    names = sorted(name[:-5] for name in os.listdir(FOLDER) if name.endswith(".yaml"))
    ok(names == sorted(MACHINES), "this suite has every machine of topologies/", *names)
    for name in MACHINES:
        if not (SAN and name in BIG):
            machine(name)
    every_dtype()


suite(main)
