#!/usr/bin/python3
"""rows: rows by their numbers, from and to tensors and shards: every value, the time, pages, every mistake."""
import itertools
import os

from harness import LANES, ROOT, is_refused, ok, printed, result, run, simulator, small_machine, suite, topology

KERNEL = os.path.join(ROOT, "tests", "kernels", "rows.c")
COLUMNS = 12


def row_of(pe, i, rows):
    return (7 * pe + 5 * (i // 3) + i % 3 + i % 3 // 2 * 3) % rows


def listed(program, where, pes, **form):
    rows, count, words = form.get("rows", 23), form.get("count", 9), [f"{key}={value}" for key, value in form.items()]
    ended = run(program, "run", "listed_rows", *words, "--data", "debug")
    got = printed(ended, "from", "scratch", "to")

    def row(name, i):
        return got[name][COLUMNS * i:COLUMNS * (i + 1)]

    good = ended.returncode == 0 and "RACE" not in ended.stdout and len(got) == 3
    if good and form["form"] == "store":
        want = [value for i in range(pes * count) for value in row("scratch", count - 1 - i // pes)]
    elif good:
        want = [value for pe in range(pes) for i in range(count) for value in row("from", row_of(pe, i, rows))]
        want = [2 * value for value in want] if form["form"] == "pending" else want
    ok(good and got["to"] == want, f"listed rows are the right ones on {where}: {' '.join(words)}", ended.said[:3000])


def all_listed(program, where, pes, **more):
    for split, space, wait in itertools.product(("rows", "copies", "whole"), ("hbm", "sram", "tcm"), ("false", "true")):
        listed(program, where, pes, form="tensor", split=split, space=space, **{"async": wait}, **more)
        listed(program, where, pes, form="part", split=split, space=space, dtype="f16", **{"async": wait}, **more)
    for form, dtype in itertools.product(("shard", "pending", "tcm", "store"), ("f32", "f16", "i32", "i8", "u8")):
        listed(program, where, pes, form=form, split="whole", dtype=dtype, **more)
        listed(program, where, pes, form=form, split="whole", dtype=dtype, rows=1000 if form != "store" else 64, count=64,
               **{"async": "true"}, **more)


def times(program):
    """Rows at one distance take the time of a strided view; rows that follow each other are one run."""
    for stores in "false", "true":
        ends = {}
        for step, way in itertools.product((3, 1), ("false", "true")):
            ended, made = result(program, "timed_rows", f"step={step}", f"listed={way}", f"stores={stores}")
            ends[step, way] = made["launches"][0]["pe_exec_ps"] if ended.returncode == 0 else ended.said
        ok(ends[3, "true"] == ends[3, "false"] != ends[1, "true"] == ends[1, "false"],
           f"listed rows take the time of their runs: stores={stores}", ends)


def pages(program):
    ended = run(program, "run", "rows_of_pages", "--data", "debug")
    got = printed(ended, "first", "second", "third", "to")
    mapped = sum((got.get(name, []) for name in ("first", "second", "third")), [])
    want = [value for row in (11, 3, 4, 5, 0, 8) for value in mapped[1000 * row:1000 * row + 1000]]
    ok(ended.returncode == 0 and got["to"] == want, "rows over pages that lie apart are the right ones", ended.said[:3000])
    ended = run(program, "run", "rows_of_pages", "mapped=12")
    ok(ended.returncode == 1 and "row 5 of the list is 12, there are 12 rows" in ended.stderr,
       "a row beyond the shard is refused before it is translated", ended.said)


# what, exit status, message.
WRONG = (
    ("none", 0, ""),
    ("low", 1, r"KERNEL_ERROR .* tl_load_rows: row 3 of the list is -4, there are 100 rows"),
    ("high", 1, r"tl_load_rows: row 3 of the list is 100, there are 100 rows"),
    ("high_of_shard", 1, r"tl_load_rows: row 4 of the list is 25, there are 25 rows"),
    ("twice", 1, r"tl_store_rows: row 90 is stored twice"),
    ("store", 0, ""),
    ("null", 1, r"tl_load_rows: the list of rows is a null pointer"),
    ("no_tensor", 1, r"tl_load_rows: there is no tensor"),
    ("shape", 1, r"tl_load_rows: the buffer and the rows differ in shape or dtype"),
    ("rank", 1, r"tl_load_rows: the buffer and the rows differ in shape or dtype"),
    ("dtype", 1, r"tl_load_rows: the buffer and the rows differ in shape or dtype"),
    ("columns", 1, r"tl_load_rows: tensor 'columns' has its rows split over shards"),
    ("elsewhere", 1, r"tl_load_rows: tensor 'copies' is not placed with this PE"),
    ("no_columns", 1, r"tl_load_rows: 3 columns from 38 on, but the rows have 40"),
    ("of_line", 1, r"tl_load_rows: 1 columns from 0 on, but the rows have 1"),
    ("line", 0, ""),
    ("runs", 1, r"tl_load_rows: the rows have more than 4096 runs of consecutive bytes, the most of a command"),
    ("common", 1, r"tl_load_rows: the buffer and the rows have the bytes at \S*pe_tcm\+0x\w+ in common"),
    ("beside", 0, ""),
    ("freed", 1, r"tl_load_rows: the bytes at \S* were freed by tl_free at "),
    ("odd", 1, r"BAD_ADDRESS .* tl_load_rows: the shard at \S* is not aligned to f16"),
    ("wrapped", 1, r"tl_load_rows: the elements of the shard reach further than any memory"),
    ("over", 1, r"tl_store_rows: elements of the shard overlap"),
    ("wait", 1, r"PENDING_RESULT .* tl_data: .* are not known before tl_wait for dma_read"),
    ("waits", 0, ""),
)


def main():
    small = small_machine("rows", [KERNEL], LANES)
    all_listed(small, "4 PEs", 4)
    is_refused(small, "wrong_rows", r"called at \S*\brows\.c:\d+", WRONG)
    times(small)
    mmu = "cube.pe_template.components.pe_mmu.attrs."
    pages(small_machine("rows_paged", [KERNEL], mmu + "enabled=true", mmu + "page_kb=4"))
    many = simulator(topology("ref_sip"), "rows_ref_sip", [KERNEL])
    listed(many, "128 PEs", 128, form="tensor", split="rows", rows=1000, count=64)
    listed(many, "128 PEs", 128, form="store", split="rows", rows=64, count=64)


suite(main)
