#!/usr/bin/python3
"""impl: component models of users: same data, other times; their parameters; every mistake. limit: 300

Under the sanitizers models that repeat the built-in ones run every third of the cases.
"""
import json
import os
import re
import shutil

from harness import CC, GEMM, KBGEN, ROOT, Replay, SAN, SMALL, done, first_difference, folder, normal, ok, options_of
from harness import read, run, scratch, without_host, write

OWN = os.path.join(ROOT, "tests", "impl")
SHOWN = os.path.join(ROOT, "topologies", "impl")
PE = "cube.pe_template.components."
GEMM_IMPL, GEMM_PARAMS = PE + "pe_gemm.impl=", PE + "pe_gemm.attrs.params."
SAME = {PE + "pe_gemm": "same_gemm", PE + "pe_math": "same_math", PE + "pe_fetch_store": "same_move",
        PE + "pe_scheduler": "same_scheduler", "cube.sram": "same_sram", "cube.hbm_ctrl": "same_hbm"}
CASES = ("across_sips", "accel_slot_contention", "bad_address", "direct_overtakes", "epilogue_once", "host_memory",
         "ipcq_in_hbm", "ports_1", "ports_2", "random_sram_rings", "random_two_sips_mmu", "reads_in_order",
         "sram_contention", "units")
COMPILERS = ("gcc", "clang") if not SAN else (CC,)


def sets(*values):
    return options_of(settings=values)


def impls(*names, where=OWN):
    return options_of(impls=[os.path.join(where, name + ".c") for name in names])


def make(name, topology, *options, cc=None):
    """The simulator of a topology with models of a user, and how kbgen ended."""
    program = scratch(name)
    return program, run(KBGEN, topology, "-o", program, *(["--cc", cc] if cc else []), *options)


def multiply(program, *options):
    """Result and trace of a verified GEMM."""
    result, trace = program + ".json", program + ".jsonl"
    ended = run(program, "run", "gemm", *GEMM, "--json", result, "--trace", trace, *options)
    return ended, read(result), read(trace)


# ---- the same formulas give the same trace

def sums_differ(text):
    """Where the rows of memories do not add up to the bytes moved; empty if they do."""
    stats = json.loads(text)
    for memory, name in (("hbm_ctrl", "hbm"), ("sram", "sram")):
        rows, moved = [row for row in stats["channels"] if memory in row["id"]], stats["bytes"][name]
        if any(row["channel"] != "model" for row in rows) or sum(row["bytes"] for row in rows) != sum(moved.values()):
            return f"channels of {name}: {rows}, {moved}"
    return ""


def same(case, cc):
    where = os.path.join(ROOT, "tests", "conformance", case)
    options = sets(*(f"{part}.impl={name}" for part, name in SAME.items())) + impls(*SAME.values())
    program, made = make(f"same-{cc}", os.path.join(where, "topo.yaml"), *options, cc=cc)
    got = Replay(program, os.path.join(where, "stream.yaml"), program)
    wrong = [first_difference(read(os.path.join(where, "trace.jsonl")), got.trace),
             first_difference(normal(read(os.path.join(where, "expected.json"))), normal(got.result)),
             sums_differ(got.stats)]
    good = made.returncode == 0 and not made.stderr and not any(wrong)
    ok(good, f"models that repeat the built-in ones give the trace of {case}, and its bytes, {cc}", made.said, *wrong, got.said)


for number, name in enumerate(CASES[::3 if SAN else 1]):
    same(name, COMPILERS[number % len(COMPILERS)])

# ---- data stay, times change

plain, made = make("plain", SMALL)
first, result, trace = multiply(plain)
slow_options = sets(GEMM_IMPL + "same_gemm", GEMM_PARAMS + "more=1.5 us") + impls("same_gemm")
slow, made = make("slow", SMALL, *slow_options)
second, slow_result, slow_trace = multiply(slow)
ok(first.returncode == second.returncode == 0, "a GEMM with a slower pe_gemm verifies", made.said, second.said)
ended, slow_ended = json.loads(result), json.loads(slow_result)
ok(slow_ended["end_ps"] > ended["end_ps"] + 1500000,
   "a GEMM with a slower pe_gemm takes longer", ended["end_ps"], slow_ended["end_ps"])
ok(slow_ended["verify"] == ended["verify"] and slow_ended["bytes"] == ended["bytes"],
   "a slower pe_gemm changes no value and no count of bytes")


def services(text):
    """The time of each GEMM service, by node, command and tile."""
    began, took = {}, {}
    for line in text.splitlines():
        event = json.loads(line)
        name = (event["node"], *(event.get(key) for key in ("cmd", "tile", "stage")))
        if "pe_gemm" in event["node"] and event["ev"] == "engine_start":
            began[name] = event["t"]
        elif "pe_gemm" in event["node"] and event["ev"] == "engine_complete":
            took[name] = event["t"] - began[name]
    return took


fast, slowed = services(trace), services(slow_trace)
ok(fast and fast.keys() == slowed.keys() and all(slowed[key] == fast[key] + 1500000 for key in fast),
   "each GEMM service takes exactly as much longer as the parameter says", fast, slowed)
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *slow_options)
ok(" compile " not in repeated.stderr and repeated.returncode == 0,
   "an unchanged model is not compiled again", repeated.said)
copy = folder("copy")
shutil.copy(os.path.join(OWN, "same_gemm.c"), copy)
changed_options = sets(GEMM_IMPL + "same_gemm", GEMM_PARAMS + "more=1.5 us") + impls("same_gemm", where=copy)
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *changed_options)
ok(" compile " not in repeated.stderr and repeated.returncode == 0,
   "an equal model in another folder is not compiled again", repeated.said)
with open(os.path.join(copy, "same_gemm.c"), "a", encoding="utf-8") as file:
    file.write(f"/* no cache has seen these bytes: {os.urandom(8).hex()} */\n")
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *changed_options)
ok(" compile " in repeated.stderr and repeated.returncode == 0,
   "a model with another byte is compiled again", repeated.said)
write(os.path.join(copy, "twin_gemm.c"), read(os.path.join(OWN, "same_gemm.c")).replace("same_gemm", "twin_gemm"))
twin, made = make("twin", SMALL, *sets(GEMM_IMPL + "twin_gemm", GEMM_PARAMS + "more=1.5 us"),
                  *impls("twin_gemm", where=copy))
hashes = {run(program, "info").stdout.partition("topology ")[2].split(",")[0] for program in (plain, slow, twin)}
ok(len(hashes) == 3, "a machine with another model, or one of another name, has another topology hash", made.said,
   hashes)

# ---- parameters

PROBE = write(scratch("params.c"), "#include <kb/impl.h>\n" + "".join(
    f"_Static_assert({claim}, \"\");\n" for claim in (
        "params_a == 19400", "params_b == 2097152", "params_c == 1400000", "params_d == 6400000000", "params_e == 2000",
        "params_f == 12 && params_f_num == 12 && params_f_den == 1", "params_g_num == 17 && params_g_den == 20",
        "params_h == UINT64_MAX", "params_i == 19457", "params_j == 0 && params_j_den == 1", "params_k == 255",
        "sizeof params_f == 8", "sizeof(struct { int member[params_f]; }) == 48")) + """
#if defined params_g || defined params_a_num
#error "a fraction is no whole number, and a quantity is rounded"
#endif
uint64_t params_service(const struct kb_gemm_request *ask) { return ask->pe; }
""")
GIVEN = {"a": "19.4 ns", "b": "2 MiB", "c": "1.4 GHz", "d": "6.4 GB/s", "e": "2 mm", "f": "12", "g": "0.85",
         "h": "18446744073709551615", "i": "19.4565 ns", "j": "0", "k": "0xff"}
for cc in COMPILERS:
    _, made = make("params", SMALL, *sets(GEMM_IMPL + "params", *(GEMM_PARAMS + f"{name}={value}"
                                                                   for name, value in GIVEN.items())),
                   "--impl", PROBE, cc=cc)
    ok(made.returncode == 0 and not made.stderr,
       f"parameters reach a model as constants in base units, {cc}", made.said)
dumped = run(KBGEN, SMALL, "--dump", "model", *slow_options).stdout
ok(f"{GEMM_PARAMS}more" in dumped and "1500000 ps" in dumped, "--dump model shows the parameters of a model", dumped)

# ---- mistakes: each at the topology's line, status 2, nothing written

WRONG = folder("wrong")
HEAD = "#include <kb/impl.h>\n"
SERVICE = "uint64_t mine_service(const struct kb_gemm_request *ask) { return ask->m; }\n"
AT = "topo.yaml:2:55: error: cube.pe_template.components.pe_gemm.impl: "
TOPOLOGY = "system: { name: wrong }\ncube: { pe_template: { components: { pe_gemm: { impl: mine } } } }\n"


def refused(name, text, *said, topology=TOPOLOGY, files=("mine.c",), options=(), cc=COMPILERS[0]):
    for left in os.listdir(WRONG):
        os.unlink(os.path.join(WRONG, left))
    for file, content in [("topo.yaml", topology)] + [(file, text) for file in files]:
        write(os.path.join(WRONG, file), content)
    before = sorted(os.listdir(WRONG))
    wrong = []
    for check in ([], ["--check"]):
        ended = run(KBGEN, "topo.yaml", "--cc", cc, *check, *(word for file in files for word in ("--impl", file)),
                    *options, cwd=WRONG)
        if ended.returncode != 2 or ended.stdout or any(part not in ended.stderr for part in said):
            wrong += ["want status 2 and: " + " ... ".join(said), ended.said]
    if sorted(os.listdir(WRONG)) != before:
        wrong.append(f"something was written: {os.listdir(WRONG)}")
    ok(not wrong, f"{name} is refused", *wrong)


MODEL = AT + "mine.c is no model of it", "it has to define uint64_t mine_service(const struct kb_gemm_request *ask)"
for cc in COMPILERS:
    refused(f"a model without its function, {cc},", HEAD, *MODEL, "mine_service", cc=cc)
    refused(f"a model that only declares its function, {cc},", HEAD + SERVICE.partition("{")[0] + ";\n", *MODEL,
            "alias", cc=cc)
    refused(f"a model with another signature, {cc},", HEAD + "uint64_t mine_service(uint64_t m) { return m; }\n",
            *MODEL,
            "conflicting types", "mine.c:2:10", cc=cc)
    refused(f"a model with another type of result, {cc},", HEAD + SERVICE.replace("uint64_t", "double"), *MODEL,
            "conflicting types", cc=cc)
    refused(f"a model with a static function, {cc},", HEAD + "static " + SERVICE, *MODEL, "static declaration", cc=cc)
    refused(f"a model that is not C, {cc},", "not C\n", *MODEL, "mine.c:1:", cc=cc)
    refused(f"a model that uses a parameter that is not given, {cc},", SERVICE.replace("ask->m", "mine_speed"), *MODEL,
            "mine_speed",
            options=sets(GEMM_PARAMS + "sped=1"), cc=cc)
refused("a model of another kind of component", read(os.path.join(OWN, "same_math.c")).replace("same_math", "mine"),
        *MODEL)
MEMORY = "system: { name: wrong }\ncube: { hbm_ctrl: { impl: mine } }\n"
NEEDS = ("topo.yaml:2:27: error: cube.hbm_ctrl.impl: mine.c is no model of it", "and KB_STATE(mine);")
STATE = read(os.path.join(OWN, "same_hbm.c")).replace("same_hbm", "mine")
refused("a memory model without its state", STATE.replace("KB_STATE(mine);", ""), *NEEDS, "mine_state", topology=MEMORY)
refused("a memory model without its struct", HEAD + "KB_STATE(mine);\n", *NEEDS, "incomplete", topology=MEMORY)
refused("a memory model whose states are too large", HEAD + "struct mine { char all[300 << 20]; };\nKB_STATE(mine);\n",
        NEEDS[0], "all states fit into 1 GiB", topology=MEMORY)
refused("an impl whose file is not given", "", AT + "no --impl gives mine.c",
        "--impl FILE names the C file mine.c", files=())
refused("an impl whose file has another name", SERVICE, AT + "no --impl gives mine.c",
        "did you mean 'mind'?", files=("mind.c",))
refused("a file that no component names", SERVICE, "kbgen: --impl other.c: no component of topo.yaml has `impl: other`",
        files=("mine.c", "other.c"))
refused("a file for a machine of built-in models", SERVICE, "kbgen: --impl mine.c: no component", topology="{}\n")
refused("a file that does not exist", SERVICE, "kbgen: --impl none.c: No such file", options=("--impl", "none.c"))
refused("a file that is given twice", SERVICE, "kbgen: --impl gives two files mine.c", options=("--impl", "./mine.c"))
for path in ("mine.cc", "mi-ne.c", "1st.c", ".c"):
    refused(f"a file named {path}", SERVICE, "--impl takes a file NAME.c, NAME being a name of ",
            f"letters, digits and _ that does not begin with a digit; not '{path}'", options=("--impl", path))
refused("one file for two components", SERVICE, "mine.c models one part alone",
        "it models this one already", options=sets("cube.sram.impl=mine"))
refused("a model for a component that takes none", SERVICE,
        "--set:1:17: error: cube.m_cpu.impl: this part has no model but the "
        "built-in one", "sram, hbm_ctrl, pe_scheduler, pe_fetch_store, pe_gemm and pe_math",
        options=sets("cube.m_cpu.impl=mine"))
for name in ("state", "service", "memories", "a_num", "a_den"):
    refused(f"a parameter named {name}", SERVICE, f"'{name}' means something else",
            options=sets(f"{GEMM_PARAMS}{name}=1"))

# ---- impossible times

for name, part, want in (("late", PE + "pe_gemm", "simulated time runs past 2^64 ps (213 days): late_service of small"),
                         ("early", "cube.hbm_ctrl", "early_service of small: a read of")):
    extra = sets("cube.hbm_ctrl.attrs.params.by=1 ps") if name == "early" else []
    program, made = make(name, SMALL, *sets(f"{part}.impl={name}"), *extra, *impls(name))
    ended = run(program, "run", "gemm", *GEMM)
    ok(ended.returncode == 1 and want in ended.stderr,
       f"{name}.c, whose times are impossible, stops the run", made.said, ended.said)

# ---- the models that come with kbgen

SWAPPED = impls("systolic", "vector", "hbm_banks", where=SHOWN)
told = []
for cc in COMPILERS:
    program, made = make(f"swapped-{cc}", os.path.join(SHOWN, "swapped.yaml"), *SWAPPED, cc=cc)
    ended, result, trace = multiply(program)
    ok(made.returncode == 0 and not made.stderr and ended.returncode == 0, f"a GEMM on swapped.yaml verifies, {cc}",
       made.said, ended.said)
    told.append(without_host(result) + trace)
ended = run(program, "run", "gemm", "m=256", "k=256", "n=256", "tile_m=16", "tile_n=16", "tile_k=16", "--data", "off",
            "--profile")
found = re.search(r"(\d+) stage services: (\d+) in skipped periods, (\d+) on PEs", ended.stderr)
ok(found and int(found[1]) > 5000 and found[2] == found[3] == "0",
   "with models of a user every event is simulated: fast-forward does not know their state", ended.said)
ok(told[0] == told[-1],
   "both compilers give the same result and trace on swapped.yaml", first_difference(told[0], told[-1]))
done()
