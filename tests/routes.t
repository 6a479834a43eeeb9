#!/usr/bin/python3
"""routes: nodes, links and routes of odd machines against the rules of placement and routing, computed here one by one
without the tables that kbgen makes."""
import re

from harness import KBGEN, done, first_difference, ok, run, scratch, write

STEP = {"n": (-1, 0), "e": (0, 1), "s": (1, 0), "w": (0, -1)}
BACK = {"n": "s", "e": "w", "s": "n", "w": "e"}
PE_PARTS = "pe_cpu pe_scheduler pe_dma pe_fetch_store pe_gemm pe_math pe_tcm pe_mmu pe_ipcq".split()
ON_ROUTER = ("pe_cpu", "pe_dma", "pe_mmu")


class Machine:
    """A machine by its counts, as far as they differ from the defaults."""

    def __init__(self, cubes=(1, 1), noc=(4, 4), pes=8, sips=1, attach=((0, "w"),), m_cpu=(0, 1), sram=(1, 1), at=None,
                 slices=None, hbm="pes", sram_mb=32, wrap="none", cube_wrap="none", planes=(("xy", "shortest"),),
                 own=False, links=()):
        self.wrap, self.cube_wrap, self.planes, self.own, self.chip_links = wrap, cube_wrap, planes, own, links
        self.slices, self.hbm, self.sram_mb = pes if slices is None else slices, hbm, sram_mb
        self.cubes, self.noc, self.pes, self.sips, self.attach = cubes, noc, pes, sips, attach
        self.m_cpu, self.sram, self.at = m_cpu, sram, at

    def topology(self):
        attach = ", ".join(f"{{cube: {cube}, side: {side}}}" for cube, side in self.attach)
        layout, hbm_layout = (f"{{explicit: {[list(place) for place in of]}}}" if isinstance(of, tuple) else of
                              for of in (self.at or "corners", self.hbm))
        ends = [[f"{{sip: {sip}, cube: {cube}, side: {side}}}" for sip, cube, side in link] for link in self.chip_links]
        links = ", ".join(f"{{a: {a}, b: {b}, bw_gbs: {i + 1}, latency_ns: {i}}}" for i, (a, b) in enumerate(ends))
        planes = ", ".join(f"{{order: {order}, direction: {direction}}}" for order, direction in self.planes)
        return (f"system: {{name: odd, sips: {self.sips}, links: [{links}]}}\n"
                f"sip: {{cubes: {{rows: {self.cubes[0]}, cols: {self.cubes[1]}, wrap: {self.cube_wrap}}}, "
                f"io: {{attach: [{attach}]}}}}\n"
                f"cube:\n  pes: {self.pes}\n"
                f"  memory_map: {{hbm_slices_per_cube: {self.slices}, sram_mb: {self.sram_mb}}}\n"
                f"  noc: {{rows: {self.noc[0]}, cols: {self.noc[1]}, wrap: {self.wrap}, planes: [{planes}], "
                f"response: {'own' if self.own else 'reverse'}}}\n"
                f"  m_cpu: {{at: {list(self.m_cpu)}}}\n  sram: {{at: {list(self.sram)}}}\n  pe_layout: {layout}\n"
                f"  hbm_layout: {hbm_layout}\n")

    def router_of_pe(self, pe):
        return tuple(self.at[pe]) if self.at else self.in_corner(pe, self.pes)

    def router_of_slice(self, number):
        if self.hbm == "pes":
            return self.router_of_pe(number)
        return self.in_corner(number, self.slices) if self.hbm == "corners" else tuple(self.hbm[number])

    def in_corner(self, number, count):
        """The router of one of so many PEs or slices that are shared equally among the corners."""
        rows, cols = self.noc
        corner = 4 * number // count
        first = min(one for one in range(count) if 4 * one // count == corner)
        south, east = corner // 2, corner % 2
        near_row, near_col = (rows - 1) * south, (cols - 1) * east
        quadrant = [(r, c) for r in range(rows) for c in range(cols)
                    if abs(r - near_row) < (rows + 1) // 2 and abs(c - near_col) < (cols + 1) // 2]
        quadrant.sort(key=lambda at: (abs(at[0] - near_row) + abs(at[1] - near_col), at))
        return quadrant[(number - first) % len(quadrant)]

    def attached(self):
        """(name, its router or None) of each node of a cube, in rank order."""
        rows, cols = self.noc
        yield "m_cpu", self.m_cpu
        if self.sram_mb:
            yield "sram", self.sram
        for plane in range(len(self.planes)):
            for router in range(rows * cols):
                yield self.router(router, plane), None
        for side, at in zip("nesw", ((0, cols // 2), (rows // 2, cols - 1), (rows - 1, cols // 2), (rows // 2, 0))):
            yield "port." + side, at
        for number in range(self.slices):
            yield f"hbm_ctrl.pe{number}", self.router_of_slice(number)
        for pe in range(self.pes):
            for part in PE_PARTS:
                yield f"pe{pe}.{part}", self.router_of_pe(pe) if part in ON_ROUTER else None

    def nodes(self):
        lines = ["host", "switch"]
        for sip in range(self.sips):
            lines += [f"sip{sip}.pcie_ep", f"sip{sip}.io_cpu"]
            for cube in range(self.cubes[0] * self.cubes[1]):
                for name, at in self.attached():
                    number = at and at[0] * self.noc[1] + at[1]
                    routers = [self.router(number, plane) for plane in range(len(self.planes)) if at]
                    lines.append(" ".join([f"sip{sip}.cube{cube}.{name}", *routers]))
        return [f"{rank} {line}" for rank, line in enumerate(lines)]

    def pairs(self):
        """(one end, other end, class) of every link."""
        yield "host", "switch", "pcie"
        for sip in (f"sip{number}" for number in range(self.sips)):
            yield "switch", sip + ".pcie_ep", "pcie"
            yield sip + ".pcie_ep", sip + ".io_cpu", "io"
            for cube, side in self.attach:
                yield sip + ".io_cpu", f"{sip}.cube{cube}.port.{side}", "io"
            for cube in range(self.cubes[0] * self.cubes[1]):
                here = f"{sip}.cube{cube}."
                for side, next_cube in neighbours(self.cubes, cube, "es", self.cube_wrap):
                    yield here + "port." + side, f"{sip}.cube{next_cube}.port.{BACK[side]}", "ucie"
                for plane in range(len(self.planes)):
                    for router in range(self.noc[0] * self.noc[1]):
                        for side, other in neighbours(self.noc, router, "es", self.wrap):
                            far = other < router and ("rows" if side == "e" else "columns")
                            yield here + self.router(router, plane), here + self.router(other, plane), far or "noc"
                    for name, at in self.attached():
                        if at:
                            yield here + name, here + self.router(at[0] * self.noc[1] + at[1], plane), "attach"
        for number, link in enumerate(self.chip_links):
            yield *(f"sip{sip}.cube{cube}.port.{side}" for sip, cube, side in link), number

    def links(self):
        figures = {"pcie": "pcie 250000 64000000000", "io": "io 10000 64000000000", "ucie": "ucie 4000 512000000000",
                   "noc": "noc 20 256000000000", "attach": "attach 5 256000000000",
                   "rows": f"noc {20 * (self.noc[1] - 1)} 256000000000",
                   "columns": f"noc {20 * (self.noc[0] - 1)} 256000000000"}
        for number in range(len(self.chip_links)):
            figures[number] = f"chip {max(1000 * number, 1)} {number + 1}000000000"
        for one, other, kind in self.pairs():
            yield f"{one} {other} {figures[kind]}"
            yield f"{other} {one} {figures[kind]}"

    def router(self, number, plane=0):
        return "noc." + f"p{plane}." * (plane > 0) + "r%dc%d" % divmod(number, self.noc[1])

    def routes(self):
        targets = sorted({at for _, at in self.attached() if at})
        x_first = "xy", "shortest"
        for plane, rules in enumerate(self.planes):
            for source in range(self.noc[0] * self.noc[1]):
                for target in (row * self.noc[1] + col for row, col in targets):
                    yield from self.both(self.noc, self.wrap, rules, source, target, self.router(source, plane),
                                         self.router(target, plane))
        cubes = range(self.cubes[0] * self.cubes[1])
        for source in cubes:
            for target in cubes:
                yield from self.both(self.cubes, self.cube_wrap, x_first, source, target, f"cube{source}",
                                     f"cube{target}")
            hops = {to: len(request(self.cubes, self.cube_wrap, x_first, source, to)) for to in cubes}
            cube, side = min(self.attach, key=lambda one: (hops[one[0]], one[0]))
            yield f"io cube{source} cube{cube}.port.{side}"
        for source in range(self.sips):
            for target in range(self.sips):
                there, back = self.over_chips(source, target), self.over_chips(target, source)
                if there:
                    yield " ".join(["request", f"sip{source}", f"sip{target}", *there])
                if there and not self.own:
                    yield " ".join(["response", f"sip{source}", f"sip{target}", *reversed(back)])

    def both(self, grid, wrap, rules, source, target, source_name, target_name):
        """A request, and the response from the same source: the request from the target, backwards."""
        yield " ".join(["request", source_name, target_name, *request(grid, wrap, rules, source, target)])
        if not self.own:
            back = [BACK[side] for side in reversed(request(grid, wrap, rules, target, source))]
            yield " ".join(["response", source_name, target_name, *back])

    def over_chips(self, source, target):
        """The numbers of the links between chips on the way: of all ways that enter no SIP twice, the best."""
        ways = [[(source, "")]]
        for way in ways:
            for number, ((a, *_), (b, *_)) in enumerate(self.chip_links):
                for here, there in ((a, b), (b, a)):
                    if here == way[-1][0] and there not in (sip for sip, _ in way):
                        ways.append([*way, (there, number)])
        found = [way[1:] for way in ways if way[-1][0] == target]
        return [str(number) for _, number in min(found, key=lambda way: (len(way), way))] if found else []


def neighbours(grid, at, sides, wrap="none"):
    row, col = divmod(at, grid[1])
    for side in sides:
        r, c = row + STEP[side][0], col + STEP[side][1]
        closed = wrap == "both" or wrap == ("rows" if side in "ew" else "cols")
        if closed or 0 <= r < grid[0] and 0 <= c < grid[1]:
            yield side, r % grid[0] * grid[1] + c % grid[1]


def along(source, target, cells, closed, direction, up, down):
    """The steps along a row or a column."""
    ways = [[up] * (target - source) if source <= target else [down] * (source - target)]
    if closed:
        ways = [[up] * ((target - source) % cells), [down] * ((source - target) % cells)]
    return {"shortest": min(ways, key=len), "plus": ways[0], "minus": ways[-1]}[direction]


def request(grid, wrap, rules, source, target):
    (row, col), (to_row, to_col) = divmod(source, grid[1]), divmod(target, grid[1])
    order, direction = rules
    by = {"x": along(col, to_col, grid[1], wrap in ("rows", "both"), direction, "e", "w"),
          "y": along(row, to_row, grid[0], wrap in ("cols", "both"), direction, "s", "n")}
    return by[order[0]] + by[order[1]]


MACHINES = {
    "the default cube": Machine(),
    "a router alone": Machine(noc=(1, 1), pes=1, m_cpu=(0, 0), sram=(0, 0)),
    "a router alone with 7 PEs": Machine(noc=(1, 1), pes=7, m_cpu=(0, 0), sram=(0, 0)),
    "a row of routers": Machine(noc=(1, 5), pes=3, m_cpu=(0, 4), sram=(0, 0)),
    "a column of routers": Machine(noc=(6, 1), pes=11, m_cpu=(5, 0), sram=(2, 0)),
    "3 x 5 routers with more PEs than routers": Machine(noc=(3, 5), pes=64),
    "two PEs in opposite corners": Machine(noc=(2, 7), pes=2),
    "12 PEs, and at 6 of them a slice": Machine(pes=12, slices=6),
    "a slice in each of 4 corners, of 10 PEs at routers of their own":
        Machine(noc=(3, 4), pes=10, slices=4, hbm="corners", at=tuple((i // 4, i % 4) for i in range(10))),
    "11 slices in corners, of 3 PEs": Machine(noc=(4, 5), pes=3, slices=11, hbm="corners"),
    "slices at routers of a list, two of them at one, beside PEs in the corners":
        Machine(cubes=(1, 2), pes=5, slices=3, hbm=((1, 2), (1, 2), (3, 0)), sips=2),
    "no HBM and no sram": Machine(cubes=(2, 1), noc=(2, 3), pes=3, slices=0, sram_mb=0),
    "256 PEs and 256 slices": Machine(noc=(16, 16), pes=256),
    "a row of cubes": Machine(cubes=(1, 5), pes=2, attach=((4, "e"),)),
    "a column of cubes": Machine(cubes=(4, 1), pes=1, attach=((3, "w"), (0, "n"))),
    "two SIPs of 2 x 3 cubes with three attachments, two at one cube":
        Machine(cubes=(2, 3), noc=(2, 3), pes=4, sips=2, attach=((5, "s"), (0, "w"), (0, "n"))),
    "two attachments equally near, the lower cube listed last": Machine(cubes=(1, 3), pes=1,
                                                                        attach=((2, "e"), (0, "w"))),
    "rings of routers": Machine(noc=(4, 5), wrap="both"),
    "rings along 3 columns, of a grid of 3 x 2": Machine(noc=(3, 2), pes=3, wrap="cols"),
    "rings along rows, in one direction, Y first":
        Machine(noc=(1, 6), pes=3, m_cpu=(0, 4), sram=(0, 0), wrap="rows", planes=(("yx", "minus"),)),
    "four planes of rings, each with rules of its own":
        Machine(noc=(4, 4), pes=5, wrap="both",
                planes=(("xy", "plus"), ("yx", "shortest"), ("yx", "plus"), ("xy", "minus"))),
    "two planes of an open grid, and answers of their own":
        Machine(cubes=(2, 2), noc=(2, 3), pes=3, planes=(("xy", "shortest"), ("yx", "shortest")), own=True),
    "rings of cubes": Machine(cubes=(3, 4), noc=(2, 2), pes=2, cube_wrap="both", attach=((8, "w"), (1, "n"))),
    "rings along columns of cubes, and along rows of routers":
        Machine(cubes=(5, 2), noc=(3, 3), pes=2, cube_wrap="cols", wrap="rows"),
    "four SIPs linked to a ring, one of its pairs twice":
        Machine(cubes=(1, 2), noc=(2, 2), pes=2, sips=4, links=(
            ((0, 1, "e"), (1, 0, "n")), ((2, 0, "n"), (1, 1, "e")), ((2, 1, "e"), (3, 0, "n")),
            ((3, 1, "e"), (0, 0, "n")), ((1, 0, "s"), (0, 0, "s")))),
    "a line of three SIPs, one apart, rings of cubes at the same sides, and answers of their own":
        Machine(cubes=(3, 3), noc=(2, 2), pes=1, sips=4, cube_wrap="both", own=True, attach=((1, "n"),),
                links=(((0, 0, "w"), (3, 2, "e")), ((3, 6, "s"), (1, 8, "s")))),
    "PEs at explicit places":
        Machine(noc=(3, 3), pes=4, at=((2, 2), (0, 0), (2, 2), (1, 1)), m_cpu=(2, 0), sram=(0, 2)),
    "sixteen by sixteen cubes":
        Machine(cubes=(16, 16), noc=(1, 2), pes=1, m_cpu=(0, 0), sram=(0, 1), attach=((255, "e"),)),
}


def dumped(path, what):
    """The lines of a dump, without its comments."""
    dump = run(KBGEN, path, "--dump", what)
    return [line for line in dump.stdout.splitlines() if not line.startswith("#")], dump


for title, machine in MACHINES.items():
    path = write(scratch("odd.yaml"), machine.topology())
    want, (got, dump) = machine.nodes(), dumped(path, "nodes")
    ok(want == got, f"kbgen has the nodes of {title}", first_difference("\n".join(want), "\n".join(got)), dump.stderr)
    numbered = [line.split(" ", 1) for line in dumped(path, "links")[0] if not line.startswith("- ")]
    want, got = sorted(machine.links()), sorted(link for _, link in numbered)
    ok(want == got, f"kbgen has the links of {title}", first_difference("\n".join(want), "\n".join(got)))
    numbers = [int(number) for number, _ in numbered]
    ok(numbers == sorted(set(numbers)), f"the numbers of the links of {title} rise")
    want, got = sorted(machine.routes()), sorted(dumped(path, "routes")[0])
    ok(want == got, f"kbgen has the routes of {title}", first_difference("\n".join(want), "\n".join(got)))

# ---- within a PE: eleven wires of tiles, the TCM's two links, and who asks whom

INSIDE = """scheduler dma wire, scheduler fetch_store wire, scheduler gemm wire, scheduler math wire, dma fetch_store wire,
fetch_store gemm wire, fetch_store math wire, gemm fetch_store wire, gemm math wire, math fetch_store wire,
fetch_store dma wire, tcm fetch_store tcm, fetch_store tcm tcm, cpu scheduler use, scheduler ipcq use, ipcq dma use,
dma mmu use, dma tcm use, tcm dma use"""
INSIDE = [tuple(link.split()) for link in INSIDE.split(",")]
two_sips = Machine(cubes=(1, 2), pes=3, sips=2)
path = write(scratch("inside.yaml"), two_sips.topology())
lengths = ("--set", "cube.pe_template.links={ dma_to_fetch_store_mm: 3, fetch_store_to_tcm_bw_gbs: 100 }")
listed = run(KBGEN, path, *lengths, "--dump", "links").stdout.splitlines()
times = {("dma", "fetch_store"): "30 ~", ("tcm", "fetch_store"): "0 100000000000",
         ("fetch_store", "tcm"): "0 100000000000"}
want = [f"- {pe}.pe_{a} {pe}.pe_{b} {kind} {times.get((a, b), '0 ~')}"
        for pe in (f"sip{sip}.cube{cube}.pe{pe}" for sip in range(2) for cube in range(2) for pe in range(3))
        for a, b, kind in INSIDE]
got = [line for line in listed if line.startswith("- ")]
ok(want == got, "kbgen has the links within each PE", first_difference("\n".join(want), "\n".join(got)))
graph = run(KBGEN, path, "--dump", "dot").stdout
edges = re.findall(r'"pe(\d)\.pe_(\w+)" -- "pe(\d)\.pe_(\w+)" \[class="(\w+)"', graph)
want = [(str(pe), a, str(pe), b, kind) for pe in range(3) for a, b, kind in INSIDE]
ok(edges == want, "the graph of a machine has the links within each PE", edges)
boxes = set(re.findall(r'"pe(\d)\.(pe_\w+)" \[shape=box\]', graph))
ok(boxes == {(str(pe), part) for pe in range(3) for part in PE_PARTS},
   "the graph of a machine has the nine parts of each PE", sorted(boxes))
done()
