#!/usr/bin/python3
"""failures: what fails on the machine says exactly what is beside it, ends with status 1, and leaves its result.

tests/failures holds command streams, NAME.yaml, and kernels, failing.c, whose bench fails in as many ways as its
parameter has words: failing.WORD. What a run says on standard error and in its summary is in NAME.expect; BLESS=1
rewrites it. What of its statuses a result has to hold is checked for each.
"""
import json
import os
import re

from harness import Broken, KBGEN, ROOT, SCRATCH, done, first_difference, ok, read, run

CASES = os.path.join(ROOT, "tests", "failures")
MMU = "cube.pe_template.components.pe_mmu.attrs.enabled=true"
TRAPS = {"segv", "call", "fpe", "ill", "overflow", "overflow_wide", "all_segv", "segv_deep", "segv_log"}
SANITIZED = bool(os.environ.get("SAN"))


def simulator(*topology):
    made = os.path.join(SCRATCH, os.path.basename(topology[0]).removesuffix(".yaml"))
    built = run(KBGEN, *topology, "-k", os.path.join(CASES, "failing.c"), "-o", made)
    if built.returncode or "warning" in built.stderr:
        raise Broken(built.said)
    return made


def failed(launch):
    """What a launch that did not end well must and must not hold."""
    if launch["status"] == "failed":
        one = launch["failure"]
        pes = {pe["id"]: pe for pe in launch["pes"]}
        return pes[one["pe"]]["failure"] == {key: one[key] for key in ("code", "node", "t_ps")}
    if launch["status"] in ("timeout", "deadlock"):
        running = [pe["id"] for pe in launch["pes"] if pe["status"] == "running"]
        return [one["pe"] for one in launch["waiting"]] == running != []
    return launch["status"] in ("ok", "skipped", "running")


def complaints(name, ended, stem):
    """What is wrong with a run; empty if nothing is."""
    said = ended.stderr + "".join(line for line in ended.stdout.splitlines(True) if not line.startswith("host "))
    expected = os.path.join(CASES, name + ".expect")
    if os.environ.get("BLESS"):
        with open(expected, "w", encoding="utf-8") as file:
            file.write(said)
    wrong = [first_difference(read(expected), said)]
    try:
        result = json.loads(read(stem + ".json"))
    except ValueError as reason:
        return wrong + [f"no result: {reason}", ended.said]
    launches = result["launches"]
    bad = [one for one in launches + result.get("memory", []) if one["status"] in ("failed", "timeout", "deadlock")]
    if ended.returncode != 1 or not bad or not all(map(failed, launches)):
        wrong += ["want status 1 and a failure in the result", ended.said, json.dumps(launches, indent=1)]
    if result.get("verify", []) or not os.path.exists(stem + ".jsonl"):
        wrong += ["a verification, or no trace"]
    return wrong


def check(program, name, *words):
    stem = os.path.join(SCRATCH, name)
    for path in (stem + ".json", stem + ".jsonl"):
        if os.path.exists(path):
            os.unlink(path)
    ended = run(program, *words, "--json", stem + ".json", "--trace", stem + ".jsonl", cwd=CASES, timeout=20)
    wrong = complaints(name, ended, stem)
    ok(not any(wrong), name, *wrong)


def streams():
    return sorted(name.removesuffix(".yaml") for name in os.listdir(CASES) if name.endswith(".yaml"))


def main():
    program = simulator(os.path.join(ROOT, "tests", "small.yaml"), "--set", MMU)
    words = re.search(r"what=\S+ .*?\((.*)\)|what +=.*\((.*)\)", run(program, "list").stdout)
    names = {"failing." + word for word in (words[1] or words[2]).split()} | set(streams())
    for name in streams():
        check(program, name, "replay", name + ".yaml")
    for word in (words[1] or words[2]).split():
        if not (SANITIZED and word in TRAPS):
            check(program, "failing." + word, "run", "failing", "what=" + word)
    left = {name.removesuffix(".expect") for name in os.listdir(CASES) if name.endswith(".expect")} - names
    ok(not left, "no expectation without its case", *left)


def many():
    """A deadlock of 128 PEs is told in few lines."""
    program = simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"))
    for word, said in (("ring", "\n    112 more PEs, each waiting for the next\n    sip0.cube15.pe0: "),
                       ("chain", "\n    sip0.cube15.pe7: kernel failing returned at"),
                       ("two_cycles", "\n  56 more cycles or chains\n  128 waiting PEs in all\n")):
        ended = run(program, "run", "failing", "what=" + word, timeout=20)
        ok(ended.returncode == 1 and said in ended.stderr and ended.stderr.count("\n") < 40,
           f"a deadlock of 128 PEs: {word}", ended.said)


try:
    main()
    many()
except Broken as reason:
    ok(False, "a simulator of what fails", reason)
done()
