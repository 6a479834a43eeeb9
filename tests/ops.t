#!/usr/bin/python3
"""ops: every op of the device on 1, 8 and 128 PEs, at sizes that do not divide, against its reference. limit: 300"""
import itertools
import os

from harness import Broken, KBGEN, ROOT, SCRATCH, done, ok, run

KERNEL = os.path.join(ROOT, "tests", "host", "ops.c")
REF = os.path.join(ROOT, "topologies", "ref_sip.yaml")
FLOATS, WHOLE = ("f32", "f16", "bf16"), ("i32", "i16", "i8", "u8")
LANES = "cube.pe_template.components.pe_math.attrs.lanes={ f32: 64, f16: 64, bf16: 64, i32: 8, i16: 8, i8: 8, u8: 8 }"
# Sets of PEs, and rows, of which none has as many as another.
SETS = (("sip0.cube3.pe5", 7), ("sip0.cube2.*", 21), ("*", 300))

UNARY = ("exp", "tanh", "sigmoid", "gelu", "silu")
POSITIVE = ("log", "sqrt", "rsqrt", "recip")
SIGNS = ("copy", "neg", "abs", "relu")
BINARY = ("add", "sub", "mul", "div", "max", "min")
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
FORMS = ("same", "row", "column", "number")


def cases():
    """Words of a run, for each op, form of operands and dtype."""
    for dtype in FLOATS:
        for op in UNARY + POSITIVE:
            yield {"op": op, "form": "unary", "dtype": dtype, "to": dtype, "low": 0.1 if op in POSITIVE else -2}
        for axis in (0, 1):
            for op in ("sum", "mean", "max", "min"):
                yield {"op": op, "form": "reduce", "dtype": dtype, "to": dtype, "axis": axis}
        yield {"op": "softmax", "form": "unary", "dtype": dtype, "to": dtype}
        yield {"op": "layernorm", "form": "two_rows", "dtype": dtype, "with": dtype, "to": dtype}
        yield {"op": "dot", "form": "square", "dtype": dtype, "with": dtype, "to": dtype}
        for op in ("bias", "bias_add"):
            yield {"op": op, "form": "row", "dtype": dtype, "with": dtype, "to": dtype}
        yield {"op": "scale", "form": "number", "dtype": dtype, "to": dtype}
        yield {"op": "dequant", "form": "row", "dtype": "i8", "with": "f32", "to": dtype}
        yield {"op": "quant", "form": "row", "dtype": dtype, "with": "f32", "to": "i8", "low": 0.1}
    for dtype in FLOATS + WHOLE:
        for op in SIGNS:
            yield {"op": op, "form": "unary", "dtype": dtype, "to": dtype}
        for op in BINARY:
            low = 0.5 if op == "div" and dtype in FLOATS else -2
            for form in FORMS:
                yield {"op": op, "form": form, "dtype": dtype, "with": dtype, "to": dtype, "low": low}
        for step, op in enumerate(RELATIONS):
            yield {"op": op, "form": FORMS[step % 4], "dtype": dtype, "with": dtype, "to": "u8"}
        yield {"op": "where", "form": "where", "dtype": "u8", "with": dtype, "to": dtype}
        for to in FLOATS + WHOLE:
            yield {"op": "cast", "form": "unary", "dtype": dtype, "to": to, "low": -200}
    for dtype in WHOLE:
        for axis in (0, 1):
            for op in ("sum", "mean", "max", "min"):
                yield {"op": op, "form": "reduce", "dtype": dtype, "to": "i32" if axis else dtype, "axis": axis}
    yield {"op": "dot", "form": "square", "dtype": "i8", "with": "i8", "to": "i32"}


def every_op(program):
    """On each set of PEs; by turns the call that blocks and the one that does not."""
    for number, (case, (pes, m)) in enumerate(itertools.product(cases(), SETS)):
        size = (2 * m + 1, 300) if case.get("axis") == 0 and pes == "*" else (m, 37)
        more = {"pes": pes, "m": size[0], "n": size[1], "async": "true" if number % 2 else "false"}
        words = [f"{key}={value}" for key, value in (case | more).items()]
        ended = run(program, "run", "op", *words, "--seed", number)
        ok(ended.returncode == 0 and "\nverified     to: " in ended.stdout, " ".join(words), ended.said)


try:
    made = os.path.join(SCRATCH, "ops")
    built = run(KBGEN, REF, "-k", KERNEL, "--set", LANES, "-o", made)
    if built.returncode or "warning" in built.stderr:
        raise Broken(built.said)
    every_op(made)
except Broken as reason:
    ok(False, "a simulator with kernels of the user's own", reason)
done()
