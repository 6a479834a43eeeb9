#!/usr/bin/python3
"""math_ops: the table of docs/ops.md is that of rt/kb/ops.def, and each op has its calls in rt/kb/math.h."""
import os
import re
import sys

sys.path[1:1] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle")]

from harness import ROOT, done, first_difference, math_ops, ok, read, write          # noqa: E402
from plan import KNOWN_OPS as ORACLES                           # noqa: E402

DOCS = os.path.join(ROOT, "docs", "ops.md")
DOMAINS = {"FLOATS": "floats", "ALL": "floats or integers", "COMPARE": "floats or integers; gives u8",
           "CHOICE": "x of u8; y and z of floats or integers", "CAST": "any to any", "QUANT": "any to integers",
           "DEQUANT": "any to floats", "LOOKUP": "x of any, as the result; y of integers"}
SECOND = {"ANY": "", "ROW": "y is a row", "SCALE": "y is a row or one element"}
CALLED_BY_NAME = {"bias_add"}                           # the same as bias

text = read(os.path.join(ROOT, "rt", "kb", "ops.def"))
ops = math_ops()
relations = re.findall(r"^RELATION\((\w+), (\S+)\)$", text, re.M)


def table():
    yield "| op | elementwise | reduces | dtypes | notes |"
    yield "|---|---|---|---|---|"
    for name, operands, reduces, domain, second, _, formula, note in ops:
        notes = "; ".join(part for part in (SECOND[second], note) if part)
        reduced = {"NO": "", "JOIN": f"`{formula}`", "MEAN": f"`{formula}`, then / n"}[reduces]
        yield f"| {name} | {'`' + formula + '`' if operands else ''} | {reduced} | {DOMAINS[domain]} | {notes} |"
    yield ""
    yield "The relations of cmp: " + ", ".join(f"{name} `{operator}`" for name, operator in relations) + "."


ok(len(ops) == len(re.findall(r"^OP\(", text, re.M)) and relations, "every row of ops.def is read")
docs = read(DOCS)
head, want = docs[:docs.find("| op |")], "\n".join(table()) + "\n"
if os.environ.get("BLESS"):
    write(DOCS, head + want)
    docs = head + want
ok(docs == head + want, "docs/ops.md has the table of rt/kb/ops.def", first_difference(head + want, docs))
header = read(os.path.join(ROOT, "rt", "kb", "math.h"))
known = {op.name for op in ops}
for suffix in ("", "_async"):
    called = set(re.findall(rf'KB_\w+\({suffix}, tl, "(\w+)"', header))
    called |= {"cmp"} if f"KB_COMPARE({suffix}, tl" in header else set()
    ok(called == known - CALLED_BY_NAME, f"each op of ops.def has a call tl_OP{suffix} in kb/math.h, and each call an op",
       called ^ (known - CALLED_BY_NAME))
ok(ORACLES == known, "the oracle knows the ops of ops.def", ORACLES ^ known)
done()
