#!/usr/bin/python3
"""optuna_nsga2: the hypervolumes that Optuna's NSGA-II (Debian's python3-optuna) reaches on the problems of problems.py.

optuna_nsga2.py SEEDS [PROBLEM...] prints as JSON what each crossover for real variables reaches with the seeds from 1 on; a run
takes 30 s of processor time, all of them with 11 seeds two hours. optuna_nsga2.json has the runs that were done: the first seed
of each crossover, three of uniform on dtlz2, uniform alone on zdt3; tests/methods.t holds kbgen's NSGA-II against the best of
them, and against the fronts themselves. optuna_nsga2.py --check N compares N points of each problem with those of a study of Optuna's.

The sampler is Optuna's own, its bookkeeping is not, for a tenth of the time: a study copies its trials for each new one, the
sampler goes through all of them, and compares them by a slow function. The points are the same.
"""
import itertools
import json
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import NSGAIISampler, nsgaii
from optuna.samplers.nsgaii import _sampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from problems import POINTS, POPULATION, PROBLEMS, hypervolume

CROSSOVERS = {"uniform": nsgaii.UniformCrossover, "sbx": nsgaii.SBXCrossover, "vsbx": nsgaii.VSBXCrossover,
              "blxalpha": nsgaii.BLXAlphaCrossover, "undx": nsgaii.UNDXCrossover}
OPTUNA_DOMINATES = _sampler._dominates


def dominates(left, right, _):
    """Optuna's, of complete trials whose objectives are all to be small."""
    return left._values != right._values and all(a <= b for a, b in zip(left._values, right._values))


class Known(list):
    """All trials, of which the sampler needs the first generation and the last two."""

    def __iter__(self):
        few = len(self) < 4 * POPULATION
        return super().__iter__() if few else itertools.chain(self[:POPULATION], self[-2 * POPULATION:])


class Trials:
    """What the sampler asks of a study and its storage."""

    _study_id = 0

    def __init__(self, objectives):
        self.directions = [StudyDirection.MINIMIZE] * objectives
        self.list, self.attributes, self.of_next = Known(), {}, {}
        self._storage = self

    def get_trials(self, deepcopy=True, states=None):
        del deepcopy, states
        return self.list

    def _is_multi_objective(self):
        return len(self.directions) > 1

    def set_trial_system_attr(self, _, key, value):
        self.of_next[key] = value

    def get_study_system_attrs(self, _):
        return self.attributes

    def set_study_system_attr(self, _, key, value):
        self.attributes[key] = value

    def add(self, sampler, space, function):
        number = len(self.list)
        trial = FrozenTrial(number, TrialState.RUNNING, None, None, None, {}, space, {}, {}, {}, number)
        params = sampler.sample_relative(self, trial, space)
        trial.params = {name: params[name] if name in params else sampler.sample_independent(self, trial, name, space[name])
                        for name in space}
        trial.values, trial.system_attrs, trial.state = function(list(trial.params.values())), self.of_next, TrialState.COMPLETE
        self.of_next = {}
        self.list.append(trial)


def sampler_of(crossover, seed):
    return NSGAIISampler(population_size=POPULATION, seed=seed, crossover=CROSSOVERS[crossover]())


def played(problem, crossover, seed, points):
    _sampler._dominates = dominates
    function, variables, corner = PROBLEMS[problem]
    space = {f"x{i:02}": FloatDistribution(0, 1) for i in range(variables)}
    trials, sampler = Trials(len(corner)), sampler_of(crossover, seed)
    for _ in range(points):
        trials.add(sampler, space, function)
    return [tuple(trials.list[i].values) for i in range(points)]


def played_by_study(problem, crossover, seed, points):
    _sampler._dominates = OPTUNA_DOMINATES
    function, variables, corner = PROBLEMS[problem]
    study = optuna.create_study(directions=["minimize"] * len(corner), sampler=sampler_of(crossover, seed))
    study.optimize(lambda trial: function([trial.suggest_float(f"x{i:02}", 0, 1) for i in range(variables)]), points)
    return [tuple(trial.values) for trial in study.get_trials(deepcopy=False)]


def reached(problem, crossover, seed):
    volume = hypervolume(played(problem, crossover, seed, POINTS), PROBLEMS[problem][2])
    print(problem, crossover, seed, volume, file=sys.stderr, flush=True)
    return round(volume, 6)


def main(seeds, problems):
    with ProcessPoolExecutor() as pool:
        runs = {p: {c: [pool.submit(reached, p, c, seed) for seed in range(1, seeds + 1)] for c in CROSSOVERS} for p in problems}
        volumes = {p: {c: [run.result() for run in all_seeds] for c, all_seeds in of.items()} for p, of in runs.items()}
    print(json.dumps({"optuna": optuna.__version__, "points": POINTS, "population": POPULATION, "problems": volumes}, indent=1))


def check(points):
    for problem in PROBLEMS:
        for crossover in CROSSOVERS:
            same = played(problem, crossover, 1, points) == played_by_study(problem, crossover, 1, points)
            print(problem, crossover, "the same points" if same else "OTHER POINTS", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1:2] == ["--check"]:
        check(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]), sys.argv[2:] or list(PROBLEMS))
