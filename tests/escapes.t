#!/usr/bin/python3
"""escapes: benches and kernels that leave the simulation end with a message and a status, and leave no partial file."""
import os

from harness import KBGEN, ROOT, SAN, SCRATCH, SMALL, ok, remove, run, scratch, small_machine, suite

WANT = {                                                        # bench: status and message
    "spin": (1, "time stands still at 702080 ps"),
    "leave": (1, "702080 ps, request 1, kernel leaves: it called exit(0)"),
    "leave_bench": (1, "fault: bench leave_bench, 0 ps: it called exit(0)"),
    "host_call": (2, "kb_barrier is for the host; a kernel cannot call it"),
    "nothing": (2, "kernel spins is launched without its arguments"),
    "no_reference": (2, "there is no reference for tensor 't'"),
    "sink": (1, "STACK_OVERFLOW at sip0.cube0.pe0.pe_cpu"),
}


def escapes(program):
    for bench, (status, words) in WANT.items():
        if bench == "sink" and SAN:
            continue                                            # the sanitizer reports the end of the stack itself
        paths = [scratch(f"{bench}.{kind}") for kind in ("json", "trace")]
        ended = run(program, "run", bench, "--json", paths[0], "--trace", paths[1], timeout=60)
        left = [name for name in os.listdir(SCRATCH) if name.endswith(".tmp")]
        ok(ended.returncode == status and words in ended.stderr and not left,
           f"bench {bench} ends with '{words}' and no partial file", ended.said, *left)


def outputs(program):
    for words in (["list"], ["info"], ["run", "gemm", "m=8", "n=8", "k=8"], ["--version"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = run(program, *words, stdout=full)
        ok(ended.returncode == 3, f"{words[0]} onto a full disk ends with status 3", f"status {ended.returncode}")
    page, trace = scratch("page.html"), scratch("kept.trace")
    for words in (["--json", "-"], ["--stats", "-"]):
        for path in (page, trace):
            remove(path)
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = run(program, "run", "gemm", "m=8", "n=8", "k=8", *words, "--report", page, "--trace", trace, stdout=full)
        ok(ended.returncode == 3 and "cannot write -: No space left" in ended.stderr and os.path.exists(page) and os.path.exists(trace),
           f"a run whose {words[0]} cannot be written ends with status 3, and its other files are there", ended.stderr)
    for words in (["--json", ""], ["--json", "x", "--trace", "x"]):
        ended = run(program, "run", "gemm", *words)
        ok(ended.returncode == 2, f"outputs {words} are refused before the run", ended.said)
    pipe, link = scratch("pipe"), scratch("link")
    for path, create in ((pipe, os.mkfifo), (link, lambda path: os.symlink(program, path))):
        if not os.path.lexists(path):
            create(path)
        ended = run(KBGEN, SMALL, "-o", path)
        ok(ended.returncode == 2 and "is no regular file" in ended.stderr,
           f"kbgen does not write its simulator to a {os.path.basename(path)}", ended.said)


def main():
    made = small_machine("escapes", [os.path.join(ROOT, "tests", "host", "escapes.c")],
                         "cube.pe_template.components.pe_cpu.attrs.stack_kb=1 KiB")
    escapes(made)
    outputs(made)


suite(main)
