#!/usr/bin/python3
"""escapes: what tries to get out of the simulation ends with a message, a status, and no file half-written."""
import os

from harness import Broken, KBGEN, ROOT, SCRATCH, done, ok, run, skip

WANT = {                                                        # bench: status, and what is said
    "spin": (1, "time stands still at 702080 ps"),
    "leave": (1, "called exit() at 702080 ps"),
    "leave_bench": (1, "called exit() at 0 ps"),
    "host_call": (2, "kb_barrier is for the host; a kernel cannot call it"),
    "nothing": (2, "kernel spins is launched without its arguments"),
    "no_reference": (2, "there is no reference for tensor 't'"),
    "sink": (1, "STACK_OVERFLOW at sip0.cube0.pe0.pe_cpu"),
}


def escapes(program):
    for bench, (status, words) in WANT.items():
        if bench == "sink" and os.environ.get("SAN"):
            skip(bench, "the sanitizer handles the stack's end itself")
            continue
        paths = [os.path.join(SCRATCH, f"{bench}.{kind}") for kind in ("json", "trace")]
        ended = run(program, "run", bench, "--json", paths[0], "--trace", paths[1], timeout=60)
        left = [name for name in os.listdir(SCRATCH) if name.endswith(".tmp")]
        ok(ended.returncode == status and words in ended.stderr and not left, bench, ended.said, *left)


def outputs(program):
    for words in (["list"], ["info"], ["run", "gemm", "m=8", "n=8", "k=8"], ["--version"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = run(program, *words, stdout=full)
        ok(ended.returncode == 3, f"{words[0]} into a full device", f"status {ended.returncode}")
    for words in (["--json", ""], ["--json", "x", "--trace", "x"]):
        ended = run(program, "run", "gemm", *words)
        ok(ended.returncode == 2, f"refused before the run: {words}", ended.said)
    topology = os.path.join(ROOT, "tests", "small.yaml")
    pipe, link = os.path.join(SCRATCH, "pipe"), os.path.join(SCRATCH, "link")
    for path, create in ((pipe, os.mkfifo), (link, lambda path: os.symlink(program, path))):
        if not os.path.lexists(path):
            create(path)
        ended = run(KBGEN, topology, "-o", path)
        ok(ended.returncode == 2 and "is no regular file" in ended.stderr, f"kbgen -o {os.path.basename(path)}",
           ended.said)


def main():
    made = os.path.join(SCRATCH, "escapes")
    source = os.path.join(ROOT, "tests", "host", "escapes.c")
    built = run(KBGEN, os.path.join(ROOT, "tests", "small.yaml"), "-k", source, "--set",
                "cube.pe_template.components.pe_cpu.attrs.stack_kb=1 KiB", "-o", made)
    if built.returncode:
        raise Broken(built.said)
    escapes(made)
    outputs(made)
    done()


main()
