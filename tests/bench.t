#!/usr/bin/python3
"""bench: what `make bench` prints and writes for a row of its own, without peers, and what it says of wrong words.
No time is held against anything."""
import json
import os
import re
import sys

from harness import SCRATCH, done, make, ok, read

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


def wrong_words():
    ended = make("bench", "ROW=memroy")
    ok(ended.returncode == 2 and re.search(r"^bench: no row 'memroy'; there are: simpy-pe1 .* memory ", ended.stderr,
                                           re.M | re.S), "a wrong row: the names that there are", ended.said)
    ended = make("bench", "PAIRS=0")
    ok(ended.returncode == 2 and "bench: PAIRS is a number of pairs" in ended.stderr, "a wrong PAIRS", ended.said)


if os.environ.get("SAN"):
    print("1..0 # SKIP a matter of the plain build")
    sys.exit()
own_rows()
without_peers()
wrong_words()
done()
