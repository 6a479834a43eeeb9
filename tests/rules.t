#!/usr/bin/python3
"""rules: what docs/model.md says of translations and lanes, by how long calls of tests/kernels/rules.c take."""
import os
import re

from harness import ROOT, ok, run, small_machine, suite

PE = "cube.pe_template.components."
OVERHEAD_PS, WALK_PS, CALL_PS, SCHEDULE_PS = 7000, 100000, 2000, 1000       # the last two are defaults
MMU = PE + "pe_mmu.attrs={{ enabled: true, page_kb: 4, tlb_entries: {}, tlb_overhead_ns: 7, walk_ns: 100 }}"
LANES = PE + "pe_math.attrs.lanes={ f16: 64, bf16: 16, f32: 8 }"


def machine(entries):
    return small_machine(f"rules_{entries}", [os.path.join(ROOT, "tests", "kernels", "rules.c")], MMU.format(entries),
                         LANES, "cube.hbm_ctrl.attrs.row_miss_ns=0")


def times(ended, what="took"):
    return {name: int(ps) for name, ps in re.findall(rf"(?m)^(\w+) {what} (\d+)$", ended.stdout)}


def fault_ps(ended):
    """How long after it was called the load failed."""
    found = re.search(r"PAGE_FAULT at sip0\.cube0\.pe0\.pe_mmu, (\d+) ps", ended.stderr)
    return int(found[1]) - times(ended, "began")["unmapped"] if found else None


def translations(entries):
    """With few entries a map looks for TLB entries among its pages, with many for its pages in the TLB."""
    program = machine(entries)
    ended = run(program, "run", "translations")
    took = times(ended)
    for name, walks, what in (("new", 1, "four pieces in a page that is not in the TLB: one lookup, one walk"),
                              ("known", 0, "four pieces in a page that is: one lookup"),
                              ("mapped_again", 1, "a page that was mapped again is walked again"),
                              ("apart", 3, "four pieces in four pages, one of them known: one lookup, three walks"),
                              ("last", 0, "the page of the last piece is in the TLB")):
        like = took["physical_apart" if name == "apart" else "physical"]
        ok(took[name] == like + OVERHEAD_PS + walks * WALK_PS, f"{what}, with {entries} entries", took, ended.said)
    want = CALL_PS + SCHEDULE_PS + OVERHEAD_PS + WALK_PS
    ok(fault_ps(ended) == want, f"a page that was in the TLB when it was unmapped is walked, with {entries} entries",
       fault_ps(ended), ended.said)
    ended = run(program, "run", "translations", "never_mapped=true")
    ok(fault_ps(ended) == want, f"four pieces in an unmapped page cost one walk, with {entries} entries",
       fault_ps(ended), ended.said)


def lanes():
    ended = run(machine(2), "run", "lanes", "elements=4096")
    took = times(ended)
    ok(took["bf16_to_f16"] - took["f16_to_bf16"] == (4096 // 16 - 4096 // 64) * 1000,
       "of two dtypes of equal size the operand's decides the lanes", took, ended.said)
    ok(took["f16_to_f32"] == took["f32_to_f16"] == took["f16_to_bf16"] + (4096 // 8 - 4096 // 64) * 1000,
       "of two dtypes the larger one decides the lanes", took, ended.said)


suite(lambda: translations(2), lambda: translations(4), lanes)
