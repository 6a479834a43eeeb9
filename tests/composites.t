#!/usr/bin/python3
"""composites: gemms and math on tiles, on 1, 8 and 128 PEs, in every form of their operands. limit: 300"""
import itertools
import os

from harness import Broken, KBGEN, ROOT, SCRATCH, done, ok, run

KERNEL = os.path.join(ROOT, "tests", "host", "composites.c")
REF = os.path.join(ROOT, "topologies", "ref_sip.yaml")
LANES = "cube.pe_template.components.pe_math.attrs.lanes={ f32: 64, f16: 64, bf16: 64, i32: 8, i16: 8, i8: 8, u8: 8 }"
# Sets of PEs, and rows, of which none has as many as another.
SETS = (("sip0.cube3.pe5", 23), ("sip0.cube2.*", 61), ("*", 300))


def gemms():
    for dtype in ("f32", "f16", "bf16"):
        for form in ({}, {"ta": "true"}, {"tb": "true"}, {"ta": "true", "tb": "true"}, {"pinned": "true"},
                     {"tb": "true", "pinned": "true"}):
            yield {"dtype": dtype, "out": dtype} | form
        for epilogues in ("copy neg", "abs sqrt", "scale exp", "bias relu", "scale bias gelu", "silu tanh", "sigmoid",
                          "add", "sub mul", "max min", "div cast", "bias add scale relu"):
            yield {"dtype": dtype, "out": dtype, "epilogues": epilogues}
            yield {"dtype": dtype, "out": "f32", "epilogues": epilogues, "tb": "true"}
        for scope in (0, 2):
            yield {"dtype": dtype, "out": dtype, "epilogues": "scale bias add gelu", "scope": scope}
    for out in ("i32", "i16", "i8", "u8", "f32"):
        yield {"dtype": "i8", "out": out, "ta": "true"}
        yield {"dtype": "i8", "out": out, "with": "i32", "epilogues": "bias relu add neg abs max", "tb": "true"}
    for scope in (0, 2):
        yield {"dtype": "i8", "out": "i32", "with": "i32", "epilogues": "bias relu sub", "scope": scope}
    for out in ("f32", "f16", "bf16"):
        yield {"dtype": "i8", "out": out, "epilogues": "dequant"}
        yield {"dtype": "i8", "out": out, "epilogues": "cast dequant bias"}
    yield {"dtype": "i8", "out": "i8", "epilogues": "quant"}


def maths():
    for dtype in ("f32", "f16", "bf16"):
        for op in ("copy", "neg", "abs", "relu", "exp", "tanh", "sigmoid", "gelu", "silu"):
            yield {"op": op, "dtype": dtype, "to": dtype}
        for form in ("block", "row", "column", "one"):
            yield {"op": "add", "form": form, "dtype": dtype, "with": dtype, "to": dtype, "in_place": "true"}
            yield {"op": "max", "form": form, "dtype": dtype, "with": dtype, "to": "f32"}
            yield {"op": "cmp", "form": form, "dtype": dtype, "with": dtype, "to": "u8"}
        yield {"op": "bias", "form": "row", "dtype": dtype, "with": "f32", "to": dtype}
        yield {"op": "scale", "form": "one", "dtype": dtype, "with": "f32", "to": dtype}
        yield {"op": "quant", "form": "row", "dtype": dtype, "with": "f32", "to": "i8"}
        yield {"op": "dequant", "form": "row", "dtype": "i8", "with": "f32", "to": dtype}
    for dtype in ("i32", "i16", "i8", "u8"):
        for op in ("sub", "mul", "min", "div"):
            yield {"op": op, "form": "block", "dtype": dtype, "with": dtype, "to": dtype}
        for to in ("f16", "i8", "u8", "i32"):
            yield {"op": "cast", "dtype": dtype, "to": to}


def every(program, bench, cases):
    for number, (case, (pes, m)) in enumerate(itertools.product(cases, SETS)):
        words = [f"{key}={value}" for key, value in (case | {"pes": pes, "m": m}).items()]
        ended = run(program, "run", bench, *words, "--seed", number, "--data", "debug")
        good = "\nverified     every operation of " in ended.stdout
        good &= case.get("scope", 1) != 1 or "\nverified     " in ended.stdout.replace("verified     every", "")
        ok(ended.returncode == 0 and good, f"{bench} {' '.join(words)}", ended.said)


try:
    made = os.path.join(SCRATCH, "composites")
    built = run(KBGEN, REF, "-k", KERNEL, "--set", LANES, "-o", made)
    if built.returncode or "warning" in built.stderr:
        raise Broken(built.said)
    every(made, "gemm_of", gemms())
    every(made, "math_of", maths())
except Broken as reason:
    ok(False, "a simulator with kernels of the user's own", reason)
done()
