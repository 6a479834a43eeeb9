#!/usr/bin/python3
"""search_space: space files of kbgen search: what is wrong with one, levels, expressions, machines. limit: 120"""
import json
import os
import shutil
import sqlite3

import yaml
from jsonschema import Draft7Validator

from harness import KBGEN, ROOT, SAN, folder, ok, run, simulator, suite, write

WHERE = folder("spaces")
PE = "cube.pe_template.components."
GOOD = {
    "topology": "small.yaml", "bench": "gemm", "params": "{ m: 64, k: 64, n: 64 }",
    "space": "{ cube.noc.link_bw_gbs: [128, 256] }", "objectives": "{ end_ps: min }", "method": "grid",
}
shutil.copy(os.path.join(ROOT, "tests", "small.yaml"), WHERE)


def text_of(**changes):
    """A space file, a line for each key; a value None leaves a key out."""
    return "".join(f"{key}: {value}\n" for key, value in (GOOD | changes).items() if value is not None)


def search(text, *options, name="space", into=None):
    """Searches a space in a new store, or in one that is there; returns how kbgen ended, and the store's path."""
    path = write(os.path.join(WHERE, name + ".yaml"), text)
    store = into or os.path.join(WHERE, name + ".db")
    for old in (store, store + "-wal", store + "-shm"):
        if os.path.exists(old) and not into:
            os.remove(old)
    return run(KBGEN, "search", os.path.basename(path), "-o", store, "-j", "1", *options, cwd=WHERE), store


def rows(store, query):
    with sqlite3.connect(store) as db:
        return db.execute(query).fetchall()


def refuses(title, messages, *options, **changes):
    """A wrong space gives status 2 and each message, with its place, and nothing is run."""
    ended, store = search(text_of(**changes), *options, name="wrong")
    messages = [messages] if isinstance(messages, str) else messages
    lacking = [message for message in messages if message not in ended.stderr]
    ran = os.path.exists(store) and rows(store, "SELECT count(*) FROM sqlite_master WHERE name = 'point'") == [(1,)] \
        and rows(store, "SELECT count(*) FROM point") != [(0,)]
    ok(ended.returncode == 2 and not lacking and not ran, title, *lacking, ended.said)


# ---- files

def keys_of_the_file():
    refuses("an unknown key is refused with the nearest one",
            ["wrong.yaml:7:1: error: unknown key 'objectivs' in a space", "did you mean 'objectives'?"], objectivs="{}")
    refuses("each key that must be there is asked for", ["error: topology must be given", "error: space must be given",
            "error: objectives must be given", "error: method must be given: one of grid, list, random, lhs, sobol, nsga2, halving, ask\n", "a 'bench' or a stream to 'replay'"],
            topology=None, space=None, objectives=None, method=None, bench=None)
    refuses("a topology that is not there is refused at its place, with the nearest file",
            ["wrong.yaml:1:11: error: cannot read 'smal.yaml'", "did you mean 'small.yaml'?"], topology="smal.yaml")
    refuses("a bench and a stream cannot both be given", "a workload is a 'bench' or a stream to 'replay', not both",
            replay="small.yaml")
    refuses("workloads and a bench cannot both be given", "'bench' belongs into each of the workloads",
            workloads="[ { bench: gemm } ]")
    refuses("two workloads need two names", ["error: another workload has the name 'gemm'", "give it one"],
            bench=None, params=None, workloads="[ { bench: gemm }, { bench: gemm } ]")
    ended, _ = search("[1, 2]\n")
    ok(ended.returncode == 2 and "error: a space must be a mapping" in ended.stderr, "a list is no space", ended.said)
    ended, _ = search("space: " + "[" * 100 + "]" * 100 + "\n")
    ok(ended.returncode == 2 and "nested deeper than 64" in ended.stderr, "deep nesting is refused", ended.said)
    ended, _ = search(text_of(space="{" + ", ".join(f"params.p{i}: [1]" for i in range(10000)) + "}"))
    ok(ended.returncode == 2 and "space has 10000 entries; at most 1000 are searched" in ended.stderr,
       "ten thousand keys are refused", ended.said)


def keys_of_the_space():
    for space, message in (
            ("{ cube.noc.link_bw_gb: [1] }", ["4:10: error: the topology has no key 'cube.noc.link_bw_gb'",
                                               "did you mean 'cube.noc.link_bw_gbs'?"]),
            ("{ gemm.rows: [1] }", "did you mean 'cube.pe_template.components.pe_gemm.attrs.rows'?"),
            ("{ include: [a.yaml] }", "'include' cannot differ from point to point"),
            ("{ cube.noc.: [1] }", "no key 'cube.noc.'"),
            ("{ cube.noc.link_bw_gbs: [128, -1] }", "4:38: error: cube.noc.link_bw_gbs must be a bandwidth above 0"),
            ("{ cube.noc.link_bw_gbs: [] }", "cube.noc.link_bw_gbs has no values"),
            ("{ cube.noc.link_bw_gbs: 5 }", "must be a list of values or a range"),
            ("{ cube.noc.link_bw_gbs: [128, 256, 128.0] }", ["has this value twice", "it is first given here"]),
            ("{ cube.noc.link_bw_gbs: [128, 128 GB/s] }", "has this value twice"),
            ("{ cube.noc.rows: [1, 99] }", "cube.noc.rows must be a whole number from 1 to 64, not '99'"),
            ("{ cube.noc.rows: { from: 1, to: 99, step: 1 } }", "cube.noc.rows must be a whole number from 1 to 64, not '99'"),
            ("{ cube.noc.rows: { from: 1, to: 9, step: 0.5 } }", "not '1.5'"),
            ("{ cube.noc.rows: { from: 9, to: 1, step: 1 } }", "'from' is above 'to'"),
            ("{ cube.noc.rows: { from: 1, to: 4 } }", "a range has one of"),
            ("{ cube.noc.rows: { from: 1, step: 1 } }", "a range needs 'to'"),
            ("{ cube.noc.rows: { from: 1, to: 4, step: 0 } }", "'step' must be above 0"),
            ("{ cube.noc.rows: { from: 0, to: 4, scale: log2 } }", "begins above 0"),
            ("{ cube.noc.rows: { from: 1, to: 4, count: 9 } }", "there are fewer whole numbers than 9 from 1 to 4"),
            ("{ cube.noc.rows: { from: 1, to: 4, skale: log2 } }", "did you mean 'scale'?"),
            ("{ cube.noc.link_bw_gbs: { from: 1, to: 8 MB/s, step: 1 } }", "'to' must have the unit of 'from', none"),
            ("{ cube.noc.link_bw_gbs: { from: 1, to: 1e6, step: 1e-9 } }", "more than 2^32 levels"),
            ("{ cube.noc: [ { rows: 2 } ], cube.noc.rows: [2] }", "cube.noc.rows is part of another key of the space"),
            (f"{{ {PE}pe_math.attrs.lanes.f17: [1] }}", "did you mean 'f16'?"),
            ("{ params.tile: [1] }", ["no workload has a parameter 'tile'", "did you mean 'tile_"]),
            ("{ params.m: [1] }", "params.m is given by 'params' as well"),
            ("{ params.tile_m: [1, x] }", "tile_m must be a whole number from 0 to 16777216, not 'x'"),
            ("{ params.tile_m: { from: 0, to: 99999999, step: 1 } }", "not '99999999'"),
            ("{ params.dtype: [f16, f33] }", ["dtype must be one of f16, bf16, f32, i8, f8e4m3, f8e5m2, not 'f33'", "did you mean 'f32'?"]),
            ("{ params.: [1] }", "must be params.NAME or params.WORKLOAD.NAME"),
            ("{ params.gem.tile_m: [1] }", "no workload gem has a parameter 'tile_m'")):
        refuses(f"a space is refused: {space}", message, space=space)
    refuses("a parameter that the bench lacks is refused", "unknown key 'mm' in the parameters of gemm", params="{ mm: 1 }")
    refuses("a bench that the simulator lacks is refused", ["2:8: error: there is no bench 'gem'", "did you mean 'gemm'?"],
            bench="gem")
    refuses("all faults of a file are told in one go",
            ["no key 'cube.x'", "must be a whole number from 1 to 64", "objectives: end_ps must be min or max",
             "method must be grid, list", "points must be a whole number", "name of a derived value must be"],
            space="{ cube.x: [1], cube.noc.rows: [99] }", objectives="{ end_ps: up }", method="greed", derive="{ 1a: '2' }",
            budget="{ points: 0 }")


def methods():
    for method, message in (("{ population: 9 }", "the method has no name"), ("nsga", "did you mean 'nsga2'?"),
                            ("{ name: nsga2, populaton: 9 }", "did you mean 'population'?"),
                            ("{ name: nsga2, population: 1 }", "population must be a whole number from 4 to 100000"),
                            ("{ name: nsga2, crossover: 2 }", "crossover must be a number from 0 to 1"),
                            ("{ name: grid, population: 9 }", "unknown key 'population' in the method grid"),
                            ("list", "the method list needs 'file'"), ("{ name: list, file: none }", "cannot read 'none'"),
                            ("halving", "the method halving needs 'fidelity'"),
                            ("{ name: halving, fidelity: params.n }", "fidelity must be a key of the space, not 'params.n'"),
                            ("lhs", "the method lhs needs a budget: { points: 1000 }"),
                            ("random", "needs a budget: { points: 1000 } or { hours: 2 }")):
        refuses(f"a method is refused: {method}", message, method=method)
    refuses("a budget of no time is refused", "hours must be a number from", method="random", budget="{ hours: 0 }")
    refuses("a seed is a whole number", "seed must be a whole number", seed="-1")


def schema():
    form = json.loads(run(KBGEN, "--dump", "schema-space").stdout)
    Draft7Validator.check_schema(form)
    check = Draft7Validator(form)
    study = os.path.join(ROOT, "topologies/search/llama3_8b.yaml")
    with open(study, encoding="utf-8") as file:
        wrong = [str(error.message) for error in check.iter_errors(yaml.safe_load(file))]
    ok(not wrong and check.is_valid(yaml.safe_load(text_of())), "good spaces have the form of the JSON Schema", *wrong)
    bad = [changes for changes in (
        {"objectivs": "{}"}, {"topology": None}, {"bench": None}, {"replay": "a"}, {"objectives": "{ end_ps: up }"},
        {"space": "{ cub.noc: [1] }"}, {"space": "{ cube.noc.rows: 5 }"}, {"space": "{ cube.noc.rows: [] }"},
        {"space": "{ cube.noc.rows: { from: 1, to: 4 } }"}, {"space": "{ cube.noc.rows: { from: 1, to: 4, count: 0 } }"},
        {"method": "greed"}, {"method": "{ name: nsga2, population: 1 }"}, {"method": "{ name: list }"},
        {"budget": "{ points: 0 }"}, {"derive": "{ 1a: '2' }"}, {"workloads": "[ { params: {} } ]", "bench": None},
    ) if check.is_valid(yaml.safe_load(text_of(**changes)))]
    ok(not bad, "the JSON Schema refuses what kbgen refuses, as far as a schema can see it", bad)


# ---- expressions

def wrong_expressions():
    def wrong(expression, *messages, title=None):
        refuses(title or f"an expression is refused: {expression[:60]}", list(messages),
                derive="{ x: " + json.dumps(expression) + " }")
    wrong("tcm.size_m * 2", "7:15: error: derive: x: unknown name 'tcm.size_m'", "did you mean 'tcm.size_mb'?")
    wrong("end_p + tcm.siz_mb", "unknown name 'end_p'", "did you mean 'end_ps'?", "7:23: error: derive: x: unknown name 'tcm.siz_mb'",
          "did you mean 'tcm.size_mb'?", title="all unknown names of an expression are told")
    wrong("rows + gemm.rows", "'rows' needs its table: TABLE.rows")
    wrong('"no name"', "unknown name 'no name'")
    wrong("pes +", "derive: x:")
    for text in ("load_extension('x')", "readfile('/etc/passwd')", "writefile('x', 'y')", "random()", "current_timestamp",
                 "printf('%99999999d', 1)", "zeroblob(1000000000)", "sum(pes)", "sqlite_version()", "randomblob(9)"):
        name = text.partition("(")[0]
        refuses(f"a function is no part of expressions: {text}", name, derive="{ x: " + json.dumps(text) + " }")
    for text in ("1; DROP TABLE point", "1); ATTACH 'x' AS y; SELECT (1", "1) FROM gemm --", "1) /*", "(1", "1)", "1), (2",
                 "(SELECT 1)", "(SELECT max(name) FROM sqlite_master)", "pes IN (SELECT 1)", "EXISTS (SELECT 1)", "?1", ":a",
                 "(WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t)",
                 "1) UNION ALL SELECT (2", "pes AS y", "*", "ATTACH 'x' AS y", "PRAGMA journal_mode", "rowid",
                 "(" * 300 + "1" + ")" * 300, "1 + " * 4000 + "1"):
        wrong(text, "error: derive: x: ")
    refuses("derived values that depend on one another are refused", "depends on itself",
            derive="{ a: b + 1, b: c, c: a * 2 }")
    refuses("a derived value must not have the name of a metric", "derive: 'End_ps' is a metric", derive="{ End_ps: 1 }")
    refuses("nor that of a column of stores", "'hash' is a column of every store", derive="{ hash: 1 }")
    refuses("nor that of another one", "case does not distinguish names", derive="{ a: 1, A: 2 }")
    refuses("a name with a quote is refused", "the name of a derived value must be", derive="{ 'a\"; DROP TABLE point': 1 }")
    refuses("a condition is checked as well", "where: unknown name 'aria'", where="[ 'aria < 3' ]")
    refuses("an unknown objective is refused with the nearest name",
            ["objectives: unknown name 'end_pss'", "did you mean 'end_ps'?"], objectives="{ end_pss: min }")
    ok(not os.path.exists(os.path.join(WHERE, "x")) and not os.path.exists(os.path.join(WHERE, "y")),
       "no expression has made a file")


def values():
    """Derived values of SQLite against the same in Python; what a formula may name."""
    derive = {
        "area": "pes * (0.35 + gemm.rows * gemm.cols * 2.1e-5 + tcm.size_mb * 0.45)", "later": "end_ps * area",
        "quoted": '"cube.noc.link_bw_gbs" * 2 -- a comment', "tile": "params.m + params.tile_m", "half": "tcm.size_mb / 4",
        "whole": "7 / 2", "roots": "sqrt(16) + pow(2, 3)", "nothing": "1 / 0", "open": "sram.read_bw_gbs IS NULL",
        "lanes": "lanes.f16 + cost.exp", "places": "cubes * 100 + routers + hbm_slices", "wire": "noc.pitch_mm + wire.ns_per_mm",
        "word": "ipcq.buffer || params.dtype",
    }
    lines = "".join(f"\n  {key}: {json.dumps(value)}" for key, value in derive.items())
    ended, store = search(text_of(
        space="{ cube.noc.link_bw_gbs: [128, 256], params.tile_m: [16], cube.sram.attrs.read_bw_gbs: [~] }",
        derive=lines, where="[ 'later > 0' ]", objectives="{ end_ps: min, area: max }"))
    ok(ended.returncode == 0, "a search with many derived values ends well", ended.said)
    names = ", ".join(f'"{name}"' for name in derive)
    got = rows(store, f'SELECT end_ps, "cube.noc.link_bw_gbs", {names} FROM point ORDER BY 2')
    pes = 4
    form = json.loads(run(KBGEN, "--dump", "schema").stdout)["properties"]["cube"]["properties"]["pe_template"]["properties"]
    form = form["components"]["properties"]
    gemm, tcm = form["pe_gemm"]["properties"]["attrs"]["properties"], form["pe_tcm"]["properties"]["attrs"]["properties"]
    math = form["pe_math"]["properties"]["attrs"]["properties"]
    lanes = math["lanes"]["default"]["f16"] + math["cost"]["default"]["exp"]
    side, size = (gemm["rows"]["default"], gemm["cols"]["default"]), tcm["size_mb"]["default"]
    area = pes * (0.35 + side[0] * side[1] * 2.1e-5 + size * 0.45)
    good = len(got) == 2
    for row, bandwidth in zip(got, (128, 256)):
        want = (area, row[0] * area, bandwidth * 2.0, 64 + 16, size / 4, 3, 12.0, None, 1, lanes, 200 + 8 + 4, 2.01)
        same = all(a == b or (isinstance(a, float) and abs(a - b) <= 1e-12 * abs(b)) for a, b in zip(row[2:], want))
        good &= same and row[1] == bandwidth and row[-1] == "tcmf16"
    ok(good, "derived values are those of the machine, its parameters and its run", got)
    ended, store = search(text_of(where="[ 'noc.link_bw_gbs < 200', '1 / (noc.link_bw_gbs - 128)' ]"))
    got = rows(store, "SELECT status, why FROM trial ORDER BY number")
    ok(got == [("infeasible", "where: 1 / (noc.link_bw_gbs - 128)"), ("infeasible", "where: noc.link_bw_gbs < 200")]
       and rows(store, "SELECT count(*) FROM point") == [(0,)],
       "a condition without a value is not met; what keys alone decide is not run", got)


# ---- levels and machines

def levels():
    """The levels of ranges, as stored."""
    for space, want in (("{ cube.noc.link_bw_gbs: { from: 0.1, to: 0.5, step: 0.1 } }", [0.1, 0.2, 0.3, 0.4, 0.5]),
                        ("{ cube.noc.link_bw_gbs: { from: 64, to: 500, step: 200 } }", [64, 264, 464]),
                        ("{ params.m: { from: 16, to: 100, scale: log2 } }", [16, 32, 64]),
                        ("{ params.m: { from: 1, to: 64, count: 4, scale: log } }", [1, 4, 16, 64]),
                        ("{ params.m: { from: 1, to: 6, count: 3 } }", [1, 4, 6]),
                        ("{ cube.noc.link_bw_gbs: { from: 1, to: 2, count: 3 } }", [1, 1.5, 2])):
        key = space.split()[1].rstrip(":")
        _, store = search(text_of(space=space, params="{ k: 64, n: 64 }"))
        with sqlite3.connect(store) as db:
            got = [float(row[0]) for row in db.execute(
                f'SELECT "{key}" FROM trial JOIN point USING(hash) ORDER BY number')] if os.path.exists(store) else None
        ok(got == want, f"levels of {space}", got)


def same_machine():
    """What makes the same machine and run is one point."""
    for title, changes, points in (
            ("numbers that round to the same", {"space": "{ system.wire.ns_per_mm: [0.1, 0.10000001] }"}, 1),
            ("a name", {"space": "{ system.name: [a, b] }"}, 1),
            ("a default that is given", {"space": "{ params.tile_m: [0] }"}, 1),
            ("sizes in different units", {"bench": "layer", "params": "{ tokens: 1 }", "space": "{ params.tile: [4096, 5 KiB] }"}, 2)):
        ended, store = search(text_of(**changes))
        ok(ended.returncode == 0 and rows(store, "SELECT count(*) FROM point") == [(points,)], f"{title}: {points} in the store",
           ended.said)
    _, store = search(text_of(space="{ params.tile_m: [8, 64, 128, 4096] }"), name="tiles")
    search(text_of(space="{ params.tile_m: [4096, 8192] }"), name="more", into=store)
    got = rows(store, "SELECT count(*), count(DISTINCT point.hash) FROM trial JOIN point USING(hash)")
    alone = rows(store, "SELECT count(*) FROM point")
    ok(got == [(6, 2)] and alone == [(2,)], "tiles larger than the matrix are one point, in another search as well", got, alone)
    store = os.path.join(WHERE, "shared.db")
    if os.path.exists(store):
        os.remove(store)
    texts = [text_of(space="{ params.tile_m: [0] }"), text_of(space="{ cube.noc.link_bw_gbs: [256 GB/s] }")]
    topology = write(os.path.join(WHERE, "with.yaml"), "include: small.yaml\ncube: { noc: { link_bw_gbs: 256 } }\n")
    texts[0] = texts[0].replace("small.yaml", os.path.basename(topology))
    for number, text in enumerate(texts):
        write(os.path.join(WHERE, f"shared{number}.yaml"), text)
        run(KBGEN, "search", f"shared{number}.yaml", "-o", store, cwd=WHERE)
    ok(rows(store, "SELECT count(*) FROM point") == [(1,)] and rows(store, "SELECT count(*) FROM trial") == [(2,)],
       "two spaces that give the same machine and run share its point", rows(store, "SELECT * FROM point"))


def machines():
    """Points of several structures, against simulators built with --set; refused ones are rows."""
    space = f"""
  sip.cubes.cols: [1, 2]
  cube.memory_map.hbm_slices_per_cube: [2, 4]
  {PE}pe_tcm.attrs.reserved_mb: [1, 64]
  cube.m_cpu.at: [[0, 0], [0, 1]]
  {PE}pe_math.attrs.cost.exp: [3]
"""
    ended, store = search(text_of(space=space))
    got = rows(store, 'SELECT status, count(*), count(DISTINCT structure) FROM point GROUP BY 1 ORDER BY 1')
    ok(ended.returncode == 0 and got == [("ok", 8, 8), ("refused", 8, 0)],
       "eight machines of eight structures run, and eight that kbgen refuses are rows", got, ended.said)
    why = rows(store, "SELECT DISTINCT why FROM point WHERE status = 'refused'")
    ok(len(why) == 1 and "67108864 bytes are more than" in why[0][0] and "error:" not in ended.stderr,
       "a refused machine has kbgen's message, which is not printed", why, ended.said)
    sets = ["sip.cubes.cols=1", "cube.memory_map.hbm_slices_per_cube=4", PE + "pe_tcm.attrs.reserved_mb=1",
            "cube.m_cpu.at=[0, 1]"]
    program = simulator(os.path.join(WHERE, "small.yaml"), "built", settings=sets)
    want = json.loads(run(program, "run", "gemm", "m=64", "k=64", "n=64", "--data", "off", "--json", "-").stdout)["end_ps"]
    got = rows(store, 'SELECT end_ps FROM point WHERE status = \'ok\' AND "sip.cubes.cols" = 1 AND '
                      '"cube.memory_map.hbm_slices_per_cube" = 4 AND "cube.m_cpu.at" = \'[0, 1]\'')
    ok(got == [(want,)], "a point's time is that of a simulator built with the same keys", got, want)


def main():
    keys_of_the_file()
    keys_of_the_space()
    methods()
    schema()
    wrong_expressions()
    if SAN:
        return
    values()
    levels()
    same_machine()
    machines()


suite(main)
