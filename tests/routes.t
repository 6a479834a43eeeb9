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

    def __init__(self, cubes=(1, 1), noc=(4, 4), pes=8, sips=1, attach=((0, "w"),), m_cpu=(0, 1), sram=(1, 1), at=None):
        self.cubes, self.noc, self.pes, self.sips, self.attach = cubes, noc, pes, sips, attach
        self.m_cpu, self.sram, self.at = m_cpu, sram, at

    def topology(self):
        attach = ", ".join(f"{{cube: {cube}, side: {side}}}" for cube, side in self.attach)
        layout = f"{{explicit: {[list(place) for place in self.at]}}}" if self.at else "corners"
        return (f"system: {{name: odd, sips: {self.sips}}}\n"
                f"sip: {{cubes: {{rows: {self.cubes[0]}, cols: {self.cubes[1]}}}, io: {{attach: [{attach}]}}}}\n"
                f"cube:\n  memory_map: {{hbm_slices_per_cube: {self.pes}}}\n"
                f"  noc: {{rows: {self.noc[0]}, cols: {self.noc[1]}}}\n"
                f"  m_cpu: {{at: {list(self.m_cpu)}}}\n  sram: {{at: {list(self.sram)}}}\n  pe_layout: {layout}\n")

    def router_of_pe(self, pe):
        if self.at:
            return tuple(self.at[pe])
        rows, cols = self.noc
        corner = 4 * pe // self.pes
        first = min(p for p in range(self.pes) if 4 * p // self.pes == corner)
        south, east = corner // 2, corner % 2
        near_row, near_col = (rows - 1) * south, (cols - 1) * east
        quadrant = [(r, c) for r in range(rows) for c in range(cols)
                    if abs(r - near_row) < (rows + 1) // 2 and abs(c - near_col) < (cols + 1) // 2]
        quadrant.sort(key=lambda at: (abs(at[0] - near_row) + abs(at[1] - near_col), at))
        return quadrant[(pe - first) % len(quadrant)]

    def attached(self):
        """(name, its router or None) of each node of a cube, in rank order."""
        rows, cols = self.noc
        yield "m_cpu", self.m_cpu
        yield "sram", self.sram
        for r in range(rows):
            for c in range(cols):
                yield f"noc.r{r}c{c}", None
        for side, at in zip("nesw", ((0, cols // 2), (rows // 2, cols - 1), (rows - 1, cols // 2), (rows // 2, 0))):
            yield "port." + side, at
        for pe in range(self.pes):
            yield f"hbm_ctrl.pe{pe}", self.router_of_pe(pe)
        for pe in range(self.pes):
            for part in PE_PARTS:
                yield f"pe{pe}.{part}", self.router_of_pe(pe) if part in ON_ROUTER else None

    def nodes(self):
        lines = ["host", "switch"]
        for sip in range(self.sips):
            lines += [f"sip{sip}.pcie_ep", f"sip{sip}.io_cpu"]
            for cube in range(self.cubes[0] * self.cubes[1]):
                for name, at in self.attached():
                    lines.append(f"sip{sip}.cube{cube}.{name}" + (f" noc.r{at[0]}c{at[1]}" if at else ""))
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
                for side, next_cube in neighbours(self.cubes, cube, "es"):
                    yield here + "port." + side, f"{sip}.cube{next_cube}.port.{BACK[side]}", "ucie"
                for router in range(self.noc[0] * self.noc[1]):
                    for _, other in neighbours(self.noc, router, "es"):
                        yield here + self.router(router), here + self.router(other), "noc"
                for name, at in self.attached():
                    if at:
                        yield here + name, f"{here}noc.r{at[0]}c{at[1]}", "attach"

    def links(self):
        figures = {"pcie": "250000 64000000000", "io": "10000 64000000000", "ucie": "4000 512000000000",
                   "noc": "20 256000000000", "attach": "5 256000000000"}
        for one, other, kind in self.pairs():
            yield f"{one} {other} {kind} {figures[kind]}"
            yield f"{other} {one} {kind} {figures[kind]}"

    def router(self, number):
        return "noc.r%dc%d" % divmod(number, self.noc[1])

    def routes(self):
        targets = sorted({at for _, at in self.attached() if at})
        for source in range(self.noc[0] * self.noc[1]):
            for target in (row * self.noc[1] + col for row, col in targets):
                yield from both(self.noc, source, target, self.router(source), self.router(target))
        cubes = range(self.cubes[0] * self.cubes[1])
        for source in cubes:
            for target in cubes:
                yield from both(self.cubes, source, target, f"cube{source}", f"cube{target}")
            cube, side = min(self.attach, key=lambda one: (len(request(self.cubes, source, one[0])), one[0]))
            yield f"io cube{source} cube{cube}.port.{side}"


def neighbours(grid, at, sides):
    row, col = divmod(at, grid[1])
    for side in sides:
        r, c = row + STEP[side][0], col + STEP[side][1]
        if 0 <= r < grid[0] and 0 <= c < grid[1]:
            yield side, r * grid[1] + c


def request(grid, source, target):
    """X first, then Y."""
    (row, col), (to_row, to_col) = divmod(source, grid[1]), divmod(target, grid[1])
    return ["e" if col < to_col else "w"] * abs(to_col - col) + ["s" if row < to_row else "n"] * abs(to_row - row)


def both(grid, source, target, source_name, target_name):
    """A request, and the response from the same source: the request from the target, backwards."""
    yield " ".join(["request", source_name, target_name, *request(grid, source, target)])
    yield " ".join(["response", source_name, target_name, *[BACK[s] for s in reversed(request(grid, target, source))]])


MACHINES = {
    "the default cube": Machine(),
    "a router alone": Machine(noc=(1, 1), pes=1, m_cpu=(0, 0), sram=(0, 0)),
    "a router alone with 7 PEs": Machine(noc=(1, 1), pes=7, m_cpu=(0, 0), sram=(0, 0)),
    "a row of routers": Machine(noc=(1, 5), pes=3, m_cpu=(0, 4), sram=(0, 0)),
    "a column of routers": Machine(noc=(6, 1), pes=11, m_cpu=(5, 0), sram=(2, 0)),
    "3 x 5 routers with more PEs than routers": Machine(noc=(3, 5), pes=64),
    "two PEs in opposite corners": Machine(noc=(2, 7), pes=2),
    "a row of cubes": Machine(cubes=(1, 5), pes=2, attach=((4, "e"),)),
    "a column of cubes": Machine(cubes=(4, 1), pes=1, attach=((3, "w"), (0, "n"))),
    "two SIPs of 2 x 3 cubes with three attachments, two at one cube":
        Machine(cubes=(2, 3), noc=(2, 3), pes=4, sips=2, attach=((5, "s"), (0, "w"), (0, "n"))),
    "two attachments equally near, the lower cube listed last": Machine(cubes=(1, 3), pes=1,
                                                                        attach=((2, "e"), (0, "w"))),
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
