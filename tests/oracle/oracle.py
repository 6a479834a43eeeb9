#!/usr/bin/python3
"""oracle: the machine model in plain Python, made from its description alone and for clarity: what a simulator has to
agree with.

    oracle.py TOPO.yaml STREAM.yaml [RESULT.json [TRACE.jsonl [STATS.json]]]

Knows no data, only times; reads what is valid. The result goes to standard output if no file is named.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import result                                                        # noqa: E402
from control import Launch, Map, MemoryRequest                       # noqa: E402
from fabric import Fabric                                            # noqa: E402
from memory import Memories                                          # noqa: E402
from pe import Pe                                                    # noqa: E402
from ring import Rings                                               # noqa: E402
from simulation import Simulation                                    # noqa: E402
from stream import Stream, chosen, parts_of, place, step_for, whole  # noqa: E402
from topology import Topology                                        # noqa: E402
import usage                                                         # noqa: E402
from units import half_up, number                                    # noqa: E402


class Machine:
    """A topology with all its state, and the host that works off a stream."""

    def __init__(self, topo, stream):
        self.topo, self.stream, self.sim = topo, stream, Simulation()
        self.fabric = Fabric(self.sim, self.topo)
        self.memories = Memories(self.topo, self.fabric.nodes)
        self.pes = {}
        for sip in range(self.topo.sips):
            for cube in range(self.topo.cube_rows * self.topo.cube_cols):
                for number_ in range(self.topo.pes):
                    pe = Pe(self, sip, cube, number_)
                    self.pes[pe.name] = pe
        self.rings = Rings(self)
        self.launches = [result.LaunchReport(raw) for raw in self.stream.launches]
        self.requests, self.current, self.next, self.end_ps = [], None, None, None

    def run(self):
        work = self.work()
        self.next = lambda failures: self.go_on(work, failures)
        self.go_on(work, None)
        self.sim.run(self.issue)
        if not self.sim.over:
            self.current.deadlocked(self.sim.now)
        self.end_ps = self.sim.now
        return self

    def issue(self):
        for pe in self.pes.values():
            pe.issue()

    # ---- the host

    def go_on(self, work, failures):
        """What the host waited for has answered."""
        try:
            work.send(failures)
        except StopIteration:
            self.sim.over = True

    def work(self):
        """All that the host does, one after the other; yields while it waits, and gets the failures."""
        targets = [pe for pe in self.pes.values() if any(pe in self.programs_of(raw) for raw in self.stream.launches)]
        for raw in self.stream.maps:
            self.current = Map(self, targets, self.next, self.map_entry(raw))
            self.current.send()
            yield
        for raw in self.stream.memory:
            self.current = report = result.MemoryReport(raw, self.memory_request(raw))
            self.requests.append(report)
            report.request.send()
            over = report.answered(self.sim, (yield))
            usage.host_request_ends(self)
            if over:
                return
        for report in self.launches:
            self.current = report
            raw, timeout = report.raw, report.raw.get("timeout_ns")
            report.launch = Launch(self, self.programs_of(raw), self.next, raw.get("on_failure") == "fail_fast",
                                   None if timeout is None else half_up(number(timeout) * 1000))
            report.launch.send()
            if report.answered(self.sim, (yield)):
                return

    def timed_out(self):
        self.current.timed_out(self.sim.now)
        self.sim.over = True

    def map_entry(self, raw):
        return (whole(raw["va"]), whole(raw["bytes"]), lambda pe: place(raw["to"], pe.sip, pe.cube, pe.number))

    def memory_request(self, raw):
        writes = raw["do"] == "write"
        addresses = [place(value, 0, 0, 0) for value in raw["to" if writes else "from"]]
        return MemoryRequest(self, writes, addresses, whole(raw["bytes"]), self.next)

    def programs_of(self, raw):
        """{PE: steps}, in rank order."""
        found = {}
        for part in parts_of(raw):
            for name in chosen(part["targets"], self.pes):
                pe = self.pes[name]
                found[pe] = [step_for(step, pe) for step in self.stream.programs[part["program"]]]
        return {pe: found[pe] for pe in self.pes.values() if pe in found}


def main():
    machine = Machine(Topology(sys.argv[1]), Stream(sys.argv[2])).run()
    text = json.dumps(result.result(machine), indent=1) + "\n"
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w", encoding="utf-8") as file:
            file.writelines(result.trace(machine))
    if len(sys.argv) > 5:
        with open(sys.argv[5], "w", encoding="utf-8") as file:
            json.dump(usage.value_of(machine), file, indent=1)


if __name__ == "__main__":
    main()
