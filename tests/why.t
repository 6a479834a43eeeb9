#!/usr/bin/python3
"""why: --why: the critical path has no gap and adds up; its segments are those that follow from the rules by hand; every
account is its kernel's time.

limit: 120
"""
import json
import os
import re

from harness import GEMM, KBGEN, ROOT, SMALL, ok, read, run, scratch, simulator, small_machine, suite, without_host, write

CASES = os.path.join(ROOT, "tests", "conformance")
STREAMS = ("random_six_cubes", "random_two_sips_memory", "feed_reserves_buffer", "host_delay_wait")  # each reason once
SLOW = os.path.join(ROOT, "tests", "kernels", "slow.c")
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
            (68000, "pseudo_channel", "stream", "direct", "hbm_ctrl.pe0"),
            (16000, "wait", "channel", "wait", "pe0.pe_tcm")]
    ok(hops(segments) == want, "a load's path is the steps of docs/model.md", hops(segments), ended.said)
    account = result["why"]["account"]["kernels"]
    ok([one["reasons"] for one in account] == [{"engine": 3000, "wire": 20, "node": 9000, "access": 30000,
                                                "pseudo_channel": 68000, "wait": 16000}],
       "its kernel's account has the same reasons", account)


def has_no_gap(path, name):
    segments = path["segments"]
    ends = [0, *(one["end_ps"] for one in segments)]
    ok(ends[:-1] == [one["begin_ps"] for one in segments] and ends[-1] == path["end_ps"]
       and all(sum(one["ps"] for one in path[key]) == path["end_ps"] for key in ("by_reason", "by_resource", "by_line")),
       f"{name}: segments follow each other from 0 to the end, and each sum is the whole", path["by_reason"])


def add_up(account, name):
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
    result, _ = replayed("single_dma_read")
    lines = {one["source"] for one in result["why"]["path"]["segments"] if "source" in one}
    _, stream = case("single_dma_read")
    want = 1 + next(at for at, line in enumerate(read(stream).splitlines()) if "do: load" in line)
    ok(lines == {f"stream.yaml:{want}"}, "a command of a stream has its line there", lines)


def advised(program, name, line, cause, key, *words):
    result, ended = why(program, "run", *words, "--data", "off")
    change = result["why"]["change"]
    ok(change["line"] and re.fullmatch(line, change["line"]) and (change["cause"], change["key"]) == (cause, key)
       and change["line_share"] > 0.5 and result["why"]["first"] in ended.stdout, f"{name}: --why says what to change first",
       change, ended.said)
    return change


def advice():
    """Kernels that are slow for one reason each."""
    program = small_machine("slow", [SLOW])
    source = read(SLOW).splitlines()
    at = {word: 1 + next(i for i, line in enumerate(source) if word in line) for word in ("tl_load_async(", "tl_load_into(")}
    advised(program, "loads of columns", rf"slow\.c:{at['tl_load_async(']}", "heads", PART + "pe_dma.attrs.overhead_ns",
            "strided")
    advised(program, "a wait after each load", rf"slow\.c:{at['tl_load_into(']}", "waits", "cube.hbm_ctrl.attrs.access_ns",
            "waiting")
    advised(program, "tiles that are too small", r"kernels/gemm\.h:\d+", "small_tiles", "cube.hbm_ctrl.attrs.access_ns",
            "gemm", "m=64", "k=64", "n=64", "tile_m=8", "tile_k=8", "tile_n=8")
    for key in ("cube.pe_template.links.fetch_store_to_tcm_bw_gbs", PART + "pe_tcm.attrs.read_bw_gbs"):
        advised(program, f"gemm with a slow {key}", r"kernels/gemm\.h:\d+", "channel", key, "gemm", "m=64", "k=64", "n=64",
                "--set", f"{key}=1")
    change = advised(program, "a ring with a slow link", r"kernels/pipeline\.h:\d+", "link", "sip.ucie.bw_gbs", "all_reduce",
                     "size=65536", "--set", "sip.ucie.bw_gbs=1")
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


suite(documented, names_keys, by_hand, of_streams, many_in_an_instant, lines_of_a_stream, printed, of_a_bench, advice)
