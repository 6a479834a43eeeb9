#!/usr/bin/python3
"""exec: the data pass gives the same bits with any number of threads, and what it cannot do is said."""
import os
import signal
import subprocess

from harness import Broken, ROOT, SCRATCH, done, ok, run, small_machine

KERNEL = os.path.join(ROOT, "tests", "exec", "twice.c")


def bits(program, *words):
    path = os.path.join(SCRATCH, "d.npy")
    ended = run(program, "run", "twice", f"file={path}", *words)
    if ended.returncode:
        raise Broken(ended.said)
    with open(path, "rb") as file:
        return file.read()


def threads(program):
    """Sizes that divide evenly by nothing, and others; --data debug checks every operation on the way."""
    for dtype in ("f32", "f16", "bf16"):
        for size in (("m=50", "n=70"), ("m=3", "n=2"), ("m=601", "n=1100")):
            words = (*size, "dtype=" + dtype)
            one = bits(program, *words, "--threads", "1")
            same = [n for n in ("2", "3", "8") if bits(program, *words, "--threads", n) == one]
            ok(same == ["2", "3", "8"], f"{' '.join(words)}: the same bits with 1, 2, 3 and 8 threads", same)
            ok(bits(program, *words, "--data", "debug", "--threads", "3") == one, "and when each is checked")


def later(program):
    """From the op log of a run on one thread, with more."""
    path = os.path.join(SCRATCH, "twice.oplog")
    bits(program, "m=61", "n=110", "dtype=f32", "--threads", "1", "--oplog", path)
    for number in ("1", "2", "4"):
        ended = run(program, "data", path, "--threads", number)
        ok(ended.returncode == 0 and "DIFFERS" not in ended.stdout and "same " in ended.stdout,
           f"the same bits from the op log with {number} threads", ended.said)


def usage(program):
    for number in ("0", "-1", "257", "two", ""):
        for words in (("run", "gemm"), ("data", "file")):
            ended = run(program, *words, "--threads", number)
            ok(ended.returncode == 2 and f"--threads {number}: a whole number from 1 to 256" in ended.stderr,
               f"{words[0]} --threads '{number}'", ended.said)


def interrupted(program):
    """In the middle of the data pass, or not far from it: the file is not there, nor a part of it."""
    path = os.path.join(SCRATCH, "interrupted.json")
    words = (program, "run", "gemm", "m=4096", "k=4096", "n=4096", "tile_m=256", "tile_k=256", "tile_n=256",
             "--threads", "2", "--json", path)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        left = [name for name in os.listdir(SCRATCH) if name.startswith("interrupted.json")]
        ok(process.returncode == -signal.SIGINT and not left or process.returncode == 0,
           "Ctrl-C in the data pass leaves no file", process.returncode, said, *left)


try:
    made = small_machine("exec", [KERNEL])
    threads(made)
    later(made)
    usage(made)
    interrupted(made)
except Broken as reason:
    ok(False, "the data pass runs", reason)
done()
