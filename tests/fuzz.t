#!/usr/bin/python3
"""fuzz: random machines run random streams as the oracle does, and every invariant holds. limit: 400

tests/fuzz.t [MACHINES [SEED [STREAMS]]]: each machine is a test, after one for each conformance case, which the oracle
has to solve as well. The same seed draws the same machines and streams. A failing pair is shrunk and left in
SCRATCH/failures/, as a case that tests/conformance.t runs. Every eighth machine is made by the other compiler, without
optimisation, and with one function for all servers. Of every eighth, streams also run in an instance of its library
(tests/embed): whole and in slices, and a command at a time. Of four streams, two tell their critical path, one is run again
without a trace and two with nobody who watches. Under the sanitizers the same streams run on the first 28 of the 100
machines, once and without the oracle: what it would say of them, it says of the plain build. LeakSanitizer looks at every
fourth.
"""
import multiprocessing
import os
import random
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, folder) for folder in ("oracle", "fuzz", "embed")]

from harness import SAN, CC, done, ok, scratch                   # noqa: E402
import cases                                                    # noqa: E402
import machines                                                 # noqa: E402
import shrink                                                   # noqa: E402
import streams                                                  # noqa: E402
import through                                                  # noqa: E402
import trial                                                    # noqa: E402
from cases import expected                                      # noqa: E402
from stream import Stream                                       # noqa: E402

MACHINES, SEED, STREAMS = (sys.argv[1:] + [None] * 3)[:3]
MACHINES, SEED, STREAMS = int(MACHINES or (28 if SAN else 100)), SEED or "1", int(STREAMS or 20)
OTHER = ("--cc", ("gcc" if CC == "clang" else "clang") + " -DKB_GENERAL", "-O", "0")
FAILURES = scratch("failures")
STEPS, SAID = (None, "") if SAN else through.program()


def keep(name, tree, stream):
    """Leaves a failing pair as a conformance case, as small as possible; returns what is wrong with it."""
    folder = os.path.join(FAILURES, name)
    os.makedirs(folder, exist_ok=True)
    machine = shrink.case(folder, tree, stream)
    path = os.path.join(folder, "stream.yaml")
    wrong = machine.complaints(path)
    want = expected(machine.topology, Stream(path))
    if not isinstance(want, str):
        for file_name, text in zip(("expected.json", "trace.jsonl"), want):
            with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
                file.write(text)
    return [f"in {folder}:", *wrong]


def fuzz(number):
    """Runs a machine and its streams; returns (its name, complaints)."""
    name = f"{SEED}-{number}"
    folder = scratch(name)
    os.makedirs(folder, exist_ok=True)
    tree = machines.machine(random.Random(f"{SEED}/{number}"), machines.drawn_parts(random.Random(f"{SEED}/{number}/p")))
    try:
        machine = trial.Machine(folder, tree, OTHER if number % 8 == 7 else ())
        if STEPS and number % 8 == 3:
            machine.make_library()
    except trial.Broken as why:
        return name, [why]
    path = os.path.join(folder, "stream.yaml")
    for which, value in drawn_streams(number, machine):
        trial.write_yaml(path, value)
        wrong = machine.complaints(path, more=which % 4)
        if wrong := wrong or machine.library_complaints(STEPS, path, which):
            return name, [f"stream {which}:", *wrong, *keep(f"{name}-{which}", tree, value)]
    shutil.rmtree(folder)
    return name, []


def drawn_streams(number, machine):
    """(number, stream); every fifth is the one before with a timeout in the middle of what the simulator did."""
    facts, value = streams.Facts(machine.topology), None
    for which in range(STREAMS):
        rng = random.Random(f"{SEED}/{number}/{which}")
        tied = which % 5 == 4 and machine.result and streams.with_timeout(rng, value, machine.result)
        value = tied or streams.stream(rng, facts)
        yield which, value


def main():
    ok(not SAID, "the program that drives libraries compiles", SAID)
    folder = os.path.join(HERE, "conformance")
    for case in sorted(os.listdir(folder)) if not SAN else ():
        if os.path.isdir(os.path.join(folder, case)):
            wrong = cases.differences(os.path.join(folder, case))
            ok(not wrong, f"the oracle gives the expected result and trace of {case}", *wrong)
    with multiprocessing.Pool(min(2, os.cpu_count())) as pool:
        for name, wrong in pool.imap(fuzz, range(MACHINES)):
            ok(not wrong, f"machine {name} runs its {STREAMS} streams as the oracle does", *wrong)
    done()


if __name__ == "__main__":
    main()
