"""usage: what each node, link, memory channel and engine served, was busy and waited for: the value of --stats."""
import itertools

ENGINES = ("pe_dma read", "pe_dma write", "pe_dma comm", "pe_fetch_store", "pe_gemm", "pe_math", "pe_scheduler")
LINK_KINDS = ("pcie", "io", "ucie", "chip", "noc", "attach")


class Usage:
    """Of one thing that serves: its services, and how many requests waited at one time."""

    def __init__(self):
        self.services = self.size = self.busy = self.wait = 0
        self.host_busy = self.host_wait = 0             # the part for requests of the host between kernels
        self.saved = 0, 0                               # busy and wait of kernels when a request of the host began

    def add(self, asked, start, length, size=0):
        self.services += 1
        self.size += size
        self.busy += length
        self.wait += start - asked

    def save(self):
        self.saved = self.busy - self.host_busy, self.wait - self.host_wait

    def restore(self):
        self.host_busy, self.host_wait = self.busy - self.saved[0], self.wait - self.saved[1]

    def row(self, names, longest, moves=True):
        counted = {"services": self.services, "bytes": self.size, "busy_ps": self.busy, "wait_ps": self.wait,
                   "longest_queue": longest}
        return names | (counted if moves else {key: value for key, value in counted.items() if key != "bytes"})


class Reserved(Usage):
    """Of what is reserved: each request begins after those before it."""

    def __init__(self):
        super().__init__()
        self.requests = []                              # (asked, start), in the order of requests

    def add(self, asked, start, length, size=0):
        super().add(asked, start, length, size)
        self.requests.append((asked, start))

    def longest(self):
        """The most requests, the last included, that had not begun when one asked that had to wait."""
        lengths = [0]
        for i, (asked, start) in enumerate(self.requests):
            if start > asked:
                ahead = itertools.takewhile(lambda at: self.requests[at][1] > asked, range(i, -1, -1))
                lengths.append(sum(1 for _ in ahead))
        return max(lengths)


class EngineUsage(Usage):
    """Of an engine of a PE: its entries wait in queues."""

    def __init__(self):
        super().__init__()
        self.waits = []                                 # (arrival, start); the start of what never started is None

    def longest(self):
        return most_at_once(self.waits)


def most_at_once(spans):
    """The most (begin, end) that lasted from one instant to a later one; the end of what never ended is None."""
    changes = sorted(change for begin, end in spans if end != begin
                     for change in [(begin, 1)] + ([] if end is None else [(end, -1)]))
    return max([0, *itertools.accumulate(change for _, change in changes)])


def schedulers(pes):
    """How many commands of each PE completed, and the most that were in flight."""
    for pe in pes:
        done, most = sum(end is not None for _, end in pe.flights), most_at_once(pe.flights)
        if done or most:
            yield {"pe": pe.name, "completions": done, "longest_in_flight": most}


def used_rows(named):
    for names, usage, moves in named:
        longest = usage.longest()
        if usage.services or longest:
            yield usage.row(names, longest, moves)


def channels(machine):
    """(names, usage) of each channel of each memory; those of a memory together."""
    for (space, *_), memory in machine.memories.found.items():
        name = memory.node.name.replace("pe_dma", "pe_tcm") if space == 1 else memory.node.name
        yield space, memory, [({"id": name, "channel": which}, channel.usage) for which, channel in memory.named()]


def part(usages):
    """(busy, wait) of all, without what was for requests of the host between kernels."""
    return sum(one.busy - one.host_busy for one in usages), sum(one.wait - one.host_wait for one in usages)


def resource(usages, servers, groups=None, each=None):
    """A row of "util": busiest of the groups of usages, with `each` servers each; without groups, of all."""
    busy, wait = part(usages)
    busiest = busy if groups is None else max(part(group)[0] for group in groups)
    return {"busy_ps": busy, "servers": servers, "busiest_ps": busiest,
            "busiest_servers": servers if groups is None else each, "wait_ps": wait}


def kernels_of(machine):
    return [kernel for report in machine.host.launches if report.launch for kernel in report.launch.kernels.values()]


def span(machine):
    """From the first start of a kernel to the last end, or to the end of the run."""
    kernels = kernels_of(machine)
    ends = [machine.sim.now if kernel.end_ps is None else kernel.end_ps for kernel in kernels]
    return max(ends) - min(kernel.start_ps for kernel in kernels) if kernels else 0


def link_kinds(machine):
    return tuple(kind for kind in LINK_KINDS if kind != "chip" or machine.topo.chip_links)


def util(machine, memories):
    pes = list(machine.pes.values())
    value = {"span_ps": span(machine), "gemm_flop": sum(pe.gemm_flop for pe in pes)}
    for name in ENGINES:
        value[name] = resource([pe.usages[name] for pe in pes], len(pes) * pes[0].places[name])
    computing = [pe.usages[name] for pe in pes for name in ("pe_gemm", "pe_math")]
    both = pes[0].shared and value["pe_gemm"]["busy_ps"] and value["pe_math"]["busy_ps"]
    value["pe_gemm+math"] = resource(computing if both else [], len(pes))
    slices = [[usage for _, usage in named] for space, _, named in memories if space == 0]
    value["hbm"] = resource(sum(slices, []), sum(map(len, slices)), slices or [[]],
                            machine.topo.part("cube.hbm_ctrl.attrs").count("pcs"))
    for space, name in ((1, "tcm"), (2, "sram")):
        for side, which in enumerate(("read", "write")):
            usages = [named[side][1] for one, _, named in memories if one == space]
            value[f"{name} {which}"] = resource(usages, len(usages))
    for kind in link_kinds(machine):
        usages = [link.usage for link in machine.fabric.links.values() if link.links == kind]
        value[kind + " links"] = (resource(usages, len(usages), [[one] for one in usages], 1) if usages else
                                  resource([], 0, [[]], 1))
    value["nodes"] = {"wait_ps": part([node.usage for node in machine.fabric.nodes.values()])[1]}
    return value


def moved(machine, memories):
    """The bytes read from and written to the memories of a kind, and over the links of a kind."""
    value = {name: {"read": sum(memory.moved["read"] for one, memory, _ in memories if one == space),
                    "write": sum(memory.moved["write"] for one, memory, _ in memories if one == space)}
             for space, name in ((0, "hbm"), (1, "tcm"), (2, "sram"))}
    links = machine.fabric.links.values()
    value["links"] = {kind: sum(link.usage.size for link in links if link.links == kind) for kind in link_kinds(machine)}
    return value


class HostRequests:
    """Memory requests that are under way together: what is busy for them before a kernel begins is busy for the host."""

    def __init__(self, machine):
        self.machine, self.under_way, self.kernels = machine, 0, None   # kernels that had begun at the first of them

    def usages(self):
        for one in [*self.machine.fabric.nodes.values(), *self.machine.fabric.links.values()]:
            yield one.usage
        for _, _, named in channels(self.machine):
            yield from (usage for _, usage in named)

    def begins(self):
        kernels = kernels_of(self.machine)
        if not self.under_way or self.kernels != len(kernels):
            self.kernels = None
        self.under_way += 1
        if self.kernels is None and all(kernel.end_ps is not None for kernel in kernels):
            self.kernels = len(kernels)
            for one in self.usages():
                one.save()

    def ends(self):
        self.under_way -= 1
        if self.kernels == len(kernels_of(self.machine)):
            for one in self.usages():
                one.restore()


def slices(memories):
    for space, memory, named in memories:
        busy, wait = part([usage for _, usage in named])
        if space == 0 and (busy or wait):
            yield {"id": memory.node.name, "busy_ps": busy, "wait_ps": wait}


def value_of(machine):
    memories, pes = list(channels(machine)), machine.pes.values()
    for pe in pes:
        pe.run_ends()
    return {"system": machine.topo.name, "end_ps": machine.host.end.time, "util": util(machine, memories),
            "hbm_slices": list(slices(memories)), "bytes": moved(machine, memories),
            "nodes": list(used_rows(({"id": node.name}, node.usage, True) for node in machine.fabric.nodes.values())),
            "links": list(used_rows(({"from": a, "to": b}, link.usage, True)
                                    for (a, b), link in machine.fabric.links.items())),
            "channels": list(used_rows((names, usage, True) for _, _, named in memories for names, usage in named)),
            "engines": list(used_rows(({"pe": pe.name, "engine": name}, pe.usages[name], False)
                                      for pe in pes for name in ENGINES)),
            "schedulers": list(schedulers(pes))}
