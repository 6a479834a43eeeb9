#!/usr/bin/python3
"""limits: a parameter that a bench of the library cannot take as it is given is named in the summary and the result, with
the value that is used; a run with that value is the same. limit: 100

A parameter is one of these if its name is in LIMITED; whatever bench `list` shows with it is asked for the most (or the
least) that the parameter can be.
"""
import json
import os
import re

from harness import ROOT, ok, run, simulator, suite, sweep

EIGHT = os.path.join(ROOT, "tests", "library", "eight.yaml")
LIMITED = {"tile_m", "tile_k", "tile_n", "tile", "block", "block_rows", "block_cols", "buffers", "chunk", "group", "used", "slice",
           "root"}
ALSO = {"top_k": {"k"}}                                 # names that mean something else in other benches
LEAST = {"buffers": 1}                                  # what is asked for; the others: the most
ABOUT = {("layer", "tile"), ("moe", "tile")}            # bytes, of products of several sizes: no run is the same
SMALL = {
    "attention": {"heads": 4, "kv_heads": 2, "queries": 48, "head_dim": 16},
    "batched_gemm": {"batch": 9, "m": 70, "k": 60, "n": 50},
    "conv2d": {"batch": 3, "h": 9, "w": 8, "c": 5, "filters": 20},
    "hybrid_parallel": {"batch": 20, "d": 16, "hidden": 24},
    "decode": {"heads": 4, "kv_heads": 2, "keys": 96, "head_dim": 16}, "gather": {"vocab": 50, "dim": 8, "tokens": 40},
    "layer": {"tokens": 6}, "moe": {"tokens": 8, "d": 32, "ffn": 64, "experts": 4}, "rotary": {"tokens": 64},
    "spmv": {"m": 64, "n": 60, "density": 0.2}, "transpose": {"m": 60, "n": 70}, "top_k": {"rows": 64, "cols": 20},
}
PARAM = re.compile(r"^  (\w+) += (\S+) .*?(?:([\d.]+(?: \w+)?) to (\d[\d.]*(?: \w+)?)\))?$", re.M)
BENCH = re.compile(r"(?m)^(\w+): .*\(kernels/\w+\.c\)\n((?:  .*\n)*)")


def small(bench, params):
    """Sizes that keep a run short."""
    if bench in SMALL:
        return SMALL[bench]
    if "size" in params:                                # a collective; its default chunk does not fit into a slot
        return {"size": 3000, "chunk": 512}
    return {"m": 70, "k": 60, "n": 50} if "n" in params else {"rows": 64, "cols": 60}


def whole(text):
    """A number, or a size in GiB."""
    return int(text.removesuffix(" GiB")) << (30 if text.endswith("GiB") else 0)


def notes_of(answer):
    """The notes of a run about values that it could not take."""
    return [note for note in (answer or {}).get("notes", []) if not note.startswith("algorithm=auto: ")]


def used(answer, name, asked):
    """The value that the only such note of a run names."""
    notes = notes_of(answer)
    found = re.fullmatch(rf"{name}={asked}: (\d+) is used, .*", notes[0]) if len(notes) == 1 else None
    return int(found[1]) if found else None


def every(program, bench, params):
    asked = {name: LEAST.get(name) or whole(most) for name, _, _, most in params.values()
             if name in LIMITED | ALSO.get(bench, set())}
    if not asked:
        return 0
    sizes = small(bench, params)
    _, first = sweep(program, bench, [{**sizes, name: value} for name, value in asked.items()], "--data", "off")
    taken = {name: used(answer, name, value) for (name, value), answer in zip(asked.items(), first)}
    ok(all(value is not None and value != asked[name] for name, value in taken.items()),
       f"{bench} says what it uses instead of {', '.join(asked)}",
       *(answer and answer.get("notes") for answer in first), taken)
    same = [name for name in asked if taken[name] is not None and (bench, name) not in ABOUT]
    _, then = sweep(program, bench, [{**sizes, name: taken[name]} for name in same], "--data", "off")
    wrong = [(name, taken[name], answer and answer.get("notes")) for name, answer in zip(same, then)
             if not answer or notes_of(answer) or
             answer["launches"] != first[list(asked).index(name)]["launches"]]
    ok(not wrong, f"{bench} does the same with the values that it names: {', '.join(same)}", *wrong)
    return len(asked)


def main():
    program = simulator(EIGHT)
    count = 0
    for bench, text in BENCH.findall(run(program, "list").stdout.split("kernels:\n")[0]):
        count += every(program, bench, {row[0]: row for row in PARAM.findall(text)})
    ok(count > 40, "the library has such parameters", count)
    words = ("run", "gemm", "m=512", "k=64", "n=64", "tile_m=100000")
    note = "tile_m=100000: 64 is used, the rows of C that a PE multiplies at a time"
    ended = run(program, *words)
    made = json.loads(run(program, *words, "--json", "-").stdout)
    ok(f"\nnote         {note}\n" in ended.stdout and made["notes"] == [note],
       "the summary and the result have the same note", ended.stdout, made.get("notes"))
    made = json.loads(run(program, "run", "spmv", "m=80000", "n=5", "slice=1", "--data", "off", "--json", "-").stdout)
    ok(used(made, "slice", 1) == 2, "of 10,000 rows of a PE spmv makes 8,192 slices at most", made.get("notes"))
    plain = run(program, "run", "gemm", "m=512", "k=64", "n=64")
    ok("\nnote " not in plain.stdout, "a bench that uses its parameters as they are given has no note", plain.stdout)


suite(main)
