#!/usr/bin/python3
"""bench: what `make bench` prints and writes of its rows, without peers and of wrong words. plain build only

No measured time is compared with anything.
"""
import json
import os
import re
import shutil

from harness import ROOT, folder, make, ok, read, run, scratch, suite, write

NOWHERE = "SHARED=" + scratch("nowhere")


def table(said):
    """The names of the rows, as printed."""
    return re.findall(r"^([a-z0-9-]+) .* (?:met|missed|-) {2,}\S", said, re.M)


def own_rows():
    copy = scratch("table.json")
    ended = make("bench", "ROW=memory numbers", "PAIRS=1", "JSON=" + copy)
    ok(ended.returncode == 0, "make bench measures two rows and ends with status 0", ended.said)
    ok(table(ended.stdout) == ["numbers", "memory"], "make bench prints its rows in the order of the table", ended.said)
    ok(re.search(r"cores, load [\d. ]+; .*; commit ", ended.stdout) and "load at the end" in ended.stdout,
       "make bench tells the machine, its load, the compiler and the commit", ended.said)
    ok(re.search(r"^memory +[\d.]+ MiB +<= 32 MiB +(met|missed) ", ended.stdout, re.M),
       "a row of the bench has the figure, the goal and whether it is met", ended.said)
    written = json.loads(read(copy) or "{}")
    rows = {row["row"]: row for row in written.get("rows", [])}
    ok(sorted(rows) == ["memory", "numbers"] and rows["memory"]["info_kib"] > 0 and written["pairs"] == 1,
       "JSON=FILE has the same rows", written)


def without_peers():
    ended = make("bench", "ROW=memory systemc", "PAIRS=1", NOWHERE)
    ok(ended.returncode == 0 and table(ended.stdout) == ["memory"],
       "without peers make bench prints the rows that need none", ended.said)
    ok(re.search(r"^bench: no peers in .*nowhere/peers: ", ended.stderr, re.M),
       "without peers make bench says where it looked for them", ended.said)
    ended = make("bench", "ROW=pe1", NOWHERE)
    ok(ended.returncode != 0 and table(ended.stdout) == [], "make bench fails if no row could be measured", ended.said)


def wrong_end():
    """Peers whose input is said to end at another time: the row says both times, before any peer is run."""
    inputs = folder("shared", "peers", "inputs")
    case = os.path.join(ROOT, "tests", "conformance", "launch_barrier")
    shutil.rmtree(os.path.join(inputs, "pe1"), ignore_errors=True)
    shutil.copytree(case, os.path.join(inputs, "pe1"))
    write(os.path.join(inputs, "expected.json"), json.dumps({"pe1": {"end_ps": 1, "services": 0}}))
    ended = make("bench", "ROW=systemc-pe1", "PAIRS=1", "SHARED=" + folder("shared"))
    end = json.loads(read(os.path.join(case, "expected.json")))["end_ps"]
    ok(ended.returncode != 0 and re.search(rf"^systemc-pe1 +ENDS DIFFER .* pe1: end_ps: {end} here, 1 there$",
                                           ended.stdout, re.M),
       "a peer that ends at another simulated time fails its row, which has both times", ended.said)


def wrong_words():
    ended = make("bench", "ROW=memroy")
    ok(ended.returncode == 2 and re.search(r"^bench: no row 'memroy'; there are: simpy-pe1 .* memory ", ended.stderr,
                                           re.M | re.S), "a row that does not exist is refused with a list", ended.said)
    ended = make("bench", "ROW=memory", "JSON=" + scratch("nowhere/table.json"))
    ok(ended.returncode == 2 and "nowhere/table.json: there is no such folder" in ended.stderr,
       "JSON=FILE in a folder that does not exist is refused before anything is measured", ended.said)
    ended = make("bench", "PAIRS=0")
    ok(ended.returncode == 2 and "bench: PAIRS is a number of pairs" in ended.stderr, "PAIRS=0 is refused", ended.said)


def the_history():
    """Lines that are appended by `make bench HISTORY=1`, and a plot that is made from them."""
    lines = [json.loads(line) for line in read(os.path.join(ROOT, "bench", "history.jsonl")).splitlines()]
    wrong = [line for line in lines if sorted(line) != ["commit", "date", "figure", "row", "unit"]]
    ok(lines and not wrong, "each line of bench/history.jsonl has commit, date, row, figure and unit", *wrong)
    drawn = run(os.path.join(ROOT, "tests", "bench", "history.py"), "-")
    ok(drawn.stdout == read(os.path.join(ROOT, "docs", "speed.svg")), "docs/speed.svg is the plot of bench/history.jsonl",
       drawn.said[:400])
    unknown = run(os.path.join(ROOT, "tests", "bench", "bench.py"), "none").stderr
    names = sorted({line["row"] for line in lines if line["row"] not in unknown})
    ok(not names, "each row of bench/history.jsonl is a row of the bench", *names)


suite(own_rows, without_peers, wrong_end, wrong_words, the_history)
