#!/usr/bin/python3
"""plans: generators of plans of users: the built-in plan again, another one, wrong ones; --dump plan. limit: 200"""
import json
import os
import re

from harness import GEMM, KBGEN, Replay, ROOT, SMALL, Broken, first_difference, normal, ok, options_of, read, run, scratch
from harness import simulator, suite, without_host, write

PLANS = {"same_plan": os.path.join(ROOT, "tests", "impl"), "wrong_plan": os.path.join(ROOT, "tests", "impl"),
         "columns": os.path.join(ROOT, "topologies", "impl")}
CASES = ("edge_tiles", "epilogue_once", "two_composites", "math_composite", "gemm_pinned_a", "random_two_sips_mmu",
         "tile_too_large")


def planned(topology, plan):
    """The simulator of a topology whose pe_scheduler is one of PLANS, or the built-in one."""
    program = scratch(f"{plan}-{os.path.basename(os.path.dirname(topology))}")
    models = [os.path.join(PLANS[plan], plan + ".c")] if plan else []
    impl = ["cube.pe_template.components.pe_scheduler.impl=" + plan] if plan else []
    made = run(KBGEN, topology, "-o", program, *options_of(settings=impl, impls=models))
    if made.returncode:
        raise Broken(made.said)
    return program


def same():
    for case in CASES:
        where = os.path.join(ROOT, "tests", "conformance", case)
        got = Replay(planned(os.path.join(where, "topo.yaml"), "same_plan"), os.path.join(where, "stream.yaml"),
                     scratch(case))
        want = normal(read(os.path.join(where, "expected.json")))
        ok(normal(got.result) == want and got.trace == read(os.path.join(where, "trace.jsonl")),
           f"a generator that repeats the built-in plan gives the times of {case}",
           first_difference(read(os.path.join(where, "trace.jsonl")), got.trace), got.said)


def dumped(program, trace):
    """The plans that a GEMM prints and its trace, which has to go through their stages."""
    ended = run(program, "run", "gemm", *GEMM, "--dump", "plan", "--trace", trace)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    head = lines[0] if lines else {}
    tiles = lines[1:1 + head.get("tiles", 0)]
    served = {}
    for row in map(json.loads, read(trace).splitlines()):
        if row["ev"] == "engine_start" and row["node"].startswith(head["pe"] + ".") and row["cmd"] == head["cmd"]:
            served.setdefault(row["tile"], []).append((row["stage"], row["node"].rsplit(".", 1)[1]))
    plan = {tile["tile"]: list(enumerate(stage["part"] for stage in tile["stages"])) for tile in tiles}
    ok(ended.returncode == 0 and plan and served == plan and len(lines) == 1 + len(tiles),
       f"--dump plan of {os.path.basename(program)} has the stages that the run goes through", ended.said[:600])
    return head, tiles


def covers(head, tiles):
    """How often a plan has each element of the product, if all of them equally often."""
    count = {}
    for tile in tiles:
        for i in range(tile["m"][0], sum(tile["m"])):
            for j in range(tile["n"][0], sum(tile["n"])):
                for part in range(tile["k"][0], sum(tile["k"])):
                    count[i, j, part] = count.get((i, j, part), 0) + 1
    rows, depth, columns = head["size"]
    return len(count) == rows * depth * columns and set(count.values())


def dumps():
    head, tiles = dumped(planned(SMALL, ""), scratch("plain.jsonl"))
    order = [(tile["m"][0], tile["n"][0], tile["k"][0]) for tile in tiles]
    ok(head["generator"] == "builtin" and order == sorted(order) and covers(head, tiles) == {1},
       "the built-in plan is printed in the order of m, n, k, and covers the product once", head)
    program = planned(SMALL, "columns")
    head, tiles = dumped(program, scratch("columns.jsonl"))
    order = [(tile["n"][0], tile["m"][0], tile["k"][0]) for tile in tiles]
    ok(head["generator"] == "by_columns" and order == sorted(order) and covers(head, tiles) == {1}
       and tiles[0]["m"] == [0, 16] and tiles[0]["n"] == [0, 64],
       "another plan has its own tiles and order, and covers the product once", head, tiles[:2])
    ok(all(tile["buffer_bytes"] == sum(stage["bytes"] for stage in tile["stages"] if stage["stage"].startswith("DMA"))
           for tile in tiles), "the buffers of a tile hold what its DMA moves", tiles[:2])
    ended = run(program, "run", "gemm", *GEMM, "--data", "debug")
    ok(ended.returncode == 0 and "verified" in ended.stdout, "a plan does not change data", ended.said)
    bench = ("run", "gemm", "m=256", "k=128", "n=256", "tile_m=32", "tile_k=32", "tile_n=32", "--data", "off")
    results = [run(scratch("as-kernel"), *bench, "--json", "-", *words).stdout for words in ((), ("--exact-events",))
               if simulator(SMALL, "as-kernel", [os.path.join(PLANS["columns"], "columns.c")])]
    results.append(run(program, *bench, "--json", "-").stdout)
    ok(len({without_host(text) for text in results}) == 1, "a generator may be in a file of -k, and every event is simulated",
       *results)
    for words, said in ((("--dump", "model"), "--dump model: plan is needed"),
                        (("--dump", "plan", "--json", "-"), "--json and --dump cannot both go to standard output")):
        ended = run(program, "run", "gemm", *words)
        ok(ended.returncode == 2 and said in ended.stderr, f"{' '.join(words)} is refused", ended.said)


MISTAKES = (
    (1, "it has no tile"),
    (2, r"tile 0 \(rows from 0, 3 of them; columns from 0, 64; k from 0, 64\) is empty or not within 2 x 64 x 64"),
    (3, "tile 0 .* is empty or not within 3 x 64 x 64"),
    (4, r"tile 1 \(rows from 0, 4 of them; columns from 31, 33; .*\) overlaps tile 0"),
    (5, "row 0, column 32 of the result is in no tile"),
    (6, "row 5, column 0 of the result is in no tile"),
    (7, "tile 1 .* has a part of k that tiles of its output before it have"),
    (8, "tile 0 .* comes before k 0 of its output, which is in no tile before it"),
    (9, "k 63 of the output of tile 0 .* is in no tile"),
    (10, "tile 0 is another one when it is asked for again: a plan is a pure function"),
    (11, "it has more than 1048576 tiles"),
    (12, "tile 0 .* has not the part of k that the kernel asks for, 32, as an epilogue of scope k_tile needs"),
    (65536, r"tile 0 needs buffers of \d+ bytes, the scheduler's region of the TCM has \d+"),
)


def mistakes():
    program = planned(SMALL, "wrong_plan")
    for rows, said in MISTAKES:
        epilogue = ", epilogue: [ { op: relu, scope: k_tile } ]" if rows == 12 else ""
        stream = write(scratch("wrong.yaml"), f"""name: wrong
launches: [ {{ program: a, targets: [ "sip0.cube0.pe0" ] }} ]
programs:
  a: [ {{ do: composite, op: gemm, m: {rows}, k: 64, n: 64, tile: [ 32, 32, 32 ], dtype: f16, a: {{ space: hbm }},
         b: {{ space: hbm }}, c: {{ space: hbm }}{epilogue} }} ]
""")
        ended = run(program, "replay", stream)
        code = "TILE_TOO_LARGE" if rows == 65536 else "KERNEL_ERROR"
        place = r"plan wrong, [^ ]*wrong_plan\.c:\d+: "
        ok(ended.returncode == 1 and code in ended.stderr and re.search(place + said, ended.stderr),
           f"a wrong plan is a {code} with its place: {rows} rows", ended.said)


suite(same, dumps, mistakes)
