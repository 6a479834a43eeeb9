#!/usr/bin/python3
"""front: the best points of a store: the front against its definition, ties, failed and infeasible points, all forms of
output, stores that are none; and kbgen point, which writes a machine back.
"""
import csv
import io
import json
import os
import random
import re
import struct
import sys

from harness import KBGEN, SMALL, done, ok, read_bytes, remove, run, scratch, simulator, write
from stores import GEMM_ROWS, LINK, TILE, kept, make_store


def front(path, *options):
    """The front as JSON tells it."""
    ended = run(KBGEN, "front", path, "--json", *options)
    return json.loads(ended.stdout) if ended.returncode == 0 else ended.said


def dominates(a, b):
    return all(x <= y for x, y in zip(a, b)) and a != b


def best(vectors):
    """The indices on the front, by its definition."""
    return {i for i, one in enumerate(vectors) if not any(dominates(other, one) for other in vectors)}


def read_npy(path):
    """The names, formats and rows of a structured array of NumPy."""
    data = read_bytes(path)
    [length] = struct.unpack("<I", data[8:12])
    header = eval(data[12:12 + length], {}, {})         # a literal of Python, by its definition
    codes = "".join(kind.strip("|<").replace("i8", "q").replace("f8", "d") if kind[0] == "<" else kind[2:] + "s" for _, kind in header["descr"])
    rows = [*struct.iter_unpack("<" + codes, data[12 + length:])]
    return data[:8], (12 + length) % 64, header, rows


def test_fronts():
    draw = random.Random(7)
    for objectives in (2, 3, 4):
        points = []
        for i in range(400):
            vector = [draw.randrange(12) for _ in range(objectives)]    # few values: many ties in one objective, and equal points
            points.append({"number": i, "values": dict(zip(("end_ps", "area_mm2", "cost", "events"), vector)),
                           "status": "deadlock" if i % 13 == 0 else "ok", "infeasible": i % 17 == 0})
        names = ("end_ps", "area_mm2", "cost", "events")[:objectives]
        path = make_store(scratch(f"front{objectives}.db"), points, objectives=[(name, "min") for name in names])
        good = [point for point in points if point["status"] == "ok" and not point["infeasible"]]
        vectors = [tuple(point["values"][name] for name in names) for point in good]
        want = sorted((*vectors[i], good[i]["number"]) for i in best(vectors))
        found = front(path, "--ties")
        got = [(*(row[name] for name in names), row["trial"]) for row in found["front"]]
        ok(got == want, f"with {objectives} objectives the front is what no point dominates, ties by trial", want, got)
        ok(found["points"] == 400 and found["failed"] == 31 and found["infeasible"] == 22, "failed and infeasible points are counted, and left out",
           *(found[key] for key in ("points", "failed", "infeasible")))
        grouped = front(path)["front"]
        ok([(*(row[name] for name in names), row["points"]) for row in grouped]
           == [(*vector, vectors.count(vector)) for vector in sorted({vectors[i] for i in best(vectors)})],
           "without --ties, points of equal objectives are one row, which says how many they are")
        ok(all(row["trial"] == min(point["number"] for point, vector in zip(good, vectors) if vector == tuple(row[name] for name in names))
               for row in grouped), "that row is the first trial's")


def test_one_objective():
    big = 2**62
    points = [{"number": i, "values": {"end_ps": big + (50 - i) % 51, "area_mm2": [1.5, None, "wide"][i % 3]}} for i in range(51)]
    path = make_store(scratch("one.db"), points, objectives=[("end_ps", "min")])
    found = front(path)["front"]
    ok([row["end_ps"] for row in found] == [big + i for i in range(10)], "one objective: the ten best, exactly above 2^53", found)
    ok([row["end_ps"] for row in front(path, "--rows", "3", "--objective", "end_ps:max")["front"]] == [big + 50 - i for i in range(3)],
       "--objective and --rows replace what is asked for")
    found = front(path, "--objective", "area_mm2:min", "--objective", "end_ps:min")
    ok(found["without"] == 34 and len(found["front"]) == 1, "a point whose objective is no number is not on the front, and counted", found)


def test_forms(path, points):
    """A table, CSV, JSON and an array say the same."""
    found = front(path)["front"]
    text = run(KBGEN, "front", path, "--csv").stdout
    rows = [*csv.DictReader(io.StringIO(text))]
    ok([{name: str(value) for name, value in row.items()} for row in found] == rows, "--csv has the rows of --json", found[0], rows[0])
    table = run(KBGEN, "front", path)
    lines = table.stdout.splitlines()
    ok(lines[0].split()[:3] == ["hash", "end_ps", "area_mm2"] and "gemm.rows" in lines[0] and len(lines) == len(found) + 1
       and [line.split()[1] for line in lines[1:]] == [str(row["end_ps"]) for row in found] and len({len(line) for line in lines}) == 1,
       "the table has the objectives and the keys that differ, right-aligned", *lines[:3])
    ok(f"{len(found)} on the front of {len(points)} points; 3 failed; 2 infeasible" in table.stderr, "it says what it was made of", table.stderr)
    run(KBGEN, "front", path, "--npy", scratch("front.npy"))
    magic, rest, header, records = read_npy(scratch("front.npy"))
    names = [name for name, _ in header["descr"]]
    ok(magic == b"\x93NUMPY\x02\x00" and rest == 0 and header["shape"] == (len(found),)
       and [[field.decode() if isinstance(field, bytes) else field for field in record] for record in records] == [[row[name] for name in names] for row in found],
       "--npy has them as a structured array", header, records[:1])
    every = front(path, "--all")["all"]
    ok([row["trial"] for row in every] == list(range(len(points))) and sum(row["status"] == "infeasible" for row in every) == 2
       and sum(row["status"] == "deadlock" and row["why"] == "all wait" and row["end_ps"] is None for row in every) == 3,
       "--all has each point that has run, with its status, by trial")
    run(KBGEN, "front", path, "--all", "--npy", scratch("all.npy"))
    *_, header, records = read_npy(scratch("all.npy"))
    kinds = dict(header["descr"])
    at = [name for name, _ in header["descr"]].index("end_ps")
    ok(len(records) == len(points) and kinds["end_ps"] == "<f8" and kinds[GEMM_ROWS] == "<i8" and kinds["status"] == "|S10"
       and sum(record[at] != record[at] for record in records) == 3, "a missing number is NaN", kinds)
    ended = run(KBGEN, "front", path, "--columns", "end_ps,hash", "--csv", "-o", scratch("two.csv"))
    ok(ended.stdout == "" and read_bytes(scratch("two.csv")).decode().splitlines()[0] == "end_ps,hash", "--columns and -o", ended.said)


def test_refusals(path):
    remove(scratch("empty.db"))
    write(scratch("text.db"), "this is no database, whatever its name says it is")
    write(scratch("empty.db"), "")
    make_store(scratch("old.db"), [], version=99)
    make_store(scratch("other.db"), [], application=1)
    make_store(scratch("none.db"), None)
    make_store(scratch("about.db"), [], about="{")
    data = read_bytes(path)
    write(scratch("cut.db"), data[:len(data) // 2])
    rows = (
        ((scratch("no.db"),), 2, "cannot read .*no.db: No such file"), ((scratch("text.db"),), 2, "is not a store of kbgen search: it is no SQLite file"),
        ((scratch("empty.db"),), 2, "is not a store of kbgen search: it is empty"), ((scratch("old.db"),), 2, "version 99; this kbgen reads versions up to 2"),
        ((scratch("other.db"),), 2, "it is a SQLite file of another program"), ((scratch("none.db"),), 2, "has no search yet"),
        ((scratch("about.db"),), 2, "`about` of search 1 is no JSON"), ((scratch("cut.db"),), 2, "is damaged: "),
        ((path, "--search", "7"), 2, "has no search 7"), ((path, "--search", "x"), 2, "--search takes the number"),
        ((path, "--objective", "end_p:min"), 2, "--objective: points have no 'end_p'; did you mean 'end_ps'"),
        ((path, "--objective", "end_ps"), 2, "--objective takes NAME:min or NAME:max"), ((path, "--columns", "zz"), 2, "points have no 'zz'; they have hash, "),
        ((path, "--csv", "--json"), 2, "one of --csv, --json and --npy"), ((path, "--rows", "0"), 2, "--rows takes a number"),
        ((path, "--all", "--ties"), 2, "it takes no --objective and no --ties"), ((path, "-o", path), 2, "would be overwritten"),
        ((), 2, "front takes a store"), ((path, "-o", "/proc/no/x"), 3, "/proc/no"),
    )
    for words, status, message in rows:
        ended = run(KBGEN, "front", *words)
        ok(ended.returncode == status and re.search(message, ended.stderr) and not ended.stdout,
           f"front {' '.join(os.path.basename(word) for word in words)}: {message}", ended.said)


def test_hostile():
    name = 'a"b, <i>\x1b[31m'
    points = [{"number": i, "values": {"end_ps": i, name: "x\n\"'; DROP TABLE point;\x1b[2J"}} for i in range(3)]
    path = make_store(scratch("hostile.db"), points, derive=[name], objectives=[("end_ps", "min"), (name, "max")])
    ended = run(KBGEN, "front", path, "--objective", "end_ps:min", "--columns", f"end_ps,{name}")
    ok(ended.returncode == 2 and "\x1b" not in ended.stderr, "a name with a comma is none of --columns; what is said has no control characters", ended.said)
    for form in ("--csv", "--json"):
        ended = run(KBGEN, "front", path, "--all", form)
        cell = [*csv.DictReader(io.StringIO(ended.stdout))][0][name] if form == "--csv" else None
        ok(ended.returncode == 0 and (cell == points[0]["values"][name] if cell else len(json.loads(ended.stdout)["all"]) == 3), f"{form} quotes names and texts", ended.said)
    ended = run(KBGEN, "front", path, "--objective", "end_ps:min")
    ok(ended.returncode == 0 and "\x1b" not in ended.stdout + ended.stderr, "a table shows no control characters", ended.said)


def test_fidelity():
    points = [{"number": i, "values": {"end_ps": 100 - i, TILE: 64 if i % 2 else 128}} for i in range(20)]
    found = front(make_store(scratch("halving.db"), points, objectives=[("end_ps", "min")], fidelity={"name": TILE, "value": "128"}))
    ok([row["end_ps"] for row in found["front"]] == list(range(82, 101, 2)) and found["partial"] == 10, "points below the last fidelity are no results", found)


def test_killed():
    """A search that is killed leaves a log, which belongs to its store."""
    path = scratch("killed.db")
    make_store(path, [{"number": 1, "values": {"end_ps": 9}}], objectives=[("end_ps", "min")])
    code = f"import os, sqlite3; s = sqlite3.connect({path!r}); s.execute('UPDATE point SET end_ps = 7'); s.commit(); os.kill(os.getpid(), 9)"
    run(sys.executable, "-c", code)
    ok(os.path.getsize(path + "-wal") > 0 and front(path)["front"][0]["end_ps"] == 7, "what a killed search has left in its log is read", os.listdir(os.path.dirname(path)))


def test_size():
    draw = random.Random(3)
    points = [{"number": i, "values": {"end_ps": draw.randrange(10**12), "area_mm2": draw.random()}} for i in range(100000)]
    path = make_store(scratch("large.db"), points)
    before = os.times()
    ended = run(KBGEN, "front", path)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    ok(ended.returncode == 0 and cpu < 1, "100,000 points take less than a second", f"{cpu} s")


def test_points():
    """What kbgen point writes is the machine that the same --set options make, under the same hash."""
    values = {LINK: 96, GEMM_ROWS: 8, TILE: 64, "cube.hbm_ctrl.attrs.row_miss_ns": "3.5 ns", "cube.pe_template.attrs.unused": None, "end_ps": 5, "area_mm2": 1.5}
    axes = [name for name in values if "." in name]
    points = [{"number": 3, "values": values, "hash": "ab" + 30 * "0"}, {"number": 4, "values": values | {LINK: 128.5}, "hash": "ac" + 30 * "0"},
              {"number": 5, "values": values | {TILE: "it's"}, "hash": "cc" + 30 * "0", "status": "refused", "why": "too\nlarge"}]
    path = make_store(scratch("points.db"), points, axes=axes, topology=kept(SMALL, ["cube.pe_template.components.pe_gemm.attrs.cols=16", "system.name=it"]),
                      workloads=[{"name": "one", "bench": "gemm", "params": {"m": 64, "k": 64, "n": 64}, "weight": 1, "axes": [TILE]},
                                 {"name": "two", "replay": "a b.yaml", "weight": 2, "axes": []}])
    written = scratch("written.yaml")
    ended = run(KBGEN, "point", path, "ab", "-o", written)
    lines = ended.stdout.splitlines()
    ok(ended.returncode == 0 and lines == [
        f"point ab{30 * '0'}: trial 3 of search 1; ok; end_ps 5, area_mm2 1.5", f"kbgen {written} -o build/written",
        "build/written run gemm m=64 k=64 n=64 tile_m=64", "build/written run gemm m=64 k=64 n=64 tile_m=64 --report written-one.html",
        "build/written replay 'a b.yaml'", "build/written replay 'a b.yaml' --report written-two.html"],
       "point tells what the point is, and the commands that build it, run it and make its reports", ended.said)
    sets = (f"{LINK}=96", f"{GEMM_ROWS}=8", "cube.hbm_ctrl.attrs.row_miss_ns=3.5 ns", "cube.pe_template.components.pe_gemm.attrs.cols=16", "system.name=it")
    ours, theirs = (run(simulator(file, name, settings=settings), "info").stdout for file, name, settings in ((written, "ours", ()), (SMALL, "theirs", sets)))
    ok("topology" in ours and ours == theirs, "its topology is the machine that --set makes, hash included", ours, theirs)
    printed_out = run(KBGEN, "point", path, "AC").stdout
    ok("# kbgen point-ac0000000000.yaml -o build/point-ac0000000000" in printed_out and "link_bw_gbs: 128.5" in printed_out,
       "without -o the topology is printed, with the commands as comments; digits may be capitals", printed_out[:600])
    refused = run(KBGEN, "point", path, "cc")
    ok("; refused: too?large;" in refused.stdout and "'tile_m=it'\\''s'" in refused.stdout, "a refused point is written as well; words are quoted for the shell", refused.stdout[:600])
    for words, message in (((path, "a"), "several points of .* begin with a: ab0*, ac0*$"), ((path, "f"), "no point whose hash begins with f"), ((path, "xy"), "'xy' is no hash"),
                           ((path,), "point takes a store and a hash"), ((path, "ab", "--search", "2"), "has no search 2"), ((path, "ab", "-o", path), "would be overwritten"),
                           ((make_store(scratch("bare.db"), points), "ab"), "has no topology")):
        ended = run(KBGEN, "point", *words)
        ok(ended.returncode == 2 and re.search(message, ended.stderr, re.M) and not ended.stdout, f"point {' '.join(map(os.path.basename, words))}: {message}", ended.said)


def test_help():
    for name in ("search", "front", "point", "report"):
        ended = run(KBGEN, name, "--help")
        ok(ended.returncode == 0 and ended.stdout.startswith(f"usage: kbgen {name} ") and "Exit status: 0 good" in ended.stdout
           and "\n\n\n" not in ended.stdout, f"{name} --help shows the usage and the exit statuses", ended.said)
        options = re.findall(r"^  -.*", ended.stdout, re.M)
        run_together = [line for line in options if not re.search(r"^  (-\w, )?--[a-z-]+( \S+)*  +\S", line)]
        ok(len(options) > 1 and not run_together, f"{name} --help has a gap between each option and what it does", *run_together)


def main():
    test_help()
    test_fronts()
    test_one_objective()
    points = [{"number": i, "values": {"end_ps": None if i % 20 == 5 else 1000 - 7 * i, "area_mm2": 0.1 + i * 3, GEMM_ROWS: 8 + i,
                                          LINK: 64 << i % 4, TILE: "~", "events": i, "cost": i / 7}, "infeasible": i in (1, 2),
               **({"status": "deadlock", "why": "all wait"} if i % 20 == 5 else {})} for i in range(60)]
    path = make_store(scratch("forms.db"), points)
    test_forms(path, points)
    test_refusals(path)
    test_hostile()
    test_fidelity()
    test_killed()
    test_size()
    test_points()


main()
done()
