#!/usr/bin/python3
"""profile: `--profile` counts every event once, under a named kind, and changes nothing that is simulated."""
import json
import os

from harness import GEMM, MMU, ROOT, ok, read, run, scratch, small_machine, suite, without_host

RUNS = (("gemm", *GEMM), ("gemm", *GEMM, "--data", "debug"), ("gemm", *GEMM, "--exact-events"),
        ("all_reduce", "size=1000"), ("barrier", "count=2"), ("failing", "what=page_load"), ("failing", "what=slow"),
        ("deploy", "space=sram"), ("maps",))


def result_of(program, *words):
    """A result as text, and the run."""
    result = scratch("result.json")
    ended = run(program, *words, "--json", result)
    return read(result), ended


def profiled(program, *words):
    return result_of(program, *words, "--profile")


def counts_add_up(text, ended, name):
    host = json.loads(text)["host"]
    events = [one for one in host["profile"] if one["event"]]
    ok(sum(one["count"] for one in events) == host["events"] > 0 and all(one["count"] for one in events),
       f"the kinds of events of {name} add up to all events", host)
    ok(all(one["what"] != "other events" for one in events),
       f"every kind of event of {name} has a name", host["profile"])
    ok(all(one["what"] in ended.stderr for one in host["profile"])
       and "for the profile itself" in ended.stderr.splitlines()[-1],
       f"--profile prints its table of {name} on standard error", ended.said)


def phases(text, *wanted):
    names = {one["what"] for one in json.loads(text)["host"]["profile"] if one["count"] and not one["event"]}
    ok(names >= set(wanted), f"the profile has the phases {', '.join(wanted)}", names)


def runs(program):
    for words in RUNS:
        text, ended = profiled(program, "run", *words)
        counts_add_up(text, ended, " ".join(words))
        plain, alone = result_of(program, "run", *words)
        ok(without_host(text) == without_host(plain) and "profile" not in json.loads(plain)["host"]
           and alone.returncode == ended.returncode,
           f"the result of {' '.join(words)} is the same without --profile", alone.said)
    text, _ = profiled(program, "run", "gemm", *GEMM)
    phases(text, "event queue", "issue step", "host program", "op log", "data pass", "references and comparisons")
    text, _ = profiled(program, "run", "gemm", *GEMM, "--trace", scratch("trace"))
    phases(text, "trace")
    ended = run(program, "run", "gemm", "--profile", "--points", "-")
    ok(ended.returncode == 2 and "--profile" in ended.stderr, "--profile of a sweep is refused", ended.said)


def replays(program):
    stream = os.path.join(ROOT, "tests", "failures", "drain.yaml")
    text, ended = profiled(program, "replay", stream)
    counts_add_up(text, ended, "a replay")
    plain = json.loads(run(program, "replay", stream, "--json", "-").stdout)
    ok("host" not in plain and without_host(text) == without_host(json.dumps(plain)),
       "the result of a replay is the same without --profile", ended.said)


def main():
    sources = [os.path.join(ROOT, "tests", *path) for path in (("failures", "failing.c"), ("host", "host.c"))]
    machine = small_machine("small", sources, MMU)
    runs(machine)
    replays(machine)


suite(main)
