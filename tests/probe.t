#!/usr/bin/python3
"""probe: `SIM probe` takes what a replayed command or request takes, to the picosecond, and its steps add up to that.

The times of parts of a request, from and to io_cpu and m_cpu, are read off the trace of the whole request: a CPU passes on
in the instant in which it has all, so it sends first on the way down and last on the way up.
"""
import json
import os
import random
import struct
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "fuzz")]

from harness import (KBGEN, MMU, QUICK, ROOT, SAN, SMALL, held, ok, options_of, read, read_bytes, run, scratch,   # noqa: E402
                     simulator, suite, topology, write)
import machines                                                 # noqa: E402

SCHEMA = held.validator("probe")
DRAWN = 1 if SAN or QUICK else 7


class Machine:
    """A simulator, what a test has to know of it, and the replays that probes are held against."""

    def __init__(self, file, settings=(), impls=()):
        name = os.path.basename(file).removesuffix(".yaml") + ("-mmu" if settings else "") + ("-own" if impls else "")
        self.program = simulator(file, name, settings=settings, impls=impls)
        options = options_of((), settings, impls)
        rows = (line.split()[:2] for line in run(KBGEN, "--dump", "model", file, *options).stdout.splitlines())
        model = {row[0]: row[1] for row in rows if len(row) == 2}
        parts = "cube.pe_template.components."
        self.reserved = int(model[parts + "pe_tcm.attrs.reserved_mb"])
        self.mmu = model[parts + "pe_mmu.attrs.enabled"] == "true"
        self.sips, self.pes = int(model["system.sips"]), int(model["cube.memory_map.hbm_slices_per_cube"])
        self.cubes = int(model["sip.cubes.rows"]) * int(model["sip.cubes.cols"])
        self.replays = {}

    def draw(self, rng):
        """The SIP, the cube and the number of a PE."""
        return rng.randrange(self.sips), rng.randrange(self.cubes), rng.randrange(self.pes)

    def probe(self, *words):
        """What a probe says; why it says nothing, as its `ps`."""
        ended = run(self.program, "probe", *words, "--json", "-")
        if ended.returncode:
            return {"ps": ended.said}
        said = json.loads(ended.stdout)
        wrong = [error.message for error in SCHEMA.iter_errors(said)]
        return {"ps": wrong} if wrong else said["probe"]

    def replay(self, host, program=()):
        """(result, rows of the trace) of a stream; of equal ones it runs one."""
        text = json.dumps({"name": "alone", "host": host, "programs": {"a": list(program)}})
        if text not in self.replays:
            trace = scratch("trace.jsonl")
            ended = run(self.program, "replay", write(scratch("stream.yaml"), text), "--json", "-", "--trace", trace,
                        "--trace-all")
            assert ended.returncode == 0, ended.said + text
            self.replays[text] = json.loads(ended.stdout), [json.loads(row) for row in read(trace).splitlines()]
        return self.replays[text]


def end(kind, sip, cube=0, pe=0):
    """The name of an end."""
    return {"pe": f"sip{sip}.cube{cube}.pe{pe}", "hbm": f"sip{sip}.cube{cube}.hbm_ctrl.pe{pe}",
            "sram": f"sip{sip}.cube{cube}.sram", "tcm": f"sip{sip}.cube{cube}.pe{pe}.pe_tcm",
            "m_cpu": f"sip{sip}.cube{cube}.m_cpu", "io_cpu": f"sip{sip}.io_cpu", "host": "host"}[kind]


def address(machine, past, kind, sip, cube, pe):
    """The bytes of a memory, or of a PE, in a stream."""
    if kind == "sram":
        return {"space": "sram", "sip": sip, "cube": cube, "offset": past}
    return {"space": "hbm" if kind == "hbm" else "tcm", "sip": sip, "cube": cube, "pe": pe,
            "offset": past + (0 if kind == "hbm" else machine.reserved)}


# ---- what a replay says

def command_ps(machine, do, pe, memory, size, load=1, virtual=False, past=0):
    """From the begin to the end of a kernel that loads or stores."""
    def step(past):
        where = {"va": past} if virtual else address(machine, past, *memory)
        own = machine.reserved
        return {"do": do, "bytes": size, "async": True} | (
            {"from": where, "to": own} if do == "load" else {"to": where, "from": own})
    targets = [end("pe", *pe)]
    maps = [{"do": "map", "va": 0, "bytes": size * load, "to": address(machine, 0, *memory), "targets": targets}]
    launch = {"do": "launch", "program": "a", "targets": targets}
    said, _ = machine.replay([*(maps if virtual else []), launch], [step(past + i * size) for i in range(load)])
    return said["launches"][0]["pe_exec_ps"]


def request(machine, do, memory, size, load=1):
    """The replay of requests of the host."""
    side = "to" if do == "write" else "from"
    return machine.replay([{"do": do, side: [address(machine, i * size, *memory)], "bytes": size, "async": True}
                           for i in range(load)])


def sends(rows, node):
    """When a node sends, in the order of time; the host and the PEs also when they begin and end."""
    times = [row["start"] if row["ev"] == "control" else row["asked"] for row in rows
             if row.get("node") == node and "to" in row]
    return times + [row["t"] for row in rows if row.get("node") == node
                    and row["ev"] in ("kernel_begin", "kernel_end", "request_begin", "request_end")]


def part_ps(rows, done_ps, begin, stop, returns, up):
    """The part of a request from a node to another, or from when one sends it on until that has the answer."""
    first = lambda node: min(sends(rows, node))
    last = lambda node: done_ps if node == "host" else max(sends(rows, node))
    if returns:
        processor = stop if up else begin
        return last(processor) - first(processor)
    return last(stop) - last(begin) if up else first(stop) - first(begin)


# ---- pairs

def spread_is_right(said):
    """Complaints of several transfers: the times of hops are those of a message, those of steps those of a transfer."""
    wrong = [step for step in said["spread"] if "hops" in step
             and abs(sum(hop["mean_ps"] for hop in step["hops"]) - step["mean_ps"]) > 1e-6 * step["mean_ps"]]
    wrong += [part for step in said["spread"] for part in (step, *step.get("hops", ()))
              if not part["least_ps"] <= part["mean_ps"] * (1 + 1e-9) <= part["most_ps"] * (1 + 2e-9)]
    if abs(sum(step["mean_ps"] for step in said["spread"]) - said["mean_ps"]) > 1e-6 * said["mean_ps"]:
        wrong.append((said["mean_ps"], said["spread"]))
    return wrong


def whole_is_right(said, want, words):
    """Complaints of a probe: its time, its steps and hops."""
    if said["ps"] != want:
        return [f"{words}: {said['ps']} ps, the replay has {want}"]
    wrong, at = spread_is_right(said) if "spread" in said else [], 0
    rate = said["bytes"] * said["load"] * 1e12 / want
    if abs(said["bandwidth_bps"] - rate) > 1e-9 * rate:
        wrong.append(f"{words}: {said['bandwidth_bps']} bytes/s, not {rate}")
    for step in said.get("steps", ()):
        if step["begin_ps"] != at:
            wrong.append(f"{words}: {step} does not begin at {at}")
        at = step["end_ps"]
        ready = step["begin_ps"]
        for hop in step.get("hops", ()):
            if hop["arrives_ps"] != ready + hop["latency_ps"]:
                wrong.append(f"{words}: {hop} arrives {hop['latency_ps']} ps behind {ready}")
            ready = hop["arrives_ps"] + hop["overhead_ps"]
        if "hops" in step and ready != at:
            wrong.append(f"{words}: {step} ends at {ready}")
    if "steps" in said and at != want:
        wrong.append(f"{words}: the steps end at {at}")
    return wrong


def commands(machine, rng):
    """(words of a probe, the time of the replay) of loads and stores."""
    pe = machine.draw(rng)
    for kind in ("pe", "hbm", "sram", "tcm", "own"):
        at = pe if kind == "own" else machine.draw(rng)
        memory = ("pe" if kind == "own" else kind, *at)
        for do in ("store",) if kind in ("pe", "own") else ("store", "load"):
            size, load = rng.choice((1, 64, 777, 4096, 20000)), rng.choice((1, 1, 2, 3))
            virtual = machine.mmu and rng.random() < 0.5
            ends = (end("pe", *pe), end(*memory))
            words = (*(ends if do == "store" else ends[::-1]), "--bytes", str(size),
                     *(("--load", str(load)) if load > 1 else ()), *(("--virtual",) if virtual else ()))
            yield words, command_ps(machine, do, pe, memory, size, load, virtual)


def requests(machine, rng):
    """The same of reads and writes of the host, and of parts of them."""
    for kind, do in ((kind, do) for kind in ("hbm", "sram", "tcm", "pe") for do in ("write", "read")):
        memory, size = (kind, *machine.draw(rng)), rng.choice((1, 100, 4096, 30000))
        said, rows = request(machine, do, memory, size)
        for processor in ("host", "io_cpu", "m_cpu"):
            ends = (end(processor, *memory[1:]), end(*memory))
            words = (*(ends if do == "write" else ends[::-1]), "--bytes", str(size))
            yield words, part_ps(rows, said["memory"][0]["done_ps"], words[0], words[1], True, do == "read")
    memory, load = ("hbm", *machine.draw(rng)), rng.choice((2, 5))
    said, _ = request(machine, "write", memory, 700, load)
    yield (("host", end(*memory), "--bytes", "700", "--load", str(load)),
           max(one["done_ps"] for one in said["memory"]))


def messages(machine, rng):
    """The same between CPUs, with payload and without; and launches and answers from and to PEs."""
    ways = (("host", "io_cpu"), ("host", "m_cpu"), ("io_cpu", "m_cpu"))
    sip, cube, pe = machine.draw(rng)
    size = rng.choice((1, 100, 5000))
    for upper, lower in ways:
        below = ("sram", sip, cube if lower == "m_cpu" else 0, 0)
        for do in ("write", "read"):
            said, rows = request(machine, do, below, size)
            ends = (end(upper, sip, cube), end(lower, sip, cube))
            words = (*(ends if do == "write" else ends[::-1]), "--bytes", str(size))
            yield words, part_ps(rows, said["memory"][0]["done_ps"], words[0], words[1], False, do == "read")
    said, rows = machine.replay([{"do": "launch", "program": "a", "targets": [end("pe", sip, cube, pe)], "start": "free"}])
    for upper, lower in (*ways, ("host", "pe"), ("io_cpu", "pe"), ("m_cpu", "pe")):
        ends = (end(upper, sip, cube), end(lower, sip, cube, pe))
        nodes = [name + ".pe_cpu" if name == end("pe", sip, cube, pe) else name for name in ends]
        done_ps = said["launches"][0]["done_ps"]
        yield ends, part_ps(rows, done_ps, *nodes, False, False)
        yield ends[::-1], part_ps(rows, done_ps, *nodes[::-1], False, True)


PE = "cube.pe_template.components."
# Models of users, some of which take longer than the built-in ones: before a transfer, and in a router.
OWN = {PE + "pe_dma": "same_dma", PE + "pe_tcm": "same_tcm", PE + "pe_mmu": "same_mmu",
       "cube.noc.router": "same_router", "cube.hbm_ctrl": "same_hbm"}
LONGER = (PE + "pe_dma.attrs.params.prepare=7 ns", PE + "pe_tcm.attrs.params.ports=1", "cube.noc.router.params.more=3 ns")


def own_machine():
    return Machine(SMALL, (MMU, *(f"{key}.impl={model}" for key, model in OWN.items()), *LONGER),
                   [os.path.join(HERE, "impl", model + ".c") for model in OWN.values()])


def every_machine():
    """(machine, what it is)."""
    for number in range(DRAWN):
        tree = machines.machine(random.Random(f"probe/{number}"))
        yield Machine(write(scratch(f"drawn{number}.yaml"), yaml.safe_dump(tree))), f"the drawn machine {number}"
    yield Machine(SMALL, (MMU,)), "small with MMUs"
    if not SAN:
        yield Machine(SMALL), "small"
        yield Machine(topology("two_sips")), "two_sips"
        yield own_machine(), "small with models of users"


def every_pair():
    for machine, name in every_machine():
        rng = random.Random(name)
        wrong, count = [], 0
        for words, want in (*commands(machine, rng), *requests(machine, rng), *messages(machine, rng)):
            count += 1
            wrong += whole_is_right(machine.probe(*words), want, words)
        ok(count == 8 + 25 + 18 and not wrong, f"on {name}, {count} probes of all kinds take what a replay takes,"
           " and their steps add up to that", *wrong)


def steps():
    """What the steps are: of a load and a store through pe_mmu, and of parts of a read and a write of the host."""
    machine = Machine(SMALL, (MMU,))
    for words, want in (
            (("sip0.cube0.hbm_ctrl.pe1", "sip0.cube0.pe0", "--virtual"),
             "call schedule translate control access data drain tcm"),
            (("sip0.cube0.pe0", "sip0.cube0.pe1", "--virtual"), "call schedule tcm translate data write control"),
            (("sip0.cube0.pe0", "sip0.cube0.pe0", "--virtual"), "call schedule translate tcm"),
            (("sip0.cube0.hbm_ctrl.pe0", "sip0.cube0.m_cpu"), "control access data drain"),
            (("sip0.io_cpu", "sip0.cube0.pe0", "--bytes", "64"), "data drain data write control control"),
            (("sip0.cube0.pe0", "host"), "control control control")):
        got = machine.probe(*words).get("steps", ())
        ok([step["what"] for step in got] == want.split(), f"the steps from {words[0]} to {words[1]} are {want}", *got)
    for words, want in () if SAN else (
            (("sip0.cube0.sram", "sip0.cube0.pe0", "--virtual"), "call schedule prepare translate control data drain tcm"),
            (("sip0.cube0.pe0", "sip0.cube0.pe0"), "call schedule prepare tcm")):
        got = own_machine().probe(*words).get("steps", ())
        ok([step["what"] for step in got] == want.split(), f"with models of users they are {want}", *got)
    plain = Machine(SMALL)
    at, moved = (plain.probe("sip0.cube0.hbm_ctrl.pe0" + offset, "sip0.cube0.pe0", "--bytes", "64") for offset in ("", "+0xfe0"))
    ok(at["ps"] > moved["ps"] == command_ps(plain, "load", (0, 0, 0), ("hbm", 0, 0, 0), 64, past=0xfe0),
       "an offset moves the bytes: these lie in two pseudo channels", at, moved)
    several = plain.probe("sip0.cube0.pe0", "sip0.cube1.sram", "--bytes", "9000", "--load", "4")
    command_ps(plain, "store", (0, 0, 0), ("sram", 0, 1, 0), 9000, 4)
    rows = [reply for reply, _ in plain.replays.values()][-1]["launches"][0]["commands"]
    each = [2000 + row["complete_ps"] - row["submitted_ps"] for row in rows]
    ok((several["least_ps"], several["most_ps"], several["mean_ps"]) == (min(each), max(each), sum(each) / 4),
       "of several transfers the least, the greatest and the mean are those of a stream", several, *each)
    ended = run(plain.program, "probe", "sip0.cube0.hbm_ctrl.pe1", "sip0.cube0.pe0")
    said = plain.probe("sip0.cube0.hbm_ctrl.pe1", "sip0.cube0.pe0")
    hops = [hop for step in said["steps"] for hop in step.get("hops", ())]
    ok(ended.stdout.count("\n") == 5 + len(hops) + len(said["steps"])
       and all(f"{hop['arrives_ps']:12} {hop['overhead_ps']:12} " in ended.stdout for hop in hops)
       and f"\n{said['ps']:12} ps in all, " in ended.stdout, "a probe prints its steps, its hops and the sum", ended.said)


# ---- matrices

SQUARE = """
system: { name: square }
sip: { cubes: { rows: 1, cols: 1 } }
cube:
  memory_map: { hbm_slices_per_cube: 4, hbm_slice_mb: 64, sram_mb: 4 }
  noc: { rows: 2, cols: 2 }
"""


def matrix(program, pairs, *words):
    """(how it ended, its JSON, which the schema describes)."""
    ended = run(program, "probe", "--matrix", pairs, *words, "--json", "-")
    said = json.loads(ended.stdout) if ended.returncode == 0 else {}
    wrong = [error.message for error in SCHEMA.iter_errors(said)]
    ok(ended.returncode == 0 and not wrong, f"--matrix {' '.join((pairs, *words))} has the form of its schema", ended.said, *wrong)
    return said.get("probe_matrix", {})


def by_hand():
    """PEs at the four corners of 2 x 2 routers, everything else by default. A store of 4096 bytes from one to another:
    call 2000, pe_scheduler 1000, 4096 bytes out of the TCM at 512 GB/s 8000; the head over two attachments of 5 and
    `hops` hops of 20, through a router of 1000 more than hops, into pe_dma, 2000; the rest at 256 GB/s, 16000; and back as
    the head came. Within a TCM only the first three."""
    program = simulator(write(scratch("square.yaml"), SQUARE))
    hops = [[abs(a // 2 - b // 2) + abs(a % 2 - b % 2) for b in range(4)] for a in range(4)]
    way = lambda hops: 2 * 5 + 20 * hops + 1000 * (hops + 1) + 2000
    want = [[11000 + (16000 + 2 * way(hops[a][b]) if a != b else 0) for b in range(4)] for a in range(4)]
    got = matrix(program, "pe:pe")
    ok(got.get("ps") == want and got["bytes"] == 4096 and got["transfer"] == "store", "pe:pe is as worked out by hand", got)
    rates = [[4096e12 / ps for ps in row] for row in want]
    ok(all(abs(x - y) < 1 for left, right in zip(rates, got["bandwidth_bps"]) for x, y in zip(left, right)),
       "bandwidths are bytes over times", got)
    several = matrix(program, "pe:pe", "--bytes", "100", "--load", "3")
    machine = Machine(scratch("square.yaml"))
    want = [[command_ps(machine, "store", (0, 0, a), ("pe", 0, 0, b), 100, 3) for b in range(4)] for a in range(4)]
    ok(several.get("ps") == want, "pe:pe with --load 3 is what streams of 3 stores take", several, want)
    path = scratch("m.npy")
    ended = run(program, "probe", "--matrix", "m_cpu:pe", "-o", path)
    ok(ended.returncode == 0 and ended.stdout.count("sip0.cube0.m_cpu") == 4, "a matrix is printed, a line for each pair", ended.said)
    under_load(machine, way(1))
    data = read_bytes(path)
    header = b"'fortran_order': False, 'shape': (2, 1, 4), }"
    ok(data[:6] == b"\x93NUMPY" and header in data and b"'descr': '<f8'" in data
       and struct.unpack("<4d", data[-64:-32]) == tuple(3010.0 + 1020 * hop for hop in (1, 0, 2, 1)),
       "-o writes times and bandwidths for NumPy", data)


def under_load(machine, way):
    """Four stores of 4096 bytes to the next PE. A call takes 2000 and pe_scheduler 1000, so the fourth command is at pe_dma,
    which has one engine for writes, 3 calls after the first. There it waits until the engine has served three others."""
    load, call = 4, 2000
    said = machine.probe("sip0.cube0.pe0", "sip0.cube0.pe1", "--load", str(load))
    service = 8000 + way + 16000 + way
    want = {"call": (call, call, call), "schedule": (1000, 1000, 1000), "tcm": (8000, 8000, 8000),
            "dispatch": (0, (load - 1) * (service - call) / 2, (load - 1) * (service - call)),
            "data": (way, way, way), "write": (16000, 16000, 16000), "control": (way, way, way)}
    got = {step["what"]: (step["least_ps"], step["mean_ps"], step["most_ps"]) for step in said["spread"]}
    ok(got == want and said["most_ps"] == sum(most for _, _, most in want.values()), "steps under load are as worked out by hand", got, want)
    ended = run(machine.program, "probe", "sip0.cube0.pe0", "sip0.cube0.pe1", "--load", str(load))
    row = " ".join(f"{ps:12.0f}" for ps in want["dispatch"]) + "  dispatch at sip0.cube0.pe0.pe_dma: "
    hops = sum(len(step.get("hops", ())) for step in said["spread"])
    ok(row in ended.stdout and ended.stdout.count("\n") == 3 + len(want) + hops + 3, "they are printed, with their hops", ended.said)
    links = json.loads(run(machine.program, "probe", "host", "sip0.cube0.hbm_ctrl.pe0", "--bytes", "64000", "--load", "3", "--json", "-").stdout)["probe"]
    first = links["spread"][0]["hops"][0]
    wait = 64000 * 1000 // 64                            # one message takes the link at 64 GB/s
    ok((first["mean_ps"] - first["least_ps"], first["most_ps"] - first["least_ps"]) == (wait, 2 * wait),
       "requests of the host wait at the first link for those before them", first)


def as_single():
    """A matrix with more rows than columns."""
    machine = Machine(topology("two_sips"))
    got = matrix(machine.program, "hbm:m_cpu", "--bytes", "300")
    want = [[machine.probe(a, b, "--bytes", "300")["ps"] if a.rpartition(".hbm")[0] == b.removesuffix(".m_cpu") else None
             for b in got["to"]] for a in got["from"]]
    ok(len(want) > len(want[0]) > 1 and got["ps"] == want, "a matrix has what single probes of its pairs say", got, want)


def nulls():
    """Two cubes: an m_cpu and the sram of the other one have no transfer."""
    got = matrix(simulator(SMALL, "small"), "m_cpu:sram", "--bytes", "64")
    ok([[ps is None for ps in row] for row in got["ps"]] == [[False, True], [True, False]]
       and got["transfer"] == "write", "pairs without a transfer are null", got)
    got = matrix(simulator(SMALL, "small"), "cube:cube")
    one = Machine(SMALL).probe("sip0.cube0.pe0", "sip0.cube1.sram")
    ok(got["from"] == got["to"] == ["sip0.cube0", "sip0.cube1"] and got["ps"][0][1] == one["ps"],
       "cube:cube is from the first PE of a cube to the sram of the other", got, one)


def in_results():
    program = simulator(SMALL, "small")
    want = matrix(program, "hbm:pe")
    without = {key: value for key, value in want.items() if key != "bandwidth_bps"}
    results = []
    for words in (("run", "gemm", "m=64", "k=64", "n=64"), ("replay", os.path.join(HERE, "failures", "drain.yaml"))):
        for more in ((), ("--probe-matrix", "hbm:pe")):
            ended = run(program, *words, *more, "--json", "-")
            results.append(json.loads(ended.stdout))
    for plain, probed in zip(results[::2], results[1::2]):
        got = probed.pop("probe_matrix", None)
        plain.pop("host", None), probed.pop("host", None)
        ok(got == without and probed == plain, "--probe-matrix adds the matrix to a result and changes nothing else", got)
    report = scratch("report.html")
    ended = run(program, "run", "gemm", "m=64", "k=64", "n=64", "--report", report, "--probe-matrix", "hbm:pe")
    ok(ended.returncode == 0 and '"probe_matrix":{"pairs":"hbm:pe"' in read(report).replace(" ", ""),
       "a report has the matrix of --probe-matrix", ended.said)


# ---- wrong use

REFUSED = (
    (("sip0.cube0.pe9", "host"), "small has no end 'sip0.cube0.pe9' of a transfer; did you mean 'sip0.cube0.pe0'?"),
    (("host", "xyzzy"), "small has no end 'xyzzy' of a transfer; ends are host, sip0.io_cpu, sip0.cube0.m_cpu,"),
    (("host", "sip0.cube0.pe0.pe_gemm"), "has no end 'sip0.cube0.pe0.pe_gemm' of a transfer; did you mean"),
    (("host+4", "sip0.io_cpu"), "host+4: only a memory has an offset"),
    (("sip0.cube0.sram+x", "host"), "sip0.cube0.sram+x: a whole number of bytes is needed behind '+', such as 0x1000"),
    (("sip0.cube0.sram+0.5", "host"), "sip0.cube0.sram+0.5: a whole number of bytes is needed behind '+', such as 0x1000"),
    (("sip0.cube0.pe0", "sip0.cube0.hbm_ctrl.pe0+0x7fffffffffff"), "sip0.cube0.hbm_ctrl.pe0+0x7fffffffffff is past the end of"
     " the memory, which has SLICE bytes"),
    (("host", "sip0.cube0.hbm_ctrl.pe0+1e99"), "is past the end of the memory, which has SLICE bytes"),
    (("host", "sip0.cube0.hbm_ctrl.pe0+SLICE"), "is past the end of the memory, which has SLICE bytes"),
    (("sip0.cube0.sram", "sip0.cube0.hbm_ctrl.pe0"), "no transfer from sip0.cube0.sram to sip0.cube0.hbm_ctrl.pe0: an sram"
     " moves no bytes by itself, nor does an HBM slice: a PE loads them, and stores them"),
    (("sip0.cube0.pe0.pe_tcm", "sip0.cube0.pe1.pe_tcm"), "a TCM moves no bytes by itself, nor does a TCM"),
    (("sip0.cube0.m_cpu", "sip0.cube1.m_cpu"), "the host's requests do not pass from sip0.cube0.m_cpu to sip0.cube1.m_cpu"),
    (("sip0.cube0.m_cpu", "sip0.cube1.sram"), "the host's requests do not pass from sip0.cube0.m_cpu to sip0.cube1.sram"),
    (("host", "host"), "the host's requests do not pass from host to host"),
    (("host", "sip0.cube0.sram", "--bytes", "0"), "a memory gets and gives at least 1 byte"),
    (("host", "sip0.cube0.sram", "--bytes", "many"), "--bytes many: a size such as 64 MiB is needed"),
    (("host", "sip0.cube0.sram+1", "--bytes", "SRAM"), "it runs past the end of the memory"),
    (("sip0.cube0.pe0", "sip0.cube0.hbm_ctrl.pe0", "--bytes", "1 GiB"), "the TCM of a PE has room for 2097152 bytes of"
     " kernels, not for 1073741824"),
    (("sip0.cube0.pe0", "sip0.cube0.pe0.pe_tcm+0", "--bytes", "8"), "the region of the TCM that the scheduler reserves"),
    (("host", "sip0.cube0.sram", "--load", "0"), "--load 0: a whole number from 1 to 1000000 is needed"),
    (("host", "sip0.cube0.sram", "--load", "100000", "--bytes", "8589934592 GiB"), "that many bytes do not exist"),
    (("host", "sip0.io_cpu", "--load", "2"), "several at once are transfers of a PE, or of the host and a memory"),
    (("sip0.cube0.pe0", "sip0.cube0.sram", "--virtual"), "pe_mmu of small is off, so it has no virtual addresses"),
    (("host", "sip0.cube0.sram", "--virtual"), "only a load or a store by a PE has virtual addresses"),
    (("host",), "probe takes two ends, or --matrix A:B"),
    (("host", "sip0.io_cpu", "-o", "x"), "-o is for a matrix: --matrix A:B"),
    (("--matrix", "pe"), "matrix pe: two kinds of ends are needed, such as pe:hbm"),
    (("--matrix", "pe:hmb"), "matrix pe:hmb: 'hmb' is no kind of end; did you mean 'hbm'?"),
    (("--matrix", "xyzzy:pe"), "'xyzzy' is no kind of end; they are pe, hbm, sram, tcm, m_cpu, io_cpu, host and cube"),
    (("--matrix", "sram:hbm"), "matrix sram:hbm: no pair has a transfer: an sram moves no bytes by itself"),
    (("--matrix", "pe:pe", "--json", "-", "-o", "-"), "--json and -o cannot both go to standard output"),
)


def refusals():
    program = simulator(SMALL, "small")
    sram, slice_bytes = (next(line for line in run(KBGEN, "--dump", "model", SMALL).stdout.splitlines() if f"memory_map.{key}" in line).split()[1]
                         for key in ("sram_mb", "hbm_slice_mb"))
    for words, why in REFUSED:
        words = [sram if word == "SRAM" else word.replace("SLICE", slice_bytes) for word in words]
        why = why.replace("SLICE", slice_bytes)
        ended = run(program, "probe", *words)
        ok(ended.returncode == 2 and why in ended.stderr and not ended.stdout,
           f"probe {' '.join(words)} is refused, with its reason", ended.said)
    for words, why in ((("--probe-matrix", "pe:pe"), "--probe-matrix says what is in the result of --json or --report"),
                       (("--probe-matrix", "pe:pe", "--json", "-", "--points", "-"), "--probe-matrix is for one run")):
        ended = run(program, "run", "gemm", *words)
        ok(ended.returncode == 2 and why in ended.stderr, f"run {' '.join(words)} is refused", ended.said)


suite(every_pair, steps, by_hand, as_single, nulls, in_results, refusals)
