#!/usr/bin/python3
"""list_info: what a simulator says of itself: benches, kernels, the machine and its peaks."""
import os
import re

from harness import Broken, KBGEN, ROOT, SCRATCH, done, ok, run, simulator

SMALL = os.path.join(ROOT, "tests", "small.yaml")
REF = os.path.join(ROOT, "topologies", "ref_sip.yaml")
TWICE = """#include <kb/host.h>
KB_BENCH(gemm, "another of this name") { }
KB_BENCH(nothing, "does nothing") { }
"""


def says(ended, status, *patterns):
    return ended.returncode == status and all(re.search(pattern, ended.stdout + ended.stderr) for pattern in patterns)


def small(program):
    ended = run(program, "list")
    ok(says(ended, 0, r"(?m)^gemm: .* \(kernels/gemm\.c\)$", r"  k += \d+ .*\(1 to 16777216\)",
            r"\(f16 bf16 f32 i8\)",
            r"\(true false\)", r"(?m)^kernels:$", r"  gemm +kernels/gemm\.c:\d+"), "list", ended.said)
    ended = run(program, "--version")
    ok(says(ended, 0, r"^small: topology [0-9a-f]+, kbgen \d"), "--version", ended.said)
    ended = run(program, "--help")
    ok(says(ended, 0, "usage: ", "replay"), "--help", ended.said)
    for words in (["run", "--help"], ["replay", "--help"], ["list", "--help"], ["info", "--help"]):
        ended = run(program, *words)
        ok(says(ended, 0, "usage: "), " ".join(words), ended.said)
    ended = run(program)
    ok(says(ended, 2, "usage: ") and not ended.stdout, "no subcommand", ended.said)
    for word, said in (("infos", "did you mean 'info'"), ("xyzzy", "no subcommand 'xyzzy'")):
        ended = run(program, word)
        ok(says(ended, 2, said), f"subcommand {word}", ended.said)
    ended = run(program, "info", "more")
    ok(says(ended, 2, "info takes no arguments: 'more'"), "info with an argument", ended.said)


def reference(program):
    """The figures that the machine is made for."""
    ended = run(program, "info")
    for name, pattern in {
        "its name and topology": r"machine +ref_sip, topology [0-9a-f]{8,}, kbgen ",
        "cubes": r"cubes +16: 4 x 4", "PEs": r"PEs +128: 8 in each cube",
        "HBM": r"hbm +256 GiB: 2 GiB for each PE, 4 pseudo channels", "sram": r"sram +512 MiB: 32 MiB",
        "TCM": r"tcm +512 MiB: 4 MiB for each PE, of which the scheduler reserves 2 MiB",
        "HBM bandwidth": r"hbm +92\.16 GB/s +11\.8 TB/s", "UCIe links": r"ucie +435 GB/s +48 directed links",
        "peak of f16": r"f16 +32\.77 TFLOP/s +4\.194 PFLOP/s +355\.6 FLOP/B",
        "peak of i8": r"i8 +65\.54 TOP/s +8\.389 POP/s +711\.1 OP/B",
    }.items():
        ok(says(ended, 0, pattern), f"info: {name}", ended.said)


def others():
    """A bench of a name that is taken, and one without parameters."""
    source, made = os.path.join(SCRATCH, "twice.c"), os.path.join(SCRATCH, "twice")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TWICE)
    built = run(KBGEN, SMALL, "-k", source, "-o", made)
    if not ok(built.returncode == 0, "benches of the user's own", built.said):
        return
    for words in (["list"], ["run", "gemm"], ["run", "nothing"]):
        ended = run(made, *words)
        ok(says(ended, 2, r"error: there is another bench 'gemm', at "), "two benches of a name: " + words[-1],
           ended.said)
    with open(source, "w", encoding="utf-8") as file:
        file.write(TWICE.replace("gemm", "other"))
    built = run(KBGEN, SMALL, "-k", source, "-o", made)
    ended = run(made, "run", "nothing")
    ok(built.returncode == 0 and says(ended, 0, "nothing on small: 0 ps simulated"), "a bench that does nothing",
       ended.said)
    ended = run(made, "run", "nothing", "x=1")
    ok(says(ended, 2, "nothing has no parameter 'x'"), "a parameter for it", ended.said)


try:
    small(simulator(SMALL))
    reference(simulator(REF))
    others()
except Broken as reason:
    ok(False, "a simulator", reason)
done()
