#!/usr/bin/python3
"""ledger: each simplification of the model that a run touches is in its result, with the figure that follows by hand; the
docs have the list of rt/report/ledger.def.
"""
import json
import os
import re
import textwrap

from harness import BLESS, ROOT, SMALL, first_difference, ok, read, result, run, scratch, simulator, suite, write

MODEL, RESULTS = (os.path.join(ROOT, "docs", name) for name in ("model.md", "results.md"))
SOURCE = os.path.join(ROOT, "tests", "ledger", "touches.c")
HBM_RINGS = "cube.pe_template.components.pe_ipcq.attrs.buffer=hbm"
TEXT = r'"((?:[^"]*"\s+")*[^"]*)"'
JOINED = re.compile(r'"\s+"')


def rows():
    """(name, figures, text) of each row; name and figures are None if a run has no figure."""
    source = read(os.path.join(ROOT, "rt", "report", "ledger.def"))
    numbers = dict(re.findall(r"^FIGURE\((\w+), (\d+)\)$", source, re.M))
    for name, figures, text, absent in re.findall(rf"^(?:LEDGER\((\w+), {TEXT},\s+{TEXT}|ABSENT\({TEXT})\)$", source, re.M):
        yield name or None, *(JOINED.sub("", part).format(**numbers) for part in (figures, text or absent))


ROWS = list(rows())
NAMES = [name for name, *_ in ROWS if name]


def replaced(path, begin, end, text):
    """A part of a page, between what it begins and ends with, is the text; `make bless` writes it."""
    page = read(path)
    head, _, rest = page.partition(begin)
    part, _, tail = rest.partition(end)
    if BLESS:
        write(path, head + begin + text + end + tail)
        part = text
    ok(tail and part == text, f"{os.path.relpath(path, ROOT)} has the list of rt/report/ledger.def",
       first_difference(text, part))


def documented():
    bullets = "".join(textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
                                    break_on_hyphens=False) + "\n" for _, _, text in ROWS)
    replaced(MODEL, "not touched. `--json` names them; of `replay`, `--json` with `--report`.\n\n", "\n## 17.", bullets)
    replaced(RESULTS, "| simplification | figures |\n|---|---|\n", "\n## The trace:",
             "".join(f"| `{name}` | {figures} |\n" for name, figures, _ in ROWS if name))


def ledger(program, kernel, *words, name="result", pes="sip0.cube0.pe0"):
    """The entries of a run by name; its summary; its result."""
    ended, of = result(program, "touches", f"kernel={kernel}", f"pes={pes}", "--data", "off", *words, name=name)
    return {entry["name"]: entry for entry in of.get("ledger", [])}, ended, of


def has(entry, **figures):
    return entry is not None and all(entry.get(name) == value for name, value in figures.items())


def figures(program):
    touched, ended, _ = ledger(program, "delay")
    ok(not touched and "not modelled" not in ended.stdout and not ended.returncode,
       "a kernel that only delays touches no simplification", ended.said, touched)
    seen, ended, of = ledger(program, "loads")
    # 8 KiB are 2 KiB of each of 4 pseudo channels: 64 ns at 32 GB/s and two row changes of 2 ns, so 68 ns of the 1528.18 ns
    # of the run, 4.4 % of each; up to 8 % of that are 0.3 %.
    ok(of["end_ps"] == 1528180 and has(seen.get("refresh"), busy_permille=44, most_permille=3),
       "refresh: the share for which the busiest slice is busy, of which up to 8 % would be lost", seen, of["end_ps"])
    # 4 of 68 ns.
    ok(has(seen.get("banks"), row_changes=8, busy_permille=58), "banks: 8 KiB in 4 pseudo channels are two rows in each", seen)
    # 16 bytes beside 8192.
    ok(has(seen.get("headers"), messages=1, more_permille=1) and has(seen.get("control"), messages=1, more_permille=1),
       "headers, control: a load is one message with one request", seen)
    ok(has(seen.get("instructions"), commands=1) and set(seen) == {"refresh", "banks", "headers", "control", "instructions"},
       "instructions: one command; nothing else is touched by a load", seen)
    after = ledger(program, "after")[0]
    ok(has(after.get("after"), calls=1) and has(after["instructions"], commands=2) and set(after) == {"after", "instructions"},
       "after: one call of tl_after", after)
    return {"refresh", "banks", "headers", "control", "instructions", "after"}


def composites(program):
    seen, ended, of = ledger(program, "composite")
    # 2 x 3 outputs of 2 tiles of k each: 12 blocks of A, 12 of B, 6 of C. Another 930 rows, whose changes take 2 ns each, are
    # 465 ns of each of 4 pseudo channels, of 3100.47 ns.
    ok(of["end_ps"] == 3100470 and has(seen.get("blocks"), blocks=30, rows=960, most_permille=149),
       "blocks: those of A and B for each tile and of C for each output, whose rows are 32 each", seen)
    small = ledger(program, "composite", "tile=16")[0]
    ok(has(small.get("blocks"), blocks=108, rows=2688),   # 48 of 32 rows, 48 of 16, 12 of 32
       "blocks: those of B have as many rows as a tile has of k", small)
    # Two operands of 32 x 32 elements of 2 bytes; 30 x 16 bytes beside the 61440 bytes of the blocks, which are 2 KiB each.
    ok(has(seen.get("registers"), bytes=4096) and has(seen["headers"], messages=30, more_permille=7),
       "registers: the operands of a tile", seen)
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("not modelled", "             "))]
    big = [entry for entry in seen.values() if (entry["most_permille"] or 0) >= 10]
    ok(len(lines) == len(big) + 1 and all(any(entry["text"] in line for line in lines) for entry in big)
       and lines[-1].split()[0] == str(len(seen) - len(big)),
       "the summary has what can make 1 % of the time, and counts the rest", ended.stdout, seen)
    whole = ledger(program, "composite", "tile=96")[0]
    ok("blocks" not in whole and whole["registers"], "blocks as wide as their operand are in one piece", whole)
    ok("operands" not in seen, "a gemm without epilogues has no operands that move no bytes", seen)
    with_operands = ledger(program, "epilogue")[0]
    ok(has(with_operands.get("operands"), bytes=12480),    # 192 of the row, 12288 of the matrix
       "operands: a row and a matrix that epilogues read; a number has no bytes", with_operands)
    same = [ledger(program, "epilogue", *words, pes="*")[2]["ledger"] for words in ((), ("--exact-events",))]
    ok(same[0] == same[1] and same[0], "the ledger is that of --exact-events", *same)
    return {"blocks", "registers", "operands"}


def queues(program):
    counted, ended, of = ledger(program, "far", "--stats", scratch("stats.json"), pes="*")
    stats = json.loads(read(scratch("stats.json")))
    links, nodes = stats["links"], stats["nodes"]
    wait_ps = sum(row["wait_ps"] for row in links + nodes)
    longest = max(links, key=lambda row: row["longest_queue"])
    # On its way to the other cube a message takes a link for 32 ns, 8 KiB at 256 GB/s, and the second one comes 1.02 ns after
    # the first: it waits for 30.98 ns of the run's 1648.31 ns.
    ok(of["end_ps"] == 1648310 and wait_ps == 30980 and has(counted.get("buffers"), wait_ps=30980, waiting_permille=18),
       "buffers: the waits are those of the rows of --stats", counted, wait_ps)
    deepest = f" wait on average, at most {longest['longest_queue']} for one link, at {longest['from']}\n"
    plain, short, _ = ledger(program, "far", pes="*")
    ok(deepest in ended.stdout and "for one link" not in short.stdout and plain == counted,
       "buffers: with --stats the summary has the longest queue and its place, and the ledger is the same", ended.said, longest)
    seen = ledger(program, "ring", pes="*")[0]
    ok(has(seen.get("rings"), messages=1) and has(seen["headers"], messages=2),
       "rings: a message through HBM is two messages of DMA", seen)
    return {"buffers", "rings"}


def modelled(program):
    """A model of HBM of the user."""
    model = os.path.join(ROOT, "tests", "impl", "same_hbm.c")
    own = simulator(SMALL, "own", [SOURCE], ["cube.hbm_ctrl.impl=same_hbm"], [model])
    seen, ended, _ = ledger(own, "loads")
    ok(seen and not {"refresh", "banks"} & set(seen), "an HBM with a model of its own lacks neither refresh nor banks",
       ended.said, seen)
    stream = write(scratch("stream.yaml"), "name: s\nlaunches: [ { program: p, targets: [\"sip0.cube0.pe0\"] } ]\nprograms:\n"
                   "  p: [ { do: composite, op: gemm, m: 64, k: 64, n: 96, tile: [ 32, 96, 96 ], dtype: f16,\n"
                   "         a: { space: hbm }, b: { space: hbm, offset: 65536 }, c: { space: hbm, offset: 131072 },\n"
                   "         epilogue: [ { op: bias, scope: output_tile }, { op: relu, scope: output_tile } ] } ]\n")
    ledgers = {}
    for option, *words in (("--why",), ("--report", scratch("page.html")), ("",)):
        ended = run(program, "replay", stream, *filter(None, (option, *words)), "--json", "-")
        ledgers[option] = json.loads(ended.stdout).get("ledger")
        ok(ended.returncode == 0 and "not modelled" in ended.stderr and ended.stderr.endswith(" ps\n" if not option else "\n"),
           f"a replay with --json - {option} has a summary on standard error", ended.said)
    plain = ledgers.pop("")
    of = {entry["name"]: entry for entry in ledgers["--report"]}
    ok(plain is None and ledgers["--why"] == ledgers["--report"] and has(of.get("operands"), bytes=192),
       "the result of a replay has a ledger with --why and --report, and else the keys of its format alone", ledgers)
    ended = run(program, "replay", stream)
    of_run = ledger(own, "composite")[1]
    ok(": --json with --why or --report has " in ended.stdout and ": --json has " in of_run.stdout,
       "the summary says which options give the rest of the ledger", ended.said, of_run.said)


def main():
    documented()
    program = simulator(SMALL, "touches", [SOURCE], [HBM_RINGS])
    seen = figures(program) | composites(program) | queues(program)
    modelled(program)
    ok(seen == set(NAMES) and len(NAMES) > 8, "every row of rt/report/ledger.def is touched by a run", seen ^ set(NAMES))


suite(main)
