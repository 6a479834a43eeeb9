"""dma: the services of DMA_READ and DMA_WRITE: translation, requests for the runs of memory, and the end with the last
of them."""
from cause import START, latest
from mmu import Fault
from simulation import SERVICE_END
from units import move_ps


class Limits:
    """What pe_dma asks of the requests of a service; None is no limit."""

    def __init__(self, part):
        self.rates = {"DMA_READ": part.rate("rd_bw_gbs"), "DMA_WRITE": part.rate("wr_bw_gbs")}
        self.size, self.in_flight = part.limit("max_request_bytes"), part.limit("requests_in_flight")
        self.gap_ps = part.ps("request_ns")

    def pieces(self, offset, n):
        """(offset, bytes) of the requests for a run."""
        end = offset + n
        while offset < end:
            cut = end if self.size is None else min(end, offset - offset % self.size + self.size)
            yield offset, cut - offset
            offset = cut


class Service:
    """A DMA under way: of its runs and requests, `left` are not done; it ends with the last, not before the cap on its
    rate."""

    def __init__(self, pe, server, token):
        self.pe, self.server, self.token = pe, server, token
        self.begun, self.size = pe.sim.moment, 0
        self.left, self.done = 0, START
        self.held, self.under_way, self.last = [], 0, None      # requests that have not left; when the last one leaves

    # ---- what it consists of

    def copies(self, n, when):
        """A run in the PE's own TCM."""
        self.size += n
        read, write = self.pe.tcm.reserve_read(n, when), self.pe.tcm.reserve_write(n, when)
        self.done = latest(write, read, self.done)

    def asks(self, send, memory, offset, n, ready):
        """A run in another memory: `send` is called with each request for it and the moment at which it leaves."""
        self.size += n
        for piece in self.pe.limits.pieces(offset, n):
            self.left += 1
            self.held.append((lambda when, piece=piece: send(self, memory, *piece, when), ready))

    def starts(self):
        """All is known that it consists of: the first requests leave."""
        self.left += 1
        most = self.pe.limits.in_flight
        for _ in range(len(self.held) if most is None else min(most, len(self.held))):
            self.next_leaves()
        self.part_done()

    def next_leaves(self, *answered):
        send, ready = self.held.pop(0)
        gap = [self.last.then(self.pe.limits.gap_ps, "engine", self.pe.node("dma").name)] if self.last else []
        self.last = latest(*answered, *gap, ready)
        send(self.last)

    def answered(self):
        if self.held:
            self.next_leaves(self.pe.sim.moment)

    # ---- its end

    def part_done(self, when=START, in_place=False):
        self.left -= 1
        self.done = latest(when, self.done)
        if self.left == 0:
            rate = self.pe.limits.rates[self.token.stage.kind]
            cap = self.begun.then(move_ps(self.size, rate), "engine", self.pe.node("dma").name)
            self.done = latest(self.done, cap)
            if in_place and self.done.time == self.pe.sim.now:
                self.pe.end(self.server, self.token)
            else:
                self.ends(self.done)

    def ends(self, when):
        self.pe.end_at(when, self.server, self.token)


class ReadInOrder(Service):
    """A read of a composite: done before one that the composite started earlier, it ends together with that one."""

    def __init__(self, *what):
        super().__init__(*what)
        self.over = False
        self.token.command.reads.append(self)

    def ends(self, when):
        self.pe.sim.at(when, self.pe.node("dma"), SERVICE_END, self.token.key, self.is_done)

    def is_done(self):
        self.over = True
        reads = self.token.command.reads
        while reads and reads[0].over:
            first = reads.pop(0)
            first.pe.end(first.server, first.token)


def fault(pe, token, failure, when):
    """A fault that the translation finds: at once, or an event of its own."""
    if when.time > pe.sim.now:
        pe.sim.at(when, pe.node("dma"), SERVICE_END, token.key, lambda: pe.fail(failure))
    else:
        pe.fail(failure)


def translated(pe, moment, ps):
    return moment.then(ps, "translation", pe.node("mmu").name)


def start_read(pe, server, token):
    ordered = token.command.step["do"] == "composite"
    service = (ReadInOrder if ordered else Service)(pe, server, token)
    ready, failure = pe.sim.moment, None
    for runs, ps in found_runs(pe, token):
        ready = translated(pe, ready, ps)
        if isinstance(runs, Fault):
            service.left += 1                                   # it never ends
            failure = runs
            break
        for memory, offset, n in runs:
            if memory is pe.tcm:
                service.copies(n, ready)
            else:
                service.asks(request, memory, offset, n, ready)
    service.starts()
    if failure:
        fault(pe, token, failure, ready)


def found_runs(pe, token):
    """(runs or a Fault, ps of the translation) of one operand after the other."""
    if token.ring:
        yield [token.ring.slot_place(token.slot)], 0
    for one in token.stage.ranges:
        ps, runs = pe.mmu.translate(one.operand, one.offset, one.size)
        yield runs, ps


def request(service, memory, offset, n, leaves):
    pe = service.pe
    path = pe.fabric.route(pe.node("dma").name, memory.node.name)

    def arrived():
        first, stream = memory.read(offset, n, pe.sim.moment)
        pe.fabric.deliver(pe.fabric.answer(path, "read"), n, first, delivered, stream)

    def delivered():
        end = pe.tcm.reserve_write(n, pe.sim.moment)
        service.answered()
        service.part_done(end)
    pe.fabric.control(path, leaves, arrived)


def start_write(pe, server, token):
    (runs, ps), = found_runs(pe, token)
    if isinstance(runs, Fault):
        fault(pe, token, runs, translated(pe, pe.tcm.reserve_read(token.stage.size, pe.sim.moment), ps))
        return
    service = Service(pe, server, token)
    leaving = sum(n for memory, _, n in runs if memory is not pe.tcm)
    leaves = translated(pe, pe.tcm.reserve_read(leaving, pe.sim.moment), ps) if leaving else None
    for memory, offset, n in runs:
        if memory is pe.tcm:
            service.copies(n, translated(pe, pe.sim.moment, ps))
        else:
            service.asks(write_out, memory, offset, n, leaves)
    service.starts()


def write_out(service, memory, offset, n, leaves):
    pe = service.pe
    path = pe.fabric.route(pe.node("dma").name, memory.node.name, "write")

    def acknowledged():
        service.answered()
        service.part_done(pe.sim.moment, in_place=True)

    def arrived(head, delivered, _):
        done = memory.write(offset, n, head, delivered)
        pe.fabric.control(pe.fabric.answer(path), done, acknowledged)
    pe.fabric.data(path, n, leaves, arrived)
