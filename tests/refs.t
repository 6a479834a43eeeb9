#!/usr/bin/python3
"""refs: references against plain Python: every op and dtype, broadcasting, bounds, wrong use."""
import array
import functools
import json
import math
import os
import random
import re
import struct

from harness import ROOT, SAN, math_ops, ok, read, run, scratch, small_machine, suite, write

KERNELS = [os.path.join(ROOT, "tests", "host", "refs.c")]
FLOATS = {"f32": 1e-5, "f16": 1e-3, "bf16": 1e-2}
WHOLE = {"i32": (4, "i"), "i16": (2, "h"), "i8": (1, "b"), "u8": (1, "B")}


class Array:
    """Values of a dtype, rounded to it, in row-major order."""

    def __init__(self, dtype, shape, values):
        self.dtype, self.shape = dtype, tuple(shape)
        self.values = [unpack(dtype, pack(dtype, value)) for value in values]

    def at(self, *index):
        """An element, broadcast: shapes are aligned at their last axes."""
        position = 0
        for size, i in zip(self.shape, index[len(index) - len(self.shape):]):
            position = position * size + (0 if size == 1 else i)
        return self.values[position]

    def save(self, name):
        descr = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}.get(self.dtype) or \
            ("|u1" if self.dtype == "u8" else f"<i{WHOLE[self.dtype][0]}")
        text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {self.shape}}}\n".encode()
        path = write(scratch(name + ".npy"), b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text
                     + b"".join(pack(self.dtype, value) for value in self.values))
        return f"{self.dtype}:{'x'.join(map(str, self.shape))}:{path}"


def pack(dtype, value):
    if dtype == "bf16":
        bits, = struct.unpack("<I", struct.pack("<f", value))
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    if dtype in FLOATS:
        return struct.pack({"f32": "<f", "f16": "<e"}[dtype], value)
    size, code = WHOLE[dtype]
    return struct.pack("<" + code, wrap(dtype, value))


def unpack(dtype, data):
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return struct.unpack("<" + ({"f32": "f", "f16": "e"}.get(dtype) or WHOLE[dtype][1]), data)[0]


def wrap(dtype, value):
    bits = 8 * WHOLE[dtype][0]
    value = int(value) & (1 << bits) - 1
    return value - (1 << bits) if dtype != "u8" and value >> bits - 1 else value


def saturate(dtype, value):
    bits = 8 * WHOLE[dtype][0]
    least, most = (0, 255) if dtype == "u8" else (-1 << bits - 1, (1 << bits - 1) - 1)
    return min(max(value, least), most)


def drawn(dtype, shape, low=-2.0, high=2.0):
    count = math.prod(shape)
    if dtype in FLOATS:
        return Array(dtype, shape, [random.uniform(low, high) for _ in range(count)])
    span = 200 if dtype in ("i8", "u8") else 70000
    return Array(dtype, shape, [random.randrange(-span, span) for _ in range(count)])


def indices(shape):
    return [()] if not shape else [(i, *rest) for i in range(shape[0]) for rest in indices(shape[1:])]


def verdict(program, what, out, words, *options):
    """How the run ended, and the verification of `out`."""
    path = scratch("result.json")
    ended = run(program, "run", "refs", f"what={what}", *words, "out=" + out.save("out"), "--json", path, *options)
    return ended, json.loads(read(path))["verify"][0] if ended.returncode < 2 else {}


def compare(program, what, out, name, **given):
    """The reference accepts what Python computes, and refuses the same with one element off by 5 % of the RMS."""
    words = [f"{key}={value.save(key) if isinstance(value, Array) else value}" for key, value in given.items()]
    ended, check = verdict(program, what, out, words)
    if not ok(check.get("status") == "ok", f"the reference accepts Python's result: {name}", ended.said, check):
        return None
    random_one = random.randrange(len(out.values))
    if SAN:                                             # the rest runs the same code once more, and infinities and wrong
        return check
    off, skipped = verdict(program, what, out, words, "--data", "off")
    ok(off.returncode == 0 and skipped["status"] == "skipped",
       f"with --data off the reference checks the shape alone: {name}", off.said)
    step = 1 if out.dtype in WHOLE else 0.05 * max(check["rms"], abs(out.values[random_one]))
    out.values[random_one] -= step if out.values[random_one] > 100 else -step
    ended, _ = verdict(program, what, out, words)
    ok(ended.returncode == 1 and "WRONG" in ended.stdout,
       f"the reference refuses one wrong element: {name}", ended.said)
    return check


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


UNARY = {"copy": lambda x: x, "neg": lambda x: -x, "abs": abs, "relu": lambda x: max(x, 0), "exp": math.exp,
         "log": math.log, "sqrt": math.sqrt, "rsqrt": lambda x: x ** -0.5, "recip": lambda x: 1 / x,
         "tanh": math.tanh, "sigmoid": sigmoid, "gelu": lambda x: x * 0.5 * math.erfc(-x * 0.5 ** 0.5),
         "silu": lambda x: x * sigmoid(x)}
POSITIVE = ("log", "sqrt", "rsqrt", "recip")
BINARY = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
          "div": lambda x, y: x / y, "max": max, "min": min, "bias": lambda x, y: x + y, "bias_add": lambda x, y: x + y,
          "scale": lambda x, y: x * y}
JOINS = {op: BINARY[op] for op in ("add", "mul", "min", "max")}
USUAL = {op.name: op for op in math_ops() if op.domain in ("FLOATS", "ALL")}
NEW = [{name: op for name, op in USUAL.items() if op.operands == count and name not in UNARY | BINARY} for count in (1, 2)]
RELATIONS = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
             "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}


def formulas():
    """The formulas of rt/kb/ops.def, which docs/ops.md shows, are those of these tests."""
    for op, of in (UNARY | BINARY).items():
        points = [(random.uniform(0.1, 3), random.uniform(0.1, 3))[:USUAL[op].operands] for _ in range(20)]
        wrong = [point for point in points if not math.isclose(USUAL[op](*point), of(*point), rel_tol=1e-12)]
        ok(not wrong, f"the formula of {op} in ops.def gives what Python computes", *wrong)


def unary(program):
    for number, (op, of) in enumerate((UNARY | NEW[0]).items()):
        for dtype in FLOATS if number % 2 else list(FLOATS)[::-1]:
            x = drawn(dtype, (3, 7), 0.1 if op in POSITIVE or op in NEW[0] else -2)
            compare(program, "unary", Array(dtype, x.shape, map(of, x.values)), f"{op} of {dtype}", op=op, x=x)
    for op, dtype in (("neg", "i8"), ("abs", "i16"), ("relu", "i32"), ("copy", "u8")):
        x = drawn(dtype, (5, 3))
        compare(program, "unary", Array(dtype, x.shape, map(UNARY[op], x.values)), f"{op} of {dtype}", op=op, x=x)


SHAPES = (((3, 5), (3, 5)), ((3, 5), (5,)), ((3, 5), (3, 1)), ((2, 3, 5), (1,)), ((3, 1), (1, 4)),
          ((2, 1, 3, 2), (4, 1, 2)))


def broadcast(x, y):
    rank = max(len(x.shape), len(y.shape))
    wide = [(1,) * (rank - len(one.shape)) + one.shape for one in (x, y)]
    return tuple(map(max, *wide))


def binary(program):
    for number, (op, of) in enumerate((BINARY | NEW[1] | RELATIONS).items()):
        for step, dtype in enumerate(("f32", "bf16", "f16", "i8", "i16", "i32")):
            if step % 2 != number % 2 and op not in ("add", "mul", "div"):
                continue
            shapes = SHAPES[(number + step) % len(SHAPES)]
            x, y = drawn(dtype, shapes[0]), drawn(dtype, shapes[1], 0.5)
            if op in ("eq", "le"):
                x.values[0] = y.values[0]
            each = of if op != "div" or dtype in FLOATS else lambda a, b: 0 if b == 0 else int(a / b)
            shape = broadcast(x, y)
            made = Array("u8" if op in RELATIONS else dtype, shape, [each(x.at(*i), y.at(*i)) for i in indices(shape)])
            compare(program, "binary", made, f"{op} of {dtype}, {shapes[0]} and {shapes[1]}", op=op, x=x, y=y)
    x = drawn("f16", (3, 3))
    compare(program, "number", Array("f16", (3, 3), [v * 2.5 for v in x.values]),
            "mul of f16 with a number", op="mul", x=x)
    x = drawn("i8", (3, 3))
    compare(program, "whole_number", Array("i8", (3, 3), [v * 3 for v in x.values]),
            "mul of i8 with a number", op="mul", x=x)
    c, x, y = Array("u8", (3, 4), [0, 1, 2] * 4), drawn("f32", (4,)), drawn("f32", (3, 1))
    made = [x.at(*i) if c.at(*i) else y.at(*i) for i in indices((3, 4))]
    compare(program, "where", Array("f32", (3, 4), made), "where of f32", x=c, y=x, z=y)


def product(x, y):
    (m, k), n = x.shape, y.shape[1]
    return [math.fsum(x.at(i, p) * y.at(p, j) for p in range(k)) for i in range(m) for j in range(n)]


def turned(x):
    return Array(x.dtype, x.shape[::-1], [x.at(j, i) for i, j in indices(x.shape[::-1])])


def gemms(program):
    for dtype in ("f32", "f16", "bf16", "i8"):
        x, y = drawn(dtype, (5, 7)), drawn(dtype, (7, 3))
        out = Array("i32" if dtype == "i8" else dtype, (5, 3), product(x, y))
        for what, a, b in (("gemm", x, y), ("gemm_at", turned(x), y), ("gemm_bt", x, turned(y))):
            compare(program, what, Array(out.dtype, out.shape, out.values), f"{what} of {dtype}", x=a, y=b)
        x, y = drawn(dtype, (2, 5, 7)), drawn(dtype, (2, 7, 3))
        made = [math.fsum(x.at(b, i, p) * y.at(b, p, j) for p in range(7)) for b, i, j in indices((2, 5, 3))]
        compare(program, "gemm", Array(out.dtype, (2, 5, 3), made), f"two gemms of {dtype}", x=x, y=y)
    x = drawn("f16", (2, 3, 5))
    made = [x.at(i, k, j) for i, j, k in indices((2, 5, 3))]
    compare(program, "transpose", Array("f16", (2, 5, 3), made), "transpose of the last two of three axes", x=x)


def slices(program):
    """Products of operands narrower than f32 are added up from slices of k."""
    for dtype in ("f16", "bf16", "i8"):                 # more terms than are added up at once
        x, y = drawn(dtype, (3, 1100)), drawn(dtype, (1100, 600))
        compare(program, "gemm", Array("i32" if dtype == "i8" else dtype, (3, 600), product(x, y)), f"1,100 terms of {dtype}",
                x=x, y=y)
    x, y = (Array("i8", shape, [random.randrange(100, 128) for _ in range(12000)]) for shape in ((4, 3000), (3000, 4)))
    compare(program, "gemm", Array("i32", (4, 4), product(x, y)), "large sums of i8", x=x, y=y)
    for terms in (131071, 131072, 140000):              # of 2^14: the largest sum that fits, and sums that wrap
        x, y = Array("i8", (1, terms), [-128] * terms), Array("i8", (terms, 1), [-128] * terms)
        compare(program, "gemm", Array("i32", (1, 1), [wrap("i32", terms << 14)]), f"{terms} products of -128", x=x, y=y)
    x, y = Array("bf16", (1, 3), [1e30, 1e30, 2]), Array("bf16", (3, 1), [1e30, -1e30, 3])
    ended, check = verdict(program, "gemm", Array("bf16", (1, 1), [6]), ["x=" + x.save("x"), "y=" + y.save("y")])
    ok("TOO WEAK" in ended.stdout and check["max_err"] == 0 and check["rms"] == 6,
       "products beyond the range of f32 that cancel are added up in f64; their bounds are weak", ended.said)


def convolved(x, w, height, kernel_h, kernel_w, stride, pad):
    """x in NHWC with all images in one axis, w in OHWI; the values and the shape of the result."""
    (lines, width, channels), filters = x.shape, w.shape[0]
    down, across = (height + 2 * pad - kernel_h) // stride + 1, (width + 2 * pad - kernel_w) // stride + 1
    made = []
    for image, oy, ox, f in indices((lines // height, down, across, filters)):
        inside = [(ky, kx) for ky, kx in indices((kernel_h, kernel_w))
                  if 0 <= oy * stride + ky - pad < height and 0 <= ox * stride + kx - pad < width]
        made.append(math.fsum(x.at(image * height + oy * stride + ky - pad, ox * stride + kx - pad, c)
                              * w.at(f, (ky * kernel_w + kx) * channels + c)
                              for ky, kx in inside for c in range(channels)))
    return made, (lines // height * down, across, filters)


def convolutions(program):
    for dtype in ("f32", "f16", "bf16", "i8"):
        for height, kernel_h, kernel_w, stride, pad in ((5, 3, 3, 1, 1), (6, 3, 2, 2, 0), (5, 1, 1, 3, 0), (4, 2, 5, 1, 3)):
            x, w = drawn(dtype, (2 * height, 7, 3)), drawn(dtype, (2, kernel_h * kernel_w * 3))
            made, shape = convolved(x, w, height, kernel_h, kernel_w, stride, pad)
            compare(program, "conv2d", Array("i32" if dtype == "i8" else dtype, shape, made),
                    f"a convolution of {dtype}, {kernel_h} x {kernel_w}, stride {stride}, padding {pad}", x=x, y=w,
                    op=f"{height} {kernel_h} {kernel_w} {stride} {pad}")
    x, w, flat = drawn("f32", (10, 7, 3)), drawn("f32", (2, 27)), drawn("f32", (10, 21))
    for said, images, op in ((r"w has 27 columns; a patch has 3 x 2 x 3", x, "5 3 2 1 1"),
                             (r"x has 10 rows, which are no images of 4", x, "4 3 3 1 1"),
                             (r"x has 10 rows, which are no images of 0", x, "0 3 3 1 1"),
                             (r"a kernel of 9 with a stride of 1 has no position in 5 elements and a padding of 1", x, "5 9 1 1 1"),
                             (r"a kernel of 3 with a stride of 0 has no position", x, "5 3 3 0 1"),
                             (r"x has to have 3 axes, and w 2", flat, "5 3 3 1 1")):
        ended = run(program, "run", "refs", "what=conv2d", "x=" + images.save("x"), "y=" + w.save("y"), "op=" + op,
                    "out=" + w.save("out"))
        ok(ended.returncode == 2 and re.search(r"refs\.c:\d+: error: kb_ref_conv2d: " + said, ended.stderr),
           f"a convolution is refused: {said}", ended.said)


def reductions(program):
    joins = {"sum": math.fsum, "mean": lambda line: math.fsum(line) / len(line), "max": max, "min": min}
    for number, (what, of) in enumerate(joins.items()):
        for axis, shape in ((0, (5, 3)), (1, (5, 3)), (1, (2, 5, 3)), (3, (2, 1, 3, 7)), (0, (11,))):
            dtype = ("f32", "i8", "f16", "i32", "bf16")[(number + axis + len(shape)) % 5]
            x = drawn(dtype, shape)
            left = shape[:axis] + (1,) + shape[axis + 1:]
            lines = [[x.at(*i[:axis], k, *i[axis + 1:]) for k in range(shape[axis])] for i in indices(left)]
            each = (lambda line, of=of: int(of(line))) if dtype in WHOLE else of
            out = Array("i32" if dtype in WHOLE else dtype, left, map(each, lines))
            compare(program, what, out, f"{what} of {dtype} {shape} over {axis}", x=x, axis=axis)


def norms(program):
    for dtype in FLOATS:
        x = drawn(dtype, (3, 9), -1, 1)
        rows = [x.values[9 * i:9 * i + 9] for i in range(3)]
        totals = [sum(map(math.exp, row)) for row in rows]
        made = [math.exp(v) / total for row, total in zip(rows, totals) for v in row]
        compare(program, "softmax", Array(dtype, (3, 9), made), "softmax of " + dtype, x=x)
        gain, bias = drawn(dtype, (9,)), drawn(dtype, (9,))
        made = []
        for row in rows:
            centre = sum(row) / 9
            root = (sum((v - centre) ** 2 for v in row) / 9 + 1e-5) ** 0.5
            made += [(v - centre) / root * g + b for v, g, b in zip(row, gain.values, bias.values)]
        compare(program, "layernorm", Array(dtype, (3, 9), made), "layernorm of " + dtype, x=x, y=gain, z=bias)
        made = [v / (sum(u * u for u in row) / 9 + 1e-5) ** 0.5 * 2 for row in rows for v in row]
        compare(program, "rmsnorm", Array(dtype, (3, 9), made), "rmsnorm of " + dtype, x=x)


def conversions(program):
    for source in ("f32", "f16", "i32", "i8"):
        for dtype in ("f16", "bf16", "i16", "u8"):
            x = drawn(source, (3, 5), -300, 300) if source in FLOATS else drawn(source, (3, 5))
            if dtype == "f16" and source == "i32":
                x.values = [v % 1000 for v in x.values]
            made = x.values if dtype in FLOATS else [saturate(dtype, round(v)) for v in x.values]
            compare(program, "cast", Array(dtype, (3, 5), made), f"{source} to {dtype}", op=dtype, x=x)
    x, scale = drawn("f32", (4, 5)), Array("f32", (5,), [0.5, 0.25, 0.01, 1, 2])
    made = [saturate("i8", round(x.at(*i) / scale.at(*i))) for i in indices((4, 5))]
    compare(program, "quant", Array("i8", (4, 5), made), "quant by a row of scales", op="i8", x=x, y=scale)
    x = drawn("i8", (4, 5))
    made = [x.at(*i) * scale.at(*i) for i in indices((4, 5))]
    compare(program, "dequant", Array("f16", (4, 5), made), "dequant by a row of scales", x=x, y=scale)
    out = Array("f16", (2, 3), [1, 2, 3, 4, 5, 6])
    compare(program, "given", Array("f32", (2, 3), out.values), "given values")
    compare(program, "npy", Array("f32", (2, 3), out.values),
            "values of a file of f16", op=out.save("x").rsplit(":", 1)[1])


def rows(program):
    """References for whole rows: sums with a row, rows that are joined, blocks that are exchanged."""
    x, y, row = drawn("f32", (5, 7)), drawn("f32", (7, 3)), drawn("f32", (3,))
    made = [max(value + row.values[i % 3], 0) for i, value in enumerate(product(x, y))]
    compare(program, "biased", Array("f32", (5, 3), made), "a gemm with bias and relu", x=x, y=y, z=row)
    for op in ("add", "mul", "min", "max"):
        for dtype in ("f32", "i16"):
            x = drawn(dtype, (3, 5))
            made = [functools.reduce(JOINS[op], (x.at(i, j) for i in range(3))) for j in range(5)]
            made = made if dtype == "f32" else [wrap(dtype, value) for value in made]
            compare(program, "reduce", Array(dtype, (1, 5), made), f"{op} over rows of {dtype}", op=op, x=x)
    x = drawn("u8", (3, 12))
    made = [x.at(j // 4, 4 * i + j % 4) for i, j in indices((3, 12))]
    compare(program, "exchange", Array("u8", (3, 12), made), "exchanged blocks of u8", x=x)


def chains(program):
    """The errors of three operations add up; those of an operand that is marked as exact do not count."""
    for dtype in FLOATS:
        q, k, v = drawn(dtype, (4, 16), -0.5, 0.5), drawn(dtype, (6, 16), -0.5, 0.5), drawn(dtype, (6, 5))
        scores = Array(dtype, (4, 6), product(q, turned(k)))
        scores = Array(dtype, (4, 6), [0.25 * x for x in scores.values])
        rows = [[math.exp(x) for x in scores.values[6 * i:6 * i + 6]] for i in range(4)]
        weights = Array(dtype, (4, 6), [x / sum(row) for row in rows for x in row])
        chain = compare(program, "attention", Array(dtype, (4, 5), product(weights, v)), "attention of " + dtype,
                        x=q, y=k, z=v)
        first = Array("f32", (4, 6), [0] * 24)
        first.values = product(q, turned(k))            # not rounded
        exact = compare(program, "exact", Array(dtype, (4, 5), product(first, v)),
                        "a product with an exact product, of " + dtype, x=q, y=turned(k), z=v)
        ok(dtype == "f32" or chain and exact and exact["power"] < 0.7 * chain["power"],
           f"an exact operand adds nothing to the bounds of a product of {dtype}", chain, exact)


def epilogues(program):
    """A large product and what is made of its elements are computed together, whatever happens to the product afterwards."""
    rows, depth, columns = 2048, 1024, 1024             # enough multiplications for it to be large
    at = [random.randrange(depth) for _ in range(rows)]     # A has one element in each row
    factor = [random.choice((-2.0, -1.0, 0.5, 3.0)) for _ in range(rows)]
    x = array.array("f", bytes(4 * rows * depth))
    for i in range(rows):
        x[i * depth + at[i]] = factor[i]
    y = array.array("f", (random.randrange(-64, 64) for _ in range(depth * columns)))
    z = array.array("f", (random.randrange(1, 9) for _ in range(columns)))
    c = [[factor[i] * value for value in y[at[i] * columns:(at[i] + 1) * columns]] for i in range(rows)]
    words = [f"x={saved('x', (rows, depth), x)}", f"y={saved('y', (depth, columns), y)}", f"z={saved('z', (columns,), z)}"]
    for how, of in STEPS.items():
        out = array.array("f", (of(value, add) for row in c for value, add in zip(row, z)))
        ends = []
        for _ in range(2):
            path = scratch("steps.json")
            ended = run(program, "run", "refs", "what=steps", "op=" + how, *words, "out=" + saved("out", (rows, columns), out),
                        "--json", path)
            ends.append(json.loads(read(path))["verify"][0]["status"] if ended.returncode < 2 else ended.said)
            out[random.randrange(len(out))] += 50
        ok(ends == ["zeros" if how == "n+" else "ok", "wrong"], f"a large product, then {how}: right and wrong elements", *ends)


def deferred(program):
    """Ops on elements of tensors are computed row by row when they are compared, whatever happens to the first one afterwards."""
    x = Array("f32", (5, 7), [random.randrange(1, 9) for _ in range(35)])
    y, z = Array("f32", (7,), [random.randrange(1, 9) for _ in range(7)]), Array("f32", (7,), [random.randrange(1, 9) for _ in range(7)])
    for how, of in STEPS.items():
        if how != "n+":                                 # which gives zeros
            compare(program, "scaled_steps", Array("f32", (5, 7), [of(x.at(i, j) * y.at(j), z.at(j)) for i, j in indices((5, 7))]),
                    f"a product of two tensors, then {how}", op=how, x=x, y=y, z=z)
    for shapes in (((6, 40), (40,), (6, 40)), ((6, 1), (1,), (6, 40)), ((6, 40), (6, 40), (6, 1)), ((1, 40), (40,), (6, 1))):
        x, y, z = (drawn("f16", shape) for shape in shapes)
        first = Array("f16", broadcast(x, y), [x.at(*i) * y.at(*i) for i in indices(broadcast(x, y))])
        shape = broadcast(first, z)
        compare(program, "scaled_steps", Array("f16", shape, [first.at(*i) * z.at(*i) for i in indices(shape)]),
                f"two products in f16, the first one rounded, of {shapes}", op="m", x=x, y=y, z=z)


STEPS = {"n": lambda v, b: -v, "m": lambda v, b: v * b, "nn": lambda v, b: v, "n+": lambda v, b: 0.0, "nm": lambda v, b: -v * b,
         "nb": lambda v, b: -v, "nr": lambda v, b: -v, "nB": lambda v, b: b - v,
         "mR": lambda v, b: max(v * b, 0), "r": lambda v, b: max(v, 0), "rn": lambda v, b: -max(v, 0), "bm": lambda v, b: (v + b) * b}


def saved(name, shape, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    path = scratch(name + ".npy")
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + values.tobytes())
    return f"f32:{'x'.join(map(str, shape))}:{path}"


def attended(q, k, v, causal):
    """One head of attention, as lists of rows."""
    made = []
    for i, query in enumerate(q):
        sees = len(k) - len(q) + i + 1 if causal else len(k)
        weights = [math.exp(sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query))) for key in k[:sees]]
        made.append([sum(w * row[c] for w, row in zip(weights, v)) / sum(weights) for c in range(len(query))])
    return made


def heads(program):
    """Attention of 4 heads; two at a time share a head of K and V; in both layouts."""
    queries, keys, d = 3, 5, 4
    for number, (op, dtype) in enumerate((("", "f32"), ("causal", "f16"), ("side", "bf16"), ("causal side", "f32"))):
        side = "side" in op
        q = drawn(dtype, (queries, 4 * d) if side else (2 * queries, 2 * d))
        k, v = (drawn(dtype, (keys, 2 * d) if side else (2 * keys, d)) for _ in range(2))

        def head(x, which, wide, rows):
            row, col = (0, which * d) if side else (which // wide * rows, which % wide * d)
            return [[x.at(row + i, col + c) for c in range(d)] for i in range(rows)]

        made = [attended(head(q, h, 2, queries), head(k, h // 2, 1, keys), head(v, h // 2, 1, keys), "causal" in op)
                for h in range(4)]
        order = [(i % queries, i // queries * 2 + h) for i in range(2 * queries) for h in range(2)]
        order = [(i, h) for i in range(queries) for h in range(4)] if side else order
        out = Array(dtype, q.shape, [x for i, h in order for x in made[h][i]])
        compare(program, "heads", out, f"attention of {dtype} with shared heads, form {number}", op=op, x=q, y=k, z=v)
    wrong = drawn("f32", (7, 8))
    ended = run(program, "run", "refs", "what=heads", "x=" + wrong.save("x"), "y=" + k.save("y"), "z=" + v.save("z"),
                "out=" + wrong.save("out"))
    ok(ended.returncode == 2 and "4 heads" in ended.stderr,
       "rows that cannot be split into heads are refused", ended.said)


def infinities(program):
    """At the end of a float's range, infinity is close only to numbers that may be rounded to it."""
    one = Array("f32", (1,), [1])
    for value, got, status in ((1e6, math.inf, 0), (1e6, 5, 1), (1e6, -math.inf, 1), (1e6, math.nan, 1),
                               (7, math.inf, 1), (65519.9, math.inf, 0),
                               (65520.004, 65504, 0), (65520.1, 65504, 1),
                               (65000, math.inf, 1), (70000, 65504, 1), (math.inf, 5, 1),
                               (math.nan, math.inf, 1), (math.nan, math.nan, 0)):
        x, out = Array("f32", (1,), [value]), Array("f16", (1,), [got])
        ended = run(program, "run", "refs", "what=binary", "op=mul", "x=" + x.save("x"), "y=" + one.save("y"),
                    "out=" + out.save("out"))
        ok(ended.returncode == status,
           f"a result of {got} in f16 is {'wrong' if status else 'right'} where {value} is expected",
           ended.said)


def wrong(program):
    x, y = drawn("f32", (3, 4)), drawn("f32", (3, 5))
    whole = drawn("i8", (3, 4))
    for words, said in (
            ({"what": "unary", "op": "sin", "x": x}, "kb_ref_unary: there is no op 'sin' of one operand"),
            ({"what": "binary", "op": "neg", "x": x, "y": y}, "kb_ref_binary: there is no op 'neg' of two operands"),
            ({"what": "binary", "op": "add", "x": x, "y": y},
             "kb_ref_binary: the shape of 'y' does not go with the others"),
            ({"what": "unary", "op": "exp", "x": whole},
             "kb_ref_unary: 'exp' of i8 is not defined: cast or dequant it"),
            ({"what": "binary", "op": "add", "x": x, "y": whole},
             "kb_ref_binary: integers and floats do not go together"),
            ({"what": "gemm", "x": x, "y": y}, "kb_ref_gemm: 'x' has 4 columns, 'y' has 3 rows"),
            ({"what": "sum", "x": x, "axis": 2}, "kb_ref_sum: 'x' has 2 axes, there is no axis 2"),
            ({"what": "softmax", "x": whole}, "kb_ref_softmax: 'x' is of i8; floats are needed"),
            ({"what": "layernorm", "x": x, "y": y, "z": y}, "kb_ref_layernorm: 'y' has 15 elements for 4 columns"),
            ({"what": "quant", "op": "f16", "x": x, "y": x}, "kb_ref_quant: quant gives integers"),
            ({"what": "huge", "x": x}, "kb_ref_given: 2^60 elements or more"),
            ({"what": "null"}, "kb_ref_unary: there is no tensor, nor a reference"),
            ({"what": "copy", "x": y}, "kb_expect_close: the reference is (3, 5), tensor 'out' is (3, 4)"),
            ({"what": "exchange", "x": x}, "kb_ref_exchange: the 4 columns of 'x' are no blocks for its 3 rows"),
            ({"what": "reduce", "op": "sub", "x": x}, "kb_ref_reduce: there is no reduction 'sub'"),
            ({"what": "biased", "x": x, "y": turned(x), "z": y},
             "kb_ref_bias: 'z' has 15 elements for 3 columns"),
            ({"what": "empty"}, "kb_ref_given: axis 1 has no elements"),
            ({"what": "npy", "op": "/nowhere.npy"}, "kb_ref_npy: cannot open /nowhere.npy: No such file")):
        given = [f"{key}={value.save(key) if isinstance(value, Array) else value}" for key, value in words.items()]
        ended = run(program, "run", "refs", *given, "out=" + x.save("out"))
        ok(ended.returncode == 2 and "refs.c:" in ended.stderr and f": error: {said}" in ended.stderr,
           f"a wrong reference is refused: {said}", ended.said)
        off = run(program, "run", "refs", *given, "out=" + x.save("out"), "--data", "off")
        ok(off.returncode == 2 and off.stderr == ended.stderr,
           f"it is refused with --data off as well: {said}", off.said)


def main():
    random.seed(7)
    formulas()
    small = small_machine("refs", KERNELS)
    for part in (unary, binary, gemms, convolutions, reductions, norms, conversions, rows, chains, epilogues, heads, infinities, wrong, slices,
                 deferred):
        part(small)


suite(main)
