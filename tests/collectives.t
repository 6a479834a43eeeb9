#!/usr/bin/python3
"""collectives: every collective verifies on small machines: dtypes, ops, odd sizes, sets of PEs, rings in each memory.

The machines have tiny slots and TCMs, so that short vectors take many rounds and do not fit. limit: 300
"""
import re

from harness import SAN, ok, read, result, run, scratch, simulator, suite, sweep, topology, write

MACHINE = """system: {{ name: {name}, sips: {sips}, switch: {{ overhead_ns: 1000 }} }}
sip: {{ cubes: {{ rows: {rows}, cols: {cols} }} }}
cube:
  memory_map: {{ hbm_slices_per_cube: {pes}, hbm_slice_mb: 16, sram_mb: 2 }}
  noc: {{ rows: 2, cols: 3 }}
  pe_template:
    components:
      pe_dma: {{ attrs: {{ rd_engines: {engines} }} }}
      pe_math: {{ attrs: {{ lanes: {{ i32: 64, i8: 256 }} }} }}
      pe_tcm: {{ attrs: {{ size_mb: 128 KiB, reserved_mb: 64 KiB }} }}
      pe_ipcq: {{ attrs: {{ slots: {slots}, slot_kb: {slot_kb}, buffer: {buffer} }} }}
"""
ONE_SLOT = """\
include: ref_sip.yaml
system: { name: one_slot }
sip: { cubes: { rows: 2, cols: 2 } }
cube:
  memory_map: { hbm_slices_per_cube: 4 }
  pe_template: { components: { pe_ipcq: { attrs: { slots: 1, slot_kb: 1 } } } }
"""
PARTS = ("sips", "rows", "cols", "pes", "slots", "slot_kb", "buffer", "engines")
SHAPES = {
    "one": (1, 1, 1, 1, 1, 1, "tcm", 1),
    "three": (1, 1, 3, 1, 1, 1, "sram", 3),
    "eight": (1, 2, 2, 2, 2, 2, "tcm", 1),
    "eight_hbm": (1, 2, 2, 2, 3, 1, "hbm", 2),
    "unordered": (1, 1, 1, 4, 9, "64 B", "hbm", 2),     # slots are freed in another order than they were filled
    "pairs": (2, 1, 2, 3, 4, 1, "sram", 1),
    "three_sips": (3, 1, 2, 2, 2, 2, "tcm", 1),
    "leads": (4, 1, 2, 4, 4, 1, "tcm", 1),              # SIPs share out short vectors in groups of two, longer ones in none
    "groups": (8, 2, 2, 2, 4, 1, "tcm", 1),             # groups of four, two or one
    "long_slots": (2, 1, 5, 2, 8, 4, "hbm", 1),         # buffers of a pipeline or of a spread take much of a TCM
    "one_of_leads": (1, 1, 2, 4, 4, 1, "tcm", 1),       # a SIP of these
}
REDUCING = (("all_reduce", "algorithm=ring"), ("all_reduce", "algorithm=multicast"),
            ("all_reduce", "algorithm=levels"),
            ("all_reduce", "algorithm=windows", "windows=3"), ("reduce_scatter", "algorithm=ring"),
            ("reduce_scatter", "algorithm=levels"), ("reduce_scatter", "algorithm=direct"),
            ("reduce", "root=1", "algorithm=chain"), ("reduce", "root=2", "algorithm=direct"))
MOVING = (("all_gather", "algorithm=ring"), ("all_gather", "algorithm=multicast"), ("all_to_all", "algorithm=pairs"),
          ("all_to_all", "algorithm=levels"), ("broadcast", "root=2"), ("broadcast", "root=1", "algorithm=chain"))
DTYPES = ("f32", "f16", "bf16", "i32", "i8")
SETS = ("*", "sip0.cube0.pe0", "*.pe0", "*.cube?.pe1", "sip*.cube0.*")


def machine(name):
    return simulator(write(scratch(name + ".yaml"), MACHINE.format(name=name, **dict(zip(PARTS, SHAPES[name])))))


def bad(program, *words):
    """What a run said that did not verify; empty if it did."""
    ended = run(program, "run", *words, timeout=100)
    return "" if ended.returncode == 0 and "\nverified     " in ended.stdout else ended.said


def bad_points(program, bench, points):
    """The points of a sweep that did not verify, and how it ended if that was not well."""
    name, *words = bench
    given = {key: int(value) if value.isdigit() else value for key, value in (word.split("=") for word in words)}
    points = [given | point for point in points]
    ended, answers = sweep(program, name, points)
    wrong = [f"{point}: {answer}" for point, answer in zip(points, answers) if not answer or not answer["verify"]
             or any(check["status"] != "ok" for check in answer["verify"])]
    return wrong + [ended.said[-2000:]] * (ended.returncode != 0)


def has_power(op, dtype, shape):
    """Of eight ranks or more, a product of bf16 is rounded to 8 bits so often that a check of it has no power, whatever
    the values are."""
    sips, rows, cols, pes = shape[:4]
    return (op, dtype) != ("mul", "bf16") or sips * rows * cols * pes < 8


def every(program, name):
    """All dtypes and awkward sizes; then all ops, and sets of PEs."""
    for bench in REDUCING + MOVING:
        wrong = bad_points(program, bench, [{"dtype": dtype, "size": size} for dtype in DTYPES for size in
                                            (1, 2, 7, 1025, 40001 if dtype in ("f16", "i32") else 5003)])
        ok(not wrong, f"{' '.join(bench)} on machine {name} verifies for every dtype and size", *wrong)
    for bench in REDUCING:
        wrong = bad_points(program, bench, [{"op": op, "dtype": dtype, "size": 999, "space": "tcm"} for op in
                                            ("min", "max", "mul") for dtype in DTYPES
                                            if has_power(op, dtype, SHAPES[name])])
        ok(not wrong, f"{' '.join(bench)} on machine {name} verifies for every op", *wrong)
    barriers = (("barrier", "algorithm=levels"), ("barrier", "algorithm=dissemination"))
    for bench in REDUCING + MOVING + barriers:
        more = {} if bench in barriers else {"size": 3001, "chunk": 100, "space": "sram"}
        wrong = bad_points(program, bench, [more | {"pes": pes} for pes in SETS
                                            if name not in ("one", "three") or pes != "*.cube?.pe1"])
        ok(not wrong, f"{' '.join(bench)} on machine {name} verifies for every set of PEs", *wrong)


def many(program, name, dtypes=DTYPES[:4]):
    """Four dtypes, an odd size and one element, with the machine's own slots."""
    for bench in REDUCING[:2]:
        wrong = bad_points(program, bench, [{"dtype": dtype, "size": size} for dtype in dtypes for size in (1, 30011)])
        ok(not wrong, f"{' '.join(bench)} on {name} verifies", *wrong)


def products(program):
    """Of 128 whole numbers, so many are even that a product would be 0 in i8 and i32, which no bench can verify."""
    for bench in ("all_reduce", "reduce", "reduce_scatter"):
        wrong = bad_points(program, (bench,), [{"op": "mul", "dtype": dtype, "size": 5003} for dtype in ("i8", "i32")])
        ok(not wrong, f"{bench} op=mul of whole numbers on 128 PEs verifies", *wrong)


def leads(program, name):
    """The groups of SIPs and the PEs of a SIP that exchange its vector, by its length; other forms if the TCMs are too small."""
    for algorithm in ("multicast", "levels", "windows", "auto"):
        wrong = bad_points(program, ("all_reduce", f"algorithm={algorithm}"),
                           [{"dtype": dtype, "size": size} for dtype in ("f32", "i32") for size in
                            (3, 8000, 9001, 18001, 40003, 100001)])
        ok(not wrong, f"all_reduce algorithm={algorithm} of machine {name} verifies for every number of leads", *wrong)


def beside_vectors(program):
    """Vectors that leave a half, a quarter and a bit, 1,536, 768 and 256 bytes of a TCM of 64 KiB: what algorithms need fits into that."""
    for algorithm in ("ring", "levels", "multicast", "windows", "auto"):
        sizes = (4096, 6200, 8000, 8096, 8160) if algorithm in ("ring", "auto") else (4096, 6200, 8000, 8096)
        wrong = bad_points(program, ("all_reduce", f"algorithm={algorithm}", "space=tcm"),
                           [{"dtype": "f32", "size": size} for size in sizes])
        ok(not wrong, f"all_reduce algorithm={algorithm} on long_slots verifies beside vectors that fill the TCM", *wrong)


OF_SIPS = (("all_reduce", ("size=100",), ("ring", "levels", "multicast", "windows")),
           ("all_reduce", ("size=10000",), ("ring", "levels", "multicast", "windows")),
           ("all_gather", ("size=1000",), ("ring", "multicast")), ("reduce_scatter", ("size=1000",), ("ring", "levels")),
           ("all_to_all", ("size=1000",), ("pairs", "levels")), ("barrier", (), ("dissemination", "levels")))
OF_A_SIP = (("reduce_scatter", ("size=1000",), ("ring", "levels", "direct")), ("reduce", ("size=1000",), ("chain", "direct")))


def chooses(program, choices):
    """auto says what it takes and what it estimates, and is not slower than the slowest of its choices."""
    for bench, size, algorithms in choices:
        took = {}
        for algorithm in algorithms + ("auto",):
            ended, made = result(program, bench, *size, f"algorithm={algorithm}", "--data", "off")
            took[algorithm] = made["figures"]["time_ps"]
            note = [note for note in made.get("notes", []) if note.startswith("algorithm=auto: ")]
            used = re.match(r"algorithm=auto: (\w+) is used, estimated at [\d.]+ us \((.*)\)$", note[0]) if note else None
            ok(not note if algorithm != "auto" else used and used[1] in algorithms and took["auto"] == took[used[1]] and
               all(f"{name} " in used[2] for name in algorithms) and took["auto"] < max(took.values()),
               f"{bench} {' '.join(size)} algorithm={algorithm} says what it chooses", note, took, ended.said)


def chooses_best(program, name, *points):
    """What auto takes is at most a tenth slower than the best."""
    for bench, size, space, algorithms in points:
        took = {}
        for algorithm in algorithms + ("auto",):
            _, made = result(program, bench, f"size={size}", f"space={space}", f"algorithm={algorithm}", "--data", "off")
            took[algorithm] = made["figures"]["time_ps"]
        ok(took["auto"] <= 1.1 * min(took.values()), f"{bench} size={size} space={space} on {name} takes a good algorithm", took)


def chooses_within(four, one):
    """What auto estimates for the PEs of one SIP is the same whether the machine has others or not."""
    for bench, *size in (("all_reduce", "size=100"), ("all_gather", "size=1000"), ("reduce_scatter", "size=1000"),
                         ("all_to_all", "size=1000"), ("barrier",)):
        notes = [result(program, bench, *size, "pes=sip0.*", "--data", "off")[1].get("notes") for program in (four, one)]
        ok(notes[0] and notes[0] == notes[1], f"{bench} of one SIP of four is estimated as on a machine of one SIP", *notes)


def estimates(program, name):
    """The time that is estimated for a barrier is off by a fifth at most."""
    for algorithm in ("dissemination", "levels"):
        took = result(program, "barrier", f"algorithm={algorithm}")[1]["figures"]["one_barrier_ps"] / 1e6
        note = "".join(result(program, "barrier")[1]["notes"])
        estimated = float(re.search(rf"[(, ]{algorithm} ([\d.]+)[,)]", note)[1])
        ok(abs(estimated - took) <= took / 5, f"a barrier by {algorithm} on {name} takes about what is estimated: {took:.2f} us", note)


def long_vectors():
    """Between SIPs a long vector is exchanged window by window, which is faster than one level after the other."""
    path = write(scratch("four_sips.yaml"), re.sub(r"\n  sips: 1 ", "\n  sips: 4 ", read(topology("ref_sip"))))
    figures = result(simulator(path), "all_reduce", "size=524288", "--data", "off")[1]["figures"]
    ok(figures["link_bound_ps"] > 0.45 * figures["time_ps"], "a vector of one MiB takes less than 1 / 0.45 of the time of its links", figures)
    took = {}
    for algorithm in ("levels", "auto"):
        ended, made = result(simulator(path), "all_reduce", "size=12000000", f"algorithm={algorithm}", "--data", "off")
        took[algorithm] = made["figures"]["time_ps"] / 1e6
    note = "".join(made.get("notes", []))
    used = re.search(r"auto: windows is used, estimated at ([\d.]+) us", note)
    ok(used and took["auto"] < 0.9 * took["levels"], "a long vector goes in windows, at less than 0.9 of the time of levels", took, note)
    ok(used and abs(float(used[1]) - took["auto"]) < took["auto"] / 4, "windows take about what is estimated", took, note)


def more_windows_than_elements():
    """A window has an element."""
    path = write(scratch("two_sips.yaml"), re.sub(r"\n  sips: 1 ", "\n  sips: 2 ", read(topology("ref_sip"))))
    took = [result(simulator(path), "all_reduce", "size=3", "algorithm=windows", f"windows={windows}")[1]["figures"]["time_ps"]
            for windows in (3, 1000000)]
    ok(took[0] == took[1], "more windows than elements are as many", took)


def short_vectors(program):
    """A vector of one MiB goes through a SIP by messages, which is faster than other forms and takes about what is estimated."""
    took = {}
    for algorithm in ("ring", "levels", "auto"):
        ended, made = result(program, "all_reduce", "size=524288", f"algorithm={algorithm}", "--data", "off")
        took[algorithm] = made["figures"]["time_ps"] / 1e6
    note = "".join(made.get("notes", []))
    used = re.search(r"auto: multicast is used, estimated at ([\d.]+) us", note)
    ok(used and took["auto"] < 0.9 * min(took[other] for other in took if other != "auto") and
       abs(float(used[1]) - took["auto"]) < took["auto"] / 4, "a vector of one MiB goes by messages", took, note)


def odd_sets(program, name, *points):
    """What auto takes for an uneven set of PEs of several SIPs is at most a tenth slower than the best."""
    for size, *words in points:
        took = {algorithm: result(program, "all_reduce", f"algorithm={algorithm}", size, *words, "pes=*1*", "--data", "off")[1]["figures"]["time_ps"]
                for algorithm in ("ring", "levels", "multicast", "auto")}
        ok(took["auto"] <= 1.1 * min(took.values()), f"all_reduce {size} of an uneven set of {name} takes a good algorithm", took)


def keeps_bounds(program):
    """Three SIPs reduce along a tree whose longest way has one step."""
    bounds = result(program, "all_reduce", "size=2", "algorithm=multicast", "pes=*.cube1.pe0", "--data", "off")[1]["bounds"]
    ok(all(0 < bounds[0][of]["reached_permille"] <= 1000 for of in ("problem", "algorithm")), "three SIPs reach no more than the bounds",
       bounds)


def many_sips():
    """A vector of one MiB takes at most twice the time in which a SIP of 32 sends and gets what it has to, at 63 GB/s."""
    figures = result(simulator(topology("ref_pod")), "all_reduce", "size=524288", "--data", "off")[1]["figures"]
    least_ps = 2 * 31 / 32 * 2**20 / 63e9 * 1e12
    ok(figures["time_ps"] <= 2 * least_ps, "an all_reduce of 32 SIPs takes at most twice the time of their links", figures)


def measures(program):
    """busbw as nccl-tests define it, from integers; never above what the algorithm can reach."""
    for bench, up in (("all_reduce", 2 * 7), ("reduce_scatter", 7), ("all_gather", 7), ("all_to_all", 7),
                      ("broadcast", 8), ("reduce", 8)):
        ended, made = result(program, bench, "size=80000", "dtype=f32")
        figures = made.get("figures", {})
        ok(ended.returncode == 0 and figures["time_ps"] == made["launches"][0]["pe_exec_ps"] and
           figures["algbw_bytes_per_s"] == 320000 * 10**12 // figures["time_ps"] and
           figures["busbw_bytes_per_s"] == figures["algbw_bytes_per_s"] * up // 8 and
           all(0 < figures[bound + "_bound_ps"] <= figures["time_ps"] for bound in ("link", "memory", "latency")) and
           all(least <= made["bounds"][0]["algorithm"][part] for part, least in made["bounds"][0]["problem"].items()
               if part != "by") and 0 < made["bounds"][0]["algorithm"]["reached_permille"] <= 1000 and
           made["params"]["pes"] == "*", f"time, bandwidths and bounds of {bench} fit together", figures, ended.said)
    off, verified = (run(program, "run", "all_reduce", "--data", data).stdout for data in ("off", "verify"))
    ok(off.count("\ntime ") == 1 and off[off.index("\ntime "):off.index("\nnot checked")] ==
       verified[verified.index("\ntime "):verified.index("\nverified")],
       "all_reduce has the same figures without data", off, verified)


def ring_is_near(program):
    """No two messages between neighbours in the ring of ref_sip share a link."""
    ended, made = result(program, "all_gather", "size=1280000", "dtype=f16", "algorithm=ring", "--data", "off")
    want = -(-127 * 20000 * 10**12 // (128 * 10**9))
    ok(made["figures"]["link_bound_ps"] == want,
       f"the busiest link of an all_gather on 128 PEs takes {want} ps: one message at a time", ended.said)


MISTAKES = (
    (("all_reduce", "dtype=i8", "chunk=0"), r"chunk=0 is out of bounds"),
    (("all_reduce", "dtype=f32", "--set", "cube.pe_template.components.pe_ipcq.attrs.slot_kb=2 B"),
     r"error: all_reduce: an element of 4 bytes does not fit into a message: a slot of pe_ipcq has 2 bytes \(slot_kb\)"),
    (("all_reduce", "pes=sip7.*"), r"no PE matches 'sip7\.\*'"),
    (("barrier", "dtype=f32"), r"barrier has no parameter 'dtype'"),
)


def mistakes(program):
    for words, what in MISTAKES:
        said = bad(program, *words)
        ok(re.search(what, said), f"{' '.join(words)} is refused", said)


def main():
    for name in ("one", "three", "eight_hbm", "pairs", "three_sips") if not SAN else ("three",):
        every(machine(name), name)
    for algorithm in ("ring", "multicast"):
        said = bad(machine("unordered"), "all_gather", "size=20011", f"algorithm={algorithm}")
        ok(not said, f"all_gather algorithm={algorithm} verifies where slots are freed in another order than they are filled",
           said)
    eight = machine("eight")
    for name in ("leads", "groups"):
        leads(machine(name), name)
    beside_vectors(machine("long_slots"))
    chooses(machine("leads"), OF_SIPS)
    chooses(machine("one_of_leads"), OF_A_SIP)
    chooses_within(machine("leads"), machine("one_of_leads"))
    estimates(machine("leads"), "4 SIPs")
    small = simulator(topology("small"))
    estimates(small, "small")
    gather, scatter, exchange, chain = ("ring", "multicast"), ("ring", "levels", "direct"), ("pairs", "levels"), ("chain", "direct")
    chooses_best(small, "small", ("all_gather", 100000, "hbm", gather), ("all_gather", 1000000, "hbm", gather),
                 ("all_gather", 100000, "sram", gather), ("all_to_all", 1000000, "sram", exchange),
                 ("all_to_all", 100000, "tcm", exchange), ("reduce_scatter", 1000000, "sram", scatter),
                 ("reduce", 1000000, "hbm", chain))
    many(eight, "8 PEs")
    measures(eight)
    mistakes(eight)
    many(simulator(topology("two_sips")), "2 SIPs")
    odd_sets(simulator(topology("two_sips")), "two SIPs", ("size=45915", "chunk=64"), ("size=43335", "dtype=f32"))
    keeps_bounds(machine("three_sips"))
    if not SAN:
        big = simulator(topology("ref_sip"))
        # Sums of 128 numbers of bf16, rounded at each rank, have bounds of 7 % at least.
        many(big, "128 PEs", ("f32", "f16", "i32"))
        products(big)
        ring_is_near(big)
        short_vectors(big)
        long_vectors()
        many_sips()
        more_windows_than_elements()
        chooses_best(big, "128 PEs", ("all_gather", 4000000, "hbm", gather), ("all_to_all", 100000, "hbm", exchange),
                     ("all_to_all", 100000, "tcm", exchange), ("reduce_scatter", 1000000, "hbm", scatter),
                     ("reduce_scatter", 1, "hbm", scatter), ("reduce_scatter", 4, "hbm", scatter), ("reduce", 100, "hbm", chain),
                     ("reduce", 100000, "hbm", chain))
        write(scratch("ref_sip.yaml"), read(topology("ref_sip")))
        slots = simulator(write(scratch("one_slot.yaml"), ONE_SLOT))
        slow = "name: slow_switch, sips: 3, switch: { overhead_ns: 1000 }"
        odd_sets(simulator(write(scratch("slow_switch.yaml"), ONE_SLOT.replace("name: one_slot", slow))), "a slow switch", ("size=30000",))
        chooses_best(slots, "16 PEs with a slot of 1 KiB", *(("reduce", size, "hbm", chain) for size in (10000, 60000, 300000)))
        estimates(big, "128 PEs")


suite(main)
