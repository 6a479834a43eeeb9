#!/usr/bin/python3
"""page: the report page of a run: its data, its policy, what it refuses; and how it works in a browser, where there is
one. Screenshots go to build/page/. The sanitizers see all but the browser and the largest machine. limit: 120
"""
import base64
import hashlib
import json
import os
import re
import sys

from harness import ROOT, SAN, SMALL, done, in_browser, ok, read, run, scratch, simulator, topology, write

LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
GEMM = ("gemm", "m=1024", "k=128", "n=512")
DROPPED = ("commands", "pes", "responses")
HOSTILE = "</script><img id=injected src=x onerror=alert(1)><!--"


def data_of(page):
    """The results on a page; none if its data are not JSON."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    try:
        return json.loads(found[1])["runs"] if found else []
    except ValueError:
        return []


def hashes(page, element):
    """The hashes by which a policy names the style or the scripts of a page."""
    texts = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
    return {"'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in texts}


def total(series, width_ps, servers):
    """The busy time that a series of frames shows, in ps."""
    return sum(LEVELS.index(level) for row in series["row_of"] for level in series["rows"][row]) \
        * series["full"] / 63 * width_ps * servers


def services(trace, part):
    """From when to when pe_gemm or another part of a PE served, by the trace, by PE."""
    began, found = {}, {}
    for line in trace.splitlines():
        row = json.loads(line)
        pe, _, node = row["node"].rpartition(".")
        key = pe, row["cmd"], row["tile"], row["stage"]
        if node == part and row["ev"] == "engine_start":
            began[key] = row["t"]
        elif node == part and row["ev"] == "engine_complete":
            found.setdefault(pe, []).append((began.pop(key), row["t"]))
    return found


def wrong_frames(result, spans, name):
    """Frames of a series whose level is not that of these spans of time of each PE, rounded."""
    frames = result["activity"]["frames"]
    series, width_ps = frames["series"][name], frames["width_ps"]
    for pe, row in enumerate(series["row_of"]):
        text = series["rows"][row].ljust(frames["count"], "0")
        of = spans.get(f"sip0.cube{pe // 2}.pe{pe % 2}", [])
        for frame in range(frames["count"]):
            begin, end = frame * width_ps, (frame + 1) * width_ps
            share = sum(max(0, min(end, till) - max(begin, since)) for since, till in of) / width_ps
            if LEVELS.index(text[frame]) != (max(1, int(63 * share + 0.5)) if share else 0):
                yield f"PE {pe}, frame {frame}: {text[frame]}, a share of {share}"


def without_rows(result):
    """A result as a page has it."""
    result = dict(result)
    result.pop("hbm_slices", None)
    result["launches"] = [{key: part for key, part in launch.items() if key not in DROPPED} for launch in result["launches"]]
    for request in result.get("memory", []):
        request.pop("responses", None)
    return result


def test_data(program, page, result):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    ok("unsafe" not in policy and "default-src 'none'" in policy and "connect-src 'none'" in policy and hashes(page, "style") <= set(re.split(r"[ ;]+", policy))
       and len(hashes(page, "script")) == 2 and hashes(page, "script") <= set(re.split(r"[ ;]+", policy)),
       "the policy of the page allows its own style and scripts, by their hashes, and nothing else", policy)
    text = re.sub(r"<(style|script|pre)\b.*?</\1>", "", page, flags=re.S)
    ok(not re.search(r"\s(on\w+|style|src)=|<link|<iframe|<object|url\(", text) and "http" not in text.replace("http-equiv", ""),
       "the markup has no handlers, no inline styles, and refers to nothing outside")
    ok("Permission is hereby granted" in page and "dygraphs is MIT-licenced" in page, "the page keeps the licence of its charts")
    [one] = data_of(page)
    ok(one["file"] is None and one["result"] == without_rows(result), "the page has the result of --json, without its long lists of rows")
    engines, frames = result["activity"]["engines"], result["activity"]["frames"]
    wrong = [name for name, of in engines.items()
             if abs(total(frames["series"][name], frames["width_ps"], result["machine"]["servers"][name]) - sum(of["busy_ps"]))
             > 0.04 * sum(of["busy_ps"]) + frames["width_ps"]]
    ok(len(engines) > 4 and not wrong, "the frames of each engine add up to its busy time, but for their rounding", *wrong)
    span = [name for name in engines if sum(engines[name]["busy_ps"]) != result["util"][name]["busy_ps"]]
    ok(not span, "the busy times of PEs add up to those of the summary", *span)
    ok(100 <= frames["count"] <= 150 and frames["count"] * frames["width_ps"] >= result["end_ps"] > (frames["count"] - 1) * frames["width_ps"],
       "there are 100 to 150 frames, which cover the run", frames["count"], frames["width_ps"], result["end_ps"])
    trace = scratch("trace.jsonl")
    run(program, "run", *GEMM, "--data", "off", "--trace", trace)
    wrong = list(wrong_frames(result, services(read(trace), "pe_gemm"), "pe_gemm"))
    ok(not wrong, "the frames of pe_gemm are those of the services in the trace, one by one", *wrong[:5])
    kernels = {pe["id"]: [(pe["start_ps"], pe["end_ps"])] for pe in result["launches"][0]["pes"]}
    wrong = list(wrong_frames(result, kernels, "kernel"))
    ok(not wrong, "the frames of kernels are those of their times", *wrong[:5])
    timeline = result["activity"]["timeline"]
    ok(set("".join(timeline["rows"])) <= set("gmcwrf. ") and "g" in "".join(timeline["rows"]) and len(timeline["row_of"]) == 4,
       "the timeline has a row of known letters for each PE")
    works = result["activity"]["launches"]
    ok(sum(work["flop"] for work in works) == result["util"]["gemm_flop"]
       and sum(work["hbm_bytes"] for work in works) == result["bytes"]["hbm"]["read"] + result["bytes"]["hbm"]["write"],
       "FLOP and bytes of launches add up to those of the run", works)


def test_refusals(program):
    rows = (
        ("", "line 1: a result begins with {"), ("[1]", "line 1: a result begins with {"),
        ('{"system": "s", "end_ps": 1, "launches": []} x', "line 1: a result begins with {"), ('{\n"a" 1}', "line 2: a colon is missing"),
        ('{"a": 01}', "line 1: a comma or } is missing"), ('{"a": -}', "line 1: a number without digits"),
        ('{"a": "\x01"}', "line 1: a control character in a text"), ('{"a": "\\x"}', "line 1: an unknown escape in a text"),
        ('{"a": "\\u12"}', "line 1: \\u without four hexadecimal digits"), ('{"a": "', "line 1: a text without a closing quote"),
        ('{"a": nul}', "line 1: a value is missing"), ('{"a": [1 2]}', "line 1: a comma or ] is missing"),
        ('{"a"', "line 1: a colon is missing"), ('{"a":', "line 1: the text ends in a value"), ("{1: 2}", "line 1: a text in quotes is missing"),
        ("{}", "line 1: 'system', the name of a machine, is missing or no text"), ('{"system": 1, "end_ps": 1, "launches": []}', "line 1: 'system', the name of a machine, is missing or no text"),
        ('{"a": {"system": "s"}, "end_ps": 1, "launches": []}', "line 1: 'system', the name of a machine, is missing or no text"),
        *((f'{{"system": "s", "end_ps": {end_ps}, "launches": []}}', "line 1: 'end_ps' is missing or no whole number of picoseconds") for end_ps in ('"<b>"', "-5", "1e999", "1.5", "null")),
        ('{"system": "s", "end_ps": 1, "util": {}}', "line 1: 'launches' or 'changes' is missing or no list"),
        ('{"system": "s", "end_ps": 1, "launches": []}\n{"system": "s", "end_ps": 1, "changes": 1}', "line 2: 'launches' or 'changes' is missing or no list"),
        ('{"a": ' + "[" * 80, "line 1: values are nested too deeply"),
    )
    for text, message in rows:
        path = write(scratch("wrong.json"), text)
        ended = run(program, "report", path, "-o", scratch("wrong.html"))
        ok(ended.returncode == 2 and f"wrong.json is not a result: {message}\n" in ended.stderr and not os.path.exists(scratch("wrong.html")),
           f"a result {text[:14]!r} is refused: {message}", ended.said)
    for words, message in ((("-o", "x"), "report needs results"), (("x",), "report needs -o FILE"),
                           (("no.json", "-o", "x"), "cannot read no.json: No such file"), (("x", "-o", "no/x"), "cannot write no/x")):
        ended = run(program, "report", *words)
        ok(ended.returncode == 2 and message in ended.stderr, f"report {' '.join(words)}: {message}", ended.said)
    result = write(scratch("own.json"), '{"system": "s", "end_ps": 5, "launches": []}')
    for name, make in (("own.json", None), ("link.json", os.symlink), ("hard.json", os.link)):
        page = scratch(name)
        if make:
            make(result, page)
        ended = run(program, "report", result, "-o", page)
        ok(ended.returncode == 2 and f"-o {page}: the page would replace the result {result}\n" in ended.stderr and read(result).startswith("{"),
           f"report -o {name} does not replace the result that it shows", ended.said)
    for words, message in ((("--points", "p"), "--report is for one run"), (("--json", "f"), "--json and --report cannot both go to f")):
        ended = run(program, "run", "gemm", "--report", "f", *words)
        ok(ended.returncode == 2 and message in ended.stderr, f"--report f {' '.join(words)}: {message}", ended.said)


def test_copy(program):
    """What is not dropped comes through as it is, and nothing in a text can end the element that it is in."""
    value = {"bench": HOSTILE, "params": {HOSTILE: HOSTILE}, "system": "a&b<c>", "end_ps": 9007199254740993, "launches": [
        {"commands": [{"x": [1, {}]}], "pes": [], "program": "k", "n": [-0.5e-3, 1E9, True, None, "\u00e9\"\\\n"]}, {"responses": 1}], "e": {}}
    path = write(scratch(f"{HOSTILE.replace('/', '')}.json"), json.dumps(value, indent=3))
    ended = run(program, "report", path, path, "-o", "-")
    kept = {**value, "launches": [{"program": "k", "n": value["launches"][0]["n"]}, {}]}
    ok(ended.returncode == 0 and [one["result"] for one in data_of(ended.stdout)] == [kept, kept]
       and data_of(ended.stdout)[0]["file"] == os.path.basename(path),
       "a result comes onto the page as it is, without the lists that it does not show", ended.stderr)
    ok(ended.stdout.count("<img") == 0 and ended.stdout.count("</script>") == 3, "no text of a result is markup on the page")
    lines = write(scratch("lines.json"), '{"bench":"a","system":"s","end_ps":1,"launches":[]}\n{"bench":"b","system":"s","end_ps":2,"launches":[]}\n')
    ended = run(program, "report", lines, "-o", "-")
    ok([one["result"]["bench"] for one in data_of(ended.stdout)] == ["a", "b"], "a file with a result a line has as many runs", ended.stderr)


def test_why(program):
    """A page with the critical path, probes, and what-if of the same bench."""
    paths = {name: scratch(name) for name in ("why.json", "why.html", "whatif.json", "both_why.html")}
    ended = run(program, "run", *GEMM, "--why", "--probe-matrix", "pe:hbm", "--report", paths["why.html"], "--json", paths["why.json"])
    result = json.loads(read(paths["why.json"]))
    path, account = result["why"]["path"], result["why"]["account"]
    names, row = path["columns"]["names"], path["columns"]["row"]
    shown = [(one["reason"], one["share"], row.count(chr(ord("a") + names.index(one["reason"]))) / len(row)) for one in path["by_reason"]]
    ok(ended.returncode == 0 and len(row) == 480 and all(abs(share - columns) < 0.1 for _, share, columns in shown), "columns of the critical path have its shares, nearly", *shown)
    meanings = re.findall(r'^REASON\((\w+), "(.*)"\)$', read(os.path.join(ROOT, "rt", "why", "reasons.def")), re.M)
    ok(list(zip(names, path["columns"]["meanings"])) == meanings, "the page has the meaning of each reason", path["columns"])
    wrong = []
    for pe in range(4):
        want = sum(one["end_ps"] - one["begin_ps"] for one in account["kernels"] if one["pe"] == f"sip0.cube{pe // 2}.pe{pe % 2}")
        got = sum(times[pe] for times in account["pes"].values())
        wrong += [f"PE {pe}: {want} ps, got {got}"] if want != got else []
    ok(not wrong, "the account of each PE adds up to the time of its kernels", *wrong)
    changes = [{"key": "cube.noc.link_bw_gbs", "place": "small.yaml:7", "value": "64 GB/s", "changed": "70 GB/s", "end_ps": 90, "gain": 0.1, "elasticity": 0.9}]
    write(paths["whatif.json"], json.dumps({"system": "small", "bench": "gemm", "by": "10%", "end_ps": 100, "changes": changes, "unchanged": ["a.b"], "failed": [], "best": []}))
    ended = run(program, "report", paths["why.json"], paths["whatif.json"], "-o", paths["both_why.html"])
    ok(ended.returncode == 0 and '"segments"' not in read(paths["both_why.html"]), "a page has no list of the segments of a critical path", ended.said)
    return paths["both_why.html"]


def test_sizes():
    """The pages of 128 and of 4,096 PEs; the second is looked at in the browser as well."""
    paths = {}
    for name, words, most, of in (("ref_sip", ("gemm_2d",) if SAN else ("layer", "--why", "--probe-matrix", "pe:pe"), 1_000_000, "pe"), ("ref_pod", ("gemm", "m=65536", "k=128", "n=128"), 5_000_000, "cube"))[:1 if SAN else 2]:
        program = simulator(topology(name), name)
        paths[name] = scratch(name + ".html")
        ended = run(program, "run", *words, "--data", "off", "--report", paths[name])
        [one] = data_of(read(paths[name])) or [{}]
        ok(ended.returncode == 0 and os.path.getsize(paths[name]) < most and one["result"]["activity"]["of"] == of and one["result"]["activity"]["frames"]["count"] >= 100,
           f"the page of {words[0]} on {name} has less than {most // 1_000_000} MB, and at least 100 frames", os.path.getsize(paths[name]), ended.said)
        if "--why" in words:
            ok(len(one["result"]["why"]["path"]["by_resource"]) == 100, "the page has the first resources of a long critical path")
    return paths.get("ref_pod")


def test_long_links():
    """A page of two SIPs that a link joins, whose cubes and routers are in rings, with two planes of routers."""
    topology = write(scratch("rings.yaml"), """system:
  name: rings
  sips: 2
  links: [{ a: { sip: 0, cube: 0, side: n }, b: { sip: 1, cube: 2, side: s }, bw_gbs: 50, latency_ns: 300 }]
sip: { cubes: { rows: 1, cols: 3, wrap: rows } }
cube:
  memory_map: { hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4 }
  noc: { rows: 3, cols: 3, wrap: both, planes: [{}, { order: yx }], plane_of: { message: 1 } }
""")
    path = scratch("rings.html")
    ended = run(simulator(topology, "rings"), "run", "all_reduce", "size=65536", "--report", path)
    machine = data_of(read(path))[0]["result"]["machine"]
    ok(ended.returncode == 0 and machine["closed"] == ["cube_rows", "router_rows", "router_cols"] and machine["chips"] == [[0, 0, 0, 1, 2, 2]],
       "a page knows what is closed to rings, and the links between chips", machine, ended.said)
    return path


def main():
    program = simulator(SMALL, "small")
    paths = {}
    for name, words in (("gemm", GEMM), ("other", ("gemm", "m=512", "k=64", "n=256", "tile_k=32")),
                        ("reduce", ("all_reduce", "size=8192"))):
        paths[name] = scratch(name + ".html"), scratch(name + ".json")
        ended = run(program, "run", *words, "--report", paths[name][0], "--json", paths[name][1])
        ok(ended.returncode == 0 and os.path.getsize(paths[name][0]) < 500_000, f"a report of {name} is written, below 500 kB", ended.said)
    page, result = read(paths["gemm"][0]), json.loads(read(paths["gemm"][1]))
    test_data(program, page, result)
    plain = run(program, "run", *GEMM, "--json", scratch("plain.json"))
    without = {key: part for key, part in result.items() if key not in ("machine", "activity", "host")}
    same = {key: part for key, part in json.loads(read(scratch("plain.json"))).items() if key != "host"}
    ok(plain.returncode == 0 and same == without, "--report changes nothing else of a result")
    test_refusals(program)
    test_copy(program)
    both = scratch("both.html")
    ended = run(program, "report", paths["gemm"][1], paths["other"][1], "-o", both)
    ok(ended.returncode == 0, "a page of two results is written", ended.said)
    hostile = scratch("hostile.html")
    strange = {**result, "bench": HOSTILE, "params": {HOSTILE: HOSTILE}, "notes": [HOSTILE], "verify": [{**result["verify"][0], "tensor": HOSTILE, "status": "wrong", "wrong": 3}],
               "races": [{HOSTILE: HOSTILE}], "status": 1}
    run(program, "report", write(scratch("hostile.json"), json.dumps(strange)), "-o", hostile)
    bare = scratch("bare.html")
    run(program, "report", write(scratch("bare.json"), '{"system": "s", "end_ps": 5, "launches": []}'), "-o", bare)
    largest, why, rings = test_sizes(), test_why(program), test_long_links()
    if not SAN:
        in_browser("page.mjs", 25, paths["gemm"][0], paths["reduce"][0], both, hostile, bare, largest, why, rings)
    done()


if __name__ == "__main__":
    sys.exit(main())
