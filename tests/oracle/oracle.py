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
from fabric import Fabric                                            # noqa: E402
from host import Host                                                # noqa: E402
from memory import Memories                                          # noqa: E402
from pe import Pe                                                    # noqa: E402
from ring import Rings                                               # noqa: E402
from simulation import Simulation                                    # noqa: E402
from stream import Stream                                            # noqa: E402
from topology import Topology                                        # noqa: E402
import usage                                                         # noqa: E402


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
        self.channels = {}              # of m_cpus: (name, writes) -> requests, the first is in flight
        self.host_requests = usage.HostRequests(self)
        self.host = Host(self)

    def run(self):
        self.host.act()
        self.sim.run(self.issue, self.host.instant_over)
        if not self.sim.over:
            self.host.deadlocked()
        return self

    def issue(self):
        for pe in self.pes.values():
            pe.issue()


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
