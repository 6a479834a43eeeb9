#!/usr/bin/python3
"""state: each row of rt/machine/state.def is needed: when it is not read, results differ. limit: 300

tests/state/fields.c changes one field of one PE at some time; tests/state/saved.c saves and restores the state. A row
passes if there are a machine, a program and a time at which fast-forward gives the result of every event, and another
result, or fewer skipped services, when it does not read that row. All rows that are compared, copied, shifted, counted
or saved are tried; under the sanitizers those of FIRST on two of the machines, and those that are saved.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import time

from harness import CC, KBGEN, ROOT, SAN, SCRATCH, SLOW, done, ok, read, run, write

TOPOLOGY = """
system: {{ name: {name} }}
sip: {{ cubes: {{ rows: 1, cols: {cubes} }}, ucie: {{ bw_gbs: 2 }} }}
cube:
  memory_map: {{ hbm_slices_per_cube: {pes}, hbm_slice_mb: 64, sram_mb: 4 }}
  noc: {{ rows: 2, cols: 2, link_bw_gbs: {link}, attach: {{ bw_gbs: {link}, length_mm: {attach_mm} }}, router: {{ overhead_ns: {node} }} }}
  sram: {{ attrs: {{ read_bw_gbs: {link}, write_bw_gbs: {sram} }} }}
  hbm_ctrl: {{ attrs: {{ pcs: 2, pc_bw_gbs: {hbm}, interleave_bytes: 256, row_bytes: {row}, row_miss_ns: 7 }} }}
  pe_template:
    links: {{ scheduler_to_dma_mm: {mm}, dma_to_fetch_store_mm: {mm}, fetch_store_to_gemm_mm: {mm} }}
    components:
      pe_scheduler: {{ attrs: {{ tile_overhead_ns: {feed} }} }}
      pe_dma: {{ attrs: {{ rd_engines: {engines}, wr_engines: {engines}, queue_depth: 4 }} }}
      pe_gemm: {{ attrs: {{ rows: 16, cols: 16, fill_cycles: {fill} }} }}
      pe_math: {{ attrs: {{ cost: {{ exp: 9 }}, fill_cycles: 100 }} }}
      pe_tcm: {{ attrs: {{ size_mb: 1, reserved_mb: {reserved}, read_bw_gbs: {tcm}, write_bw_gbs: {tcm} }} }}
      pe_ipcq: {{ attrs: {{ buffer: hbm, slots: 4 }} }}
      pe_mmu: {{ attrs: {{ enabled: true, page_kb: 4, tlb_entries: 2, walk_ns: 90 }} }}
"""
# Every PE works in HBM of its own, or all PEs of a cube in its sram. Tiles of 512 bytes an operand.
PLAIN = {"cubes": 1, "pes": 2, "mm": 0, "engines": 1, "fill": 8, "reserved": "64 KiB", "row": 256, "link": 64, "node": 0,
         "hbm": 64, "tcm": 64, "feed": 0, "attach_mm": 0.5, "sram": 64}
MACHINES = {
    "plain": PLAIN,
    "fed": PLAIN | {"feed": 20},                            # one tile after the other
    "tight": PLAIN | {"mm": 10, "engines": 2, "fill": 300, "reserved": "6 KiB"},
    "cubes": PLAIN | {"cubes": 2, "pes": 1, "mm": 10, "engines": 2, "reserved": "16 KiB", "row": 1024},
    "slow": PLAIN | {"engines": 3, "link": 4, "sram": 4, "hbm": 4, "tcm": 4, "node": 40, "reserved": "8 KiB"},
    "hbm": PLAIN | {"engines": 3, "hbm": 2, "node": 40, "reserved": "8 KiB"},
    "nodes": PLAIN | {"engines": 3, "node": 150, "reserved": "8 KiB"},
}
FAR = PLAIN | {"attach_mm": 4000, "sram": 16}              # what goes to a memory is on its way for long
SAVES = PLAIN | {"cubes": 2, "row": 1024}

# Machines and programs to try first.
FIRST = {
    "COMPARE SERVER started": ("tight", "gemm"), "COMPARE TOKEN command": ("slow", "two"),
    "COMPARE TOKEN tile": ("tight", "gemm"), "COMPARE TOKEN arrival_ps": ("slow", "gemm"),
    "COMPARE TOKEN block": ("slow", "gemm"), "COMPARE EVENT key": ("tight", "gemm"),
    "COMPARE PSEUDO_CHANNEL open_row": ("cubes", "gemm"), "COPY SERVER held": ("cubes", "sram"),
    "COPY FABRIC_NODE free_ps": ("cubes", "gemm"), "SHIFT TOKEN tile": ("cubes", "sram"),
    "SHIFT TOKEN arrival_ps": ("cubes", "sram"), "SHIFT EVENT key": ("cubes", "sram"),
    "SHIFT CHANNELS read_free_ps": ("plain", "math"), "SHIFT CHANNELS write_free_ps": ("slow", "math"),
    "SHIFT PSEUDO_CHANNEL free_ps": ("hbm", "gemm"), "SHIFT FABRIC_NODE free_ps": ("nodes", "gemm"),
    "SHIFT FABRIC_LINK free_ps": ("cubes", "sram"), "SHIFT DATA ahead_ps": ("hbm", "gemm"),
    "COPY DATA ahead_ps": ("plain", "math"),
}
# Rows of a request, which is changed from the start, that need another program.
PROGRAMS = {"REQUEST kind": "pinned b", "REQUEST pinned": "pinned", "REQUEST op": "math", "EPILOGUE op": "epilogue",
            "EPILOGUE scope": "epilogue"}
# Rows for which there are several changes.
CHANGES = {"CHANNELS read_free_ps": ("", " sram"), "CHANNELS write_free_ps": ("", " sram"),
           "REQUEST address": (" 0", " 1", " 2"), "REQUEST virtual_address": (" 0", " 1", " 2")}

# Kinds, by what is done with them; structs that are not copied.
SHIFTED = "FREE TIME SINCE NUMBER FED LEFT TILE".split()
COPIED = "VALUE FREE TIME STAGE FED LEFT SINCE SERVICE NUMBER ORDER DUE ROUTE".split()
NOT_COPIED = "REQUEST EPILOGUE SLICE RING IPCQ_MESSAGE MMU STRETCH TLB_ENTRY".split()
SAVED = "BUSY CHANNELS PSEUDO_CHANNEL SLICE FABRIC_NODE FABRIC_LINK".split()


def rows():
    """(struct, field, kind, compared) of each row."""
    text = read(os.path.join(ROOT, "rt", "machine", "state.def"))
    found = re.findall(r"^([A-Z_]+)\((\w+), ([A-Z]+), ([A-Z_]+)\)", text, re.M)
    return [(struct.removesuffix("_EACH"), *rest) for struct, *rest in found]


class Simulator:
    def __init__(self, name, values, bench):
        topology = write(os.path.join(SCRATCH, name + ".yaml"), TOPOLOGY.format(name=name, **values))
        self.program, self.bench, self.known = os.path.join(SCRATCH, name), bench, {}
        source = os.path.join(ROOT, "tests", "state", bench + ".c")     # its state.c takes the place of the runtime's
        made = run(KBGEN, topology, "-k", source, "--cc", CC + " -Wl,-z,muldefs", "-o", self.program)
        if made.returncode:
            sys.exit(made.said)

    def run(self, exact=False, watched=None, **words):
        """(what it says, its result): equal if two runs did the same. If `watched` is given, so is the number of events."""
        if exact:                                       # no PE sleeps
            words = {name: value for name, value in words.items() if name not in ("without", "wake", "again")}
        key = (exact, watched, *sorted(words.items()))
        if key not in self.known:
            command = [self.program, "run", self.bench, *(f"{name}={value}" for name, value in words.items()),
                       "--data", "off", "--json", "-", *(["--exact-events"] if exact else []),
                       *(["--trace", os.devnull, "--trace-all"] if watched else [])]
            try:
                ended = subprocess.run(command, capture_output=True, text=True, timeout=30 * SLOW, check=False)
                said, _, result = ended.stdout.partition("{")
                value = json.loads("{" + result) if result else {"died": ended.stderr}
            except subprocess.TimeoutExpired:
                said, value = "", {"died": "it did not end"}
            host = value.pop("host", {}) if watched is not None else {}
            self.known[key] = said, {name: part for name, part in value.items() if name not in ("params", "host")} | {
                "events": host.get("events")}
        return self.known[key]


def times(simulator, program):
    """Early times and times all over the run: odd ones, so that other events seldom have the same."""
    result = simulator.run(exact=True, program=program)[1]
    begin_ps, end_ps = result["launches"][-1]["start_ps"] + 2000, result["end_ps"] - 700000
    early = [begin_ps + ps for ps in (2503, 4507, 11003, 30011, 70001, 150001, 300007, 600011)]
    return early + [begin_ps + (end_ps - begin_ps) * i // 44 + i * 102947 % 400009 for i in range(1, 40)]


def is_compared(simulator, row, program, change, everywhere):
    """Whether groups that differ in a field go to sleep if the comparison does not read it, and results are wrong then."""
    for at in times(simulator, program):
        words = {"program": program, "change": change, "at": at}
        said, wrong = simulator.run(without=f"COMPARE {row}", **words)
        if "sleeps" not in said and "died" not in wrong:
            continue
        want, (said, right) = simulator.run(exact=True, **words)[1], simulator.run(**words)
        if wrong != want and right == want and not (everywhere and "machine is the same" in said):
            return True
    return False


def is_copied(simulator, operation, row, program):
    """Whether results are wrong, or groups no longer equal, if those that wake do not get a field."""
    want = simulator.run(exact=True, program=program)[1]
    for at, wake in itertools.combinations(times(simulator, program)[::4], 2):
        for again in (0, wake + 1):
            words = {"program": program, "at": at, "wake": wake, "again": again}
            right = simulator.run(**words)
            if right[1] == want and simulator.run(without=f"{operation} {row}", **words) != right:
                return True
    return False


def is_shifted(simulator, operation, row, program):
    """The same for a shift by periods; the run is interrupted in the middle of a period."""
    for wake in times(simulator, program)[10::4]:
        words = {"program": program, "sleep": "false", "pes": 1, "wake": wake}
        right = simulator.run(**words)
        if right[1] == simulator.run(exact=True, **words)[1] and simulator.run(
                without=f"{operation} {row}", **words) != right:
            return True
    return False


def stops(simulator, program, count):
    """Times in the middle half of a run, all over the periods in it."""
    end_ps = simulator.run(exact=True, program=program)[1]["end_ps"]
    return [end_ps // 4 + i * 618034 % 1000000 * (end_ps // 2) // 1000000 for i in range(count)]


def is_counted(simulator, operation, row, program):
    """Whether the counts of a run that is stopped are wrong without a field, after a copy or a shift."""
    first = times(simulator, program)[4]
    for stop in stops(simulator, program, 300):
        words = {"program": program, "stop": stop}
        words |= {"at": first, "wake": stop} if operation == "COPY" else {"sleep": "false", "pes": 1}
        right = simulator.run(**words)
        if right[1] == simulator.run(exact=True, **words)[1] and simulator.run(
                without=f"{operation} {row}", **words) != right:
            return True
    return False


def ahead(simulators):
    """What is made ahead of time does not count before it is due."""
    for name, simulator in simulators.items():
        for program in ("gemm", "sram", "math"):
            wrong = []
            for stop in stops(simulator, program, 12):
                words = {"program": program, "stop": stop}
                alone, watched = (simulator.run(watched=is_watched, exact=True, **words)[1]
                                  for is_watched in (False, True))
                if alone != watched:
                    wrong.append(f"stop={stop}")
            ok(not wrong, f"a run of {program} that is stopped counts the same whether or not it is watched, on machine "
                          f"{name}", *wrong)


ROWS = os.path.join(ROOT, "tests", "state", "rows.txt")
tried = []                                              # the operation and the row of each test


def search(simulators, test, row, programs, check):
    """Looks for a machine and a program for which check(simulator, program) holds."""
    if SAN and FIRST.get(test, ("",))[0] not in simulators:
        return
    tried.append(test)
    pairs = [(machine, program) for program in programs for machine in simulators]
    if (first := FIRST.get(test)) in pairs:
        pairs.insert(0, first)
    began = time.monotonic()
    for machine, program in pairs:
        if check(simulators[machine], program):
            ok(True, f"{test} is needed on machine {machine} with program {program}")
            return
        if time.monotonic() - began > 60 * SLOW:
            break
    ok(False, f"{test} is needed on some machine with some program", f"results are the same without the row {row}")


def fields(simulators):
    every = ("gemm", "epilogue", "sram", "math")
    for struct, field, kind, compared in rows():
        row = f"{struct} {field}"
        for change in CHANGES.get(row, ("",)) if compared != "NO" and kind != "PART" else ():
            programs = (PROGRAMS.get(row, "sram" if change == " sram" else "gemm"),)
            everywhere = compared != "SYMMETRY" and struct != "REQUEST"
            search(simulators, f"COMPARE {row}{change}", row, programs if row != "TOKEN command" else ("two",),
                   lambda sim, program: is_compared(sim, row, program, row + change, everywhere))
        if row == "DATA ahead_ps":
            for operation in ("COPY", "SHIFT"):
                search(simulators, f"{operation} {row}", row, every,
                       lambda sim, program, operation=operation: is_counted(sim, operation, row, program))
            continue
        if kind in COPIED and struct not in NOT_COPIED:
            search(simulators, f"COPY {row}", row, every, lambda sim, program: is_copied(sim, "COPY", row, program))
        if kind in SHIFTED and struct not in NOT_COPIED:
            search(simulators, f"SHIFT {row}", row, every, lambda sim, program: is_shifted(sim, "SHIFT", row, program))
        if kind == "COUNTED":
            search(simulators, f"COUNT {row} of PEs that sleep", row, ("unlike",),
                   lambda sim, program: is_copied(sim, "LIST", row, program))
            search(simulators, f"COUNT {row} of periods", row, every,
                   lambda sim, program: is_shifted(sim, "LIST", row, program))


def without_requests(result):
    """The launches of a result without the numbers of their requests, which are counted over the run."""
    return [{key: value for key, value in launch.items() if key not in ("request", "responses")}
            for launch in result["launches"]]


def sleeps(simulators):
    """PEs that sleep for a while, early or late, for a short or a long time."""
    for name, simulator in simulators.items():
        wrong = []
        for program in ("gemm", "sram"):
            want = simulator.run(exact=True, program=program)[1]
            for at, wake in itertools.combinations(times(simulator, program)[8::9], 2):
                said, got = simulator.run(program=program, at=at, wake=wake)
                if got != want:
                    wrong.append(f"{program} at={at} wake={wake}: {said}")
        ok(not wrong, f"the result is that of every event after PEs have slept, on machine {name}", *wrong)


def saved(simulator):
    """From a restored state, a launch gives the same result as before."""
    said, once = simulator.run()
    again, twice = simulator.run(again="true")
    launches, both = without_requests(once), without_requests(twice)    # a launch and a while, another one and a while
    ok("the same state" in again and both == launches + launches[2:] and twice["util"] == once["util"] and
       twice["end_ps"] == once["end_ps"] and again.split("\n")[1] == said.split("\n")[0],
       "from a restored state, a launch goes as before", said, again)
    for struct, field, kind, compared in rows():
        if struct in SAVED and (kind in ("FREE", "COUNTED") or (kind == "VALUE" and compared != "NO")):
            tried.append(f"SAVE {struct} {field}")
            ok(simulator.run(again="true", without=f"{struct} {field}") != (again, twice),
               f"SAVE {struct} {field} is needed: without it, a launch from a restored state differs")
    said, _ = simulator.run(refused="true")
    ok(said == "launched: a launch, a request of the host or a credit is under way\n"
               "receives: a receive waits for a message\nsent: a message was sent and not received\nreceived: saved\n",
       "state is not saved while something is under way", said)


def listed():
    """A row that an operation no longer reads has no test above, so rows.txt lists what has to be read."""
    now = "".join(f"{test}\n" for test in tried)
    if os.environ.get("BLESS"):
        write(ROWS, now)
    ok(now == read(ROWS), "each operation reads the rows of state.def that tests/state/rows.txt lists",
       *sorted(set(now.splitlines()) ^ set(read(ROWS).splitlines())))


def main():
    chosen = ("tight", "cubes") if SAN else MACHINES
    simulators = {name: Simulator(name, MACHINES[name], "fields") for name in chosen}
    fields(simulators)
    sleeps(simulators)
    if not SAN:
        ahead({name: simulators[name] for name in ("plain", "slow")} | {"far": Simulator("far", FAR, "fields")})
    saved(Simulator("saves", SAVES, "saved"))
    if not SAN:
        listed()
    done()


main()
