#!/usr/bin/python3
"""valgrind: no wrong access and no use of what was never set, in kbgen and in small and large machines.
plain build only, limit: 600
"""
import os
import shutil
import sys

from harness import Broken, GEMM, KBGEN, ROOT, Replay, SCRATCH, done, ok, run, simulator

VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99")
SMALL = os.path.join(ROOT, "tests", "small.yaml")
CASES = ("epilogue_once", "tile_buffer_pressure", "across_sips", "launch_barrier")


def kbgen():
    emit = ["--emit", "c", "-o", os.path.join(SCRATCH, "emitted")]
    for options in (["--check"], ["--dump", "model"], ["--dump", "routes"], emit):
        ended = run(*VALGRIND, KBGEN, SMALL, *options)
        ok(ended.returncode == 0, "kbgen " + " ".join(options[:2]), ended.said[-3000:])
    ended = run(*VALGRIND, KBGEN, "--check", os.path.join(ROOT, "Makefile"))
    ok(ended.returncode == 2, "kbgen on a file that is no topology", ended.said[-3000:])


def replays():
    for case in CASES:
        folder = os.path.join(ROOT, "tests", "conformance", case)
        got = Replay(simulator(os.path.join(folder, "topo.yaml")), os.path.join(folder, "stream.yaml"),
                     os.path.join(SCRATCH, case), VALGRIND, timeout_s=200)
        ok(got.status == 0, "replay of " + case, got.said[-3000:])


def kernels():
    for command in (["info"], ["list"], ["run", "gemm", *GEMM]):
        ended = run(*VALGRIND, simulator(SMALL), *command)
        ok(ended.returncode == 0, " ".join(command), ended.said[-3000:])


if not shutil.which("valgrind"):
    print("1..0 # SKIP valgrind is not here")
    sys.exit()
for part in (kbgen, replays, kernels):
    try:
        part()
    except Broken as reason:
        ok(False, part.__name__, reason)
done()
