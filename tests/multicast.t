#!/usr/bin/python3
"""multicast: what one PE sends to several arrives at each of them; mistakes have their message; messages order what
comes before them and after them, on all PEs."""
import os

from harness import ROOT, is_refused, ok, printed, result, run, small_machine, suite

KERNELS = [os.path.join(ROOT, "tests", "kernels", "multicast.c")]
PLACE = r"called at \S*\bmulticast\.c:\d+"

# what: the status, and what is said.
WRONG = (("nobody", 1, r"KERNEL_ERROR .* tl_multicast: it names no PE to send to"),
         ("nowhere", 1, r"KERNEL_ERROR .* tl_multicast: the array of PEs is a null pointer"),
         ("many", 1, r"KERNEL_ERROR .* tl_multicast: 4294967295 PEs are more than the machine has, which are 4"),
         ("itself", 1, r"KERNEL_ERROR .* send 0: a PE has no ring to or from itself"),
         ("twice", 1, r"KERNEL_ERROR .* send 0: it names a PE twice"),
         ("no_pe", 1, r"KERNEL_ERROR .* tl_multicast: the launch has 4 PEs, there is no position 4"),
         ("large", 1, r"KERNEL_ERROR .* send 0: it is larger than a slot of the ring"))

# what: the operations that race, or none.
RACES = {"told_all": None, "told_on": None, "told_two": ["dma_read", "dma_write"], "told_third": None, "echo_first": None,
         "echo_last": None, "no_echo": ["dma_read", "send"]}

# what: for each PE, the factor of what it stores.
MOVED = {"all": (1, 1, 1, 1), "pending": (2, 4, 4, 4), "async": (1, 1, 1, 1), "overlapping": (4, 4, 4, 4),
         "late": (1, 2, 1, 1)}


def buffer(where):
    return f"cube.pe_template.components.pe_ipcq.attrs.buffer={where}"


def moved(program, where):
    for what, factors in MOVED.items():
        for count in (9, 301):
            ended = run(program, "run", "multicast", f"what={what}", f"n={count}", "--data", "debug", "--races", "on")
            got = printed(ended, "from", "to")
            want = [factor * x for factor in factors for x in got.get("from", [])]
            ok(ended.returncode == 0 and len(want) == 4 * count and got["to"] == want,
               f"{count} elements reach all PEs by rings in {where}: {what}", ended.said)


def races(program):
    for what, expected in RACES.items():
        ended, made = result(program, "multicast", f"what={what}")
        found = [sorted(op["op"] for op in race["ops"]) for race in made["races"]]
        ok(found == ([expected] if expected else []) and ended.returncode == (1 if expected else 0),
           f"multicast what={what}: " + ("a race" if expected else "no race"), ended.said, found)


def same(program):
    """What is simulated ahead of time or watched shows in no time."""
    times = []
    for words in ((), ("--exact-events",), ("--why",), ("--trace-all", "--trace", os.devnull)):
        ended, made = result(program, "multicast", "what=async", "n=301", "--data", "off", *words)
        times.append([made.get("end_ps"), [launch["pes"] for launch in made.get("launches", [])]])
        ok(ended.returncode == 0 and times[-1] == times[0], f"times with {' '.join(words) or 'no option'}", ended.said)


def main():
    for place in ("tcm", "sram", "hbm"):
        moved(small_machine(place, KERNELS, buffer(place)), place)
    program = small_machine("tcm", KERNELS, buffer("tcm"))
    is_refused(program, "multicast", PLACE, WRONG)
    races(program)
    same(program)


suite(main)
