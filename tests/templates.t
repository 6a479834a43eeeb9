#!/usr/bin/python3
"""templates: every raw template compiles, with the examples of gen/cells.def in its holes. plain build only"""
import os
import re
import shutil

from harness import ROOT, done, ok, read, run, scratch, write

TEMPLATES = os.path.join(ROOT, "templates")
CELLS = re.sub(r"/\*.*?\*/", "", read(os.path.join(ROOT, "gen", "cells.def")), flags=re.S)
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I" + os.path.join(ROOT, "rt"))


def nested(text, begin):
    """The text between the parenthesis at `begin` and the one that closes it."""
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


stub = write(scratch("stub.h"), """#define STUB(result, request) ((result (*)(struct stub *, const struct request *))0)
#define STUB_STATE ((struct stub *(*)(uint32_t))0)
#define STUB_BLANK ((struct stub *(*)(void))0)
""" + "".join(f"#define ${hole}$ {example}\n" for hole, example in holes()))

templates = sorted(name for name in os.listdir(TEMPLATES) if name.endswith(".in"))
for name in templates:
    shutil.copy(os.path.join(TEMPLATES, name), scratch(name.removesuffix(".in")))
for name in templates:
    for compiler in ("gcc", "clang"):
        compiled = run(compiler, *FLAGS, "-include", stub, "-x", "c", scratch(name.removesuffix(".in")))
        ok(compiled.returncode == 0, f"template {name} compiles by itself with {compiler}", compiled.said)

text = "".join(read(os.path.join(TEMPLATES, name)) for name in templates)
unused = [hole for hole, _ in holes() if f"${hole}$" not in text]
ok(not unused, "every hole of gen/cells.def is used", " ".join(unused))
for kind, directive in (("TABLE", "each"), ("CONDITION", "if")):
    named = set(re.findall(rf"\b{kind}\((\w+)", CELLS)) - {"once"}
    unused = named - set(re.findall(rf"//@ {directive} (\w+)$", text, re.M))
    ok(named and not unused, f"every {kind} of gen/cells.def is used", *sorted(unused))
done()
