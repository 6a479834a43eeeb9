#!/usr/bin/python3
"""math_ops: the table of docs/ops.md is that of rt/kb/ops.def, and the calls of rt/kb/math.h name ops that it has."""
import os
import re

from harness import ROOT, done, first_difference, ok, read, write

DOCS = os.path.join(ROOT, "docs", "ops.md")
DOMAINS = {"FLOATS": "floats", "ALL": "floats or integers", "COMPARE": "floats or integers; gives u8",
           "CHOICE": "x of u8; y and z of floats or integers", "CAST": "any to any", "QUANT": "any to integers",
           "DEQUANT": "any to floats"}
SECOND = {"ANY": "", "ROW": "y is a row", "SCALE": "y is a row or one element"}
OP = re.compile(r'^OP\((\w+), (\d), (\w+), (\w+), (\w+), (\w+), "([^"]*)", "([^"]*)",$', re.M)

text = read(os.path.join(ROOT, "rt", "kb", "ops.def"))
ops = OP.findall(text)
relations = re.findall(r"^RELATION\((\w+), (\S+)\)$", text, re.M)


def table():
    yield "| op | elementwise | reduces | dtypes | notes |"
    yield "|---|---|---|---|---|"
    for name, operands, reduces, domain, second, _, formula, note in ops:
        notes = "; ".join(part for part in (SECOND[second], note) if part)
        reduced = {"NO": "", "JOIN": f"`{formula}`", "MEAN": f"`{formula}`, then / n"}[reduces]
        yield f"| {name} | {'`' + formula + '`' if operands != '0' else ''} | {reduced} | {DOMAINS[domain]} | {notes} |"
    yield ""
    yield "The relations of cmp: " + ", ".join(f"{name} `{operator}`" for name, operator in relations) + "."


ok(len(ops) == len(re.findall(r"^OP\(", text, re.M)) and relations, "every row of ops.def is read")
docs = read(DOCS)
head, want = docs[:docs.find("| op |")], "\n".join(table()) + "\n"
if os.environ.get("BLESS"):
    write(DOCS, head + want)
    docs = head + want
ok(docs == head + want, "docs/ops.md has the table of rt/kb/ops.def", first_difference(head + want, docs))
called = set(re.findall(r'tl, "(\w+)", to', read(os.path.join(ROOT, "rt", "kb", "math.h"))))
known = {row[0] for row in ops}
ok(called and called <= known, "every call of kb/math.h names an op of ops.def", called - known)
done()
