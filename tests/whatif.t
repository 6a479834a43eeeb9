#!/usr/bin/python3
"""whatif: `SIM whatif` says what a build with each number better gives, and lists every number. limit: 200"""
import json
import os
import re
import signal
import subprocess
import time

from harness import GEMM, KBGEN, ROOT, SAN, SMALL, folder, held, ok, read, run, scratch, simulator, small_machine, suite
from harness import write

SCHEMA = held.validator("whatif")
PE = "cube.pe_template.components."
# Keys that decide what is compiled, and those without a better direction.
NO_NUMBER = re.compile(r"(sips|pes|cubes\.(rows|cols)|noc\.(rows|cols)|hbm_slices_per_cube|pcs|(rd|wr)_engines|ports|reads|name|kind|"
                       r"impl|params|include|at|attach|pe_layout|hbm_layout|shared_resource|enabled|buffer|buffers|"
                       r"wrap|response|planes|plane_of\.\w+|links)$")
# A kernel that does not come back on a machine with a larger array, and a bench that refuses a larger SRAM.
KERNEL = """#include <stdlib.h>
#include <unistd.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>
struct nothing { int unused; };
KB_KERNEL(touchy, struct nothing)
{
    (void)arg;
    if (kb_attrs.pe_gemm_rows > 64)
        exit(0);
    tl_delay(tl, 100);
}
KB_BENCH(touchy, "fails on some machines", KB_INT(launches, 2, 1, 2, "launches"))
{
    if (kb_attrs.pe_gemm_cols > 64)
        *(volatile int *)0 = 1;
    for (uint64_t i = 0; i < kb_int(launches); i++)
        kb_wait(kb_launch(touchy, kb_pes("*"), &(struct nothing){0}));
}
KB_KERNEL(endless, struct nothing)
{
    (void)arg;
    while (kb_attrs.pe_gemm_rows > 64)
        tl_delay(tl, 100);
}
KB_BENCH(endless, "does not end on a machine with a larger array")
{
    kb_wait(kb_launch(endless, kb_pes("*"), &(struct nothing){0}));
}
KB_KERNEL(planned, struct nothing)
{
    (void)arg;
    tl_delay(tl, 1000 * kb_op_cost("tanh"));
}
KB_BENCH(planned, "takes as long as the cost of an op says that no command has")
{
    kb_wait(kb_launch(planned, kb_pes("*"), &(struct nothing){0}));
}
KB_BENCH(wordy, "fails with many words on some machines", KB_SIZE(size, 35184372088832, 0, UINT64_MAX, "2^45"))
{
    (void)kb_size(size);
    if (kb_attrs.pe_gemm_rows > 64)
#line 1 "LONG"
        (void)kb_int(nothing);
}
""".replace("LONG", 80 * "\u20ac")


def whatif(program, *words):
    """The answer as JSON, which its schema describes."""
    ended = run(program, "whatif", *words, "--json", "-")
    answer = json.loads(ended.stdout or "{}")
    wrong = [error.message for error in SCHEMA.iter_errors(answer)]
    ok(ended.returncode == 0 and not wrong, f"the JSON of whatif {' '.join(words)} is as its schema says", ended.said[:2000], *wrong)
    return answer


def by_hand(title, topology, answer, run_of, least=6):
    """The ends of runs on machines built with each changed number."""
    wrong = []
    changes = [(change["set"], change["end_ps"]) for change in answer["changes"]]
    for change, want in changes[::6 if SAN else 1]:
        path = scratch("built")
        made = run(KBGEN, topology, "-o", path, "--set", change)
        got = json.loads(run(path, *run_of, "--json", "-").stdout)["end_ps"] if made.returncode == 0 else made.said
        if got != want:
            wrong.append(f"--set {change}: whatif says {want}, a build {got}")
    ends = [end for _, end in changes]
    ok(len(changes) >= least and not wrong and ends == sorted(ends), f"{title}: {len(changes)} changes are those of builds, sorted by gain",
       *wrong)


def keys_of(schema, path=""):
    for name, value in schema.get("properties", {}).items():
        key = f"{path}.{name}" if path else name
        if value.get("type") == "object" and "properties" in value:
            yield from keys_of(value, key)
        else:
            yield key


def every_number(answer):
    """Each number key of the schema is in one list; of dtypes and ops, those that the machine has."""
    listed = [change["key"] for change in answer["changes"] + answer["failed"]] + answer["unchanged"] + answer["best"]
    schema = [key for key in keys_of(json.loads(run(KBGEN, "--dump", "schema").stdout)) if not NO_NUMBER.search(key)]
    by_name = re.compile(r"\.(k_per_cycle|lanes|cost)(\.|$)")
    wanted = {key for key in schema if not by_name.search(key)}
    got = {key for key in listed if not by_name.search(key)}
    ok(len(listed) == len(set(listed)) and got == wanted and len(wanted) > 60, "every number key is listed once",
       "missing", *sorted(wanted - got), "too many", *sorted(got - wanted))
    named = {key.split(".attrs.")[1] for key in listed if by_name.search(key)}
    ok({"k_per_cycle.f16", "k_per_cycle.i8", "lanes.f32", "cost.exp", "cost.add"} <= named and "lanes.i8" not in named,
       "of dtypes and ops, those that the machine has are listed", *sorted(named))


def costs(program):
    """Costs of ops that the run asks for are changed, in a run of their own; those of other ops change nothing."""
    words = ("softmax", "rows=64", "cols=256")
    answer = whatif(program, *words, "--by", "2x")
    ends = {change["key"].split(".cost.")[1]: (change["set"], change["end_ps"]) for change in answer["changes"] if ".cost." in change["key"]}
    ok({"exp", "sum", "recip"} <= set(ends) and PE + "pe_math.attrs.cost.tanh" in answer["unchanged"],
       "ops that softmax has change its time, others do not", ends, answer["unchanged"])
    for op, (key, end_ps) in ends.items():
        found = json.loads(run(program, "run", *words, "--data", "off", "--set", key, "--json", "-").stdout)["end_ps"]
        ok(found == end_ps and end_ps < answer["end_ps"], f"the cost of {op} gives what a run with it gives", end_ps, found)


def number(text):
    return float(re.match(r"[\d.e+]+", text)[0])


def directions(answers):
    """Times, lengths, cycles and costs become less; all else more."""
    wrong = []
    for answer in answers:
        for change in answer["changes"] + answer["failed"]:
            less = re.search(r"_ns$|_mm$|_cycles$|\.cost\.", change["key"])
            before, after = number(change["value"]), number(change["changed"])
            if (after < before) != bool(less) or after == before:
                wrong.append(change)
    ok(not wrong, "each number changes in its better direction", *wrong)


def elasticity(answer):
    """A launch crosses host, switch, pcie_ep and back: four latencies, of which a tenth goes away."""
    rows = {change["key"]: change for change in answer["changes"]}
    latency, end = rows["system.pcie.latency_ns"], answer["end_ps"]
    ok(latency["value"] == "250 ns" and latency["changed"] == "225 ns" and end - latency["end_ps"] == 4 * 25000
       and abs(latency["elasticity"] - 4 * 250000 / end) < 1e-9 and abs(latency["gain"] - 4 * 25000 / end) < 1e-9,
       "the elasticity of PCIe's latency is the share of four latencies in the run", latency, end)


def factors(program):
    twice = {change["key"]: change for change in whatif(program, "gemm", *GEMM, "--by", "2x")["changes"]}
    latency = twice["system.pcie.latency_ns"]
    ok(latency["changed"] == "125 ns" and twice["cube.hbm_ctrl.attrs.pc_bw_gbs"]["changed"] == "64 GB/s",
       "--by 2x halves times and doubles rates", latency)
    most = whatif(program, "gemm", *GEMM, "--by", "inf")
    rows = {change["key"]: change for change in most["changes"]}
    ok(rows["system.pcie.latency_ns"]["changed"] == "0 ns" and rows["cube.hbm_ctrl.attrs.pc_bw_gbs"]["set"].endswith("=~")
       and PE + "pe_tcm.attrs.size_mb" in most["best"], "--by inf takes limits and times away, and leaves sizes", rows)
    by_hand("without limits", SMALL, {"changes": most["changes"][:8]}, ("run", "gemm", *GEMM, "--data", "off"))


def params(program):
    answer = whatif(program, "gemm", *GEMM, "--params", "--by", "50%")
    rows = [change for change in answer["changes"] if "param" in change]
    wrong = []
    for row in rows:
        others = [word for word in GEMM if not word.startswith(row["param"] + "=")]
        end = json.loads(run(program, "run", "gemm", *others, row["set"], "--data", "off", "--json", "-").stdout)["end_ps"]
        before, after = number(row["value"]), number(row["changed"])
        slope = (end / answer["end_ps"] - 1) / (after / before - 1)
        if end != row["end_ps"] or abs(slope - row["elasticity"]) > 1e-9:
            wrong.append((row, end, slope))
    ok({row["param"] for row in rows} >= {"m", "k", "n"} and len(rows) >= 5 and not wrong,
       "parameters go up and down, and run as by hand", *wrong)


def words(program):
    """What is printed, and what is refused."""
    ended = run(program, "whatif", "gemm", *GEMM, "--jobs", "3")
    rows = re.findall(r"^ *[+-]\d+\.\d\d % +[+-]\d+ +-?\d+\.\d{3}  .* -> .*  (\S+)$", ended.stdout, re.M)
    again = whatif(program, "gemm", *GEMM)
    ok(ended.returncode == 0 and rows == [change["key"] for change in again["changes"]] and "\nno change  " in ended.stdout
       and " default " in ended.stdout, "the table has the same rows", ended.said)
    ok(again == whatif(program, "gemm", *GEMM, "--jobs", "1"), "the number of processes makes no difference")
    set_first = whatif(program, "gemm", *GEMM, "--set", "system.pcie.latency_ns=1000")
    row = next(row for row in set_first["changes"] if row["key"] == "system.pcie.latency_ns")
    ok(row["place"] == "--set" and row["changed"] == "900 ns" and set_first["end_ps"] - row["end_ps"] == 400000,
       "--set comes before the changes", row)
    for wrong, said in ((("--by", "0%"), "--by 0%"), (("--by", "100%"), "--by 100%"), (("--by", "1x"), "--by 1x"),
                        (("--by", "3"), "--by 3"), (("--replay", "x"), "takes no bench"), (("--jobs", "0"), "--jobs 0: a whole number from 1 to 256 is needed"), (("--jobs", "-1"), "--jobs -1: a whole number"),
                        (("--jobs", "99999999999"), "--jobs 99999999999: a whole number")):
        ended = run(program, "whatif", "gemm", *wrong)
        ok(ended.returncode == 2 and said in ended.stderr, f"whatif {' '.join(wrong)} is refused", ended.said)
    ended = run(program, "whatif", "gemm", "--params", "--by", "inf")
    ok(ended.returncode == 2 and "--params" in ended.stderr, "parameters cannot be changed without limit", ended.said)
    ended = run(program, "whatif")
    ok(ended.returncode == 2 and "needs a bench" in ended.stderr, "whatif needs a bench", ended.said)


def failures():
    """A number that the topology refuses, and runs that fail, cost their row alone."""
    kernel = write(os.path.join(folder("kernels"), "touchy.c"), KERNEL)
    program = small_machine("touchy", [kernel], PE + "pe_tcm.attrs.reserved_mb=4", PE + "pe_tcm.attrs.size_mb=4")
    answer = whatif(program, "planned", "--by", "2x")
    ok([row["key"] for row in answer["changes"] if ".cost." in row["key"]] == [PE + "pe_math.attrs.cost.tanh"],
       "the cost of an op that a kernel only asks for changes its time", answer["changes"])
    answer = whatif(program, "touchy", "--by", "20%")
    why = {row["key"].rsplit(".", 1)[1]: row["error"] for row in answer["failed"]}
    ok(set(why) == {"reserved_mb", "rows", "cols"} and "are more than" in why["reserved_mb"] and "reserved part is the default" not in why["reserved_mb"]
       and ("ended its process" if SAN else "SIGSEGV") in why["cols"] and "status 1" in why["rows"], "what fails says why", answer["failed"])
    ok([row["key"].rsplit(".", 1)[1] for row in answer["failed"] if row["refused"]] == ["reserved_mb"],
       "a value that the topology refuses is told from a run that fails", answer["failed"])
    ended = run(program, "whatif", "touchy", "--set", PE + "pe_gemm.attrs.rows=65")
    ok(ended.returncode == 1 and not ended.stdout and "exit" in ended.stderr, "a run that fails as it is has no table", ended.said)
    late = run(program, "whatif", "touchy", "--set", PE + "pe_gemm.attrs.rows=65", "--json", scratch("nowhere") + "/answer.json")
    ok(late.returncode == 2 and "cannot write" in late.stderr, "--json is opened before the first run", late.said)
    answer = whatif(program, "wordy", "--params", "--by", "1000000x")
    errors = {row["key"]: row["error"] for row in answer["failed"]}
    ok(errors.get(PE + "pe_gemm.attrs.rows") == 65 * "\u20ac" + "...", "a long reason is cut between two characters", errors)
    ok(answer["unchanged"].count("size") == 1, "a size that 64 bits do not hold is no change; the smaller one is", answer["unchanged"])
    terminated(program)


def children(pid):
    return [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]


def stat(pid):
    """The state of a process, and the ticks of CPU time that it has taken; Z if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            words = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return "Z", 0
    return words[0], int(words[11])


def wait_until(holds):
    end = time.monotonic() + 30
    while not (answer := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    return answer


def terminated(program):
    """The process that does not end goes with the one that has started it, or takes it along."""
    for title, whom in (("SIGTERM to whatif", lambda pid, child: pid), ("SIGTERM to a process of it", lambda pid, child: child)):
        with subprocess.Popen([program, "whatif", "endless", "--by", "20%", "--jobs", "2"], stdout=subprocess.DEVNULL) as process:
            busy = wait_until(lambda: [pid for pid in children(process.pid) if stat(pid)[1] >= 30])
            gone = False
            if busy:
                os.kill(whom(process.pid, busy[0]), signal.SIGTERM)
                gone = wait_until(lambda: process.poll() is not None and stat(busy[0])[0] == "Z")
            for pid in busy if not gone else ():
                os.kill(pid, signal.SIGKILL)
            process.kill()
        ok(gone and process.returncode in (-15, 143), f"{title} ends all its processes", busy, process.returncode)


def streams():
    case = os.path.join(ROOT, "tests/conformance/units")
    topology, stream = os.path.join(case, "topo.yaml"), os.path.join(case, "stream.yaml")
    program = simulator(topology, "units")
    answer = whatif(program, "--replay", stream)
    lines = read(topology).splitlines()
    placed = [(key["key"].split(".")[-1], lines[int(key["place"].split(":")[1]) - 1]) for key in answer["changes"]
              if key["place"].startswith("topo.yaml:")]
    ok(answer["stream"] == stream and len(placed) > 2 and all(name in line for name, line in placed),
       "the answer names the stream, and the line of each key", placed)
    by_hand("of a stream", topology, answer, ("replay", stream))
    chip_links()
    pages()


def chip_links():
    """Each link between chips has its own numbers; --set takes the list that they are in."""
    case = os.path.join(ROOT, "tests/conformance/chip_links_ring")
    topology, stream = os.path.join(case, "topo.yaml"), os.path.join(case, "stream.yaml")
    answer = whatif(simulator(topology, "chip_links_ring"), "--replay", stream)
    listed = [change["key"] for change in answer["changes"] + answer["failed"]] + answer["unchanged"] + answer["best"]
    wanted = [f"system.links[{link}].{key}" for link in range(4) for key in ("bw_gbs", "latency_ns")]
    ok(sorted(key for key in listed if "[" in key) == wanted, "bandwidth and latency of each link between chips are listed once", listed)
    answer["changes"] = [change for change in answer["changes"] if change["set"].startswith("system.links=")]
    gains = {change["key"]: change["gain"] for change in answer["changes"]}
    ok(len(gains) == 4 and gains["system.links[1].latency_ns"] > gains["system.links[2].latency_ns"] > gains["system.links[0].latency_ns"] > 0,
       "the link that most goes over gains most", gains)
    by_hand("of links between chips", topology, answer, ("replay", stream), least=4)


def pages():
    """A stream that maps two pages of 4 KiB: at an even one, and at an odd one, which a machine with pages of 8 KiB refuses."""
    program = simulator(os.path.join(ROOT, "tests/conformance/mmu_tlb_misses/topo.yaml"), "mmu_tlb_misses")
    text = """host:
  - {do: map, va: ADDRESS, bytes: 0x2000, to: {space: hbm}, targets: [sip0.cube0.pe0]}
  - {do: launch, program: a, targets: [sip0.cube0.pe0]}
programs:
  a: [{do: load, from: {va: ADDRESS}, to: 0x200000, bytes: 0x2000}]
"""
    key = PE + "pe_mmu.attrs.page_kb"
    even, odd = (write(scratch(f"at_{at}.yaml"), text.replace("ADDRESS", at)) for at in ("0x10000", "0x11000"))
    rows = {row["key"]: row for row in whatif(program, "--replay", even, "--by", "2x")["changes"]}
    larger = json.loads(run(program, "replay", even, "--set", key + "=8", "--json", "-").stdout)
    ok(rows.get(key, {}).get("end_ps") == larger["end_ps"], "a larger page takes the pages of that size", rows.get(key), larger["end_ps"])
    refused = {row["key"]: row for row in whatif(program, "--replay", odd, "--by", "2x")["failed"] if row["refused"]}
    said = "virtual address 0x11000 is no multiple of the page, 8192 bytes"
    ok(refused.get(key, {}).get("error") == said, "a page size that the stream does not allow is refused", refused)
    ended = run(program, "whatif", "--replay", odd, "--by", "2x")
    ok(re.search(rf"^refused +{re.escape(key)}: 4 KiB -> 8 KiB: {said}$", ended.stdout, re.M), "the table says so", ended.said)


def main():
    program = simulator(SMALL, "small")
    answer = whatif(program, "gemm", *GEMM)
    by_hand("of a bench", SMALL, answer, ("run", "gemm", *GEMM, "--data", "off"))
    every_number(answer)
    costs(program)
    costs(simulator(SMALL, "own_math", settings=[PE + "pe_math.impl=same_math"], impls=[os.path.join(ROOT, "tests/impl/same_math.c")]))
    directions([answer])
    elasticity(answer)
    factors(program)
    params(program)
    words(program)
    failures()
    streams()


suite(main)
