#!/usr/bin/python3
"""exec: the data pass gives the same bits with any number of threads, and refuses options that it cannot follow."""
import json
import os
import signal
import subprocess

from harness import Broken, ROOT, SAN, SCRATCH, SLOW, hold_text, ok, read, read_bytes, run, scratch, small_machine, suite, wait_until

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
    usage(made)
    interrupted(made)


suite(main)
