#!/usr/bin/python3
"""memory_limit: what a kernel run costs is what it touches, on a machine with 256 GiB of HBM."""
import os
import resource
import sys
import time

from harness import Broken, ROOT, done, ok, run, simulator

REF = os.path.join(ROOT, "topologies", "ref_sip.yaml")
GEMM = ("run", "gemm", "m=256", "k=64", "n=256")


def below(bytes_):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))
    return limit


def runs(program):
    begin = time.monotonic()
    ended = run(program, "run", "gemm", "m=1", "k=1", "n=1", "--data", "off")
    seconds = time.monotonic() - begin
    ok(ended.returncode == 0 and seconds < 1, "a launch on 128 PEs within a second", ended.said, seconds)
    ended = run(program, *GEMM, "--data", "off", preexec_fn=below(96 << 20))
    ok(ended.returncode == 0, "timing alone below 96 MiB of address space", ended.said)
    ended = run(program, *GEMM, preexec_fn=below(512 << 20))
    ok(ended.returncode == 0 and "verified" in ended.stdout, "with the data pass below 512 MiB", ended.said)
    ended = run(program, "run", "gemm", "m=16384", "k=4096", "n=64", preexec_fn=below(128 << 20))
    ok(ended.returncode == 3 and "no room to map" in ended.stderr, "too much for a limit is said so", ended.said)


if os.environ.get("SAN"):
    print("1..0 # SKIP the sanitizers reserve terabytes of address space")
    sys.exit()
try:
    runs(simulator(REF))
except Broken as reason:
    ok(False, "a machine with 256 GiB", reason)
done()
