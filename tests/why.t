#!/usr/bin/python3
"""why: --why: the critical path has no gap and adds up; its segments are those that follow from the rules by hand; every
account is its kernel's time.

limit: 120
"""
import json
import os
import re

from harness import GEMM, KBGEN, ROOT, SMALL, ok, read, run, scratch, simulator, small_machine, suite, verifies, without_host
from harness import write

CASES = os.path.join(ROOT, "tests", "conformance")
STREAMS = ("random_six_cubes", "random_two_sips_memory", "feed_reserves_buffer", "host_delay_wait")  # each reason once
SLOW, ATTEND = (os.path.join(ROOT, "tests", "kernels", name) for name in ("slow.c", "attend.c"))
PART = "cube.pe_template.components."
DEFINITIONS = read(os.path.join(ROOT, "rt", "why", "reasons.def"))


def case(name):
    folder = os.path.join(CASES, name)
    return os.path.join(folder, "topo.yaml"), os.path.join(folder, "stream.yaml")


def why(program, *words):
    """Runs with --why. -> the result, what ended."""
    path = scratch("result.json")
    ended = run(program, *words, "--why", "--json", path)
    return json.loads(read(path)), ended


def replayed(name):
    topology, stream = case(name)
    return why(simulator(topology, name), "replay", stream)


def hops(segments):
    """(length, reason, work, edge, node) of the segments that are no hop of a launch."""
    return [(one["end_ps"] - one["begin_ps"], one["reason"], one["work"], one.get("edge", "direct"),
             one["at"].removeprefix("sip0.cube0.")) for one in segments if one["reason"] != "launch"]


def by_hand():
    """The load of docs/model.md, step by step."""
    result, ended = replayed("single_dma_read")
    segments = result["why"]["path"]["segments"]
    want = [(2000, "engine", "engine", "direct", "pe0.pe_cpu"),
            (1000, "engine", "engine", "direct", "pe0.pe_scheduler"),
            (5, "wire", "wire", "direct", "pe0.pe_dma -> sip0.cube0.noc.r0c0"),
            (1000, "node", "node", "direct", "noc.r0c0"),
            (5, "wire", "wire", "direct", "noc.r0c0 -> sip0.cube0.hbm_ctrl.pe0"),
            (5000, "node", "node", "direct", "hbm_ctrl.pe0"),
            (30000, "access", "access", "direct", "hbm_ctrl.pe0"),
            (5, "wire", "wire", "direct", "hbm_ctrl.pe0 -> sip0.cube0.noc.r0c0"),
            (1000, "node", "node", "direct", "noc.r0c0"),
            (5, "wire", "wire", "direct", "noc.r0c0 -> sip0.cube0.pe0.pe_dma"),
            (2000, "node", "node", "direct", "pe0.pe_dma"),
            (4000, "row", "row", "direct", "hbm_ctrl.pe0"),
            (64000, "pseudo_channel", "stream", "direct", "hbm_ctrl.pe0"),
            (16000, "wait", "channel", "wait", "pe0.pe_tcm")]
    ok(hops(segments) == want, "a load's path is the steps of docs/model.md", hops(segments), ended.said)
    account = result["why"]["account"]["kernels"]
    ok([one["reasons"] for one in account] == [{"engine": 3000, "wire": 20, "node": 9000, "access": 30000,
                                                "pseudo_channel": 64000, "row": 4000, "wait": 16000}],
       "its kernel's account has the same reasons", account)


def has_no_gap(path, name):
    segments = path["segments"]
    ends = [path["begin_ps"], *(one["end_ps"] for one in segments)]
    ok(ends[:-1] == [one["begin_ps"] for one in segments] and ends[-1] == path["end_ps"]
       and all(sum(one["ps"] for one in path[key]) == path["end_ps"] - path["begin_ps"] for key in ("by_reason", "by_resource", "by_line")),
       f"{name}: segments follow each other from begin to end, and each sum is the whole", path["by_reason"])


def of_launches():
    """The path of each launch, from its submission to the last answer. The second one begins when the first one has ended, so
    both paths are that of the run."""
    text = """launches:
  - {program: a, targets: [sip0.cube0.pe0]}
  - {program: b, targets: [sip0.cube0.pe0]}
programs:
  a: [{do: load, from: {space: hbm, offset: 0}, to: 0x200000, bytes: 4096}]
  b: [{do: delay, ns: 20}]
"""
    program, stream = simulator(case("single_dma_read")[0], "single_dma_read"), write(scratch("two.yaml"), text)
    plain = why(program, "replay", stream)[0]
    result, ended = why(program, "replay", stream, "--why-launches")
    found, paths = result["why"], [one["path"] for one in result["why"]["launches"]]
    ok(len(paths) == 2 and sum((one["segments"] for one in paths), []) == found["path"]["segments"]
       and found["path"]["count"] == sum(one["count"] for one in paths), "the segments of two launches are those of the run", paths)
    for launch, path in zip(found["launches"], paths):
        has_no_gap(path, f"launch {launch['program']}")
        sums = {one["reason"]: one["ps"] for one in path["by_reason"]}
        ok((path["begin_ps"], path["end_ps"], sums) == (launch["begin_ps"], launch["end_ps"], launch["reasons"]),
           f"launch {launch['program']}: its path has its times and reasons", launch)
    titles = re.findall(r"^launch       (\w), request (\d), from (\d+) ps: .* in (\d+) segments$", ended.stdout, re.M)
    ok(titles == [("a", "1", "0", str(paths[0]["count"])), ("b", "2", str(paths[1]["begin_ps"]), str(paths[1]["count"]))],
       "the summary has the path of each launch", titles, ended.stdout)
    for one in found["launches"]:
        del one["path"]
    ok(result == plain, "nothing else in the result is changed by --why-launches")
    ended = run(program, "replay", stream, "--why-launches")
    ok(ended.returncode == 0 and "\nwhy  " in ended.stdout and "\nlaunch       b, request 2" in ended.stdout,
       "--why-launches includes --why", ended.said)


def of_a_late_launch():
    """A launch waits for bytes of another one that came before: its path begins with its submission, amid their time."""
    stream = write(scratch("late_launch.yaml"), """host:
  - {do: launch, program: long, targets: [sip0.cube0.pe0], async: true}
  - {do: delay, ns: 3000}
  - {do: launch, program: short, targets: [sip0.cube0.pe1]}
programs:
  long: [{do: load, from: {space: hbm, pe: 0, offset: 0}, to: 0x200000, bytes: 0x80000}]
  short: [{do: load, from: {space: hbm, pe: 0, offset: 0}, to: 0x200000, bytes: 256}]
""")
    result, ended = why(simulator(write(scratch("late.yaml"), SPLIT.replace("MISS", "0")), "late"), "replay", stream, "--why-launches")
    late = next(one for one in result["why"]["launches"] if one["program"] == "short")
    first = late["path"]["segments"][0]
    has_no_gap(late["path"], "a launch that waits for another one")
    ok(late["begin_ps"] == first["begin_ps"] == 3000000 and first["reason"] == "pseudo_channel" and first["pe"] == "sip0.cube0.pe0",
       "a path is cut where its launch was submitted", first, ended.said)


def engines_by_hand():
    """How the engines of a PE spend the time of a kernel. Times of an action and of the scheduler: 2,000 and 1,000 ps."""
    result, ended = replayed("single_dma_read")
    engines = result["why"]["account"]["kernels"][0]["engines"]
    want = [{"engine": "pe_dma read", "busy_ps": 20 + 9000 + 30000 + 4000 + 64000 + 16000, "idle": {"engine": 3000}},
            {"engine": "pe_scheduler", "busy_ps": 1000, "idle": {
                "engine": 2000, "wire": 20, "node": 9000, "access": 30000, "pseudo_channel": 64000, "row": 4000, "wait": 16000}}]
    ok(engines == want, "an engine is idle for what its service and the return of the kernel wait for", engines, ended.said)
    # At 1 GHz: an op of 8 + 4096 / 128 * 4 cycles, and behind it on the shared slot a product of 64 + 64.
    text = """launches: [{program: a, targets: [sip0.cube0.pe0]}]
programs:
  a:
    - {do: math, op: exp, elems: 4096, dtype: f16, async: true}
    - {do: gemm, m: 64, k: 64, n: 64, dtype: f16, async: true}
"""
    program = simulator(case("single_dma_read")[0], "single_dma_read")
    result, ended = why(program, "replay", write(scratch("shared.yaml"), text))
    engines = {one["engine"]: (one["busy_ps"], one["idle"]) for one in result["why"]["account"]["kernels"][0]["engines"]}
    math, gemm = (8 + 4096 // 128 * 4) * 1000, (64 + 64) * 1000
    want = {"pe_math": (math, {"engine": 2000 + 1000, "wait": gemm}),
            "pe_gemm": (gemm, {"engine": 2000 + 1000, "engine_busy": math}),
            "pe_scheduler": (2000, {"engine": 2000 + 1000, "engine_busy": math - 2000, "wait": gemm})}
    ok(engines == want, "an engine is idle for another one that has their slot", engines, ended.said)
    rows = {one["engine"]: one for one in result["why"]["account"]["engines"]}
    ok(rows["pe_gemm"] == {
        "engine": "pe_gemm", "servers": 1, "kernels": 1, "time_ps": 3000 + math + gemm, "busy_ps": gemm,
        "idle": {"engine": 3000, "engine_busy": math}, "busy_spread": {"least_ps": gemm, "most_ps": gemm},
        "idle_spread": {"engine": {"least_ps": 3000, "most_ps": 3000}, "engine_busy": {"least_ps": math, "most_ps": math}},
        "worst": "sip0.cube0.pe0"}, "the sum over kernels of one kernel is that of the kernel", rows)
    line = "    pe_gemm          47.9 %     128 ns to    128 ns; idle: 50.9 % engine_busy, 1.1 % engine; worst sip0.cube0.pe0\n"
    ok(line in ended.stdout, "the summary has a line for each engine", ended.said)


def engines_add_up(account, name):
    """Sums, spreads and the worst, from the kernels."""
    wrong, found = [], {}
    for kernel in account["kernels"]:
        for one in kernel["engines"]:
            found.setdefault(one["engine"], []).append((kernel, one))
    for row in account["engines"]:
        mine = found.pop(row["engine"])
        time = row["servers"] * sum(kernel["end_ps"] - kernel["begin_ps"] for kernel, _ in mine)
        busy = [one["busy_ps"] for _, one in mine]
        idle = {reason: [one["idle"].get(reason, 0) for _, one in mine] for reason in {*row["idle"]}.union(*(one["idle"] for _, one in mine))}
        worst = max((sum(one["idle"].values()), -at) for at, (_, one) in enumerate(mine))
        want = {"kernels": len(mine), "time_ps": time, "busy_ps": sum(busy), "idle": {name: sum(ps) for name, ps in idle.items()},
                "busy_spread": {"least_ps": min(busy), "most_ps": max(busy)},
                "idle_spread": {name: {"least_ps": min(ps), "most_ps": max(ps)} for name, ps in idle.items()},
                "worst": mine[-worst[1]][0]["pe"]}
        wrong += [(row, want)] * (want | {key: row[key] for key in ("engine", "servers")} != row
                                  or time != row["busy_ps"] + sum(row["idle"].values()))
        wrong += [kernel for kernel, one in mine if one["busy_ps"] + sum(one["idle"].values())
                  != row["servers"] * (kernel["end_ps"] - kernel["begin_ps"])]
    ok(not wrong and not found and account["engines"], f"{name}: busy and idle time of engines are the time of kernels", wrong[:1], found)


def add_up(account, name):
    engines_add_up(account, name)
    wrong = [one for one in account["kernels"] if sum(one["reasons"].values()) != one["end_ps"] - one["begin_ps"]]
    ok(not wrong and account["kernels"], f"{name}: the account of each kernel is its time", wrong[:2])


def of_streams():
    """What segments they have is compared with the oracle in conformance.t and fuzz.t."""
    reasons = set()
    for name in STREAMS:
        result, _ = replayed(name)
        found = result["why"]
        has_no_gap(found["path"], name)
        add_up(found["account"], name)
        reasons |= {one["reason"] for one in found["path"]["by_reason"]}
        for launch, of_path in zip(result["launches"], found["launches"]):
            took = launch["done_ps"] - launch["submitted_ps"]
            ok(sum(of_path["reasons"].values()) == took, f"{name}: the path of a launch is its time", of_path, took)
    defined = set(re.findall(r'^REASON\((\w+), "', DEFINITIONS, re.M))
    ok(reasons == defined, "each reason is on one of the paths", defined - reasons)


CROWD = """
sip: {cubes: {rows: 1, cols: 1}}
cube:
  memory_map: {hbm_slices_per_cube: 1, hbm_slice_mb: 64, sram_mb: 4}
  noc: {rows: 2, cols: 2, link_bw_gbs: ~, router: {overhead_ns: 0}, attach: {bw_gbs: ~}}
  hbm_ctrl: {attrs: {overhead_ns: 0, pc_bw_gbs: ~, row_miss_ns: 0}}
  pe_template:
    components:
      pe_cpu: {attrs: {overhead_ns: 0}}
      pe_scheduler: {attrs: {overhead_ns: 0}}
      pe_dma: {attrs: {rd_engines: 20, overhead_ns: 0, queue_depth: 64}}
      pe_tcm: {attrs: {write_bw_gbs: ~}}
"""


def many_in_an_instant():
    """45 loads at once: in one instant all 20 engines become idle, and each load takes the one that became so first."""
    program = simulator(write(scratch("crowd.yaml"), CROWD), "crowd")
    stream = "launches: [{program: a, targets: [sip0.cube0.pe0]}]\nprograms:\n  a:\n" + "".join(
        f"    - {{do: load, from: {{space: hbm, cube: 0, pe: 0, offset: {4096 * i}}}, to: {0x200000 + 256 * i}, bytes: 256,"
        " async: true}\n"
        for i in range(45))
    result, ended = why(program, "replay", write(scratch("crowd_stream.yaml"), stream))
    segments = [one for one in result["why"]["path"]["segments"] if one["reason"] != "launch"]
    waits = [(one["command"], one["held_up"]["command"]) for one in segments if one["reason"] == "engine_busy"]
    late = segments[-1]["end_ps"] - segments[0]["begin_ps"]
    idle, third = {}, [one for one in segments if 3 * (one["begin_ps"] - segments[0]["begin_ps"]) >= 2 * late]
    for one in third:
        idle[one["reason"]] = idle.get(one["reason"], 0) + 15 * (one["end_ps"] - one["begin_ps"])
    idle["wait"], idle["engine_busy"] = idle.get("wait", 0), idle.get("engine_busy", 0)
    reads = result["why"]["account"]["kernels"][0]["engines"][0]
    ok(reads["busy_ps"] == 45 * late // 3 and reads["idle"] == {name: ps for name, ps in idle.items() if ps},
       "15 of 20 engines are idle in the last third, for what the return waits for", reads, idle)
    ok(waits == [(0, 20), (20, 40)] and segments[-1]["command"] == 40, "each start has the cause of its own engine, also if 20 become idle at once",
       segments, ended.said)


def answer(text):
    return re.search(r"^why  .*?^change first .*?$", text, re.M | re.S)


def printed():
    topology, stream = case("across_sips")
    program = simulator(topology, "across_sips")
    ended = run(program, "replay", stream, "--why")
    rests = {len(rows) - 8 for rows in map(why(program, "replay", stream)[0]["why"]["path"].get, ("by_reason", "by_resource"))}
    ok(1 in rests and " 1 other\n" in ended.stdout and all(f" {rest} other{'s'[:rest - 1]}\n" in ended.stdout for rest in rests),
       "--why counts the reasons and resources that it does not print", ended.stdout, rests)
    taken = run(program, "replay", stream, "--why", "--json", "-")
    ok(answer(ended.stdout) and answer(taken.stderr) and answer(ended.stdout)[0] == answer(taken.stderr)[0]
       and json.loads(taken.stdout)["why"], "a replay whose result takes standard output prints --why on standard error",
       ended.said, taken.said)


def lines_of_a_stream():
    """Each step of a program has its line: what it does, and what is held up while it waits."""
    text = """launches:
  - {program: a, targets: [sip0.cube0.pe0]}
programs:
  a:
    - {do: load, from: {space: hbm, offset: 0}, to: 0x200000, bytes: 4096}
    - {do: load, id: second, from: {space: hbm, offset: 0}, to: 0x200000, bytes: 4096, async: true}
    - {do: math, op: exp, elems: 16, dtype: f16, async: true}
    - {do: wait, for: [second]}
    - {do: delay, ns: 20}
"""
    program = simulator(case("single_dma_read")[0], "single_dma_read")
    result, ended = why(program, "replay", write(scratch("lines.yaml"), text))
    segments = [one for one in result["why"]["path"]["segments"]]
    lines = {(one["reason"], one.get("source")) for one in segments if one["work"] in ("delay", "control", "wire") or one["reason"] == "launch"}
    loads = [one for one in segments if one["work"] == "channel"]
    calls = [one["source"] for one in segments if one["at"].endswith("pe_cpu") and one["work"] == "engine"]
    want = {("launch", "lines.yaml:2"), ("delay", "lines.yaml:9"), ("wire", "lines.yaml:5"), ("wire", "lines.yaml:6")}
    ok(lines == want and calls == ["lines.yaml:5", "lines.yaml:6"], "a launch, a delay and commands of a stream have their lines there",
       lines, calls, ended.said)
    ok([(one["source"], one["held_up"]["source"]) for one in loads] == [("lines.yaml:5",) * 2, ("lines.yaml:6", "lines.yaml:8")],
       "a wait of a stream has its line there", loads)


def lines_of_the_host():
    """Its steps have their lines: requests with their messages, delays and timeouts."""
    name = "host_delay_wait"
    result, ended = replayed(name)
    segments = result["why"]["path"]["segments"]
    lines = [int(one["source"].removeprefix("stream.yaml:")) for one in segments if "source" in one]
    words = {number: re.search(r"do: (\w+)", line)[1] for number, line in enumerate(read(case(name)[1]).splitlines(), 1) if "do:" in line}
    found = [words[line] for line, before in zip(lines, [None, *lines]) if line != before]
    delays = [one["end_ps"] - one["begin_ps"] for one in segments if one["work"] == "host"]
    ok(len(lines) == len(segments) and found == ["delay", "read", "delay", "delay", "map"] and delays == [700500, 12250, 5000000],
       "delays, a read and a map of the host have their lines", found, delays, ended.said)
    ok([one["source"] for one in result["why"]["launches"]] == ["stream.yaml:4", "stream.yaml:10"],
       "each launch has its line", result["why"]["launches"])
    text = """host:
  - {do: launch, program: a, targets: [sip0.cube0.pe0], timeout_ns: 1000}
programs:
  a: [{do: delay, ns: 90000}]
"""
    result, ended = why(simulator(case("single_dma_read")[0], "single_dma_read"), "replay", write(scratch("late.yaml"), text))
    last = result["why"]["path"]["segments"][-1]
    idle, ended_idle = why(simulator(case("single_dma_read")[0], "single_dma_read"), "replay",
                           write(scratch("idle.yaml"), "host: [{do: delay, ns: 2000.25}]\n"))
    ok(ended_idle.returncode == 0 and idle["why"]["path"]["segments"] == [] and idle["end_ps"] == 0,
       "a stream without a request ends at 0, whatever it delays: its path is empty", ended_idle.said)
    ok((last["work"], last.get("source"), last["end_ps"]) == ("host", "late.yaml:2", 1000000), "a timeout has the line of its launch", last,
       ended.said)


SPLIT = """
sip: {cubes: {rows: 1, cols: 1}}
cube:
  memory_map: {hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4}
  noc: {rows: 2, cols: 2}
  hbm_ctrl: {attrs: {pcs: 2, interleave_bytes: 256, pc_bw_gbs: 1, row_miss_ns: MISS}}
"""


def holder_of_a_split_read():
    """Two PEs read at once: one 256 bytes of a row of the second pseudo channel, the other 512 bytes of another row of
    both. Its bytes come as the second pseudo channel has served both, 256 ns each, and a row change each."""
    stream = """host:
  - {do: launch, parts: [{program: one, targets: [sip0.cube0.pe0]}, {program: both, targets: [sip0.cube0.pe1]}]}
programs:
  one: [{do: load, from: {space: hbm, pe: 0, offset: 0x100100}, to: 0x200000, bytes: 256}]
  both: [{do: delay, ns: 50}, {do: load, from: {space: hbm, pe: 0, offset: 0}, to: 0x200000, bytes: 512}]
"""
    path = write(scratch("split.yaml"), stream)
    for miss in (0, 7):
        program = simulator(write(scratch(f"split{miss}.yaml"), SPLIT.replace("MISS", str(miss))), f"split{miss}")
        result, ended = why(program, "replay", path)
        found = [(one["reason"], one["pe"], one.get("source"), one.get("held_up", {}).get("pe"), one["end_ps"] - one["begin_ps"])
                 for one in result["why"]["path"]["segments"] if one["at"].endswith("hbm_ctrl.pe0") and one["reason"] in ("row", "pseudo_channel")]
        own = [("row", "sip0.cube0.pe1", "split.yaml:5", None, miss * 1000)] * bool(miss)
        ok(found and found[0][:4] == ("pseudo_channel", "sip0.cube0.pe0", "split.yaml:4", "sip0.cube0.pe1")
           and 0 < found[0][4] < 256000 + miss * 1000
           and found[1:] == [*own, ("pseudo_channel", "sip0.cube0.pe1", "split.yaml:5", None, 256000)],
           f"a read of two pseudo channels names who held one of them, with row changes of {miss} ns", found, ended.said)


def holders_of_a_split_read():
    """The second pseudo channel serves two reads of 256 bytes, each in a row of its own, before the one that needs both."""
    path = write(scratch("holders.yaml"), """host:
  - {do: launch, parts: [{program: two, targets: [sip0.cube0.pe0]}, {program: both, targets: [sip0.cube0.pe1]}]}
programs:
  two:
    - {do: load, from: {space: hbm, pe: 0, offset: 0x100100}, to: 0x200000, bytes: 256, id: c0, async: true}
    - {do: load, from: {space: hbm, pe: 0, offset: 0x200100}, to: 0x210000, bytes: 256, id: c1, async: true}
    - {do: wait, for: [c0, c1]}
  both: [{do: delay, ns: 50}, {do: load, from: {space: hbm, pe: 0, offset: 0}, to: 0x200000, bytes: 512}]
""")
    topology = SPLIT.replace("MISS", "7") + "  pe_template: {components: {pe_dma: {attrs: {rd_engines: 2}}}}\n"
    result, ended = why(simulator(write(scratch("split_two.yaml"), topology), "split_two"), "replay", path)
    found = [(one["reason"], one["pe"], one.get("source"), one.get("held_up", {}).get("source"), one["end_ps"] - one["begin_ps"])
             for one in result["why"]["path"]["segments"] if one["at"].endswith("hbm_ctrl.pe0") and one["reason"] in ("row", "pseudo_channel")]
    one, other = "sip0.cube0.pe0", "sip0.cube0.pe1"
    ok(found and found[0][:4] == ("pseudo_channel", one, "holders.yaml:5", "holders.yaml:6") and 0 < found[0][4] < 256000 and found[1:] == [
        ("row", one, "holders.yaml:6", None, 7000), ("pseudo_channel", one, "holders.yaml:6", "holders.yaml:8", 256000),
        ("row", other, "holders.yaml:8", None, 7000), ("pseudo_channel", other, "holders.yaml:8", None, 256000)],
       "a read of two pseudo channels names all who held one of them", found, ended.said)


def advised(program, name, line, cause, key, *words):
    result, ended = why(program, "run", *words, "--data", "off")
    change = result["why"]["change"]
    ok(change["line"] and re.fullmatch(line, change["line"]) and (change["cause"], change["key"]) == (cause, key)
       and change["line_share"] > 0.5 and result["why"]["first"] in ended.stdout, f"{name}: --why says what to change first",
       change, ended.said)
    return change


def advice():
    """Kernels that are slow for one reason each."""
    program = small_machine("slow", [SLOW, ATTEND])
    at = {word: 1 + next(i for i, line in enumerate(read(path).splitlines()) if word in line)
          for path, word in ((SLOW, "tl_load_async("), (SLOW, "tl_load_into("), (ATTEND, "/* K */"))}
    advised(program, "loads of columns", rf"slow\.c:{at['tl_load_async(']}", "heads", PART + "pe_dma.attrs.overhead_ns",
            "strided")
    advised(program, "a wait after each load", rf"slow\.c:{at['tl_load_into(']}", "waits", "cube.hbm_ctrl.attrs.access_ns",
            "waiting")
    words = ("attend", "queries=16", "keys=512", "dim=256", "tile=16")
    advised(program, "an attention that reads K by columns", rf"attend\.c:{at['/* K */']}", "heads",
            PART + "pe_dma.attrs.overhead_ns", *words, "layout=columns")
    ends = {}
    for layout in ("rows", "columns"):
        found, ended = why(program, "run", *words, f"layout={layout}")
        ends[layout] = found["end_ps"]
        of_k = sum(one["share"] for one in found["why"]["path"]["by_line"] if one["source"] == f"attend.c:{at['/* K */']}")
        ok(verifies(found) and (of_k > 0.5) == (layout == "columns"), f"an attention whose K lies by {layout} is right, and its loads of K "
           f"{'take' if layout == 'columns' else 'do not take'} most of the path", of_k, ended.said)
    ok(ends["rows"] < 0.9 * ends["columns"], "with K row by row the attention is faster", ends)
    advised(program, "tiles that are too small", r"kernels/gemm\.h:\d+", "small_tiles", "cube.hbm_ctrl.attrs.access_ns",
            "gemm", "m=64", "k=64", "n=64", "tile_m=8", "tile_k=8", "tile_n=8")
    for key in ("cube.pe_template.links.fetch_store_to_tcm_bw_gbs", PART + "pe_tcm.attrs.read_bw_gbs"):
        advised(program, f"gemm with a slow {key}", r"kernels/gemm\.h:\d+", "channel", key, "gemm", "m=64", "k=64", "n=64",
                "--set", f"{key}=1")
    change = advised(program, "a ring with a slow link", r"kernels/pipeline\.h:\d+", "link", "sip.ucie.bw_gbs", "all_reduce",
                     "size=65536", "algorithm=ring", "--set", "sip.ucie.bw_gbs=1")
    ok(change["place"] == "--set", "it says where the topology has the key", change)


def of_a_bench():
    program = simulator(SMALL, "small")
    result, ended = why(program, "run", "gemm", *GEMM)
    paths = [scratch("plain.json"), scratch("exact.json")]
    run(program, "run", "gemm", *GEMM, "--json", paths[0])
    run(program, "run", "gemm", *GEMM, "--exact-events", "--json", paths[1])
    found = result.pop("why")
    ok(ended.returncode == 0, "a run with --why ends well", ended.said)
    ok(without_host(json.dumps(result)) == without_host(json.dumps(json.loads(read(paths[0]))))
       == without_host(json.dumps(json.loads(read(paths[1])))),
       "--why changes no result")
    again = why(program, "run", "gemm", *GEMM, "--exact-events")[0]["why"]
    ok(again == found, "the path is the same with --exact-events")
    has_no_gap(found["path"], "gemm")
    add_up(found["account"], "gemm")
    lines = [one["source"] for one in found["path"]["by_line"] if one["source"]]
    ok(any(re.fullmatch(r"kernels/gemm\.[ch]:\d+", line) for line in lines), "lines of the kernel have their shares", lines)


def documented():
    page = read(os.path.join(ROOT, "docs", "why.md"))
    rows = re.findall(r'^(REASON|EDGE|WORK)\((\w+), (?:(\w+), )?"(.*)"\)$', DEFINITIONS, re.M)
    lacks = [name for kind, name, reason, meaning in rows if name not in ("start", "handover")
             and not re.search(rf"^\| `{name}` \|(?: [^|]* \|)? {re.escape(meaning)} \|$", page, re.M)]
    advice_rows = re.findall(r'^ADVICE\((\w+), "(.*)",\s+"(.*)"\)$', read(os.path.join(ROOT, "rt", "why", "advice.def")), re.M)
    lacks += [name for name, what, change in advice_rows if f"| `{name}` | {what} | {change} |" not in page]
    ok(rows and advice_rows and not lacks, "docs/why.md has each reason, edge, work and advice with its meaning", lacks)
    script = read(os.path.join(ROOT, "rt", "report", "page", "sections", "why.js"))
    grouped = [word for group in re.findall(r"reasons: \[([^\]]*)\]", script) for word in re.findall(r'"(\w+)"', group)]
    reasons = [name for kind, name, *_ in rows if kind == "REASON"]
    ok(sorted(grouped) == sorted(reasons), "each reason is in one group of the page's pictures", *set(grouped) ^ set(reasons))


def keys_of(schema, path=""):
    """The keys of a JSON Schema, with dots."""
    for name, inside in schema.get("properties", {}).items():
        yield path + name
        yield from keys_of(inside, f"{path}{name}.")


def names_keys():
    """The keys in the advice are those of a topology."""
    schema = set(keys_of(json.loads(run(KBGEN, "--dump", "schema").stdout)))
    source = read(os.path.join(ROOT, "rt", "why", "advice.c"))
    names = {PART * bool(part) + key
             for part, key in re.findall(r'(PART )?"((?:system|sip|cube|pe_\w+)(?:\.\w+)+)"', source)}
    kinds = read(os.path.join(ROOT, "rt", "kb", "kinds.def"))
    names |= {f"{PART}{kind}.attrs.overhead_ns" for kind in re.findall(r"^PE_NODE\((\w+),", kinds, re.M)}
    ok(len(names) > 40 and names <= schema, "each key in the advice is one of a topology", names - schema, len(names))


suite(documented, names_keys, by_hand, of_launches, of_a_late_launch, engines_by_hand, of_streams, many_in_an_instant, lines_of_a_stream, lines_of_the_host, holder_of_a_split_read, holders_of_a_split_read, printed, of_a_bench, advice)
