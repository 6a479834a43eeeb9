#!/usr/bin/python3
"""exec: the data pass gives the same bits with any number of threads, and refuses options that it cannot follow."""
import json
import os
import re
import signal
import subprocess

from harness import BUILD, Broken, ROOT, SAN, SCRATCH, SLOW, hold_text, ok, read, read_bytes, run, scratch, small_machine, suite, wait_until

KERNEL = os.path.join(ROOT, "tests", "exec", "twice.c")


def bits(program, *words):
    path = scratch("d.npy")
    ended = run(program, "run", "twice", f"file={path}", *words)
    if ended.returncode:
        raise Broken(ended.said)
    return read_bytes(path)


def threads(program):
    """Even and uneven sizes; --data debug checks every operation on the way."""
    large = ("m=151", "n=260") if SAN else ("m=601", "n=1100")
    for dtype in ("f32", "f16", "bf16"):
        for size in (("m=50", "n=70"), ("m=3", "n=2"), large):
            words = (*size, "dtype=" + dtype)
            one = bits(program, *words, "--threads", "1")
            same = [n for n in ("2", "3", "8") if bits(program, *words, "--threads", n) == one]
            ok(same == ["2", "3", "8"], f"twice {' '.join(words)} gives the same bits with 1, 2, 3 and 8 threads", same)
            ok(bits(program, *words, "--data", "debug", "--threads", "3") == one,
               f"twice {' '.join(words)} gives the same bits with --data debug")


def later(program):
    """The data pass of an op log that was written with one thread."""
    path = scratch("twice.oplog")
    bits(program, "m=61", "n=110", "dtype=f32", "--threads", "1", "--oplog", path)
    for number in ("1", "2", "4"):
        ended = run(program, "data", path, "--threads", number)
        ok(ended.returncode == 0 and "DIFFERS" not in ended.stdout and "same " in ended.stdout,
           f"the data pass of an op log gives the same bits with {number} threads", ended.said)


def processor():
    """The extensions of this processor, as /proc/cpuinfo has them; of x86 alone."""
    said = re.search(r"^flags\s*:(.*)", read("/proc/cpuinfo"), re.M)
    return set(said[1].split() if said else ())


def kernels(program):
    """OpenBLAS computes for the processor that there is, also where it does not know it."""
    path, clear = scratch("kernels.json"), {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}

    def taken(**more):
        ended = run(program, "run", "gemm", "m=256", "k=256", "n=256", "--json", path, env=clear | more)
        return json.loads(read(path))["host"]["blas"] if ended.returncode == 0 else ended.said

    ok({"avx2", "fma"} - processor() or taken() != "Prescott", "OpenBLAS takes no processor with AVX2 for one without", taken())
    ok(not processor() or taken(OPENBLAS_CORETYPE="Prescott") == "Prescott", "OPENBLAS_CORETYPE says which kernels it takes")


def upper_halves():
    """On some processors a function that leaves them in use makes the libm that is called next 40 times as slow."""
    left, name, wide, clean = [], "", False, False
    for line in run("objdump", "-d", "--no-show-raw-insn", os.path.join(BUILD, "libkb.a")).stdout.splitlines():
        if line.endswith(">:"):
            name, wide, clean = line, False, False
        wide |= "%ymm" in line
        clean |= "vzeroupper" in line
        if re.search(r"\tret", line) and wide and not clean:
            left.append(name)
    ok(not left, "no function leaves the upper halves of vector registers in use", *left)


def usage(program):
    for number in ("0", "-1", "257", "two", ""):
        for words in (("run", "gemm"), ("data", "file")):
            ended = run(program, *words, "--threads", number)
            ok(ended.returncode == 2 and f"--threads {number}: a whole number from 1 to 256" in ended.stderr,
               f"{words[0]} --threads '{number}' is refused", ended.said)


def interrupted(program):
    """The data pass is under way when there is a second thread."""
    path = scratch("interrupted.json")
    words = (program, "run", "gemm", "m=4096", "k=4096", "n=4096", "tile_m=256", "tile_k=256", "tile_n=256",
             "--threads", "2", "--json", path)
    leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"      # a call that is left where it is frees nothing
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=os.environ | {"ASAN_OPTIONS": leaks}) as process:
        wait_until(lambda: process.poll() is not None or len(os.listdir(f"/proc/{process.pid}/task")) > 1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60 * SLOW)[1]
        left = [name for name in os.listdir(SCRATCH) if name.startswith("interrupted.json")]
        hold_text("result", read(path))
        made = json.loads(read(path) or "{}")
        ok(left == ["interrupted.json"] and (process.returncode, made.get("interrupted", False)) in ((130, True), (0, False)),
           "Ctrl-C in the data pass ends the run with a report that says so", process.returncode, said, *left)


def main():
    made = small_machine("exec", [KERNEL])
    threads(made)
    later(made)
    kernels(made)
    if not SAN:
        upper_halves()
    usage(made)
    interrupted(made)


suite(main)
