#!/usr/bin/python3
"""kernels: what kernels of users see and move, and the message of each mistake in one."""
import os
import re

from harness import ROOT, is_refused, ok, result, run, small_machine, suite

OWN = os.path.join(ROOT, "tests", "kernels")


def numbers(line):
    return [float(word) for word in line.split()]


def moves(program):
    """Each PE sends its six numbers to its right neighbour if the first is even."""
    for space in ("hbm", "tcm", "sram"):
        ended = run(program, "run", "moves", f"space={space}")
        lines = [numbers(line) for line in ended.stdout.splitlines()[:3]]
        want = [-1] * 24
        for pe in range(4):
            part = lines[0][6 * pe:6 * pe + 6]
            if part[0] % 2 == 0:
                right = (pe + 1) % 4
                want[6 * right:6 * right + 6] = part
        ok(ended.returncode == 0 and lines[1] == want and lines[2] == [5] * 6,
           f"a kernel loads, branches on data and stores in {space}", ended.said)


def chains(program):
    """Results that are inputs of the next kernel, with and without a look of the host in between."""
    results = []
    for peek in ("false", "true"):
        ended, made = result(program, "chain", f"peek={peek}", "--data", "debug")
        ok(ended.returncode == 0 and ended.stdout.count("verified     ") == 4,
           f"a chain of kernels verifies with peek={peek}", ended.said)
        results.append(made)
    ok(results[0]["launches"] == results[1]["launches"], "a look of the host takes no simulated time")
    ok(results[0]["verify"] == results[1]["verify"], "a look of the host changes no value")


def shares(count, parts):
    return [(i * count // parts, (i + 1) * count // parts) for i in range(parts)]


def places(program):
    """Shards and values of every split of odd sizes."""
    for rows, columns in ((5, 7), (1, 1), (3, 9)):
        every = {
            "rows": [(row, (0, columns)) for row in shares(rows, 4)],
            "cols": [((0, rows), column) for column in shares(columns, 4)],
            "blocks": [(row, column) for row in shares(rows, 2) for column in shares(columns, 2)],
            "copies": [((0, rows), (0, columns))] * 4,
        }
        values = set()
        for split, want in every.items():
            ended = run(program, "run", "places", f"split={split}", f"rows={rows}", f"columns={columns}")
            lines = ended.stdout.splitlines()
            said = [f"{i} of 4: {row[1] - row[0]} x {column[1] - column[0]} from [{row[0]}, {column[0]}]"
                    for i, (row, column) in enumerate(want)]
            values.add(lines[4] if len(lines) > 4 else "")
            ok(ended.returncode == 0 and lines[:4] == said,
               f"each PE has its shard of {rows} x {columns} as {split}", ended.said,
               *said)
        ok(len(values) == 1 and len(values.pop().split()) == rows * columns,
           f"the values of {rows} x {columns} do not depend on how it is split")


# what, exit status, message.
MISTAKES = (
    ("none", 0, ""),
    ("zero", 1, r"KERNEL_ERROR at sip0\.cube0\.pe0\.pe_cpu, .* kernel mistake: tl_composite: k is 0"),
    ("huge", 1, r"m is 1125899906842624; 1 to 2\^40 - 1"),
    ("tile", 1, r"tile\[1\] is 0"),
    ("op", 1, r"there is no op number 7; TL_GEMM and TL_MATH are possible"),
    ("ld", 1, r"a has a leading dimension of 7, its rows have 8"),
    ("transposed", 1, r"c is transposed; only a and b of a gemm can be"),
    ("dtypes", 1, r"a is f16 and b is f32"),
    ("u8", 1, r"a gemm of u8 is not supported"),
    ("no_dtype", 1, r"c has no dtype"),
    ("unfit", 1, r"a is made of a shard that is not a matrix"),
    ("pinned", 1, r"a is pinned, but at sip0\.cube0\.hbm_ctrl\.pe0\+0x0, not in this PE's TCM"),
    ("overlap", 1, r"c overlaps a or b"),
    ("odd", 1, r"BAD_ADDRESS.* a at sip0\.cube0\.hbm_ctrl\.pe0\+0x1 is not aligned to f16"),
    ("nowhere", 1, r"BAD_ADDRESS.* b, 128 bytes at .*: there is no such SIP"),
    ("past", 1, r"BAD_ADDRESS.* c, 128 bytes at .*: it runs past the end of the memory"),
    ("epilogue", 1, r"'sum' is not an epilogue"),
    ("bias", 1, r"epilogue: bias of f32 and i8 is not defined"),
    ("epilogues", 1, r"9 epilogues; at most 8 are possible"),
    ("tile_size", 1, r"TILE_TOO_LARGE at .*pe_scheduler"),
    ("tile_last", 1, r"TILE_TOO_LARGE at .*tile 1 needs"),
    ("axes_good", 0, ""),
    ("axes_freed", 1, r"tl_composite: the bytes at .* were freed by tl_free"),
    ("axes_unpinned", 1, r"a has axes of its own, and is not pinned"),
    ("axes_size", 1, r"a is 8 x 6 by its axes, but the op needs 8 x 8"),
    ("axes_reach", 1, r"a reaches element 70 by its axes, but its shard has 64"),
    ("axes_huge", 1, r"a reaches element 18446744073709551615 by its axes, but its shard has 64"),
    ("axes_wrapped", 1, r"a, 18446744073709551615 bytes at \S*pe_tcm\S*: it runs past the end of the memory"),
    ("axes_many", 1, r"a has 524288 x 524288 elements, more than any memory"),
    ("axes_of_c", 1, r"c has axes of its own; only a and b of a gemm can have them"),
    ("axes_elsewhere", 1, r"a is pinned, but at sip0\.cube0\.hbm_ctrl\.pe0\+0x0, not in this PE's TCM"),
    ("axes_overlap", 1, r"c overlaps a or b"),
    ("axes_empty", 1, r"a is made of a shard that is not a matrix"),
    ("axes_transposed", 1, r"a has axes of its own, and is transposed: its axes say where each element lies"),
    ("axes_ld", 1, r"a has axes of its own, and a leading dimension: its axes say where each element lies"),
    ("axes_odd", 1, r"BAD_ADDRESS.* a at .*pe_tcm\+0x200081 is not aligned to f16"),
    ("no_shard", 1, r"tl_shard: tensor 'a' has 1 shards, there is no 1"),
    ("not_mine", 1, r"tl_my_shard: tensor 'far' is not placed with this PE"),
    ("no_tensor", 1, r"tl_my_shard: there is no tensor"),
    ("no_tensor_shards", 1, r"tl_shards: there is no tensor"),
    ("no_axes", 1, r"tl_alloc: not a valid buffer: rank 0, dtype number \d+"),
    ("no_handle", 1, r"tl_wait: the handle does not belong to this kernel"),
    ("part", 1, r"tl_part: 4 indices from 5 on, but axis 0 has 8"),
    ("axis", 1, r"tl_part: a shard of 2 axes has no axis 2"),
    ("full", 1, r"tl_load: no room for 3145728 bytes in the TCM: 2097152 left"),
    ("empty", 1, r"tl_load: the shard is empty"),
    ("strided", 0, ""),
    ("data_of_hbm", 1, r"tl_data: the buffer at .* is not in this PE's TCM"),
    ("store_of_hbm", 1, r"tl_store: the buffer at .* is not in this PE's TCM"),
    ("store_shape", 1, r"tl_store: the buffer and the shard differ"),
    ("reserved", 1, r"BAD_ADDRESS.*the region of the TCM that the scheduler reserves"),
    ("pending", 1, r"PENDING_RESULT.* result of gemm_f16, operation \d+ of kernel mistake, called at \S+:\d+"),
    ("pending_copy", 1, r"PENDING_RESULT.* are the pending result of gemm_f16, operation \d+ of kernel mistake"),
    ("on_failure", 2, r"kb_launch: there is no on_failure number 9"),
    ("busy", 2, r"kb_launch: sip0\.cube0\.pe0 still runs kernel mistake"),
    ("axes", 2, r"kb_tensor_new: tensor 't' has 5 axes; 1 to 4"),
    ("no_elements", 2, r"axis 1 of tensor 't' has no elements"),
    ("too_many", 2, r"tensor 't' has 2\^60 elements or more"),
    ("whole", 2, r"tensor 't' is placed with one PE, but 4 are named"),
    ("rank_order", 2, r"the PEs of tensor 't' must be in rank order, each once: 1 comes before 0"),
    ("grid", 2, r"a grid of 3 x 3 for tensor 't' is not the 4 PEs"),
    ("pes", 2, r"kb_pes: no PE matches 'sip1\.\*'"),
    ("room", 2, r"no room for tensor 't' at .*: 67108864 bytes asked for, \d+ left, 3145984 held by tensors"),
    ("peek", 2, r"kb_peek: tensor 'a' has 64 elements, there is no 64"),
    ("peek_many", 2, r"kb_peek_many: tensor 'a' has 64 elements, there is no 64"),
    ("array", 3, r"kb_array: no memory for 2305843009213693952 elements of 8 bytes"),
    ("dtype", 2, r"there is no dtype 'f64'"),
    ("ref_shape", 2, r"kb_expect_close: the reference is \(8, 8\), tensor 'big' is \("),
    ("uniform", 2, r"kb_fill_uniform: tensor 'a': low is 2, high is 1"),
    ("nan", 2, r"kb_fill: tensor 'a': the value is -?nan; it has to be finite"),
    ("inf", 2, r"kb_fill: tensor 'a': the value is -inf; it has to be finite"),
    ("normal_nan", 2, r"kb_fill_normal: tensor 'a': the mean is -?nan; it has to be finite"),
    ("normal_inf", 2, r"kb_fill_normal: tensor 'a': the deviation is inf; it has to be finite"),
    ("uniform_inf", 2, r"kb_fill_uniform: tensor 'a': low is -inf; it has to be finite"),
    ("too_large", 2, r"kb_fill_uniform: tensor 'a': high is 65520, which f16 cannot hold"),
    ("far_apart", 2, r"kb_fill_uniform: tensor 'big': low is -1e\+308, high is 1e\+308"),
    ("no_bench_parameter", 2, r"bench mistake has no parameter 'nothing'"),
)


def mistakes(program):
    is_refused(program, "mistake", r"\bmistakes\.c:\d+", MISTAKES)
    ended = run(program, "run", "mistake", "what=peek_off", "--data", "off")
    ok(ended.returncode == 2 and "--data off does not compute" in ended.stderr,
       "a peek at a result is refused with --data off", ended.said)
    ended = run(program, "run", "mistake", "what=peek_off")
    ok(ended.returncode == 0, "a peek at a result runs the data pass", ended.said)


def main():
    made = small_machine("own", [os.path.join(OWN, name) for name in sorted(os.listdir(OWN)) if name.endswith(".c")])
    for part in (moves, chains, places, mistakes):
        part(made)


suite(main)
