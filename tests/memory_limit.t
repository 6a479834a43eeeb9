#!/usr/bin/python3
"""memory_limit: a run holds the memory that it touches, on a machine with 256 GiB of HBM. plain build only

The sanitizers reserve terabytes of address space.
"""
import resource

from harness import ok, result, run, simulator, suite, topology

GEMM = ("run", "gemm", "m=256", "k=64", "n=256")


def below(mib):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))}


def main():
    program = simulator(topology("ref_sip"))
    ended, made = result(program, "gemm", "m=1", "k=1", "n=1", "--data", "off")
    ok(ended.returncode == 0 and 0 < made["host"]["events"] < 20000,
       "a launch on 128 PEs is simulated with fewer than 20,000 events", ended.said, made.get("host"))
    ended = run(program, *GEMM, "--data", "off", **below(96))
    ok(ended.returncode == 0, "a GEMM on 128 PEs without data needs less than 96 MiB of address space", ended.said)
    ended = run(program, "run", "broadcast", "algorithm=chain", "dtype=i32", "size=20000", "chunk=16", "--data", "off", **below(96))
    ok(ended.returncode == 0, "635,000 messages and their copies, few at a time, need no more", ended.said)
    ended = run(program, *GEMM, **below(512))
    ok(ended.returncode == 0 and "verified" in ended.stdout,
       "a GEMM on 128 PEs with its data pass needs less than 512 MiB of address space", ended.said)
    ended = run(program, "run", "gemm", "m=16384", "k=4096", "n=64", **below(128))
    ok(ended.returncode == 3 and "cannot map" in ended.stderr,
       "a run that does not fit into the address space says so and ends with status 3", ended.said)


suite(main)
