#!/usr/bin/python3
"""wrong_kernel: any one mistake of a kernel is found, with its line; a wrong tile with its first wrong element."""
import os
import re

from harness import ROOT, folder, ok, read, result, run, simulator, small_machine, suite, topology, write

SOURCE = os.path.join(ROOT, "tests", "kernels", "wrong.c")
FAULTY = os.path.join(ROOT, "tests", "kernels", "faulty.c")


def wrong(program):
    for dtype in ("f16", "bf16", "f32", "i8"):
        for row, column in ((0, 1), (2, 1), (3, 4)):
            ended = run(program, "run", "wrong", f"dtype={dtype}", f"row={row}", f"column={column}")
            found = re.search(r"\nWRONG +c: .*\n +(\d+) of \d+ elements are wrong; the first is c\[(\d+), (\d+)\]: "
                              r"got \S+, expected \S+, error \S+, allowed ", ended.stdout)
            tile = found and (int(found[2]) // 16, int(found[3]) // 16)
            ok(ended.returncode == 1 and tile == (row, column) and 0 < int(found[1]) <= 16 * 16,
               f"the wrong tile ({row}, {column}) of {dtype} is found", ended.said)
        ended = run(program, "run", "wrong", f"dtype={dtype}", "wrong=false")
        ok(ended.returncode == 0, f"the kernel without the mistake verifies in {dtype}", ended.said)
    ended = run(program, "run", "wrong", "--data", "off")
    ok(ended.returncode == 0 and "not checked" in ended.stdout, "with --data off a wrong tile is not looked for",
       ended.said)
    ended, made = result(program, "wrong", "wrong=false")
    ok(0.3 < made["verify"][0]["max_share"] < 1, "the result has the largest share of its bound that an error is", made["verify"])
    ended, made = result(program, "wrong")
    check = made["verify"][0]
    first = check["first_wrong"]
    in_tile = re.match(r"\[3\d, (1[6-9]|2\d|3[01])\]$", first["index"])
    off = abs(first["got"] - first["expected"]) > first["allowed"]
    ok(ended.returncode == 1 and check["status"] == "wrong" and in_tile and off,
       "the result has the first wrong element of a wrong tile", check)
    ended, made = result(program, "far_apart")
    ok(ended.returncode == 1 and made["verify"][0]["first_wrong"]["index"] == "[70000]" and made["verify"][0]["wrong"] == 2,
       "the first wrong element is that of the first part that has one", made["verify"])


def copies(program, pes):
    """Every element of every copy counts, whichever copies are equal."""
    for first, end in (0, 1), (1, 2), (0, pes), (pes - 1, pes), (1, pes), (0, 0):
        ended, made = result(program, "unequal", f"first={first}", f"end={end}")
        found = made["verify"][0]
        ok(found.get("wrong", 0) == 300 * (end - first) and ended.returncode == (end > first),
           f"copies of ranks {first} to {end} of {pes} are wrong", found)


# mistake: its message; {} is the place of a line that is marked with the mistake.
CAUGHT = {
    "tile": r"WRONG +y: .*\n.* elements are wrong; the first is y\[(\d+), \d+\]: got .*\n"
            r"  it was written by dma_write, command \d+ of kernel faulty on sip0\S*, called at {}",
    "wait": r"RACE +676 bytes from \S*pe_tcm\S* on .*\n +written by dma_read, .*\n +read by add, .* at {}",
    "stale": r"PENDING_RESULT .* tl_data: .* are not known before tl_wait for dma_read, .*\n  called at {}",
    "pending": r"PENDING_RESULT .* are the pending result of add, operation \d+ of kernel faulty, .*\n  called at {}",
    "bounds": r"KERNEL_ERROR .* tl_part: 2 indices from 12 on, but axis 0 has 13\n  called at {}",
    "address": r"BAD_ADDRESS .* it runs past the end of the memory\n  called at {}",
    "race": r"RACE +676 bytes from \S*pe_tcm\S* on .*\n +written by add, .* at {}\n +read by dma_write, .* at {}",
    "full": r"KERNEL_ERROR .* tl_alloc: no room for 4000000 bytes in the TCM: \d+ left in one piece; .*tl_alloc at "
            r".*\n  called at {}",
    "view": r"KERNEL_ERROR .* tl_load: elements of the shard overlap\n  called at {}",
    "freed": r"KERNEL_ERROR .* tl_store: the bytes at \S* were freed by tl_free at \S*faulty\.c:\d+\n"
             r"  called at {}",
}


def faulty(program, where, pes, count):
    """Every mistake, in small blocks."""
    lines = read(FAULTY).splitlines()
    ended, made = result(program, "faulty", "--data", "debug", f"pes={pes}")
    ok(ended.returncode == 0 and "RACE" not in ended.stdout,
       f"a kernel without a mistake verifies on {where}", ended.said)
    ok(made["util"]["gemm_flop"] == 2 * 13 ** 3 * count, f"each tl_dot is counted as a gemm on {where}", made)
    for what, said in CAUGHT.items():
        ended = run(program, "run", "faulty", f"what={what}", "--data", "debug", f"pes={pes}")
        marked = [number for number, line in enumerate(lines, 1) if re.search(rf"/\* line:.* {what}\b", line)]
        place = r"\S*faulty\.c:(" + "|".join(map(str, marked)) + ")"
        ok(ended.returncode == 1 and marked and re.search(said.replace("{}", place), ended.stdout + ended.stderr),
           f"the mistake {what} is found with its line on {where}", ended.said[:4000])


def many_pes():
    made = simulator(topology("ref_sip"), "ref_sip", [FAULTY])
    faulty(made, "one PE", "sip0.cube2.pe1", 1)
    faulty(made, "8 PEs", "sip0.cube5.pe*", 8)
    faulty(made, "128 PEs", "*", 128)


def few_pes():
    made = small_machine("wrong", [SOURCE])
    wrong(made)
    copies(made, 4)


def spoilt_ids():
    """A gather that overwrites its ids before it reads them: what is expected is not made of what a kernel has left."""
    kernels, own = os.path.join(ROOT, "kernels"), folder("spoilt.kernels")
    for name in os.listdir(kernels):
        if name.endswith(".h"):
            write(os.path.join(own, name), read(os.path.join(kernels, name)))
    source = re.sub(r"(KB_KERNEL|KB_BENCH|kb_launch)\(gather,", r"\1(spoilt,", read(os.path.join(kernels, "gather.c")))
    loads = "struct tl_shard loaded ="
    spoils = "tl_store(tl, tl_part(tl, ids, 0, token, count), tl_alloc(tl, ids.dtype, count)); "
    file = write(os.path.join(own, "spoilt.c"), source.replace(loads, spoils + loads))
    made = small_machine("spoilt", [file])
    for tokens in 30, 40000:
        right = run(made, "run", "gather", f"tokens={tokens}", "dim=3")
        ended = run(made, "run", "spoilt", f"tokens={tokens}", "dim=3")
        ok(source.count(loads) == 1 and right.returncode == 0 and ended.returncode == 1 and "\nWRONG " in ended.stdout,
           f"a gather of {tokens} rows that overwrites its ids is wrong", ended.said)


suite(few_pes, many_pes, spoilt_ids)
