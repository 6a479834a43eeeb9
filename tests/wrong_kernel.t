#!/usr/bin/python3
"""wrong_kernel: a kernel that writes one wrong tile is caught, and the first wrong element is named."""
import json
import os
import re

from harness import Broken, KBGEN, ROOT, SCRATCH, done, ok, read, run

SMALL = os.path.join(ROOT, "tests", "small.yaml")
SOURCE = os.path.join(ROOT, "tests", "kernels", "wrong.c")


def wrong(program):
    for dtype in ("f16", "bf16", "f32", "i8"):
        for row, column in ((0, 1), (2, 1), (3, 4)):
            ended = run(program, "run", "wrong", f"dtype={dtype}", f"row={row}", f"column={column}")
            found = re.search(r"\nWRONG +c: .*\n .* the first is c\[(\d+), (\d+)\]: got \S+, expected \S+, "
                              r"error \S+, allowed ", ended.stdout)
            tile = found and (int(found[1]) // 16, int(found[2]) // 16)
            ok(ended.returncode == 1 and tile == (row, column),
               f"a wrong tile ({row}, {column}) of {dtype}", ended.said)
        ended = run(program, "run", "wrong", f"dtype={dtype}", "wrong=false")
        ok(ended.returncode == 0, f"the same of {dtype} without the mistake", ended.said)
    ended = run(program, "run", "wrong", "--data", "off")
    ok(ended.returncode == 0 and "not checked" in ended.stdout, "without the data pass nothing is found", ended.said)
    path = os.path.join(SCRATCH, "wrong.json")
    ended = run(program, "run", "wrong", "--json", path)
    check = json.loads(read(path))["verify"][0]
    first = check["first_wrong"]
    in_tile = re.match(r"\[3\d, (1[6-9]|2\d|3[01])\]$", first["index"])
    off = abs(first["got"] - first["expected"]) > first["allowed"]
    ok(ended.returncode == 1 and check["status"] == "wrong" and in_tile and off, "the result says so too", check)


try:
    made = os.path.join(SCRATCH, "wrong")
    built = run(KBGEN, SMALL, "-k", SOURCE, "-o", made)
    if built.returncode:
        raise Broken(built.said)
    wrong(made)
except Broken as reason:
    ok(False, "a simulator with a wrong kernel", reason)
done()
