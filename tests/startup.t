#!/usr/bin/python3
"""startup: memory is mapped at first touch: a machine with 256 GiB of HBM starts with little memory."""
import os
import resource

from harness import ROOT, Replay, SAN, ok, run, scratch, simulator, suite

CASE = os.path.join(ROOT, "tests", "conformance", "launch_barrier")
LIMIT_BYTES = 1 << 30
START_KIB = 32 << 10


def limited():
    """Called in the child: limits its address space."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def main():
    program = simulator(os.path.join(CASE, "topo.yaml"))
    ended = run(program, "info")
    ok(ended.returncode == 0, "a machine of 128 PEs tells what it is", ended.said)
    if SAN:                                             # the sanitizers reserve terabytes
        return
    pid = os.posix_spawn(program, [program, "info"], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    ok(status == 0 and usage.ru_maxrss < START_KIB, f"info touches less than {START_KIB >> 10} MiB of 256 GiB",
       f"{usage.ru_maxrss} KiB")
    ended = run(program, "info", preexec_fn=limited)
    ok(ended.returncode == 0, "info needs less than 1 GiB of address space", ended.said)
    got = Replay(program, os.path.join(CASE, "stream.yaml"), scratch("limited"),
                 ("prlimit", f"--as={LIMIT_BYTES}"))
    ok(got.status == 0, "a replay on 128 PEs needs less than 1 GiB of address space", got.said)


suite(main)
