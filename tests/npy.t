#!/usr/bin/python3
"""npy: tensors from and to NumPy files: every version, byte order, order of axes and dtype, and each wrong file."""
import ast
import itertools
import os
import struct

from harness import ROOT, SCRATCH, ok, read_bytes, remove, run, scratch, small_machine, suite, write

KERNELS = [os.path.join(ROOT, "tests", "host", "npy.c")]
NUMPY = os.path.join(ROOT, "tests", "npy")              # written by NumPy 1.24
MAGIC = b"\x93NUMPY"

# dtype: its name in a file, and its code in the struct module; bf16 is bits.
DTYPES = {"f32": ("f4", "f"), "f16": ("f2", "e"), "bf16": ("V2", "H"), "i32": ("i4", "i"), "i16": ("i2", "h"),
          "i8": ("i1", "b"), "u8": ("u1", "B")}


def header(version, dict_text):
    length = struct.pack("<H" if version == 1 else "<I", len(dict_text))
    return MAGIC + bytes((version, 0)) + length + dict_text.encode()


def dict_of(descr, fortran, shape):
    return f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def indices(shape):
    return itertools.product(*map(range, shape))


def array(version, dtype, order, fortran, shape):
    """A file's bytes, and its values in row-major order."""
    name, code = DTYPES[dtype]
    values = {at: number % 100 for number, at in enumerate(indices(shape))}
    walk = [at[::-1] for at in indices(shape[::-1])] if fortran else list(values)
    data = b"".join(struct.pack(order + code, values[at]) for at in walk)
    sign = "|" if name.endswith("1") else order
    return header(version, dict_of(sign + name, fortran, shape)) + data, list(values.values())


def parse(data):
    """(descr, shape, values) of a file of version 1.0 in C order and little-endian."""
    assert data[:8] == MAGIC + b"\1\0", data[:8]
    length, = struct.unpack("<H", data[8:10])
    said = ast.literal_eval(data[10:10 + length].decode())
    assert (10 + length) % 64 == 0 and said["fortran_order"] is False, said
    code = next(code for name, code in DTYPES.values() if name == said["descr"][1:])
    return said["descr"], said["shape"], [one for one, in struct.iter_unpack("<" + code, data[10 + length:])]


def passes(program, path, dtype, shape, split="rows"):
    """Runs a bench that loads a file and saves it again."""
    out = scratch("out.npy")
    remove(out)
    text = "x".join(map(str, shape))
    ended = run(program, "run", "pass", f"in={path}", f"out={out}", f"dtype={dtype}", f"shape={text}", f"split={split}")
    return ended, out


def round_trips(program):
    shapes = ((5,), (3, 7), (2, 3, 5), (3, 2, 1, 4))
    for number, (dtype, order, fortran) in enumerate(itertools.product(DTYPES, "<>", (False, True))):
        shape, split = shapes[number % 4], ("rows", "cols", "blocks", "copies")[number // 4 % 4]
        version = 1 + number % 3
        data, want = array(version, dtype, order, fortran, shape)
        ended, out = passes(program, write(scratch("in.npy"), data), dtype, shape, split)
        made = parse(read_bytes(out)) if ended.returncode == 0 else None
        name = DTYPES[dtype][0]
        ok(made == (("|" if name.endswith("1") else "<") + name, shape, want),
           f"a file keeps its values: {dtype}, version {version}, byte order {order}, fortran {fortran}, {shape} as "
           f"{split}", ended.said, made)


def from_numpy(program):
    """Files that NumPy wrote are written again as NumPy would write them."""
    plain = read_bytes(os.path.join(NUMPY, "c_f4.npy"))
    ended, out = passes(program, os.path.join(NUMPY, "c_f4.npy"), "f32", (2, 3, 4))
    ok(ended.returncode == 0 and read_bytes(out) == plain, "a file of f4 by NumPy is saved byte for byte", ended.said)
    values = parse(plain)[2]
    for name, dtype, want in (("fortran_big_f2", "f16", values), ("v3_i4", "i32", [4 * x for x in values]),
                              ("v2_bool", "u8", [float(x != 0) for x in values])):
        ended, out = passes(program, os.path.join(NUMPY, name + ".npy"), dtype, (2, 3, 4), "copies")
        ok(ended.returncode == 0 and parse(read_bytes(out))[2] == want, f"{name} by NumPy is loaded", ended.said)
    data = header(1, dict_of("<u2", False, (2,))) + struct.pack("<HH", 0x3F80, 0xC000)
    ended, out = passes(program, write(scratch("bits.npy"), data), "bf16", (2,))
    ok(ended.returncode == 0 and parse(read_bytes(out)) == ("<V2", (2,), [0x3F80, 0xC000]), "bf16 is loaded from u2",
       ended.said)


GOOD = dict_of("<f4", False, (2, 3))
# what is wrong: the file's bytes, the byte that is named, the message.
WRONG = (
    ("empty", b"", 0, "the file ends within its header"),
    ("magic", b"PK\3\4" + bytes(100), 0, "not a NumPy file"),
    ("version", MAGIC + b"\4\0" + bytes(100), 6, "version 4.0; 1.0, 2.0 and 3.0 are supported"),
    ("cut", header(1, GOOD)[:40], 40, "the file ends within its header"),
    ("long", MAGIC + b"\2\0\0\0\1\1" + bytes(10), 8, "a header of 16842752 bytes"),
    ("python", header(1, "__import__('os')"), 10, "'{' is expected here"),
    ("wide", header(1, dict_of("<f8", False, (2, 3))) + bytes(48), 20,
     "elements are '<f8', tensor 'x' is of f32: '<f4'"),
    ("object", header(1, dict_of("|O", False, (2, 3))) + bytes(48), 20, "dtype '|O' is not supported"),
    ("turned", header(1, dict_of("<f4", False, (3, 2))) + bytes(24), 60,
     "the shape is (3, 2), that of tensor 'x' is (2, 3)"),
    ("rank", header(1, dict_of("<f4", False, (6,))) + bytes(24), 60, "the shape is (6,), that of"),
    ("short", header(1, GOOD) + bytes(23), 10 + len(GOOD) + 23, "the file ends; a shape of (2, 3) has 24 bytes from"),
    ("more", header(1, GOOD) + bytes(25), 10 + len(GOOD) + 24, "more bytes than the 24 of a shape of (2, 3)"),
)


def wrong(program):
    for name, data, at, said in WRONG:
        path = write(scratch(name + ".npy"), data)
        ended, out = passes(program, path, "f32", (2, 3))
        ok(ended.returncode == 2 and f"npy.c:45: error: kb_load_npy: {path}: byte {at}: {said}" in ended.stderr
           and not os.path.exists(out), f"a wrong file is refused with the byte: {name}", ended.said)
    ended, _ = passes(program, "nowhere.npy", "f32", (2, 3))
    ok(ended.returncode == 2 and "cannot open nowhere.npy: No such file" in ended.stderr,
       "a file that does not exist is refused", ended.said)
    ended, _ = passes(program, SCRATCH, "f32", (2, 3))
    ok(ended.returncode == 2 and "Is a directory" in ended.stderr, "a folder instead of a file is refused",
       ended.said)
    good = write(scratch("good.npy"), header(1, GOOD) + bytes(24))
    ended = run(program, "run", "pass", f"in={good}", "out=/nowhere/out.npy")
    ok(ended.returncode == 2 and "cannot write /nowhere/out.npy" in ended.stderr,
       "a file in a folder that does not exist cannot be saved", ended.said)
    ended = run(program, "run", "pass", f"in={good}")
    ok(ended.returncode == 2 and "kb_save_npy: tensor 'y' needs a file's name" in ended.stderr,
       "a file is not saved without a name", ended.said)


def results(program):
    path = write(scratch("a.npy"), header(1, dict_of("<f4", False, (2, 2))) + struct.pack("<4f", 1, 2, 3, 4))
    out = scratch("c.npy")
    words = ("run", "npy_results", f"in={path}", f"out={out}")
    ended = run(program, *words)
    ok(ended.returncode == 0 and parse(read_bytes(out)) == ("<f4", (2, 2), [7, 10, 15, 22])
       and ended.stdout.startswith("1 2 3 4\n"), "saved results are computed, and loading replaces them", ended.said)
    os.unlink(out)
    ended = run(program, *words, "--data", "off")
    ok(ended.returncode == 2 and not os.path.exists(out)
       and "kb_save_npy: tensor 'c' holds results, which --data off does not compute" in ended.stderr,
       "results cannot be saved with --data off", ended.said)
    ended = run(program, *words, "ask=true", "--data", "off")
    ok(ended.returncode == 0 and not os.path.exists(out) and ended.stdout.startswith("1 2 3 4\n"),
       "a bench can ask for the data pass, and loaded values are there without it", ended.said)


def main():
    small = small_machine("npy", KERNELS)
    for part in (round_trips, from_numpy, wrong, results):
        part(small)


suite(main)
