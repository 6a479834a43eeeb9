#!/usr/bin/python3
"""search_page: the report page of a search: its data, its policy, its bounds; and how it works in a browser, where there
is one. Screenshots go to build/page/. limit: 120
"""
import base64
import hashlib
import json
import math
import os
import random
import re

from harness import KBGEN, SAN, SMALL, done, in_browser, ok, read, run, scratch
from stores import GEMM_ROWS, LINK, TILE, hash_of, kept, make_store

HOSTILE = "</script><img id=injected src=x onerror=alert(1)><!--"
COLS, SLICE, ROWS = ("cube.pe_template.components.pe_gemm.attrs.cols", "cube.hbm_ctrl.attrs.row_miss_ns", "sip.cubes.rows")
AXES = (LINK, GEMM_ROWS, COLS, SLICE, ROWS, TILE)


def points_of(count, seed=5):
    """Points of a made-up machine, in which all keys but the last two matter."""
    draw, points = random.Random(seed), []
    for number in range(count):
        values = {LINK: draw.choice([128, 256, 512, 1024]), GEMM_ROWS: draw.choice([16, 32, 64, 128]), COLS: draw.choice([16, 32, 64, 128]),
                  SLICE: round(draw.uniform(0, 40), 2), ROWS: draw.choice([1, 2, 4]), TILE: draw.choice(["~", 64, 128, 256])}
        area = values[ROWS] * 16 * (0.35 + values[GEMM_ROWS] * values[COLS] * 2.1e-4) + values[LINK] * 0.02
        end = int(4e8 / values[ROWS] * (60 / values[GEMM_ROWS] + 60 / values[COLS] + 100 / values[LINK] + 0.3) * draw.uniform(0.95, 1.1))
        point = {"number": number, "values": values | {"area_mm2": area, "end_ps": end, "events": end // 1000, "cost": area * end}, "infeasible": area > 150}
        failure = draw.random()
        if failure < 0.05:
            status = "refused" if failure < 0.03 else "deadlock"
            point |= {"values": values, "status": status, "why": f"{status} {HOSTILE}", "infeasible": False}
        points.append(point)
    return points


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def hashes(page, element):
    texts = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
    return ["'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in texts]


def report(store, name, *options):
    page = scratch(name)
    ended = run(KBGEN, "report", store, "-o", page, *options)
    ok(ended.returncode == 0 and not ended.said.split("\n", 1)[1].strip(), f"report writes {name}, and says nothing", ended.said)
    return page


def test_data(store, points):
    page = report(store, "search.html")
    text = read(page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    ok(policy == f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; connect-src 'none'; style-src {hashes(text, 'style')[0]}; script-src {hashes(text, 'script')[0]}",
       "the policy of the page allows its own style and script, by their hashes, and nothing else", policy)
    markup = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S)
    ok(not re.search(r"\s(on\w+|style|src)=|<link|<iframe|<object|url\(", markup) and "http" not in markup.replace("http-equiv", ""),
       "the markup has no handlers, no inline styles, and refers to nothing outside")
    data = data_of(text)
    columns = {column["name"]: column["values"] for column in data["columns"]}
    ok(all(columns[name] == [point["values"].get(name) for point in points] for name in (*AXES, "end_ps", "area_mm2", "events")) and data["points"]["hash"] == [hash_of(point["number"]) for point in points],
       "the page has the values of all points, by trial")
    front = json.loads(run(KBGEN, "front", store, "--json", "--ties").stdout)
    ok({hash_ for hash_, on in zip(data["points"]["hash"], data["points"]["front"]) if on} == {row["hash"] for row in front["front"]}
       and data["counts"]["front"] == len(front["front"]), "its front is that of kbgen front")
    counts = data["counts"]
    ok((counts["points"], counts["failed"], counts["infeasible"]) == (front["points"], front["failed"], front["infeasible"]), "so are its counts", counts)
    reasons = {(one["status"], one["count"]) for one in data["failures"]}
    ok(reasons == {(status, sum(point.get("status") == status for point in points)) for status in ("refused", "deadlock")} | {("infeasible", front["infeasible"])},
       "failures are counted by reason", data["failures"])
    return page


def test_bounds():
    points = points_of(3000)
    store = make_store(scratch("bounded.db"), points, axes=AXES, topology=kept(SMALL))
    data = data_of(read(report(store, "bounded.html", "--points", "500")))
    front = json.loads(run(KBGEN, "front", store, "--json", "--ties").stdout)["front"]
    least = sorted(hash_of(point["number"]) for point in points)[:500]
    ok(set(data["points"]["hash"]) == set(least) | {row["hash"] for row in front} and data["counts"]["points"] == 3000 and sum(data["points"]["front"]) == len(front),
       "a page of fewer points has the whole front, and others by their hashes; counts are of all")
    make_store(scratch("empty.db"), [], axes=AXES, topology=kept(SMALL))
    report(scratch("empty.db"), "empty.html")
    for words, message in (((store,), "report needs -o FILE.html"), ((store, "-o", store), "would be overwritten"), ((store, "-o", "x", "--points", "0"), "--points takes a number"),
                           (("no.db", "-o", "x"), "cannot read no.db"), ((make_store(scratch("bare.db"), points[:3]), "-o", scratch("x")), "has no topology")):
        ended = run(KBGEN, "report", *words)
        ok(ended.returncode == 2 and message in ended.stderr and not os.path.exists(scratch("x")), f"report {' '.join(map(os.path.basename, words))}: {message}", ended.said)


def effect(points, key, name):
    """The share of a figure's variance that lies between the levels of a key; of its logarithm, as it spans a decade."""
    good = [(point["values"][key], math.log(point["values"][name])) for point in points if "status" not in point and not point["infeasible"]]
    mean = sum(value for _, value in good) / len(good)
    groups = {}
    for level, value in good:
        groups.setdefault(level, []).append(value)
    return sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values()) / sum((value - mean) ** 2 for _, value in good)


def main():
    points = points_of(800)
    store = make_store(scratch("it's a search.db"), points, axes=AXES, topology=kept(SMALL), derive=("area_mm2", "cost"))
    page = test_data(store, points)
    test_bounds()
    hostile = make_store(scratch("hostile.db"), [{"number": i, "values": {"end_ps": i + 1, HOSTILE: i * 2 % 7, LINK: HOSTILE if i % 2 else "~"}} for i in range(9)],
                         derive=[HOSTILE], objectives=[("end_ps", "min"), (HOSTILE, "max")], topology=kept(SMALL))
    single = make_store(scratch("single.db"), points[:200], axes=AXES, topology=kept(SMALL), objectives=[("end_ps", "min")])
    large = make_store(scratch("large.db"), points_of(20000, 6), axes=AXES, topology=kept(SMALL))
    pages = [page, report(hostile, "hostile.html"), report(single, "single.html"), scratch("empty.html"), report(large, "large.html")]
    ok(os.path.getsize(pages[-1]) < 4 << 20, "a page of 20,000 points takes less than 4 MiB", os.path.getsize(pages[-1]))
    if not SAN:
        worth = {key: effect(points, key, "end_ps") for key in (ROWS, GEMM_ROWS, LINK)}
        whole = scratch("whole.yaml")
        first = json.loads(run(KBGEN, "front", store, "--json").stdout)["front"][0]["hash"]
        run(KBGEN, "point", store, first, "-o", whole)
        in_browser("search.mjs", 30, *pages, json.dumps({"worth": worth, "topology": re.sub(r"(?m)^#.*\n", "", read(whole)), "hash": first}))


main()
done()
