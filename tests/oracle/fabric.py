"""fabric: nodes in rank order, links, and the two kinds of message."""
import itertools

from routes import OPPOSITE, Routes, router
from simulation import MESSAGE, Channel
from units import move_ps

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


class Fabric:
    def __init__(self, sim, topo):
        self.sim, self.topo = sim, topo
        self.nodes, self.links, self.paths = {}, {}, {}
        self.add("host", topo.part("system.host"))
        self.add("switch", topo.part("system.switch"))
        for sip in range(topo.sips):
            self.add_sip(sip)
        pcie = topo.part("system.pcie")
        self.join("pcie", "host", "switch", pcie.rate("bw_gbs"), pcie.ps("latency_ns"))
        for sip in range(topo.sips):
            self.join("pcie", "switch", f"sip{sip}.pcie_ep", pcie.rate("bw_gbs"), pcie.ps("latency_ns"))
            self.join_sip(sip)
        for one in topo.chip_links:
            self.join("chip", one.a, one.b, one.rate, one.latency)
        self.routes = Routes(topo, self.nodes)

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
        for kind in ("m_cpu", "sram") if topo.has_sram else ("m_cpu",):
            at = topo.part("cube." + kind).place("at")
            self.add(f"{name}.{kind}", topo.part(f"cube.{kind}.attrs"), at=at, **place)
        for plane, r, c in itertools.product(range(len(topo.planes)), range(topo.rows), range(topo.cols)):
            self.add(router(name, plane, r, c), topo.part("cube.noc.router"), at=(r, c), **place)
        for side in "nesw":
            self.add(f"{name}.port.{side}", topo.part("cube.port"), at=topo.ports[side], **place)
        for s, at in enumerate(topo.slice_routers):
            self.add(f"{name}.hbm_ctrl.pe{s}", topo.part("cube.hbm_ctrl.attrs"), at=at, **place)
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
        for (r, c), other, along_row, _ in topo.cube_grid.neighbours():
            side = "e" if along_row else "s"
            a, b = (f"sip{sip}.cube{row * topo.cube_cols + col}.port" for row, col in ((r, c), other))
            self.join("ucie", f"{a}.{side}", f"{b}.{OPPOSITE[side]}", ucie.rate("bw_gbs"), ucie.ps("latency_ns"))

    def join_cube(self, name):
        topo, noc, attach = self.topo, self.topo.part("cube.noc"), self.topo.part("cube.noc.attach")
        hung = ["m_cpu"] + ["sram"] * topo.has_sram + ["port." + side for side in "nesw"]
        hung += [f"hbm_ctrl.pe{s}" for s in range(topo.slices)]
        for p in range(topo.pes):
            hung += [f"pe{p}.pe_dma", f"pe{p}.pe_cpu", f"pe{p}.pe_mmu"]
        for plane in range(len(topo.planes)):
            for at, other, _, pitches in topo.router_grid.neighbours():
                self.join("noc", router(name, plane, *at), router(name, plane, *other), noc.rate("link_bw_gbs"),
                          noc.wire_ps("pitch_mm", pitches))
            for one in hung:
                at = self.nodes[f"{name}.{one}"].at
                self.join("attach", f"{name}.{one}", router(name, plane, *at), attach.rate("bw_gbs"),
                          attach.wire_ps("length_mm"))

    # ---- routes

    def route(self, a, b, carries=None):
        """The way of a control message, or of data: of a `read`, a `write` or a `message`."""
        return self.path(a, b, self.topo.plane_of[carries])

    def answer(self, path, carries=None):
        """The way of the answer to a request that went along a path."""
        a, b, plane = path.names[0], path.names[-1], self.topo.plane_of[carries]
        return self.path(b, a, plane) if self.topo.own_response else self.path(a, b, plane, back=True)

    def path(self, a, b, plane, back=False):
        which = a, b, plane, back
        if which not in self.paths:
            names = self.routes.find(self.nodes[a], self.nodes[b], plane)
            self.paths[which] = Path(self, names[::-1] if back else names)
        return self.paths[which]

    # ---- messages

    def control(self, path, leaves, delivered, kind="control"):
        """Calls `delivered` when a message without payload that leaves then has come to the end of its path."""
        self.sim.at(leaves.along(path, kind), path.nodes[-1], MESSAGE, path.nodes[0].next_key(), delivered)

    def data(self, path, size, leaves, head, stream=(), departed=None):
        """Sends a message of some bytes: `departed` is called with the moment at which the first link is done with it,
        `head` when its head is at the last node, with the moment d at which it is done there, that of delivery, and
        the message's key."""
        self.multicast([(path, head)], size, leaves, stream, departed)

    def multicast(self, ends, size, leaves, stream=(), departed=None):
        """One message to several ends, (path, head) each, from one node; where paths have come together, heads are
        called in their order."""
        message = Data(self.sim, ends, size, stream, departed)
        self.later(leaves, message.source, message.key, message.depart)

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
    """Its paths are a tree: where they part, the head goes on over each link."""

    def __init__(self, sim, ends, size, stream, departed):
        self.sim, self.ends, self.size, self.stream, self.departed = sim, ends, size, stream, departed
        self.source = ends[0][0].nodes[0]
        self.key = self.source.next_key()

    def depart(self):
        done = self.send(0, self.sim.moment, self.ends)
        if self.departed:
            self.departed(done)

    def send(self, i, ready, ends):
        """On to the nodes i + 1 of some ends, by rank; returns when the first link is done with the message."""
        done = []
        by_rank = sorted(ends, key=lambda end: end[0].nodes[i + 1].rank)
        for node, group in itertools.groupby(by_rank, key=lambda end: end[0].nodes[i + 1]):
            group = list(group)
            link = group[0][0].links[i]
            start, end = link.reserve(ready, move_ps(self.size, link.rate), self.size)
            self.sim.at(start.then(link.latency, "wire", link.name), node, MESSAGE, self.key,
                        lambda group=group: self.arrive(i + 1, group))
            done.append(end)
        return done[0]

    def arrive(self, i, ends):
        node = ends[0][0].nodes[i]
        _, done = node.reserve(self.sim.moment, node.overhead, self.size)
        here, on = ([end for end in ends if (len(end[0].nodes) == i + 1) == ended] for ended in (True, False))
        assert not (here and on), "a message ends where no other passes"
        if on:
            self.send(i, done, on)
        for path, head in here:
            head(done, self.delivery(path, done), self.key)

    def delivery(self, path, done):
        """When all bytes are there: the narrowest link drains them, or the memory that they come from feeds them."""
        drain = move_ps(self.size, path.rate)
        if sum(part.ps for part in self.stream) > drain:
            return self.fed(done)
        return done.then(drain, "link", path.narrowest.name)

    def fed(self, done):
        """As the memory feeds it; what that does for others in between holds up whoever comes next."""
        mine = done.owner
        for part, follows in zip(self.stream, [*self.stream[1:], None]):
            if part.for_other:
                done = done.of(part.owner).then(part.ps, part.kind, self.source.name)
                done = done if part.edge == "direct" else done.over(part.edge)
                done = done.of(follows.owner if follows.for_other else mine)
            else:
                done = done.then(part.ps, part.kind, self.source.name)
        return done
