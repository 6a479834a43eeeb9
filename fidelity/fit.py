#!/usr/bin/python3 -B
"""fit.py [--holdout] SET ...: fits the constants that `fit` of a set.yaml names, at most three, on the set's rows, and writes
constants.json.

The mean absolute error of the rows is made as small as the method of Nelder and Mead makes it, from the middle of the bounds
and from three other points. Constants are rounded to three digits. Environment and exit status are those of fidelity.py.

--holdout writes nothing. It fits on a half of the rows, from the middle of the bounds, and prints the error of the other half: for
the rows of shorter measured times and those of longer ones, and for three random halves.
"""
import json
import os
import random
import sys

from fidelity import Set, Simulator, Wrong, errors, replace

STEPS = 80
RANDOM_HALVES = 3
STARTS = (0.5, 0.2, 0.8, 0.35)                          # shares of the way between the bounds


def nelder_mead(loss, start, steps):
    """The least loss found in the unit cube, with its point."""
    simplex = [list(start)] + [[x + 0.15 * (i == j) * (1 if x < 0.5 else -1) for j, x in enumerate(start)] for i in range(len(start))]
    scored = sorted((loss(point), point) for point in simplex)
    for _ in range(steps):
        worst = scored[-1][1]
        middle = [sum(point[j] for _, point in scored[:-1]) / (len(scored) - 1) for j in range(len(worst))]

        def along(share):
            point = [min(max(m + share * (m - w), 0.0), 1.0) for m, w in zip(middle, worst)]
            return loss(point), point
        new = along(1.0)
        if new < scored[0]:
            new = min(new, along(2.0))
        elif new >= scored[-2]:
            new = min(along(0.5), along(-0.5))
        if new < scored[-1]:
            scored[-1] = new
        else:                                           # towards the best
            best = scored[0][1]
            scored = [scored[0]] + [(loss(point), point) for point in
                                    ([(b + x) / 2 for b, x in zip(best, point)] for _, point in scored[1:])]
        scored.sort()
        if scored[-1][0] - scored[0][0] < 1e-6:
            break
    return scored[0]


def between(least, most, share):
    """A constant of three digits; whole, if the bounds are."""
    value = float(f"{least + share * (most - least):.3g}")
    return round(value) if isinstance(least, int) and isinstance(most, int) else value


class Fit:
    """What is known of the errors of a set's rows, by constants."""

    def __init__(self, one):
        self.set, self.bounds, self.known = one, one.keys.get("fit") or {}, {}
        if not self.bounds:
            raise Wrong(f"{one.folder}/set.yaml: 'fit' names no constant")
        for pair in self.bounds.values():
            if not isinstance(pair, list) or len(pair) != 2 or any(not isinstance(bound, (int, float)) for bound in pair) or not pair[0] < pair[1]:
                raise Wrong(f"{one.folder}/set.yaml: a constant of 'fit' has two bounds: [least, most]")
        self.simulator = Simulator(one)

    def constants_at(self, point):
        return {key: between(least, most, x) for x, (key, (least, most)) in zip(point, self.bounds.items())}

    def error(self, constants, rows):
        """The mean absolute error of some rows."""
        at = tuple(constants.values())
        if at not in self.known:
            times = self.simulator.times(constants)
            if None in times:
                raise Wrong(f"{self.set.folder}: a row cannot be run with {constants}")
            self.known[at] = [time for time, _ in times]
        return errors([self.known[at][i] for i in rows], [self.set.measured[i] for i in rows])["mean_absolute"]

    def best(self, rows, starts):
        """The constants of the least error found, and that error."""
        error, point = min(nelder_mead(lambda point: self.error(self.constants_at(point), rows), [start] * len(self.bounds), STEPS)
                           for start in starts)
        return self.constants_at(point), error


def fit(one):
    this, rows = Fit(one), range(len(one.rows))
    before = this.error({}, rows)
    constants, after = this.best(rows, STARTS)
    found = {"constants": constants, "rows": len(rows), "runs": len(this.known) - 1,
             "mean_absolute_error": {"public figures": before, "fitted": after}}
    replace(os.path.join(one.folder, "constants.json"), json.dumps(found, indent=1) + "\n")
    print(f"{one.keys['title']}: {before:.1%} -> {after:.1%} on {len(rows)} rows, " + ", ".join(f"{key} {value:g}" for key, value in constants.items()))


def holdout(one):
    this, rows = Fit(one), range(len(one.rows))
    if len(rows) < 2:
        raise Wrong(f"{one.rows_path}: one row has no halves")
    ordered, half = sorted(rows, key=one.measured.__getitem__), len(rows) // 2
    splits = [("shorter", ordered[:half], ordered[half:]), ("longer", ordered[half:], ordered[:half])]
    for seed in range(RANDOM_HALVES):
        mixed = random.Random(seed).sample(rows, len(rows))
        splits.append((f"random half {seed + 1}", mixed[:half], mixed[half:]))
    print(f"{one.keys['title']}: fitted on | error there | error of the other rows | constants")
    for title, chosen, others in splits:
        constants, error = this.best(chosen, STARTS[:1])
        print(f"{title}, {len(chosen)} rows | {error:.1%} | {this.error(constants, others):.1%} | " + ", ".join(f"{value:g}" for value in constants.values()), flush=True)


def main(words):
    try:
        wanted = holdout if words[:1] == ["--holdout"] else fit
        folders = words[1:] if wanted is holdout else words
        if not folders:
            raise Wrong("name the folder of a set")
        for folder in folders:
            wanted(Set(folder, os.environ.get("ROWS")))
    except Wrong as why:
        print(f"fidelity: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
