"""kernel: a program's run on a PE: a generator that yields what it waits for, and what the result says about it."""
from cause import Moment, Owner
from mmu import Fault
from plan import tiles_of
from simulation import KERNEL

COMPUTE = ("GEMM", "MATH")


class Service:
    """What a server of the PE does for an engine of results: begins at a moment, and may not end."""

    def __init__(self, server, start):
        self.server, self.start, self.end = server, start, None


class Kernel:
    def __init__(self, pe, program, answer, now):
        self.pe, self.answer, self.commands = pe, answer, pe.commands
        self.start_ps, self.end_ps, self.fault = now, None, None
        self.awaited = None         # the command that it waits for
        self.ids = {}
        self.waits, self.waits_since = [], now      # (since, the moment at which it was over) of each wait
        self.due = None             # the moment at which it goes on, if that is known
        self.services = {}          # by engine, in the order of their starts
        self.serving = {True: 0, False: 0}          # of the computing engines, and of DMA
        self.since, self.busy_ps = {}, {True: 0, False: 0}
        self.body = self.steps(program)

    # ---- what runs

    def resume(self):
        if self.pe.stopped:
            return
        self.wait_over()
        try:
            wait = next(self.body)
        except StopIteration:
            self.end(None)
            return
        except Fault as fault:
            self.pe.fail(fault)
            return
        self.due = None
        if isinstance(wait, Moment):
            self.resume_at(wait)
        else:
            self.awaited = wait

    def wait_over(self):
        self.waits.append((self.waits_since, self.pe.sim.moment))
        self.waits_since = self.pe.sim.now

    def serves(self, engine, server):
        """A service starts, because of the moment."""
        service = Service(server, self.pe.sim.moment)
        self.services.setdefault(engine, []).append(service)
        return service

    def resume_at(self, when):
        self.due = when
        self.pe.sim.at(when, self.pe.node("cpu"), KERNEL, (), self.resume)

    def completed(self, command):
        if command is self.awaited and not self.pe.stopped:
            self.awaited = None
            moment = self.pe.sim.moment
            self.resume_at((moment.over("wait") if moment.edge == "direct" else moment).of(self.owner()))

    def steps(self, program):
        """Yields moments to go on at, or commands to wait for; of several it waits for one after the other."""
        if self.pe.launch_ps:
            yield self.after(self.pe.launch_ps, "engine")
        for step in program:
            if step["do"] == "delay":
                yield self.after(step["ps"], "delay")
                continue
            if step["do"] == "wait":
                awaited = [self.ids[name] for name in step["for"]]
            else:
                yield self.after(self.pe.call_ps, "engine")
                command = self.ids[step.get("id")] = self.pe.submit(step, self.checked(step))
                awaited = [] if step["async"] else [command]
            yield from (command for command in awaited if command.complete is None)
        yield from (command for command in self.pe.commands if command.complete is None)

    def after(self, ps, kind):
        return self.pe.sim.moment.of(self.owner()).then(ps, kind, self.pe.node("cpu").name)

    def owner(self):
        return Owner(self.pe.name, len(self.pe.commands))

    def checked(self, step):
        """The command's tiles, if it may be submitted."""
        pe = self.pe
        try:
            tiles = tiles_of(step, pe.engines)
        except LookupError as lacking:
            raise Fault("KERNEL_ERROR", pe.node("cpu")) from lacking
        if step["do"] in ("send", "recv") and not pe.machine.rings.allows(pe.name, step):
            raise Fault("KERNEL_ERROR", pe.node("cpu"))
        if "tcm" in step and not pe.tcm.low <= step["tcm"] <= pe.tcm.size - step["bytes"]:
            raise Fault("BAD_ADDRESS", pe.node("dma"))
        if any(sum(tile.buffers) > pe.tcm.low for tile in tiles):
            raise Fault("TILE_TOO_LARGE", pe.node("scheduler"))
        return tiles

    # ---- what it was

    def end(self, fault):
        self.fault = fault
        self.end_ps = self.pe.sim.now
        if not fault:
            self.wait_over()
        for compute in (True, False):
            self.busy_ps[compute] = self.busy_until(compute, self.end_ps)
        self.answer(fault and {"pe": self.pe.name, "rank": self.pe.node("cpu").rank, "code": fault.code,
                               "node": fault.node.name, "t_ps": self.end_ps})

    def busy(self, kind, change):
        """One server more, or less, is busy."""
        if self.end_ps is not None or kind in ("FETCH", "STORE"):
            return
        compute = kind in COMPUTE
        if change < 0 and self.serving[compute] == 1:
            self.busy_ps[compute] = self.busy_until(compute, self.pe.sim.now)
        elif change > 0 and self.serving[compute] == 0:
            self.since[compute] = self.pe.sim.now
        self.serving[compute] += change

    def busy_until(self, compute, when):
        return self.busy_ps[compute] + (when - self.since[compute] if self.serving[compute] else 0)

    def metrics(self, end_ps):
        """(execution, DMA, compute) in ps, up to the end of the run if the kernel has not ended."""
        if self.end_ps is not None:
            return self.end_ps - self.start_ps, self.busy_ps[False], self.busy_ps[True]
        return end_ps - self.start_ps, self.busy_until(False, end_ps), self.busy_until(True, end_ps)
