"""through: a command stream in an instance of a library (steps.c): whole, in slices, traced now and then, from states that
were saved, and from outside, a command at a time; against what the simulator has written."""
import json
import os
import re

from harness import CC, KBGEN, ROOT, first_difference, read, remove, result_difference, run, scratch, write
from stream import Stream, chosen, parts_of, place, whole
from topology import Topology
from units import half_up, number

HERE = os.path.dirname(os.path.abspath(__file__))


def program():
    """The program that drives libraries, and what was wrong with it."""
    path = scratch("steps")
    made = run(*CC.split(), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "rt"),
               os.path.join(HERE, "steps.c"), "-o", path, "-ldl")
    return path, made.said if made.returncode else ""


def library(topology, folder, **options):
    """The file of a topology's library, made in a folder, and what was wrong."""
    made = run(KBGEN, topology, "--emit", "lib", "-o", folder, **options)
    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".so")] if made.returncode == 0 else []
    return files[0] if files else None, made.said


def flow(value):
    """A step, whose scalars are texts, on one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else str(value)


def calls(topology, path):
    """What the host of a stream does, as steps.c reads it; None if no calls say it: a timeout of 0 ps is none, and a map
    is one of some PE."""
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
            if timeout == 0 and "timeout_ns" in step:
                return None
            rows = ["+".join(part["program"] for part in parts_of(step)),
                    f"{start} {int(step.get('on_failure') == 'fail_fast')} {timeout} {' '.join(map(str, pes))}",
                    *(f"{pe} {flow(one)}" for pe in pes for one in stream.programs[programs[names[pe]]])]
        elif do in ("map", "unmap"):
            chosen_pes = chosen(step["targets"], names) if "targets" in step else targeted
            pairs = []
            for pe, name in enumerate(names):
                if name in chosen_pes:
                    sip, cube = pe // machine.pes // cubes, pe // machine.pes % cubes
                    own = pe % machine.pes
                    to = place(step["to"], sip, cube, own, machine.own_slice(own)) if do == "map" else 0
                    pairs.append(f"{pe} {to}")
            if not pairs:
                return None
            rows = [f"{int(do == 'unmap')} {whole(step['va'])} {-(-whole(step['bytes']) // page)} {' '.join(pairs)}"]
        elif do in ("write", "read"):
            side = step["to" if do == "write" else "from"]
            rows = [f"{int(do == 'write')} {whole(step['bytes'])} {' '.join(str(place(one, 0, 0, 0, machine.own_slice(0))) for one in side)}"]
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
    return json.dumps(result)


def looked_at(trace, said):
    """The lines of a trace in the slices that a program has looked at."""
    slices = [tuple(map(int, times)) for times in re.findall(r"^looked from (\d+) to (\d+)$", said, re.M)]
    return "".join(line for line in trace.splitlines(True)
                   if any(begin < json.loads(line)["t"] <= end for begin, end in slices))


class Through:
    """A library, a stream, and what the simulator has written of it: the result and the trace."""

    def __init__(self, steps, library_file, topology, stream, result, trace, where=""):
        self.steps, self.library, self.topology, self.stream = steps, library_file, topology, stream
        self.result, self.trace, self.where = result, trace, where or scratch("through")

    def run(self, mode, source, traced, seed):
        """What the program says, and the result and the trace that it writes."""
        paths = [self.where + end for end in (".json", ".jsonl")]
        remove(*paths)
        ended = run(self.steps, self.library, mode, source, paths[0], paths[1] if traced else "", seed)
        return ended, *map(read, paths)

    def complaints(self, mode, traced, seed=0):
        """What a mode of steps.c gives that the simulator does not, and what the program says."""
        source, want = self.stream, self.result
        if mode == "steps":
            said = calls(self.topology, self.stream)
            if said is None:
                return [], ""
            source, want = write(self.where + ".calls", said), without_skipped(want)
        ended, got, trace = self.run(mode, source, traced, seed)
        if ended.returncode:
            return [ended.said], ended.stdout
        got = without_skipped(got) if mode == "steps" else got
        pairs = [("result", result_difference(want, got) if want else "the simulator has written none")]
        wanted = looked_at(self.trace, ended.stdout) if mode == "looks" else self.trace
        pairs += [("trace", first_difference(wanted, trace))] * traced
        wrong = [f"{mode}: {what}, {difference}" for what, difference in pairs if difference]
        told = re.search(r"happens|[1-9]\d* of \d+ continuations differ|, [1-9]\d* differ", ended.stdout)
        return wrong + [ended.said] * bool(told or wrong), ended.stdout
