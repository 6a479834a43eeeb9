"""memory: what a simulator of 4,096 PEs keeps resident before data are touched, and whether simulating allocates.

Both are seen from outside by a library that is loaded before the simulator's own (watch.c).
"""
import os

from inputs import exact, gemm, machine, stream
from itself import library_benches
from row import Result, Row
from setting import HERE, output

MOST_KIB = 32 << 10
MOST_OF_LIBRARY_KIB = 40 << 10
LARGE = ("attention queries=32768", "all_reduce size=67108864", "softmax rows=4194304 cols=4096", "gemm m=1000000 k=16384 n=8192",
         "gemm_2d m=8192 k=8192 n=65536", "transpose m=65536 n=16384", "transpose m=262144 n=1024", "transpose m=12345 n=54321",
         "moe tokens=16384", "layer tokens=4096", "rotary tokens=4194304", "spmv m=67108864", "top_k rows=4194304",
         "gather tokens=16000000", "gather tokens=4000000 dim=1 vocab=64", "gather tokens=1000000 dim=64 vocab=100000",
         "transpose m=999 n=777777", "transpose m=128 n=1000000", "transpose m=384 n=400000", "transpose group=128",
         "all_to_all size=67108864", "batched_gemm batch=300000 m=16 k=16 n=16",
         "rotary tokens=1000000 heads=2 points=1 block_rows=1",
         "top_k rows=1000 cols=5000 k=256", "layer chunk=4 dtype=f32", "moe tokens=16384 d=256 ffn=4096 experts=1",
         "layernorm rows=150000 block_cols=78", "gemm m=1 k=1 n=3000000 bias=true", "top_k rows=50000000 cols=597",
         "conv2d batch=6756 h=96 c=1 filters=98", "elementwise rows=922654 cols=19963", "layer tokens=2326 chunk=4",
         "transpose m=892 n=154975", "layer tokens=1556 scale=4 chunk=35", "spmv m=362904 n=55 dtype=bf16 slice=2",
         "spmv m=67108864 n=5 slice=1", "broadcast size=100000 dtype=i32 chunk=107 algorithm=chain",
         "top_k rows=2 cols=16777216")
ROWS_OF_STREAMS = (64, 4096, 32768)        # one tile; two that are long enough to fill every pool


def watched(setting, *command):
    """What the library says of a run: a number for each name."""
    library = setting.program(os.path.join(HERE, "watch.c"), "-shared", "-fPIC", "-ldl")
    said = setting.path("watched")
    output(*command, env=dict(os.environ, LD_PRELOAD=library, KB_WATCH=said))
    with open(said, encoding="utf-8") as file:
        return {name: int(value) for name, value in (line.split() for line in file)}


def memory(setting):
    program = setting.simulator(machine(setting, 4096))
    info = watched(setting, program, "info")["resident_kib"]
    replay = watched(setting, program, "replay", stream(setting, "tiny", gemm(64, 64, 64)))["resident_kib"]
    return Result(f"{max(info, replay) / 1024:.3g} MiB", max(info, replay) <= MOST_KIB,
                  f"most resident (VmHWM), 4,096 PEs: info {info / 1024:.3g} MiB, replay of a tile on every PE "
                  f"{replay / 1024:.3g} MiB", {"info_kib": info, "replay_kib": replay})


def library_resident(setting):
    """What runs of the library's benches for the time alone take, as a user runs them, and at large sizes."""
    program, benches = library_benches(setting)
    def most(runs):
        return max((watched(setting, program, "run", *run.split(), "--data", "off")["resident_kib"], run) for run in runs)
    (kib, bench), (large_kib, large) = most(benches), most(LARGE)
    all_kib = max(kib, large_kib)
    return Result(f"{all_kib / 1024:.3g} MiB", all_kib <= MOST_OF_LIBRARY_KIB,
                  f"most resident (VmHWM) of runs --data off on ref_sip: {kib / 1024:.3g} MiB of {len(benches)} benches at their "
                  f"defaults, {bench}; {large_kib / 1024:.3g} MiB of {len(LARGE)} at large sizes, {large}",
                  {"most_kib": kib, "large_kib": large_kib})


def steps(rows):
    """Two GEMMs, one with an operand that all PEs share, and exp in the sram: so many rows each."""
    far = {"space": "hbm", "cube": 0, "pe": 0, "offset": 1 << 26}
    sram = {"dtype": "f16", "src": {"space": "sram"}, "dst": {"space": "sram", "offset": 1 << 24}}
    relu = [{"op": "relu", "scope": "output_tile"}]
    return (gemm(rows, 256, 256), gemm(rows, 256, 64, b=far, epilogue=relu),
            {"do": "composite", "op": "math", "fn": "exp", "m": rows, "n": 64, "tile": [64, 64]} | sram)


def allocations(setting):
    """A stream of one shape at three lengths: the same commands, of other sizes. What the longest makes more of than
    the one before was allocated while simulating; what that one makes more of than the shortest filled pools."""
    program = setting.simulator(machine(setting, 64))
    modes = {(), exact(program)}

    def count(rows):
        path = stream(setting, f"rows_{rows}", *steps(rows))
        runs = [watched(setting, program, "replay", path, *mode) for mode in modes]
        return sum(run["allocations"] + run["mappings"] for run in runs)

    tile, short, long = (count(rows) for rows in ROWS_OF_STREAMS)
    return Result(f"{long - short}", long == short, f"more calls of malloc and its like, mmap, mremap and brk in a run "
                  f"of {ROWS_OF_STREAMS[2]} rows than of {ROWS_OF_STREAMS[1]}, the same commands; those of "
                  f"{ROWS_OF_STREAMS[1]} rows make {short - tile} more than those of one tile: pools that grow until "
                  "they hold what is under way at once",
                  {"while_simulating": long - short, "pools": short - tile, "before": tile})


ROWS = [Row("memory", "<= 32 MiB", memory), Row("library-resident", "<= 40 MiB", library_resident),
        Row("allocations", "0", allocations)]
