#!/usr/bin/python3
"""embed_steps: a library lets time pass in slices of any size, with the result and the trace of the simulator. limit: 200"""
import os

from harness import CC, KBGEN, ROOT, first_difference, ok, read, run, scratch, simulator, suite

HERE = os.path.join(ROOT, "tests", "embed")
CASES = ("accel_slot_contention", "bad_address", "host_requests_wait_in_order", "host_timeout_and_deadlock", "mmu_tlb_misses",
         "ports_2", "random_failure_then_deadlock", "random_hbm_rings", "random_six_cubes", "random_three_read_engines",
         "random_two_sips_memory", "start_cube_two_sips", "timeout_tie", "wait_next_round")
SEEDS = (1, 2)


def program():
    path = scratch("steps")
    made = run(*CC.split(), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "rt"),
               os.path.join(HERE, "steps.c"), "-o", path, "-ldl")
    ok(made.returncode == 0, "the program that drives a library compiles", made.said)
    return path


def outputs(*command):
    """What a command says, and the result and the trace that it writes."""
    json, trace = scratch("out.json"), scratch("out.trace")
    for path in (json, trace):
        if os.path.exists(path):
            os.remove(path)
    ended = run(*(word.format(json=json, trace=trace) for word in command))
    return ended.said, *(read(path) if os.path.exists(path) else "" for path in (json, trace))


def differences(got, want, traced):
    """What a run of a library has written that the simulator has not."""
    pairs = [("result", want[1], got[1])] + [("trace", want[2], got[2])] * traced
    return [f"{what}, {difference}" for what, one, other in pairs if (difference := first_difference(one, other))]


def stream(steps, name):
    """A conformance stream whole and in slices, with a trace and without, which lets it fast-forward."""
    case = os.path.join(ROOT, "tests", "conformance", name)
    topology, text = os.path.join(case, "topo.yaml"), os.path.join(case, "stream.yaml")
    folder = scratch(name + ".lib")
    made = run(KBGEN, topology, "--emit", "lib", "-o", folder)
    libraries = [file for file in os.listdir(folder) if file.endswith(".so")] if made.returncode == 0 else []
    if not ok(libraries, f"{name}: kbgen makes a library", made.said):
        return
    library = os.path.join(folder, libraries[0])
    want = outputs(simulator(topology), "replay", text, "--json", "{json}", "--trace", "{trace}")
    for traced, mode, *seed in ((True, "whole"), *((seed % 2 == 1, "slices", str(seed)) for seed in SEEDS)):
        got = outputs(steps, library, mode, text, "{json}", "{trace}" if traced else "", *seed)
        wrong = differences(got, want, traced)
        ok(not wrong and "happens" not in got[0], f"{name}: {mode} {' '.join(seed)}", *wrong, got[0])


def all_streams():
    steps = program()
    for name in CASES:
        stream(steps, name)


suite(all_streams)
