"""machines: a random machine: small, every attribute drawn from a few values, so that coincidences abound.

What most machines do not have are parts; a machine is drawn with some of them. They are drawn apart, so that a machine
without parts does not depend on which there are.
"""
PARTS = ("slices", "wrap", "cube_wrap", "planes", "response", "chips", "requests", "blocks", "launch", "f8")
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


def drawn_parts(rng):
    """The parts of a machine: of a third of them none."""
    share = rng.choice((0, 0.25, 0.6))
    return [one for one in PARTS if rng.random() < share]


def free_sides(rows, cols):
    """The cube sides at the edge of the grid."""
    return [{"cube": r * cols + c, "side": side} for r in range(rows) for c in range(cols)
            for side, at_edge in (("n", r == 0), ("s", r == rows - 1), ("w", c == 0), ("e", c == cols - 1)) if at_edge]


def attachments(rng, rows, cols):
    free = free_sides(rows, cols)
    return rng.sample(free, min(len(free), rng.choice((1, 1, 2, 3))))


def shape(rng, parts):
    """(SIPs, cube rows, cube columns, PEs of a cube): at most some 16 PEs."""
    while True:
        sips, pes = rng.choice((2, 3, 3, 4) if "chips" in parts else (1, 1, 1, 2)), rng.choice((1, 1, 2, 3, 4, 5, 8))
        rows, cols = rng.choice(((1, 3), (3, 1), (2, 3), (3, 2), (3, 3), (1, 4), (1, 5)) if "cube_wrap" in parts else
                                ((1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 2)))
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


def cube(rng, some, pes, parts):
    rows, cols = rng.choice(((1, 3), (1, 4), (5, 1), (2, 3), (3, 3), (4, 4), (3, 5)) if "wrap" in parts else
                            ((1, 1), (2, 2), (1, 3), (2, 3), (3, 3), (4, 4)))
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


def wrap(rng, rows, cols):
    """Which rows or columns of a grid are closed."""
    able = ["rows"] * (cols >= 3) + ["cols"] * (rows >= 3) + ["both"] * (min(rows, cols) >= 3)
    return rng.choice(able) if able else "none"


def planes(rng, noc):
    """Networks of a cube; in one direction alone if each row and column is closed or has one router."""
    closed = noc.get("wrap", "none")
    rings = ((noc["cols"] == 1 or closed in ("rows", "both")) and (noc["rows"] == 1 or closed in ("cols", "both")))
    found = []
    for _ in range(rng.choice((1, 2, 2, 3, 4))):
        found.append({"order": rng.choice(("xy", "yx"))} if rng.random() < 0.7 else {})
        if rng.random() < 0.7:
            found[-1]["direction"] = rng.choice(("shortest", "plus", "minus") if rings else ("shortest",))
    return {"planes": found} | ({"plane_of": {kind: rng.randrange(len(found)) for kind in ("read", "write", "message")
                                              if rng.random() < 0.8}} if rng.random() < 0.9 else {})


def chip_links(rng, some, tree):
    """Links between free sides of different SIPs."""
    sips, attach = tree["system"]["sips"], tree["sip"]["io"]["attach"]
    sides = [one for one in free_sides(*(tree["sip"]["cubes"][key] for key in ("rows", "cols"))) if one not in attach]
    free = {sip: rng.sample(sides, len(sides)) for sip in range(sips)}
    links = []
    for _ in range(rng.choice((1, 2, 3, 5))):
        able = [sip for sip in free if free[sip]]
        if len(able) > 1:
            a, b = rng.sample(able, 2)
            links.append({"a": {"sip": a} | free[a].pop(), "b": {"sip": b} | free[b].pop(), "bw_gbs": some.rate(),
                          "latency_ns": some.time()})
    return links


def slices(rng, tree, pes):
    """Other slices than one for each PE, or no sram; rings lie in what there is, mostly."""
    cube_, noc = tree["cube"], tree["cube"]["noc"]
    sizes, rings = cube_["memory_map"], cube_["pe_template"]["components"]["pe_ipcq"]["attrs"]
    count = sizes["hbm_slices_per_cube"] = rng.choice((0, 1, 1, 2, 3, pes, pes + 1, pes + 3))
    cube_["pes"] = pes
    layout = rng.choice(("pes", "pes", "corners", "explicit"))
    if layout == "explicit":
        cube_["hbm_layout"] = {"explicit": [[rng.randrange(noc["rows"]), rng.randrange(noc["cols"])]
                                            for _ in range(count)]}
    elif layout == "corners" or count > pes:
        cube_["hbm_layout"] = "corners"
    if rng.random() < 0.3:
        sizes["sram_mb"] = 0
    absent = {"hbm": count == 0, "sram": sizes["sram_mb"] == 0, "tcm": False}
    if absent[rings["buffer"]] and rng.random() < 0.8:
        rings["buffer"] = "tcm"


def requests(rng, some):
    """Attributes of pe_dma."""
    drawn = {"reads": rng.choice(("paired", "paired", "separate")), "rd_bw_gbs": some.rate(), "wr_bw_gbs": some.rate(),
             "max_request_bytes": rng.choice((None, 64, 100, 256, 1000, 4096)), "request_ns": some.time(),
             "requests_in_flight": rng.choice((None, 1, 1, 2, 3, 8))}
    return {key: value for key, value in drawn.items() if rng.random() < 0.6}


def add_parts(rng, some, tree, pes, parts):
    attrs = {kind: part["attrs"] for kind, part in tree["cube"]["pe_template"]["components"].items()}
    noc, cubes = tree["cube"]["noc"], tree["sip"]["cubes"]
    if "wrap" in parts:
        noc["wrap"] = wrap(rng, noc["rows"], noc["cols"])
    if "cube_wrap" in parts:
        cubes["wrap"] = wrap(rng, cubes["rows"], cubes["cols"])
    if "planes" in parts:
        noc.update(planes(rng, noc))
    if "response" in parts:
        noc["response"] = "own"
    if "chips" in parts:
        tree["system"]["links"] = chip_links(rng, some, tree)
    if "slices" in parts:
        slices(rng, tree, pes)
    if "requests" in parts:
        attrs["pe_dma"].update(requests(rng, some))
    if "blocks" in parts:
        attrs["pe_gemm"]["block_cycles"] = rng.choice((1, 3, 100))
        attrs["pe_tcm"]["buffers"] = rng.choice(("operands", "operands", "block"))
    if "launch" in parts:
        attrs["pe_cpu"]["launch_ns"] = some.time()
    if "f8" in parts:
        attrs["pe_gemm"]["k_per_cycle"] = attrs["pe_gemm"].get("k_per_cycle", {}) | {"f8e4m3": 2, "f8e5m2": 5}
        attrs["pe_math"]["lanes"] = attrs["pe_math"].get("lanes", {}) | rng.choice(({"f8e4m3": 50, "f8e5m2": 128},
                                                                                    {"f8e5m2": 1}))


def machine(rng, parts=()):
    """A topology file's tree, with some of PARTS."""
    some = Palette(rng)
    sips, rows, cols, pes = shape(rng, parts)
    tree = {
        "system": {"name": "drawn", "wire": {"ns_per_mm": rng.choice((0.01, 0.1, 0.1, 0))},
                   "host": {"overhead_ns": some.time()}, "switch": {"overhead_ns": some.time()},
                   "pcie": {"bw_gbs": some.rate(), "latency_ns": some.time()}, "sips": sips},
        "sip": {"pcie_ep": {"overhead_ns": some.time()}, "io_cpu": {"overhead_ns": some.time()},
                "io": {"bw_gbs": some.rate(), "latency_ns": some.time(), "attach": attachments(rng, rows, cols)},
                "cubes": {"rows": rows, "cols": cols}, "ucie": {"bw_gbs": some.rate(), "latency_ns": some.time()}},
        "cube": cube(rng, some, pes, parts)}
    add_parts(rng, some, tree, pes, parts)
    return tree
