#!/usr/bin/python3
"""demo: the demo's GEMM verifies, and its summary is the one that README.md shows; BLESS=1 puts it there. limit: 300

What depends on the host is left out of the comparison: its seconds, and the largest error, whose last bits follow from
the kernels that OpenBLAS picks for the processor.
"""
import os
import re
import sys

from harness import ROOT, Broken, done, first_difference, ok, read, run, simulator

SHOWN = re.compile(r"(?<=```text\n)gemm on ref_sip: .*?\n(?=```)", re.S)
README = os.path.join(ROOT, "README.md")


def simulated(summary):
    """The summary without what depends on the host."""
    return re.sub(r"(?m)(?<=^verified ).*$|(?<=^host ).*$", "", summary)


if os.environ.get("SAN"):
    print("1..0 # SKIP the data pass of 128 PEs is for the plain build")
    sys.exit()
try:
    ended = run(simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml")), "run", "gemm")
    ok(ended.returncode == 0, "the demo verifies", ended.said)
    text = read(README)
    if os.environ.get("BLESS"):
        text = SHOWN.sub(lambda _: ended.stdout, text)
        with open(README, "w", encoding="utf-8") as file:
            file.write(text)
    shown = SHOWN.search(text)
    ok(shown, "README.md shows a summary")
    difference = first_difference(simulated(shown[0] if shown else ""), simulated(ended.stdout))
    ok(not difference, "and it is this one", "README.md, its summary's " + difference)
except Broken as reason:
    ok(False, "the demo", reason)
done()
