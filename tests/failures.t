#!/usr/bin/python3
"""failures: every failure on the machine gives exactly the messages beside it, status 1 and a complete result.

tests/failures has command streams, NAME.yaml, and kernels, failing.c, whose bench fails in one way for each word of its
parameter: failing.WORD. NAME.expect is what a run says on standard error and in its summary; BLESS=1 rewrites it. The
statuses in the result are checked for each.
"""
import json
import os
import re

from harness import MMU, ROOT, SAN, bless, first_difference, ok, read, remove, run, scratch, simulator, small_machine
from harness import suite, topology

CASES = os.path.join(ROOT, "tests", "failures")
TRAPS = {"segv", "call", "fpe", "ill", "overflow", "overflow_wide", "all_segv", "segv_deep", "segv_log"}
KERNELS = [os.path.join(CASES, "failing.c")]


def is_complete(launch):
    """Whether what a launch says of its failure fits to what its PEs say."""
    if launch["status"] == "failed":
        one = launch["failure"]
        pes = {pe["id"]: pe for pe in launch["pes"]}
        return pes[one["pe"]]["failure"] == {key: one[key] for key in ("code", "node", "t_ps")}
    if launch["status"] in ("timeout", "deadlock"):
        running = [pe["id"] for pe in launch["pes"] if pe["status"] == "running"]
        return [one["pe"] for one in launch["waiting"]] == running != []
    return launch["status"] in ("ok", "skipped", "running")


def complaints(name, ended, stem):
    """The differences between a run and what it expects."""
    said = ended.stderr + "".join(line for line in ended.stdout.splitlines(True) if not line.startswith("host "))
    expected = os.path.join(CASES, name + ".expect")
    bless(expected, said)
    wrong = [first_difference(read(expected), said)]
    try:
        result = json.loads(read(stem + ".json"))
    except ValueError as reason:
        return wrong + [f"no result: {reason}", ended.said]
    launches = result["launches"]
    bad = [one for one in launches + result.get("memory", []) if one["status"] in ("failed", "timeout", "deadlock")]
    if ended.returncode != 1 or not bad or not all(map(is_complete, launches)):
        wrong += ["want status 1 and a failure in the result", ended.said, json.dumps(launches, indent=1)]
    if result.get("verify", []) or not os.path.exists(stem + ".jsonl"):
        wrong += ["a verification, or no trace"]
    return wrong


def check(program, name, *words, where="", env=os.environ):
    stem = scratch(name)
    remove(stem + ".json", stem + ".jsonl")
    ended = run(program, *words, "--json", stem + ".json", "--trace", stem + ".jsonl", cwd=CASES, env=env, timeout=20)
    wrong = complaints(name, ended, stem)
    ok(not any(wrong), f"{name} fails with exactly its messages and leaves its result and trace{where}", *wrong)


def streams():
    return sorted(name.removesuffix(".yaml") for name in os.listdir(CASES) if name.endswith(".yaml"))


def each():
    program = small_machine("small", KERNELS, MMU)
    words = re.search(r"what=\S+ .*?\((.*)\)|what +=.*\((.*)\)", run(program, "list").stdout)
    names = {"failing." + word for word in (words[1] or words[2]).split()} | set(streams())
    for name in streams():
        check(program, name, "replay", name + ".yaml")
    for word in (words[1] or words[2]).split():
        if not (SAN and word in TRAPS):
            check(program, "failing." + word, "run", "failing", "what=" + word)
    left = {name.removesuffix(".expect") for name in os.listdir(CASES) if name.endswith(".expect")} - names
    ok(not left, "every expectation of tests/failures has its case", *left)


def guards():
    """Full stacks where the system cannot mark guards, and where it says that it has, as qemu-user says of all advice."""
    if SAN:
        return
    program, library = small_machine("small", KERNELS, MMU), scratch("advice.so")
    built = run("cc", "-shared", "-fPIC", "-o", library, os.path.join(CASES, "advice.c"))
    ok(built.returncode == 0, "a library that answers for the system is built", built.said)
    for says, more in (("cannot mark guards", {}), ("does not mark guards, and says that it has", {"SAYS_YES": "1"})):
        for word in ("overflow", "overflow_wide"):
            check(program, "failing." + word, "run", "failing", "what=" + word, where=f" where the system {says}",
                  env=os.environ | {"LD_PRELOAD": library} | more)


def many():
    """Deadlocks of 128 PEs."""
    program = simulator(topology("ref_sip"), "ref_sip", KERNELS)
    for word, said in (("ring", "\n    112 more PEs, each waiting for the next\n    sip0.cube15.pe0: "),
                       ("chain", "\n    sip0.cube15.pe7: kernel failing returned at"),
                       ("two_cycles", "\n  56 more cycles or chains\n  128 waiting PEs in all\n")):
        ended = run(program, "run", "failing", "what=" + word, timeout=20)
        cycles = {"ring": 1, "chain": 0, "two_cycles": 8}[word]
        ok(ended.returncode == 1 and said in ended.stderr and ended.stderr.count("\n") < 40
           and ended.stderr.count("\n  a cycle:\n") == cycles,
           f"a deadlock of 128 PEs is told in fewer than 40 lines: {word}", ended.said)


suite(each, guards, many)
