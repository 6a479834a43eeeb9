#!/usr/bin/python3
"""bench: what `make bench` prints and writes for a row of its own, without peers, and what it says of wrong words.
No time is held against anything."""
import json
import os
import re
import shutil
import sys

from harness import ROOT, SCRATCH, done, folder, make, ok, read, write

NOWHERE = "SHARED=" + os.path.join(SCRATCH, "nowhere")


def table(said):
    """The names of the rows, as printed."""
    return re.findall(r"^([a-z0-9-]+) .* (?:met|missed|-) {2,}\S", said, re.M)


def own_rows():
    copy = os.path.join(SCRATCH, "table.json")
    ended = make("bench", "ROW=memory numbers", "PAIRS=1", "JSON=" + copy)
    ok(ended.returncode == 0, "two rows: status 0", ended.said)
    ok(table(ended.stdout) == ["numbers", "memory"], "in the order of the table", ended.said)
    ok(re.search(r"cores, load [\d. ]+; .*; commit ", ended.stdout) and "load at the end" in ended.stdout,
       "the machine, its load, compiler and commit", ended.said)
    ok(re.search(r"^memory +[\d.]+ MiB +<= 32 MiB +(met|missed) ", ended.stdout, re.M), "measured, goal, met",
       ended.said)
    written = json.loads(read(copy) or "{}")
    rows = {row["row"]: row for row in written.get("rows", [])}
    ok(sorted(rows) == ["memory", "numbers"] and rows["memory"]["info_kib"] > 0 and written["pairs"] == 1,
       "the same for machines", written)


def without_peers():
    ended = make("bench", "ROW=memory systemc", "PAIRS=1", NOWHERE)
    ok(ended.returncode == 0 and table(ended.stdout) == ["memory"], "without peers: its own rows", ended.said)
    ok(re.search(r"^bench: no peers in .*nowhere/peers: ", ended.stderr, re.M), "and it says so", ended.said)
    ended = make("bench", "ROW=pe1", NOWHERE)
    ok(ended.returncode != 0 and table(ended.stdout) == [], "no row at all is a failure", ended.said)


def wrong_end():
    """Peers whose input is said to end at another time: the row says both, before any peer is run."""
    inputs = folder("shared", "peers", "inputs")
    case = os.path.join(ROOT, "tests", "conformance", "launch_barrier")
    shutil.rmtree(os.path.join(inputs, "pe1"), ignore_errors=True)
    shutil.copytree(case, os.path.join(inputs, "pe1"))
    write(os.path.join(inputs, "expected.json"), json.dumps({"pe1": {"end_ps": 1, "services": 0}}))
    ended = make("bench", "ROW=systemc-pe1", "PAIRS=1", "SHARED=" + folder("shared"))
    end = json.loads(read(os.path.join(case, "expected.json")))["end_ps"]
    ok(ended.returncode != 0 and re.search(rf"^systemc-pe1 +ENDS DIFFER .* pe1: end_ps: {end} here, 1 there$",
                                           ended.stdout, re.M), "another end: both, and a failure", ended.said)


def wrong_words():
    ended = make("bench", "ROW=memroy")
    ok(ended.returncode == 2 and re.search(r"^bench: no row 'memroy'; there are: simpy-pe1 .* memory ", ended.stderr,
                                           re.M | re.S), "a wrong row: the names that there are", ended.said)
    ended = make("bench", "ROW=memory", "JSON=" + os.path.join(SCRATCH, "nowhere", "table.json"))
    ok(ended.returncode == 2 and "nowhere/table.json: there is no such folder" in ended.stderr,
       "a copy that cannot be written, before the work", ended.said)
    ended = make("bench", "PAIRS=0")
    ok(ended.returncode == 2 and "bench: PAIRS is a number of pairs" in ended.stderr, "a wrong PAIRS", ended.said)


if os.environ.get("SAN"):
    print("1..0 # SKIP a matter of the plain build")
    sys.exit()
own_rows()
without_peers()
wrong_end()
wrong_words()
done()
