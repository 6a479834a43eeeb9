"""control: what the host asks of the machine, leg by leg: launches, memory requests, maps."""
from cause import Owner
from simulation import KERNEL
from units import half_up, move_ps, number


class Gather:
    """Waits for so many answers, each a list of failures, and answers once with all of them: after the last, or, if
    it must be fast, at the first failure."""

    def __init__(self, count, answer, fast=False):
        self.left, self.answer, self.fast = count, answer, fast
        self.failures, self.answered = [], False

    def take(self, failures):
        self.left -= 1
        self.failures += failures
        if not self.answered and (self.left == 0 or (self.fast and failures)):
            self.answered = True
            self.answer(list(self.failures))


def by_cube(items, place):
    """{sip: {cube: [item, ...]}} in rank order; items of a cube stay in their order."""
    tree = {}
    for item in sorted(items, key=place):
        sip, cube = place(item)
        tree.setdefault(sip, {}).setdefault(cube, []).append(item)
    return tree


class Request:
    """What launches and maps share: control messages down to every target, answers up."""

    def __init__(self, machine, pes, done, fast=False):
        self.machine, self.sim, self.fabric = machine, machine.sim, machine.fabric
        self.tree = by_cube(pes, lambda pe: (pe.sip, pe.cube))
        self.fast = fast
        self.top = Gather(len(self.tree), done, fast)
        self.submitted = machine.sim.now

    def send(self):
        for sip in self.tree:
            path = self.fabric.route("host", f"sip{sip}.io_cpu")
            self.control(path, lambda sip=sip, path=path: self.at_io(sip, path))

    def control(self, path, arrived):
        self.fabric.control(path, self.sim.moment.of(None), arrived, self.kind_of_messages)

    def answer_on(self, path, gather):
        """Sends what was gathered back on a path, to the next gathering."""
        return lambda failures: self.control(self.fabric.answer(path), lambda: gather.take(failures))

    def at_io(self, sip, path):
        self.stamp(sip)
        gather = Gather(len(self.tree[sip]), self.answer_on(path, self.top), self.fast)
        for cube, pes in self.tree[sip].items():
            leg = self.fabric.route(f"sip{sip}.io_cpu", f"sip{sip}.cube{cube}.m_cpu")
            self.control(leg, lambda pes=pes, leg=leg: self.at_m(pes, Gather(len(pes), self.answer_on(leg, gather),
                                                                             self.fast), leg.nodes[-1].name))

    def at_m(self, pes, gather, m_cpu):
        for pe in pes:
            path = self.fabric.route(m_cpu, f"{pe.name}.{self.target}")
            self.control(path, lambda pe=pe, path=path: self.at_pe(pe, gather, path))

    def stamp(self, sip):
        pass


class Map(Request):
    target, kind_of_messages = "pe_mmu", "control"

    def __init__(self, machine, pes, done, entry):
        super().__init__(machine, pes, done)
        self.entry = entry              # (va, bytes, address as a PE sees it)

    def at_pe(self, pe, gather, _):
        va, size, address = self.entry
        pe.mmu.map(va, size, address(pe))
        gather.take([])                 # nothing travels back from the MMU


class Launch(Request):
    target, kind_of_messages = "pe_cpu", "launch"

    def __init__(self, machine, programs, done, raw, position, expired):
        super().__init__(machine, list(programs), done, raw.get("on_failure") == "fail_fast")
        self.programs = programs        # {PE: steps}
        self.start = None
        self.kernels, self.starts = {}, {}
        self.kind, self.expired = raw.get("start", "barrier"), expired
        if len(self.tree) > 1:
            self.start = self.sim.now + max(self.fabric.route("host", f"sip{sip}.io_cpu").latency + self.legs(sip)
                                            for sip in self.tree)
        self.timer = None
        if "timeout_ns" in raw:
            timeout_ps = half_up(number(raw["timeout_ns"]) * 1000)
            self.timer = self.sim.at(self.sim.moment.then(timeout_ps, "host", "host"), self.fabric.nodes["host"],
                                     KERNEL, (position,), self.expire)

    def expire(self):
        """The timeout; an answer of the same instant has come before."""
        if not self.top.answered:
            self.top.answered = True
            self.expired()

    def send(self):
        if self.kind != "cube":
            super().send()
            return
        self.top.left = sum(len(cubes) for cubes in self.tree.values())
        for sip, cubes in self.tree.items():
            for cube, pes in cubes.items():
                path = self.fabric.route("host", f"sip{sip}.cube{cube}.m_cpu")
                self.control(path, lambda pes=pes, path=path: self.at_m(
                    pes, Gather(len(pes), self.answer_on(path, self.top), self.fast), path.nodes[-1].name))

    def at_m(self, pes, gather, m_cpu):
        if self.kind == "cube":
            start = self.sim.now + max(self.fabric.route(m_cpu, pe.name + ".pe_cpu").latency for pe in pes)
            self.starts |= {pe: start for pe in pes}
        super().at_m(pes, gather, m_cpu)

    def legs(self, sip):
        io_cpu, longest = f"sip{sip}.io_cpu", 0
        for cube, pes in self.tree[sip].items():
            m_cpu = f"sip{sip}.cube{cube}.m_cpu"
            longest = max(longest, self.fabric.route(io_cpu, m_cpu).latency
                          + max(self.fabric.route(m_cpu, pe.name + ".pe_cpu").latency for pe in pes))
        return longest

    def stamp(self, sip):
        if len(self.tree) == 1:
            self.start = self.sim.now + self.legs(sip)

    def at_pe(self, pe, gather, path):
        def answer(failure):
            self.control(self.fabric.answer(path), lambda: gather.take([failure] if failure else []))

        def start():
            pe.start(self.programs[pe], answer, self.sim.now)
            self.kernels[pe] = pe.kernel
        when = {"barrier": self.start, "cube": self.starts.get(pe), "free": self.sim.now}[self.kind]
        moment = self.sim.moment.of(Owner(pe.name, 0)).until(when, "barrier", pe.node("cpu").name)
        self.sim.at(moment, pe.node("cpu"), KERNEL, (), start)


class MemoryRequest:
    """Moves some bytes to or from each of several addresses, store and forward at io_cpu and m_cpu."""

    def __init__(self, machine, writes, addresses, size, done):
        self.machine, self.sim, self.fabric = machine, machine.sim, machine.fabric
        self.writes, self.size = writes, size
        self.carries = "write" if writes else None              # what goes down the legs
        self.tree = by_cube(addresses, lambda address: (address >> 48 & 255, address >> 40 & 255))
        self.top = Gather(len(self.tree), done)
        self.submitted, self.xfer_ps = machine.sim.now, 0

    def down(self, path, count, arrived):
        if self.writes:
            self.fabric.deliver(path, count * self.size, self.sim.moment, arrived)
        else:
            self.fabric.control(path, self.sim.moment, arrived)

    def up(self, path, count, gather):
        """Answers with the data read, or with a control message."""
        def answer(failures):
            if self.writes or failures:
                self.fabric.control(self.fabric.answer(path), self.sim.moment, lambda: gather.take(failures))
            else:
                self.fabric.deliver(self.fabric.answer(path, "read"), count * self.size, self.sim.moment,
                                    lambda: gather.take([]))
        return answer

    def send(self):
        for sip, cubes in self.tree.items():
            path, count = self.fabric.route("host", f"sip{sip}.io_cpu", self.carries), sum(map(len, cubes.values()))
            gather = Gather(len(cubes), self.up(path, count, self.top))
            self.down(path, count, lambda sip=sip, gather=gather: self.at_io(sip, gather))

    def at_io(self, sip, above):
        for cube, addresses in self.tree[sip].items():
            m_cpu = f"sip{sip}.cube{cube}.m_cpu"
            path = self.fabric.route(f"sip{sip}.io_cpu", m_cpu, self.carries)
            gather = Gather(len(addresses), self.up(path, len(addresses), above))
            self.down(path, len(addresses), lambda m_cpu=m_cpu, addresses=addresses, gather=gather:
                      self.at_m(m_cpu, addresses, gather))

    def at_m(self, m_cpu, addresses, gather):
        places = [self.machine.memories.resolve(address, self.size) for address in addresses]
        if not all(places):
            gather.answer([{"rank": self.fabric.nodes[m_cpu].rank, "code": "BAD_ADDRESS", "node": m_cpu,
                            "t_ps": self.sim.now}])
            return
        channel = self.machine.channels.setdefault((m_cpu, self.writes), [])
        channel.append(lambda: self.dispatch(m_cpu, places, gather))
        if len(channel) == 1:
            channel[0]()

    def dispatch(self, m_cpu, places, gather):
        """When the last of it is answered, the next request of the m_cpu's channel goes."""
        answer, channel = gather.answer, self.machine.channels[m_cpu, self.writes]

        def answer_and_go_on(failures):
            answer(failures)
            channel.pop(0)
            if channel:
                channel[0]()
        gather.answer = answer_and_go_on
        for memory, offset in places:
            path = self.fabric.route(m_cpu, memory.node.name, self.carries)
            way = path if self.writes else self.fabric.answer(path, "read")
            self.xfer_ps = max(self.xfer_ps, move_ps(self.size, way.rate))
            (self.write if self.writes else self.read)(path, memory, offset, gather)

    def write(self, path, memory, offset, gather):
        def arrived(head, delivered, _):
            done = memory.write(offset, self.size, head, delivered)
            self.fabric.control(self.fabric.answer(path), done, lambda: gather.take([]))
        self.fabric.data(path, self.size, self.sim.moment, arrived)

    def read(self, path, memory, offset, gather):
        back = self.fabric.answer(path, "read")

        def arrived():
            leaves, stream = memory.read(offset, self.size, self.sim.moment)
            self.fabric.deliver(back, self.size, leaves, lambda: gather.take([]), stream)
        self.fabric.control(path, self.sim.moment, arrived)
