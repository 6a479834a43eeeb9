#!/usr/bin/python3
"""embed_steps: a library lets time pass in slices of any size, with the result and the trace of the simulator, and with a
part of that trace if it is traced now and then; so it does when what a stream's host does comes from outside, and the
commands of its programs one at a time; and from states that were saved. limit: 300, plain build only
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "oracle"), os.path.join(HERE, "embed")]

from harness import ok, read, remove, run, scratch, simulator, suite    # noqa: E402
import through                                                  # noqa: E402

CASES = os.path.join(HERE, "conformance")
# Those whose states are saved: all kinds of things are in flight in them.
SAVED = ("accel_slot_contention", "bad_address", "host_delay_wait", "host_requests_wait_in_order", "host_timeout_and_deadlock",
         "host_map_between", "mmu_tlb_misses", "ports_2", "random_failure_then_deadlock", "random_hbm_rings", "random_six_cubes",
         "random_three_read_engines", "random_two_sips_memory", "start_cube_two_sips", "timeout_tie", "wait_next_round")
FORKED = "random_hbm_rings"


def stream(steps, name, states):
    """A conformance stream whole and in slices, with a trace and without, which lets it fast-forward."""
    topology, text = (os.path.join(CASES, name, file) for file in ("topo.yaml", "stream.yaml"))
    library, said = through.library(topology, scratch(name + ".lib"))
    if not ok(library, f"{name}: kbgen makes a library", said):
        return
    result, trace = scratch("want.json"), scratch("want.jsonl")
    remove(result, trace)
    ended = run(simulator(topology), "replay", text, "--json", result, "--trace", trace)
    ok(ended.returncode in (0, 1), f"{name}: the simulator ends with status 0 or 1", ended.said)
    case = through.Through(steps, library, topology, text, read(result), read(trace))
    modes = [("whole", True, 0), ("slices", True, 1), ("slices", False, 2), ("looks", True, 4), ("steps", True, 0)]
    modes += [("saves", False, 1), ("saves", True, 2)] if name in SAVED else []
    modes += [("forks", False, 3)] if name == FORKED else []
    for mode, traced, seed in modes:
        wrong, told = case.complaints(mode, traced, seed)
        ok(not wrong, f"{name}: {mode}{', traced' * traced}", *wrong)
        states += map(int, re.findall(r"^(\d+) states, 0 differ", told, re.M))
        if mode == "forks":
            ok("\n0 of 1000 continuations differ" in "\n" + told, f"{name}: forked 1,000 times on its way", told)


def all_streams():
    (steps, said), states = through.program(), []
    ok(not said, "the program that drives a library compiles", said)
    for name in sorted(os.listdir(CASES)):
        if os.path.exists(os.path.join(CASES, name, "stream.yaml")):
            stream(steps, name, states)
    ok(sum(states) >= 1000, "states are saved and restored at 1,000 times", sum(states))


suite(all_streams)
