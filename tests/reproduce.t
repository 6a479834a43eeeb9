#!/usr/bin/python3
"""reproduce: the same sources give the same bytes in any folder, and two runs differ in `host` alone.
plain build only, limit: 300
"""
import os
import shutil

from harness import BUILD, GEMM, KBGEN, ROOT, SCRATCH, done, first_difference, ok, read, run, without_host

SMALL = os.path.join(ROOT, "tests", "small.yaml")
MADE = ("kbgen", "libkb.a", "libcommon.a")


def same_bytes(left, right):
    compared = run("cmp", left, right)
    return compared.returncode == 0, compared.said


def simulators_in_two_folders():
    """A topology of one name in two folders, kbgen started from each."""
    made = []
    for folder in ("here", "over/there"):
        folder = os.path.join(SCRATCH, folder)
        os.makedirs(folder, exist_ok=True)
        shutil.copy(SMALL, folder)
        ended = run(KBGEN, "small.yaml", cwd=folder)
        made.append(os.path.join(folder, "build", "small"))
        if not ok(ended.returncode == 0 and os.path.exists(made[-1]), "kbgen makes build/NAME here", ended.said):
            return None
    same, said = same_bytes(*made)
    ok(same, "the two simulators are the same bytes", said)
    return made[0]


def runs(program):
    """Twice with a trace, once without: one result."""
    results = []
    for name, traced in (("first", True), ("again", True), ("untraced", False)):
        result, trace = (os.path.join(SCRATCH, name + end) for end in (".json", ".jsonl"))
        ended = run(program, "run", "gemm", *GEMM, "--json", result, *(["--trace", trace] if traced else []))
        if not ok(ended.returncode == 0, f"{name} run", ended.said):
            return
        results.append((without_host(read(result)), read(trace)))
    ok(results[0][0] == results[1][0], "two runs give one result", first_difference(results[0][0], results[1][0]))
    ok(results[0][1] == results[1][1], "two runs give one trace", first_difference(results[0][1], results[1][1]))
    ok(results[0][0] == results[2][0], "so does one without a trace", first_difference(results[0][0], results[2][0]))


def tree_elsewhere():
    """A copy of the sources, built elsewhere."""
    copy = os.path.join(SCRATCH, "tree")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    for part in ("Makefile", "gen", "rt", "kernels", "templates", "topologies"):
        run("cp", "-r", part, copy)
    built = run("make", cwd=copy)
    if ok(built.returncode == 0, "a copy of the tree builds", built.said):
        kernels = [os.path.join("kernels", name) for name in sorted(os.listdir(os.path.join(BUILD, "kernels")))
                   if name.endswith(".o")]
        for name in (*MADE, *kernels):
            same, said = same_bytes(os.path.join(BUILD, name), os.path.join(copy, os.path.relpath(BUILD, ROOT), name))
            ok(same, f"{name} is the same bytes there", said)


if small := simulators_in_two_folders():
    runs(small)
tree_elsewhere()
done()
