#!/usr/bin/python3
"""optuna_ask: Optuna chooses the points of a search: optuna_ask.py SPACE.yaml STORE.db POINTS TPE|NSGAII"""
import json
import subprocess
import sys

import optuna

space, store, points, sampler = sys.argv[1:]
command = ["kbgen", "search", space, "-o", store, "--method", "ask"]
kbgen = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
hello, asked = json.loads(kbgen.stdout.readline()), {}
study = optuna.create_study(directions=[goal + "imize" for goal in hello["objectives"].values()],
                            sampler=getattr(optuna.samplers, sampler + "Sampler")(seed=1))
while len(study.trials) < int(points) or asked:
    while len(study.trials) < int(points) and len(asked) < 8:
        trial = study.ask()                             # an axis is suggested as the number of a level
        point = {name: levels[trial.suggest_int(name, 0, len(levels) - 1)] for name, levels in hello["space"].items()}
        asked[trial.number] = trial
        print(json.dumps({"id": trial.number, "point": point}), file=kbgen.stdin, flush=True)
    answer = json.loads(kbgen.stdout.readline())
    if answer["status"] == "ok":
        study.tell(asked.pop(answer["id"]), [answer["metrics"][name] for name in hello["objectives"]])
    else:
        study.tell(asked.pop(answer["id"]), state=optuna.trial.TrialState.FAIL)
kbgen.stdin.close()
for trial in study.best_trials:
    print(json.dumps(trial.values))
