#!/usr/bin/python3
"""embed_steps: a library lets time pass in slices of any size, with the result and the trace of the simulator; so it does
when what a stream's host does comes from outside, and the commands of its programs one at a time. limit: 200, plain build only
"""
import json
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle"))

from harness import CC, KBGEN, ROOT, first_difference, ok, read, run, scratch, simulator, suite, write    # noqa: E402
from stream import Stream, chosen, parts_of, place, whole         # noqa: E402
from topology import Topology                                   # noqa: E402
from units import half_up, number                               # noqa: E402

HERE = os.path.join(ROOT, "tests", "embed")
CASES = ("accel_slot_contention", "bad_address", "host_delay_wait", "host_requests_wait_in_order", "host_timeout_and_deadlock", "host_map_between",
         "mmu_tlb_misses",         "ports_2", "random_failure_then_deadlock", "random_hbm_rings", "random_six_cubes", "random_three_read_engines",
         "random_two_sips_memory", "start_cube_two_sips", "timeout_tie", "wait_next_round")
SEEDS = (1, 2)
FORKED = "random_hbm_rings"


def program():
    path = scratch("steps")
    made = run(*CC.split(), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "rt"),
               os.path.join(HERE, "steps.c"), "-o", path, "-ldl")
    ok(made.returncode == 0, "the program that drives a library compiles", made.said)
    return path


def flow(value):
    """A step, whose scalars are texts, on one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else str(value)


def calls(topology, path):
    """What the host of a stream does, as tests/embed/steps.c reads it."""
    machine, stream = Topology(topology), Stream(path)
    cubes, page = machine.cube_rows * machine.cube_cols, machine.pe("pe_mmu").bytes("page_kb")
    names = [f"sip{sip}.cube{cube}.pe{pe}" for sip in range(machine.sips) for cube in range(cubes)
             for pe in range(machine.pes)]
    targeted = {name for one in stream.launches for part in parts_of(one) for name in chosen(part["targets"], names)}
    ids, lines = {}, []
    for position, step in enumerate(stream.host):
        ids[step.get("id")] = position
        do, rows = step["do"], []
        if do == "launch":
            programs = {name: part["program"] for part in parts_of(step) for name in chosen(part["targets"], names)}
            pes = [number for number, name in enumerate(names) if name in programs]
            start = ("barrier", "cube", "free").index(step.get("start", "barrier"))
            timeout = half_up(number(step["timeout_ns"]) * 1000) if "timeout_ns" in step else 0
            rows = ["+".join(part["program"] for part in parts_of(step)),
                    f"{start} {int(step.get('on_failure') == 'fail_fast')} {timeout} {' '.join(map(str, pes))}",
                    *(f"{pe} {flow(one)}" for pe in pes for one in stream.programs[programs[names[pe]]])]
        elif do in ("map", "unmap"):
            chosen_pes = chosen(step["targets"], names) if "targets" in step else targeted
            pairs = []
            for pe, name in enumerate(names):
                if name in chosen_pes:
                    sip, cube = pe // machine.pes // cubes, pe // machine.pes % cubes
                    pairs.append(f"{pe} {place(step['to'], sip, cube, pe % machine.pes) if do == 'map' else 0}")
            rows = [f"{int(do == 'unmap')} {whole(step['va'])} {-(-whole(step['bytes']) // page)} {' '.join(pairs)}"]
        elif do in ("write", "read"):
            side = step["to" if do == "write" else "from"]
            rows = [f"{int(do == 'write')} {whole(step['bytes'])} {' '.join(str(place(one, 0, 0, 0)) for one in side)}"]
        elif do == "wait":
            rows = [" ".join(str(ids[one]) for one in step["for"])]
        else:
            rows = [str(half_up(number(step["ns"]) * 1000))]
        kind = {"launch": "l", "map": "m", "unmap": "m", "write": "t", "read": "t", "wait": "w", "delay": "d"}[do]
        lines += [f"#{kind} {int(step.get('async') == 'true')}", *rows]
    return "\n".join(lines) + "\n"


def without_skipped(text):
    """A result without the launches that its host has left out, of which a library is not told."""
    result = json.loads(text or "{}")
    result["launches"] = [one for one in result.get("launches", []) if one["status"] != "skipped"]
    return json.dumps(result, indent=1)


def outputs(what, statuses, *command):
    """What a command says, and the result and the trace that it writes."""
    result, trace = scratch("out.json"), scratch("out.trace")
    for path in (result, trace):
        if os.path.exists(path):
            os.remove(path)
    ended = run(*(word.format(json=result, trace=trace) for word in command))
    ok(ended.returncode in statuses, f"{what} ends with status {' or '.join(map(str, statuses))}", ended.returncode, ended.said)
    return ended.said, *(read(path) if os.path.exists(path) else "" for path in (result, trace))


def differences(got, want, traced):
    """What a run of a library has written that the simulator has not."""
    pairs = [("result", want[1], got[1])] + [("trace", want[2], got[2])] * traced
    return [f"{what}, {difference}" for what, one, other in pairs
            if (difference := first_difference(one, other) if want[1] else "the simulator has written no result")]


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
    want = outputs(f"{name}: the simulator", (0, 1), simulator(topology), "replay", text, "--json", "{json}", "--trace", "{trace}")
    for traced, mode, *seed in ((True, "whole"), *((seed % 2 == 1, "slices", str(seed)) for seed in SEEDS)):
        got = outputs(f"{name}: {mode}", (0,), steps, library, mode, text, "{json}", "{trace}" if traced else "", *seed)
        wrong = differences(got, want, traced)
        ok(not wrong and "happens" not in got[0], f"{name}: {mode} {' '.join(seed)}", *wrong, got[0])
    if name == FORKED:
        got = outputs(f"{name}: forks", (0,), steps, library, "forks", text, "{json}", "", "3")
        ok(not differences(got, want, False) and "\n0 of 1000 continuations differ" in got[0], f"{name}: forked 1,000 times on its way",
           *differences(got, want, False), got[0])
    listed = write(scratch(name + ".calls"), calls(topology, text))
    got = outputs(f"{name}: calls", (0,), steps, library, "steps", listed, "{json}", "{trace}")
    got, want = ((said, without_skipped(result), trace) for said, result, trace in (got, want))
    ok(not differences(got, want, True), f"{name}: from outside", *differences(got, want, True), got[0])


def all_streams():
    steps = program()
    for name in CASES:
        stream(steps, name)


suite(all_streams)
