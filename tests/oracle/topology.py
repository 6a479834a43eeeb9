"""topology: topo.yaml, laid over the defaults, as numbers of the model.

Reads what is valid; kbgen's own tests are there for what is not.
"""
import functools
from typing import NamedTuple

import yaml

from routes import Grid
from units import half_up, number, ps_of, quantity, rate_of

DEFAULTS = """
system:
  wire: { ns_per_mm: 0.01 }
  host: { overhead_ns: 0 }
  switch: { overhead_ns: 100 }
  pcie: { bw_gbs: 64, latency_ns: 250 }
  sips: 1
sip:
  pcie_ep: { overhead_ns: 50 }
  io_cpu: { overhead_ns: 20 }
  io: { bw_gbs: 64, latency_ns: 10, attach: [{ cube: 0, side: w }] }
  cubes: { rows: 4, cols: 4 }
  ucie: { bw_gbs: 512, latency_ns: 4 }
cube:
  memory_map: { hbm_slices_per_cube: 8, hbm_slice_mb: 2048, sram_mb: 32 }
  noc: { rows: 4, cols: 4, pitch_mm: 2.0, link_bw_gbs: 256, router: { overhead_ns: 1.0 },
         attach: { length_mm: 0.5, bw_gbs: 256 } }
  port: { overhead_ns: 0 }
  m_cpu: { at: [0, 1], attrs: { overhead_ns: 5.0 } }
  sram: { at: [1, 1], attrs: { overhead_ns: 2.0, read_bw_gbs: 512, write_bw_gbs: 512 } }
  hbm_ctrl: { attrs: { overhead_ns: 5.0, pcs: 4, pc_bw_gbs: 32, interleave_bytes: 256, row_bytes: 1024,
                       access_ns: 30, row_miss_ns: 2 } }
  pe_layout: corners
  pe_template:
    components:
      pe_cpu: { attrs: { overhead_ns: 2, launch_ns: 0 } }
      pe_scheduler: { attrs: { overhead_ns: 1, tile_overhead_ns: 0 } }
      pe_dma: { attrs: { overhead_ns: 2, rd_engines: 1, wr_engines: 1, queue_depth: 4, reads: separate, rd_bw_gbs: ~,
                         wr_bw_gbs: ~, max_request_bytes: ~, request_ns: 0, requests_in_flight: ~ } }
      pe_fetch_store: { attrs: { overhead_ns: 0, ports: 1, queue_depth: 4 } }
      pe_gemm: { attrs: { shared_resource: accel_slot, overhead_ns: 0, clock_ghz: 1.0, rows: 64, cols: 64,
                          fill_cycles: 64, block_cycles: 0, k_per_cycle: { f16: 1, bf16: 1, f32: 1, i8: 2 }, queue_depth: 4 } }
      pe_math: { attrs: { shared_resource: accel_slot, overhead_ns: 0, clock_ghz: 1.0, fill_cycles: 8,
                          lanes: { f16: 128, bf16: 128, f32: 64 }, cost: { exp: 4, div: 4 }, queue_depth: 4 } }
      pe_tcm: { attrs: { size_mb: 4, reserved_mb: 2, read_bw_gbs: 512, write_bw_gbs: 512, overhead_ns: 0,
                         buffers: block } }
      pe_mmu: { attrs: { enabled: false, page_kb: 64, tlb_entries: 64, tlb_overhead_ns: 0, walk_ns: 100,
                         overhead_ns: 0 } }
      pe_ipcq: { attrs: { slots: 4, slot_kb: 16, buffer: tcm, overhead_ns: 0 } }
    links: { scheduler_to_dma_mm: 0.0, scheduler_to_fetch_store_mm: 0.0, scheduler_to_gemm_mm: 0.0,
             scheduler_to_math_mm: 0.0, dma_to_fetch_store_mm: 0.0, fetch_store_to_gemm_mm: 0.0,
             fetch_store_to_math_mm: 0.0, gemm_to_fetch_store_mm: 0.0, gemm_to_math_mm: 0.0,
             math_to_fetch_store_mm: 0.0, fetch_store_to_dma_mm: 0.0, fetch_store_to_tcm_bw_gbs: 1000.0 }
"""


LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_yaml(path):
    """Every scalar as it is written."""
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, LOADER)


def laid_over(low, high):
    if isinstance(low, dict) and isinstance(high, dict):
        return low | {key: laid_over(low[key], value) if key in low else value for key, value in high.items()}
    return high


def absent(text):
    return text in ("~", "null", "")


class Part:
    """A mapping of the file, read by the suffix of its keys."""

    def __init__(self, values, ns_per_mm):
        self.values, self.ns_per_mm = values, ns_per_mm

    @functools.cache
    def ps(self, key):
        return ps_of(key, self.values[key])

    @functools.cache
    def rate(self, key):
        return rate_of(key, self.values[key])

    @functools.cache
    def khz(self, key):
        return half_up(quantity(key, self.values[key]) / 1000)

    @functools.cache
    def bytes(self, key):
        return int(quantity(key, self.values[key]))

    @functools.cache
    def count(self, key):
        return int(number(self.values[key]))

    @functools.cache
    def limit(self, key):
        """A count or a size, None if there is no limit."""
        if absent(self.values[key]):
            return None
        return self.bytes(key) if key.endswith("_bytes") else self.count(key)

    @functools.cache
    def counts(self, key):
        return {name: int(number(value)) for name, value in self.values[key].items()}

    @functools.cache
    def wire_ps(self, key, times=1):
        return half_up(times * quantity(key, self.values[key]) * 1000 * self.ns_per_mm * 1000)

    def place(self, key):
        return tuple(int(number(value)) for value in self.values[key])


class ChipLink(NamedTuple):
    """Between two ports."""
    a: str
    b: str
    rate: int | None
    latency: int


class Topology:
    def __init__(self, path):
        self.tree = laid_over(yaml.load(DEFAULTS, LOADER), read_yaml(path))
        self.name = self.tree["system"]["name"]
        self.ns_per_mm = number(self.tree["system"]["wire"]["ns_per_mm"])
        self.sips = self.part("system").count("sips")
        self.cube_rows, self.cube_cols = (self.part("sip.cubes").count(key) for key in ("rows", "cols"))
        self.rows, self.cols = (self.part("cube.noc").count(key) for key in ("rows", "cols"))
        self.slices = self.part("cube.memory_map").count("hbm_slices_per_cube")
        self.pes = self.part("cube").count("pes") if "pes" in self.tree["cube"] else self.slices
        self.has_sram = self.part("cube.memory_map").bytes("sram_mb") > 0
        self.attach = [(int(one["cube"], 0), one["side"]) for one in self.tree["sip"]["io"]["attach"]]
        self.routers = self.places(self.tree["cube"]["pe_layout"], self.pes)
        layout = self.tree["cube"].get("hbm_layout", "pes")
        self.slice_routers = self.routers[:self.slices] if layout == "pes" else self.places(layout, self.slices)
        self.router_grid = Grid(self.rows, self.cols, self.tree["cube"]["noc"].get("wrap"))
        self.cube_grid = Grid(self.cube_rows, self.cube_cols, self.tree["sip"]["cubes"].get("wrap"))
        noc = self.tree["cube"]["noc"]
        self.planes = [(one.get("order", "xy"), one.get("direction", "shortest")) for one in noc.get("planes", [{}])]
        self.plane_of = {None: 0} | {kind: int(noc.get("plane_of", {}).get(kind, "0"), 0)
                                     for kind in ("read", "write", "message")}
        self.own_response = noc.get("response") == "own"
        self.chip_links = [self.chip_link(one) for one in self.tree["system"].get("links", [])]
        self.ports = {"n": (0, self.cols // 2), "s": (self.rows - 1, self.cols // 2),
                      "w": (self.rows // 2, 0), "e": (self.rows // 2, self.cols - 1)}

    @functools.cache
    def part(self, path):
        values = self.tree
        for word in path.split("."):
            values = values[word]
        return Part(values, self.ns_per_mm)

    def pe(self, kind):
        return self.part(f"cube.pe_template.components.{kind}.attrs")

    def chip_link(self, values):
        part = Part(values, self.ns_per_mm)
        ends = (f"sip{int(end['sip'], 0)}.cube{int(end['cube'], 0)}.port.{end['side']}" for end in (values["a"], values["b"]))
        return ChipLink(*ends, part.rate("bw_gbs"), part.ps("latency_ns"))

    def own_slice(self, pe):
        """Of a PE by its number in the cube."""
        return pe * self.slices // self.pes

    def places(self, layout, count):
        """The routers of so many PEs or slices."""
        if isinstance(layout, dict):
            return [(int(row, 0), int(col, 0)) for row, col in layout["explicit"]]
        taken, places = [0] * 4, []
        for p in range(count):
            corner = 4 * p // count
            quadrant = self.quadrant(south=corner >= 2, east=corner % 2 == 1)
            places.append(quadrant[taken[corner] % len(quadrant)])
            taken[corner] += 1
        return places

    def quadrant(self, south, east):
        """The routers of a corner's quarter, nearest to the corner first; a middle row or column is in both halves."""
        def half(count, far):
            return range(count // 2, count) if far else range((count + 1) // 2)
        corner = (self.rows - 1 if south else 0, self.cols - 1 if east else 0)
        return sorted(((r, c) for r in half(self.rows, south) for c in half(self.cols, east)),
                      key=lambda at: (abs(at[0] - corner[0]) + abs(at[1] - corner[1]), at))
