#!/usr/bin/python3
"""conservation: every run is held against the laws of rt/report/laws.def; each of them notices what it is there for.

tests/conservation/breaks.c changes one figure of the machine after a run.
"""
import json
import os
import re
import sys

from harness import BLESS, CC, KBGEN, ROOT, SCRATCH, SMALL, first_difference, ok, read, run, scratch, suite, sweep, write

DOCS = os.path.join(ROOT, "docs", "results.md")
LAWS = re.findall(r'^LAW\((\w+), (ALWAYS|GOOD), "(.*)"\)$', read(os.path.join(ROOT, "rt", "report", "laws.def")), re.M)

# What breaks.c can change, and the law that this breaks.
BROKEN = {
    "kernel_too_late": "launches", "done_before_begin": "launches", "link_sum": "sums", "slice_sum": "sums",
    "slice_waits": "sums", "engine_busy": "busy", "pe_busy": "busy", "slice_busy": "busy", "link_busy": "busy",
    "tcm_busy": "busy", "sram_busy": "busy", "slot_lost": "slots", "slot_twice": "slots", "buffer_outside": "buffers",
    "credit_lost": "credits", "received_unsent": "credits", "link_bytes": "roofline", "hbm_bytes": "roofline",
    "sram_bytes": "roofline", "tcm_bytes": "roofline", "engine_serves": "idle", "tile_waits": "idle",
    "buffer_left": "idle", "data_left": "idle", "receive_waits": "idle", "command_lost": "commands",
    "service_twice": "work", "operations": "work", "gemm_ps": "work", "math_ps": "work", "too_fast": "peak",
    "hbm_read": "memories", "hbm_read_more": "memories", "tcm_written": "memories", "attach_bytes": "links",
    "attach_lost": "links", "ucie_bytes": "links", "wrong_link": "routers"}


WHY = "internal error: the critical path of --why: the account of "


def machine(topology=SMALL, name="breaks"):
    """A simulator with the bench `breaks`; a file of the runtime is replaced in it, whose globals are there twice."""
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_odr_violation=0"
    program = os.path.join(SCRATCH, name)
    source = os.path.join(ROOT, "tests", "conservation", "breaks.c")
    made = run(KBGEN, topology, "-k", source, "--cc", CC + " -Wl,-z,muldefs", "-o", program)
    if made.returncode:
        sys.exit(made.said)
    return program


def said(law):
    text = next(text for name, _, text in LAWS if name == law)
    return f"internal error: law {law} does not hold: {text}: "


def broken(program):
    names = list(BROKEN)
    ended, answers = sweep(program, "breaks", [{"what": what} for name in names for what in (name, "nothing")],
                           "--data", "off")
    for what, answer in zip(names, answers[::2]):
        law = BROKEN[what]
        ok(answer and answer["status"] == 3 and answer.get("error", "").startswith(said(law))
           and "this is a bug of kbgen" in answer["error"], f"law {law} is broken by {what}", answer and answer.get("error"))
    wrong = [answer for answer in answers[1::2] if not answer or answer["status"]]
    ok(ended.returncode == 3 and not wrong, "a machine in which nothing is changed breaks no law", ended.said, *wrong)
    missing = {name for name, *_ in LAWS} - set(BROKEN.values())
    ok(len(LAWS) > 10 and not missing, "every law is broken by something", *missing)


def ended_early(program):
    """The launch that follows has not ended at the limit."""
    words = ("breaks", "again=true", "--data", "off", "--sim-limit")
    plain = run(program, "run", "breaks", "--data", "off", "--json", scratch("plain.json"))
    limit = json.loads(read(scratch("plain.json")))["end_ps"] + 1000000
    for what, status in (("nothing", 1), ("command_lost", 1), ("hbm_read", 1), ("credit_lost", 3), ("slot_lost", 3)):
        ended = run(program, "run", *words, f"{limit} ps", f"what={what}")
        ok(plain.returncode == 0 and ended.returncode == status
           and ("internal error" in ended.stderr) == (status == 3),
           f"of a run that is ended early the laws are checked that then hold: {what}", ended.said)


def unread(program):
    """What nobody receives may be in the counts of memories besides what commands have asked for, and no more."""
    for what, status in (("nothing", 0), ("hbm_read", 0), ("hbm_read_more", 3)):
        ended = run(program, "run", "breaks", "unread=true", f"what={what}", "--data", "off")
        ok(ended.returncode == status and (said("memories") in ended.stderr) == (status == 3),
           f"with a message of 16 bytes that no PE receives, {what} has status {status}", ended.said)


def in_rings():
    """Where rows of cubes are closed, messages from and to another SIP go on at the port that they come to the cube by: the
    host's PCIe is at port.w of cube 0."""
    for sips, changes in ((1, ("nothing", "attach_bytes", "ucie_bytes")), (2, ("nothing", "attach_lost"))):
        topology = write(scratch("rings.yaml"), f"""system: {{ name: rings, sips: {sips} }}
sip: {{ cubes: {{ rows: 1, cols: 3, wrap: rows }} }}
cube: {{ memory_map: {{ hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4 }}, noc: {{ rows: 2, cols: 2 }} }}
""")
        program = machine(topology, f"rings{sips}")
        for what in changes:
            ended = run(program, "run", "breaks", f"what={what}", "--data", "off")
            holds = what == "nothing"
            ok(ended.returncode == (0 if holds else 3) and (said("links") in ended.stderr) == (not holds),
               f"in rings of cubes of {sips} SIPs, law links {'holds' if holds else 'is broken by ' + what}", ended.said)


def one_run(program):
    path = scratch("run.json")
    ended = run(program, "run", "breaks", "what=service_twice", "--json", path)
    result = json.loads(read(path))
    ok(ended.returncode == 3 and f"breaks: {said('work')}services: " in ended.stderr
       and ended.stdout.endswith("\nend          status 3\n"), "a run that breaks a law says so and has status 3", ended.said)
    ok(result["status"] == 3 and result["error"].startswith(said("work")), "its result has the law", result)
    stream = write(scratch("stream.yaml"), "name: one\nprograms: { p: [ { do: delay, ns: 5 } ] }\n"
                   "launches: [ { program: p, targets: [\"*\"] } ]\n")
    for breaks, error in (("", None), ("data", said("idle")), ("account", WHY)):
        ended = run(program, "replay", stream, "--why", "--json", path, env=os.environ | {"BREAKS": breaks})
        result, outcome = json.loads(read(path)), "failed" if error else "ok"
        ok(ended.returncode == (3 if error else 0) and (error or "") in ended.stderr
           and f"stream.yaml on {result['system']}: {outcome}, end {result['end_ps']} ps\n" in ended.stdout
           and ("error" in result) == bool(error) and result.get("error", "").startswith(error or "")
           and "status" not in result, f"a replay says how it ends: {error or 'well'}", ended.said, result.get("error"))
    for breaks, error in (("account", WHY), ("engines", WHY + "pe_dma read of ")):
        ended = run(program, "run", "breaks", "--why", "--json", path, env=os.environ | {"BREAKS": breaks})
        result = json.loads(read(path))
        ok(ended.returncode == 3 and error in ended.stderr and ended.stdout.endswith("\nend          status 3\n")
           and result["status"] == 3 and result["error"].startswith(error),
           f"a run whose --why is wrong has status 3, its result too: {breaks}", ended.said, result)


def documented():
    docs = read(DOCS)
    when = {"ALWAYS": "every run", "GOOD": "a run that has ended well"}
    rows = "".join(f"| `{name}` | {law} | {when[of]} |\n" for name, of, law in LAWS)
    head, table, rest = re.match(r"(.*\| law \| what holds \| of \|\n\|---\|---\|---\|\n)((?:\|[^\n]*\n)*)(.*)", docs, re.S).groups()
    if BLESS:
        write(DOCS, head + rows + rest)
        table = rows
    ok(table == rows and len(LAWS) > 10, "docs/results.md has the laws of rt/report/laws.def", first_difference(rows, table))


def main():
    documented()
    program = machine()
    for part in (broken, ended_early, unread, one_run):
        part(program)
    in_rings()


suite(main)
