#!/usr/bin/python3
"""reproduce: the same sources give the same bytes in any folder, and two runs differ in `host` alone.
plain build only, limit: 300
"""
import os
import shutil

from harness import BUILD, GEMM, KBGEN, ROOT, SMALL, first_difference, folder, ok, read, read_bytes, run, same_bytes
from harness import scratch, suite, without_host


def simulators_in_two_folders():
    """A topology of one name in two folders; kbgen starts in each."""
    made = []
    for where in (folder("here"), folder("over", "there")):
        shutil.copy(SMALL, where)
        ended = run(KBGEN, "small.yaml", cwd=where)
        made.append(os.path.join(where, "build", "small"))
        ok(ended.returncode == 0 and os.path.exists(made[-1]), "kbgen makes build/NAME below its current folder",
           ended.said)
    same_bytes(*made, "the simulators of one topology in two folders are the same bytes")
    runs(made[0])


def runs(program):
    """Twice with a trace, once without."""
    results = []
    for name, traced in (("first", True), ("again", True), ("untraced", False)):
        result, trace = (scratch(name + end) for end in (".json", ".jsonl"))
        ended = run(program, "run", "gemm", *GEMM, "--json", result, *(["--trace", trace] if traced else []))
        ok(ended.returncode == 0, f"a gemm ends well: {name} run", ended.said)
        results.append((without_host(read(result) or "{}"), read(trace)))
    ok(results[0][0] == results[1][0], "two runs give one result", first_difference(results[0][0], results[1][0]))
    ok(results[0][1] == results[1][1], "two runs give one trace", first_difference(results[0][1], results[1][1]))
    ok(results[0][0] == results[2][0], "a run without a trace gives the same result",
       first_difference(results[0][0], results[2][0]))


def tree_elsewhere():
    """A copy of the sources, of which kbgen, the kernels and one file of each room of rt are built elsewhere.

    What the rest could depend on are names of folders, which no archive has, and dates, which -Wdate-time refuses.
    """
    copy, built = scratch("tree"), os.path.relpath(BUILD, ROOT)
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    for part in ("Makefile", "gen", "rt", "kernels", "templates", "topologies"):
        run("cp", "-r", part, copy)
    names = ["kbgen", "libcommon.a", "kernels.o"]
    for path, _, files in sorted(os.walk(BUILD)):
        place, found = os.path.relpath(path, BUILD), sorted(name for name in files if name.endswith(".o"))
        if place.startswith(os.path.join("obj", "rt")):
            names += [os.path.join(place, name) for name in found[:1]]
    ended = run("make", *(os.path.join(built, name) for name in names), cwd=copy)
    ok(ended.returncode == 0 and len(names) > 16, "a copy of the tree builds elsewhere", ended.said)
    for name in names:
        same_bytes(os.path.join(BUILD, name), os.path.join(copy, built, name),
                   f"{name} is the same bytes when it is built elsewhere")
    for name in ("kbgen", "runtime.o"):
        ok(ROOT.encode() not in read_bytes(os.path.join(BUILD, name)), f"{name} does not name the folder of the tree")


suite(simulators_in_two_folders, tree_elsewhere)
