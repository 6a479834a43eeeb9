#!/usr/bin/python3
"""optuna_nsga2: the hypervolumes that Optuna's NSGA-II (Debian's python3-optuna) reaches on the problems of problems.py.

optuna_nsga2.py [PROBLEM...] prints them as JSON: of each crossover for real variables with the first seed, and of the best
one of these with all seeds. optuna_nsga2.json is what it printed; tests/methods.t holds kbgen's NSGA-II against it. Takes
half an hour of processor time.
"""
import json
import sys

import optuna
from optuna.samplers import NSGAIISampler, nsgaii

from problems import POINTS, PROBLEMS, SEEDS, hypervolume

CROSSOVERS = {"uniform": nsgaii.UniformCrossover, "sbx": nsgaii.SBXCrossover, "vsbx": nsgaii.VSBXCrossover,
              "blxalpha": nsgaii.BLXAlphaCrossover, "undx": nsgaii.UNDXCrossover}
POPULATION = 64


def reached(problem, crossover, seed):
    function, variables, corner = PROBLEMS[problem]
    sampler = NSGAIISampler(population_size=POPULATION, seed=seed, crossover=CROSSOVERS[crossover]())
    study = optuna.create_study(directions=["minimize"] * len(corner), sampler=sampler)
    study.optimize(lambda trial: function([trial.suggest_float(f"x{i}", 0, 1) for i in range(variables)]), POINTS)
    volume = hypervolume([tuple(trial.values) for trial in study.get_trials(deepcopy=False)], corner)
    print(problem, crossover, seed, volume, file=sys.stderr, flush=True)
    return round(volume, 6)


def main(problems):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    out = {}
    for problem in problems:
        first = {crossover: reached(problem, crossover, 1) for crossover in CROSSOVERS}
        best = max(CROSSOVERS, key=first.get)
        volumes = [first[best]] + [reached(problem, best, seed) for seed in range(2, SEEDS + 1)]
        out[problem] = {"first_seed": first, "crossover": best, "hypervolumes": volumes}
    print(json.dumps({"optuna": optuna.__version__, "points": POINTS, "population": POPULATION, "problems": out}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:] or list(PROBLEMS))
