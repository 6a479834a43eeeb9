#!/usr/bin/python3
"""templates: every raw template compiles as it stands, with what gen/cells.def says its holes stand for."""
import os
import re
import shutil

from harness import ROOT, SCRATCH, done, ok, read, run

TEMPLATES = os.path.join(ROOT, "templates")
CELLS = re.sub(r"/\*.*?\*/", "", read(os.path.join(ROOT, "gen", "cells.def")), flags=re.S)
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I" + os.path.join(ROOT, "rt"))


def nested(text, begin):
    """What stands between a parenthesis at `begin` and its partner."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[begin + 1:at]
    raise ValueError("a parenthesis is not closed")


def holes():
    """(hole, stub) of gen/cells.def."""
    for found in re.finditer(r"\bHOLE\(", CELLS):
        yield [part.strip() for part in nested(CELLS, found.end() - 1).split(",", 1)]


stub = os.path.join(SCRATCH, "stub.h")
with open(stub, "w", encoding="utf-8") as file:
    for hole, stands_for in holes():
        file.write(f"#define ${hole}$ {stands_for}\n")

templates = sorted(name for name in os.listdir(TEMPLATES) if name.endswith(".in"))
for name in templates:
    shutil.copy(os.path.join(TEMPLATES, name), os.path.join(SCRATCH, name.removesuffix(".in")))
for name in templates:
    for compiler in ("gcc", "clang"):
        compiled = run(compiler, *FLAGS, "-include", stub, "-x", "c", os.path.join(SCRATCH, name.removesuffix(".in")))
        ok(compiled.returncode == 0, f"{name} as it stands, by {compiler}", compiled.said)

text = "".join(read(os.path.join(TEMPLATES, name)) for name in templates)
unused = [hole for hole, _ in holes() if f"${hole}$" not in text]
ok(not unused, "every hole of gen/cells.def is used", " ".join(unused))
for kind, directive in (("TABLE", "each"), ("CONDITION", "if")):
    named = set(re.findall(rf"\b{kind}\((\w+)", CELLS)) - {"once"}
    unused = named - set(re.findall(rf"//@ {directive} (\w+)$", text, re.M))
    ok(named and not unused, f"every {kind} of gen/cells.def is used", *sorted(unused))
done()
