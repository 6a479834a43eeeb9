#!/usr/bin/python3
"""points: `run --points`: each point of a sweep gives the result of a run of its own. limit: 300, quick

Under the sanitizers the benches run on the small machine, and on two SIPs in one mode; whether memory grows with points is
left to the plain build.
"""
import json
import os
import re
import subprocess

from harness import GEMM, MMU, QUICK, ROOT, SAN, ok, read, run, scratch, simulator, small_machine, suite
from harness import topology, without_host, write

SIZES = {"m": 128, "k": 64, "n": 96, "tile_m": 32, "tile_k": 32, "tile_n": 32}
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "broadcast", "reduce_scatter")
MODES = ("verify", "debug", "off")
TRAPS = {"segv", "call", "fpe", "ill", "overflow", "overflow_wide", "all_segv", "segv_deep", "segv_log"}


def words(point):
    """A point as words of the command line."""
    for name, value in point.items():
        value = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
        yield from ([name, value] if name == "--seed" else [f"{name}={value}"])


def lines(points):
    return "".join(json.dumps(point) + "\n" for point in points)


def compact(text):
    """A result without its figures of the host, in the order in which it was written."""
    value = json.loads(text)
    value.pop("host", None)
    return json.dumps(value)


class Alone:
    """The results of points that run in a process of their own, each run once."""

    def __init__(self, program, bench, *options):
        self.command, self.made = (program, "run", bench, "--json", "-", *options), {}

    def __getitem__(self, point):
        key = lines([point])
        if key not in self.made:
            ended = run(*self.command, *words(point))
            self.made[key] = (ended.returncode, compact(ended.stdout) if ended.stdout else None)
        return self.made[key]


def sweep(what, program, bench, points, *options):
    """Every point, in this order, in one process; points whose run ends the process are left out."""
    alone = Alone(program, bench, *options)
    points = [point for point in points if alone[point][1]]
    ended = run(program, "run", bench, *options, "--points", write(scratch("sweep.jsonl"), lines(points)))
    got, want = ended.stdout.splitlines(), [alone[point] for point in points]
    wrong = [point for point, line, (_, alone_said) in zip(points, got, want) if compact(line) != alone_said]
    ok(len(points) > 1 and len(got) == len(points) and not wrong
       and ended.returncode == max(status for status, _ in want),
       f"a sweep gives the results of single runs: {what} {' '.join(options)}, {len(points)} points", wrong,
       "" if got else ended.said)


def there_and_back(points):
    return points + points[::-1]


def benches(what, program, pes="*", modes=MODES):
    """Benches of the library."""
    small = {"size": 1024, "pes": pes}
    for mode in modes:
        gemms = [SIZES, SIZES | {"--seed": 7, "dtype": "i8"}, SIZES | {"m": 33, "bias": True, "relu": True}]
        sweep(f"{what}: gemm", program, "gemm", there_and_back(gemms), "--data", mode)
        for bench in COLLECTIVES:
            sweep(f"{what}: {bench}", program, bench, there_and_back([
                small, small | {"size": 100, "space": "sram"}, small | {"chunk": 64, "dtype": "i32"}]), "--data", mode)
    sweep(f"{what}: barrier", program, "barrier", there_and_back([{"count": 2, "pes": pes}, {"count": 3, "pes": pes}]))


def failures():
    """Points that fail on the machine leave nothing behind."""
    kernels = [os.path.join(ROOT, "tests", *path) for path in (("failures", "failing.c"), ("kernels", "wrong.c"))]
    for name, settings in (("failing", ()), ("mapped", (MMU,))):
        program = small_machine(name, kernels, *settings)
        kinds = next(line for line in run(program, "list").stdout.splitlines() if line.startswith("  what "))
        kinds = kinds[kinds.rindex("(") + 1:].rstrip(")").split()
        points = [{"what": kind} for kind in kinds if not (SAN and kind in TRAPS)]
        for mode in MODES:
            sweep(f"{name}: faults and deadlocks", program, "failing", there_and_back(points), "--data", mode)
            sweep(f"{name}: wrong data", program, "wrong", there_and_back([{}, {"wrong": False}]), "--data", mode)


def symmetry():
    """PEs that sleep because of symmetry, with every kind of end of their run, and then others."""
    program = small_machine("symmetric", [os.path.join(ROOT, "tests", "host", "symmetric.c")], "sip.cubes.cols=4")
    points = [{"rows": rows} | more for rows in (512, 80) for more in (
        {}, {"fault": True}, {"launches": 3}, {"timeout_ns": 5000}, {"timeout_ns": 12000, "launches": 2})]
    for options in ((), ("--exact-events",)):
        sweep("symmetric PEs", program, "symmetric", there_and_back(points), "--data", "off", *options)
    told = run(program, "run", "symmetric", "rows=512", "--data", "off", "--profile").said
    ok(re.search(r"[1-9][0-9]* on PEs", told), "PEs sleep in these sweeps", told)


def other_machines():
    swapped = simulator(topology("impl/swapped"), "swapped",
                        impls=[os.path.join(ROOT, "topologies", "impl", name + ".c")
                               for name in ("systolic", "vector", "hbm_banks")])
    sweep("models of users: gemm", swapped, "gemm", there_and_back([SIZES, SIZES | {"m": 300}]))
    host = small_machine("ranks", [os.path.join(ROOT, "tests", "host", "ranks.c")], "system.sips=2")
    sweep("programs of several SIPs", host, "end",
          there_and_back([{"how": how} for how in ("fail", "deadlock", "gone", "elsewhere")]))


# ---- lines

def wrong_lines(program):
    file = scratch("wrong.jsonl")
    for line, place, why in (
            ("{\"m\": 64", "3:9", "did not find expected ',' or '}'"),
            ("m: 64", "3:1", "a point must be a JSON object"),
            ("[]", "3:1", "a point must be a JSON object"),
            ("{\"m\": 64} {}", "3:11", "did not find expected <document start>"),
            ("{\"mm\": 64}", "3:2", "unknown key 'mm' in a point of gemm"),
            ("{\"m\": 0}", "3:7", "m must be a whole number from 1 to 16777216, not '0'"),
            ("{\"m\": \"64\"}", "3:7", "m must be a whole number from 1 to 16777216, not the text '64'"),
            ("{\"m\": [64]}", "3:7", "m must be a whole number from 1 to 16777216, not a sequence"),
            ("{\"bias\": 1}", "3:10", "bias must be true or false, not '1'"),
            ("{\"dtype\": \"f61\"}", "3:11", "dtype must be one of: f16 bf16 f32 i8 f8e4m3 f8e5m2, not the text 'f61'"),
            ("{\"--seed\": -1}", "3:12", "--seed must be a whole number from 0 to 18446744073709551615, not '-1'"),
            ("{\"m\": 1, \"m\": 2}", "3:10", "")):
        write(file, "{}\n\n" + line + "\n{}\n")
        ended = run(program, "run", "gemm", "--points", file)
        ok(ended.returncode == 2 and not ended.stdout and f"{file}:{place}: error: {why}" in ended.stderr,
           f"a sweep with the wrong line {line} is refused before it runs", ended.said)
    write(file, "{\"x\": 1}\n{\"y\": 1}\n")
    ended = run(program, "run", "gemm", "--points", file)
    ok(ended.stderr.count("error:") == 2, "every wrong line of a sweep is told", ended.said)


def usage(program):
    file = write(scratch("two.jsonl"), lines([{"m": 64}, {"m": 32, "--seed": 5}]))
    ended = run(program, "run", "gemm", "--points", file, "--trace", scratch("trace"))
    ok(ended.returncode == 2 and "--trace" in ended.stderr, "a sweep with --trace is refused", ended.said)
    ended = run(program, "run", "gemm", "--points", scratch("nowhere"))
    ok(ended.returncode == 2 and "open " in ended.stderr, "a file of points that does not exist is refused", ended.said)
    ended = run(program, "run", "gemm", "--points", write(scratch("none"), "\n"))
    ok(ended.returncode == 0 and not ended.stdout, "a sweep without points succeeds and answers nothing",
       ended.said)
    result = scratch("result.jsonl")
    ended = run(program, "run", "gemm", *GEMM, "--seed", "3", "--points", file, "--json", result)
    got = [json.loads(line) for line in read(result).splitlines()]
    ok(ended.returncode == 0 and not ended.stdout and [(one["params"]["m"], one["params"]["k"], one["seed"]) for one
       in got] == [(64, 64, 3), (32, 64, 5)],
       "the command line gives the parameters that a point leaves out", ended.said, got)
    point = json.loads(lines([SIZES]))
    single = without_host(run(program, "run", "gemm", *GEMM, "--json", "-").stdout)
    swept = run(program, "run", "gemm", "--points", write(file, lines([point]))).stdout
    ok(without_host(swept) == single and swept.count("\n") == 1,
       "the answer to a point is one line, the result of the run", swept)


def answers(program):
    """A process that writes a point reads its answer before it writes the next one."""
    with subprocess.Popen([program, "run", "gemm", *GEMM, "--points", "-"], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        got = []
        for line in ("{\"m\": 64}", "", "{\"mm\": 64}", "{\"m\": 32}"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            if line:
                got.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest, said = process.stdout.read(), process.stderr.read()
    ok([one.get("params", {}).get("m") for one in got] == [64, None, 32] and not rest,
       "each point is answered before the next one is read", got)
    ok(got[1] == {"point": 2, "error": "unknown key 'mm' in a point of gemm; did you mean 'm'?"}
       and "standard input:3:2: error: unknown key 'mm'" in said and process.returncode == 2,
       "a wrong point is answered with its error, and the next one runs", got[1], said, process.returncode)


def resident_kib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def memory(program, bench, points):
    """The memory of a process does not grow with the points that it has run."""
    with subprocess.Popen([program, "run", bench, "--points", "-"], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        held = []
        for rounds in (100, 1000 if QUICK else 2000):
            for i in range(rounds):
                process.stdin.write(lines([points[i % len(points)]]))
                process.stdin.flush()
                process.stdout.readline()
            held.append(resident_kib(process))
        process.stdin.close()
    grown = held[1] - held[0]
    ok(grown < 1024, f"2,000 points of {bench} hold no more memory than 100", f"{grown} KiB")


def main():
    small = small_machine("small", [])
    wrong_lines(small)
    usage(small)
    answers(small)
    if not SAN:
        memory(small, "gemm", [SIZES, SIZES | {"m": 64, "dtype": "i8"}])
        memory(small, "broadcast", [{"size": 1024}, {"size": 100, "space": "sram"}])
        failing = small_machine("failing", [os.path.join(ROOT, "tests", "failures", "failing.c")])
        memory(failing, "failing", [{"what": what} for what in ("no_send", "bad_load", "async", "refused", "slow")])
    benches("small", small)
    long = SIZES | {"m": 2048, "n": 256}
    sweep("gemms with skipped periods", small, "gemm", there_and_back([long, SIZES, long | {"k": 128}]), "--data",
          "off")
    symmetry()
    failures()
    other_machines()
    if not QUICK:
        benches("two_sips", simulator(topology("two_sips")), modes=("debug",) if SAN else MODES)
    if not QUICK and not SAN:
        benches("ref_sip", simulator(topology("ref_sip")), "sip0.cube?.pe0", ("verify", "off"))


suite(main)
