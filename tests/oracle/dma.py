"""dma: the services of DMA_READ and DMA_WRITE: translation, a request a run, and the end with the last of them."""
from cause import START, latest
from mmu import Fault
from simulation import SERVICE_END


class Service:
    """A DMA under way: `left` runs are not done; it ends with the last."""

    def __init__(self, pe, server, token, runs):
        self.pe, self.server, self.token = pe, server, token
        self.left, self.done = runs, START

    def run_done(self, when, in_place=False):
        self.left -= 1
        self.done = latest(when, self.done)
        if self.left == 0:
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
    stage = token.stage
    if token.ring:
        ps, runs = 0, [token.ring.slot_place(token.slot)]
    else:
        ps, runs = pe.mmu.translate(stage.operand, stage.offset, stage.size)
    ordered = token.command.step["do"] == "composite"
    service = (ReadInOrder if ordered else Service)(pe, server, token, 0 if isinstance(runs, Fault) else len(runs))
    start = translated(pe, pe.sim.moment, ps)
    if isinstance(runs, Fault):
        fault(pe, token, runs, start)
        return
    for memory, offset, n in runs:
        if memory is pe.tcm:
            service.run_done(copy_inside(pe, n, start))
        else:
            request(pe, service, memory, offset, n, start)


def copy_inside(pe, n, start):
    read, write = pe.tcm.reserve_read(n, start), pe.tcm.reserve_write(n, start)
    return latest(write, read)


def request(pe, service, memory, offset, n, start):
    path = pe.fabric.route(pe.node("dma").name, memory.node.name)

    def arrived():
        leaves, stream = memory.read(offset, n, pe.sim.moment)
        pe.fabric.deliver(path.back(), n, leaves, delivered, stream)

    def delivered():
        service.run_done(pe.tcm.reserve_write(n, pe.sim.moment))
    pe.fabric.control(path, start, arrived)


def start_write(pe, server, token):
    stage = token.stage
    ps, runs = pe.mmu.translate(stage.operand, stage.offset, stage.size)
    if isinstance(runs, Fault):
        fault(pe, token, runs, translated(pe, pe.tcm.reserve_read(stage.size, pe.sim.moment), ps))
        return
    service = Service(pe, server, token, len(runs))
    leaving = sum(n for memory, _, n in runs if memory is not pe.tcm)
    leaves = translated(pe, pe.tcm.reserve_read(leaving, pe.sim.moment), ps) if leaving else None
    for memory, offset, n in runs:
        if memory is pe.tcm:
            service.run_done(copy_inside(pe, n, translated(pe, pe.sim.moment, ps)))
        else:
            write_out(pe, service, memory, offset, n, leaves)


def write_out(pe, service, memory, offset, n, leaves):
    path = pe.fabric.route(pe.node("dma").name, memory.node.name)

    def arrived(head, delivered, _):
        done = memory.write(offset, n, head, delivered)
        pe.fabric.control(path.back(), done, lambda: service.run_done(pe.sim.moment, in_place=True))
    pe.fabric.data(path, n, leaves, arrived)
