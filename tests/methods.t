#!/usr/bin/python3
"""methods: the methods of a search, played against other implementations of them. plain build only

NSGA-II has to reach the hypervolume of Optuna's NSGA-II with its best crossover less 2 %, in the median of 11 seeds.
tests/methods/optuna_nsga2.json has what Optuna reached. Sobol's sequence is held against SciPy's.
"""
import os
import statistics
import subprocess
import sys

from harness import BUILD, ROOT, json, ok, read, skip, suite

sys.path.insert(0, os.path.join(ROOT, "tests", "methods"))
from problems import POINTS, PROBLEMS, SEEDS, hypervolume  # pylint: disable=wrong-import-position

LEVELS = 1_000_001                                      # of a real variable
FILTER = os.path.join(BUILD, "unit", "methods")
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
    axes = ["nsga2.population=" + str(EXPECTED["population"])] + [str(LEVELS)] * variables
    scale = 1 / (LEVELS - 1)
    _, answers = play("nsga2", seed, POINTS, len(corner), axes, lambda levels: function([level * scale for level in levels]))
    return hypervolume(answers, corner)


def nsga2():
    for problem in PROBLEMS:
        best = statistics.median(EXPECTED["problems"][problem]["hypervolumes"])
        median = statistics.median(reached(problem, seed) for seed in range(1, SEEDS + 1))
        ok(median >= 0.98 * best, f"NSGA-II covers as much of {problem} as Optuna's does, less 2 %",
           f"{median:.4f} against {best:.4f}: {median / best - 1:+.2%}")


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
