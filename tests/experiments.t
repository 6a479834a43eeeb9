#!/usr/bin/python3
"""experiments: what the critical path of random machines says is tried with other numbers. A run is shorter if the number
with the largest share of its path is better. It is not longer if a time that is not on its path is longer by 1 ps. A path
that moves is an exception: it is printed, and few may move. plain build only, limit: 120

tests/experiments.t [MACHINES [SEED]]
"""
import json
import os
import random
import shutil
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, folder) for folder in ("oracle", "fuzz", "embed")]

from harness import done, folder, ok                            # noqa: E402
import causes                                                   # noqa: E402
import machines                                                 # noqa: E402
import keys                                                     # noqa: E402
import streams                                                  # noqa: E402
import trial                                                    # noqa: E402

MACHINES, SEED = (sys.argv[1:] + [None] * 2)[:2]
MACHINES, SEED = int(MACHINES or 8), SEED or "1"
LEAST = 6                                                       # commands of a stream that is worth it
TRIES = 20
MOVED_SHARE = 0.02                                              # the most that may move; of few experiments, one
seen = Counter()


class Experiment:
    """A machine and a stream that it runs well, with some commands."""

    def __init__(self, number):
        name = f"{SEED}-{number}"
        self.machine = trial.Machine(folder(name), machines.machine(random.Random(f"{SEED}/{number}")))
        self.topology, self.stream = self.machine.topology, os.path.join(folder(name), "stream.yaml")
        facts = streams.Facts(self.topology)
        for which in range(TRIES):
            trial.write_yaml(self.stream, streams.stream(random.Random(f"{SEED}/{number}/{which}"), facts))
            value = self.measure()
            if trial.all_well(value) and sum(len(one["commands"]) for one in value["launches"]) >= LEAST:
                break
        self.value = value

    def measure(self, *settings):
        """The result of the machine with other numbers."""
        words = [word for setting in settings for word in ("--set", setting)]
        _, got, *_, said = self.machine.replay(self.stream, trace=False, stats=False, leaks=False, more=["--why", *words])
        if not got:
            raise trial.Broken(said)
        return json.loads(got)

    def shares(self, value):
        """{key: ps of the path of a result}."""
        found = Counter()
        for begin, end, _, _, work, at, *_ in causes.told(value["why"]["path"]):
            for key in keys.keys_of(work, at, self.topology):
                found[key] += end - begin
        return found

    def moved(self, other):
        """Whether the path of another result is another one; what is different at its end."""
        def steps(value):
            return [row[2:] for row in causes.folded(causes.told(value["why"]["path"]))][::-1]
        old, new = steps(self.value), steps(other)
        return next((f"{left} -> {right}" for left, right in zip(old, new) if left != right),
                    "longer" if len(new) != len(old) else "")

    def judge(self, what, other, as_said):
        """A complaint, unless a run with other numbers is as the path has said, or the path has moved."""
        moved = "" if as_said else self.moved(other)
        seen[what, "as said" if as_said else "moved" if moved else "wrong"] += 1
        ends = f"{what}: {self.value['end_ps']} -> {other['end_ps']} ps"
        if moved:
            print(f"# {ends}; the path has moved: {moved}")
        return [] if as_said or moved else [ends]

    def complaints(self):
        wrong, shares, end_ps = [], self.shares(self.value), self.value["end_ps"]
        for key, _ in shares.most_common():
            if setting := keys.faster(self.topology, key):
                other = self.measure(*self.with_it(key, setting))
                said = self.judge("the largest share", other, other["end_ps"] < end_ps)
                if not said and other["end_ps"] >= end_ps and self.shares(other).most_common(1)[0][0] == key:
                    said = ["the path has moved, and the key has the largest share of the new one, too"]
                wrong += [key, *said] if said else []
                break
        for key in keys.times(self.topology):
            if key not in shares and "ns_per_mm" not in key:
                other = self.measure(keys.in_ps(self.topology, key, keys.ps_of(self.topology, key) + 1))
                if said := self.judge("not on the path", other, other["end_ps"] <= end_ps):
                    wrong += [key, *said]
        return wrong

    def with_it(self, key, setting):
        """What limits a channel of the TCM is the smaller of two bandwidths: both grow."""
        others = [keys.faster(self.topology, one) for one in keys.bandwidths("pe_tcm read")
                  + keys.bandwidths("pe_tcm write") if key.endswith("_bw_gbs") and "tcm" in key and one != key]
        return [setting, *dict.fromkeys(filter(None, others))]


def main():
    for number in range(MACHINES):
        wrong = Experiment(number).complaints()
        ok(not wrong, f"machine {SEED}-{number}: the critical path says what makes the run shorter, and what does not", *wrong)
        shutil.rmtree(folder(f"{SEED}-{number}"))
    for (what, how), count in sorted(seen.items()):
        print(f"# {what}: {how} {count}")
    moved = sum(count for (_, how), count in seen.items() if how == "moved")
    ok(moved <= max(1, MOVED_SHARE * seen.total()), f"at most {MOVED_SHARE:.0%} of the paths move",
       f"{moved} of {seen.total()}")
    done()


main()
