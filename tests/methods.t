#!/usr/bin/python3
"""methods: the methods of a search, played against other implementations of them. plain build only

tests/methods.t [SEEDS]: NSGA-II is played with that many seeds (3). Its median hypervolume has to be that of Optuna's NSGA-II
less 2 %, with the best of the crossovers that were run, one seed of most (tests/methods/optuna_nsga2.json), and on the problems
of two objectives that of the front itself less 1 %. Sobol's sequence is held against SciPy's.
"""
import os
import re
import statistics
import subprocess
import sys

from harness import BUILD, ROOT, json, ok, read, skip, suite

sys.path.insert(0, os.path.join(ROOT, "tests", "methods"))
from problems import EXACT, POINTS, POPULATION, PROBLEMS, hypervolume  # pylint: disable=wrong-import-position

SEEDS = int(sys.argv[1]) if sys.argv[1:] else 3
LEVELS = 1_000_001                                      # of a real variable
FILTER = os.path.join(BUILD, "unit", "methods")
PAGE = " ".join(read(os.path.join(ROOT, "docs", "search.md")).split())
EXPECTED = json.loads(read(os.path.join(ROOT, "tests", "methods", "optuna_nsga2.json")))


def play(method, seed, count, objectives, axes, evaluate):
    """Plays a search; `evaluate` gives the answers to the points of a batch. Returns all points and answers."""
    points, answers = [], []
    with subprocess.Popen([FILTER, method, str(seed), str(count), str(objectives), *axes], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        batch = []
        for line in process.stdout:
            if line != "\n":
                batch.append([int(level) for level in line.split()])
                continue
            values = [evaluate(levels) for levels in batch]
            points += batch
            answers += values
            process.stdin.writelines(" ".join(map(repr, value)) + "\n" for value in values)
            process.stdin.flush()
            batch = []
    return points, answers


def reached(problem, seed):
    function, variables, corner = PROBLEMS[problem]
    axes = [f"nsga2.population={POPULATION}"] + [str(LEVELS)] * variables
    scale = 1 / (LEVELS - 1)
    _, answers = play("nsga2", seed, POINTS, len(corner), axes, lambda levels: function([level * scale for level in levels]))
    return hypervolume(answers, corner)


def nsga2():
    for problem, of_optuna in EXPECTED["problems"].items():
        median = statistics.median(reached(problem, seed) for seed in range(1, SEEDS + 1))
        best = max(statistics.median(volumes) for volumes in of_optuna.values())
        share = median / EXACT[problem]
        said = f"{median:.4f}: {median / best - 1:+.2%} of Optuna's, {share:.2%} of the front's"
        crossovers = " or ".join(f"{crossover} ({len(volumes)})" for crossover, volumes in of_optuna.items())
        ok(median >= 0.98 * best, f"NSGA-II covers as much of {problem} as Optuna's does, less 2 %, with {crossovers}", said)
        shown = f"{best / EXACT[problem]:.1%}".replace("%", " %")
        ok(re.search(rf"{shown} of {problem.upper()}\b", PAGE), f"docs/search.md has what Optuna's covers of {problem}", shown)
        if problem != "dtlz2":
            ok(share >= 0.99, f"and 99 % of what the front of {problem} covers", said)
        print(f"# {problem} {said}")


def sobol():
    name = "256 dimensions of Sobol's sequence are those of SciPy"
    try:
        from scipy.stats import qmc                     # pylint: disable=import-outside-toplevel
    except ImportError:
        skip(name, "python3-scipy is not installed")
        return
    ours, _ = play("sobol", 0, 512, 1, [str(1 << 30)] * 256, lambda levels: (0.0,))
    theirs = qmc.Sobol(256, scramble=False, bits=30).random(512)
    ok([[round(value * 2**30) for value in row] for row in theirs] == ours, name)


suite(nsga2, sobol)
