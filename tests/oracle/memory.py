"""memory: HBM slices, srams and TCMs as they answer requests, and physical addresses."""
from typing import NamedTuple

from cause import Owner, latest
from simulation import Channel
from units import move_ps

HBM, TCM, SRAM = 0, 1, 2
SPACES = {"hbm": HBM, "tcm": TCM, "sram": SRAM}
OFFSETS = 1 << 36


def physical(space, sip, cube, pe, offset):
    return pe << 56 | sip << 48 | cube << 40 | space << 36 | offset


def plus(address, more):
    """Added to the offset field, without carry."""
    return address - address % OFFSETS + (address + more) % OFFSETS


class Part(NamedTuple):
    """Of the time in which a memory feeds a response: what kind of work, and if that is done for another request, for whom,
    and over which edge it leads to what follows."""
    ps: int
    kind: str
    for_other: bool = False
    owner: Owner | None = None
    edge: str = "direct"


def held(moment, since):
    """What a pseudo channel did for others from a time up to a moment."""
    parts = []
    while moment.time > since:
        work = moment.work
        parts.append(Part(moment.time - max(since, work.since.time), "row" if work.kind == "row" else "stream",
                          True, work.since.owner, moment.edge))
        moment = work.since
    return parts[::-1]


class Hbm:
    def __init__(self, node, part, size):
        self.node, self.low, self.size = node, 0, size
        self.pieces, self.row = part.bytes("interleave_bytes"), part.bytes("row_bytes")
        self.rate, self.access, self.miss = part.rate("pc_bw_gbs"), part.ps("access_ns"), part.ps("row_miss_ns")
        self.channels = [Channel("pseudo_channel", f"{node.name} {i}") for i in range(part.count("pcs"))]
        self.open = [None] * len(self.channels)
        self.moved = {"read": 0, "write": 0}

    def named(self):
        """(name, channel) of each."""
        return [(str(i), channel) for i, channel in enumerate(self.channels)]

    def spans(self, a, n):
        """{pseudo channel: [bytes, first local address, last]} of bytes [a, a+n)."""
        spans = {}
        while n:
            inside = a % self.pieces
            size = min(n, self.pieces - inside)
            local = a // self.pieces // len(self.channels) * self.pieces + inside
            span = spans.setdefault(a // self.pieces % len(self.channels), [0, local, local])
            span[0] += size
            span[2] = local + size - 1
            a, n = a + size, n - size
        return spans

    def reserve(self, a, n, when):
        starts, ends, changes = [], [], []
        for p, (size, low, high) in sorted(self.spans(a, n).items()):
            first, last = low // self.row, high // self.row
            misses = last - first + 1 - (self.open[p] == first)
            self.open[p] = last
            change = misses * self.miss
            start, end = self.channels[p].reserve(when, change + move_ps(size, self.rate), size, change)
            starts.append(start)
            ends.append(end)
            changes.append(change)
        first, last = min(starts, key=lambda start: start.time), latest(*ends)
        of_last = ends.index(last)
        start, rows = starts[of_last], changes[of_last]
        stream = *held(start, first.time), Part(rows, "row"), Part(last.time - start.time - rows, "stream")
        return first, last, stream

    def read(self, a, n, when):
        """-> when the response leaves, and the parts of its stream."""
        self.moved["read"] += n
        first, _, stream = self.reserve(a, n, when)
        return first.then(self.access, "access", self.node.name), stream

    def write(self, a, n, head, delivered):
        """-> when the write is done."""
        self.moved["write"] += n
        return latest(delivered, self.reserve(a, n, head)[1])


class Ports:
    """A memory of one read and one write channel: an sram; a TCM, which outsiders reach after its overhead."""

    def __init__(self, node, name, part, size, low=0, overhead=0):
        self.node, self.low, self.size, self.overhead = node, low, size, overhead
        self.name = name
        self.reading, self.writing = (Channel("channel", f"{name} {which}") for which in ("read", "write"))
        self.read_rate, self.write_rate = part.rate("read_bw_gbs"), part.rate("write_bw_gbs")

    @property
    def moved(self):
        return {which: channel.usage.size for which, channel in self.named()}

    def named(self):
        return [("read", self.reading), ("write", self.writing)]

    def read(self, _, n, when):
        asked = when.then(self.overhead, "node", self.name)
        start, end = self.reading.reserve(asked, move_ps(n, self.read_rate), n)
        return start, [Part(end.time - start.time, "stream")]

    def write(self, _, n, head, delivered):
        asked = head.then(self.overhead, "node", self.name)
        return latest(delivered, self.writing.reserve(asked, move_ps(n, self.write_rate), n)[1])

    def reserve_read(self, n, when):
        return self.reading.reserve(when, move_ps(n, self.read_rate), n)[1]

    def reserve_write(self, n, when):
        return self.writing.reserve(when, move_ps(n, self.write_rate), n)[1]


class Memories:
    """All of a machine's memories by what names them in an address."""

    def __init__(self, topo, nodes):
        self.found = {}
        sizes = topo.part("cube.memory_map")
        tcm, low = topo.pe("pe_tcm"), topo.pe("pe_tcm").bytes("reserved_mb")
        for sip in range(topo.sips):
            for cube in range(topo.cube_rows * topo.cube_cols):
                name = f"sip{sip}.cube{cube}"
                if topo.has_sram:
                    self.found[SRAM, sip, cube, 0] = Ports(nodes[name + ".sram"], name + ".sram",
                                                           topo.part("cube.sram.attrs"), sizes.bytes("sram_mb"))
                for s in range(topo.slices):
                    self.found[HBM, sip, cube, s] = Hbm(nodes[f"{name}.hbm_ctrl.pe{s}"],
                                                        topo.part("cube.hbm_ctrl.attrs"), sizes.bytes("hbm_slice_mb"))
                for p in range(topo.pes):
                    self.found[TCM, sip, cube, p] = Ports(nodes[f"{name}.pe{p}.pe_dma"], f"{name}.pe{p}.pe_tcm",
                                                          tcm, tcm.bytes("size_mb"), low, tcm.ps("overhead_ns"))

    def resolve(self, address, n):
        """-> (memory, offset), or None for a bad address."""
        offset = address % OFFSETS
        memory = self.found.get((address >> 36 & 15, address >> 48 & 255, address >> 40 & 255, address >> 56 & 255))
        return (memory, offset) if memory and memory.low <= offset and offset + n <= memory.size else None
