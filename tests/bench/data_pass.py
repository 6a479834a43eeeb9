"""data_pass: the data pass of a GEMM over 128 PEs against one call of cblas_sgemm of the same size, and that of many small
GEMMs, which share no operand, against as many calls."""
import os

from itself import bench_host
from measure import cpu_s, in_turn, median, ratio
from row import Result, Row, duration
from setting import HERE, Broken, NotMeasured

SIZE = 4096
FLOP = 2 * SIZE**3
MANY, SMALL = 4096, 64


def sgemm_s(setting, *words):
    try:
        program = setting.program(os.path.join(HERE, "sgemm.c"), "-l:libopenblas.so.0")
    except Broken:
        raise NotMeasured("cannot link with libopenblas.so.0: install libopenblas0-pthread") from None
    said = setting.path("sgemm.txt")
    cpu_s(program, *words, said=said)
    with open(said, encoding="utf-8") as file:
        return float(file.read())


def same_kernels(setting):
    """Both sides compute with the kernels of OpenBLAS that a simulator takes."""
    os.environ["OPENBLAS_CORETYPE"] = setting.once("blas", lambda: bench_host(setting, "m=512", "k=512", "n=512")["blas"])


def data_pass(setting, dtype, goal):
    words = [f"{size}={SIZE}" for size in "mkn"] + [f"dtype={dtype}"]
    same_kernels(setting)
    ours, theirs = in_turn(setting.pairs, lambda: bench_host(setting, *words)["data_pass_s"], lambda: sgemm_s(setting, SIZE))
    rate = ratio(theirs, ours)
    return Result(f"{rate:.2f}x", rate >= goal, f"{FLOP / median(ours) / 1e9:.3g} of "
                  f"{FLOP / median(theirs) / 1e9:.3g} GFLOP/s, on one core each: {duration(median(ours))}, "
                  f"cblas_sgemm {duration(median(theirs))}", {"ratio": rate, "data_pass": ours, "sgemm": theirs})


def many(setting):
    words = [f"batch={MANY}", *(f"{size}={SMALL}" for size in "mkn"), "dtype=f32", "--threads", "1"]
    same_kernels(setting)
    ours, theirs = in_turn(setting.pairs, lambda: bench_host(setting, *words, bench="batched_gemm")["data_pass_s"],
                           lambda: sgemm_s(setting, SMALL, MANY))
    rate = ratio(theirs, ours)
    return Result(f"{rate:.2f}x", rate >= 0.8, f"{MANY} products of {SMALL}^3 in f32, on one core each: "
                  f"{duration(median(ours))}, calls of cblas_sgemm {duration(median(theirs))}",
                  {"ratio": rate, "data_pass": ours, "sgemm": theirs})


ROWS = [Row("data-f32", ">= 0.85x", lambda setting: data_pass(setting, "f32", 0.85)),
        Row("data-f16", ">= 0.6x", lambda setting: data_pass(setting, "f16", 0.6)),
        Row("data-many", ">= 0.8x", many)]
