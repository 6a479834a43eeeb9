#!/usr/bin/python3
"""ahead: random streams give the same result with and without somebody who watches. limit: 60

What is made ahead of time must change no time (rt/machine/fabric.c). The machines are such that messages to one node meet
often: long links to a router or links of no bandwidth, slow memories, several engines, nodes that handle a head for long;
and, since only then a delivery is made ahead of time, such with one server of reads.
"""
import json
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, folder) for folder in ("oracle", "fuzz", "embed")]

from harness import SAN, done, normal, ok, scratch              # noqa: E402
import streams                                                  # noqa: E402
import trial                                                    # noqa: E402

STREAMS = 8 if SAN else 40
MEETINGS = 10 if SAN else 60                            # streams on the machines of near(), shared() and computing()


def machine(attach, length, node, pc, access, sram, buffer, interleave=64, engines=3, tcm=256):
    """A topology's tree: the bandwidth and length of links to routers, overhead of pe_dma and so on."""
    parts = {"pe_dma": {"overhead_ns": node, "rd_engines": engines, "wr_engines": 2, "queue_depth": 4},
             "pe_tcm": {"size_mb": 1, "reserved_mb": "512 KiB", "read_bw_gbs": 256, "write_bw_gbs": tcm},
             "pe_ipcq": {"slots": 4, "slot_kb": 1, "buffer": buffer}, "pe_cpu": {"overhead_ns": 0.5},
             "pe_scheduler": {"tile_overhead_ns": 0 if tcm else 1}}
    return {"system": {"name": "ahead"}, "sip": {"cubes": {"rows": 1, "cols": 1}},
            "cube": {"memory_map": {"hbm_slices_per_cube": 4, "hbm_slice_mb": 16, "sram_mb": 1},
                     "noc": {"rows": 2, "cols": 2, "router": {"overhead_ns": 0.25},
                             "attach": {"bw_gbs": attach, "length_mm": length}},
                     "sram": {"attrs": {"overhead_ns": 0, "read_bw_gbs": sram, "write_bw_gbs": sram}},
                     "hbm_ctrl": {"attrs": {"overhead_ns": 0, "pcs": 4, "pc_bw_gbs": pc, "interleave_bytes": interleave,
                                            "row_bytes": 256, "row_miss_ns": 3, "access_ns": access}},
                     "pe_template": {"components": {kind: {"attrs": attrs} for kind, attrs in parts.items()}}}}


def in_planes(tree):
    """The machine with a plane for each kind of data."""
    tree["cube"]["noc"] |= {"planes": [{}, {"order": "yx"}, {}], "plane_of": {"read": 0, "write": 1, "message": 2}}
    return tree


MACHINES = {
    "links are long": machine(64, 500, 5, 16, 10, 128, "tcm"),
    "links have no limit of bandwidth": machine(None, 100, 20, 16, 0, None, "tcm"),
    "nodes are slow": machine(256, 1, 300, 64, 3, 128, "tcm"),
    "memories are slow": machine(256, 10, 2, 1, 30, 2, "hbm"),
    "pseudo channels are unlike": machine(256, 10, 0, 2, 0, 64, "sram", 1024),
    "reads come one at a time": machine(64, 500, 5, 16, 10, 128, "tcm", engines=1),
    "messages come between reads": machine(None, 10, 20, 64, 0, 128, "tcm", engines=1, tcm=4),
    "data come in planes": in_planes(machine(16, 10, 20, 64, 0, 128, "tcm")),
    "TCMs have no limit of bandwidth": machine(256, 10, 0, 16, 0, 128, "tcm", engines=1, tcm=None),
}


def same(made, path):
    """Whether a stream gives the same result with and without somebody who watches."""
    watched = made.replay(path, trace=False)[1]                     # statistics watch each reservation
    return normal(watched) == normal(made.replay(path, trace=False, stats=False, more=["--exact-events"])[1])


def events(made, path, watched):
    """How many events a stream has."""
    return re.search(r"\((\d+) events", made.replay(path, trace=False, stats=watched, more=["--exact-events"])[4])[1]


def tie(made, path):
    """A read into a TCM of no limit ends in the second round of its instant. In the first one, a tile of another command
    takes the server that the read's tile asks for next.
    """
    tcm, hbm = ({"space": "tcm", "offset": 1 << 19}, {"space": "tcm", "offset": 9 << 16}), {"space": "hbm"}
    cast = {"op": "math", "fn": "relu", "m": 8, "n": 8, "tile": [8, 8], "dtype": "f32", "src": hbm, "dst": hbm}
    gemm = {"op": "gemm", "m": 16, "k": 16, "n": 16, "tile": [16, 16, 16], "dtype": "f16", "a": tcm[0], "b": tcm[1],
            "c": {"space": "hbm", "offset": 4096}, "pinned": ["a", "b"]}
    steps = [{"do": "composite", "id": "a"} | cast, {"do": "delay", "ns": 7.4}, {"do": "composite", "id": "b"} | gemm]
    trial.write_yaml(path, {"name": "tie", "launches": [{"program": "p", "targets": ["sip0.cube0.pe0"]}],
                            "programs": {"p": steps}})
    trace = list(map(json.loads, made.replay(path)[2].splitlines()))
    read, fetch = ([event["t"] for event in trace if event["cmd"] == cmd and event["ev"] == ev and event["node"].endswith(node)]
                   for cmd, ev, node in ((0, "engine_complete", "pe_dma"), (1, "engine_start", "pe_fetch_store")))
    ok(read[0] == fetch[0] and same(made, path), "the end of a read comes a round after its delivery if TCMs have no limit",
       f"read {read}, fetch {fetch}")


def split(folder, path):
    """A read of two pages: the run in the PE's own TCM, which is slow to read, ends after the one in memory."""
    tree = machine(256, 1, 0, 64, 0, 128, "tcm", engines=1)
    parts = tree["cube"]["pe_template"]["components"]
    parts["pe_tcm"]["attrs"]["read_bw_gbs"] = 1
    parts["pe_mmu"] = {"attrs": {"enabled": True, "page_kb": 4}}
    os.makedirs(folder, exist_ok=True)
    made = trial.Machine(folder, tree)
    maps = [{"va": 0, "bytes": 4096, "to": {"space": "hbm"}}, {"va": 4096, "bytes": 4096, "to": {"space": "tcm", "offset": 1 << 19}}]
    step = {"do": "load", "id": "a", "from": {"va": 2048}, "to": 9 << 16, "bytes": 4096}
    trial.write_yaml(path, {"name": "split", "mmu": maps, "programs": {"p": [step]},
                            "launches": [{"program": "p", "targets": ["sip0.cube0.pe0"]}]})
    ok(same(made, path), "a read that ends with a run in the TCM takes the same time whether or not it is watched")


def rows_of_host(made, path):
    """A read of the host opens the same row in all pseudo channels of a slice; then a load reads in one of them."""
    stripe = 4 * 64
    load = {"do": "load", "id": "a", "from": {"space": "hbm", "offset": stripe - 64}, "to": 1 << 19, "bytes": 64}
    trial.write_yaml(path, {"name": "rows", "programs": {"p": [load]}, "host": [
        {"do": "read", "from": [{"space": "hbm"}], "bytes": stripe},
        {"do": "launch", "program": "p", "targets": ["sip0.cube0.pe0"]}]})
    ok(same(made, path), "rows that a request of the host has opened stay open when it ends, whether or not it is watched")


def planes(folder, path):
    """Two loads wait for one link to their PE; a message comes over the link of another plane before the second one."""
    os.makedirs(folder, exist_ok=True)
    made = trial.Machine(folder, in_planes(machine(16, 10, 20, 64, 0, 128, "tcm")))
    loads = [{"do": "load", "id": f"l{i}", "from": {"space": "hbm", "pe": i + 2}, "to": (8 + i) << 16,
              "bytes": 1 << 14, "async": True} for i in range(2)]
    sends = [{"do": "delay", "ns": 300}, {"do": "send", "to": "sip0.cube0.pe0", "from": 1 << 19, "bytes": 64}]
    receive = {"do": "recv", "from": "sip0.cube0.pe1", "to": 9 << 17}
    launch = {"parts": [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(2)]}
    trial.write_yaml(path, {"name": "planes", "launches": [launch], "programs": {"p0": [*loads, receive, {"do": "delay", "ns": 9999}], "p1": sends}})
    ok(same(made, path), "a message passes data that wait for the link of another plane, whether or not it is watched")


def near(router, access, miss):
    """Machines on which reads from the slice next to the PE are put off: blocks are whole stripes, and every time is a
    multiple of 1 ns, so that what comes to the slices, routers and PEs meets these reads often in the same instant.
    """
    tree = machine(64, 50, 2, 16, access, 64, "tcm", engines=1, tcm=64)
    tree["cube"]["noc"] |= {"pitch_mm": 100, "link_bw_gbs": 64}
    tree["cube"]["noc"]["router"]["overhead_ns"] = router
    tree["cube"]["hbm_ctrl"]["attrs"] |= {"row_bytes": 1024, "row_miss_ns": miss}
    parts = tree["cube"]["pe_template"]["components"]
    parts["pe_tcm"]["attrs"]["read_bw_gbs"] = 64
    parts["pe_cpu"]["attrs"]["overhead_ns"] = 1
    return tree


NEAR = {"rows cost nothing": near(1, 4, 0), "rows take time": near(1, 3, 2), "routers take no time": near(0, 4, 1)}


def meeting(rng):
    """A stream of composites that read whole stripes, mostly next to their PE, and of what meets these reads."""
    def place():
        pe = rng.choice(("own", "own", "own", *range(4)))
        return {"space": "hbm", "pe": pe, "offset": 256 * rng.randrange(64)} if rng.random() < 0.9 else {"space": "sram"}

    def step():
        kind, size = rng.random(), rng.choice((8, 16, 24))
        if kind < 0.6:
            return {"do": "composite", "op": "math", "fn": "relu", "m": size, "n": 16, "tile": [8, 8], "dtype": "f32",
                    "src": place(), "dst": place()}
        if kind < 0.75:
            return {"do": "load", "from": place(), "to": 9 << 16, "bytes": rng.choice((256, 64, 1024))}
        if kind < 0.9:
            return {"do": "store", "from": 9 << 16, "to": place(), "bytes": rng.choice((256, 64, 1024))}
        return {"do": "delay", "ns": rng.randrange(40)}

    def program():
        steps = [step() for _ in range(rng.randrange(2, 8))]
        return [one if one["do"] == "delay" else {"do": one["do"], "id": f"s{i}"} | one for i, one in enumerate(steps)]

    return {"name": "meeting", "programs": {f"p{pe}": program() for pe in range(4)},
            "launches": [{"parts": [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(4)]}]}


def shared(attach, sram, overhead):
    """Machines on which writes of composites to the sram meet one another and other data that come there."""
    tree = machine(attach, 50, 2, 64, 4, sram, "sram", engines=1, tcm=64)
    tree["cube"]["noc"] |= {"pitch_mm": 100, "link_bw_gbs": 64}
    tree["cube"]["noc"]["router"]["overhead_ns"] = 1
    tree["cube"]["sram"]["attrs"]["overhead_ns"] = overhead
    tree["cube"]["pe_template"]["components"]["pe_tcm"]["attrs"]["read_bw_gbs"] = 64
    return tree


SHARED = {"it is fast": shared(64, 64, 0), "it serves a write for long": shared(64, 8, 1), "it handles a head for long": shared(64, 64, 30),
          "the link to it has no limit of bandwidth": shared(None, 64, 1)}


def writing(rng):
    """A stream of composites that write to the sram, of stores to it, and of messages whose ring is there."""
    sram = {"space": "sram", "offset": 0}

    def step(pe):
        kind = rng.random()
        if kind < 0.55:
            return {"do": "composite", "op": "math", "fn": "relu", "m": rng.choice((8, 16, 24)), "n": 16, "tile": [8, 8], "dtype": "f32",
                    "src": rng.choice(({"space": "hbm"}, sram)), "dst": sram}
        if kind < 0.75:
            return {"do": "store", "from": 9 << 16, "to": sram, "bytes": rng.choice((256, 64, 1024)), "async": True}
        if kind < 0.85:
            return {"do": "send", "to": f"sip0.cube0.pe{pe ^ 1}", "from": 9 << 16, "bytes": 256, "async": True}
        return {"do": "delay", "ns": rng.randrange(100)}

    def program(pe):
        steps = [step(pe) for _ in range(rng.randrange(2, 8))]
        return [one if one["do"] == "delay" else {"do": one["do"], "id": f"s{i}"} | one for i, one in enumerate(steps)]

    programs = {f"p{pe}": program(pe) for pe in range(4)}
    for pe in range(4):
        sent = sum(step["do"] == "send" for step in programs[f"p{pe ^ 1}"])
        programs[f"p{pe}"] += [{"do": "recv", "from": f"sip0.cube0.pe{pe ^ 1}", "to": 9 << 16} for _ in range(sent)]
    launch = {"parts": [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(4)]}
    if rng.random() < 0.3:
        launch["timeout_ns"] = rng.randrange(600, 1500)
    return {"name": "writing", "programs": programs, "launches": [launch]}


def computing(one, ports, fetch, link, overhead=0, room="8 KiB"):
    """Machines on which ends of services of compute engines are deferred. Every time is a multiple of 1 ns, so that what comes
    to these engines often meets the ends in the same instant. A fetch takes less time than a gemm, or more; the buffers of all
    tiles have room, or those of few.
    """
    tree = machine(64, 50, 2, 64, 4, 64, "tcm", engines=1, tcm=64)
    parts = tree["cube"]["pe_template"]["components"]
    parts["pe_tcm"]["attrs"] |= {"read_bw_gbs": fetch, "size_mb": "640 KiB", "reserved_mb": room}
    parts["pe_cpu"]["attrs"]["overhead_ns"] = overhead
    parts["pe_scheduler"]["attrs"] = {"overhead_ns": overhead, "tile_overhead_ns": 0}
    parts["pe_fetch_store"] = {"attrs": {"ports": ports, "queue_depth": 2}}
    engines = {"pe_gemm": {"rows": 8, "cols": 8, "fill_cycles": 2, "queue_depth": 2},
               "pe_math": {"fill_cycles": 1, "lanes": {"f16": 32, "f32": 16}, "queue_depth": 2}}
    for kind, attrs in engines.items():
        parts[kind] = {"attrs": attrs | ({} if one else {"shared_resource": None})}
    if link:
        tree["cube"]["pe_template"]["links"] = {link + "_mm": 200}
    return tree


COMPUTING = {
    "engines share a server": computing(True, 1, 64, None),
    "engines are apart": computing(False, 2, 256, None),
    "a fetch takes long": computing(False, 1, 8, None, 1),
    "tiles wait for room": computing(False, 2, 64, None, room="1 KiB"),
    "tiles take time to pe_math": computing(False, 1, 256, "gemm_to_math", 3),
    "commands take time to pe_math": computing(True, 2, 64, "scheduler_to_math"),
}


def deferring(rng):
    """A stream of gemms with many steps of k, of commands for the same engines, and of what ends them."""
    def gemm():
        size, k = rng.choice((8, 16)), 8 * rng.randrange(2, 9)
        pinned = rng.choice(("ab", "ab", "a", ""))
        places = {name: {"space": "tcm", "offset": 1 << 19} if name in pinned else
                  {"space": "hbm", "pe": rng.choice(("own", "own", 1)), "offset": 256 * rng.randrange(64)} for name in "ab"}
        step = {"do": "composite", "op": "gemm", "m": size, "k": k, "n": 8, "tile": [8, 8, 8], "dtype": rng.choice(("f16", "f32")),
                "pinned": list(pinned), "c": {"space": "hbm", "offset": rng.choice((0, 4096, 1 << 34 if rng.random() < 0.1 else 0))}} | places
        if rng.random() < 0.4:
            step["epilogue"] = [{"op": "relu", "scope": rng.choice(("k_tile", "output_tile"))} for _ in range(rng.choice((1, 2)))]
        return step

    def step():
        kind, later = rng.random(), {"async": True} if rng.random() < 0.7 else {}
        if kind < 0.45:
            return gemm()
        if kind < 0.6:
            return {"do": "math", "op": "relu", "elems": rng.choice((16, 64, 256)), "dtype": "f16"} | later
        if kind < 0.7:
            return {"do": "gemm", "m": 8, "k": 8 * rng.randrange(1, 4), "n": 8, "dtype": "f16"} | later
        if kind < 0.8:
            return {"do": "load", "from": {"space": "hbm"}, "to": 1 << 19, "bytes": rng.choice((64, 1024))} | later
        return {"do": "delay", "ns": rng.randrange(60)}

    def program():
        steps = [step() for _ in range(rng.randrange(2, 9))]
        return [one if one["do"] == "delay" else {"do": one["do"], "id": f"s{i}"} | one for i, one in enumerate(steps)]

    launch = {"parts": [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(2)]}
    if rng.random() < 0.3:
        launch["timeout_ns"] = rng.randrange(600, 1500)
    return {"name": "deferring", "programs": {f"p{pe}": program() for pe in range(2)}, "launches": [launch]}


def faults(made, path):
    """Kernels end with a fault at times all over the first tiles of a gemm, in the first round of an instant and after it:
    what has started by then goes on, nothing else starts. So there are as many events as if somebody watches.
    """
    gemm = {"do": "composite", "op": "gemm", "m": 8, "k": 64, "n": 8, "tile": [8, 8, 8], "dtype": "f16", "pinned": ["a"],
            "a": {"space": "tcm", "offset": 1 << 19}, "b": {"space": "hbm"}, "c": {"space": "hbm", "offset": 4096}}
    wrong = []
    for later in (False, True):
        for first in range(24, 104, 4):
            programs = {f"p{pe}": [{"do": "composite", "id": "g"} | gemm, {"do": "delay", "ns": (first + pe) / 2},
                                   *[{"do": "delay", "ns": 0}] * later,
                                   {"do": "load", "id": "f", "from": {"space": "hbm"}, "to": 0, "bytes": 64}] for pe in range(4)}
            trial.write_yaml(path, {"name": "faults", "programs": programs, "launches": [
                {"parts": [{"program": f"p{pe}", "targets": [f"sip0.cube0.pe{pe}"]} for pe in range(4)]}]})
            if events(made, path, True) != events(made, path, False):
                wrong.append(f"faults from {first / 2} ns after the gemm on{', in a later round' if later else ''}")
    ok(not wrong, "a fault meets ends that are deferred, and changes no time", *wrong)


def meet(machines, stream, what):
    for name, tree in machines.items():
        folder = scratch(name.replace(" ", "_"))
        os.makedirs(folder, exist_ok=True)
        made, path, wrong = trial.Machine(folder, tree), os.path.join(folder, "stream.yaml"), []
        for which in range(MEETINGS):
            trial.write_yaml(path, stream(random.Random(f"{name}/{which}")))
            if not same(made, path):
                wrong.append(f"stream {which}")
        ok(not wrong, f"{what}, if {name}", *wrong)


def main():
    for name, tree in MACHINES.items():
        folder = scratch(name.replace(" ", "_"))
        os.makedirs(folder, exist_ok=True)
        made, path, wrong = trial.Machine(folder, tree), os.path.join(folder, "stream.yaml"), []
        facts = streams.Facts(made.topology)
        for which in range(STREAMS):
            trial.write_yaml(path, streams.stream(random.Random(f"{name}/{which}"), facts))
            if not same(made, path):
                wrong.append(f"stream {which}")
        ok(not wrong, f"streams take the same time whether or not they are watched, if {name}", *wrong)
    meet(NEAR, meeting, "a read that is put off meets what comes to its way")
    meet(SHARED, writing, "writes to an sram meet what comes there")
    meet(COMPUTING, deferring, "ends that are deferred change no time")
    faults(trial.Machine(scratch("engines_share_a_server"), COMPUTING["engines share a server"]), path)
    tie(made, path)                                                 # on the last machine
    split(scratch("split"), path)
    rows_of_host(made, path)
    planes(scratch("planes"), path)
    done()


main()
