#!/usr/bin/python3
"""demo: the demo's GEMM verifies, and prints the lines that README.md shows; BLESS=1 puts them there. limit: 300

What depends on the host is left out of the comparison: its seconds, and the largest error, whose last bits follow from
the kernels that OpenBLAS picks for the processor.
"""
import os
import sys

from harness import ROOT, Broken, done, first_difference, ok, read, run, simulator, write
from shown import BLOCK, picked, simulated

README = os.path.join(ROOT, "README.md")

if os.environ.get("SAN"):
    print("1..0 # SKIP the data pass of 128 PEs is for the plain build")
    sys.exit()
try:
    ended = run(simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml")), "run", "gemm")
    ok(ended.returncode == 0, "the demo's GEMM verifies", ended.said)
    text = read(README)
    made = BLOCK.sub(lambda block: f"$ {block[1]}\n{picked(block[2], ended.stdout)}", text)
    if os.environ.get("BLESS"):
        text = write(README, made) and made
    ok(BLOCK.search(text)[1] == "build/ref_sip run gemm", "README.md shows what the demo runs")
    difference = first_difference(simulated(text), simulated(made))
    ok(not difference, "README.md shows what the demo prints", "README.md, its summary's " + difference)
except Broken as reason:
    ok(False, "the demo's simulator is built", reason)
done()
