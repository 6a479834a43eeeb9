"""trial: one stream on one machine: the simulator against the oracle."""
import json
import os
import subprocess

import yaml

import causes
import invariants
import through
from cases import expected
from harness import (KBGEN, SAN, first_difference, normal, read, remove, result_difference, run, scratch,
                     stats_difference, without_why)
from stream import Stream
from topology import Topology

TIMEOUT_S = 60
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)          # libyaml's, if it is there, takes a tenth of the time


def write_yaml(path, value):
    with open(path, "w", encoding="utf-8") as file:
        yaml.dump(value, file, DUMPER, sort_keys=False, default_flow_style=None, width=115)


class Broken(Exception):
    """A simulator could not be made; says why."""


class Machine:
    """A topology in a folder, with its simulator.

    The machines of a suite share a cache of objects: few differ in all of their parts. It is not the one in BUILD, which
    has no room for what nobody uses again.
    """

    def __init__(self, folder, tree, options=()):
        self.folder, self.tree = folder, tree
        self.topo_path, self.program = os.path.join(folder, "topo.yaml"), os.path.join(folder, "sim")
        write_yaml(self.topo_path, tree)
        self.topology = Topology(self.topo_path)
        self.facts = invariants.Machine(self.topology)
        self.result = None                                      # of the last replay that gave one
        self.library = None
        self.env = {"env": os.environ | {"KBGEN_CACHE": scratch("kbgen.cache")}}
        made = run(KBGEN, self.topo_path, "-o", self.program, *options, **self.env)
        if made.returncode:
            raise Broken(made.said)

    def make_library(self):
        self.library, said = through.library(self.topo_path, os.path.join(self.folder, "lib"), **self.env)
        if not self.library:
            raise Broken(said)

    def library_complaints(self, steps, stream_path, seed):
        """What is wrong with the library's answer to a stream, which the simulator has just answered."""
        if not self.library:
            return []
        _, result, trace, *_ = self.replay(stream_path, stats=False)
        case = through.Through(steps, self.library, self.topo_path, stream_path, result, trace, os.path.join(self.folder, "through"))
        modes = (("whole", True), ("steps", True), ("saves" if seed % 2 else "slices", seed % 4 < 2))
        return [line for mode, traced in modes for line in case.complaints(mode, traced, seed)[0]]

    def replay(self, stream, trace=True, leaks=True, stats=True, more=()):
        """-> (exit status, result, trace, statistics, all that it said).

        LeakSanitizer, which takes as long as a short stream, looks if it is asked to.
        """
        paths = [os.path.join(self.folder, name) for name in ("got.json", "got.jsonl", "stats.json")]
        remove(*paths)
        ended = run(self.program, "replay", stream, "--json", paths[0], *(["--trace", paths[1]] if trace else []),
                    *(["--stats", paths[2]] if stats else []), *more, timeout=TIMEOUT_S, env=os.environ | {"LSAN_OPTIONS": f"detect_leaks={int(leaks)}"})
        return ended.returncode, *map(read, paths), ended.said

    def complaints(self, stream_path, more=0):
        """What is wrong with the simulator's answer to a stream.

        For 0 and 2 of `more` it tells causes. It is run again: for 0 and 1 of `more` with nobody who watches, so that
        events are made ahead of time, and for 0 with every tile simulated, else without a trace. For 3, under the
        sanitizers, it may leak no memory either.
        """
        try:
            status, told, trace, stats, said = self.replay(stream_path, leaks=more == 3,
                                                           more=["--why-launches"] if more % 2 == 0 else [])
        except subprocess.TimeoutExpired as late:
            return [str(late)]
        if status not in (0, 1):
            return [f"exit status {status}", said]
        got = without_why(told)
        self.result = json.loads(got)
        wrong = []
        if not SAN:                                             # what the plain build says is compared there
            want = expected(self.topology, Stream(stream_path))
            if isinstance(want, str):
                return [want]
            wrong += [line for line in (difference("result", result_difference(want[0], got)),
                                        difference("trace", first_difference(want[1], trace)),
                                        difference("statistics", stats_difference(want[2], stats)),
                                        more % 2 == 0 and causes.difference(told, want[3])) if line]
        if status != (0 if all_well(self.result) else 1):
            wrong.append(f"exit status {status}")
        wrong += invariants.broken(self.facts, self.result, trace, Stream(stream_path))
        if more < 2 and not SAN:
            _, other, *_ = self.replay(stream_path, trace=False, stats=False, more=() if more else ["--exact-events"])
            wrong += ["another result if nobody watches"] * (normal(other) != normal(got))
        elif more == 3 and not SAN:
            _, other, _, other_stats, _ = self.replay(stream_path, trace=False)
            wrong += ["another result without a trace"] * (normal(other) != normal(got))
            wrong += ["other statistics without a trace"] * (other_stats != stats)
        return wrong


def difference(what, where):
    return f"{what}, {where}" if where else ""


def all_well(value):
    return all(one["status"] == "ok" for one in value["launches"] + value.get("memory", []))
