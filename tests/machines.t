#!/usr/bin/python3
"""machines: every bench of the library verifies on machines whose PEs, slices, srams, TCMs, networks and DMAs are unlike
those of topologies/, and on those of fidelity/; a bench whose tensors no memory holds is refused. limit: 200

tests/machines.t [SEED [MACHINE...]]: the seed draws a point of tests/library/BENCH.jsonl for each machine and bench. Under
the sanitizers each bench runs on one of the machines.
"""
import json
import os
import random
import re
import sys

import yaml

from harness import LANES, ROOT, SAN, ok, read, run, simulator, suite, sweep, topology, verifies

SEED, CHOSEN = (sys.argv[1:] + ["1"])[0], sys.argv[2:]
FOLDER, POINTS, FIDELITY = (os.path.join(ROOT, *names) for names in (("tests", "machines"), ("tests", "library"), ("fidelity",)))
SETS = sorted(name for name in os.listdir(FIDELITY) if os.path.isfile(os.path.join(FIDELITY, name, "set.yaml")))
VECTORS = [{"size": size, "dtype": dtype} for size, dtype in ((7, "f32"), (1025, "f16"), (1025, "i32"), (5003, "f32"))]
OTHERS = {"barrier": [{"count": 2, "skew_ns": 1000}]} | dict.fromkeys(
    ("all_gather", "all_reduce", "all_to_all", "broadcast", "reduce", "reduce_scatter"), VECTORS)


def machines():
    return sorted(name[:-5] for name in os.listdir(FOLDER)) + SETS


def program_of(name):
    if name not in SETS:
        return simulator(os.path.join(FOLDER, name + ".yaml"), name, settings=(LANES,))
    own = yaml.safe_load(read(os.path.join(FIDELITY, name, "set.yaml")))
    topology, *models = (os.path.join(FIDELITY, name, file) for file in [own["topology"], *own.get("models", [])])
    return simulator(topology, name, settings=(LANES,), impls=models)


def benches(program):
    return re.findall(r"(?m)^(\w+): .* \(kernels/\w+\.c\)$", run(program, "list").stdout)


def points(bench):
    """The points of a bench that do not take long and are for any machine, without the trivial one."""
    lines = [json.loads(line) for line in read(os.path.join(POINTS, bench + ".jsonl")).splitlines()]
    return OTHERS.get(bench) or [line for line in lines[1:] if not {"on", "plain"} & line.keys()] or lines[:1]


def is_drawn(bench, machine):
    names = machines()
    return not SAN or (names.index(machine) - sum(map(ord, bench))) % len(names) == 0


def every(machine):
    """Every bench at a point, without a race."""
    program, wrong, count = program_of(machine), [], 0
    for bench in benches(program):
        if is_drawn(bench, machine):
            point = random.Random(f"{SEED}/{machine}/{bench}").choice(points(bench))
            ended, answers = sweep(program, bench, [point])
            wrong += [] if verifies(answers[0]) else [f"{bench} {point}: {answers[0]}", ended.said]
            count += 1
    ok(not wrong, f"{count} benches verify on {machine}", *wrong)


def refused():
    """Where there are neither HBM nor srams, vectors can lie in TCMs; other tensors have no place."""
    program, wrong = program_of("tcm_alone"), []
    for bench in benches(program):
        if bench in OTHERS and bench != "barrier":
            _, answers = sweep(program, bench, [{"size": 1025, "space": "tcm"}])
            wrong += [] if verifies(answers[0]) else [f"{bench}: {answers[0]}"]
        ended = run(program, "run", bench)
        if ended.returncode != 2 or not re.search(r"^kernels/\w+\.[ch]:\d+: error: .*: the machine has no HBM$", ended.stderr):
            wrong.append(ended.said)
    ok(not wrong, "on tcm_alone collectives verify in TCMs, and other benches are refused", *wrong)


FULL = 8192                                             # f16 elements of two vectors that fill a TCM of small_tcm


def tight(program):
    """Vectors that leave little of a TCM: what is kept between the levels, and the buffers, take no more than the rest."""
    points = [{"size": size, "dtype": "f16", "space": "tcm", "algorithm": "levels"} for size in (3000, 5000, 7000)]
    _, answers = sweep(program, "all_to_all", points)
    ok(all(map(verifies, answers)), "on small_tcm all_to_all in levels verifies beside vectors that fill the TCM", answers)
    for bench in ("all_reduce", "all_to_all", "broadcast", "reduce"):
        points = [{"size": FULL - left // 4, "dtype": "f16", "space": "tcm"} for left in (128, 192, 256, 640, 1024)]
        _, answers = sweep(program, bench, points)
        ok(all(map(verifies, answers)), f"on small_tcm {bench} verifies beside vectors that leave 128 to 1,024 bytes", answers)
    for bench, sizes in (("all_gather", (13000, 13040)), ("reduce_scatter", (8192, 13000))):
        _, answers = sweep(program, bench, [{"size": size, "dtype": "f16", "space": "tcm"} for size in sizes])
        ok(all(map(verifies, answers)), f"on small_tcm {bench} verifies beside vectors that fill the TCM", answers)


LONG = (
    ("spmv", {"m": 100, "n": 2000, "density": 1}), ("spmv", {"m": 1000, "n": 4000, "density": 0.5}),
    ("spmv", {"m": 3000, "n": 3000, "density": 0.001, "slice": 3000}),
    ("conv2d", {"h": 5, "w": 5, "c": 700, "batch": 4, "filters": 8}),
    ("moe", {"tokens": 12, "d": 3000, "ffn": 16, "experts": 4}),
)


def long_tiles(program):
    """A tile of weights is at most what the region holds beside the product."""
    for bench, point in (("moe", {"tokens": 12, "d": 600, "ffn": 160, "experts": 4}), ("layer", {"tokens": 1})):
        _, answers = sweep(program, bench, [{**point, "tile": 1000000}])
        ok(all(map(verifies, answers)), f"on small_tcm {bench} with tile=1000000 verifies", answers)


def long_lines(program):
    """Rows of a matrix, lines of an image and tokens that are nearly as long as a TCM."""
    for bench, point in LONG:
        _, answers = sweep(program, bench, [point])
        ok(verifies(answers[0]), f"on small_tcm {bench} verifies with lines that are long for its TCM: {point}", answers)


REFUSED = (
    ("spmv dtype=f16", r"pe_math has no lanes for i32, with which columns of f16 are looked up: take dtype=f32, or .*"),
    *((f"{bench} dtype={dtype}", rf"pe_math.attrs.lanes has none for {wide}: take another dtype, or a machine that has them")
      for bench, dtype, wide in (("all_reduce", "i32", "i32"), ("reduce", "i8", "i8"), ("reduce_scatter", "i32", "i32"),
                                 ("row_reduce", "i8", "i32"), ("col_reduce", "i32", "i32"), ("elementwise", "i8", "i8"))),
    ("col_reduce dtype=i8 op=max", r"pe_math.attrs.lanes has none for i8: .*"),
    *((f"{bench} dtype=f8e4m3 m=64 n=64 k=64", r"pe_gemm.attrs.k_per_cycle has none for f8e4m3: .*")
      for bench in ("gemm", "gemm_2d", "batched_gemm", "gemm_bias_gelu", "gemm_split_k")),
    ("gemm m=1024 n=64 k=64 tile_m=256 tile_k=64 tile_n=64", r"a tile: \d+ bytes, but tiles have 32768 \(pe_tcm.attrs.reserved_mb\): make "
     r"tile_m, tile_k or tile_n smaller"),
    *((f"{words} --set cube.pe_template.components.pe_tcm.attrs.reserved_mb=0", r"a tile: 128 bytes, but tiles have 0 .*: take a machine that .*")
      for words in ("moe", "data_parallel", "layer tokens=1")),
    ("softmax cols=20000 rows=24000", r"blocks of rows: 3\d+ bytes, but kernels have 32768 \(pe_tcm.attrs.size_mb less "
     r"reserved_mb\): make rows, cols or buffers smaller"),
    ("rotary", r"blocks of rows: .*"), ("rmsnorm cols=20000 rows=33000", r"blocks of rows: .*"),
    ("layernorm cols=20000 rows=16000", r"blocks of rows: .*"),
    ("attention heads=64 kv_heads=1 queries=8 keys=8 head_dim=256", r"a query of each head of a group, and a key: 16\d+ bytes, "
     r"but .*: make head_dim or heads / kv_heads smaller"),
    ("decode heads=16 kv_heads=1 head_dim=256", r"a query of each head of a group, and a key: .*"),
    ("decode heads=1", r"the heads of Q are no multiple of those of K and V: make heads a multiple of kv_heads"),
    ("attention heads=12", r"the heads of Q are no multiple of those of K and V: make heads a multiple of kv_heads"),
    ("layer scale=1 tokens=1", r"a token: \d+ bytes, but .*: take a larger scale"),
    ("gemm_split_k n=4097 k=8 m=1", r"a row of partial sums, in half of a TCM: 32776 bytes, but kernels have 32768 .*"),
    ("data_parallel d=8192 hidden=64", r"a row of x, of the hidden layer and of sums beside messages: .*"),
    ("spmv m=60000000 n=30", r"a TCM, in which kernels have 32768 bytes, does not hold x of "
     r"124 bytes, and the lengths and sums of a PE's 15000000 rows: make n or m smaller"),
    ("conv2d h=5 w=500 c=70 batch=4 filters=8", r"the lines of x for a row of y: 210904 bytes, but kernels have 32768 .*: "
     r"make c, w or kernel_h smaller"),
    ("moe tokens=12 d=8900 ffn=16 experts=4", r"the experts of all tokens and a row of x, y and the hidden layer: 35952 bytes, "
     r"but kernels have 32768 .*: make tokens, d or ffn smaller"),
    ("elementwise dtype=i32 --set cube.pe_template.components.pe_math.attrs.lanes.i32=8", r"act=gelu is not defined for i32: "
     r"take act=relu, abs or none"),
    (f"all_to_all space=tcm size={FULL}", r"space=tcm: the vectors take 32768 bytes of a TCM, .*: make size smaller"),
    (f"all_to_all space=tcm algorithm=levels size={FULL - 8}", r"levels need 512 bytes of a TCM, in which 0 are left: .*"),
    (f"all_reduce space=tcm size={FULL}", r"space=tcm: the vectors take 32768 bytes of a TCM, .*: make size smaller"),
    (f"all_reduce space=tcm algorithm=levels size={FULL - 64}", r"levels need 512 bytes of a TCM, in which 256 are left: .*"),
    ("broadcast space=tcm size=9000", r"space=tcm: the vectors take 36096 bytes of a TCM, .*"),
)


def refused_before(program):
    """What cannot run on a machine is refused before its launch, with what is missing and which parameter to change."""
    for words, said in REFUSED:
        ended = run(program, "run", *words.split())
        bench = words.split()[0]
        ok(ended.returncode == 2 and re.search(rf"^kernels/\w+\.[ch]:\d+: error: {bench}: {said}$", ended.stderr, re.M)
           and "fault" not in ended.stderr, f"on small_tcm {words} is refused", ended.said)


PE = "cube.pe_template.components."
MESSAGES = ("transpose", "col_reduce", "gemm m=4096 n=32 k=32", "gemm_2d m=64 n=64 k=64", "gemm_split_k n=64", "layer tokens=1")


def short_messages():
    """A message is an element at least, for what is sent in messages of elements."""
    program = simulator(os.path.join(POINTS, "eight.yaml"))
    for words in MESSAGES:
        ended = run(program, "run", *words.split(), "dtype=f32", "--data", "off", "--set", f"{PE}pe_ipcq.attrs.slot_kb=3 B")
        ok(ended.returncode == 2 and re.search(r"^kernels/\w+\.[ch]:\d+: error: \w+: an element: 4 bytes, but a slot has 3 "
                                               r"\(pe_ipcq.attrs.slot_kb\): take a dtype of fewer bytes$", ended.stderr, re.M),
           f"messages of 3 bytes: {words} of f32 is refused", ended.said)


def tiny(program):
    """On a machine with tiny TCMs each bench verifies, or is refused before its launch."""
    for bench in benches(program):
        wrong, ends = [], set()
        for kib in [1 << i for i in range(9)]:
            point = random.Random(f"{SEED}/{kib}/{bench}").choice(points(bench))
            if SAN and (kib + sum(map(ord, bench))) % 3:
                continue
            words = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in point.items()
                     if name not in ("on", "plain")]
            ended = run(program, "run", bench, *words, "--set", f"{PE}pe_tcm.attrs.size_mb={kib} KiB",
                        "--set", f"{PE}pe_tcm.attrs.reserved_mb={kib * 512} B")
            ends.add(ended.returncode)
            if ended.returncode not in (0, 2) or (ended.returncode == 2 and "kernels/" not in ended.stderr):
                wrong.append(f"{kib} KiB, {words}: {ended.said}")
        ok(not wrong and ends <= {0, 2}, f"{bench} verifies in TCMs of 1 to 256 KiB, or is refused", *wrong)


def one_byte(program):
    """A chunk is at least an element."""
    for bench in OTHERS:
        if bench != "barrier":
            _, answers = sweep(program, bench, [{"chunk": 1, "size": 100, "dtype": dtype} for dtype in ("f16", "f32")])
            ok(all(map(verifies, answers)) and [answer["notes"][0] for answer in answers] == [
                f"chunk=1: {least} is used, an element" for least in (2, 4)], f"{bench} chunk=1 sends one element at a time", answers)


def many_messages():
    """A panel of transpose has no more blocks than may be in flight as messages, however many its TCM holds: otherwise receives
    wait for sends that come after them."""
    ended = run(simulator(topology("ref_sip")), "run", "transpose", "m=384", "n=400000", "group=48", "--data", "off",
                "--set", PE + "pe_tcm.attrs.size_mb=16")
    ok(ended.returncode == 0 and "group=48: " in ended.stdout, "transpose with large TCMs takes fewer blocks than fit", ended.said)


def main():
    if not CHOSEN:
        if not SAN:
            many_messages()
        program = simulator(os.path.join(FOLDER, "small_tcm.yaml"))
        tight(program)
        long_lines(program)
        long_tiles(program)
        refused_before(program)
        one_byte(program)
        short_messages()
        tiny(simulator(os.path.join(FOLDER, "small_tcm.yaml"), "tiny_tcm", settings=(LANES,)))
    for machine in CHOSEN or machines():
        if machine == "tcm_alone":
            refused()
        else:
            every(machine)


suite(main)
