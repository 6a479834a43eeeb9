#!/usr/bin/python3
"""variants: gcc without and clang with optimisation, and clang's sanitizers give the same bytes as this build.
plain build only, limit: 900

This build has gcc's own optimisation; tests/run runs every suite with gcc's sanitizers.
"""
import os

from harness import Broken, GEMM, KBGEN, ROOT, Replay, SCRATCH, done, first_difference, make, ok, read, run
from harness import simulator, without_host

VARIANTS = (("gcc", "-O0", ""), ("clang", "-O3", ""), ("clang", "-O0", "1"))
CASES = ("across_sips", "edge_tiles", "epilogue_once", "queue_depth_1", "units")
BENCHES = (("gemm", *GEMM), ("layer", "tokens=5"))
SMALL = os.path.join(ROOT, "tests", "small.yaml")


def replayed(kbgen, folder, case):
    """Result and trace of a conformance case."""
    where = os.path.join(ROOT, "tests", "conformance", case)
    program = simulator(os.path.join(where, "topo.yaml"), kbgen=kbgen, where=folder)
    got = Replay(program, os.path.join(where, "stream.yaml"), os.path.join(folder, case))
    if got.status != 0:
        raise Broken(got.said)
    return got.result + got.trace


def ran(kbgen, folder, *words):
    """Result and trace of a bench on the small machine."""
    result, trace = os.path.join(folder, words[0] + ".json"), os.path.join(folder, words[0] + ".jsonl")
    ended = run(simulator(SMALL, kbgen=kbgen, where=folder), "run", *words, "--json", result, "--trace", trace)
    if ended.returncode:
        raise Broken(ended.said)
    return without_host(read(result)) + read(trace)


def everything(kbgen, folder):
    os.makedirs(folder, exist_ok=True)
    outcome = {}
    for case in CASES + BENCHES:
        name = case if case in CASES else "run " + case[0]
        try:
            outcome[name] = replayed(kbgen, folder, case) if case in CASES else ran(kbgen, folder, *case)
        except Broken as why:
            outcome[name] = why
    return outcome


def main():
    want = everything(KBGEN, os.path.join(SCRATCH, "here"))
    for cc, opt, san in VARIANTS:
        name = f"{cc}{opt}{'-san' if san else ''}"
        built = make("CC=" + cc, "OPT=" + opt, "SAN=" + san, "WERROR=-Werror", "all")
        if not ok(built.returncode == 0, f"{name} builds without a warning", built.said):
            continue
        got = everything(os.path.join(ROOT, "build", name, "kbgen"), os.path.join(SCRATCH, name))
        for case, text in got.items():
            broken = [why for why in (want[case], text) if isinstance(why, Broken)]
            ok(not broken and text == want[case], f"{name}: {case} is the same",
               *(broken or [first_difference(want[case], text)]))
    done()


main()
