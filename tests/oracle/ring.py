"""ring: queues between PEs: slots, credits, messages on their way, receives that wait."""
from cause import NEVER, Owner
from memory import HBM, SRAM


class Rings:
    def __init__(self, machine):
        part = machine.topo.pe("pe_ipcq")
        self.machine, self.rings = machine, {}
        self.slots, self.slot_bytes = part.count("slots"), part.bytes("slot_kb")
        self.buffer = part.values["buffer"]

    def of(self, source, to):
        if (source, to) not in self.rings:
            self.rings[source, to] = Ring(self, self.machine.pes[source], self.machine.pes[to])
        return self.rings[source, to]

    def allows(self, name, step):
        """Whether a send or receive may be submitted."""
        if step["do"] == "recv":
            return step["from"] != name
        to = step["to"]
        return (name not in to and len(set(to)) == len(to) and step["bytes"] <= self.slot_bytes
                and (self.buffer == "tcm" or all(self.of(name, one).start >= 0 for one in to)))

    def send(self, pe, token, rings):
        """The COMM service: the message leaves when it is read, and the service ends when the first link has it."""
        size = token.stage.size
        leaves = pe.tcm.reserve_read(size, pe.sim.moment)
        ends = [ring.end_of(size) for ring in sorted(rings, key=lambda ring: ring.to.node("dma").rank)]
        pe.fabric.multicast(ends, size, leaves, departed=lambda done: pe.end_at(done, pe.comm, token))

    def receive(self, pe, token):
        ring = self.of(token.command.step["from"], pe.name)
        ring.receivers.append(token)
        ring.serve()


class Ring:
    """From one PE to another."""

    def __init__(self, rings, source, to):
        self.source, self.to, self.sim, self.fabric = source, to, to.sim, to.fabric
        self.slots, self.slot_bytes, self.buffer = rings.slots, rings.slot_bytes, rings.buffer
        self.free = [(slot, NEVER) for slot in range(rings.slots)]     # with a credit, by the mark of its return
        self.sent = self.received = 0
        self.full = {}                              # number of a message that lies in its slot -> (slot, bytes)
        self.receivers = []
        self.path = self.fabric.route(source.node("dma").name, to.node("dma").name)
        found = rings.machine.memories.found                    # none: the memory does not exist
        self.memory = (to.tcm if self.buffer == "tcm" else found.get((SRAM, to.sip, to.cube, 0))
                       if self.buffer == "sram" else found.get((HBM, to.sip, to.cube, to.slice)))
        place = list(rings.machine.pes).index(source.name)
        self.start = (self.memory.size if self.memory else 0) - (place + 1) * self.slots * self.slot_bytes

    def slot_place(self, message):
        """What a receive reads: (memory, offset, bytes)."""
        slot, size = message
        return self.memory, self.start + slot * self.slot_bytes, size

    def end_of(self, size):
        """Takes a slot; where a message to it ends: (path, what its head does)."""
        (slot, _), number = self.free.pop(0), self.sent
        self.sent += 1
        path = self.fabric.route(self.source.node("dma").name, self.memory.node.name, "message")
        return path, lambda *head: self.arrived(path, number, (slot, size), *head)

    def arrived(self, path, number, message, head, delivered, key):
        done = self.memory.write(self.slot_place(message)[1], message[1], head, delivered)

        def fill():
            self.full[number] = message
            self.sim.happen(self.sim.moment.over("message"), self.serve)
        if self.buffer == "tcm":
            self.fabric.later(done, path.nodes[-1], key, fill)
        else:
            doorbell = self.fabric.route(self.memory.node.name, self.to.node("dma").name)
            self.fabric.control(doorbell, done, fill)

    def serve(self):
        """Receives take what is there, in the order of sending."""
        while self.receivers and self.received in self.full and not self.to.stopped:
            token, message = self.receivers.pop(0), self.full.pop(self.received)
            self.received += 1
            token.ring, token.slot = self, message
            moment = self.sim.moment.of(Owner(self.to.name, token.command.number))
            go_on = self.to.complete_tile if self.buffer == "tcm" else self.to.direct["DMA_READ"].put
            self.sim.happen(moment, lambda: go_on(token))

    def release(self, slot):
        """The slot is free again; the credit goes back to the source."""
        def credit():
            self.free.append((slot, self.sim.mark("credit")))
        self.fabric.control(self.fabric.answer(self.path), self.sim.moment, credit)
