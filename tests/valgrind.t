#!/usr/bin/python3
"""valgrind: no invalid access and no use of unset memory, in kbgen and in small and large machines.
plain build only, limit: 600
"""
import os
import shutil
import sys

from harness import GEMM, KBGEN, ROOT, Replay, SMALL, ok, run, scratch, simulator, suite

VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99")
CASES = ("epilogue_once", "tile_buffer_pressure", "across_sips", "launch_barrier")


def kbgen():
    emit = ["--emit", "c", "-o", scratch("emitted")]
    for options in (["--check"], ["--dump", "model"], ["--dump", "routes"], emit):
        ended = run(*VALGRIND, KBGEN, SMALL, *options)
        ok(ended.returncode == 0, f"valgrind finds nothing in kbgen {' '.join(options[:2])}", ended.said[-3000:])
    ended = run(*VALGRIND, KBGEN, "--check", os.path.join(ROOT, "Makefile"))
    ok(ended.returncode == 2, "valgrind finds nothing in kbgen with a file that is no topology", ended.said[-3000:])


def replays():
    for case in CASES:
        folder = os.path.join(ROOT, "tests", "conformance", case)
        got = Replay(simulator(os.path.join(folder, "topo.yaml")), os.path.join(folder, "stream.yaml"),
                     scratch(case), VALGRIND, timeout_s=200)
        ok(got.status == 0, f"valgrind finds nothing in the replay of {case}", got.said[-3000:])


def kernels():
    for command in (["info"], ["list"], ["run", "gemm", *GEMM]):
        ended = run(*VALGRIND, simulator(SMALL), *command)
        ok(ended.returncode == 0, f"valgrind finds nothing in a simulator with {command[0]}", ended.said[-3000:])


if not shutil.which("valgrind"):
    print("1..0 # SKIP valgrind is not installed")
    sys.exit()
suite(kbgen, replays, kernels)
