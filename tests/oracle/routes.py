"""routes: which nodes lie on the way from one to another: within a cube, over cubes, over links between chips, or through
the host's switch."""
import heapq

SIDES = {(True, 1): "e", (True, -1): "w", (False, 1): "s", (False, -1): "n"}        # (along a row, step)
OPPOSITE = {"n": "s", "s": "n", "e": "w", "w": "e"}


class Line:
    """The places of a row or column, which may be closed to a ring."""

    def __init__(self, count, closed):
        self.count, self.closed = count, closed

    def links(self):
        """(from, to, how many pitches long)"""
        yield from ((at, at + 1, 1) for at in range(self.count - 1))
        if self.closed:
            yield self.count - 1, 0, self.count - 1

    def step(self, at, to, direction="shortest"):
        """1 or -1: which way to go."""
        if direction != "shortest":
            return 1 if direction == "plus" else -1
        if not self.closed:
            return 1 if to > at else -1
        return 1 if (to - at) % self.count <= (at - to) % self.count else -1

    def hops(self, a, b):
        there = (b - a) % self.count
        return min(there, self.count - there) if self.closed else abs(b - a)

    def walk(self, at, to, direction):
        """The places after the first."""
        while at != to:
            at = (at + self.step(at, to, direction)) % self.count
            yield at


class Grid:
    def __init__(self, rows, cols, wrap):
        self.row = Line(cols, wrap in ("rows", "both"))
        self.col = Line(rows, wrap in ("cols", "both"))

    def neighbours(self):
        """((row, column), (row, column) in the increasing direction, whether in one row, how many pitches apart)"""
        for r in range(self.col.count):
            yield from (((r, a), (r, b), True, pitches) for a, b, pitches in self.row.links())
        for c in range(self.row.count):
            yield from (((a, c), (b, c), False, pitches) for a, b, pitches in self.col.links())

    def hops(self, a, b):
        return self.col.hops(a[0], b[0]) + self.row.hops(a[1], b[1])

    def step(self, a, b):
        """X first, then Y: (along the row?, 1 or -1)"""
        return (True, self.row.step(a[1], b[1])) if a[1] != b[1] else (False, self.col.step(a[0], b[0]))

    def walk(self, a, b, order, direction):
        """All places from a to b, in one dimension after the other."""
        places = [a]
        for dimension in order:
            r, c = places[-1]
            if dimension == "x":
                places += [(r, col) for col in self.row.walk(c, b[1], direction)]
            else:
                places += [(row, c) for row in self.col.walk(r, b[0], direction)]
        return places


class Routes:
    def __init__(self, topo, nodes):
        self.topo, self.nodes = topo, nodes
        self.joins = {}                                         # sip -> [(sip, number of the link, port, port there)]
        for number, one in enumerate(topo.chip_links):
            for near, far in ((one.a, one.b), (one.b, one.a)):
                near, far = nodes[near], nodes[far]
                self.joins.setdefault(near.sip, []).append((far.sip, number, near, far))

    def find(self, a, b, plane):
        """The names of the nodes from one to another."""
        if a.cube is not None and b.cube is not None:
            if a.sip == b.sip:
                return self.within(a, b, plane)
            if moves_data(a) and moves_data(b):
                hops = self.over_chips(a.sip, b.sip)
                if hops:
                    return self.along(a, hops, b, plane)
        up = stem(a)[::-1]
        if a.cube is not None:
            up = self.within(a, self.attached(a), plane) + up
        down = stem(b)
        if b.cube is not None:
            down += self.within(self.attached(b), b, plane)
        turn = next(name for name in up if name in down)
        return up[:up.index(turn)] + down[down.index(turn):]

    def along(self, a, hops, b, plane):
        names = []
        for _, _, port, there in hops:
            names += self.within(a, port, plane)
            a = there
        return names + self.within(a, b, plane)

    def over_chips(self, sip, to):
        """The hops over links between chips: of the shortest ways the first by (SIP, number of the link); none if there
        is no way."""
        ways, seen = [(0, [], sip, [])], set()
        while ways:
            count, rank, at, hops = heapq.heappop(ways)
            if at == to:
                return hops
            if at not in seen:
                seen.add(at)
                for hop in self.joins.get(at, []):
                    heapq.heappush(ways, (count + 1, rank + [hop[:2]], hop[0], hops + [hop]))
        return []

    def place(self, cube):
        """Of a cube in the grid."""
        return divmod(cube, self.topo.cube_cols)

    def attached(self, node):
        """The port by which a node's cube reaches io_cpu; min takes the first listed of equal ones."""
        def rank(one):
            return self.topo.cube_grid.hops(self.place(one[0]), self.place(node.cube)), one[0]
        cube, side = min(self.topo.attach, key=rank)
        return self.nodes[f"sip{node.sip}.cube{cube}.port.{side}"]

    def within(self, a, b, plane):
        """In a SIP, over cubes and inside each."""
        names, grid = [], self.topo.cube_grid
        while a.cube != b.cube:
            (r, c), step = self.place(a.cube), grid.step(self.place(a.cube), self.place(b.cube))
            side = SIDES[step]
            names += self.inside(a, self.nodes[f"sip{a.sip}.cube{a.cube}.port.{side}"], plane)
            r, c = (r, (c + step[1]) % grid.row.count) if step[0] else ((r + step[1]) % grid.col.count, c)
            a = self.nodes[f"sip{a.sip}.cube{r * self.topo.cube_cols + c}.port.{OPPOSITE[side]}"]
        return names + self.inside(a, b, plane)

    def inside(self, a, b, plane):
        """In a cube, over the routers of a plane. What leaves by the port that it entered by needs none."""
        if a is b:
            return [a.name]
        order, direction = self.topo.planes[plane]
        walk = self.topo.router_grid.walk(a.at, b.at, order, direction)
        return [a.name, *(router(f"sip{a.sip}.cube{a.cube}", plane, *at) for at in walk), b.name]


def stem(node):
    """From the host to a node, or to the io_cpu of its SIP."""
    names = ["host", "switch", f"sip{node.sip}.pcie_ep", f"sip{node.sip}.io_cpu"]
    return names if node.name not in names else names[:names.index(node.name) + 1]


def moves_data(node):
    """Whether it is a pe_dma or a memory."""
    return any(word in node.name for word in (".pe_dma", ".sram", ".hbm_ctrl."))


def router(cube, plane, r, c):
    return f"{cube}.noc.p{plane}.r{r}c{c}" if plane else f"{cube}.noc.r{r}c{c}"
