"""pe: a processing element: stages, queues and their slots, servers, scheduler, feeder, and the life of a tile."""
import bisect

import dma
from cause import NEVER, Owner
from kernel import Kernel
from mmu import Mmu
from plan import Engines
from simulation import SERVICE_END
from units import move_ps, slower
from usage import ENGINES as ENGINE_NAMES, EngineUsage

# Downstream first: the order in which Issue visits, and in which the later stage wins.
ORDER = ("DMA_WRITE", "STORE", "MATH", "GEMM", "FETCH", "DMA_READ")
ENGINES = {"DMA_READ": "dma", "DMA_WRITE": "dma", "COMM": "dma", "FETCH": "fetch_store", "STORE": "fetch_store",
           "GEMM": "gemm", "MATH": "math"}
USAGES = {"DMA_READ": "pe_dma read", "DMA_WRITE": "pe_dma write", "COMM": "pe_dma comm", "FETCH": "pe_fetch_store",
          "STORE": "pe_fetch_store", "GEMM": "pe_gemm", "MATH": "pe_math"}
EVENTS = ("command_submitted", "sub_command_dispatched", "engine_start", "engine_complete", "tile_ready",
          "command_complete")


class Command:
    def __init__(self, number, step, tiles, now):
        self.number, self.step, self.tiles = number, step, tiles
        self.left = len(tiles)
        self.submitted, self.complete = now, None
        self.reads = []             # of a composite: those under way, by start: dma.ReadInOrder

    @property
    def key(self):
        return (self.number, -1)


class Token:
    """A tile on its way."""

    def __init__(self, command, tile_id):
        self.command, self.tile_id = command, tile_id
        self.tile = command.tiles[tile_id]
        self.key = (command.number, tile_id)
        self.index = 0
        self.blocks = []            # where its buffers lie
        self.arrived = self.began = None                # in the queue of its stage, in service
        self.ring = self.slot = None
        self.owner = None           # of what its service does
        self.service = None         # of the kernel (kernel.Service)

    @property
    def stage(self):
        return self.tile.stages[self.index]

    @property
    def next(self):
        return self.tile.stages[self.index + 1] if self.index + 1 < len(self.tile.stages) else None


class Queue:
    """First-in first-out by (arrival, key). `free` has the slots that nobody has reserved, by the mark since which they
    are free."""

    def __init__(self, sim, depth=0):
        self.sim, self.entries, self.free = sim, [], [NEVER] * depth
        self.passed = NEVER         # what the last start from this queue had waited for: the next one is its head since

    def put(self, entry):
        entry.came = self.sim.mark()
        bisect.insort(self.entries, (self.sim.now, entry.key, entry), key=lambda one: one[:2])


class Server:
    """`engines` places that serve the stages of `kinds`; those that are idle, by the mark since which they are."""

    def __init__(self, kinds, engines=1):
        self.kinds, self.engines, self.idle = kinds, engines, [NEVER] * engines


class Pe:
    def __init__(self, machine, sip, cube, number):
        self.machine, self.sim, self.fabric = machine, machine.sim, machine.fabric
        self.sip, self.cube, self.number = sip, cube, number
        self.name = f"sip{sip}.cube{cube}.pe{number}"
        topo = self.topo = machine.topo
        self.slice = topo.own_slice(number)
        self.depths = {kind: topo.pe("pe_" + ENGINES[kind]).count("queue_depth") for kind in ORDER}
        self.queues = {kind: Queue(self.sim, depth) for kind, depth in self.depths.items()}
        self.direct = {kind: Queue(self.sim) for kind in ORDER + ("COMM",)}
        self.servers = self.make_servers()
        self.comm, self.scheduler, self.feeder = Server(("COMM",)), Server(()), Server(())
        self.engines = Engines(topo)
        self.tcm = machine.memories.found[1, sip, cube, number]
        self.mmu = Mmu(topo, self.node("mmu"), self.node("dma"), machine.memories)
        scheduler = topo.pe("pe_scheduler")
        self.call_ps, self.launch_ps = (topo.pe("pe_cpu").ps(key) for key in ("overhead_ns", "launch_ns"))
        self.schedule_ps = scheduler.ps("overhead_ns")
        self.limits = dma.Limits(topo.pe("pe_dma"))
        self.feed_ps = scheduler.ps("tile_overhead_ns")
        self.fetch_store_ps = topo.pe("pe_fetch_store").ps("overhead_ns")
        self.link_rate = topo.part("cube.pe_template.links").rate("fetch_store_to_tcm_bw_gbs")
        self.submissions, self.feeds = Queue(self.sim), Queue(self.sim)
        self.waiting = [self.submissions, self.feeds, *self.queues.values(), *self.direct.values()]
        self.fitted = NEVER                             # when a block for the next tile became free
        self.next_tile = 0                              # of the composite at the head of the feeds
        self.blocks = []                                # (start, end) of the tile buffers, in order
        self.commands, self.kernel, self.stopped = [], None, False
        self.flights = []                               # [scheduled, complete] of the commands of all kernels
        self.usages, self.gemm_flop = {name: EngineUsage() for name in ENGINE_NAMES}, 0

    def make_servers(self):
        topo = self.topo
        reads, writes = (topo.pe("pe_dma").count(key) for key in ("rd_engines", "wr_engines"))
        split_ports = topo.pe("pe_fetch_store").count("ports") == 2
        slots = [topo.pe(kind).values["shared_resource"] for kind in ("pe_gemm", "pe_math")]
        self.shared = shared = slots[0] == slots[1] and slots[0] not in ("~", "null", "")
        self.places = dict.fromkeys(ENGINE_NAMES, 1) | {"pe_dma read": reads, "pe_dma write": writes,
                                                        "pe_fetch_store": 1 + split_ports}
        return ([Server(("DMA_WRITE",), writes)]
                + ([Server(("STORE",))] if split_ports else [Server(("STORE", "FETCH"))])
                + ([Server(("MATH", "GEMM"))] if shared else [Server(("MATH",)), Server(("GEMM",))])
                + ([Server(("FETCH",))] if split_ports else []) + [Server(("DMA_READ",), reads)])

    def node(self, kind):
        return self.fabric.nodes[f"{self.name}.pe_{kind}"]

    def trace(self, event, node, key, stage):
        self.sim.trace.append(((self.sim.now, node.rank, key, stage, EVENTS.index(event)), event, node.name))

    # ---- a kernel's life

    def start(self, program, answer, now):
        self.commands, self.stopped = [], False
        self.kernel = Kernel(self, program, answer, now)
        self.kernel.resume()

    def submit(self, step, tiles):
        command = Command(len(self.commands), step, tiles, self.sim.now)
        self.commands.append(command)
        self.trace("command_submitted", self.node("scheduler"), command.key, -1)
        self.submissions.put(command)
        return command

    def fail(self, fault):
        """Stops the kernel; what is in service runs out."""
        if not self.stopped:
            self.stopped = True
            self.kernel.end(fault)

    def servers_of(self, engine):
        """Those that serve for an engine of results, and a second one too."""
        if engine == "pe_scheduler":
            return [self.scheduler]
        return [one for one in [*self.servers, self.comm] if any(USAGES[kind] == engine for kind in one.kinds)]

    # ---- issue

    def issue(self):
        while not self.stopped and self.something_waits() and self.visit():
            pass

    def something_waits(self):
        for queue in self.waiting:                      # asked most often of all: a loop takes half the time of any()
            if queue.entries:
                return True
        return False

    def visit(self):
        started = False
        for server in self.servers:
            while server.idle and not self.stopped and (queue := self.choose(server)):
                self.start_stage(server, queue)
                started = True
        for try_one in (self.start_send, self.start_feed, self.start_schedule):
            started |= not self.stopped and try_one()
        return started

    def choose(self, server):
        """The queue whose head the server takes: the earliest, then of the later stage, then of the smaller key."""
        heads = []
        for place, kind in enumerate(server.kinds):
            for queue in (self.queues[kind], self.direct[kind]):
                if queue.entries and self.eligible(queue.entries[0][-1]):
                    arrival, key, _ = queue.entries[0]
                    heads.append(((arrival, place, key), queue))
        return min(heads, key=lambda head: head[0])[1] if heads else None

    def eligible(self, token):
        after = token.next
        return after is None or after.kind == token.stage.kind or bool(self.queues[after.kind].free)

    def start_stage(self, server, queue):
        arrival, _, token = queue.entries.pop(0)
        kind, stage, slots = token.stage.kind, token.stage, []
        if token.next and token.next.kind != kind:
            slots.append(self.queues[token.next.kind].free.pop(0))
        queue.passed = self.begin(server, token, arrival, queue.passed, *slots)
        if queue is self.queues[kind] and not (token.next and token.next.kind == kind):
            queue.free.append(self.sim.mark("slot"))
        if kind == "DMA_READ":
            dma.start_read(self, server, token)
        elif kind == "DMA_WRITE":
            dma.start_write(self, server, token)
        elif kind in ("FETCH", "STORE"):
            channel, rate = ((self.tcm.reading, self.tcm.read_rate) if kind == "FETCH" else
                             (self.tcm.writing, self.tcm.write_rate))
            end = channel.reserve(self.sim.moment, move_ps(stage.size, slower(rate, self.link_rate)),
                                  stage.size)[1]
            self.end_at(end.then(self.fetch_store_ps, "engine", self.node("fetch_store").name), server, token)
        else:
            self.end_at(self.sim.moment.then(stage.length, "engine", self.node(ENGINES[kind]).name), server, token)

    def last_of(self, conditions, *owner):
        """The condition that became true last is the cause of what starts now."""
        last = max(conditions, key=lambda mark: mark[0])
        self.sim.because_of(last[1].of(Owner(self.name, *owner)))
        return last

    def begin(self, server, token, arrival, *conditions):
        last = self.last_of([token.came, server.idle.pop(0), *conditions], *token.key, token.stage.kind)
        token.arrived, token.began, token.owner = arrival, self.sim.now, self.sim.moment.owner
        self.usages[USAGES[token.stage.kind]].waits.append((arrival, self.sim.now))
        token.service = self.kernel.serves(USAGES[token.stage.kind], server)
        self.gemm_flop += token.stage.flop
        self.kernel.busy(token.stage.kind, 1)
        self.trace("engine_start", self.node(ENGINES[token.stage.kind]), token.key, token.index)
        return last

    def end_at(self, moment, server, token):
        self.sim.at(moment, self.node(ENGINES[token.stage.kind]), SERVICE_END, token.key,
                    lambda: self.end(server, token))

    def end(self, server, token):
        """The end of a service: the token moves on, or its tile is complete."""
        kind, engine = token.stage.kind, self.node(ENGINES[token.stage.kind])
        self.sim.because_of(self.sim.moment.of(token.owner))
        server.idle.append(self.sim.mark("engine"))
        self.usages[USAGES[kind]].add(token.arrived, token.began, self.sim.now - token.began)
        self.kernel.busy(kind, -1)
        token.service.end = self.sim.now
        self.trace("engine_complete", engine, token.key, token.index)
        if kind == "FETCH":
            self.trace("tile_ready", engine, token.key, token.index)
        if token.next:
            token.index += 1
            self.move(ENGINES[kind], token, self.queues[token.stage.kind])
        else:
            self.complete_tile(token)

    def move(self, engine, token, queue, arrived=lambda: None):
        """Over the link from one engine to the next into its queue."""
        to = ENGINES[token.stage.kind]
        ps = 0 if engine == to else self.topo.part("cube.pe_template.links").wire_ps(f"{engine}_to_{to}_mm")

        def arrive():
            arrived()
            queue.put(token)
        if ps:
            moment = self.sim.moment.then(ps, "wire", self.node(to).name)
            self.sim.at(moment, self.node(to), SERVICE_END, token.key, arrive)
        else:
            arrive()

    def complete_tile(self, token):
        command = token.command
        if token.blocks:
            fitted = self.next_fits()
            for block in token.blocks:
                self.blocks.remove(block)
            if self.next_fits() and not fitted:
                self.fitted = self.sim.mark("buffer")
        if token.ring and command.step["do"] == "recv":
            token.ring.release(token.slot[0])
        command.left -= 1
        assert command.left >= 0, "a tile ends once"
        if command.left == 0:
            command.complete = self.sim.now
            command.flight[1] = command.complete
            self.trace("command_complete", self.node("scheduler"), command.key, -1)
            self.kernel.completed(command)

    # ---- scheduler and feeder

    def start_schedule(self):
        if not (self.scheduler.idle and self.submissions.entries):
            return False
        command, usage, now = self.submissions.entries.pop(0)[-1], self.usages["pe_scheduler"], self.sim.now
        self.last_of([command.came, self.scheduler.idle.pop()], command.number)
        usage.waits.append((command.submitted, now))
        self.kernel.serves("pe_scheduler", self.scheduler).end = now + self.schedule_ps
        end = self.sim.moment.then(self.schedule_ps, "engine", self.node("scheduler").name)
        self.sim.at(end, self.node("scheduler"), SERVICE_END, command.key,
                    lambda: (usage.add(command.submitted, now, self.schedule_ps), self.scheduled(command)))
        return True

    def scheduled(self, command):
        self.scheduler.idle.append(self.sim.mark("engine"))
        command.flight = [self.sim.now, None]
        self.flights.append(command.flight)
        if command.step["do"] == "composite":
            self.feeds.put(command)
            return
        token = Token(command, 0)
        if command.step["do"] == "recv":
            self.dispatched(token)
            self.machine.rings.receive(self, token)
        else:
            self.move("scheduler", token, self.direct[token.stage.kind], lambda: self.dispatched(token))

    def dispatched(self, token):
        self.trace("sub_command_dispatched", self.node("scheduler"), token.key, 0)

    def start_feed(self):
        if not (self.feeder.idle and self.feeds.entries):
            return False
        command = self.feeds.entries[0][-1]
        token = Token(command, self.next_tile)
        queue, blocks = self.queues[token.stage.kind], self.blocks_for(token.tile)
        if blocks is None or not queue.free:
            return False
        self.last_of([command.came, self.feeder.idle.pop(), queue.free.pop(0), self.fitted], *token.key)
        token.blocks = blocks
        self.blocks = sorted(self.blocks + blocks)
        end = self.sim.moment.then(self.feed_ps, "feed", self.node("scheduler").name)
        self.sim.at(end, self.node("scheduler"), SERVICE_END, token.key, lambda: self.fed(token))
        return True

    def fed(self, token):
        self.feeder.idle.append(self.sim.mark("engine"))
        self.next_tile += 1
        if self.next_tile == len(token.command.tiles):
            self.feeds.entries.pop(0)
            self.next_tile = 0
        self.move("scheduler", token, self.queues[token.stage.kind], lambda: self.dispatched(token))

    def next_fits(self):
        """Whether there is room for the tile that the feeder would take now."""
        if not (self.feeder.idle and self.feeds.entries):
            return False
        return self.blocks_for(self.feeds.entries[0][-1].tiles[self.next_tile]) is not None

    def blocks_for(self, tile):
        """The (start, end) of a tile's blocks, each at the lowest place where it fits; None if one does not fit now."""
        found = []
        for size in tile.buffers:
            place = 0
            for start, end in sorted(self.blocks + found):
                if place + size <= start:
                    break
                place = end
            if place + size > self.tcm.low:
                return None
            found.append((place, place + size))
        return found

    # ---- sends

    def start_send(self):
        """The earliest send whose rings have a free slot each, and that shares none with an earlier one that waits."""
        if not self.comm.idle:
            return False
        waiting, passed = self.direct["COMM"].entries, set()
        for i, (arrival, _, token) in enumerate(waiting):
            rings = [self.machine.rings.of(self.name, to) for to in token.command.step["to"]]
            if all(ring.free and ring not in passed for ring in rings):
                del waiting[i]
                self.begin(self.comm, token, arrival, *(ring.free[0][-1] for ring in rings))
                self.machine.rings.send(self, token, rings)
                return True
            passed.update(rings)
        return False

    # ---- the end of the run

    def run_ends(self):
        """What is still in a queue waits to the end."""
        for kind, queue in [*self.queues.items(), *self.direct.items()]:
            self.usages[USAGES[kind]].waits += [(arrival, None) for arrival, *_ in queue.entries]
        self.usages["pe_scheduler"].waits += [(arrival, None) for arrival, *_ in self.submissions.entries]
