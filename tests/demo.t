#!/usr/bin/python3
"""demo: the GEMM of the demo verifies, and README.md shows what it prints; BLESS=1 puts it there.
plain build only, limit: 300

What depends on the host is not compared: its seconds, and the largest error, whose last bits depend on the kernels that
OpenBLAS picks for the processor.
"""
import os

from harness import ROOT, bless, first_difference, ok, read, run, simulator, suite, topology
from shown import BLOCK, picked, simulated

README = os.path.join(ROOT, "README.md")


def main():
    ended = run(simulator(topology("ref_sip")), "run", "gemm_2d")
    ok(ended.returncode == 0, "the GEMM of the demo verifies", ended.said)
    made = BLOCK.sub(lambda block: f"$ {block[1]}\n{picked(block[2], ended.stdout)}", read(README))
    bless(README, made)
    ok(BLOCK.search(read(README))[1] == "build/ref_sip run gemm_2d", "README.md shows the command that the demo runs")
    difference = first_difference(simulated(read(README)), simulated(made))
    ok(not difference, "README.md shows what the demo prints", "README.md, its summary's " + difference)


suite(main)
