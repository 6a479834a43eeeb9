"""host: the host of a stream: its steps one after the other, in place, with requests in flight beside each other."""
import result
from cause import START
from control import Launch, Map, MemoryRequest
from simulation import KERNEL
from stream import chosen, parts_of, place, step_for, whole
from units import half_up, number


def ps(text):
    return half_up(number(text) * 1000)


class Host:
    def __init__(self, machine):
        self.machine, self.sim = machine, machine.sim
        self.steps = machine.stream.host
        self.at, self.begun = 0, False
        self.complete, self.flying = set(), {}          # positions; position -> report, None of a map
        self.stopped, self.timer, self.end = False, None, START     # its end: what the host was told last
        self.ids = {step["id"]: at for at, step in enumerate(self.steps) if "id" in step}
        self.launches, self.memory = [], []             # reports, in the order of the file
        self.ends = {}                                  # report -> the moment of its end, of those that have ended
        self.reports = {at: self.report(step) for at, step in enumerate(self.steps)}
        programs = [self.programs_of(step) for step in self.steps if step["do"] == "launch"]
        self.targets = [pe for pe in machine.pes.values() if any(pe in one for one in programs)]

    def report(self, step):
        if step["do"] == "launch":
            self.launches.append(result.LaunchReport(step))
            return self.launches[-1]
        return result.MemoryReport(step) if step["do"] in ("read", "write") else None

    # ---- the list

    def act(self):
        while not self.stopped and self.at < len(self.steps):
            if not self.begun:
                self.begun = True
                self.begin(self.at, self.steps[self.at])
            if not self.passed(self.at, self.steps[self.at]):
                return
            self.at, self.begun = self.at + 1, False
        self.sim.over = not self.flying

    def passed(self, at, step):
        if step["do"] == "wait":
            return all(self.ids[name] in self.complete for name in step["for"])
        return at in self.complete or step.get("async") == "true"

    def begin(self, at, step):
        do, report = step["do"], self.reports[at]
        if do == "wait":
            return
        if do == "delay":
            end = self.sim.moment.then(ps(step["ns"]), "host", "host")
            self.timer = self.sim.at(end, self.machine.fabric.nodes["host"], KERNEL, (at,), lambda: self.delayed(at))
            return
        self.flying[at] = report
        answered = lambda failures: self.answered(at, failures)
        if do == "launch":
            report.launch = Launch(self.machine, self.programs_of(step), answered, step, at,
                                   lambda: self.timed_out(at))
            report.launch.send()
        elif report:
            self.memory.append(report)
            self.machine.host_requests.begins()
            report.request = self.memory_request(step, answered)
            report.request.send()
        else:
            self.map(step, answered)

    def delayed(self, at):
        self.timer = None
        self.complete.add(at)
        self.act()

    def answered(self, at, failures):
        if self.steps[at]["do"] in ("read", "write"):
            self.machine.host_requests.ends()
        self.over(at, self.flying[at] and self.flying[at].answered(self.sim, failures))

    def timed_out(self, at):
        self.flying[at].timed_out(self.sim.now)
        self.over(at, True)

    def over(self, at, bad):
        """A request is over for the host."""
        self.end = self.ends[self.flying.pop(at)] = self.sim.moment
        self.complete.add(at)
        if bad:
            self.stopped = True
            if self.timer:
                self.sim.cancel(self.timer)
                self.timer = None
        self.act()

    def deadlocked(self):
        """Nothing is left to happen."""
        self.end = self.sim.moment
        for report in self.flying.values():
            report.deadlocked(self.sim.now)
            self.ends[report] = self.end

    def instant_over(self):
        for report in self.launches:
            if report.done == self.sim.now:
                report.settle()

    # ---- requests

    def map(self, step, answered):
        pes = self.targets
        if "targets" in step:
            names = chosen(step["targets"], self.machine.pes)
            pes = [pe for pe in self.machine.pes.values() if pe.name in names]
        entry = (whole(step["va"]), whole(step["bytes"]),
                 lambda pe: place(step["to"], pe.sip, pe.cube, pe.number, pe.slice) if step["do"] == "map" else None)
        if pes:
            Map(self.machine, pes, answered, entry).send()
        else:
            self.complete.add(self.at)
            del self.flying[self.at]
            self.end = self.sim.moment

    def memory_request(self, step, answered):
        writes = step["do"] == "write"
        addresses = [place(value, 0, 0, 0, 0) for value in step["to" if writes else "from"]]
        return MemoryRequest(self.machine, writes, addresses, whole(step["bytes"]), answered)

    def programs_of(self, raw):
        """{PE: steps}, in rank order."""
        found, pes = {}, self.machine.pes
        for part in parts_of(raw):
            for name in chosen(part["targets"], pes):
                found[pes[name]] = [step_for(step, pes[name]) for step in self.machine.stream.programs[part["program"]]]
        return {pe: found[pe] for pe in pes.values() if pe in found}
