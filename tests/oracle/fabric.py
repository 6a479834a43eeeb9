"""fabric: nodes in rank order, links, fixed routes, and the two kinds of message."""
from simulation import MESSAGE, Channel
from units import move_ps

OPPOSITE = {"n": "s", "s": "n", "e": "w", "w": "e"}
PE_PARTS = ("pe_cpu", "pe_scheduler", "pe_dma", "pe_fetch_store", "pe_gemm", "pe_math", "pe_tcm", "pe_mmu", "pe_ipcq")


class Node(Channel):
    """It handles one head at a time."""

    def __init__(self, name, rank, overhead, sip=None, cube=None, at=None):
        super().__init__("node", name)
        self.rank, self.overhead = rank, overhead
        self.sip, self.cube, self.at = sip, cube, at
        self.messages = 0           # the number of its next message

    def next_key(self):
        self.messages += 1
        return (self.rank, self.messages - 1)


class Link(Channel):
    def __init__(self, links, name, rate, latency):
        super().__init__("link", name)
        self.links, self.rate, self.latency = links, rate, max(1, latency)


class Path:
    def __init__(self, fabric, names):
        self.fabric, self.names = fabric, names
        self.nodes = [fabric.nodes[name] for name in names]
        self.links = [fabric.links[pair] for pair in zip(names, names[1:])]
        self.latency = sum(link.latency for link in self.links) + sum(node.overhead for node in self.nodes[1:])
        self.narrowest = min(self.links, key=lambda link: (link.rate is None, link.rate))
        self.rate = self.narrowest.rate

    def back(self):
        return Path(self.fabric, self.names[::-1])


class Fabric:
    def __init__(self, sim, topo):
        self.sim, self.topo = sim, topo
        self.nodes, self.links, self.routes = {}, {}, {}
        self.add("host", topo.part("system.host"))
        self.add("switch", topo.part("system.switch"))
        for sip in range(topo.sips):
            self.add_sip(sip)
        pcie = topo.part("system.pcie")
        self.join("pcie", "host", "switch", pcie.rate("bw_gbs"), pcie.ps("latency_ns"))
        for sip in range(topo.sips):
            self.join("pcie", "switch", f"sip{sip}.pcie_ep", pcie.rate("bw_gbs"), pcie.ps("latency_ns"))
            self.join_sip(sip)

    # ---- elaboration

    def add(self, name, part, **place):
        overhead = part.ps("overhead_ns") if "overhead_ns" in part.values else 0
        self.nodes[name] = Node(name, len(self.nodes), overhead, **place)

    def add_sip(self, sip):
        topo = self.topo
        for kind in ("pcie_ep", "io_cpu"):
            self.add(f"sip{sip}.{kind}", topo.part("sip." + kind), sip=sip)
        for cube in range(topo.cube_rows * topo.cube_cols):
            self.add_cube(sip, cube)

    def add_cube(self, sip, cube):
        topo, name = self.topo, f"sip{sip}.cube{cube}"
        place = {"sip": sip, "cube": cube}
        for kind in ("m_cpu", "sram"):
            at = topo.part("cube." + kind).place("at")
            self.add(f"{name}.{kind}", topo.part(f"cube.{kind}.attrs"), at=at, **place)
        for r in range(topo.rows):
            for c in range(topo.cols):
                self.add(f"{name}.noc.r{r}c{c}", topo.part("cube.noc.router"), at=(r, c), **place)
        for side in "nesw":
            self.add(f"{name}.port.{side}", topo.part("cube.port"), at=topo.ports[side], **place)
        for p, at in enumerate(topo.routers):
            self.add(f"{name}.hbm_ctrl.pe{p}", topo.part("cube.hbm_ctrl.attrs"), at=at, **place)
        for p, at in enumerate(topo.routers):
            for kind in PE_PARTS:
                self.add(f"{name}.pe{p}.{kind}", topo.pe(kind), at=at, **place)

    def join(self, kind, a, b, rate, latency):
        for one, other in ((a, b), (b, a)):
            self.links[one, other] = Link(kind, f"{one} -> {other}", rate, latency)

    def join_sip(self, sip):
        topo, io, ucie = self.topo, self.topo.part("sip.io"), self.topo.part("sip.ucie")
        self.join("io", f"sip{sip}.pcie_ep", f"sip{sip}.io_cpu", io.rate("bw_gbs"), io.ps("latency_ns"))
        for cube, side in topo.attach:
            self.join("io", f"sip{sip}.io_cpu", f"sip{sip}.cube{cube}.port.{side}", io.rate("bw_gbs"),
                      io.ps("latency_ns"))
        for cube in range(topo.cube_rows * topo.cube_cols):
            self.join_cube(f"sip{sip}.cube{cube}")
            for side, other in (("e", cube + 1), ("s", cube + topo.cube_cols)):
                if (cube % topo.cube_cols + 1 < topo.cube_cols) if side == "e" else (
                        cube // topo.cube_cols + 1 < topo.cube_rows):
                    self.join("ucie", f"sip{sip}.cube{cube}.port.{side}",
                              f"sip{sip}.cube{other}.port.{OPPOSITE[side]}", ucie.rate("bw_gbs"),
                              ucie.ps("latency_ns"))

    def join_cube(self, name):
        topo, noc, attach = self.topo, self.topo.part("cube.noc"), self.topo.part("cube.noc.attach")
        for r in range(topo.rows):
            for c in range(topo.cols):
                for other in ((r, c + 1), (r + 1, c)):
                    if other[0] < topo.rows and other[1] < topo.cols:
                        self.join("noc", f"{name}.noc.r{r}c{c}", f"{name}.noc.r{other[0]}c{other[1]}",
                                  noc.rate("link_bw_gbs"), noc.wire_ps("pitch_mm"))
        hung = ["m_cpu", "sram"] + ["port." + side for side in "nesw"]
        for p in range(topo.pes):
            hung += [f"hbm_ctrl.pe{p}", f"pe{p}.pe_dma", f"pe{p}.pe_cpu", f"pe{p}.pe_mmu"]
        for one in hung:
            r, c = self.nodes[f"{name}.{one}"].at
            self.join("attach", f"{name}.{one}", f"{name}.noc.r{r}c{c}", attach.rate("bw_gbs"), attach.wire_ps("length_mm"))

    # ---- routes

    def route(self, a, b):
        if (a, b) not in self.routes:
            self.routes[a, b] = Path(self, self.find(self.nodes[a], self.nodes[b]))
        return self.routes[a, b]

    def find(self, a, b):
        if a.cube is not None and b.cube is not None and a.sip == b.sip:
            return [a.name] + self.across(a.sip, a.cube, a.at, b.cube, b.at) + [b.name]
        up = [f"sip{a.sip}.io_cpu", f"sip{a.sip}.pcie_ep", "switch"]
        if a.name == "host":
            up = ["host", "switch"]
        elif a.cube is not None:
            cube, side = self.attached(a.cube)
            up = [a.name, *self.across(a.sip, a.cube, a.at, cube, self.topo.ports[side]),
                  f"sip{a.sip}.cube{cube}.port.{side}", *up]
        down = [f"sip{b.sip}.pcie_ep", f"sip{b.sip}.io_cpu"]
        if b.cube is not None:
            cube, side = self.attached(b.cube)
            down += [f"sip{b.sip}.cube{cube}.port.{side}",
                     *self.across(b.sip, cube, self.topo.ports[side], b.cube, b.at), b.name]
        if a.sip == b.sip:                      # from an io_cpu into its own SIP
            return [a.name] + down[2:]
        return up + down

    def attached(self, cube):
        """The attachment that a cube uses; min takes the first listed of equal ones."""
        cols = self.topo.cube_cols
        def hops(other):
            return abs(other // cols - cube // cols) + abs(other % cols - cube % cols)
        return min(self.topo.attach, key=lambda one: (hops(one[0]), one[0]))

    def across(self, sip, cube, at, to_cube, to_at):
        """The routers and ports from a router to another, over cubes and inside each: X first, then Y."""
        names, cols = [], self.topo.cube_cols
        while cube != to_cube:
            if cube % cols != to_cube % cols:
                side, step = ("e", 1) if to_cube % cols > cube % cols else ("w", -1)
            else:
                side, step = ("s", cols) if to_cube > cube else ("n", -cols)
            names += self.inside(sip, cube, at, self.topo.ports[side]) + [f"sip{sip}.cube{cube}.port.{side}"]
            cube, at = cube + step, self.topo.ports[OPPOSITE[side]]
            names.append(f"sip{sip}.cube{cube}.port.{OPPOSITE[side]}")
        return names + self.inside(sip, cube, at, to_at)

    @staticmethod
    def inside(sip, cube, at, to):
        (r, c), places = at, [at]
        while c != to[1]:
            c += 1 if c < to[1] else -1
            places.append((r, c))
        while r != to[0]:
            r += 1 if r < to[0] else -1
            places.append((r, c))
        return [f"sip{sip}.cube{cube}.noc.r{r}c{c}" for r, c in places]

    # ---- messages

    def control(self, path, leaves, delivered, kind="control"):
        """Calls `delivered` when a message without payload that leaves then has come to the end of its path."""
        self.sim.at(leaves.along(path, kind), path.nodes[-1], MESSAGE, path.nodes[0].next_key(), delivered)

    def data(self, path, size, leaves, head, stream=(), departed=None):
        """Sends a message of some bytes: `departed` is called with the moment at which the first link is done with it,
        `head` when its head is at the last node, with the moment d at which it is done there, that of delivery, and
        the message's key."""
        message = Data(self.sim, path, size, stream, head, departed)
        self.later(leaves, path.nodes[0], message.key, message.depart)

    def deliver(self, path, size, leaves, delivered, stream=()):
        """Sends a message of some bytes, and calls `delivered` when all of it is there."""
        self.data(path, size, leaves, lambda _, when, key: self.later(when, path.nodes[-1], key, delivered), stream)

    def later(self, moment, node, key, effect):
        """An event of a message, in place if it is due at once."""
        if moment.time > self.sim.now:
            self.sim.at(moment, node, MESSAGE, key, effect)
        else:
            self.sim.happen(moment, effect)


class Data:
    def __init__(self, sim, path, size, stream, head, departed):
        self.sim, self.path, self.size, self.stream = sim, path, size, stream
        self.head, self.departed = head, departed
        self.key = path.nodes[0].next_key()

    def depart(self):
        done = self.send(0, self.sim.moment)
        if self.departed:
            self.departed(done)

    def send(self, i, ready):
        """On to node i + 1; returns when the link is done with the message."""
        link = self.path.links[i]
        start, end = link.reserve(ready, move_ps(self.size, link.rate), self.size)
        self.sim.at(start.then(link.latency, "wire", link.name), self.path.nodes[i + 1], MESSAGE, self.key,
                    lambda: self.arrive(i + 1))
        return end

    def arrive(self, i):
        node = self.path.nodes[i]
        _, done = node.reserve(self.sim.moment, node.overhead, self.size)
        if i + 1 < len(self.path.nodes):
            self.send(i, done)
        else:
            self.head(done, self.delivery(done), self.key)

    def delivery(self, done):
        """When all bytes are there: the narrowest link drains them, or the memory that they come from feeds them."""
        drain = move_ps(self.size, self.path.rate)
        if sum(ps for ps, *_ in self.stream) > drain:
            for ps, kind, other in self.stream:
                done = self.fed(done, ps, kind, other)
            return done
        return done.then(drain, "link", self.path.narrowest.name)

    def fed(self, done, ps, kind, other):
        """After a part of the time that a memory takes; if it serves another one then, that has held up this one."""
        name = self.path.nodes[0].name
        if not other:
            return done.then(ps, kind, name)
        return done.of(other.owner).then(ps, kind, name).over("pseudo_channel").of(done.owner)
