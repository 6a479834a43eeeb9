#!/usr/bin/python3
"""host: timed writes, reads and maps, launches in parts, programs per SIP, and what is said of wrong use."""
import json
import os
import signal

from harness import Broken, ROOT, SCRATCH, done, ok, read, run, small_machine

KERNELS = [os.path.join(ROOT, "tests", "host", name) for name in ("host.c", "ranks.c", "params.c", "places.c",
                                                          "roofline.c")]
SANITIZED = bool(os.environ.get("SAN"))


def result(program, name, *words):
    """A run and its JSON."""
    path = os.path.join(SCRATCH, name + ".json")
    ended = run(program, "run", *words, "--json", path, timeout=30)
    return ended, json.loads(read(path) or "{}")


def requests(made):
    return [(one["do"], one["status"]) for one in made.get("memory", [])]


def deploys(program):
    """What is written is what kernels see and what is read; a request for each size of shard."""
    for space in ("hbm", "sram", "tcm"):
        for split, rows, sizes in (("rows", 5, 2), ("rows", 8, 1), ("rows", 3, 1), ("copies", 5, 1)):
            ended, made = result(program, "deploy", "deploy", f"space={space}", f"split={split}", f"rows={rows}")
            values = " ".join(str(100 * i - 7) for i in range(3 * rows))
            want = [("write", "ok")] * sizes + [("read", "ok")] * sizes + [("write", "ok")] * sizes
            want += [("read", "ok")] * 2 * sizes
            ok(ended.returncode == 0 and ended.stdout.startswith(f"to {values}\nagain {values}\n")
               and requests(made) == want, f"{rows} rows, {split} in {space}", ended.said, *requests(made))
            after = [one["submitted_ps"] for one in made["memory"]][1:]
            before = [one["done_ps"] for one in made["memory"]][:-1]
            ok(all(a >= b for a, b in zip(after, before)) and all(one["xfer_ps"] for one in made["memory"]),
               "one after the other, and each takes time")


def busy_with_kernels(program):
    """What the host writes and reads between kernels passes PCIe, and keeps nothing busy in their time."""
    _, made = result(program, "busy", "deploy")
    util = made["util"]
    ok(made["bytes"]["links"]["pcie"] > 0 and util["pcie links"]["busy_ps"] == util["pcie links"]["busiest_ps"] == 0 and
       0 < util["hbm"]["busiest_ps"] <= util["span_ps"] * util["hbm"]["busiest_servers"],
       "requests of the host are not of the kernels' time", util, made["bytes"])


def roofline(program):
    """Ops on f16 and on f32 take pe_math one after the other."""
    ended, made = result(program, "roofline", "roofline")
    words = ended.stdout.split()
    ok(words[:5] == ["costs", "4", "1", "0", "alone"], "what ops cost", ended.said)
    figures, narrow, wide = made["figures"], int(words[5]), int(words[6])
    ok(0 < narrow < wide and figures["math_bound_ps"] == narrow + wide and
       figures["bound_reached_permille"] == (narrow + wide) * 1000 // 80000000 and "array_bound_ps" not in figures and
       0 < figures["memory_bound_ps"] < narrow and 0 < figures["link_bound_ps"] == int(words[8]) < narrow,
       "bounds of work", ended.stdout, figures)


def orders(program):
    ended, made = result(program, "order", "order")
    ok(ended.stdout.startswith("first 7 10 15 22\nsecond 2 2 2 2\nthird 7 8 9 10\n"), "data order", ended.said)
    ended, unread = result(program, "unread", "order", "read=false")
    ok(ended.stdout.startswith("first 0 0 0 0\nsecond 0 0 0 0\nthird 7 8 9 10\n"), "no look, no data pass", ended.said)
    ended, off = result(program, "off", "order", "read=false", "--data", "off")
    times = [[one[key] for key in ("memory", "launches")] for one in (made, unread, off)]
    ok(times[0] == times[1] == times[2], "looks and data passes take no time", ended.said)


def maps(program, without):
    for words in (("maps",), ("maps", "remap=true")):
        ended = run(program, "run", *words)
        ok(ended.returncode == 0 and ended.stdout.startswith("wrong 0\n"), "run " + " ".join(words), ended.said)
    ended, made = result(program, "multiply", "multiply", "--data", "debug")
    ok(ended.returncode == 0 and "verified     c: " in ended.stdout, "a product through the MMU", ended.said)
    ended, off = result(program, "multiply-off", "multiply", "--data", "off")
    ok(off["launches"] == made["launches"], "takes the same time without data", ended.said)
    ended, torn = result(program, "torn", "multiply", "torn=true", "--data", "debug")
    ok(ended.returncode == 0 and torn["verify"][0]["status"] == "ok", "operands and a result in two pieces", ended.said)
    _, plain = result(without, "plain", "multiply")
    ok(plain["launches"][0]["submitted_ps"] == made["launches"][0]["submitted_ps"] > 0,
       "a map takes its time with the MMUs off too")


def launches(program):
    ended, made = result(program, "parts", "parts")
    lines = sorted(ended.stdout.splitlines()[:4])
    begun = [line.split(" at ") for line in lines]
    ok([line[0] for line in begun] == ["early 0 of 3", "early 2 of 3", "late 0 of 1", "late 1 of 3"]
       and begun[0][1] == begun[1][1] == begun[3][1] and made["launches"][0]["program"] == "early+late"
       and [pe["id"] for pe in made["launches"][0]["pes"]] == ["sip0.cube0.pe0", "sip0.cube0.pe1", "sip0.cube1.pe1"],
       "parts begin together, in rank order whatever the order of targets", ended.said)
    if not SANITIZED:
        ended = run(program, "run", "crash")
        ok(ended.returncode == -signal.SIGSEGV, "a trap of the host's is a crash", ended.said)


def shares(count, parts):
    return [(i * count // parts, (i + 1) * count // parts) for i in range(parts)]


def shards(shape, split):
    """What the four PEs of the machine say: of each axis the first index and how many, then positions."""
    whole = [(0, size) for size in shape]
    parts = {"copies": [whole] * 4, "on": [whole],
             "rows": [[share] + whole[1:] for share in shares(shape[0], 4)],
             "cols": [whole[:-1] + [share] for share in shares(shape[-1], 4)],
             "blocks": [[row] + whole[1:-1] + [column] for row in shares(shape[0], 2)
                        for column in shares(shape[-1], 2)]}[split]
    for number, part in enumerate(parts):
        axes = " ".join(f"{first}+{end - first}" for first, end in part)
        positions = [0]
        for size, (first, end) in zip(shape, part):
            positions = [position * size + i for position in positions for i in range(first, end)]
        yield " ".join([f"{number}: {axes} |", *map(str, positions)])


def places(program):
    for number, shape in enumerate(((9,), (3,), (5, 7), (1, 1), (5, 2, 3), (2, 3, 9), (3, 2, 2, 5), (1, 2, 3, 2))):
        for step, split in enumerate(("rows", "cols", "blocks", "copies", "on")):
            if split == "blocks" and len(shape) == 1:
                continue
            space = ("hbm", "tcm", "sram")[(number + step) % 3]
            ended = run(program, "run", "shards", "shape=" + "x".join(map(str, shape)), f"split={split}",
                        f"space={space}")
            want = [*shards(shape, split), "wrong 0"]
            ok(ended.returncode == 0 and ended.stdout.splitlines()[:len(want)] == want,
               f"{shape} in {split}, {space}", ended.said, *want)
    for space in ("hbm", "tcm", "sram"):
        ended = run(program, "run", "addresses", f"space={space}")
        at = [int(word, 16) for word in ended.stdout.split()[:4]]
        ok(ended.returncode == 0 and at[0] % 64 == 0 and [one - at[0] for one in at] == [0, 64, 128, 256],
           f"addresses in {space}", ended.said)
    for what, said in (
            ("far", "tensor 't': the machine has 4 PEs, there is no number 99"),
            ("space", "tensor 't': there is no placement in space number 3, split number 1"),
            ("split", "tensor 't': there is no placement in space number 0, split number 9"),
            ("dtype", "tensor 't' has no dtype"), ("name", "a tensor needs a name"),
            ("full", "no room for tensor 't' at sip0.cube0.pe0.pe_tcm"),
            ("blocks", "kb_blocks splits two axes; tensor 't' has one")):
        ended = run(program, "run", "unplaced", "what=" + what)
        ok(ended.returncode == 2 and "error: kb_tensor_new: " + said in ended.stderr, what, ended.said)


MISUSE = (
    ("both", "kb_launch: sip0.cube0.pe0 is to run both kernel early and kernel late"),
    ("twice", "kb_launch: sip0.cube0.pe1 is to run both kernel early and kernel early"),
    ("none", "kb_launch: kernel early is launched on no PE"),
    ("number", "kb_launch: the machine has 4 PEs, there is no number 99"),
    ("va", "kb_map: virtual address 0x1001000 is no multiple of the page, 65536 bytes"),
    ("page_end", "kb_unmap: the pages from 0xffffffffffff0000 on run past the last virtual address"),
    ("unmap_none", "kb_unmap: there are no bytes to unmap"),
    ("not_placed", "kb_map: tensor 'r' is not placed with sip0.cube0.pe1"),
    ("no_tensor", "kb_write: there is no tensor"),
    ("timeout", "kb_launch: a timeout of 18446744073709551615 ns does not fit into simulated time, 2^64 ps"),
)


def misuse(program):
    for what, said in MISUSE:
        ended = run(program, "run", "misuse", "what=" + what)
        ok(ended.returncode == 2 and f": error: {said}\n" in ended.stderr and ended.stderr.startswith("host.c:"),
           "misuse: " + what, ended.said)
    ended = run(program, "run", "misuse", "what=pending_off", "--data", "off")
    ok(ended.returncode == 2 and "kb_read: tensor 'c' holds results, which --data off does not" in ended.stderr,
       "a read of results without a data pass", ended.said)
    ended = run(program, "run", "misuse", "what=pending_off")
    ok(ended.returncode == 0, "a read of results with one", ended.said)


RANKS = """rank 0 of 2: 4 of 8 PEs, from number 0 on
rank 1 of 2: 4 of 8 PEs, from number 4 on
round 0: rank 0
round 0: rank 1
round 1: rank 0
round 1: rank 1
round 2: rank 0
round 2: rank 1
"""

ENDS = (
    ("fail", 1, "kb_wait: kernel fails failed with KERNEL_ERROR at sip1.cube0.pe0.pe_cpu, 1709130 ps (request 2)"),
    ("gone", 1, "  rank 0 waits in kb_barrier since 0 ps, called at ranks.c:101\n  rank 1 has returned\n"),
    ("elsewhere", 1, "  rank 1 waits elsewhere\n"),
    ("foreign", 2, "kb_launch: sip0.cube0.pe0 is not in sip1, the SIP of this rank"),
    ("write_foreign", 2, "kb_write: sip0.cube0.pe0 is not in sip1, the SIP of this rank"),
    ("deadlock", 1, "  a cycle:\n    sip0.cube0.pe0: kernel receives waits since"),
)


def ranks(program, alone):
    ended = run(program, "run", "ranks")
    ok(ended.returncode == 0 and ended.stdout.startswith(RANKS), "programs meet, and act in rank order", ended.said)
    ended = run(program, "run", "swap")
    ok(ended.returncode == 0 and set(ended.stdout.splitlines()[:2]) == {"rank 0 has 20", "rank 1 has 10"},
       "kernels of two programs exchange what they have", ended.said)
    ended = run(program, "run", "shared")
    ok(ended.returncode == 0 and ended.stdout.startswith("rank 0 goes on\nrank 1 goes on\n"),
       "two programs wait for one launch", ended.said)
    ended = run(alone, "run", "alone")
    ok(ended.returncode == 0 and ended.stdout.startswith("rank 0 of 1, 4 PEs\n"), "a bench has rank 0 of 1", ended.said)
    for how, status, said in ENDS:
        ended = run(program, "run", "end", "how=" + how, timeout=20)
        ok(ended.returncode == status and said in ended.stderr and "past the barrier" not in ended.stdout
           and "never said" not in ended.stdout, "the end: " + how, ended.said)


LIST = """  count      = 3          a count (1 to 9)
  room       = 64 KiB     a size (size, 64 B to 1 GiB)
  rate       = 0.25       a rate (decimal, -1 to 1000)
  flag       = true       a flag (true false)
  word       = one        a word (one two)
  text       = some text  a text (text)
"""

# What is given, what is shown.
GIVEN = (
    ((), "3 65536 0.25 1 one 'some text'"),
    (("count=9", "room=1.5MiB", "rate=-1e-3", "flag=false", "word=two", "text="), "9 1572864 -0.001 0 two ''"),
    (("room=4 KiB", "rate=1000", "text=a=b"), "3 4096 1000 1 one 'a=b'"),
    (("room=0x40", "rate=.5"), "3 64 0.5 1 one 'some text'"),
)

# What is wrong, what is said of it.
WRONG_VALUES = (
    ("room=63", "is out of bounds: 64 B to 1 GiB"),
    ("room=2GiB", "is out of bounds: 64 B to 1 GiB"),
    ("room=1.0001KiB", "is not a whole number of bytes below 2^64"),
    ("room=4 ns", "is not a size: 'ns' is the unit of a time; a size has"),
    ("room=big", "is not a size: bytes, or a number with KiB, MiB or GiB"),
    ("rate=1000.5", "is out of bounds: -1 to 1000"),
    ("rate=nan", "is not a decimal number"),
    ("rate=inf", "is not a decimal number"),
    ("rate=0x1", "is not a decimal number"),
    ("rate=1e999", "is not a decimal number"),
    ("rate= 1", "is not a decimal number"),
    ("rate=", "is not a decimal number"),
    ("word=three", "is not one of: one two"),
    ("flag=yes", "is neither true nor false"),
    ("count=1.0", "is not a whole number"),
)


def parameters(program):
    ok(LIST in run(program, "list").stdout, "list shows types, defaults, bounds and help", run(program, "list").said)
    for words, shown in GIVEN:
        ended, made = result(program, "params", "params", *words)
        ok(ended.stdout.startswith(shown + "\n") and made["params"]["rate"] == float(shown.split()[2])
           and made["params"]["room"] == int(shown.split()[1]), f"parameters {words}", ended.said, made["params"])
    for word, said in WRONG_VALUES:
        ended = run(program, "run", "params", word)
        ok(ended.returncode == 2 and f"error: params: {word} {said}" in ended.stderr, word, ended.said)
    ended = run(program, "run", "outside")
    ok(ended.returncode == 2 and "params.c:16: error: the default of parameter 'rate' has to be a number from 0 to 1"
       in ended.stderr, "a default out of its bounds", ended.said)
    ended = run(program, "run", "double_one")
    ok(ended.returncode == 2 and "error: there are two parameters 'n'" in ended.stderr, "a name twice", ended.said)
    points = os.path.join(SCRATCH, "points.jsonl")
    with open(points, "w", encoding="utf-8") as file:
        file.write('{"rate": 1e-05, "room": "4 KiB"}\n{"rate": -1, "room": 4096}\n{"rate": 1e+2}\n')
    ended = run(program, "run", "params", "--points", points)
    shown = [(made["params"]["rate"], made["params"]["room"]) for made in
             (json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{"))]
    ok(shown == [(1e-05, 4096), (-1, 4096), (100, 65536)], "the same in points", ended.said)
    with open(points, "w", encoding="utf-8") as file:
        file.write('{"rate": "0.5"}\n{"rate": 1e4}\n{"room": "4 m"}\n{"room": true}\n')
    ended = run(program, "run", "params", "--points", points)
    ok(ended.returncode == 2 and ended.stderr.count("rate must be a number from -1 to 1000, not ") == 2
       and ended.stderr.count("room must be a size from 64 B to 1 GiB, not ") == 2, "wrong ones", ended.said)


def in_flight(program):
    ended, made = result(program, "overlap", "overlap")
    spans = [(one["start_ps"], one["done_ps"]) for one in made["launches"]]
    ok(ended.returncode == 0 and ended.stdout.count("verified ") == 3 and len(spans) == 4, "launches", ended.said)
    ok(spans[1][0] < spans[0][1] and spans[2][0] < spans[0][1] < spans[3][0], "overlap on disjoint PEs", spans)
    ended = run(program, "run", "refused")
    ok(ended.returncode == 2 and ended.stderr.startswith("params.c:68: error: kb_launch: sip0.cube0.pe1 still runs "
       "kernel waits, launched at params.c:67, and cannot run waits yet"), "but not on one PE", ended.said)


try:
    plain = small_machine("plain", KERNELS)
    mapped = small_machine("mapped", KERNELS, "cube.pe_template.components.pe_mmu.attrs.enabled=true")
    deploys(plain)
    busy_with_kernels(plain)
    roofline(plain)
    orders(plain)
    maps(mapped, plain)
    launches(plain)
    places(plain)
    parameters(plain)
    in_flight(plain)
    misuse(mapped)
    ranks(small_machine("two", KERNELS, "system.sips=2"), plain)
except Broken as reason:
    ok(False, "a simulator with benches of the user's own", reason)
done()
