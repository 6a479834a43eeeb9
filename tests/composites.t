#!/usr/bin/python3
"""composites: gemms and math on tiles, on 1, 8 and 128 PEs, in every form of their operands. limit: 300

Under the sanitizers a quarter of the forms are on 128 PEs, all of them on 1 and 8.
"""
import itertools
import os

from harness import LANES, ROOT, SAN, ok, result, simulator, suite, sweep, topology, verifies

KERNEL = os.path.join(ROOT, "tests", "host", "composites.c")
# Sets of PEs, each with another number of rows.
SETS = (("sip0.cube3.pe5", 23), ("sip0.cube2.*", 61), ("*", 300))


def gemms():
    for dtype in ("f32", "f16", "bf16"):
        for form in ({}, {"ta": True}, {"tb": True}, {"ta": True, "tb": True}, {"pinned": True},
                     {"tb": True, "pinned": True}):
            yield {"dtype": dtype, "out": dtype} | form
        for epilogues in ("copy neg", "abs sqrt", "scale tanh exp", "bias relu", "scale bias gelu", "silu tanh", "sigmoid",
                          "add", "sub mul", "max min", "div cast", "bias add scale relu"):
            yield {"dtype": dtype, "out": dtype, "epilogues": epilogues}
            yield {"dtype": dtype, "out": "f32", "epilogues": epilogues, "tb": True, "pinned": epilogues == "bias relu"}
        yield {"dtype": dtype, "out": dtype, "epilogues": "relu scale bias", "unscoped": True}
        for scope in (1, 2):
            yield {"dtype": dtype, "out": dtype, "epilogues": "scale bias add gelu", "scope": scope}
    for out in ("i32", "i16", "i8", "u8", "f32"):
        yield {"dtype": "i8", "out": out, "ta": True}
        yield {"dtype": "i8", "out": out, "with": "i32", "epilogues": "bias relu add neg abs max", "tb": True}
    for scope in (1, 2):
        yield {"dtype": "i8", "out": "i32", "with": "i32", "epilogues": "bias relu sub", "scope": scope}
    for out in ("f32", "f16", "bf16"):
        yield {"dtype": "i8", "out": out, "epilogues": "dequant"}
        yield {"dtype": "i8", "out": out, "epilogues": "cast dequant bias"}
    yield {"dtype": "i8", "out": "i8", "epilogues": "quant"}


def with_axes():
    """Matrices whose rows and columns are at one distance each, or over several axes, with elements that are in several."""
    for rows, cols in (("6*5", "4*1"), ("6*1", "4*7"), ("1*99", "3*0"), ("4*10 3*5", "5*1"), ("2*40 3*8 4*1", "6*1"),
                       ("3*20 3*1", "2*10 2*1"), ("2*72 3*12 3*3", "3*12 9*1"), ("2*3 2*50 4*5", "2*7 3*25 2*1"),
                       ("1*5 7*2", "1*9 3*1 1*4"), ("3*8 8*1 2*24", "3*24")):
        for dtype, out in (("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")):
            for of_b in False, True:
                yield {"dtype": dtype, "out": out, "rows": rows, "cols": cols, "of_b": of_b}


def maths():
    for dtype in ("f32", "f16", "bf16"):
        for op in ("copy", "neg", "abs", "relu", "exp", "tanh", "sigmoid", "gelu", "silu"):
            yield {"op": op, "dtype": dtype, "to": dtype}
        for form in ("block", "row", "column", "one"):
            yield {"op": "add", "form": form, "dtype": dtype, "with": dtype, "to": dtype, "in_place": True}
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
    """Every operation is verified by itself, and the result as well where no epilogue is of another scope."""
    points = [case | ({"pes": pes, "--seed": number} if bench == "axes_of" else {"pes": pes, "m": m, "--seed": number})
              for number, (case, (pes, m)) in enumerate(itertools.product(cases, SETS))
              if not SAN or pes != "*" or number % 4 == 2]
    ended, answers = sweep(program, bench, points, "--data", "debug")
    for point, answer in zip(points, answers):
        good = verifies(answer) or point.get("scope", 0) != 0 and answer and "first_wrong_op" not in answer
        said = " ".join(f"{key}={value}" for key, value in point.items())
        ok(good, f"{bench} {said} verifies", answer, ended.said[-2000:] if not answer else "")
    ok(ended.returncode == 0, f"the sweep of {bench} ends with status 0", ended.said[-2000:])


def times(program):
    """The rows of axes of its own are fetched in the time of rows at one distance."""
    made = [result(program, "axes_of", f"rows={rows}", "cols=10*2", "pes=sip0.cube0.pe0") for rows in ("24*2", "6*5 4*7")]
    ok(made[0][1]["end_ps"] == made[1][1]["end_ps"] and all(ended.returncode == 0 for ended, _ in made),
       "axes of its own do not change the time of an operand", *(ended.said for ended, _ in made))


def main():
    made = simulator(topology("ref_sip"), "composites", [KERNEL], [LANES])
    every(made, "gemm_of", gemms())
    every(made, "math_of", maths())
    every(made, "axes_of", with_axes())
    times(made)


suite(main)
