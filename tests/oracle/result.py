"""result: what a run was: the result's JSON value and the lines of the trace."""
import json

from stream import parts_of


def failure_of(failures, *keys):
    """Of the one of lowest rank, the named parts."""
    first = min(failures, key=lambda failure: failure["rank"])
    return {key: first[key] for key in keys}


class MemoryReport:
    def __init__(self, raw):
        self.raw, self.request, self.failure, self.done = raw, None, None, None

    def answered(self, sim, failures):
        """Takes the answer; whether it is a failure."""
        self.done = sim.now
        if failures:
            self.failure = failure_of(failures, "code", "node", "t_ps")
        return bool(failures)

    def deadlocked(self, now):
        raise AssertionError("a memory request that is never answered")

    def value(self):
        return {"do": self.raw["do"], "status": "failed" if self.failure else "ok",
                "submitted_ps": self.request.submitted, "done_ps": self.done, "xfer_ps": self.request.xfer_ps,
                } | ({"failure": self.failure} if self.failure else {})


class LaunchReport:
    def __init__(self, raw):
        self.raw, self.launch, self.status, self.failure, self.done = raw, None, "skipped", None, None
        self.settled = None                     # the value, once the launch is over

    def answered(self, sim, failures):
        self.done, self.status = sim.now, "ok"
        if failures:
            self.status, self.failure = "failed", failure_of(failures, "pe", "code", "node", "t_ps")
        if self.launch.timer:
            sim.cancel(self.launch.timer)
        return bool(failures)

    def timed_out(self, now):
        self.status, self.done = "timeout", now

    def deadlocked(self, now):
        self.status, self.done = "deadlock", now

    def settle(self):
        """The instant in which it ended is over: what its kernels do later is not reported."""
        self.settled = self.value()

    def value(self):
        if self.settled:
            return self.settled
        end_ps = self.done
        name = "+".join(part["program"] for part in parts_of(self.raw))
        pes = [self.pe_value(pe, end_ps) for pe in self.launch.programs] if self.launch else []
        metrics = [metric for _, metric in pes] or [(0, 0, 0)]
        value = {"program": name, "status": self.status, "submitted_ps": self.launch and self.launch.submitted,
                 "start_ps": self.start_ps(), "done_ps": self.done,
                 "pe_exec_ps": max(one[0] for one in metrics), "dma_ps": max(one[1] for one in metrics),
                 "compute_ps": max(one[2] for one in metrics), "pes": [pe for pe, _ in pes],
                 "commands": self.commands()}
        if self.failure:
            value["failure"] = self.failure
        if self.status in ("timeout", "deadlock"):
            value["waiting"] = [self.waiting(pe) for pe in self.launch.programs if not self.ended(pe)]
        return value

    def start_ps(self):
        kernels = self.launch.kernels if self.launch else {}
        return min((kernel.start_ps for kernel in kernels.values()), default=None)

    def ended(self, pe):
        return pe in self.launch.kernels and self.launch.kernels[pe].end_ps is not None

    def waiting(self, pe):
        commands = pe.commands if pe in self.launch.kernels else []
        return {"pe": pe.name, "commands": [one.number for one in commands if one.complete is None]}

    def pe_value(self, pe, end_ps):
        kernel = self.launch.kernels.get(pe)
        metrics = kernel.metrics(end_ps) if kernel else (0, 0, 0)
        status = "running" if not self.ended(pe) else "failed" if kernel.fault else "ok"
        value = {"id": pe.name, "status": status, "start_ps": kernel and kernel.start_ps,
                 "end_ps": kernel and kernel.end_ps, "dma_ps": metrics[1], "compute_ps": metrics[2]}
        if status == "failed":
            value["failure"] = {"code": kernel.fault.code, "node": kernel.fault.node.name, "t_ps": kernel.end_ps}
        return value, metrics

    def commands(self):
        """By (PE, n): of every launch its own, whatever ran on the PE since."""
        kernels = self.launch.kernels if self.launch else {}
        return [{"pe": pe.name, "n": one.number, "do": one.step["do"], "submitted_ps": one.submitted,
                 "complete_ps": one.complete}
                for pe in (self.launch.programs if self.launch else []) if pe in kernels
                for one in kernels[pe].commands]


def result(machine):
    value = {"system": machine.topo.name, "end_ps": machine.host.end.time}
    if machine.host.memory:
        value["memory"] = [report.value() for report in machine.host.memory]
    value["launches"] = [report.value() for report in machine.host.launches]
    return value


def trace(machine):
    for (time, _, (command, tile), stage, _), event, node in sorted(machine.sim.trace):
        yield json.dumps({"t": time, "ev": event, "node": node, "cmd": command, "tile": tile, "stage": stage},
                         separators=(",", ":")) + "\n"
