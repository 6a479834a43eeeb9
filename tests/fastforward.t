#!/usr/bin/python3
"""fastforward: with periods and PEs skipped, results are those of the simulation of every event. limit: 400, quick

tests/fastforward.t [MACHINES [SEED [STREAMS]]]: each random machine is a test. Its streams are long composites, alone or
together with other PEs, simple commands, messages, requests of the host, timeouts, faults and deadlocks. Its bench,
tests/fastforward/apart.c, compares the counts that a result of `run` contains. Under the sanitizers the
first machines make the same runs without --exact-events, the bench with fewer tiles: the plain build compares the
results, and other suites simulate every event under the sanitizers.
"""
import os
import random
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, folder) for folder in ("oracle", "fuzz", "embed")]

from harness import (QUICK, SAN, done, first_difference, folder, ok, read, result_difference, run,     # noqa: E402
                     scratch, small_machine, without_host)
import machines                                                 # noqa: E402
import streams                                                  # noqa: E402
import trial                                                    # noqa: E402

MACHINES, SEED, STREAMS = (sys.argv[1:] + [None] * 3)[:3]
MACHINES, SEED, STREAMS = int(MACHINES or (5 if QUICK else 8 if SAN else 25)), SEED or "1", int(STREAMS or 8)
BENCH = os.path.join(HERE, "fastforward", "apart.c")
SHAPES = (16, 8, 16), (12, 4, 40), (50, 1, 60), (4, 60, 8), (2, 3, 300)                # tiles along m, k, n
DTYPES = {"f32": 4, "f16": 2}
HBM = {"space": "hbm"}


class Drawn:
    """A stream of long composites for a machine."""

    def __init__(self, rng, facts):
        self.rng, self.facts, self.apart = rng, facts, False    # apart: every PE uses only its own memory
        self.va = facts.page << 16
        mapped = facts.mmu and rng.random() < 0.5
        self.maps = [{"va": self.va, "bytes": 4 << 20, "to": {"space": "hbm"}}] if mapped else []

    def place(self, size, apart):
        """A place for an operand: mostly in the PE's own slice."""
        rng, facts = self.rng, self.facts
        if self.maps and rng.random() < 0.3:
            return {"va": self.va + rng.choice((0, 4096, apart))}
        space = "hbm" if self.apart else rng.choice(("hbm", "hbm", "hbm", "hbm", "sram", "sram", "tcm"))
        if space == "sram" and not facts.has_sram:
            space = "hbm"
        low = facts.low if space == "tcm" else 0
        if facts.sizes[space] < low + size:
            space, low = "hbm", 0
        value = {"space": space}
        for key, count in (("sip", facts.sips), ("cube", facts.cubes), ("pe", facts.count(space))):
            if rng.random() < 0.3 and not self.apart and (key, space) != ("pe", "sram"):
                value[key] = rng.randrange(count)
        room = max(0, facts.sizes[space] - size - low)
        value["offset"] = low + rng.choice((0, min(room, apart), room, rng.randrange(room + 1)))
        if rng.random() < 0.01:                             # a fault, of a tile after many
            value["offset"] = max(0, facts.sizes[space] - size // 2)
        return value

    def extents(self, tiles):
        """(tile, whole) along one dimension: even or with an edge."""
        tile = self.rng.choice((8, 16, 16, 32, 32, 10))
        return tile, tile * tiles - self.rng.choice((0, 0, 0, 0, 0, 0, 1, tile // 2))

    def composite(self, number):
        rng = self.rng
        dtype = rng.choice(("f32", "f16", "f16", "f16"))
        size = DTYPES[dtype]
        (tm, m), (tk, k), (tn, n) = (self.extents(tiles) for tiles in rng.choice(SHAPES))
        epilogue = [{"op": "relu", "scope": rng.choice(("k_tile", "output_tile", "once"))}
                    for _ in range(rng.choice((0, 0, 1, 2)))]
        value = {"do": "composite", "id": f"c{number}", "dtype": dtype}
        if rng.random() < 0.3:
            return value | {"op": "math", "fn": "relu", "m": m, "n": n, "tile": [tm, tn],
                            "src": self.place(m * n * size, 0x100000), "dst": self.place(m * n * size, 0x200000)}
        value |= {"op": "gemm", "m": m, "k": k, "n": n, "tile": [tm, tk, tn], "epilogue": epilogue,
                  "a": self.place(m * k * size, 0x100000), "b": self.place(k * n * size, 0x200000),
                  "c": self.place(m * n * size, 0x300000)}
        if rng.random() < 0.2:
            value["pinned"] = rng.choice((["a"], ["b"], ["a", "b"]))
        return value

    def between(self):
        """Steps before, after and between composites: mostly none."""
        rng, facts, steps = self.rng, self.facts, []
        if rng.random() < 0.2:
            steps.append({"do": "delay", "ns": rng.choice((0, 0, 10, 5000, 50000))})
        if rng.random() < 0.2:
            steps.append({"do": "load", "from": {"space": "hbm", "offset": 512}, "to": facts.low, "bytes": 512})
        if rng.random() < 0.1:
            peer = rng.choice(facts.pes)
            steps.append(rng.choice(({"do": "send", "to": peer, "from": facts.low, "bytes": 64},
                                     {"do": "recv", "from": peer, "to": facts.low}))
                         | rng.choice(({}, {"async": True})))
        if rng.random() < 0.03:                             # faults at the call, and when it is served
            steps.append(rng.choice(({"do": "load", "from": {"space": "hbm"}, "to": 0, "bytes": 512},
                                     {"do": "load", "from": {"space": "hbm", "offset": facts.sizes["hbm"]},
                                      "to": facts.low, "bytes": 512})))
        return steps

    def program(self):
        rng, steps = self.rng, self.between()
        for number in range(rng.choice((1, 1, 2, 3))):
            steps.append(self.composite(number))
            if rng.random() < 0.1:
                steps += self.between()
            if rng.random() < 0.3:
                steps.append({"do": "wait", "for": [f"c{number}"]})
            steps += self.between()
        return steps

    def symmetric(self):
        """(parts, programs): one program on every PE or on a part of each cube; some PEs may have further steps."""
        rng, program = self.rng, self.program()
        if rng.random() < 0.6 or len(self.facts.pes) == 1:
            glob = rng.choice(("*", "*", "*", "*.pe0", "*.cube0.*"))
            return [{"program": "p0", "targets": [glob]}], {"p0": program}
        pes = self.facts.pes
        others = sorted(rng.sample(pes, rng.randrange(1, len(pes))))
        return ([{"program": "p0", "targets": [pe for pe in pes if pe not in others]},
                 {"program": "p1", "targets": others}], {"p0": program, "p1": program + self.between()})

    def sharing(self):
        """(parts, programs): some PEs, most of which share memories and links."""
        rng, facts = self.rng, self.facts
        chosen = rng.sample(facts.pes, min(len(facts.pes), rng.choice((1, 1, 2, 2, 16))))
        programs = {f"p{i}": self.program() for i in range(rng.choice((1, 1, 2, 3)))}
        return [{"program": name, "targets": sorted(chosen[i::len(programs)])}
                for i, name in enumerate(programs) if chosen[i::len(programs)]], programs

    def stream(self):
        rng = self.rng
        self.apart = rng.random() < 0.5
        parts, programs = self.symmetric() if self.apart else self.sharing()
        launch = {"parts": parts}
        if rng.random() < 0.2:
            launch["timeout_ns"] = rng.choice((3000, 40000, 500000))
        if rng.random() < 0.2:
            launch["on_failure"] = rng.choice(("fail_fast", "drain"))
        value = {"name": "fastforward"}
        if self.maps:
            value["mmu"] = self.maps
        if rng.random() < 0.2:
            value["memory"] = [{"do": "write", "to": [{"space": "hbm", "offset": 4096}], "bytes": 8192}]
        launches = [launch] * rng.choice((1, 1, 2))
        if "mmu" in value or rng.random() < 0.7:
            return value | {"launches": launches, "programs": programs}
        write = {"do": "write", "to": [{"space": "sram", "offset": 4096}], "bytes": 8192}
        return {"name": "fastforward", "host": [step for one in launches for step in ({"do": "launch"} | one, write)],
                "programs": programs}


def drawn_machine(number):
    """A random machine, with HBM. On most, the pattern of rows and interleaving of the HBM repeats soon."""
    rng = random.Random(f"{SEED}/{number}")
    tree = machines.machine(rng, machines.drawn_parts(random.Random(f"{SEED}/{number}/parts")))
    while not tree["cube"]["memory_map"]["hbm_slices_per_cube"]:
        tree = machines.machine(rng)
    if rng.random() < 0.8:
        tree["cube"]["hbm_ctrl"]["attrs"] |= {"interleave_bytes": 256, "row_bytes": rng.choice((256, 1024))}
        tree["cube"]["memory_map"] |= {"hbm_slice_mb": 16, "sram_mb": 4 if tree["cube"]["memory_map"]["sram_mb"] else 0}
        components = tree["cube"]["pe_template"]["components"]
        components["pe_tcm"]["attrs"] |= {"size_mb": 1, "reserved_mb": "512 KiB"}
        components["pe_mmu"]["attrs"]["enabled"] = rng.random() < 0.2
    return tree


def sanitizer_said(ended):
    """What a sanitizer reported, or an empty text. A run that fails in simulated time ends with status 1 as well."""
    return ended.said if re.search(r"Sanitizer|runtime error", ended.stderr) or ended.returncode not in (0, 1) else ""


def counts_differ(program, rng):
    """The first difference between two runs of the bench, with and without --exact-events."""
    words = [f"{name}={rng.choice(values)}" for name, values in (
        ("m", (160, 160 if SAN else 320)), ("k", (64, 160)), ("n", (100, 100 if SAN else 320)), ("tile", (8, 16, 16)),
        ("count", (1, 1, 3)),
        ("late_ps", (0, 0, 777)), ("wait", (0, 1)))]
    ends = [run(program, "run", "apart", *words, "--data", "off", "--json", "-", *more)
            for more in (["--exact-events"], []) if not (SAN and more)]
    if SAN:
        return sanitizer_said(ends[0])
    want, got = (without_host(ended.stdout) if ended.stdout else "" for ended in ends)
    return f"{' '.join(words)}: {result_difference(want, got)}" if want != got else ""


def machine_holds(number):
    """Returns (complaints, [stage services, those in skipped periods, those on PEs that slept])."""
    where = folder(f"{SEED}-{number}")
    total = [0, 0, 0]
    try:
        machine = trial.Machine(where, drawn_machine(number), ("-k", BENCH))
    except trial.Broken as why:
        return [why], total
    if difference := counts_differ(machine.program, random.Random(f"{SEED}/{number}/bench")):
        return [difference], total
    for which in range(STREAMS):
        drawn = Drawn(random.Random(f"{SEED}/{number}/{which}"), streams.Facts(machine.topology))
        path, wanted, got, wanted_stats, got_stats = (os.path.join(where, name) for name in (
            "stream.yaml", "wanted.json", "got.json", "wanted_stats.json", "got_stats.json"))
        trial.write_yaml(path, drawn.stream())
        counts = which % 2 == 0 and not SAN
        ended = run(machine.program, "replay", path, "--profile", "--json", got,
                    *(["--stats", got_stats] if counts else []))
        if complaint := sanitizer_said(ended):
            return [f"stream {which}: {path}", complaint], total
        message, *counted = re.split(r"(\d+) stage services: (\d+) .*, (\d+) on PEs", ended.stderr)
        if not SAN:
            exact = run(machine.program, "replay", path, "--exact-events", "--json", wanted,
                        *(["--stats", wanted_stats] if counts else []))
            if exact.returncode != ended.returncode or exact.stderr != message:
                return [f"stream {which}: {path}", exact.said, ended.said], total
            if difference := result_difference(read(wanted), without_host(read(got))):
                return [f"stream {which}: {path}", difference], total
            if counts and (difference := first_difference(read(wanted_stats), read(got_stats))):
                return [f"stream {which}: {path}, --stats", difference], total
        total = [sum(pair) for pair in zip(total, map(int, counted[:3]))]
    shutil.rmtree(where)
    return [], total


def time_ends():
    """Simulated time runs past 2^64 ps within a period."""
    program = small_machine("slow", (), "cube.noc.attach.bw_gbs=10 B/s")
    step = {"do": "composite", "op": "gemm", "m": 4096, "k": 512, "n": 4096, "tile": [32, 32, 32], "dtype": "f16"}
    step |= {name: {"space": "hbm", "offset": at << 23} for at, name in enumerate("abc")}
    path = scratch("slow.yaml")
    launches = [{"program": "p", "targets": ["*"]}]
    trial.write_yaml(path, {"name": "slow", "launches": launches, "programs": {"p": [step]}})
    got = run(program, "replay", path)
    want = got if SAN else run(program, "replay", path, "--exact-events")
    ok(want.returncode == got.returncode == 1 and "213 days" in got.stderr and want.stderr == got.stderr,
       "a run that skips periods fails where simulated time ends, as one with --exact-events does", want.said, got.said)


def gemm(m, k, n, **more):
    """A gemm of so many tiles of 16 x 16 x 16."""
    return {"do": "composite", "id": "c", "op": "gemm", "m": 16 * m, "k": 16 * k, "n": 16 * n, "tile": [16, 16, 16],
            "dtype": "f16"} | more


PERIODS, SLEEP, EVENTS = "periods are skipped exactly", "PEs sleep exactly", "every event is simulated"


def holds(title, programs, what=PERIODS, settings=()):
    """A machine with a PE for each program gives the results of --exact-events, and skips periods if it is to."""
    name = title.split()[0]
    program = small_machine(name if settings else "small", (), *settings)
    parts = [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(len(programs))]
    path, got, want, got_stats, want_stats = (scratch(f"{name}.{end}") for end in (
        "yaml", "got", "want", "got_stats", "want_stats"))
    trial.write_yaml(path, {"name": "one", "launches": [{"parts": parts}],
                            "programs": {f"p{pe}": steps for pe, steps in enumerate(programs)}})
    ended = run(program, "replay", path, "--profile", "--json", got, "--stats", got_stats)
    skipped = re.search(r"services: ([1-9]\d*) in skipped periods", ended.stderr)
    if SAN:
        difference = sanitizer_said(ended)
    else:
        run(program, "replay", path, "--exact-events", "--json", want, "--stats", want_stats)
        difference = ended.returncode or (result_difference(read(want), without_host(read(got)))
                                          or first_difference(read(want_stats), read(got_stats)))
    ok(ended.returncode == 0 and bool(skipped) == (what == PERIODS) and not difference, f"{what} if {title}", difference,
       ended.said)


def single_streams():
    """What random streams seldom meet: each of these breaks one condition of a period."""
    here = {name: {"space": "tcm", "offset": (1 << 21) + (at << 20)} for at, name in enumerate("ab")}
    here |= {"pinned": ["a", "b"], "c": {"space": "sram"}}
    many = gemm(40, 2, 40, **here)
    load = {"do": "load", "from": {"space": "sram"}, "to": 1 << 21, "bytes": 512}
    delay = {"do": "delay", "ns": 30000}
    holds("kernels act without composites", [[many], [delay, delay, load, delay, delay]])
    holds("loops over k are of unequal lengths", [[many], [gemm(2, 300, 2, **here)]])
    # A PE that sleeps has used no route to its memory. When it wakes, its first write has yet to leave over it.
    cast = {"do": "composite", "id": "c", "op": "math", "fn": "cast", "m": 32, "n": 32, "tile": [8, 8], "dtype": "f32",
            "out_dtype": "f32", "src": {"space": "hbm"}, "dst": {"space": "hbm", "offset": 1 << 20}}
    meet = {"do": "load", "from": {"space": "hbm", "cube": 0, "pe": 1}, "to": 1 << 21, "bytes": 4096}
    holds("they wake before their first write leaves", [[cast, {"do": "delay", "ns": 20}, meet]] * 2, what=SLEEP)


def keys():
    """Keys of machines that keep fast-forward, and those of pe_dma, which do not."""
    parts, many = "cube.pe_template.components.", [gemm(40, 4, 40, a=HBM, b=HBM | {"offset": 1 << 20}, c=HBM | {"offset": 2 << 20})]
    holds("operands have blocks of their own, and arrays and kernels wait", [many], settings=[
        parts + one for one in ("pe_tcm.attrs.buffers=operands", "pe_gemm.attrs.block_cycles=5", "pe_cpu.attrs.launch_ns=100")])
    for setting in ("reads=paired", "rd_bw_gbs=20", "wr_bw_gbs=20", "max_request_bytes=4096", "request_ns=1",
                    "requests_in_flight=2"):
        holds(f"pe_dma has {setting}", [many], EVENTS, [f"{parts}pe_dma.attrs.{setting}"])


def main():
    services = [0, 0, 0]
    for number in range(MACHINES):
        complaints, total = machine_holds(number)
        services = [sum(pair) for pair in zip(services, total)]
        ok(not complaints,
           f"machine {SEED}-{number} {'gives the sanitizers nothing to report' if SAN else 'gives the results of --exact-events'}, and skips "
           f"{total[1]} + {total[2]} of {total[0]} services", *complaints)
    time_ends()
    single_streams()
    keys()
    ok(services[1] * 10 > services[0],
       f"at least a tenth of the stage services lies in skipped periods: {services[1]} of {services[0]}")
    ok(services[2] * 20 > services[0],
       f"at least a twentieth of the stage services is on PEs that sleep: {services[2]} of {services[0]}")
    done()


main()
