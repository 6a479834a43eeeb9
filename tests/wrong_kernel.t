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


def overwritten(program):
    """What is expected is not made of what a kernel has left of its inputs."""
    for copies in "false", "true":
        for words, status, of in ((["late=false"], "overwritten", "x"), (["late=true"], "wrong", "x"),
                                  (["spoil=false"], "ok", None), (["how=before"], "wrong", None),
                                  (["how=before", "late=true"], "ok", None), (["how=refilled"], "ok", None),
                                  (["how=looked"], "ok", None),
                                  (["how=chained", "spoil=false"], "ok", None),
                                  (["how=verified", "spoil=false"], "ok", None),
                                  (["how=stages", "spoil=false"], "ok", None), (["how=stages"], "overwritten", "y"),
                                  (["how=inplace", "spoil=false"], "overwritten", "x")):
            ended, made = result(program, "spoils", f"copies={copies}", *words)
            found = made["verify"][-1]
            said = f"\n  the reference was made from {of}, which kernels had overwritten\n" in ended.stdout
            ok(found["status"] == status and found.get("overwritten") == of and said == (status == "wrong" and of == "x")
               and ended.returncode == (status != "ok"), f"{' '.join(words)} copies={copies} is {status}", ended.said)
    for words, status in ([], "ok"), (["written=false"], "unwritten"):
        ended, made = result(program, "one_row", *words)
        ok(made["verify"][0]["status"] == status, f"a row that most PEs have nothing of is {status}", ended.said)
    ended = run(program, "run", "spoils", "--data", "debug")
    store = 1 + next(i for i, line in enumerate(read(SOURCE).splitlines()) if "tl_store(tl, x, zeros);" in line)
    ok(re.search(r"\nNOT VERIFIED y: it holds what is expected of x as kernels had overwritten it\. .*\n  that was overwritten by "
                 rf"dma_write, command \d+ of kernel twice on sip0\S*, called at \S*wrong\.c:{store}\n", ended.stdout),
       "the line that overwrote an input is named", ended.said)


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
    overwritten(made)


SPOIL = """
static void spoil(struct tl *tl, kb_tensor tensor)
{
    struct tl_shard all = tl_my_shard(tl, tensor);
    uint64_t elements = all.shape[0] * all.shape[1] * all.shape[2] * all.shape[3];
    struct tl_shard zeros = elements ? tl_alloc(tl, all.dtype, elements) : all;
    if (elements) {
        tl_store(tl, tl_reshape(tl, all, elements), zeros);
        tl_free(tl, zeros);
    }
}
"""

# Kernels of the library, a tensor that each reads, and parameters of its bench: of benches that make their reference after the
# launch, and of those that make it before.
REFERENCE_AFTER = (
    ("all_reduce", "in", "size=300"), ("all_to_all", "in", "size=300"), ("batched_gemm", "a", "m=20 k=30 n=10"),
    ("col_reduce", "x", "rows=40 cols=30"), ("conv2d", "w", "batch=2 h=8 w=8 c=3 filters=5"), ("elementwise", "residual", "rows=40 cols=30"),
    ("gemm", "b", "m=40 k=30 n=20"), ("gemm_2d", "a", "m=40 k=30 n=20"), ("layernorm", "gain", "rows=40 cols=30"),
    ("rmsnorm", "x", "rows=40 cols=30"), ("softmax", "x", "rows=40 cols=30"), ("transpose", "x", "m=40 n=30"),
)
REFERENCE_BEFORE = (
    ("gather", "ids", "tokens=30 dim=3"), ("gather", "ids", "tokens=40000 dim=3"), ("gather", "table", "tokens=30 dim=3"),
    ("layer", "qkv", "tokens=8"), ("moe", "gates", "tokens=8 d=32 ffn=16"), ("rotary", "x", "tokens=12 heads=2 points=4"),
    ("spmv", "values", "m=300 n=200 density=0.1"), ("spmv", "x", "m=300 n=200 density=0.1"), ("top_k", "x", "rows=40 cols=30 k=3"),
)


def spoilt():
    """Kernels of the library that overwrite an input before they read it are not verified."""
    kernels, own = os.path.join(ROOT, "kernels"), folder("spoilt.kernels")
    for name in os.listdir(kernels):
        if name.endswith(".h"):
            write(os.path.join(own, name), read(os.path.join(kernels, name)))
    files = []
    for name, tensor in {(name, tensor) for name, tensor, _ in REFERENCE_AFTER + REFERENCE_BEFORE}:
        source = re.sub(r"\b(KB_KERNEL|KB_BENCH|kb_launch)\((\w+),", rf"\1({tensor}_of_\2,", read(os.path.join(kernels, name + ".c")))
        source, spoils = re.subn(r"(?m)(^KB_KERNEL.*\n\{\n)", rf"\1    spoil(tl, arg->{tensor});\n", source)
        first = source.index("KB_KERNEL")
        at = source.rindex("\n}\n", 0, first) + 3 if "\n}\n" in source[:first] else first
        assert spoils
        files.append(write(os.path.join(own, f"{tensor}_of_{name}.c"), source[:at] + SPOIL + source[at:]))
    made = small_machine("spoilt", files)
    for name, tensor, words in REFERENCE_AFTER + REFERENCE_BEFORE:
        right = run(made, "run", name, *words.split())
        ended, found = result(made, f"{tensor}_of_{name}", *words.split())
        ok(right.returncode == 0 and "\nverified " in right.stdout, f"{name} {words} is verified", right.said)
        statuses = {check["status"] for check in found["verify"]}
        allowed = {"wrong", "overwritten"} if (name, tensor, words) in REFERENCE_AFTER else {"wrong"}
        ok(ended.returncode == 1 and found["status"] == 1 and statuses and statuses <= allowed and "fault" not in ended.said.lower(),
           f"{name} {words} is not verified if it overwrites {tensor}", statuses, ended.said)


suite(few_pes, many_pes, spoilt)
