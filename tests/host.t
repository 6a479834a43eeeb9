#!/usr/bin/python3
"""host: timed writes, reads and maps, launches in parts, programs per SIP, parameters, and messages of wrong use."""
import json
import os

from harness import MMU, ROOT, SAN, ok, result, run, scratch, small_machine, suite, write

KERNELS = [os.path.join(ROOT, "tests", "host", name) for name in ("host.c", "ranks.c", "params.c", "places.c",
                                                          "roofline.c")]


def requests(made):
    return [(one["do"], one["status"]) for one in made.get("memory", [])]


def deploys(program):
    """Kernels see and the host reads what was written, with a request for each size of shard."""
    for space in ("hbm", "sram", "tcm"):
        for split, rows, sizes in (("rows", 5, 2), ("rows", 8, 1), ("rows", 3, 1), ("copies", 5, 1)):
            ended, made = result(program, "deploy", f"space={space}", f"split={split}", f"rows={rows}")
            values = " ".join(str(100 * i - 7) for i in range(3 * rows))
            want = [("write", "ok")] * sizes + [("read", "ok")] * sizes + [("write", "ok")] * sizes
            want += [("read", "ok")] * 2 * sizes
            ok(ended.returncode == 0 and ended.stdout.startswith(f"to {values}\nagain {values}\n")
               and requests(made) == want, f"kernels and host see what was written: {rows} rows as {split} in {space}",
               ended.said, *requests(made))
            after = [one["submitted_ps"] for one in made["memory"]][1:]
            before = [one["done_ps"] for one in made["memory"]][:-1]
            ok(all(a >= b for a, b in zip(after, before)) and all(one["xfer_ps"] for one in made["memory"]),
               f"requests of the host take time, one after the other: {rows} rows as {split} in {space}")


def busy_with_kernels(program):
    """The host's writes and reads between kernels pass PCIe, but are outside the kernels' span."""
    _, made = result(program, "deploy")
    util = made["util"]
    ok(made["bytes"]["links"]["pcie"] > 0 and util["pcie links"]["busy_ps"] == util["pcie links"]["busiest_ps"] == 0 and
       0 < util["hbm"]["busiest_ps"] <= util["span_ps"] * util["hbm"]["busiest_servers"],
       "busy times leave out what the host requests between kernels", util, made["bytes"])


def roofline(program):
    """Ops on f16 and on f32 occupy pe_math one after the other."""
    ended, made = result(program, "roofline")
    words = ended.stdout.split()
    ok(words[:5] == ["costs", "4", "1", "0", "alone"], "a bench can ask what an op costs", ended.said)
    figures, bounds, narrow, wide = made["figures"], made["bounds"][0], int(words[5]), int(words[6])
    launch, problem, algorithm = made["launches"][0], bounds["problem"], bounds["algorithm"]
    ok(0 < narrow < wide and figures["math_bound_ps"] == narrow + wide and "array_bound_ps" not in figures and
       figures["time_ps"] == launch["pe_exec_ps"] and 0 < figures["memory_bound_ps"] < narrow and
       0 < figures["link_bound_ps"] == int(words[8]) < narrow,
       "the bounds of math, memory and links add up from the work", ended.stdout, figures)
    ok(int(words[10]) == int(words[8]) and int(words[11]) >= 2 * int(words[8]),
       "a message to several PEs takes each link once", words[8:])
    ok(bounds["time_ps"] == launch["done_ps"] - launch["submitted_ps"] and
       all(one["bound_ps"] == one["launch_ps"] + narrow + wide and one["by"] == "math" and
           one["reached_permille"] == one["bound_ps"] * 1000 // bounds["time_ps"] for one in (problem, algorithm)),
       "both bounds of a launch consist of its latency and of the longest part", bounds)
    ok(problem["memory_ps"] == algorithm["memory_ps"] == figures["memory_bound_ps"] and
       problem["link_ps"] < algorithm["link_ps"],
       "copies of an input count once, and messages only for the algorithm", bounds)


def orders(program):
    ended, made = result(program, "order")
    ok(ended.stdout.startswith("first 7 10 15 22\nsecond 2 2 2 2\nthird 7 8 9 10\n"),
       "the host reads values in the order of its calls and of the kernels", ended.said)
    ended, unread = result(program, "order", "read=false")
    ok(ended.stdout.startswith("first 0 0 0 0\nsecond 0 0 0 0\nthird 7 8 9 10\n"),
       "a bench that reads nothing runs no data pass before its end", ended.said)
    ended, off = result(program, "order", "read=false", "--data", "off")
    times = [[one[key] for key in ("memory", "launches")] for one in (made, unread, off)]
    ok(times[0] == times[1] == times[2],
       "reads of the host without timing and data passes take no simulated time", ended.said)


def maps(program, without):
    for words in (("maps",), ("maps", "remap=true")):
        ended = run(program, "run", *words)
        ok(ended.returncode == 0 and ended.stdout.startswith("wrong 0\n"),
           f"kernels reach memory by mapped addresses: {' '.join(words)}",
           ended.said)
    ended, made = result(program, "multiply", "--data", "debug")
    ok(ended.returncode == 0 and "verified     c: " in ended.stdout, "a gemm by mapped addresses verifies", ended.said)
    ended, off = result(program, "multiply", "--data", "off")
    ok(off["launches"] == made["launches"], "a gemm by mapped addresses takes the same time with --data off",
       ended.said)
    ended, torn = result(program, "multiply", "torn=true", "--data", "debug")
    ok(ended.returncode == 0 and torn["verify"][0]["status"] == "ok",
       "a gemm verifies whose operands and result are mapped in two pieces", ended.said)
    _, plain = result(without, "multiply")
    ok(plain["launches"][0]["submitted_ps"] == made["launches"][0]["submitted_ps"] > 0,
       "a map takes the same time on a machine without MMUs")


def launches(program):
    ended, made = result(program, "parts")
    lines = sorted(ended.stdout.splitlines()[:4])
    begun = [line.split(" at ") for line in lines]
    ok([line[0] for line in begun] == ["early 0 of 3", "early 2 of 3", "late 0 of 1", "late 1 of 3"]
       and begun[0][1] == begun[1][1] == begun[3][1] and made["launches"][0]["program"] == "early+late"
       and [pe["id"] for pe in made["launches"][0]["pes"]] == ["sip0.cube0.pe0", "sip0.cube0.pe1", "sip0.cube1.pe1"],
       "the parts of a launch begin together, on PEs in rank order", ended.said)
    if not SAN:
        ended = run(program, "run", "crash")
        ok(ended.returncode == 1 and "fault: bench crash, 0 ps: SIGSEGV at address 0x10; before its first call"
           in ended.stderr, "a trap in the code of a bench is a fault", ended.said)


def shares(count, parts):
    return [(i * count // parts, (i + 1) * count // parts) for i in range(parts)]


def shards(shape, split):
    """What the four PEs of the machine say: the first index and the number of each axis, then positions."""
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
               f"each PE has its part of a tensor: {shape} as {split} in {space}", ended.said, *want)
    for space in ("hbm", "tcm", "sram"):
        ended = run(program, "run", "addresses", f"space={space}")
        at = [int(word, 16) for word in ended.stdout.split()[:4]]
        ok(ended.returncode == 0 and at[0] % 64 == 0 and [one - at[0] for one in at] == [0, 64, 128, 256],
           f"tensors in {space} lie one after the other, aligned to 64 bytes", ended.said)
    for what, said in (
            ("far", "tensor 't': the machine has 4 PEs, there is no number 99"),
            ("space", "tensor 't': there is no placement in space number 3, split number 1"),
            ("split", "tensor 't': there is no placement in space number 0, split number 9"),
            ("dtype", "tensor 't' has no dtype"), ("name", "a tensor needs a name"),
            ("full", "no room for tensor 't' at sip0.cube0.pe0.pe_tcm"),
            ("blocks", "kb_blocks splits two axes; tensor 't' has one")):
        ended = run(program, "run", "unplaced", "what=" + what)
        ok(ended.returncode == 2 and "error: kb_tensor_new: " + said in ended.stderr,
           f"unplaced what={what} is refused: {said}", ended.said)


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
           f"misuse what={what} is refused with its line", ended.said)
    ended = run(program, "run", "misuse", "what=pending_off", "--data", "off")
    ok(ended.returncode == 2 and "kb_read: tensor 'c' holds results, which --data off does not" in ended.stderr,
       "a read of results is refused with --data off", ended.said)
    ended = run(program, "run", "misuse", "what=pending_off")
    ok(ended.returncode == 0, "a read of results is allowed with a data pass", ended.said)


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
    ok(ended.returncode == 0 and ended.stdout.startswith(RANKS),
       "the programs of two SIPs meet at barriers and act in rank order",
       ended.said)
    ended = run(program, "run", "swap")
    ok(ended.returncode == 0 and set(ended.stdout.splitlines()[:2]) == {"rank 0 has 20", "rank 1 has 10"},
       "kernels of two programs exchange their data", ended.said)
    ended = run(program, "run", "shared")
    ok(ended.returncode == 0 and ended.stdout.startswith("rank 0 goes on\nrank 1 goes on\n"),
       "two programs can wait for one launch", ended.said)
    ended, made = result(program, "both_write")
    util = made["util"]
    ok(ended.returncode == 0 and made["bytes"]["links"]["pcie"] > 0 and util["span_ps"] > 0 and
       not any(row["busy_ps"] or row["wait_ps"] for name, row in util.items() if name.endswith(" links") or name == "hbm"),
       "busy times and waits leave out requests that two programs make at a time", util, made["bytes"])
    ended = run(alone, "run", "alone")
    ok(ended.returncode == 0 and ended.stdout.startswith("rank 0 of 1, 4 PEs\n"),
       "a bench without programs per SIP is rank 0 of 1", ended.said)
    for how, status, said in ENDS:
        ended = run(program, "run", "end", "how=" + how, timeout=20)
        ok(ended.returncode == status and said in ended.stderr and "past the barrier" not in ended.stdout
           and "never said" not in ended.stdout,
           f"programs that cannot go on end with their reason: how={how}", ended.said)


LIST = """  count      = 3          a count (1 to 9)
  room       = 64 KiB     a size (size, 64 B to 1 GiB)
  rate       = 0.25       a rate (decimal, -1 to 1000)
  flag       = true       a flag (true false)
  word       = one        a word (one two)
  text       = some text  a text (text)
"""

# Words of the command line, and what the bench shows of its parameters.
GIVEN = (
    ((), "3 65536 0.25 1 one 'some text'"),
    (("count=9", "room=1.5MiB", "rate=-1e-3", "flag=false", "word=two", "text="), "9 1572864 -0.001 0 two ''"),
    (("room=4 KiB", "rate=1000", "text=a=b"), "3 4096 1000 1 one 'a=b'"),
    (("room=0x40", "rate=.5"), "3 64 0.5 1 one 'some text'"),
)

# Wrong words, and the message of each.
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
    ok(LIST in run(program, "list").stdout, "list shows types, defaults, bounds and help of parameters",
       run(program, "list").said)
    for words, shown in GIVEN:
        ended, made = result(program, "params", *words)
        ok(ended.stdout.startswith(shown + "\n") and made["params"]["rate"] == float(shown.split()[2])
           and made["params"]["room"] == int(shown.split()[1]),
           f"a bench gets its parameters: {' '.join(words)}", ended.said,
           made["params"])
    for word, said in WRONG_VALUES:
        ended = run(program, "run", "params", word)
        ok(ended.returncode == 2 and f"error: params: {word} {said}" in ended.stderr,
           f"params {word} is refused with what it has to be", ended.said)
    ended = run(program, "run", "outside")
    ok(ended.returncode == 2 and "params.c:16: error: the default of parameter 'rate' has to be a number from 0 to 1"
       in ended.stderr, "a default outside its bounds is refused", ended.said)
    ended = run(program, "run", "double_one")
    ok(ended.returncode == 2 and "error: there are two parameters 'n'" in ended.stderr,
       "two parameters with one name are refused", ended.said)
    points = write(scratch("points.jsonl"),
                   '{"rate": 1e-05, "room": "4 KiB"}\n{"rate": -1, "room": 4096}\n{"rate": 1e+2}\n')
    ended = run(program, "run", "params", "--points", points)
    shown = [(made["params"]["rate"], made["params"]["room"]) for made in
             (json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{"))]
    ok(shown == [(1e-05, 4096), (-1, 4096), (100, 65536)],
       "points give rates and sizes as the command line does", ended.said)
    write(points, '{"rate": "0.5"}\n{"rate": 1e4}\n{"room": "4 m"}\n{"room": true}\n')
    ended = run(program, "run", "params", "--points", points)
    ok(ended.returncode == 2 and ended.stderr.count("rate must be a number from -1 to 1000, not ") == 2
       and ended.stderr.count("room must be a size from 64 B to 1 GiB, not ") == 2,
       "wrong rates and sizes in points are refused with what they have to be", ended.said)


def in_flight(program):
    ended, made = result(program, "overlap")
    spans = [(one["start_ps"], one["done_ps"]) for one in made["launches"]]
    ok(ended.returncode == 0 and ended.stdout.count("verified ") == 3 and len(spans) == 4,
       "four launches in flight verify", ended.said)
    ok(spans[1][0] < spans[0][1] and spans[2][0] < spans[0][1] < spans[3][0],
       "launches on disjoint PEs overlap in time", spans)
    ended, made = result(program, "transfers")
    writes, launches_ = [one for one in made["memory"] if one["do"] == "write"], made["launches"]
    ok(ended.returncode == 0 and ended.stdout.count("verified ") == 1 and len(made["memory"]) == 4
       and all(one["done_ps"] > one["submitted_ps"] for one in made["memory"]),
       "asynchronous writes and reads verify, and the bench waits for the last one", ended.said)
    ok(writes[0]["submitted_ps"] == writes[1]["submitted_ps"] == launches_[0]["submitted_ps"] == 0
       and writes[1]["done_ps"] - writes[0]["done_ps"] >= writes[0]["xfer_ps"] > 0,
       "the second write waits in the m_cpu for the first", made["memory"])
    starts = [sorted({pe["start_ps"] for pe in one["pes"]}) for one in launches_]
    ok(len(starts[0]) == 1 and len(starts[2]) == 2 and starts[2][0] == launches_[2]["start_ps"],
       "without a stamp a kernel begins when the launch reaches it", starts)
    ended = run(program, "run", "refused")
    ok(ended.returncode == 2 and ended.stderr.startswith("params.c:88: error: kb_launch: sip0.cube0.pe1 still runs "
       "kernel waits, launched at params.c:87, and cannot run waits yet"),
       "a launch on a PE that still runs a kernel is refused", ended.said)


def main():
    plain = small_machine("plain", KERNELS)
    mapped = small_machine("mapped", KERNELS, MMU)
    for part in (deploys, busy_with_kernels, roofline, orders, launches, places, parameters, in_flight):
        part(plain)
    maps(mapped, plain)
    misuse(mapped)
    ranks(small_machine("two", KERNELS, "system.sips=2"), plain)


suite(main)
