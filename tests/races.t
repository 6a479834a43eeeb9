#!/usr/bin/python3
"""races: the race check finds each kind of race, with the lines of both operations, and none where there is order."""
import json
import os
import re

from harness import GEMM, LANES, ROOT, ok, read, result, run, scratch, small_machine, suite, write

SOURCE = os.path.join(ROOT, "tests", "kernels", "racing.c")

# what: the two operations that race, or none.
RACES = {
    "none": None, "load_use": ("dma_read", "add"), "load_wait": None, "math_store": ("add", "dma_write"),
    "math_wait": None, "reuse": ("dma_write", "dma_read"), "reuse_wait": None, "late_wait": ("dma_read", "dma_write"),
    "stores": ("dma_write", "dma_write"), "loads": None, "columns": None, "shared_column": ("dma_write", "dma_write"),
    "gemm_store": ("gemm_f32", "dma_read"), "gemm_apart": None, "after": None, "after_two": None,
    "after_one": ("dma_read", "add"), "after_fork": ("add", "dma_write"),
    "after_chain": None, "both_store": ("dma_write", "dma_write"), "both_load": None,
    "own_rows": None, "store_load": ("dma_write", "dma_read"), "told": None, "told_one": ("dma_write", "dma_read"),
    "told_early": ("dma_write", "dma_read"), "heard_late": ("dma_write", "dma_read"), "told_on": None, "reply": None,
    "no_reply": ("send", "dma_read"), "behind": None, "behind_after": None, "beside": ("recv", "dma_read"),
    "often": None, "at_once": ("dma_write", "dma_write"), "in_turn": None, "told_after": None, "told_other": ("send", "dma_read"),
    "sent_before": ("dma_write", "dma_read"), "after_recv": ("dma_read", "dma_write"),
}

# Benches of the library, small: each algorithm, each kind of buffer.
SHIPPED = [
    ("gemm", *GEMM), ("gemm", *GEMM, "bias=true", "relu=true"), ("gemm", *GEMM, "dtype=i8"),
    ("all_reduce", "size=5000"), ("all_reduce", "size=5001", "algorithm=levels", "dtype=f32"),
    ("all_reduce", "size=70000", "chunk=512", "space=sram"),
    ("all_reduce", "size=3001", "algorithm=multicast", "chunk=64"),
    ("all_gather", "size=5003", "space=tcm"), ("reduce_scatter", "size=5003", "op=max"), ("all_to_all", "size=5003"),
    ("broadcast", "size=5003", "root=2"), ("broadcast", "size=5003", "root=2", "algorithm=chain"),
    ("reduce", "size=5003", "root=1", "dtype=i8"), ("barrier",),
]


def lines_of(what):
    """The lines of the source for a parameter: from the line that asks for it to the next one that asks."""
    about, lines = False, []
    for number, line in enumerate(read(SOURCE).splitlines(), 1):
        if "is(\"" in line or line.startswith("}"):
            about = f'is("{what}")' in line
        if about or (what == "at_once" and "tl_store(tl, far, tl_alloc" in line):
            lines.append(number)
    return lines


def raced(program, what, expected, *words):
    ended, made = result(program, "racing", f"what={what}", *words)
    races = made["races"]
    if not expected:
        ok(ended.returncode == 0 and races == [] and "RACE" not in ended.stdout,
           f"no race in racing what={what} {' '.join(words)}",
           ended.said)
        return
    lines = lines_of(what)
    found = races and sorted(op["op"] for op in races[0]["ops"]) == sorted(expected)
    placed = races and all(op["line"] in lines and op["file"].endswith("racing.c") for op in races[0]["ops"])
    said = re.search(r"^RACE +(\d+) bytes from sip0\S+ on are used in no order:\n" + 2 * (
        r" +(read|written) by (\w+), command \d+ of kernel racing\w* on sip0\.cube\d\.pe\d, called at \d+ ps"
        r"(, complete at \d+ ps)?, at \S*racing\.c:\d+\n"), ended.stdout, re.M)
    ok(ended.returncode == 1 and len(races) == 1 and found and placed and said,
       f"the race in racing what={what} {' '.join(words)} is found with both lines", ended.said, lines, races)


def of_small(program):
    for what, expected in RACES.items():
        raced(program, what, expected)
    raced(program, "shared_column", RACES["shared_column"], "--data", "debug")
    raced(program, "shared_column", RACES["shared_column"], "--data", "off", "--races", "on")
    for words in (("--races", "off"), ("--data", "off")):
        ended = run(program, "run", "racing", "what=shared_column", *words)
        ok(ended.returncode == 0 and "RACE" not in ended.stdout,
           f"with {' '.join(words)} no race is looked for", ended.said)
    ended = run(program, "run", "racing", "what=shared_column", "--json", "-")
    race = json.loads(ended.stdout)["races"][0]
    first, starts = race["first"], [op["access"] for op in race["ops"]]
    ok(race["bytes"] == 4 and first == "sip0.cube0.hbm_ctrl.pe0+0x8" and starts == ["write", "write"],
       "a race has the bytes that both operations use", race)
    points = write(scratch("points"), '{"what": "stores"}\n{"what": "loads"}\n{"what": "stores"}\n')
    ended = run(program, "run", "racing", "--points", points)
    counts = [len(json.loads(line)["races"]) for line in ended.stdout.splitlines()]
    ok(ended.returncode == 1 and counts == [1, 0, 1], "each point of a sweep has its own races", ended.said)


def some(program):
    """Races are looked for among the first operations alone."""
    for count, found in ((1, 0), (12, 1)):
        ended, made = result(program, "racing", "what=stores", "--races", count)
        said = re.search(r"(?m)^races +not looked for after the first (\d+) of (\d+) operations; in all: --races on$", ended.stdout)
        operations = made["race_check"]["operations"]
        ok(len(made["races"]) == found == ended.returncode and made["race_check"]["compared"] == min(count, operations) and
           (said.groups() == (str(count), str(operations)) if count < operations else not said),
           f"--races {count} looks at {count} operations and says so", ended.said, made["race_check"])
    ended = run(program, "run", "all_reduce", "size=5000", "--races", "50")
    ok(ended.returncode == 0 and "races        not looked for after the first 50 of" in ended.stdout,
       "a check that ends while messages are under way disturbs nothing", ended.said)
    for word in ("some", "-1", "", "5x"):
        ended = run(program, "run", "gemm", "--races", word)
        ok(ended.returncode == 2 and f"--races {word}: on, off, or a number of operations is needed" in ended.stderr,
           f"--races {word!r} is refused", ended.said)


def times(program):
    ended, plain = result(program, "all_reduce", "size=5000", "--races", "off")
    checked_ended, checked = result(program, "all_reduce", "size=5000")
    ok(ended.returncode == checked_ended.returncode == 0 and plain["launches"] == checked["launches"],
       "the race check takes no simulated time", ended.said, checked_ended.said)


def shipped(program, where):
    for words in SHIPPED:
        ended = run(program, "run", *words, "--data", "debug")
        ok(ended.returncode == 0 and "RACE" not in ended.stdout,
           f"{' '.join(words)} has no race with queues in {where}", ended.said)


def main():
    for buffer in ("tcm", "sram", "hbm"):
        small = small_machine("races_" + buffer, [SOURCE], LANES,
                              "cube.pe_template.components.pe_ipcq.attrs.buffer=" + buffer)
        if buffer == "tcm":
            of_small(small)
            some(small)
            times(small)
        for what in ("told", "told_early", "told_on", "reply", "behind", "beside", "often"):
            raced(small, what, RACES[what])
        shipped(small, buffer)


suite(main)
