#!/usr/bin/python3
"""startup: memory is mapped at first touch: 256 GiB of HBM cost no time to start with, and fit below a limit."""
import os
import resource
import time

from harness import Broken, ROOT, Replay, SCRATCH, done, ok, run, simulator

CASE = os.path.join(ROOT, "tests", "conformance", "launch_barrier")
LIMIT_BYTES = 1 << 30
START_S = 0.05


def limited():
    """In a child: no more address space than the limit."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def fastest_s(program):
    def once():
        begin = time.monotonic()
        run(program, "info")
        return time.monotonic() - begin
    return min(once() for _ in range(10))


def main():
    program = simulator(os.path.join(CASE, "topo.yaml"))
    seconds = fastest_s(program)
    # ASan alone takes longer than that to begin, and reserves terabytes.
    if os.environ.get("SAN"):
        ok(run(program, "info").returncode == 0, "info")
        return
    ok(seconds < START_S, f"info within {START_S * 1000:.0f} ms", f"{seconds * 1000:.1f} ms")
    ended = run(program, "info", preexec_fn=limited)
    ok(ended.returncode == 0, "info below a limit of 1 GiB", ended.said)
    got = Replay(program, os.path.join(CASE, "stream.yaml"), os.path.join(SCRATCH, "limited"),
                 ("prlimit", f"--as={LIMIT_BYTES}"))
    ok(got.status == 0, "a replay on 128 PEs below the same limit", got.said)


try:
    main()
except Broken as reason:
    ok(False, "a machine with 256 GiB", reason)
done()
