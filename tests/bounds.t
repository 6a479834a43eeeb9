#!/usr/bin/python3
"""bounds: docs/kernels.md has each bench, with its figures at its defaults on ref_sip; kernels of one problem have the
same bound of it; docs/results.md has every word of a summary. plain build only, limit: 600

BLESS=1 writes the figures. They are simulated, and the same on every host. Other suites verify each bench.
"""
import json
import os
import re

from harness import ROOT, bless, ok, read, run, scratch, simulator, suite, topology, write
from shown import figures

TABLE = os.path.join(ROOT, "docs", "kernels.md")
HEAD = "|---|---|---|---|---|---|---|---|---|\n"
FULL = {"layer": (("scale=1",),)}                       # the figures beside those of its defaults, which verify quickly
BENCH = re.compile(r"(?m)^(\w+): (.*) \((kernels/\w+\.c)\)\n((?:  .*\n)*)")


def benches(program):
    """(name, what it shows, its file, its parameters as they are listed) of each."""
    return [found.groups() for found in BENCH.finditer(run(program, "list").stdout.split("kernels:\n")[0])]


def dtypes(params):
    found = re.search(r"(?m)^  dtype +=.*\(([^)]*)\)$", params)
    return found[1] if found else ""


def stopped_by(output):
    """The part of the machine that bounds a run, and how busy it is."""
    found = re.search(r"(?m)^bound by +([^,:;]*)(?:[^,:;]*)(?:[,:] (\d[\d.]* %)?)", output)
    return " ".join(part for part in found.groups() if part) if found else ""


def row(program, bench, *words):
    name, what, file, params = bench
    ended = run(program, "run", name, *words, "--data", "off", timeout=200)
    cells = figures(ended.stdout) or [""] * 5
    ok(ended.returncode == 0 and cells[0], f"the summary of {' '.join((name, *words))} has both bounds", ended.said)
    called = f"[{' '.join((name, *words))}](../{file})"
    return "| " + " | ".join([called, what, dtypes(params), *cells, stopped_by(ended.stdout)]) + " |\n"


GEMMS = ("gemm", "gemm_2d", "gemm_split_k")
SIZES = ((512, 512, 512, "f16"), (2048, 512, 1024, "f32"), (64, 4096, 2048, "bf16"))


def same_problem(program):
    """Three gemms move different bytes for the same product, which has one bound."""
    for m, k, n, dtype in SIZES:
        words = (f"m={m}", f"k={k}", f"n={n}", f"dtype={dtype}", "--data", "off", "--json", "-")
        bounds = [json.loads(run(program, "run", bench, *words).stdout)["bounds"][0] for bench in GEMMS]
        problems = [{key: value for key, value in one["problem"].items() if key != "reached_permille"} for one in bounds]
        size = {"f16": 2, "bf16": 2, "f32": 4}[dtype]
        ok(problems[0] == problems[1] == problems[2] and
           problems[0]["memory_ps"] == -(-(m * k + k * n + m * n) * size // 128 * 10**12 // (4 * 23040000000)),
           f"the bound of the problem is the same for all gemms of {m} x {k} x {n} in {dtype}", *problems)
        wasteful = [one for one in bounds if one["algorithm"]["memory_ps"] > one["problem"]["memory_ps"]]
        ok(len(wasteful) == 3 and all(
            one["problem"]["reached_permille"] < one["algorithm"]["reached_permille"] for one in wasteful),
           f"gemms that read a matrix again reach less of the problem's bound than of their own: {m} x {k} x {n}", *bounds)


LIMITS = "cube.pe_template.components."


def limits():
    """What a machine's pe_cpu takes before a kernel, and the bandwidth of its pe_dma, are in the bounds; no run is faster."""
    machine = write(scratch("limits.yaml"), "system: { name: limits }\nsip: { cubes: { rows: 1, cols: 1 } }\ncube: { memory_map: { hbm_slices_per_cube: 2 }, "
                    "noc: { rows: 2, cols: 2 }, pe_template: { components: { pe_dma: { attrs: { rd_engines: 2, wr_engines: 4 } } } } }\n")
    program = simulator(machine)

    def measured(*numbers):
        words = [word for number in numbers for word in ("--set", LIMITS + number)]
        made = json.loads(run(program, "run", "elementwise", "rows=65536", "cols=64", "--data", "off", "--json", "-", *words).stdout)["bounds"][0]
        ok(0 < made["problem"]["bound_ps"] <= made["algorithm"]["bound_ps"] <= made["time_ps"], f"no run is faster than its bound: {numbers}", made)
        return made["problem"]
    plain, launch = measured(), measured("pe_cpu.attrs.launch_ns=5000")
    ok(launch["launch_ps"] == plain["launch_ps"] + 5000000 and launch["bound_ps"] == plain["bound_ps"] + 5000000,
       "each launch takes launch_ns longer, and its bound is as much longer", plain, launch)
    tensor = 65536 * 64 * 4
    for which, engines, moved in (("rd", 2, 2 * tensor + 64 * 4), ("wr", 4, tensor)):       # x, residual and bias; y
        slow = measured(f"pe_dma.attrs.{which}_bw_gbs=1")
        ok(slow["link_ps"] == moved // 2 * 1000 // engines and slow["by"] == "link", f"engines of 1 GB/s bound what PEs move: {which}", slow)


# ---- words

COMMON = set("a all an and as at by every for from in is it its most no nothing of on one or other so than that the then "
             "to with".split())
UNITS = set("B KiB MiB GiB MB/s GB/s TB/s FLOP OP GFLOP MFLOP PFLOP TFLOP GOP TOP MOP POP s ps ns us ms k M G kB MB GB TB PB".split())


def words_of(line):
    return {word.rstrip("_") for word in re.findall(r"[A-Za-z][A-Za-z_+']*", line)}


def same_reason(output, bound):
    """The bottleneck of the result is that of the summary."""
    line = re.search("(?m)^bound by .*", output)[0]
    said = [(name, int(whole) * 10 + int(tenth)) for name, whole, tenth in
            re.findall(r"(?:by +|is |then )(\w[\w+ ]*), (\d+)\.(\d) % busy", line)]
    made = [bound, *([bound["then"]] if "then" in bound else [])]
    queue = f"queue longest for {bound.get('queue')};"
    reason = "latency" if "by     latency: " in line else "transfers" if queue in line else "busy"
    ok([name for name, _ in said] == [one["resource"] for one in made] and reason == bound["reason"] and
       all(abs(said - one["busy_permille"]) <= 1 for (_, said), one in zip(said, made)),
       "the result has the bottleneck that the summary names, and its reason", line, bound)


def words(program):
    """Each word that a summary prints is a word of docs/results.md; those of a bench's own figures, of docs/kernels.md."""
    known = {word.lower() for word in words_of(read(os.path.join(ROOT, "docs", "results.md")))}
    own = words_of(read(TABLE))
    for name, *params in (("gemm", "m=300", "k=64", "n=64"), ("all_reduce", "size=4000"), ("barrier",), ("layer",),
                          ("rmsnorm", "rows=256", "cols=512"), ("gemm", "m=300", "k=64", "n=64", "--data", "off")):
        ended = run(program, "run", name, *params)
        made = json.loads(run(program, "run", name, *params, "--json", "-").stdout)
        same_reason(ended.stdout, made["bound_by"])
        figure = {re.sub("_(ps|bytes_per_s|permille)$", "", one) for one in made["figures"]}
        missing = set()
        for line in ended.stdout.splitlines():
            line = re.sub(r"^(verified|not checked) +\w+:|^launch +\w+|\S*\d\S*", r"\1", line)
            line = re.sub(rf"^{name} on \w+:", "", line)
            named = words_of(line) - COMMON - UNITS
            missing |= {word for word in named if word.lower() not in known and not (word in figure and word in own)}
        ok(ended.returncode == 0 and not missing, f"docs/results.md has each word of the summary of {' '.join((name, *params))}",
           *sorted(missing), ended.said if ended.returncode else None)
    text = read(os.path.join(ROOT, "docs", "results.md"))
    rows = {kind: re.findall(rf'^(?:OWN_)?{kind}\((\w+)(?:, "([^"]*)")?', read(os.path.join(ROOT, "rt", "kb", file)), re.M)
            for kind, file in (("ENGINE", "engines.def"), ("LINK", "links.def"))}
    named = [word for _, word in rows["ENGINE"]] + [f"{link} links" for link, _ in rows["LINK"]]
    missing = [word for word in named + ["hbm", "tcm", "sram", "nodes"] if f"`{word}`" not in text]
    ok(named and not missing, "docs/results.md explains each resource that a summary can name", *missing)


def verified_by_suites(program):
    known = set(re.findall(r'\("(\w+)"', read(os.path.join(ROOT, "tests", "collectives.t"))))
    known |= {name.removesuffix(".jsonl") for name in os.listdir(os.path.join(ROOT, "tests", "library"))}
    missing = [bench[0] for bench in benches(program) if bench[0] not in known]
    ok(not missing, "every bench has points in tests/library or is run by tests/collectives.t", *missing)


def main():
    program = simulator(topology("ref_sip"))
    verified_by_suites(program)
    same_problem(program)
    limits()
    words(program)
    before, _, was = read(TABLE).partition(HEAD)
    now = "".join(row(program, bench, *words)
                  for bench in benches(program) for words in ((), *FULL.get(bench[0], ())))
    bless(TABLE, before + HEAD + now)
    wrong = sorted(set(was.splitlines()) ^ set(now.splitlines()))
    ok(read(TABLE).endswith(HEAD + now), "the table of docs/kernels.md has the figures of these runs", *wrong)


suite(main)
