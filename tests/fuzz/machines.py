"""machines: a random machine: small, every attribute drawn from a few values, so that coincidences abound."""
TIMES = (0, 0, 0.25, 0.5, 1, 2, 2, 5, 0.001, 3.7, 20.34, "0.003 us")
RATES = (None, None, 16, 32, 64, 64, 128, 256, 33.3, "0.5 TB/s", 1000, 7, 1000000, 0.7, "10 KB/s")


class Palette:
    """The few times and rates of one machine."""

    def __init__(self, rng):
        self.rng = rng
        self.times = rng.sample(TIMES, rng.choice((1, 2, 3, 5)))
        self.rates = rng.sample(RATES, rng.choice((1, 2, 3, 5)))

    def time(self):
        return self.rng.choice(self.times)

    def rate(self):
        return self.rng.choice(self.rates)


def attachments(rng, rows, cols):
    """Some cube sides at the edge of the grid."""
    free = [{"cube": r * cols + c, "side": side} for r in range(rows) for c in range(cols)
            for side, at_edge in (("n", r == 0), ("s", r == rows - 1), ("w", c == 0), ("e", c == cols - 1)) if at_edge]
    return rng.sample(free, min(len(free), rng.choice((1, 1, 2, 3))))


def shape(rng):
    """(SIPs, cube rows, cube columns, PEs of a cube): at most some 16 PEs."""
    while True:
        sips, pes = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 2, 3, 4, 5, 8))
        rows, cols = rng.choice(((1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 2)))
        if sips * rows * cols * pes <= 16:
            return sips, rows, cols, pes


def engines(rng, some):
    """The attributes of the engines that a PE has."""
    def depth():
        return rng.choice((1, 1, 2, 3, 4))
    slot = rng.choice(("accel_slot", "accel_slot", None, "other"))
    gemm = {"shared_resource": slot, "overhead_ns": some.time(),
            "clock_ghz": rng.choice((1, "1.3 GHz", 0.94, 2, "10 kHz")),
            "rows": rng.choice((8, 16, 64)), "cols": rng.choice((8, 16, 64)),
            "fill_cycles": rng.choice((0, 0, 8, 64)), "queue_depth": depth()}
    math = {"shared_resource": rng.choice((slot, slot, "accel_slot")), "overhead_ns": some.time(),
            "clock_ghz": rng.choice((1, 1, "940 MHz")), "fill_cycles": rng.choice((0, 0, 8)), "queue_depth": depth()}
    if rng.random() < 0.3:
        gemm["k_per_cycle"] = rng.choice(({"f16": 4}, {"i8": 8, "u8": 3}, {"i32": 1}))
        math["lanes"] = rng.choice(({"f16": 32}, {"i32": 64, "i8": 100}, {"f32": 1}))
    if rng.random() < 0.4:
        math["cost"] = rng.choice(({"relu": 0}, {"exp": 7, "mystery": 2}, {"tanh": 3, "add": 0}))
    return {
        "pe_dma": {"overhead_ns": some.time(), "rd_engines": rng.choice((1, 1, 2, 3)),
                   "wr_engines": rng.choice((1, 1, 2, 3)), "queue_depth": depth()},
        "pe_fetch_store": {"overhead_ns": some.time(), "ports": rng.choice((1, 2)), "queue_depth": depth()},
        "pe_gemm": gemm, "pe_math": math}


def memories(rng, some):
    """The attributes of a PE's memory, MMU and rings."""
    tcm, reserved = rng.choice((("1 MiB", "512 KiB"), ("1 MiB", "512 KiB"),
                                (1, "256 KiB"), ("1 MiB", "96 KiB"), ("128 KiB", "64 KiB"),
                                ("1 MiB", "20 KiB"), ("1 MiB", "8 KiB"), ("64 KiB", rng.choice(("1000 B", 0)))))
    return {
        "pe_tcm": {"size_mb": tcm, "reserved_mb": reserved, "read_bw_gbs": some.rate(), "write_bw_gbs": some.rate(),
                   "overhead_ns": some.time()},
        "pe_mmu": {"enabled": rng.random() < 0.5, "page_kb": rng.choice((4, 4, 16, "768 B")),
                   "tlb_entries": rng.choice((1, 2, 4, 64)), "tlb_overhead_ns": some.time(), "walk_ns": some.time()},
        "pe_ipcq": {"slots": rng.choice((1, 1, 2, 4)), "slot_kb": rng.choice((4, 4, 1, "100 B")),
                    "buffer": rng.choice(("tcm", "sram", "hbm"))}}


def template(rng, some):
    parts = {"pe_cpu": {"overhead_ns": some.time()},
             "pe_scheduler": {"overhead_ns": some.time(), "tile_overhead_ns": some.time()}}
    parts |= engines(rng, some) | memories(rng, some)
    links = {"fetch_store_to_tcm_bw_gbs": some.rate()}
    if rng.random() < 0.4:
        links |= {name + "_mm": rng.choice((0, 10, 10, 100)) for name in (
            "scheduler_to_dma", "scheduler_to_fetch_store", "scheduler_to_gemm", "scheduler_to_math",
            "dma_to_fetch_store", "fetch_store_to_gemm", "fetch_store_to_math", "gemm_to_fetch_store", "gemm_to_math",
            "math_to_fetch_store", "fetch_store_to_dma") if rng.random() < 0.7}
    return {"components": {kind: {"attrs": attrs} for kind, attrs in parts.items()}, "links": links}


def cube(rng, some, pes):
    rows, cols = rng.choice(((1, 1), (2, 2), (1, 3), (2, 3), (3, 3), (4, 4)))
    def at():
        return [rng.randrange(rows), rng.randrange(cols)]
    layout = "corners" if rng.random() < 0.7 else {"explicit": [at() for _ in range(pes)]}
    return {
        "memory_map": {"hbm_slices_per_cube": pes, "hbm_slice_mb": rng.choice((16, 16, 1)),
                       "sram_mb": rng.choice((4, 1, "96 KiB"))},
        "noc": {"rows": rows, "cols": cols, "pitch_mm": rng.choice((0, 2, 10)), "link_bw_gbs": some.rate(),
                "router": {"overhead_ns": some.time()},
                "attach": {"length_mm": rng.choice((0, 0.5, 10)), "bw_gbs": some.rate()}},
        "port": {"overhead_ns": some.time()},
        "m_cpu": {"at": at(), "attrs": {"overhead_ns": some.time()}},
        "sram": {"at": at(), "attrs": {"overhead_ns": some.time(), "read_bw_gbs": some.rate(),
                                       "write_bw_gbs": some.rate()}},
        "hbm_ctrl": {"attrs": {"overhead_ns": some.time(), "pcs": rng.choice((1, 2, 4)), "pc_bw_gbs": some.rate(),
                               "interleave_bytes": rng.choice((64, 256, 100)),
                               "row_bytes": rng.choice((1024, 256, 1000)), "access_ns": some.time(),
                               "row_miss_ns": some.time()}},
        "pe_layout": layout, "pe_template": template(rng, some)}


def machine(rng):
    """A topology file's tree."""
    some = Palette(rng)
    sips, rows, cols, pes = shape(rng)
    return {
        "system": {"name": "drawn", "wire": {"ns_per_mm": rng.choice((0.01, 0.1, 0.1, 0))},
                   "host": {"overhead_ns": some.time()}, "switch": {"overhead_ns": some.time()},
                   "pcie": {"bw_gbs": some.rate(), "latency_ns": some.time()}, "sips": sips},
        "sip": {"pcie_ep": {"overhead_ns": some.time()}, "io_cpu": {"overhead_ns": some.time()},
                "io": {"bw_gbs": some.rate(), "latency_ns": some.time(), "attach": attachments(rng, rows, cols)},
                "cubes": {"rows": rows, "cols": cols}, "ucie": {"bw_gbs": some.rate(), "latency_ns": some.time()}},
        "cube": cube(rng, some, pes)}
