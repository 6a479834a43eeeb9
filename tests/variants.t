#!/usr/bin/python3
"""variants: clang with optimisation, and clang's sanitizers without, give the same bytes as this build.
plain build only, limit: 900

The suites run on a build by gcc with optimisation, and once more on one with gcc's sanitizers. clang's warnings do not
depend on optimisation, so that of the kernels only those that run here are built twice.
"""
import os

from harness import Broken, GEMM, KBGEN, ROOT, Replay, SMALL, first_difference, folder, make, ok, read, run, simulator
from harness import suite, without_host

BENCHES = (("gemm", *GEMM), ("layer", "tokens=5"))
# Compiler, optimisation, sanitizers, what is built.
VARIANTS = (("clang", "-O3", "", ["kbgen", "runtime.o"]), ("clang", "-O0", "1", ["all"]))
CASES = ("across_sips", "edge_tiles", "epilogue_once", "queue_depth_1", "units")


def replayed(kbgen, where, case):
    """Result, trace and statistics of a conformance case."""
    files = os.path.join(ROOT, "tests", "conformance", case)
    program = simulator(os.path.join(files, "topo.yaml"), kbgen=kbgen, where=where)
    got = Replay(program, os.path.join(files, "stream.yaml"), os.path.join(where, case))
    if got.status != 0:
        raise Broken(got.said)
    return got.result + got.trace + got.stats


def ran(kbgen, where, *words):
    """Result and trace of a bench on the small machine."""
    trace = os.path.join(where, words[0] + ".jsonl")
    ended = run(simulator(SMALL, kbgen=kbgen, where=where), "run", *words, "--json", "-", "--trace", trace)
    if ended.returncode:
        raise Broken(ended.said)
    return without_host(ended.stdout) + read(trace)


def everything(kbgen, where):
    outcome = {}
    for case in CASES + BENCHES:
        name = case if case in CASES else "run " + case[0]
        try:
            outcome[name] = replayed(kbgen, where, case) if case in CASES else ran(kbgen, where, *case)
        except Broken as why:
            outcome[name] = why
    return outcome


def main():
    want = everything(KBGEN, folder("here"))
    for cc, opt, san, targets in VARIANTS:
        name = f"{cc}{opt}{'-san' if san else ''}"
        if targets != ["all"]:
            targets = [f"build/{name}/{target}" for target in targets]
            targets.append("kernels=" + " ".join(f"build/{name}/kernels/{bench}.o" for bench, *_ in BENCHES))
        built = make("CC=" + cc, "OPT=" + opt, "SAN=" + san, "WERROR=-Werror", *targets)
        if not ok(built.returncode == 0, f"kbgen and the runtime build without a warning by {name}", built.said):
            continue
        got = everything(os.path.join(ROOT, "build", name, "kbgen"), folder(name))
        for case, text in got.items():
            broken = [why for why in (want[case], text) if isinstance(why, Broken)]
            ok(not broken and text == want[case], f"result, trace and statistics of {case} are the same by {name}",
               *(broken or [first_difference(want[case], text)]))


suite(main)
