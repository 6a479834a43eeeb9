"""plan: what a command becomes: tiles, each a list of stages with their bytes, addresses and service times."""
from typing import NamedTuple

from units import DTYPE_BYTES, ceil_div, cycles_ps, round64

KNOWN_OPS = set("""copy neg abs relu exp log sqrt rsqrt recip tanh sigmoid gelu silu add sub mul div max min sum mean
                   where cmp cast bias bias_add scale quant dequant
                   gather""".split())


class Range(NamedTuple):
    """Bytes of an operand, from an offset on."""
    operand: object
    offset: int
    size: int


class Stage(NamedTuple):
    kind: str
    size: int = 0                   # bytes
    ranges: tuple = ()              # of a DMA: what it moves
    length: int = 0                 # ps of a computation
    flop: int = 0                   # of a GEMM


class Tile(NamedTuple):
    stages: list
    buffers: list                   # bytes of its blocks in the reserved region


def dma(kind, *ranges):
    return Stage(kind, sum(one.size for one in ranges), ranges)


class Engines:
    """What the engines make of tiles: cycle counts, stages that read, blocks of buffers. What an engine lacks is a
    LookupError."""

    def __init__(self, topo):
        self.paired = topo.pe("pe_dma").values["reads"] == "paired"
        self.block_each = topo.pe("pe_tcm").values["buffers"] == "operands"
        self.gemm_part, self.math_part = topo.pe("pe_gemm"), topo.pe("pe_math")
        self.k_per_cycle = self.gemm_part.counts("k_per_cycle")
        self.lanes, self.cost = self.math_part.counts("lanes"), self.math_part.counts("cost")

    def gemm(self, m, k, n, dtype):
        part = self.gemm_part
        cycles = part.count("fill_cycles") + (ceil_div(m, part.count("rows")) * ceil_div(n, part.count("cols"))
                                              * (ceil_div(k, self.k_per_cycle[dtype]) + part.count("block_cycles")))
        return Stage("GEMM", length=part.ps("overhead_ns") + cycles_ps(cycles, part.khz("clock_ghz")), flop=2 * m * k * n)

    def math(self, op, elements, dtype):
        part = self.math_part
        if op not in KNOWN_OPS and op not in self.cost:
            raise LookupError(op)
        cycles = part.count("fill_cycles") + ceil_div(elements, self.lanes[dtype]) * self.cost.get(op, 1)
        return Stage("MATH", length=part.ps("overhead_ns") + cycles_ps(cycles, part.khz("clock_ghz")))


    def reads(self, ranges):
        """The stages that read some operands."""
        return [dma("DMA_READ", *ranges)] if self.paired and ranges else [dma("DMA_READ", one) for one in ranges]

    def buffers(self, sizes):
        """The blocks of a tile: one for each operand, or one for all."""
        sizes = [round64(size) for size in sizes]
        return sizes if self.block_each else [sum(sizes)] if sizes else []


def pieces(whole, tile):
    return [min(tile, whole - at) for at in range(0, whole, tile)]


def block_start(i, j, rows, cols, tile_rows, tile_cols):
    """The element at which block (i, j) of an operand begins."""
    return i * tile_rows * cols + min(tile_rows, rows - i * tile_rows) * j * tile_cols


def tiles_of(step, engines):
    do = step["do"]
    if do == "load":
        return [Tile([dma("DMA_READ", Range(step["from"], 0, step["bytes"]))], [])]
    if do == "store":
        return [Tile([dma("DMA_WRITE", Range(step["to"], 0, step["bytes"]))], [])]
    if do == "gemm":
        return [Tile([engines.gemm(step["m"], step["k"], step["n"], step["dtype"])], [])]
    if do == "math":
        return [Tile([engines.math(step["op"], step["elems"], step["dtype"])], [])]
    if do == "send":
        return [Tile([Stage("COMM", step["bytes"])], [])]
    if do == "recv":
        return [Tile([Stage("DMA_READ")], [])]
    return list(gemm_tiles(step, engines) if step["op"] == "gemm" else math_tiles(step, engines))


def gemm_tiles(step, engines):
    counts = [len(pieces(step[side], tile)) for side, tile in zip("mkn", step["tile"])]
    for i in range(counts[0]):
        for j in range(counts[2]):
            for k in range(counts[1]):
                yield gemm_tile(step, engines, (i, k, j), [at == count - 1 for at, count in zip((i, k, j), counts)])


def gemm_tile(step, engines, at, last):
    (i, k, j), (tile_m, tile_k, tile_n) = at, step["tile"]
    whole_m, whole_k, whole_n = step["m"], step["k"], step["n"]
    m, kk, n = pieces(whole_m, tile_m)[i], pieces(whole_k, tile_k)[k], pieces(whole_n, tile_n)[j]
    size, out_size = DTYPE_BYTES[step["dtype"]], DTYPE_BYTES[step["out_dtype"]]
    inputs = (("a", block_start(i, k, whole_m, whole_k, tile_m, tile_k) * size, m * kk * size),
              ("b", block_start(k, j, whole_k, whole_n, tile_k, tile_n) * size, kk * n * size))
    ranges = [Range(step[name], offset, length) for name, offset, length in inputs if name not in step["pinned"]]
    sizes = [one.size for one in ranges]
    stages = engines.reads(ranges)
    stages += [Stage("FETCH", (m * kk + kk * n) * size), engines.gemm(m, kk, n, step["dtype"])]
    scopes = ["k_tile"] + ["output_tile"] * last[1] + ["once"] * all(last)
    stages += [engines.math(one["op"], m * n, step["out_dtype"])
               for scope in scopes for one in step["epilogue"] if one["scope"] == scope]
    if last[1]:
        offset = block_start(i, j, whole_m, whole_n, tile_m, tile_n) * out_size
        sizes.append(m * n * out_size)
        stages += [Stage("STORE", sizes[-1]), dma("DMA_WRITE", Range(step["c"], offset, sizes[-1]))]
    return Tile(stages, engines.buffers(sizes))


def math_tiles(step, engines):
    size, out_size = DTYPE_BYTES[step["dtype"]], DTYPE_BYTES[step["out_dtype"]]
    (tile_m, tile_n), whole_m, whole_n = step["tile"], step["m"], step["n"]
    for i, m in enumerate(pieces(whole_m, tile_m)):
        for j, n in enumerate(pieces(whole_n, tile_n)):
            start, read, written = block_start(i, j, whole_m, whole_n, tile_m, tile_n), m * n * size, m * n * out_size
            yield Tile([dma("DMA_READ", Range(step["src"], start * size, read)), Stage("FETCH", read),
                        engines.math(step["fn"], m * n, step["dtype"]), Stage("STORE", written),
                        dma("DMA_WRITE", Range(step["dst"], start * out_size, written))],
                       engines.buffers([read, written]))
