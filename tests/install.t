#!/usr/bin/python3
"""install: kbgen works from where `make install` puts it, read-only and without the tree. plain build only"""
import hashlib
import os
import shutil

from harness import KBGEN, ROOT, SMALL, done, folder, make, ok, read_bytes, run, same_bytes, scratch, write

HOME = scratch("root/usr")
PROGRAM = os.path.join(HOME, "bin", "kbgen")


def sums():
    """A checksum of each installed file: root may write in spite of the modes."""
    return {os.path.join(path, name): hashlib.sha256(read_bytes(os.path.join(path, name))).hexdigest()
            for path, _, names in os.walk(HOME) for name in names}


def works(name, program, *words):
    ended = run(program, *words, cwd=WORK)
    ok(ended.returncode == 0, name, ended.said)


made = make("install", "DESTDIR=" + scratch("root"), "PREFIX=/usr")
ok(made.returncode == 0, "make install succeeds", made.said)
run("chmod", "-R", "a-w", HOME)
before, WORK = sums(), folder("work")
for source in (SMALL, os.path.join(ROOT, "docs", "guide", "11_your_own.c")):
    shutil.copy(source, WORK)
works("an installed kbgen tells its version", PROGRAM, "--version")
works("an installed kbgen makes a simulator", PROGRAM, "small.yaml")
works("a simulator made by an installed kbgen runs", os.path.join(WORK, "build", "small"), "info")
works("a kernel finds the installed headers of the library", PROGRAM, "small.yaml", "-k", "11_your_own.c", "-o", "own")
works("the kbgen of the tree makes the same machine", KBGEN, "small.yaml", "-o", "of-tree")
same_bytes(os.path.join(WORK, "build", "small"), os.path.join(WORK, "of-tree"),
           "an installed kbgen and that of the tree make simulators of the same bytes")
write(os.path.join(WORK, "space.yaml"), """topology: small.yaml
bench: gemm
params: { m: 32, k: 32, n: 32 }
space: { params.tile_m: [16, 32] }
objectives: { end_ps: min }
method: grid
""")
works("an installed kbgen searches a space", PROGRAM, "search", "space.yaml", "-j", "1")
works("an installed kbgen prints what it has found", PROGRAM, "front", "space.db")
for place in ("", "impl", "search"):
    of_tree, installed = ({name for name in os.listdir(os.path.join(where, "topologies", place)) if "." in name}
                          for where in (ROOT, os.path.join(HOME, "share", "kbgen")))
    ok(of_tree == installed, f"all files of topologies/{place} are installed", *of_tree ^ installed)
ok(before == sums(), "kbgen writes nothing to where it is installed")
shutil.move(os.path.join(HOME, "lib", "kbgen"), os.path.join(HOME, "lib", "elsewhere"))
refused = run(PROGRAM, "small.yaml", "-o", "none", cwd=WORK)
ok(refused.returncode == 3 and refused.stderr and not os.path.exists(os.path.join(WORK, "none")),
   "kbgen without its archives says so and ends with status 3", refused.said)
run("chmod", "-R", "u+w", scratch("root"))
done()
