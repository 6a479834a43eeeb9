#!/usr/bin/python3
"""list_info: what a simulator says of itself: benches, kernels, the machine and its peaks."""
import os
import re

from harness import SMALL, ok, run, scratch, simulator, small_machine, suite, topology, write

TWICE = """#include <kb/host.h>
KB_BENCH(gemm, "another of this name") { }
KB_BENCH(nothing, "does nothing") { }
"""
# Texts with control characters and with bytes that are not UTF-8.
RAW = r"""#include <kb/host.h>
#include <kb/tl.h>
struct none { int unused; };
KB_KERNEL(raw, struct none)
{
    (void)arg;
    tl_log(tl, "log\033[2J \xff.");
    tl_fail(tl, 7, "fail\nline \x01.");
}
KB_BENCH(raw, "caf\xc3\xa9\nline \x01\xff.", KB_INT(n, 1, 1, 2, "help\033[2J\nline \xff."))
{
    kb_note("note\nline \x7f.");
    kb_wait(kb_launch(raw, kb_pes("sip0.cube0.pe0"), &(struct none){0}));
}
"""


def says(ended, status, *patterns):
    return ended.returncode == status and all(re.search(pattern, ended.stdout + ended.stderr) for pattern in patterns)


def small():
    program = simulator(SMALL)
    ended = run(program, "list")
    ok(says(ended, 0, r"(?m)^gemm: .* \(kernels/gemm\.c\)$", r"  k += \d+ .*\(1 to 16777216\)",
            r"\(f16 bf16 f32 i8\)",
            r"\(true false\)", r"(?m)^kernels:$", r"  gemm +kernels/gemm\.c:\d+"),
       "list shows benches, parameters, their values and kernels", ended.said)
    ended = run(program, "--version")
    ok(says(ended, 0, r"^small: topology [0-9a-f]+, kbgen \d"),
       "--version tells the topology and the version of kbgen", ended.said)
    ended = run(program, "--help")
    ok(says(ended, 0, "usage: ", "replay"), "--help shows the usage", ended.said)
    for word in ("list", "run", "replay", "oplog", "data", "info", "probe", "schema"):
        ended = run(program, word, "--help")
        ok(says(ended, 0, f"usage: {os.path.basename(program)} {word}", "Exit status: 0 good"),
           f"{word} --help shows the usage and the exit statuses", ended.said)
        ended = run(program, word, "--version")
        ok(says(ended, 0, r"^small: topology [0-9a-f]+, kbgen \d"),
           f"{word} --version tells the topology and the version of kbgen", ended.said)
        ended = run(program, word, "--nothing")
        name = os.path.basename(program)
        ok(ended.stderr == f"{name}: no option '--nothing'; {name} {word} --help lists the options\n",
           f"{word} refuses an unknown option", ended.said)
        for short, long in (("-h", "--help"), ("-V", "--version")):
            ok(run(program, word, short).stdout == run(program, word, long).stdout,
               f"{word} {short} is short for {word} {long}")
    for short, long in (("-h", "--help"), ("-V", "--version")):
        ok(run(program, short).stdout == run(program, long).stdout, f"a simulator's {short} is short for {long}")
    ended = run(program)
    ok(says(ended, 2, "usage: ") and not ended.stdout,
       "a simulator without a subcommand shows its usage and ends with status 2",
       ended.said)
    for word, said in (("infos", "did you mean 'info'"), ("xyzzy", "no subcommand 'xyzzy'")):
        ended = run(program, word)
        ok(says(ended, 2, said), f"the unknown subcommand {word} is refused", ended.said)
    ended = run(program, "info", "more")
    ok(says(ended, 2, "info takes no arguments: 'more'"), "info with an argument is refused", ended.said)


def reference():
    """The figures that ref_sip is made for."""
    program = simulator(topology("ref_sip"))
    ended = run(program, "info")
    for name, pattern in {
        "the name and topology hash": r"machine +ref_sip, topology [0-9a-f]{8,}, kbgen ",
        "the cubes": r"cubes +16: 4 x 4", "the PEs": r"PEs +128: 8 in each cube",
        "the HBM": r"hbm +256 GiB: 2 GiB for each PE, 4 pseudo channels", "the sram": r"sram +512 MiB: 32 MiB",
        "the TCM": r"tcm +512 MiB: 4 MiB for each PE, of which the scheduler reserves 2 MiB",
        "the HBM bandwidth": r"hbm +92\.16 GB/s +11\.8 TB/s", "the UCIe links": r"ucie +435 GB/s +48 directed links",
        "the peak of f16": r"f16 +32\.77 TFLOP/s +4\.194 PFLOP/s +355\.6 FLOP/B",
        "the peak of i8": r"i8 +65\.54 TOP/s +8\.389 POP/s +711\.1 OP/B",
    }.items():
        ok(says(ended, 0, pattern), f"info tells {name} of ref_sip", ended.said)


def others():
    """A bench whose name is taken, and one without parameters."""
    made = small_machine("twice", [write(scratch("twice.c"), TWICE)])
    for words in (["list"], ["run", "gemm"], ["run", "nothing"]):
        ended = run(made, *words)
        ok(says(ended, 2, r"error: there is another bench 'gemm', at "),
           f"two benches of one name are refused by {' '.join(words)}", ended.said)
    made = small_machine("twice", [write(scratch("twice.c"), TWICE.replace("gemm", "other")), write(scratch("raw.c"), RAW)])
    said = run(made, "list").stdout + run(made, "run", "raw").said
    for what, shown in {"a description": "raw: caf\u00e9?line ??. (", "the help of a parameter": " help?[2J?line ?. (", "a note": "note?line ?.\n",
                        "a log": "log?[2J ?.\n", "a failure": "tl_fail: code 7: fail?line ?."}.items():
        ok(shown in said, f"{what} is printed without control characters", said)
    stream = write(scratch("\x1b]0;\n.yaml"), "name: s\nlaunches: [ { program: \"p\\e[2J\", targets: [\"sip0.cube0.pe0\"] } ]\n"
                   "programs: { \"p\\e[2J\": [] }\n")
    for words, shown in {("run", "raw", "n=\x1b[2J"): "raw: n=?[2J is not", ("run", "raw", "x\n\x1b=1"): "no parameter 'x??'",
                         ("run", "\x1b\n"): "no bench '??'", ("run", "raw", "--races", "\x1b\n"): "--races ??: on, off",
                         ("replay", "no\x1b\n"): "cannot open no??: ", ("run", "raw", "--\x1b"): "no option '--?'",
                         ("replay", stream): "?]0;?.yaml on small: ok"}.items():
        ended = run(made, *words)
        ok(shown in ended.stdout + ended.stderr and "\x1b" not in ended.stdout + ended.stderr, f"{words[0]}: '{shown}' has no control characters",
           repr(ended.said))
    ended = run(made, "run", "nothing")
    ok(says(ended, 0, "nothing on small: 0 ps simulated"), "a bench that does nothing takes 0 ps", ended.said)
    ended = run(made, "run", "nothing", "x=1")
    ok(says(ended, 2, "nothing has no parameter 'x'"), "a parameter for a bench that has none is refused", ended.said)


suite(small, reference, others)
